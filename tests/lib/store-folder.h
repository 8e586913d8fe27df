/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * store-folder.h - a store of profiles in a temporary folder, for tests
 */
#pragma once

#include "uprof/notice.h"
#include "uprof/store.h"

#define WEB_UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
#define DB_UUID "00000000-0000-4000-8000-000000000002"

enum { FRIDAY_S = 1795132800 }; /* 2026-11-20T00:00:00Z */

/** StoreFolder: a store, and the notices that were sent */
typedef struct {
    char *top;         /* owned; the folder of the store */
    UprofStore *store; /* owned */
    GString *warnings; /* owned; one warning in each line */
    UprofNotices notices;
} StoreFolder;

void store_folder_init(StoreFolder *folder);

/** store_folder_clear: removes the folder and its content */
void store_folder_clear(StoreFolder *folder);

/** store_folder_put_slice: @stacks: folded stacks of one round, with the domain as first frame */
void store_folder_put_slice(StoreFolder *folder, const char *name, const char *uuid,
                            int64_t start_s, const char *stacks);

/** store_folder_put: writes @text to the file @path, relative to @top */
void store_folder_put(StoreFolder *folder, const char *path, const char *text);

/** store_folder_has: Returns: true if the file @path, relative to @top, exists */
bool store_folder_has(const StoreFolder *folder, const char *path);
