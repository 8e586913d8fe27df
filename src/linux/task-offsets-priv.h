/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-offsets-priv.h - where the kernel's structures have what is known of a task
 */
#pragma once

#include "lock-offsets-priv.h"
#include "uprof/btf.h"
#include "uprof/linux-arch.h"
#include "uprof/mem.h"

/* The offset of a member that this kernel does not have. */
#define UPROF_TASK_NO_MEMBER UINT64_MAX

enum {
    UPROF_TASK_PARTS_MAX = 12,
    UPROF_TASK_BYTES_MAX = 4096, /* of all parts */
};

/** UprofTaskPart: a range of struct task_struct that has members that are needed */
typedef struct {
    uint32_t offset; /* in the structure, in bytes */
    uint32_t len;    /* bytes */
    uint32_t at;     /* of its copy in UprofTaskBytes */
} UprofTaskPart;

/** UprofTaskOffsets: offsets in bytes, or %UPROF_TASK_NO_MEMBER; of struct task_struct if it says
 * no other */
typedef struct {
    uint64_t tasks;       /* the node in the ring of all processes */
    uint64_t thread_node; /* the node in the ring of the process's threads */
    uint64_t signal;      /* pointer to struct signal_struct ... */
    uint64_t thread_head; /* ... which has the head of that ring */
    uint64_t pid, tgid, comm, state, exit_state;
    uint64_t flags, parent, on_cpu, cpu, start, memory, stack, saved_sp, usage;
    uint64_t user_time, system_time, shown_user, shown_system, run_time;
    uint64_t left; /* when the task left its CPU: see UprofTaskClock */
    uint64_t voluntary, involuntary;
    uint64_t io_wait;     /* the byte of a bit field: the task waits for I/O ... */
    uint8_t io_wait_mask; /* ... if this bit is set */
    uint64_t cgroups;
    uint64_t thread_pid; /* pointer to struct pid */
    uint64_t worker;     /* pointer to struct kthread, of the kernel's own threads */

    uint64_t pid_level, pid_numbers;    /* struct pid */
    uint64_t pid_tasks, pid_links;      /* struct pid: its lists of tasks; the nodes in the task */
    uint64_t ids_root;                  /* struct pid_namespace: root of the tree of structs pid */
    uint64_t node_shift, node_slots;    /* struct xa_node, a node of that tree ... */
    uint64_t n_slots;                   /* ... which has so many slots; 0: not known */
    uint64_t number_id, number_bytes;   /* struct upid: its id; its size */
    uint64_t thread_name, thread_data;  /* struct kthread: pointers to name and struct worker */
    uint64_t worker_pool, worker_work;  /* struct worker: pointers; 0 if it has none */
    uint64_t worker_text, worker_queue; /* struct worker: text; pointer to the queue it rescues */
    uint64_t queue_name;                /* struct workqueue_struct: text */
    uint64_t clock, task_clock;         /* struct rq: ns; @left is a time of @task_clock */
    /* what a task that does not run has on its stack; if @frame_bytes is 0, in its task_struct */
    uint64_t frame_pc, frame_fp, frame_bytes;

    UprofLockOffsets locks;

    UprofTaskPart parts[UPROF_TASK_PARTS_MAX];
    unsigned n_parts;
} UprofTaskOffsets;

/** UprofTaskBytes: the parts of one struct task_struct */
typedef struct {
    uint8_t bytes[UPROF_TASK_BYTES_MAX];
} UprofTaskBytes;

/**
 * uprof_task_offsets_find:
 * @offsets: (out)
 *
 * Returns: (nullable): the name of a member without which tasks cannot be listed; literal
 */
const char *
uprof_task_offsets_find(const UprofBtf *btf, const UprofLinuxArch *arch, UprofTaskOffsets *offsets);

/**
 * uprof_task_offsets_missing: Returns: (transfer full) (nullable): what cannot be told of a task,
 * such as "the parent (real_parent), the CPU time (utime)"; %NULL if nothing is missing
 */
char *uprof_task_offsets_missing(const UprofTaskOffsets *offsets);

/**
 * uprof_task_offsets_list_pieces: lists the reads of the parts of the structure at @address
 * @bytes: (out): gets them when the pieces are read; borrowed
 * @step: of the reads: see uprof_mem_read_pieces()
 * @pieces: (out): up to %UPROF_TASK_PARTS_MAX
 *
 * Returns: number of pieces
 */
unsigned
uprof_task_offsets_list_pieces(const UprofTaskOffsets *offsets, uint64_t address,
                               UprofTaskBytes *bytes, unsigned step, UprofMemPiece *pieces);

/**
 * uprof_task_bytes_word: Returns: the little-endian number of @len bytes, up to 8, at @offset of
 * the structure; 0 if it has no such member
 */
uint64_t uprof_task_bytes_word(const UprofTaskOffsets *offsets, const UprofTaskBytes *task,
                               uint64_t offset, unsigned len);

/** uprof_task_bytes_at: Returns: (nullable): the @len bytes at @offset of the structure; borrowed
 */
const uint8_t *uprof_task_bytes_at(const UprofTaskOffsets *offsets, const UprofTaskBytes *task,
                                   uint64_t offset, unsigned len);
