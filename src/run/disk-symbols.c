/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/disk-symbols.h"

#include "session-priv.h"
#include "uprof/clock.h"
#include "uprof/disk-copy.h"
#include "uprof/mapped-files.h"
#include "uprof/number-text.h"
#include "uprof/session-snapshots.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

enum {
    SAMPLES = 200,        /* of each vCPU */
    APART_US = 25 * 1000, /* at least, so that the guest is held rarely */
    SHOWN_MAX = 10,       /* files of which the failure is said */
};

#define TIME_NS (20 * UPROF_NS_PER_S)

struct _UprofDiskSymbols {
    char *uuid;         /* owned */
    char *shown;        /* the domain's name, safe to print */
    GPtrArray *formats; /* of char: of each disk; owned */
    GPtrArray *paths;   /* of char: of each disk; owned */
    GPtrArray *files;   /* of UprofMappedFile; owned */
};

/* ---- Wanted files ---- */

/* The rest keeps the holds within the budget of a run. It ends at @until_ns, or by a signal. */
static void
rest_after_sample(const UprofSession *session, const UprofSnapshots *snapshots, uint64_t until_ns)
{
    uint64_t hold_ns = 0;

    for (unsigned i = 0; i < snapshots->n; i++)
        hold_ns = MAX(hold_ns, snapshots->slots[i]->hold_ns);
    const uint64_t rest_ns = hold_ns / 1000 * UPROF_NS_PER_S / uprof_session_budget_ppm(session);
    const uint64_t end_ns = MIN(uprof_clock_now_ns() + rest_ns, until_ns);
    do
        g_usleep(APART_US);
    while (uprof_clock_now_ns() < end_ns && !uprof_signal_end_is_pending());
}

/* A hold that comes too late, or that somebody else's pause prevents, only costs its sample. */
static UprofErrorCode
take_samples(UprofSession *session, UprofSnapshots *snapshots, const UprofNotices *notices)
{
    const uint64_t until_ns = uprof_clock_now_ns() + TIME_NS;
    UprofAnswer answer = UPROF_OK;
    unsigned n_taken = 0;
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < SAMPLES && uprof_clock_now_ns() < until_ns; i++) {
        g_clear_error(&error);
        answer =
            uprof_sampler_sample_once(session->sampler, snapshots->slots, &snapshots->n, &error);
        for (unsigned j = 0; answer == UPROF_OK && j < snapshots->n; j++)
            n_taken += uprof_worker_take(session->worker, snapshots->slots[j]);
        if (session->guest->paused || uprof_signal_end_is_pending() ||
            (answer != UPROF_OK && answer != UPROF_STUCK && answer != UPROF_BUSY))
            break;
        rest_after_sample(session, snapshots, until_ns);
    }
    /* the files that were seen before a failure can still be copied */
    return n_taken > 0 ? UPROF_ERROR_NONE
                       : uprof_session_note_answer(session, answer, error, notices);
}

static UprofErrorCode
sample_linux(UprofSession *session, const UprofNotices *notices)
{
    g_auto(UprofSnapshots) snapshots;
    const UprofErrorCode code = uprof_session_find_linux(session, &snapshots, notices);

    if (code != UPROF_ERROR_NONE)
        return code;
    if (*uprof_worker_links(session->worker))
        return take_samples(session, &snapshots, notices);
    uprof_notice(notices, UPROF_NOTICE_WARNING,
                 "%s: this command copies files of Linux guests, and no Linux kernel was found",
                 session->shown);
    return UPROF_ERROR_UNSUPPORTED;
}

/* Sampling is in vain if the disks cannot be read from here. */
static UprofErrorCode
check_disks(const UprofSession *session, const UprofNotices *notices)
{
    const GPtrArray *disks = session->domain->xml->disks;
    const char *why = NULL;

    if (!session->domain->is_local)
        why = "the connection is remote: run this command on the domain's host";
    else if (!disks || disks->len == 0)
        why = "libvirt names no disk that is a file or a device of this host";
    if (!why)
        return UPROF_ERROR_NONE;
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", session->shown, why);
    return UPROF_ERROR_UNSUPPORTED;
}

static GPtrArray *
list_files(UprofSession *session, unsigned call, const UprofNotices *notices, UprofErrorCode *code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = NULL;

    *code = check_disks(session, notices);
    if (*code == UPROF_ERROR_NONE)
        *code = sample_linux(session, notices);
    if (*code != UPROF_ERROR_NONE)
        return NULL;
    GPtrArray *files =
        uprof_worker_call(session->worker, call, (UprofSlice){ NULL, 0 }, &reply, &error)
            ? uprof_mapped_files_read((UprofSlice){ reply->data, reply->len })
            : NULL;
    if (files)
        return files;
    *code = UPROF_ERROR_FAILED;
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", session->shown,
                 error ? error->message : "the worker has sent a malformed list of files");
    return NULL;
}

static void
copy_disks(UprofDiskSymbols *symbols, const GPtrArray *disks)
{
    for (guint i = 0; disks && i < MIN(disks->len, (guint)UPROF_DISKS_MAX); i++) {
        const UprofDomainDisk *disk = g_ptr_array_index(disks, i);
        g_ptr_array_add(symbols->formats, g_strdup(disk->format));
        g_ptr_array_add(symbols->paths, g_strdup(disk->path));
    }
}

UprofDiskSymbols *
uprof_disk_symbols_find(UprofSession *session, unsigned call, const UprofNotices *notices,
                        UprofErrorCode *code)
{
    GPtrArray *files = list_files(session, call, notices, code);

    if (!files)
        return NULL;
    UprofDiskSymbols *symbols = g_new0(UprofDiskSymbols, 1);
    symbols->shown = g_strdup(session->shown);
    symbols->uuid = g_strdup(session->domain->uuid);
    symbols->formats = g_ptr_array_new_with_free_func(g_free);
    symbols->paths = g_ptr_array_new_with_free_func(g_free);
    symbols->files = files;
    copy_disks(symbols, session->domain->xml->disks);
    return symbols;
}

void
uprof_disk_symbols_free(UprofDiskSymbols *symbols)
{
    if (!symbols)
        return;
    g_free(symbols->shown);
    g_free(symbols->uuid);
    g_ptr_array_unref(symbols->formats);
    g_ptr_array_unref(symbols->paths);
    g_ptr_array_unref(symbols->files);
    g_free(symbols);
}

/* ---- Copies ---- */

/* The results of the files. */
typedef struct {
    unsigned n[UPROF_DISK_LOST + 1]; /* by UprofDiskAnswer */
    uint64_t bytes;
    unsigned n_shown;
} Copied;

static void
say_failure(const UprofDiskSymbols *symbols, const UprofMappedFile *file, UprofDiskAnswer answer,
            const char *why, const UprofNotices *notices)
{
    static const char *const reasons[] = {
        [UPROF_DISK_MISSING] = "is not on its disks",
        [UPROF_DISK_CHANGED] =
            "is another build on its disks: the guest runs an older one, or one of a "
            "container",
        [UPROF_DISK_FAILED] = "cannot be copied",
        [UPROF_DISK_LOST] = "cannot be copied",
    };
    g_autofree char *path = uprof_text_quote(file->path);

    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: '%s' %s%s%s", symbols->shown, path,
                 reasons[answer], why ? ": " : "", why ? why : "");
}

static void
copy_file(UprofDiskCopy *copy, const UprofDiskSymbols *symbols, const UprofMappedFile *file,
          Copied *copied, const UprofNotices *notices)
{
    g_autofree char *why = NULL;
    const UprofDiskAnswer answer =
        uprof_disk_copy_file(copy, file->path, file->build_id, &copied->bytes, &why);

    copied->n[answer]++;
    if (answer != UPROF_DISK_COPIED && copied->n_shown++ < SHOWN_MAX)
        say_failure(symbols, file, answer, why, notices);
}

static UprofErrorCode
say_copied(const UprofDiskSymbols *symbols, const Copied *copied, const UprofNotices *notices)
{
    const unsigned n = copied->n[UPROF_DISK_COPIED], n_failed = symbols->files->len - n;
    g_autofree char *bytes = uprof_format_bytes(copied->bytes);
    g_autofree char *failed =
        n_failed > 0 ? g_strdup_printf(", %u not copied", n_failed) : g_strdup("");

    uprof_notice(notices, UPROF_NOTICE_INFO, "%s: %u file%s copied from its disks (%s)%s",
                 symbols->shown, n, n == 1 ? "" : "s", bytes, failed);
    if (copied->n[UPROF_DISK_FAILED] + copied->n[UPROF_DISK_LOST] > 0)
        return UPROF_ERROR_FAILED;
    return n > 0 ? UPROF_ERROR_NONE : UPROF_ERROR_EMPTY;
}

UprofErrorCode
uprof_disk_symbols_copy(const UprofDiskSymbols *symbols, const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *warning = NULL;
    Copied copied = { { 0 } };

    if (symbols->files->len == 0) {
        uprof_notice(notices, UPROF_NOTICE_INFO,
                     "%s: nothing to copy: this host has every file whose code was seen",
                     symbols->shown);
        return UPROF_ERROR_NONE;
    }
    uprof_notice(notices, UPROF_NOTICE_INFO, "%s: looking for %u files on its disks",
                 symbols->shown, symbols->files->len);
    g_autoptr(UprofDiskCopy) copy = uprof_disk_copy_new(
        symbols->uuid, (const char *const *)symbols->formats->pdata,
        (const char *const *)symbols->paths->pdata, symbols->paths->len, &warning, &error);
    if (warning)
        uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", symbols->shown, warning);
    if (!copy) {
        g_prefix_error(&error, "%s: ", symbols->shown);
        return uprof_notice_error(notices, error);
    }
    for (guint i = 0; i < symbols->files->len && copied.n[UPROF_DISK_LOST] == 0; i++)
        copy_file(copy, symbols, g_ptr_array_index(symbols->files, i), &copied, notices);
    return say_copied(symbols, &copied, notices);
}
