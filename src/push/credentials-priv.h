/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * credentials-priv.h - the lines of the header of requests: tenant and credentials
 *
 * The memory of secrets is overwritten before it is freed, because a process that is forked later
 * reads hostile profiles.
 */
#pragma once

#include "uprof/destination.h"

/** UprofSecret: a text for g_auto(), which wipes it */
typedef char *UprofSecret;

/** uprof_credentials_wipe: overwrites a text, and frees it; @secret: (nullable) */
void uprof_credentials_wipe(char *secret);
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(UprofSecret, uprof_credentials_wipe, NULL)

/**
 * uprof_credentials_header:
 *
 * A file with a token or a password must belong to this user or to root, and nobody else may read
 * it.
 *
 * Returns: (transfer full) (nullable) (element-type utf8): lines such as "X-Scope-OrgID: a"; %NULL
 *   with an error that names the file
 */
GPtrArray *uprof_credentials_header(const UprofDestination *destination, GError **error);

/**
 * uprof_credentials_open: opens a certificate or a key for the helper
 * @is_secret: nobody else may read it
 *
 * Returns: a descriptor; -1 with an error that names the file
 */
int uprof_credentials_open(const char *path, bool is_secret, GError **error);
