/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hold-loop PROCESS THREAD ADDRESS HZ SECONDS - the least that a profiler of one vCPU can do
 *
 * Holds a thread of QEMU HZ times a second, copies 8 KiB of QEMU's memory at ADDRESS, and releases
 * the thread. Prints {"samples": N, "cpu_us": CPU time of this process for one sample, "p50_us": N,
 * "p99_us": N}, with times of holds from the request to stop until the release.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum { COPY_BYTES = 8192, HOLDS_MAX = 1000 * 1000, TIMER_SLACK_NS = 1000 };

static const uint64_t second_ns = 1000 * 1000 * 1000;

static uint64_t
read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static void
sleep_until(uint64_t at_ns)
{
    const struct timespec at = { (time_t)(at_ns / second_ns), (long)(at_ns % second_ns) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* Returns: nanoseconds from the request to stop until the release; 0 if the thread cannot be held
 */
static uint64_t
hold_once(pid_t process, pid_t thread, uint64_t address)
{
    static uint8_t copy[COPY_BYTES];
    struct iovec to = { copy, sizeof(copy) };
    struct iovec from = { (void *)(uintptr_t)address, sizeof(copy) };
    int status;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
        return 0;
    const uint64_t asked_ns = read_clock(CLOCK_MONOTONIC);
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    if (waitpid(thread, &status, __WALL) != thread)
        return 0;
    if (process_vm_readv(process, &to, 1, &from, 1, 0) != (ssize_t)sizeof(copy))
        fprintf(stderr, "hold-loop: no memory at 0x%llx\n", (unsigned long long)address);
    ptrace(PTRACE_DETACH, thread, NULL, NULL);
    return read_clock(CLOCK_MONOTONIC) - asked_ns;
}

static int
compare_times(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

int
main(int argc, char **argv)
{
    static uint64_t holds[HOLDS_MAX];
    size_t n = 0;

    if (argc != 6)
        return 2;
    const pid_t process = (pid_t)atoi(argv[1]), thread = (pid_t)atoi(argv[2]);
    const uint64_t address = strtoull(argv[3], NULL, 0);
    const uint64_t step_ns = second_ns / strtoull(argv[4], NULL, 10);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    const uint64_t cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t at_ns = read_clock(CLOCK_MONOTONIC);
    const uint64_t end_ns = at_ns + strtoull(argv[5], NULL, 10) * second_ns;

    for (; at_ns < end_ns && n < HOLDS_MAX; at_ns += step_ns) {
        const uint64_t now_ns = read_clock(CLOCK_MONOTONIC);
        if (now_ns > at_ns + step_ns)
            at_ns = now_ns; /* missed ticks are not made up for */
        sleep_until(at_ns);
        holds[n] = hold_once(process, thread, address);
        if (holds[n] == 0) {
            perror("hold-loop: the thread cannot be held");
            return 1;
        }
        n++;
    }
    const uint64_t used_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    if (n == 0)
        return 1;
    qsort(holds, n, sizeof(holds[0]), compare_times);
    printf("{\"samples\": %zu, \"cpu_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", n,
           (double)used_ns / 1000 / (double)n, (double)holds[n / 2] / 1000,
           (double)holds[n * 99 / 100] / 1000);
    return 0;
}
