/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-lag-priv.h - counts the rounds that a destination does not have yet
 */
#pragma once

#include "uprof/push-lag.h"

/** UprofPushLag: of one destination */
typedef struct {
    unsigned n_waiting; /* rounds that the next push will send */
    unsigned n_refused; /* rounds in the store that the engine has refused */
    int64_t oldest_s;   /* since 1970: the first round that waits */
} UprofPushLag;

/**
 * uprof_push_lag_measure: reads the lists of rounds, and of what the destination has
 *
 * Returns: false with an error
 */
bool uprof_push_lag_measure(UprofStore *store, const UprofDestination *destination,
                            UprofPushLag *lag, GError **error);
