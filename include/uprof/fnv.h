/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fnv.h - FNV-1a: a fast digest that anybody can forge (draft-eastlake-fnv, section 2)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UPROF_FNV32_START UINT32_C(0x811c9dc5)
#define UPROF_FNV64_START UINT64_C(0xcbf29ce484222325)

/** uprof_fnv32_add: Returns: @digest, continued over @len bytes; begin with UPROF_FNV32_START */
uint32_t uprof_fnv32_add(uint32_t digest, const void *bytes, size_t len);

/** uprof_fnv64_add: Returns: @digest, continued over @len bytes; begin with UPROF_FNV64_START */
uint64_t uprof_fnv64_add(uint64_t digest, const void *bytes, size_t len);
