/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access `xen`: Xen itself pauses the whole domain. A hold is one hypercall (the pause, and
 * the registers of all vCPUs that run), a copy from memory that is already mapped, and one
 * more hypercall (the unpause). libvirt is not asked: its suspend goes through the device
 * model, takes milliseconds, and other tools see it.
 *
 * Xen could copy a stack itself in the hypercall that pauses, as for the debugger gdbsx. But
 * Debian builds Xen without this function. The function also walks the guest's page tables like
 * the processor, and marks their entries as accessed.
 *
 * Xen counts pauses. virt-uprof makes one unpause for each pause of its own that succeeded,
 * and no other. So a pause by somebody else stays, whenever it begins.
 *
 * Guests on Xen for ARM would need a parser of registers and page-table walks. The calls and
 * the mappings are the same.
 */
#include "uprof/xen-module.h"

#include "uprof/clock.h"
#include "uprof/text.h"
#include "xen-call-priv.h"
#include "xen-map-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xenstore.h>

enum {
    SEGMENTS_MAX = 16,
    CPU_KEEP_MS = 1000, /* hvm_hw_cpu changes with the mode of a vCPU, not with every sample */
    MAP_KEEP_S = 120,
    LOOK_KEEP_MS = 2, /* see may_look_in_hold() */
    RAN_ON_MS = 1000, /* a hold is shorter; a person who pauses a domain takes longer */
    RELEASE_TRIES = 100,
    RELEASE_STEP_US = 1000,
    DOMID_FIRST_RESERVED = 0x7ff0, /* Xen, xen/include/public/xen.h */
};

/* A context has only the selector of a code segment. hvm_hw_cpu has the meaning of the selector. */
typedef struct {
    uint16_t cs;
    UprofX86Segments segments;
} CodeSegment;

typedef struct {
    UprofXenHvmCpu cpu;
    uint64_t cpu_ns;       /* monotonic: when @cpu was read; 0: @cpu must be read */
    bool has_cpu;          /* the last read of @cpu succeeded */
    uint64_t held_time_ns; /* CPU time of the vCPU at its last hold */
    bool was_held;
} Vcpu;

typedef struct {
    UprofGuest base;
    UprofXenCall *call;
    UprofXenMap *map;
    int domid;
    char *name; /* owned; safe to print */
    uint8_t uuid[16];
    bool is_hvm;
    bool idle_stacks;
    unsigned word_bytes; /* of a PV guest */
    Vcpu *vcpus;
    UprofXenRun *runs;
    bool *wanted; /* owned, per vCPU: a hold copies its context */
    CodeSegment segments[SEGMENTS_MAX];
    unsigned n_segments;
    bool was_held;
    uint64_t looked_ns; /* monotonic: when Xen reported @runs; 0: ask again */
    bool looks_in_hold; /* the next hold asks for @runs, too */
    uint64_t lost_ns;   /* time in holds that were undone, because the domain did not run */

    gint must_remap;    /* atomic: the poller tells the sampler to drop its mappings */
    uint64_t tot_pages; /* the poller's: memory of the domain when mappings were dropped last */
    uint64_t mapped_ns; /* the poller's, monotonic: time of that drop */
} XenGuest;

static const UprofGuestOps ops;

static XenGuest *
as_xen(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &ops);
    return (XenGuest *)guest;
}

static void
xen_close(UprofGuest *guest)
{
    XenGuest *xen = as_xen(guest);

    uprof_xen_map_free(xen->map);
    uprof_xen_call_close(xen->call);
    g_free(xen->name);
    g_free(xen->vcpus);
    g_free(xen->runs);
    g_free(xen->wanted);
    g_free(xen);
}

/* Returns: false unless @text is a UUID */
static bool
read_uuid(const char *text, uint8_t uuid[16])
{
    unsigned n = 0;

    if (!g_uuid_string_is_valid(text))
        return false;
    for (const char *at = text; *at && n < 16; at += 2) {
        if (*at == '-')
            at++;
        uuid[n++] = (uint8_t)(g_ascii_xdigit_value(at[0]) << 4 | g_ascii_xdigit_value(at[1]));
    }
    return true;
}

/* Xen reuses the numbers of ended domains, so the UUID is compared, too. */
static bool
is_ours(const XenGuest *xen, const UprofXenInfo *info)
{
    return memcmp(info->uuid, xen->uuid, sizeof(xen->uuid)) == 0;
}

static bool
fail_gone(const XenGuest *xen, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                "domain '%s' has ended: Xen has no domain %d of its UUID any more; see: xl list",
                xen->name, xen->domid);
    return false;
}

static bool
check_state(XenGuest *xen, const UprofXenInfo *info, const UprofTarget *target, GError **error)
{
    const bool has_crashed =
        info->flags.shut_down && info->flags.shutdown_reason == UPROF_XEN_SHUTDOWN_CRASH;

    if (info->flags.dying || (info->flags.shut_down && !(has_crashed && target->may_be_paused))) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' has shut down, or is being saved; it can be sampled when it runs",
                    xen->name);
        return false;
    }
    xen->base.paused = info->flags.paused || has_crashed;
    if (!xen->base.paused || target->may_be_paused)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                "domain '%s' is paused, not by virt-uprof; resume it first: "
                "virsh resume %s, or if xl has paused it: xl unpause %d",
                xen->name, uprof_text_shell_word(target->name, target->uuid), xen->domid);
    return false;
}

static bool
connect_xen(XenGuest *xen, const UprofTarget *target, UprofXenInfo *info, GError **error)
{
    if (xen->domid <= 0 || xen->domid >= DOMID_FIRST_RESERVED) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "domain '%s' cannot be sampled: %s", xen->name,
                    xen->domid == 0 ? "it is dom0, in which this program itself runs"
                                    : "it has no number");
        return false;
    }
    xen->call = uprof_xen_call_open(xen->domid, xen->name, error);
    if (!xen->call)
        return false;
    const int number = uprof_xen_call_info(xen->call, info);
    if (number != 0 || !read_uuid(target->uuid, xen->uuid) || !is_ours(xen, info))
        return fail_gone(xen, error);
    return true;
}

/* Called outside holds: Xen stops the vCPU for a moment. */
static void
ask_cpu(XenGuest *xen, unsigned vcpu)
{
    Vcpu *own = &xen->vcpus[vcpu];
    UprofSlice record;

    own->has_cpu = uprof_xen_call_hvm_cpu(xen->call, vcpu, &record) == 0 &&
                   uprof_xen_hvm_cpu_parse(record, &own->cpu, NULL);
    own->cpu_ns = own->has_cpu ? uprof_clock_now_ns() : 0;
    if (!own->has_cpu)
        return;
    for (unsigned i = 0; i < xen->n_segments; i++) {
        if (xen->segments[i].cs != own->cpu.cs)
            continue;
        xen->segments[i].segments = own->cpu.segments;
        return;
    }
    /* usual guests have fewer code segments; a further segment replaces the first */
    const unsigned index = xen->n_segments < SEGMENTS_MAX ? xen->n_segments++ : 0;
    xen->segments[index] = (CodeSegment){ own->cpu.cs, own->cpu.segments };
}

static bool
attach_guest(XenGuest *xen, const UprofTarget *target, const UprofXenInfo *info, GError **error)
{
    if (!check_state(xen, info, target, error))
        return false;
    xen->is_hvm = info->flags.hvm;
    xen->tot_pages = info->tot_pages;
    xen->idle_stacks = target->idle_stacks;
    xen->base.arch = target->arch ? target->arch : uprof_arch_find("x86_64");
    xen->base.grain = UPROF_GRAIN_GUEST;
    xen->base.n_vcpus = info->n_vcpus;
    xen->base.maps_outside_holds = true;
    xen->base.measures_holds = true;
    if (info->n_vcpus == 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' has no vCPU yet: it is being built", xen->name);
        return false;
    }
    xen->vcpus = g_new0(Vcpu, info->n_vcpus);
    xen->runs = g_new0(UprofXenRun, info->n_vcpus);
    xen->wanted = g_new0(bool, info->n_vcpus);
    if (!xen->is_hvm) {
        const int number = uprof_xen_call_word_bytes(xen->call, &xen->word_bytes);
        if (number != 0) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                        "domain '%s': Xen does not tell whether the guest is 32-bit or 64-bit: %s",
                        xen->name, g_strerror(number));
            return false;
        }
    }
    xen->map = uprof_xen_map_new(xen->domid, error);
    xen->mapped_ns = uprof_clock_now_ns();
    return xen->map && uprof_xen_call_reserve(xen->call, info->n_vcpus, error);
}

static UprofGuest *
xen_open(const UprofTarget *target, GError **error)
{
    XenGuest *xen = g_new0(XenGuest, 1);
    UprofXenInfo info;

    xen->domid = target->id;
    xen->name = uprof_text_quote(target->name);
    if (connect_xen(xen, target, &info, error) &&
        (target->rescue_only || attach_guest(xen, target, &info, error)))
        return &xen->base;
    xen_close(&xen->base);
    return NULL;
}

/* Xen cannot free a dead domain while one of its pages is mapped. */
static UprofAnswer
end_guest(XenGuest *xen)
{
    uprof_xen_map_end(xen->map);
    return UPROF_GONE;
}

static UprofAnswer
fail_call(const XenGuest *xen, const char *what, int number, GError **error)
{
    g_set_error(error, UPROF_ERROR,
                number == EPERM || number == EACCES ? UPROF_ERROR_DENIED : UPROF_ERROR_FAILED,
                "domain '%s': Xen does not %s: %s", xen->name, what, g_strerror(number));
    return UPROF_FAILED;
}

static UprofAnswer
report_busy(XenGuest *xen, UprofHindrance hindrance)
{
    g_atomic_int_set(&xen->base.hindrance, (gint)hindrance);
    return UPROF_BUSY;
}

/* Is the vCPU's context superfluous: is the vCPU offline, or blocked with no new stack? */
static bool
is_at_rest(const XenGuest *xen, unsigned vcpu)
{
    const Vcpu *own = &xen->vcpus[vcpu];
    const UprofXenRun *run = &xen->runs[vcpu];

    return !run->online || (run->blocked && (!xen->idle_stacks ||
                                             (own->was_held && own->held_time_ns == run->time_ns)));
}

/* Is hvm_hw_cpu of the vCPU old? It may also be newer than @now_ns, the beginning of a tick. */
static bool
is_old_cpu(const XenGuest *xen, unsigned vcpu, uint64_t now_ns)
{
    return now_ns > xen->vcpus[vcpu].cpu_ns + CPU_KEEP_MS * UPROF_NS_PER_MS;
}

/* Reads hvm_hw_cpu again where it may have changed. PV guests have none. */
static void
refresh_cpus(XenGuest *xen, uint64_t now_ns)
{
    for (unsigned vcpu = 0; xen->is_hvm && vcpu < xen->base.n_vcpus; vcpu++)
        if (!is_at_rest(xen, vcpu) && is_old_cpu(xen, vcpu, now_ns))
            ask_cpu(xen, vcpu);
}

static bool
is_all_at_rest(const XenGuest *xen)
{
    for (unsigned vcpu = 0; vcpu < xen->base.n_vcpus; vcpu++)
        if (!is_at_rest(xen, vcpu))
            return false;
    return true;
}

static bool
any_is_at_rest(const XenGuest *xen)
{
    for (unsigned vcpu = 0; vcpu < xen->base.n_vcpus; vcpu++)
        if (is_at_rest(xen, vcpu))
            return true;
    return false;
}

static bool
has_old_cpu(const XenGuest *xen, uint64_t now_ns)
{
    for (unsigned vcpu = 0; xen->is_hvm && vcpu < xen->base.n_vcpus; vcpu++)
        if (is_old_cpu(xen, vcpu, now_ns))
            return true;
    return false;
}

/*
 * A hypercall of its own for the check takes a tenth of a sample. At a high rate, and if all vCPUs
 * ran at the last tick, the hypercall that pauses asks for the state before the pause, too. If the
 * domain did not run, the pause is undone at once. A guest that has just become idle is held once.
 */
static bool
may_look_in_hold(const XenGuest *xen, uint64_t now_ns)
{
    return xen->was_held && xen->looked_ns > 0 &&
           now_ns - xen->looked_ns < LOOK_KEEP_MS * UPROF_NS_PER_MS && !any_is_at_rest(xen) &&
           !has_old_cpu(xen, now_ns);
}

/* May the domain be held? */
static bool
is_running(const XenGuest *xen, const UprofXenInfo *info)
{
    return is_ours(xen, info) && !info->flags.dying && !info->flags.shut_down &&
           !info->flags.paused;
}

/*
 * Rates the state that Xen has just reported.
 * @number: 0, or the errno of the report
 *
 * Returns: %UPROF_OK if the domain runs, or why it cannot be held
 */
static UprofAnswer
rate_state(XenGuest *xen, const UprofXenInfo *info, int number, uint64_t now_ns, GError **error)
{
    if (number == 0 && is_running(xen, info)) {
        g_atomic_int_set(&xen->base.hindrance, UPROF_HINDRANCE_NONE);
        xen->looked_ns = now_ns;
        uprof_marker_set_ran(xen->base.marker, info->cpu_ns, now_ns);
        return UPROF_OK;
    }
    xen->looked_ns = 0;
    if (number == ESRCH || (number == 0 && (info->flags.dying || !is_ours(xen, info))))
        return end_guest(xen);
    if (number != 0)
        return fail_call(xen, "report its state", number, error);
    if (info->flags.shut_down)
        return info->flags.shutdown_reason == UPROF_XEN_SHUTDOWN_SUSPEND
                   ? report_busy(xen, UPROF_HINDRANCE_JOB)
                   : end_guest(xen);
    return report_busy(xen, UPROF_HINDRANCE_PAUSED);
}

static UprofAnswer
xen_vet(UprofGuest *guest, unsigned vcpu, GError **error)
{
    XenGuest *xen = as_xen(guest);
    const uint64_t now_ns = guest->ticked_ns > 0 ? guest->ticked_ns : uprof_clock_now_ns();
    UprofXenInfo info;

    if (g_atomic_int_compare_and_exchange(&xen->must_remap, 1, 0))
        uprof_xen_map_drop(xen->map, UPROF_LANE_SAMPLER);
    xen->looks_in_hold = guest->ticked_ns > 0 && may_look_in_hold(xen, now_ns);
    if (xen->looks_in_hold)
        return UPROF_OK;
    const int number = uprof_xen_call_read_info(xen->call, &info, xen->runs);
    const UprofAnswer answer = rate_state(xen, &info, number, now_ns, error);
    if (answer != UPROF_OK)
        return answer;
    /* the first hold happens even if all vCPUs rest, because it shows which ones exist */
    if (xen->was_held && is_all_at_rest(xen))
        return UPROF_IDLE;
    refresh_cpus(xen, now_ns);
    return UPROF_OK;
}

static void
choose_contexts(XenGuest *xen)
{
    for (unsigned vcpu = 0; vcpu < xen->base.n_vcpus; vcpu++)
        xen->wanted[vcpu] = !is_at_rest(xen, vcpu);
}

/* Returns: 0, or the errno of the last try */
static int
unpause_guest(XenGuest *xen)
{
    int number = uprof_xen_call_unpause_timed(xen->call);

    /* after these failures a retry may succeed, because Xen has not unpaused the domain */
    for (unsigned tries = 0;
         (number == EINTR || number == EAGAIN || number == ENOMEM) && tries < RELEASE_TRIES;
         tries++) {
        g_usleep(RELEASE_STEP_US);
        number = uprof_xen_call_unpause(xen->call);
    }
    return number;
}

/* Rates the state just before the pause. If the domain did not run, the pause is undone. */
static UprofAnswer
review_hold(XenGuest *xen, GError **error)
{
    UprofXenInfo info;
    g_autoptr(GError) failure = NULL;

    const int state = uprof_xen_call_looked(xen->call, &info, xen->runs);
    const bool runs = state == 0 && is_running(xen, &info);
    const int number = runs ? 0 : unpause_guest(xen);
    const UprofAnswer answer = rate_state(xen, &info, state, xen->base.ticked_ns, &failure);
    if (runs) {
        for (unsigned vcpu = 0; vcpu < xen->base.n_vcpus; vcpu++)
            xen->wanted[vcpu] = xen->wanted[vcpu] && !is_at_rest(xen, vcpu);
        return answer;
    }
    xen->lost_ns += uprof_xen_call_paused_ns(xen->call);
    if (number == 0 || number == EINVAL || number == ESRCH)
        /* without a report, the next tick asks again */
        return answer == UPROF_FAILED ? UPROF_BUSY : answer;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "domain '%s': Xen does not unpause it: %s",
                xen->name, g_strerror(number));
    return UPROF_FAILED;
}

static UprofAnswer
xen_hold(UprofGuest *guest, unsigned vcpu, GError **error)
{
    XenGuest *xen = as_xen(guest);

    choose_contexts(xen);
    const int number = uprof_xen_call_contexts(xen->call, true, xen->looks_in_hold, xen->wanted);
    if (number == 0)
        return xen->looks_in_hold ? review_hold(xen, error) : UPROF_OK;
    xen->looked_ns = 0;
    if (number == ESRCH)
        return end_guest(xen);
    if (number == EPERM || number == EACCES)
        return fail_call(xen, "pause it", number, error);
    if (number == EINPROGRESS)
        return fail_call(xen, "say whether it is paused now", number, error);
    return UPROF_BUSY; /* nothing was done; the next hold may succeed */
}

static UprofAnswer
xen_release(UprofGuest *guest, unsigned vcpu, GError **error)
{
    XenGuest *xen = as_xen(guest);
    const int number = unpause_guest(xen);

    guest->last_hold_ns = uprof_xen_call_paused_ns(xen->call);
    xen->was_held = true;
    for (unsigned i = 0; i < guest->n_vcpus; i++) {
        xen->vcpus[i].was_held |= xen->wanted[i];
        if (xen->wanted[i])
            xen->vcpus[i].held_time_ns = xen->runs[i].time_ns;
    }
    /* EINVAL: the domain is not paused, because somebody else has made one unpause too many */
    if (number == 0 || number == EINVAL)
        return UPROF_OK;
    if (number == ESRCH)
        return end_guest(xen);
    return fail_call(xen, "unpause it", number, error);
}

/* Returns: (nullable): the segments of selector @cs; NULL if hvm_hw_cpu has not shown them yet */
static const UprofX86Segments *
find_segments(const XenGuest *xen, uint16_t cs)
{
    for (unsigned i = 0; i < xen->n_segments; i++)
        if (xen->segments[i].cs == cs)
            return &xen->segments[i].segments;
    return NULL;
}

/*
 * In an unknown mode of the vCPU, addresses have no meaning, so @smm prevents a copy of the stack.
 */
static bool
parse_hvm(XenGuest *xen, unsigned vcpu, UprofSlice context, UprofRegs *regs, GError **error)
{
    Vcpu *own = &xen->vcpus[vcpu];
    UprofXenHvmCpu cpu = own->cpu;
    uint16_t cs;

    if (!uprof_xen_hvm_regs_parse(context, &cpu, regs, &cs, error))
        return false;
    const bool fits = own->has_cpu && uprof_xen_hvm_cpu_fits(&cpu, regs);
    if (!fits || !(regs->sys[UPROF_X86_CR0] & UPROF_X86_CR0_PG))
        own->cpu_ns = 0; /* the vCPU changes its mode, or has just changed it */
    regs->smm = !fits;
    if (!fits || cs == cpu.cs)
        return true;
    const UprofX86Segments *segments = find_segments(xen, cs);
    if (segments)
        cpu.segments = *segments;
    else
        own->cpu_ns = 0;
    return uprof_xen_hvm_regs_parse(context, &cpu, regs, NULL, error);
}

/* Reads the contexts of a guest that somebody else has paused. */
static UprofAnswer
look_at_paused(XenGuest *xen, GError **error)
{
    UprofXenInfo info;
    int number = uprof_xen_call_read_info(xen->call, &info, xen->runs);

    for (unsigned vcpu = 0; number == 0 && vcpu < xen->base.n_vcpus; vcpu++) {
        xen->wanted[vcpu] = xen->runs[vcpu].online;
        if (xen->is_hvm && xen->wanted[vcpu])
            ask_cpu(xen, vcpu);
    }
    if (number == 0)
        number = uprof_xen_call_contexts(xen->call, false, false, xen->wanted);
    if (number == ESRCH)
        return end_guest(xen);
    return number == 0 ? UPROF_OK : fail_call(xen, "show its registers", number, error);
}

static UprofAnswer
xen_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error)
{
    XenGuest *xen = as_xen(guest);
    UprofSlice context;

    if (!guest->held) {
        const UprofAnswer answer = look_at_paused(xen, error);
        if (answer != UPROF_OK)
            return answer;
    }
    if (!xen->runs[vcpu].online)
        return UPROF_ABSENT;
    if (!xen->wanted[vcpu]) {
        *regs = (UprofRegs){ .halted = true };
        return UPROF_OK;
    }
    const size_t len = !xen->is_hvm && xen->word_bytes == 4 ? UPROF_XEN_NARROW_CONTEXT_BYTES
                                                            : UPROF_XEN_CONTEXT_BYTES;
    const int number = uprof_xen_call_context(xen->call, vcpu, len, &context);
    if (number == ENODATA || number == EINVAL)
        return UPROF_ABSENT;
    if (number == ESRCH)
        return UPROF_GONE;
    if (number != 0)
        return fail_call(xen, "show its registers", number, error);
    if (!(xen->is_hvm ? parse_hvm(xen, vcpu, context, regs, error)
                      : uprof_xen_pv_regs_parse(context, xen->word_bytes, regs, error)))
        return UPROF_FAILED;
    regs->halted |= xen->runs[vcpu].blocked;
    return UPROF_OK;
}

static uint64_t
xen_take_lost_ns(UprofGuest *guest, unsigned vcpu)
{
    XenGuest *xen = as_xen(guest);
    const uint64_t lost_ns = xen->lost_ns;

    xen->lost_ns = 0;
    return lost_ns;
}

static void
xen_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    const bool may_map = lane == UPROF_LANE_WORKER || !guest->held;

    uprof_xen_map_read(as_xen(guest)->map, lane, may_map, spans, n);
}

/* Pages that the guest has returned to Xen must not stay mapped for long. */
static void
xen_poll(UprofGuest *guest)
{
    XenGuest *xen = as_xen(guest);
    const uint64_t now_ns = uprof_clock_now_ns();
    UprofXenInfo info;

    const int number = uprof_xen_call_info(xen->call, &info);
    if (number == ESRCH || (number == 0 && (info.flags.dying || !is_ours(xen, &info)))) {
        end_guest(xen);
        return;
    }
    if (number != 0 ||
        (info.tot_pages == xen->tot_pages && now_ns - xen->mapped_ns < MAP_KEEP_S * UPROF_NS_PER_S))
        return;
    xen->tot_pages = info.tot_pages;
    xen->mapped_ns = now_ns;
    uprof_xen_map_drop(xen->map, UPROF_LANE_WORKER);
    g_atomic_int_set(&xen->must_remap, 1);
}

static void
xen_facts(UprofGuest *guest, UprofGuestFacts *facts)
{
    *facts = (UprofGuestFacts){
        .n_ranges = 1,
        .ram_bytes = as_xen(guest)->tot_pages * 4096,
        .reads = "mapping it",
    };
}

/*
 * Has the domain run since the hold that the marker flags? The marker has the domain's CPU time
 * at the last check. Every vCPU may have run from this check until the stop was asked for, and
 * for RAN_ON_MS until the pause. If the domain has had more CPU time than that, it has run since
 * the hold.
 */
static bool
has_run_on(const XenGuest *xen, const UprofXenInfo *info)
{
    uint64_t looked_ns = 0, asked_ns = 0;

    if (!xen->base.marker)
        return false;
    const uint64_t cpu_ns = uprof_marker_ran(xen->base.marker, &looked_ns);
    uprof_marker_held(xen->base.marker, &asked_ns);
    const uint64_t until_ns = asked_ns > looked_ns ? asked_ns - looked_ns : 0;
    return cpu_ns != 0 &&
           info->cpu_ns > cpu_ns + (until_ns + RAN_ON_MS * UPROF_NS_PER_MS) * info->n_vcpus;
}

/*
 * A hypercall of the dead process is complete or was never made, so there is nothing to wait
 * for. The domain ran when that process began. If the domain is paused now, the dead process has
 * paused it once. But if the domain has run since the hold, somebody else has paused it.
 */
static bool
xen_rescue(UprofGuest *guest, bool asked, GError **error)
{
    XenGuest *xen = as_xen(guest);
    UprofXenInfo info;

    int number = uprof_xen_call_info(xen->call, &info);
    if (number == ESRCH || (number == 0 && (info.flags.dying || !is_ours(xen, &info))))
        return true;
    if (number == 0 && (!info.flags.paused || has_run_on(xen, &info)))
        return true;
    if (number == 0)
        number = uprof_xen_call_unpause(xen->call);
    if (number == 0 || number == EINVAL || number == ESRCH)
        return true;
    fail_call(xen, "unpause it", number, error);
    return false;
}

/* xl and libvirt keep a domain's name in xenstore (Xen, docs/misc/xenstore-paths.pandoc). */
static void
read_name(int domid, UprofXenDomain *domain)
{
    g_autofree char *path = g_strdup_printf("/local/domain/%d/name", domid);
    struct xs_handle *store = xs_open(0);
    unsigned len = 0;
    char *name = store ? xs_read(store, XBT_NULL, path, &len) : NULL;

    if (name)
        g_strlcpy(domain->name, name, sizeof(domain->name));
    free(name);
    if (store)
        xs_close(store);
}

static bool
xen_find(int domid, UprofXenDomain *domain, GError **error)
{
    g_autofree char *shown = g_strdup_printf("domain %d", domid);
    g_autoptr(UprofXenCall) call = NULL;
    UprofXenInfo info;

    if (domid <= 0 || domid >= DOMID_FIRST_RESERVED) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "--domid %d: %s", domid,
                    domid == 0 ? "it is dom0, in which this program itself runs"
                               : "Xen gives no domain such a number");
        return false;
    }
    call = uprof_xen_call_open(domid, shown, error);
    if (!call)
        return false;
    const int number = uprof_xen_call_info(call, &info);
    if (number != 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s: Xen gives no information about the domain: %s; see: xl list", shown,
                    g_strerror(number));
        return false;
    }
    const uint8_t *u = info.uuid;
    *domain = (UprofXenDomain){ .n_vcpus = info.n_vcpus };
    g_snprintf(domain->uuid, sizeof(domain->uuid),
               "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
               u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
               u[15]);
    read_name(domid, domain);
    return true;
}

static const UprofGuestOps ops = {
    .name = "xen",
    .open = xen_open,
    .close = xen_close,
    .vet = xen_vet,
    .hold = xen_hold,
    .release = xen_release,
    .read_regs = xen_read_regs,
    .read = xen_read,
    .take_lost_ns = xen_take_lost_ns,
    .poll = xen_poll,
    .facts = xen_facts,
    .rescue = xen_rescue,
};

extern const UprofXenModule uprof_xen_module;
__attribute__((visibility("default"))) const UprofXenModule uprof_xen_module = {
    .abi = UPROF_XEN_MODULE_ABI,
    .ops = &ops,
    .find = xen_find,
};
