/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-round-priv.h - reads a round of `top`
 */
#pragma once

#include "uprof/hot-rows.h"
#include "uprof/top-round.h"

/**
 * uprof_top_round_add: adds the rows of a round to the table
 * @round: from uprof_top_round_make(), in a worker that is not trusted
 * @domain: the caller's number of the domain
 *
 * Returns: the number of samples; 0 if @round is malformed
 */
uint64_t uprof_top_round_add(const GByteArray *round, UprofHotRows *rows, unsigned domain);
