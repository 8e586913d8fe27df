/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fail-call.c - a library to preload: calls of one kind fail in one process of a run
 *
 * UPROF_TEST_FAULT: a file with a Page, as tests/lib/faults.py writes it. All processes of a run
 * map the file, so that the calls of each kind are counted over the complete run. A process counts
 * as the program until prctl(PR_SET_NAME) gives it the name of another process of a run.
 *
 * A system call that libc makes for one of its own functions cannot fail here. So the library also
 * replaces functions such as fopen() and opendir().
 */
/* open() and open64() are separate symbols, so both are replaced */
#undef _FILE_OFFSET_BITS

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A program that is built with _FORTIFY_SOURCE calls these functions in place of open(). */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

/* In the order of PROCESSES and KINDS in tests/lib/faults.py. */
enum { PROGRAM, GUARDIAN, SPAWNER, WORKER, N_PROCESSES };
enum {
    OPEN,
    READ,
    WRITE,
    SYNC,
    RENAME,
    REMOVE,
    STAT,
    MMAP,
    PTRACE,
    WAIT,
    POLL,
    FORK,
    THREAD,
    SOCKET,
    SEND,
    RECEIVE,
    MKDIR,
    FLOCK,
    DESCRIPTOR,
    DUPLICATE,
    RIGHTS,
    TIMER,
    N_KINDS
};

enum { CALLERS_MAX = 16, TEXT_BYTES = 1024 };

typedef struct {
    uint32_t process, kind;
    uint32_t first, last; /* numbers of the calls that fail, from 1; 0: none */
    uint32_t code;        /* errno; 0: a read or write transfers half of the bytes */
    uint32_t n_failed;
    uint32_t counts[N_PROCESSES][N_KINDS];
    char callers[TEXT_BYTES]; /* of the first failed call: "file+offset file+offset ..." */
} Page;

static Page *page;
static uint32_t process = PROGRAM;

__attribute__((constructor)) static void
map_page(void)
{
    const char *path = getenv("UPROF_TEST_FAULT");
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    void *callers[CALLERS_MAX];

    if (fd < 0)
        return;
    /* the first backtrace() loads a library, which a process without rights could not do later */
    backtrace(callers, CALLERS_MAX);
    page = (Page *)syscall(SYS_mmap, NULL, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (page == MAP_FAILED)
        abort();
}

static void
note_callers(void)
{
    void *callers[CALLERS_MAX];
    const int n = backtrace(callers, CALLERS_MAX);
    size_t len = 0;

    for (int i = 2; i < n && len < TEXT_BYTES; i++) {
        Dl_info info;
        if (!dladdr(callers[i], &info) || !info.dli_fname)
            continue;
        const char *name = strrchr(info.dli_fname, '/');
        len += (size_t)snprintf(page->callers + len, TEXT_BYTES - len, "%s+0x%zx ",
                                name ? name + 1 : info.dli_fname,
                                (size_t)((char *)callers[i] - (char *)info.dli_fbase));
    }
}

/* Counts a call. Returns: true if it must fail; errno is then set */
static bool
must_fail(uint32_t kind)
{
    if (!page || page == MAP_FAILED)
        return false;
    const uint32_t n = __atomic_add_fetch(&page->counts[process][kind], 1, __ATOMIC_RELAXED);
    if (process != page->process || kind != page->kind || n < page->first || n > page->last)
        return false;
    if (__atomic_fetch_add(&page->n_failed, 1, __ATOMIC_RELAXED) == 0)
        note_callers();
    errno = (int)page->code;
    return true;
}

/* As must_fail(), for reads and writes. If the page asks for it, halves @len instead. */
static bool
must_fail_of(uint32_t kind, size_t *len)
{
    if (!must_fail(kind))
        return false;
    if (page->code != 0 || *len < 2)
        return page->code != 0;
    *len /= 2;
    return false;
}

/* Defines a function with fixed arguments. */
#define REPLACE(kind, type, failure, name, parameters, arguments)                                  \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        return must_fail(kind) ? failure : real arguments;                                         \
    }

/* The same for a function that reads or writes @len bytes. */
#define REPLACE_OF(kind, type, failure, name, parameters, arguments)                               \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        return must_fail_of(kind, &len) ? failure : real arguments;                                \
    }

/* The same for functions whose last argument, a mode, is present only if they may create a file. */
#define REPLACE_OPEN(name, parameters, arguments)                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;            \
        va_end(rest);                                                                              \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        return must_fail(OPEN) ? -1 : real arguments;                                              \
    }

/* clang-format off */
REPLACE_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
REPLACE_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
REPLACE_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
REPLACE_OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
REPLACE(OPEN, int, -1, __open_2, (const char *path, int flags), (path, flags))
REPLACE(OPEN, int, -1, __open64_2, (const char *path, int flags), (path, flags))
REPLACE(OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
REPLACE(OPEN, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
REPLACE(OPEN, DIR *, NULL, opendir, (const char *path), (path))
REPLACE(OPEN, DIR *, NULL, fdopendir, (int fd), (fd))

REPLACE_OF(READ, ssize_t, -1, read, (int fd, void *into, size_t len), (fd, into, len))
REPLACE_OF(READ, ssize_t, -1, pread, (int fd, void *into, size_t len, off_t at), (fd, into, len, at))
REPLACE_OF(READ, ssize_t, -1, pread64, (int fd, void *into, size_t len, off64_t at), (fd, into, len, at))
REPLACE(READ, ssize_t, -1, process_vm_readv, (pid_t pid, const struct iovec *into, unsigned long n_into,
        const struct iovec *from, unsigned long n_from, unsigned long flags), (pid, into, n_into, from, n_from, flags))
REPLACE(READ, ssize_t, -1, readlinkat, (int folder, const char *path, char *into, size_t size), (folder, path, into, size))
REPLACE(READ, struct dirent *, NULL, readdir, (DIR *folder), (folder))
REPLACE(READ, struct dirent64 *, NULL, readdir64, (DIR *folder), (folder))
REPLACE_OF(WRITE, ssize_t, -1, write, (int fd, const void *from, size_t len), (fd, from, len))
REPLACE_OF(WRITE, ssize_t, -1, pwrite, (int fd, const void *from, size_t len, off_t at), (fd, from, len, at))
REPLACE_OF(WRITE, ssize_t, -1, pwrite64, (int fd, const void *from, size_t len, off64_t at), (fd, from, len, at))
REPLACE(WRITE, ssize_t, -1, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
REPLACE(WRITE, int, -1, ftruncate, (int fd, off_t len), (fd, len))
REPLACE(WRITE, int, -1, ftruncate64, (int fd, off64_t len), (fd, len))
REPLACE(SYNC, int, -1, fsync, (int fd), (fd))
REPLACE(RENAME, int, -1, rename, (const char *from, const char *to), (from, to))
REPLACE(RENAME, int, -1, renameat, (int folder, const char *from, int other, const char *to), (folder, from, other, to))
REPLACE(RENAME, int, -1, linkat, (int folder, const char *from, int other, const char *to, int flags),
        (folder, from, other, to, flags))
REPLACE(REMOVE, int, -1, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
REPLACE(STAT, int, -1, fstat64, (int fd, struct stat64 *info), (fd, info))
REPLACE(STAT, int, -1, stat64, (const char *path, struct stat64 *info), (path, info))
REPLACE(STAT, int, -1, lstat64, (const char *path, struct stat64 *info), (path, info))
REPLACE(STAT, int, -1, fstatat64, (int folder, const char *path, struct stat64 *info, int flags),
        (folder, path, info, flags))
REPLACE(STAT, int, -1, fstatvfs64, (int fd, struct statvfs64 *info), (fd, info))
REPLACE(STAT, int, -1, statfs64, (const char *path, struct statfs64 *info), (path, info))
REPLACE(STAT, off_t, -1, lseek, (int fd, off_t at, int from), (fd, at, from))
REPLACE(STAT, off64_t, -1, lseek64, (int fd, off64_t at, int from), (fd, at, from))
REPLACE(MKDIR, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
REPLACE(MKDIR, int, -1, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
REPLACE(FLOCK, int, -1, flock, (int fd, int how), (fd, how))

REPLACE(MMAP, void *, MAP_FAILED, mmap, (void *at, size_t len, int rights, int flags, int fd, off_t from),
        (at, len, rights, flags, fd, from))
REPLACE(MMAP, void *, MAP_FAILED, mmap64, (void *at, size_t len, int rights, int flags, int fd, off64_t from),
        (at, len, rights, flags, fd, from))
REPLACE(MMAP, int, -1, mlock, (const void *at, size_t len), (at, len))

REPLACE(WAIT, pid_t, -1, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
REPLACE(WAIT, int, -1, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options))
REPLACE(POLL, int, -1, poll, (struct pollfd *waits, nfds_t n, int timeout_ms), (waits, n, timeout_ms))
REPLACE(POLL, int, -1, ppoll, (struct pollfd *waits, nfds_t n, const struct timespec *timeout, const sigset_t *mask),
        (waits, n, timeout, mask))
REPLACE(FORK, pid_t, -1, fork, (void), ())
REPLACE(FORK, int, errno, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
        const posix_spawnattr_t *how, char *const words[], char *const variables[]),
        (pid, path, actions, how, words, variables))
REPLACE(THREAD, int, errno, pthread_create, (pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *data),
        (thread, how, run, data))
REPLACE(SOCKET, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
REPLACE(SOCKET, int, -1, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends))
REPLACE(SOCKET, int, -1, connect, (int fd, const struct sockaddr *address, socklen_t len), (fd, address, len))
REPLACE(SEND, ssize_t, -1, send, (int fd, const void *from, size_t len, int flags), (fd, from, len, flags))
REPLACE(SEND, ssize_t, -1, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
REPLACE(RECEIVE, ssize_t, -1, recv, (int fd, void *into, size_t len, int flags), (fd, into, len, flags))
REPLACE(RECEIVE, ssize_t, -1, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))

REPLACE(DESCRIPTOR, int, -1, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
REPLACE(DESCRIPTOR, int, -1, eventfd, (unsigned start, int flags), (start, flags))
REPLACE(DESCRIPTOR, int, -1, pipe, (int ends[2]), (ends))
REPLACE(DESCRIPTOR, int, -1, pipe2, (int ends[2], int flags), (ends, flags))
REPLACE(DESCRIPTOR, int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
REPLACE(DUPLICATE, int, -1, dup2, (int fd, int to), (fd, to))
REPLACE(DUPLICATE, int, -1, dup3, (int fd, int to, int flags), (fd, to, flags))

REPLACE(RIGHTS, int, -1, unshare, (int flags), (flags))
REPLACE(RIGHTS, int, -1, mount, (const char *from, const char *to, const char *type, unsigned long flags, const void *data),
        (from, to, type, flags, data))
REPLACE(RIGHTS, int, -1, chdir, (const char *path), (path))
REPLACE(RIGHTS, int, -1, chroot, (const char *path), (path))
REPLACE(RIGHTS, int, -1, setgroups, (size_t n, const gid_t *groups), (n, groups))
REPLACE(RIGHTS, int, -1, setresgid, (gid_t real_gid, gid_t gid, gid_t saved), (real_gid, gid, saved))
REPLACE(RIGHTS, int, -1, setresuid, (uid_t real_uid, uid_t uid, uid_t saved), (real_uid, uid, saved))
REPLACE(RIGHTS, int, -1, setrlimit64, (__rlimit_resource_t what, const struct rlimit64 *limits), (what, limits))
REPLACE(RIGHTS, pid_t, -1, setsid, (void), ())

REPLACE(TIMER, int, -1, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer))
REPLACE(TIMER, int, -1, timer_settime, (timer_t timer, int flags, const struct itimerspec *when, struct itimerspec *before),
        (timer, flags, when, before))
/* clang-format on */

long
ptrace(enum __ptrace_request request, ...)
{
    static long (*real)(enum __ptrace_request, pid_t, void *, void *);
    va_list arguments;

    va_start(arguments, request);
    const pid_t thread = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    return must_fail(PTRACE) ? -1 : real(request, thread, address, data);
}

static int
change_descriptor(int (*real)(int, int, ...), int fd, int command, void *argument)
{
    const bool is_new = command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_SETFL;

    return is_new && must_fail(DUPLICATE) ? -1 : real(fd, command, argument);
}

int
fcntl64(int fd, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list arguments;

    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
    return change_descriptor(real, fd, command, argument);
}

/* Learns from PR_SET_NAME which process this is. */
int
prctl(int option, ...)
{
    static const char *const names[] = { "", "uprof-guardian", "uprof-spawner", "uprof-worker" };
    static int (*real)(int, ...);
    unsigned long numbers[4];
    va_list arguments;

    va_start(arguments, option);
    for (int i = 0; i < 4; i++)
        numbers[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    for (uint32_t i = GUARDIAN; option == PR_SET_NAME && i < N_PROCESSES; i++)
        if (strcmp((const char *)numbers[0], names[i]) == 0)
            process = i;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "prctl");
    if ((option == PR_SET_NO_NEW_PRIVS || option == PR_SET_PDEATHSIG || option == PR_SET_SECCOMP) &&
        must_fail(RIGHTS))
        return -1;
    return real(option, numbers[0], numbers[1], numbers[2], numbers[3]);
}

long
syscall(long number, ...)
{
    static long (*real)(long, ...);
    unsigned long numbers[6];
    va_list arguments;

    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        numbers[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if ((number == SYS_pidfd_open && must_fail(DESCRIPTOR)) ||
        ((number == SYS_close_range || number == SYS_capset || number == SYS_seccomp) &&
         must_fail(RIGHTS)))
        return -1;
    return real(number, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]);
}
