/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "deflate-priv.h"

#include "output-priv.h"

#include <zlib.h>

enum {
    CHUNK = 64 * 1024,
    HEADER_OF_GZIP = 16 + MAX_WBITS, /* zlib.h, deflateInit2() */
    MEMORY = 8,                      /* zlib's default */
};

struct _UprofDeflate {
    UprofSink *sink; /* borrowed */
    z_stream stream;
    unsigned char chunk[CHUNK];
};

UprofDeflate *
uprof_deflate_new(UprofSink *sink)
{
    UprofDeflate *packer = g_new0(UprofDeflate, 1);

    packer->sink = sink;
    /* Fails only without memory. GLib ends the program in that case, too. */
    if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, HEADER_OF_GZIP, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        g_error("out of memory");
    return packer;
}

static void
run_deflate(UprofDeflate *packer, int flush)
{
    do {
        packer->stream.next_out = packer->chunk;
        packer->stream.avail_out = CHUNK;
        deflate(&packer->stream, flush);
        g_string_append_len(packer->sink->text, (const char *)packer->chunk,
                            CHUNK - packer->stream.avail_out);
        uprof_sink_drain(packer->sink);
    } while (packer->stream.avail_out == 0);
}

void
uprof_deflate_write(UprofDeflate *packer, GString *text)
{
    packer->stream.next_in = (Bytef *)text->str;
    packer->stream.avail_in = (uInt)text->len;
    run_deflate(packer, Z_NO_FLUSH);
    g_string_truncate(text, 0);
}

void
uprof_deflate_finish(UprofDeflate *packer)
{
    packer->stream.avail_in = 0;
    run_deflate(packer, Z_FINISH);
    deflateEnd(&packer->stream);
    g_free(packer);
}

GString *
uprof_output_compress(UprofSlice text)
{
    UprofSink sink = { .text = g_string_new(NULL) };
    UprofDeflate *packer = uprof_deflate_new(&sink);

    packer->stream.next_in = (Bytef *)text.data;
    packer->stream.avail_in = (uInt)text.len;
    run_deflate(packer, Z_NO_FLUSH);
    uprof_deflate_finish(packer);
    return sink.text;
}
