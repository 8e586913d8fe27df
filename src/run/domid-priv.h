/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domid-priv.h - the domains that only Xen knows, while a run looks for domains that start
 */
#pragma once

#include "uprof/domid.h"

/** uprof_domid_find_id: as uprof_host_find_id(), also for a domain of xl */
UprofDomain *uprof_domid_find_id(UprofHost *host, int id, GError **error);

/** uprof_domid_running: as uprof_host_running(), and the domains of xl */
GArray *uprof_domid_running(UprofHost *host);

/** uprof_domid_may_be_xl: @host is a connection to Xen on this host, where xl makes domains, too */
bool uprof_domid_may_be_xl(const UprofHost *host);
