/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pprof.h - profiles as pprof has them, ours and those of other programs
 *
 * A message of protocol buffers (https://protobuf.dev/programming-guides/encoding/)
 * described by google/pprof, proto/profile.proto, unpacked already. What a file
 * refers to and does not have is a fault of the file.
 */
#pragma once

#include "uprof/folded.h"

enum { UPROF_PPROF_BYTES_MAX_MIB = 256 };

/**
 * UprofPprofFacts: 0 is not known
 * @time_ns: since 1970, of the start
 * @period_ns: between samples
 */
typedef struct {
    uint64_t time_ns;
    uint64_t duration_ns;
    uint64_t period_ns;
} UprofPprofFacts;

/** uprof_pprof_is: Returns: whether @bytes may be such a message and are no text */
bool uprof_pprof_is(UprofSlice bytes);

/**
 * uprof_pprof_parse:
 * @name: of what is read, for messages
 * @facts: (out)
 * @visit: gets stacks as uprof_folded_parse() gives them; labels "domain" and
 *   "vcpu" of ours come back as the frames they were
 *
 * Of several values the count of samples is taken, else the first that counts
 * anything, else time in periods, else the last.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA; then nothing was visited
 */
bool uprof_pprof_parse(const char *name, UprofSlice bytes, UprofPprofFacts *facts,
                       UprofFoldedVisit visit, void *data, GError **error);
