# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # tests/lib/lab-image.sh uses these names
#
# image.sh - the content of the disk of the KVM lab's host
#
# tests/kvm-lab sources this file after tests/lib/lab-image.sh.

lab_cache=$cache_folder/kvm-lab
lab_image_name='the image of the KVM host'
lab_image_size=3G
lab_image_files=(
    "$lab_folder/image.sh" "$lab_folder/lab-init" "$lab_folder/lab.service"
    "$lab_folder/../lib/lab-init.sh"
)

# A usual Debian host: systemd, libvirt with its units and polkit, QEMU and a kernel; the libraries
# of virt-uprof; and programs that the live tests call.
lab_packages=(
    systemd-sysv udev dbus kmod iproute2 procps util-linux
    linux-image-amd64
    libvirt-daemon-system libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 polkitd pkexec
    libglib2.0-0 libjson-glib-1.0-0 libxml2 libelf1 libdw1 libpopt0 libseccomp2 libzydis4.0 zlib1g liblzma5
    python3-minimal libpython3-stdlib binutils
)

lab_initrd_modules=(virtio_pci virtio_blk ext4)

# adapt_root DIR: installs both ways to run the lab: /lab-init as process 1, and a unit for systemd as
# process 1
adapt_root()
{
    install -m 755 "$lab_folder/lab-init" "$lab_folder/../lib/lab-init.sh" "$1/" &&
        install -m 644 "$lab_folder/lab.service" "$1/etc/systemd/system/" &&
        chroot "$1" systemctl enable lab.service &&
        # Nobody logs in, and no network or disk check is needed.
        chroot "$1" systemctl mask getty@tty1.service serial-getty@ttyS0.service \
            systemd-timesyncd.service e2scrub_reap.service apt-daily.timer \
            apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
            logrotate.timer systemd-tmpfiles-clean.timer
}

# pack_boot DIR: copies the kernel and its initrd
pack_boot()
{
    cp "$1"/tree/boot/vmlinuz-* "$1/vmlinuz" && cp "$1"/tree/boot/initrd.img-* "$1/initrd.img"
}
