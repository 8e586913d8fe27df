/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/bytes.h"
#include "uprof/error.h"

static const uint8_t eight[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/* clang-format off */
static const struct {
    const char *name;
    bool big_endian;
    size_t len;          /* of eight[] to use */
    unsigned width;      /* bytes read */
    bool ok;
    uint64_t value;
} reads[] = {
    { "u8",               false, 8, 1, true,  0x01 },
    { "u8-none-left",     false, 0, 1, false, 0 },
    { "u16-little",       false, 8, 2, true,  0x0201 },
    { "u16-big",          true,  8, 2, true,  0x0102 },
    { "u16-one-left",     false, 1, 2, false, 0 },
    { "u32-little",       false, 8, 4, true,  0x04030201 },
    { "u32-big",          true,  8, 4, true,  0x01020304 },
    { "u32-exactly",      false, 4, 4, true,  0x04030201 },
    { "u32-three-left",   true,  3, 4, false, 0 },
    { "u64-little",       false, 8, 8, true,  UINT64_C(0x0807060504030201) },
    { "u64-big",          true,  8, 8, true,  UINT64_C(0x0102030405060708) },
    { "u64-seven-left",   false, 7, 8, false, 0 },
};
/* clang-format on */

static bool
read_number(UprofBytes *bytes, unsigned width, uint64_t *value)
{
    uint8_t u8 = 0xaa;
    uint16_t u16 = 0xaaaa;
    uint32_t u32 = 0xaaaaaaaa;
    uint64_t u64 = UINT64_C(0xaaaaaaaaaaaaaaaa);
    bool ok;

    switch (width) {
    case 1:
        ok = uprof_bytes_u8(bytes, &u8);
        g_assert_true(ok || u8 == 0xaa);
        *value = u8;
        return ok;
    case 2:
        ok = uprof_bytes_u16(bytes, &u16);
        g_assert_true(ok || u16 == 0xaaaa);
        *value = u16;
        return ok;
    case 4:
        ok = uprof_bytes_u32(bytes, &u32);
        g_assert_true(ok || u32 == 0xaaaaaaaa);
        *value = u32;
        return ok;
    default:
        ok = uprof_bytes_u64(bytes, &u64);
        g_assert_true(ok || u64 == UINT64_C(0xaaaaaaaaaaaaaaaa));
        *value = u64;
        return ok;
    }
}

static void
test_read(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofBytes bytes = { .name = "test",
                         .all = { eight, reads[i].len },
                         .big_endian = reads[i].big_endian };
    uint64_t value;

    const bool ok = read_number(&bytes, reads[i].width, &value);

    g_assert_true(ok == reads[i].ok);
    g_assert_cmpuint(bytes.at, ==, ok ? reads[i].width : 0);
    g_assert_cmpuint(uprof_bytes_left(&bytes), ==, reads[i].len - bytes.at);
    if (ok)
        g_assert_cmpuint(value, ==, reads[i].value);
}

static void
test_take(void)
{
    UprofBytes bytes = { .name = "test", .all = { eight, sizeof(eight) } };
    UprofSlice slice = { 0 };

    g_assert_true(uprof_bytes_take(&bytes, 3, &slice));
    g_assert_cmpmem(slice.data, slice.len, eight, 3);
    g_assert_false(uprof_bytes_take(&bytes, 6, &slice));
    g_assert_false(uprof_bytes_take(&bytes, SIZE_MAX, &slice));
    g_assert_cmpuint(slice.len, ==, 3);
    g_assert_true(uprof_bytes_take(&bytes, 5, &slice));
    g_assert_cmpmem(slice.data, slice.len, eight + 3, 5);
    g_assert_true(uprof_bytes_take(&bytes, 0, &slice));
    g_assert_cmpuint(slice.len, ==, 0);
}

static void
test_seek(void)
{
    UprofBytes bytes = { .name = "test", .all = { eight, sizeof(eight) } };
    uint8_t value;

    g_assert_true(uprof_bytes_seek(&bytes, 7));
    g_assert_true(uprof_bytes_u8(&bytes, &value));
    g_assert_cmpuint(value, ==, 8);
    g_assert_false(uprof_bytes_seek(&bytes, 9));
    g_assert_cmpuint(bytes.at, ==, 8);
    g_assert_true(uprof_bytes_seek(&bytes, 8));
}

static void
test_fail(void)
{
    const UprofBytes bytes = { .name = "kernel", .all = { eight, sizeof(eight) }, .at = 5 };
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_bytes_fail(&bytes, &error, "bad value of '%s'", "x"));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "kernel byte 5: bad value of 'x'");
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t offset;
    uint64_t len;
    bool ok;
} subs[] = {
    { "all",             0,          8,          true  },
    { "middle",          3,          2,          true  },
    { "nothing-at-end",  8,          0,          true  },
    { "one-too-many",    0,          9,          false },
    { "one-behind",      8,          1,          false },
    { "beyond-the-end",  9,          0,          false },
    { "huge-len",        1,          UINT64_MAX, false },
    { "huge-offset",     UINT64_MAX, 1,          false },
    { "both-huge",       UINT64_MAX, UINT64_MAX, false },
};
/* clang-format on */

static void
test_sub(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice all = { eight, sizeof(eight) };
    UprofSlice sub = { "untouched", 9 };

    const bool ok = uprof_slice_sub(all, subs[i].offset, subs[i].len, &sub);

    g_assert_true(ok == subs[i].ok);
    if (ok)
        g_assert_true(sub.data == eight + subs[i].offset && sub.len == subs[i].len);
    else
        g_assert_cmpuint(sub.len, ==, 9);
}

static void
test_sub_of_nothing(void)
{
    UprofSlice sub = { "x", 1 };

    g_assert_true(uprof_slice_sub((UprofSlice){ NULL, 0 }, 0, 0, &sub));
    g_assert_true(sub.data == NULL && sub.len == 0);
    g_assert_false(uprof_slice_sub((UprofSlice){ NULL, 0 }, 0, 1, &sub));
}

#define LEB(text)                                                                                  \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

/* clang-format off */
static const struct {
    const char *name;
    UprofSlice bytes;
    bool is_unsigned, is_signed; /* the forms that accept the bytes */
    uint64_t as_unsigned;
    int64_t as_signed;
    size_t len; /* of @bytes */
} lebs[] = {
    { "zero",           LEB("\x00"),             true,  true,  0,      0,       1 },
    { "small",          LEB("\x02\x7f"),         true,  true,  2,      2,       1 },
    { "minus-2",        LEB("\x7e"),             true,  true,  126,    -2,      1 },
    { "127",            LEB("\xff\x00"),         true,  true,  127,    127,     2 },
    { "minus-127",      LEB("\x81\x7f"),         true,  true,  16257,  -127,    2 },
    { "padded",         LEB("\x83\x80\x80\x00"), true,  true,  3,      3,       4 },
    { "padded-sign",    LEB("\xfe\xff\x7f"),     true,  true,  0x1ffffe, -2,    3 },
    { "padded-far",     LEB("\x83\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), true, true, 3, 3, 13 },
    { "minus-1-far",    LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), false, true, 0, -1, 12 },
    { "highest",        LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true,  false, UINT64_MAX, 0, 10 },
    { "lowest-signed",  LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"), false, true,  0, INT64_MIN, 10 },
    { "highest-signed", LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"), true,  true,  INT64_MAX, INT64_MAX, 10 },
    { "63-bits",        LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x40"),     true,  true,  UINT64_C(1) << 62, -(INT64_C(1) << 62), 9 },
    { "65-bits",        LEB("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), false, false, 0, 0, 0 },
    { "71-bits",        LEB("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), false, false, 0, 0, 0 },
    { "empty",          LEB(""),                 false, false, 0, 0, 0 },
    { "cut",            LEB("\x80\x80"),         false, false, 0, 0, 0 },
};
/* clang-format on */

static void
test_leb(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofBytes bytes = { .name = "leb", .all = lebs[i].bytes };
    uint64_t as_unsigned = 42;
    int64_t as_signed = 42;

    g_assert_true(uprof_bytes_uleb(&bytes, &as_unsigned) == lebs[i].is_unsigned);
    g_assert_cmpuint(bytes.at, ==, lebs[i].is_unsigned ? lebs[i].len : 0);
    g_assert_cmphex(as_unsigned, ==, lebs[i].is_unsigned ? lebs[i].as_unsigned : 42);

    bytes.at = 0;
    g_assert_true(uprof_bytes_sleb(&bytes, &as_signed) == lebs[i].is_signed);
    g_assert_cmpuint(bytes.at, ==, lebs[i].is_signed ? lebs[i].len : 0);
    g_assert_cmpint(as_signed, ==, lebs[i].is_signed ? lebs[i].as_signed : 42);
}

static void
test_little_endian(void)
{
    static const uint8_t bytes[] = { 0xff, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88 };

    g_assert_cmphex(uprof_read_le16(bytes + 1), ==, 0x0201);
    g_assert_cmphex(uprof_read_le32(bytes + 1), ==, 0x04030201);
    g_assert_cmphex(uprof_read_le64(bytes + 1), ==, UINT64_C(0x8807060504030201));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(reads); i++) {
        g_autofree char *path = g_strdup_printf("/bytes/read/%s", reads[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_read);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(subs); i++) {
        g_autofree char *path = g_strdup_printf("/bytes/sub/%s", subs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_sub);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(lebs); i++) {
        g_autofree char *path = g_strdup_printf("/bytes/leb/%s", lebs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_leb);
    }
    g_test_add_func("/bytes/sub/of-nothing", test_sub_of_nothing);
    g_test_add_func("/bytes/little-endian", test_little_endian);
    g_test_add_func("/bytes/take", test_take);
    g_test_add_func("/bytes/seek", test_seek);
    g_test_add_func("/bytes/fail", test_fail);
    return g_test_run();
}
