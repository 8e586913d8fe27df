/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/intern.h"

#include <string.h>

#include "uprof/text.h"

/*
 * A UprofName is a pointer to the text of its entry; the type is never defined. Names are kept in a
 * tree because a guest could choose names that collide in a hash table.
 */
struct _UprofNames {
    GTree *texts; /* (element-type utf8): owned, in its entry; key and value are the same pointer */
    size_t max;   /* names */
};

typedef struct {
    const UprofName *module; /* (nullable): of the same table */
    UprofNameSource source;
    bool is_shared; /* several things have the name, not all in one module; so @module is %NULL */
    bool is_scattered; /* several functions have the name; so @source has no file */
    bool is_claimed;   /* uprof_name_add_module() was called */
    char text[];
} Entry;

static Entry *
get_entry(const void *text)
{
    return (Entry *)(void *)((char *)text - G_STRUCT_OFFSET(Entry, text));
}

static void
free_text(gpointer text)
{
    g_free(get_entry(text));
}

static char *
new_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    Entry *entry = g_malloc0(sizeof(*entry) + size);

    memcpy(entry->text, text, size);
    return entry->text;
}

static int
compare_texts(gconstpointer a, gconstpointer b, gpointer unused)
{
    return strcmp(a, b);
}

UprofNames *
uprof_names_new(void)
{
    UprofNames *names = g_new0(UprofNames, 1);

    names->texts = g_tree_new_full(compare_texts, NULL, free_text, NULL);
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
        /* "[unknown]" itself may exceed the limit by one. */
        if ((size_t)g_tree_nnodes(names->texts) >= names->max && strcmp(marker, full) != 0)
            return uprof_names_marker(names, full);
        text = new_text(marker);
        g_tree_insert(names->texts, text, text);
    }
    return (const UprofName *)text;
}

static void
scatter_source(Entry *entry)
{
    entry->is_scattered = true;
    entry->source = (UprofNameSource){ 0 };
}

const UprofName *
uprof_names_copy(UprofNames *names, const UprofName *name)
{
    const Entry *entry = get_entry(name);
    const UprofName *copy = uprof_names_marker(names, uprof_name_text(name));

    if (strcmp(uprof_name_text(copy), uprof_name_text(name)) != 0)
        return copy; /* there are too many names */
    if (entry->is_shared)
        uprof_name_add_module(copy, NULL);
    else if (entry->module)
        uprof_name_add_module(copy, uprof_names_marker(names, uprof_name_text(entry->module)));
    if (entry->is_scattered)
        scatter_source(get_entry(copy));
    else if (entry->source.file)
        uprof_name_add_source(
            copy, (UprofNameSource){ uprof_names_marker(names, uprof_name_text(entry->source.file)),
                                     entry->source.line });
    return copy;
}

/* Is @text like "[image+0x1a2b]", with only characters that need no cleaning? */
static bool
is_image_offset(const char *text)
{
    static const char image[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-";
    const size_t len = strspn(text + 1, image);
    const char *offset = text + 1 + len;

    if (text[0] != '[' || len == 0 || strncmp(offset, "+0x", 3) != 0)
        return false;
    const size_t digits = strspn(offset + 3, G_CSET_DIGITS "abcdef");
    return digits > 0 && strcmp(offset + 3 + digits, "]") == 0;
}

static bool
is_marker(const char *text)
{
    static const char *const markers[] = { "[idle]", "[truncated]", "[unknown]" };

    for (size_t i = 0; i < G_N_ELEMENTS(markers); i++)
        if (strcmp(text, markers[i]) == 0)
            return true;
    return is_image_offset(text);
}

const UprofName *
uprof_names_read_back(UprofNames *names, UprofSlice raw)
{
    static const char *const suffixes[] = { "_[k]", "_[i]" };
    const size_t suffix_len = strlen(suffixes[0]);
    char marker[UPROF_TEXT_BYTES_MAX];

    if (raw.len > 0 && raw.len < sizeof(marker) && ((const char *)raw.data)[0] == '[' &&
        !memchr(raw.data, '\0', raw.len)) {
        memcpy(marker, raw.data, raw.len);
        marker[raw.len] = '\0';
        if (is_marker(marker))
            return uprof_names_marker(names, marker);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes) && raw.len > suffix_len; i++) {
        const size_t stem_len = raw.len - suffix_len;
        if (memcmp((const char *)raw.data + stem_len, suffixes[i], suffix_len) != 0)
            continue;
        g_autofree char *stem = uprof_text_clean((UprofSlice){ raw.data, stem_len });
        g_autofree char *whole = g_strconcat(stem, suffixes[i], NULL);
        return uprof_names_marker(names, whole);
    }
    return uprof_names_intern(names, raw);
}

void
uprof_name_add_module(const UprofName *name, const UprofName *module)
{
    Entry *entry = get_entry(name);

    /* the function of another module has another source, known or not */
    if (entry->is_claimed && entry->module != module)
        scatter_source(entry);
    entry->is_claimed = true;
    if (entry->is_shared || (module && entry->module == module))
        return;
    entry->is_shared = !module || entry->module;
    entry->module = entry->is_shared ? NULL : module;
}

const UprofName *
uprof_name_module(const UprofName *name)
{
    return get_entry(name)->module;
}

void
uprof_name_add_source(const UprofName *name, UprofNameSource source)
{
    Entry *entry = get_entry(name);
    const UprofNameSource known = entry->source;

    /* a table with too many names calls the file "[unknown]" */
    if (entry->is_scattered || !source.file || uprof_name_text(source.file)[0] == '[')
        return;
    if (known.file && (known.file != source.file || known.line != source.line))
        scatter_source(entry);
    else
        entry->source = source;
}

UprofNameSource
uprof_name_source(const UprofName *name)
{
    return get_entry(name)->source;
}

const char *
uprof_name_text(const UprofName *name)
{
    return (const char *)name;
}
