/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux.h - a Linux guest, of which nobody has files
 *
 * Its kernel carries its own symbols, unwind tables and types; all of them are read
 * out of the guest's memory (x86_64), outside any hold, once, and again after it has
 * booted anew. What is read may have been made to mislead: nothing of it is believed
 * that is not bounded and checked, and what is wrong turns off what depends on it.
 */
#pragma once

#include "uprof/links.h"
#include "uprof/sym.h"

enum { UPROF_LINUX_NAME_BYTES = 16 };

typedef struct _UprofLinux UprofLinux;

/** UprofLinuxState: whether the guest runs Linux */
typedef enum {
    UPROF_LINUX_UNKNOWN, /* it may yet boot */
    UPROF_LINUX_NONE,    /* no: looked at often enough */
    UPROF_LINUX_FOUND,
} UprofLinuxState;

/**
 * UprofLinuxFacts:
 * @release: (nullable): as `uname -r` says it; clean
 * @build_id: (nullable): in hex; %NULL before Linux 5.14, and while it boots
 * @n_symbols: of the kernel's own table
 * @layout: (nullable): how that is written; literal
 * @digest: of the text of /proc/kallsyms without modules, 64-bit FNV-1a; 0 unless it
 *   was asked for
 * @base: of the kernel's image
 * @n_modules: that are loaded
 * @n_rules: of its unwind tables; 0: it has none that are known
 * @rules_version: UprofOrcVersion of these
 * @has_btf: it describes its types (BTF)
 * @has_types: and says where members are in its structures, as far as is needed
 * @has_module_types: likewise, for its modules
 * @has_tasks: it is known where to see which process runs
 * @attach_ns: how long it took to find all that; or the last look that found no kernel, 0
 *   before the first
 * @why: (nullable): what is missing, and why; literal
 */
typedef struct {
    UprofLinuxState state;
    const char *release;
    const char *build_id;
    size_t n_symbols;
    const char *layout;
    uint64_t digest;
    uint64_t base;
    unsigned n_modules;
    size_t n_rules;
    unsigned rules_version;
    bool has_btf;
    bool has_types;
    bool has_module_types;
    bool has_tasks;
    uint64_t attach_ns;
    const char *why;
} UprofLinuxFacts;

/**
 * uprof_linux_new:
 * @sym: borrowed; gets the kernel's symbols
 * @n_vcpus: of the guest
 */
UprofLinux *uprof_linux_new(UprofSym *sym, unsigned n_vcpus);
void uprof_linux_free(UprofLinux *kernel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinux, uprof_linux_free)

/** uprof_linux_want_digest: before the first look */
void uprof_linux_want_digest(UprofLinux *kernel);

/**
 * uprof_linux_look:
 * @mem: the worker's
 * @snapshot: with its registers
 *
 * For each snapshot, before it is unwound. Looks for a kernel where none is known: at
 * once, and while the guest boots now and then. That takes some hundredths of a second.
 * Depends on nothing but snapshots and memory, so that a replay finds the same.
 */
void uprof_linux_look(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot);

/**
 * uprof_linux_links: for the sampler's plan
 *
 * Returns: a place that holds %NULL while no kernel is known, to be read atomically from
 *   any thread; what it has ever held lives as long as @kernel
 */
const UprofLinks **uprof_linux_links(UprofLinux *kernel);

/**
 * UprofLinuxTask: a thread of a process, or of the kernel
 * @pid, @process: its own number, and its process's
 * @memory: address of what says what it has mapped; 0: a thread of the kernel
 * @name: of 15 bytes at most; not clean
 */
typedef struct {
    uint32_t pid;
    uint32_t process;
    uint64_t memory;
    char name[UPROF_LINUX_NAME_BYTES];
} UprofLinuxTask;

/** uprof_linux_task: @task: (out): which ran. Returns: false if that was not copied, or is nonsense */
bool
uprof_linux_task(const UprofLinux *kernel, const UprofSnapshot *snapshot, UprofLinuxTask *task);

/** uprof_linux_facts: @facts: (out): borrowed strings, until the next look */
void uprof_linux_facts(const UprofLinux *kernel, UprofLinuxFacts *facts);
