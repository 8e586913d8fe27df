/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stored-priv.h - one profile of the store, read: its facts and its stacks
 *
 * The two files of a day are replaced one after the other when slices come late.
 * Meanwhile the digest that the facts have of the stacks says which of them
 * belong together: what is read here does, whatever another process is doing.
 */
#pragma once

#include "store-priv.h"
#include "uprof/folded.h"
#include "uprof/run.h"

enum {
    UPROF_STORED_PACKED_MAX = 64 * 1024 * 1024, /* of a day of stacks that are never the same */
    UPROF_STORED_TEXT_MAX = 255 * 1024 * 1024,  /* within what is unpacked and parsed */
};

/**
 * UprofStored:
 * @run: of the sidecar; its UUID is one, in lower case
 * @text: folded stacks, all of which can be read
 */
typedef struct {
    UprofRun *run;
    GByteArray *text;
} UprofStored;

/**
 * uprof_stored_read:
 * @item: whole, of @folder
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if it is damaged, or
 *   %UPROF_ERROR_FAILED; both name the file
 */
UprofStored *
uprof_stored_read(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error);
void uprof_stored_free(UprofStored *stored);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStored, uprof_stored_free)

/**
 * uprof_stored_facts: the facts alone. Of a day that is being written they may be those from
 *   before.
 */
UprofRun *
uprof_stored_facts(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error);

/**
 * uprof_stored_facts_of_stacks: the facts of the stacks that are there, which are not unpacked
 *
 * Returns: (transfer full) (nullable): %NULL as of uprof_stored_read()
 */
UprofRun *uprof_stored_facts_of_stacks(const UprofStoreFolder *folder, const UprofStoreItem *item,
                                       GError **error);

/** uprof_stored_walk: visits its stacks, with their first frame: the domain */
void uprof_stored_walk(const UprofStored *stored, UprofFoldedVisit visit, void *data);

/**
 * uprof_stored_recover: ends what a process that was killed has begun to write: the day is as
 *   before, or as it was to be
 *
 * Returns: false with the error, and nothing changed, if what there is cannot be read now
 */
bool uprof_stored_recover(const UprofStoreFolder *folder, UprofStoreItem *item, GError **error);

/** uprof_stored_digest: Returns: (transfer full): SHA-256 of @bytes in hex */
char *uprof_stored_digest(const void *bytes, size_t len);

/**
 * uprof_stored_merge: as uprof_run_merge(), but ways of access and of unwinding that
 *   differ are listed: "direct+monitor"; the name stays
 */
void uprof_stored_merge(UprofRun *run, const UprofRun *other, bool is_first);

/** uprof_stored_has_slice: Returns: whether the day @run has counted what began at @start_s */
bool uprof_stored_has_slice(const UprofRun *run, int64_t start_s);

/**
 * uprof_stored_counted: what the closed days in a domain's folder have counted
 * @since_s: since 1970; from the date of that on. Days are closed when they are over: of later
 *   ones there are some only if the clock was set back.
 *
 * A slice of such a second would be taken for the one that was counted, which may be deleted
 * long since.
 *
 * Returns: (transfer full): of int64_t: when slices began, since 1970
 */
GHashTable *
uprof_stored_counted(UprofStore *store, const char *name, const char *uuid, int64_t since_s);
