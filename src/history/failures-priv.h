/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * failures-priv.h - reads which rounds made no profile, as uprof_store_note_failure() wrote it
 */
#pragma once

#include "store-priv.h"

/** UprofFailureVisit: @uuid: (nullable): in lower case; @at_s: since 1970; @reason: safe to print
 */
typedef void (*UprofFailureVisit)(const UprofStoreFolder *folder, const char *uuid, int64_t at_s,
                                  const char *reason, void *data);

/** uprof_failures_read: visits all failures of one day; a file that cannot be read has none */
void uprof_failures_read(const UprofStoreFolder *folder, const UprofStoreItem *item,
                         UprofFailureVisit visit, void *data);
