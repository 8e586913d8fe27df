/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/intern.h"

#include <string.h>

#include "uprof/text.h"

/*
 * A name is its text, behind a type that is never completed. They are kept in
 * a tree and not in a hash table, whose keys a guest could choose to collide.
 */
struct _UprofNames {
    GTree *texts; /* of char, owned; key and value are the same */
    size_t max;
};

static int
compare_texts(gconstpointer a, gconstpointer b, gpointer unused)
{
    return strcmp(a, b);
}

UprofNames *
uprof_names_new(void)
{
    UprofNames *names = g_new0(UprofNames, 1);

    names->texts = g_tree_new_full(compare_texts, NULL, g_free, NULL);
    names->max = SIZE_MAX;
    return names;
}

void
uprof_names_limit(UprofNames *names, size_t max)
{
    names->max = max;
}

void
uprof_names_free(UprofNames *names)
{
    if (!names)
        return;
    g_tree_destroy(names->texts);
    g_free(names);
}

const UprofName *
uprof_names_intern(UprofNames *names, UprofSlice raw)
{
    g_autofree char *text = uprof_text_clean(raw);

    return uprof_names_marker(names, text);
}

const UprofName *
uprof_names_marker(UprofNames *names, const char *marker)
{
    static const char full[] = "[unknown]";
    char *text = g_tree_lookup(names->texts, marker);

    if (!text) {
        /* one more than the limit, so that there is room for saying so */
        if (uprof_names_count(names) >= names->max && strcmp(marker, full) != 0)
            return uprof_names_marker(names, full);
        text = g_strdup(marker);
        g_tree_insert(names->texts, text, text);
    }
    return (const UprofName *)text;
}

size_t
uprof_names_count(const UprofNames *names)
{
    return g_tree_nnodes(names->texts);
}

const char *
uprof_name_text(const UprofName *name)
{
    return (const char *)name;
}
