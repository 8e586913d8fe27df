/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confine.h"

#include "confine-priv.h"
#include "path-priv.h"
#include "sanitized-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>

#define HAS_LEAK_CHECK
#endif
#endif

/* The user of processes without rights; `nobody` if the host does not have this user */
#define CONFINE_USER "virt-uprof"

enum {
    FIRST_KEPT_FD = 3,
    FDS_MAX = 256, /* descriptors of a sealed process: files come one at a time */
};

/* ---- Descriptors ---- */

static bool
close_from(unsigned first)
{
    if (syscall(SYS_close_range, first, UINT32_MAX, 0) == 0)
        return true;
    for (long i = first; i < sysconf(_SC_OPEN_MAX); i++)
        close((int)i);
    return true;
}

/* Moves the kept descriptors to high numbers first, so that none of them is overwritten. */
static bool
keep_descriptors(const int *kept, unsigned n_kept, bool keeps_streams)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int moved[UPROF_CONFINE_FDS_MAX + 1];

    g_assert(n_kept <= UPROF_CONFINE_FDS_MAX);
    for (unsigned i = 0; i <= n_kept; i++) {
        moved[i] = fcntl(i < n_kept ? kept[i] : null, F_DUPFD_CLOEXEC,
                         FIRST_KEPT_FD + UPROF_CONFINE_FDS_MAX);
        if (moved[i] < 0)
            return false;
    }
    for (unsigned i = 0; i < n_kept; i++)
        if (dup3(moved[i], FIRST_KEPT_FD + (int)i, O_CLOEXEC) < 0)
            return false;
    /* a report of a sanitizer must be seen */
    for (int i = 0; i < FIRST_KEPT_FD && !keeps_streams; i++)
        if (!(IS_SANITIZED && i == STDERR_FILENO) && dup2(moved[n_kept], i) < 0)
            return false;
    return close_from(FIRST_KEPT_FD + n_kept);
}

/* ---- Name spaces ---- */

/*
 * Moves this process to new namespaces, with an empty root folder. If that fails, the process can
 * still open no files and no sockets after it is sealed.
 *
 * Returns: (nullable): why not; literal
 */
static const char *
leave_host(void)
{
    static const char folder[] = "/tmp"; /* exists everywhere */

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) != 0)
        return errno == EPERM ? "this process may not make namespaces"
                              : "this kernel has no namespaces to make";
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
              "size=4k,mode=0555") != 0 ||
        chdir(folder) != 0 || chroot(".") != 0 || chdir("/") != 0)
        return "an empty root folder cannot be mounted";
    return NULL;
}

/* ---- The user ---- */

/* Returns: false if no user without rights is known */
static bool
find_user(uid_t *uid, gid_t *gid)
{
    static const char *const names[] = { CONFINE_USER, "nobody" };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const struct passwd *user = getpwnam(names[i]);
        if (user && user->pw_uid != 0) {
            *uid = user->pw_uid;
            *gid = user->pw_gid;
            return true;
        }
    }
    return false;
}

/* Returns: (nullable): why the user is still root; literal */
static const char *
change_user(uid_t uid, gid_t gid)
{
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return errno == EPERM ? "this process lacks CAP_SETUID or CAP_SETGID"
                              : "the user '" CONFINE_USER "' or 'nobody' cannot be used here";
    return NULL;
}

/* Drops all capabilities, also those that this process would get if it executed a program. */
static bool
drop_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    /* needs CAP_SETPCAP; without it, no_new_privs has the same effect */
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0;
}

/* Returns: false with an error if the process could get rights back */
static bool
end_privileges(GError **error)
{
    if (!drop_capabilities())
        return uprof_error_fail_errno(error, "cannot drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_DUMPABLE, IS_SANITIZED, 0, 0, 0) != 0)
        return uprof_error_fail_errno(error, "cannot drop rights");
    return true;
}

bool
uprof_confine_leave_root(GError **error)
{
    const char *why = NULL;
    uid_t uid = 0;
    gid_t gid = 0;

    if (geteuid() == 0)
        why = find_user(&uid, &gid) ? change_user(uid, gid) : "the host has no user 'nobody'";
    if (why) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s", why);
        return false;
    }
    return end_privileges(error);
}

void
uprof_confine_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

bool
uprof_confine_drop(const int *kept, unsigned n_kept, bool keeps_streams, UprofConfined *confined,
                   GError **error)
{
    UprofConfined own = { 0 };
    const bool is_root = geteuid() == 0;
    uid_t uid = 0;
    gid_t gid = 0;

    /* looks up the user in files of the host, before leave_host() */
    const bool has_user = is_root && find_user(&uid, &gid);
    uprof_path_remember_folder();
    if (!keep_descriptors(kept, n_kept, keeps_streams))
        return uprof_error_fail_errno(error, "cannot close files");
    own.why_same_view = IS_SANITIZED ? "sanitizers need the files of the host" : leave_host();
    if (is_root)
        own.why_same_user = has_user ? change_user(uid, gid) : "the host has no user 'nobody'";
    if (!end_privileges(error))
        return false;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return uprof_error_fail_errno(error, "cannot drop rights");
    if (confined)
        *confined = own;
    return true;
}

/* ---- System calls ---- */

/* Calls for private memory, for open descriptors, for the time, and for ending. */
static const int allowed_calls[] = {
    /* clang-format off */
    SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mprotect), SCMP_SYS(mremap), SCMP_SYS(munmap),
    SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(lseek), SCMP_SYS(poll), SCMP_SYS(ppoll),
    SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(read), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
    SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(gettimeofday),
    SCMP_SYS(timer_create), SCMP_SYS(timer_delete), SCMP_SYS(timer_settime),
    SCMP_SYS(futex), SCMP_SYS(getpid), SCMP_SYS(getrandom), SCMP_SYS(getrusage), SCMP_SYS(gettid),
    SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sched_yield), SCMP_SYS(sigaltstack), SCMP_SYS(sysinfo),
    SCMP_SYS(exit), SCMP_SYS(exit_group),
    /* clang-format on */
};

/* TCGETS2 of ioctl_tty(2), which newer C libraries use. Its struct is in no header of libc. */
#define GET_TERMIOS2 0x802c542a

/* Compares the low 32 bits of argument @n: the kernel ignores the upper bits of an int. */
#define INT_ARGUMENT_IS(n, value) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))

static bool
add_rules(scmp_filter_ctx filter)
{
    /* a kernel before 4.14 can only kill the thread, and the process has one */
    bool ok = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0 ||
              seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL) == 0;

    for (size_t i = 0; i < G_N_ELEMENTS(allowed_calls); i++)
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0) == 0;
    /* abort() sends the signal to this process */
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                INT_ARGUMENT_IS(0, getpid())) == 0;
    /* malloc() maps memory without a file */
    ok = ok &&
         seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, INT_ARGUMENT_IS(4, -1)) == 0;
    /* glibc's fstat(); a path that comes with this flag is looked up in an empty root folder */
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                                INT_ARGUMENT_IS(3, AT_EMPTY_PATH)) == 0;
    /* isatty() and the size of the terminal */
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                INT_ARGUMENT_IS(1, TCGETS)) == 0;
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                INT_ARGUMENT_IS(1, GET_TERMIOS2)) == 0;
    return ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                  INT_ARGUMENT_IS(1, TIOCGWINSZ)) == 0;
}

static bool
forbid_calls(void)
{
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    const bool ok = filter && add_rules(filter) && seccomp_load(filter) == 0;

    seccomp_release(filter);
    return ok;
}

/* ---- Limits ---- */

/* Sets a limit to @value, unless it is lower already. */
static bool
set_limit(int resource, uint64_t value)
{
    struct rlimit limits;

    if (getrlimit((__rlimit_resource_t)resource, &limits) != 0)
        return false;
    limits.rlim_max = MIN(limits.rlim_max, (rlim_t)value);
    limits.rlim_cur = MIN(limits.rlim_cur, limits.rlim_max);
    return setrlimit((__rlimit_resource_t)resource, &limits) == 0;
}

/* The soft limit sends SIGXCPU, which shows the cause. A second later, SIGKILL follows. */
static bool
limit_processor_time(uint64_t seconds)
{
    struct rlimit limits;

    if (!set_limit(RLIMIT_CPU, seconds + 1) || getrlimit(RLIMIT_CPU, &limits) != 0)
        return false;
    limits.rlim_cur = MIN(limits.rlim_cur, (rlim_t)seconds);
    return setrlimit(RLIMIT_CPU, &limits) == 0;
}

bool
uprof_confine_seal(const UprofConfineLimits *limits, GError **error)
{
    bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && set_limit(RLIMIT_CORE, 0) &&
              set_limit(RLIMIT_NOFILE, FDS_MAX);

    if (limits->cpu_s > 0)
        ok = ok && limit_processor_time(limits->cpu_s);
    if (limits->file_max > 0)
        ok = ok && set_limit(RLIMIT_FSIZE, limits->file_max);
    /* a sanitizer makes threads and maps terabytes */
    if (!IS_SANITIZED)
        ok = ok && set_limit(RLIMIT_NPROC, 0) && set_limit(RLIMIT_DATA, limits->memory_max) &&
             forbid_calls();
    return ok || uprof_error_fail_errno(error, "cannot confine a process");
}

bool
uprof_confine_has_leaks(void)
{
#ifdef HAS_LEAK_CHECK
    return __lsan_do_recoverable_leak_check() != 0;
#else
    return false;
#endif
}

bool
uprof_confine_limit_helper(uint64_t memory_max, uint64_t cpu_s)
{
    /* a sanitizer maps terabytes */
    return (IS_SANITIZED || set_limit(RLIMIT_AS, memory_max)) && set_limit(RLIMIT_CPU, cpu_s) &&
           set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_FSIZE, 0);
}
