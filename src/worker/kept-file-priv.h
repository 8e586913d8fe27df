/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kept-file-priv.h - the file of a domain in which a run leaves rules for the next run
 *
 *   CACHE/domains/UUID/rules    see rule-list.h and symbol-cache.h
 *
 * A worker opens no file. The program copies the file into memory that it shares with the worker,
 * and copies what the worker has written there into the file. The program does not parse it. The
 * file belongs to one domain, because a guest may have taken over the worker that has written it.
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

/** uprof_kept_file_save: replaces the file by what a worker has written; @fd: of
 * uprof_kept_file_open(); failures are ignored, because the file only saves time */
void uprof_kept_file_save(int fd, const char *uuid);

/**
 * uprof_kept_file_read: in a worker
 * @fd: from uprof_kept_file_open()
 *
 * Returns: (transfer full) (nullable): the list; %NULL if there is none
 */
GByteArray *uprof_kept_file_read(int fd);

/** uprof_kept_file_write: in a worker; @list: at most %UPROF_RULE_LIST_BYTES_MAX bytes */
void uprof_kept_file_write(int fd, const GByteArray *list);
