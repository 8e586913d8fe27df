/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * generated-code-priv.h - functions that processes have generated, by their perf maps or jitdumps
 *
 * A process has code in no file. Its symbol addresses have the number of the process and the
 * program counter.
 */
#pragma once

#include "uprof/jitdump.h"

typedef struct _UprofGenerated UprofGenerated;

UprofGenerated *uprof_generated_new(void);
void uprof_generated_free(UprofGenerated *generated);

/**
 * uprof_generated_find:
 * @pc: any symbol address
 * @symbol: (out): the function there; starts at a symbol address; its name is borrowed until the
 *   next uprof_generated_add()
 *
 * Returns: false if no function is known there
 */
bool uprof_generated_find(const UprofGenerated *generated, uint64_t pc, UprofSymbol *symbol);

/** uprof_generated_pc: Returns: the guest's address for a result of uprof_sym_process_address() */
uint64_t uprof_generated_pc(uint64_t symbol_address);

/** uprof_generated_add: as uprof_sym_add_generated() */
bool uprof_generated_add(UprofGenerated *generated, unsigned process, bool is_jitdump,
                         UprofSlice bytes, uint64_t n_missing);

/** uprof_generated_forget: removes the functions of @process */
void uprof_generated_forget(UprofGenerated *generated, unsigned process);

/** uprof_generated_count: @n_processes: (out): that have functions. Returns: how many functions */
size_t uprof_generated_count(const UprofGenerated *generated, unsigned *n_processes);
