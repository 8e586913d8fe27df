/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-log.h - the log of a Linux guest's kernel, as dmesg prints it in the guest
 *
 * The log is read out of the guest's memory, so it can also be read if the guest hangs or has
 * crashed.
 */
#pragma once

#include "uprof/linux.h"
#include "uprof/printk-ring.h"

/** UprofKernelLog: a copy of the log */
typedef struct _UprofKernelLog UprofKernelLog;

/**
 * uprof_kernel_log_read:
 * @kernel: was found
 * @mem: the worker's
 *
 * Reads the log while the guest runs, without a hold. Needs memory for the rings, a second copy of
 * the descriptors and the records: 1 MiB for the usual log of 128 KiB, 145 MiB at most.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED if the kernel has no
 * such log or no type information; with %UPROF_ERROR_BAD_DATA if the guest's memory contradicts
 * itself
 */
UprofKernelLog *uprof_kernel_log_read(const UprofLinux *kernel, UprofMem *mem, GError **error);
void uprof_kernel_log_free(UprofKernelLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofKernelLog, uprof_kernel_log_free)

/** uprof_kernel_log_records: Returns: array of UprofPrintkRecord, by sequence; borrowed */
const GArray *uprof_kernel_log_records(const UprofKernelLog *log);

/**
 * uprof_kernel_log_append_text: appends the log as dmesg prints it
 * @out: gets clean text
 * @most: bytes: the oldest records that do not fit are left out
 *
 * Each line of a record has the record's time, in seconds. A line in brackets says how many records
 * the kernel has overwritten before the first one, and where others are missing: they were being
 * written or overwritten when the log was read.
 *
 * Returns: number of records that are left out
 */
unsigned uprof_kernel_log_append_text(GString *out, const UprofKernelLog *log, size_t most);

/**
 * uprof_kernel_log_append_json: appends an array with an object for each record, and a line end
 * @most: likewise
 *
 * Returns: number of records that are left out
 */
unsigned uprof_kernel_log_append_json(GString *out, const UprofKernelLog *log, size_t most);

/** UprofKernelTrouble: a record that tells of a crash, a hang or a lack of memory */
typedef struct {
    const UprofPrintkRecord *record; /* borrowed from the log */
    const char *what;                /* it tells of, for a message; literal */
    uint64_t age_ns;                 /* the newest record came so much later */
    bool is_old;                     /* by more than an hour: the guest has gone on */
} UprofKernelTrouble;

/**
 * uprof_kernel_log_find_trouble: finds the newest such record
 * @trouble: (out): undefined if there is none
 *
 * Only records of the kernel itself count: programs in the guest can write anything into its log.
 *
 * Returns: true if there is one
 */
bool uprof_kernel_log_find_trouble(const UprofKernelLog *log, UprofKernelTrouble *trouble);
