/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker of this test acts as if a hostile file controlled it: it tries in many ways to exceed
 * its rights.
 */
#include "uprof/channel.h"
#include "uprof/spawner.h"
#include "../../../src/base/sanitized-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 10 * 1000 };

/* Orders to the worker: types of messages. */
enum { DO_TRY = 1, DO_END, DO_DIE, DO_SPIN, DO_GROW, DO_WAIT };

/* ---- Attempts of the worker. Each returns -1 with errno if it was refused. ---- */

static long
open_file(void)
{
    return open("/etc/passwd", O_RDONLY);
}

static long
open_device(void)
{
    return open("/dev/null", O_RDWR);
}

static long
open_memory(void)
{
    return open("/proc/1/mem", O_RDONLY);
}

static long
open_folder(void)
{
    return openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
}

static long
make_file(void)
{
    return open("/tmp/uprof-escaped", O_WRONLY | O_CREAT, 0600);
}

static long
make_folder(void)
{
    return mkdir("/tmp/uprof-escaped", 0700);
}

static long
remove_file(void)
{
    return unlink("/tmp/uprof-escaped");
}

static long
rename_file(void)
{
    return rename("/tmp/uprof-escaped", "/tmp/uprof-escaped-2");
}

static long
change_mode(void)
{
    return chmod("/tmp", 0777);
}

static long
make_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long
make_network_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long
connect_daemon(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/libvirt/libvirt-sock" };

    return connect(STDERR_FILENO + 1, (const struct sockaddr *)&address, sizeof(address));
}

static long
fork_process(void)
{
    return fork();
}

static long
clone_thread(void)
{
    return syscall(SYS_clone, CLONE_VM | CLONE_FS | SIGCHLD, 0, 0, 0, 0);
}

static long
run_program(void)
{
    char *const words[] = { (char *)"/bin/true", NULL };

    return execve(words[0], words, NULL);
}

static long
trace_parent(void)
{
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static long
read_process(void)
{
    char byte;
    struct iovec local = { &byte, 1 }, remote = { &byte, 1 };

    return process_vm_readv(getppid(), &local, 1, &remote, 1, 0);
}

static long
kill_parent(void)
{
    return kill(getppid(), SIGCONT);
}

static long
signal_everybody(void)
{
    return kill(-1, SIGCONT);
}

static long
become_root(void)
{
    return setuid(0);
}

static long
mount_folder(void)
{
    return mount("none", "/", "tmpfs", 0, NULL);
}

static long
make_name_space(void)
{
    return unshare(CLONE_NEWUSER);
}

static long
leave_root(void)
{
    return chroot("/");
}

static long
raise_limit(void)
{
    const struct {
        unsigned long now, most;
    } limit = { 1, 1 };

    return syscall(SYS_prlimit64, 0, 7, &limit, NULL);
}

static long
map_file(void)
{
    return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, STDERR_FILENO + 1, 0) == MAP_FAILED ? -1 : 0;
}

static long
use_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0);
}

static long
open_events(void)
{
    return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static const struct {
    const char *name;
    long (*attempt)(void);
} attempts[] = {
    { "open-file", open_file },
    { "open-device", open_device },
    { "open-memory", open_memory },
    { "open-folder", open_folder },
    { "make-file", make_file },
    { "make-folder", make_folder },
    { "remove-file", remove_file },
    { "rename-file", rename_file },
    { "change-mode", change_mode },
    { "make-socket", make_socket },
    { "make-network-socket", make_network_socket },
    { "connect", connect_daemon },
    { "fork", fork_process },
    { "clone", clone_thread },
    { "run-program", run_program },
    { "trace", trace_parent },
    { "read-process", read_process },
    { "kill", kill_parent },
    { "signal-everybody", signal_everybody },
    { "become-root", become_root },
    { "mount", mount_folder },
    { "name-space", make_name_space },
    { "chroot", leave_root },
    { "limit", raise_limit },
    { "map-file", map_file },
    { "bpf", use_bpf },
    { "perf-events", open_events },
};

/* errno of each attempt; 0 if it was not refused */
typedef struct {
    int refusals[G_N_ELEMENTS(attempts)];
} Result;

static void
grow(void)
{
    for (;;)
        memset(g_malloc(1 << 20), 1, 1 << 20);
}

static int
work(const int *fds, unsigned n_fds, void *data)
{
    UprofMessage message;
    Result result = { 0 };

    while (uprof_channel_receive(fds[0], &message, NULL, 0)) {
        const UprofSlice part = { &result, sizeof(result) };
        if (message.type == DO_END)
            return 7;
        if (message.type == DO_DIE)
            abort();
        for (volatile bool spins = message.type == DO_SPIN; spins;)
            ;
        if (message.type == DO_GROW)
            grow();
        for (size_t i = 0; message.type == DO_TRY && i < G_N_ELEMENTS(attempts); i++)
            result.refusals[i] = attempts[i].attempt() == -1 ? errno : 0;
        uprof_channel_send(fds[0], 0, &part, 1, NULL, 0);
    }
    return 0;
}

typedef struct {
    UprofSpawner *spawner;
    pid_t worker;
    int channel;
} Fixture;

static const char keeping_streams[] = "the worker keeps the streams, as that of `report` does";

static void
set_up(Fixture *fixture, gconstpointer data)
{
    const UprofSpawnPlan plan = {
        .work = work,
        .keeps_streams = data == keeping_streams,
        .limits = { .memory_max = 64 << 20, .cpu_s = 1 },
    };
    int ends[2];

    fixture->spawner = uprof_spawner_start(&plan, NULL);
    g_assert_nonnull(fixture->spawner);
    g_assert_true(uprof_channel_new(ends, NULL));
    fixture->worker = uprof_spawner_spawn(fixture->spawner, &ends[1], 1, NULL);
    g_assert_cmpint(fixture->worker, >, 0);
    close(ends[1]);
    fixture->channel = ends[0];
}

/* Returns: true if the process does not exist or is a zombie */
static bool
has_ended(pid_t process)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", process);
    g_autofree char *text = NULL;

    return !g_file_get_contents(path, &text, NULL, NULL) || strstr(text, ") Z ");
}

/* The worker ends when its spawner ends. */
static void
tear_down(Fixture *fixture, gconstpointer data)
{
    close(fixture->channel);
    uprof_spawner_end(fixture->spawner);
    for (unsigned i = 0; i < END_MS && !has_ended(fixture->worker); i++)
        g_usleep(1000);
    g_assert_true(has_ended(fixture->worker));
}

static void
tell(const Fixture *fixture, uint32_t type)
{
    g_assert_true(uprof_channel_send(fixture->channel, type, NULL, 0, NULL, 0));
}

static void
test_refused(Fixture *fixture, gconstpointer data)
{
    UprofMessage message;
    Result result;

    if (IS_SANITIZED) {
        g_test_skip("sanitizers need system calls of their own");
        return;
    }
    tell(fixture, DO_TRY);
    g_assert_true(uprof_channel_receive(fixture->channel, &message, &result, sizeof(result)));
    for (size_t i = 0; i < G_N_ELEMENTS(attempts); i++) {
        g_test_message("%s: %s", attempts[i].name, g_strerror(result.refusals[i]));
        g_assert_cmpint(result.refusals[i], ==, EPERM);
    }
}

static char *
read_status(pid_t process, const char *key)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", process);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *line = strstr(text, key);
    g_assert_nonnull(line);
    return g_strndup(line + strlen(key), strcspn(line + strlen(key), "\n"));
}

/* Waits until the worker has answered, so that it is sealed. */
static void
wait_for_worker(const Fixture *fixture)
{
    UprofMessage message;
    Result result;

    tell(fixture, DO_WAIT);
    g_assert_true(uprof_channel_receive(fixture->channel, &message, &result, sizeof(result)));
}

static void
test_rights(Fixture *fixture, gconstpointer data)
{
    static const char *const empty[] = { "\nCapInh:\t", "\nCapPrm:\t", "\nCapEff:\t",
                                         "\nCapAmb:\t" };

    wait_for_worker(fixture);
    for (size_t i = 0; i < G_N_ELEMENTS(empty); i++) {
        g_autofree char *mask = read_status(fixture->worker, empty[i]);
        g_assert_cmpstr(mask, ==, "0000000000000000");
    }
    g_autofree char *privileges = read_status(fixture->worker, "\nNoNewPrivs:\t");
    g_assert_cmpstr(privileges, ==, "1");
    g_autofree char *seccomp = read_status(fixture->worker, "\nSeccomp:\t");
    if (!IS_SANITIZED)
        g_assert_cmpstr(seccomp, ==, "2");
    g_autofree char *uid = read_status(fixture->worker, "\nUid:\t");
    if (!uprof_spawner_confined(fixture->spawner)->why_same_user)
        g_assert_false(g_str_has_prefix(uid, "0\t"));
    else
        g_assert_cmpuint(geteuid(), ==, 0);
}

/* The worker has namespaces of its own, with an empty root folder. */
static void
test_view(Fixture *fixture, gconstpointer data)
{
    static const char *const spaces[] = { "mnt", "net", "ipc" };
    g_autofree char *root = g_strdup_printf("/proc/%d/root", fixture->worker);
    const char *why = uprof_spawner_confined(fixture->spawner)->why_same_view;

    wait_for_worker(fixture);
    if (why) {
        g_test_skip(why);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(spaces); i++) {
        g_autofree char *path = g_strdup_printf("/proc/%d/ns/%s", fixture->worker, spaces[i]);
        g_autofree char *own_path = g_strdup_printf("/proc/self/ns/%s", spaces[i]);
        g_autofree char *space = g_file_read_link(path, NULL);
        g_autofree char *own = g_file_read_link(own_path, NULL);
        g_assert_nonnull(space);
        g_assert_cmpstr(space, !=, own);
    }
    g_autoptr(GDir) folder = g_dir_open(root, 0, NULL);
    g_assert_nonnull(folder);
    g_assert_null(g_dir_read_name(folder));
    g_autofree char *file = g_build_filename(root, "file", NULL);
    g_assert_cmpint(open(file, O_WRONLY | O_CREAT, 0600), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
}

/* @line: the start of a line of /proc/PID/limits; @value: the limit in it */
static void
assert_limit(pid_t process, const char *line, const char *value)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/limits", process);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *found = strstr(text, line);
    g_assert_nonnull(found);
    g_autofree char *rest = g_strndup(found + strlen(line), 20);
    g_auto(GStrv) words = g_strsplit_set(g_strstrip(rest), " ", 2);
    g_assert_cmpstr(words[0], ==, value);
}

static void
test_limits(Fixture *fixture, gconstpointer data)
{
    wait_for_worker(fixture);
    assert_limit(fixture->worker, "Max cpu time ", "1");
    assert_limit(fixture->worker, "Max core file size ", "0");
    assert_limit(fixture->worker, "Max open files ", "256");
    if (IS_SANITIZED)
        return;
    assert_limit(fixture->worker, "Max processes ", "0");
    assert_limit(fixture->worker, "Max data size ", "67108864");
}

/* The worker has only its standard streams and its channel. */
static void
test_descriptors(Fixture *fixture, gconstpointer data)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", fixture->worker);
    unsigned n = 0, n_null = 0;
    const char *name;

    wait_for_worker(fixture);
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    if (!folder) {
        g_test_skip("only root may list the descriptors of another user");
        return;
    }
    while ((name = g_dir_read_name(folder))) {
        g_autofree char *link = g_build_filename(path, name, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);
        n++;
        n_null += g_strcmp0(target, "/dev/null") == 0;
    }
    g_assert_cmpuint(n, ==, 4);
    g_assert_cmpuint(n_null, ==, IS_SANITIZED ? 2 : 3);
}

static void
test_ends(Fixture *fixture, gconstpointer data)
{
    tell(fixture, DO_END);
    const int status = uprof_spawner_wait(fixture->spawner, fixture->worker, END_MS);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 7);
}

static void
test_dies(Fixture *fixture, gconstpointer data)
{
    tell(fixture, DO_DIE);
    const int status = uprof_spawner_wait(fixture->spawner, fixture->worker, END_MS);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGABRT);
}

/* A worker that does not end is killed. */
static void
test_hangs(Fixture *fixture, gconstpointer data)
{
    wait_for_worker(fixture);
    const int status = uprof_spawner_wait(fixture->spawner, fixture->worker, 0);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), ==, SIGKILL);
}

static void
test_spins(Fixture *fixture, gconstpointer data)
{
    tell(fixture, DO_SPIN);
    const int status = uprof_spawner_wait(fixture->spawner, fixture->worker, END_MS);
    g_assert_true(WIFSIGNALED(status));
    /* the soft and the hard limit are equal */
    g_assert_cmpint(WTERMSIG(status), ==, SIGXCPU);
}

static void
test_grows(Fixture *fixture, gconstpointer data)
{
    if (IS_SANITIZED) {
        g_test_skip("sanitizers map terabytes");
        return;
    }
    tell(fixture, DO_GROW);
    const int status = uprof_spawner_wait(fixture->spawner, fixture->worker, END_MS);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpint(WTERMSIG(status), !=, SIGKILL);
}

static void
test_descriptions(void)
{
    /* as of waitpid(2): the exit status is in the second byte, a signal in the first one */
    static const struct {
        int status;
        const char *text; /* (nullable) */
    } cases[] = {
        { 0, NULL },
        { 1 << 8, NULL },
        { SIGKILL, "it died of signal 9 (Killed)" },
        { SIGXCPU, "it used all its processor time" },
        { UPROF_SPAWNER_EXIT_CUT_OFF << 8, "it lost its channel to this program" },
        { 99 << 8, "it could not drop its rights" },
        { -1, "the process that started it has died" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = uprof_spawner_describe_end(cases[i].status);
        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

#define ADD(path, test) g_test_add("/spawner/" path, Fixture, NULL, set_up, test, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("refused", test_refused);
    g_test_add("/spawner/refused/with-streams", Fixture, keeping_streams, set_up, test_refused,
               tear_down);
    ADD("rights", test_rights);
    ADD("view", test_view);
    ADD("limits", test_limits);
    ADD("descriptors", test_descriptors);
    ADD("ends", test_ends);
    ADD("dies", test_dies);
    ADD("hangs", test_hangs);
    ADD("spins", test_spins);
    ADD("grows", test_grows);
    g_test_add_func("/spawner/descriptions", test_descriptions);
    return g_test_run();
}
