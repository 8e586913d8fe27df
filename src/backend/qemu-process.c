/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "qemu-process-priv.h"

#include "uprof/owner-check.h"
#include "uprof/process-stat.h"
#include "uprof/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CMDLINE_BYTES_MAX = 1024 * 1024,
    N_USER_IDS = 4, /* real, effective, saved, of file systems */
};

static const char not_permitted[] =
    "looking at the QEMU process is not permitted (CAP_SYS_PTRACE, or hidepid of /proc)";

/* Returns: (transfer full) (nullable): the content of a file of @pid */
static char *
read_file(pid_t pid, const char *name, gsize *len)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, name);
    char *text = NULL;

    return g_file_get_contents(path, &text, len, NULL) ? text : NULL;
}

/* libvirt starts QEMU with the arguments "-uuid" and the UUID. */
static const char *
check_arguments(pid_t pid, const UprofQemuIdentity *identity)
{
    gsize len = 0;
    g_autofree char *text = read_file(pid, "cmdline", &len);
    bool is_next = false;

    if (!text)
        return not_permitted;
    if (len > CMDLINE_BYTES_MAX)
        return "the command line of the process that libvirt names is too long";
    for (const char *word = text; word < text + len; word += strlen(word) + 1) {
        if (is_next && g_ascii_strcasecmp(word, identity->uuid) == 0)
            return NULL;
        is_next = strcmp(word, "-uuid") == 0;
    }
    return "the process that libvirt names was not started for this domain";
}

static bool
may_be_user(const UprofQemuIdentity *identity, uint64_t user)
{
    for (unsigned i = 0; i < identity->n_users; i++)
        if (identity->users[i] == user)
            return true;
    return false;
}

/* Status has a line "Uid:" with four numbers. */
static const char *
check_user(pid_t pid, const UprofQemuIdentity *identity)
{
    gsize len = 0;
    g_autofree char *text = read_file(pid, "status", &len);
    UprofScan scan = { .name = "status", .rest = { text, len } };
    UprofSlice line, word;
    uint64_t user;

    while (text && uprof_scan_line(&scan, &line)) {
        if (!uprof_scan_word(&line, &word) || !uprof_slice_is(word, "Uid:"))
            continue;
        for (unsigned i = 0; i < N_USER_IDS; i++)
            if (!uprof_scan_word(&line, &word) ||
                !uprof_slice_to_uint(word, 10, 0, UINT32_MAX, &user) ||
                !may_be_user(identity, user))
                return "the process that libvirt names has another user than libvirt's QEMU";
        return NULL;
    }
    return not_permitted;
}

static const char *
check_executable(pid_t pid, const UprofQemuIdentity *identity)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/exe", (int)pid);
    struct stat info;

    /* the link leads to the file itself, even if another file has its name now */
    if (stat(path, &info) != 0)
        return not_permitted;
    const uid_t owner =
        !identity->is_system && may_be_user(identity, info.st_uid) ? info.st_uid : 0;
    if (S_ISREG(info.st_mode) && uprof_owner_is_safe(&info, UPROF_OWNER_USER, owner))
        return NULL;
    return "the executable of the process that libvirt names can be changed by others than root";
}

static bool
is_kvm_vcpu(pid_t pid, const char *descriptor)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd/%s", (int)pid, descriptor);
    g_autofree char *target = g_file_read_link(path, NULL);

    return target && g_str_has_prefix(target, "anon_inode:kvm-vcpu");
}

/* QEMU keeps the descriptors of vCPUs that were unplugged, so there may be more of them. */
static const char *
check_vcpus(pid_t pid, const UprofQemuIdentity *identity)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GDir) dir = identity->n_kvm_cpus > 0 ? g_dir_open(path, 0, NULL) : NULL;
    const char *name;
    unsigned n = 0;

    if (identity->n_kvm_cpus == 0)
        return NULL;
    if (!dir)
        return not_permitted;
    while ((name = g_dir_read_name(dir)))
        n += is_kvm_vcpu(pid, name);
    return n >= identity->n_kvm_cpus
               ? NULL
               : "the process that libvirt names does not have the vCPUs of this domain";
}

/* @why_unproven: (out) (nullable). Returns: (nullable): why it is another process */
static const char *
check_process(pid_t pid, const UprofQemuIdentity *identity, const char **why_unproven)
{
    /* any user can make the first two checks */
    static const char *(*const checks[])(pid_t pid, const UprofQemuIdentity *identity) = {
        check_arguments,
        check_user,
        check_executable,
        check_vcpus,
    };

    *why_unproven = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(checks); i++) {
        const char *why = checks[i](pid, identity);
        if (why && (why != not_permitted || i < 2))
            return why;
        if (why)
            *why_unproven = why;
    }
    return NULL;
}

bool
uprof_qemu_process_has_ended(int pidfd)
{
    struct pollfd wait = { .fd = pidfd, .events = POLLIN };

    return pidfd >= 0 && poll(&wait, 1, 0) > 0;
}

const char *
uprof_qemu_process_open(pid_t pid, const UprofQemuIdentity *identity, UprofQemuProcess *process)
{
    const uint64_t start = uprof_process_stat_start(pid);
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    const char *why_unproven;
    const char *why = check_process(pid, identity, &why_unproven);

    /* without pidfd_open(), the same start time shows that the number still means this process */
    if (!why && (start == 0 || uprof_qemu_process_has_ended(pidfd) ||
                 uprof_process_stat_start(pid) != start))
        why = "the QEMU process has just ended";
    if (!why) {
        *process = (UprofQemuProcess){ pid, start, pidfd, why_unproven };
        return NULL;
    }
    if (pidfd >= 0)
        close(pidfd);
    return why;
}
