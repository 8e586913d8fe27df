/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stepper.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WINDOW_LEN = 24 * 1024,
    CODE = 0x400000, /* link address of static programs */
    CODE_LEN = 4 * 1024 * 1024,
};

void
stepper_clear(Stepper *stepper)
{
    if (stepper->pid > 0) {
        kill(stepper->pid, SIGKILL);
        waitpid(stepper->pid, NULL, 0);
    }
    g_free(stepper->snapshot);
}

size_t
stepper_read(const Stepper *stepper, uint64_t at, void *into, size_t len)
{
    enum { PAGE = 4096, PAGES_MAX = WINDOW_LEN / PAGE + 1 };
    const struct iovec local = { into, len };
    struct iovec remote[PAGES_MAX];
    unsigned n = 0;

    /* one piece for each page, because the stack may end at a page boundary */
    for (size_t done = 0; done < len; n++) {
        g_assert_cmpuint(n, <, PAGES_MAX);
        remote[n].iov_base = GSIZE_TO_POINTER(at + done);
        remote[n].iov_len = MIN(len - done, PAGE - (at + done) % PAGE);
        done += remote[n].iov_len;
    }
    return (size_t)MAX(process_vm_readv(stepper->pid, &local, 1, remote, n, 0), 0);
}

static uint64_t
read_word(const Stepper *stepper, uint64_t at)
{
    uint64_t word;

    g_assert_cmpuint(stepper_read(stepper, at, &word, sizeof(word)), ==, sizeof(word));
    return word;
}

static void
look(Stepper *stepper)
{
    const struct user_regs_struct *raw = &stepper->regs;
    UprofRegs *regs = &stepper->snapshot->regs;
    UprofWindow *window = &stepper->snapshot->windows[0];

    g_assert_cmpint(ptrace(PTRACE_GETREGS, stepper->pid, NULL, &stepper->regs), ==, 0);
    *regs = (UprofRegs){ .pc = raw->rip, .sp = raw->rsp, .fp = raw->rbp };
    const uint64_t numbered[] = { raw->rax, raw->rdx, raw->rcx, raw->rbx, raw->rsi, raw->rdi,
                                  raw->rbp, raw->rsp, raw->r8,  raw->r9,  raw->r10, raw->r11,
                                  raw->r12, raw->r13, raw->r14, raw->r15, raw->rip };
    memcpy(regs->reg, numbered, sizeof(numbered));
    regs->word_bytes = 8;
    regs->privilege = 3;
    memset(stepper->code, 0, sizeof(stepper->code));
    stepper_read(stepper, raw->rip, stepper->code, sizeof(stepper->code));
    *window = (UprofWindow){ .gva = raw->rsp - UPROF_WINDOW_BELOW_SP_BYTES };
    window->len =
        (uint32_t)stepper_read(stepper, window->gva, stepper->snapshot->bytes, WINDOW_LEN);
    stepper->snapshot->n_windows = 1;
}

/* Recognizes E8 and FF /2, behind prefixes. */
static bool
is_call(const uint8_t *code)
{
    while (*code == 0x66 || *code == 0x67 || *code == 0xf2 || *code == 0xf3 || *code == 0x2e ||
           *code == 0x3e || *code == 0x64 || (*code & 0xf0) == 0x40)
        code++;
    return code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2);
}

static void
push_call(Stepper *stepper, uint64_t slot, uint64_t pc)
{
    g_assert_cmpuint(stepper->n_calls, <, STEPPER_CALLS_MAX);
    stepper->calls[stepper->n_calls++] = (StepperCall){ slot, pc };
}

/*
 * Drops calls whose return address is below the stack pointer. These calls have returned, or
 * longjmp() has left them.
 */
static void
drop_calls(Stepper *stepper)
{
    while (stepper->n_calls > 0 && stepper->calls[stepper->n_calls - 1].slot < stepper->regs.rsp)
        stepper->n_calls--;
}

bool
stepper_step(Stepper *stepper)
{
    const bool was_call = is_call(stepper->code);
    const uint64_t sp = stepper->regs.rsp, pc = stepper->regs.rip;
    const int delivered = stepper->deliver;
    int status;

    g_assert_cmpint(ptrace(PTRACE_SINGLESTEP, stepper->pid, NULL, delivered), ==, 0);
    g_assert_cmpint(waitpid(stepper->pid, &status, 0), ==, stepper->pid);
    if (!WIFSTOPPED(status)) {
        g_assert_true(WIFEXITED(status));
        g_assert_cmpint(WEXITSTATUS(status), ==, 0);
        stepper->pid = 0;
        return false;
    }
    stepper->deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    look(stepper);
    drop_calls(stepper);
    if (delivered) {
        /* A signal handler begins. It counts as two calls: from the interrupted code to the
         * kernel's signal frame, and from there to the handler. */
        push_call(stepper, sp - 1, pc);
        push_call(stepper, stepper->regs.rsp, read_word(stepper, stepper->regs.rsp));
        stepper->n_signals++;
    } else if (was_call && stepper->regs.rsp == sp - 8) {
        push_call(stepper, stepper->regs.rsp, read_word(stepper, stepper->regs.rsp));
    }
    stepper->n_steps++;
    return true;
}

void
stepper_finish(Stepper *stepper)
{
    enum { BREAKPOINT = 0xcc };
    const uint64_t at = stepper_pc(stepper, 1), sp = stepper->regs.rsp;
    const long code = ptrace(PTRACE_PEEKTEXT, stepper->pid, at, NULL);
    int status;

    ptrace(PTRACE_POKETEXT, stepper->pid, at, (code & ~0xffL) | BREAKPOINT);
    g_assert_cmpint(ptrace(PTRACE_CONT, stepper->pid, NULL, 0), ==, 0);
    g_assert_cmpint(waitpid(stepper->pid, &status, 0), ==, stepper->pid);
    g_assert_true(WIFSTOPPED(status));
    g_assert_cmpint(WSTOPSIG(status), ==, SIGTRAP);
    look(stepper);
    g_assert_cmpuint(stepper->regs.rsp, >, sp);
    ptrace(PTRACE_POKETEXT, stepper->pid, at, code);
    stepper->regs.rip = at;
    ptrace(PTRACE_SETREGS, stepper->pid, NULL, &stepper->regs);
    look(stepper);
    drop_calls(stepper);
}

/* Reserves a processor until this process ends. Returns: false if it is reserved already */
static bool
take_processor(size_t number)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    /* an abstract name (unix(7)) is no file, and is free again when the socket is closed */
    g_snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "uprof-stepper-%zu", number);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return true;
    close(fd);
    return false;
}

/*
 * Keeps this process and its program on one processor, because waking another processor for each
 * instruction takes many times as long as the step. Two tests at the same time need different
 * processors. The scheduler would not separate them, because it wakes a process on the processor
 * where that process ran before.
 */
static void
stay_together(void)
{
    static bool is_done;
    cpu_set_t all, here;
    size_t number = (size_t)MAX(sched_getcpu(), 0);

    if (is_done)
        return;
    g_assert_cmpint(sched_getaffinity(0, sizeof(all), &all), ==, 0);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && take_processor(i)) {
            number = i;
            break;
        }
    CPU_ZERO(&here);
    CPU_SET(number, &here);
    g_assert_cmpint(sched_setaffinity(0, sizeof(here), &here), ==, 0);
    is_done = true;
}

void
stepper_start(Stepper *stepper, const char *path, const char *argument)
{
    int status;

    stay_together();
    stepper->snapshot = g_new0(UprofSnapshot, 1);
    stepper->pid = fork();
    g_assert_cmpint(stepper->pid, >=, 0);
    if (stepper->pid == 0) {
        char *arguments[] = { (char *)path, (char *)argument, NULL }, *environment[] = { NULL };
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execve(path, arguments, environment);
        _exit(127);
    }
    g_assert_cmpint(waitpid(stepper->pid, &status, 0), ==, stepper->pid);
    g_assert_true(WIFSTOPPED(status));
    g_assert_cmpint(WSTOPSIG(status), ==, SIGTRAP);
    ptrace(PTRACE_SETOPTIONS, stepper->pid, NULL, PTRACE_O_EXITKILL);
    look(stepper);
}

uint64_t
stepper_pc(const Stepper *stepper, unsigned n)
{
    return n == 0 ? stepper->regs.rip : stepper->calls[stepper->n_calls - n].pc;
}

MemoryGuest *
stepper_guest(const Stepper *stepper)
{
    enum { PAGE = 4096 };
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = CODE + CODE_LEN };
    MemoryGuest *guest = memory_guest_open(&plan);
    uint8_t page[PAGE];

    for (uint64_t at = CODE; at < CODE + CODE_LEN; at += PAGE)
        if (stepper_read(stepper, at, page, PAGE) == PAGE)
            memory_guest_put(guest, at, page, PAGE);
    return guest;
}
