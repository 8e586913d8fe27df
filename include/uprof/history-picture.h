/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * history-picture.h - the history of a domain as a picture: a heat map of days and hours, and the
 * graph
 */
#pragma once

#include "uprof/history-rows.h"

/**
 * uprof_history_draw:
 * @query: without a domain, the only domain of that time is drawn
 * @code: (inout): gets an error if a profile is damaged
 *
 * A closed day has the resolution of its rounds while they are stored, and is one slot afterwards.
 * The picture has the last %UPROF_CALENDAR_DAYS_MAX days at most. The function sends a warning for
 * each damaged profile.
 *
 * Returns: (transfer full) (nullable): an SVG file; %NULL with %UPROF_ERROR_NOT_FOUND,
 *   %UPROF_ERROR_EMPTY, or %UPROF_ERROR_USAGE if the time has several domains
 */
GString *uprof_history_draw(const UprofHistoryQuery *query, UprofErrorCode *code, GError **error);
