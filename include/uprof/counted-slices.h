/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counted-slices.h - the slices that closed days of the store have counted
 */
#pragma once

#include "uprof/store.h"

/**
 * uprof_counted_slices: finds which slices the closed days in a folder have counted
 * @since_s: since 1970; days before the day of this time are ignored. This day and later days are
 *   closed only if the clock was set back.
 *
 * A new slice must not begin in the same second as a counted slice, because the day would seem to
 * have counted the new slice, too. If there are such days, a process without rights reads them: the
 * program must have one thread, and no connection.
 *
 * Returns: (transfer full) (nullable): of int64_t: when the slices began, since 1970; %NULL with an
 *   error
 */
GHashTable *uprof_counted_slices(UprofStore *store, const char *name, const char *uuid,
                                 int64_t since_s, GError **error);
