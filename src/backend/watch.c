/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/watch.h"

#include "host-priv.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* However little libvirt says (its daemon may have restarted), somebody looks that often. */
enum { LOOK_MS = 1000 };

struct _UprofWatch {
    char *uri;
    virConnectPtr connection; /* NULL while the daemon is away */
    int callback;
    int timer;
    int fd;
    GThread *thread;
    gint is_ending;
};

static void
tell(const UprofWatch *watch)
{
    const uint64_t one = 1;

    /* it is full only if nobody has looked for long */
    if (write(watch->fd, &one, sizeof(one)) < 0)
        g_assert(errno == EAGAIN);
}

/* virConnectDomainEventCallback */
static int
note_event(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *data)
{
    if (event == VIR_DOMAIN_EVENT_STARTED || event == VIR_DOMAIN_EVENT_RESUMED)
        tell(data);
    return 0;
}

static bool
connect_watch(UprofWatch *watch, GError **error)
{
    watch->connection = uprof_host_connect(watch->uri, true, error);
    if (!watch->connection)
        return false;
    virConnectSetKeepAlive(watch->connection, 5, 3);
    watch->callback =
        virConnectDomainEventRegisterAny(watch->connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                         VIR_DOMAIN_EVENT_CALLBACK(note_event), watch, NULL);
    return watch->callback >= 0 || uprof_host_fail(error, "cannot wait for domains to start");
}

static void
disconnect_watch(UprofWatch *watch)
{
    if (watch->connection && watch->callback >= 0)
        virConnectDomainEventDeregisterAny(watch->connection, watch->callback);
    uprof_vir_connect_close(watch->connection);
    watch->connection = NULL;
    watch->callback = -1;
}

/* virEventTimeoutCallback, in the thread: it also lets the thread see that it shall end */
static void
look(int timer, void *data)
{
    UprofWatch *watch = data;

    if (g_atomic_int_get(&watch->is_ending))
        return;
    if (!watch->connection || virConnectIsAlive(watch->connection) != 1) {
        disconnect_watch(watch);
        if (!connect_watch(watch, NULL))
            disconnect_watch(watch);
    }
    tell(watch);
}

static gpointer
run_thread(gpointer data)
{
    UprofWatch *watch = data;
    sigset_t all;

    /* signals are main's */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!g_atomic_int_get(&watch->is_ending))
        virEventRunDefaultImpl();
    return NULL;
}

UprofWatch *
uprof_watch_new(const char *uri, GError **error)
{
    g_autoptr(UprofWatch) watch = g_new0(UprofWatch, 1);

    watch->uri = g_strdup(uri);
    watch->callback = watch->timer = -1;
    watch->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->fd < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no eventfd: %s", g_strerror(errno));
        return NULL;
    }
    if (virEventRegisterDefaultImpl() < 0) {
        uprof_host_fail(error, "libvirt has no event loop");
        return NULL;
    }
    watch->timer = virEventAddTimeout(LOOK_MS, look, watch, NULL);
    if (!connect_watch(watch, error))
        return NULL;
    watch->thread = g_thread_new("events", run_thread, watch);
    return g_steal_pointer(&watch);
}

void
uprof_watch_free(UprofWatch *watch)
{
    if (!watch)
        return;
    g_atomic_int_set(&watch->is_ending, 1);
    if (watch->thread) {
        virEventUpdateTimeout(watch->timer, 0); /* wakes it */
        g_thread_join(watch->thread);
    }
    if (watch->timer >= 0)
        virEventRemoveTimeout(watch->timer);
    disconnect_watch(watch);
    if (watch->fd >= 0)
        close(watch->fd);
    g_free(watch->uri);
    g_free(watch);
}

int
uprof_watch_fd(const UprofWatch *watch)
{
    return watch->fd;
}

void
uprof_watch_clear(UprofWatch *watch)
{
    uint64_t n;

    if (read(watch->fd, &n, sizeof(n)) < 0)
        g_assert(errno == EAGAIN);
}
