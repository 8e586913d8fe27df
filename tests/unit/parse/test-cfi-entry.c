/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/cfi-entry-priv.h"

enum { START = 0x8000, IS_32 = 1, IS_DEBUG = 2 };

#define BYTES(text) text, sizeof(text) - 1
/* code_align 1, data_align -8, return register 16 */
#define NUMBERS "\1\x78\x10"
#define CIE "\x0e\0\0\0\0\0\0\0\1zR\0" NUMBERS "\1\x1b\0" /* pc-relative, of 4 bytes */
#define FDE "\x0f\0\0\0\x16\0\0\0\x10\0\0\0\x40\0\0\0\0\x0e\x10"

/* clang-format off */
/* A CIE and its FDE, with the expected fields. */
static const struct {
    const char *name;
    const char *bytes;
    size_t len;
    unsigned flags;
    bool is_cie, is_fde; /* and can be understood */
    uint64_t start, code_len;
    unsigned program_len; /* of the FDE */
    bool is_signal;
} cases[] = {
    { "eh",           BYTES(CIE FDE), 0, true, true, START + 0x1a + 0x10, 0x40, 2, false },
    { "absolute",     BYTES("\x0e\0\0\0\0\0\0\0\1zR\0" NUMBERS "\1\3\0" FDE), 0, true, true, 0x10, 0x40, 2, false },
    { "left-out",     BYTES(CIE "\x0f\0\0\0\x16\0\0\0\0\0\0\0\x40\0\0\0\0\x0e\x10"), 0, true, true, 0, 0x40, 2, false },
    { "two-bytes",    BYTES("\x0e\0\0\0\0\0\0\0\1zR\0" NUMBERS "\1\x0a\0" "\x0a\0\0\0\x16\0\0\0\xfe\xff\x40\0\0\x0e"), 0,
      true, true, UINT64_MAX - 1, 0x40, 1, false },
    { "leb",          BYTES("\x0e\0\0\0\0\0\0\0\1zR\0" NUMBERS "\1\1\0" "\x0a\0\0\0\x16\0\0\0\x80\x20\x40\0\0\0"), 0,
      true, true, 0x1000, 0x40, 2, false },
    { "signal",       BYTES("\x0f\0\0\0\0\0\0\0\1zSR\0" NUMBERS "\1\3\0"
      "\x0f\0\0\0\x17\0\0\0\x10\0\0\0\x40\0\0\0\0\0\0"), 0, true, true, 0x10, 0x40, 2, true },
    { "no-letters",   BYTES("\x0b\0\0\0\0\0\0\0\1\0" NUMBERS "\0\0"
      "\x14\0\0\0\x13\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"), 0, true, true, 0x1000, 0x40, 0, false },
    { "32-bit",       BYTES("\x0e\0\0\0\0\0\0\0\1zR\0\1\x7c\x08\1\x1b\0" FDE), IS_32, true, true, START + 0x1a + 0x10, 0x40, 2, false },
    { "debug",        BYTES("\x0b\0\0\0\xff\xff\xff\xff\3\0" NUMBERS "\0\0"
      "\x15\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x0e"), IS_DEBUG, true, true, 0x1000, 0x40, 1, false },
    { "debug-4",      BYTES("\x0d\0\0\0\xff\xff\xff\xff\4\0\x08\0" NUMBERS "\0\0"
      "\x15\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x0e"), IS_DEBUG, true, true, 0x1000, 0x40, 1, false },
    { "segments",     BYTES("\x0d\0\0\0\xff\xff\xff\xff\4\0\x08\1" NUMBERS "\0\0"
      "\x15\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x0e"), IS_DEBUG, false, false, 0, 0, 0, false },
    { "version-2",    BYTES("\x0e\0\0\0\0\0\0\0\2zR\0" NUMBERS "\1\x1b\0" FDE), 0, false, false, 0, 0, 0, false },
    { "unknown-letter", BYTES("\x0e\0\0\0\0\0\0\0\1zX\0" NUMBERS "\1\x1b\0" FDE), 0, false, false, 0, 0, 0, false },
    { "indirect",     BYTES("\x0e\0\0\0\0\0\0\0\1zR\0" NUMBERS "\1\x9b\0" FDE), 0, false, false, 0, 0, 0, false },
    { "register-200", BYTES("\x0e\0\0\0\0\0\0\0\1zR\0\1\x78\xc8\1\x1b\0" FDE), 0, false, false, 0, 0, 0, false },
    { "endless-letters", BYTES("\x0f\0\0\0\0\0\0\0\1zRRRRRRRRRRRRRRR" FDE), 0, false, false, 0, 0, 0, false },
    { "short-address", BYTES(CIE "\6\0\0\0\x16\0\0\0\x10\0"), 0, true, false, 0, 0, 0, false },
    { "long-augmentation", BYTES(CIE "\x0f\0\0\0\x16\0\0\0\x10\0\0\0\x40\0\0\0\3\x0e\x10"), 0, true, false, 0, 0, 0, false },
};
/* clang-format on */

static UprofCfiSection
make_section(const char *bytes, size_t len, unsigned flags)
{
    return (UprofCfiSection){ .arch = uprof_arch_of_elf(flags & IS_32 ? 3 : 62),
                              .name = "file",
                              .start = START,
                              .bytes = { bytes, len },
                              .is_eh = !(flags & IS_DEBUG) };
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofCfiSection section = make_section(cases[i].bytes, cases[i].len, cases[i].flags);
    UprofBytes bytes = uprof_cfi_entry_first(&section);
    g_autoptr(GError) error = NULL;
    UprofCfiEntry entry;
    UprofCfiCie cie;
    UprofCfiFde fde;

    g_assert_true(uprof_cfi_entry_next(&section, &bytes, &entry, &error));
    g_assert_no_error(error);
    g_assert_true(entry.is_cie);
    g_assert_cmpuint(entry.at, ==, 0);
    g_assert_cmpint(uprof_cfi_entry_cie(&section, &entry, &cie), ==, cases[i].is_cie);
    if (!cases[i].is_cie)
        return;
    g_assert_cmpint(cie.is_signal, ==, cases[i].is_signal);
    g_assert_false(uprof_cfi_entry_fde(&section, &entry, &cie, &fde));

    g_assert_true(uprof_cfi_entry_next(&section, &bytes, &entry, &error));
    g_assert_false(entry.is_cie);
    g_assert_cmpuint(entry.cie_at, ==, 0);
    g_assert_false(uprof_cfi_entry_cie(&section, &entry, &(UprofCfiCie){ 0 }));
    g_assert_cmpint(uprof_cfi_entry_fde(&section, &entry, &cie, &fde), ==, cases[i].is_fde);
    g_assert_cmpuint(uprof_bytes_left(&bytes), ==, 0);
    if (!cases[i].is_fde)
        return;
    g_assert_cmphex(fde.start, ==, cases[i].start);
    g_assert_cmphex(fde.len, ==, cases[i].code_len);
    g_assert_cmpuint(uprof_bytes_left(&fde.program), ==, cases[i].program_len);
}

/* A malformed entry ends the section with an error that names the file. */
static void
test_bad_lengths(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *message;
    } bad[] = {
        { BYTES("\1\0"), "*file*truncated entry*" },
        { BYTES("\x10\0\0\0\0\0\0\0"), "*file*ends beyond its section*" },
        { BYTES("\xf0\xff\xff\xff\0\0\0\0"), "*file*bad length*" },
        { BYTES("\xff\xff\xff\xff\0\0\0\0"), "*file*truncated entry*" },
        { BYTES("\2\0\0\0\0\0"), "*file*truncated entry*" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        const UprofCfiSection section = make_section(bad[i].bytes, bad[i].len, 0);
        UprofBytes bytes = uprof_cfi_entry_first(&section);
        g_autoptr(GError) error = NULL;
        UprofCfiEntry entry;

        g_assert_false(uprof_cfi_entry_next(&section, &bytes, &entry, &error));
        g_assert_true(g_pattern_match_simple(bad[i].message, error->message));
    }
}

/* Each linked object file ends with an empty entry. */
static void
test_end_mark(void)
{
    const UprofCfiSection section = make_section(BYTES("\0\0\0\0" CIE), 0);
    UprofBytes bytes = uprof_cfi_entry_first(&section);
    UprofCfiEntry entry;
    UprofCfiCie cie;

    g_assert_true(uprof_cfi_entry_next(&section, &bytes, &entry, NULL));
    g_assert_true(entry.is_end);
    g_assert_false(uprof_cfi_entry_cie(&section, &entry, &cie));
    g_assert_true(uprof_cfi_entry_next(&section, &bytes, &entry, NULL));
    g_assert_false(entry.is_end);
    g_assert_cmpuint(entry.at, ==, 4);
    g_assert_true(uprof_cfi_entry_cie(&section, &entry, &cie));
    g_assert_cmpuint(cie.at, ==, 4);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/cfi-entry/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/cfi-entry/bad-lengths", test_bad_lengths);
    g_test_add_func("/cfi-entry/end-mark", test_end_mark);
    return g_test_run();
}
