/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kind.h - what sort of code a frame is, by its name alone
 *
 * So that profiles of other programs, which have nothing but names, look like
 * ours. Suffixes are those that flame graph tools have agreed on.
 */
#pragma once

#include "uprof/intern.h"

typedef enum {
    UPROF_KIND_APP,
    UPROF_KIND_KERNEL,    /* of a guest: "_[k]" */
    UPROF_KIND_INTERRUPT, /* the guest kernel's entries for interrupts */
    UPROF_KIND_INLINED,   /* "_[i]" */
    UPROF_KIND_IDLE,      /* "[idle]" */
    UPROF_KIND_MARKER,    /* "[unknown]", "[truncated]" */
    UPROF_KIND_DOMAIN,    /* the root of a profile, and "vcpu0" below it */
    UPROF_N_KINDS,
} UprofKind;

/** uprof_kind_of: Returns: the kind of a frame that is not the root */
UprofKind uprof_kind_of(const UprofName *name);

/** uprof_kind_label: Returns: in two words or less, for a legend */
const char *uprof_kind_label(UprofKind kind);

/** uprof_kind_letter: Returns: one letter for tables and classes of styles */
char uprof_kind_letter(UprofKind kind);
