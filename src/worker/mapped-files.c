/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mapped-files-priv.h"

#include <string.h>

enum { DIGITS_MIN = 16, DIGITS_MAX = 128, PATH_BYTES_MAX = 4096 };

static void
append_text(GByteArray *reply, const char *text)
{
    g_byte_array_append(reply, (const guint8 *)text, (guint)strlen(text) + 1);
}

static bool
is_build_id(const char *text)
{
    const size_t len = strlen(text);

    return len >= DIGITS_MIN && len <= DIGITS_MAX && len % 2 == 0 &&
           strspn(text, "0123456789abcdef") == len;
}

/* The build-id and the path of each file, each with a NUL at its end */
void
uprof_mapped_files_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    const UprofSym *sym = analysis->pipeline->sym;
    UprofSymModule module;

    for (unsigned i = 1; uprof_sym_module(sym, i, &module); i++) {
        /* a program can have any short text as its build-id */
        if (module.path || !module.guest_path || !module.build_id || !is_build_id(module.build_id))
            continue;
        append_text(reply, module.build_id);
        append_text(reply, module.guest_path);
    }
}

static void
free_file(gpointer data)
{
    UprofMappedFile *file = data;

    g_free(file->build_id);
    g_free(file->path);
    g_free(file);
}

/* Returns: (nullable): the text at the beginning of @rest, which loses it */
static const char *
take_text(UprofSlice *rest)
{
    const char *text = rest->data;
    const size_t len = rest->len > 0 ? strnlen(text, rest->len) : 0;

    if (len == rest->len)
        return NULL;
    *rest = (UprofSlice){ text + len + 1, rest->len - len - 1 };
    return text;
}

GPtrArray *
uprof_mapped_files_read(UprofSlice reply)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(free_file);

    while (reply.len > 0) {
        const char *build_id = take_text(&reply);
        const char *path = build_id ? take_text(&reply) : NULL;
        if (!path || !is_build_id(build_id) || path[0] != '/' || strlen(path) >= PATH_BYTES_MAX ||
            files->len >= UPROF_MAPPED_FILES_MAX)
            return NULL;
        UprofMappedFile *file = g_new0(UprofMappedFile, 1);
        file->build_id = g_strdup(build_id);
        file->path = g_strdup(path);
        g_ptr_array_add(files, file);
    }
    return g_steal_pointer(&files);
}
