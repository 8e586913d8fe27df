/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kallsyms-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_KALLSYMS_MAX = 1000 * 1000,
    UPROF_KALLSYMS_NAME_BYTES_MAX = 512,                /* of one name with its type letter */
    UPROF_KALLSYMS_PACKED_BYTES_MAX = 16 * 1024 * 1024, /* all names, as the image stores them */
    UPROF_KALLSYMS_STEPS_MAX = 64 * 1000 * 1000,        /* table entries that a search reads */
};
