# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# image.sh - the disk that the lab's dom0 boots from, made of Debian packages
#
# To be sourced by tests/xen-lab, behind setup.sh and cache.sh. The image is made once and
# kept in ${XDG_CACHE_HOME:-~/.cache}/virt-uprof/xen-lab, in a folder named by
# what went into it: the list of packages, this script and lab-init. It is never
# written to afterwards, and may be deleted at any time.

lab_suite=bookworm
lab_seconds_to_build=1800

# What dom0 is made of: Xen with its tools, libvirt's driver for it, a kernel, foreign
# guests (grub), and the libraries of the program.
lab_packages=(
    systemd-sysv udev kmod iproute2 procps
    xen-utils-4.17 xen-hypervisor-4.17-amd64 xenstore-utils linux-image-amd64
    libvirt-daemon libvirt-daemon-driver-xen libvirt-clients qemu-system-xen grub-xen-host
    libglib2.0-0 libjson-glib-1.0-0 libxml2 libelf1 libpopt0
)

# All that dom0 needs before its root is mounted; Debian's usual initrd is a
# hundred times as large, and an emulated CPU has to unpack it.
lab_initrd_modules=(virtio_pci virtio_blk ext4)

# Not read by anybody inside.
lab_left_out=('/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*')

lab_cache=$cache_folder/xen-lab

# image_folder: prints where the image is, or would be
image_folder()
{
    local key
    key=$({
        printf '%s\n' "$lab_suite" "${lab_packages[@]}"
        cat "$lab_folder/image.sh" "$lab_folder/lab-init"
    } | sha256sum)
    printf '%s/%s\n' "$lab_cache" "${key:0:16}"
}

# debian_sources: prints the files in which this machine says where Debian's packages
# come from; the image uses the same, and nothing else
debian_sources()
{
    debian_indexes "$lab_suite" '$(SOURCESENTRY)' | sed 's/:[0-9]*$//' | sort -u
}

# build_root DIR: a Debian system in DIR
build_root()
{
    local sources=() options=() path
    need_indexes "$lab_suite" || return 1
    mapfile -t sources < <(debian_sources)
    for path in "${lab_left_out[@]}"; do
        options+=("--dpkgopt=path-exclude=$path")
    done
    # Where the machine needs a proxy, so does this.
    apt-config dump | grep -E '^Acquire::https?::Proxy' >"$1.apt" || true
    [ ! -s "$1.apt" ] || options+=("--aptopt=$1.apt")
    # shellcheck disable=SC2016 # $1 is the inner shell's
    try_often bootstrap "$1" --quiet --variant=minbase --aptopt='Apt::Install-Recommends "false"' \
        --include="$(IFS=,; echo "${lab_packages[*]}")" "${options[@]}" \
        --setup-hook='mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"' \
        --setup-hook='echo MODULES=list >"$1/etc/initramfs-tools/conf.d/lab"' \
        --setup-hook="printf '%s\n' ${lab_initrd_modules[*]} >\"\$1/usr/share/initramfs-tools/modules.d/lab\"" \
        "$lab_suite" "$1" "${sources[@]}"
}

# adapt_root DIR: what libvirt 9.0 trips over in such a dom0
adapt_root()
{
    # QEMU's emulation has no VME and Xen hides SEP, so that libvirt finds no CPU
    # model that fits, and its Xen driver does not start.
    sed -i "/feature name='vme'/d" "$1/usr/share/libvirt/cpu_map/x86_486.xml" || return 1
    # libvirtd ends if there is no user for the driver that nobody wants here.
    rm -f "$1/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so"
    install -m 755 "$lab_folder/lab-init" "$1/lab-init"
}

# make_image DIR: the image, in DIR
make_image()
{
    build_root "$1/tree" && adapt_root "$1/tree" && pack_root "$1" && rm -rf "$1/tree"
}

# build_image: makes the image unless it is there
build_image()
{
    make_once "$(image_folder)" "the image of dom0" "$lab_seconds_to_build" make_image
}

# pack_root DIR: DIR/tree as a disk; beside it what is loaded before the disk is read
pack_root()
{
    cp "$1"/tree/boot/vmlinuz-* "$1/vmlinuz" && cp "$1"/tree/boot/initrd.img-* "$1/initrd.img" &&
        gzip -dc "$1/tree/boot/xen-4.17-amd64.gz" >"$1/xen.elf" &&
        mke2fs -q -t ext4 -O ^has_journal -d "$1/tree" "$1/lab.img" 3G
}
