/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "checkpoint-priv.h"

#include "sealed-memory-priv.h"

#include "uprof/error.h"
#include "uprof/folded-reader.h"
#include "uprof/output.h"
#include "uprof/read-all.h"
#include "uprof/sidecar.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 * 1024 };

static const char shown[] = "checkpoint";

typedef struct {
    uint64_t facts_len, stacks_len; /* bytes */
} Head;

int
uprof_checkpoint_new(GError **error)
{
    const int fd = uprof_sealed_memory_new(shown, UPROF_CHECKPOINT_BYTES_MAX);

    if (fd < 0)
        uprof_error_fail_errno(error, "no memory for checkpoints");
    return fd;
}

/* ---- Writing ---- */

/* The text is written in pieces: as a whole it could be as large as the profile. */
typedef struct {
    int fd;
    UprofSym *sym;
    uint64_t at; /* bytes that were written */
    GString *text;
    bool has_root; /* of the stacks that are written now */
    bool is_bad;
} Writing;

static void
write_text(Writing *writing)
{
    const char *text = writing->text->str;
    size_t left = writing->text->len;

    if (left > UPROF_CHECKPOINT_BYTES_MAX - writing->at)
        writing->is_bad = true;
    while (left > 0 && !writing->is_bad) {
        const ssize_t n = pwrite(writing->fd, text, left, (off_t)writing->at);
        writing->is_bad = n <= 0 && errno != EINTR;
        if (n > 0) {
            text += n;
            left -= (size_t)n;
            writing->at += (uint64_t)n;
        }
    }
    g_string_truncate(writing->text, 0);
}

/* Returns: the frame's name. The name of a site is its function, without inlined functions. */
static const char *
name_frame(const Writing *writing, const UprofName *frame)
{
    const UprofName *const *functions;

    return uprof_name_text(uprof_sym_expand(writing->sym, frame, &functions) > 0 ? functions[0]
                                                                                 : frame);
}

static void
write_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Writing *writing = data;

    if (writing->is_bad)
        return;
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(writing->text, ';');
        if (i > 0 || writing->has_root)
            g_string_append(writing->text, name_frame(writing, frames[i]));
    }
    g_string_append_printf(writing->text, " %" G_GUINT64_FORMAT "\n", weight);
    if (writing->text->len >= BUFFER_BYTES)
        write_text(writing);
}

bool
uprof_checkpoint_write(int fd, const UprofCheckpointProfiles *profiles, const UprofRun *run,
                       UprofSym *sym)
{
    Writing writing = { .fd = fd, .sym = sym, .at = sizeof(Head), .has_root = true };
    Head head;

    writing.text = uprof_output_render(&uprof_format_meta, profiles->samples, run);
    write_text(&writing);
    head.facts_len = writing.at - sizeof(head);
    uprof_profile_walk(profiles->samples, write_stack, &writing);
    writing.has_root = false;
    if (profiles->waits)
        uprof_profile_walk(profiles->waits, write_stack, &writing);
    write_text(&writing);
    head.stacks_len = writing.at - sizeof(head) - head.facts_len;
    g_string_free(writing.text, TRUE);
    return !writing.is_bad && pwrite(fd, &head, sizeof(head), 0) == sizeof(head);
}

/* ---- Reading ---- */

static bool
fail_data(GError **error, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: %s", shown, why);
    return false;
}

/* Returns: (transfer full) (nullable): %NULL with an error */
static GByteArray *
read_part(int fd, uint64_t at, uint64_t len, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    g_byte_array_set_size(bytes, (guint)len);
    if (uprof_read_at(fd, at, bytes->data, len) == (ssize_t)len)
        return g_steal_pointer(&bytes);
    fail_data(error, "it ends early");
    return NULL;
}

static void
add_stack(const UprofSlice *slices, unsigned n_slices, bool is_cut, uint64_t count, void *data)
{
    const UprofCheckpointProfiles *profiles = data;
    UprofProfile *profile = slices[0].len > 0 ? profiles->samples : profiles->waits;
    UprofNames *names = uprof_profile_names(profiles->samples);
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX + 1];
    unsigned n = 0;

    if (is_cut)
        frames[n++] = uprof_names_marker(names, "[truncated]");
    for (unsigned i = 1; i < n_slices; i++)
        frames[n++] = uprof_names_read_back(names, slices[i]);
    if (n > 0 && profile)
        uprof_profile_add(profile, frames, n, count);
}

bool
uprof_checkpoint_read(int fd, const UprofCheckpointProfiles *profiles, UprofRun *run,
                      GError **error)
{
    Head head;

    if (uprof_read_at(fd, 0, &head, sizeof(head)) != sizeof(head))
        return fail_data(error, "it has no head");
    if (head.facts_len > UPROF_SIDECAR_BYTES_MAX || head.stacks_len > UPROF_CHECKPOINT_BYTES_MAX)
        return fail_data(error, "its parts are too large");
    g_autoptr(GByteArray) facts = read_part(fd, sizeof(head), head.facts_len, error);
    if (!facts)
        return false;
    g_autoptr(UprofRun) counted =
        uprof_sidecar_parse(shown, (UprofSlice){ facts->data, facts->len }, error);
    if (!counted)
        return false;
    g_autoptr(GByteArray) stacks =
        read_part(fd, sizeof(head) + head.facts_len, head.stacks_len, error);
    if (!stacks || !uprof_folded_parse(shown, (UprofSlice){ stacks->data, stacks->len }, add_stack,
                                       (void *)profiles, error))
        return false;
    uprof_run_add_counts(run, counted);
    return true;
}
