/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: entry of the aarch64 guests, in EL1 with the MMU off.
 *
 * The first 64 bytes are the header of Linux's images (Linux, Documentation/arm64/booting.rst), so
 * that the flat image boots as well as the ELF file. x0 is the device tree then. For an ELF file
 * QEMU puts the tree at the start of RAM, and x0 is 0.
 */
    /* Functions sign their return addresses from now on. The size of a signature depends on TCR_EL1,
     * so no function may be running when TCR_EL1 changes. */
    .macro enable_signing
#ifdef __ARM_FEATURE_PAC_DEFAULT
    mov x0, #0x1234
    msr S3_0_C2_C1_0, x0                /* APIAKeyLo_EL1 */
    msr S3_0_C2_C1_1, x0                /* APIAKeyHi_EL1 */
    mrs x0, sctlr_el1
    orr x0, x0, #1 << 31                /* EnIA */
    msr sctlr_el1, x0
    isb
#endif
    .endm

    .section .head, "ax"
    .globl _start
    .type _start, %function
_start:
    b start
    .long 0
    .quad 0x200000                      /* offset of the image from the start of RAM */
    .quad image_size
    .quad 0xa                           /* little-endian, 4 KiB pages, anywhere in memory */
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0
    .size _start, . - _start

    .text
    .type start, %function
start:
    msr daifset, #0xf
    mov x20, x0
    adrp x0, bss_start
    adrp x1, bss_end
1:
    stp xzr, xzr, [x0], #16
    cmp x0, x1
    b.lo 1b
    bl guest_entry
    .size start, . - start

    /* The root of every stack of vCPU 0 */
    .globl guest_entry
    .type guest_entry, %function
guest_entry:
    adrp x1, stack_region + (1 << PAGE_SHIFT) + 0x10000     /* hole_above */
    mov sp, x1
    mov x29, xzr
    adr x1, vectors
    msr vbar_el1, x1
    mov x0, x20
    bl guest_setup
    mov sp, x0
    mov x29, xzr
    enable_signing
    bl guest_main
1:
    wfi
    b 1b
    .size guest_entry, . - guest_entry

    /* The root of every stack of vCPU 1. It starts with the MMU off. */
    .globl guest_entry_ap
    .type guest_entry_ap, %function
guest_entry_ap:
    msr daifset, #0xf
    adrp x1, ap_stack + 16384
    add x1, x1, :lo12:ap_stack + 16384
    mov sp, x1
    mov x29, xzr
    adr x1, vectors
    msr vbar_el1, x1
    bl paging_load
    enable_signing
    bl ap_main
1:
    wfi
    b 1b
    .size guest_entry_ap, . - guest_entry_ap

    .type fault, %function
fault:
    mrs x0, esr_el1
    mrs x1, elr_el1
    mrs x2, far_el1
    bl guest_fault
    .size fault, . - fault

    .balign 2048
    .type vectors, %function
vectors:
    .rept 16
    b fault
    .balign 128
    .endr
    .size vectors, . - vectors

    .bss
    .balign 4096
    .type ap_stack, %object
ap_stack:
    .zero 16384
    .size ap_stack, . - ap_stack

    .section .note.GNU-stack, "", %progbits
