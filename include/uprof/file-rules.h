/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-rules.h - the files that a worker may read
 *
 * A worker opens nothing itself (confine.h). It asks the program, which opens a file only by the
 * rules below. The content of a file cannot add a rule.
 *
 *   input          a file that the user named as input; a device or a pipe is allowed
 *   symbol file    a file that the user, the domain or its metadata named; also the files beside it
 *                  and in the folder `.debug` beside it, where debug files are. If root runs the
 *                  program, links in these folders are not followed, because a tenant may own the
 *                  folders.
 *   debug folder   everything below it; the host's administrator fills it
 *   symbol cache   the same (symbol-cache.h)
 *   sysroot        everything below it; no link leads out of it
 *   system folder  what begins like a symbol file below /usr, /lib, /lib64, /bin and /sbin, because
 * a guest may run the host's distribution
 */
#pragma once

#include "uprof/symbol-settings.h"

typedef struct _UprofFileRules UprofFileRules;

UprofFileRules *uprof_file_rules_new(void);
void uprof_file_rules_free(UprofFileRules *rules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFileRules, uprof_file_rules_free)

/** uprof_file_rules_add_input: allows one file of any kind */
void uprof_file_rules_add_input(UprofFileRules *rules, const char *path);

/** uprof_file_rules_add_symbols: allows a symbol file, and its debug files beside it */
void uprof_file_rules_add_symbols(UprofFileRules *rules, const char *path);

/** uprof_file_rules_add_settings: allows the files and the folders of the command line */
void uprof_file_rules_add_settings(UprofFileRules *rules, const UprofSymbolSettings *settings);

/**
 * uprof_file_rules_add_folder: allows regular files below @folder, without links
 * @folder: from the configuration, in which root allows it for symbol files that metadata names
 */
void uprof_file_rules_add_folder(UprofFileRules *rules, const char *folder);

/**
 * uprof_file_rules_set_domain: of the files that were copied out of disks, only those of this
 * domain may be read; without this call, those of all domains
 * @uuid: of the domain; if it is not a UUID, none may be read
 */
void uprof_file_rules_set_domain(UprofFileRules *rules, const char *uuid);

/**
 * uprof_file_rules_allow_recorded: allows each regular file that begins like a symbol file
 *
 * A capture names the symbol files of its run by their paths.
 */
void uprof_file_rules_allow_recorded(UprofFileRules *rules);
