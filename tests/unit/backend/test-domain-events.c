/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The test takes the place of libvirt's daemon: it replaces the calls of uprof_libvirt, and calls
 * what was registered.
 */
#include "../../../src/backend/libvirt-calls-priv.h"

#include "uprof/domain-events.h"
#include "uprof/error.h"

#include <poll.h>
#include <string.h>

enum { KEPT_MAX = 256, IDS_MAX = 64 };

static const char uuid[] = "00000001-1d52-4d8f-b251-782e98ab3fa0";
static int connection, domain; /* their addresses are the objects */

typedef void (*Callback)(void);

/* By VIR_DOMAIN_EVENT_ID: what the code has registered. */
static struct {
    Callback callback;
    void *data;
} registered[IDS_MAX];

static int missing = -1;        /* an event that the driver does not have */
static unsigned n_deregistered; /* since the start of a test */
static char next_uuid[VIR_UUID_STRING_BUFLEN];

/* ---- The daemon ---- */

static virConnectPtr
fake_open(const char *name, virConnectAuthPtr auth, unsigned flags)
{
    g_assert_cmpuint(flags, ==, VIR_CONNECT_RO);
    return (virConnectPtr)&connection;
}

static int
fake_close(virConnectPtr closed)
{
    return 0;
}

static int
fake_keep_alive(virConnectPtr asked, int interval, unsigned count)
{
    return 0;
}

static int
fake_is_alive(virConnectPtr asked)
{
    return 1;
}

static int
fake_register(virConnectPtr asked, virDomainPtr of, int id,
              virConnectDomainEventGenericCallback callback, void *data, virFreeCallback free_data)
{
    g_assert_null(of);
    g_assert_cmpint(id, <, IDS_MAX);
    if (id == missing)
        return -1;
    registered[id].callback = (Callback)callback;
    registered[id].data = data;
    return id;
}

static int
fake_deregister(virConnectPtr asked, int id)
{
    g_assert_nonnull(registered[id].callback);
    registered[id].callback = NULL;
    n_deregistered++;
    return 0;
}

static int
fake_uuid(virDomainPtr asked, char *text)
{
    g_assert_true((void *)asked == &domain);
    g_strlcpy(text, next_uuid, VIR_UUID_STRING_BUFLEN);
    return next_uuid[0] ? 0 : -1;
}

static int
fake_run_loop(void)
{
    g_usleep(1000);
    return 0;
}

static int
fake_add_timeout(int ms, virEventTimeoutCallback callback, void *data, virFreeCallback free_data)
{
    return 0;
}

static void
fake_update_timeout(int timer, int ms)
{
}

static int
fake_remove_timeout(int timer)
{
    return 0;
}

static int
fake_register_loop(void)
{
    return 0;
}

/* libvirt's own one needs a real connection before. */
static virErrorPtr
fake_last_error(void)
{
    return NULL;
}

static void
replace_libvirt(void)
{
    uprof_libvirt.GetLastError = fake_last_error;
    uprof_libvirt.ConnectOpenAuth = fake_open;
    uprof_libvirt.ConnectClose = fake_close;
    uprof_libvirt.ConnectSetKeepAlive = fake_keep_alive;
    uprof_libvirt.ConnectIsAlive = fake_is_alive;
    uprof_libvirt.ConnectDomainEventRegisterAny = fake_register;
    uprof_libvirt.ConnectDomainEventDeregisterAny = fake_deregister;
    uprof_libvirt.DomainGetUUIDString = fake_uuid;
    uprof_libvirt.EventRegisterDefaultImpl = fake_register_loop;
    uprof_libvirt.EventRunDefaultImpl = fake_run_loop;
    uprof_libvirt.EventAddTimeout = fake_add_timeout;
    uprof_libvirt.EventUpdateTimeout = fake_update_timeout;
    uprof_libvirt.EventRemoveTimeout = fake_remove_timeout;
}

/* ---- Its events, with the arguments that libvirt gives to each kind ---- */

#define CALL(id, type, ...)                                                                        \
    ((type)registered[id].callback)((virConnectPtr)&connection, (virDomainPtr)&domain,             \
                                    ##__VA_ARGS__, registered[id].data)

static void
send_lifecycle(int event, int detail)
{
    CALL(VIR_DOMAIN_EVENT_ID_LIFECYCLE, virConnectDomainEventCallback, event, detail);
}

static void
send_reboot(void)
{
    CALL(VIR_DOMAIN_EVENT_ID_REBOOT, virConnectDomainEventGenericCallback);
}

static void
send_watchdog(void)
{
    CALL(VIR_DOMAIN_EVENT_ID_WATCHDOG, virConnectDomainEventWatchdogCallback,
         VIR_DOMAIN_EVENT_WATCHDOG_RESET);
}

static void
send_io_error(void)
{
    CALL(VIR_DOMAIN_EVENT_ID_IO_ERROR, virConnectDomainEventIOErrorCallback, "/srv/disk", "virtio0",
         VIR_DOMAIN_EVENT_IO_ERROR_PAUSE);
}

static void
send_block_job(void)
{
    CALL(VIR_DOMAIN_EVENT_ID_BLOCK_JOB_2, virConnectDomainEventBlockJobCallback, "vda",
         VIR_DOMAIN_BLOCK_JOB_TYPE_COPY, VIR_DOMAIN_BLOCK_JOB_READY);
}

/* ---- Tests ---- */

static void
set_up(UprofDomainEvents **events, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    missing = -1;
    g_strlcpy(next_uuid, uuid, sizeof(next_uuid));
    *events = uprof_domain_events_new(NULL, &error);
    g_assert_no_error(error);
}

static void
tear_down(UprofDomainEvents **events, gconstpointer data)
{
    uprof_domain_events_free(*events);
}

static bool
is_readable(const UprofDomainEvents *events)
{
    struct pollfd wait = { .fd = uprof_domain_events_fd(events), .events = POLLIN };

    return poll(&wait, 1, 0) == 1;
}

/* Asserts that one event is there, @what; %NULL: none. Takes it. */
static void
assert_event(UprofDomainEvents *events, const char *what)
{
    UprofDomainEvent event = { .what = NULL };

    g_assert_true(is_readable(events) == (what != NULL));
    uprof_domain_events_clear(events);
    g_assert_false(is_readable(events));
    g_assert_true(uprof_domain_events_take(events, &event) == (what != NULL));
    g_assert_cmpstr(event.what, ==, what);
    if (what)
        g_assert_cmpstr(event.uuid, ==, uuid);
    g_assert_false(uprof_domain_events_take(events, &event));
}

static void
test_kinds(UprofDomainEvents **events, gconstpointer data)
{
    static const struct {
        void (*send)(void);
        const char *what;
    } rows[] = {
        { send_reboot, "reboot" },
        { send_watchdog, "watchdog" },
        { send_io_error, "io-error" },
        { send_block_job, "block-job" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        rows[i].send();
        assert_event(*events, rows[i].what);
    }
}

static void
test_lifecycle(UprofDomainEvents **events, gconstpointer data)
{
    static const struct {
        int event, detail;
        const char *what; /* (nullable) */
    } rows[] = {
        { VIR_DOMAIN_EVENT_CRASHED, VIR_DOMAIN_EVENT_CRASHED_PANICKED, "crash" },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED, "crash" },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_FAILED, "crash" },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, NULL },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_DESTROYED, NULL },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_MIGRATED, NULL },
        { VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SAVED, NULL },
        { VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED, NULL },
        { VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_GUEST, NULL },
        { VIR_DOMAIN_EVENT_DEFINED, VIR_DOMAIN_EVENT_DEFINED_ADDED, NULL },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        send_lifecycle(rows[i].event, rows[i].detail);
        assert_event(*events, rows[i].what);
    }
}

/* A start is no event: it only wakes, and only whom waits for starts. */
static void
test_starts(UprofDomainEvents **events, gconstpointer data)
{
    UprofDomainEvent event;

    for (unsigned i = 0; i < 2; i++) {
        const bool wants = i == 0;
        uprof_domain_events_want_starts(*events, wants);
        send_lifecycle(VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_BOOTED);
        g_assert_true(is_readable(*events) == wants);
        uprof_domain_events_clear(*events);
        send_lifecycle(VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED);
        g_assert_true(is_readable(*events) == wants);
        uprof_domain_events_clear(*events);
        g_assert_false(uprof_domain_events_take(*events, &event));
    }
}

/* An event that nobody has taken yet is kept once for each domain, and not without limit. */
static void
test_many(UprofDomainEvents **events, gconstpointer data)
{
    UprofDomainEvent event;
    unsigned n = 0;

    for (unsigned i = 0; i < 1000; i++)
        send_io_error();
    send_watchdog();
    send_io_error();
    g_assert_true(uprof_domain_events_take(*events, &event));
    g_assert_cmpstr(event.what, ==, "io-error");
    assert_event(*events, "watchdog");

    for (unsigned i = 0; i < 2 * KEPT_MAX; i++) {
        g_snprintf(next_uuid, sizeof(next_uuid), "%08x%s", i, uuid + 8);
        send_reboot();
    }
    while (uprof_domain_events_take(*events, &event)) {
        g_autofree char *expected = g_strdup_printf("%08x%s", n, uuid + 8);
        g_assert_cmpstr(event.uuid, ==, expected);
        n++;
    }
    g_assert_cmpuint(n, ==, KEPT_MAX);
    uprof_domain_events_clear(*events);
    /* a domain without a UUID has no events */
    next_uuid[0] = '\0';
    send_reboot();
    assert_event(*events, NULL);
}

/* A driver without watchdogs has the other events. A driver without lifecycles is refused. */
static void
test_missing_kinds(void)
{
    g_autoptr(GError) error = NULL;

    n_deregistered = 0;
    g_strlcpy(next_uuid, uuid, sizeof(next_uuid));
    missing = VIR_DOMAIN_EVENT_ID_WATCHDOG;
    UprofDomainEvents *events = uprof_domain_events_new(NULL, &error);
    g_assert_no_error(error);
    send_block_job();
    assert_event(events, "block-job");
    uprof_domain_events_free(events);
    g_assert_cmpuint(n_deregistered, ==, 4);

    missing = VIR_DOMAIN_EVENT_ID_LIFECYCLE;
    g_assert_null(uprof_domain_events_new(NULL, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_cmpuint(n_deregistered, ==, 4);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    g_test_init(&argc, &argv, NULL);
    if (!uprof_libvirt_load(&error)) {
        g_print("1..0 # SKIP %s\n", error->message);
        return 0;
    }
    replace_libvirt();
    g_test_add("/domain-events/kinds", UprofDomainEvents *, NULL, set_up, test_kinds, tear_down);
    g_test_add("/domain-events/lifecycle", UprofDomainEvents *, NULL, set_up, test_lifecycle,
               tear_down);
    g_test_add("/domain-events/starts", UprofDomainEvents *, NULL, set_up, test_starts, tear_down);
    g_test_add("/domain-events/many", UprofDomainEvents *, NULL, set_up, test_many, tear_down);
    g_test_add_func("/domain-events/missing-kinds", test_missing_kinds);
    return g_test_run();
}
