/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/vcpu-tables.h"

#include "uprof/number-text.h"

/* The profile of each vCPU. */
typedef struct {
    UprofNames *names;    /* borrowed */
    GPtrArray *profiles;  /* by vCPU number: UprofProfile or NULL */
    uint64_t n_elsewhere; /* samples of unknown vCPUs */
} Split;

static void
add_to_vcpu(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Split *split = data;
    uint32_t vcpu;

    if (n < 3 || !uprof_profile_level_is_vcpu(frames[1], &vcpu)) {
        split->n_elsewhere += weight;
        return;
    }
    if (vcpu >= split->profiles->len)
        g_ptr_array_set_size(split->profiles, (gint)vcpu + 1);
    gpointer *profile = &split->profiles->pdata[vcpu];
    if (!*profile)
        *profile = uprof_profile_new(split->names, frames[1], false);
    uprof_profile_add(*profile, frames + 2, n - 2, weight);
}

static void
free_profile(gpointer profile)
{
    uprof_profile_free(profile);
}

static void
append_vcpu(GString *text, const UprofProfile *whole, unsigned vcpu, const UprofProfile *profile,
            const UprofTableStyle *style)
{
    const uint64_t weight = uprof_profile_total(profile);
    g_autofree char *share = uprof_format_percent(weight, uprof_profile_total(whole));
    GString *table = uprof_table_render(profile, style);

    g_string_append_printf(text, "%svcpu%u: %" G_GUINT64_FORMAT " samples, %s %% of all\n",
                           text->len > 0 ? "\n" : "", vcpu, weight, share);
    g_string_append_len(text, table->str, (gssize)table->len);
    g_string_free(table, TRUE);
}

GString *
uprof_vcpu_tables_render(const UprofProfile *profile, const UprofTableStyle *style)
{
    g_autoptr(GPtrArray) profiles = g_ptr_array_new_with_free_func(free_profile);
    Split split = { .names = uprof_profile_names(profile), .profiles = profiles };
    GString *text = g_string_new(NULL);

    if (uprof_profile_root(profile))
        uprof_profile_walk(profile, add_to_vcpu, &split);
    for (guint i = 0; i < profiles->len; i++)
        if (g_ptr_array_index(profiles, i))
            append_vcpu(text, profile, i, g_ptr_array_index(profiles, i), style);
    if (text->len > 0 && split.n_elsewhere > 0) {
        g_autofree char *share =
            uprof_format_percent(split.n_elsewhere, uprof_profile_total(profile));
        g_string_append_printf(text,
                               "\non unknown vCPUs: %" G_GUINT64_FORMAT " samples, %s %% of all\n",
                               split.n_elsewhere, share);
    }
    return text;
}
