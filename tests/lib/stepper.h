/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stepper.h - runs a program one instruction at a time
 *
 * Before each instruction, the stepper has a snapshot of the program's registers and stack. The
 * stepper watches every call and return, so it also has a list of open calls. This list is the
 * right stack, found without unwind tables. The program must be static, so that all of its code
 * is in one image. Only for x86-64.
 */
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "memory-guest.h"
#include "uprof/snapshot.h"

enum { STEPPER_CALLS_MAX = 256 };

/** StepperCall: a call that has not returned */
typedef struct {
    uint64_t slot; /* address of the return address; the call is over when sp is above this */
    uint64_t pc;   /* program counter of the caller's frame: the return address */
} StepperCall;

/** Stepper: the program, before its next instruction */
typedef struct {
    pid_t pid;               /* 0 when the program has ended */
    UprofSnapshot *snapshot; /* owned; registers and stack */
    struct user_regs_struct regs;
    uint8_t code[16];                     /* bytes at the program counter */
    StepperCall calls[STEPPER_CALLS_MAX]; /* open calls, outermost first */
    unsigned n_calls;                     /* in @calls */
    size_t n_steps, n_signals;            /* instructions and signals so far */
    int deliver;                          /* signal that the next step delivers; 0: none */
} Stepper;

/** stepper_start: starts @path with @argument, and stops it before its first instruction */
void stepper_start(Stepper *stepper, const char *path, const char *argument);

/** stepper_step: runs one instruction. Returns: false if the program has ended; asserts status 0 */
bool stepper_step(Stepper *stepper);

/** stepper_finish: runs the present function to its return; call it at the first instruction */
void stepper_finish(Stepper *stepper);

/** stepper_read: Returns: bytes of the program's memory that could be read */
size_t stepper_read(const Stepper *stepper, uint64_t at, void *into, size_t len);

/** stepper_pc: Returns: the program counter of frame @n, from 0 to @n_calls, in the right stack */
uint64_t stepper_pc(const Stepper *stepper, unsigned n);

/** stepper_guest: Returns: (transfer full): a guest with the program's code, at equal addresses */
MemoryGuest *stepper_guest(const Stepper *stepper);

void stepper_clear(Stepper *stepper);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Stepper, stepper_clear)
