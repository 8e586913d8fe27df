/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "place-priv.h"

#include "lines-priv.h"
#include "uprof/demangle.h"
#include "uprof/text.h"

#include <string.h>

typedef struct {
    UprofImage *image; /* borrowed */
    uint64_t address;
    const UprofName *function;
    bool is_resolved;
    unsigned n;
    const UprofName **frames; /* outermost first */
} Place;

struct _UprofPlaces {
    UprofNames *names; /* borrowed */
    bool with_lines;
    bool raw_names;
    GHashTable *table; /* UprofName -> Place */
};

static void
free_place(gpointer data)
{
    Place *place = data;

    g_free(place->frames);
    g_free(place);
}

UprofPlaces *
uprof_places_new(UprofNames *names)
{
    UprofPlaces *places = g_new0(UprofPlaces, 1);

    places->names = names;
    places->table = g_hash_table_new_full(NULL, NULL, NULL, free_place);
    return places;
}

void
uprof_places_free(UprofPlaces *places)
{
    if (!places)
        return;
    g_hash_table_unref(places->table);
    g_free(places);
}

void
uprof_places_configure(UprofPlaces *places, bool with_lines, bool raw_names)
{
    places->with_lines = with_lines;
    places->raw_names = raw_names;
}

const UprofName *
uprof_places_mark(UprofPlaces *places, UprofImage *image, uint64_t address,
                  const UprofName *function)
{
    char text[64];

    if (g_hash_table_size(places->table) >= UPROF_LINES_ADDRESSES_MAX)
        return NULL;
    /* no symbol is called like that: no clean name begins with a bracket */
    g_snprintf(text, sizeof(text), "%.*s@%" G_GINT64_MODIFIER "x]", (int)strlen(image->label) - 1,
               image->label, address);
    const UprofName *name = uprof_names_marker(places->names, text);
    if (strcmp(uprof_name_text(name), text) != 0)
        return NULL; /* there are too many names */
    if (!g_hash_table_contains(places->table, name)) {
        Place *place = g_new0(Place, 1);
        place->image = image;
        place->address = address;
        place->function = function;
        g_hash_table_insert(places->table, (gpointer)name, place);
    }
    return name;
}

static char *
clean_name(const UprofPlaces *places, UprofSlice raw)
{
    g_autofree char *name = places->raw_names ? NULL : uprof_demangle(raw);

    return uprof_text_clean(name ? (UprofSlice){ name, strlen(name) } : raw);
}

/* The file without its folders. */
static char *
clean_file(UprofSlice path)
{
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;

    if (slash) {
        const size_t skip = (size_t)(slash + 1 - (const char *)path.data);
        path = (UprofSlice){ slash + 1, path.len - skip };
    }
    return uprof_text_clean(path);
}

/* "function (file.c:12)_[i]": the line if it is asked for, the tail of what was inlined */
static const UprofName *
name_frame(const UprofPlaces *places, const Place *place, const UprofLineFrame *frame,
           bool is_inlined)
{
    g_autofree char *name =
        is_inlined ? clean_name(places, frame->name) : g_strdup(uprof_name_text(place->function));
    g_autofree char *file = clean_file(frame->file);
    g_autofree char *line = places->with_lines && frame->line > 0 && frame->file.len > 0
                                ? g_strdup_printf(" (%s:%u)", file, frame->line)
                                : g_strdup("");
    g_autofree char *text = g_strconcat(name, line, is_inlined ? "_[i]" : "", NULL);

    return uprof_names_marker(places->names, text);
}

static void
fill_place(const UprofPlaces *places, Place *place, const UprofLineFrame *frames, unsigned n)
{
    place->is_resolved = true;
    place->n = n;
    place->frames = g_new0(const UprofName *, n);
    for (unsigned i = 0; i < n; i++)
        place->frames[i] = name_frame(places, place, &frames[n - 1 - i], i > 0);
}

static int
compare_places(gconstpointer a, gconstpointer b)
{
    const Place *const *one = a;
    const Place *const *other = b;

    return (*one)->address < (*other)->address ? -1 : (*one)->address > (*other)->address;
}

void
uprof_places_resolve(UprofPlaces *places, UprofImage *image)
{
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GHashTableIter iter;
    Place *place;

    g_hash_table_iter_init(&iter, places->table);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&place))
        if (place->image == image && !place->is_resolved)
            g_ptr_array_add(wanted, place);
    if (wanted->len == 0)
        return;
    g_ptr_array_sort(wanted, compare_places);
    for (guint i = 0; i < wanted->len; i++) {
        const Place *sorted = g_ptr_array_index(wanted, i);
        g_array_append_val(addresses, sorted->address);
    }
    g_clear_pointer(&image->lines_hint, g_free);
    g_autoptr(UprofLines) lines =
        uprof_lines_read(image->lines, (const uint64_t *)(void *)addresses->data, addresses->len,
                         &image->lines_hint);
    for (guint i = 0; i < wanted->len; i++) {
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        if (n > 0)
            fill_place(places, g_ptr_array_index(wanted, i), frames, n);
    }
}

unsigned
uprof_places_expand(const UprofPlaces *places, const UprofName *name,
                    const UprofName *const **frames)
{
    const Place *place = g_hash_table_lookup(places->table, name);

    if (!place)
        return 0;
    *frames = place->is_resolved ? (const UprofName *const *)place->frames : &place->function;
    return place->is_resolved ? place->n : 1;
}
