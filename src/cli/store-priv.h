/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store-priv.h - profiles of collect on disk: names, slices, days
 *
 *   STORE/data/web-1/web-1-20261120T091500Z.folded.gz    a slice
 *                    web-1-20261120T091500Z.meta.json    its sidecar
 *                    web-1-20261119.folded.gz, .meta.json    a closed day
 *                    web-1-20261119.pending    the sidecar of a day that is being written
 *                    web-1-20261120.failures             rounds without a slice
 *   STORE/summary/2026-11-19.txt
 *
 * The folder is the safe name of the domain. A sidecar is written last and is the
 * commit mark: a profile without one does not count. It holds true name and UUID.
 * Two domains of one name share the folder; where that would give two days one
 * name, the later gets "~" and its UUID (32 digits) behind the date.
 *
 * Only names of this pattern are seen, and only regular files; no link is ever
 * followed and no folder entered but those of domains. Everything else in the
 * store is somebody else's and stays.
 */
#pragma once

#include "uprof/bytes.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define UPROF_STORE_PROFILE ".folded.gz"
#define UPROF_STORE_SIDECAR ".meta.json"
#define UPROF_STORE_PENDING ".pending"
#define UPROF_STORE_FAILURES ".failures"
#define UPROF_STORE_SUMMARY ".txt"

enum {
    UPROF_STORE_MARK_BYTES = 33,
    UPROF_STORE_DAY_S = 24 * 60 * 60,
};

typedef struct _UprofStore UprofStore;

/**
 * UprofStoreItem: the files of a slice or a day
 * @stem: in the folder, without an ending; owned
 * @start_s: since 1970; of a day its 00:00 UTC
 * @mark: "", or the UUID's digits where they are part of the name
 * @is_day: a day, not a slice
 * @has_profile, @has_sidecar, @has_pending, @has_failures: which of them are there
 * @changed_ns: when the newest of them was written, since 1970; @failed_s: when that of failures was
 * @bytes: in all; @bytes_used: as they take room on the disk
 */
typedef struct {
    char *stem;
    int64_t start_s;
    char mark[UPROF_STORE_MARK_BYTES];
    bool is_day;
    bool has_profile;
    bool has_sidecar;
    bool has_pending;
    bool has_failures;
    int64_t changed_ns;
    int64_t failed_s;
    uint64_t bytes;
    uint64_t bytes_used;
} UprofStoreItem;

/**
 * UprofStoreFolder: one domain's
 * @name: the safe one
 * @items: of UprofStoreItem, by @start_s, days before slices
 * @temporaries: of char: files that a run which was killed may have left
 */
typedef struct {
    char *name;
    char *path;
    int fd;
    GArray *items;
    GPtrArray *temporaries;
} UprofStoreFolder;

/**
 * uprof_store_open:
 * @folder: no link; root's must be written by root alone
 * @create: where missing; what the process makes from then on is nobody else's (umask 027)
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED or %UPROF_ERROR_DENIED
 */
UprofStore *uprof_store_open(const char *folder, bool create, GError **error);
void uprof_store_close(UprofStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStore, uprof_store_close)

/** uprof_store_exists: Returns: whether there is anything at @folder */
bool uprof_store_exists(const char *folder);

/**
 * uprof_store_lock: for whoever deletes, until the store is closed
 * @taken: (out): false with no error set: another run has it
 *
 * The lock is the folder's own, so that nothing is left of it and two stores do
 * not wait for each other.
 */
bool uprof_store_lock(UprofStore *store, bool *taken, GError **error);

/** uprof_store_path: Returns: (transfer none): as it was opened */
const char *uprof_store_path(const UprofStore *store);

/** uprof_store_safe_name: Returns: (transfer full): the domain's folder, as uprof_text_file_name() */
char *uprof_store_safe_name(const char *name, const char *uuid);

/**
 * uprof_store_slice_base: makes the domain's folder
 * @start_s: since 1970. If there is a slice of that second already, as when the clock was set
 *   back, the next free second is taken.
 * @counted: (nullable): of int64_t: seconds that are not free though there is no slice of them
 *
 * Returns: (transfer full) (nullable): path without an ending; write %UPROF_STORE_PROFILE,
 *   then %UPROF_STORE_SIDECAR
 */
char *uprof_store_slice_base(UprofStore *store, const char *name, const char *uuid, int64_t start_s,
                             GHashTable *counted, GError **error);

/**
 * uprof_store_last_turn:
 * @now_s: since 1970. What is later, by a clock that was ahead, is passed over.
 *
 * Returns: when the newest slice in the domain's folder began, or a round failed to get one if
 *   that is later, since 1970; 0: neither. Of two domains of one name it is that of either.
 */
int64_t uprof_store_last_turn(UprofStore *store, const char *name, const char *uuid, int64_t now_s);

/**
 * uprof_store_note_failure: that a round had no slice of a domain, for the summary of the day
 * @at_s: since 1970
 * @reason: one line; any bytes
 *
 * Appends to the day's %UPROF_STORE_FAILURES, and gives up quietly beyond a megabyte of it.
 */
bool uprof_store_note_failure(UprofStore *store, const char *name, const char *uuid, int64_t at_s,
                              const char *reason, GError **error);

/** uprof_store_has_room: Returns: false with %UPROF_ERROR_FAILED if less than that is free */
bool uprof_store_has_room(UprofStore *store, uint64_t min_free_megabytes, GError **error);

/** UprofStoreVisit: @path: of a file that is to go; relative to the store */
typedef void (*UprofStoreVisit)(const char *path, void *data);

/**
 * uprof_store_sweep: removes temporary files, and profiles without a sidecar, older than a day
 * @now_s: since 1970
 * @dry_run: removes nothing
 * @visit: (nullable): told of each
 */
void uprof_store_sweep(UprofStore *store, int64_t now_s, bool dry_run, UprofStoreVisit visit,
                       void *data);

/* ---- Looking into it ---- */

/** uprof_store_folders: Returns: (transfer full): of char, in byte order: the domains' folders */
GPtrArray *uprof_store_folders(UprofStore *store);

/**
 * uprof_store_folder_open:
 * @name: of uprof_store_folders()
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED
 */
UprofStoreFolder *uprof_store_folder_open(UprofStore *store, const char *name, GError **error);

/**
 * uprof_store_summaries: the folder of summaries, each an item with the day as its stem
 * @create: where missing
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED
 */
UprofStoreFolder *uprof_store_summaries(UprofStore *store, bool create, GError **error);
void uprof_store_folder_close(UprofStoreFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStoreFolder, uprof_store_folder_close)

/** uprof_store_item: Returns: (transfer none): item @i */
static inline UprofStoreItem *
uprof_store_item(const UprofStoreFolder *folder, guint i)
{
    return &g_array_index(folder->items, UprofStoreItem, i);
}

/** uprof_store_item_is_whole: Returns: whether it was written to its end */
static inline bool
uprof_store_item_is_whole(const UprofStoreItem *item)
{
    return item->has_profile && item->has_sidecar;
}

/** uprof_store_day_of: Returns: 00:00 UTC of the day of @at_s, both since 1970 */
int64_t uprof_store_day_of(int64_t at_s);

/**
 * uprof_store_read_day:
 * @text: "2026-11-20", @len bytes
 * @day_s: (out): its 00:00 UTC, since 1970
 *
 * Returns: false if there is no such day
 */
bool uprof_store_read_day(const char *text, size_t len, int64_t *day_s);

/** uprof_store_format_day: Returns: (transfer full): "2026-11-20" */
char *uprof_store_format_day(int64_t at_s);

/**
 * uprof_store_stem: Returns: (transfer full): "web-1-20261120T091500Z", or "web-1-20261120"
 * @mark: (nullable): the UUID's digits, if the name needs them
 */
char *uprof_store_stem(const char *name, int64_t start_s, bool is_day, const char *mark);

/**
 * uprof_store_mark_of: Returns: false if @uuid is none
 * @mark: (out): its 32 digits, in lower case
 */
bool uprof_store_mark_of(const char *uuid, char mark[UPROF_STORE_MARK_BYTES]);

/**
 * uprof_store_read:
 * @stem, @ending: of a file
 * @bytes_max: what is larger is refused
 *
 * Returns: (transfer full) (nullable): what is in it; %NULL with %UPROF_ERROR_FAILED or, of a
 *   file that is too large, %UPROF_ERROR_BAD_DATA
 */
GByteArray *uprof_store_read(const UprofStoreFolder *folder, const char *stem, const char *ending,
                             size_t bytes_max, GError **error);

/**
 * uprof_store_remove: all files of an item, the commit mark first
 *
 * Returns: false with %UPROF_ERROR_FAILED
 */
bool uprof_store_remove(const UprofStoreFolder *folder, const char *stem, GError **error);

/** uprof_store_has: Returns: whether there is something of that name now */
bool uprof_store_has(const UprofStoreFolder *folder, const char *stem, const char *ending);

/** uprof_store_rename: of a file of an item; another that is there is replaced */
bool uprof_store_rename(const UprofStoreFolder *folder, const char *stem, const char *from,
                        const char *to, GError **error);

/** uprof_store_remove_one: one file of an item. Returns: false with %UPROF_ERROR_FAILED */
bool uprof_store_remove_one(const UprofStoreFolder *folder, const char *stem, const char *ending,
                            GError **error);

/** uprof_store_settle: what was removed so far stays so; removes the folder if it is empty */
void uprof_store_settle(UprofStore *store, const UprofStoreFolder *folder);
