/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture.h - the capture file: everything that passes the narrow waist
 *
 * THE FORMAT, version 1. Numbers are little-endian.
 *
 *   header   8 bytes  "UPROFCAP"
 *            u32      version, 1
 *            u32      0
 *   records  u32      type
 *            u32      len, bytes of the body
 *            len      body
 *
 * Readers skip records of types they do not know. A file that ends inside a
 * record, or without END, is that of a run that was killed: what is whole
 * counts. Types:
 *
 *   1 RUN       text, lines "key=value": members of UprofRun (run.h) known at
 *               the start. First record. Line ends in a value are '?'.
 *   2 IMAGE     text, lines "label=", "path=", "build_id=", "digest=": a symbol
 *               file that was used. In the order in which names were looked up.
 *   3 SNAPSHOT  u64 time_ns, hold, hold_ns, stopped_ns; u32 vcpu, weight, reset;
 *               u8 grain, idle, stale, n_windows; u8 word_bytes, privilege,
 *               halted, smm; u64 pc, sp, fp, flags; u8 n_sys, n_regs, u16 0;
 *               u64 sys[n_sys], reg[n_regs]; then per window u64 gva, u32 len
 *               and the bytes.
 *   4 PAGE      u64 gpa (a multiple of 4096), then 4096 bytes, or none if there
 *               is no memory there: a page that the analysis read of the guest
 *               while it worked on the snapshot before it.
 *   5 END       text, as RUN: members known only when the run is over, and those that may
 *               be different from what RUN says; what stands here counts.
 *   6 REST      u64 time_ns; u32 vcpu, weight, count, reset; u8 grain, idle; u16 0:
 *               a vCPU that had not run since its snapshot before, so that nothing
 *               was read of it, in @count ticks from @time_ns on.
 *   7 PRIME     as SNAPSHOT, without windows: no sample, but registers by which the
 *               analysis found out what the guest is; before the first SNAPSHOT.
 *
 * A capture holds stack memory of the guest, so secrets: files are made with
 * mode 0600.
 */
#pragma once

#include "uprof/run.h"
#include "uprof/snapshot.h"

#define UPROF_CAPTURE_MAGIC "UPROFCAP"

enum {
    UPROF_CAPTURE_VERSION = 1,
    UPROF_CAPTURE_PAGE_BYTES = 4096,
    UPROF_CAPTURE_TEXT_BYTES_MAX = 64 * 1024,
    UPROF_CAPTURE_IMAGES_MAX = 1024,
    UPROF_CAPTURE_VALUE_BYTES_MAX = 4 * 1024, /* longer ones are cut; all of RUN's fit */
};

typedef enum {
    UPROF_CAPTURE_RUN = 1,
    UPROF_CAPTURE_IMAGE,
    UPROF_CAPTURE_SNAPSHOT,
    UPROF_CAPTURE_PAGE,
    UPROF_CAPTURE_END,
    UPROF_CAPTURE_REST,
    UPROF_CAPTURE_PRIME,
} UprofCaptureType;

/** UprofWriter: appends to a capture; never used while a guest is held */
typedef struct _UprofWriter UprofWriter;

/**
 * uprof_writer_new:
 * @fd: an empty file open for writing; borrowed
 *
 * Writes the header with the first record.
 */
UprofWriter *uprof_writer_new(int fd);
void uprof_writer_free(UprofWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWriter, uprof_writer_free)

/*
 * uprof_writer_run .. uprof_writer_end: append one record each; of a snapshot
 * that is @same a REST, that is @is_prime a PRIME.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the file cannot be written; every
 * later call then fails in the same way.
 */
bool uprof_writer_run(UprofWriter *writer, const UprofRun *run, GError **error);
bool uprof_writer_image(UprofWriter *writer, const UprofRunImage *image, GError **error);
bool uprof_writer_snapshot(UprofWriter *writer, const UprofSnapshot *snapshot, GError **error);
bool uprof_writer_page(UprofWriter *writer, uint64_t gpa, const void *page, GError **error);
bool uprof_writer_end(UprofWriter *writer, const UprofRun *run, GError **error);

/** uprof_writer_flush: writes out what is buffered */
bool uprof_writer_flush(UprofWriter *writer, GError **error);
