/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kept-file-priv.h - the file of a domain in which a run leaves rules for the next run
 *
 *   CACHE/domains/UUID/rules    see rule-list.h and symbol-cache.h
 *
 * A worker opens no file. The program copies the file into memory that it shares with the worker,
 * and copies what the worker has written there into the file. The program does not parse it. The
 * file belongs to one domain, because a guest may have taken over the worker that has written it.
 * The folder must belong to the user of the program, or to root, and others must not write to it.
 */
#pragma once

#include "uprof/bytes.h"

/**
 * uprof_kept_file_open:
 * @uuid: (nullable): of the domain
 *
 * Returns: a descriptor of the memory, with the content of the file if there is one; -1 if nothing
 *   is kept for this domain, because the folder of the cache is missing
 */
int uprof_kept_file_open(const char *uuid);

/**
 * uprof_kept_file_save: replaces the file by what a worker has written
 * @fd: of uprof_kept_file_open()
 *
 * Failures are ignored, because the file only saves time. If the domain is new, files of other
 * domains that no run has written for 30 days are deleted.
 */
void uprof_kept_file_save(int fd, const char *uuid);

/** uprof_kept_file_forget: deletes the file, because a worker that has read it has died */
void uprof_kept_file_forget(const char *uuid);

/**
 * uprof_kept_file_read: in both processes
 * @fd: from uprof_kept_file_open()
 *
 * Returns: (transfer full) (nullable): the list; %NULL if there is none
 */
GByteArray *uprof_kept_file_read(int fd);

/** uprof_kept_file_clear: in a worker: nothing will be saved, unless a list is written later */
void uprof_kept_file_clear(int fd);

/** uprof_kept_file_write: in a worker; @list: at most %UPROF_RULE_LIST_BYTES_MAX bytes */
void uprof_kept_file_write(int fd, const GByteArray *list);
