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
    UPROF_LINKS_PART_BYTES_MAX = 512, /* of a structure that is copied in part */
    UPROF_LINKS_NODE_BYTES = 256,     /* of a maple tree; a node is aligned to its size */
    UPROF_LINKS_SLOTS_MAX = 16,       /* of such a node */
};

/**
 * UprofLinksAreas: how to find the areas of a process, and their files
 *
 * Offsets of members in the kernel's structures, in bytes; see UprofLinuxOffsets.
 */
typedef struct {
    uint16_t is_maple_tree; /* 0: a red-black tree */
    /* of struct mm_struct: the words that the analysis reads; the first one is the root of the
     * tree; 0: none */
    uint16_t mm_words[4];
    uint16_t range_pivots, range_slots, n_range_slots; /* maple tree */
    uint16_t gap_pivots, gap_slots, n_gap_slots;
    uint16_t area_node, node_left, node_right; /* red-black tree */
    uint16_t area_from, area_len;              /* the part of an area to copy; 0: unknown */
    uint16_t area_flags, area_file;
    uint16_t file_from, file_len; /* the part of a file to copy */
} UprofLinksAreas;

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
    uint32_t task_number; /* offset of the number of the process, 32 bits */
    uint32_t mm_tables;   /* where it points: offset of the pointer to the page tables */
    uint32_t task_stack;  /* offset of the pointer to the task's kernel stack; 0 if unknown */
    uint32_t task_thread; /* offset of the thread pointer; 0 if unknown */
    uint32_t task_from;   /* offset of the bytes to copy from the task */
    uint32_t task_len;    /* bytes to copy from the task */
    UprofLinksAreas areas;
    unsigned n_vcpus;
    UprofLinksVcpu vcpus[]; /* @n_vcpus of them */
} UprofLinks;
