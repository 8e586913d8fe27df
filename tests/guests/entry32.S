/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: entry of the 32-bit guests.
 *
 * The Xen PVH ELF note starts the guest in 32-bit protected mode, with paging
 * off and %ebx = struct hvm_start_info.
 */
    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 4, 18                      /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .long _start

    .text
    .globl _start
    .type _start, @function
_start:
    cld
    cli
    lgdt gdt_pointer
    ljmp $0x08, $1f
1:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %fs
    mov %eax, %gs
    mov %eax, %ss
    jmp guest_entry
    .size _start, . - _start

    /* The root of every stack */
    .globl guest_entry
    .type guest_entry, @function
guest_entry:
    mov $stack_region + 0x11000, %esp   /* hole_above */
    xor %ebp, %ebp
    sub $12, %esp
    push %ebx
    call guest_setup
    mov %eax, %esp
    xor %ebp, %ebp
    call guest_main
1:
    cli
    hlt
    jmp 1b
    .size guest_entry, . - guest_entry

    .section .rodata
    .balign 8
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff            /* 0x08: 32-bit code */
    .quad 0x00cf93000000ffff            /* 0x10: data */
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt

    .section .note.GNU-stack, "", @progbits
