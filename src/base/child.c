/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/child.h"

#include "uprof/clock.h"
#include "uprof/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers map terabytes, and have system calls of their own. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

#if defined(__x86_64__)
#define CALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CALLS_ARCH AUDIT_ARCH_AARCH64
#endif

enum {
    BUFFER_BYTES = 64 * 1024,
    PIPE_FD = 3,
    EXIT_UNSAFE = 99, /* the child could not give up its rights: it has done nothing */
};

struct _UprofChildOutput {
    int fd;
    size_t len;
    uint8_t buffer[BUFFER_BYTES];
};

static void
flush(UprofChildOutput *output)
{
    size_t done = 0;

    while (done < output->len) {
        const ssize_t n = write(output->fd, output->buffer + done, output->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1); /* nobody reads it any more */
        done += (size_t)n;
    }
    output->len = 0;
}

void
uprof_child_put(UprofChildOutput *output, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    while (len > 0) {
        const size_t n = MIN(len, BUFFER_BYTES - output->len);
        memcpy(output->buffer + output->len, at, n);
        output->len += n;
        at += n;
        len -= n;
        if (output->len == BUFFER_BYTES)
            flush(output);
    }
}

static bool
limit(int resource, uint64_t value)
{
    const struct rlimit limits = { value, value };

    return setrlimit((__rlimit_resource_t)resource, &limits) == 0;
}

/* Bytes of address space that this process has by now. */
static uint64_t
read_address_space(void)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL))
        return 0;
    return g_ascii_strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

#ifdef CALLS_ARCH
#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Memory that is nobody else's, writing to what is open, and its end. All else is refused. */
static bool
forbid_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(write),
        ALLOW(brk),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(mprotect),
        ALLOW(madvise),
        ALLOW(futex),
        ALLOW(getpid),
        ALLOW(gettid),
        ALLOW(rt_sigprocmask),
        ALLOW(rt_sigaction),
        ALLOW(rt_sigreturn),
        ALLOW(sigaltstack),
        ALLOW(sched_yield),
        ALLOW(clock_gettime),
        ALLOW(getrandom),
        ALLOW(exit),
        ALLOW(exit_group),
        /* for abort(), of itself */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        /* without a file */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = { G_N_ELEMENTS(filter), filter };

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool
forbid_calls(void)
{
    return true; /* there remain no files and no rights to get any */
}
#endif

/* Keeps the pipe as PIPE_FD, and /dev/null for what a library says. */
static bool
give_up_files(int fd)
{
    const int nothing = open("/dev/null", O_RDWR);

    if (nothing < 0 || dup2(fd, PIPE_FD) < 0)
        return false;
    for (int i = 0; i < PIPE_FD; i++)
        if (dup2(nothing, i) < 0)
            return false;
    if (syscall(SYS_close_range, PIPE_FD + 1, UINT32_MAX, 0) == 0)
        return true;
    for (int i = PIPE_FD + 1; i < sysconf(_SC_OPEN_MAX); i++)
        close(i);
    return true;
}

/*
 * @maps: lines of /proc/self/maps: "START-END rwxs ...". What is shared and may be
 * written is somebody else's as well: a vCPU's page, the guardian's.
 */
static void
give_up_shared_memory(const char *maps)
{
    for (const char *line = maps; line && *line; line = strchr(line, '\n')) {
        char *at;
        line += *line == '\n';
        const uint64_t start = g_ascii_strtoull(line, &at, 16);
        if (*at != '-')
            return;
        const uint64_t end = g_ascii_strtoull(at + 1, &at, 16);
        if (strncmp(at, " rw", 3) == 0 && at[4] == 's')
            munmap((void *)(uintptr_t)start, end - start);
    }
}

static bool
give_up_rights(const UprofChildPlan *plan, uint64_t address_space)
{
    const unsigned seconds = (plan->time_max_ms + 999) / 1000;

    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && limit(RLIMIT_CPU, seconds) &&
           (IS_SANITIZED || limit(RLIMIT_AS, address_space + plan->memory_max)) &&
           limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, 0) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && (IS_SANITIZED || forbid_calls());
}

static void
run_child(const UprofChildPlan *plan, int fd, UprofChildOutput *output, const char *maps,
          uint64_t address_space)
{
    static const int handled[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU };

    /* who dies here does so quietly */
    for (size_t i = 0; i < G_N_ELEMENTS(handled); i++)
        signal(handled[i], SIG_DFL);
    give_up_shared_memory(maps);
    if (!give_up_files(fd) || !give_up_rights(plan, address_space))
        _exit(EXIT_UNSAFE);
    output->fd = PIPE_FD;
    plan->work(output, plan->data);
    flush(output);
    _exit(0);
}

/* Returns: whether there may be more */
static bool
read_some(int fd, const UprofChildPlan *plan, uint64_t deadline_ns, GByteArray *answer,
          UprofChildEnd *end)
{
    uint8_t bytes[BUFFER_BYTES];
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    const uint64_t now_ns = uprof_clock_now_ns();

    if (now_ns >= deadline_ns) {
        *end = UPROF_CHILD_SLOW;
        return false;
    }
    if (poll(&wait, 1, (int)((deadline_ns - now_ns) / UPROF_NS_PER_MS) + 1) <= 0)
        return true;
    const ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0)
        return errno == EINTR;
    if (answer->len + (size_t)n > plan->answer_max) {
        *end = UPROF_CHILD_WORDY;
        return false;
    }
    g_byte_array_append(answer, bytes, (guint)n);
    return n > 0;
}

static GByteArray *
read_answer(pid_t pid, int fd, const UprofChildPlan *plan, UprofChildEnd *end)
{
    const uint64_t deadline_ns = uprof_clock_now_ns() + plan->time_max_ms * UPROF_NS_PER_MS;
    GByteArray *answer = g_byte_array_new();
    int status = 0;

    *end = UPROF_CHILD_DONE;
    while (read_some(fd, plan, deadline_ns, answer, end))
        ;
    if (*end != UPROF_CHILD_DONE)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (*end != UPROF_CHILD_DONE)
        return answer;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        *end = UPROF_CHILD_SLOW;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        *end = UPROF_CHILD_DIED;
    return answer;
}

bool
uprof_child_is_bound(void)
{
    return !IS_SANITIZED;
}

GByteArray *
uprof_child_run(const UprofChildPlan *plan, UprofChildEnd *end, GError **error)
{
    const uint64_t address_space = read_address_space();
    g_autofree UprofChildOutput *output = g_new0(UprofChildOutput, 1);
    g_autofree char *maps = NULL;
    int fds[2];

    if (!g_file_get_contents("/proc/self/maps", &maps, NULL, error)) {
        g_prefix_error(error, "no child process: ");
        return NULL;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no pipe to a child: %s",
                    g_strerror(errno));
        return NULL;
    }
    const pid_t pid = fork();
    if (pid == 0)
        run_child(plan, fds[1], output, maps, address_space);
    close(fds[1]);
    if (pid < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no child process: %s",
                    g_strerror(errno));
        close(fds[0]);
        return NULL;
    }
    GByteArray *answer = read_answer(pid, fds[0], plan, end);
    close(fds[0]);
    return answer;
}
