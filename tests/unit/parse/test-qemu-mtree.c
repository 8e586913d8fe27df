/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/qemu-mtree-priv.h"
#include "uprof/error.h"
#include "uprof/qemu-mtree.h"

/* clang-format off */
#define OTHERS \
    "FlatView #0\r\n" \
    " AS \"e1000e\", root: bus master container\r\n" \
    " Root memory region: (none)\r\n" \
    "  No rendered FlatView\r\n" \
    "\r\n" \
    "FlatView #1\r\n" \
    " AS \"I/O\", root: io\r\n" \
    " Root memory region: io\r\n" \
    "  0000000000000000-ffffffffffffffff (prio 0, ram): not for the CPU\r\n" \
    "\r\n"
#define HEADING \
    "FlatView #2\r\n" \
    " AS \"memory\", root: system\r\n" \
    " AS \"cpu-memory-0\", root: system\r\n" \
    " Root memory region: system\r\n"
#define LOW  "  0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM\r\n"
#define ROM  "  00000000000c0000-00000000000cafff (prio 0, rom): pc.ram @00000000000c0000 KVM\r\n"
#define MAIN "  0000000000100000-000000007fffffff (prio 0, ram): pc.ram @0000000000100000 KVM\r\n"
#define IO   "  00000000fee00000-00000000feefffff (prio 4096, i/o): kvm-apic-msi\r\n"
#define HIGH "  0000000100000000-00000001bfffffff (prio -1, ram): a name @ with (odd, ram): parts\r\n"
#define NV   "  0000000200000000-00000002bfffffff (prio 0, nv-ram): nvdimm\r\n"
#define END  "\r\nFlatView #3\r\n" LOW

static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must parse */
    unsigned n;
    UprofRamRange first, last;
} cases[] = {
    { "whole",      OTHERS HEADING LOW ROM MAIN IO HIGH NV END,  NULL,
      3, { 0, 0xa0000, 0 }, { UINT64_C(0x100000000), UINT64_C(0xc0000000), 0 } },
    { "last-view",  OTHERS HEADING LOW MAIN,               NULL,
      2, { 0, 0xa0000, 0 }, { 0x100000, 0x7ff00000, 0 } },
    { "next-view",  HEADING LOW "FlatView #3\n" MAIN,      NULL,
      1, { 0, 0xa0000, 0 }, { 0, 0xa0000, 0 } },
    { "one-byte",   HEADING "ffffffffffffffff-ffffffffffffffff (prio 0, ram): x", NULL,
      1, { UINT64_MAX, 1, 0 }, { UINT64_MAX, 1, 0 } },
    { "all-i/o",    HEADING "0-ffffffffffffffff (prio 0, i/o): x\n" LOW, NULL,
      1, { 0, 0xa0000, 0 }, { 0, 0xa0000, 0 } },
    { "empty",      "",                          "info mtree line 0: no view of 'memory'*" },
    { "no-view",    OTHERS,                      "info mtree line 10: no view of 'memory'*" },
    { "other-name", "AS \"memory-1\", root\n" LOW, "*: no view of 'memory' up to here" },
    { "no-ram",     HEADING ROM IO END,          "*: no RAM in the view of 'memory'" },
    { "no-lines",   HEADING "  No rendered FlatView\r\n\r\n" LOW, "*: no RAM in the view*" },
    { "no-range",   HEADING "  hello\r\n",       "info mtree line 5: no range of addresses" },
    { "no-end",     HEADING "  0000- (prio 0, ram): x\n", "*: no range of addresses" },
    { "no-kind",    HEADING "  0-1 (prio 0",     "*: no kind of memory" },
    { "not-prio",   HEADING "  0-1 [ram, 0): x", "*: no kind of memory" },
    { "reversed",   HEADING "  2-1 (prio 0, ram): x", "*: bad range of addresses" },
    { "all",        HEADING "  0-ffffffffffffffff (prio 0, ram): x", "*: bad range of addresses" },
    { "too-wide",   HEADING "  0-10000000000000000 (prio 0, ram): x", "*: no range of addresses" },
    { "overlap",    HEADING LOW "  9ffff-afffff (prio 0, ram): x", "*line 6: ranges of RAM overlap" },
    { "unsorted",   HEADING MAIN LOW,            "*line 6: ranges of RAM are not in order" },
};
/* clang-format on */

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static void
assert_range(const UprofRamRange *range, const UprofRamRange *expected)
{
    g_assert_cmphex(range->gpa, ==, expected->gpa);
    g_assert_cmphex(range->len, ==, expected->len);
    g_assert_cmphex(range->hva, ==, 0);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX] = { { .gpa = 42 } };
    unsigned n = 42;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_mtree_parse(slice_of(cases[i].text), ranges, &n, &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpuint(n, ==, cases[i].n);
        assert_range(&ranges[0], &cases[i].first);
        assert_range(&ranges[n - 1], &cases[i].last);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
    g_assert_cmpuint(n, ==, 42);
    g_assert_cmpuint(ranges[0].gpa, ==, 42);
}

static void
test_too_many_ranges(void)
{
    g_autoptr(GString) text = g_string_new(HEADING);
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX];
    unsigned n = 0;
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < UPROF_RAM_RANGES_MAX; i++)
        g_string_append_printf(text, "%x000-%xfff (prio 0, ram): x\n", i, i);
    g_assert_true(uprof_qemu_mtree_parse(slice_of(text->str), ranges, &n, &error));
    g_assert_cmpuint(n, ==, UPROF_RAM_RANGES_MAX);

    g_string_append(text, "ff000000-ffffffff (prio 0, ram): x\n");
    g_assert_false(uprof_qemu_mtree_parse(slice_of(text->str), ranges, &n, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "info mtree line 261: more than 256 ranges of RAM");
}

static void
test_too_long(void)
{
    g_autoptr(GString) text = g_string_new(HEADING LOW "\n");
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX];
    unsigned n = 0;
    g_autoptr(GError) error = NULL;

    while (text->len < UPROF_QEMU_MTREE_BYTES_MAX)
        g_string_append_c(text, '\n');
    g_assert_true(uprof_qemu_mtree_parse(slice_of(text->str), ranges, &n, &error));
    g_string_append_c(text, '\n');
    g_assert_false(uprof_qemu_mtree_parse(slice_of(text->str), ranges, &n, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "info mtree line 0: 4194305 bytes are too many");
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error;
    uint64_t hva;
} answers[] = {
    { "ram",     "Host virtual address for 0x0 (pc.ram) is 0x7f273be00000\r\n", NULL,
      UINT64_C(0x7f273be00000) },
    { "odd-name", "Host virtual address for 0x0 (a is 0x1 b) is 0x2\n", NULL, 2 },
    { "nothing", "No memory is mapped at address 0x100000000\r\n",
      "gpa2hva: QEMU says 'No memory is mapped at address 0x100000000'" },
    { "device",  "Memory at address 0xfee00000 is not RAM\r\n",
      "gpa2hva: QEMU says 'Memory at address 0xfee00000 is not RAM'" },
    { "empty",   "", "gpa2hva: QEMU says ''" },
    { "controls", "\x1b[2J", "gpa2hva: QEMU says '?[2J'" },
    { "zero",    "Host virtual address for 0x0 (pc.ram) is 0x0\r\n", "gpa2hva: QEMU says *" },
    { "no-0x",   "Host virtual address for 0x0 (pc.ram) is 7f27\r\n", "gpa2hva: QEMU says *" },
    { "too-wide", "Host virtual address for 0x0 (pc.ram) is 0x10000000000000000",
      "gpa2hva: QEMU says *" },
    { "cut",     "Host virtual address for 0x0 (pc.ram) is", "gpa2hva: QEMU says *" },
};
/* clang-format on */

static void
test_hva(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint64_t hva = 42;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_hva_parse(slice_of(answers[i].text), &hva, &error);

    if (!answers[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmphex(hva, ==, answers[i].hva);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(answers[i].error, error->message));
    g_assert_cmpuint(hva, ==, 42);
}

static void
test_hva_too_long(void)
{
    g_autoptr(GString) text = g_string_new("Host virtual address for 0x0 (pc.ram) is 0x1");
    uint64_t hva = 42;
    g_autoptr(GError) error = NULL;

    while (text->len < UPROF_QEMU_HVA_BYTES_MAX)
        g_string_append_c(text, ' ');
    g_assert_true(uprof_qemu_hva_parse(slice_of(text->str), &hva, NULL));
    g_string_append_c(text, ' ');
    g_assert_false(uprof_qemu_hva_parse(slice_of(text->str), &hva, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-mtree/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *path = g_strdup_printf("/qemu-mtree/hva/%s", answers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_hva);
    }
    g_test_add_func("/qemu-mtree/too-many-ranges", test_too_many_ranges);
    g_test_add_func("/qemu-mtree/too-long", test_too_long);
    g_test_add_func("/qemu-mtree/hva-too-long", test_hva_too_long);
    return g_test_run();
}
