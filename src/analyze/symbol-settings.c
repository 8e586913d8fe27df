/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/symbol-settings.h"

static bool
has_text(const char *const *list)
{
    return list && list[0];
}

bool
uprof_symbol_settings_has_any(const UprofSymbolSettings *settings)
{
    return settings->files->len > 0 || has_text(settings->config.debug_folders) ||
           has_text(settings->config.sysroots) || settings->config.cache_folder;
}

static bool
add_file(const UprofSymbolSettings *settings, guint i, UprofSym *sym, GError **error)
{
    const UprofSymbolFile *file = g_ptr_array_index(settings->files, i);

    return uprof_sym_add_file_at(sym, file->path, file->is_moved ? &file->base : NULL, true, error);
}

bool
uprof_symbol_settings_apply(const UprofSymbolSettings *settings, UprofSym *sym, GError **error)
{
    uprof_sym_configure(sym, &settings->config);
    for (guint i = 0; i < settings->files->len; i++)
        if (!add_file(settings, i, sym, error))
            return false;
    return true;
}

void
uprof_symbol_settings_apply_usable(const UprofSymbolSettings *settings, UprofSym *sym,
                                   const UprofNotices *notices)
{
    uprof_sym_configure(sym, &settings->config);
    for (guint i = 0; i < settings->files->len; i++) {
        g_autoptr(GError) error = NULL;
        if (!add_file(settings, i, sym, &error))
            uprof_notice(notices, UPROF_NOTICE_WARNING, "%s; continuing without it",
                         error->message);
    }
}
