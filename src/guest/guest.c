/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/guest.h"

#include "uprof/clock.h"

#include <string.h>

static void
check_ops(const UprofGuestOps *ops)
{
    g_assert(ops->name && ops->open && ops->close && ops->read);
    g_assert(!ops->hold == !ops->release);
    /* a recording gives whole snapshots, a live guest registers */
    g_assert(!ops->next != !ops->read_regs);
    g_assert(!ops->next || !ops->hold);
}

/* Only a failure has an error, and it always has one. */
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
    /* nobody stops a whole guest unless somebody else can let it go */
    g_assert(guest->grain != UPROF_GRAIN_GUEST || ops->rescue);
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
uprof_guest_vet(UprofGuest *guest, GError **error)
{
    g_assert(!guest->held);
    return guest->ops->vet ? check_answer(guest->ops->vet(guest, error), error) : UPROF_OK;
}

/* A stop that failed: refused is not stopped; anything else may still be on its way. */
static UprofAnswer
note_failed_hold(UprofGuest *guest, UprofAnswer answer, GError *failure, GError **error)
{
    const bool is_left = guest->grain == UPROF_GRAIN_GUEST && answer == UPROF_FAILED &&
                         failure->code != UPROF_ERROR_DENIED;

    if (guest->grain == UPROF_GRAIN_GUEST)
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
    const bool whole = guest->grain == UPROF_GRAIN_GUEST;
    const uint64_t began_ns = uprof_clock_now_ns();

    if (guest->grain != UPROF_GRAIN_NONE) {
        GError *failure = NULL;
        if (whole)
            uprof_marker_set_held(guest->marker, UPROF_HELD_ASKED);
        const UprofAnswer answer = guest->ops->hold(guest, vcpu, &failure);
        if (check_answer(answer, &failure) != UPROF_OK)
            return note_failed_hold(guest, answer, failure, error);
        if (whole)
            uprof_marker_set_held(guest->marker, UPROF_HELD_YES);
    }

    guest->held = true;
    *hold = (UprofHold){
        .guest = guest,
        .vcpu = guest->grain == UPROF_GRAIN_VCPU ? vcpu : 0,
        .n_vcpus = guest->grain == UPROF_GRAIN_VCPU ? 1 : guest->n_vcpus,
        .began_ns = began_ns,
        .stood_ns = uprof_clock_now_ns(),
    };
    return UPROF_OK;
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
    const uint64_t now_ns = uprof_clock_now_ns();

    if (guest->grain == UPROF_GRAIN_GUEST) {
        guest->left_held = answer == UPROF_FAILED;
        uprof_marker_set_held(guest->marker, guest->left_held ? UPROF_HELD_LEFT : UPROF_HELD_NOT);
    }
    if (hold_ns)
        *hold_ns = guest->grain == UPROF_GRAIN_NONE ? 0 : now_ns - hold->began_ns;
    if (stopped_ns)
        *stopped_ns = guest->grain == UPROF_GRAIN_NONE ? 0 : now_ns - hold->stood_ns;
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
    return check_answer(guest->ops->read_regs(guest, vcpu, regs, error), error);
}

void
uprof_guest_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    g_assert(lane < UPROF_N_LANES);
    if (n > 0)
        guest->ops->read(guest, lane, spans, n);
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

bool
uprof_guest_is_recording(const UprofGuest *guest)
{
    return guest->ops->next != NULL;
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
