/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output-priv.h"

enum { DRAIN_BYTES = 1024 * 1024 };

static void
write_text(UprofSink *sink)
{
    if (!sink->error)
        uprof_file_write(sink->file, sink->text->str, sink->text->len, &sink->error);
    g_string_truncate(sink->text, 0);
}

void
uprof_sink_drain(UprofSink *sink)
{
    if (sink->file && sink->text->len >= DRAIN_BYTES)
        write_text(sink);
}

GString *
uprof_output_render(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run)
{
    UprofSink sink = { .text = g_string_new(NULL) };

    format->write(profile, run, &sink);
    g_clear_error(&sink.error);
    return sink.text;
}

bool
uprof_output_write(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run,
                   UprofFile *file, GError **error)
{
    UprofSink sink = { .text = g_string_new(NULL), .file = file };

    format->write(profile, run, &sink);
    write_text(&sink);
    g_string_free(sink.text, TRUE);
    if (!sink.error)
        return true;
    g_propagate_error(error, sink.error);
    return false;
}
