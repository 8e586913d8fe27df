/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "guest-priv.h"

#include "uprof/clock.h"

#include "marker-priv.h"

#include <string.h>

/* The backend and this process measure at different points, so they may differ by this much. */
enum { CLOCK_DIFFERENCE_NS = UPROF_NS_PER_MS };

static void
check_ops(const UprofGuestOps *ops)
{
    g_assert(ops->name && ops->open && ops->close && ops->read);
    g_assert(!ops->hold == !ops->release);
    /* a recording has snapshots, a live guest has registers */
    g_assert(!ops->next != !ops->read_regs);
    g_assert(!ops->next || !ops->hold);
}

/* Asserts that there is an error if and only if the answer is FAILED. */
static UprofAnswer
check_answer(UprofAnswer answer, GError **error)
{
    g_assert(!error || (answer == UPROF_FAILED) == (*error != NULL));
    return answer;
}

UprofGuest *
uprof_guest_open(const UprofGuestOps *ops, const UprofTarget *target, GError **error)
{
    check_ops(ops);
    UprofGuest *guest = ops->open(target, error);

    if (!guest)
        return NULL;
    guest->ops = ops;
    guest->marker = target->marker;
    if (target->rescue_only) {
        g_assert(ops->rescue);
        return guest;
    }
    g_assert(guest->arch && guest->n_vcpus >= 1 && guest->n_vcpus <= UPROF_VCPUS_MAX);
    g_assert(guest->grain == UPROF_GRAIN_NONE || ops->hold);
    g_assert(!guest->needs_roots || ops->ask_translation);
    /* a guest is stopped only if the guardian could resume it */
    g_assert(guest->grain == UPROF_GRAIN_NONE || ops->rescue);
    return guest;
}

void
uprof_guest_close(UprofGuest *guest)
{
    if (!guest)
        return;
    g_assert(!guest->held);
    guest->ops->close(guest);
}

UprofAnswer
uprof_guest_vet(UprofGuest *guest, unsigned vcpu, GError **error)
{
    g_assert(!guest->held && vcpu < guest->n_vcpus);
    if (!guest->ops->vet)
        return UPROF_OK;
    const UprofAnswer answer = check_answer(guest->ops->vet(guest, vcpu, error), error);
    g_assert(guest->grain == UPROF_GRAIN_VCPU || (answer != UPROF_SAME && answer != UPROF_ABSENT));
    g_assert(guest->grain != UPROF_GRAIN_NONE || answer != UPROF_IDLE);
    return answer;
}

void
uprof_guest_poll(UprofGuest *guest)
{
    if (guest->ops->poll)
        guest->ops->poll(guest);
}

bool
uprof_guest_release_late(UprofGuest *guest)
{
    g_assert(!guest->held);
    if (g_atomic_int_get(&guest->has_late_stops) && guest->ops->release_late)
        guest->ops->release_late(guest);
    return !g_atomic_int_get(&guest->has_late_stops);
}

uint64_t
uprof_guest_take_lost_ns(UprofGuest *guest, unsigned vcpu)
{
    g_assert(!guest->held && vcpu < guest->n_vcpus);
    return guest->ops->take_lost_ns ? guest->ops->take_lost_ns(guest, vcpu) : 0;
}

/* A stop that was refused stops nothing. After another failure the stop may still be on its way. */
static UprofAnswer
end_failed_hold(UprofGuest *guest, UprofAnswer answer, GError *failure, GError **error)
{
    const bool is_left = guest->grain == UPROF_GRAIN_GUEST && answer == UPROF_FAILED &&
                         failure->code != UPROF_ERROR_DENIED;

    uprof_marker_set_held(guest->marker, is_left ? UPROF_HELD_LEFT : UPROF_HELD_NOT);
    guest->left_held |= is_left;
    if (failure)
        g_propagate_error(error, failure);
    return answer;
}

UprofAnswer
uprof_guest_hold(UprofGuest *guest, unsigned vcpu, UprofHold *hold, GError **error)
{
    g_assert(!guest->held && !guest->left_held && vcpu < guest->n_vcpus && !guest->ops->next);
    const uint64_t began_ns = uprof_clock_now_ns();

    guest->asked_ns = guest->released_ns = 0;
    if (guest->grain != UPROF_GRAIN_NONE) {
        GError *failure = NULL;
        uprof_marker_ask(guest->marker, began_ns);
        const UprofAnswer answer = guest->ops->hold(guest, vcpu, &failure);
        if (check_answer(answer, &failure) != UPROF_OK)
            return end_failed_hold(guest, answer, failure, error);
        uprof_marker_set_held(guest->marker, UPROF_HELD_YES);
    }

    guest->held = true;
    const uint64_t asked_ns = guest->asked_ns > 0 ? guest->asked_ns : began_ns;
    *hold = (UprofHold){
        .guest = guest,
        .vcpu = guest->grain == UPROF_GRAIN_VCPU ? vcpu : 0,
        .n_vcpus = guest->grain == UPROF_GRAIN_VCPU ? 1 : guest->n_vcpus,
        .began_ns = asked_ns,
        .stopped_since_ns = guest->measures_holds ? asked_ns : uprof_clock_now_ns(),
    };
    return UPROF_OK;
}

/*
 * The backend's own measurement counts, unless this process measured a much longer hold. In that
 * case this process may have lost the CPU before the release.
 */
static uint64_t
find_hold_ns(const UprofGuest *guest, uint64_t since_ns, uint64_t now_ns)
{
    const uint64_t seen_ns = now_ns > since_ns ? now_ns - since_ns : 0;

    if (guest->grain == UPROF_GRAIN_NONE)
        return 0;
    if (guest->measures_holds && guest->last_hold_ns > 0 &&
        seen_ns < guest->last_hold_ns + CLOCK_DIFFERENCE_NS)
        return guest->last_hold_ns;
    return seen_ns;
}

UprofAnswer
uprof_hold_release(UprofHold *hold, uint64_t *hold_ns, uint64_t *stopped_ns, GError **error)
{
    UprofGuest *guest = hold->guest;

    if (!guest)
        return UPROF_OK;
    g_assert(guest->held);

    UprofAnswer answer = UPROF_OK;
    if (guest->grain != UPROF_GRAIN_NONE)
        answer = check_answer(guest->ops->release(guest, hold->vcpu, error), error);
    if (guest->grain != UPROF_GRAIN_NONE) {
        guest->left_held = answer == UPROF_FAILED;
        uprof_marker_set_held(guest->marker, guest->left_held ? UPROF_HELD_LEFT : UPROF_HELD_NOT);
    }
    if (guest->released_ns == 0)
        guest->released_ns = uprof_clock_now_ns();
    const uint64_t now_ns = guest->released_ns;
    if (hold_ns)
        *hold_ns = find_hold_ns(guest, hold->began_ns, now_ns);
    if (stopped_ns)
        *stopped_ns = find_hold_ns(guest, hold->stopped_since_ns, now_ns);
    guest->held = false;
    *hold = (UprofHold){ 0 };
    return answer;
}

void
uprof_hold_clear(UprofHold *hold)
{
    g_autoptr(GError) error = NULL;

    uprof_hold_release(hold, NULL, NULL, &error);
}

UprofAnswer
uprof_guest_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error)
{
    g_assert(guest->ops->read_regs && vcpu < guest->n_vcpus);
    g_assert(guest->held || guest->grain == UPROF_GRAIN_NONE || guest->paused);
    const UprofAnswer answer = check_answer(guest->ops->read_regs(guest, vcpu, regs, error), error);
    if (answer == UPROF_OK && guest->needs_roots)
        memcpy(regs->sys, guest->found_sys, sizeof(regs->sys));
    return answer;
}

void
uprof_guest_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    g_assert(lane < UPROF_N_LANES);
    if (n > 0)
        guest->ops->read(guest, lane, spans, n);
}

void
uprof_guest_begin_read(UprofGuest *guest, UprofSpan *spans, unsigned n)
{
    g_assert(n > 0);
    if (guest->ops->begin_read)
        guest->ops->begin_read(guest, spans, n);
    else
        guest->ops->read(guest, UPROF_LANE_WORKER, spans, n);
}

void
uprof_guest_end_read(UprofGuest *guest)
{
    if (guest->ops->end_read)
        guest->ops->end_read(guest);
}

bool
uprof_guest_ask_translation(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    g_assert(guest->needs_roots && !guest->held);
    return guest->ops->ask_translation(guest, vcpu, gva, gpa);
}

bool
uprof_guest_translates(const UprofGuest *guest)
{
    return guest->ops->translate != NULL;
}

bool
uprof_guest_translate(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    g_assert(guest->ops->translate);
    return guest->ops->translate(guest, vcpu, gva, gpa);
}

UprofAnswer
uprof_guest_next(UprofGuest *guest, UprofSnapshot *snapshot, GError **error)
{
    g_assert(guest->ops->next);
    return check_answer(guest->ops->next(guest, snapshot, error), error);
}

void
uprof_guest_facts(UprofGuest *guest, UprofGuestFacts *facts)
{
    *facts = (UprofGuestFacts){ 0 };
    if (guest->ops->facts)
        guest->ops->facts(guest, facts);
}

bool
uprof_guest_rescue(UprofGuest *guest, bool asked, GError **error)
{
    g_assert(guest->ops->rescue);
    return guest->ops->rescue(guest, asked, error);
}
