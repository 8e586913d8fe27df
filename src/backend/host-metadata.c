/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * virt-uprof's element in the metadata of a domain. Without flags libvirt would write only
 * one of the two scopes, so each call names its scope.
 */
#include "host-priv.h"

#include <stdlib.h>

static virDomainPtr
find_domain(UprofHost *host, const UprofDomain *domain, GError **error)
{
    virDomainPtr vir =
        uprof_libvirt.DomainLookupByUUIDString(uprof_host_connection(host), domain->uuid);

    if (!vir)
        uprof_host_fail(error, "cannot look for a domain");
    return vir;
}

static unsigned
find_flags(UprofMetadataScope scope)
{
    return scope == UPROF_METADATA_LIVE ? VIR_DOMAIN_AFFECT_LIVE : VIR_DOMAIN_AFFECT_CONFIG;
}

bool
uprof_host_has_metadata_scope(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope)
{
    g_autoptr(UprofVirDomain) vir = find_domain(host, domain, NULL);

    if (!vir)
        return false;
    return scope == UPROF_METADATA_LIVE ? uprof_libvirt.DomainIsActive(vir) == 1
                                        : uprof_libvirt.DomainIsPersistent(vir) == 1;
}

bool
uprof_host_get_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope,
                        char **xml, GError **error)
{
    g_autoptr(UprofVirDomain) vir = find_domain(host, domain, error);

    if (!vir)
        return false;
    char *found = uprof_libvirt.DomainGetMetadata(vir, VIR_DOMAIN_METADATA_ELEMENT,
                                                  UPROF_METADATA_NAMESPACE, find_flags(scope));
    const virError *last = found ? NULL : uprof_libvirt.GetLastError();
    if (!found && (!last || last->code != VIR_ERR_NO_DOMAIN_METADATA))
        return uprof_host_fail(error, "cannot read the metadata of a domain");
    *xml = g_strdup(found ? found : "");
    free(found);
    return true;
}

bool
uprof_host_set_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope,
                        const char *xml, GError **error)
{
    g_autoptr(UprofVirDomain) vir = find_domain(host, domain, error);

    if (!vir)
        return false;
    return uprof_libvirt.DomainSetMetadata(vir, VIR_DOMAIN_METADATA_ELEMENT, xml,
                                           UPROF_METADATA_PREFIX, UPROF_METADATA_NAMESPACE,
                                           find_flags(scope)) == 0 ||
           uprof_host_fail(error, "cannot write the metadata of a domain");
}
