/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store-priv.h - the folders of the store and their files, for the other files of this module
 */
#pragma once

#include "uprof/file.h"
#include "uprof/store.h"

#define UPROF_STORE_PENDING ".pending"
#define UPROF_STORE_FAILURES ".failures"
#define UPROF_STORE_SUMMARY ".txt"

enum { UPROF_STORE_UUID_BYTES = 33 };

/** UprofStoreItem: the files of one slice or day */
typedef struct {
    char *stem;                               /* owned; name in the folder, without an ending */
    int64_t start_s;                          /* since 1970; of a day its 00:00 UTC */
    char uuid_digits[UPROF_STORE_UUID_BYTES]; /* "", or the UUID in the name */
    bool is_day;                              /* a day, not a slice */
    bool has_profile;
    bool has_sidecar;
    bool has_pending;
    bool has_failures;
    bool has_functions;
    int64_t changed_ns;  /* since 1970; when the newest of the files was written */
    int64_t failed_s;    /* since 1970; when the file of failures was written */
    uint64_t bytes;      /* of all files */
    uint64_t bytes_used; /* of all files, as disk space */
} UprofStoreItem;

/** UprofStoreFolder: the folder of a domain, as it was when it was opened */
typedef struct {
    char *name;             /* owned; the safe name of the domain */
    char *path;             /* owned */
    int fd;                 /* owned; descriptor of the folder */
    int parent;             /* borrowed; descriptor of the parent folder */
    GArray *items;          /* owned; of UprofStoreItem, by @start_s; days before slices */
    GPtrArray *temporaries; /* owned; of char: files that a killed run may have left */
} UprofStoreFolder;

/**
 * uprof_store_safe_name: Returns: (transfer full): the folder name of a domain, by
 * uprof_text_file_name()
 */
char *uprof_store_safe_name(const char *name, const char *uuid);

/** uprof_store_folders: Returns: (transfer full): of char, sorted: names of the domains' folders */
GPtrArray *uprof_store_folders(UprofStore *store);

/**
 * uprof_store_folder_open:
 * @name: of uprof_store_folders()
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED
 */
UprofStoreFolder *uprof_store_folder_open(UprofStore *store, const char *name, GError **error);

/**
 * uprof_store_summaries: opens the folder of summaries; the stem of each item is the day
 * @may_create: makes the folder if it is missing
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED
 */
UprofStoreFolder *uprof_store_summaries(UprofStore *store, bool may_create, GError **error);
void uprof_store_folder_close(UprofStoreFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStoreFolder, uprof_store_folder_close)

/** uprof_store_item: Returns: (transfer none): item @i */
static inline UprofStoreItem *
uprof_store_item(const UprofStoreFolder *folder, guint i)
{
    return &g_array_index(folder->items, UprofStoreItem, i);
}

/** uprof_store_item_is_complete: the item has its commit mark, and its profile */
static inline bool
uprof_store_item_is_complete(const UprofStoreItem *item)
{
    return item->has_profile && item->has_sidecar;
}

/**
 * uprof_store_stem: Returns: (transfer full): "web-1-20261120T091500Z", or "web-1-20261120"
 * @mark: (nullable): the digits of the UUID, if the name needs them
 */
char *uprof_store_stem(const char *name, int64_t start_s, bool is_day, const char *mark);

/**
 * uprof_store_uuid_digits:
 * @mark: (out): the 32 digits of @uuid, in lower case
 *
 * Returns: false if @uuid is not a UUID
 */
bool uprof_store_uuid_digits(const char *uuid, char mark[UPROF_STORE_UUID_BYTES]);

/**
 * uprof_store_read: reads one file of an item
 * @stem, @ending: together the name of the file
 * @bytes_max: limit of its size
 *
 * Returns: (transfer full) (nullable): its content; %NULL with %UPROF_ERROR_NO_FILE if there is
 *   no such file, %UPROF_ERROR_BAD_DATA if it is too large, or %UPROF_ERROR_FAILED
 */
GByteArray *uprof_store_read(const UprofStoreFolder *folder, const char *stem, const char *ending,
                             size_t bytes_max, GError **error);

/** uprof_store_open_file: Returns: a descriptor to read from; -1 with errno */
int uprof_store_open_file(const UprofStoreFolder *folder, const char *stem, const char *ending);

/**
 * uprof_store_remove: removes all files of an item, the commit mark first
 *
 * Returns: false with %UPROF_ERROR_FAILED
 */
bool uprof_store_remove(const UprofStoreFolder *folder, const char *stem, GError **error);

/** uprof_store_has: the file exists now */
bool uprof_store_has(const UprofStoreFolder *folder, const char *stem, const char *ending);

/**
 * uprof_store_new_file: opens a new file of an item
 *
 * Returns: (transfer full) (nullable): uprof_file_commit() gives it its name; %NULL with an error
 */
UprofFile *uprof_store_new_file(const UprofStoreFolder *folder, const char *stem,
                                const char *ending, GError **error);

/**
 * uprof_store_write: writes a file of an item, and replaces the file that has its name
 *
 * The file is complete or does not exist: see file.h.
 */
bool uprof_store_write(const UprofStoreFolder *folder, const char *stem, const char *ending,
                       UprofSlice bytes, GError **error);

/** uprof_store_rename: renames a file of an item, and replaces the file that has the new name */
bool uprof_store_rename(const UprofStoreFolder *folder, const char *stem, const char *from,
                        const char *to, GError **error);

/**
 * uprof_store_remove_one: removes a file of an item, if the file exists
 *
 * Returns: false with %UPROF_ERROR_FAILED
 */
bool uprof_store_remove_one(const UprofStoreFolder *folder, const char *stem, const char *ending,
                            GError **error);

/** UprofStoreAccess: functions by which those above reach the files of a folder */
typedef struct {
    /* Returns: a descriptor to read from; -1 with errno */
    int (*open)(const UprofStoreFolder *folder, const char *stem, const char *ending);
    bool (*has)(const UprofStoreFolder *folder, const char *stem, const char *ending);
    bool (*write)(const UprofStoreFolder *folder, const char *stem, const char *ending,
                  UprofSlice bytes, GError **error);
    bool (*rename)(const UprofStoreFolder *folder, const char *stem, const char *from,
                   const char *to, GError **error);
    bool (*remove_one)(const UprofStoreFolder *folder, const char *stem, const char *ending,
                       GError **error);
} UprofStoreAccess;

/**
 * uprof_store_set_access: replaces the access to files, in a process that cannot open files itself
 * @access: borrowed; for all folders from now on
 */
void uprof_store_set_access(const UprofStoreAccess *access);

/**
 * uprof_store_may_have: can a file of this name belong to @folder?
 * @stem, @ending: any text
 * @day_s: (out): start of the day to which the file belongs; -1: it belongs to a slice
 */
bool uprof_store_may_have(const UprofStoreFolder *folder, const char *stem, const char *ending,
                          int64_t *day_s);

/**
 * uprof_store_remove_if_empty: removes the folder if it has no file
 *
 * First syncs earlier removals from this folder to disk.
 */
void uprof_store_remove_if_empty(UprofStore *store, const UprofStoreFolder *folder);
