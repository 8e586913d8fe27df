/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/symbolizer.h"

#include "expand-inlined-priv.h"
#include "frame-offset-priv.h"
#include "hot-places-priv.h"
#include "uprof/arch.h"
#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/sym.h"

#include <string.h>

struct _UprofSymbolizer {
    UprofNames *names;     /* borrowed */
    UprofSym *sym;         /* owned */
    const UprofRun *facts; /* (nullable): borrowed; of the current profile */
    GHashTable *known;     /* owned; UprofName -> UprofName, of the current profile */
    GHashTable *places;    /* owned; UprofName -> uint64_t: symbol addresses of named frames */
    uint64_t place;        /* of the frame that got its name last */
    GHashTable *modules;   /* owned; build-id -> number for uprof_sym_module_address() */
    bool is_counted;       /* @n_refused counts the current profile */
    unsigned n_refused;    /* profiles with a frame whose build-id is in no file */
    char *refused_id;      /* (nullable): owned; one of these build-ids */
    bool is_unsure;        /* frames were named without a comparison of build-ids */
    uint64_t n_named;      /* frames that got a name */
};

UprofSymbolizer *
uprof_symbolizer_new(const UprofSymbolSettings *settings, UprofNames *names, const char *arch,
                     GError **error)
{
    g_autoptr(UprofSymbolizer) symbolizer = g_new0(UprofSymbolizer, 1);
    const UprofArch *known = arch ? uprof_arch_find(arch) : NULL;

    symbolizer->names = names;
    symbolizer->known = g_hash_table_new(NULL, NULL);
    symbolizer->places = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    symbolizer->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    symbolizer->sym = uprof_sym_new(known ? known : uprof_arch_at(0), names);
    return uprof_symbol_settings_apply(settings, symbolizer->sym, error)
               ? g_steal_pointer(&symbolizer)
               : NULL;
}

void
uprof_symbolizer_free(UprofSymbolizer *symbolizer)
{
    if (!symbolizer)
        return;
    uprof_sym_free(symbolizer->sym);
    g_hash_table_unref(symbolizer->known);
    g_hash_table_unref(symbolizer->places);
    g_hash_table_unref(symbolizer->modules);
    g_free(symbolizer->refused_id);
    g_free(symbolizer);
}

void
uprof_symbolizer_begin_profile(UprofSymbolizer *symbolizer, const UprofRun *facts)
{
    symbolizer->facts = facts;
    symbolizer->is_counted = false;
    g_hash_table_remove_all(symbolizer->known);
    g_hash_table_remove_all(symbolizer->places);
}

/* ---- Which file ---- */

/* As uprof_run_module_id(), of the current profile. */
static const char *
find_module_id(const UprofSymbolizer *symbolizer, const char *label, size_t len)
{
    return symbolizer->facts ? uprof_run_module_id(symbolizer->facts, (UprofSlice){ label, len })
                             : NULL;
}

/* @label: (nullable): such as "app"; %NULL: any image. Returns: (nullable): its build-id */
static const char *
find_image_id(const UprofSymbolizer *symbolizer, const char *label, size_t len)
{
    for (guint i = 0; symbolizer->facts && i < symbolizer->facts->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(symbolizer->facts->images, i);
        if (image->build_id && !image->is_module &&
            (!label || uprof_run_image_is_called(image, (UprofSlice){ label, len })))
            return image->build_id;
    }
    return NULL;
}

/* "app" is the first file of a run, "app2" the second. Returns: false for any other label */
static bool
find_position(const char *label, size_t len, unsigned *position)
{
    static const char first[] = "app";
    const size_t first_len = strlen(first);
    uint64_t number = 1;

    if (len < first_len || memcmp(label, first, first_len) != 0 ||
        (len > first_len && !uprof_slice_to_uint((UprofSlice){ label + first_len, len - first_len },
                                                 10, 2, UPROF_SYM_SOURCES_MAX, &number)))
        return false;
    *position = (unsigned)number - 1;
    return true;
}

static void
count_refused(UprofSymbolizer *symbolizer, const char *id)
{
    symbolizer->n_refused += !symbolizer->is_counted;
    symbolizer->is_counted = true;
    if (!symbolizer->refused_id)
        symbolizer->refused_id = g_strdup(id);
}

/*
 * Finds the symbol file for an image: the file with the same build-id, or else a file without a
 * build-id. If the build-id of the image is unknown, the file at @position is used. Only the same
 * build-id shows that the file is right.
 */
static bool
choose_file(UprofSymbolizer *symbolizer, const char *id, unsigned position, unsigned *file)
{
    const unsigned n = uprof_sym_n_sources(symbolizer->sym);
    UprofSymSource source;

    if (n == 0)
        return false; /* the settings have only folders, and files in folders are of modules */
    for (unsigned i = 0; id && i < n; i++) {
        uprof_sym_source(symbolizer->sym, i, &source);
        if (source.build_id && strcmp(source.build_id, id) == 0) {
            *file = i;
            return true;
        }
    }
    for (unsigned i = id ? 0 : position; i < n; i++) {
        uprof_sym_source(symbolizer->sym, i, &source);
        if (!id || !source.build_id) {
            symbolizer->is_unsure = true;
            *file = i;
            return true;
        }
    }
    if (id)
        count_refused(symbolizer, id);
    return false;
}

/* ---- Frames ---- */

static const UprofName *
use_answer(UprofSymbolizer *symbolizer, uint64_t place, UprofSymAnswer answer)
{
    if (answer.kind != UPROF_SYM_NAMED)
        return NULL;
    symbolizer->place = place;
    symbolizer->n_named++;
    return answer.site ? answer.site : answer.name;
}

static const UprofName *
find_name(UprofSymbolizer *symbolizer, unsigned file, uint64_t pc)
{
    return use_answer(symbolizer, pc, uprof_sym_find_in(symbolizer->sym, file, pc));
}

/* Names "[libc.so.6+0x1a2b]" by a file with the build-id of that module. */
static const UprofName *
name_in_module(UprofSymbolizer *symbolizer, const char *label, size_t len, uint64_t offset)
{
    const char *id = find_module_id(symbolizer, label, len);

    if (!id || offset >= UPROF_SYM_MODULE_BYTES_MAX)
        return NULL;
    unsigned number = GPOINTER_TO_UINT(g_hash_table_lookup(symbolizer->modules, id));
    if (number == 0) {
        g_autofree char *name = g_strndup(label, len);
        number = uprof_sym_add_module(symbolizer->sym, name, NULL, id);
        g_hash_table_insert(symbolizer->modules, g_strdup(id), GUINT_TO_POINTER(number));
    }
    if (number == 0)
        return NULL;
    const uint64_t place = uprof_sym_module_address(number, offset);
    return use_answer(symbolizer, place, uprof_sym_find(symbolizer->sym, place, false));
}

/* Names "[app+0x1a2b]". */
static const UprofName *
name_offset(UprofSymbolizer *symbolizer, const char *text)
{
    uint64_t offset;
    size_t label_len;
    unsigned file, position;
    const char *label = uprof_frame_offset_parse(text, &label_len, &offset);

    if (!label)
        return NULL;
    const char *id = find_image_id(symbolizer, label, label_len);
    if (!find_position(label, label_len, &position) ||
        (!id && find_module_id(symbolizer, label, label_len)))
        return name_in_module(symbolizer, label, label_len, offset);
    if (!choose_file(symbolizer, id, position, &file))
        return NULL;
    return find_name(symbolizer, file, uprof_sym_code_start(symbolizer->sym, file) + offset);
}

/* Names "0x1a2b", which a run without symbol files wrote. */
static const UprofName *
name_address(UprofSymbolizer *symbolizer, const char *text)
{
    const char *id = find_image_id(symbolizer, NULL, 0);
    const UprofName *name = NULL;
    unsigned file;
    uint64_t pc;

    if (!uprof_frame_read_hex(text, strlen(text), &pc))
        return NULL;
    if (id)
        return choose_file(symbolizer, id, 0, &file) ? find_name(symbolizer, file, pc) : NULL;
    for (unsigned i = 0; !name && i < uprof_sym_n_sources(symbolizer->sym); i++)
        name = find_name(symbolizer, i, pc);
    symbolizer->is_unsure |= name != NULL;
    return name;
}

const UprofName *
uprof_symbolizer_name_frame(UprofSymbolizer *symbolizer, const UprofName *frame)
{
    const char *text = uprof_name_text(frame);

    if (text[0] != '[' && text[0] != '0')
        return frame;
    const UprofName *known = g_hash_table_lookup(symbolizer->known, frame);
    if (known)
        return known;
    const UprofName *name =
        text[0] == '[' ? name_offset(symbolizer, text) : name_address(symbolizer, text);
    if (name)
        g_hash_table_insert(symbolizer->places, (gpointer)frame,
                            g_memdup2(&symbolizer->place, sizeof(symbolizer->place)));
    else
        name = frame;
    g_hash_table_insert(symbolizer->known, (gpointer)frame, (gpointer)name);
    return name;
}

void
uprof_symbolizer_annotate(UprofSymbolizer *symbolizer, const UprofName *frame,
                          UprofHotPlaces *places, uint64_t weight)
{
    const uint64_t *place = g_hash_table_lookup(symbolizer->places, frame);

    if (place)
        uprof_hot_places_add(places, symbolizer->sym, *place, weight);
}

UprofSym *
uprof_symbolizer_sym(UprofSymbolizer *symbolizer)
{
    return symbolizer->sym;
}

/* ---- The end ---- */

/* Returns: (transfer full): "'app.dbg' has 91c07d11" */
static char *
list_files(const UprofSymbolizer *symbolizer)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < uprof_sym_n_sources(symbolizer->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(symbolizer->sym, i, &source);
        g_string_append_printf(text, "%s'%s' has %s", i > 0 ? ", " : "", source.path,
                               source.build_id ? source.build_id : "none");
    }
    return g_string_free(text, FALSE);
}

static void
warn_of_mismatch(const UprofSymbolizer *symbolizer, const UprofNotices *notices)
{
    if (symbolizer->n_refused > 0) {
        g_autofree char *files = list_files(symbolizer);
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "symbols do not match: guest build-id %s, %s; addresses stay in %u profile%s",
                     symbolizer->refused_id, files, symbolizer->n_refused,
                     symbolizer->n_refused == 1 ? "" : "s");
    }
    if (symbolizer->is_unsure)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "build-ids could not be compared: names are right only if the guest ran the "
                     "files of --symbols");
}

UprofProfile *
uprof_symbolizer_end(UprofSymbolizer *symbolizer, UprofProfile *profile,
                     const UprofNotices *notices)
{
    warn_of_mismatch(symbolizer, notices);
    if (symbolizer->n_named == 0)
        return profile;
    uprof_sym_resolve(symbolizer->sym, UPROF_SYM_RESOLVE_MS);
    return uprof_expand_inlined(profile, symbolizer->sym);
}

bool
uprof_symbolizer_is_refused(const UprofSymbolizer *symbolizer)
{
    return symbolizer->n_refused > 0 && symbolizer->n_named == 0;
}
