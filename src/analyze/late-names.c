/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "late-names-priv.h"

#include "frame-offset-priv.h"

#include <string.h>

typedef struct {
    UprofSym *sym;        /* borrowed */
    GHashTable *modules;  /* label -> number of the module; 0: different modules have the label */
    GHashTable *replaced; /* UprofName -> UprofName */
    uint64_t n_named;     /* frames that got a name, once for each sample */
} Late;

/* Modules of one build are the same file: the one that has names counts. */
static void
add_module(Late *late, unsigned number, const UprofSymModule *module)
{
    gpointer value;
    UprofSymModule before;
    unsigned chosen = number;

    if (g_hash_table_lookup_extended(late->modules, module->label, NULL, &value)) {
        const unsigned earlier = GPOINTER_TO_UINT(value);
        const bool is_same = uprof_sym_module(late->sym, earlier, &before) && module->build_id &&
                             g_strcmp0(module->build_id, before.build_id) == 0;
        if (!is_same)
            chosen = 0;
        else if (before.n_symbols >= module->n_symbols)
            chosen = earlier;
    }
    g_hash_table_insert(late->modules, g_strdup(module->label), GUINT_TO_POINTER(chosen));
}

static void
add_modules(Late *late)
{
    UprofSymModule module;

    for (unsigned number = 1; uprof_sym_module(late->sym, number, &module); number++)
        add_module(late, number, &module);
}

/* Returns: @frame if no name is known */
static const UprofName *
find_name(const Late *late, const UprofName *frame)
{
    uint64_t offset;
    size_t len;
    const char *text = uprof_name_text(frame);
    const char *label = uprof_frame_offset_parse(text, &len, &offset);

    if (!label || offset >= UPROF_SYM_MODULE_BYTES_MAX)
        return frame;
    g_autofree char *key = g_strdup_printf("[%.*s]", (int)len, label);
    const unsigned number = GPOINTER_TO_UINT(g_hash_table_lookup(late->modules, key));
    if (number == 0)
        return frame;
    const UprofSymAnswer answer =
        uprof_sym_find(late->sym, uprof_sym_module_address(number, offset), false);
    if (answer.kind != UPROF_SYM_NAMED)
        return frame;
    return answer.site ? answer.site : answer.name;
}

static const UprofName *
replace_frame(Late *late, const UprofName *frame)
{
    const UprofName *name;

    if (uprof_name_text(frame)[0] != '[')
        return frame;
    name = g_hash_table_lookup(late->replaced, frame);
    if (!name) {
        name = find_name(late, frame);
        g_hash_table_insert(late->replaced, (gpointer)frame, (gpointer)name);
    }
    return name;
}

static unsigned
replace_stack(const UprofName *const *frames, unsigned n, const UprofName **into, void *data)
{
    for (unsigned i = 0; i < n; i++)
        into[i] = replace_frame(data, frames[i]);
    return n;
}

static void
count_named(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Late *late = data;

    for (unsigned i = 0; i < n; i++) {
        const UprofName *name = g_hash_table_lookup(late->replaced, frames[i]);
        late->n_named += name && name != frames[i] ? weight : 0;
    }
}

UprofProfile *
uprof_late_names_apply(UprofProfile *profile, UprofSym *sym, uint64_t *n_named)
{
    g_autoptr(GHashTable) modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) replaced = g_hash_table_new(NULL, NULL);
    Late late = { .sym = sym, .modules = modules, .replaced = replaced };

    add_modules(&late);
    if (g_hash_table_size(modules) == 0)
        return profile;
    UprofProfile *named = uprof_profile_map(profile, replace_stack, &late);
    uprof_profile_walk(profile, count_named, &late);
    *n_named += late.n_named;
    uprof_profile_free(profile);
    return named;
}
