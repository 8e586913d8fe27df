/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stored-profile-priv.h - reads one profile of the store: its facts and its stacks
 *
 * If a slice comes late, `prune` replaces the two files of the closed day one after the other. The
 * sidecar has a digest of the stacks, so a reader can check that the two files belong together. A
 * reader always gets facts and stacks of the same state, even while `prune` runs.
 */
#pragma once

#include "store-priv.h"
#include "uprof/folded-reader.h"
#include "uprof/run-facts.h"

enum {
    UPROF_STORED_PACKED_MAX = 64 * 1024 * 1024, /* of a day of stacks that all differ */
    UPROF_STORED_TEXT_MAX = 255 * 1024 * 1024,  /* below the limits of gzip.h and folded-reader.h */
};

/** UprofStored: one profile of the store */
typedef struct {
    UprofRun *run;    /* owned; facts of the sidecar; its UUID is valid, in lower case */
    GByteArray *text; /* owned; folded stacks that uprof_folded_parse() accepts */
} UprofStored;

/**
 * uprof_stored_read:
 * @item: complete; of @folder
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if the profile is
 *   damaged, or with %UPROF_ERROR_FAILED; both name the file
 */
UprofStored *
uprof_stored_read(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error);
void uprof_stored_free(UprofStored *stored);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStored, uprof_stored_free)

/**
 * uprof_stored_facts: reads the sidecar alone
 *
 * While a day is being merged, the facts may be older than the stacks.
 *
 * Returns: (transfer full) (nullable): %NULL as uprof_stored_read()
 */
UprofRun *
uprof_stored_facts(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error);

/**
 * uprof_stored_facts_of_stacks: reads the facts that belong to the stacks, but no stacks
 *
 * Returns: (transfer full) (nullable): %NULL as uprof_stored_read()
 */
UprofRun *uprof_stored_facts_of_stacks(const UprofStoreFolder *folder, const UprofStoreItem *item,
                                       GError **error);

/** uprof_stored_walk: visits all stacks; the first frame of each is the domain */
void uprof_stored_walk(const UprofStored *stored, UprofFoldedVisit visit, void *data);

/**
 * uprof_stored_recover: completes or undoes a merge whose process was killed
 *
 * Returns: false with the error if the files cannot be read now; then no file is changed
 */
bool uprof_stored_recover(const UprofStoreFolder *folder, UprofStoreItem *item, GError **error);

/** uprof_stored_digest: Returns: (transfer full): SHA-256 of @bytes in hex */
char *uprof_stored_digest(const void *bytes, size_t len);

/**
 * uprof_stored_merge: merges as uprof_run_merge(), with two differences
 *
 * Access methods and unwind methods that differ are listed: "direct+monitor". The name of the
 * domain stays.
 */
void uprof_stored_merge(UprofRun *run, const UprofRun *other, bool is_first);

/** uprof_stored_has_slice: the closed day @run has counted the slice of @start_s */
bool uprof_stored_has_slice(const UprofRun *run, int64_t start_s);
