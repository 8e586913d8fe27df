/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * history-text.h - the rows of a history as a table and as JSON
 */
#pragma once

#include "uprof/history-rows.h"

/** uprof_history_render: appends a table of @rows, or nothing if there are none */
void uprof_history_render(GString *out, const GPtrArray *rows);

/** uprof_history_json: Returns: (transfer full): an object with both lists */
GString *uprof_history_json(const GPtrArray *days, const GPtrArray *rounds);
