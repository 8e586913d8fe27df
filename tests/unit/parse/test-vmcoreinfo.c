/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/vmcoreinfo.h"

#include <string.h>

#include "uprof/error.h"

#define BUILD_ID "3f2a91c00123456789abcdef0123456789abcdef"
static const char complete[] = "OSRELEASE=6.1.0-56-cloud-amd64\n"
                               "BUILD-ID=" BUILD_ID "\n"
                               "PAGESIZE=4096\n"
                               "SYMBOL(init_uts_ns)=ffffffff82a12c80\n"
                               "SIZE(page)=64\n"
                               "OFFSET(list_head.next)=0\n"
                               "LENGTH(zone.free_area)=11\n"
                               "NUMBER(pgtable_l5_enabled)=1\n"
                               "NUMBER()=3\n"
                               "CONFIG_SMP=y\n"
                               "KERNELOFFSET=1c000000\n";

/* clang-format off */
#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *name;
    const char *text;
    size_t len;
    const char *error;   /* NULL: the text is valid */
    const char *release;
    const char *build_id;
} cases[] = {
    { "complete",          BYTES(complete), NULL, "6.1.0-56-cloud-amd64", BUILD_ID },
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
    { "nul-inside",     BYTES("OSRELEASE=6.1\n\0A=4\n"), "VMCOREINFO line 2: bytes that are not text", NULL, NULL },
    { "escape",         BYTES("OSRELEASE=6.1\x1b[31m\n"), "VMCOREINFO line 1: bytes that are not text", NULL, NULL },
    { "high",           BYTES("OSRELEASE=6.1\nA=\xff\n"), "VMCOREINFO line 2: bytes that are not text", NULL, NULL },
    { "carriage",       BYTES("OSRELEASE=6\r.1\n"), "VMCOREINFO line 1: bytes that are not text", NULL, NULL },
};
/* clang-format on */

static UprofVmcoreinfo *
parse(const char *text, size_t len, GError **error)
{
    /* a copy of exactly that size, so that sanitizers see reads behind its end */
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

/* The longest text is valid; one more byte is not. */
static void
test_longest(void)
{
    g_autoptr(GString) text = g_string_new("OSRELEASE=6.1\nNUMBER(n)=");
    g_autoptr(GError) error = NULL;

    while (text->len < UPROF_VMCOREINFO_BYTES_MAX)
        g_string_append_c(text, '1');
    g_autoptr(UprofVmcoreinfo) info = parse(text->str, text->len, &error);
    g_assert_no_error(error);
    g_assert_nonnull(info);
    g_string_append_c(text, '\n');
    g_assert_null(parse(text->str, text->len, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "VMCOREINFO line 0: 65537 bytes are too many");
}

/* A truncated text has a release or is refused. */
static void
test_cut(void)
{
    unsigned n_taken = 0;

    for (size_t len = 0; len < sizeof(complete); len++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofVmcoreinfo) info = parse(complete, len, &error);
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
    g_test_add_func("/vmcoreinfo/length", test_longest);
    g_test_add_func("/vmcoreinfo/cut", test_cut);
    return g_test_run();
}
