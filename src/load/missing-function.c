/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/missing-function.h"

#include "uprof/focus.h"
#include "uprof/text.h"

char *
uprof_load_explain_function(const UprofLoad *load, const char *name)
{
    g_autofree char *shown = uprof_text_quote(name);
    const char *meant = uprof_focus_suggest(load->profile, name);

    return g_strdup_printf(
        "no stack has a function '%s'%s%s%s; names: virt-uprof report -n 1000000", shown,
        meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
}

char *
uprof_load_explain_instructions(const UprofLoad *load, const char *name)
{
    g_autoptr(UprofFocus) focus = uprof_focus_new(load->profile, name);
    g_autofree char *shown = uprof_text_quote(name);

    if (!focus)
        return uprof_load_explain_function(load, name);
    if (focus->self == 0)
        return g_strdup_printf("'%s' has no samples of its own; --focus shows what it calls",
                               shown);
    if (load->annotation && !load->places)
        return g_strdup_printf(
            "'%s' has no instructions of its own: it is inlined into its caller, "
            "or a function of Python",
            shown);
    return g_strdup_printf("the profile has no addresses of '%s', only its name; record with "
                           "--capture FILE, and give FILE",
                           shown);
}
