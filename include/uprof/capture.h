/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture.h - the capture file: all that the analysis reads of a guest
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
 * Readers skip records of unknown types. A file that ends inside a record, or without END,
 * comes from a run that was killed; its complete records are valid. Types:
 *
 *   1 RUN       text, lines "key=value": members of UprofRun (run-facts.h) that are known at
 *               the start. First record. A line end inside a value becomes '?'.
 *   2 IMAGE     text, lines "label=", "path=", "build_id=", "digest=": a symbol file of the
 *               run. Images stand in the order in which symbols are looked up.
 *   3 SNAPSHOT  u64 time_ns, hold, hold_ns, stopped_ns; u32 vcpu, weight, reset;
 *               u8 grain, idle, stale, n_windows; u8 word_bytes, privilege,
 *               halted, smm; u64 pc, sp, fp, flags; u8 n_sys, n_regs, u16 0;
 *               u64 sys[n_sys], reg[n_regs]; then for each window u64 gva, u32 len
 *               and the bytes.
 *   4 PAGE      u64 gpa (a multiple of 4096), then 4096 bytes, or none if the guest has no
 *               memory there: a page that the analysis of the previous snapshot read. Pages
 *               behind the last snapshot are of the guest's tasks and its log, too. A page that
 *               has not changed since its last record has no new one.
 *   5 END       text, like RUN: members that are known only after the run. If a member is in
 *               RUN, too, the value in END counts.
 *   6 REST      u64 time_ns; u32 vcpu, weight, count, reset; u8 grain, idle; u16 0:
 *               a vCPU has not run since its previous snapshot, so nothing was read. The
 *               record stands for @count ticks from @time_ns on.
 *   7 PRIME     like SNAPSHOT, without windows: not a sample, but registers from which the
 *               analysis detected the guest's kernel. Stands before the first SNAPSHOT.
 *   8 TASKS     a part of the list of the guest's tasks, which task-record.h describes. Parts stand
 *               one behind another, behind the last PAGE.
 *
 * A capture holds stack memory of the guest, which may contain secrets, so its file has mode
 * 0600.
 */
#pragma once

#include "uprof/run-facts.h"
#include "uprof/snapshot.h"

#define UPROF_CAPTURE_MAGIC "UPROFCAP"

enum {
    UPROF_CAPTURE_VERSION = 1,
    UPROF_CAPTURE_PAGE_BYTES = 4096,
    UPROF_CAPTURE_TEXT_BYTES_MAX = 64 * 1024,
    UPROF_CAPTURE_IMAGES_MAX = 1024,
    UPROF_CAPTURE_TASKS_BYTES_MAX = 32 * 1024 * 1024, /* of all parts */
    UPROF_CAPTURE_VALUE_BYTES_MAX = 4 * 1024, /* longer values are cut; RUN has only shorter ones */
};

typedef enum {
    UPROF_CAPTURE_RUN = 1,
    UPROF_CAPTURE_IMAGE,
    UPROF_CAPTURE_SNAPSHOT,
    UPROF_CAPTURE_PAGE,
    UPROF_CAPTURE_END,
    UPROF_CAPTURE_REST,
    UPROF_CAPTURE_PRIME,
    UPROF_CAPTURE_TASKS,
} UprofCaptureType;

/**
 * uprof_capture_format_run: appends the text of a RUN or an END
 * @text: (inout): see uprof_capture_parse_run()
 */
void uprof_capture_format_run(const UprofRun *run, UprofRunWhen when, GByteArray *text);

/** UprofWriter: appends records to a capture. Not for use while a guest is held. */
typedef struct _UprofWriter UprofWriter;

/**
 * uprof_writer_new:
 * @fd: borrowed: an empty file that is open for writing
 *
 * The first record writes the header, too.
 */
UprofWriter *uprof_writer_new(int fd);
void uprof_writer_free(UprofWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWriter, uprof_writer_free)

/*
 * uprof_writer_run .. uprof_writer_end: append one record each. uprof_writer_snapshot()
 * appends a REST if the snapshot is @same, and a PRIME if the snapshot is @is_prime.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the file cannot be written; every later call
 * then fails in the same way.
 */
bool uprof_writer_run(UprofWriter *writer, const UprofRun *run, GError **error);
bool uprof_writer_image(UprofWriter *writer, const UprofRunImage *image, GError **error);
bool uprof_writer_snapshot(UprofWriter *writer, const UprofSnapshot *snapshot, GError **error);
bool uprof_writer_page(UprofWriter *writer, uint64_t gpa, const void *page, GError **error);
/** uprof_writer_tasks: appends a record for each part; see uprof_task_record_make() */
bool uprof_writer_tasks(UprofWriter *writer, UprofSlice tasks, GError **error);
bool uprof_writer_end(UprofWriter *writer, const UprofRun *run, GError **error);

/** uprof_writer_flush: writes all buffered records to the file */
bool uprof_writer_flush(UprofWriter *writer, GError **error);
