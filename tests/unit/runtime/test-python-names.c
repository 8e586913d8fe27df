/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "../../../src/runtime/python-names-priv.h"

/* ---- Lines ---- */

/* The table of this function, as CPython 3.11.2 makes it; it begins in line 1:
 *     def f(a):
 *         b = a
 *
 *         for i in range(3):
 *             b += (i +
 *                   a)
 *         return b
 */
static const uint8_t table[] = {
    0x80, 0x00, 0xd8, 0x08, 0x09, 0x80, 0x41, 0xe5, 0x0d, 0x12, 0x90, 0x31, 0x89, 0x58,
    0x8c, 0x58, 0xf0, 0x00, 0x02, 0x05, 0x11, 0xf0, 0x00, 0x00, 0x02, 0x05, 0x11, 0x88,
    0x01, 0xd8, 0x08, 0x09, 0x88, 0x61, 0xd8, 0x0e, 0x0f, 0xf1, 0x03, 0x01, 0x0f, 0x10,
    0xf1, 0x00, 0x01, 0x09, 0x11, 0x88, 0x01, 0x88, 0x01, 0xe0, 0x0b, 0x0c, 0x80, 0x48,
};

/* clang-format off */
static const struct {
    uint64_t offset;
    unsigned line;
} lines[] = {
    { 0, 1 }, { 2, 2 }, { 4, 2 }, { 6, 4 }, { 18, 4 }, { 38, 4 }, { 40, 5 }, { 42, 5 }, { 44, 6 },
    { 46, 5 }, { 56, 5 }, { 58, 7 }, { 60, 7 }, { 62, 0 }, { UINT64_MAX, 0 },
};
/* clang-format on */

static void
test_lines(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        g_assert_cmpuint(
            uprof_python_line_find((UprofSlice){ table, sizeof(table) }, 1, lines[i].offset), ==,
            lines[i].line);
}

/* Tables that end in an entry, have no line, or have lines that no file has. */
static void
test_bad_lines(void)
{
    static const uint8_t far[] = { 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f };
    static const uint8_t high[] = { 0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x1f };
    static const uint8_t below[] = { 0xe8, 0x09 };
    static const uint8_t none[] = { 0xf8 };
    static const uint8_t unmarked[] = { 0x00, 0x01, 0x02 };

    for (size_t n = 0; n <= sizeof(table); n++)
        for (uint64_t offset = 0; offset < 70; offset++)
            g_assert_cmpuint(uprof_python_line_find((UprofSlice){ table, n }, 1, offset), <=, 7);
    g_assert_cmpuint(uprof_python_line_find((UprofSlice){ far, sizeof(far) }, 1, 0), ==, 0);
    g_assert_cmpuint(uprof_python_line_find((UprofSlice){ high, sizeof(high) }, 1, 0), ==, 0);
    g_assert_cmpuint(uprof_python_line_find((UprofSlice){ below, sizeof(below) }, 1, 0), ==, 0);
    g_assert_cmpuint(uprof_python_line_find((UprofSlice){ none, sizeof(none) }, 1, 0), ==, 0);
    uprof_python_line_find((UprofSlice){ unmarked, sizeof(unmarked) }, UINT_MAX, 0);
    uprof_python_line_find((UprofSlice){ NULL, 0 }, 1, 0);
}

/* ---- Names ---- */

#define HEAP UINT64_C(0x7f2000000000)

enum {
    PAGE = 4096,
    CODE = 0x100,
    NAME = 0x300,
    FILE_NAME = 0x800,
    LINES = 0xb00,
    FREE = 1, /* added to a version: texts as in 3.14 without the GIL */
    INTERNED = 1,
    COMPACT = 8, /* in units of the kind's bit */
    ASCII = 16,
};

typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    UprofPythonNames *names;
    UprofPythonLayout layout;
    uint64_t heap; /* guest-physical */
} Fixture;

static uint8_t *
at(const Fixture *fixture, uint64_t offset)
{
    return fixture->guest->memory->ram + fixture->heap + offset;
}

static void
put_word(const Fixture *fixture, uint64_t offset, uint64_t word)
{
    linux_guest_put(fixture->guest, fixture->heap + offset, word);
}

/* Writes a str of characters that take @kind bytes each. */
static void
put_text(const Fixture *fixture, uint64_t offset, const void *chars, size_t n, unsigned kind,
         bool is_ascii)
{
    const UprofPythonLayout *layout = &fixture->layout;

    put_word(fixture, offset + layout->text_length, n);
    put_word(fixture, offset + layout->text_state,
             INTERNED | (kind | COMPACT | (is_ascii ? ASCII : 0u)) << layout->kind_bit);
    memcpy(at(fixture, offset + (is_ascii ? layout->text_ascii : layout->text_compact)), chars,
           n * kind);
}

static void
take_sample(Fixture *fixture)
{
    uprof_mem_forget(fixture->view->mem);
    linux_view_sample(fixture->view, 0);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    const uint32_t version = GPOINTER_TO_UINT(data);

    fixture->guest = linux_guest_new(&(LinuxPlan){ .more_bytes = 16 * PAGE });
    LinuxGuest *guest = fixture->guest;
    g_assert_true(
        uprof_python_layout_find(version & ~FREE, (UprofSlice){ "", 0 }, &fixture->layout));
    if (version & FREE)
        fixture->layout.kind_bit = 8;
    fixture->heap = linux_guest_alloc(guest, PAGE, PAGE);
    linux_guest_map(guest, guest->process_root, HEAP, fixture->heap, LINUX_USER);
    put_word(fixture, CODE + fixture->layout.code_name, HEAP + NAME);
    put_word(fixture, CODE + fixture->layout.code_file, HEAP + FILE_NAME);
    put_word(fixture, CODE + fixture->layout.code_lines, HEAP + LINES);
    const uint32_t first = GUINT32_TO_LE(1);
    memcpy(at(fixture, CODE + fixture->layout.code_first_line), &first, sizeof(first));
    put_text(fixture, NAME, "Shop.total", 10, 1, true);
    put_text(fixture, FILE_NAME, "/srv/shop.py", 12, 1, true);
    put_word(fixture, LINES + fixture->layout.bytes_length, sizeof(table));
    memcpy(at(fixture, LINES + fixture->layout.bytes_data), table, sizeof(table));
    fixture->view = linux_view_new(guest);
    fixture->names = uprof_python_names_new(fixture->view->space, fixture->view->names);
    take_sample(fixture);
    take_sample(fixture);
    g_assert_true(uprof_space_has_process(fixture->view->space));
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_python_names_free(fixture->names);
    linux_view_free(fixture->view);
    linux_guest_free(fixture->guest);
}

static const char *
find_name(Fixture *fixture, uint64_t offset, bool with_line)
{
    const UprofName *name =
        uprof_python_names_find(fixture->names, &fixture->layout, 1, HEAP + CODE,
                                HEAP + CODE + fixture->layout.code_start + offset, with_line);

    return name ? uprof_name_text(name) : NULL;
}

static void
test_names(Fixture *fixture, gconstpointer data)
{
    static const uint8_t latin[] = { 'G', 'r', 0xf6, 0xdf, 'e' };
    static const uint16_t wide[] = { 0x0416, 'x', 0xd800 };
    static const uint32_t widest[] = { 0x1f40d, 0x110000, '\n' };

    g_assert_cmpstr(find_name(fixture, 0, false), ==, "Shop.total (shop.py)");
    g_assert_cmpstr(find_name(fixture, 6, true), ==, "Shop.total (shop.py:4)");
    g_assert_cmpstr(find_name(fixture, 62, true), ==, "Shop.total (shop.py)");
    g_assert_cmpstr(find_name(fixture, (uint64_t)-2, true), ==, "Shop.total (shop.py:1)");
    g_assert_cmpstr(find_name(fixture, (uint64_t)-64, true), ==, "Shop.total (shop.py)");

    /* the memory is used for another function */
    put_text(fixture, NAME + 0x100, latin, sizeof(latin), 1, false);
    put_word(fixture, CODE + fixture->layout.code_name, HEAP + NAME + 0x100);
    take_sample(fixture);
    g_assert_cmpstr(find_name(fixture, 0, false), ==,
                    "Gr\xc3\xb6\xc3\x9f"
                    "e (shop.py)");
    put_text(fixture, NAME + 0x200, wide, G_N_ELEMENTS(wide), 2, false);
    put_word(fixture, CODE + fixture->layout.code_name, HEAP + NAME + 0x200);
    take_sample(fixture);
    g_assert_cmpstr(find_name(fixture, 0, false), ==, "\xd0\x96x\xef\xbf\xbd (shop.py)");
    put_text(fixture, NAME + 0x300, widest, G_N_ELEMENTS(widest), 4, false);
    put_word(fixture, CODE + fixture->layout.code_name, HEAP + NAME + 0x300);
    take_sample(fixture);
    g_assert_null(strchr(find_name(fixture, 0, false), '\n'));
    g_assert_true(g_str_has_prefix(find_name(fixture, 0, false), "\xf0\x9f\x90\x8d"));

    /* no file, and no lines */
    put_word(fixture, CODE + fixture->layout.code_name, HEAP + NAME);
    put_word(fixture, CODE + fixture->layout.code_file, 0);
    put_word(fixture, CODE + fixture->layout.code_lines, HEAP + PAGE - 4);
    take_sample(fixture);
    g_assert_cmpstr(find_name(fixture, 6, true), ==, "Shop.total");
}

/* Objects that lie: there is no name rather than a wrong one. */
static void
test_hostile_names(Fixture *fixture, gconstpointer data)
{
    const UprofPythonLayout *layout = &fixture->layout;
    const struct {
        uint64_t offset, word;
    } lies[] = {
        { CODE + layout->code_name, 0 },
        { CODE + layout->code_name, HEAP + PAGE - 8 },
        { CODE + layout->code_name, UINT64_MAX },
        { CODE + layout->code_name, LINUX_DIRECT },
        { NAME + layout->text_length, 0 },
        { NAME + layout->text_length, UINT64_MAX },
        { NAME + layout->text_length, 1 << 20 },
        { NAME + layout->text_length, UINT64_MAX / 4 + 1 },
        { NAME + layout->text_state, 0 },
        { NAME + layout->text_state, (1u | ASCII) << layout->kind_bit },
        { NAME + layout->text_state, (3u | COMPACT) << layout->kind_bit },
        { NAME + layout->text_state, (7u | COMPACT) << layout->kind_bit },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
        const uint64_t before = linux_guest_get(fixture->guest, fixture->heap + lies[i].offset);
        UprofPythonNames *names =
            uprof_python_names_new(fixture->view->space, fixture->view->names);
        put_word(fixture, lies[i].offset, lies[i].word);
        take_sample(fixture);
        g_assert_null(uprof_python_names_find(names, layout, 1, HEAP + CODE, HEAP + CODE, true));
        put_word(fixture, lies[i].offset, before);
        uprof_python_names_free(names);
    }
    g_assert_null(uprof_python_names_find(fixture->names, layout, 1, UINT64_MAX - 8, 0, true));
    g_assert_null(uprof_python_names_find(fixture->names, layout, 1, HEAP + PAGE - 64, 0, true));
}

int
main(int argc, char **argv)
{
    static const unsigned versions[] = { 0x030b02f0, 0x030c01f0, 0x030c01f0 | FREE };

    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/python-names/lines", test_lines);
    g_test_add_func("/python-names/bad-lines", test_bad_lines);
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        const gconstpointer data = GUINT_TO_POINTER(versions[i]);
        g_autofree char *names_path = g_strdup_printf("/python-names/names/%x", versions[i]);
        g_autofree char *hostile_path = g_strdup_printf("/python-names/hostile/%x", versions[i]);
        g_test_add(names_path, Fixture, data, set_up, test_names, tear_down);
        g_test_add(hostile_path, Fixture, data, set_up, test_hostile_names, tear_down);
    }
    return g_test_run();
}
