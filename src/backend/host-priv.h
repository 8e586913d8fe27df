/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * host-priv.h - libvirt's types, for the backends
 */
#pragma once

#include "libvirt-calls-priv.h"
#include "uprof/host.h"

typedef virConnect UprofVirConnect;
typedef virDomain UprofVirDomain;

static inline void
uprof_vir_connect_close(virConnectPtr connection)
{
    if (connection)
        uprof_libvirt.ConnectClose(connection);
}

static inline void
uprof_vir_domain_free(virDomainPtr domain)
{
    if (domain)
        uprof_libvirt.DomainFree(domain);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofVirConnect, uprof_vir_connect_close)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofVirDomain, uprof_vir_domain_free)

/**
 * uprof_host_fail: turns libvirt's last error of this thread into a GError
 * @what: begins the message, which ends with libvirt's text, made safe to print
 *
 * Returns: always false
 */
bool uprof_host_fail(GError **error, const char *what);

/** uprof_host_connect: as uprof_host_open(), with libvirt's own type */
virConnectPtr uprof_host_connect(const char *uri, bool read_only, GError **error);

/** uprof_host_connection: Returns: (transfer none) */
virConnectPtr uprof_host_connection(const UprofHost *host);
