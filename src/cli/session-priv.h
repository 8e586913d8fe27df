/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session-priv.h - one domain, opened for sampling
 *
 * What record, dump and check have in common: from the domain's XML to a guest
 * that may be held, with symbols found, a lock taken and a guardian told.
 */
#pragma once

#include "access-priv.h"
#include "options-priv.h"
#include "pipeline-priv.h"
#include "uprof/guardian.h"
#include "uprof/sampler.h"

#include <signal.h>

/**
 * UprofSession:
 * @shown: the domain's name, clean
 * @domain, @settings: its own
 * @symbols_hint: (nullable): why the domain's own kernel gives no names
 * @guardian: (nullable): borrowed; it watches the domain until the session is closed
 */
typedef struct {
    char *shown;
    UprofDomain *domain;
    UprofSettings settings;
    char *why; /* this access, and not a better one */
    char *symbols_hint;
    UprofMarker *marker;
    UprofGuardian *guardian;
    UprofGuest *guest;
    UprofRun *run;
    UprofPipeline *pipeline;
    UprofSampler *sampler;
    UprofSamplerCounts before; /* of a sampler that this one has replaced */
    UprofWindowSize *sizes;
    bool *wanted;
    sigset_t signals; /* that were blocked before it was opened */
} UprofSession;

/**
 * uprof_session_open:
 * @domain: (transfer full): taken in every case
 * @guardian: (nullable): told of the guest; without one no whole guest is held
 * @may_be_paused: to look at a guest that somebody else has stopped
 * @wait: for another run's lock, up to a minute
 *
 * Signals that end or stop the process are blocked until it is closed: what was
 * changed in a guest's page is put back, whoever has had enough.
 *
 * Returns: (transfer full) (nullable)
 */
UprofSession *
uprof_session_open(UprofDomain *domain, const UprofOptions *options, UprofGuardian *guardian,
                   bool may_be_paused, bool wait, bool *locked, GError **error);

/**
 * uprof_session_close:
 * @session: (nullable)
 *
 * The guardian verifies that the domain is not held any more; what it says to
 * the contrary is said. The domain's lock is free afterwards.
 */
void uprof_session_close(UprofSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSession, uprof_session_close)

/**
 * uprof_session_prepare:
 * @writer: (nullable): borrowed
 * @ring: (nullable): borrowed: where snapshots go; %NULL: only to shoot
 * @owner: borrowed: goes into each snapshot
 *
 * Makes pipeline and sampler, and finds the symbols: those of -s must be
 * readable, the domain's own kernel may lack them.
 */
bool uprof_session_prepare(UprofSession *session, const UprofOptions *options, UprofWriter *writer,
                           UprofRing *ring, void *owner, GError **error);

/**
 * uprof_session_prime: before the sampler begins: one look at each vCPU, from which the
 * analysis learns what the guest is while no sample waits for it
 */
void uprof_session_prime(UprofSession *session);

/**
 * uprof_session_fall_back: to the monitor, in mid-run
 *
 * Its sampler has ended and nobody else uses it or the guest. The new one is
 * planned for the time that is left, and not begun.
 *
 * Returns: false, with everything as it was
 */
bool uprof_session_fall_back(UprofSession *session, const UprofOptions *options,
                             UprofGuardian *guardian, UprofRing *ring, void *owner, GError **error);

/**
 * uprof_session_note_counts: what became of the ticks, into the run
 * @counts: (out): of the sampler it has now
 */
void uprof_session_note_counts(UprofSession *session, UprofSamplerCounts *counts);

/** uprof_session_budget_ppm: Returns: share of time a vCPU may be held, in millionths */
uint64_t uprof_session_budget_ppm(const UprofSession *session);

/** uprof_session_check_state: false with the next thing to do unless it runs or is paused */
bool uprof_session_check_state(const UprofDomain *domain, GError **error);

/** uprof_session_find_kernel: Returns: (transfer full) (nullable): symbol file of <os><kernel>, or
 * NULL with @why it gives none */
char *uprof_session_find_kernel(const UprofDomain *domain, char **why);

/** uprof_session_is_interrupted: Returns: whether a signal waits that shall end the program */
bool uprof_session_is_interrupted(void);

/** uprof_session_heal: lets go what dead runs left; says so. Returns: exit code */
int uprof_session_heal(bool quiet);

/**
 * uprof_session_end_guardian:
 * @guardian: (nullable): freed
 * @died: it is known to be dead: what it watched is healed here
 *
 * Returns: exit code; what it said is said
 */
int uprof_session_end_guardian(UprofGuardian *guardian, bool died, bool quiet);
