/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: entry of the 64-bit guests.
 *
 * The Xen PVH ELF note starts the guest in 32-bit protected mode, with paging
 * off and %ebx = struct hvm_start_info.  _start enters long mode with boot page
 * tables that map the first GiB to itself; guest_setup() replaces these tables.
 */
#define TRAMPOLINE 0x8000

    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 8, 18                      /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .quad _start

    /* Jumps from protected mode without paging to @target in long mode, with the tables @root */
    .macro long_mode root, target
    mov \root, %eax
    mov %eax, %cr3
    mov %cr4, %eax
#if PAGING_LEVELS == 5
    or $0x1000, %eax                    /* LA57 */
#endif
    or $0x20, %eax                      /* PAE */
    mov %eax, %cr4
    mov $0xc0000080, %ecx               /* EFER.LME */
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    ljmp $0x18, $\target
    .endm

    .text
    .code32
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
    mov %eax, %ss
    mov %ebx, %edi
#if PAGING_LEVELS == 5
    xor %eax, %eax
    cpuid
    cmp $7, %eax
    jb no_la57
    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    test $0x10000, %ecx
    jz no_la57
#endif
    long_mode $boot_root, guest_entry
    .size _start, . - _start

#if PAGING_LEVELS == 5
    .type no_la57, @function
no_la57:
    mov $no_la57_text, %esi
1:
    mov $0x3fd, %edx                    /* COM1: is the transmitter empty? */
    inb %dx, %al
    test $0x20, %al
    jz 1b
    lodsb
    test %al, %al
    jz 2f
    mov $0x3f8, %edx
    outb %al, %dx
    jmp 1b
2:
    cli
    hlt
    jmp 2b
    .size no_la57, . - no_la57
#endif

    .code64
    /* The root of every stack of vCPU 0 */
    .globl guest_entry
    .type guest_entry, @function
guest_entry:
#ifdef PLAIN_ENTRY
    /*
     * As entries of unikernels are: no unwind table, no cleared frame pointer, and the next function
     * right behind the last call
     */
    mov first_stack(%rip), %rsp
    mov %edi, %edi
    call guest_setup
    mov %rax, %rsp
    test %rax, %rax
    js plain_entry
    mov $0x123450, %ebp
plain_entry:
    call guest_main
#else
    mov $stack_region + 0x11000, %esp   /* hole_above */
    xor %ebp, %ebp
    mov %edi, %edi
    call guest_setup
    mov %rax, %rsp
    xor %ebp, %ebp
    call guest_main
1:
    cli
    hlt
    jmp 1b
#endif
    .size guest_entry, . - guest_entry

    /*
     * The second vCPU starts in real mode in a copy of this code at TRAMPOLINE,
     * with %cs = TRAMPOLINE >> 4.
     */
    .code16
    .globl ap_trampoline
    .type ap_trampoline, @function
ap_trampoline:
    cli
    lgdtl %cs:.Lap_gdt_pointer - ap_trampoline
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $0x08, $ap_start
    .balign 4
.Lap_gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt
    .size ap_trampoline, . - ap_trampoline

    .code32
    .type ap_start, @function
ap_start:
    mov $0x10, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    long_mode ap_root, guest_entry_ap
    .size ap_start, . - ap_start

    .code64
    /* The root of every stack of vCPU 1 */
    .globl guest_entry_ap
    .type guest_entry_ap, @function
guest_entry_ap:
    mov $ap_stack + 16384, %esp
    xor %ebp, %ebp
    call ap_main
1:
    cli
    hlt
    jmp 1b
    .size guest_entry_ap, . - guest_entry_ap

    .globl timer_interrupt
    .type timer_interrupt, @function
timer_interrupt:
    push %rax
    incq timer_ticks
    mov $0xfee000b0, %eax               /* end of interrupt */
    movl $0, (%rax)
    pop %rax
    iretq
    .size timer_interrupt, . - timer_interrupt

    .globl tick_interrupt
    .type tick_interrupt, @function
tick_interrupt:
    push %rax
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    cld
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
    iretq
    .size tick_interrupt, . - tick_interrupt

    .globl spurious_interrupt
    .type spurious_interrupt, @function
spurious_interrupt:
    iretq
    .size spurious_interrupt, . - spurious_interrupt

    .section .rodata
    .balign 8
    .globl ap_trampoline_size
    .type ap_trampoline_size, @object
ap_trampoline_size:
    .quad ap_start - ap_trampoline
    .size ap_trampoline_size, 8
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff            /* 0x08: 32-bit code */
    .quad 0x00cf93000000ffff            /* 0x10: data */
    .quad 0x00af9b000000ffff            /* 0x18: 64-bit code */
gdt_pointer:
    .word gdt_pointer - gdt - 1
    .long gdt
#ifdef PLAIN_ENTRY
    .balign 8
first_stack:
    .quad stack_region + 0x11000        /* hole_above */
#endif
#if PAGING_LEVELS == 5
no_la57_text:
    .asciz "virt-uprof guest: no LA57\n"
#endif

    /* Page tables that map the first GiB to itself with 2 MiB pages */
    .data
    .balign 4096
boot_directory:
    .set .Laddress, 0
    .rept 512
    .quad .Laddress | 0x83
    .set .Laddress, .Laddress + 0x200000
    .endr
boot_level_3:
    .quad boot_directory + 3
    .zero 4088
boot_level_4:
    .quad boot_level_3 + 3
    .zero 4088
#if PAGING_LEVELS == 5
boot_root:
    .quad boot_level_4 + 3
    .zero 4088
#else
    .set boot_root, boot_level_4
#endif

    .bss
    .balign 16
    .type ap_stack, @object
ap_stack:
    .zero 16384
    .size ap_stack, . - ap_stack

    .section .note.GNU-stack, "", @progbits
