/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-module.h - the interface of the loadable module for Xen
 *
 * Only this module needs Xen's libraries. The program has the module's folder compiled in.
 * The module links its own copies of the functions of base, snapshot, parse and guest that it
 * calls. It exports one symbol: %UPROF_XEN_MODULE_SYMBOL, a UprofXenModule.
 */
#pragma once

#include "uprof/guest.h"

/* Raise this number with every change of UprofGuestOps, of its parameters, or of this file. */
enum { UPROF_XEN_MODULE_ABI = 3 };

#define UPROF_XEN_MODULE_SYMBOL "uprof_xen_module"

/** UprofXenDomain: a domain as Xen knows it */
typedef struct {
    /* of the toolstack; "" if the toolstack has none; not safe to print */
    char name[UPROF_MARKER_NAME_BYTES_MAX];
    char uuid[UPROF_MARKER_UUID_BYTES]; /* as text */
    unsigned n_vcpus;                   /* highest number of a vCPU + 1; some may be absent */
} UprofXenDomain;

typedef struct {
    uint32_t abi;             /* %UPROF_XEN_MODULE_ABI */
    const UprofGuestOps *ops; /* access `xen` */
    /*
     * Finds the domain with the number @domid, which libvirt need not know. Returns false with
     * %UPROF_ERROR_NOT_FOUND, or with the errors of `open`.
     */
    bool (*find)(int domid, UprofXenDomain *domain, GError **error);
} UprofXenModule;
