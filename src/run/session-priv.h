/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session-priv.h - the steps of a session, for the run loop
 */
#pragma once

#include "uprof/session.h"

/**
 * uprof_session_prime: takes one snapshot of each vCPU before the sampler begins
 *
 * From these snapshots the worker finds the kernel of the guest. This takes long, so it is done
 * before the first sample.
 */
void uprof_session_prime(UprofSession *session);

/**
 * uprof_session_fall_back: changes to the access method "monitor" during a run
 *
 * Call it when the sampler has ended, and no other thread uses the sampler or the guest. The new
 * sampler has the remaining time as its duration. The caller starts it.
 *
 * Returns: false with the error; the session then has its old sampler and guest
 */
bool uprof_session_fall_back(UprofSession *session, UprofGuardian *guardian, UprofRing *ring,
                             GError **error);

/**
 * uprof_session_check_state: checks that the domain runs or is paused
 * @may_be_paused: it may also have crashed
 *
 * Returns: false with %UPROF_ERROR_NOT_FOUND; the message says what to do
 */
bool uprof_session_check_state(const UprofDomain *domain, bool may_be_paused, GError **error);

/**
 * uprof_session_note_answer: sends a notice if a hold has failed
 * @answer: of the hold
 * @error: (nullable): only if the answer is %UPROF_FAILED
 *
 * Returns: %UPROF_ERROR_NONE if it has not failed; else the code
 */
UprofErrorCode uprof_session_note_answer(const UprofSession *session, UprofAnswer answer,
                                         const GError *error, const UprofNotices *notices);
