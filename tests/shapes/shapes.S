/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shapes.S - stack frames and unwind tables of hand-written assembly
 */
#ifdef TABLES_IN_DEBUG_FRAME
    .cfi_sections .debug_frame
#endif
    .text

#define FUNCTION(name)                                                                             \
    .globl name;                                                                                   \
    .type name, @function;                                                                         \
    .p2align 4;                                                                                    \
name:                                                                                              \
    .cfi_startproc

#define END(name)                                                                                  \
    .cfi_endproc;                                                                                  \
    .size name, . - name

/* has no frame pointer, and pushes a register for a part of its code */
FUNCTION(shape_asm_leaf)
    lea 3(%rdi), %eax
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    mov %edi, %ebx
    imul %ebx, %eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    add $1, %eax
    ret
END(shape_asm_leaf)

FUNCTION(shape_asm_framed)
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %r12
    .cfi_offset %r12, -24
    push %rdi
    call shape_for_asm
    mov %eax, %r12d
    pop %rdi
    sub $24, %rsp
    push %rdi
    push %r12
    call shape_for_asm
    add %r12d, %eax
    lea -8(%rbp), %rsp
    pop %r12
    leave
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    .cfi_restore %r12
    ret
END(shape_asm_framed)

FUNCTION(asm_plain)
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call shape_for_asm
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp shape_for_asm
END(asm_plain)

FUNCTION(asm_pushes)
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    mov %edi, %ebx
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    mov %ebx, %ebp
    push %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
    xor %r15d, %r15d
1:  mov %ebp, %edi
    call shape_for_asm
    add %eax, %r15d
    sub $1, %ebp
    jns 1b
    mov %r15d, %eax
    pop %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
END(asm_pushes)

/* the CFA is relative to %rbx, a callee-saved register */
FUNCTION(asm_by_rbx)
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    mov %rsp, %rbx
    .cfi_def_cfa_register %rbx
    sub $100, %rsp
    and $-64, %rsp
    call shape_for_asm
    mov %eax, %edi
    call asm_pushes
    mov %rbx, %rsp
    .cfi_def_cfa_register %rsp
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
END(asm_by_rbx)

/* the CFA is computed from a value in the frame */
FUNCTION(asm_expression)
    mov %rsp, %rax
    .cfi_def_cfa %rax, 8
    sub $32, %rsp
    and $-32, %rsp
    mov %rax, 16(%rsp)
    /* DW_CFA_def_cfa_expression: DW_OP_breg7 16, DW_OP_deref, DW_OP_plus_uconst 8 */
    .cfi_escape 0x0f, 5, 0x77, 16, 0x06, 0x23, 8
    call shape_for_asm
    mov %eax, %edi
    call asm_by_rbx
    mov 16(%rsp), %rsp
    .cfi_def_cfa %rsp, 8
    ret
END(asm_expression)

    .section .note.GNU-stack, "", @progbits
