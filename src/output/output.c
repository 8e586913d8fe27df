/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output-priv.h"

enum {
    DRAIN_BYTES = 1024 * 1024,
    US_MHZ = 1000 * 1000 * 1000, /* a rate of one in a microsecond */
};

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

/* Writes the rest of the text. Returns: false with the first error */
static bool
finish_sink(UprofSink *sink, GError **error)
{
    write_text(sink);
    g_string_free(sink->text, TRUE);
    if (!sink->error)
        return true;
    g_propagate_error(error, sink->error);
    return false;
}

bool
uprof_output_write(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run,
                   UprofFile *file, GError **error)
{
    return uprof_output_write_both(format, profile, NULL, run, file, error);
}

bool
uprof_output_write_both(const UprofFormat *format, const UprofProfile *profile,
                        const UprofProfile *waits, const UprofRun *run, UprofFile *file,
                        GError **error)
{
    UprofSink sink = { .text = g_string_new(NULL), .file = file };

    if (waits && format->write_both)
        format->write_both(profile, waits, run, &sink);
    else
        format->write(profile, run, &sink);
    return finish_sink(&sink, error);
}

/* A microsecond takes the place of a sample, so its rate is that of microseconds. */
bool
uprof_output_write_waits(const UprofFormat *format, const UprofProfile *waits, const UprofRun *run,
                         UprofFile *file, GError **error)
{
    UprofSink sink = { .text = g_string_new(NULL), .file = file };
    UprofRun counted = *run;

    counted.is_waits = true;
    counted.rate_mhz = US_MHZ;
    format->write(waits, &counted, &sink);
    return finish_sink(&sink, error);
}
