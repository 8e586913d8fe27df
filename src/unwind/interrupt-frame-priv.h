/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * interrupt-frame-priv.h - the words that a processor pushes when an interrupt comes
 *
 * They are the address, the code segment, the flags, the stack pointer and the stack segment.
 * 32-bit code that interrupts code of the same privilege has only the first three (Intel SDM,
 * volume 3, "Exception- and Interrupt-Handler Procedures"; volume 2, IRET). Xen pushes the same
 * words for 64-bit paravirtual kernels. There the code segment has a requested privilege of 0 if
 * the kernel was interrupted, and bits 32 to 39 of its slot have the mask of events (Xen,
 * arch/x86/x86_64/entry.S, create_bounce_frame). A hostile guest can write anything there, so each
 * word is checked for values that a processor makes.
 */
#pragma once

#include "code-frame-priv.h"

/** UprofInterrupted: the code that an interrupt has interrupted */
typedef struct {
    uint64_t pc, sp, flags;
    bool is_user; /* code of a process */
} UprofInterrupted;

/**
 * uprof_interrupt_frame_read:
 * @slot: address of the first word
 * @found: (out): valid if true is returned
 *
 * Sets the frame's "is_cut" if a word was not copied.
 *
 * Returns: false if there is no such frame
 */
bool uprof_interrupt_frame_read(UprofCodeFrame *frame, uint64_t slot, UprofInterrupted *found);
