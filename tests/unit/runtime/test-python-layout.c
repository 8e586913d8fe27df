/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/runtime/python-layout-priv.h"

enum { WORDS = UPROF_PYTHON_OFFSETS_BYTES / 8 };

/* The words of struct _Py_DebugOffsets as CPython 3.13.0 has them on x86_64, up to its last member
 */
static const uint64_t words_3_13[] = {
    0x7970677562656478,
    0x30d00f0,
    0,
    0x452b8,
    0x260,
    0x278,
    0x2f998,
    0x1c68,
    0x1c60,
    0x1cb0,
    0x1ce8,
    0x1de8,
    0x1dd8,
    0x1de0,
    0x10,
    0x1e48,
    0,
    0x1e58,
    0x1e50,
    0x130,
    0,
    0x8,
    0x10,
    0x48,
    0x98,
    0xa0,
    0xe8,
    0x20,
    0x50,
    0x8,
    0,
    0x38,
    0x48,
    0x46,
    0xd0,
    0x70,
    0x78,
    0x80,
    0x88,
    0x44,
    0x34,
    0x60,
    0x68,
    0xc8,
    0x10,
    0x8,
    0x1a0,
    0x18,
    0x58,
    0xa8,
    0x20,
    0x18,
    0x10,
    0x28,
    0x18,
    0x10,
    0x30,
    0x20,
    0x28,
    0x18,
    0x10,
    0x20,
    0x10,
    0x18,
    0x28,
    0x10,
    0x20,
    0x40,
    0x20,
    0x10,
    0x28,
    0xf0,
    0xc8,
};

static bool
find(const uint64_t *words, size_t n, uint32_t version, UprofPythonLayout *layout)
{
    uint64_t bytes[WORDS] = { 0 };

    for (size_t i = 0; i < n; i++)
        bytes[i] = GUINT64_TO_LE(words[i]);
    return uprof_python_layout_find(version, (UprofSlice){ bytes, sizeof(bytes) }, layout);
}

static void
test_offsets(void)
{
    UprofPythonLayout layout;

    g_assert_true(find(words_3_13, G_N_ELEMENTS(words_3_13), 0x030d00f0, &layout));
    g_assert_cmphex(layout.version, ==, 0x030d);
    g_assert_cmpuint(layout.first_interpreter, ==, 632);
    g_assert_cmpuint(layout.next_interpreter, ==, 7264);
    g_assert_cmpuint(layout.first_thread, ==, 7344);
    g_assert_cmpuint(layout.next_thread, ==, 8);
    g_assert_cmpuint(layout.thread_id, ==, 152);
    g_assert_cmpuint(layout.thread_frame, ==, 72);
    g_assert_false(layout.has_c_frames);
    g_assert_cmpuint(layout.frame_bytes, ==, 80);
    g_assert_cmpuint(layout.frame_code, ==, 0);
    g_assert_cmpuint(layout.frame_previous, ==, 8);
    g_assert_cmpuint(layout.frame_instruction, ==, 56);
    g_assert_cmpuint(layout.frame_owner, ==, 70);
    g_assert_cmpuint(layout.frame_is_entry, ==, 0);
    g_assert_cmpuint(layout.code_bytes, ==, 208);
    g_assert_cmpuint(layout.code_file, ==, 112);
    g_assert_cmpuint(layout.code_name, ==, 128);
    g_assert_cmpuint(layout.code_lines, ==, 136);
    g_assert_cmpuint(layout.code_first_line, ==, 68);
    g_assert_cmpuint(layout.code_start, ==, 200);
    g_assert_cmpuint(layout.text_length, ==, 16);
    g_assert_cmpuint(layout.text_state, ==, 32);
    g_assert_cmpuint(layout.text_ascii, ==, 40);
    g_assert_cmpuint(layout.text_compact, ==, 56);
    g_assert_cmpuint(layout.kind_bit, ==, 2);
    g_assert_cmpuint(layout.bytes_length, ==, 16);
    g_assert_cmpuint(layout.bytes_data, ==, 32);
}

/* 3.11 and 3.12 do not describe themselves. */
static void
test_table(void)
{
    UprofPythonLayout layout;

    g_assert_true(find(NULL, 0, 0x030b02f0, &layout));
    g_assert_cmphex(layout.version, ==, 0x030b);
    g_assert_true(layout.has_c_frames && layout.frame_is_entry != 0);
    g_assert_true(find(NULL, 0, 0x030c01f0, &layout));
    g_assert_cmphex(layout.version, ==, 0x030c);
    g_assert_true(layout.has_c_frames && layout.frame_is_entry == 0);
}

/* Where 3.14 and 3.15 describe each member, by CPython's Include/internal/pycore_debug_offsets.h */
/* clang-format off */
static const struct {
    size_t member; /* in UprofPythonLayout */
    unsigned at_3_14, at_3_15;
} places[] = {
    { G_STRUCT_OFFSET(UprofPythonLayout, first_interpreter), 40,  40 },
    { G_STRUCT_OFFSET(UprofPythonLayout, next_interpreter),  64,  64 },
    { G_STRUCT_OFFSET(UprofPythonLayout, first_thread),      72,  72 },
    { G_STRUCT_OFFSET(UprofPythonLayout, next_thread),       192, 192 },
    { G_STRUCT_OFFSET(UprofPythonLayout, thread_frame),      208, 208 },
    { G_STRUCT_OFFSET(UprofPythonLayout, thread_id),         216, 240 },
    { G_STRUCT_OFFSET(UprofPythonLayout, frame_previous),    256, 320 },
    { G_STRUCT_OFFSET(UprofPythonLayout, frame_code),        264, 328 },
    { G_STRUCT_OFFSET(UprofPythonLayout, frame_instruction), 272, 336 },
    { G_STRUCT_OFFSET(UprofPythonLayout, frame_owner),       288, 352 },
    { G_STRUCT_OFFSET(UprofPythonLayout, code_file),         320, 384 },
    { G_STRUCT_OFFSET(UprofPythonLayout, code_name),         336, 400 },
    { G_STRUCT_OFFSET(UprofPythonLayout, code_lines),        344, 408 },
    { G_STRUCT_OFFSET(UprofPythonLayout, code_first_line),   352, 416 },
    { G_STRUCT_OFFSET(UprofPythonLayout, code_start),        384, 448 },
    { G_STRUCT_OFFSET(UprofPythonLayout, bytes_length),      600, 696 },
    { G_STRUCT_OFFSET(UprofPythonLayout, bytes_data),        608, 704 },
    { G_STRUCT_OFFSET(UprofPythonLayout, text_state),        624, 720 },
    { G_STRUCT_OFFSET(UprofPythonLayout, text_length),       632, 728 },
    { G_STRUCT_OFFSET(UprofPythonLayout, text_ascii),        640, 736 },
};
/* clang-format on */

/* @sizes: where the sizes of the structs are: interpreter, thread, frame, code */
static void
check_places(uint32_t version, const unsigned *sizes, bool is_free)
{
    uint64_t words[WORDS] = { 0x7970677562656478, version << 16, is_free };
    UprofPythonLayout layout;

    for (unsigned i = 0; i < 4; i++)
        words[sizes[i] / 8] = 120;
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
        words[(version == 0x030e ? places[i].at_3_14 : places[i].at_3_15) / 8] = 3 + 5 * i;
    g_assert_true(find(words, WORDS, 0, &layout));
    g_assert_cmphex(layout.version, ==, version);
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
        g_assert_cmpuint(G_STRUCT_MEMBER(uint32_t, &layout, places[i].member), ==, 3 + 5 * i);
    g_assert_cmpuint(layout.text_compact, ==, layout.text_ascii + 16);
    g_assert_cmpuint(layout.kind_bit, ==, is_free ? 8 : 2);
    g_assert_cmpuint(layout.frame_bytes, ==, 120);
    g_assert_cmpuint(layout.code_bytes, ==, 120);
}

static void
test_places(void)
{
    static const unsigned sizes_3_14[] = { 48, 176, 248, 312 },
                          sizes_3_15[] = { 48, 176, 312, 376 };

    for (unsigned is_free = 0; is_free < 2; is_free++) {
        check_places(0x030e, sizes_3_14, is_free);
        check_places(0x030f, sizes_3_15, is_free);
    }
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned word;
    uint64_t value;
} bad[] = {
    { "cookie",            0,  0x7970677562656479 },
    { "version-3.12",      1,  0x030c00f0 },
    { "version-3.16",      1,  0x031000f0 },
    { "version-high",      1,  UINT64_MAX },
    { "interpreters",      5,  UINT64_MAX },
    { "interpreter-bytes", 6,  UINT64_MAX },
    { "interpreter-next",  8,  0x2f998 },
    { "threads",           9,  0x2f991 },
    { "thread-bytes",      19, 0 },
    { "thread-frame",      23, 0x129 },
    { "thread-frame-far",  23, 0x8000 },
    { "frame-bytes",       28, 0 },
    { "frame-previous",    29, 73 },
    { "frame-owner",       33, 80 },
    { "code-bytes",        34, 8 },
    { "code-file",         35, 0xd0 },
    { "code-line",         39, 0xcd },
    { "text-state",        68, UINT64_MAX },
    { "bytes-data",        66, 257 },
};
/* clang-format on */

static void
test_bad(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint64_t words[G_N_ELEMENTS(words_3_13)];
    UprofPythonLayout layout = { .version = 1 };

    memcpy(words, words_3_13, sizeof(words));
    words[bad[i].word] = bad[i].value;
    g_assert_false(find(words, G_N_ELEMENTS(words), 0x030d00f0, &layout));
    g_assert_cmpuint(layout.version, ==, 1);
}

static void
test_short(void)
{
    UprofPythonLayout layout;

    for (size_t n = 0; n < G_N_ELEMENTS(words_3_13) * 8; n += 8)
        g_assert_false(
            uprof_python_layout_find(0x030d00f0, (UprofSlice){ words_3_13, n }, &layout));
}

/* Frames and code objects of any length: only the first bytes are read. */
static void
test_long(void)
{
    uint64_t words[G_N_ELEMENTS(words_3_13)];
    UprofPythonLayout layout;

    memcpy(words, words_3_13, sizeof(words));
    words[28] = words[34] = 1 << 30;
    g_assert_true(find(words, G_N_ELEMENTS(words), 0x030d00f0, &layout));
    g_assert_cmpuint(layout.frame_bytes, ==, UPROF_PYTHON_FRAME_BYTES_MAX);
    g_assert_cmpuint(layout.code_bytes, ==, UPROF_PYTHON_CODE_BYTES_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/python-layout/offsets", test_offsets);
    g_test_add_func("/python-layout/table", test_table);
    g_test_add_func("/python-layout/places", test_places);
    g_test_add_func("/python-layout/short", test_short);
    g_test_add_func("/python-layout/long", test_long);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *path = g_strdup_printf("/python-layout/bad/%s", bad[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_bad);
    }
    return g_test_run();
}
