/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux-arch.h - how Linux uses an architecture: one row of a table for each
 *
 * These rows have all facts about a processor that src/linux and the ORC unwinder use. A second
 * architecture adds a file beside linux/arch-x86_64.c and a row in linux/arch-table.c. Pages of
 * %UPROF_PAGE_BYTES and page-table walks belong to mem.
 */
#pragma once

#include "uprof/mem.h"
#include "uprof/sym-types.h"

/** UprofLinuxSegment: a value of the code segment register */
typedef struct {
    uint16_t selector;
    uint8_t word_bytes; /* of the code that runs in the segment: 4 or 8 */
} UprofLinuxSegment;

/** UprofLinuxEntryFrame: the frame that an entry to the kernel leaves on the kernel's stack */
typedef struct {
    /* DWARF numbers of the registers that the kernel saves, from the lowest address on */
    const uint8_t *saved_regs;
    uint8_t n_saved_regs;
    /* struct pt_regs in words: its length, and where the processor's own frame begins in it */
    uint8_t regs_words;
    uint8_t frame_word;
    /* the processor's own frame: word numbers from its lowest address on; @mode_word: CS, PSTATE */
    uint8_t pc_word, mode_word, flags_word, sp_word;
    /* segments of kernel and user code */
    const UprofLinuxSegment *segments;
    uint8_t n_segments;
    /* privilege of user code, as in UprofRegs.privilege; on x86 also in the low bits of CS */
    uint8_t user_privilege;
    /* the register in which the processor keeps the return address of a system call */
    uint8_t syscall_pc_reg;
    /* bits by DWARF number: registers that a system call overwrites */
    uint64_t syscall_lost_regs;
    /* the register that the kernel restores last, because it holds an address until then */
    uint8_t return_reg;
} UprofLinuxEntryFrame;

/** UprofLinuxSwitchFrame: the registers of a task that does not run; names in BTF */
typedef struct {
    const char *sp_member; /* of struct task_struct: the stack pointer */
    /* (nullable): type of the frame at the stack pointer, which has the other two members; %NULL:
     * struct task_struct has them */
    const char *type;
    const char *pc_member, *fp_member; /* where the task returns, and the frame pointer */
} UprofLinuxSwitchFrame;

/** UprofLinuxSymbolName: a kernel symbol and the member of UprofLinuxSymbols for its address */
typedef struct {
    const char *name;
    size_t member; /* offset in UprofLinuxSymbols, in bytes */
} UprofLinuxSymbolName;

/** UprofLinuxSymbols: addresses of the kernel's symbols (linux/kernel-symbols-priv.h) */
typedef struct UprofLinuxSymbols UprofLinuxSymbols;

/** UprofLinuxMaps: guest-virtual addresses; 0 if unknown */
typedef struct {
    uint64_t all_memory; /* of the direct map of all memory: of the first byte of physical memory */
    uint64_t all_pages;  /* of the array of struct page: of the first page of physical memory */
} UprofLinuxMaps;

/** UprofLinuxArch: one row */
typedef struct {
    /* Addresses where the kernel's image and its modules may lie; @..._end is the first address
     * behind them. */
    uint64_t image_start, image_end;
    uint64_t modules_start, modules_end;
    /* KASLR moves the image by multiples of this many bytes. */
    uint64_t image_step_bytes;
    /* Bytes at the start of the image that may not be mapped. */
    uint64_t image_head_bytes;
    /* The longest unmapped piece inside an image, in bytes. */
    uint64_t image_hole_bytes_max;

    /* The code that enters and leaves the kernel may be mapped a second time from here on, for
     * kernels that hide themselves from processes; 0: never. */
    uint64_t alias_start;

    /* Bytes of a task's kernel stack and of an interrupt stack. */
    uint32_t stack_bytes, irq_stack_bytes;
    /* Bytes that a kernel with FRED keeps above a task's saved registers. */
    uint32_t fred_bytes;
    const UprofLinuxEntryFrame *entry;
    const UprofLinuxSwitchFrame *switch_frame;
    /* The word of struct pt_regs whose first bytes have the number of the system call, or -1. */
    uint8_t syscall_word;
    uint8_t syscall_bytes; /* of this number: 4 or 8 */
    /* (nullable): names of system calls by number, of programs with the kernel's word size */
    const char *const *syscall_names;
    uint16_t n_syscall_names;
    /* The member of struct task_struct in which the kernel keeps the thread pointer of a thread. */
    const char *thread_member;

    /* Kernel symbols that only this architecture has. */
    const UprofLinuxSymbolName *symbols;
    uint8_t n_symbols;

    /* Is the vCPU in the mode that a 64-bit Linux kernel runs in? */
    bool (*is_kernel_mode)(const UprofRegs *regs);
    /* Finds an address inside the kernel's image: @anchor is (out). False if there is none. */
    bool (*find_anchor)(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t *anchor);
    /* Changes the page-table root in @regs to one that maps the whole kernel. */
    void (*use_kernel_root)(UprofMem *mem, unsigned vcpu, UprofRegs *regs, uint64_t anchor);
    /* bits of the root in which two processes differ */
    uint64_t root_mask;
    /* Only the task of a process tells its page tables, and only the direct map leads to them. */
    bool has_roots_in_tasks;
    /* Has the direct map of all memory the page tables at the addresses that the processor uses? */
    bool (*has_direct_roots)(const UprofRegs *regs);
    /*
     * Finds where the kernel maps all memory. @regs: that map the kernel. @maps: (out): 0 where
     * unknown. Translations count towards the pages of one sample, so that maps may stay unknown.
     */
    void (*find_maps)(UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                      const UprofLinuxSymbols *symbols, UprofLinuxMaps *maps);
    /*
     * (nullable): reads the code of idle_task() (Linux, kernel/sched/syscalls.c and before 6.11
     * core.c), which is a function without branches. @areas: (inout): address of the array
     * __per_cpu_offset; @run_queues: (inout): of the per-CPU variable runqueues. Both stay as they
     * are if the code is not understood.
     */
    void (*read_cpu_areas)(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t code,
                           uint64_t *areas, uint64_t *run_queues);
    /* Can user code run on page tables that the kernel does not list for its process? */
    bool (*has_hidden_user_root)(const UprofRegs *regs);
    /*
     * Are the vCPU's page tables those at @tables (guest-physical)? With @may_be_user the
     * process's second set of tables, for user mode, counts as the same.
     */
    bool (*is_same_root)(const UprofRegs *regs, uint64_t tables, bool may_be_user);
} UprofLinuxArch;

/* The rows. ORC unwind tables exist on x86_64 only, so the ORC unwinder uses this row directly. */
extern const UprofLinuxArch uprof_linux_arch_x86_64;
extern const UprofLinuxArch uprof_linux_arch_aarch64;
