/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/child.h"

#include "uprof/clock.h"
#include "uprof/error.h"

#include "confine-priv.h"
#include "sanitized-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 64 * 1024,
    PIPE_FD = 3,
    EXIT_UNSAFE = 99, /* the child could not drop its rights, and did nothing else */
};

struct _UprofChildOutput {
    int fd;           /* the pipe */
    GByteArray *kept; /* (nullable): borrowed; gets the answer instead of @fd */
    size_t kept_max;  /* bytes of @kept; the rest is dropped */
    size_t len;
    uint8_t buffer[BUFFER_BYTES];
};

static void
flush_output(UprofChildOutput *output)
{
    size_t done = 0;

    if (output->kept) {
        if (output->kept->len + output->len <= output->kept_max)
            g_byte_array_append(output->kept, output->buffer, (guint)output->len);
        else
            output->kept_max = 0;
        output->len = 0;
        return;
    }
    while (done < output->len) {
        const ssize_t n = write(output->fd, output->buffer + done, output->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1); /* the parent closed the pipe */
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
            flush_output(output);
    }
}

static bool
set_limit(int resource, uint64_t value)
{
    const struct rlimit limits = { value, value };

    return setrlimit((__rlimit_resource_t)resource, &limits) == 0;
}

/* Returns: bytes of address space that this process uses now; 0 if unknown */
static uint64_t
read_address_space(void)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL))
        return 0;
    return g_ascii_strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Calls for private memory, for writing to open descriptors, and for ending. */
static const int allowed_calls[] = {
    SCMP_SYS(write),          SCMP_SYS(brk),          SCMP_SYS(munmap),
    SCMP_SYS(mremap),         SCMP_SYS(mprotect),     SCMP_SYS(madvise),
    SCMP_SYS(futex),          SCMP_SYS(getpid),       SCMP_SYS(gettid),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),    SCMP_SYS(sched_yield),  SCMP_SYS(clock_gettime),
    SCMP_SYS(getrandom),      SCMP_SYS(exit),         SCMP_SYS(exit_group),
};

/* Compares the low 32 bits of argument @n: the kernel ignores the upper bits of an int. */
#define INT_ARGUMENT_IS(n, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))

static bool
add_rules(scmp_filter_ctx filter)
{
    bool ok = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;

    for (size_t i = 0; i < G_N_ELEMENTS(allowed_calls); i++)
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0) == 0;
    /* abort() sends the signal to this process, and malloc() maps memory without a file. */
    return ok &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                            INT_ARGUMENT_IS(0, getpid())) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, INT_ARGUMENT_IS(4, -1)) == 0;
}

/* All other calls fail with EPERM from now on. */
static bool
forbid_calls(void)
{
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    const bool ok = filter && add_rules(filter) && seccomp_load(filter) == 0;

    seccomp_release(filter);
    return ok;
}

/* The pipe becomes PIPE_FD. Standard streams lead to /dev/null, because libraries print. */
static bool
close_files(int fd)
{
    const int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(fd, PIPE_FD) < 0)
        return false;
    for (int i = 0; i < PIPE_FD; i++)
        if (dup2(null, i) < 0)
            return false;
    if (syscall(SYS_close_range, PIPE_FD + 1, UINT32_MAX, 0) == 0)
        return true;
    for (int i = PIPE_FD + 1; i < sysconf(_SC_OPEN_MAX); i++)
        close(i);
    return true;
}

/*
 * Unmaps memory that other processes share, such as the page of a vCPU or of the guardian.
 *
 * @maps: lines of /proc/self/maps: "START-END rwxs ..."
 */
static void
unmap_shared_memory(const char *maps)
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
drop_rights(const UprofChildPlan *plan, uint64_t address_space)
{
    const unsigned seconds = (plan->time_max_ms + 999) / 1000;

    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && set_limit(RLIMIT_CPU, seconds) &&
           (IS_SANITIZED || set_limit(RLIMIT_AS, address_space + plan->memory_max)) &&
           set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_NOFILE, 0) &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && (IS_SANITIZED || forbid_calls());
}

static void
run_child(const UprofChildPlan *plan, int fd, UprofChildOutput *output, const char *maps,
          uint64_t address_space)
{
    static const int handled[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU };

    /* The handlers of the parent must not run in the child. */
    for (size_t i = 0; i < G_N_ELEMENTS(handled); i++)
        signal(handled[i], SIG_DFL);
    unmap_shared_memory(maps);
    if (!close_files(fd) || !drop_rights(plan, address_space))
        _exit(EXIT_UNSAFE);
    output->fd = PIPE_FD;
    plan->work(output, plan->data);
    flush_output(output);
    _exit(0);
}

/* Returns: false at the end of the answer, or if a limit is reached */
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

/* This process has no rights either, and cannot fork: it does the work itself. */
static GByteArray *
run_in_place(const UprofChildPlan *plan, UprofChildEnd *end)
{
    g_autofree UprofChildOutput *output = g_new0(UprofChildOutput, 1);

    output->kept = g_byte_array_new();
    output->kept_max = plan->answer_max;
    plan->work(output, plan->data);
    flush_output(output);
    *end = output->kept_max > 0 ? UPROF_CHILD_DONE : UPROF_CHILD_WORDY;
    return output->kept;
}

GByteArray *
uprof_child_run(const UprofChildPlan *plan, UprofChildEnd *end, GError **error)
{
    if (uprof_confine_is_sealed())
        return run_in_place(plan, end);
    const uint64_t address_space = read_address_space();
    g_autofree UprofChildOutput *output = g_new0(UprofChildOutput, 1);
    g_autofree char *maps = NULL;
    int fds[2];

    if (!g_file_get_contents("/proc/self/maps", &maps, NULL, error)) {
        g_prefix_error(error, "no child process: ");
        return NULL;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        uprof_error_fail_errno(error, "no pipe to a child process");
        return NULL;
    }
    const pid_t pid = fork();
    if (pid == 0)
        run_child(plan, fds[1], output, maps, address_space);
    if (pid < 0)
        uprof_error_fail_errno(error, "no child process");
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return NULL;
    }
    GByteArray *answer = read_answer(pid, fds[0], plan, end);
    close(fds[0]);
    return answer;
}
