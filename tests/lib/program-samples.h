/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program-samples.h - snapshots of the stacks of a real program, and the program's code
 *
 * The first thread of the program is stopped at random times. Only for x86-64.
 */
#pragma once

#include <sys/types.h>

#include "uprof/guest.h"
#include "uprof/snapshot.h"

/** ProgramModule: a file that the program has mapped */
typedef struct {
    char *path;    /* owned */
    uint64_t base; /* address of the file's first page */
} ProgramModule;

/** ProgramCode: a mapping in which code may run */
typedef struct {
    uint64_t start, len;
    uint8_t *bytes; /* owned */
} ProgramCode;

typedef struct {
    UprofGuest guest;     /* has the program's code, at the program's addresses, and nothing else */
    pid_t pid;            /* 0 when the program has ended */
    GPtrArray *snapshots; /* owned: of UprofSnapshot */
    GArray *modules;      /* owned: of ProgramModule */
    GArray *code;         /* owned: of ProgramCode */
} ProgramSamples;

/** program_samples_take: runs @command, and ends it after @n_max snapshots */
ProgramSamples *program_samples_take(char **command, unsigned n_max, unsigned pause_us);

void program_samples_free(ProgramSamples *samples);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProgramSamples, program_samples_free)
