/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <lzma.h>
#include <string.h>
#include <zlib.h>

#include "../../../src/parse/unpack-priv.h"
#include "uprof/error.h"
#include "uprof/unpack.h"

enum { MANY = 4 * 1024 * 1024 };

static GByteArray *
pack_xz(const void *data, size_t len, uint32_t level)
{
    GByteArray *packed = g_byte_array_new();
    size_t n = 0;

    g_byte_array_set_size(packed, (guint)lzma_stream_buffer_bound(len));
    g_assert_cmpint(lzma_easy_buffer_encode(level, LZMA_CHECK_CRC64, NULL, data, len, packed->data,
                                            &n, packed->len),
                    ==, LZMA_OK);
    g_byte_array_set_size(packed, (guint)n);
    return packed;
}

static GByteArray *
pack_zlib(const void *data, size_t len)
{
    GByteArray *packed = g_byte_array_new();
    uLongf n = compressBound(len);

    g_byte_array_set_size(packed, (guint)n);
    g_assert_cmpint(compress2(packed->data, &n, data, len, 9), ==, Z_OK);
    g_byte_array_set_size(packed, (guint)n);
    return packed;
}

static GByteArray *
unpack(bool is_xz, const GByteArray *packed, size_t len, GError **error)
{
    /* a copy of exactly that size, so that sanitizers see reads behind its end */
    g_autofree void *copy = g_memdup2(packed->data, packed->len);
    const UprofSlice slice = { copy, packed->len };

    return is_xz ? uprof_unpack_xz(slice, "app", len, error)
                 : uprof_unpack_zlib(slice, "app", len, error);
}

static void
assert_fails(bool is_xz, const GByteArray *packed, size_t len, const char *message)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(unpack(is_xz, packed, len, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, message);
}

static void
test_round(void)
{
    static const size_t lens[] = { 0, 1, 1000, 300000 };
    g_autofree uint8_t *data = g_malloc(MANY);
    g_autoptr(GRand) random = g_rand_new_with_seed(1);

    for (size_t i = 0; i < MANY; i++)
        data[i] = (uint8_t)g_rand_int_range(random, 'a', 'e');
    for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
        for (unsigned is_xz = 0; is_xz < 2; is_xz++) {
            g_autoptr(GByteArray) packed =
                is_xz ? pack_xz(data, lens[i], 1) : pack_zlib(data, lens[i]);
            g_autoptr(GError) error = NULL;
            g_autoptr(GByteArray) bytes = unpack(is_xz, packed, lens[i], &error);
            g_assert_no_error(error);
            g_assert_cmpmem(bytes->data, bytes->len, data, lens[i]);
        }
    }
}

/* 280 MiB of zeros are 45 KiB of .xz; unpacking stays within the limit. */
static void
test_bomb(void)
{
    g_autofree uint8_t *zeros = g_malloc0(MANY);
    g_autoptr(GByteArray) xz = pack_xz(zeros, MANY, 1);
    g_autoptr(GByteArray) zlib = pack_zlib(zeros, MANY);
    g_autoptr(GByteArray) many = g_byte_array_new();

    g_assert_cmpuint(MANY / xz->len, >, 1000);
    assert_fails(true, xz, MANY - 1, "app: packed data: too large");
    assert_fails(true, xz, 0, "app: packed data: too large");
    for (unsigned i = 0; i < 70; i++)
        g_byte_array_append(many, xz->data, xz->len);
    assert_fails(true, many, UPROF_UNPACK_BYTES_MAX, "app: packed data: too large");
    /* a false size allocates no memory */
    assert_fails(false, zlib, (size_t)zlib->len * 1033 + 1032, "app: packed data: too large");
    assert_fails(false, zlib, (size_t)UPROF_UNPACK_BYTES_MAX + 1, "app: packed data: too large");
    assert_fails(false, zlib, SIZE_MAX, "app: packed data: too large");
    assert_fails(false, zlib, MANY - 1, "app: packed data: damaged, or not as long as declared");
    assert_fails(false, zlib, MANY + 1, "app: packed data: damaged, or not as long as declared");
}

/* The decoder would allocate a dictionary of 1.5 GiB. */
static void
test_memory(void)
{
    g_autoptr(GByteArray) packed = g_byte_array_new();
    lzma_options_lzma options;
    size_t n = 0;

    g_assert_false(lzma_lzma_preset(&options, 0));
    options.dict_size = UINT32_C(1536) << 20;
    const lzma_filter filters[] = { { LZMA_FILTER_LZMA2, &options }, { LZMA_VLI_UNKNOWN, NULL } };
    g_byte_array_set_size(packed, 4096);
    /* the encoder would also allocate it, so the test encodes a small one and changes the header */
    options.dict_size = 4096;
    g_assert_cmpint(lzma_stream_buffer_encode((lzma_filter *)filters, LZMA_CHECK_NONE, NULL,
                                              (const uint8_t *)"text", 4, packed->data, &n,
                                              packed->len),
                    ==, LZMA_OK);
    g_byte_array_set_size(packed, (guint)n);
    /* block header at 12: its size; later the filter, size of its properties, dictionary; CRC32 */
    uint8_t *filter = memchr(packed->data + 14, LZMA_FILTER_LZMA2, 16);
    g_assert_nonnull(filter);
    g_assert_cmpuint(filter[1], ==, 1);
    filter[2] = 37; /* 1.5 GiB */
    const size_t header = (packed->data[12] + 1) * (size_t)4;
    const uint32_t crc = GUINT32_TO_LE(lzma_crc32(packed->data + 12, header - 4, 0));
    memcpy(packed->data + 12 + header - 4, &crc, sizeof(crc));
    assert_fails(true, packed, 4, "app: packed data: unpacking needs too much memory");
}

static void
test_damage(void)
{
    g_autoptr(GByteArray) xz = pack_xz("some text", 9, 0);
    g_autoptr(GByteArray) zlib = pack_zlib("some text", 9);
    g_autoptr(GByteArray) empty = g_byte_array_new();
    const guint xz_len = xz->len, zlib_len = zlib->len;

    assert_fails(true, empty, 9, "app: packed data: truncated");
    assert_fails(true, zlib, 9, "app: packed data: not an .xz file");
    assert_fails(false, empty, 0, "app: packed data: damaged, or not as long as declared");
    for (guint len = 1; len < xz_len; len++) {
        xz->len = len;
        assert_fails(true, xz, 9, "app: packed data: truncated");
    }
    for (guint len = 1; len < zlib_len; len++) {
        zlib->len = len;
        assert_fails(false, zlib, 9, "app: packed data: damaged, or not as long as declared");
    }
    xz->len = xz_len;
    xz->data[xz_len - 20] ^= 1;
    assert_fails(true, xz, 9, "app: packed data: damaged");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/unpack/round", test_round);
    g_test_add_func("/unpack/bomb", test_bomb);
    g_test_add_func("/unpack/memory", test_memory);
    g_test_add_func("/unpack/damage", test_damage);
    return g_test_run();
}
