/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads of the Linux guest. A load is one or two processes that repeat one kind of work until they
 * are killed. The table at the end has the names of the processes.
 *
 * Tests compare shares and stacks of the loads user, threads and syscalls. These loads make
 * system calls without libc, because libc's functions keep no frame pointer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

#define NOINLINE __attribute__((noinline))

enum {
    SPINS = 2000,         /* rounds of spin(): some 20 us on an emulated processor */
    CALLS = 100,          /* calls of one kind before calls of the other kind */
    ZERO_BYTES = 4096,    /* in one read */
    PAGE_BYTES = 4096,    /* of x86 */
    PAGES = 64,           /* touched, and unmapped again; too few for a huge page */
    MESSAGE_BYTES = 1000, /* less than one TCP segment */
    TIMER_US = 1000,
    SLEEP_NS = 200000,
    THREADS = 3,
    CHILDREN = 256, /* at the same time */
    BPF_ROUNDS = 2000,
    PACKET_BYTES = 64,
    LATER_SECONDS = 3,
    LONG_SECONDS = 1000 * 1000,
    STATES_EACH = 16,   /* processes in each state */
    SETTLE_SECONDS = 2, /* until all of them wait */
    MANY_TASKS = 10000,
    READS_EACH_SECOND = 10, /* of a slow disk */
    MANY_EACH = 5,          /* threads of a process */
};

static inline long
call_kernel(long number, long first, long second, long third)
{
#ifdef __aarch64__
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    register long x8 __asm__("x8") = number;

    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
    return x0;
#else
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
#endif
}

static void
say_ready(const struct ends *ends)
{
    const pid_t self = getpid();

    if (write(ends->ready, &self, sizeof(self)) != sizeof(self))
        die("say_ready");
    close(ends->ready);
}

static int
open_zero(void)
{
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    if (zero < 0)
        die("/dev/zero");
    return zero;
}

/* ---- user, threads: 10, 30 and 60 percent in three functions ---- */

static NOINLINE void
spin(void)
{
    unsigned long sum = 0;

    for (unsigned i = 0; i < SPINS; i++)
#ifdef __aarch64__
        __asm__ volatile("add %0, %0, %0, lsl #2" : "+r"(sum));
#else
        __asm__ volatile("lea 1(%0, %0, 4), %0" : "+r"(sum));
#endif
}

/* Reads from @zero after each round, unless @zero is negative. */
static inline void
work(unsigned rounds, int zero)
{
    char bytes[ZERO_BYTES];

    for (unsigned i = 0; i < rounds; i++) {
        spin();
        if (zero >= 0)
            call_kernel(SYS_read, zero, (long)bytes, sizeof(bytes));
    }
}

static NOINLINE void
split_10(int zero)
{
    work(1, zero);
}

static NOINLINE void
split_30(int zero)
{
    work(3, zero);
}

static NOINLINE void
split_60(int zero)
{
    work(6, zero);
}

static NOINLINE void
split_loop(int zero)
{
    for (;;) {
        split_10(zero);
        split_30(zero);
        split_60(zero);
    }
}

static void
run_user(const struct ends *ends)
{
    say_ready(ends);
    split_loop(-1);
}

static void *
run_thread(void *zero)
{
    split_loop((int)(intptr_t)zero);
    return NULL;
}

static void
run_threads(const struct ends *ends)
{
    const int zero = open_zero();
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        char name[] = "worker-1";
        name[sizeof(name) - 2] += (char)i;
        if (pthread_create(&threads[i], NULL, run_thread, (void *)(intptr_t)zero) != 0 ||
            pthread_setname_np(threads[i], name) != 0)
            die("run_threads");
    }
    say_ready(ends);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- syscalls ---- */

static NOINLINE void
call_getpid(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        call_kernel(SYS_getpid, 0, 0, 0);
}

static NOINLINE void
read_zero(int zero)
{
    char bytes[ZERO_BYTES];

    for (unsigned i = 0; i < CALLS; i++)
        call_kernel(SYS_read, zero, (long)bytes, sizeof(bytes));
}

static void
run_syscalls(const struct ends *ends)
{
    const int zero = open_zero();

    say_ready(ends);
    for (;;) {
        call_getpid();
        read_zero(zero);
    }
}

/* ---- faults ---- */

static NOINLINE void
touch_pages(char *area)
{
    for (unsigned i = 0; i < PAGES; i++)
        *(volatile char *)(area + (size_t)i * PAGE_BYTES) = 1;
}

static void
run_faults(const struct ends *ends)
{
    say_ready(ends);
    for (;;) {
        char *area = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (area == MAP_FAILED)
            die("mmap");
        touch_pages(area);
        munmap(area, (size_t)PAGES * PAGE_BYTES);
    }
}

/* ---- timers: a signal each millisecond, and short sleeps ---- */

static void
take_signal(int number)
{
    (void)number;
}

static void
run_timers(const struct ends *ends)
{
    const struct itimerval each = { { 0, TIMER_US }, { 0, TIMER_US } };
    const struct timespec pause = { 0, SLEEP_NS };

    signal(SIGALRM, take_signal);
    if (setitimer(ITIMER_REAL, &each, NULL) != 0)
        die("setitimer");
    say_ready(ends);
    for (;;) {
        for (unsigned i = 0; i < CALLS; i++)
            spin();
        nanosleep(&pause, NULL);
    }
}

/* ---- bpf: a program that the kernel has compiled, run by a system call ---- */

static int
load_program(void)
{
    /* R0 = 0; R1 = BPF_ROUNDS; do R0 += R1; while (--R1 != 0); return R0 */
    static const struct bpf_insn program[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = BPF_ROUNDS },
        { .code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1 },
        { .code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = BPF_REG_1, .imm = 1 },
        { .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_1, .off = -3 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = sizeof(program) / sizeof(program[0]);
    attr.license = (uintptr_t) "GPL";
    memcpy(attr.prog_name, "uprof_spin", sizeof("uprof_spin"));
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void
run_bpf(const struct ends *ends)
{
    static const char packet[PACKET_BYTES];
    union bpf_attr attr;
    const int program = load_program();

    if (program < 0)
        die("BPF_PROG_LOAD");
    say_ready(ends);
    for (;;) {
        memset(&attr, 0, sizeof(attr));
        attr.test.prog_fd = (uint32_t)program;
        attr.test.data_in = (uintptr_t)packet;
        attr.test.data_size_in = sizeof(packet);
        attr.test.repeat = CALLS;
        if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) != 0)
            die("BPF_PROG_TEST_RUN");
    }
}

/* ---- jit: code that the process generates and lists in a perf map, as Node.js does ---- */

struct jit {
    unsigned char *code; /* a page */
    size_t len;          /* of the code so far */
    int map;
};

typedef void generated(void);

static void
list_function(const struct jit *jit, size_t start, const char *name)
{
    char line[PACKET_BYTES * 2];
    const int len = snprintf(line, sizeof(line), "%lx %zx %s\n", (long)(jit->code + start),
                             jit->len - start, name);

    if (write(jit->map, line, (size_t)len) != len)
        die("perf map");
}

/* Generates a function that counts down, without a frame. Returns: where it starts */
static size_t
generate_spin(struct jit *jit, const char *name)
{
    static const unsigned char spin_code[] = {
        0xb9, SPINS & 0xff, SPINS >> 8, 0, 0, /* mov $SPINS, %ecx */
        0xff, 0xc9,                           /* dec %ecx */
        0x75, 0xfc,                           /* jne, to the line above */
        0xc3,                                 /* ret */
    };
    const size_t start = jit->len;

    memcpy(jit->code + start, spin_code, sizeof(spin_code));
    jit->len += sizeof(spin_code);
    list_function(jit, start, name);
    return start;
}

/* Generates a function with a frame pointer that calls the function at @callee. */
static size_t
generate_caller(struct jit *jit, size_t callee, const char *name)
{
    unsigned char call_code[] = {
        0x55,                   /* push %rbp */
        0x48, 0x89, 0xe5,       /* mov %rsp, %rbp */
        0xe8, 0,    0,    0, 0, /* call */
        0x5d,                   /* pop %rbp */
        0xc3,                   /* ret */
    };
    const size_t start = jit->len;
    const int distance = (int)callee - (int)(start + 9);

    memcpy(call_code + 5, &distance, sizeof(distance));
    memcpy(jit->code + start, call_code, sizeof(call_code));
    jit->len += sizeof(call_code);
    list_function(jit, start, name);
    return start;
}

static void
begin_jit(struct jit *jit)
{
    char path[PACKET_BYTES];

    mkdir("/tmp", 0777);
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    jit->map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    jit->code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    jit->len = 0;
    if (jit->map < 0 || jit->code == MAP_FAILED)
        die(path);
}

static NOINLINE void
call_generated(const struct jit *jit, size_t start)
{
    generated *function;
    const unsigned char *at = jit->code + start;

    memcpy(&function, &at, sizeof(function));
    for (unsigned i = 0; i < CALLS; i++)
        function();
}

/* Other functions are generated when the first ones have run for a while. */
static void
run_jit(const struct ends *ends)
{
    struct jit jit;
    size_t outer, later = 0;

    begin_jit(&jit);
    outer = generate_caller(&jit, generate_spin(&jit, "JS:*inner /srv/app.js:3:9"),
                            "JS:*outer /srv/app.js:9:1");
    say_ready(ends);
    for (const time_t began = time(NULL);;) {
        call_generated(&jit, outer);
        if (later > 0)
            call_generated(&jit, later);
        else if (time(NULL) > began + LATER_SECONDS)
            later = generate_caller(&jit, generate_spin(&jit, "JS:*later_inner /srv/app.js:12:2"),
                                    "JS:*later_outer /srv/app.js:15:1");
    }
}

/* ---- switch: two processes send one byte back and forth ---- */

static void
connect_pipes(struct ends ends[PROCESSES_MAX])
{
    int there[2], back[2];

    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        die("pipe2");
    ends[0].out = there[1];
    ends[1].in = there[0];
    ends[1].out = back[1];
    ends[0].in = back[0];
}

static void
run_ping(const struct ends *ends)
{
    char byte = 0;

    say_ready(ends);
    while (write(ends->out, &byte, 1) == 1 && read(ends->in, &byte, 1) == 1)
        continue;
}

static void
run_pong(const struct ends *ends)
{
    char byte;

    say_ready(ends);
    while (read(ends->in, &byte, 1) == 1 && write(ends->out, &byte, 1) == 1)
        continue;
}

/* ---- network: requests and answers over loopback ---- */

static void
start_loopback(void)
{
    struct ifreq interface = { .ifr_name = "lo" };
    const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (any < 0 || ioctl(any, SIOCGIFFLAGS, &interface) != 0)
        die("lo");
    interface.ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(any, SIOCSIFFLAGS, &interface) != 0)
        die("lo");
    close(any);
}

static void
connect_sockets(struct ends ends[PROCESSES_MAX])
{
    struct sockaddr_in where = { .sin_family = AF_INET };
    socklen_t len = sizeof(where);
    const int one = 1;

    start_loopback();
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || client < 0 || bind(listener, (struct sockaddr *)&where, len) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&where, &len) != 0 ||
        connect(client, (struct sockaddr *)&where, len) != 0)
        die("loopback");
    const int server = accept(listener, NULL, NULL);
    if (server < 0 || setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
        die("loopback");
    close(listener);
    ends[0].in = ends[0].out = server;
    ends[1].in = ends[1].out = client;
}

static NOINLINE bool
send_message(int to)
{
    static const char message[MESSAGE_BYTES];

    return send(to, message, sizeof(message), 0) == sizeof(message);
}

static NOINLINE bool
receive_message(int from)
{
    char message[MESSAGE_BYTES];

    return recv(from, message, sizeof(message), MSG_WAITALL) == sizeof(message);
}

static void
run_server(const struct ends *ends)
{
    say_ready(ends);
    while (receive_message(ends->in) && send_message(ends->out))
        continue;
}

static void
run_client(const struct ends *ends)
{
    say_ready(ends);
    while (send_message(ends->out) && receive_message(ends->in))
        continue;
}

/* ---- forks: processes that end at once ---- */

static void
run_forks(const struct ends *ends)
{
    say_ready(ends);
    for (;;) {
        for (unsigned i = 0; i < CHILDREN; i++) {
            const pid_t child = fork();
            if (child == 0) {
                prctl(PR_SET_NAME, "forked");
                spin();
                _exit(0);
            }
            if (child < 0)
                die("fork");
        }
        while (wait(NULL) > 0)
            continue;
    }
}

/* ---- idle: sleeps ---- */

static void
run_idle(const struct ends *ends)
{
    say_ready(ends);
    for (;;)
        pause();
}

/* ---- The table ---- */

/* ---- Processes in known states ---- */

static void
wait_for_time(void)
{
    const struct timespec pause = { LONG_SECONDS, 0 };

    nanosleep(&pause, NULL);
}

static void
wait_for_futex(void)
{
    static int futex;

    syscall(SYS_futex, &futex, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void
wait_for_poll(void)
{
    poll(NULL, 0, -1);
}

static void
wait_for_pipe(void)
{
    int ends[2];
    char byte;

    if (pipe(ends) == 0 && read(ends[0], &byte, 1) != 1)
        die("pipe");
}

/* Starts a child that does the same. */
static void
wait_for_child(void)
{
    const pid_t child = fork();

    if (child == 0)
        wait_for_time();
    waitpid(child, NULL, 0);
}

static void
stop_here(void)
{
    raise(SIGSTOP);
}

static void
leave_zombie(void)
{
    if (fork() == 0) {
        prctl(PR_SET_NAME, "a-zombie");
        _exit(0);
    }
    for (;;) /* the end of the child interrupts the first wait */
        wait_for_time();
}

static void *
wait_in_thread(void *data)
{
    (void)data;
    prctl(PR_SET_NAME, "a-thread");
    wait_for_futex();
    return NULL;
}

static void
wait_with_threads(void)
{
    pthread_t thread;

    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, wait_in_thread, NULL);
    wait_for_time();
}

/* The parent cannot be interrupted until its child executes a program or ends. */
static void
wait_uninterruptible(void)
{
    if (vfork() == 0)
        wait_for_time();
}

static void
write_control(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        die(path);
    close(file);
}

/*
 * Moves this task to a cgroup that reads the disk slowly. If QEMU slowed down the disk, requests
 * would get stuck after a pause of the guest.
 */
static void
slow_down(int disk)
{
    struct stat info;
    char text[64];

    if (fstat(disk, &info) != 0 || (mkdir("/sys/fs/cgroup/slow", 0755) != 0 && errno != EEXIST))
        die("slow");
    write_control("/sys/fs/cgroup/cgroup.subtree_control", "+io");
    snprintf(text, sizeof(text), "%u:%u riops=%d", major(info.st_rdev), minor(info.st_rdev),
             READS_EACH_SECOND);
    write_control("/sys/fs/cgroup/slow/io.max", text);
    write_control("/sys/fs/cgroup/slow/cgroup.procs", "0");
}

/* The disk is slow, so a task that reads it waits for it nearly all the time. */
static void
wait_for_disk(void)
{
    static uint8_t block[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    const int disk = open("/dev/nvme0n1", O_RDONLY | O_DIRECT);

    if (disk >= 0)
        slow_down(disk);
    while (pread(disk, block, sizeof(block), 0) == (ssize_t)sizeof(block))
        ;
    close(disk);
    wait_for_time(); /* there is no such disk */
}

static void
wait_in_namespace(void)
{
    if (unshare(CLONE_NEWPID) != 0)
        die("unshare");
    if (fork() == 0)
        prctl(PR_SET_NAME, "in-namespace");
    wait_for_time();
}

/* clang-format off */
static const struct {
    const char *name;
    void (*wait)(void);
} states[] = {
    { "a-sleep",     wait_for_time },
    { "a-futex",     wait_for_futex },
    { "a-poll",      wait_for_poll },
    { "a-pipe",      wait_for_pipe },
    { "a-wait",      wait_for_child },
    { "a-stop",      stop_here },
    { "a-parent",    leave_zombie },
    { "a-leader",    wait_with_threads },
    { "a-vfork",     wait_uninterruptible },
    { "a-disk",      wait_for_disk },
    { "a-namespace", wait_in_namespace },
    { "evil\x1b[2J\t;", wait_for_time },
};
/* clang-format on */

static void
run_waits(const struct ends *ends)
{
    for (unsigned i = 0; i < STATES_EACH * sizeof(states) / sizeof(states[0]); i++) {
        const unsigned kind = i % (sizeof(states) / sizeof(states[0]));
        const pid_t child = fork();
        if (child < 0)
            die("fork");
        if (child > 0)
            continue;
        prctl(PR_SET_NAME, states[kind].name);
        for (;;)
            states[kind].wait();
    }
    sleep(SETTLE_SECONDS);
    say_ready(ends);
    for (;;)
        wait_for_time();
}

static void *
wait_with_many(void *data)
{
    (void)data;
    wait_for_time();
    return NULL;
}

/* Threads with the smallest stacks, in processes of their own */
static void
start_many_threads(void)
{
    pthread_attr_t how;
    pthread_t thread;

    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN);
    for (unsigned i = 1; i < MANY_EACH; i++)
        if (pthread_create(&thread, &how, wait_with_many, NULL) != 0)
            die("pthread_create");
    wait_with_many(NULL);
}

static void
run_many(const struct ends *ends)
{
    for (unsigned i = 0; i < MANY_TASKS / MANY_EACH; i++) {
        const pid_t child = fork();
        if (child < 0)
            die("fork");
        if (child == 0)
            start_many_threads();
    }
    sleep(SETTLE_SECONDS);
    say_ready(ends);
    for (;;)
        wait_for_time();
}

/* clang-format off */
static const struct load loads[] = {
    { "user",     { { "user", run_user } },                                   NULL },
    { "threads",  { { "threads", run_threads } },                             NULL },
    { "syscalls", { { "syscalls", run_syscalls } },                           NULL },
    { "faults",   { { "faults", run_faults } },                               NULL },
    { "timers",   { { "timers", run_timers } },                               NULL },
    { "bpf",      { { "bpf", run_bpf } },                                     NULL },
    { "jit",      { { "jit", run_jit } },                                     NULL },
    { "switch",   { { "ping-proc", run_ping }, { "pong-proc", run_pong } },   connect_pipes },
    { "network",  { { "net-server", run_server }, { "net-client", run_client } }, connect_sockets },
    { "forks",    { { "forks", run_forks } },                                 NULL },
    { "waits",    { { "waits", run_waits } },                                 NULL },
    { "many",     { { "many", run_many } },                                   NULL },
    { "locks",    { { "locks", run_locks } },                                 NULL },
    { "idle",     { { "idle-proc", run_idle } },                              NULL },
};
/* clang-format on */

const struct load *
find_load(const char *word)
{
    for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        if (strcmp(loads[i].word, word) == 0)
            return &loads[i];
    }
    return NULL;
}

unsigned
count_processes(const struct load *load)
{
    return load->processes[1].name ? 2 : 1;
}

static void __attribute__((noreturn))
run_process(const struct process *process, const struct ends *ends)
{
    prctl(PR_SET_NAME, process->name);
    process->run(ends);
    die(process->name);
}

void
run_load(const struct load *load, int ready)
{
    struct ends ends[PROCESSES_MAX] = { { -1, -1, ready }, { -1, -1, ready } };

    if (load->connect)
        load->connect(ends);
    if (count_processes(load) == 2) {
        const pid_t child = fork();
        if (child < 0)
            die(load->word);
        if (child == 0)
            run_process(&load->processes[0], &ends[0]);
    }
    run_process(&load->processes[count_processes(load) - 1], &ends[count_processes(load) - 1]);
}
