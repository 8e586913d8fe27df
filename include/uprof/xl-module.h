/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xl-module.h - the interface of the loadable module for the domains of xl
 *
 * Only this module needs libxenlight, each of whose SONAMEs belongs to one version of Xen. The
 * program works without the module, and so does the module for holds (xen-module.h). The module
 * links its own copies of the functions of base that it calls. It exports one symbol:
 * %UPROF_XL_MODULE_SYMBOL, a UprofXlModule. It changes no domain.
 */
#pragma once

#include "uprof/marker.h"

/* Raise this number with every change of this file. */
enum { UPROF_XL_MODULE_ABI = 1 };

#define UPROF_XL_MODULE_SYMBOL "uprof_xl_module"

enum { UPROF_XL_NAME_BYTES_MAX = 1024 };

typedef enum {
    UPROF_XL_RUNNING,
    UPROF_XL_PAUSED,   /* a hold of this program counts, too */
    UPROF_XL_CRASHED,  /* its memory is still there */
    UPROF_XL_SHUTDOWN, /* it has shut down, or is being saved */
} UprofXlState;

/** UprofXlDomain: a domain, as the toolstack of Xen knows it; libvirt may know it, too */
typedef struct {
    int domid;
    char uuid[UPROF_MARKER_UUID_BYTES]; /* as text */
    char name[UPROF_XL_NAME_BYTES_MAX]; /* any bytes: not safe to print; a longer name is cut */
    UprofXlState state;
    unsigned n_vcpus, n_vcpus_max; /* vCPUs that are online; that can be online */
} UprofXlDomain;

typedef struct {
    uint32_t abi; /* %UPROF_XL_MODULE_ABI */
    /*
     * @domains: (inout): of UprofXlDomain: gets all domains but dom0, in any order. A domain that
     * ends meanwhile is left out. Returns: false with %UPROF_ERROR_UNSUPPORTED, for example if the
     * running Xen is of another version than libxenlight
     */
    bool (*list)(GArray *domains, GError **error);
    /*
     * @kernel: (out) (transfer full) (nullable): path of the kernel in the domain's configuration,
     * not safe to print; %NULL if the configuration has none Returns: false with
     * %UPROF_ERROR_NOT_FOUND if the domain has ended, or with %UPROF_ERROR_FAILED if its
     * configuration cannot be read
     */
    bool (*kernel)(const UprofXlDomain *domain, char **kernel, GError **error);
} UprofXlModule;
