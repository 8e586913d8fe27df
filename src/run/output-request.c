/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output-request.h"

#include "uprof/error.h"
#include "uprof/text.h"

#include <string.h>

static void
free_request(gpointer data)
{
    UprofOutputRequest *request = data;

    g_free(request->path);
    g_free(request);
}

GPtrArray *
uprof_output_request_list(void)
{
    return g_ptr_array_new_with_free_func(free_request);
}

void
uprof_output_request_add(GPtrArray *list, const char *path, const UprofFormat *format,
                         bool is_unused_name)
{
    UprofOutputRequest *request = g_new0(UprofOutputRequest, 1);

    *request = (UprofOutputRequest){
        .path = g_strdup(path),
        .format = format,
        .is_unused_name = is_unused_name,
    };
    g_ptr_array_add(list, request);
}

static char *
expand_path(const char *path, const char *name, const char *uuid, const char *time)
{
    GString *expanded = g_string_new(NULL);
    g_autofree char *safe = uprof_text_file_name(name, uuid);

    for (const char *at = path; *at; at++) {
        if (*at != '%' || !at[1]) {
            g_string_append_c(expanded, *at);
            continue;
        }
        switch (*++at) {
        case 'd':
            g_string_append(expanded, safe);
            break;
        case 'u':
            g_string_append(expanded, uuid);
            break;
        case 't':
            g_string_append(expanded, time);
            break;
        case '%':
            g_string_append_c(expanded, '%');
            break;
        default:
            g_string_append_c(expanded, '%');
            g_string_append_c(expanded, *at);
        }
    }
    return g_string_free(expanded, FALSE);
}

/* Returns: (nullable): the ending of the path that names its format; else all behind its last dot
 */
static const char *
find_suffix(const UprofOutputRequest *request)
{
    for (const char *const *suffix = request->format->suffixes; *suffix; suffix++)
        if (g_str_has_suffix(request->path, *suffix))
            return request->path + strlen(request->path) - strlen(*suffix);
    return strrchr(request->path, '.');
}

char *
uprof_output_request_path(const UprofOutputRequest *request, const char *name, const char *uuid,
                          const char *time)
{
    const char *suffix = request->is_unused_name ? find_suffix(request) : NULL;

    if (!suffix)
        return expand_path(request->path, name, uuid, time);
    g_autofree char *stem = g_strndup(request->path, (gsize)(suffix - request->path));
    g_autofree char *expanded = expand_path(stem, name, uuid, time);
    return uprof_file_unused_path(expanded, suffix);
}

/* Returns: (transfer full): the path with ".waits" before its ending, or at its end */
static char *
name_waits(const UprofOutputRequest *request)
{
    const char *suffix = find_suffix(request);
    const char *end = request->path + strlen(request->path);

    if (!suffix || strchr(suffix, '/'))
        suffix = end;
    return g_strdup_printf("%.*s.waits%s", (int)(suffix - request->path), request->path, suffix);
}

/* The files beside others get names that the user may also have given. */
static bool
check_names(const GPtrArray *list, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < list->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(list, i);
        g_autofree char *shown = uprof_text_quote(request->path);
        if (g_hash_table_add(names, request->path))
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                    "--waits writes '%s', which -o names, too", shown);
        return false;
    }
    return true;
}

bool
uprof_output_request_add_waits(GPtrArray *list, GError **error)
{
    const guint n = list->len;
    bool any_waits = false;

    for (guint i = 0; i < n; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(list, i);
        any_waits |= request->format->write_both != NULL;
        if (request->format->write_both || !request->format->has_waits_file ||
            strcmp(request->path, "-") == 0)
            continue;
        g_autofree char *path = name_waits(request);
        uprof_output_request_add(list, path, request->format, request->is_unused_name);
        ((UprofOutputRequest *)g_ptr_array_index(list, list->len - 1))->is_waits = any_waits = true;
    }
    if (any_waits)
        return check_names(list, error);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                "--waits needs a file for the waits: use -o FILE.svg, .folded, .json or .pb.gz");
    return false;
}

bool
uprof_output_request_names_domain(const char *path)
{
    for (const char *at = path; *at; at++) {
        if (*at != '%')
            continue;
        if (at[1] == 'd' || at[1] == 'u')
            return true;
        if (at[1])
            at++;
    }
    return false;
}
