/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Folded stacks for flamegraph.pl, inferno, speedscope and Perfetto: a line such as
 * "root;caller;callee 12" for each stack, sorted by bytes. There are no comment lines,
 * because flamegraph.pl draws them, and no lines with only the root, because Perfetto
 * wants a ';' in the first lines of a file.
 */
#include "uprof/output.h"

#include "deflate-priv.h"
#include "output-priv.h"

#include <stdlib.h>
#include <string.h>

/* Lines are offsets, because the bytes move when they grow. */
typedef struct {
    GString *bytes;
    GArray *lines; /* (element-type size_t): offset of each line in @bytes */
} Folding;

static void
fold_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Folding *folding = data;
    const size_t line = folding->bytes->len;

    g_array_append_val(folding->lines, line);
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(folding->bytes, ';');
        g_string_append(folding->bytes, uprof_name_text(frames[i]));
    }
    g_string_append_printf(folding->bytes, " %" G_GUINT64_FORMAT, weight);
    g_string_append_c(folding->bytes, '\0');
}

static int
compare_lines(const void *a, const void *b, void *bytes)
{
    const size_t *one = a, *other = b;

    return strcmp((const char *)bytes + *one, (const char *)bytes + *other);
}

static void
folded_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    Folding folding = {
        .bytes = g_string_new(NULL),
        .lines = g_array_new(FALSE, FALSE, sizeof(size_t)),
    };

    uprof_profile_walk(profile, fold_stack, &folding);
    if (folding.lines->len > 0)
        qsort_r(folding.lines->data, folding.lines->len, sizeof(size_t), compare_lines,
                folding.bytes->str);
    for (guint i = 0; i < folding.lines->len; i++) {
        g_string_append(sink->text, folding.bytes->str + g_array_index(folding.lines, size_t, i));
        g_string_append_c(sink->text, '\n');
        uprof_sink_drain(sink);
    }
    g_array_unref(folding.lines);
    g_string_free(folding.bytes, TRUE);
}

const UprofFormat uprof_format_folded = {
    .name = "folded",
    .suffixes = { ".folded" },
    .write = folded_write,
    .has_waits_file = true,
};

static void
folded_gz_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    UprofDeflate *packer = uprof_deflate_new(sink);
    UprofSink plain = { .text = g_string_new(NULL) };

    folded_write(profile, run, &plain);
    uprof_deflate_write(packer, plain.text);
    uprof_deflate_finish(packer);
    g_string_free(plain.text, TRUE);
}

const UprofFormat uprof_format_folded_gz = {
    .name = "folded.gz",
    .suffixes = { ".folded.gz" },
    .is_binary = true,
    .write = folded_gz_write,
    .has_waits_file = true,
};
