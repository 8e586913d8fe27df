/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arch.h - the table of architectures: word size, byte order, registers
 *
 * General registers have their DWARF numbers (System V psABI AMD64 supplement, figure 3.36), which
 * unwind tables use. A vCPU that runs 32-bit code keeps the numbers of its 64-bit architecture.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_REGS_MAX = 33, /* aarch64: x0 to x30, sp, pc */
    UPROF_SYS_MAX = 8,
};

/* DWARF numbers on x86_64 */
enum {
    UPROF_X86_RAX,
    UPROF_X86_RDX,
    UPROF_X86_RCX,
    UPROF_X86_RBX,
    UPROF_X86_RSI,
    UPROF_X86_RDI,
    UPROF_X86_RBP,
    UPROF_X86_RSP,
    UPROF_X86_R8,
    UPROF_X86_R15 = UPROF_X86_R8 + 7,
    UPROF_X86_RIP,
    UPROF_X86_N_REGS,
};

/* Indices of UprofRegs.sys on x86 */
enum {
    UPROF_X86_CR0,
    UPROF_X86_CR3,
    UPROF_X86_CR4,
    UPROF_X86_EFER,
    UPROF_X86_IDT, /* base of the table: a linear address, like the next two */
    UPROF_X86_GDT,
    UPROF_X86_TR,
    /* 32 or 64: the word size of a paravirtual guest of Xen, whose page tables hold machine
     * frame numbers; 0 for all other guests */
    UPROF_X86_XEN_PV,
    /* A paravirtual guest has no IDT and no TR. These indices have other values for it: */
    UPROF_X86_XEN_ENTRY = UPROF_X86_IDT, /* where Xen enters the guest's kernel for an event */
    UPROF_X86_XEN_ROOT = UPROF_X86_TR,   /* like CR3: tables that map the kernel even while
                                          * the vCPU is in user mode */
};

/* Bits of those registers (Intel SDM, volume 3, 2.5 and 2.2.1) */
#define UPROF_X86_CR0_PE UINT64_C(0x1)
#define UPROF_X86_CR0_TS UINT64_C(0x8)
#define UPROF_X86_CR0_PG UINT64_C(0x80000000)
#define UPROF_X86_CR4_PSE UINT64_C(0x10)
#define UPROF_X86_CR4_PAE UINT64_C(0x20)
#define UPROF_X86_CR4_LA57 UINT64_C(0x1000)
#define UPROF_X86_EFER_LMA UINT64_C(0x400)
#define UPROF_X86_EFER_NXE UINT64_C(0x800)

/* DWARF numbers on aarch64 (DWARF for the Arm 64-bit Architecture, 4.1) */
enum {
    UPROF_ARM_X0,
    UPROF_ARM_FP = UPROF_ARM_X0 + 29,
    UPROF_ARM_LR = UPROF_ARM_X0 + 30, /* the return address, until the function saves it */
    UPROF_ARM_SP,
    UPROF_ARM_PC,
    UPROF_ARM_N_REGS,
};

/* Indices of UprofRegs.sys on aarch64: registers of EL1 */
enum {
    UPROF_ARM_SCTLR,
    UPROF_ARM_TCR,
    UPROF_ARM_TTBR0, /* tables of the lower half of the addresses */
    UPROF_ARM_TTBR1, /* and of the upper half */
};

/* Bits of those registers, and of PSTATE (Arm ARM, D19.2 and C5.2) */
#define UPROF_ARM_SCTLR_M UINT64_C(0x1)
#define UPROF_ARM_PSTATE_AARCH32 UINT64_C(0x10)

/** UprofArchFamily: architectures with the same registers and the same kind of machine code */
typedef enum {
    UPROF_FAMILY_X86,
    UPROF_FAMILY_ARM,
    UPROF_N_FAMILIES,
} UprofArchFamily;

/** UprofArch: one row */
typedef struct {
    const char *name; /* as libvirt writes it in domain XML */
    UprofArchFamily family;
    uint8_t word_bytes; /* of an address */
    bool big_endian;
    uint16_t elf_machine; /* e_machine of ELF files */
    uint8_t n_regs;       /* general registers, including the program counter */
    uint8_t pc, sp, fp;   /* DWARF numbers of these registers */
    uint8_t lr;           /* of the register in which a call leaves the return address; 0: none */
    /* Indices of UprofRegs.sys: the roots of the page tables that map a kernel and a process. */
    uint8_t kernel_root, user_root;
    /* Bits of the word in which an exception saves the mode (CS, PSTATE), and their value for user
     * code. */
    uint8_t mode_mask, user_mode;
    /* (nullable): maps numbers of the architecture's own psABI, which its unwind tables use,
     * to the numbers here; %NULL if both are the same */
    const uint8_t *dwarf_regs;
    uint8_t n_dwarf_regs;
    /* By DWARF number: names that people and QEMU use; %NULL if no register has the number */
    const char *reg_names[UPROF_REGS_MAX];
} UprofArch;

/** uprof_arch_find: @name: as in domain XML. Returns: (nullable): its row */
const UprofArch *uprof_arch_find(const char *name);

/** uprof_arch_at: Returns: (nullable): row @i, from 0; %NULL after the last */
const UprofArch *uprof_arch_at(size_t i);

/** uprof_arch_of_elf: @machine: e_machine. Returns: (nullable): the row for such files */
const UprofArch *uprof_arch_of_elf(uint16_t machine);

/**
 * uprof_arch_dwarf_reg: translates a register number of unwind tables
 * @dwarf: a number in the tables of an image for @arch
 * @reg: (out): the number here
 *
 * Returns: false if @dwarf is not the number of a general register
 */
bool uprof_arch_dwarf_reg(const UprofArch *arch, uint64_t dwarf, unsigned *reg);
