/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-probe.h - tries a destination of `push` without a profile
 */
#pragma once

#include "uprof/destination.h"

/** UprofProbeResult: what a destination answers */
typedef enum {
    UPROF_PROBE_WORKS,
    UPROF_PROBE_DOUBTFUL, /* the clocks differ, or the engine has no time now */
    UPROF_PROBE_FAILS,
} UprofProbeResult;

/**
 * uprof_push_probe: sends a request that has no profile, which an engine refuses
 * @text: (out) (transfer full): what works or does not, safe to print
 *
 * The request shows whether name, connection, certificate and credentials are right.
 */
UprofProbeResult uprof_push_probe(const UprofDestination *destination, char **text);
