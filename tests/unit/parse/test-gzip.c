/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/gzip.h"

#include <string.h>
#include <zlib.h>

#include "uprof/error.h"

enum { WITH_HEADER = 16 + MAX_WBITS };

static GByteArray *
pack(const void *bytes, size_t len)
{
    z_stream stream = { .next_in = (Bytef *)bytes, .avail_in = (uInt)len };

    g_assert_cmpint(deflateInit2(&stream, 9, Z_DEFLATED, WITH_HEADER, 8, Z_DEFAULT_STRATEGY), ==,
                    Z_OK);
    GByteArray *out = g_byte_array_new();
    g_byte_array_set_size(out, (guint)deflateBound(&stream, len) + 64);
    stream.next_out = out->data;
    stream.avail_out = out->len;
    g_assert_cmpint(deflate(&stream, Z_FINISH), ==, Z_STREAM_END);
    g_byte_array_set_size(out, (guint)stream.total_out);
    deflateEnd(&stream);
    return out;
}

static void
expect(const GByteArray *file, const char *text, const char *error_text)
{
    const UprofSlice bytes = { file->data, file->len };
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) out = uprof_gzip_inflate("file", bytes, &error);

    if (text) {
        g_assert_no_error(error);
        g_assert_cmpmem(out->data, out->len, text, strlen(text));
        return;
    }
    g_assert_null(out);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, error_text);
}

static void
test_whole(void)
{
    g_autoptr(GByteArray) file = pack("vm;a 1\n", 7);
    g_autoptr(GByteArray) second = pack("vm;b 2\n", 7);

    g_assert_true(uprof_gzip_is((UprofSlice){ file->data, file->len }));
    g_assert_false(uprof_gzip_is((UprofSlice){ file->data, 1 }));
    g_assert_false(uprof_gzip_is((UprofSlice){ "vm;a 1\n", 7 }));
    expect(file, "vm;a 1\n", NULL);
    g_byte_array_append(file, second->data, second->len);
    expect(file, "vm;a 1\nvm;b 2\n", NULL);
}

static void
test_damaged(void)
{
    g_autoptr(GByteArray) file = pack("vm;a 1\nvm;b 2\n", 14);
    const guint len = file->len;

    for (guint n = 2; n < len; n++) {
        g_byte_array_set_size(file, n);
        expect(file, NULL, "file: the file is truncated");
    }
    g_byte_array_set_size(file, len);
    file->data[len - 8] ^= 1; /* the check sum */
    expect(file, NULL, "file: the compressed data is damaged");
    file->data[len - 8] ^= 1;
    g_byte_array_append(file, (const guint8 *)"garbage", 7);
    expect(file, NULL, "file: other data follows the compressed data");
}

/* Zeros behind the compressed data are padding; other bytes are refused. */
static void
test_padding(void)
{
    static const guint8 zeros[512] = { 0 };
    g_autoptr(GByteArray) file = pack("vm;a 1\n", 7);
    g_autoptr(GByteArray) second = pack("vm;b 2\n", 7);
    const guint len = file->len;

    g_byte_array_append(file, zeros, 1);
    expect(file, "vm;a 1\n", NULL);
    g_byte_array_append(file, zeros, sizeof(zeros));
    expect(file, "vm;a 1\n", NULL);
    g_byte_array_append(file, (const guint8 *)"x", 1);
    expect(file, NULL, "file: other data follows the compressed data");
    g_byte_array_set_size(file, len + 1);
    g_byte_array_append(file, second->data, second->len);
    expect(file, NULL, "file: other data follows the compressed data");
    g_byte_array_set_size(file, len);
    g_byte_array_append(file, second->data, 2); /* the beginning of one more */
    expect(file, NULL, "file: the file is truncated");
}

/* Zeros can be compressed to less than a thousandth of their size, which is refused. */
static void
test_bomb(void)
{
    const size_t len = 10 * 1024 * 1024;
    g_autofree char *zeros = g_malloc0(len);
    g_autoptr(GByteArray) file = pack(zeros, len);

    expect(file, NULL, "file: the unpacked data is larger than any profile");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gzip/whole", test_whole);
    g_test_add_func("/gzip/damaged", test_damaged);
    g_test_add_func("/gzip/padding", test_padding);
    g_test_add_func("/gzip/bomb", test_bomb);
    return g_test_run();
}
