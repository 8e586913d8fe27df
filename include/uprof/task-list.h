/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-list.h - every task of a Linux guest, as its kernel has it
 *
 * The list is read while the guest runs: nothing is held. A task is accepted only if its neighbors
 * in the kernel's rings still point to it after it was read, so a ring that changes meanwhile is
 * noticed and followed again. Tasks that begin or end meanwhile may be in the list or not. A task
 * in the list is known by its id and the time when it began; its address may soon be that of
 * another task.
 */
#pragma once

#include "uprof/clock.h"
#include "uprof/linux.h"

enum {
    UPROF_TASK_LIST_MAX = 100 * 1000, /* tasks in a list */
    UPROF_TASK_NAME_BYTES = 64,
};

/** UprofTask: a thread of a process, or of the kernel; a member that the kernel's types lack is 0
 */
typedef struct {
    uint64_t address; /* of its struct task_struct */
    uint32_t id;      /* of the thread, in the outermost namespace */
    uint32_t process; /* of the process; the first thread has the same id */
    uint32_t parent;  /* of the parent process */
    uint32_t inner;   /* of the thread, in its own namespace of ids */
    uint32_t level;   /* depth of that namespace: 0 is the outermost one */
    uint32_t cpu;     /* on which it runs, or has run last */
    char state;       /* see uprof_task_state_name() */
    bool is_on_cpu;   /* it runs */
    bool may_run;     /* it is runnable; this kernel does not store whether it runs */
    bool is_kernel;   /* it is the kernel's own thread */
    bool is_in_io;    /* the kernel counts its wait as one for I/O, mostly for a disk */
    bool has_run;     /* it ran while it was captured, so the capture has no stack of one moment */
    bool is_doubtful; /* threads of its process may be missing: they changed while they were read */
    bool has_wait;    /* @wait_ns is known */
    uint64_t began_ns;           /* since the guest booted */
    uint64_t user_ns, system_ns; /* CPU time */
    uint64_t wait_ns;            /* since it left its CPU; 0 while it runs or if it is not known */
    uint64_t n_switches;         /* how often it left a CPU */
    uint64_t memory;             /* address of its struct mm_struct; 0 for a thread of the kernel */
    uint64_t stack;              /* address of its kernel stack; 0 if it has none any more */
    uint64_t saved_sp;           /* stack pointer, if it does not run */
    uint64_t cgroup;             /* address of its struct css_set: see uprof_cgroups_find_set() */
    uint64_t parent_at;          /* address of the struct task_struct of its parent */
    uint64_t ids_at;             /* address of its struct pid */
    char name[UPROF_TASK_NAME_BYTES];  /* safe to print */
    char comm[UPROF_LINUX_NAME_BYTES]; /* as the @name of UprofLinuxTask; "": malformed */
} UprofTask;

/** UprofTaskList: all members are owned */
typedef struct {
    GArray *tasks;    /* of UprofTask: by process, its first thread first; processes by their ids */
    bool is_complete; /* false: a ring is malformed, changes all the time, or is too long */
    bool is_late;     /* ... or the time was up */
    unsigned n_retries; /* how often a ring had changed, and was followed again */
    /* (nullable): facts that the kernel's types lack: see uprof_task_offsets_missing() */
    char *missing;
    bool has_parents, has_times, has_waits, has_levels; /* these members are known */
} UprofTaskList;

/**
 * uprof_task_list_limit_ns: Returns: the longest time for a list, and the longest time for the
 * stacks of its tasks
 */
uint64_t uprof_task_list_limit_ns(const UprofMem *mem);

/**
 * uprof_task_list_read:
 * @kernel: found; see uprof_linux_want_tasks()
 * @mem: the worker's
 * @time_ns: that it may take, with names and ids: the list ends early then
 *
 * Reads some hundred bytes of each task. Time and memory are bounded whatever the guest contains.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED if the kernel is not
 * known, or does not describe its tasks
 */
UprofTaskList *
uprof_task_list_read(const UprofLinux *kernel, UprofMem *mem, uint64_t time_ns, GError **error);
void uprof_task_list_free(UprofTaskList *list);

/** uprof_task_list_copy: Returns: (transfer full) */
UprofTaskList *uprof_task_list_copy(const UprofTaskList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTaskList, uprof_task_list_free)

/** uprof_task_state_name: Returns: the state in words, such as "sleeping"; literal */
const char *uprof_task_state_name(char letter);
