/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-lag.h - which rounds the destinations of `push` do not have yet
 */
#pragma once

#include "uprof/destination.h"
#include "uprof/store.h"

/**
 * uprof_push_describe_lag:
 * @destinations: of UprofDestination
 *
 * Returns: (transfer full): a line for each destination, such as "grafana: 3 rounds are not sent
 *   yet, the oldest of 2026-11-30 09:15"
 */
char *uprof_push_describe_lag(UprofStore *store, const GPtrArray *destinations);
