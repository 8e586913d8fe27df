/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unpack-priv.h"

#include "uprof/error.h"

#include <lzma.h>
#include <zlib.h>

enum {
    STEP_BYTES = 64 * 1024,
    /* 258 bytes can be packed into two bits (zlib, "Maximum Compression Factor") */
    ZLIB_RATIO_MAX = 1032,
};

static bool
set_bad_data(const char *name, GError **error, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: packed data: %s", name, why);
    return false;
}

static const char *
describe_lzma(lzma_ret ret)
{
    switch (ret) {
    case LZMA_MEMLIMIT_ERROR:
        return "unpacking needs too much memory";
    case LZMA_MEM_ERROR:
        return "out of memory";
    case LZMA_FORMAT_ERROR:
        return "not an .xz file";
    case LZMA_BUF_ERROR:
        return "truncated";
    default:
        return "damaged";
    }
}

/* @bytes: grows with the output, so that a false size in the file costs no memory */
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
            return set_bad_data(name, error, "too large");
        if (ret == LZMA_STREAM_END) {
            g_byte_array_set_size(bytes, (guint)stream->total_out);
            return true;
        }
        if (ret != LZMA_OK)
            return set_bad_data(name, error, describe_lzma(ret));
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
        set_bad_data(name, error, describe_lzma(ret));
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
        set_bad_data(name, error, "too large");
        return NULL;
    }
    /* one extra byte shows an output that is too long */
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, (guint)len + 1);
    z_stream stream = { .next_in = (Bytef *)packed.data,
                        .avail_in = (uInt)packed.len,
                        .next_out = bytes->data,
                        .avail_out = (uInt)len + 1 };

    if (inflateInit(&stream) != Z_OK) {
        set_bad_data(name, error, "out of memory");
        return NULL;
    }
    const int ret = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (ret != Z_STREAM_END || stream.total_out != len) {
        set_bad_data(name, error, "damaged, or not as long as declared");
        return NULL;
    }
    g_byte_array_set_size(bytes, (guint)len);
    return g_steal_pointer(&bytes);
}
