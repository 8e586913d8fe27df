/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Process 1 of the tests' Linux guests. The initial file system has one other program, `plain`.
 *
 * Process 1 prints facts about the guest on the console, which scripts compare with the results
 * of virt-uprof. Then process 1 obeys the words behind " -- " on the kernel's command line, in
 * their order:
 *
 *     kallsyms    prints KALLSYMS HASH LINES: the FNV-1a hash of /proc/kallsyms without modules
 *     LOAD        starts a load (loads.c)
 *     plain:LOAD  starts a load in the program `plain`
 *     run:PATH,ARGUMENT,...  executes a program as a load
 *     in:PATH:LOAD           starts a load in the cgroup PATH, which is made
 *     tasks       prints TASK PID COMM for each process, THREAD TID PID COMM for its threads
 *     states      prints STATE PID TID FILE=TEXT...: some files of /proc/PID/task/TID of each
 * thread maps        prints MAP PID LINE: /proc/PID/maps of all processes of loads log prints LOG
 * PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT for each record of the kernel's log write-log   writes
 * thousands of records to the log, more than it can hold panic       lets the kernel panic crash
 * tells the hypervisor that the guest has crashed, as a driver does in a panic disk:WORD   does
 * WORD, writes its lines to the NVMe disk, and prints REPORT LENGTH stop        ends all loads
 *     reboot      boots again, with the same words
 *     listen      after all other words: reads lines of such words from the second serial line
 *
 * Process 1 always prints RELEASE, BUILDID (of the kernel), LEVELS (of page tables) and PTI. It
 * prints READY after the words of the command line, and DONE N after the Nth line of words. After
 * an error it prints a line FAILED and ends.
 *
 * The program `plain` is built from the same sources as usual distributions build programs:
 * without frame pointers, and position-independent. It runs one load.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "init.h"

enum {
    ARGUMENTS_MAX = 16,
    STARTED_MAX = 64,
    LOADS_MAX = 32,
    LINE_BYTES = 256,
    COMMAND_LINE_BYTES = 2048,
    REPORT_AT = 4 * 1024 * 1024, /* on the disk, behind its file system */
    COPY_BYTES = 64 * 1024,
    FIRST_NICE = -20, /* of process 1: it answers at once, though loads compute all the time */
};

/* Processes of loads. */
static pid_t started[STARTED_MAX];
static unsigned n_started;
/* The first process of each load, which leads a process group. */
static pid_t groups[LOADS_MAX];
static unsigned n_groups;
static bool listens;

void
die(const char *what)
{
    fprintf(stdout, "FAILED %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

/* @nice: as in nice(1) */
static void
use_nice(int nice)
{
    if (setpriority(PRIO_PROCESS, 0, nice) != 0)
        die("setpriority");
}

/* Executes `plain`, which runs the load. */
static void __attribute__((noreturn)) run_plain(const char *word, int ready)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", ready);
    execl("/plain", "/plain", word, number, (char *)NULL);
    die("/plain");
}

/* Waits until all processes of the load are ready. */
static void
await_processes(const struct load *load, int ready)
{
    for (unsigned i = 0; i < count_processes(load); i++) {
        errno = 0;
        if (n_started == STARTED_MAX)
            die("more loads than fit");
        if (read(ready, &started[n_started], sizeof(started[0])) != sizeof(started[0]))
            die(load->word);
        n_started++;
    }
}

static void
start_load(const char *word)
{
    static const char prefix[] = "plain:";
    const bool plain = strncmp(word, prefix, sizeof(prefix) - 1) == 0;
    const char *name = plain ? word + sizeof(prefix) - 1 : word;
    const struct load *load = find_load(name);
    int ready[2];

    errno = EINVAL;
    if (!load || n_groups == LOADS_MAX || pipe(ready) != 0)
        die(word);
    const pid_t child = fork();
    if (child < 0)
        die(word);
    if (child == 0) {
        setpgid(0, 0);
        use_nice(0);
        close(ready[0]);
        if (plain)
            run_plain(name, ready[1]);
        run_load(load, ready[1]);
    }
    groups[n_groups++] = child;
    close(ready[1]);
    await_processes(load, ready[0]);
    close(ready[0]);
}

/* Executes a program, whose output is lost. */
static void __attribute__((noreturn)) run_words(char *words)
{
    char *arguments[ARGUMENTS_MAX + 1] = { NULL };
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (unsigned i = 0; i < ARGUMENTS_MAX && words; i++)
        arguments[i] = strsep(&words, ",");
    for (int fd = 0; fd <= 2; fd++)
        dup2(nowhere, fd);
    execv(arguments[0], arguments);
    _exit(1);
}

static void
start_program(const char *words)
{
    char text[LINE_BYTES];

    errno = EINVAL;
    if (n_groups == LOADS_MAX || snprintf(text, sizeof(text), "%s", words) >= LINE_BYTES)
        die(words);
    const pid_t child = fork();
    if (child < 0)
        die(words);
    if (child == 0) {
        setpgid(0, 0);
        use_nice(0);
        run_words(text);
    }
    groups[n_groups++] = child;
}

/* Ends all loads and waits for all their processes: orphans have become children of process 1. */
static void
stop_loads(void)
{
    thaw_disk(); /* nothing ends a process that waits for a frozen file system */
    for (unsigned i = 0; i < n_groups; i++)
        kill(-groups[i], SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
    n_groups = n_started = 0;
}

static void
report_all_maps(void)
{
    for (unsigned i = 0; i < n_started; i++)
        report_maps(started[i]);
}

static void
boot_again(void)
{
    reboot(RB_AUTOBOOT);
    die("reboot");
}

/* As SysRq-C: the kernel's exception in process 1 is a panic. */
static void
panic(void)
{
    const int file = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, "c", 1) != 1)
        die("sysrq-trigger");
}

/* QEMU, docs/specs/pvpanic.txt: the device's port, and the bit for a panic. */
static void
tell_crash(void)
{
#ifdef __x86_64__
    enum { PORT = 0x505, PANICKED = 1 };

    if (ioperm(PORT, 1, 1) != 0)
        die("ioperm");
    outb(PANICKED, PORT);
#else
    die("no such device");
#endif
}

static void
listen_later(void)
{
    listens = true;
}

/* Moves process 1. @path: below the folder of cgroups; "": the root */
static void
enter_cgroup(const char *path)
{
    char file[2 * LINE_BYTES];

    snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cgroup.procs", path);
    const int fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1", 1) != 1)
        die(file);
    close(fd);
}

static void
make_cgroup(const char *path)
{
    char folder[2 * LINE_BYTES], part[LINE_BYTES];

    for (const char *end = path; *end != '\0';) {
        end += strcspn(end + 1, "/") + 1;
        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s", part);
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            die(folder);
    }
}

/* @words: PATH:LOAD. Children are in the cgroup of their parent. */
static void
start_in_cgroup(const char *words)
{
    char path[LINE_BYTES];
    const char *load = strchr(words, ':');

    errno = EINVAL;
    if (!load || words[0] != '/' || load - words >= LINE_BYTES)
        die(words);
    snprintf(path, sizeof(path), "%.*s", (int)(load - words), words);
    make_cgroup(path);
    enter_cgroup(path);
    start_load(load + 1);
    enter_cgroup("");
}

/* clang-format off */
static const struct {
    const char *name;
    void (*act)(void);
} words[] = {
    { "kallsyms", report_kallsyms },
    { "tasks",    report_tasks },
    { "states",   report_states },
    { "maps",     report_all_maps },
    { "log",       report_log },
    { "write-log", write_log },
    { "panic",     panic },
    { "crash",    tell_crash },
    { "stop",     stop_loads },
    { "reboot",   boot_again },
    { "listen",   listen_later },
};
/* clang-format on */

static void do_word(const char *word);

/* Returns: bytes of the file @report, which are on the disk then */
static long
write_to_disk(int report)
{
    static char bytes[COPY_BYTES];
    const int disk = open("/dev/nvme0n1", O_WRONLY | O_CLOEXEC);
    off_t done = 0;
    ssize_t n;

    while ((n = pread(report, bytes, sizeof(bytes), done)) > 0) {
        if (pwrite(disk, bytes, (size_t)n, REPORT_AT + done) != n)
            die("/dev/nvme0n1");
        done += n;
    }
    if (fsync(disk) != 0)
        die("/dev/nvme0n1");
    close(disk);
    return done;
}

/* The console takes a byte at a time, which is slow where the hypervisor is emulated, too. */
static void
report_to_disk(const char *word)
{
    const int report = open("/report", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int console = dup(STDOUT_FILENO);

    fflush(stdout);
    if (report < 0 || console < 0 || dup2(report, STDOUT_FILENO) < 0)
        die("/report");
    do_word(word);
    fflush(stdout);
    dup2(console, STDOUT_FILENO);
    close(console);
    printf("REPORT %ld\n", write_to_disk(report));
    close(report);
}

static void
do_word(const char *word)
{
    static const char run_prefix[] = "run:", in_prefix[] = "in:", disk_prefix[] = "disk:";

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].name, word) == 0) {
            words[i].act();
            return;
        }
    }
    if (strncmp(word, run_prefix, sizeof(run_prefix) - 1) == 0)
        start_program(word + sizeof(run_prefix) - 1);
    else if (strncmp(word, in_prefix, sizeof(in_prefix) - 1) == 0)
        start_in_cgroup(word + sizeof(in_prefix) - 1);
    else if (strncmp(word, disk_prefix, sizeof(disk_prefix) - 1) == 0)
        report_to_disk(word + sizeof(disk_prefix) - 1);
    else
        start_load(word);
}

static void
mount_all(void)
{
    static const char *const types[] = { "proc", "sysfs", "devtmpfs", "cgroup2" };
    static const char *const folders[] = { "/proc", "/sys", "/dev", "/sys/fs/cgroup" };

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        /* devtmpfs may have been mounted by the kernel */
        if (mount(types[i], folders[i], types[i], 0, NULL) != 0 && errno != EBUSY)
            die(folders[i]);
    }
}

static void
show_addresses(void)
{
    const int file = open("/proc/sys/kernel/kptr_restrict", O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, "0", 1) != 1)
        die("kptr_restrict");
    close(file);
}

/* Fails if a load has ended, because loads must run until they are killed. */
static void
check_loads(void)
{
    errno = 0;
    if (waitpid(-1, NULL, WNOHANG) > 0)
        die("a load has ended");
}

/* Does nothing. With a handler, the end of a child interrupts poll(). */
static void
wake_up(int number)
{
    (void)number;
}

/* The second serial line. The first one of aarch64 has a driver of its own. */
#ifdef __aarch64__
static const char lines_device[] = "/dev/ttyS0";
#else
static const char lines_device[] = "/dev/ttyS1";
#endif

/* Opens the second serial line. Returns: -1 without the word `listen` */
static int
open_lines(void)
{
    struct termios how;

    if (!listens)
        return -1;
    const int lines = open(lines_device, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (lines < 0 || tcgetattr(lines, &how) != 0)
        die(lines_device);
    /* read whole lines; without echo, because nobody reads the other end */
    how.c_lflag = ICANON;
    if (tcsetattr(lines, TCSANOW, &how) != 0)
        die(lines_device);
    return lines;
}

static void
do_words(char *text)
{
    for (char *word; (word = strsep(&text, " \r\n"));) {
        if (*word != '\0')
            do_word(word);
    }
}

/*
 * Reads /proc/cmdline, because argv also has those words before the dashes that the kernel does not
 * know.
 */
static void
do_command_line(void)
{
    static const char dashes[] = " -- ";
    char text[COMMAND_LINE_BYTES];
    const int file = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t len = file < 0 ? -1 : read(file, text, sizeof(text) - 1);

    if (len < 0)
        die("/proc/cmdline");
    close(file);
    text[len] = '\0';
    char *ours = strstr(text, dashes);
    if (ours)
        do_words(ours + sizeof(dashes) - 1);
}

static void
do_line(int lines)
{
    static unsigned n_lines;
    char text[LINE_BYTES];
    const ssize_t len = read(lines, text, sizeof(text) - 1);

    if (len <= 0)
        die("/dev/ttyS1");
    text[len] = '\0';
    do_words(text);
    printf("DONE %u\n", ++n_lines);
}

int
main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (getpid() != 1) {
        const struct load *load = argc == 3 ? find_load(argv[1]) : NULL;
        if (!load)
            return 2;
        run_load(load, (int)strtol(argv[2], NULL, 10));
    }

    signal(SIGCHLD, wake_up);
    use_nice(FIRST_NICE);
    mount_all();
    show_addresses();
    report_release();
    report_build_id();
    report_paging();
    do_command_line();
    struct pollfd lines = { .fd = open_lines(), .events = POLLIN };
    puts("READY");

    for (;;) {
        if (poll(&lines, 1, -1) > 0)
            do_line(lines.fd);
        check_loads();
    }
}
