/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * access.h - chooses the access methods to try for a domain
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/host.h"

/**
 * uprof_access_find: finds a backend; loads the module for Xen domains if @name is "xen"
 *
 * Returns: (nullable): %NULL if this build has no backend @name, or its module cannot be loaded
 */
const UprofGuestOps *uprof_access_find(const char *name);

/** uprof_access_is_host: @domain is Xen's dom0, in which the profiler itself runs */
bool uprof_access_is_host(const UprofDomain *domain);

enum { UPROF_ACCESS_METHODS_MAX = 2 };

/** UprofAccess: the access methods to try for one domain */
typedef struct {
    const UprofGuestOps *methods[UPROF_ACCESS_METHODS_MAX]; /* borrowed; the best first */
    unsigned n;                                             /* entries in @methods */
    char *why; /* owned; why the first method is the best */
} UprofAccess;

/** uprof_access_clear: frees the members of @access, but not @access */
void uprof_access_clear(UprofAccess *access);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofAccess, uprof_access_clear)

/** UprofStop: which part of a guest a hold must stop */
typedef enum {
    UPROF_STOP_ANY,   /* as the access method does it */
    UPROF_STOP_NONE,  /* none (--no-pause): only "monitor" can read a guest that runs */
    UPROF_STOP_WHOLE, /* the whole guest (--pause): "direct" cannot do it */
} UprofStop;

/**
 * uprof_access_choose:
 * @asked: "auto" or the name of a method
 * @access: (out): has at least one method
 *
 * Touches no guest. Loads the module for Xen domains if @domain is a Xen domain.
 *
 * Returns: false with %UPROF_ERROR_UNSUPPORTED, or with %UPROF_ERROR_DENIED if the process lacks
 *   a right that the method @asked needs
 */
bool uprof_access_choose(const UprofDomain *domain, const char *asked, UprofStop stop,
                         UprofAccess *access, GError **error);
