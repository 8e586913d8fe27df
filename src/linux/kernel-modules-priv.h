/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-modules-priv.h - the modules that a running Linux kernel has loaded
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-offsets-priv.h"
#include "uprof/orc-table.h"
#include "uprof/sym-types.h"
#include "uprof/symbol.h"

/** UprofLinuxModuleSymbol: a function of a module */
typedef struct {
    uint64_t start, size; /* guest-virtual; @size is 0 if it is not known */
    size_t name;          /* offset of the name in UprofLinuxModules.names */
    UprofBinding binding;
} UprofLinuxModuleSymbol;

/** UprofLinuxModules: all members are owned */
typedef struct {
    unsigned n;        /* modules in the kernel's list */
    unsigned n_coming; /* of them, that are being loaded: their init code will be freed */
    GArray *symbols;   /* of UprofLinuxModuleSymbol */
    GByteArray *names; /* as in the guest: any bytes */
    GArray *code;      /* of UprofSymCode; see uprof_linux_modules_sort() */
    GPtrArray *orcs;   /* of UprofOrc: unwind tables */
} UprofLinuxModules;

/**
 * uprof_linux_modules_read:
 * @head: address of the list's head
 * @version: of the kernel's ORC unwind tables
 *
 * Returns: (transfer full): the modules that could be read, perhaps none
 */
UprofLinuxModules *
uprof_linux_modules_read(const UprofLinuxModuleOffsets *offsets, uint64_t head,
                         UprofOrcVersion version, const UprofKernelMemory *memory);
void uprof_linux_modules_free(UprofLinuxModules *modules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinuxModules, uprof_linux_modules_free)

/**
 * uprof_linux_modules_sort: sorts the code, after all was added
 *
 * Real modules do not overlap. So a piece of code that overlaps another one is dropped.
 */
void uprof_linux_modules_sort(UprofLinuxModules *modules);

/**
 * uprof_linux_modules_digest:
 * @digest: (out): a hash of the list and of the start of its newest module
 *
 * A cheap check for modules that were loaded or unloaded. A new module may get the address of an
 * unloaded one, so the newest module's name is part of the hash.
 *
 * Returns: false if the list cannot be read
 */
bool uprof_linux_modules_digest(const UprofKernelMemory *memory, uint64_t head, uint64_t *digest);
