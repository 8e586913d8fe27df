/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lab-tool - asks Xen for the state of domains, and kills runs in their holds
 *
 * lab-tool state DOMID
 *     prints "STATE CPU-NS": running, paused, shutdown, dying or gone
 * lab-tool list
 *     prints the numbers of all domains but dom0, at most 64
 * lab-tool costs DOMID ROUNDS
 *     prints two times in ns: the mean of hypercalls that do nothing, and the median of
 *     holds without copies
 * lab-tool loop DOMID HZ SECONDS
 *     the least that a profiler can do: at each tick pauses the domain, reads the registers of
 *     vCPU 0, and unpauses the domain. Prints as JSON the number of samples, their CPU time in
 *     user mode and in the kernel, and the times of holds
 * lab-tool storm WAY ROUNDS DOMID MARKER PROGRAM [ARGUMENT...]
 *     in each round runs PROGRAM, waits for its first hold and then for a random time,
 *     and sends a signal: WAY is kill, group (kills the process group), stop, guardian
 *     (kills the guardian), spawner or worker (kills this process, and later ends the run
 *     by SIGTERM) or term. After at most 3.5 s the domain must run and not be
 *     held, and must stay so. Prints the number of rounds that hit a hold, and fails if
 *     this number is too low.
 *
 * The tool is independent of virt-uprof: it asks Xen with the structures of Xen's own
 * headers.
 */
#define __XEN_TOOLS__
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xen/xen.h>
#include <xen/domctl.h>
#include <xen/sysctl.h>
#include <xen/version.h>
#include <xencall.h>

enum {
    PAGE_BYTES = 4096,
    ROUNDS_MAX = 10000,
    HOLDS_MAX = 1000 * 1000,
    TIMER_SLACK_NS = 1000, /* as virt-uprof's */
    DOMAINS_MAX = 64,
    START_MS = 30000,
    END_MS = 3500,
    QUIET_MS = 60, /* longest delay of a stop that a dead run has requested */
    RANDOM_US = 50000,
    LOSS_US = 500000, /* longest time from the death of a process to SIGTERM */
    SEEK_MS = 3000,   /* a new run seldom holds, and this process takes CPU time from the run */
    STOPPED_MS = 4000,
};

static xencall_handle *calls;
static xen_domctl_t *domctls; /* two; @context follows */
static void *context;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("lab-tool: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static uint64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
sleep_us(long us)
{
    const struct timespec time = { us / 1000000, us % 1000000 * 1000 };

    nanosleep(&time, NULL);
}

static void
open_xen(void)
{
    calls = xencall_open(NULL, 0);
    uint8_t *area = calls ? xencall_alloc_buffer_pages(calls, 4) : NULL;
    if (!area)
        fail("no way to Xen: %s", strerror(errno));
    memset(area, 0, 4 * PAGE_BYTES);
    domctls = (xen_domctl_t *)(void *)area;
    context = area + PAGE_BYTES;
}

static xen_domctl_t *
fill(unsigned i, uint32_t command, int domid)
{
    memset(&domctls[i], 0, sizeof(domctls[i]));
    domctls[i].cmd = command;
    domctls[i].interface_version = XEN_DOMCTL_INTERFACE_VERSION;
    domctls[i].domain = (domid_t)domid;
    return &domctls[i];
}

/* Returns: 0 or an errno value */
static int
make(xen_domctl_t *domctl)
{
    return xencall1(calls, __HYPERVISOR_domctl, (uintptr_t)domctl) < 0 ? errno : 0;
}

static const char *
ask_state(int domid, uint64_t *cpu_ns)
{
    xen_domctl_t *domctl = fill(0, XEN_DOMCTL_getdomaininfo, domid);
    const int number = make(domctl);
    const uint32_t flags = domctl->u.getdomaininfo.flags;

    *cpu_ns = 0;
    /* if no domain has the number, Xen may describe the next domain */
    if (number == ESRCH || (number == 0 && domctl->u.getdomaininfo.domain != domid))
        return "gone";
    if (number != 0)
        fail("Xen does not say how domain %d is: %s", domid, strerror(number));
    *cpu_ns = domctl->u.getdomaininfo.cpu_time;
    return flags & XEN_DOMINF_dying      ? "dying"
           : flags & XEN_DOMINF_shutdown ? "shutdown"
           : flags & XEN_DOMINF_paused   ? "paused"
                                         : "running";
}

static void
list_domains(void)
{
    xen_sysctl_t *sysctl = (xen_sysctl_t *)domctls;
    xen_domctl_getdomaininfo_t *infos = context;

    memset(sysctl, 0, sizeof(*sysctl));
    sysctl->cmd = XEN_SYSCTL_getdomaininfolist;
    sysctl->interface_version = XEN_SYSCTL_INTERFACE_VERSION;
    sysctl->u.getdomaininfolist.first_domain = 1;
    sysctl->u.getdomaininfolist.max_domains = DOMAINS_MAX;
    set_xen_guest_handle(sysctl->u.getdomaininfolist.buffer, infos);
    if (xencall1(calls, __HYPERVISOR_sysctl, (uintptr_t)sysctl) < 0)
        fail("Xen does not say which domains there are: %s", strerror(errno));
    for (unsigned i = 0; i < sysctl->u.getdomaininfolist.num_domains; i++)
        printf("%d\n", infos[i].domain);
}

static int
compare(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

static uint64_t
median(uint64_t *values, size_t n)
{
    qsort(values, n, sizeof(values[0]), compare);
    return values[n / 2];
}

/* Pauses the domain, reads the registers of vCPU 0, and unpauses. Returns: its time in ns */
static uint64_t
hold_bare(int domid)
{
    fill(0, XEN_DOMCTL_pausedomain, domid);
    xen_domctl_t *registers = fill(1, XEN_DOMCTL_getvcpucontext, domid);
    registers->u.vcpucontext.vcpu = 0;
    set_xen_guest_handle(registers->u.vcpucontext.ctxt, context);
    const uint64_t began_ns = now_ns();
    if (make(&domctls[0]) != 0)
        fail("domain %d cannot be paused", domid);
    make(&domctls[1]);
    fill(0, XEN_DOMCTL_unpausedomain, domid);
    if (make(&domctls[0]) != 0)
        fail("domain %d cannot be unpaused", domid);
    return now_ns() - began_ns;
}

static void
measure_costs(int domid, size_t rounds)
{
    uint64_t *times = calloc(rounds, sizeof(times[0]));

    /* reading the clock takes as long as a hypercall, so the clock is read only twice */
    const uint64_t row_ns = now_ns();
    for (size_t i = 0; i < rounds; i++)
        if (xencall2(calls, __HYPERVISOR_xen_version, XENVER_version, 0) < 0)
            fail("Xen does not say its version: %s", strerror(errno));
    const uint64_t call_ns = (now_ns() - row_ns) / rounds;
    for (size_t i = 0; i < rounds; i++)
        times[i] = hold_bare(domid);
    printf("%" PRIu64 " %" PRIu64 "\n", call_ns, median(times, rounds));
    free(times);
}

static void
sleep_until(uint64_t at_ns)
{
    const struct timespec at = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static double
microseconds_of(const struct timeval *time, size_t samples)
{
    return ((double)time->tv_sec * 1e6 + (double)time->tv_usec) / (double)samples;
}

static void
sample_in_loop(int domid, uint64_t hz, uint64_t seconds)
{
    uint64_t *times = calloc(HOLDS_MAX, sizeof(times[0]));
    const uint64_t step_ns = 1000000000 / hz;
    uint64_t at_ns = now_ns();
    const uint64_t end_ns = at_ns + seconds * 1000000000;
    struct rusage used;
    size_t n = 0;

    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    for (uint64_t now = at_ns; now < end_ns && n < HOLDS_MAX; n++) {
        sleep_until(at_ns);
        times[n] = hold_bare(domid);
        /* missed ticks are not made up for */
        now = now_ns();
        at_ns += now > at_ns ? ((now - at_ns) / step_ns + 1) * step_ns : step_ns;
    }
    getrusage(RUSAGE_SELF, &used);
    const uint64_t p50_ns = median(times, n);
    printf("{\"samples\": %zu, \"user_us\": %.1f, \"system_us\": %.1f, \"p50_us\": %.1f, "
           "\"p99_us\": %.1f}\n",
           n, microseconds_of(&used.ru_utime, n), microseconds_of(&used.ru_stime, n),
           (double)p50_ns / 1000, (double)times[n * 99 / 100] / 1000);
    free(times);
}

/* Returns: (nullable): the state of the hold in the marker (marker.h) */
static volatile const int32_t *
map_marker(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const uint64_t until_ns = now_ns() + (uint64_t)START_MS * 1000000;

    if (file < 0)
        return NULL;
    while (lseek(file, 0, SEEK_END) < PAGE_BYTES && now_ns() < until_ns)
        sleep_us(1000);
    const uint8_t *page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return page == MAP_FAILED ? NULL : (const void *)(page + 4);
}

static bool
has_name(int pid, const char *name)
{
    char path[64], comm[32] = "";

    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool is_read = fgets(comm, sizeof(comm), file) != NULL;
    fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    return is_read && strcmp(comm, name) == 0;
}

/* Returns: the child of the process @pid with this name; 0 if there is none */
static pid_t
find_child(pid_t pid, const char *name)
{
    char path[64];
    int child;
    pid_t found = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    while (file && found == 0 && fscanf(file, "%d", &child) == 1)
        if (has_name(child, name))
            found = child;
    if (file)
        fclose(file);
    return found;
}

/* Returns: the process @name of the run @pid, which is waited for */
static pid_t
find_process(pid_t pid, const char *name)
{
    const uint64_t until_ns = now_ns() + (uint64_t)START_MS * 1000000;

    for (;;) {
        pid_t found;
        if (strcmp(name, "guardian") == 0) {
            found = find_child(pid, "uprof-guardian");
        } else {
            found = find_child(pid, "uprof-spawner");
            if (found != 0 && strcmp(name, "worker") == 0)
                found = find_child(found, "uprof-worker");
        }
        if (found != 0)
            return found;
        if (now_ns() > until_ns)
            fail("the profiler has no %s", name);
        sleep_us(1000);
    }
}

static pid_t
start(char **command)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* only this tool, not the profiler, has real-time priority, so that it can kill in a hold */
    const struct sched_param usual = { 0 };
    sched_setscheduler(0, SCHED_OTHER, &usual);
    setpgid(0, 0);
    execvp(command[0], command);
    _exit(127);
}

static void
end(const char *way, pid_t pid, bool *may_live)
{
    *may_live = false;
    if (strcmp(way, "kill") == 0) {
        kill(pid, SIGKILL);
    } else if (strcmp(way, "group") == 0) {
        kill(-pid, SIGKILL);
    } else if (strcmp(way, "guardian") == 0) {
        kill(find_process(pid, way), SIGKILL);
    } else if (strcmp(way, "spawner") == 0 || strcmp(way, "worker") == 0) {
        kill(find_process(pid, way), SIGKILL);
        sleep_us(random() % LOSS_US);
        kill(pid, SIGTERM);
    } else if (strcmp(way, "term") == 0) {
        kill(pid, SIGTERM);
    } else if (strcmp(way, "stop") == 0) {
        kill(pid, SIGSTOP);
        *may_live = true;
    } else {
        fail("no way '%s'", way);
    }
}

static void
must_run(int domid, volatile const int32_t *held, unsigned round)
{
    const uint64_t until_ns = now_ns() + (uint64_t)END_MS * 1000000;
    uint64_t before_ns, after_ns;

    for (;;) {
        const char *state = ask_state(domid, &before_ns);
        if (strcmp(state, "running") == 0 && *held == 0) {
            sleep_us(QUIET_MS * 1000L);
            if (strcmp(ask_state(domid, &after_ns), "running") == 0 && *held == 0)
                return;
        }
        if (now_ns() > until_ns)
            fail("round %u: domain %d is %s, and the marker says %d", round, domid, state,
                 (int)*held);
        sleep_us(2000);
    }
}

/* Enough rounds must hit a hold: a quarter of the rounds of `kill`, and one round of other ways. */
static void
must_have_met(const char *way, unsigned n_met, unsigned rounds)
{
    const unsigned least = strcmp(way, "kill") == 0 ? rounds / 4 : 1;

    if (n_met == 0 || n_met < least)
        fail("%s: only %u of %u rounds were in a hold: nothing is tested", way, n_met, rounds);
}

static void
storm(const char *way, unsigned rounds, int domid, const char *marker, char **command)
{
    const struct sched_param first = { .sched_priority = 50 };
    unsigned n_met = 0;
    uint64_t slowest_ns = 0;

    if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
        fail("cannot become a real-time process: %s", strerror(errno));
    srandom((unsigned)now_ns());
    for (unsigned round = 0; round < rounds; round++) {
        const pid_t pid = start(command);
        const uint64_t until_ns = now_ns() + (uint64_t)START_MS * 1000000;
        volatile const int32_t *held = NULL;
        bool may_live;
        while (!held || *held == 0) {
            if (!held)
                held = map_marker(marker);
            if (now_ns() > until_ns || waitpid(pid, NULL, WNOHANG) != 0)
                fail("round %u: '%s' holds nothing", round, command[0]);
            sleep_us(3000);
        }
        sleep_us(random() % RANDOM_US);
        /* most rounds wait for a hold; this process has a higher priority than the profiler */
        const bool is_sought = round % 4 != 0 || strcmp(way, "stop") == 0;
        const uint64_t seek_ns = now_ns() + (uint64_t)SEEK_MS * 1000000;
        while (is_sought && *held == 0 && now_ns() < seek_ns)
            sleep_us(100 + random() % 100);
        n_met += *held != 0;
        end(way, pid, &may_live);
        const uint64_t ended_ns = now_ns();
        if (may_live) {
            sleep_us(STOPPED_MS * 1000L);
            must_run(domid, held, round);
            kill(pid, SIGCONT);
            kill(pid, SIGTERM);
        }
        waitpid(pid, NULL, 0);
        must_run(domid, held, round);
        if (now_ns() - ended_ns > slowest_ns)
            slowest_ns = now_ns() - ended_ns;
        munmap((void *)((uintptr_t)held - 4), PAGE_BYTES);
    }
    printf("%s: %u rounds, %u of them in a hold, the slowest free after %" PRIu64 " ms\n", way,
           rounds, n_met, slowest_ns / 1000000);
    must_have_met(way, n_met, rounds);
}

int
main(int argc, char **argv)
{
    uint64_t cpu_ns;

    open_xen();
    if (argc == 3 && strcmp(argv[1], "state") == 0) {
        const char *state = ask_state(atoi(argv[2]), &cpu_ns);
        printf("%s %" PRIu64 "\n", state, cpu_ns);
    } else if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list_domains();
    } else if (argc == 4 && strcmp(argv[1], "costs") == 0) {
        const int rounds = atoi(argv[3]);
        if (rounds < 1 || rounds > ROUNDS_MAX)
            fail("ROUNDS is 1 to %d", ROUNDS_MAX);
        measure_costs(atoi(argv[2]), (size_t)rounds);
    } else if (argc == 5 && strcmp(argv[1], "loop") == 0) {
        const int hz = atoi(argv[3]), seconds = atoi(argv[4]);
        if (hz < 1 || seconds < 1 || (int64_t)hz * seconds > HOLDS_MAX)
            fail("HZ times SECONDS is 1 to %d", HOLDS_MAX);
        sample_in_loop(atoi(argv[2]), (uint64_t)hz, (uint64_t)seconds);
    } else if (argc >= 7 && strcmp(argv[1], "storm") == 0) {
        storm(argv[2], (unsigned)atoi(argv[3]), atoi(argv[4]), argv[5], argv + 6);
    } else {
        fail("see the head of its source for how it is called");
    }
    return 0;
}
