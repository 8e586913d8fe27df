/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory-guest.h"
#include "private-run.h"
#include "../../../src/guest/marker-priv.h"
#include "uprof/clock.h"
#include "uprof/process-stat.h"
#include "uprof/guardian.h"

#define UUID "4dea22b3-1d52-48f3-a516-782e98ab3fa0"
#define OTHER "4dea22b3-1d52-48f3-a516-782e98ab3fa1"

enum { WAIT_MS = 10 * 1000, SETTLE_MS = 100 };

static bool can_run;

static bool
skip_without_run(void)
{
    if (!can_run)
        g_test_skip("no mount namespace with a /run of its own");
    return !can_run;
}

static const UprofGuestOps *
find_access(const char *access)
{
    return strcmp(access, memory_guest_ops.name) == 0 ? &memory_guest_ops : NULL;
}

static UprofMarker *
open_marker(const char *uuid, const char *access)
{
    UprofMarkerInfo info = { .name = "web-1", .id = 1 };
    g_autoptr(GError) error = NULL;
    bool taken;
    UprofMarker *marker = uprof_marker_open(uuid, &taken, &error);

    g_assert_no_error(error);
    g_assert_nonnull(marker);
    g_strlcpy(info.uuid, uuid, sizeof(info.uuid));
    g_strlcpy(info.access, access, sizeof(info.access));
    uprof_marker_set_info(marker, &info);
    return marker;
}

static void
remove_marker(const char *uuid)
{
    g_autofree char *path = g_build_filename(uprof_marker_folder(), uuid, NULL);

    unlink(path);
}

/* Waits until the lock is free, because profiler and guardian have ended. @held: marker's state */
static bool
wait_for_lock(const char *uuid, UprofHeld *held)
{
    for (unsigned i = 0; i < WAIT_MS / 10; i++) {
        bool taken;
        g_autoptr(UprofMarker) marker = uprof_marker_open(uuid, &taken, NULL);
        if (marker) {
            *held = uprof_marker_held(marker, NULL);
            return true;
        }
        g_usleep(10 * 1000);
    }
    return false;
}

static gint
count_rescues(void)
{
    return g_atomic_int_get(&memory_guest_tally()->calls[MEMORY_RESCUE]);
}

/* The moment at which the profiler ends. */
typedef enum { IN_HOLD_CALL, IN_HOLD, BETWEEN_HOLDS } EndPoint;

static int ready_fd;

static void
signal_ready_and_wait(void)
{
    g_assert_cmpint(write(ready_fd, "!", 1), ==, 1);
    for (;;)
        pause();
}

static void
wait_in_hold_call(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_HOLD)
        signal_ready_and_wait();
}

static G_GNUC_NORETURN void
run_profiler(EndPoint end_point)
{
    g_autoptr(GError) error = NULL;
    UprofGuardian *guardian = uprof_guardian_start(find_access, &error);
    UprofMarker *marker = open_marker(UUID, "memory");
    const UprofTarget target = { .name = "web-1", .marker = marker };
    UprofHold hold = { 0 };

    g_assert_no_error(error);
    g_assert_true(uprof_guardian_watch(guardian, marker, &error));
    MemoryGuest *guest = (MemoryGuest *)uprof_guest_open(&memory_guest_ops, &target, &error);
    if (end_point == IN_HOLD_CALL)
        guest->hook = wait_in_hold_call;
    g_assert_cmpint(uprof_guest_hold(&guest->base, 0, &hold, &error), ==, UPROF_OK);
    if (end_point == BETWEEN_HOLDS)
        uprof_hold_release(&hold, NULL, NULL, &error);
    signal_ready_and_wait();
    _exit(1);
}

static pid_t
start_profiler(EndPoint end_point)
{
    int ready[2];
    char byte;

    g_assert_cmpint(pipe(ready), ==, 0);
    const pid_t pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        close(ready[0]);
        ready_fd = ready[1];
        run_profiler(end_point);
    }
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    return pid;
}

/* clang-format off */
static const struct {
    const char *name;
    EndPoint end_point;
    int signal;
    MemoryRule rescue;
    gint rescues;
    gint asked;
} deaths[] = {
    { "killed-in-hold",       IN_HOLD,       SIGKILL, { 0 }, 1, 0 },
    { "killed-in-hold-call",  IN_HOLD_CALL,  SIGKILL, { 0 }, 1, 1 },
    { "killed-between-holds", BETWEEN_HOLDS, SIGKILL, { 0 }, 0, 0 },
    { "crashed-in-hold",      IN_HOLD,       SIGABRT, { 0 }, 1, 0 },
    { "ended-in-hold",        IN_HOLD,       SIGTERM, { 0 }, 1, 0 },
    { "stopped-in-hold",      IN_HOLD,       SIGSTOP, { 0 }, 1, 0 },
    { "rescue-fails-twice",   IN_HOLD,       SIGKILL, { MEMORY_RESCUE, 1, 2, UPROF_FAILED }, 3, 0 },
};
/* clang-format on */

static void
test_death(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .rescue = deaths[i].rescue };
    UprofHeld held = UPROF_HELD_YES;
    int status;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    const pid_t pid = start_profiler(deaths[i].end_point);
    g_assert_cmpint(count_rescues(), ==, 0);
    const uint64_t killed_ns = uprof_clock_now_ns();
    g_assert_cmpint(kill(pid, deaths[i].signal), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFSIGNALED(status));
    if (deaths[i].signal == SIGSTOP) {
        g_assert_cmpint(WTERMSIG(status), ==, SIGKILL);
        g_assert_cmpuint(uprof_clock_now_ns() - killed_ns, <, 4 * UPROF_NS_PER_S);
    }
    g_assert_true(wait_for_lock(UUID, &held));
    g_assert_cmpint(held, ==, UPROF_HELD_NOT);
    g_assert_cmpint(count_rescues(), ==, deaths[i].rescues);
    if (deaths[i].rescues > 0)
        g_assert_cmpint(memory_guest_tally()->asked, ==, deaths[i].asked);
    if (deaths[i].end_point == IN_HOLD)
        g_assert_cmpint(memory_guest_tally()->is_held, ==, 0);
    remove_marker(UUID);
}

/* The guardian ignores a profiler that is stopped between holds. */
static void
test_stopped_between_holds(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    UprofHeld held;
    int status;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    const pid_t pid = start_profiler(BETWEEN_HOLDS);
    g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
    g_usleep(2600 * 1000);
    g_assert_cmpint(waitpid(pid, &status, WNOHANG), ==, 0);
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(wait_for_lock(UUID, &held));
    g_assert_cmpint(count_rescues(), ==, 0);
    remove_marker(UUID);
}

static void
test_normal_end(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(GError) error = NULL;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    UprofGuardian *guardian = uprof_guardian_start(find_access, &error);
    g_assert_no_error(error);
    g_autoptr(UprofMarker) marker = open_marker(UUID, "memory");
    g_autoptr(UprofMarker) other = open_marker(OTHER, "memory");
    g_assert_true(uprof_guardian_watch(guardian, marker, &error));
    g_assert_true(uprof_guardian_watch(guardian, other, &error));
    struct pollfd waits = { .fd = uprof_guardian_fd(guardian), .events = POLLIN };
    g_assert_cmpint(poll(&waits, 1, SETTLE_MS), ==, 0);
    g_assert_true(uprof_guardian_end(guardian, &error));
    g_assert_no_error(error);
    g_assert_cmpint(count_rescues(), ==, 0);
    g_assert_true(uprof_guardian_end(NULL, &error));
    remove_marker(UUID);
    remove_marker(OTHER);
}

/* Before it ends, the guardian releases a guest that the profiler left held. */
static void
test_end_while_flagged(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(GError) error = NULL;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    UprofGuardian *guardian = uprof_guardian_start(find_access, &error);
    g_autoptr(UprofMarker) marker = open_marker(UUID, "memory");
    g_autoptr(UprofMarker) other = open_marker(OTHER, "memory");
    g_assert_true(uprof_guardian_watch(guardian, marker, &error));
    g_assert_true(uprof_guardian_watch(guardian, other, &error));
    uprof_marker_set_held(other, UPROF_HELD_ASKED);
    uprof_marker_set_held(other, UPROF_HELD_YES);
    g_assert_true(uprof_guardian_end(guardian, &error));
    g_assert_cmpint(count_rescues(), ==, 1);
    g_assert_cmpint(uprof_marker_held(other, NULL), ==, UPROF_HELD_NOT);
    remove_marker(UUID);
    remove_marker(OTHER);
}

static void
test_watch_refused(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(GError) error = NULL;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    UprofGuardian *guardian = uprof_guardian_start(find_access, &error);
    g_autoptr(UprofMarker) marker = open_marker(UUID, "nowhere");
    g_assert_false(uprof_guardian_watch(guardian, marker, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    g_assert_cmpstr(error->message, ==, "this program has no access 'nowhere'");
    g_clear_error(&error);
    g_assert_true(uprof_guardian_end(guardian, &error));
    remove_marker(UUID);

    /* a marker without facts of a run */
    bool taken;
    guardian = uprof_guardian_start(find_access, &error);
    g_autoptr(UprofMarker) empty = uprof_marker_open(OTHER, &taken, &error);
    g_assert_false(uprof_guardian_watch(guardian, empty, &error));
    g_assert_cmpstr(error->message, ==, "the marker does not name a guest");
    g_clear_error(&error);
    g_assert_true(uprof_guardian_end(guardian, &error));
    remove_marker(OTHER);
}

/* Returns: the pid of the only child of this process; 0 if unknown */
static pid_t
find_child(void)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", (int)getpid());
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    return (pid_t)g_ascii_strtoll(text, NULL, 10);
}

static void
test_guardian_dies(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(GError) error = NULL;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    UprofGuardian *guardian = uprof_guardian_start(find_access, &error);
    g_autoptr(UprofMarker) marker = open_marker(UUID, "memory");
    g_assert_true(uprof_guardian_watch(guardian, marker, &error));
    const pid_t pid = find_child();
    if (pid <= 0) {
        uprof_guardian_end(guardian, NULL);
        g_test_skip("this kernel does not list the children of a process");
        return;
    }
    /* the guardian survives the signals that a terminal sends */
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    kill(pid, SIGHUP);
    struct pollfd waits = { .fd = uprof_guardian_fd(guardian), .events = POLLIN };
    g_assert_cmpint(poll(&waits, 1, SETTLE_MS), ==, 0);
    kill(pid, SIGKILL);
    g_assert_cmpint(poll(&waits, 1, WAIT_MS), ==, 1);
    g_assert_false(uprof_guardian_watch(guardian, marker, &error));
    g_assert_cmpstr(error->message, ==, "the guardian process has died");
    g_clear_error(&error);
    g_assert_false(uprof_guardian_end(guardian, &error));
    g_assert_cmpstr(error->message, ==, "the guardian process has died");
    remove_marker(UUID);
}

typedef struct {
    unsigned n;
    unsigned n_errors;
    const char *wanted; /* (nullable): the name; %NULL: that of the domain */
} Healed;

static void
count_healed(const char *name, const GError *error, void *data)
{
    Healed *healed = data;

    g_assert_cmpstr(name, ==, healed->wanted ? healed->wanted : "web-1");
    healed->n++;
    healed->n_errors += error != NULL;
}

/* clang-format off */
static const struct {
    const char *name;
    const char *access;
    UprofHeld held;
    bool locked;
    int32_t qemu_pid; /* -1: this process with another start time */
    MemoryRule rescue;
    bool ok;
    unsigned healed, errors;
    gint rescues, asked;
    UprofHeld held_after;
} heals[] = {
    { "not-held",      "memory",  UPROF_HELD_NOT,   false, 0, { 0 }, true, 0, 0, 0, 0, UPROF_HELD_NOT },
    { "held",          "memory",  UPROF_HELD_YES,   false, 0, { 0 }, true, 1, 0, 1, 0, UPROF_HELD_NOT },
    { "asked",         "memory",  UPROF_HELD_ASKED, false, 0, { 0 }, true, 1, 0, 1, 1, UPROF_HELD_NOT },
    { "locked",        "memory",  UPROF_HELD_YES,   true,  0, { 0 }, true, 0, 0, 0, 0, UPROF_HELD_YES },
    { "other-process", "memory",  UPROF_HELD_YES,   false, -1, { 0 }, true, 1, 0, 0, 0, UPROF_HELD_NOT },
    { "fails-once",    "memory",  UPROF_HELD_YES,   false, 0, { MEMORY_RESCUE, 1, 1, UPROF_FAILED }, true, 1, 0, 2, 0, UPROF_HELD_NOT },
    { "unknown-access", "nowhere", UPROF_HELD_YES,  false, 0, { 0 }, false, 1, 1, 0, 0, UPROF_HELD_YES },
};
/* clang-format on */

static void
test_heal(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .rescue = heals[i].rescue };
    Healed healed = { 0 };
    UprofMarkerInfo info;
    bool taken;

    if (skip_without_run())
        return;
    memory_guest_plan(&plan);
    UprofMarker *marker = open_marker(UUID, heals[i].access);
    g_assert_true(uprof_marker_get_info(marker, &info));
    if (heals[i].qemu_pid == -1) {
        info.qemu_pid = getpid();
        info.qemu_start = uprof_process_stat_start(getpid()) + 1;
        uprof_marker_set_info(marker, &info);
    }
    uprof_marker_set_held(marker, heals[i].held);
    if (!heals[i].locked)
        g_clear_pointer(&marker, uprof_marker_close);

    g_assert_cmpint(uprof_guardian_heal(find_access, count_healed, &healed), ==, heals[i].ok);
    g_assert_cmpuint(healed.n, ==, heals[i].healed);
    g_assert_cmpuint(healed.n_errors, ==, heals[i].errors);
    g_assert_cmpint(count_rescues(), ==, heals[i].rescues);
    g_assert_cmpint(memory_guest_tally()->asked, ==, heals[i].asked);
    if (!marker)
        marker = uprof_marker_open(UUID, &taken, NULL);
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, heals[i].held_after);
    uprof_marker_close(marker);
    remove_marker(UUID);
}

/* A marker that cannot be opened is reported: its guest may be stopped. */
static void
test_heal_closed(void)
{
    Healed healed = { .wanted = UUID };

    if (skip_without_run())
        return;
    UprofMarker *marker = open_marker(UUID, "memory");
    uprof_marker_set_held(marker, UPROF_HELD_YES);
    uprof_marker_close(marker);
    g_assert_cmpint(chmod(uprof_marker_folder(), 0777), ==, 0);
    g_assert_false(uprof_guardian_heal(find_access, count_healed, &healed));
    g_assert_cmpuint(healed.n, ==, 1);
    g_assert_cmpuint(healed.n_errors, ==, 1);
    g_assert_cmpint(chmod(uprof_marker_folder(), 0700), ==, 0);
    remove_marker(UUID);
}

static void
test_heal_nothing(void)
{
    Healed healed = { 0 };

    if (skip_without_run())
        return;
    g_assert_true(uprof_guardian_heal(find_access, count_healed, &healed));
    g_assert_cmpuint(healed.n, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    can_run = private_run_enter();

    g_test_add_func("/guardian/heal/nothing", test_heal_nothing);
    g_test_add_func("/guardian/heal/closed", test_heal_closed);
    for (size_t i = 0; i < G_N_ELEMENTS(heals); i++) {
        g_autofree char *path = g_strdup_printf("/guardian/heal/%s", heals[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_heal);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(deaths); i++) {
        g_autofree char *path = g_strdup_printf("/guardian/death/%s", deaths[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_death);
    }
    g_test_add_func("/guardian/stopped-between-holds", test_stopped_between_holds);
    g_test_add_func("/guardian/normal-end", test_normal_end);
    g_test_add_func("/guardian/end-while-flagged", test_end_while_flagged);
    g_test_add_func("/guardian/watch-refused", test_watch_refused);
    g_test_add_func("/guardian/guardian-dies", test_guardian_dies);
    const int code = g_test_run();
    private_run_leave();
    return code;
}
