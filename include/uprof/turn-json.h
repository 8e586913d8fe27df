/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * turn-json.h - a domain's turn in a round, as JSON
 */
#pragma once

#include "uprof/round.h"

/**
 * uprof_turn_json:
 * @result: in a word, such as "ok"
 * @reason: of a turn that was skipped or failed; else ""
 * @facts: (nullable)
 *
 * Returns: (transfer full): a JSON object
 */
GString *uprof_turn_json(const UprofCandidate *candidate, const char *result, const char *reason,
                         const UprofTaskResult *facts);
