/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-unwind COMMAND ARGUMENT... - compares the speed at which virt-uprof and elfutils' libdwfl
 * unwind the same snapshots of a real program
 *
 * Runs COMMAND, and often stops it to copy its registers and stack. Ends COMMAND after 1500
 * snapshots, and then unwinds them. Prints one figure a line. "hot": each stack is unwound several
 * times in a row, and the fastest time counts. "cold": all stacks are unwound in turn, once each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dwfl-stack.h"
#include "memory-guest.h"
#include "uprof/cfi-table.h"
#include "uprof/clock.h"
#include "uprof/elf-image.h"
#include "uprof/unwind.h"

enum {
    SNAPSHOTS_MAX = 1500,
    PAUSE_US = 2000,
    MODULES_MAX = 60,
    ROUNDS = 7,
    LOOKUPS = 200000,
    DEPTH = 1024,
};

/** Module: a file that the program has mapped */
typedef struct {
    char *path;    /* owned */
    uint64_t base; /* address of the file's first page */
    uint64_t bias; /* distance from the file's link addresses */
} Module;

typedef struct {
    pid_t pid;
    UprofSnapshot *snapshots[SNAPSHOTS_MAX];
    unsigned n_snapshots;
    Module modules[MODULES_MAX];
    unsigned n_modules;
    DwflStack *dwfl;
    UprofNames *names;
    UprofUnwindContext context;
    UprofStack stack;
} Bench;

static void
take_snapshot(Bench *bench)
{
    UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofRegs *regs = &snapshot->regs;
    UprofWindow *window = &snapshot->windows[0];
    struct user_regs_struct raw;

    ptrace(PTRACE_GETREGS, bench->pid, NULL, &raw);
    const uint64_t numbered[] = { raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi,
                                  raw.rbp, raw.rsp, raw.r8,  raw.r9,  raw.r10, raw.r11,
                                  raw.r12, raw.r13, raw.r14, raw.r15, raw.rip };
    memcpy(regs->reg, numbered, sizeof(numbered));
    regs->pc = raw.rip;
    regs->sp = raw.rsp;
    regs->fp = raw.rbp;
    regs->word_bytes = 8;
    regs->privilege = 3;
    window->gva = raw.rsp - UPROF_WINDOW_BELOW_SP_BYTES;
    for (; window->len < UPROF_SNAPSHOT_BYTES_MAX; window->len += 512) {
        const struct iovec local = { snapshot->bytes + window->len, 512 };
        const struct iovec remote = { GSIZE_TO_POINTER(window->gva + window->len), 512 };
        if (process_vm_readv(bench->pid, &local, 1, &remote, 1, 0) != 512)
            break;
    }
    snapshot->n_windows = 1;
    bench->snapshots[bench->n_snapshots++] = snapshot;
}

/* Lists the mapped files. The mapping of offset 0 is the first page of a file. */
static void
note_modules(Bench *bench)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/maps", bench->pid);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bench->n_modules = 0;
    for (unsigned i = 0; lines[i] && bench->n_modules < MODULES_MAX; i++) {
        const char *file = strchr(lines[i], '/');
        unsigned long start, end, offset;
        if (!file || sscanf(lines[i], "%lx-%lx %*s %lx", &start, &end, &offset) != 3 || offset != 0)
            continue;
        Module *module = &bench->modules[bench->n_modules];
        if (bench->n_modules > 0 && strcmp(module[-1].path, file) == 0)
            continue;
        *module = (Module){ .path = g_strdup(file), .base = start };
        bench->n_modules++;
    }
}

static void
sample(Bench *bench, char **command)
{
    int status;

    bench->pid = fork();
    if (bench->pid == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (ptrace(PTRACE_SEIZE, bench->pid, NULL, 0) < 0) {
        perror("ptrace");
        exit(1);
    }
    while (bench->n_snapshots < SNAPSHOTS_MAX) {
        g_usleep(PAUSE_US);
        if (ptrace(PTRACE_INTERRUPT, bench->pid, NULL, NULL) < 0 ||
            waitpid(bench->pid, &status, 0) != bench->pid || !WIFSTOPPED(status))
            break;
        if (status >> 16 == PTRACE_EVENT_STOP) {
            take_snapshot(bench);
            if (bench->n_snapshots % 100 == 50)
                note_modules(bench);
        }
        ptrace(PTRACE_CONT, bench->pid, NULL,
               status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
    }
    kill(bench->pid, SIGKILL);
    waitpid(bench->pid, &status, 0);
}

static gint
compare_doubles(gconstpointer a, gconstpointer b)
{
    const double one = *(const double *)a, other = *(const double *)b;

    return one < other ? -1 : one > other;
}

static double
percentile(GArray *values, unsigned percent)
{
    g_array_sort(values, compare_doubles);
    return values->len ? g_array_index(values, double, (values->len - 1) * percent / 100) : 0;
}

static void
measure_tables(const Bench *bench)
{
    uint64_t total_ns = 0;
    size_t n_rows = 0, n_bytes = 0;

    for (unsigned i = 0; i < bench->n_modules; i++) {
        g_autofree char *bytes = NULL;
        g_auto(UprofElfImage) image = { 0 };
        gsize len;
        if (!g_file_get_contents(bench->modules[i].path, &bytes, &len, NULL) ||
            !uprof_elf_parse((UprofSlice){ bytes, len }, "file", &image, NULL))
            continue;
        const uint64_t start = uprof_clock_now_ns();
        g_autoptr(UprofCfi) cfi = uprof_cfi_compile(&image, "file", NULL);
        if (!cfi)
            continue;
        total_ns += uprof_clock_now_ns() - start;
        const UprofCfiSummary summary = uprof_cfi_summary(cfi);
        n_rows += summary.n_rows;
        n_bytes += summary.n_bytes;
    }
    printf("tables: %zu rows, %.1f ms, %.0f ns a row, %.1f bytes a row\n", n_rows,
           (double)total_ns / 1e6, (double)total_ns / (double)MAX(n_rows, 1),
           (double)n_bytes / (double)MAX(n_rows, 1));
}

/* The guest's memory has no code, because unwinding with tables reads no code. */
static void
prepare(Bench *bench)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = 4096 };
    MemoryGuest *guest = memory_guest_open(&plan);

    bench->names = uprof_names_new();
    bench->dwfl = dwfl_stack_new();
    bench->context = (UprofUnwindContext){
        .mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(guest->base.arch, bench->names),
        .cache = uprof_unwind_cache_new(),
        .max_depth = DEPTH,
    };
    for (unsigned i = 0; i < bench->n_modules; i++) {
        const Module *module = &bench->modules[i];
        g_autofree char *bytes = NULL;
        g_auto(UprofElfImage) image = { 0 };
        gsize len;
        if (!g_file_get_contents(module->path, &bytes, &len, NULL) ||
            !uprof_elf_parse((UprofSlice){ bytes, len }, "file", &image, NULL))
            continue;
        if (!uprof_sym_add_file_at(bench->context.sym, module->path, &module->base, false, NULL))
            continue;
        dwfl_stack_add(bench->dwfl, module->path, module->base);
    }
    dwfl_stack_begin(bench->dwfl);
}

static unsigned
unwind_ours(Bench *bench, const UprofSnapshot *snapshot)
{
    bench->context.snapshot = snapshot;
    uprof_unwind(&bench->context, &bench->stack);
    return bench->stack.n;
}

static unsigned
unwind_theirs(Bench *bench, const UprofSnapshot *snapshot)
{
    static uint64_t pcs[DEPTH];

    return dwfl_stack_unwind(bench->dwfl, snapshot, pcs, DEPTH);
}

typedef unsigned (*Unwind)(Bench *bench, const UprofSnapshot *snapshot);

/* Returns: the median of all stacks of the ns a frame, in the fastest of several rounds */
static double
measure_hot(Bench *bench, Unwind unwind, const char *name)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    size_t n_frames = 0;

    for (unsigned i = 0; i < bench->n_snapshots; i++) {
        double best = 0;
        unsigned n = 0;
        for (unsigned round = 0; round < ROUNDS; round++) {
            const uint64_t start = uprof_clock_now_ns();
            n = unwind(bench, bench->snapshots[i]);
            const double ns = (double)(uprof_clock_now_ns() - start);
            best = round == 0 ? ns : MIN(best, ns);
        }
        if (n < 2)
            continue;
        const double per_frame = best / n;
        n_frames += n;
        g_array_append_val(values, per_frame);
    }
    const double p50 = percentile(values, 50);
    printf("%s hot: p50 %.1f, p90 %.1f ns a frame (%u stacks, %.1f frames each)\n", name, p50,
           percentile(values, 90), values->len, (double)n_frames / MAX(values->len, 1));
    return p50;
}

static double
measure_cold(Bench *bench, Unwind unwind, const char *name)
{
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));

    for (unsigned i = 0; i < bench->n_snapshots; i++) {
        const uint64_t start = uprof_clock_now_ns();
        const unsigned n = unwind(bench, bench->snapshots[i]);
        const double per_frame = (double)(uprof_clock_now_ns() - start) / MAX(n, 1);
        if (n >= 2)
            g_array_append_val(values, per_frame);
    }
    const double p50 = percentile(values, 50);
    printf("%s cold: p50 %.1f, p90 %.1f ns a frame\n", name, p50, percentile(values, 90));
    return p50;
}

static void
compare_answers(Bench *bench)
{
    static uint64_t pcs[DEPTH];
    unsigned n_same = 0, n_longer = 0, n_complete = 0, n_shown = 0;

    for (unsigned i = 0; i < bench->n_snapshots; i++) {
        const unsigned ours = unwind_ours(bench, bench->snapshots[i]);
        const unsigned theirs = dwfl_stack_unwind(bench->dwfl, bench->snapshots[i], pcs, DEPTH);
        unsigned n = 0;
        while (n < ours && n < theirs && bench->stack.frames[n].pc == pcs[n])
            n++;
        n_complete += uprof_unwind_is_complete(&bench->stack);
        if (n == ours && n == theirs) {
            n_same++;
            continue;
        }
        n_longer += n == theirs;
        if (n_shown++ >= 10)
            continue;
        const UprofFrame *last = &bench->stack.frames[n - 1];
        printf("differs: %u frames the same, then ours has %u more, %s, theirs %u; in %s, by %d\n",
               n, ours - n, uprof_end_name(bench->stack.end), theirs - n,
               uprof_name_text(uprof_sym_find(bench->context.sym, last->pc, last->is_return).name),
               last->how);
    }
    printf("same answers: %u of %u (%.2f %%); ours goes on where theirs ends: %u; ours complete: "
           "%u\n",
           n_same, bench->n_snapshots, 100.0 * n_same / MAX(bench->n_snapshots, 1), n_longer,
           n_complete);
}

/* a use of the results, so that the compiler keeps the lookups */
static volatile size_t sum;

static void
measure_names(Bench *bench)
{
    g_autofree uint64_t *pcs = g_new(uint64_t, LOOKUPS);

    for (unsigned i = 0; i < LOOKUPS; i++) {
        const UprofSnapshot *snapshot =
            bench->snapshots[(unsigned)g_random_int_range(0, (gint32)bench->n_snapshots)];
        /* a random address near the program counter, so that few addresses repeat */
        pcs[i] = snapshot->regs.pc + (uint64_t)g_random_int_range(-500000, 500000);
    }
    for (unsigned way = 0; way < 2; way++) {
        const unsigned n = way == 0 ? LOOKUPS : LOOKUPS / 100;
        const uint64_t start = uprof_clock_now_ns();
        for (unsigned i = 0; i < n; i++)
            sum += way == 0 ? uprof_sym_find(bench->context.sym, pcs[i], false).start
                            : (size_t)dwfl_stack_name(bench->dwfl, pcs[i]);
        printf("%s: %.0f ns a name\n", way == 0 ? "ours" : "libdwfl",
               (double)(uprof_clock_now_ns() - start) / n);
    }
}

int
main(int argc, char **argv)
{
    static Bench bench;

    if (argc < 2) {
        fprintf(stderr, "usage: unwind COMMAND ARGUMENT...\n");
        return 2;
    }
    sample(&bench, argv + 1);
    printf("%s: %u snapshots, %u files\n", argv[1], bench.n_snapshots, bench.n_modules);
    if (bench.n_snapshots == 0)
        return 1;
    measure_tables(&bench);
    prepare(&bench);
    const double cold = measure_cold(&bench, unwind_ours, "ours");
    const double hot = measure_hot(&bench, unwind_ours, "ours");
    const double their_cold = measure_cold(&bench, unwind_theirs, "libdwfl");
    const double their_hot = measure_hot(&bench, unwind_theirs, "libdwfl");
    printf("libdwfl takes %.1f times as long hot, %.1f times cold\n", their_hot / hot,
           their_cold / cold);
    compare_answers(&bench);
    measure_names(&bench);
    return 0;
}
