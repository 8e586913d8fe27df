/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * intern.h - clean names, each stored once and compared by pointer
 *
 * UprofName has a type of its own so that raw bytes cannot be printed by mistake: all
 * functions that make a name from foreign bytes clean them.
 */
#pragma once

#include "uprof/bytes.h"

/** UprofName: a clean text (see text.h), owned by its table */
typedef struct _UprofName UprofName;

/** UprofNames: a table of names. Only one thread may use it at a time. */
typedef struct _UprofNames UprofNames;

UprofNames *uprof_names_new(void);
void uprof_names_free(UprofNames *names);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofNames, uprof_names_free)

/**
 * uprof_names_limit: bounds the memory of the table
 * @max: names; each further name becomes "[unknown]"
 *
 * Without a limit, a guest without symbols could create a name for every address.
 */
void uprof_names_limit(UprofNames *names, size_t max);

/**
 * uprof_names_intern:
 * @raw: any bytes, which uprof_text_clean() cleans
 *
 * Returns: (transfer none): the name, valid as long as @names; equal names are the same pointer
 */
const UprofName *uprof_names_intern(UprofNames *names, UprofSlice raw);

/**
 * uprof_names_marker: interns a text without cleaning it
 * @marker: written by virt-uprof itself, such as "[idle]" or a hexadecimal address; never text
 *   from outside
 */
const UprofName *uprof_names_marker(UprofNames *names, const char *marker);

/**
 * uprof_names_read_back: interns a frame of a file that virt-uprof may have written
 * @raw: any bytes
 *
 * Cleans like uprof_names_intern(), but keeps what virt-uprof adds to names: "[idle]",
 * "[truncated]", "[unknown]", "[image+0x1a2b]", and "_[k]" or "_[i]" at the end.
 */
const UprofName *uprof_names_read_back(UprofNames *names, UprofSlice raw);

/** uprof_names_copy: interns a name of another table, with its module and its source */
const UprofName *uprof_names_copy(UprofNames *names, const UprofName *name);

/** uprof_name_text: Returns: (transfer none): the text, NUL-terminated */
const char *uprof_name_text(const UprofName *name);

/**
 * uprof_name_add_module: notes that a module has a function of this name
 * @module: (nullable): such as "libc.so.6", of the same table; %NULL: something that is in no
 *   module has the name, such as a process
 */
void uprof_name_add_module(const UprofName *name, const UprofName *module);

/**
 * uprof_name_module: Returns: (nullable) (transfer none): the module of a function; %NULL if it is
 * not known, or if the name is not of this module alone
 */
const UprofName *uprof_name_module(const UprofName *name);

/** UprofNameSource: where a function begins in the source */
typedef struct {
    const UprofName *file; /* (nullable): path, as the compiler was given it; of the same table */
    uint32_t line;         /* 0: not known */
} UprofNameSource;

/**
 * uprof_name_add_source: notes where a function of this name begins
 * @source: without a file, it is ignored
 */
void uprof_name_add_source(const UprofName *name, UprofNameSource source);

/**
 * uprof_name_source: Returns: where the function begins; no file if that is not known, or if
 * several functions have the name
 */
UprofNameSource uprof_name_source(const UprofName *name);
