/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arch.h - the table of architectures: word size, byte order, registers
 *
 * General registers are kept by DWARF number (System V psABI AMD64 supplement,
 * figure 3.36), so that unwind tables find them without another table. A vCPU
 * that runs 32-bit code keeps the numbers of its 64-bit architecture.
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

/* Places in UprofRegs.sys on x86 */
enum {
    UPROF_X86_CR0,
    UPROF_X86_CR3,
    UPROF_X86_CR4,
    UPROF_X86_EFER,
    UPROF_X86_IDT, /* base; a linear address; those below too */
    UPROF_X86_GDT,
    UPROF_X86_TR,
    /* 32 or 64: a paravirtual guest of Xen, and its width: its tables hold machine frames */
    UPROF_X86_XEN_PV,
    /* Of such a guest, which has no tables of its own for the processor, in their place: */
    UPROF_X86_XEN_ENTRY = UPROF_X86_IDT, /* where Xen enters its kernel for an event */
    UPROF_X86_XEN_ROOT = UPROF_X86_TR,   /* as CR3: tables that map its kernel, in user mode, too */
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

/**
 * UprofArch:
 * @name: as libvirt writes it in domain XML
 * @word_bytes: size of an address
 * @big_endian: byte order
 * @elf_machine: e_machine of its images
 * @n_regs: general registers, the program counter included
 * @pc, @sp, @fp: their DWARF numbers
 * @dwarf_regs: our numbers by those of the architecture's own psABI, which its
 *   unwind tables use; %NULL: they are the same
 * @n_dwarf_regs: how many
 * @reg_names: by DWARF number, as people and QEMU call them; %NULL: has none
 *   of that number
 */
typedef struct {
    const char *name;
    uint8_t word_bytes;
    bool big_endian;
    uint16_t elf_machine;
    uint8_t n_regs;
    uint8_t pc, sp, fp;
    const uint8_t *dwarf_regs;
    uint8_t n_dwarf_regs;
    const char *reg_names[UPROF_REGS_MAX];
} UprofArch;

/** uprof_arch_find: @name: as in domain XML. Returns: (nullable): its row */
const UprofArch *uprof_arch_find(const char *name);

/** uprof_arch_at: @i: from 0. Returns: (nullable): that row; %NULL behind the last */
const UprofArch *uprof_arch_at(size_t i);

/** uprof_arch_of_elf: @machine: e_machine. Returns: (nullable): the row of such images */
const UprofArch *uprof_arch_of_elf(uint16_t machine);

/**
 * uprof_arch_dwarf_reg:
 * @dwarf: number of a register in the images' unwind tables
 * @reg: (out): our number of it
 *
 * Returns: false if no general register has that number
 */
bool uprof_arch_dwarf_reg(const UprofArch *arch, uint64_t dwarf, unsigned *reg);
