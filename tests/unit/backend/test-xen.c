/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fake-xen.h"
#include "../../../src/guest/marker-priv.h"
#include "../../../src/guest/guest-priv.h"
#include "uprof/clock.h"
#include "uprof/xen-module.h"

#define UUID "01020304-0506-0708-090a-0b0c0d0e0f10"

/* XEN_DOMINF_*; REASON is the lowest bit of the shutdown reason */
enum { DYING = 1, HVM = 2, SHUTDOWN = 4, REASON = 16, SUSPEND = 2, CRASH = 3 };

enum { DOMID = 7, RAM_PAGES = 256, VERSION = 0x15 };

extern const UprofXenModule uprof_xen_module;

static uint8_t ram[RAM_PAGES * FAKE_PAGE_BYTES];

static void
put_le(uint8_t *at, unsigned len, uint64_t value)
{
    for (unsigned i = 0; i < len; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void
reset_xen(unsigned n_vcpus)
{
    fake_xen = (FakeXen){
        .version = VERSION,
        .is_there = true,
        .domid = DOMID,
        .flags = HVM,
        .tot_pages = RAM_PAGES,
        .address_bits = 64,
        .n_vcpus = n_vcpus,
        .stop_at = -1,
        .stop_errno = EFAULT,
        .fault_at = -1,
        .ram = ram,
        .ram_pages = RAM_PAGES,
    };
    for (unsigned i = 0; i < 16; i++)
        fake_xen.uuid[i] = (uint8_t)(i + 1);
    for (unsigned i = 0; i < n_vcpus; i++) {
        FakeVcpu *vcpu = &fake_xen.vcpus[i];
        vcpu->online = true;
        put_le(vcpu->context + 648, 8, 0x100000 + i); /* rip */
        put_le(vcpu->context + 656, 2, 0x18);         /* cs */
        put_le(vcpu->context + FAKE_CR0, 8, UPROF_X86_CR0_PG | UPROF_X86_CR0_PE);
        put_le(vcpu->context + FAKE_CR4, 8, UPROF_X86_CR4_PAE);
    }
    for (unsigned i = 0; i < RAM_PAGES; i++)
        memset(ram + i * FAKE_PAGE_BYTES, (int)i, FAKE_PAGE_BYTES);
}

static UprofGuest *
open_as(const UprofTarget *how, GError **error)
{
    UprofTarget target = *how;

    target.name = "g";
    target.uuid = target.uuid ? target.uuid : UUID;
    target.id = target.id ? target.id : DOMID;
    return uprof_guest_open(uprof_xen_module.ops, &target, error);
}

static UprofGuest *
open_usual(void)
{
    g_autoptr(GError) error = NULL;
    UprofGuest *guest = open_as(&(UprofTarget){ 0 }, &error);

    g_assert_no_error(error);
    return guest;
}

/* clang-format off */
static const struct {
    const char *name;
    int open_errno, refused;
    uint32_t version;
    int id;
    const char *uuid;
    uint32_t flags;
    unsigned pauses;
    bool is_gone;
    int code; /* -1: it opens */
    const char *message;
} opens[] = {
    { "oldest",      0, 0, 0x12, 0, NULL, HVM, 0, false, -1, NULL },
    { "newest",      0, 0, 0x18, 0, NULL, HVM, 0, false, -1, NULL },
    { "too-new",     0, 0, 0x19, 0, NULL, HVM, 0, false, UPROF_ERROR_UNSUPPORTED, "*supports none of the versions 0x12 to 0x18*" },
    { "too-old",     0, 0, 0x11, 0, NULL, HVM, 0, false, UPROF_ERROR_UNSUPPORTED, "*supports none of the versions*" },
    { "policy",      0, EACCES, VERSION, 0, NULL, HVM, 0, false, UPROF_ERROR_UNSUPPORTED, "*or its security policy refuses them*" },
    { "not-root",    EACCES, 0, VERSION, 0, NULL, HVM, 0, false, UPROF_ERROR_DENIED, "g: Xen's control device cannot be opened: *; this needs root in dom0" },
    { "no-xen",      ENOENT, 0, VERSION, 0, NULL, HVM, 0, false, UPROF_ERROR_UNSUPPORTED, "*is this Xen's dom0?" },
    { "refused",     0, EPERM, VERSION, 0, NULL, HVM, 0, false, UPROF_ERROR_DENIED, "*this needs root in dom0" },
    { "gone",        0, 0, VERSION, 0, NULL, HVM, 0, true, UPROF_ERROR_NOT_FOUND, "g: Xen has no domain of number 7; see: xl list" },
    { "other-uuid",     0, 0, VERSION, 0, "01020304-0506-0708-090a-0b0c0d0e0f11", HVM, 0, false, UPROF_ERROR_NOT_FOUND, "domain 'g' has ended*" },
    { "off",         0, 0, VERSION, -1, NULL, HVM, 0, false, UPROF_ERROR_UNSUPPORTED, "*it has no number" },
    { "paused",      0, 0, VERSION, 0, NULL, HVM, 1, false, UPROF_ERROR_NOT_FOUND, "domain 'g' is paused, not by virt-uprof*xl unpause 7" },
    { "dying",       0, 0, VERSION, 0, NULL, HVM | DYING, 0, false, UPROF_ERROR_NOT_FOUND, "domain 'g' has shut down*" },
    { "shut-down",   0, 0, VERSION, 0, NULL, HVM | SHUTDOWN, 0, false, UPROF_ERROR_NOT_FOUND, "domain 'g' has shut down*" },
    { "paravirtual", 0, 0, VERSION, 0, NULL, 0, 0, false, -1, NULL },
};

static const struct {
    const char *name;
    uint32_t flags;
    unsigned pauses;
    bool is_gone, is_another, is_blocked, was_held;
    UprofAnswer answer;
    UprofHindrance hindrance;
} vets[] = {
    { "runs",        HVM, 0, false, false, false, true, UPROF_OK, UPROF_HINDRANCE_NONE },
    { "paused",      HVM, 1, false, false, false, true, UPROF_BUSY, UPROF_HINDRANCE_PAUSED },
    { "saved",       HVM | SHUTDOWN | SUSPEND << REASON, 0, false, false, false, true, UPROF_BUSY, UPROF_HINDRANCE_JOB },
    { "powered-off", HVM | SHUTDOWN, 0, false, false, false, true, UPROF_GONE, UPROF_HINDRANCE_NONE },
    { "crashed",     HVM | SHUTDOWN | CRASH << REASON, 0, false, false, false, true, UPROF_GONE, UPROF_HINDRANCE_NONE },
    { "dying",       HVM | DYING, 0, false, false, false, true, UPROF_GONE, UPROF_HINDRANCE_NONE },
    { "gone",        HVM, 0, true, false, false, true, UPROF_GONE, UPROF_HINDRANCE_NONE },
    { "other-uuid",     HVM, 0, false, true, false, true, UPROF_GONE, UPROF_HINDRANCE_NONE },
    { "idle",       HVM, 0, false, false, true, true, UPROF_IDLE, UPROF_HINDRANCE_NONE },
    { "idle-at-first", HVM, 0, false, false, true, false, UPROF_OK, UPROF_HINDRANCE_NONE },
};

static const struct {
    const char *name;
    int number;
    UprofAnswer answer;
} pauses[] = {
    { "gone",     ESRCH,     UPROF_GONE },
    { "refused",  EPERM,     UPROF_FAILED },
    { "policy",   EACCES,    UPROF_FAILED },
    { "too-many", EOVERFLOW, UPROF_BUSY },
    { "busy",     EAGAIN,    UPROF_BUSY },
};

static const struct {
    const char *name;
    int number;
    UprofAnswer answer;
} refusals[] = {
    { "gone",      ESRCH,  UPROF_GONE },
    { "refused",   EPERM,  UPROF_FAILED },
    { "policy",    EACCES, UPROF_FAILED },
    { "no-call",   ENOSYS, UPROF_BUSY },
    { "no-memory", ENOMEM, UPROF_BUSY },
};

#define PG_PE (UPROF_X86_CR0_PG | UPROF_X86_CR0_PE)

/* Modes to which a vCPU changes from 64-bit mode with four levels of page tables. */
static const struct {
    const char *name;
    uint64_t cr0, cr4;
    bool is_other; /* differs from the mode before */
} modes[] = {
    { "no-paging", UPROF_X86_CR0_PE,           UPROF_X86_CR4_PAE,                      true },
    { "real",      0,                          UPROF_X86_CR4_PAE,                      true },
    { "no-pae",    PG_PE,                      0,                                      true },
    { "5-levels",  PG_PE,                      UPROF_X86_CR4_PAE | UPROF_X86_CR4_LA57, true },
    { "same",      PG_PE | UPROF_X86_CR0_TS,   UPROF_X86_CR4_PAE | UPROF_X86_CR4_PSE,  false },
};

static const struct {
    const char *name;
    unsigned before;  /* pauses, by virt-uprof and others */
    bool is_gone;
    unsigned ran_ms;  /* CPU time of each of two vCPUs since the vet before the hold; 0: unknown */
    unsigned late_ms; /* from that vet to the request for the hold */
    unsigned after;   /* pauses that remain */
} rescues[] = {
    { "left-held",       1, false, 0,    0,    0 },
    { "left-held-and-paused",  2, false, 0,    0,    1 },
    { "runs",       0, false, 0,    0,    0 },
    { "gone",       1, true,  0,    0,    1 },
    { "still-held", 1, false, 900,  0,    0 },
    { "ran-since",     1, false, 1100, 0,    1 },
    { "late",       1, false, 5900, 5000, 0 },
    { "late-ran-since",    1, false, 6100, 5000, 1 },
};
/* clang-format on */

static void
test_open(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofTarget target = { .id = opens[i].id, .uuid = opens[i].uuid };
    g_autoptr(GError) error = NULL;

    reset_xen(1);
    fake_xen.open_errno = opens[i].open_errno;
    fake_xen.refused = opens[i].refused;
    fake_xen.version = opens[i].version;
    fake_xen.flags = opens[i].flags;
    fake_xen.pauses = opens[i].pauses;
    fake_xen.is_there = !opens[i].is_gone;
    UprofGuest *guest = open_as(&target, &error);
    if (opens[i].code < 0) {
        g_assert_no_error(error);
        g_assert_cmpuint(guest->n_vcpus, ==, 1);
        uprof_guest_close(guest);
    } else {
        g_assert_null(guest);
        g_assert_error(error, UPROF_ERROR, opens[i].code);
        g_assert_true(g_pattern_match_simple(opens[i].message, error->message));
    }
    g_assert_cmpuint(fake_xen.n_pauses + fake_xen.n_unpauses, ==, 0);
}

static UprofMarker *
new_marker(void)
{
    g_autoptr(GError) error = NULL;
    UprofMarker *marker = uprof_marker_adopt(memfd_create("marker", MFD_CLOEXEC), &error);

    g_assert_no_error(error);
    return marker;
}

/*
 * A rebooted domain has its UUID under a new number. Xen answers a query for the old number
 * with the next domain.
 */
static void
test_rebooted(void)
{
    g_autoptr(UprofMarker) marker = new_marker();
    const UprofTarget rescue_only = { .rescue_only = true, .marker = marker };
    g_autoptr(GError) error = NULL;

    reset_xen(1);
    g_autoptr(UprofGuest) guest = open_usual();
    g_autoptr(UprofGuest) rescuer = open_as(&rescue_only, &error);
    g_assert_no_error(error);
    fake_xen.is_there = false;
    fake_xen.next_domid = DOMID + 1;
    fake_xen.pauses = 1;
    uprof_marker_set_held(marker, UPROF_HELD_ASKED);
    g_assert_true(uprof_guest_rescue(rescuer, true, &error));
    g_assert_no_error(error);
    g_assert_cmpint(uprof_guest_vet(guest, 0, &error), ==, UPROF_GONE);
    g_assert_no_error(error);
    g_assert_null(open_as(&(UprofTarget){ 0 }, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    g_assert_true(g_pattern_match_simple("*no domain of number*", error->message));
    g_assert_cmpuint(fake_xen.n_pauses + fake_xen.n_unpauses, ==, 0);
}

static void
hold_once(UprofGuest *guest)
{
    g_auto(UprofHold) hold = { 0 };

    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
}

static void
test_vet(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    reset_xen(2);
    g_autoptr(UprofGuest) guest = open_usual();
    if (vets[i].was_held)
        hold_once(guest);
    fake_xen.flags = vets[i].flags;
    fake_xen.pauses = vets[i].pauses;
    fake_xen.is_there = !vets[i].is_gone;
    fake_xen.uuid[0] ^= vets[i].is_another;
    fake_xen.vcpus[0].blocked = fake_xen.vcpus[1].blocked = vets[i].is_blocked;
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, vets[i].answer);
    g_assert_cmpint(g_atomic_int_get(&guest->hindrance), ==, vets[i].hindrance);
    g_assert_cmpuint(fake_xen.pauses, ==, vets[i].pauses);
}

/* A hold costs two hypercalls for any number of vCPUs; pauses by others are kept. */
static void
test_hold(void)
{
    UprofRegs regs;
    UprofHold hold = { 0 };

    reset_xen(4);
    g_autoptr(UprofGuest) guest = open_usual();
    fake_xen.vcpus[1].blocked = true;
    fake_xen.vcpus[2].online = false;
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    const unsigned before = fake_xen.n_calls;
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.pauses, ==, 1);
    g_assert_cmpuint(hold.n_vcpus, ==, 4);
    fake_xen.pauses++;

    g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, NULL), ==, UPROF_OK);
    g_assert_cmphex(regs.pc, ==, 0x100000);
    g_assert_cmpuint(regs.word_bytes, ==, 8);
    g_assert_false(regs.halted);
    g_assert_cmpint(uprof_guest_read_regs(guest, 1, &regs, NULL), ==, UPROF_OK);
    g_assert_true(regs.halted);
    g_assert_cmpint(uprof_guest_read_regs(guest, 2, &regs, NULL), ==, UPROF_ABSENT);
    g_assert_cmpint(uprof_guest_read_regs(guest, 3, &regs, NULL), ==, UPROF_OK);
    g_assert_cmphex(regs.pc, ==, 0x100003);
    g_assert_cmpint(uprof_hold_release(&hold, NULL, NULL, NULL), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.n_calls, ==, before + 2);
    g_assert_cmpuint(fake_xen.pauses, ==, 1);
    fake_xen.pauses = 0;
}

static void
test_hold_refused(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    UprofHold hold = { 0 };

    reset_xen(2);
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    fake_xen.fail_at = fake_xen.n_domctls + 1;
    fake_xen.fail_errno = pauses[i].number;
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, &error), ==, pauses[i].answer);
    g_assert_false(guest->left_held);
    g_assert_cmpuint(fake_xen.pauses + fake_xen.n_unpauses, ==, 0);
}

static void
rescue_guest(UprofMarker *marker)
{
    const UprofTarget target = { .rescue_only = true, .marker = marker };
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofGuest) guest = open_as(&target, &error);

    g_assert_no_error(error);
    g_assert_true(uprof_guest_rescue(guest, true, &error));
    g_assert_no_error(error);
}

/* If a multicall fails at the pause, it is unknown whether the domain is paused. */
static void
test_hold_fails_at_pause(void)
{
    for (int is_done = 0; is_done <= 1; is_done++) {
        UprofHold hold = { 0 };
        g_autoptr(GError) error = NULL;
        reset_xen(2);
        g_autoptr(UprofGuest) guest = open_usual();
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        *(is_done ? &fake_xen.fault_at : &fake_xen.stop_at) = 1;
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, &error), ==, UPROF_FAILED);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
        g_assert_true(guest->left_held);
        g_assert_cmpint(fake_xen.pauses, ==, is_done);
        rescue_guest(NULL);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
    }
}

/* A refused multicall pauses nothing. */
static void
test_hold_multicall_refused(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    UprofHold hold = { 0 };

    reset_xen(2);
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    fake_xen.stop_at = 0;
    fake_xen.stop_errno = refusals[i].number;
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, &error), ==, refusals[i].answer);
    g_assert_false(guest->left_held);
}

/* A multicall that fails before its pause pauses nothing. */
static void
test_hold_fails_before_pause(void)
{
    g_autoptr(GError) error = NULL;
    UprofHold hold = { 0 };

    reset_xen(2);
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    fake_xen.stop_at = 0;
    fake_xen.stop_errno = EFAULT;
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, &error), ==, UPROF_BUSY);
    g_assert_false(guest->left_held);
    g_assert_cmpuint(fake_xen.pauses, ==, 0);
}

/* Ticks as the sampler does, at @now_ns. Returns: the answer; after %UPROF_OK the hold is released
 */
static UprofAnswer
tick_at(UprofGuest *guest, uint64_t now_ns, UprofRegs *regs, GError **error)
{
    UprofHold hold = { 0 };

    guest->ticked_ns = now_ns;
    UprofAnswer answer = uprof_guest_vet(guest, 0, error);
    if (answer == UPROF_OK)
        answer = uprof_guest_hold(guest, 0, &hold, error);
    if (answer == UPROF_OK) {
        g_assert_cmpint(uprof_guest_read_regs(guest, 0, regs, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_hold_release(&hold, NULL, NULL, NULL), ==, UPROF_OK);
    }
    guest->ticked_ns = 0;
    return answer;
}

/* Opens a guest of two vCPUs whose next tick, at @now_ns + 1 ms, makes its check in the hold. */
static UprofGuest *
open_busy(uint64_t now_ns)
{
    UprofRegs regs;

    reset_xen(2);
    UprofGuest *guest = open_usual();
    g_assert_cmpint(tick_at(guest, now_ns, &regs, NULL), ==, UPROF_OK);
    return guest;
}

/* Ticks of a busy guest in quick succession cost two hypercalls each, others three. */
static void
test_look_in_hold(void)
{
    static const struct {
        unsigned after_us;
        bool is_blocked; /* at the tick */
        unsigned n_calls;
        bool is_halted;
    } ticks[] = {
        { 1000, false, 2, false }, { 1000, false, 2, false }, { 2500, false, 3, false },
        { 1000, true, 2, true },   { 1000, false, 3, false }, { 100, false, 2, false },
    };
    uint64_t now_ns = uprof_clock_now_ns();
    g_autoptr(UprofGuest) guest = open_busy(now_ns);
    UprofRegs regs;

    for (size_t i = 0; i < G_N_ELEMENTS(ticks); i++) {
        const unsigned before = fake_xen.n_calls;
        now_ns += ticks[i].after_us * UPROF_NS_PER_US;
        fake_xen.vcpus[0].blocked = ticks[i].is_blocked;
        fake_xen.vcpus[0].time_ns += UPROF_NS_PER_MS;
        g_assert_cmpint(tick_at(guest, now_ns, &regs, NULL), ==, UPROF_OK);
        g_assert_cmpuint(fake_xen.n_calls - before, ==, ticks[i].n_calls);
        g_assert_cmpint(regs.halted, ==, ticks[i].is_halted);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
    }
    /* outside of ticks each hold has its own check */
    const unsigned before = fake_xen.n_calls;
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.n_calls, ==, before + 1);
}

/* A hold whose own check finds that the domain does not run undoes its pause, and no other. */
static void
test_look_in_hold_undone(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const uint64_t now_ns = uprof_clock_now_ns();
    g_autoptr(UprofGuest) guest = open_busy(now_ns);
    g_autoptr(GError) error = NULL;
    UprofRegs regs;

    fake_xen.flags = vets[i].flags;
    fake_xen.pauses = vets[i].pauses;
    fake_xen.is_there = !vets[i].is_gone;
    fake_xen.uuid[0] ^= vets[i].is_another;
    fake_xen.vcpus[0].blocked = fake_xen.vcpus[1].blocked = vets[i].is_blocked;
    const UprofAnswer answer = tick_at(guest, now_ns + UPROF_NS_PER_MS, &regs, &error);
    /* a guest that has just become idle is held once */
    g_assert_cmpint(answer, ==, vets[i].answer == UPROF_IDLE ? UPROF_OK : vets[i].answer);
    g_assert_no_error(error);
    g_assert_cmpint(g_atomic_int_get(&guest->hindrance), ==, vets[i].hindrance);
    g_assert_cmpuint(fake_xen.pauses, ==, vets[i].pauses);
    g_assert_cmpuint(fake_xen.n_pauses, ==, fake_xen.n_unpauses);
    g_assert_false(guest->left_held);
    if (answer == UPROF_OK)
        g_assert_cmpint(regs.halted, ==, vets[i].is_blocked);
    if (answer == UPROF_OK || vets[i].is_gone)
        return;
    g_assert_cmpuint(fake_xen.n_pauses, ==, 2);
    g_assert_cmpuint(uprof_guest_take_lost_ns(guest, 0), >, 0);
    g_assert_cmpuint(uprof_guest_take_lost_ns(guest, 0), ==, 0);
}

/* If such a pause cannot be undone, the guest counts as held. */
static void
test_look_in_hold_left(void)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    g_autoptr(UprofGuest) guest = open_busy(now_ns);
    g_autoptr(GError) error = NULL;
    UprofRegs regs;

    fake_xen.pauses = 1;
    /* the domctls of the check, the pause and the registers come before the unpause */
    fake_xen.fail_at = fake_xen.n_domctls + 7;
    fake_xen.fail_errno = EPERM;
    g_assert_cmpint(tick_at(guest, now_ns + UPROF_NS_PER_MS, &regs, &error), ==, UPROF_FAILED);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_true(guest->left_held);
    g_assert_cmpuint(fake_xen.pauses, ==, 2);
    rescue_guest(NULL);
    g_assert_cmpuint(fake_xen.pauses, ==, 1);
}

/* A hold whose own check fails undoes its pause, and a hold that Xen refuses to make paused
 * nothing. */
static void
test_look_in_hold_refused(gconstpointer data)
{
    /* the domctls are: state of the domain, states of two vCPUs, pause */
    enum { STATE = 1, VCPU = 3, PAUSE = 4 };
    static const unsigned ats[] = { STATE, VCPU, PAUSE };
    const size_t i = GPOINTER_TO_SIZE(data);

    for (size_t j = 0; j < G_N_ELEMENTS(ats); j++) {
        const uint64_t now_ns = uprof_clock_now_ns();
        g_autoptr(UprofGuest) guest = open_busy(now_ns);
        g_autoptr(GError) error = NULL;
        UprofRegs regs;
        fake_xen.fail_at = fake_xen.n_domctls + ats[j];
        fake_xen.fail_errno = pauses[i].number;
        const UprofAnswer answer = tick_at(guest, now_ns + UPROF_NS_PER_MS, &regs, &error);
        /* a vCPU whose state is not known counts as absent */
        g_assert_true((answer == UPROF_OK) == (ats[j] == VCPU));
        if (ats[j] == PAUSE)
            g_assert_cmpint(answer, ==, pauses[i].answer);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
        g_assert_false(guest->left_held);
        if (answer == UPROF_GONE)
            continue;
        /* the next tick makes its own check and succeeds */
        g_clear_error(&error);
        const unsigned before = fake_xen.n_calls;
        g_assert_cmpint(tick_at(guest, now_ns + 2 * UPROF_NS_PER_MS, &regs, &error), ==, UPROF_OK);
        g_assert_no_error(error);
        g_assert_cmpuint(fake_xen.n_calls - before, ==, 3);
    }
}

/* Returns: the length in ns of a hold in which the test sleeps for @us */
static uint64_t
time_hold(UprofGuest *guest, unsigned us)
{
    uint64_t hold_ns = 0, stopped_ns = 0;
    UprofHold hold = { 0 };

    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    if (us > 0)
        g_usleep(us);
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, &stopped_ns, NULL), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.pauses, ==, 0);
    g_assert_cmpuint(stopped_ns, ==, hold_ns);
    return hold_ns;
}

/* The length of a hold is the time that Xen reports up to the unpause, here two domctls. */
static void
test_hold_timed(void)
{
    uint64_t hold_ns = 0;

    reset_xen(1);
    g_autoptr(UprofGuest) guest = open_usual();
    fake_xen.clock_ns = 77 * UPROF_NS_PER_S;
    /* if this thread loses its CPU meanwhile, its own clock gives the length */
    for (unsigned tries = 0; tries < 1000 && hold_ns != 2 * FAKE_DOMCTL_NS; tries++)
        hold_ns = time_hold(guest, 0);
    g_assert_cmpuint(hold_ns, ==, 2 * FAKE_DOMCTL_NS);
}

/* If Xen reports no time, or far too little, virt-uprof's own clock gives the length of a hold. */
static void
test_hold_untimed(void)
{
    for (int is_reported = 0; is_reported <= 1; is_reported++) {
        reset_xen(1);
        g_autoptr(UprofGuest) guest = open_usual();
        fake_xen.clock_ns = 77 * UPROF_NS_PER_S;
        fake_xen.clock_errno = is_reported ? 0 : EPERM;
        g_assert_cmpuint(time_hold(guest, 5000), >=, 5 * UPROF_NS_PER_MS);
    }
}

/* An unpause that fails for a moment is repeated. virt-uprof's own clock then gives the length. */
static void
test_release_again(void)
{
    uint64_t hold_ns = 0;
    UprofHold hold = { 0 };

    reset_xen(1);
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    fake_xen.fail_at = fake_xen.n_domctls + 1;
    fake_xen.fail_errno = EAGAIN;
    g_assert_cmpint(uprof_hold_release(&hold, &hold_ns, NULL, NULL), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.pauses, ==, 0);
    g_assert_cmpuint(fake_xen.n_unpauses, ==, 1);
    g_assert_cmpuint(hold_ns, >=, UPROF_NS_PER_MS);
}

/*
 * A multicall that fails before its unpause is repeated. If it fails at the unpause, it is
 * unknown whether the domain is still paused, and the guardian checks.
 */
static void
test_release_multicall_fails(void)
{
    static const struct {
        int stop_at, fault_at;
        UprofAnswer answer;
        unsigned pauses;
    } failures[] = {
        { .stop_at = 0, .fault_at = -1, .answer = UPROF_OK, .pauses = 0 },
        { .stop_at = 1, .fault_at = -1, .answer = UPROF_FAILED, .pauses = 1 },
        { .stop_at = -1, .fault_at = 1, .answer = UPROF_FAILED, .pauses = 0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(failures); i++) {
        UprofHold hold = { 0 };
        g_autoptr(GError) error = NULL;
        reset_xen(1);
        g_autoptr(UprofGuest) guest = open_usual();
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
        fake_xen.stop_at = failures[i].stop_at;
        fake_xen.stop_errno = EFAULT;
        fake_xen.fault_at = failures[i].fault_at;
        g_assert_cmpint(uprof_hold_release(&hold, NULL, NULL, &error), ==, failures[i].answer);
        g_assert_cmpint(guest->left_held, ==, failures[i].answer == UPROF_FAILED);
        g_assert_cmpuint(fake_xen.pauses, ==, failures[i].pauses);
        fake_xen.stop_at = fake_xen.fault_at = -1;
        rescue_guest(NULL);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
        g_assert_cmpuint(fake_xen.n_unpauses, ==, 1);
    }
}

/* A multicall that fails after its pause leaves the domain paused. */
static void
test_hold_fails_after_pause(void)
{
    for (int stop_at = 2; stop_at < 4; stop_at++) {
        UprofHold hold = { 0 };
        UprofRegs regs;
        g_autoptr(GError) error = NULL;
        reset_xen(2);
        g_autoptr(UprofGuest) guest = open_usual();
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        fake_xen.stop_at = stop_at;
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, &error), ==, UPROF_OK);
        g_assert_cmpuint(fake_xen.pauses, ==, 1);
        fake_xen.stop_at = -1;
        g_assert_cmpint(uprof_guest_read_regs(guest, 1, &regs, &error), ==, UPROF_FAILED);
        g_assert_cmpint(uprof_hold_release(&hold, NULL, NULL, NULL), ==, UPROF_OK);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
    }
}

/* Takes one sample and ignores all errors. */
static void
try_sample(UprofGuest *guest)
{
    UprofHold hold = { 0 };
    UprofRegs regs;
    GError *error = NULL;

    const UprofAnswer vetted = uprof_guest_vet(guest, 0, &error);
    g_clear_error(&error);
    if (vetted != UPROF_OK)
        return;
    if (uprof_guest_hold(guest, 0, &hold, &error) == UPROF_OK) {
        uprof_guest_read_regs(guest, 0, &regs, &error);
        g_clear_error(&error);
        uprof_hold_release(&hold, NULL, NULL, &error);
    }
    g_clear_error(&error);
}

/* If any call fails with any error, the domain is unpaused, or left_held is set. */
static void
test_every_call_fails(void)
{
    static const int numbers[] = { ESRCH, EINVAL, EPERM, EAGAIN, EINTR, ENOMEM, EFAULT, ENODATA };
    const unsigned n_calls = 24;

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        /* ESRCH (no domain) and EINVAL (not paused) mean that there is nothing to unpause */
        const bool is_final = numbers[i] == ESRCH || numbers[i] == EINVAL;
        for (unsigned at = 1; at <= n_calls; at++) {
            reset_xen(2);
            g_autoptr(UprofGuest) guest = open_usual();
            fake_xen.fail_at = fake_xen.n_domctls + at;
            fake_xen.fail_errno = numbers[i];
            for (unsigned round = 0; round < 3 && !guest->left_held; round++)
                try_sample(guest);
            if (!guest->left_held && !is_final)
                g_assert_cmpuint(fake_xen.pauses, ==, 0);
            g_assert_cmpuint(fake_xen.n_unpauses, <=, fake_xen.n_pauses);
        }
    }
}

static void
test_context_missing(void)
{
    static const struct {
        int number;
        UprofAnswer answer;
    } answers[] = { { ENODATA, UPROF_ABSENT },
                    { EINVAL, UPROF_ABSENT },
                    { ESRCH, UPROF_GONE },
                    { EFAULT, UPROF_FAILED } };

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        UprofHold hold = { 0 };
        UprofRegs regs;
        g_autoptr(GError) error = NULL;
        reset_xen(1);
        g_autoptr(UprofGuest) guest = open_usual();
        fake_xen.vcpus[0].context_errno = answers[i].number;
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, &error), ==, answers[i].answer);
        g_assert_cmpint(uprof_hold_release(&hold, NULL, NULL, NULL), ==, UPROF_OK);
        g_assert_cmpuint(fake_xen.pauses, ==, 0);
    }
}

static UprofRegs
hold_and_read_regs(UprofGuest *guest)
{
    g_auto(UprofHold) hold = { 0 };
    UprofRegs regs;

    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, NULL), ==, UPROF_OK);
    return regs;
}

/*
 * If the mode changes after the vet, the registers are not decoded in the old mode.
 * The next hold uses the new mode.
 */
static void
test_mode(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofHold hold = { 0 };
    UprofRegs regs;

    reset_xen(1);
    FakeVcpu *vcpu = &fake_xen.vcpus[0];
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_false(hold_and_read_regs(guest).smm);
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    put_le(vcpu->context + FAKE_CR0, 8, modes[i].cr0);
    put_le(vcpu->context + FAKE_CR4, 8, modes[i].cr4);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, NULL), ==, UPROF_OK);
    g_assert_cmpint(regs.smm, ==, modes[i].is_other);
    uprof_hold_clear(&hold);
    g_assert_false(hold_and_read_regs(guest).smm);
}

static void
test_mode_unknown(void)
{
    reset_xen(1);
    fake_xen.vcpus[0].hvm_errno = EBUSY;
    g_autoptr(UprofGuest) guest = open_usual();
    g_assert_true(hold_and_read_regs(guest).smm);
    g_assert_true(hold_and_read_regs(guest).smm);
    fake_xen.vcpus[0].hvm_errno = 0;
    g_assert_false(hold_and_read_regs(guest).smm);
}

/* With idle stacks, a waiting vCPU is held once after each time it has run. */
static void
test_idle_stacks(void)
{
    g_autoptr(GError) error = NULL;

    reset_xen(1);
    g_autoptr(UprofGuest) guest = open_as(&(UprofTarget){ .idle_stacks = true }, &error);
    g_assert_no_error(error);
    fake_xen.vcpus[0].blocked = true;
    hold_once(guest);
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_IDLE);
    fake_xen.vcpus[0].time_ns++;
    hold_once(guest);
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_IDLE);
}

/* A domain that somebody else has paused is read without a pause by virt-uprof. */
static void
test_paused_by_others(void)
{
    g_autoptr(GError) error = NULL;
    UprofRegs regs;

    reset_xen(1);
    fake_xen.pauses = 1;
    g_autoptr(UprofGuest) guest = open_as(&(UprofTarget){ .may_be_paused = true }, &error);
    g_assert_no_error(error);
    g_assert_true(guest->paused);
    g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, &error), ==, UPROF_OK);
    g_assert_cmphex(regs.pc, ==, 0x100000);
    g_assert_cmpuint(fake_xen.pauses, ==, 1);
    g_assert_cmpuint(fake_xen.n_pauses, ==, 0);
}

/* A crashed domain is refused, unless the caller also accepts a paused one. */
static void
test_crashed(void)
{
    g_autoptr(GError) error = NULL, refused = NULL;
    UprofRegs regs;

    reset_xen(1);
    fake_xen.flags = HVM | SHUTDOWN | CRASH << REASON;
    g_assert_null(open_as(&(UprofTarget){ .idle_stacks = false }, &refused));
    g_assert_error(refused, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    g_autoptr(UprofGuest) guest = open_as(&(UprofTarget){ .may_be_paused = true }, &error);
    g_assert_no_error(error);
    g_assert_true(guest->paused);
    g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, &error), ==, UPROF_OK);
    g_assert_cmpuint(fake_xen.n_pauses, ==, 0);
}

static void
test_rescue(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const uint64_t had_ns = 7 * UPROF_NS_PER_S;
    g_autoptr(UprofMarker) marker = new_marker();
    const UprofTarget target = { .rescue_only = true, .marker = marker };
    g_autoptr(GError) error = NULL;

    reset_xen(2);
    g_autoptr(UprofGuest) guest = open_as(&target, &error);
    g_assert_no_error(error);
    fake_xen.pauses = rescues[i].before;
    fake_xen.is_there = !rescues[i].is_gone;
    uprof_marker_set_held(marker, UPROF_HELD_ASKED);
    if (rescues[i].ran_ms > 0)
        uprof_marker_set_ran(marker, 2 * had_ns,
                             uprof_clock_now_ns() - rescues[i].late_ms * UPROF_NS_PER_MS);
    for (unsigned vcpu = 0; vcpu < 2; vcpu++)
        fake_xen.vcpus[vcpu].time_ns = had_ns + rescues[i].ran_ms * UPROF_NS_PER_MS;
    g_assert_true(uprof_guest_rescue(guest, true, &error));
    g_assert_cmpuint(fake_xen.pauses, ==, rescues[i].after);
    g_assert_cmpuint(fake_xen.n_pauses, ==, 0);
}

/* Rescue decides by the run times that the profiler's vet stored before the hold. */
static void
test_rescue_by_run_time(void)
{
    for (unsigned is_later = 0; is_later <= 1; is_later++) {
        g_autoptr(UprofMarker) marker = new_marker();
        g_autoptr(GError) error = NULL;
        UprofHold hold = { 0 };
        reset_xen(2);
        fake_xen.vcpus[1].time_ns = 3 * UPROF_NS_PER_S;
        g_autoptr(UprofGuest) guest = open_as(&(UprofTarget){ .marker = marker }, &error);
        g_assert_no_error(error);
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
        if (is_later)
            fake_xen.vcpus[1].time_ns += 10 * UPROF_NS_PER_S;
        rescue_guest(marker);
        g_assert_cmpuint(fake_xen.pauses, ==, is_later);
        uprof_hold_clear(&hold);
    }
}

static bool
read_byte(UprofGuest *guest, UprofLane lane, uint64_t gpa, uint8_t *byte)
{
    UprofSpan span = { .gpa = gpa, .into = byte, .len = 1 };

    uprof_guest_read(guest, lane, &span, 1);
    return !span.missing;
}

/* A hold maps no pages; pages that were read before stay mapped. */
static void
test_memory(void)
{
    UprofHold hold = { 0 };
    uint8_t byte = 0, two[2 * FAKE_PAGE_BYTES];

    reset_xen(1);
    UprofGuest *guest = open_usual();
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    g_assert_false(read_byte(guest, UPROF_LANE_SAMPLER, 0x5000, &byte));
    g_assert_cmpuint(fake_xen.n_maps, ==, 0);
    g_assert_true(read_byte(guest, UPROF_LANE_WORKER, 0x5000, &byte));
    uprof_hold_release(&hold, NULL, NULL, NULL);
    g_assert_true(read_byte(guest, UPROF_LANE_SAMPLER, 0x5000, &byte));
    g_assert_cmpuint(byte, ==, 5);
    const unsigned n_maps = fake_xen.n_maps;
    g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
    UprofSpan span = { .gpa = 0x6800, .into = two, .len = sizeof(two) };
    uprof_guest_read(guest, UPROF_LANE_SAMPLER, &span, 1);
    g_assert_false(span.missing);
    g_assert_cmpuint(two[0], ==, 6);
    g_assert_cmpuint(two[sizeof(two) - 1], ==, 8);
    g_assert_cmpuint(fake_xen.n_maps, ==, n_maps);
    uprof_hold_release(&hold, NULL, NULL, NULL);

    /* outside of RAM, at its last byte, and at the end of all addresses */
    g_assert_false(read_byte(guest, UPROF_LANE_SAMPLER, RAM_PAGES * FAKE_PAGE_BYTES, &byte));
    g_assert_true(read_byte(guest, UPROF_LANE_SAMPLER, RAM_PAGES * FAKE_PAGE_BYTES - 1, &byte));
    span = (UprofSpan){ .gpa = UINT64_MAX, .into = two, .len = 2 };
    uprof_guest_read(guest, UPROF_LANE_SAMPLER, &span, 1);
    g_assert_true(span.missing);
    uprof_guest_close(guest);
    g_assert_cmpint(fake_xen.n_mapped, ==, 0);
}

/* All pages are unmapped when the domain dies, and soon after it returns memory to Xen. */
static void
test_memory_is_unmapped(void)
{
    uint8_t byte;

    reset_xen(1);
    g_autoptr(UprofGuest) guest = open_usual();
    for (unsigned lane = 0; lane < UPROF_N_LANES; lane++)
        g_assert_true(read_byte(guest, (UprofLane)lane, 0x5000, &byte));
    uprof_guest_poll(guest);
    g_assert_cmpint(fake_xen.n_mapped, ==, 2);
    fake_xen.tot_pages--;
    uprof_guest_poll(guest);
    g_assert_cmpint(fake_xen.n_mapped, ==, 1);
    g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
    g_assert_cmpint(fake_xen.n_mapped, ==, 0);

    for (unsigned lane = 0; lane < UPROF_N_LANES; lane++)
        g_assert_true(read_byte(guest, (UprofLane)lane, 0x5000, &byte));
    /* the pages of a dying domain can still be mapped */
    fake_xen.flags |= DYING;
    uprof_guest_poll(guest);
    g_assert_cmpint(fake_xen.n_mapped, ==, 0);
    for (unsigned lane = 0; lane < UPROF_N_LANES; lane++)
        g_assert_false(read_byte(guest, (UprofLane)lane, 0x5000, &byte));
    g_assert_cmpint(fake_xen.n_mapped, ==, 0);
}

/* The guest remembers an address without memory, but not a temporary failure to map. */
static void
test_memory_fails_to_map(void)
{
    static const int passing[] = { ENOMEM, ENOENT };
    uint8_t byte;

    for (size_t i = 0; i < 2 * G_N_ELEMENTS(passing); i++) {
        reset_xen(1);
        g_autoptr(UprofGuest) guest = open_usual();
        *(i % 2 ? &fake_xen.map_errno : &fake_xen.frame_errno) = passing[i / 2];
        g_assert_false(read_byte(guest, UPROF_LANE_WORKER, 0x5000, &byte));
        g_assert_cmpint(fake_xen.n_mapped, ==, 0);
        fake_xen.map_errno = fake_xen.frame_errno = 0;
        g_assert_true(read_byte(guest, UPROF_LANE_WORKER, 0x5000, &byte));
        g_assert_false(read_byte(guest, UPROF_LANE_WORKER, (uint64_t)1 << 40, &byte));
        const unsigned n_maps = fake_xen.n_maps;
        g_assert_false(read_byte(guest, UPROF_LANE_WORKER, (uint64_t)1 << 40, &byte));
        g_assert_cmpuint(fake_xen.n_maps, ==, n_maps);
        fake_xen.map_errno = EINVAL;
        g_assert_false(read_byte(guest, UPROF_LANE_WORKER, 0x40000, &byte));
        fake_xen.map_errno = 0;
        g_assert_false(read_byte(guest, UPROF_LANE_WORKER, 0x40000, &byte));
    }
}

/* The number of mapped pages is bounded, however much is read. */
static void
test_memory_is_bounded(void)
{
    enum { PIECES = 2000, PIECE_PAGES = 32 };
    uint8_t byte;

    reset_xen(1);
    fake_xen.ram_pages = 1;
    g_autoptr(UprofGuest) guest = open_usual();
    for (uint64_t i = 0; i < PIECES; i++)
        g_assert_cmpint(
            read_byte(guest, UPROF_LANE_WORKER, i * PIECE_PAGES * FAKE_PAGE_BYTES, &byte), ==,
            i == 0);
    g_assert_cmpint(fake_xen.n_mapped, <=, 768);
    g_assert_true(read_byte(guest, UPROF_LANE_WORKER, 0, &byte));
}

static void
test_paravirtual(void)
{
    UprofRegs regs;

    for (unsigned bits = 32; bits <= 64; bits += 32) {
        UprofHold hold = { 0 };
        reset_xen(1);
        fake_xen.flags = 0;
        fake_xen.address_bits = bits;
        g_autoptr(UprofGuest) guest = open_usual();
        g_assert_cmpint(uprof_guest_vet(guest, 0, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_hold(guest, 0, &hold, NULL), ==, UPROF_OK);
        g_assert_cmpint(uprof_guest_read_regs(guest, 0, &regs, NULL), ==, UPROF_OK);
        g_assert_cmpuint(regs.sys[UPROF_X86_XEN_PV], ==, bits);
        g_assert_cmpuint(regs.word_bytes, ==, bits / 8);
        uprof_hold_release(&hold, NULL, NULL, NULL);
    }
}

static void
test_find(void)
{
    UprofXenDomain domain;
    g_autoptr(GError) error = NULL;

    reset_xen(3);
    g_assert_true(uprof_xen_module.find(DOMID, &domain, &error));
    g_assert_cmpstr(domain.name, ==, "");
    g_assert_cmpstr(domain.uuid, ==, UUID);
    g_assert_cmpuint(domain.n_vcpus, ==, 3);
    fake_xen.name = "of-xl";
    g_assert_true(uprof_xen_module.find(DOMID, &domain, &error));
    g_assert_cmpstr(domain.name, ==, "of-xl");
    g_assert_false(uprof_xen_module.find(0, &domain, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    g_clear_error(&error);
    g_assert_false(uprof_xen_module.find(DOMID + 1, &domain, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
}

#define ADD_CASES(folder, table, function)                                                         \
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {                                             \
        g_autofree char *path = g_strdup_printf("/xen/" folder "/%s", table[i].name);              \
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), function);                                 \
    }

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_assert_cmpuint(uprof_xen_module.abi, ==, UPROF_XEN_MODULE_ABI);
    ADD_CASES("open", opens, test_open);
    ADD_CASES("vet", vets, test_vet);
    ADD_CASES("look-in-hold-undone", vets, test_look_in_hold_undone);
    g_test_add_func("/xen/look-in-hold", test_look_in_hold);
    g_test_add_func("/xen/look-in-hold-left", test_look_in_hold_left);
    ADD_CASES("look-in-hold-refused", pauses, test_look_in_hold_refused);
    ADD_CASES("hold-refused", pauses, test_hold_refused);
    ADD_CASES("multicall-refused", refusals, test_hold_multicall_refused);
    ADD_CASES("rescue", rescues, test_rescue);
    ADD_CASES("mode", modes, test_mode);
    g_test_add_func("/xen/mode-unknown", test_mode_unknown);
    g_test_add_func("/xen/rescue-by-run-time", test_rescue_by_run_time);
    g_test_add_func("/xen/hold-fails-at-pause", test_hold_fails_at_pause);
    g_test_add_func("/xen/rebooted", test_rebooted);
    g_test_add_func("/xen/hold", test_hold);
    g_test_add_func("/xen/hold-fails-before-pause", test_hold_fails_before_pause);
    g_test_add_func("/xen/hold-timed", test_hold_timed);
    g_test_add_func("/xen/hold-untimed", test_hold_untimed);
    g_test_add_func("/xen/release-again", test_release_again);
    g_test_add_func("/xen/release-multicall-fails", test_release_multicall_fails);
    g_test_add_func("/xen/hold-fails-after-pause", test_hold_fails_after_pause);
    g_test_add_func("/xen/every-call-fails", test_every_call_fails);
    g_test_add_func("/xen/context-missing", test_context_missing);
    g_test_add_func("/xen/idle-stacks", test_idle_stacks);
    g_test_add_func("/xen/paused-by-others", test_paused_by_others);
    g_test_add_func("/xen/crashed", test_crashed);
    g_test_add_func("/xen/memory", test_memory);
    g_test_add_func("/xen/memory-is-unmapped", test_memory_is_unmapped);
    g_test_add_func("/xen/memory-fails-to-map", test_memory_fails_to_map);
    g_test_add_func("/xen/memory-is-bounded", test_memory_is_bounded);
    g_test_add_func("/xen/paravirtual", test_paravirtual);
    g_test_add_func("/xen/find", test_find);
    return g_test_run();
}
