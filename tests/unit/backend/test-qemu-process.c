/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program runs itself again as a process that looks like QEMU:
 *
 *   test-qemu-process --child VCPUS ARGUMENT...
 */
#include "../../../src/backend/qemu-process-priv.h"

#include "uprof/process-stat.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
#define OTHER "00000000-0000-4000-8000-000000000002"

enum { NOBODY = 65534, EXIT_NO_KVM = 77, ARGUMENTS_MAX = 6 };

static char *own_path;    /* of this program */
static char *copied_path; /* a copy that belongs to nobody */

/* ---- The child ---- */

static void
make_vcpus(unsigned n)
{
    const int kvm = open("/dev/kvm", O_RDWR);
    const int vm = kvm >= 0 ? ioctl(kvm, KVM_CREATE_VM, 0) : -1;

    for (unsigned i = 0; i < n; i++)
        if (vm < 0 || ioctl(vm, KVM_CREATE_VCPU, i) < 0)
            _exit(EXIT_NO_KVM);
}

static int
run_child(const char *n_vcpus)
{
    const unsigned n = (unsigned)atoi(n_vcpus);

    if (n > 0)
        make_vcpus(n);
    if (write(STDOUT_FILENO, "x", 1) != 1)
        return 1;
    for (;;)
        pause();
}

/* ---- The test ---- */

typedef struct {
    const char *name;
    const char *arguments[ARGUMENTS_MAX];
    const char *n_vcpus; /* vCPUs that the process makes */
    uid_t user;          /* of the process */
    bool is_copy;        /* its executable belongs to nobody */
    bool is_session;     /* libvirt's daemon belongs to a user */
    uid_t expected;      /* user of libvirt's QEMU */
    unsigned n_kvm_cpus; /* of the domain */
    const char *error;   /* pattern; NULL: the process is QEMU */
} Case;

/* clang-format off */
static const Case cases[] = {
    { "emulated", { "-name", "x", "-uuid", UUID }, "0" },
    { "kvm",      { "-uuid", UUID }, "2", .n_kvm_cpus = 2 },
    { "unplugged", { "-uuid", UUID }, "3", .n_kvm_cpus = 2 },
    { "other-user", { "-uuid", UUID }, "0", .user = NOBODY, .expected = NOBODY },
    { "session", { "-uuid", UUID }, "0", .user = NOBODY, .expected = NOBODY, .is_session = true, .is_copy = true },
    { "uuid-as-name", { "-name", UUID }, "0", .error = "*not started for this domain" },
    { "uuid-in-argument", { "-uuid", "x" UUID }, "0", .error = "*not started for this domain" },
    { "uuid-of-other", { "-uuid", OTHER }, "0", .error = "*not started for this domain" },
    { "uuid-missing", { "-uuid" }, "0", .error = "*not started for this domain" },
    { "local-user", { "-uuid", UUID }, "0", .user = NOBODY, .error = "*has another user than*" },
    { "local-user-of-root", { "-uuid", UUID }, "0", .expected = NOBODY, .error = "*has another user than*" },
    { "copied-program", { "-uuid", UUID }, "0", .is_copy = true, .error = "the executable of the process*can be changed*" },
    { "copy-of-user", { "-uuid", UUID }, "0", .user = NOBODY, .expected = NOBODY, .is_copy = true,
      .error = "the executable of the process*can be changed*" },
    { "copy-of-other", { "-uuid", UUID }, "0", .is_session = true, .is_copy = true,
      .error = "the executable of the process*can be changed*" },
    { "no-vcpus", { "-uuid", UUID }, "0", .n_kvm_cpus = 1, .error = "*does not have the vCPUs*" },
    { "too-few-vcpus", { "-uuid", UUID }, "1", .n_kvm_cpus = 2, .error = "*does not have the vCPUs*" },
};
/* clang-format on */

static pid_t
start_process(const Case *row, int *ready)
{
    const char *path = row->is_copy ? copied_path : own_path;
    const char *words[ARGUMENTS_MAX + 4] = { path, "--child", row->n_vcpus };
    int ends[2];

    for (unsigned i = 0; i < ARGUMENTS_MAX; i++)
        words[i + 3] = row->arguments[i];
    g_assert_cmpint(pipe(ends), ==, 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        if (row->user != 0 && (setgid(row->user) != 0 || setuid(row->user) != 0))
            _exit(1);
        execv(path, (char **)words);
        _exit(1);
    }
    close(ends[1]);
    *ready = ends[0];
    return pid;
}

/* Returns: false if there is no KVM for the process */
static bool
is_ready(pid_t pid, int ready)
{
    char byte;
    int status;

    if (read(ready, &byte, 1) == 1)
        return true;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, EXIT_NO_KVM);
    return false;
}

static void
end_process(pid_t pid, int ready)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready);
}

static void
check_case(const Case *row, pid_t pid)
{
    const UprofQemuIdentity identity = {
        .uuid = UUID,
        .users = &row->expected,
        .n_users = 1,
        .is_system = !row->is_session,
        .n_kvm_cpus = row->n_kvm_cpus,
    };
    UprofQemuProcess process = { 0 };
    const char *why = uprof_qemu_process_open(pid, &identity, &process);

    if (row->error) {
        if (!why || !g_pattern_match_simple(row->error, why))
            g_error("%s: %s", row->name, why ? why : "accepted");
        g_assert_cmpint(process.pid, ==, 0);
        return;
    }
    g_assert_cmpstr(why, ==, NULL);
    g_assert_cmpstr(process.why_unproven, ==, NULL);
    g_assert_cmpint(process.pid, ==, pid);
    g_assert_cmpuint(process.start, ==, uprof_process_stat_start(pid));
    g_assert_false(uprof_qemu_process_has_ended(process.pidfd));
    kill(pid, SIGKILL);
    struct pollfd end = { .fd = process.pidfd, .events = POLLIN };
    g_assert_cmpint(poll(&end, 1, 10000), ==, 1);
    g_assert_true(uprof_qemu_process_has_ended(process.pidfd));
    close(process.pidfd);
}

static void
test_case(gconstpointer data)
{
    const Case *row = data;
    int ready;

    if (geteuid() != 0) {
        g_test_skip("needs root");
        return;
    }
    const pid_t pid = start_process(row, &ready);
    if (!is_ready(pid, ready)) {
        close(ready);
        g_test_skip("needs KVM");
        return;
    }
    check_case(row, pid);
    end_process(pid, ready);
}

/* A number that no process has, and the number of a zombie. */
static void
test_ended(void)
{
    const uid_t user = getuid();
    const UprofQemuIdentity identity = { .uuid = UUID, .users = &user, .n_users = 1 };
    UprofQemuProcess process = { 0 };
    siginfo_t info;

    g_assert_nonnull(uprof_qemu_process_open(0x7fffffff, &identity, &process));
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    g_assert_cmpint(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), ==, 0);
    g_assert_nonnull(uprof_qemu_process_open(pid, &identity, &process));
    waitpid(pid, NULL, 0);
    g_assert_cmpint(process.pid, ==, 0);
    g_assert_false(uprof_qemu_process_has_ended(-1));
}

/* Without rights over QEMU's process, that process is found, but cannot be proven to be QEMU. */
static void
test_unprivileged(void)
{
    const Case row = { "unprivileged", { "-uuid", UUID }, "0" };
    const uid_t root = 0;
    const UprofQemuIdentity identity = {
        .uuid = UUID, .users = &root, .n_users = 1, .is_system = true
    };
    int ready, status;

    if (geteuid() != 0) {
        g_test_skip("needs root");
        return;
    }
    const pid_t pid = start_process(&row, &ready);
    g_assert_true(is_ready(pid, ready));
    const pid_t observer = fork();
    if (observer == 0) {
        UprofQemuProcess process = { 0 };
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(1);
        const char *why = uprof_qemu_process_open(pid, &identity, &process);
        _exit(!why && process.pid == pid && process.why_unproven ? 0 : 2);
    }
    g_assert_cmpint(waitpid(observer, &status, 0), ==, observer);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
    end_process(pid, ready);
}

/* Makes copies with known owners, because the files of the build may belong to anybody. */
static void
copy_program(const char *folder)
{
    g_autofree char *bytes = NULL;
    gsize len;

    own_path = g_build_filename(folder, "of-root", NULL);
    copied_path = g_build_filename(folder, "of-nobody", NULL);
    g_assert_true(g_file_get_contents("/proc/self/exe", &bytes, &len, NULL));
    g_assert_true(g_file_set_contents_full(own_path, bytes, (gssize)len, G_FILE_SET_CONTENTS_NONE,
                                           0755, NULL));
    g_assert_true(g_file_set_contents_full(copied_path, bytes, (gssize)len,
                                           G_FILE_SET_CONTENTS_NONE, 0755, NULL));
    g_assert_cmpint(chmod(folder, 0755), ==, 0);
    if (geteuid() == 0)
        g_assert_cmpint(chown(copied_path, NOBODY, NOBODY), ==, 0);
}

int
main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--child") == 0)
        return run_child(argv[2]);
    g_test_init(&argc, &argv, NULL);
    g_autofree char *folder = g_dir_make_tmp("uprof-process-XXXXXX", NULL);
    copy_program(folder);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/qemu-process/", cases[i].name, NULL);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/qemu-process/ended", test_ended);
    g_test_add_func("/qemu-process/unprivileged", test_unprivileged);
    const int status = g_test_run();
    unlink(own_path);
    unlink(copied_path);
    rmdir(folder);
    g_free(own_path);
    g_free(copied_path);
    return status;
}
