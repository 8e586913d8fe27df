/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stored-functions-priv.h"

#include "stored-profile-priv.h"
#include "uprof/error.h"
#include "uprof/function-list.h"
#include "uprof/gzip.h"
#include "uprof/profile.h"

static const UprofName *
intern_text(UprofNames *names, UprofSlice text)
{
    return text.len > 0 ? uprof_names_intern(names, text) : NULL;
}

/* A list has the names of one round. More of them would only take memory. */
enum { FUNCTIONS_MAX = UPROF_PROFILE_NAMES_MAX };

typedef struct {
    UprofNames *names;
    unsigned n;
} Adding;

static void
add_function(const UprofFunctionLine *function, void *data)
{
    Adding *adding = data;
    UprofNames *names = adding->names;

    if (adding->n++ >= FUNCTIONS_MAX)
        return;
    const UprofName *name = uprof_names_read_back(names, function->name);
    const UprofName *module = intern_text(names, function->module);
    const UprofNameSource source = { intern_text(names, function->file), function->line };

    if (module)
        uprof_name_add_module(name, module);
    uprof_name_add_source(name, source);
}

static void
parse_functions(const UprofStoreFolder *folder, const GByteArray *packed, UprofNames *names)
{
    Adding adding = { names, 0 };
    g_autoptr(GByteArray) text =
        uprof_gzip_inflate(folder->path, (UprofSlice){ packed->data, packed->len }, NULL);

    if (text)
        uprof_function_list_parse(folder->path, (UprofSlice){ text->data, text->len }, add_function,
                                  &adding, NULL);
}

bool
uprof_stored_functions_add(const UprofStoreFolder *folder, const UprofStoreItem *item,
                           UprofNames *names, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (!item->has_functions)
        return true;
    g_autoptr(GByteArray) packed = uprof_store_read(folder, item->stem, UPROF_STORE_FUNCTIONS,
                                                    UPROF_STORED_PACKED_MAX, &failure);
    if (packed)
        parse_functions(folder, packed, names);
    if (!failure || g_error_matches(failure, UPROF_ERROR, UPROF_ERROR_NO_FILE) ||
        g_error_matches(failure, UPROF_ERROR, UPROF_ERROR_BAD_DATA))
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}
