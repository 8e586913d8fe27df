/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-module.h - what the loadable module for Xen shows the program
 *
 * The module is the only part that needs Xen's libraries. It lies in a folder
 * that is compiled into the program, links its own copies of what it uses of
 * base, snapshot, parse and guest, and exports one symbol: %UPROF_XEN_MODULE_SYMBOL, a
 * UprofXenModule.
 */
#pragma once

#include "uprof/guest.h"

/* One more with every change of UprofGuestOps, of what its members take, or of this file. */
enum { UPROF_XEN_MODULE_ABI = 2 };

#define UPROF_XEN_MODULE_SYMBOL "uprof_xen_module"

/**
 * UprofXenDomain: a domain as Xen knows it
 * @name: as the toolstack calls it, or ""; not clean
 * @uuid: as text
 * @n_vcpus: places, some of which may be empty
 */
typedef struct {
    char name[UPROF_MARKER_NAME_BYTES_MAX];
    char uuid[UPROF_MARKER_UUID_BYTES];
    unsigned n_vcpus;
} UprofXenDomain;

/**
 * UprofXenModule:
 * @abi: %UPROF_XEN_MODULE_ABI
 * @ops: access `xen`
 * @find: looks for the domain of number @domid, which libvirt need not know;
 *   false with %UPROF_ERROR_NOT_FOUND, or as `open` would fail
 */
typedef struct {
    uint32_t abi;
    const UprofGuestOps *ops;
    bool (*find)(int domid, UprofXenDomain *domain, GError **error);
} UprofXenModule;
