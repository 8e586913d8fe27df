/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtimes.h - frames that the runtime of a language keeps in other places than the stack of the
 * stack pointer
 *
 * Go: a thread has a stack of its own, and each goroutine has one. The runtime changes to the
 * thread's stack for its own work, for system calls by the vDSO and for functions in C.
 *
 * Python (CPython 3.11 to 3.15): the interpreter keeps the frames of functions in memory of its
 * own.
 *
 * The analysis publishes a chain (chains.h) that leads to such frames. The first samples of a
 * process come without them, because the chain is not known yet.
 */
#pragma once

#include "uprof/chains.h"
#include "uprof/space.h"

typedef struct _UprofRuntimes UprofRuntimes;

/**
 * uprof_runtimes_note_go_signal: a thread of Go runs its handler of signals
 * @context: guest-virtual address of the registers that it has interrupted (struct ucontext)
 *
 * Later holds also copy the stack that such a handler has interrupted.
 */
void uprof_runtimes_note_go_signal(UprofRuntimes *runtimes, uint64_t context);

enum { UPROF_PYTHON_FRAMES_MAX = 512 }; /* of a stack */

/** UprofPythonFrame: a function of Python that runs */
typedef struct {
    const UprofName *name; /* (nullable): of the function; %NULL if it cannot be read */
    /* guest-virtual address in the frame of the interpreter, on the thread's stack, that runs the
     * function; 0 if it is not known */
    uint64_t place;
} UprofPythonFrame;

/** uprof_runtimes_new: all are borrowed */
UprofRuntimes *uprof_runtimes_new(UprofSpace *space, UprofSym *sym, UprofNames *names);
void uprof_runtimes_free(UprofRuntimes *runtimes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRuntimes, uprof_runtimes_free)

/** uprof_runtimes_begin: call it after uprof_space_begin(); @snapshot: borrowed until the next call
 */
void uprof_runtimes_begin(UprofRuntimes *runtimes, const UprofSnapshot *snapshot);

/** UprofGoCaller: the caller of a function that has changed the stack */
typedef enum {
    UPROF_GO_UNKNOWN, /* not known, or not copied */
    UPROF_GO_FOUND,
    UPROF_GO_NONE, /* the thread has left its goroutine: the scheduler runs */
} UprofGoCaller;

/**
 * uprof_runtimes_leave_go_stack: finds the caller of a function that has changed the stack
 * @start: guest-virtual address where the function begins
 * @symbol_address: of @start
 * @regs: (inout): of the function; sp of its caller, and pc, a return address, if the
 *   caller is found
 */
UprofGoCaller uprof_runtimes_leave_go_stack(UprofRuntimes *runtimes, uint64_t start,
                                            uint64_t symbol_address, UprofRegs *regs);

/** uprof_runtimes_is_python: is @symbol_address in the code of Python's interpreter? */
bool uprof_runtimes_is_python(UprofRuntimes *runtimes, uint64_t symbol_address);

/**
 * uprof_runtimes_find_python:
 * @pc: an address in the code of the interpreter
 * @with_lines: names include the line
 * @frames: (out): has room for %UPROF_PYTHON_FRAMES_MAX; the innermost function comes first
 * @is_cut: (out): the outermost functions are missing
 *
 * Returns: number of @frames; 0 if the thread runs no Python, or is not known yet
 */
unsigned uprof_runtimes_find_python(UprofRuntimes *runtimes, uint64_t pc, bool with_lines,
                                    UprofPythonFrame *frames, bool *is_cut);

/**
 * uprof_runtimes_take_chain: takes the next chain that holds should follow from now on
 * @slot: (out): in the UprofChains of the sampler
 * @chain: (out)
 *
 * Returns: false if there is no new one
 */
bool uprof_runtimes_take_chain(UprofRuntimes *runtimes, uint32_t *slot, UprofChain *chain);
