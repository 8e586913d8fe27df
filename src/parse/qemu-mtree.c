/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/qemu-mtree.h"

#include "qemu-mtree-priv.h"

#include <string.h>

#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/text.h"

/*
 * text  = { view }
 * view  = "FlatView #" number { heading } { range } empty-line
 * heading = " AS " QUOTE name QUOTE "," ... | " Root memory region: " name
 *         | "  No rendered FlatView"
 * range = start "-" end " (prio " number ", " kind "): " name [ " @" offset ] ...
 *
 * A name may have any text, so nothing behind the kind is read.
 */

static bool
parse_range(const UprofScan *scan, UprofSlice line, UprofSlice *kind, UprofRamRange *range,
            GError **error)
{
    UprofSlice word, start, end, before;
    uint64_t last;

    if (!uprof_scan_word(&line, &word) || !uprof_slice_split(word, '-', &start, &end) ||
        !uprof_slice_to_uint(start, 16, 0, UINT64_MAX, &range->gpa) ||
        !uprof_slice_to_uint(end, 16, 0, UINT64_MAX, &last))
        return uprof_scan_fail(scan, error, "no range of addresses");
    if (last < range->gpa)
        return uprof_scan_fail(scan, error, "bad range of addresses");

    range->len =
        last - range->gpa + 1; /* 0: the complete address space, which add_range() refuses */
    range->hva = 0;
    if (!uprof_slice_starts(uprof_slice_trim(line), "(prio ") ||
        !uprof_slice_split(line, ',', &before, &line) || !uprof_slice_split(line, ')', kind, &line))
        return uprof_scan_fail(scan, error, "no kind of memory");
    *kind = uprof_slice_trim(*kind);
    return true;
}

static bool
add_range(const UprofScan *scan, UprofSlice line, UprofRamRange *ranges, unsigned *n,
          GError **error)
{
    UprofRamRange range;
    UprofSlice kind;

    if (!parse_range(scan, line, &kind, &range, error))
        return false;
    if (!uprof_slice_is(kind, "ram"))
        return true;

    if (range.len == 0)
        return uprof_scan_fail(scan, error, "bad range of addresses");
    if (*n == UPROF_RAM_RANGES_MAX)
        return uprof_scan_fail(scan, error, "more than %d ranges of RAM", UPROF_RAM_RANGES_MAX);
    if (*n > 0 && range.gpa - ranges[*n - 1].gpa < ranges[*n - 1].len)
        return uprof_scan_fail(scan, error, "ranges of RAM overlap");
    if (*n > 0 && range.gpa < ranges[*n - 1].gpa)
        return uprof_scan_fail(scan, error, "ranges of RAM are not in order");
    ranges[(*n)++] = range;
    return true;
}

static bool
find_view(UprofScan *scan)
{
    UprofSlice line;

    while (uprof_scan_line(scan, &line))
        if (uprof_slice_starts(uprof_slice_trim(line), "AS \"memory\","))
            return true;
    return false;
}

static bool
is_heading(UprofSlice line)
{
    return uprof_slice_starts(line, "AS ") || uprof_slice_starts(line, "Root memory region:") ||
           uprof_slice_is(line, "No rendered FlatView");
}

bool
uprof_qemu_mtree_parse(UprofSlice text, UprofRamRange ranges[UPROF_RAM_RANGES_MAX], unsigned *n,
                       GError **error)
{
    UprofScan scan = { .name = "info mtree", .rest = text };
    UprofRamRange found[UPROF_RAM_RANGES_MAX];
    unsigned n_found = 0;
    UprofSlice line;

    if (text.len > UPROF_QEMU_MTREE_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "%zu bytes are too many", text.len);
    if (!find_view(&scan))
        return uprof_scan_fail(&scan, error, "no view of 'memory' up to here");

    while (uprof_scan_line(&scan, &line)) {
        line = uprof_slice_trim(line);
        if (line.len == 0 || uprof_slice_starts(line, "FlatView #"))
            break;
        if (!is_heading(line) && !add_range(&scan, line, found, &n_found, error))
            return false;
    }
    if (n_found == 0)
        return uprof_scan_fail(&scan, error, "no RAM in the view of 'memory'");

    memcpy(ranges, found, n_found * sizeof(found[0]));
    *n = n_found;
    return true;
}

/* reply = "Host virtual address for 0x" gpa " (" name ") is 0x" hva; a name may have any text */
bool
uprof_qemu_hva_parse(UprofSlice text, uint64_t *hva, GError **error)
{
    UprofSlice rest = uprof_slice_trim(text);
    UprofSlice word, before = { NULL, 0 }, last = { NULL, 0 };

    if (text.len <= UPROF_QEMU_HVA_BYTES_MAX &&
        uprof_slice_starts(rest, "Host virtual address for 0x")) {
        while (uprof_scan_word(&rest, &word)) {
            before = last;
            last = word;
        }
        if (uprof_slice_is(before, "is") && uprof_slice_starts(last, "0x") &&
            uprof_slice_sub(last, 2, last.len - 2, &last) &&
            uprof_slice_to_uint(last, 16, 1, UINT64_MAX, hva))
            return true;
    }

    g_autofree char *quoted = uprof_text_quote_slice(uprof_slice_trim(text));
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "gpa2hva: QEMU says '%s'", quoted);
    return false;
}
