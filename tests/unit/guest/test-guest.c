/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "memory-guest.h"
#include "../../../src/guest/marker-priv.h"
#include "../../../src/guest/guest-priv.h"
#include "uprof/clock.h"

/* Any regular file can be a marker; no folder is needed here. */
static UprofMarker *
new_marker(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("uprof-test-XXXXXX", &path, &error);

    g_assert_no_error(error);
    g_assert_cmpint(unlink(path), ==, 0);
    UprofMarker *marker = uprof_marker_adopt(fd, &error);
    g_assert_no_error(error);
    return marker;
}

static UprofHeld state_in_hold, state_in_release;

static void
store_marker_state(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_HOLD)
        state_in_hold = uprof_marker_held(guest->base.marker, NULL);
    if (call == MEMORY_RELEASE)
        state_in_release = uprof_marker_held(guest->base.marker, NULL);
}

/* clang-format off */
static const struct {
    const char *name;
    UprofGrain grain;
    unsigned first, n_vcpus; /* the vCPUs that a hold of vCPU 2 of 4 covers */
    gint holds;
    UprofHeld in_hold, during, in_release; /* the marker's states */
} grains[] = {
    { "none",  UPROF_GRAIN_NONE,  0, 4, 0, UPROF_HELD_NOT,   UPROF_HELD_NOT, UPROF_HELD_NOT },
    { "vcpu",  UPROF_GRAIN_VCPU,  2, 1, 1, UPROF_HELD_ASKED, UPROF_HELD_YES, UPROF_HELD_YES },
    { "guest", UPROF_GRAIN_GUEST, 0, 4, 1, UPROF_HELD_ASKED, UPROF_HELD_YES, UPROF_HELD_YES },
};

/* The answer of a call, and the state of the marker after it. */
static const struct {
    const char *name;
    MemoryCall call;
    UprofAnswer answer;
    UprofHeld held;
    bool left_held;
} answers[] = {
    { "hold-busy",      MEMORY_HOLD,    UPROF_BUSY,   UPROF_HELD_NOT,   false },
    { "hold-gone",      MEMORY_HOLD,    UPROF_GONE,   UPROF_HELD_NOT,   false },
    { "hold-absent",    MEMORY_HOLD,    UPROF_ABSENT, UPROF_HELD_NOT,   false },
    { "hold-stuck",     MEMORY_HOLD,    UPROF_STUCK,  UPROF_HELD_NOT,   false },
    { "hold-failed",    MEMORY_HOLD,    UPROF_FAILED, UPROF_HELD_LEFT,  true },
    { "release-gone",   MEMORY_RELEASE, UPROF_GONE,   UPROF_HELD_NOT,   false },
    { "release-failed", MEMORY_RELEASE, UPROF_FAILED, UPROF_HELD_LEFT,  true },
};
/* clang-format on */

static void
test_grain(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofMarker) marker = new_marker();
    const MemoryPlan plan = { .n_vcpus = 4, .grain = grains[i].grain, .marker = marker };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;
    uint64_t hold_ns = 1, stopped_ns = 2;
    UprofHold hold = { 0 };
    UprofRegs regs;

    guest->hook = store_marker_state;
    guest->hold_ns = UPROF_NS_PER_MS;
    g_assert_cmpint(uprof_guest_hold(&guest->base, 2, &hold, &error), ==, UPROF_OK);
    g_assert_true(hold.guest == &guest->base);
    g_assert_cmpuint(hold.vcpu, ==, grains[i].first);
    g_assert_cmpuint(hold.n_vcpus, ==, grains[i].n_vcpus);
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, grains[i].during);
    g_assert_cmpint(uprof_guest_read_regs(&guest->base, 2, &regs, &error), ==, UPROF_OK);
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, &stopped_ns, &error), ==, UPROF_OK);
    g_assert_no_error(error);
    g_assert_null(hold.guest);
    g_assert_cmpint(guest->tally->calls[MEMORY_HOLD], ==, grains[i].holds);
    g_assert_cmpint(guest->tally->releases, ==, grains[i].holds);
    if (grains[i].holds > 0) {
        g_assert_cmpint(state_in_hold, ==, grains[i].in_hold);
        g_assert_cmpint(state_in_release, ==, grains[i].in_release);
        g_assert_cmpuint(hold_ns, >=, stopped_ns + UPROF_NS_PER_MS);
    } else {
        g_assert_cmpuint(hold_ns + stopped_ns, ==, 0);
    }
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, UPROF_HELD_NOT);
    /* releasing an empty hold does nothing */
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, &stopped_ns, &error), ==, UPROF_OK);
    g_assert_cmpint(guest->tally->releases, ==, grains[i].holds);
}

static void
report_times(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call == MEMORY_HOLD)
        guest->base.asked_ns = uprof_clock_now_ns();
    if (call == MEMORY_RELEASE)
        guest->base.released_ns = uprof_clock_now_ns();
}

/* The times that a backend reports for a hold are used, but only for that hold. */
static void
test_times(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_VCPU };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    uint64_t hold_ns, stopped_ns;
    UprofHold hold = { 0 };

    guest->hook = report_times;
    guest->hold_ns = UPROF_NS_PER_MS;
    g_assert_cmpint(uprof_guest_hold(&guest->base, 0, &hold, NULL), ==, UPROF_OK);
    const uint64_t stopped_since_ns = hold.stopped_since_ns;
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, &stopped_ns, NULL), ==, UPROF_OK);
    g_assert_cmpuint(hold_ns, ==, guest->base.released_ns - guest->base.asked_ns);
    g_assert_cmpuint(stopped_ns, ==, guest->base.released_ns - stopped_since_ns);
    g_assert_cmpuint(hold_ns, >=, stopped_ns + UPROF_NS_PER_MS);

    guest->hook = NULL;
    const uint64_t before_ns = uprof_clock_now_ns();
    g_assert_cmpint(uprof_guest_hold(&guest->base, 0, &hold, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, NULL, NULL), ==, UPROF_OK);
    g_assert_cmpuint(hold_ns, >=, UPROF_NS_PER_MS);
    g_assert_cmpuint(hold_ns, <=, uprof_clock_now_ns() - before_ns);
}

static void
test_answer(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofMarker) marker = new_marker();
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .marker = marker };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;
    UprofHold hold = { 0 };

    memory_guest_rule(guest, answers[i].call, 1, 1, answers[i].answer);
    UprofAnswer answer = uprof_guest_hold(&guest->base, 0, &hold, &error);
    if (answers[i].call == MEMORY_HOLD) {
        g_assert_null(hold.guest);
    } else {
        g_assert_cmpint(answer, ==, UPROF_OK);
        answer = uprof_hold_release(&hold, NULL, NULL, &error);
    }
    g_assert_cmpint(answer, ==, answers[i].answer);
    g_assert_cmpint(answer == UPROF_FAILED, ==, error != NULL);
    g_assert_cmpint(uprof_marker_held(marker, NULL), ==, answers[i].held);
    g_assert_cmpint(guest->base.left_held, ==, answers[i].left_held);
    g_assert_false(guest->base.held);
}

/* Returns within the hold: the end of the scope releases the guest. */
static bool
return_in_hold(MemoryGuest *guest)
{
    g_auto(UprofHold) hold = { 0 };

    g_assert_cmpint(uprof_guest_hold(&guest->base, 0, &hold, NULL), ==, UPROF_OK);
    if (guest->base.held)
        return true;
    return false;
}

static void
test_scope(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_VCPU };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    UprofHold empty = { 0 };

    for (gint i = 1; i <= 3; i++) {
        g_assert_true(return_in_hold(guest));
        g_assert_cmpint(guest->tally->releases, ==, i);
        g_assert_false(guest->base.held);
    }
    uprof_hold_clear(&empty);
    g_assert_cmpint(guest->tally->releases, ==, 3);
}

/* If the release at the end of a scope fails, left_held is set. */
static void
test_scope_fails(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);

    memory_guest_rule(guest, MEMORY_RELEASE, 1, 1, UPROF_FAILED);
    g_assert_true(return_in_hold(guest));
    g_assert_true(guest->base.left_held);
}

static void
test_vet(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;

    memory_guest_rule(guest, MEMORY_VET, 2, 2, UPROF_BUSY);
    memory_guest_rule(guest, MEMORY_VET, 3, 3, UPROF_FAILED);
    g_assert_cmpint(uprof_guest_vet(&guest->base, 0, &error), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_vet(&guest->base, 0, &error), ==, UPROF_BUSY);
    g_assert_cmpint(uprof_guest_vet(&guest->base, 0, &error), ==, UPROF_FAILED);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_clear_error(&error);
    memory_guest_rule(guest, MEMORY_VET, 4, 4, UPROF_GONE);
    g_assert_cmpint(uprof_guest_vet(&guest->base, 0, &error), ==, UPROF_GONE);
    g_assert_cmpint(guest->tally->calls[MEMORY_VET], ==, 4);
}

/* A backend that holds single vCPUs may give a different answer for each vCPU. */
static void
test_vet_vcpus(void)
{
    static const UprofAnswer vets[] = { UPROF_OK,     UPROF_IDLE, UPROF_SAME,
                                        UPROF_ABSENT, UPROF_BUSY, UPROF_GONE };
    const MemoryPlan plan = { .n_vcpus = G_N_ELEMENTS(vets), .grain = UPROF_GRAIN_VCPU };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(vets); i++)
        guest->vets[i] = (gint)vets[i];
    for (unsigned i = 0; i < G_N_ELEMENTS(vets); i++) {
        g_assert_cmpint(uprof_guest_vet(&guest->base, i, &error), ==, vets[i]);
        g_assert_cmpuint(guest->vcpu, ==, i);
    }
    g_assert_no_error(error);
}

/* release_late is called only while a late stop is pending; the three members are optional. */
static void
test_optional_members(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_VCPU };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    UprofGuestOps ops = memory_guest_ops;

    memory_guest_rule(guest, MEMORY_RELEASE_LATE, 1, 1, UPROF_BUSY);
    g_assert_true(uprof_guest_release_late(&guest->base));
    g_assert_cmpint(guest->tally->calls[MEMORY_RELEASE_LATE], ==, 0);
    guest->base.has_late_stops = 1;
    g_assert_false(uprof_guest_release_late(&guest->base));
    g_assert_true(uprof_guest_release_late(&guest->base));
    g_assert_true(uprof_guest_release_late(&guest->base));
    g_assert_cmpint(guest->tally->calls[MEMORY_RELEASE_LATE], ==, 2);
    uprof_guest_poll(&guest->base);
    g_assert_cmpint(guest->tally->calls[MEMORY_POLL], ==, 1);

    guest->lost_ns[0] = 7;
    g_assert_cmpuint(uprof_guest_take_lost_ns(&guest->base, 0), ==, 7);
    g_assert_cmpuint(uprof_guest_take_lost_ns(&guest->base, 0), ==, 0);

    guest->lost_ns[0] = 7;
    ops.release_late = NULL;
    ops.poll = NULL;
    ops.take_lost_ns = NULL;
    guest->base.ops = &ops;
    uprof_guest_poll(&guest->base);
    guest->base.has_late_stops = 1;
    g_assert_false(uprof_guest_release_late(&guest->base));
    g_assert_cmpuint(uprof_guest_take_lost_ns(&guest->base, 0), ==, 0);
    guest->base.ops = &memory_guest_ops;
    g_assert_cmpint(guest->tally->calls[MEMORY_POLL], ==, 1);
}

static void
test_read_regs(void)
{
    const UprofRegs untouched = { .pc = 42 };
    const MemoryPlan plan = { .n_vcpus = 2, .grain = UPROF_GRAIN_NONE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;
    UprofRegs regs = untouched;

    guest->is_absent[1] = true;
    memory_guest_rule(guest, MEMORY_READ_REGS, 1, 1, UPROF_FAILED);
    g_assert_cmpint(uprof_guest_read_regs(&guest->base, 1, &regs, NULL), ==, UPROF_ABSENT);
    g_assert_cmpint(uprof_guest_read_regs(&guest->base, 0, &regs, &error), ==, UPROF_FAILED);
    g_assert_cmpmem(&regs, sizeof(regs), &untouched, sizeof(untouched));
    g_assert_false(uprof_guest_translates(&guest->base));
    uprof_guest_read(&guest->base, UPROF_LANE_WORKER, NULL, 0);
    g_assert_cmpint(guest->tally->calls[MEMORY_READ], ==, 0);
}

static void
test_rescue_only(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .rescue = { MEMORY_RESCUE, 1, 1, UPROF_FAILED } };
    const UprofTarget target = { .name = "memory", .rescue_only = true };
    g_autoptr(GError) error = NULL;

    memory_guest_plan(&plan);
    g_autoptr(UprofGuest) guest = uprof_guest_open(&memory_guest_ops, &target, &error);
    g_assert_no_error(error);
    g_assert_false(uprof_guest_rescue(guest, true, &error));
    g_assert_cmpstr(error->message, ==, "scripted failure of rescue");
    g_assert_cmpint(memory_guest_tally()->asked, ==, 1);
    g_clear_error(&error);
    g_assert_true(uprof_guest_rescue(guest, false, &error));
    g_assert_no_error(error);
    g_assert_cmpint(memory_guest_tally()->asked, ==, 0);
}

/* --- faults of a backend or its caller; an assertion ends the program --- */

static UprofGuest *
open_empty(const UprofTarget *target, GError **error)
{
    return g_new0(UprofGuest, 1); /* no arch, no vCPUs */
}

static UprofGuest *
open_refused(const UprofTarget *target, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED, "not you");
    return NULL;
}

static UprofAnswer
fail_without_error(UprofGuest *guest, unsigned vcpu, GError **error)
{
    return UPROF_FAILED;
}

static UprofAnswer
succeed_with_error(UprofGuest *guest, unsigned vcpu, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "all is well");
    return UPROF_OK;
}

typedef enum {
    WRONG_NO_RELEASE,
    WRONG_NO_READ,
    WRONG_NOTHING_OPENED,
    WRONG_NO_RESCUE,
    WRONG_FAILED_WITHOUT_ERROR,
    WRONG_OK_WITH_ERROR,
    WRONG_CLOSE_HELD,
    WRONG_HOLD_TWICE,
    WRONG_UNKNOWN_VCPU,
    WRONG_REGS_WITHOUT_HOLD,
    WRONG_VET_HELD,
    WRONG_RELEASE_LATE_HELD,
    WRONG_SAME_GUEST,
    WRONG_NEXT_WITHOUT_REPLAY,
    N_WRONGS,
} Wrong;

static const char *const wrongs[N_WRONGS] = {
    "no-release",
    "no-read",
    "nothing-opened",
    "no-rescue",
    "failed-without-error",
    "ok-with-error",
    "close-held",
    "hold-twice",
    "unknown-vcpu",
    "regs-without-hold",
    "vet-held",
    "release-late-held",
    "same-guest",
    "next-without-replay",
};

static void
commit_wrong(Wrong wrong)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST };
    const UprofTarget target = { .name = "wrong" };
    UprofGuestOps ops = memory_guest_ops;
    MemoryGuest *guest = memory_guest_open(&plan);
    g_autoptr(GError) error = NULL;
    UprofHold hold = { 0 };
    UprofRegs regs;

    if (wrong == WRONG_NO_RELEASE)
        ops.release = NULL;
    if (wrong == WRONG_NO_READ)
        ops.read = NULL;
    if (wrong == WRONG_NOTHING_OPENED)
        ops.open = open_empty;
    if (wrong == WRONG_NO_RESCUE)
        ops.rescue = NULL;
    ops.vet = wrong == WRONG_OK_WITH_ERROR ? succeed_with_error : fail_without_error;
    switch (wrong) {
    case WRONG_FAILED_WITHOUT_ERROR:
    case WRONG_OK_WITH_ERROR:
        guest->base.ops = &ops;
        uprof_guest_vet(&guest->base, 0, &error);
        return;
    case WRONG_UNKNOWN_VCPU:
        uprof_guest_hold(&guest->base, 1, &hold, &error);
        return;
    case WRONG_REGS_WITHOUT_HOLD:
        uprof_guest_read_regs(&guest->base, 0, &regs, &error);
        return;
    case WRONG_SAME_GUEST:
        guest->vets[0] = UPROF_SAME;
        uprof_guest_vet(&guest->base, 0, &error);
        return;
    case WRONG_NEXT_WITHOUT_REPLAY:
        uprof_guest_next(&guest->base, NULL, &error);
        return;
    case WRONG_CLOSE_HELD:
    case WRONG_HOLD_TWICE:
    case WRONG_VET_HELD:
    case WRONG_RELEASE_LATE_HELD:
        uprof_guest_hold(&guest->base, 0, &hold, &error);
        if (wrong == WRONG_CLOSE_HELD)
            uprof_guest_close(&guest->base);
        else if (wrong == WRONG_HOLD_TWICE)
            uprof_guest_hold(&guest->base, 0, &hold, &error);
        else if (wrong == WRONG_VET_HELD)
            uprof_guest_vet(&guest->base, 0, &error);
        else
            uprof_guest_release_late(&guest->base);
        return;
    default:
        uprof_guest_open(&ops, &target, &error);
    }
}

static void
test_wrong(gconstpointer data)
{
    const Wrong wrong = GPOINTER_TO_INT(data);

    if (g_test_subprocess()) {
        commit_wrong(wrong);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*guest.c*assertion failed*");
}

static void
test_refused(void)
{
    const UprofTarget target = { .name = "refused" };
    UprofGuestOps ops = memory_guest_ops;
    g_autoptr(GError) error = NULL;

    ops.open = open_refused;
    g_assert_null(uprof_guest_open(&ops, &target, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_DENIED);
    uprof_guest_close(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(grains); i++) {
        g_autofree char *path = g_strdup_printf("/guest/grain/%s", grains[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_grain);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *path = g_strdup_printf("/guest/answer/%s", answers[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_answer);
    }
    g_test_add_func("/guest/times", test_times);
    g_test_add_func("/guest/scope", test_scope);
    g_test_add_func("/guest/scope-fails", test_scope_fails);
    g_test_add_func("/guest/vet", test_vet);
    g_test_add_func("/guest/vet-vcpus", test_vet_vcpus);
    g_test_add_func("/guest/optional-members", test_optional_members);
    g_test_add_func("/guest/read-regs", test_read_regs);
    g_test_add_func("/guest/rescue-only", test_rescue_only);
    g_test_add_func("/guest/refused", test_refused);
    for (int i = 0; i < N_WRONGS; i++) {
        g_autofree char *path = g_strdup_printf("/guest/wrong/%s", wrongs[i]);
        g_test_add_data_func(path, GINT_TO_POINTER(i), test_wrong);
    }
    return g_test_run();
}
