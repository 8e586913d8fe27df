/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A checkpoint that a worker has left. If bit 0 of the first byte is set, all other bytes are the
 * checkpoint. Otherwise they are the facts, a NUL and the stacks, and the target adds the head. The
 * target writes and reads the result again, like a worker that replaces a dead worker.
 */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "memory-file.h"
#include "uprof/arch.h"
#include "uprof/folded-reader.h"
#include "uprof/output.h"
#include "uprof/sidecar.h"
#include "../../src/worker/checkpoint-priv.h"

enum { IS_RAW = 1 };

typedef struct {
    uint64_t facts_len, stacks_len;
} Head;

typedef struct {
    UprofNames *names;
    UprofProfile *profile, *waits;
    UprofRun *run;
    bool ok;
} Read;

static Read
read_checkpoint(int fd)
{
    static const UprofSlice domain = { "web-1", 5 };
    Read read = { .names = uprof_names_new(), .run = uprof_run_new() };
    g_autoptr(GError) error = NULL;

    read.run->domain = g_strdup("web-1");
    read.profile = uprof_profile_new(read.names, uprof_names_read_back(read.names, domain), true);
    read.waits = uprof_profile_new(read.names, uprof_names_read_back(read.names, domain), true);
    const UprofCheckpointProfiles profiles = { read.profile, read.waits };
    read.ok = uprof_checkpoint_read(fd, &profiles, read.run, &error);
    check_answer(read.ok, error);
    g_assert(read.ok || error->code == UPROF_ERROR_BAD_DATA);
    g_assert(read.ok || read.run->samples == 0);
    return read;
}

static void
free_read(Read *read)
{
    uprof_profile_free(read->profile);
    uprof_profile_free(read->waits);
    uprof_run_free(read->run);
    uprof_names_free(read->names);
}

static void
find_depth(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    unsigned *depth = data;

    *depth = MAX(*depth, n);
}

static char *
render_stacks(const Read *read)
{
    GString *text = uprof_output_render(&uprof_format_folded, read->profile, read->run);
    GString *waits = uprof_output_render(&uprof_format_folded, read->waits, read->run);

    g_string_append_printf(text, "waits:\n%s", waits->str);
    g_string_free(waits, TRUE);

    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
    return g_string_free(text, FALSE);
}

/* Readers cut stacks that are deeper than their limit, so the text of such stacks may differ. */
static void
check_again(const Read *first)
{
    const int fd = memory_file_open((UprofSlice){ 0 });
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), first->names);
    const UprofCheckpointProfiles profiles = { first->profile, first->waits };
    unsigned depth = 0;

    g_assert(uprof_checkpoint_write(fd, &profiles, first->run, sym));
    Read second = read_checkpoint(fd);
    close(fd);
    g_assert(second.ok && second.run->samples == first->run->samples);
    uprof_profile_walk(first->profile, find_depth, &depth);
    uprof_profile_walk(first->waits, find_depth, &depth);
    if (depth <= UPROF_FOLDED_FRAMES_MAX) {
        g_autofree char *text = render_stacks(first);
        g_autofree char *again = render_stacks(&second);
        g_assert_cmpstr(text, ==, again);
    }
    free_read(&second);
}

/* Returns: (nullable): %NULL if the input has no NUL between facts and stacks */
static GByteArray *
make_checkpoint(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data + 1, '\0', size - 1) : NULL;
    g_autoptr(GByteArray) file = g_byte_array_new();
    Head head;

    if (size > 0 && data[0] & IS_RAW) {
        g_byte_array_append(file, data + 1, (guint)size - 1);
        return g_steal_pointer(&file);
    }
    if (!end)
        return NULL;
    head.facts_len = (uint64_t)(end - data - 1);
    head.stacks_len = size - head.facts_len - 2;
    g_byte_array_append(file, (const uint8_t *)&head, sizeof(head));
    g_byte_array_append(file, data + 1, (guint)head.facts_len);
    g_byte_array_append(file, end + 1, (guint)head.stacks_len);
    return g_steal_pointer(&file);
}

/* Returns: true if the reader would allocate more than the file has, as the head claims */
static bool
is_roomy(const GByteArray *file)
{
    Head head;

    if (file->len < sizeof(head))
        return false;
    memcpy(&head, file->data, sizeof(head));
    return (head.facts_len > file->len && head.facts_len <= UPROF_SIDECAR_BYTES_MAX) ||
           (head.stacks_len > file->len && head.stacks_len <= UPROF_CHECKPOINT_BYTES_MAX);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GByteArray) file = make_checkpoint(data, size);

    if (!file || is_roomy(file))
        return;
    const int fd = memory_file_open((UprofSlice){ file->data, file->len });
    Read read = read_checkpoint(fd);
    close(fd);
    if (read.ok)
        check_again(&read);
    free_read(&read);
}
