/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * request-body-priv.h - the bodies of requests: one profile with its labels
 *
 * Pyroscope: push.v1.PusherService/Push, in the JSON of Connect (api/push/v1/push.proto).
 * Parca: api/profiles/writeraw (parca/profilestore/v1alpha1/profilestore.proto).
 */
#pragma once

#include "uprof/destination.h"
#include "uprof/stored-rounds.h"

/** UprofRequestContext: the parts of bodies beside the profile; all pointers are borrowed */
typedef struct {
    const UprofDestination *destination;
    const char *host;       /* the name of this host; any bytes */
    const GPtrArray *words; /* of char: only these domains, by name or UUID; empty: all */
    bool is_dry;            /* bodies are empty */
} UprofRequestContext;

/**
 * uprof_request_path: Returns: the path below the URL of a destination, with '/' at its begin
 */
const char *uprof_request_path(const UprofDestination *destination);

/**
 * uprof_request_may_want: does the destination get the domain, as far as the name of the folder
 * tells?
 */
bool uprof_request_may_want(const UprofStoredRound *round, const UprofDestination *destination);

/** uprof_request_wants: as in UprofRoundWork; @data: UprofRequestContext */
bool uprof_request_wants(const UprofStoredRound *round, const UprofRun *run, void *data);

/**
 * uprof_request_make: as in UprofRoundWork; @data: UprofRequestContext
 *
 * The same round gives the same bytes.
 */
void uprof_request_make(const UprofStoredRound *round, const UprofProfile *profile, UprofRun *run,
                        GByteArray *content, void *data);
