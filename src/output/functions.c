/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the functions of a profile come from, for profiles that are stored as folded stacks:
 * function-list.h has the form. Functions of which nothing is known have no line.
 */
#include "uprof/output.h"

#include "deflate-priv.h"

#include <string.h>

enum { BYTES_MAX = 32 * 1024 * 1024 };

typedef struct {
    GHashTable *seen;   /* of UprofName */
    GPtrArray *by_name; /* of UprofName, borrowed */
} Functions;

static void
add_functions(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Functions *functions = data;

    for (unsigned i = 0; i < n; i++)
        if (g_hash_table_add(functions->seen, (gpointer)frames[i]) &&
            (uprof_name_module(frames[i]) || uprof_name_source(frames[i]).file))
            g_ptr_array_add(functions->by_name, (gpointer)frames[i]);
}

static int
compare_names(const void *a, const void *b)
{
    const UprofName *const *one = a, *const *other = b;

    return strcmp(uprof_name_text(*one), uprof_name_text(*other));
}

static void
append_function(GString *out, const UprofName *name)
{
    const UprofName *module = uprof_name_module(name);
    const UprofNameSource source = uprof_name_source(name);

    g_string_append_printf(out, "%s\t%s\t%s\t%u\n", uprof_name_text(name),
                           module ? uprof_name_text(module) : "",
                           source.file ? uprof_name_text(source.file) : "", source.line);
}

static void
functions_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) by_name = g_ptr_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    Functions functions = { seen, by_name };
    UprofDeflate *packer = uprof_deflate_new(sink);

    uprof_profile_walk(profile, add_functions, &functions);
    g_ptr_array_sort(by_name, compare_names);
    /* a longer list would not be read */
    for (guint i = 0; i < by_name->len && text->len < BYTES_MAX; i++)
        append_function(text, g_ptr_array_index(by_name, i));
    uprof_deflate_write(packer, text);
    uprof_deflate_finish(packer);
}

const UprofFormat uprof_format_functions = {
    .name = "functions",
    .suffixes = { ".functions.gz" },
    .is_binary = true,
    .is_of_store = true,
    .write = functions_write,
};
