/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-symbols.h - copies the programs and libraries of a Linux guest out of its disks
 *
 * The files are found while a session is open. They are copied after its end, because that takes
 * minutes.
 */
#pragma once

#include "uprof/session.h"

/** UprofDiskSymbols: the wanted files of a domain, and its disks */
typedef struct _UprofDiskSymbols UprofDiskSymbols;

/**
 * uprof_disk_symbols_find: samples the guest for some seconds
 * @session: prepared with a worker
 * @call: number of uprof_mapped_files_make() in the plan of the workers
 * @code: (out): the result; NONE also if no file is wanted
 *
 * Returns: (transfer full) (nullable): %NULL after a notice with the reason
 */
UprofDiskSymbols *uprof_disk_symbols_find(UprofSession *session, unsigned call,
                                          const UprofNotices *notices, UprofErrorCode *code);
void uprof_disk_symbols_free(UprofDiskSymbols *symbols);

/** uprof_disk_symbols_copy: copies the files into the symbol cache, with a notice of the result */
UprofErrorCode
uprof_disk_symbols_copy(const UprofDiskSymbols *symbols, const UprofNotices *notices);
