/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "load-options-priv.h"

void
uprof_load_options_init(UprofLoadOptions *load_options, const UprofOptions *options)
{
    const UprofSettings *settings = &options->settings;

    load_options->options = options;
    load_options->symbols = uprof_options_symbols(options);
    load_options->notices = uprof_options_notices(options);
    load_options->settings = (UprofLoadSettings){
        .replay = {
            .symbols = &load_options->symbols,
            .per_vcpu = settings->per_vcpu || options->by == UPROF_BY_VCPU,
            .pids = settings->pids,
            .cgroups = settings->cgroups || options->by == UPROF_BY_CGROUP,
            .native = settings->native,
            .idle = settings->idle,
            .idle_stacks = settings->idle_stacks,
            .max_depth = options->given_depth ? settings->max_depth : 0,
            .unwind = settings->given.unwind ? settings->unwind : NULL,
            .annotate = options->annotate,
            .notices = &load_options->notices,
        },
        .include = options->include,
        .exclude = options->exclude,
        .notices = &load_options->notices,
    };
}

UprofErrorCode
uprof_load_options_add_stored(const UprofCatalog *catalog, UprofLoad *load, const char *domain,
                              int64_t since_s, int64_t until_s)
{
    const UprofQuery query = { catalog, domain, since_s, until_s };

    return uprof_query_load(&query, load);
}
