/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-stack.h - the kernel stack of a task that does not run
 *
 * Such a task has saved its registers on its kernel stack. The stack is copied while the guest
 * runs. The task's count of switches shows afterwards whether the copy is of one wait.
 */
#pragma once

#include "uprof/task-list.h"

enum {
    UPROF_TASK_STACK_BYTES_MAX = 16 * 1024,
    UPROF_TASK_STACKS_MAX = 64, /* that are copied together */
};

/** UprofTaskStackState: what is known of a stack */
typedef enum {
    UPROF_TASK_STACK_COPIED,
    UPROF_TASK_STACK_NEW,     /* the task has never run, so it has called nothing */
    UPROF_TASK_STACK_RUNS,    /* the task runs: its vCPU has its registers */
    UPROF_TASK_STACK_NONE,    /* the task has ended and has no stack any more */
    UPROF_TASK_STACK_CHANGED, /* the task runs now and then, or has just ended */
    UPROF_TASK_STACK_UNKNOWN, /* the kernel's types lack the place of the stack, or it is malformed
                               */
    UPROF_TASK_STACK_SKIPPED, /* for users: there was no time for it */
} UprofTaskStackState;

/** UprofTaskStack: a copy, from the saved stack pointer to the end of the stack */
typedef struct {
    UprofTaskStackState state;
    /* if COPIED: as in a snapshot of the task: where it waits, with page tables of the kernel */
    UprofRegs regs;
    unsigned vcpu;    /* for @regs */
    uint64_t gva;     /* guest-virtual address of the first byte */
    uint32_t len;     /* bytes */
    bool has_user;    /* of a process: COPIED or NEW, and the registers of user space are in it */
    uint64_t user_sp; /* if @has_user: its stack pointer in user space */
    int64_t syscall;  /* if @has_user: the number of its system call; -1: it is in none */
    bool is_narrow;   /* if @has_user: 32-bit code, whose system calls have other numbers */
    uint8_t bytes[UPROF_TASK_STACK_BYTES_MAX];
} UprofTaskStack;

/** UprofTaskCopying: a read of stacks that has begun */
typedef struct _UprofTaskCopying UprofTaskCopying;

/**
 * uprof_task_stacks_begin: begins to copy the stacks of some tasks, together if that is possible
 * @mem: the worker's; the page tables that it remembers must be newer than @tasks. See
 *   uprof_mem_forget().
 * @tasks: (inout): brought up to date if they have run since the list was read
 * @stacks: (out): @n of them; @bytes beyond @len are undefined
 * @n: up to %UPROF_TASK_STACKS_MAX
 *
 * @tasks and @stacks are borrowed until uprof_task_stacks_end(), and undefined until then. One such
 * read of @mem may be on its way: see uprof_mem_begin_pieces().
 *
 * Returns: (transfer full): for uprof_task_stacks_end()
 */
UprofTaskCopying *uprof_task_stacks_begin(const UprofLinux *kernel, UprofMem *mem, UprofTask *tasks,
                                          UprofTaskStack *stacks, unsigned n);

/** uprof_task_stacks_end: waits for the copies. @copying: (transfer full) (nullable) */
void uprof_task_stacks_end(UprofTaskCopying *copying);

/** uprof_task_stacks_drop: the same, but the copies are not used: the stacks are undefined */
void uprof_task_stacks_drop(UprofTaskCopying *copying);

/**
 * uprof_task_stack_is_same: does the task still wait as it did when its stack was copied?
 *
 * If so, all that was read of its process meanwhile is of the same wait.
 */
bool uprof_task_stack_is_same(const UprofLinux *kernel, UprofMem *mem, const UprofTask *task);

/** uprof_task_stack_state_name: Returns: the reason why a stack has no frames; a literal */
const char *uprof_task_stack_state_name(UprofTaskStackState state);

/** uprof_task_stack_is_waiting: is @pc in the code of the kernel's scheduler, or of its locks? */
bool uprof_task_stack_is_waiting(const UprofLinux *kernel, uint64_t pc);

/** uprof_task_stack_syscall_name: Returns: (nullable): literal */
const char *uprof_task_stack_syscall_name(const UprofLinux *kernel, const UprofTaskStack *stack);

/**
 * uprof_task_stack_make_snapshot: makes a snapshot of the task, as if it ran on a vCPU
 * @stack: COPIED
 * @snapshot: (inout): its time and resets stay
 *
 * The snapshot has the kernel stack, and what uprof_linux_task() reads of the task.
 */
void uprof_task_stack_make_snapshot(const UprofLinux *kernel, const UprofTask *task,
                                    const UprofTaskStack *stack, UprofSnapshot *snapshot);
