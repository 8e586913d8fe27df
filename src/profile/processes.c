/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/processes.h"

#include "uprof/kind.h"
#include "uprof/sorted.h"

#include "profile-priv.h"

#include <string.h>

static const struct {
    const char *one, *several;
} words[] = {
    [UPROF_BY_FUNCTION] = { "function", "functions" },
    [UPROF_BY_VCPU] = { "vcpu", "vCPUs" },
    [UPROF_BY_PROCESS] = { "process", "processes" },
    [UPROF_BY_CGROUP] = { "cgroup", "cgroups" },
};

UprofRowsBy
uprof_rows_by_find(const char *word)
{
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(word, words[i].one) == 0)
            return (UprofRowsBy)i;
    return UPROF_BY_FUNCTION;
}

const char *
uprof_rows_by_text(UprofRowsBy by, bool is_plural)
{
    return is_plural ? words[by].several : words[by].one;
}

/* Returns: the index of the first frame below the domain and the vCPU */
static unsigned
find_first(const UprofName *const *frames, unsigned n)
{
    uint32_t vcpu;

    /* the first frame is the domain, even if the profile has no root */
    return n > 1 && uprof_profile_level_is_vcpu(frames[1], &vcpu) ? 2 : 1;
}

/* Returns: the index of the process in the stack; @n if there is none */
static unsigned
find_process(const UprofName *const *frames, unsigned n)
{
    static const char cut[] = "[truncated]";
    unsigned at = find_first(frames, n);

    if (at + 1 < n && uprof_profile_level_is_cgroup(frames[at]))
        at++;
    if (at < n && strcmp(uprof_name_text(frames[at]), cut) == 0)
        at++;
    return MIN(at, n);
}

/* Is @text an address, such as "0x1a2b" or "[app+0x1a2b]"? */
static bool
is_address(const char *text)
{
    if (text[0] == '[')
        return strstr(text, "+0x") != NULL;
    return strncmp(text, "0x", 2) == 0 && text[2] != '\0' &&
           strspn(text + 2, "0123456789abcdef") == strlen(text + 2);
}

/*
 * Before the guest's kernel is detected, stacks begin with a function. A function whose name could
 * also be a task's name counts as a process, because the two cannot be distinguished.
 */
static bool
can_be_process(const UprofName *name)
{
    const UprofKind kind = uprof_kind_of(name);

    return (kind == UPROF_KIND_APP || kind == UPROF_KIND_DOMAIN) &&
           !is_address(uprof_name_text(name));
}

static bool
is_kernel(const UprofName *name)
{
    const UprofKind kind = uprof_kind_of(name);

    return kind == UPROF_KIND_KERNEL || kind == UPROF_KIND_INTERRUPT;
}

/* The kernel does not call user code, so a stack with a kernel frame ends in the kernel. */
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
    if (at < n && can_be_process(frames[at]) && uprof_name_text(frames[at])[0] != '[')
        *is_in |= is_in_kernel(frames, at + 1, n);
}

static bool
has_processes(const UprofProfile *profile)
{
    bool is_in = false;

    uprof_profile_walk(profile, look_for_process, &is_in);
    return is_in;
}

static void
look_for_cgroup(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    bool *is_in = data;
    const unsigned at = find_first(frames, n);

    (void)weight;
    *is_in |= at + 1 < n && uprof_profile_level_is_cgroup(frames[at]);
}

static void
look_for_vcpu(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    bool *is_in = data;

    (void)weight;
    *is_in |= find_first(frames, n) > 1;
}

const char *
uprof_processes_missing(const UprofProfile *profile, UprofRowsBy by)
{
    bool is_in = false;

    if (by == UPROF_BY_PROCESS && !has_processes(profile))
        return "these stacks do not say which process ran; stacks of Linux guests do";
    if (by == UPROF_BY_VCPU)
        uprof_profile_walk(profile, look_for_vcpu, &is_in);
    if (by == UPROF_BY_VCPU && !is_in)
        return "these stacks do not say on which vCPU they ran; captures do, and files that were "
               "written with --per-vcpu";
    if (by == UPROF_BY_CGROUP)
        uprof_profile_walk(profile, look_for_cgroup, &is_in);
    if (by == UPROF_BY_CGROUP && !is_in)
        return "these stacks have no cgroups; stacks of Linux guests have them if the run was "
               "recorded "
               "with --cgroups";
    return NULL;
}

typedef struct {
    UprofRowsBy level;
    const UprofName *unknown;
    GHashTable *rows; /* UprofName -> UprofProfileRow */
} Count;

static void
count_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    const Count *count = data;
    const unsigned at = find_process(frames, n);
    const unsigned first = find_first(frames, n);

    if (uprof_profile_is_halt(frames, n))
        return;
    const UprofName *name = count->unknown;
    if (count->level == UPROF_BY_VCPU && first > 1)
        name = frames[first - 1];
    else if (count->level == UPROF_BY_PROCESS && at < n && can_be_process(frames[at]))
        name = frames[at];
    else if (count->level == UPROF_BY_CGROUP && first + 1 < n &&
             uprof_profile_level_is_cgroup(frames[first]))
        name = frames[first];
    UprofProfileRow *row = g_hash_table_lookup(count->rows, name);
    if (!row) {
        row = g_new0(UprofProfileRow, 1);
        row->name = name;
        g_hash_table_insert(count->rows, (gpointer)name, row);
    }
    row->self += is_in_kernel(frames, at, n) ? weight : 0;
    row->total += weight;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofProfileRow *one = a, *other = b;

    if (one->total != other->total)
        return UPROF_COMPARE(other->total, one->total);
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

GArray *
uprof_processes_find(const UprofProfile *profile, UprofRowsBy level)
{
    g_autoptr(GHashTable) rows = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    Count count = { .level = level, .unknown = uprof_profile_unknown(profile), .rows = rows };
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer row;

    uprof_profile_walk(profile, count_stack, &count);
    g_hash_table_iter_init(&iter, rows);
    while (g_hash_table_iter_next(&iter, NULL, &row))
        g_array_append_val(sorted, *(UprofProfileRow *)row);
    g_array_sort(sorted, compare_rows);
    return sorted;
}
