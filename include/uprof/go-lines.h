/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * go-lines.h - inlined functions and source lines of a Go program (Go 1.18 to 1.27)
 *
 * The runtime of Go prints them with the stacks of a program that fails, so a stripped program has
 * them, too.
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_GO_LINES_FRAMES_MAX = 64 }; /* of one address */

/** UprofGoLine: a function at an address; both texts may be any bytes */
typedef struct {
    UprofSlice name; /* empty for the outermost function, which has a symbol; borrowed */
    UprofSlice file; /* path; empty if it is not known; borrowed */
    uint32_t line;   /* 0 if it is not known; of an outer function, where it calls the inner one */
    uint32_t function_line; /* where the function begins, in @file; 0 if it is not known */
} UprofGoLine;

typedef struct _UprofGoLines UprofGoLines;

/**
 * uprof_go_lines_find:
 * @address: link address of an instruction
 * @frames: (out): has room for %UPROF_GO_LINES_FRAMES_MAX; the innermost function comes first
 *
 * Returns: how many frames; 0 if no function of Go is there, or if its tables are not known there
 */
unsigned uprof_go_lines_find(const UprofGoLines *lines, uint64_t address, UprofGoLine *frames);

void uprof_go_lines_free(UprofGoLines *lines);
