/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * links.h - what belongs to a sample besides the stack under its stack pointer
 *
 * In a kernel that runs processes a stack goes on elsewhere: an interrupt's on the
 * stack of what it interrupted, that of a system call on the process's own. And which
 * process runs is known only as long as it is held. Whoever knows the kernel says
 * beforehand where all that is found; in a hold these are a few reads.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_LINKS_TASK_BYTES_MAX = 4096,
    UPROF_LINKS_REGS_BYTES_MAX = 512,
    UPROF_LINKS_STACK_BYTES_MAX = 64 * 1024,
};

/**
 * UprofLinksVcpu: guest-virtual addresses; 0: not known
 * @task_at: of the pointer to the task that runs
 * @irq_at: of the last word of the interrupt stack: the stack pointer of what was interrupted
 */
typedef struct {
    uint64_t task_at;
    uint64_t irq_at;
} UprofLinksVcpu;

/**
 * UprofLinks: never changed once it is published
 * @root: of page tables that map the kernel (CR3); 0: those of the sample do
 * @kernel_from: addresses from here on are the kernel's
 * @stack_bytes: of a task's kernel stack, which begins at a multiple of it
 * @irq_bytes: of an interrupt stack
 * @regs_bytes: at the top of a task's kernel stack: the registers it had in user mode;
 *   0: not known
 * @regs_len: how many bytes from there on are registers
 * @regs_cs, @regs_sp: places in these
 * @task_from, @task_len: part of a task that is wanted
 * @n_vcpus: of @vcpus
 */
typedef struct {
    uint64_t root;
    uint64_t kernel_from;
    uint32_t stack_bytes;
    uint32_t irq_bytes;
    uint32_t regs_bytes;
    uint32_t regs_len;
    uint32_t regs_cs, regs_sp;
    uint32_t task_from, task_len;
    unsigned n_vcpus;
    UprofLinksVcpu vcpus[];
} UprofLinks;
