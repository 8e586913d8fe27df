/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The load `locks`: processes that hold locks of the kernel, and others that wait for them. A
 * process holds a lock as long as the kernel copies from or to its trap: memory that userfaultfd
 * watches and nobody fills.
 *
 * The load prints LOCK PID KIND OWNER for each process that waits; OWNER is 0 for a frozen file
 * system.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

enum {
    TRAP_BYTES = 4096,
    NAME_BYTES = 64,
    POLL_US = 20 * 1000,
    POLLS_MAX = 3000,
    WAITERS_MAX = 64,
    SETTLE_US = 500 * 1000,
};

#define DISK "/disk"
#define FILE_HELD "/held"
#define FOLDER_HELD "/folder"

static int file, ends[2];
static uint32_t *futex;

static char *
make_trap(void)
{
    const int watch = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = { .api = UFFD_API };
    char *trap = mmap(NULL, TRAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = { .range = { (uintptr_t)trap, TRAP_BYTES },
                                     .mode = UFFDIO_REGISTER_MODE_MISSING };

    if (watch < 0 || trap == MAP_FAILED || ioctl(watch, UFFDIO_API, &api) != 0 ||
        ioctl(watch, UFFDIO_REGISTER, &range) != 0)
        die("userfaultfd");
    return trap;
}

/* ---- Owners ---- */

/* Holds the position of the open file, too. */
static void
hold_file(unsigned number)
{
    (void)number;
    if (write(file, make_trap(), TRAP_BYTES) >= 0)
        die(FILE_HELD);
}

static void
hold_folder(unsigned number)
{
    const int folder = open(FOLDER_HELD, O_RDONLY | O_DIRECTORY);

    (void)number;
    if (syscall(SYS_getdents64, folder, make_trap(), TRAP_BYTES) >= 0)
        die(FOLDER_HELD);
}

static void
hold_pipe(unsigned number)
{
    (void)number;
    if (write(ends[1], make_trap(), TRAP_BYTES) >= 0)
        die("pipe");
}

/* ---- Waiters ---- */

static void
write_file(unsigned number)
{
    const int other = open(FILE_HELD, O_WRONLY);

    (void)number;
    if (write(other, "x", 1) != 1)
        die(FILE_HELD);
}

static void
write_open_file(unsigned number)
{
    (void)number;
    if (write(file, "x", 1) != 1)
        die(FILE_HELD);
}

static void
make_folder(unsigned number)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), FOLDER_HELD "/%u", number);
    mkdir(name, 0755);
}

static void
read_folder(unsigned number)
{
    char entries[TRAP_BYTES];
    const int folder = open(FOLDER_HELD, O_RDONLY | O_DIRECTORY);

    (void)number;
    syscall(SYS_getdents64, folder, entries, sizeof(entries));
}

static void
use_pipe(unsigned number)
{
    char byte = 0;

    if ((number % 2 == 0 ? read(ends[0], &byte, 1) : write(ends[1], &byte, 1)) != 1)
        die("pipe");
}

static void
lock_futex(unsigned number)
{
    (void)number;
    syscall(SYS_futex, futex, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void
make_file(unsigned number)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), DISK "/%u", number);
    open(name, O_WRONLY | O_CREAT, 0644);
}

/* ---- Tables ---- */

enum { OF_FILE, OF_FOLDER, OF_PIPE, OWNERS, OF_LOAD = OWNERS, OF_NOBODY };

/* clang-format off */
static const struct {
    const char *name;
    void (*hold)(unsigned number);
} owners[OWNERS] = {
    [OF_FILE] =   { "o-file", hold_file },
    [OF_FOLDER] = { "o-folder", hold_folder },
    [OF_PIPE] =   { "o-pipe", hold_pipe },
};

static const struct {
    const char *name;
    void (*wait)(unsigned number);
    unsigned n, owner;
    const char *kind;
} waiters[] = {
    { "l-file",     write_file,      6, OF_FILE,   "rwsem-write" },
    { "l-position", write_open_file, 2, OF_FILE,   "mutex" },
    { "l-folder",   make_folder,     5, OF_FOLDER, "rwsem-write" },
    { "l-list",     read_folder,     3, OF_FOLDER, "rwsem-read" },
    { "l-pipe",     use_pipe,        6, OF_PIPE,   "mutex" },
    { "l-futex",    lock_futex,      3, OF_LOAD,   "rt-mutex" },
    { "l-frozen",   make_file,       6, OF_NOBODY, "percpu-rwsem" },
};
/* clang-format on */

/* ---- The load ---- */

static pid_t
start_task(const char *name, void (*act)(unsigned number), unsigned number)
{
    const pid_t child = fork();

    if (child < 0)
        die("fork");
    if (child > 0)
        return child;
    prctl(PR_SET_NAME, name);
    act(number);
    for (;;)
        pause();
}

/* Returns when the kernel says that the process waits in @function. (nullable): in any */
static void
await_wait(pid_t pid, const char *function)
{
    char path[NAME_BYTES], text[NAME_BYTES];

    snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
    for (unsigned i = 0; i < POLLS_MAX; i++) {
        const int names = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t len = read(names, text, sizeof(text) - 1);
        close(names);
        text[len > 0 ? len : 0] = '\0';
        if (function ? strcmp(text, function) == 0 : text[0] != '\0' && strcmp(text, "0") != 0)
            return;
        usleep(POLL_US);
    }
    errno = ETIMEDOUT;
    die(path);
}

static void
mount_disk(void)
{
    mkdir(DISK, 0755);
    for (unsigned i = 0; i < POLLS_MAX; i++) {
        if (mount("/dev/nvme0n1", DISK, "ext4", 0, NULL) == 0 || errno == EBUSY)
            return;
        usleep(POLL_US); /* the kernel finds the disk in the background */
    }
    die(DISK);
}

/* Returns: false if there is no disk */
static bool
change_disk(unsigned long request)
{
    const int folder = open(DISK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_done = folder >= 0 && ioctl(folder, request, 0) == 0;

    if (folder >= 0)
        close(folder);
    return is_done;
}

void
thaw_disk(void)
{
    change_disk(FITHAW);
}

/* The kernel's log tells soon of tasks that are blocked. */
static void
set_timeout(void)
{
    const int seconds = open("/proc/sys/kernel/hung_task_timeout_secs", O_WRONLY | O_CLOEXEC);

    if (seconds < 0 || write(seconds, "10\n", 3) != 3)
        die("hung_task_timeout_secs");
    close(seconds);
}

static void
make_objects(void)
{
    mkdir(FOLDER_HELD, 0755);
    file = open(FILE_HELD, O_WRONLY | O_CREAT, 0644);
    futex = mmap(NULL, sizeof(*futex), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || futex == MAP_FAILED || pipe(ends) != 0 ||
        syscall(SYS_futex, futex, FUTEX_LOCK_PI, 0, NULL, NULL, 0) != 0)
        die("locks");
    mount_disk();
    set_timeout();
    if (!change_disk(FIFREEZE))
        die("freeze");
}

void
run_locks(const struct ends *load)
{
    const pid_t self = getpid();
    pid_t holders[OF_NOBODY + 1] = { [OF_LOAD] = self };

    make_objects();
    for (unsigned i = 0; i < OWNERS; i++) {
        holders[i] = start_task(owners[i].name, owners[i].hold, 0);
        await_wait(holders[i], "handle_userfault");
    }
    for (unsigned i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++)
        for (unsigned k = 0; k < waiters[i].n; k++) {
            const pid_t pid = start_task(waiters[i].name, waiters[i].wait, k);
            await_wait(pid, NULL);
            printf("LOCK %d %s %d\n", (int)pid, waiters[i].kind, (int)holders[waiters[i].owner]);
        }
    usleep(SETTLE_US);
    fflush(stdout);
    if (write(load->ready, &self, sizeof(self)) != sizeof(self))
        die("ready");
    for (;;)
        pause();
}
