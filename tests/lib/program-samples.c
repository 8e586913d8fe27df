/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program-samples.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uprof/mem.h"

enum {
    STACK_PIECE = 512,
    MAPS_EVERY = 50, /* snapshots: what is mapped changes rarely */
    CODE_MAX = 512 * 1024 * 1024,
};

static void
read_code(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    const ProgramSamples *samples = (const ProgramSamples *)guest;

    for (unsigned i = 0; i < n; i++) {
        spans[i].missing = true;
        for (guint k = 0; k < samples->code->len && spans[i].missing; k++) {
            const ProgramCode *code = &g_array_index(samples->code, ProgramCode, k);
            const uint64_t offset = spans[i].gpa - code->start;
            if (offset >= code->len || spans[i].len > code->len - offset)
                continue;
            memcpy(spans[i].into, code->bytes + offset, spans[i].len);
            spans[i].missing = false;
        }
    }
}

/* Addresses have more bits than those of a guest without paging. */
static bool
find_code(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    const ProgramSamples *samples = (const ProgramSamples *)guest;

    *gpa = gva;
    for (guint i = 0; i < samples->code->len; i++) {
        const ProgramCode *code = &g_array_index(samples->code, ProgramCode, i);
        if (gva - code->start < code->len)
            return true;
    }
    return false;
}

static const UprofGuestOps guest_ops = { .name = "program",
                                         .read = read_code,
                                         .translate = find_code };

static void
clear_code(void *data)
{
    g_free(((ProgramCode *)data)->bytes);
}

static void
clear_module(void *data)
{
    g_free(((ProgramModule *)data)->path);
}

static size_t
read_memory(const ProgramSamples *samples, uint64_t at, void *into, size_t len)
{
    const struct iovec local = { into, len };
    const struct iovec remote = { GSIZE_TO_POINTER(at), len };

    return (size_t)MAX(process_vm_readv(samples->pid, &local, 1, &remote, 1, 0), 0);
}

static void
take_snapshot(ProgramSamples *samples, unsigned pause_us)
{
    UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofRegs *regs = &snapshot->regs;
    UprofWindow *window = &snapshot->windows[0];
    struct user_regs_struct raw;

    ptrace(PTRACE_GETREGS, samples->pid, NULL, &raw);
    const uint64_t numbered[] = { raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi,
                                  raw.rbp, raw.rsp, raw.r8,  raw.r9,  raw.r10, raw.r11,
                                  raw.r12, raw.r13, raw.r14, raw.r15, raw.rip };
    memcpy(regs->reg, numbered, sizeof(numbered));
    regs->pc = raw.rip;
    regs->sp = raw.rsp;
    regs->fp = raw.rbp;
    regs->word_bytes = 8;
    regs->privilege = 3;
    snapshot->time_ns = (samples->snapshots->len + 1) * (uint64_t)pause_us * 1000;
    window->gva = raw.rsp - UPROF_WINDOW_BELOW_SP_BYTES;
    while (window->len < UPROF_SNAPSHOT_BYTES_MAX &&
           read_memory(samples, window->gva + window->len, snapshot->bytes + window->len,
                       STACK_PIECE) == STACK_PIECE)
        window->len += STACK_PIECE;
    snapshot->n_windows = 1;
    g_ptr_array_add(samples->snapshots, snapshot);
}

static void
add_code(ProgramSamples *samples, uint64_t start, uint64_t len)
{
    ProgramCode code = { start, len, NULL };

    for (guint i = 0; i < samples->code->len; i++)
        if (g_array_index(samples->code, ProgramCode, i).start == start)
            return;
    if (len > CODE_MAX)
        return;
    code.bytes = g_malloc0(len);
    for (uint64_t done = 0; done < len; done += UPROF_PAGE_BYTES)
        read_memory(samples, start + done, code.bytes + done, UPROF_PAGE_BYTES);
    g_array_append_val(samples->code, code);
}

static void
add_module(ProgramSamples *samples, const char *file, uint64_t base)
{
    const ProgramModule module = { g_strdup(file), base };

    for (guint i = 0; i < samples->modules->len; i++)
        if (g_array_index(samples->modules, ProgramModule, i).base == base) {
            g_free(module.path);
            return;
        }
    g_array_append_val(samples->modules, module);
}

/* The mapping of offset 0 is the first page of a file. */
static void
note_maps(ProgramSamples *samples)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/maps", samples->pid);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        const char *file = strchr(lines[i], '/');
        unsigned long start, end, offset;
        char rights[8];
        if (sscanf(lines[i], "%lx-%lx %7s %lx", &start, &end, rights, &offset) != 4 ||
            strstr(lines[i], "[vsyscall]"))
            continue;
        if (file && offset == 0)
            add_module(samples, file, start);
        if (rights[2] == 'x')
            add_code(samples, start, end - start);
    }
}

static void
start_command(ProgramSamples *samples, char **command)
{
    samples->pid = fork();
    if (samples->pid == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (ptrace(PTRACE_SEIZE, samples->pid, NULL, 0) < 0) {
        perror("ptrace");
        exit(1);
    }
}

ProgramSamples *
program_samples_take(char **command, unsigned n_max, unsigned pause_us)
{
    ProgramSamples *samples = g_new0(ProgramSamples, 1);
    int status;

    samples->guest = (UprofGuest){ .ops = &guest_ops,
                                   .arch = uprof_arch_find("x86_64"),
                                   .n_vcpus = 1,
                                   .grain = UPROF_GRAIN_NONE };
    samples->snapshots = g_ptr_array_new_with_free_func(g_free);
    samples->modules = g_array_new(FALSE, FALSE, sizeof(ProgramModule));
    g_array_set_clear_func(samples->modules, clear_module);
    samples->code = g_array_new(FALSE, FALSE, sizeof(ProgramCode));
    g_array_set_clear_func(samples->code, clear_code);
    start_command(samples, command);
    while (samples->snapshots->len < n_max) {
        /* not at regular times, which the program may follow */
        g_usleep((gulong)g_random_int_range(1, 2 * (gint32)pause_us));
        if (ptrace(PTRACE_INTERRUPT, samples->pid, NULL, NULL) < 0 ||
            waitpid(samples->pid, &status, 0) != samples->pid || !WIFSTOPPED(status))
            break;
        if (status >> 16 == PTRACE_EVENT_STOP) {
            take_snapshot(samples, pause_us);
            if (samples->snapshots->len % MAPS_EVERY == MAPS_EVERY - 1)
                note_maps(samples);
        }
        ptrace(PTRACE_CONT, samples->pid, NULL,
               status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
    }
    kill(samples->pid, SIGKILL);
    waitpid(samples->pid, &status, 0);
    samples->pid = 0;
    return samples;
}

void
program_samples_free(ProgramSamples *samples)
{
    if (!samples)
        return;
    g_ptr_array_unref(samples->snapshots);
    g_array_unref(samples->modules);
    g_array_unref(samples->code);
    g_free(samples);
}
