/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/gzip.h"

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
fail(const char *name, GError **error, const char *why)
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

/* Appends one member of the file; @stream moves behind it. */
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
            return fail(name, error, "the file is cut off");
        if (result != Z_OK && result != Z_STREAM_END)
            return fail(name, error, "what gzip packed is damaged");
        g_byte_array_append(out, chunk, CHUNK - stream->avail_out);
        if (is_too_large(out, all - stream->avail_in))
            return fail(name, error, "unpacked it is larger than any profile");
    } while (result != Z_STREAM_END);
    return true;
}

/* What pads files to whole blocks (tapes, disks) is zeros, and gzip itself ignores it. */
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
        fail(name, error, "the file is larger than any profile");
        return NULL;
    }
    stream.avail_in = (uInt)bytes.len;
    do {
        if (inflateInit2(&stream, HEADER_OF_GZIP) != Z_OK) {
            fail(name, error, "out of memory");
            return NULL;
        }
        ok = inflate_member(name, &stream, bytes.len, out, error);
        inflateEnd(&stream);
    } while (ok && is_member(&stream));
    if (ok && !is_padding(&stream))
        ok = fail(name, error, "behind what gzip packed stands something else");
    return ok ? g_steal_pointer(&out) : NULL;
}
