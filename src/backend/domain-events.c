/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/domain-events.h"

#include "uprof/signal-mask.h"

#include "host-priv.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The timer reports an event this often in any case, because a restarted daemon sends no events. */
enum { CHECK_MS = 1000 };

struct _UprofDomainEvents {
    char *uri;
    virConnectPtr connection; /* owned; NULL while there is no daemon */
    int callback;             /* libvirt's numbers; -1: none */
    int timer;
    int fd; /* eventfd */
    GThread *thread;
    gint is_ending;
};

static void
signal_event(const UprofDomainEvents *events)
{
    const uint64_t one = 1;

    /* EAGAIN: the counter is full, so the descriptor is readable anyway */
    if (write(events->fd, &one, sizeof(one)) < 0)
        g_assert(errno == EAGAIN);
}

/* virConnectDomainEventCallback */
static int
note_event(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *data)
{
    if (event == VIR_DOMAIN_EVENT_STARTED || event == VIR_DOMAIN_EVENT_RESUMED)
        signal_event(data);
    return 0;
}

static bool
connect_events(UprofDomainEvents *events, GError **error)
{
    events->connection = uprof_host_connect(events->uri, true, error);
    if (!events->connection)
        return false;
    virConnectSetKeepAlive(events->connection, 5, 3);
    events->callback =
        virConnectDomainEventRegisterAny(events->connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                         VIR_DOMAIN_EVENT_CALLBACK(note_event), events, NULL);
    return events->callback >= 0 || uprof_host_fail(error, "cannot wait for domains to start");
}

static void
disconnect_events(UprofDomainEvents *events)
{
    if (events->connection && events->callback >= 0)
        virConnectDomainEventDeregisterAny(events->connection, events->callback);
    uprof_vir_connect_close(events->connection);
    events->connection = NULL;
    events->callback = -1;
}

/* virEventTimeoutCallback: it also wakes the thread, which may have to end */
static void
check_connection(int timer, void *data)
{
    UprofDomainEvents *events = data;

    if (g_atomic_int_get(&events->is_ending))
        return;
    if (!events->connection || virConnectIsAlive(events->connection) != 1) {
        disconnect_events(events);
        if (!connect_events(events, NULL))
            disconnect_events(events);
    }
    signal_event(events);
}

static gpointer
run_events(gpointer data)
{
    UprofDomainEvents *events = data;

    uprof_signal_mask_block(NULL); /* the main thread handles signals */
    while (!g_atomic_int_get(&events->is_ending))
        virEventRunDefaultImpl();
    return NULL;
}

UprofDomainEvents *
uprof_domain_events_new(const char *uri, GError **error)
{
    g_autoptr(UprofDomainEvents) events = g_new0(UprofDomainEvents, 1);

    events->uri = g_strdup(uri);
    events->callback = events->timer = -1;
    events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->fd < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no eventfd: %s", g_strerror(errno));
        return NULL;
    }
    if (virEventRegisterDefaultImpl() < 0) {
        uprof_host_fail(error, "libvirt has no event loop");
        return NULL;
    }
    events->timer = virEventAddTimeout(CHECK_MS, check_connection, events, NULL);
    if (!connect_events(events, error))
        return NULL;
    events->thread = g_thread_try_new("events", run_events, events, error);
    return events->thread ? g_steal_pointer(&events) : NULL;
}

void
uprof_domain_events_free(UprofDomainEvents *events)
{
    if (!events)
        return;
    g_atomic_int_set(&events->is_ending, 1);
    if (events->thread) {
        virEventUpdateTimeout(events->timer, 0); /* wakes the thread */
        g_thread_join(events->thread);
    }
    if (events->timer >= 0)
        virEventRemoveTimeout(events->timer);
    disconnect_events(events);
    if (events->fd >= 0)
        close(events->fd);
    g_free(events->uri);
    g_free(events);
}

int
uprof_domain_events_fd(const UprofDomainEvents *events)
{
    return events->fd;
}

void
uprof_domain_events_clear(UprofDomainEvents *events)
{
    uint64_t n;

    if (read(events->fd, &n, sizeof(n)) < 0)
        g_assert(errno == EAGAIN);
}
