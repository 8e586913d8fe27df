/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/vmcoreinfo.h"

#include <string.h>

#include "uprof/error.h"

#define BUILD_ID "3f2a91c00123456789abcdef0123456789abcdef"
static const char whole[] = "OSRELEASE=6.1.0-56-cloud-amd64\n"
                            "BUILD-ID=" BUILD_ID "\n"
                            "PAGESIZE=4096\n"
                            "SYMBOL(init_uts_ns)=ffffffff82a12c80\n"
                            "SYMBOL(swapper_pg_dir)=ffffffff82a10000\n"
                            "SIZE(page)=64\n"
                            "OFFSET(list_head.next)=0\n"
                            "OFFSET(list_head.prev)=8\n"
                            "LENGTH(zone.free_area)=11\n"
                            "NUMBER(pgtable_l5_enabled)=1\n"
                            "NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)=-129\n"
                            "NUMBER(kimage_voffset)=0xffff7fffc0000000\n"
                            "NUMBER(lowest)=-9223372036854775808\n"
                            "NUMBER(too_low)=-9223372036854775809\n"
                            "NUMBER(PG_lru)=4\n"
                            "NUMBER(PG_lru)=5\n"
                            "NUMBER(empty)=\n"
                            "NUMBER(words)=4 k\n"
                            "NUMBER(minus)=-\n"
                            "NUMBER(half)=0x\n"
                            "NUMBER(minus_hex)=-0x1\n"
                            "NUMBER()=3\n"
                            "SYMBOL(mem_section)=0x12\n"
                            "CONFIG_SMP=y\n"
                            "KERNELOFFSET=1c000000\n";

/* clang-format off */
static const struct {
    UprofVmcoreinfoKind kind;
    const char *name;
    bool found;
    uint64_t value;
} answers[] = {
    { UPROF_VMCOREINFO_KERNEL_OFFSET, NULL, true, 0x1c000000 },
    { UPROF_VMCOREINFO_SYMBOL, "init_uts_ns", true, UINT64_C(0xffffffff82a12c80) },
    { UPROF_VMCOREINFO_SYMBOL, "swapper_pg_dir", true, UINT64_C(0xffffffff82a10000) },
    { UPROF_VMCOREINFO_SYMBOL, "swapper_pg", false, 0 },
    { UPROF_VMCOREINFO_SYMBOL, "swapper_pg_dirs", false, 0 },
    { UPROF_VMCOREINFO_SYMBOL, "mem_section", false, 0 },
    { UPROF_VMCOREINFO_SYMBOL, "page", false, 0 },
    { UPROF_VMCOREINFO_SYMBOL, "", false, 0 },
    { UPROF_VMCOREINFO_SIZE, "page", true, 64 },
    { UPROF_VMCOREINFO_OFFSET, "list_head.next", true, 0 },
    { UPROF_VMCOREINFO_OFFSET, "list_head.prev", true, 8 },
    { UPROF_VMCOREINFO_OFFSET, "list_head", false, 0 },
    { UPROF_VMCOREINFO_LENGTH, "zone.free_area", true, 11 },
    { UPROF_VMCOREINFO_NUMBER, "pgtable_l5_enabled", true, 1 },
    { UPROF_VMCOREINFO_NUMBER, "PAGE_BUDDY_MAPCOUNT_VALUE", true, (uint64_t)INT64_C(-129) },
    { UPROF_VMCOREINFO_NUMBER, "kimage_voffset", true, UINT64_C(0xffff7fffc0000000) },
    { UPROF_VMCOREINFO_NUMBER, "lowest", true, UINT64_C(1) << 63 },
    { UPROF_VMCOREINFO_NUMBER, "too_low", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "PG_lru", true, 4 },
    { UPROF_VMCOREINFO_NUMBER, "empty", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "words", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "minus", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "half", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "minus_hex", false, 0 },
    { UPROF_VMCOREINFO_NUMBER, "", true, 3 },
};

#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *name;
    const char *text;
    size_t len;
    const char *error;   /* NULL: must parse */
    const char *release;
    const char *build_id;
} cases[] = {
    { "whole",          BYTES(whole), NULL, "6.1.0-56-cloud-amd64", BUILD_ID },
    { "minimal",        BYTES("OSRELEASE=6.1"), NULL, "6.1", NULL },
    { "padded",         BYTES("OSRELEASE=6.1\n\0\0\0\0"), NULL, "6.1", NULL },
    { "last",           BYTES("A=\nOSRELEASE=6.1\n"), NULL, "6.1", NULL },
    { "first-counts",   BYTES("OSRELEASE=6.1\nOSRELEASE=6.2\n"), NULL, "6.1", NULL },
    { "marker",         BYTES("OSRELEASE=[x];6\n"), NULL, "{x]:6", NULL },
    { "large-digits",   BYTES("OSRELEASE=6.1\nBUILD-ID=ABCDEF00\n"), NULL, "6.1", "abcdef00" },
    { "odd-build-id",   BYTES("OSRELEASE=6.1\nBUILD-ID=abc\n"), NULL, "6.1", NULL },
    { "bad-build-id",   BYTES("OSRELEASE=6.1\nBUILD-ID=abcg\n"), NULL, "6.1", NULL },
    { "empty-build-id", BYTES("OSRELEASE=6.1\nBUILD-ID=\n"), NULL, "6.1", NULL },
    { "long-build-id",  BYTES("OSRELEASE=6.1\nBUILD-ID=" BUILD_ID "00\n"), NULL, "6.1", NULL },
    { "longest",        BYTES("OSRELEASE=6.1-901234567890123456789012345678901234567890123456789012345678\n"), NULL,
      "6.1-901234567890123456789012345678901234567890123456789012345678", NULL },
    { "empty",          BYTES(""), "VMCOREINFO line 0: no OSRELEASE", NULL, NULL },
    { "only-padding",   BYTES("\0\0\0"), "VMCOREINFO line 0: no OSRELEASE", NULL, NULL },
    { "no-release",     BYTES("PAGESIZE=4096\n"), "VMCOREINFO line 0: no OSRELEASE", NULL, NULL },
    { "empty-release",  BYTES("OSRELEASE=\n"), "VMCOREINFO line 0: no OSRELEASE", NULL, NULL },
    { "long-release",   BYTES("OSRELEASE=6.1-9012345678901234567890123456789012345678901234567890123456789\n"), "VMCOREINFO line 0: no OSRELEASE", NULL, NULL },
    { "no-value",       BYTES("OSRELEASE=6.1\nPAGESIZE\n"), "VMCOREINFO line 2: no KEY=VALUE", NULL, NULL },
    { "no-key",         BYTES("OSRELEASE=6.1\n=4\n"), "VMCOREINFO line 2: no KEY=VALUE", NULL, NULL },
    { "empty-line",     BYTES("OSRELEASE=6.1\n\nA=4\n"), "VMCOREINFO line 2: no KEY=VALUE", NULL, NULL },
    { "nul-inside",     BYTES("OSRELEASE=6.1\n\0A=4\n"), "VMCOREINFO line 2: bytes that are no text", NULL, NULL },
    { "escape",         BYTES("OSRELEASE=6.1\x1b[31m\n"), "VMCOREINFO line 1: bytes that are no text", NULL, NULL },
    { "high",           BYTES("OSRELEASE=6.1\nA=\xff\n"), "VMCOREINFO line 2: bytes that are no text", NULL, NULL },
    { "carriage",       BYTES("OSRELEASE=6\r.1\n"), "VMCOREINFO line 1: bytes that are no text", NULL, NULL },
};
/* clang-format on */

static UprofVmcoreinfo *
parse(const char *text, size_t len, GError **error)
{
    /* of exactly that size */
    g_autofree char *copy = g_memdup2(text, len);

    return uprof_vmcoreinfo_parse((UprofSlice){ copy, len }, error);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofVmcoreinfo) info = parse(cases[i].text, cases[i].len, &error);

    if (cases[i].error) {
        g_assert_null(info);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_cmpstr(error->message, ==, cases[i].error);
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpstr(uprof_vmcoreinfo_release(info), ==, cases[i].release);
    g_assert_cmpstr(uprof_vmcoreinfo_build_id(info), ==, cases[i].build_id);
}

static void
test_answers(void)
{
    g_autoptr(UprofVmcoreinfo) info = parse(whole, sizeof(whole) - 1, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        uint64_t value = 42;
        const bool found = uprof_vmcoreinfo_find(info, answers[i].kind, answers[i].name, &value);
        if (found != answers[i].found || value != (found ? answers[i].value : 42))
            g_error("'%s': %s, %" G_GINT64_MODIFIER "x", answers[i].name,
                    found ? "found" : "not found", value);
    }
}

/* As much as there may be, and a byte more. */
static void
test_longest(void)
{
    g_autoptr(GString) text = g_string_new("OSRELEASE=6.1\nNUMBER(n)=");
    g_autoptr(GError) error = NULL;
    uint64_t value = 42;

    while (text->len < UPROF_VMCOREINFO_BYTES_MAX)
        g_string_append_c(text, '1');
    g_autoptr(UprofVmcoreinfo) info = parse(text->str, text->len, &error);
    g_assert_no_error(error);
    g_assert_false(uprof_vmcoreinfo_find(info, UPROF_VMCOREINFO_NUMBER, "n", &value));
    g_assert_cmpuint(value, ==, 42);
    g_string_append_c(text, '\n');
    g_assert_null(parse(text->str, text->len, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "VMCOREINFO line 0: 65537 bytes are too many");
}

/* Cut anywhere: it has a release, or is refused. */
static void
test_cut(void)
{
    unsigned n_taken = 0;

    for (size_t len = 0; len < sizeof(whole); len++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofVmcoreinfo) info = parse(whole, len, &error);
        g_assert_true(!info == !!error);
        n_taken += info && g_str_has_prefix("6.1.0-56-cloud-amd64", uprof_vmcoreinfo_release(info));
    }
    g_assert_cmpuint(n_taken, >, 100);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/vmcoreinfo/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/vmcoreinfo/answers", test_answers);
    g_test_add_func("/vmcoreinfo/length", test_longest);
    g_test_add_func("/vmcoreinfo/cut", test_cut);
    return g_test_run();
}
