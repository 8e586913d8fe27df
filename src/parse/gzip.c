/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/gzip.h"

#include "gzip-priv.h"
#include "uprof/error.h"

#include <string.h>
#include <zlib.h>

enum {
    CHUNK = 64 * 1024,
    RATIO_FROM = 1024 * 1024,
    HEADER_OF_GZIP = 16 + MAX_WBITS, /* zlib.h, inflateInit2() */
};

bool
uprof_gzip_is(UprofSlice bytes)
{
    return bytes.len >= 2 && memcmp(bytes.data, "\x1f\x8b", 2) == 0;
}

static bool
set_bad_data(const char *name, GError **error, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: %s", name, why);
    return false;
}

static bool
is_too_large(const GByteArray *out, size_t n_read)
{
    if (out->len > (guint)UPROF_GZIP_BYTES_MAX_MIB << 20)
        return true;
    return out->len > RATIO_FROM && out->len / UPROF_GZIP_RATIO_MAX > n_read;
}

/* Appends the data of one member of the file. @stream: (inout): moves behind the member */
static bool
inflate_member(const char *name, z_stream *stream, size_t all, GByteArray *out, GError **error)
{
    g_autofree unsigned char *chunk = g_malloc(CHUNK);
    int result;

    do {
        stream->next_out = chunk;
        stream->avail_out = CHUNK;
        result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_BUF_ERROR || (result == Z_OK && stream->avail_out == CHUNK))
            return set_bad_data(name, error, "the file is truncated");
        if (result != Z_OK && result != Z_STREAM_END)
            return set_bad_data(name, error, "the compressed data is damaged");
        g_byte_array_append(out, chunk, CHUNK - stream->avail_out);
        if (is_too_large(out, all - stream->avail_in))
            return set_bad_data(name, error, "the unpacked data is larger than any profile");
    } while (result != Z_STREAM_END);
    return true;
}

/* Tapes and disks pad files with zeros to full blocks. gzip ignores these zeros, too. */
static bool
is_padding(const z_stream *stream)
{
    for (uInt i = 0; i < stream->avail_in; i++)
        if (stream->next_in[i] != 0)
            return false;
    return true;
}

static bool
is_member(const z_stream *stream)
{
    return uprof_gzip_is((UprofSlice){ stream->next_in, stream->avail_in });
}

GByteArray *
uprof_gzip_inflate(const char *name, UprofSlice bytes, GError **error)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    z_stream stream = { .next_in = (Bytef *)bytes.data };
    bool ok = true;

    if (bytes.len > (size_t)UPROF_GZIP_BYTES_MAX_MIB << 20) {
        set_bad_data(name, error, "the file is larger than any profile");
        return NULL;
    }
    stream.avail_in = (uInt)bytes.len;
    do {
        if (inflateInit2(&stream, HEADER_OF_GZIP) != Z_OK) {
            set_bad_data(name, error, "out of memory");
            return NULL;
        }
        ok = inflate_member(name, &stream, bytes.len, out, error);
        inflateEnd(&stream);
    } while (ok && is_member(&stream));
    if (ok && !is_padding(&stream))
        ok = set_bad_data(name, error, "other data follows the compressed data");
    return ok ? g_steal_pointer(&out) : NULL;
}
