/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-priv.h - a run as it goes on: the hottest functions, once a second
 *
 * On a terminal a screen of its own, which is given back however the run ends;
 * with --batch plain text, round after round.
 */
#pragma once

#include "recording-priv.h"

typedef struct _UprofTop UprofTop;

/**
 * uprof_top_new:
 * @options: borrowed
 *
 * Takes the screen, and what is said meanwhile, unless it is --batch.
 *
 * Returns: (transfer full)
 */
UprofTop *uprof_top_new(const UprofOptions *options);

/** uprof_top_free: @top: (nullable): gives the screen back, and says what was said meanwhile */
void uprof_top_free(UprofTop *top);

/** uprof_top_fd: Returns: descriptor of keys; -1: there are none, as in the background */
int uprof_top_fd(const UprofTop *top);

/** uprof_top_read_key: Returns: false if it says to end */
bool uprof_top_read_key(UprofTop *top, const GPtrArray *recordings);

/**
 * uprof_top_round: to be called often; does something once a second
 * @recordings: of UprofRecording
 *
 * Returns: false if it was the last round, or stdout is closed
 */
bool uprof_top_round(UprofTop *top, const GPtrArray *recordings);

/*
 * uprof_top_leave, uprof_top_enter: around a stop of the process; the screen is the
 * shell's. It stays so in the background, where the run goes on unseen.
 */
void uprof_top_leave(UprofTop *top);
void uprof_top_enter(UprofTop *top);
