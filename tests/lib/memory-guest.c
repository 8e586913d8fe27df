/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory-guest.h"

#include <string.h>
#include <sys/mman.h>

#include "uprof/clock.h"

_Thread_local bool memory_guest_in_hold;

static MemoryPlan next_plan;
static MemoryTally *tally;

static MemoryGuest *
as_memory(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &memory_guest_ops);
    return (MemoryGuest *)guest;
}

static UprofAnswer
fail(GError **error, const char *what)
{
    const bool in_hold = memory_guest_in_hold;

    /* the error may be allocated in a hold, because an unexpected failure ends the hold */
    memory_guest_in_hold = false;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "scripted failure of %s", what);
    memory_guest_in_hold = in_hold;
    return UPROF_FAILED;
}

static UprofAnswer
answer(MemoryGuest *guest, MemoryCall call, GError **error)
{
    static const char *const names[] = {
        [MEMORY_VET] = "vet",         [MEMORY_HOLD] = "hold",
        [MEMORY_RELEASE] = "release", [MEMORY_READ_REGS] = "read_regs",
        [MEMORY_READ] = "read",       [MEMORY_RESCUE] = "rescue",
        [MEMORY_POLL] = "poll",       [MEMORY_RELEASE_LATE] = "release_late",
    };
    const gint n = g_atomic_int_add(&guest->tally->calls[call], 1) + 1;

    if (guest->hook)
        guest->hook(guest, call, n);
    for (unsigned i = 0; i < guest->n_rules; i++) {
        const MemoryRule *rule = &guest->rules[i];
        if (rule->call != call || n < rule->first || n > rule->last)
            continue;
        return rule->answer == UPROF_FAILED ? fail(error, names[call]) : rule->answer;
    }
    return UPROF_OK;
}

static UprofGuest *
memory_open(const UprofTarget *target, GError **error)
{
    MemoryGuest *guest = g_new0(MemoryGuest, 1);

    guest->base.n_vcpus = next_plan.n_vcpus;
    guest->base.grain = next_plan.grain;
    guest->base.slow_reads = next_plan.slow_reads;
    guest->base.paused = next_plan.paused;
    guest->base.needs_roots = next_plan.needs_roots;
    guest->base.arch = uprof_arch_find(next_plan.arch ? next_plan.arch : "x86_64");
    guest->ram_len = next_plan.ram_len;
    guest->ram = g_malloc0(MAX(guest->ram_len, 1));
    guest->regs = g_new0(UprofRegs, next_plan.n_vcpus);
    guest->is_absent = g_new0(bool, next_plan.n_vcpus);
    guest->vets = g_new0(gint, next_plan.n_vcpus);
    guest->stops = g_new0(gint, next_plan.n_vcpus);
    guest->lost_ns = g_new0(uint64_t, next_plan.n_vcpus);
    guest->tally = tally;
    if (next_plan.rescue.last > 0)
        guest->rules[guest->n_rules++] = next_plan.rescue;
    for (unsigned i = 0; i < next_plan.n_vcpus; i++)
        guest->regs[i].word_bytes = 8;
    return &guest->base;
}

static void
memory_close(UprofGuest *base)
{
    MemoryGuest *guest = as_memory(base);

    g_assert_null(guest->begun);
    g_free(guest->ram);
    g_free(guest->regs);
    g_free(guest->is_absent);
    g_free(guest->vets);
    g_free(guest->stops);
    g_free(guest->lost_ns);
    g_free(guest);
}

static UprofAnswer
memory_vet(UprofGuest *base, unsigned vcpu, GError **error)
{
    MemoryGuest *guest = as_memory(base);

    guest->vcpu = vcpu;
    const UprofAnswer said = answer(guest, MEMORY_VET, error);
    return said == UPROF_OK ? (UprofAnswer)g_atomic_int_get(&guest->vets[vcpu]) : said;
}

static UprofAnswer
memory_hold(UprofGuest *base, unsigned vcpu, GError **error)
{
    MemoryGuest *guest = as_memory(base);

    guest->vcpu = vcpu;
    g_assert_false(memory_guest_in_hold);
    g_assert_cmpint(g_atomic_int_get(&guest->tally->is_held), ==, 0);
    UprofAnswer said = answer(guest, MEMORY_HOLD, error);
    if (said == UPROF_OK)
        said = (UprofAnswer)g_atomic_int_get(&guest->stops[vcpu]);
    if (guest->hold_ns > 0)
        uprof_clock_sleep_until(uprof_clock_now_ns() + guest->hold_ns);
    if (said != UPROF_OK) {
        guest->lost_ns[vcpu] += guest->failed_ns;
        return said;
    }
    g_atomic_int_inc(&guest->tally->holds);
    g_atomic_int_set(&guest->tally->held_vcpu, (gint)vcpu);
    g_atomic_int_set(&guest->tally->is_held, 1);
    memory_guest_in_hold = true;
    return UPROF_OK;
}

/* Asserts that @vcpu, which the caller releases or reads, is held. */
static void
check_held(const MemoryGuest *guest, unsigned vcpu)
{
    g_assert_cmpint(g_atomic_int_get(&guest->tally->is_held), ==, 1);
    if (guest->base.grain == UPROF_GRAIN_VCPU)
        g_assert_cmpint(g_atomic_int_get(&guest->tally->held_vcpu), ==, (gint)vcpu);
}

static UprofAnswer
memory_release(UprofGuest *base, unsigned vcpu, GError **error)
{
    MemoryGuest *guest = as_memory(base);

    guest->vcpu = vcpu;
    memory_guest_in_hold = false;
    check_held(guest, vcpu);
    g_atomic_int_inc(&guest->tally->releases);
    const UprofAnswer said = answer(guest, MEMORY_RELEASE, error);
    g_atomic_int_set(&guest->tally->is_held, 0);
    return said;
}

static UprofAnswer
memory_read_regs(UprofGuest *base, unsigned vcpu, UprofRegs *regs, GError **error)
{
    MemoryGuest *guest = as_memory(base);

    guest->vcpu = vcpu;
    if (base->grain != UPROF_GRAIN_NONE && !base->paused)
        check_held(guest, vcpu);
    if (guest->is_absent[vcpu])
        return UPROF_ABSENT;
    const UprofAnswer said = answer(guest, MEMORY_READ_REGS, error);
    if (said == UPROF_OK)
        *regs = guest->regs[vcpu];
    return said;
}

static bool
has_ram(const MemoryGuest *guest, uint64_t gpa, uint64_t len)
{
    uint64_t offset, end;

    if (__builtin_sub_overflow(gpa, guest->ram_gpa, &offset) ||
        __builtin_add_overflow(offset, len, &end) || end > guest->ram_len)
        return false;
    return gpa >= guest->hole_end || gpa + len <= guest->hole;
}

static void
read_spans(MemoryGuest *guest, UprofSpan *spans, unsigned n)
{
    answer(guest, MEMORY_READ, NULL);
    guest->first_gpa = spans[0].gpa;
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(spans[i].len, >, 0);
        g_atomic_int_inc(&guest->tally->spans);
        g_atomic_int_add(&guest->tally->bytes, (gint)spans[i].len);
        spans[i].missing = !has_ram(guest, spans[i].gpa, spans[i].len);
        if (!spans[i].missing)
            memcpy(spans[i].into, guest->ram + (spans[i].gpa - guest->ram_gpa), spans[i].len);
        else
            memset(spans[i].into, 0xa5, spans[i].len); /* undefined: callers must not use it */
    }
}

static void
memory_end_read(UprofGuest *base)
{
    MemoryGuest *guest = as_memory(base);
    UprofSpan *spans = g_steal_pointer(&guest->begun);

    if (spans)
        read_spans(guest, spans, guest->n_begun);
}

static void
memory_read(UprofGuest *base, UprofLane lane, UprofSpan *spans, unsigned n)
{
    memory_end_read(base); /* answers come in the order of requests */
    read_spans(as_memory(base), spans, n);
}

/* Until the end of the read, its bytes are undefined. */
static void
memory_begin_read(UprofGuest *base, UprofSpan *spans, unsigned n)
{
    MemoryGuest *guest = as_memory(base);

    memory_end_read(base);
    guest->begun = spans;
    guest->n_begun = n;
    for (unsigned i = 0; i < n; i++) {
        memset(spans[i].into, 0xa5, spans[i].len);
        spans[i].missing = i % 2;
    }
}

static void
memory_poll(UprofGuest *base)
{
    answer(as_memory(base), MEMORY_POLL, NULL);
}

/* Ends all late stops, unless a rule gives another answer. */
static void
memory_release_late(UprofGuest *base)
{
    g_assert_false(memory_guest_in_hold);
    if (answer(as_memory(base), MEMORY_RELEASE_LATE, NULL) == UPROF_OK)
        g_atomic_int_set(&base->has_late_stops, 0);
}

static uint64_t
memory_take_lost_ns(UprofGuest *base, unsigned vcpu)
{
    MemoryGuest *guest = as_memory(base);
    const uint64_t lost_ns = guest->lost_ns[vcpu];

    g_assert_false(memory_guest_in_hold);
    guest->lost_ns[vcpu] = 0;
    return lost_ns;
}

static bool
memory_rescue(UprofGuest *base, bool asked, GError **error)
{
    MemoryGuest *guest = as_memory(base);

    guest->tally->asked = asked;
    if (answer(guest, MEMORY_RESCUE, error) != UPROF_OK)
        return false;
    g_atomic_int_set(&guest->tally->is_held, 0);
    return true;
}

static bool
memory_ask_translation(UprofGuest *base, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    MemoryGuest *guest = as_memory(base);

    g_assert_cmpint(g_atomic_int_get(&guest->tally->is_held), ==, 0);
    return guest->translation && guest->translation(guest, vcpu, gva, gpa);
}

const UprofGuestOps memory_guest_ops = {
    .name = "memory",
    .open = memory_open,
    .close = memory_close,
    .vet = memory_vet,
    .hold = memory_hold,
    .release = memory_release,
    .read_regs = memory_read_regs,
    .read = memory_read,
    .ask_translation = memory_ask_translation,
    .begin_read = memory_begin_read,
    .end_read = memory_end_read,
    .poll = memory_poll,
    .release_late = memory_release_late,
    .take_lost_ns = memory_take_lost_ns,
    .rescue = memory_rescue,
};

void
memory_guest_plan(const MemoryPlan *plan)
{
    /* never unmapped: guests that are still open, here or in a guardian, may use the last tally */
    tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert(tally != MAP_FAILED);
    memory_guest_in_hold = false;
    next_plan = *plan;
}

MemoryTally *
memory_guest_tally(void)
{
    return tally;
}

MemoryGuest *
memory_guest_open(const MemoryPlan *plan)
{
    const UprofTarget target = { .name = "memory", .id = 1, .marker = plan->marker };
    g_autoptr(GError) error = NULL;

    memory_guest_plan(plan);
    UprofGuest *guest = uprof_guest_open(&memory_guest_ops, &target, &error);
    g_assert_no_error(error);
    g_assert_nonnull(guest);
    return as_memory(guest);
}

void
memory_guest_close(MemoryGuest *guest)
{
    if (!guest)
        return;
    g_assert_cmpint(guest->tally->holds, ==, guest->tally->releases);
    uprof_guest_close(&guest->base);
}

void
memory_guest_rule(MemoryGuest *guest, MemoryCall call, gint first, gint last, UprofAnswer said)
{
    g_assert(guest->n_rules < MEMORY_RULES_MAX);
    guest->rules[guest->n_rules++] = (MemoryRule){ call, first, last, said };
}

void
memory_guest_put(MemoryGuest *guest, uint64_t gpa, const void *bytes, size_t len)
{
    g_assert(gpa >= guest->ram_gpa && gpa - guest->ram_gpa + len <= guest->ram_len);
    memcpy(guest->ram + (gpa - guest->ram_gpa), bytes, len);
}

void
memory_guest_put_u64(MemoryGuest *guest, uint64_t gpa, uint64_t value)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    memory_guest_put(guest, gpa, &bytes, sizeof(bytes));
}

void
memory_guest_put_u32(MemoryGuest *guest, uint64_t gpa, uint32_t value)
{
    const uint32_t bytes = GUINT32_TO_LE(value);

    memory_guest_put(guest, gpa, &bytes, sizeof(bytes));
}

void
memory_guest_identity(MemoryGuest *guest, unsigned vcpu, uint64_t pc, uint64_t sp, uint64_t fp)
{
    guest->regs[vcpu] = (UprofRegs){ .pc = pc, .sp = sp, .fp = fp, .word_bytes = 8 };
}
