/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "qemu-priv.h"
#include "qemu-process-priv.h"
#include "thread-priv.h"

#include "uprof/clock.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PROOF_BYTES = 64,
    PROOF_TRIES = 10,           /* a running guest changes its memory */
    PIECES_MAX = 512,           /* of one process_vm_readv; the kernel allows 1024 */
    JOIN_BYTES_MAX = 64 * 1024, /* reading a smaller gap costs less than another peek */
};

virDomainPtr
uprof_qemu_vir(UprofQemu *qemu)
{
    g_mutex_lock(&qemu->vir_lock);
    virDomainPtr vir = qemu->vir;
    if (vir)
        uprof_libvirt.DomainRef(vir);
    g_mutex_unlock(&qemu->vir_lock);
    return vir;
}

bool
uprof_qemu_fail(const UprofQemu *qemu, const char *permission, const char *what, GError **error)
{
    g_autoptr(GError) failure = NULL;

    uprof_host_fail(&failure, what);
    if (failure->code != UPROF_ERROR_DENIED) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                "libvirt refused '%s' on '%s'; run as root or see virt-uprof(1) PERMISSIONS",
                permission, qemu->name);
    return false;
}

static bool
fail_unconnected(const UprofQemu *qemu, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no connection to libvirt for '%s'",
                qemu->name);
    return false;
}

char *
uprof_qemu_ask_human(UprofQemu *qemu, const char *command, GError **error)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    char *answer = NULL;

    if (!vir) {
        fail_unconnected(qemu, error);
        return NULL;
    }
    if (uprof_libvirt.DomainQemuMonitorCommand(vir, command, &answer,
                                               VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP) < 0) {
        uprof_qemu_fail(qemu, "domain:write", "libvirt's monitor passthrough", error);
        return NULL;
    }
    return answer;
}

/* Returns: (transfer full) (nullable): the reply, malloc */
static char *
ask_machine(UprofQemu *qemu, const char *command, GError **error)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    char *answer = NULL;

    if (!vir) {
        fail_unconnected(qemu, error);
        return NULL;
    }
    if (uprof_libvirt.DomainQemuMonitorCommand(vir, command, &answer, 0) < 0) {
        uprof_qemu_fail(qemu, "domain:write", "libvirt's monitor passthrough", error);
        return NULL;
    }
    return answer;
}

bool
uprof_qemu_ask_status(UprofQemu *qemu, UprofQmpStatus *status, GError **error)
{
    char *answer = ask_machine(qemu, UPROF_QMP_QUERY_STATUS, error);

    if (!answer)
        return false;
    const bool ok = uprof_qmp_parse_status((UprofSlice){ answer, strlen(answer) }, status, error);
    free(answer);
    return ok;
}

bool
uprof_qemu_ask_translation(UprofQemu *qemu, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    g_autofree char *command = g_strdup_printf(UPROF_QMP_TRANSLATE, gva, vcpu);
    char *answer = ask_machine(qemu, command, NULL);
    bool is_mapped = false;

    if (!answer)
        return false;
    const bool ok =
        uprof_qmp_parse_translation((UprofSlice){ answer, strlen(answer) }, &is_mapped, gpa, NULL);
    free(answer);
    return ok && is_mapped;
}

static void
close_connection(UprofQemu *qemu)
{
    uprof_vir_domain_free(qemu->vir);
    uprof_vir_connect_close(qemu->connection);
    qemu->vir = NULL;
    qemu->connection = NULL;
}

/* Called with vir_lock, or before other threads have @qemu. */
static bool
connect_domain(UprofQemu *qemu, GError **error)
{
    qemu->connection = uprof_host_connect(qemu->uri, false, error);
    if (!qemu->connection)
        return false;
    if (!uprof_libvirt.DomainQemuMonitorCommand) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                            "the library libvirt-qemu.so.0 is missing; install the package "
                            "libvirt0, with its support of QEMU");
        return false;
    }
    qemu->vir = uprof_libvirt.DomainLookupByUUIDString(qemu->connection, qemu->uuid);
    if (!qemu->vir)
        return uprof_host_fail(error, "cannot find the domain again");
    if (qemu->id >= 0 && uprof_libvirt.DomainGetID(qemu->vir) != (unsigned)qemu->id) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' has ended, or was started again", qemu->name);
        return false;
    }
    return true;
}

UprofQemu *
uprof_qemu_open(const UprofTarget *target, GError **error)
{
    UprofQemu *qemu = g_new0(UprofQemu, 1);

    g_mutex_init(&qemu->vir_lock);
    g_mutex_init(&qemu->gate);
    qemu->old_rams = g_ptr_array_new_with_free_func(g_free);
    qemu->pidfd = -1;
    qemu->uri = g_strdup(target->uri);
    qemu->name = uprof_text_quote(target->name);
    qemu->id = target->id;
    qemu->may_panic = target->may_panic;
    qemu->is_kvm = target->kvm;
    g_strlcpy(qemu->uuid, target->uuid, sizeof(qemu->uuid));
    if (!connect_domain(qemu, error)) {
        uprof_qemu_close(qemu);
        return NULL;
    }
    char *uri = uprof_libvirt.ConnectGetURI(qemu->connection);
    qemu->is_local = uri && uprof_host_uri_is_local(uri);
    free(uri);
    return qemu;
}

void
uprof_qemu_close(UprofQemu *qemu)
{
    if (!qemu)
        return;
    close_connection(qemu);
    if (qemu->pidfd >= 0)
        close(qemu->pidfd);
    for (size_t i = 0; i < G_N_ELEMENTS(qemu->bounce); i++)
        g_free(qemu->bounce[i]);
    g_ptr_array_unref(qemu->old_rams);
    g_clear_pointer(&qemu->cpus, g_array_unref);
    g_free(qemu->ram);
    g_free(qemu->uri);
    g_free(qemu->name);
    g_mutex_clear(&qemu->vir_lock);
    g_mutex_clear(&qemu->gate);
    g_free(qemu);
}

bool
uprof_qemu_is_gone(UprofQemu *qemu)
{
    if (qemu->pidfd >= 0)
        return uprof_qemu_process_has_ended(qemu->pidfd);
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    if (!vir)
        return false;
    /* looked up again: virDomainGetID() of an old object still returns the old id */
    g_autoptr(UprofVirDomain) now =
        uprof_libvirt.DomainLookupByUUIDString(uprof_libvirt.DomainGetConnect(vir), qemu->uuid);
    if (now)
        return uprof_libvirt.DomainIsActive(now) == 0 ||
               (qemu->id >= 0 && uprof_libvirt.DomainGetID(now) != (unsigned)qemu->id);
    const virError *last = uprof_libvirt.GetLastError();
    return last && last->code == VIR_ERR_NO_DOMAIN;
}

bool
uprof_qemu_has_job(UprofQemu *qemu)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    virDomainJobInfo info = { .type = VIR_DOMAIN_JOB_NONE };

    return vir && uprof_libvirt.DomainGetJobInfo(vir, &info) == 0 &&
           (info.type == VIR_DOMAIN_JOB_BOUNDED || info.type == VIR_DOMAIN_JOB_UNBOUNDED);
}

bool
uprof_qemu_reconnect(UprofQemu *qemu)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    g_mutex_lock(&qemu->vir_lock);
    bool alive =
        qemu->connection && qemu->vir && uprof_libvirt.ConnectIsAlive(qemu->connection) == 1;
    if (!alive && now_ns - qemu->tried_ns >= UPROF_NS_PER_S) {
        qemu->tried_ns = now_ns;
        close_connection(qemu);
        alive = connect_domain(qemu, NULL);
        if (!alive)
            close_connection(qemu);
    }
    g_mutex_unlock(&qemu->vir_lock);
    return alive;
}

/* ---- The process ---- */

enum { USERS_MAX = 3 };

static void
add_named_user(UprofQemuIdentity *identity, uid_t *users, const char *name)
{
    const struct passwd *user = getpwnam(name);

    if (user)
        users[identity->n_users++] = user->pw_uid;
}

/*
 * libvirt's DAC driver labels a domain as "+UID:+GID" (virSecurityDACGetProcessLabel). Only root's
 * daemon has this driver.
 */
static bool
find_labelled_user(virDomainPtr vir, uid_t *user)
{
    virSecurityLabelPtr labels = NULL;
    const int n = uprof_libvirt.DomainGetSecurityLabelList(vir, &labels);
    bool is_found = false;

    for (int i = 0; i < n && !is_found; i++) {
        const size_t len = strnlen(labels[i].label, sizeof(labels[i].label));
        UprofSlice uid, gid;
        uint64_t value;
        is_found = uprof_slice_split((UprofSlice){ labels[i].label, len }, ':', &uid, &gid) &&
                   uprof_slice_starts(uid, "+") && uprof_slice_starts(gid, "+") &&
                   uprof_slice_sub(uid, 1, uid.len - 1, &uid) &&
                   uprof_slice_to_uint(uid, 10, 0, UINT32_MAX, &value);
        if (is_found)
            *user = (uid_t)value;
    }
    free(labels);
    return is_found;
}

/* Returns: the owner of the socket that the URI names; else the user of this process */
static uid_t
find_session_user(GUri *uri)
{
    g_autoptr(GHashTable) params =
        uri && g_uri_get_query(uri)
            ? g_uri_parse_params(g_uri_get_query(uri), -1, "&;", G_URI_PARAMS_NONE, NULL)
            : NULL;
    const char *socket = params ? g_hash_table_lookup(params, "socket") : NULL;
    struct stat info;

    return socket && stat(socket, &info) == 0 ? info.st_uid : geteuid();
}

/* Fills the users that libvirt may have given to its QEMU. */
static void
find_users(UprofQemu *qemu, UprofQemuIdentity *identity, uid_t *users)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    char *text = vir ? uprof_libvirt.ConnectGetURI(uprof_libvirt.DomainGetConnect(vir)) : NULL;
    g_autoptr(GUri) uri = text ? g_uri_parse(text, G_URI_FLAGS_NONE, NULL) : NULL;

    free(text);
    identity->is_system = uri && strcmp(g_uri_get_path(uri), "/system") == 0;
    if (!identity->is_system) {
        users[identity->n_users++] = find_session_user(uri);
    } else if (find_labelled_user(vir, &users[0])) {
        identity->n_users = 1;
    } else {
        users[identity->n_users++] = 0;
        add_named_user(identity, users, "libvirt-qemu");
        add_named_user(identity, users, "qemu");
    }
}

/* Returns: (nullable): why the process is not known; a literal */
static const char *
find_process(UprofQemu *qemu, int thread)
{
    uid_t users[USERS_MAX];
    UprofQemuIdentity identity = {
        .uuid = qemu->uuid,
        .users = users,
        .n_kvm_cpus = qemu->is_kvm ? qemu->cpus->len : 0,
    };
    UprofQemuProcess process;
    UprofThreadStatus status;

    if (!qemu->is_local)
        return "the connection is remote";
    if (thread <= 0 || !uprof_thread_status(thread, &status) || status.process <= 0)
        return "the QEMU process was not found on this host";
    find_users(qemu, &identity, users);
    const char *why = uprof_qemu_process_open(status.process, &identity, &process);
    if (why)
        return why;
    qemu->pid = process.pid;
    qemu->pid_start = process.start;
    qemu->pidfd = process.pidfd;
    return process.why_unproven;
}

static void
free_ram(UprofRam **ram)
{
    g_free(*ram);
}

static UprofRam *
ask_ram(UprofQemu *qemu, GError **error)
{
    __attribute__((cleanup(free_ram))) UprofRam *ram = g_new0(UprofRam, 1);
    char *text = uprof_qemu_ask_human(qemu, "info mtree -f", error);

    if (!text)
        return NULL;
    const bool ok =
        uprof_qemu_mtree_parse((UprofSlice){ text, strlen(text) }, ram->ranges, &ram->n, error);
    free(text);
    if (!ok)
        return NULL;
    for (unsigned i = 0; !qemu->why_slow && i < ram->n; i++) {
        g_autofree char *command =
            g_strdup_printf("gpa2hva 0x%" G_GINT64_MODIFIER "x", ram->ranges[i].gpa);
        char *answer = uprof_qemu_ask_human(qemu, command, NULL);
        /* a range whose hva remains 0 is not read from the process */
        if (answer)
            uprof_qemu_hva_parse((UprofSlice){ answer, strlen(answer) }, &ram->ranges[i].hva, NULL);
        free(answer);
    }
    return g_steal_pointer(&ram);
}

static bool
is_same_ram(const UprofRam *one, const UprofRam *other)
{
    return one->n == other->n &&
           memcmp(one->ranges, other->ranges, one->n * sizeof(one->ranges[0])) == 0;
}

void
uprof_qemu_refresh(UprofQemu *qemu)
{
    UprofRam *ram = ask_ram(qemu, NULL);

    if (!ram || is_same_ram(ram, qemu->ram)) {
        g_free(ram);
        return;
    }
    g_ptr_array_add(qemu->old_rams, qemu->ram);
    g_atomic_pointer_set(&qemu->ram, ram);
}

static const UprofRamRange *
find_range(const UprofRam *ram, uint64_t gpa)
{
    for (unsigned i = 0; i < ram->n; i++)
        if (gpa >= ram->ranges[i].gpa && gpa - ram->ranges[i].gpa < ram->ranges[i].len)
            return &ram->ranges[i];
    return NULL;
}

/* Pieces of QEMU's memory for one system call, and the spans to which they belong. */
typedef struct {
    struct iovec local[PIECES_MAX];
    struct iovec remote[PIECES_MAX];
    unsigned span[PIECES_MAX];
    unsigned n;
} Pieces;

/* A short count shows which piece failed. The pieces behind it are read again. */
static void
read_pieces(const UprofQemu *qemu, Pieces *pieces, UprofSpan *spans)
{
    unsigned from = 0;

    while (from < pieces->n) {
        const unsigned n = pieces->n - from;
        ssize_t got =
            process_vm_readv(qemu->pid, pieces->local + from, n, pieces->remote + from, n, 0);
        while (from < pieces->n && got >= (ssize_t)pieces->local[from].iov_len)
            got -= (ssize_t)pieces->local[from++].iov_len;
        if (from < pieces->n)
            spans[pieces->span[from++]].missing = true;
    }
    pieces->n = 0;
}

static void
read_process(const UprofQemu *qemu, const UprofRam *ram, UprofSpan *spans, unsigned n)
{
    Pieces pieces; /* large, so it is not initialized except for the count */

    pieces.n = 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t done = 0;
        spans[i].missing = false;
        while (done < spans[i].len && !spans[i].missing) {
            const uint64_t gpa = spans[i].gpa + done;
            const UprofRamRange *range = find_range(ram, gpa);
            if (!range || range->hva == 0) {
                spans[i].missing = true;
                break;
            }
            const uint64_t offset = gpa - range->gpa;
            const uint32_t len = (uint32_t)MIN(range->len - offset, spans[i].len - done);
            if (pieces.n == PIECES_MAX)
                read_pieces(qemu, &pieces, spans);
            pieces.local[pieces.n] = (struct iovec){ (uint8_t *)spans[i].into + done, len };
            pieces.remote[pieces.n] = (struct iovec){ (void *)(range->hva + offset), len };
            pieces.span[pieces.n++] = i;
            done += len;
        }
    }
    read_pieces(qemu, &pieces, spans);
}

static bool
peek_memory(UprofQemu *qemu, UprofLane lane, uint64_t gpa, void *into, size_t len)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    bool ok = false;

    if (!vir)
        return false;
    if (lane == UPROF_LANE_WORKER)
        g_mutex_lock(&qemu->gate);
    ok = uprof_libvirt.DomainMemoryPeek(vir, gpa, len, into, VIR_MEMORY_PHYSICAL) == 0;
    if (lane == UPROF_LANE_WORKER)
        g_mutex_unlock(&qemu->gate);
    return ok;
}

/*
 * Joins a span to a peek if both are in one range of RAM, and so close that one peek can read both.
 * @is_ordered: the spans must be read in their order; QEMU reads a peek by rising addresses
 * @start, @end: (inout): addresses of the peek
 */
static bool
join_span(const UprofRamRange *range, bool is_ordered, uint64_t *start, uint64_t *end,
          const UprofSpan *next)
{
    const uint64_t next_end = next->gpa + next->len;
    const uint64_t first = MIN(*start, next->gpa), last = MAX(*end, next_end);
    const uint64_t gap = next->gpa > *end    ? next->gpa - *end
                         : *start > next_end ? *start - next_end
                                             : 0;

    if ((is_ordered && next->gpa < *end) || gap > JOIN_BYTES_MAX || next_end < next->gpa ||
        first < range->gpa || last - range->gpa > range->len ||
        last - first > UPROF_QEMU_BOUNCE_BYTES)
        return false;
    *start = first;
    *end = last;
    return true;
}

/* The sampler reads stacks of a guest that stands still, so that no order matters. */
static void
read_peek(UprofQemu *qemu, UprofLane lane, const UprofRam *ram, UprofSpan *spans, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        const UprofRamRange *range = find_range(ram, spans[i].gpa);
        uint64_t start = spans[i].gpa, end = start + spans[i].len;
        unsigned last = i;

        /* only RAM is read, because reading a device may change its state */
        if (!range || end - range->gpa > range->len || end - start > UPROF_QEMU_BOUNCE_BYTES) {
            spans[i++].missing = true;
            continue;
        }
        while (last + 1 < n &&
               join_span(range, lane == UPROF_LANE_WORKER, &start, &end, &spans[last + 1]))
            last++;
        const bool ok = peek_memory(qemu, lane, start, qemu->bounce[lane], end - start);
        for (; i <= last; i++) {
            spans[i].missing = !ok;
            if (ok)
                memcpy(spans[i].into, qemu->bounce[lane] + (spans[i].gpa - start), spans[i].len);
        }
    }
}

void
uprof_qemu_read_held(UprofQemu *qemu, UprofSpan *spans, unsigned n)
{
    g_assert(qemu->by_process);
    read_process(qemu, g_atomic_pointer_get(&qemu->ram), spans, n);
}

void
uprof_qemu_read(UprofQemu *qemu, UprofLane lane, UprofSpan *spans, unsigned n)
{
    const UprofRam *ram = g_atomic_pointer_get(&qemu->ram);

    if (!qemu->by_process) {
        read_peek(qemu, lane, ram, spans, n);
        return;
    }
    read_process(qemu, ram, spans, n);
    /* checked after the read: when QEMU has ended, another process may have its number */
    const bool has_ended = uprof_qemu_process_has_ended(qemu->pidfd);
    for (unsigned i = 0; i < n && has_ended; i++)
        spans[i].missing = true;
}

const char *
uprof_qemu_compare_bytes(UprofQemu *qemu, uint64_t gpa)
{
    uint8_t by_process[PROOF_BYTES], by_peek[PROOF_BYTES];
    UprofSpan span = { .gpa = gpa, .into = by_process, .len = PROOF_BYTES };

    if (!find_range(qemu->ram, gpa))
        return NULL;
    for (unsigned i = 0; i < PROOF_TRIES; i++) {
        read_process(qemu, qemu->ram, &span, 1);
        if (!peek_memory(qemu, UPROF_LANE_WORKER, gpa, by_peek, PROOF_BYTES))
            return "libvirt shows no memory to compare it with (domain:mem_read)";
        if (!span.missing && memcmp(by_process, by_peek, PROOF_BYTES) == 0)
            return uprof_qemu_process_has_ended(qemu->pidfd) ? "the QEMU process has just ended"
                                                             : NULL;
    }
    return "the memory of the QEMU process is not what libvirt reads";
}

/*
 * If both methods read the same bytes, the map and the process are right.
 *
 * Returns: (nullable): why memory cannot be read from the process; literal
 */
static const char *
prove_process_reads(UprofQemu *qemu)
{
    uint8_t bytes[PROOF_BYTES];
    UprofSpan span = { .gpa = qemu->ram->ranges[0].gpa, .into = bytes, .len = PROOF_BYTES };

    read_process(qemu, qemu->ram, &span, 1);
    if (span.missing)
        return "reading the memory of the QEMU process is not permitted (CAP_SYS_PTRACE)";
    return uprof_qemu_compare_bytes(qemu, span.gpa);
}

bool
uprof_qemu_ask_cpus(UprofQemu *qemu, GError **error)
{
    GArray *cpus = NULL;
    char *reply = ask_machine(qemu, UPROF_QMP_QUERY_CPUS, error);

    if (!reply)
        return false;
    const bool ok = uprof_qmp_parse_cpus((UprofSlice){ reply, strlen(reply) }, &cpus, error);
    free(reply);
    if (!ok)
        return false;
    g_clear_pointer(&qemu->cpus, g_array_unref);
    qemu->cpus = cpus;
    return true;
}

bool
uprof_qemu_is_paused(const UprofQmpStatus *status)
{
    return !status->running && strcmp(status->status, "paused") == 0;
}

bool
uprof_qemu_check_running(UprofQemu *qemu, const UprofTarget *target, bool *paused, GError **error)
{
    UprofQmpStatus status;

    if (!uprof_qemu_ask_status(qemu, &status, error))
        return false;
    *paused = !status.running;
    if (status.running || target->may_be_paused)
        return true;
    g_autofree char *why = uprof_text_quote(status.status);
    if (uprof_qemu_is_paused(&status))
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' is paused, not by virt-uprof; resume it first: virsh resume %s",
                    qemu->name, uprof_text_shell_word(target->name, qemu->uuid));
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' does not run: QEMU says '%s'; it can be sampled when it runs",
                    qemu->name, why);
    return false;
}

bool
uprof_qemu_attach(UprofQemu *qemu, unsigned *n_vcpus, GError **error)
{
    if (!uprof_qemu_ask_cpus(qemu, error))
        return false;
    const GArray *cpus = qemu->cpus;
    if (cpus->len == 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "QEMU says that '%s' has no vCPUs",
                    qemu->name);
        return false;
    }
    const UprofQmpCpu *first = &g_array_index(cpus, UprofQmpCpu, 0);
    const UprofQmpCpu *last = &g_array_index(cpus, UprofQmpCpu, cpus->len - 1);
    qemu->why_slow = find_process(qemu, first->thread);
    UprofRam *ram = ask_ram(qemu, error);
    if (!ram)
        return false;
    qemu->ram = ram;
    for (size_t i = 0; i < G_N_ELEMENTS(qemu->bounce); i++)
        qemu->bounce[i] = g_malloc0(UPROF_QEMU_BOUNCE_BYTES);
    if (!qemu->why_slow)
        qemu->why_slow = prove_process_reads(qemu);
    qemu->by_process = !qemu->why_slow;
    *n_vcpus = MIN(last->index + 1, (unsigned)UPROF_VCPUS_MAX);
    return true;
}

void
uprof_qemu_note_paging(UprofGuest *guest, UprofQemuPaging *paging, unsigned vcpu,
                       const UprofRegs *regs)
{
    const bool is_on = regs->sys[UPROF_X86_CR0] & UPROF_X86_CR0_PG;

    if (guest->needs_roots)
        return; /* these registers say nothing about paging */
    if (!paging->is_known)
        *paging = (UprofQemuPaging){ .is_known = true, .vcpu = vcpu };
    if (vcpu != paging->vcpu)
        return;
    if (paging->is_on && !is_on)
        g_atomic_int_inc(&guest->resets);
    paging->is_on = is_on;
}

void
uprof_qemu_facts(UprofQemu *qemu, UprofGuestFacts *facts)
{
    const UprofRam *ram = g_atomic_pointer_get(&qemu->ram);

    *facts = (UprofGuestFacts){
        .pid = qemu->pid,
        .pid_start = qemu->pid_start,
        .n_ranges = ram->n,
        .reads = qemu->by_process ? "process_vm_readv" : "virDomainMemoryPeek",
        .why_slow = qemu->why_slow,
    };
    for (unsigned i = 0; i < ram->n; i++)
        facts->ram_bytes += ram->ranges[i].len;
}
