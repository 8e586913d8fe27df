/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kept-rules-priv.h - facts about code of files, from earlier runs of the same guest
 *
 * A run that has just begun would follow the code at each new address, which takes about 100 us for
 * each. Facts from the list are used once for each address: if they are dropped
 * from the memo, the code is followed again. The code is also followed again after 50 runs.
 */
#pragma once

#include "code-memo-priv.h"
#include "uprof/rule-list.h"

typedef struct _UprofKeptRules UprofKeptRules;

/** uprof_kept_rules_new: @list: (transfer full). @sym: borrowed */
UprofKeptRules *uprof_kept_rules_new(UprofRuleList *list, UprofSym *sym);
void uprof_kept_rules_free(UprofKeptRules *kept);

/**
 * uprof_kept_rules_fill:
 * @kept: (nullable)
 * @facts: (inout): new facts about an address
 */
void uprof_kept_rules_fill(UprofKeptRules *kept, UprofCodeFacts *facts);

/**
 * uprof_kept_rules_pack:
 * @memo: (nullable): what this run has found
 * @kept: (nullable): what this run has begun with
 *
 * Returns: (transfer full) (nullable): a list for the next run; %NULL without facts
 */
GByteArray *
uprof_kept_rules_pack(const UprofCodeMemo *memo, const UprofKeptRules *kept, const UprofSym *sym);
