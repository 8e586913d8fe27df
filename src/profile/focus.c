/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/focus.h"

#include "uprof/sorted.h"
#include "uprof/word-distance.h"

#include "profile-priv.h"

#include <string.h>

typedef struct {
    UprofProfileRow row;
    uint64_t stack; /* number of the last stack that was counted: each stack counts once */
} Relative;

typedef struct {
    UprofFocus *focus;
    const char *name;
    GHashTable *callers, *callees; /* UprofName -> Relative */
    uint64_t stack;                /* number of the current stack */
    unsigned first;                /* index of the first frame below the root */
} Focusing;

static void
count_relative(const Focusing *focusing, GHashTable *relatives, const UprofName *name,
               uint64_t weight)
{
    Relative *relative = g_hash_table_lookup(relatives, name);

    if (!relative) {
        relative = g_new0(Relative, 1);
        relative->row.name = name;
        g_hash_table_insert(relatives, (gpointer)name, relative);
    }
    if (relative->stack != focusing->stack)
        relative->row.total += weight;
    relative->stack = focusing->stack;
}

typedef struct {
    const char *name;
    const char *meant; /* (nullable): borrowed from a name of the profile */
    unsigned nearest;
    GHashTable *seen; /* set of UprofName */
} Suggesting;

static void
suggest_from_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Suggesting *suggesting = data;

    for (unsigned i = 0; i < n; i++) {
        const char *text = uprof_name_text(frames[i]);
        if (!g_hash_table_add(suggesting->seen, (gpointer)frames[i]))
            continue;
        if (uprof_word_is_closer(suggesting->name, text, &suggesting->nearest) ||
            (!suggesting->meant && strstr(text, suggesting->name)))
            suggesting->meant = text;
    }
}

const char *
uprof_focus_suggest(const UprofProfile *profile, const char *name)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    Suggesting suggesting = { name, NULL, UPROF_WORD_FAR, seen };

    uprof_profile_walk(profile, suggest_from_stack, &suggesting);
    return suggesting.meant;
}

static void
look_at_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Focusing *focusing = data;
    UprofFocus *focus = focusing->focus;
    bool is_in = false;

    focusing->stack++;
    if (!uprof_profile_is_halt(frames, n))
        focus->all += weight;
    for (unsigned i = focusing->first; i < n; i++) {
        if (strcmp(uprof_name_text(frames[i]), focusing->name) != 0)
            continue;
        is_in = true;
        focus->name = frames[i];
        if (i > 0)
            count_relative(focusing, focusing->callers, frames[i - 1], weight);
        if (i + 1 < n)
            count_relative(focusing, focusing->callees, frames[i + 1], weight);
        else
            focus->self += weight;
    }
    focus->total += is_in ? weight : 0;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofProfileRow *one = a, *other = b;

    if (one->total != other->total)
        return UPROF_COMPARE(other->total, one->total);
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

static GArray *
sort_relatives(GHashTable *relatives)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer relative;

    g_hash_table_iter_init(&iter, relatives);
    while (g_hash_table_iter_next(&iter, NULL, &relative))
        g_array_append_val(rows, ((Relative *)relative)->row);
    g_array_sort(rows, compare_rows);
    return rows;
}

UprofFocus *
uprof_focus_new(const UprofProfile *profile, const char *name)
{
    g_autoptr(GHashTable) callers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GHashTable) callees = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(UprofFocus) focus = g_new0(UprofFocus, 1);
    Focusing focusing = {
        .focus = focus,
        .name = name,
        .callers = callers,
        .callees = callees,
        .first = uprof_profile_root(profile) ? 1 : 0,
    };

    uprof_profile_walk(profile, look_at_stack, &focusing);
    focus->callers = sort_relatives(callers);
    focus->callees = sort_relatives(callees);
    return focus->name ? g_steal_pointer(&focus) : NULL;
}

void
uprof_focus_free(UprofFocus *focus)
{
    if (!focus)
        return;
    g_clear_pointer(&focus->callers, g_array_unref);
    g_clear_pointer(&focus->callees, g_array_unref);
    g_free(focus);
}
