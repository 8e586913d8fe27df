/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/unpack.h"

#include <lzma.h>
#include <zlib.h>

#include "uprof/error.h"

enum {
    STEP_BYTES = 64 * 1024,
    /* of a zlib stream: a match of 258 bytes takes two bits (zlib, "Maximum Compression Factor") */
    ZLIB_RATIO_MAX = 1032,
};

static bool
fail(const char *name, GError **error, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: packed data: %s", name, why);
    return false;
}

static const char *
describe_lzma(lzma_ret ret)
{
    switch (ret) {
    case LZMA_MEMLIMIT_ERROR:
        return "it wants too much memory";
    case LZMA_MEM_ERROR:
        return "no memory";
    case LZMA_FORMAT_ERROR:
        return "it is no .xz file";
    case LZMA_BUF_ERROR:
        return "it is cut";
    default:
        return "it is damaged";
    }
}

/* @bytes: grows with what comes out, so that a lie about its size costs nothing */
static bool
run_xz(lzma_stream *stream, const char *name, size_t max, GByteArray *bytes, GError **error)
{
    for (;;) {
        const size_t len = stream->total_out;
        if (len == bytes->len)
            g_byte_array_set_size(bytes, (guint)MIN(MAX(2 * len, (size_t)STEP_BYTES), max + 1));
        stream->next_out = bytes->data + len;
        stream->avail_out = bytes->len - len;
        const lzma_ret ret = lzma_code(stream, LZMA_FINISH);
        if (stream->total_out > max)
            return fail(name, error, "it is too large");
        if (ret == LZMA_STREAM_END) {
            g_byte_array_set_size(bytes, (guint)stream->total_out);
            return true;
        }
        if (ret != LZMA_OK)
            return fail(name, error, describe_lzma(ret));
    }
}

GByteArray *
uprof_unpack_xz(UprofSlice packed, const char *name, size_t max, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    lzma_stream stream = LZMA_STREAM_INIT;

    g_assert(max <= UPROF_UNPACK_BYTES_MAX);
    const lzma_ret ret =
        lzma_stream_decoder(&stream, UPROF_UNPACK_XZ_MEMORY_MAX, LZMA_CONCATENATED);
    if (ret != LZMA_OK) {
        fail(name, error, describe_lzma(ret));
        return NULL;
    }
    stream.next_in = packed.data;
    stream.avail_in = packed.len;
    const bool ok = run_xz(&stream, name, max, bytes, error);
    lzma_end(&stream);
    return ok ? g_steal_pointer(&bytes) : NULL;
}

GByteArray *
uprof_unpack_zlib(UprofSlice packed, const char *name, uint64_t len, GError **error)
{
    if (len > UPROF_UNPACK_BYTES_MAX || packed.len > UPROF_UNPACK_BYTES_MAX ||
        len / ZLIB_RATIO_MAX > packed.len) {
        fail(name, error, "it is too large");
        return NULL;
    }
    /* room for one byte more, which must not come */
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, (guint)len + 1);
    z_stream stream = { .next_in = (Bytef *)packed.data,
                        .avail_in = (uInt)packed.len,
                        .next_out = bytes->data,
                        .avail_out = (uInt)len + 1 };

    if (inflateInit(&stream) != Z_OK) {
        fail(name, error, "no memory");
        return NULL;
    }
    const int ret = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (ret != Z_STREAM_END || stream.total_out != len) {
        fail(name, error, "it is damaged, or not as long as it says");
        return NULL;
    }
    g_byte_array_set_size(bytes, (guint)len);
    return g_steal_pointer(&bytes);
}
