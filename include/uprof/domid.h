/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domid.h - finds Xen domains by number, even if libvirt does not know them
 *
 * libvirt does not list the domains that xl made. The word "/domid/7" stands for the domain with
 * the number 7. No domain has this word as its name, because names cannot contain '/'.
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
 * @word: a word for uprof_host_find(), or a word of uprof_domid_word()
 * @notices: (nullable): gets a hint if libvirt does not know the domain
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND, or with another code
 */
UprofDomain *
uprof_domid_find(UprofHost *host, const char *word, const UprofNotices *notices, GError **error);
