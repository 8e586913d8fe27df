# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # tests/lib/lab-image.sh uses these names
#
# image.sh - the content of the disk of the Debian guest
#
# Scripts source this file after tests/lib/cache.sh and tests/lib/lab-image.sh.

debian_folder=$(dirname "${BASH_SOURCE[0]}")
lab_cache=$cache_folder/debian-guest
lab_image_name='the image of the Debian guest'
lab_image_size=1536M
debian_loads=(python.py node.js openssl.sh shell.sh exporter.sh)
lab_image_files=(
    "$debian_folder/image.sh" "$debian_folder/load@.service" "$debian_folder/ready.service"
    "${debian_loads[@]/#/$debian_folder/}"
)

lab_packages=(
    systemd-sysv udev dbus kmod procps
    linux-image-cloud-amd64
    python3-minimal libpython3-stdlib nodejs openssl prometheus-node-exporter
)

lab_initrd_modules=(virtio_pci virtio_blk ext4)

# adapt_root DIR: installs the loads as services
adapt_root()
{
    local load
    install -m 755 "${debian_loads[@]/#/$debian_folder/}" "$1/srv/" &&
        install -m 644 "$debian_folder/load@.service" "$debian_folder/ready.service" \
            "$1/etc/systemd/system/" || return 1
    for load in "${debian_loads[@]}"; do
        chroot "$1" systemctl enable "load@$load.service" || return 1
    done
    # Nobody logs in, and no network or disk check is needed.
    chroot "$1" systemctl enable ready.service &&
        chroot "$1" systemctl mask getty@tty1.service serial-getty@ttyS0.service \
            systemd-timesyncd.service e2scrub_reap.service apt-daily.timer \
            apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
            logrotate.timer systemd-tmpfiles-clean.timer
}

# pack_boot DIR: copies the kernel and its initrd
pack_boot()
{
    cp "$1"/tree/boot/vmlinuz-* "$1/kernel" && cp "$1"/tree/boot/initrd.img-* "$1/initrd"
}
