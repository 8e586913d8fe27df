/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the tests' Linux guest share; what they are for is said in
 * init.c.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Says on the console what failed and why, and ends the process. */
void die(const char *what) __attribute__((noreturn));

/* ---- reports.c: what the guest says of itself, a line each ---- */

void report_release(void);
void report_build_id(void);
void report_paging(void);
void report_kallsyms(void);
void report_tasks(void);
void report_maps(pid_t pid);

/* ---- loads.c: what keeps the guest busy ---- */

enum { PROCESSES_MAX = 2 };

/* What a process of a load is given. */
struct ends {
    int in;
    int out;
    int ready; /* to write its pid to, once it has got all that it works with */
};

struct process {
    const char *name;
    void (*run)(const struct ends *ends); /* for ever */
};

struct load {
    const char *word;
    struct process processes[PROCESSES_MAX];          /* the second one may have no name */
    void (*connect)(struct ends ends[PROCESSES_MAX]); /* or NULL */
};

/* The load of that name, or NULL. */
const struct load *find_load(const char *word);
unsigned count_processes(const struct load *load);
/* Runs the load's processes: the last one in this process, the other one in a new one. */
void run_load(const struct load *load, int ready) __attribute__((noreturn));
