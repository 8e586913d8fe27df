/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/backend.h"

#include "uprof/text.h"

#include "capture-file-priv.h"

typedef struct {
    UprofGuest base;
    UprofCaptureFile *file; /* owned; behind the last record that was read */
    char *name;             /* owned: of the file, safe to print */
    UprofRun *run;          /* owned */
    bool is_complete;
    GHashTable *pages; /* gpa -> Page: the page as it was last read */
    GByteArray *tasks; /* owned: the list of tasks, as far as it was read */
} ReplayGuest;

typedef struct {
    uint64_t at;  /* in the file */
    uint32_t len; /* bytes: UPROF_CAPTURE_PAGE_BYTES, or 0 if the guest has no memory there */
} Page;

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

    g_clear_pointer(&replay->file, uprof_capture_file_close);
    g_clear_pointer(&replay->pages, g_hash_table_unref);
    uprof_run_free(replay->run);
    g_byte_array_unref(replay->tasks);
    g_free(replay->name);
    g_free(replay);
}

static bool
fail_capture(const ReplayGuest *replay, GError **error, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s byte %" G_GUINT64_FORMAT ": %s",
                replay->name, uprof_capture_file_tell(replay->file), why);
    return false;
}

/* The file has facts of the run at its beginning and its end, so all records are visited. */
static bool
read_facts(ReplayGuest *replay, GError **error)
{
    const uint64_t start = uprof_capture_file_tell(replay->file);
    UprofCaptureRecord record;
    g_autoptr(GError) failure = NULL;
    bool ok = true, has_run = false;

    while (ok && uprof_capture_file_next(replay->file, &record, &failure)) {
        if (record.type == UPROF_CAPTURE_RUN || record.type == UPROF_CAPTURE_END)
            ok = uprof_capture_parse_run(record.body, replay->run, error);
        else if (record.type == UPROF_CAPTURE_IMAGE)
            ok = uprof_capture_parse_image(record.body, replay->run, error);
        has_run |= record.type == UPROF_CAPTURE_RUN;
    }
    uprof_capture_file_seek(replay->file, start);
    /* the replay reports a bad record when it reaches the record */
    return ok && (has_run || fail_capture(replay, error, "no run is described here"));
}

static bool
load_capture(ReplayGuest *replay, const char *path, GError **error)
{
    replay->file = uprof_capture_file_open(path, replay->name, error);
    if (!replay->file || !read_facts(replay, error))
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
    if (replay->run->vcpus == 0 || replay->run->vcpus > UPROF_VCPUS_MAX) {
        g_autofree char *why =
            g_strdup_printf("a guest of %" G_GUINT64_FORMAT " vCPUs", replay->run->vcpus);
        return fail_capture(replay, error, why);
    }
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
    replay->tasks = g_byte_array_new();
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
    UprofSlice bytes;
    uint64_t gpa;

    if (!uprof_capture_parse_page(body, &gpa, &bytes, error))
        return false;
    const Page page = {
        .at = bytes.len > 0 ? uprof_capture_file_locate(replay->file, bytes) : 0,
        .len = (uint32_t)bytes.len,
    };
    g_hash_table_replace(replay->pages, g_memdup2(&gpa, sizeof(gpa)),
                         g_memdup2(&page, sizeof(page)));
    return true;
}

static bool
take_tasks(ReplayGuest *replay, UprofSlice part, GError **error)
{
    if (part.len > UPROF_CAPTURE_TASKS_BYTES_MAX - replay->tasks->len)
        return fail_capture(replay, error, "the list of tasks is too long");
    g_byte_array_append(replay->tasks, part.data, (guint)part.len);
    return true;
}

static UprofAnswer
replay_next(UprofGuest *guest, UprofSnapshot *snapshot, GError **error)
{
    ReplayGuest *replay = as_replay(guest);
    g_autoptr(GError) failure = NULL;
    UprofCaptureRecord record;
    bool found = false;

    for (;;) {
        /* the pages behind a snapshot belong to it, so they are taken before it is returned */
        const uint64_t at = uprof_capture_file_tell(replay->file);
        if (!uprof_capture_file_next(replay->file, &record, &failure)) {
            /* the next call fails again, and says why */
            if (found || !failure)
                return found ? UPROF_OK : UPROF_GONE;
            g_propagate_error(error, g_steal_pointer(&failure));
            return UPROF_FAILED;
        }
        if (record.type == UPROF_CAPTURE_PAGE && !take_page(replay, record.body, error))
            return UPROF_FAILED;
        if (record.type == UPROF_CAPTURE_TASKS && !take_tasks(replay, record.body, error))
            return UPROF_FAILED;
        if (record.type != UPROF_CAPTURE_SNAPSHOT && record.type != UPROF_CAPTURE_REST &&
            record.type != UPROF_CAPTURE_PRIME)
            continue;
        if (found) {
            uprof_capture_file_seek(replay->file, at);
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

/* @part: lies in one page. Returns: false if the capture does not have it */
static bool
read_part(const ReplayGuest *replay, const UprofSpan *part)
{
    const uint64_t offset = part->gpa % UPROF_CAPTURE_PAGE_BYTES;
    const uint64_t gpa = part->gpa - offset;
    const Page *page = g_hash_table_lookup(replay->pages, &gpa);

    return page && offset <= page->len && part->len <= page->len - offset &&
           uprof_capture_file_read(replay->file, page->at + offset, part->into, part->len);
}

static void
read_span(const ReplayGuest *replay, UprofSpan *span)
{
    span->missing = false;
    for (uint32_t done = 0; done < span->len && !span->missing;) {
        const uint64_t gpa = span->gpa + done;
        const uint64_t left = UPROF_CAPTURE_PAGE_BYTES - gpa % UPROF_CAPTURE_PAGE_BYTES;
        const UprofSpan part = { .gpa = gpa,
                                 .into = (uint8_t *)span->into + done,
                                 .len = (uint32_t)MIN(left, span->len - done) };
        span->missing = !read_part(replay, &part);
        done += part.len;
    }
}

static void
replay_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    const ReplayGuest *replay = as_replay(guest);

    for (unsigned i = 0; i < n; i++)
        read_span(replay, &spans[i]);
}

UprofRun *
uprof_replay_run(UprofGuest *guest)
{
    return as_replay(guest)->run;
}

UprofSlice
uprof_replay_tasks(UprofGuest *guest)
{
    const GByteArray *tasks = as_replay(guest)->tasks;

    return (UprofSlice){ tasks->data, tasks->len };
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
