/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kind.h - the kind of code of a frame, from its name alone
 *
 * Names are all that profiles of other programs have. Common flame graph tools use
 * the same suffixes, "_[k]" and "_[i]".
 */
#pragma once

#include "uprof/intern.h"

typedef enum {
    UPROF_KIND_APP,
    UPROF_KIND_KERNEL,    /* of a guest: "_[k]" */
    UPROF_KIND_INTERRUPT, /* interrupt entry of the guest's kernel */
    UPROF_KIND_INLINED,   /* "_[i]" */
    UPROF_KIND_IDLE,      /* "[idle]" */
    UPROF_KIND_MARKER,    /* "[unknown]", "[truncated]" */
    UPROF_KIND_DOMAIN,    /* the root of a profile, and "vcpu0" below it */
    UPROF_N_KINDS,
} UprofKind;

/** uprof_kind_of: @name: of a frame that is not the root */
UprofKind uprof_kind_of(const UprofName *name);

/** uprof_kind_label: Returns: one or two words for a legend */
const char *uprof_kind_label(UprofKind kind);

/** uprof_kind_letter: Returns: a letter for tables and classes of the style sheet */
char uprof_kind_letter(UprofKind kind);
