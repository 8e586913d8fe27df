/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * btf-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_BTF_BYTES_MAX = 64 * 1024 * 1024,
    UPROF_BTF_TYPES_MAX = 1000 * 1000,
    UPROF_BTF_DEPTH_MAX = 8,          /* unnamed structures inside each other */
    UPROF_BTF_ALIASES_MAX = 32,       /* typedef of typedef of const ... */
    UPROF_BTF_STEPS_MAX = 100 * 1000, /* members read for one answer */
};
