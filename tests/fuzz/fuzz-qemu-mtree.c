/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/qemu-mtree.h"

static void
parse_ranges(UprofSlice text)
{
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX];
    unsigned n = 0;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_mtree_parse(text, ranges, &n, &error);

    check_answer(ok, error);
    g_assert(ok == (n > 0));
    g_assert(n <= UPROF_RAM_RANGES_MAX);
    for (unsigned i = 0; i < n; i++) {
        g_assert(ranges[i].len > 0 && ranges[i].hva == 0);
        g_assert(ranges[i].gpa <= UINT64_MAX - (ranges[i].len - 1));
        g_assert(i == 0 || ranges[i].gpa > ranges[i - 1].gpa + (ranges[i - 1].len - 1));
    }
}

static void
parse_hva(UprofSlice text)
{
    uint64_t hva = 0;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qemu_hva_parse(text, &hva, &error);

    check_answer(ok, error);
    g_assert(ok == (hva != 0));
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice text = { data, size };

    parse_ranges(text);
    parse_hva(text);
}
