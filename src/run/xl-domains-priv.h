/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xl-domains-priv.h - domains that xl made, described as libvirt describes its own domains
 *
 * The toolstack of Xen also knows the domains that libvirt made. They are left out here.
 */
#pragma once

#include "uprof/host.h"
#include "uprof/xl-module.h"

/**
 * uprof_xl_domains_make: a domain of Xen that libvirt does not know
 * @name: any bytes but NUL
 * @uri: of libvirt's connection
 *
 * Returns: (transfer full): with the state of a running domain
 */
UprofDomain *uprof_xl_domains_make(const char *name, const char *uuid, int id, const char *uri,
                                   unsigned n_vcpus, unsigned n_vcpus_max);

/**
 * uprof_xl_domains_list:
 * @xl: borrowed
 * @uri: of libvirt's connection
 * @known: of UprofDomain: libvirt's domains; only their UUIDs and numbers are used
 *
 * Returns: (transfer full) (nullable): of UprofDomain, by name, without the paths of their kernels;
 * %NULL with the error of @xl
 */
GPtrArray *uprof_xl_domains_list(const UprofXlModule *xl, const char *uri, const GPtrArray *known,
                                 GError **error);

/**
 * uprof_xl_domains_choose:
 * @domains: (inout): of UprofDomain; the returned domain is removed
 * @word: number, UUID or name
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND, or with
 * %UPROF_ERROR_USAGE if several domains have that name
 */
UprofDomain *uprof_xl_domains_choose(GPtrArray *domains, const char *word, GError **error);

/** uprof_xl_domains_choose_id: the same, by number only. Returns: (transfer full) (nullable): %NULL
 * without error */
UprofDomain *uprof_xl_domains_choose_id(GPtrArray *domains, int id);

/**
 * uprof_xl_domains_read_kernel: sets the path of the kernel of @domain, or says why it is not known
 *
 * Root of dom0 has written the domain's configuration, as it has written libvirt's, so the path is
 * trusted. The file is not. A worker reads it, by the same rules as the file of libvirt's <kernel>.
 */
void uprof_xl_domains_read_kernel(const UprofXlModule *xl, UprofDomain *domain);
