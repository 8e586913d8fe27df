/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/backend.h"

#include "uprof/capture-reader.h"
#include "uprof/text.h"

#include <string.h>

typedef struct {
    UprofGuest base;
    GMappedFile *file; /* owned */
    char *name;        /* owned: of the file, safe to print */
    UprofBytes bytes;  /* of the file, behind the last record that was read */
    UprofRun *run;     /* owned */
    bool is_complete;
    GHashTable *pages; /* gpa -> UprofSlice: the page as it was last read */
} ReplayGuest;

static ReplayGuest *
as_replay(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &uprof_replay_ops);
    return (ReplayGuest *)guest;
}

static void
replay_close(UprofGuest *guest)
{
    ReplayGuest *replay = as_replay(guest);

    g_clear_pointer(&replay->file, g_mapped_file_unref);
    g_clear_pointer(&replay->pages, g_hash_table_unref);
    uprof_run_free(replay->run);
    g_free(replay->name);
    g_free(replay);
}

/* The file has facts of the run at its beginning and its end, so all records are visited. */
static bool
read_facts(ReplayGuest *replay, GError **error)
{
    UprofBytes bytes = replay->bytes;
    UprofCaptureRecord record;
    bool ok = true, has_run = false;

    while (ok && uprof_capture_next(&bytes, &record)) {
        if (record.type == UPROF_CAPTURE_RUN || record.type == UPROF_CAPTURE_END)
            ok = uprof_capture_parse_run(record.body, replay->run, error);
        else if (record.type == UPROF_CAPTURE_IMAGE)
            ok = uprof_capture_parse_image(record.body, replay->run, error);
        has_run |= record.type == UPROF_CAPTURE_RUN;
    }
    if (ok && !has_run)
        return uprof_bytes_fail(&replay->bytes, error, "no run is described here");
    return ok;
}

static bool
load_capture(ReplayGuest *replay, const char *path, GError **error)
{
    g_autoptr(GError) failure = NULL;

    replay->file = g_mapped_file_new(path, FALSE, &failure);
    if (!replay->file) {
        g_autofree char *words = uprof_text_quote(failure->message);
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s", words);
        return false;
    }
    replay->bytes = (UprofBytes){
        .name = replay->name,
        .all = { g_mapped_file_get_contents(replay->file), g_mapped_file_get_length(replay->file) },
    };
    if (!uprof_capture_begin(&replay->bytes, error) || !read_facts(replay, error))
        return false;
    replay->is_complete = replay->run->ended_by != NULL;
    if (!replay->is_complete)
        replay->run->ended_by = g_strdup("error");
    replay->base.arch = uprof_arch_find(replay->run->arch ? replay->run->arch : "");
    if (!replay->base.arch) {
        g_autofree char *arch = uprof_text_quote(replay->run->arch);
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "'%s' is of architecture '%s', which this program does not know", replay->name,
                    arch);
        return false;
    }
    if (replay->run->vcpus == 0 || replay->run->vcpus > UPROF_VCPUS_MAX)
        return uprof_bytes_fail(&replay->bytes, error, "a guest of %" G_GUINT64_FORMAT " vCPUs",
                                replay->run->vcpus);
    replay->base.n_vcpus = (unsigned)replay->run->vcpus;
    return true;
}

static UprofGuest *
replay_open(const UprofTarget *target, GError **error)
{
    ReplayGuest *replay = g_new0(ReplayGuest, 1);

    replay->name = uprof_text_quote(target->path);
    replay->run = uprof_run_new();
    replay->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    replay->base.grain = UPROF_GRAIN_NONE;
    if (!load_capture(replay, target->path, error)) {
        replay_close(&replay->base);
        return NULL;
    }
    return &replay->base;
}

static bool
take_page(ReplayGuest *replay, UprofSlice body, GError **error)
{
    UprofSlice page;
    uint64_t gpa;

    if (!uprof_capture_parse_page(body, &gpa, &page, error))
        return false;
    g_hash_table_replace(replay->pages, g_memdup2(&gpa, sizeof(gpa)),
                         g_memdup2(&page, sizeof(page)));
    return true;
}

static UprofAnswer
replay_next(UprofGuest *guest, UprofSnapshot *snapshot, GError **error)
{
    ReplayGuest *replay = as_replay(guest);
    UprofCaptureRecord record;
    bool found = false;

    for (;;) {
        /* the pages behind a snapshot belong to it, so they are taken before it is returned */
        const size_t at = replay->bytes.at;
        if (!uprof_capture_next(&replay->bytes, &record))
            return found ? UPROF_OK : UPROF_GONE;
        if (record.type == UPROF_CAPTURE_PAGE && !take_page(replay, record.body, error))
            return UPROF_FAILED;
        if (record.type != UPROF_CAPTURE_SNAPSHOT && record.type != UPROF_CAPTURE_REST &&
            record.type != UPROF_CAPTURE_PRIME)
            continue;
        if (found) {
            uprof_bytes_seek(&replay->bytes, at);
            return UPROF_OK;
        }
        found = record.type == UPROF_CAPTURE_REST
                    ? uprof_capture_parse_rest(record.body, snapshot, error)
                    : uprof_capture_parse_snapshot(record.body, snapshot, error);
        if (!found)
            return UPROF_FAILED;
        snapshot->is_prime = record.type == UPROF_CAPTURE_PRIME;
    }
}

static void
replay_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    ReplayGuest *replay = as_replay(guest);

    for (unsigned i = 0; i < n; i++) {
        const uint64_t offset = spans[i].gpa % UPROF_CAPTURE_PAGE_BYTES;
        const uint64_t gpa = spans[i].gpa - offset;
        const UprofSlice *page = g_hash_table_lookup(replay->pages, &gpa);
        UprofSlice part;
        spans[i].missing = !page || !uprof_slice_sub(*page, offset, spans[i].len, &part);
        if (!spans[i].missing)
            memcpy(spans[i].into, part.data, part.len);
    }
}

UprofRun *
uprof_replay_run(UprofGuest *guest)
{
    return as_replay(guest)->run;
}

bool
uprof_replay_is_complete(UprofGuest *guest)
{
    return as_replay(guest)->is_complete;
}

const UprofGuestOps uprof_replay_ops = {
    .name = "replay",
    .open = replay_open,
    .close = replay_close,
    .next = replay_next,
    .read = replay_read,
};
