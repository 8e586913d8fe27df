/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/processes.h"

#include "uprof/kind.h"

#include <string.h>

/* Returns: the place of the process in the stack, perhaps @n: it has none */
static unsigned
find_process(const UprofName *const *frames, unsigned n)
{
    static const char cut[] = "[truncated]";
    uint32_t vcpu;
    unsigned at = 1; /* what stands first is the domain, be it the profile's root or not */

    if (at < n && uprof_profile_level_is_vcpu(frames[at], &vcpu))
        at++;
    if (at < n && strcmp(uprof_name_text(frames[at]), cut) == 0)
        at++;
    return MIN(at, n);
}

static bool
is_kernel(const UprofName *name)
{
    const UprofKind kind = uprof_kind_of(name);

    return kind == UPROF_KIND_KERNEL || kind == UPROF_KIND_INTERRUPT;
}

/* The kernel is called and calls nobody: what it has a frame in ends in it. */
static bool
is_in_kernel(const UprofName *const *frames, unsigned from, unsigned n)
{
    for (unsigned i = from; i < n; i++)
        if (is_kernel(frames[i]))
            return true;
    return false;
}

static void
look_for_process(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    bool *is_in = data;
    const unsigned at = find_process(frames, n);

    (void)weight;
    if (at < n && uprof_kind_of(frames[at]) == UPROF_KIND_APP &&
        uprof_name_text(frames[at])[0] != '[')
        *is_in |= is_in_kernel(frames, at + 1, n);
}

bool
uprof_processes_are_in(const UprofProfile *profile)
{
    bool is_in = false;

    uprof_profile_walk(profile, look_for_process, &is_in);
    return is_in;
}

static void
count_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GHashTable *rows = data;
    const unsigned at = find_process(frames, n);

    if (at == n || uprof_profile_is_halt(frames, n))
        return;
    UprofProfileRow *row = g_hash_table_lookup(rows, frames[at]);
    if (!row) {
        row = g_new0(UprofProfileRow, 1);
        row->name = frames[at];
        g_hash_table_insert(rows, (gpointer)row->name, row);
    }
    row->self += is_in_kernel(frames, at + 1, n) ? weight : 0;
    row->total += weight;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofProfileRow *one = a, *other = b;

    if (one->total != other->total)
        return one->total > other->total ? -1 : 1;
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

GArray *
uprof_processes_find(const UprofProfile *profile)
{
    g_autoptr(GHashTable) rows = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer row;

    uprof_profile_walk(profile, count_stack, rows);
    g_hash_table_iter_init(&iter, rows);
    while (g_hash_table_iter_next(&iter, NULL, &row))
        g_array_append_val(sorted, *(UprofProfileRow *)row);
    g_array_sort(sorted, compare_rows);
    return sorted;
}
