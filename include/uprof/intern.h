/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * intern.h - clean names, stored once and compared by pointer
 *
 * UprofName is a type of its own so that raw bytes cannot be printed where a
 * name is due: the only ways to get one clean what they are given.
 */
#pragma once

#include "uprof/bytes.h"

/** UprofName: a clean text (see text.h), owned by its table */
typedef struct _UprofName UprofName;
typedef struct _UprofNames UprofNames;

UprofNames *uprof_names_new(void);
void uprof_names_free(UprofNames *names);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofNames, uprof_names_free)

/**
 * uprof_names_limit:
 * @max: how many names there may be; what would be one more is "[unknown]" from
 *   then on
 *
 * A guest without symbols can make up a new address for every frame.
 */
void uprof_names_limit(UprofNames *names, size_t max);

/**
 * uprof_names_intern:
 * @raw: any bytes
 *
 * Cleans @raw by uprof_text_clean().
 *
 * Returns: the name; equal names are the same pointer, valid as long as @names
 */
const UprofName *uprof_names_intern(UprofNames *names, UprofSlice raw);

/**
 * uprof_names_marker:
 * @marker: a literal of ours, such as "[idle]" or a hexadecimal address;
 *   taken as it is, so never anything that came from outside
 */
const UprofName *uprof_names_marker(UprofNames *names, const char *marker);

/**
 * uprof_names_read_back:
 * @raw: a frame of a file that may be one of ours
 *
 * As uprof_names_intern(), but what only we add to names stays: "[idle]",
 * "[truncated]", "[unknown]", "[image+0x1a2b]", and "_[k]" or "_[i]" at the end.
 */
const UprofName *uprof_names_read_back(UprofNames *names, UprofSlice raw);

/** uprof_names_count: Returns: how many different names there are */
size_t uprof_names_count(const UprofNames *names);

/** uprof_name_text: Returns: the text, NUL-terminated */
const char *uprof_name_text(const UprofName *name);
