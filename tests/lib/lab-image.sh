# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # a lab's own image.sh sets the names below
#
# lab-image.sh - makes the disk that a lab boots from, from Debian packages
#
# Scripts source this file after setup.sh, cache.sh and debian-root.sh, and then the image.sh of one lab,
# which sets:
#     lab_cache           the folder in which images are kept
#     lab_image_name      the image in messages, such as "the image of dom0"
#     lab_image_size      the size of the disk, for mke2fs
#     lab_image_files     the files on which the content of the image depends
#     lab_packages        the packages
#     lab_initrd_modules  the kernel modules that the machine needs to mount its disk
# and defines:
#     adapt_root DIR      changes the Debian system in DIR
#     pack_boot DIR       copies files that the machine loads before its disk from DIR/tree to DIR
#
# An image is made once and kept in ${XDG_CACHE_HOME:-~/.cache}/virt-uprof, in a folder that is
# named by a hash of the packages and files. Nothing writes to the image afterwards. It may be
# deleted at any time.

lab_seconds_to_build=1800

# Nothing in a lab reads these files. Most of a kernel's modules are for devices that an emulated machine
# does not have.
lab_left_out=(
    '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/locale/*' '/usr/share/info/*'
    '/lib/modules/*/kernel/sound/*'
    '/lib/modules/*/kernel/drivers/'{gpu,hid,hwmon,iio,infiniband,isdn,media,mtd,staging,usb}'/*'
    '/lib/modules/*/kernel/drivers/net/'{ethernet,wireless,can,usb}'/*'
)

# image_folder: prints the path of the image's folder, which may not exist yet
image_folder()
{
    local key
    key=$({
        printf '%s\n' "$debian_suite" "${lab_packages[@]}" "${lab_initrd_modules[@]}"
        cat "${lab_image_files[@]}" "${BASH_SOURCE[0]}" "$(dirname "${BASH_SOURCE[0]}")/debian-root.sh"
    } | sha256sum)
    printf '%s/%s\n' "$lab_cache" "${key:0:16}"
}

# build_root DIR: installs the lab's Debian in DIR
build_root()
{
    local options=() path
    for path in "${lab_left_out[@]}"; do
        options+=(-o "Dpkg::Options::=--path-exclude=$path")
    done
    copy_base "$1" || return 1
    # MODULES=list makes an initrd of only the listed modules. Debian's usual initrd is a hundred
    # times as large, and an emulated processor has to unpack it.
    mkdir -p "$1"/etc/initramfs-tools/conf.d "$1/usr/share/initramfs-tools/modules.d"
    echo MODULES=list >"$1/etc/initramfs-tools/conf.d/lab"
    printf '%s\n' "${lab_initrd_modules[@]}" >"$1/usr/share/initramfs-tools/modules.d/lab"
    install_in "$1" "${options[@]}" "${lab_packages[@]}"
}

# pack_root DIR: makes the disk DIR/lab.img of DIR/tree
pack_root()
{
    mke2fs -q -t ext4 -O ^has_journal -d "$1/tree" "$1/lab.img" "$lab_image_size"
}

# make_image DIR: makes the image in DIR
make_image()
{
    build_root "$1/tree" && adapt_root "$1/tree" && pack_boot "$1" && pack_root "$1" &&
        rm -rf "$1/tree"
}

# build_image: makes the image unless it exists
build_image()
{
    make_once "$(image_folder)" "$lab_image_name" "$lab_seconds_to_build" make_image
}
