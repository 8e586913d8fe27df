/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "expand-inlined-priv.h"

static unsigned
expand_stack(const UprofName *const *frames, unsigned n, const UprofName **into, void *data)
{
    UprofSym *sym = data;
    unsigned n_into = 0;

    for (unsigned i = 0; i < n; i++) {
        const unsigned room = UPROF_PROFILE_DEPTH_MAX - 1 - n_into - (n - 1 - i);
        const UprofName *const *functions = &frames[i];
        const unsigned n_functions = uprof_sym_expand(sym, frames[i], &functions);
        const unsigned n_taken = n_functions <= room ? MAX(n_functions, 1) : 1;
        for (unsigned j = 0; j < n_taken; j++)
            into[n_into++] = functions[j];
    }
    return n_into;
}

UprofProfile *
uprof_expand_inlined(UprofProfile *profile, UprofSym *sym)
{
    UprofProfile *expanded = uprof_profile_map(profile, expand_stack, sym);

    uprof_profile_free(profile);
    return expanded;
}
