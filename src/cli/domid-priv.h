/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domid-priv.h - domains by Xen's own number, also those that libvirt does not know
 *
 * What xl has made, libvirt does not list. Such a domain goes through the program
 * as a word among the others, in a form that no name can have: names have no '/'.
 */
#pragma once

#include "uprof/host.h"

/* Numbers of domains (Xen, xen/include/public/xen.h, DOMID_FIRST_RESERVED) */
enum { UPROF_DOMID_MAX = 0x7fef };

/** uprof_domid_word: Returns: (transfer full): what stands for @domid among the words */
char *uprof_domid_word(unsigned domid);

/**
 * uprof_domid_find:
 * @word: a domain as for uprof_host_find(), or of uprof_domid_word()
 * @quiet: does not say that libvirt does not know it
 *
 * Returns: (transfer full) (nullable): as uprof_host_find()
 */
UprofDomain *uprof_domid_find(UprofHost *host, const char *word, bool quiet, GError **error);
