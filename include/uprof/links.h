/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * links.h - addresses by which a hold finds further stacks of a sample, and its task
 *
 * In a kernel that runs processes, the frames of a sample can be on several stacks: an interrupt
 * continues on the stack of the code that it interrupted, and a system call on the process's own
 * stack. The running process is known only during the hold. The analysis of the kernel publishes
 * these addresses beforehand, so that a hold needs only a few reads.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_LINKS_TASK_BYTES_MAX = 4096,
    UPROF_LINKS_REGS_BYTES_MAX = 512,
};

/** UprofLinksVcpu: guest-virtual addresses; 0 if unknown */
typedef struct {
    uint64_t task_at; /* of the pointer to the running task */
    uint64_t irq_at;  /* of the last word of the interrupt stack; this word has the stack pointer
                       * of the interrupted code */
} UprofLinksVcpu;

/** UprofLinks: constant once published */
typedef struct {
    uint64_t root;        /* of page tables that map the kernel; 0: the page tables of the sample */
    uint64_t root_mask;   /* bits in which the page-table roots of processes differ */
    uint64_t all_memory;  /* address of the direct map of all memory; 0 if unknown */
    uint64_t kernel_from; /* the kernel's addresses begin here */
    uint32_t stack_bytes; /* of a task's kernel stack, which is aligned to its size */
    uint32_t irq_bytes;   /* of an interrupt stack */
    uint32_t regs_bytes;  /* from the saved user registers to the top of a task's kernel stack;
                           * 0 if unknown */
    uint32_t regs_len;    /* bytes of saved registers */
    uint32_t regs_mode;   /* offset of the word with the mode (CS, PSTATE) in the saved registers */
    uint32_t regs_sp;     /* offset of the stack pointer in the saved registers */
    uint32_t task_mm;     /* offset of a pointer that only the tasks of processes have */
    uint32_t
        task_number; /* offset of the number of the process, 32 bits; it is in the copied bytes */
    uint32_t mm_tables;   /* where it points: offset of the pointer to the page tables */
    uint32_t task_stack;  /* offset of the pointer to the task's kernel stack; 0 if unknown */
    uint32_t task_thread; /* offset of the thread pointer; 0 if unknown */
    uint32_t task_from;   /* offset of the bytes to copy from the task */
    uint32_t task_len;    /* bytes to copy from the task */
    unsigned n_vcpus;
    UprofLinksVcpu vcpus[]; /* @n_vcpus of them */
} UprofLinks;
