/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain-events.h - reports when a domain has started, crashed or was reset, when its watchdog has
 * fired, when a disk has failed, and when a block job has changed
 *
 * The watch has its own connection, and a thread with libvirt's event loop. Nothing else in
 * virt-uprof registers for events (qemu-priv.h says why). The watch registers once, before
 * anything is held.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

enum { UPROF_DOMAIN_EVENT_UUID_BYTES = 37 };

/** UprofDomainEvent: an event of a domain */
typedef struct {
    char uuid[UPROF_DOMAIN_EVENT_UUID_BYTES];
    const char *what; /* literal: "crash", "reboot", "watchdog", "io-error" or "block-job" */
} UprofDomainEvent;

typedef struct _UprofDomainEvents UprofDomainEvents;

/**
 * uprof_domain_events_new:
 * @uri: (nullable): as for uprof_host_open()
 *
 * Call it once in a process, before a connection that uses events is opened.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofDomainEvents *uprof_domain_events_new(const char *uri, GError **error);

/** uprof_domain_events_free: @watch: (nullable) */
void uprof_domain_events_free(UprofDomainEvents *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDomainEvents, uprof_domain_events_free)

/**
 * uprof_domain_events_fd: Returns: borrowed descriptor, readable when a domain may have started, or
 * has another event
 */
int uprof_domain_events_fd(const UprofDomainEvents *watch);

/**
 * uprof_domain_events_want_starts: says whether starts of domains should make the descriptor
 * readable
 *
 * At first they do. A guest that is held as a whole is suspended and resumed at each sample, which
 * looks like a start.
 */
void uprof_domain_events_want_starts(UprofDomainEvents *watch, bool wants);

/** uprof_domain_events_clear: makes the descriptor unreadable until the next event */
void uprof_domain_events_clear(UprofDomainEvents *watch);

/**
 * uprof_domain_events_take: takes the oldest event that is not a start
 * @event: (out)
 *
 * At most 256 different events are kept; later ones are lost.
 *
 * Returns: false if there is none
 */
bool uprof_domain_events_take(UprofDomainEvents *watch, UprofDomainEvent *event);
