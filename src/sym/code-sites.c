/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-sites-priv.h"

#include "uprof/clock.h"
#include "uprof/sorted.h"
#include "uprof/text.h"

#include "demangle-priv.h"
#include "lines-priv.h"

#include <string.h>

typedef struct {
    UprofImage *image; /* borrowed */
    uint64_t address;
    const UprofName *function;
    bool is_resolved;
    unsigned n;
    const UprofName **frames; /* outermost first */
} Site;

struct _UprofSites {
    UprofNames *names; /* borrowed */
    bool with_lines;
    bool raw_names;
    UprofDemangler *demangler; /* borrowed */
    GHashTable *table;         /* UprofName -> Site */
};

static void
free_site(gpointer data)
{
    Site *site = data;

    g_free(site->frames);
    g_free(site);
}

UprofSites *
uprof_sites_new(UprofNames *names, UprofDemangler *demangler)
{
    UprofSites *sites = g_new0(UprofSites, 1);

    sites->names = names;
    sites->demangler = demangler;
    sites->table = g_hash_table_new_full(NULL, NULL, NULL, free_site);
    return sites;
}

void
uprof_sites_free(UprofSites *sites)
{
    if (!sites)
        return;
    g_hash_table_unref(sites->table);
    g_free(sites);
}

bool
uprof_sites_have_lines(const UprofSites *sites)
{
    return sites->with_lines;
}

void
uprof_sites_configure(UprofSites *sites, bool with_lines, bool raw_names)
{
    sites->with_lines = with_lines;
    sites->raw_names = raw_names;
}

const UprofName *
uprof_sites_add(UprofSites *sites, UprofImage *image, uint64_t address, const UprofName *function)
{
    char text[64];

    if (g_hash_table_size(sites->table) >= UPROF_LINES_ADDRESSES_MAX)
        return NULL;
    /* No symbol has this name: no clean name begins with a bracket. */
    g_snprintf(text, sizeof(text), "%.*s@%" G_GINT64_MODIFIER "x]", (int)strlen(image->label) - 1,
               image->label, address);
    const UprofName *name = uprof_names_marker(sites->names, text);
    if (strcmp(uprof_name_text(name), text) != 0)
        return NULL; /* too many names */
    if (!g_hash_table_contains(sites->table, name)) {
        Site *site = g_new0(Site, 1);
        site->image = image;
        site->address = address;
        site->function = function;
        g_hash_table_insert(sites->table, (gpointer)name, site);
    }
    return name;
}

static char *
clean_name(const UprofSites *sites, UprofSlice raw)
{
    g_autofree char *name = sites->raw_names ? NULL : uprof_demangle(sites->demangler, raw);

    return uprof_text_clean(name ? (UprofSlice){ name, strlen(name) } : raw);
}

/* Returns: (transfer full): the last part of @path, clean */
static char *
clean_file_name(UprofSlice path)
{
    const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;

    if (slash) {
        const size_t skip = (size_t)(slash + 1 - (const char *)path.data);
        path = (UprofSlice){ slash + 1, path.len - skip };
    }
    return uprof_text_clean(path);
}

static void
add_source(const UprofSites *sites, const UprofName *name, const UprofLineFrame *frame)
{
    /* a name such as "[image+0x1a2b]" is not of one function */
    if (frame->function_file.len == 0 || uprof_name_text(name)[0] == '[')
        return;
    const UprofNameSource source = { uprof_names_intern(sites->names, frame->function_file),
                                     frame->function_line };
    uprof_name_add_source(name, source);
}

/* "function (file.c:12)_[i]": the line if the user asked for it, the tail if it was inlined */
static const UprofName *
name_frame(const UprofSites *sites, const Site *site, const UprofLineFrame *frame, bool is_inlined)
{
    g_autofree char *name =
        is_inlined ? clean_name(sites, frame->name) : g_strdup(uprof_name_text(site->function));
    g_autofree char *file = clean_file_name(frame->file);
    g_autofree char *line = sites->with_lines && frame->line > 0 && frame->file.len > 0
                                ? g_strdup_printf(" (%s:%u)", file, frame->line)
                                : g_strdup("");
    g_autofree char *text = g_strconcat(name, line, is_inlined ? "_[i]" : "", NULL);
    const UprofName *frame_name = uprof_names_marker(sites->names, text);

    uprof_image_claim_name(site->image, sites->names, frame_name);
    add_source(sites, frame_name, frame);
    return frame_name;
}

static void
fill_site(const UprofSites *sites, Site *site, const UprofLineFrame *frames, unsigned n)
{
    site->is_resolved = true;
    site->n = n;
    site->frames = g_new0(const UprofName *, n);
    for (unsigned i = 0; i < n; i++)
        site->frames[i] = name_frame(sites, site, &frames[n - 1 - i], i > 0);
}

static int
compare_sites(gconstpointer a, gconstpointer b)
{
    const Site *const *one = a;
    const Site *const *other = b;

    return UPROF_COMPARE((*one)->address, (*other)->address);
}

void
uprof_sites_move(UprofSites *sites, const UprofImage *image, UprofImage *other)
{
    GHashTableIter iter;
    Site *site;

    g_hash_table_iter_init(&iter, sites->table);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&site))
        if (site->image == image)
            site->image = other;
}

/* Returns: (transfer container): the sites of @image that are not resolved, by address */
static GPtrArray *
find_unresolved(const UprofSites *sites, const UprofImage *image)
{
    GPtrArray *unresolved = g_ptr_array_new();
    GHashTableIter iter;
    Site *site;

    g_hash_table_iter_init(&iter, sites->table);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&site))
        if (site->image == image && !site->is_resolved)
            g_ptr_array_add(unresolved, site);
    g_ptr_array_sort(unresolved, compare_sites);
    return unresolved;
}

/* ---- Go ---- */

/* @frames: (out). Returns: how many frames the tables of Go have at @address */
static unsigned
find_go_frames(const UprofImage *image, uint64_t address, UprofLineFrame *frames)
{
    UprofGoLine lines[UPROF_GO_LINES_FRAMES_MAX];
    const unsigned n = uprof_go_lines_find(image->go_lines, address, lines);

    G_STATIC_ASSERT((int)UPROF_GO_LINES_FRAMES_MAX <= (int)UPROF_LINES_FRAMES_MAX);
    for (unsigned i = 0; i < n; i++)
        frames[i] = (UprofLineFrame){ lines[i].name, lines[i].file, lines[i].line,
                                      /* the lines of a function are in one file */
                                      lines[i].file, lines[i].function_line };
    return n;
}

static void
resolve_go(UprofSites *sites, UprofImage *image, uint64_t until_ns)
{
    g_autoptr(GPtrArray) wanted = find_unresolved(sites, image);
    UprofLineFrame frames[UPROF_LINES_FRAMES_MAX];

    g_clear_pointer(&image->lines_hint, g_free);
    for (guint i = 0; i < wanted->len; i++) {
        Site *site = g_ptr_array_index(wanted, i);
        if (uprof_clock_now_ns() >= until_ns) {
            image->lines_hint = g_strdup("there was no time left to read its lines");
            return;
        }
        const unsigned n = find_go_frames(image, site->address, frames);
        if (n > 0)
            fill_site(sites, site, frames, n);
    }
}

/* ---- DWARF ---- */

static void
resolve_dwarf(UprofSites *sites, UprofImage *image, uint64_t until_ns)
{
    g_autoptr(GPtrArray) wanted = find_unresolved(sites, image);
    g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    if (wanted->len == 0)
        return;
    for (guint i = 0; i < wanted->len; i++) {
        const Site *sorted = g_ptr_array_index(wanted, i);
        g_array_append_val(addresses, sorted->address);
    }
    g_clear_pointer(&image->lines_hint, g_free);
    const uint64_t now_ns = uprof_clock_now_ns();
    if (now_ns >= until_ns) {
        image->lines_hint = g_strdup("there was no time left to read its DWARF");
        return;
    }
    g_autoptr(UprofLines) lines =
        uprof_lines_read(image->lines, (const uint64_t *)(void *)addresses->data, addresses->len,
                         until_ns - now_ns, &image->lines_hint);
    for (guint i = 0; i < wanted->len; i++) {
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        if (n > 0)
            fill_site(sites, g_ptr_array_index(wanted, i), frames, n);
    }
}

void
uprof_sites_resolve(UprofSites *sites, UprofImage *image, uint64_t until_ns)
{
    if (image->lines.len > 0)
        resolve_dwarf(sites, image, until_ns);
    else if (image->go_lines)
        resolve_go(sites, image, until_ns);
}

/* Returns: (nullable): "file.c:12" */
static const UprofName *
name_line(const UprofSites *sites, const UprofLineFrame *frame)
{
    if (frame->line == 0 || frame->file.len == 0)
        return NULL;
    g_autofree char *file = clean_file_name(frame->file);
    g_autofree char *text = g_strdup_printf("%s:%u", file, frame->line);
    return uprof_names_marker(sites->names, text);
}

static void
find_dwarf_lines(const UprofSites *sites, const UprofImage *image, const uint64_t *addresses,
                 unsigned n, uint64_t cpu_ns, const UprofName **lines)
{
    g_autofree uint64_t *linked = g_new(uint64_t, n);
    g_autofree char *why = NULL;

    for (unsigned i = 0; i < n; i++)
        linked[i] = addresses[i] - image->bias;
    g_autoptr(UprofLines) found = uprof_lines_read(image->lines, linked, n, cpu_ns, &why);
    for (unsigned i = 0; i < n; i++) {
        const UprofLineFrame *frames;
        if (uprof_lines_get(found, i, &frames) > 0)
            lines[i] = name_line(sites, &frames[0]);
    }
}

static void
find_go_lines(const UprofSites *sites, const UprofImage *image, const uint64_t *addresses,
              unsigned n, uint64_t cpu_ns, const UprofName **lines)
{
    const uint64_t end_ns = uprof_clock_cpu_ns() + cpu_ns;
    UprofLineFrame frames[UPROF_LINES_FRAMES_MAX];

    for (unsigned i = 0; i < n && uprof_clock_cpu_ns() < end_ns; i++)
        if (find_go_frames(image, addresses[i] - image->bias, frames) > 0)
            lines[i] = name_line(sites, &frames[0]);
}

void
uprof_sites_find_lines(const UprofSites *sites, UprofImage *image, const uint64_t *addresses,
                       unsigned n, uint64_t cpu_ns, const UprofName **lines)
{
    if (image->lines.len > 0)
        find_dwarf_lines(sites, image, addresses, n, cpu_ns, lines);
    else
        find_go_lines(sites, image, addresses, n, cpu_ns, lines);
}

unsigned
uprof_sites_expand(const UprofSites *sites, const UprofName *name, const UprofName *const **frames)
{
    const Site *site = g_hash_table_lookup(sites->table, name);

    if (!site)
        return 0;
    *frames = site->is_resolved ? (const UprofName *const *)site->frames : &site->function;
    return site->is_resolved ? site->n : 1;
}
