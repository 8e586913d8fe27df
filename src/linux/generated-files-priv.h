/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * generated-files-priv.h - perf maps and jitdumps of processes, out of the guest's memory
 *
 * A JIT compiler keeps the list of its code open while it writes to it (see perf-map.h, jitdump.h).
 * So the file is found in the process's table of descriptors, by its name, and read from the
 * kernel's page cache.
 */
#pragma once

#include "file-pages-priv.h"

/** UprofGeneratedFile: what is known of a process's list; all zeros at first */
typedef struct {
    unsigned descriptor;
    bool is_jitdump;
    uint64_t opened;    /* address of its struct file; 0: not found yet */
    uint64_t mapping;   /* address of its struct address_space */
    uint64_t n_read;    /* bytes */
    uint64_t n_missing; /* bytes right before @n_read that were not in memory */
    uint64_t next_ns;   /* when to search again */
    uint64_t apart_ns;  /* time between searches */
    bool was_read;
    uint64_t read_ns; /* when it was read */
} UprofGeneratedFile;

typedef struct _UprofGeneratedFiles UprofGeneratedFiles;

/** uprof_generated_files_new: @pages, @kernel, @sym: borrowed; @sym gets the names */
UprofGeneratedFiles *
uprof_generated_files_new(UprofFilePages *pages, const UprofLinux *kernel, UprofSym *sym);
void uprof_generated_files_free(UprofGeneratedFiles *files);

/**
 * uprof_generated_files_update: finds the list of a process, and reads what is new in it
 * @memory: of the kernel
 * @task: address of a struct task_struct of the process
 * @process: its number in @sym
 * @is_named: the code that asks for it has a name already, so a new name is less urgent
 * @now_ns: time of the snapshot
 *
 * Call it when code of the process is seen that is in no file. The function itself limits how often
 * it reads.
 */
void uprof_generated_files_update(UprofGeneratedFiles *files, const UprofKernelMemory *memory,
                                  uint64_t task, unsigned process, UprofGeneratedFile *file,
                                  bool is_named, uint64_t now_ns);
