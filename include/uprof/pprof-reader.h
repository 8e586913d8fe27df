/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pprof-reader.h - reads unpacked pprof profiles of virt-uprof and of other programs
 *
 * A profile is a protocol buffer (https://protobuf.dev/programming-guides/encoding/) with the
 * message of google/pprof, proto/profile.proto. A reference to a missing part is an error.
 */
#pragma once

#include "uprof/folded-reader.h"

/** UprofPprofFacts: facts of a profile; 0 if unknown */
typedef struct {
    uint64_t time_ns; /* start of the profile, since 1970 */
    uint64_t duration_ns;
    uint64_t period_ns; /* between samples */
} UprofPprofFacts;

/** uprof_pprof_is: Checks whether @bytes may be such a message, and are not text. */
bool uprof_pprof_is(UprofSlice bytes);

/**
 * uprof_pprof_parse:
 * @name: of the file, for messages
 * @facts: (out)
 * @visit: gets stacks in the form of uprof_folded_parse(). virt-uprof writes the domain and the
 *   vCPU of a stack as labels; these labels become frames again.
 *
 * If samples have several values, the value of type "samples" with unit "count" counts; or else the
 * first value with unit "count"; or else the last value. If the last value is a time, the reader
 * divides it by the period.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, before any stack is visited
 */
bool uprof_pprof_parse(const char *name, UprofSlice bytes, UprofPprofFacts *facts,
                       UprofFoldedVisit visit, void *data, GError **error);
