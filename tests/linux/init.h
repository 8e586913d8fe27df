/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that the files of the tests' Linux guest share; init.c describes the program.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Prints on the console what failed and why, and ends the process. */
void die(const char *what) __attribute__((noreturn));

/* ---- reports.c: facts about the guest, one line each ---- */

void report_release(void);
void report_build_id(void);
void report_paging(void);
void report_kallsyms(void);
void report_tasks(void);
void report_states(void);
void report_maps(pid_t pid);
void report_log(void);
/* Writes to the log. */
void write_log(void);

/* ---- loads.c: programs that keep the guest busy ---- */

enum { PROCESSES_MAX = 2 };

/* The descriptors of one process of a load. */
struct ends {
    int in;    /* -1, or data from the other process */
    int out;   /* -1, or data to the other process */
    int ready; /* a pipe: the process writes its pid when it is ready */
};

struct process {
    const char *name;
    void (*run)(const struct ends *ends); /* does not return */
};

struct load {
    const char *word;
    struct process processes[PROCESSES_MAX];          /* the second may have no name: one process */
    void (*connect)(struct ends ends[PROCESSES_MAX]); /* (nullable): connects the processes */
};

/* locks.c: processes that wait for locks */
void run_locks(const struct ends *load);
/* Ends what the load `locks` has done to the disk, if there is one. */
void thaw_disk(void);

/* Returns: (nullable): the load called @word */
const struct load *find_load(const char *word);
unsigned count_processes(const struct load *load);
/* Runs the load. This process becomes the last process of the load; a first one is its child. */
void run_load(const struct load *load, int ready) __attribute__((noreturn));
