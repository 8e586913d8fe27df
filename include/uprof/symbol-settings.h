/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-settings.h - the user's symbol files, and how to read them
 */
#pragma once

#include "uprof/notice.h"
#include "uprof/sym.h"

/** UprofSymbolFile: one file of --symbols */
typedef struct {
    char *path;    /* owned */
    uint64_t base; /* the load address in the guest, if @is_moved */
    bool is_moved; /* the guest has the file at @base, and not at the address it was linked for */
} UprofSymbolFile;

/** UprofSymbolSettings: the symbol files and folders of the command line */
typedef struct {
    const GPtrArray *files; /* of UprofSymbolFile; borrowed */
    UprofSymConfig config;  /* its lists are borrowed */
} UprofSymbolSettings;

/** uprof_symbol_settings_has_any: the user gave a file or a folder with symbols, or there is a
 * cache */
bool uprof_symbol_settings_has_any(const UprofSymbolSettings *settings);

/**
 * uprof_symbol_settings_apply:
 * @sym: has no files yet
 *
 * Configures @sym and adds all files.
 *
 * Returns: false with an error that names the file
 */
bool
uprof_symbol_settings_apply(const UprofSymbolSettings *settings, UprofSym *sym, GError **error);

/** uprof_symbol_settings_apply_usable: the same, but warns of files that cannot be used */
void uprof_symbol_settings_apply_usable(const UprofSymbolSettings *settings, UprofSym *sym,
                                        const UprofNotices *notices);
