/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stepper.h - a program that is run one instruction at a time
 *
 * Before each one there is a copy of its registers and stack, as there is of a
 * guest's, and a list of calls that is kept from watching calls and returns:
 * what is right is known without any table. The program must be static, so that
 * all of its code is in one image. Only for x86-64.
 */
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "memory-guest.h"
#include "uprof/snapshot.h"

enum { STEPPER_CALLS_MAX = 256 };

/**
 * StepperCall: what the next frame's pc is
 * @slot: where the return address is; it is done when the stack pointer is above
 */
typedef struct {
    uint64_t slot;
    uint64_t pc;
} StepperCall;

/**
 * Stepper:
 * @pid: 0 when the program has ended
 * @code: at the program counter
 * @calls: outermost first, as many as @n_calls
 * @deliver: signal that the next step brings
 */
typedef struct {
    pid_t pid;
    UprofSnapshot *snapshot;
    struct user_regs_struct regs;
    uint8_t code[16];
    StepperCall calls[STEPPER_CALLS_MAX];
    unsigned n_calls;
    size_t n_steps, n_signals;
    int deliver;
} Stepper;

/** stepper_start: runs @path with @argument up to its first instruction */
void stepper_start(Stepper *stepper, const char *path, const char *argument);

/** stepper_step: one instruction. Returns: false if it was the last; it must exit with 0 */
bool stepper_step(Stepper *stepper);

/** stepper_finish: at the first instruction of a function; runs all of it at once */
void stepper_finish(Stepper *stepper);

/** stepper_read: Returns: bytes of the program's memory that could be read */
size_t stepper_read(const Stepper *stepper, uint64_t at, void *into, size_t len);

/** stepper_pc: Returns: the program counter of frame @n, 0 to @n_calls, of the right stack */
uint64_t stepper_pc(const Stepper *stepper, unsigned n);

/** stepper_guest: Returns: (transfer full): a guest that has the program's code where it is */
MemoryGuest *stepper_guest(const Stepper *stepper);

void stepper_clear(Stepper *stepper);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Stepper, stepper_clear)
