/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xen-call-priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xen/xen.h>
#include <xencall.h>
#include <xentoollog.h>

/* The domctls used (Xen, xen/include/public/domctl.h) */
enum {
    DOMCTL_PAUSE = 3,
    DOMCTL_UNPAUSE = 4,
    DOMCTL_INFO = 5,
    DOMCTL_CONTEXT = 13,
    DOMCTL_VCPU_INFO = 14,
    DOMCTL_ADDRESS_SIZE = 36,
    DOMCTL_HVM_PARTIAL = 55,
};

enum {
    VERSION_MIN = 0x12,    /* Xen 4.14 */
    VERSION_MAX = 0x18,    /* Xen 4.22 */
    VERSION_PROBED = 0x1f, /* newer versions, probed only for the message */
    HVM_SAVE_CPU = 2,      /* arch-x86/hvm/save.h */
    FLAG_DYING = 1 << 0,
    FLAG_HVM = 1 << 1,
    FLAG_SHUTDOWN = 1 << 2,
    FLAG_PAUSED = 1 << 3,
    SHUTDOWN_SHIFT = 16,
    PAGE_BYTES = 4096,
    HVM_RECORD_BYTES = 2048, /* hvm_hw_cpu, and room for what newer versions append */
};

typedef struct {
    uint16_t domain;
    uint16_t pad;
    uint32_t flags;
    uint64_t tot_pages;
    uint64_t unused[5];
    uint64_t cpu_ns;
    uint32_t n_online;
    uint32_t max_vcpu_id;
    uint32_t ssidref;
    uint8_t handle[16];
} InfoPart;

typedef struct {
    uint32_t vcpu;
    uint32_t pad;
    uint64_t context;
} ContextPart;

typedef struct {
    uint32_t vcpu;
    uint8_t online, blocked, running, pad;
    uint64_t time_ns;
    uint32_t cpu;
} VcpuPart;

typedef struct {
    uint32_t type;
    uint32_t instance;
    uint64_t len;
    uint64_t buffer;
} HvmPart;

typedef struct {
    uint32_t command;
    uint32_t version;
    uint16_t domain;
    uint16_t pad[3];
    union {
        InfoPart info;
        ContextPart context;
        VcpuPart vcpu;
        HvmPart hvm;
        uint32_t address_bits;
        uint8_t bytes[128];
    } part;
} Domctl;

G_STATIC_ASSERT(sizeof(Domctl) == 144);
G_STATIC_ASSERT(G_STRUCT_OFFSET(Domctl, part) == 16);
G_STATIC_ASSERT(G_STRUCT_OFFSET(InfoPart, cpu_ns) == 56);
G_STATIC_ASSERT(G_STRUCT_OFFSET(InfoPart, n_online) == 64);
G_STATIC_ASSERT(G_STRUCT_OFFSET(InfoPart, handle) == 76);
G_STATIC_ASSERT(G_STRUCT_OFFSET(VcpuPart, time_ns) == 8);

/* One call of a multicall (Xen, xen/include/public/xen.h) */
typedef struct {
    uint64_t op;
    int64_t result;
    uint64_t args[6];
} Entry;

G_STATIC_ASSERT(sizeof(Entry) == 64);

/*
 * The clock: Xen reports how long vCPU 0 of this program's domain has been in each of its states,
 * the present state included. The sum is the time since this vCPU was created (Xen,
 * xen/include/public/vcpu.h).
 */
enum { VCPUOP_RUNSTATE = 4, RUNSTATES = 4 };

typedef struct {
    int32_t state;
    uint64_t entered_ns;
    uint64_t times_ns[RUNSTATES];
} Runstate;

G_STATIC_ASSERT(sizeof(Runstate) == 48);

/* The result before the call. Xen never answers with this value. */
#define NO_RESULT INT64_MIN

/* The calls of one multicall. Entry I uses domctl I, unless it reads the clock. */
typedef struct {
    Entry *entries;
    Domctl *domctls;
} Batch;

struct _UprofXenCall {
    xencall_handle *handle;
    xentoollog_logger logger;
    char *name;
    uint16_t domid;
    uint32_t version;
    unsigned n_vcpus;

    /* buffers that Xen reads and writes */
    Domctl *single;  /* for the sampler's thread; in @fixed */
    Domctl *asking;  /* for uprof_xen_call_info(), which another thread may call; in @fixed */
    uint8_t *record; /* hvm_hw_cpu; in @fixed */
    void *fixed;     /* owned: memory of the three buffers above */
    void *area;      /* owned: memory of the batches, clocks and bytes below */
    size_t area_pages;
    Batch look;
    Batch contexts;
    Batch unpause;
    unsigned *index;  /* owned, per vCPU: its entry in @contexts; 0: it has none */
    Runstate *before; /* the clock before the pause; zeros if Xen did not write it */
    Runstate *after;  /* the clock before the unpause; zeros as for @before */
    uint8_t *bytes;   /* contexts: UPROF_XEN_CONTEXT_BYTES for each vCPU */
};

/* Without this logger the libraries print to stderr. errno has the same information. */
static void
log_nothing(xentoollog_logger *logger, xentoollog_level level, int errno_or_minus_1,
            const char *context, const char *format, va_list arguments)
{
}

static Domctl *
fill_domctl(const UprofXenCall *call, Domctl *domctl, uint32_t command)
{
    *domctl = (Domctl){ .command = command, .version = call->version, .domain = call->domid };
    return domctl;
}

/* Returns: 0 or errno */
static int
do_domctl(UprofXenCall *call, Domctl *domctl)
{
    return xencall1(call->handle, __HYPERVISOR_domctl, (uintptr_t)domctl) < 0 ? errno : 0;
}

static bool
fail_version(GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "this Xen supports none of the versions 0x%x to 0x%x of its control interface (Xen "
                "4.14 to 4.22), or its security policy refuses them; see: xl info",
                VERSION_MIN, VERSION_MAX);
    return false;
}

static bool
fail_number(const UprofXenCall *call, int number, GError **error)
{
    switch (number) {
    case ESRCH:
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s: Xen has no domain of number %u; see: xl list", call->name, call->domid);
        break;
    case EPERM:
    case EACCES:
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                    "%s: Xen denies access to domains: this needs root in dom0", call->name);
        break;
    default:
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "%s: Xen gives no information about the domain: %s", call->name,
                    g_strerror(number));
    }
    return false;
}

/*
 * If the domain does not exist, Xen 4.17 describes the next one (Xen, xen/common/domctl.c).
 *
 * Returns: 0, or ESRCH
 */
static int
check_number(const UprofXenCall *call, const Domctl *domctl)
{
    return domctl->part.info.domain == call->domid ? 0 : ESRCH;
}

static bool
find_version(UprofXenCall *call, GError **error)
{
    int number = EACCES;

    for (call->version = VERSION_MIN; call->version <= VERSION_PROBED; call->version++) {
        number = do_domctl(call, fill_domctl(call, call->single, DOMCTL_INFO));
        if (number != EACCES)
            break;
    }
    if (number == EACCES || (number == 0 && call->version > VERSION_MAX))
        return fail_version(error);
    if (number == 0)
        number = check_number(call, call->single);
    return number == 0 || fail_number(call, number, error);
}

static bool
fail_open(const UprofXenCall *call, int number, GError **error)
{
    if (number == EACCES || number == EPERM)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                    "%s: Xen's control device cannot be opened: %s; this needs root in dom0",
                    call->name, g_strerror(number));
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "%s: Xen's control device /dev/xen/privcmd cannot be opened: %s; is this "
                    "Xen's dom0?",
                    call->name, g_strerror(number));
    return false;
}

static bool
open_handle(UprofXenCall *call, GError **error)
{
    errno = 0;
    call->handle = xencall_open(&call->logger, 0);
    if (!call->handle)
        return fail_open(call, errno, error);
    call->fixed = xencall_alloc_buffer_pages(call->handle, 1);
    if (!call->fixed)
        return fail_open(call, ENOMEM, error);
    memset(call->fixed, 0, PAGE_BYTES);
    call->single = call->fixed;
    call->asking = call->single + 1;
    call->record = (uint8_t *)(call->asking + 1);
    G_STATIC_ASSERT(2 * sizeof(Domctl) + HVM_RECORD_BYTES <= PAGE_BYTES);
    return find_version(call, error);
}

UprofXenCall *
uprof_xen_call_open(int domid, const char *name, GError **error)
{
    UprofXenCall *call = g_new0(UprofXenCall, 1);

    call->logger.vmessage = log_nothing;
    call->domid = (uint16_t)domid;
    call->name = g_strdup(name);
    if (open_handle(call, error))
        return call;
    uprof_xen_call_close(call);
    return NULL;
}

void
uprof_xen_call_close(UprofXenCall *call)
{
    if (!call)
        return;
    if (call->area)
        xencall_free_buffer_pages(call->handle, call->area, call->area_pages);
    if (call->fixed)
        xencall_free_buffer_pages(call->handle, call->fixed, 1);
    if (call->handle)
        xencall_close(call->handle);
    g_free(call->index);
    g_free(call->name);
    g_free(call);
}

static void
read_info(const InfoPart *part, UprofXenInfo *info)
{
    *info = (UprofXenInfo){
        .flags = {
            .dying = part->flags & FLAG_DYING,
            .hvm = part->flags & FLAG_HVM,
            .paused = part->flags & FLAG_PAUSED,
            .shut_down = part->flags & FLAG_SHUTDOWN,
            .shutdown_reason = (uint8_t)(part->flags >> SHUTDOWN_SHIFT),
        },
        .tot_pages = part->tot_pages,
        .cpu_ns = part->cpu_ns,
        /* max_vcpu_id is all ones if the domain has no vCPU yet: the sum is 0 then */
        .n_vcpus = MIN(part->max_vcpu_id + 1, (uint32_t)UPROF_XEN_VCPUS_MAX),
    };
    memcpy(info->uuid, part->handle, sizeof(info->uuid));
}

int
uprof_xen_call_info(UprofXenCall *call, UprofXenInfo *info)
{
    int number = do_domctl(call, fill_domctl(call, call->asking, DOMCTL_INFO));

    if (number == 0)
        number = check_number(call, call->asking);
    if (number == 0)
        read_info(&call->asking->part.info, info);
    return number;
}

int
uprof_xen_call_word_bytes(UprofXenCall *call, unsigned *word_bytes)
{
    const int number = do_domctl(call, fill_domctl(call, call->single, DOMCTL_ADDRESS_SIZE));

    if (number == 0)
        *word_bytes = call->single->part.address_bits == 32 ? 4 : 8;
    return number;
}

/* @at: (inout): offset in @area; moves behind the part. Returns: @n elements of @len bytes */
static void *
take_part(void *area, size_t *at, size_t n, size_t len)
{
    void *part = (uint8_t *)area + *at;

    *at += (n * len + 63) / 64 * 64;
    return part;
}

bool
uprof_xen_call_reserve(UprofXenCall *call, unsigned n_vcpus, GError **error)
{
    const size_t n = 2 * (size_t)n_vcpus + 3;
    const size_t len =
        3 * n * (sizeof(Entry) + sizeof(Domctl)) + n_vcpus * UPROF_XEN_CONTEXT_BYTES + 9 * 64;
    size_t at = 0;

    g_assert(!call->area && n_vcpus > 0 && n_vcpus <= UPROF_XEN_VCPUS_MAX);
    call->area_pages = len / PAGE_BYTES + 1;
    call->area = xencall_alloc_buffer_pages(call->handle, call->area_pages);
    if (!call->area) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "%s: no memory for the registers of %u vCPUs", call->name, n_vcpus);
        return false;
    }
    memset(call->area, 0, call->area_pages * PAGE_BYTES);
    call->n_vcpus = n_vcpus;
    call->look.entries = take_part(call->area, &at, n, sizeof(Entry));
    call->look.domctls = take_part(call->area, &at, n, sizeof(Domctl));
    call->contexts.entries = take_part(call->area, &at, n, sizeof(Entry));
    call->contexts.domctls = take_part(call->area, &at, n, sizeof(Domctl));
    call->unpause.entries = take_part(call->area, &at, n, sizeof(Entry));
    call->unpause.domctls = take_part(call->area, &at, n, sizeof(Domctl));
    call->before = take_part(call->area, &at, 1, sizeof(Runstate));
    call->after = take_part(call->area, &at, 1, sizeof(Runstate));
    call->bytes = take_part(call->area, &at, n_vcpus, UPROF_XEN_CONTEXT_BYTES);
    call->index = g_new0(unsigned, n_vcpus);
    return true;
}

static Domctl *
fill_entry(const UprofXenCall *call, Batch *batch, unsigned i, uint32_t command)
{
    batch->entries[i] = (Entry){
        .op = __HYPERVISOR_domctl,
        .result = NO_RESULT,
        .args = { (uintptr_t)&batch->domctls[i] },
    };
    return fill_domctl(call, &batch->domctls[i], command);
}

/* Makes entry @i a call that writes the time to @clock. */
static void
fill_clock(Batch *batch, unsigned i, Runstate *clock)
{
    *clock = (Runstate){ 0 };
    batch->entries[i] = (Entry){
        .op = __HYPERVISOR_vcpu_op,
        .result = NO_RESULT,
        .args = { VCPUOP_RUNSTATE, 0, (uintptr_t)clock },
    };
}

/* Returns: nanoseconds; 0 if Xen did not write the clock */
static uint64_t
read_clock(const Runstate *clock)
{
    uint64_t now_ns = 0;

    for (unsigned i = 0; i < RUNSTATES; i++)
        now_ns += clock->times_ns[i];
    return now_ns;
}

/* Returns: 0, or the errno of entry @i; EAGAIN if Xen did not reach the entry */
static int
result_of(const Batch *batch, unsigned i)
{
    const int64_t result = batch->entries[i].result;

    if (result == NO_RESULT)
        return EAGAIN;
    return result < 0 ? (int)-result : 0;
}

/* A multicall that fails with one of these numbers has made none of its calls. */
static bool
is_refusal(int number)
{
    return number == ESRCH || number == EPERM || number == EACCES || number == ENOSYS ||
           number == ENOMEM;
}

/*
 * @deed: index of the entry whose result counts
 *
 * Returns: 0, or the errno of entry @deed; EINPROGRESS: it is unknown whether Xen made this call
 */
static int
make_batch(UprofXenCall *call, Batch *batch, unsigned n, unsigned deed)
{
    const int made = xencall2(call->handle, __HYPERVISOR_multicall, (uintptr_t)batch->entries, n);
    const int number = made < 0 ? errno : 0;

    /* the result is valid even if the multicall failed at a later entry */
    if (batch->entries[deed].result != NO_RESULT)
        return result_of(batch, deed);
    if (is_refusal(number))
        return number;
    /*
     * Xen makes a call before it writes the result, so a call without a result may have been
     * made. If the entry before has no result either, Xen did not reach @deed.
     */
    return deed > 0 && batch->entries[deed - 1].result == NO_RESULT ? EAGAIN : EINPROGRESS;
}

/* The first entries of a batch ask for the state of the domain and of its vCPUs. Returns: their
 * number */
static unsigned
fill_look(const UprofXenCall *call, Batch *batch)
{
    fill_entry(call, batch, 0, DOMCTL_INFO);
    for (unsigned vcpu = 0; vcpu < call->n_vcpus; vcpu++)
        fill_entry(call, batch, vcpu + 1, DOMCTL_VCPU_INFO)->part.vcpu.vcpu = vcpu;
    return call->n_vcpus + 1;
}

/* @number: the errno of the first entry, or 0 */
static int
read_look(const UprofXenCall *call, const Batch *batch, int number, UprofXenInfo *info,
          UprofXenRun *runs)
{
    if (number == 0)
        number = check_number(call, &batch->domctls[0]);
    if (number != 0)
        return number;

    read_info(&batch->domctls[0].part.info, info);
    for (unsigned vcpu = 0; vcpu < call->n_vcpus; vcpu++) {
        const VcpuPart *part = &batch->domctls[vcpu + 1].part.vcpu;
        const bool known = result_of(batch, vcpu + 1) == 0;
        runs[vcpu] = (UprofXenRun){
            .online = known && part->online,
            .blocked = known && part->blocked,
            .time_ns = known ? part->time_ns : 0,
        };
    }
    return 0;
}

int
uprof_xen_call_read_info(UprofXenCall *call, UprofXenInfo *info, UprofXenRun *runs)
{
    Batch *batch = &call->look;
    const unsigned n = fill_look(call, batch);

    return read_look(call, batch, make_batch(call, batch, n, 0), info, runs);
}

int
uprof_xen_call_looked(UprofXenCall *call, UprofXenInfo *info, UprofXenRun *runs)
{
    return read_look(call, &call->contexts, result_of(&call->contexts, 0), info, runs);
}

int
uprof_xen_call_hvm_cpu(UprofXenCall *call, unsigned vcpu, UprofSlice *record)
{
    Domctl *domctl = fill_domctl(call, call->single, DOMCTL_HVM_PARTIAL);

    domctl->part.hvm = (HvmPart){
        .type = HVM_SAVE_CPU,
        .instance = vcpu,
        .len = HVM_RECORD_BYTES,
        .buffer = (uintptr_t)call->record,
    };
    const int number = do_domctl(call, domctl);
    if (number != 0)
        return number;
    *record = (UprofSlice){ call->record, MIN(domctl->part.hvm.len, (uint64_t)HVM_RECORD_BYTES) };
    return 0;
}

int
uprof_xen_call_contexts(UprofXenCall *call, bool pause, bool looks, const bool *wanted)
{
    Batch *batch = &call->contexts;
    unsigned n = looks ? fill_look(call, batch) : 0;

    fill_clock(batch, n++, call->before);
    const unsigned deed = n;
    fill_entry(call, batch, n++, pause ? DOMCTL_PAUSE : DOMCTL_INFO);
    for (unsigned vcpu = 0; vcpu < call->n_vcpus; vcpu++) {
        call->index[vcpu] = wanted[vcpu] ? n : 0;
        if (!wanted[vcpu])
            continue;
        fill_entry(call, batch, n++, DOMCTL_CONTEXT)->part.context = (ContextPart){
            .vcpu = vcpu,
            .context = (uintptr_t)(call->bytes + (size_t)vcpu * UPROF_XEN_CONTEXT_BYTES),
        };
    }
    /* the clock comes first: after the unpause the guest may run on this CPU before a read */
    fill_clock(&call->unpause, 0, call->after);
    fill_entry(call, &call->unpause, 1, DOMCTL_UNPAUSE);
    const int number = make_batch(call, batch, n, deed);
    return number == 0 && !pause ? check_number(call, &batch->domctls[deed]) : number;
}

int
uprof_xen_call_context(UprofXenCall *call, unsigned vcpu, size_t len, UprofSlice *context)
{
    const unsigned i = call->index[vcpu];

    if (i == 0)
        return EINVAL;
    *context = (UprofSlice){ call->bytes + (size_t)vcpu * UPROF_XEN_CONTEXT_BYTES, len };
    return result_of(&call->contexts, i);
}

int
uprof_xen_call_unpause_timed(UprofXenCall *call)
{
    return make_batch(call, &call->unpause, 2, 1);
}

int
uprof_xen_call_unpause(UprofXenCall *call)
{
    if (call->after)
        *call->after = (Runstate){ 0 };
    return do_domctl(call, fill_domctl(call, call->single, DOMCTL_UNPAUSE));
}

uint64_t
uprof_xen_call_paused_ns(const UprofXenCall *call)
{
    const uint64_t before_ns = read_clock(call->before);
    const uint64_t after_ns = read_clock(call->after);

    return before_ns > 0 && after_ns > before_ns ? after_ns - before_ns : 0;
}
