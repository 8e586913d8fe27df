/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux.h - a Linux guest whose files are not on this host
 *
 * The kernel carries its own symbols, unwind tables and types. virt-uprof reads them out of
 * guest memory, outside holds: once, and again after a boot. The guest may have changed them
 * to mislead, so every value is bounded and checked. A wrong value turns off the features that
 * need the value. linux-arch.h has all that depends on the architecture.
 */
#pragma once

#include "uprof/links.h"
#include "uprof/sym.h"

enum { UPROF_LINUX_NAME_BYTES = 16 };

typedef struct _UprofLinux UprofLinux;

/** UprofLinuxState: does the guest run Linux? */
typedef enum {
    UPROF_LINUX_UNKNOWN, /* not found yet; it may still boot */
    UPROF_LINUX_NONE,    /* the guest does not run Linux: enough searches have found no kernel */
    UPROF_LINUX_FOUND,
} UprofLinuxState;

/** UprofLinuxFacts: strings are borrowed and end with the next uprof_linux_update() */
typedef struct {
    UprofLinuxState state;
    const char *release;  /* (nullable): as `uname -r` prints it; clean */
    const char *build_id; /* (nullable): in hex; %NULL before Linux 5.14 and during boot */
    size_t n_symbols;     /* in the kernel's own table */
    const char *layout;   /* (nullable): how the table is encoded; literal */
    /* 64-bit FNV-1a of the text of /proc/kallsyms without modules; 0 unless asked for */
    uint64_t digest;
    uint64_t base;          /* guest-virtual address of the kernel's image */
    unsigned n_modules;     /* loaded modules */
    size_t n_rules;         /* in the ORC unwind tables; 0 if the kernel has none that are known */
    unsigned rules_version; /* UprofOrcVersion of the tables */
    bool has_btf;           /* the kernel describes its types (BTF) */
    bool has_types;         /* BTF has all members that virt-uprof needs */
    bool has_module_types;  /* BTF has all members of modules that virt-uprof needs */
    bool has_tasks;         /* the running task of each CPU can be found */
    uint64_t attach_ns;     /* time that the last search for the kernel took; 0 before the first */
    const char *why;        /* (nullable): what is missing, and why; literal */
} UprofLinuxFacts;

/**
 * uprof_linux_new:
 * @sym: borrowed; gets the kernel's symbols
 * @n_vcpus: of the guest
 */
UprofLinux *uprof_linux_new(UprofSym *sym, unsigned n_vcpus);
void uprof_linux_free(UprofLinux *kernel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinux, uprof_linux_free)

/**
 * uprof_linux_want_digest: asks for the @digest of UprofLinuxFacts; call it before the first
 * uprof_linux_update()
 */
void uprof_linux_want_digest(UprofLinux *kernel);

/**
 * uprof_linux_want_tasks: asks for what uprof_task_list_read() needs; call it before the first
 * uprof_linux_update()
 */
void uprof_linux_want_tasks(UprofLinux *kernel);

/**
 * uprof_linux_update:
 * @mem: the worker's
 * @snapshot: with its registers
 *
 * Call it for each snapshot, before it is unwound. Searches for a kernel while none is known: at
 * once, and now and then while the guest boots. A search takes some hundredths of a second. The
 * result depends on snapshots and memory only, so that a replay gives the same result.
 */
void uprof_linux_update(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot);

/**
 * uprof_linux_note_unknown: tells that a frame lies in unknown code of the kernel
 * @pc: of the frame
 *
 * If @pc is where modules lie, the next uprof_linux_update() may read the list of modules again.
 */
void uprof_linux_note_unknown(UprofLinux *kernel, uint64_t pc);

/**
 * uprof_linux_links: addresses by which the sampler finds stacks and tasks
 *
 * Returns: a pointer that any thread may read atomically; it is %NULL while no kernel is known.
 *   Links that were published once stay valid as long as @kernel.
 */
const UprofLinks **uprof_linux_links(UprofLinux *kernel);

/** UprofLinuxTask: a thread of a process, or of the kernel */
typedef struct {
    uint32_t pid;                      /* of the thread */
    uint32_t process;                  /* of the process (the kernel's tgid) */
    uint64_t address;                  /* of its struct task_struct */
    uint64_t memory;                   /* address of its struct mm_struct; 0 for a kernel thread */
    char name[UPROF_LINUX_NAME_BYTES]; /* up to 15 bytes; printable */
} UprofLinuxTask;

/**
 * uprof_linux_task:
 * @task: (out): the task that ran
 *
 * Returns: false if the task was not copied, or is malformed
 */
bool
uprof_linux_task(const UprofLinux *kernel, const UprofSnapshot *snapshot, UprofLinuxTask *task);

/** uprof_linux_facts: @facts: (out) */
void uprof_linux_facts(const UprofLinux *kernel, UprofLinuxFacts *facts);
