/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-symbols-priv.h - addresses of the kernel symbols that virt-uprof reads
 */
#pragma once

#include "uprof/kallsyms.h"
#include "uprof/linux-arch.h"

/**
 * UprofLinuxSymbols: guest-virtual addresses; 0 if the kernel has no such symbol
 *
 * kernel-symbols.c and the rows of linux-arch.h have the kernel's names of these symbols.
 */
struct UprofLinuxSymbols {
    uint64_t text;       /* _text: first byte of the image */
    uint64_t first_code; /* _stext: first code that stays */
    uint64_t banner;     /* linux_banner: "Linux version ..." */
    uint64_t root;       /* top page table that maps the kernel and no process */

    /* sections: first byte, and first byte behind */
    uint64_t btf_start, btf_end;               /* types */
    uint64_t orc_ips_start, orc_ips_end;       /* unwind table: addresses */
    uint64_t orc_start, orc_end;               /* unwind table: entries */
    uint64_t orc_header_start, orc_header_end; /* unwind table: version, from 6.3.10 */
    uint64_t entry_start, entry_end;           /* code that enters and leaves the kernel */

    uint64_t hidden_start, hidden_end; /* of this code, what is mapped a second time */

    uint64_t cpu_areas; /* array: address of each CPU's own variables */
    uint64_t hot;       /* offset in a CPU's area: struct pcpu_hot, from 6.2 to 6.14 */
    uint64_t current;   /* offset in a CPU's area: pointer to the running task */
    /* offset in a CPU's area: pointer to the last word of the interrupt stack, or to its end */
    uint64_t irq_stack;

    uint64_t all_memory; /* pointer to the direct map of all memory */
    uint64_t all_pages;  /* pointer to the array of struct page */
    uint64_t log;        /* pointer to the struct printk_ringbuffer, from 5.10 */
    uint64_t modules;    /* head of the list of modules */
    /* generated code: heads of lists, and structures that have a list */
    uint64_t bpf_list, ftrace_list, kprobes, optimized_kprobes;
    uint64_t fred_entry;                   /* only in kernels that are built with FRED */
    uint64_t first_ids;                    /* the outermost struct pid_namespace */
    uint64_t init_task;                    /* the first task; head of the ring of processes */
    uint64_t run_queues;                   /* offset in a CPU's area: struct rq */
    uint64_t idle_task_code;               /* a function that reads struct rq */
    uint64_t fork_return, old_fork_return; /* code to which a task that has never run returns */
    /* code that waits: the scheduler, and locks */
    uint64_t wait_start, wait_end, lock_start, lock_end;
    uint64_t info;       /* vmcoreinfo: pointer to its text */
    uint64_t info_bytes; /* vmcoreinfo: length of its text */
};

/** uprof_linux_symbols_find: @symbols: (out) */
void uprof_linux_symbols_find(const UprofKallsyms *kallsyms, const UprofLinuxArch *arch,
                              UprofLinuxSymbols *symbols);
