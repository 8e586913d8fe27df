/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "naming-priv.h"

#include "exit-priv.h"
#include "uprof/arch.h"
#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/sym.h"

#include <string.h>

/**
 * UprofNaming:
 * @known: UprofName to UprofName, of the profile at hand
 * @modules: build-id to its number, for uprof_sym_module_place()
 * @is_counted: something of the profile at hand was refused, and is counted
 * @n_refused: profiles; @refused_id: build-id of one of them
 * @is_unsure: names were given that could not be checked
 */
struct _UprofNaming {
    UprofNames *names; /* borrowed */
    UprofSym *sym;
    const UprofRun *facts; /* (nullable): borrowed */
    GHashTable *known;
    GHashTable *modules;
    bool is_counted;
    unsigned n_refused;
    char *refused_id;
    bool is_unsure;
    uint64_t n_named;
};

UprofNaming *
uprof_naming_new(const UprofOptions *options, UprofNames *names, const char *arch, GError **error)
{
    g_autoptr(UprofNaming) naming = g_new0(UprofNaming, 1);
    const UprofSymConfig config = uprof_options_sym_config(options);

    naming->names = names;
    naming->known = g_hash_table_new(NULL, NULL);
    naming->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const UprofArch *known = arch ? uprof_arch_find(arch) : NULL;
    naming->sym = uprof_sym_new(known ? known : uprof_arch_at(0), names);
    uprof_sym_configure(naming->sym, &config);
    return uprof_options_add_symbols(options, naming->sym, error) ? g_steal_pointer(&naming) : NULL;
}

void
uprof_naming_free(UprofNaming *naming)
{
    if (!naming)
        return;
    uprof_sym_free(naming->sym);
    g_hash_table_unref(naming->known);
    g_hash_table_unref(naming->modules);
    g_free(naming->refused_id);
    g_free(naming);
}

void
uprof_naming_begin(UprofNaming *naming, const UprofRun *facts)
{
    naming->facts = facts;
    naming->is_counted = false;
    g_hash_table_remove_all(naming->known);
}

/* ---- Which file ---- */

static bool
is_called(const UprofRunImage *image, const char *label, size_t len)
{
    return strlen(image->label) == len + 2 && memcmp(image->label + 1, label, len) == 0;
}

/*
 * Of what processes had mapped. Returns: (nullable): the build-id of the only module that is
 * called @label, "libc.so.6"
 */
static const char *
find_module_id(const UprofNaming *naming, const char *label, size_t len)
{
    const char *id = NULL;

    for (guint i = 0; naming->facts && i < naming->facts->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(naming->facts->images, i);
        if (!image->is_module || !is_called(image, label, len))
            continue;
        if (!image->build_id || (id && strcmp(image->build_id, id) != 0))
            return NULL;
        id = image->build_id;
    }
    return id;
}

/* Returns: (nullable): the build-id of what ran as @label, "app"; NULL label: of anything */
static const char *
find_id(const UprofNaming *naming, const char *label, size_t len)
{
    for (guint i = 0; naming->facts && i < naming->facts->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(naming->facts->images, i);
        if (image->build_id && !image->is_module && (!label || is_called(image, label, len)))
            return image->build_id;
    }
    return NULL;
}

/* "app" is the first file of a run, "app2" the second. Returns: false: it is none of them */
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
refuse(UprofNaming *naming, const char *id)
{
    naming->n_refused += !naming->is_counted;
    naming->is_counted = true;
    if (!naming->refused_id)
        naming->refused_id = g_strdup(id);
}

/*
 * The file of that build-id. Else one that has none, or if the guest's is not
 * known the one at @position: nobody can tell whether that is right.
 */
static bool
choose_file(UprofNaming *naming, const char *id, unsigned position, unsigned *file)
{
    const unsigned n = uprof_sym_n_sources(naming->sym);
    UprofSymSource source;

    if (n == 0)
        return false; /* these are for modules alone */
    for (unsigned i = 0; id && i < n; i++) {
        uprof_sym_source(naming->sym, i, &source);
        if (source.build_id && strcmp(source.build_id, id) == 0) {
            *file = i;
            return true;
        }
    }
    for (unsigned i = id ? 0 : position; i < n; i++) {
        uprof_sym_source(naming->sym, i, &source);
        if (!id || !source.build_id) {
            naming->is_unsure = true;
            *file = i;
            return true;
        }
    }
    if (id)
        refuse(naming, id);
    return false;
}

/* ---- Frames ---- */

static bool
read_hex(const char *text, size_t len, uint64_t *value)
{
    return len > 2 && memcmp(text, "0x", 2) == 0 &&
           uprof_slice_to_uint((UprofSlice){ text + 2, len - 2 }, 16, 0, UINT64_MAX, value);
}

static const UprofName *
take_answer(UprofNaming *naming, UprofSymAnswer answer)
{
    if (answer.kind != UPROF_SYM_NAMED)
        return NULL;
    naming->n_named++;
    return answer.place ? answer.place : answer.name;
}

static const UprofName *
take_name(UprofNaming *naming, unsigned file, uint64_t pc)
{
    return take_answer(naming, uprof_sym_find_in(naming->sym, file, pc));
}

/* "[libc.so.6+0x1a2b]": by the file of that build alone, whoever has it */
static const UprofName *
name_in_module(UprofNaming *naming, const char *label, size_t len, uint64_t offset)
{
    const char *id = find_module_id(naming, label, len);

    if (!id || offset >= UPROF_SYM_MODULE_BYTES_MAX)
        return NULL;
    unsigned number = GPOINTER_TO_UINT(g_hash_table_lookup(naming->modules, id));
    if (number == 0) {
        g_autofree char *name = g_strndup(label, len);
        number = uprof_sym_add_module(naming->sym, name, NULL, id);
        g_hash_table_insert(naming->modules, g_strdup(id), GUINT_TO_POINTER(number));
    }
    if (number == 0)
        return NULL;
    const uint64_t place = uprof_sym_module_place(number, offset);
    return take_answer(naming, uprof_sym_find(naming->sym, place, false));
}

/* "[app+0x1a2b]" */
static const UprofName *
name_place(UprofNaming *naming, const char *text)
{
    const char *label = text + 1, *plus = strrchr(text, '+');
    const size_t len = strlen(text);
    uint64_t offset;
    unsigned file, position;

    if (!plus || text[len - 1] != ']' ||
        !read_hex(plus + 1, (size_t)(text + len - 1 - (plus + 1)), &offset))
        return NULL;
    const size_t label_len = (size_t)(plus - label);
    const char *id = find_id(naming, label, label_len);
    if (!find_position(label, label_len, &position) ||
        (!id && find_module_id(naming, label, label_len)))
        return name_in_module(naming, label, label_len, offset);
    if (!choose_file(naming, id, position, &file))
        return NULL;
    return take_name(naming, file, uprof_sym_code_start(naming->sym, file) + offset);
}

/* "0x1a2b": of a run that had no file at all */
static const UprofName *
name_address(UprofNaming *naming, const char *text)
{
    const char *id = find_id(naming, NULL, 0);
    const UprofName *name = NULL;
    unsigned file;
    uint64_t pc;

    if (!read_hex(text, strlen(text), &pc))
        return NULL;
    if (id)
        return choose_file(naming, id, 0, &file) ? take_name(naming, file, pc) : NULL;
    for (unsigned i = 0; !name && i < uprof_sym_n_sources(naming->sym); i++)
        name = take_name(naming, i, pc);
    naming->is_unsure |= name != NULL;
    return name;
}

const UprofName *
uprof_naming_frame(UprofNaming *naming, const UprofName *frame)
{
    const char *text = uprof_name_text(frame);

    if (text[0] != '[' && text[0] != '0')
        return frame;
    const UprofName *known = g_hash_table_lookup(naming->known, frame);
    if (known)
        return known;
    const UprofName *name = text[0] == '[' ? name_place(naming, text) : name_address(naming, text);
    if (!name)
        name = frame;
    g_hash_table_insert(naming->known, (gpointer)frame, (gpointer)name);
    return name;
}

/* ---- The end ---- */

static unsigned
expand_stack(const UprofName *const *frames, unsigned n, const UprofName **into, void *data)
{
    UprofNaming *naming = data;
    unsigned n_into = 0;

    for (unsigned i = 0; i < n; i++) {
        const unsigned room = UPROF_PROFILE_DEPTH_MAX - 1 - n_into - (n - 1 - i);
        const UprofName *const *functions = &frames[i];
        const unsigned n_functions = uprof_sym_expand(naming->sym, frames[i], &functions);
        const unsigned n_taken = n_functions <= room ? MAX(n_functions, 1) : 1;
        for (unsigned j = 0; j < n_taken; j++)
            into[n_into++] = functions[j];
    }
    return n_into;
}

/* Returns: (transfer full): "'app.dbg' has 91c07d11" */
static char *
list_files(const UprofNaming *naming)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < uprof_sym_n_sources(naming->sym); i++) {
        UprofSymSource source;
        uprof_sym_source(naming->sym, i, &source);
        g_string_append_printf(text, "%s'%s' has %s", i > 0 ? ", " : "", source.path,
                               source.build_id ? source.build_id : "none");
    }
    return g_string_free(text, FALSE);
}

UprofProfile *
uprof_naming_end(UprofNaming *naming, UprofProfile *profile)
{
    if (naming->n_refused > 0) {
        g_autofree char *files = list_files(naming);
        uprof_say("virt-uprof: symbols do not match: guest build-id %s, %s; addresses stay in %u "
                  "profile%s",
                  naming->refused_id, files, naming->n_refused, naming->n_refused == 1 ? "" : "s");
    }
    if (naming->is_unsure)
        uprof_say(
            "virt-uprof: build-ids could not be compared: names are right only if what ran is "
            "what --symbols has");
    if (naming->n_named == 0)
        return profile;
    uprof_sym_resolve(naming->sym);
    UprofProfile *expanded = uprof_profile_map(profile, expand_stack, naming);
    uprof_profile_free(profile);
    return expanded;
}

bool
uprof_naming_is_refused(const UprofNaming *naming)
{
    return naming->n_refused > 0 && naming->n_named == 0;
}
