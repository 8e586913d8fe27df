/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/domain-events.h"

#include "uprof/signal-mask.h"

#include "host-priv.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The timer reports an event this often in any case, because a restarted daemon sends no events. */
enum { CHECK_MS = 1000 };

enum { KEPT_MAX = 256 };

typedef void (*Callback)(void);

struct _UprofDomainEvents {
    char *uri;
    virConnectPtr connection; /* owned; NULL while there is no daemon */
    GArray *callbacks;        /* of int: libvirt's numbers; owned */
    int timer;                /* libvirt's number; -1: none */
    int fd;                   /* eventfd */
    GThread *thread;
    gint is_ending;
    gint wants_starts;
    GMutex lock;  /* guards @kept */
    GArray *kept; /* of UprofDomainEvent; owned */
};

static void
signal_event(const UprofDomainEvents *events)
{
    const uint64_t one = 1;

    /* EAGAIN: the counter is full, so the descriptor is readable anyway */
    if (write(events->fd, &one, sizeof(one)) < 0)
        g_assert(errno == EAGAIN);
}

static bool
is_kept(const UprofDomainEvents *events, const UprofDomainEvent *event)
{
    for (guint i = 0; i < events->kept->len; i++) {
        const UprofDomainEvent *kept = &g_array_index(events->kept, UprofDomainEvent, i);
        if (strcmp(kept->uuid, event->uuid) == 0 && kept->what == event->what)
            return true;
    }
    return false;
}

static void
keep_event(UprofDomainEvents *events, virDomainPtr domain, const char *what)
{
    UprofDomainEvent event = { .what = what };

    if (uprof_libvirt.DomainGetUUIDString(domain, event.uuid) < 0)
        return;
    g_mutex_lock(&events->lock);
    if (!is_kept(events, &event) && events->kept->len < KEPT_MAX)
        g_array_append_val(events->kept, event);
    g_mutex_unlock(&events->lock);
    signal_event(events);
}

/* virConnectDomainEventCallback */
static int
note_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *data)
{
    const UprofDomainEvents *events = data;

    if ((event == VIR_DOMAIN_EVENT_STARTED || event == VIR_DOMAIN_EVENT_RESUMED) &&
        g_atomic_int_get(&events->wants_starts))
        signal_event(events);
    /* "failed": the process of QEMU has died without a shutdown */
    if (event == VIR_DOMAIN_EVENT_CRASHED ||
        (event == VIR_DOMAIN_EVENT_STOPPED &&
         (detail == VIR_DOMAIN_EVENT_STOPPED_CRASHED || detail == VIR_DOMAIN_EVENT_STOPPED_FAILED)))
        keep_event(data, domain, "crash");
    return 0;
}

/* virConnectDomainEventGenericCallback */
static void
note_reboot(virConnectPtr connection, virDomainPtr domain, void *data)
{
    keep_event(data, domain, "reboot");
}

/* virConnectDomainEventWatchdogCallback */
static void
note_watchdog(virConnectPtr connection, virDomainPtr domain, int action, void *data)
{
    keep_event(data, domain, "watchdog");
}

/* virConnectDomainEventIOErrorCallback */
static void
note_io_error(virConnectPtr connection, virDomainPtr domain, const char *path, const char *alias,
              int action, void *data)
{
    keep_event(data, domain, "io-error");
}

/* virConnectDomainEventBlockJobCallback */
static void
note_block_job(virConnectPtr connection, virDomainPtr domain, const char *disk, int type,
               int status, void *data)
{
    keep_event(data, domain, "block-job");
}

/* Not every driver has every kind of event: only the first kind must be there. */
static const struct {
    int id;
    Callback callback;
} kinds[] = {
    { VIR_DOMAIN_EVENT_ID_LIFECYCLE, (Callback)note_lifecycle },
    { VIR_DOMAIN_EVENT_ID_REBOOT, (Callback)note_reboot },
    { VIR_DOMAIN_EVENT_ID_WATCHDOG, (Callback)note_watchdog },
    { VIR_DOMAIN_EVENT_ID_IO_ERROR, (Callback)note_io_error },
    { VIR_DOMAIN_EVENT_ID_BLOCK_JOB_2, (Callback)note_block_job },
};

static bool
connect_events(UprofDomainEvents *events, GError **error)
{
    events->connection = uprof_host_connect(events->uri, true, error);
    if (!events->connection)
        return false;
    uprof_libvirt.ConnectSetKeepAlive(events->connection, 5, 3);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const int number = uprof_libvirt.ConnectDomainEventRegisterAny(
            events->connection, NULL, kinds[i].id,
            (virConnectDomainEventGenericCallback)kinds[i].callback, events, NULL);
        if (number >= 0)
            g_array_append_val(events->callbacks, number);
        else if (i == 0)
            return uprof_host_fail(error, "cannot wait for domains to start");
    }
    return true;
}

static void
disconnect_events(UprofDomainEvents *events)
{
    for (guint i = 0; events->connection && i < events->callbacks->len; i++)
        uprof_libvirt.ConnectDomainEventDeregisterAny(events->connection,
                                                      g_array_index(events->callbacks, int, i));
    g_array_set_size(events->callbacks, 0);
    uprof_vir_connect_close(events->connection);
    events->connection = NULL;
}

/* virEventTimeoutCallback: it also wakes the thread, which may have to end */
static void
check_connection(int timer, void *data)
{
    UprofDomainEvents *events = data;

    if (g_atomic_int_get(&events->is_ending))
        return;
    if (!events->connection || uprof_libvirt.ConnectIsAlive(events->connection) != 1) {
        disconnect_events(events);
        if (!connect_events(events, NULL))
            disconnect_events(events);
    }
    if (g_atomic_int_get(&events->wants_starts))
        signal_event(events);
}

static gpointer
run_events(gpointer data)
{
    UprofDomainEvents *events = data;

    uprof_signal_mask_block(NULL); /* the main thread handles signals */
    while (!g_atomic_int_get(&events->is_ending))
        uprof_libvirt.EventRunDefaultImpl();
    return NULL;
}

UprofDomainEvents *
uprof_domain_events_new(const char *uri, GError **error)
{
    g_autoptr(UprofDomainEvents) events = g_new0(UprofDomainEvents, 1);

    events->uri = g_strdup(uri);
    events->timer = -1;
    events->wants_starts = 1;
    events->callbacks = g_array_new(FALSE, FALSE, sizeof(int));
    events->kept = g_array_new(FALSE, FALSE, sizeof(UprofDomainEvent));
    g_mutex_init(&events->lock);
    events->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->fd < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no eventfd: %s", g_strerror(errno));
        return NULL;
    }
    if (!uprof_libvirt_load(error))
        return NULL;
    if (uprof_libvirt.EventRegisterDefaultImpl() < 0) {
        uprof_host_fail(error, "libvirt has no event loop");
        return NULL;
    }
    events->timer = uprof_libvirt.EventAddTimeout(CHECK_MS, check_connection, events, NULL);
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
        uprof_libvirt.EventUpdateTimeout(events->timer, 0); /* wakes the thread */
        g_thread_join(events->thread);
    }
    if (events->timer >= 0)
        uprof_libvirt.EventRemoveTimeout(events->timer);
    disconnect_events(events);
    if (events->fd >= 0)
        close(events->fd);
    g_array_unref(events->callbacks);
    g_array_unref(events->kept);
    g_mutex_clear(&events->lock);
    g_free(events->uri);
    g_free(events);
}

int
uprof_domain_events_fd(const UprofDomainEvents *events)
{
    return events->fd;
}

void
uprof_domain_events_want_starts(UprofDomainEvents *events, bool wants)
{
    g_atomic_int_set(&events->wants_starts, wants);
}

void
uprof_domain_events_clear(UprofDomainEvents *events)
{
    uint64_t n;

    if (read(events->fd, &n, sizeof(n)) < 0)
        g_assert(errno == EAGAIN);
}

bool
uprof_domain_events_take(UprofDomainEvents *events, UprofDomainEvent *event)
{
    g_mutex_lock(&events->lock);
    const bool is_there = events->kept->len > 0;
    if (is_there) {
        *event = g_array_index(events->kept, UprofDomainEvent, 0);
        g_array_remove_index(events->kept, 0);
    }
    g_mutex_unlock(&events->lock);
    return is_there;
}
