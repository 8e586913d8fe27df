/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: entry of the paravirtual guest.
 *
 * Xen's domain builder starts the guest in 64-bit mode, in ring 3, with
 * %rsi = struct start_info.  Its page tables map the image, and the builder's
 * data after the image, to virtual addresses equal to their pseudo-physical ones.
 * (Xen, xen/include/public/elfnote.h and arch-x86/xen-x86_64.h)
 */
    .macro note number, text:vararg
    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 2f - 1f, \number
    .asciz "Xen"
1:  \text
2:  .balign 4
    .endm

    note 5, .asciz "xen-3.0"            /* XEN_ELFNOTE_XEN_VERSION */
    note 6, .asciz "virt-uprof"         /* XEN_ELFNOTE_GUEST_OS */
    note 8, .asciz "generic"            /* XEN_ELFNOTE_LOADER */
    note 3, .quad 0                     /* XEN_ELFNOTE_VIRT_BASE */
    note 4, .quad 0                     /* XEN_ELFNOTE_PADDR_OFFSET */
    note 1, .quad _start                /* XEN_ELFNOTE_ENTRY */
    note 2, .quad hypercall_page        /* XEN_ELFNOTE_HYPERCALL_PAGE */

    .text
    .globl _start
    .type _start, @function
_start:
    cld
#ifdef PLAIN_ENTRY
    /*
     * As entries of unikernels are: no unwind table, no cleared frame pointer, and the next function
     * right behind the last call.  The function has no size, and a label of its own.
     */
    mov first_stack(%rip), %rsp
    mov %rsi, %rdi
    call guest_setup
    mov %rax, %rsp
    test %rax, %rax
    js plain_entry
    mov $0x123450, %ebp
plain_entry:
    call guest_main
#else
    jmp guest_entry
    .size _start, . - _start

    /* The root of every stack */
    .globl guest_entry
    .type guest_entry, @function
guest_entry:
    mov $stack_region + 0x11000, %esp   /* hole_above */
    xor %ebp, %ebp
    mov %rsi, %rdi
    call guest_setup
    mov %rax, %rsp
    xor %ebp, %ebp
    call guest_main
1:
    pause
    jmp 1b
    .size guest_entry, . - guest_entry
#endif

    /* Xen has pushed %rcx and %r11 in front of the frame of the interrupt */
    .globl tick_interrupt
    .type tick_interrupt, @function
tick_interrupt:
    pop %rcx
    pop %r11
    cld
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    call handle_tick
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rax
    orb $3, 8(%rsp)                     /* Xen writes privilege 0 for the kernel */
    orb $3, 32(%rsp)
    iretq
    .size tick_interrupt, . - tick_interrupt

    /* hypercall(number, first, second, third): Xen fills the page with one stub of 32 bytes per number */
    .globl hypercall
    .type hypercall, @function
hypercall:
    push %rbp
    mov %rsp, %rbp
    mov %edi, %eax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    shl $5, %eax
    add $hypercall_page, %rax
    call *%rax
    pop %rbp
    ret
    .size hypercall, . - hypercall

#ifdef PLAIN_ENTRY
    .section .rodata
    .balign 8
first_stack:
    .quad stack_region + 0x11000        /* hole_above */
#endif

    /* Xen writes to this page. The segment of the code is small, so with this page in it
     * a large part of the segment would differ from the image. */
    .bss
    .balign 4096
    .globl hypercall_page
    .type hypercall_page, @function
hypercall_page:
    .zero 4096
    .size hypercall_page, . - hypercall_page

    .section .note.GNU-stack, "", @progbits
