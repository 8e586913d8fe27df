# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # tests/lib/lab-image.sh uses these names
#
# image.sh - the content of the disk of the Xen lab's dom0
#
# tests/xen-lab sources this file after tests/lib/lab-image.sh.

lab_cache=$cache_folder/xen-lab
lab_image_name='the image of dom0'
lab_image_size=3G
lab_image_files=("$lab_folder/image.sh" "$lab_folder/lab-init" "$lab_folder/../lib/lab-init.sh")

# Xen with its tools, libvirt's Xen driver, a kernel, a foreign guest (grub), and the libraries
# of virt-uprof.
lab_packages=(
    systemd-sysv udev kmod iproute2 procps
    xen-utils-4.17 xen-hypervisor-4.17-amd64 xenstore-utils linux-image-amd64
    libvirt-daemon libvirt-daemon-driver-xen libvirt-clients qemu-system-xen grub-xen-host
    libglib2.0-0 libjson-glib-1.0-0 libxml2 libelf1 libpopt0 libseccomp2 libzydis4.0
)

lab_initrd_modules=(virtio_pci virtio_blk ext4)

# adapt_root DIR: removes files with which libvirt 9.0 does not start in such a dom0
adapt_root()
{
    # QEMU's emulation has no VME and Xen hides SEP. libvirt then finds no CPU model that fits,
    # and its Xen driver does not start.
    sed -i "/feature name='vme'/d" "$1/usr/share/libvirt/cpu_map/x86_486.xml" || return 1
    # libvirtd exits if the QEMU driver's user is missing. The lab does not use that driver.
    rm -f "$1/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so"
    install -m 755 "$lab_folder/lab-init" "$lab_folder/../lib/lab-init.sh" "$1/"
}

# pack_boot DIR: copies the hypervisor, dom0's kernel and its initrd
pack_boot()
{
    cp "$1"/tree/boot/vmlinuz-* "$1/vmlinuz" && cp "$1"/tree/boot/initrd.img-* "$1/initrd.img" &&
        gzip -dc "$1/tree/boot/xen-4.17-amd64.gz" >"$1/xen.elf"
}
