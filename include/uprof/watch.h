/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch.h - says when a domain has started
 *
 * For those who wait for one. It has a connection and a thread of its own, with
 * libvirt's event loop; nothing else registers for events (see qemu-priv.h), and
 * this does it once, before anything is held.
 */
#pragma once

#include <glib.h>

typedef struct _UprofWatch UprofWatch;

/**
 * uprof_watch_new:
 * @uri: (nullable): as for uprof_host_open()
 *
 * Before the first connection of the process that wants events; once in a process.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofWatch *uprof_watch_new(const char *uri, GError **error);

/** uprof_watch_free: @watch: (nullable) */
void uprof_watch_free(UprofWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatch, uprof_watch_free)

/** uprof_watch_fd: Returns: readable when some domain has started, or may have; borrowed */
int uprof_watch_fd(const UprofWatch *watch);

/** uprof_watch_clear: what has happened up to now is known */
void uprof_watch_clear(UprofWatch *watch);
