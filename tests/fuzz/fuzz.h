/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz.h - the interface of a fuzz target
 *
 * A target links with libFuzzer (-Dfuzz=true, clang), or with replay.c, which feeds a corpus.
 * Both call the function many times, so the function must not keep any state.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "uprof/bytes.h"
#include "uprof/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A function sets an error if and only if it fails. */
static inline void
check_answer(bool ok, const GError *error)
{
    g_assert(ok == !error);
    if (!error)
        return;
    g_assert(error->domain == UPROF_ERROR);
    g_assert(error->message[0] != '\0');
    g_assert(g_utf8_validate(error->message, -1, NULL));
}

/* Checks that @part is empty or lies inside @whole. */
static inline bool
is_part(UprofSlice part, UprofSlice whole)
{
    const uintptr_t start = (uintptr_t)whole.data, at = (uintptr_t)part.data;

    return part.len == 0 ||
           (at >= start && at - start <= whole.len && part.len <= whole.len - (at - start));
}
