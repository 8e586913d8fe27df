/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * access-priv.h - which way into a guest
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/host.h"

/** uprof_access_find: Returns: (nullable): the backend of that name, if there is one here */
const UprofGuestOps *uprof_access_find(const char *name);

/** uprof_access_is_host: Returns: whether it is the host in the form of a domain: Xen's dom0 */
bool uprof_access_is_host(const UprofDomain *domain);

enum { UPROF_ACCESS_WAYS_MAX = 2 };

/**
 * UprofAccess: ways into a guest, the best first
 * @why: why the first is the first; if it turns out not to work, its error says
 *   why it is the next
 */
typedef struct {
    const UprofGuestOps *ways[UPROF_ACCESS_WAYS_MAX];
    unsigned n;
    char *why;
} UprofAccess;

/** uprof_access_clear: frees what it holds, not itself */
void uprof_access_clear(UprofAccess *access);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofAccess, uprof_access_clear)

/**
 * uprof_access_choose:
 * @domain: running
 * @asked: "auto" or a name
 * @no_pause: asked for: only the monitor can do without
 * @access: (out): one way at least
 *
 * Touches no guest. Loads the module for Xen if it is a domain of Xen.
 *
 * Returns: false with %UPROF_ERROR_UNSUPPORTED, or %UPROF_ERROR_DENIED where the
 *   asked way lacks a right
 */
bool uprof_access_choose(const UprofDomain *domain, const char *asked, bool no_pause,
                         UprofAccess *access, GError **error);
