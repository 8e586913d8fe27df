/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domid.h - finds domains, also those that only Xen knows
 *
 * libvirt does not list the domains that xl made. On a connection to Xen on this host, the
 * functions here find them as well, if the module for them is there (xl-module.h). A name, UUID or
 * number that libvirt knows means libvirt's domain.
 *
 * The word "/domid/7" always means the domain with the number 7. No domain of libvirt has this
 * name, because its names cannot contain '/'. To find it, the module for holds is enough.
 */
#pragma once

#include "uprof/host.h"
#include "uprof/notice.h"

/* The largest domain number (xen/include/public/xen.h: DOMID_FIRST_RESERVED - 1) */
enum { UPROF_DOMID_MAX = 0x7fef };

/** uprof_domid_word: Returns: (transfer full): the word for the domain @domid */
char *uprof_domid_word(unsigned domid);

/**
 * uprof_domid_find:
 * @word: a word for uprof_host_find(), also for a domain of xl; or a word of uprof_domid_word()
 * @notices: (nullable): gets a hint if nobody but Xen itself knows the domain
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND, or with another code
 */
UprofDomain *
uprof_domid_find(UprofHost *host, const char *word, const UprofNotices *notices, GError **error);

/**
 * uprof_domid_find_definition: as uprof_domid_find(), but refuses domains of xl, which have no
 * metadata
 *
 * Returns: (transfer full) (nullable)
 */
UprofDomain *uprof_domid_find_definition(UprofHost *host, const char *word, GError **error);

/**
 * uprof_domid_list: as uprof_host_list(), and the domains of xl
 * @notices: (nullable): gets a hint if Xen's toolstack cannot be asked
 */
GPtrArray *uprof_domid_list(UprofHost *host, const UprofNotices *notices, GError **error);

/** uprof_domid_names: as uprof_host_names(), and the domains of xl; their kernels are not read */
GPtrArray *uprof_domid_names(UprofHost *host, GError **error);
