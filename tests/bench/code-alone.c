/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-code-alone [-v] [-n SNAPSHOTS] COMMAND ARGUMENT... - compares stacks that are unwound by
 * machine code alone with stacks by unwind tables
 *
 * Runs COMMAND, stops it at random times, and unwinds its stacks twice: by tables, and without any
 * table or symbol. elfutils' libdwfl must agree with the tables; other stacks have no known truth
 * and are left out. A stack is right if all addresses are, and the root is found. Prints the share
 * of right stacks, the time of a frame whose address is known (hot), and of an address that is new
 * (cold). With -v also prints the first stacks that differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwfl-stack.h"
#include "program-samples.h"
#include "uprof/clock.h"
#include "uprof/unwind.h"

enum {
    SNAPSHOTS = 3000,
    PAUSE_US = 1000,
    DEPTH = 1024,
    SHOWN_MAX = 12,
    ROUNDS = 3,
};

typedef struct {
    ProgramSamples *samples;
    UprofNames *names;
    DwflStack *dwfl;
    UprofUnwindContext tables, code;
    UprofStack by_tables, by_code;
    GArray *hot, *cold; /* of double */
    unsigned n_truth, n_right, n_shown;
    uint64_t n_frames, n_right_frames;
    bool is_verbose;
} Bench;

static UprofUnwindContext
make_context(const Bench *bench)
{
    return (UprofUnwindContext){
        .mem = uprof_mem_new(&bench->samples->guest, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(bench->samples->guest.arch, bench->names),
        .cache = uprof_unwind_cache_new(),
        .max_depth = DEPTH,
    };
}

static void
prepare_bench(Bench *bench)
{
    bench->names = uprof_names_new();
    bench->dwfl = dwfl_stack_new();
    bench->tables = make_context(bench);
    bench->tables.method = UPROF_UNWIND_CFI;
    bench->code = make_context(bench);
    bench->hot = g_array_new(FALSE, FALSE, sizeof(double));
    bench->cold = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < bench->samples->modules->len; i++) {
        const ProgramModule *module = &g_array_index(bench->samples->modules, ProgramModule, i);
        if (uprof_sym_add_file_at(bench->tables.sym, module->path, &module->base, false, NULL))
            dwfl_stack_add(bench->dwfl, module->path, module->base);
    }
    dwfl_stack_begin(bench->dwfl);
}

static void
unwind(UprofUnwindContext *context, const UprofSnapshot *snapshot, UprofStack *stack)
{
    context->snapshot = snapshot;
    uprof_mem_begin_sample(context->mem, snapshot->time_ns, 0);
    uprof_unwind(context, stack);
}

static bool
has_truth(Bench *bench, const UprofSnapshot *snapshot)
{
    static uint64_t pcs[DEPTH];
    const UprofStack *stack = &bench->by_tables;

    unwind(&bench->tables, snapshot, &bench->by_tables);
    if (!uprof_unwind_is_complete(stack) ||
        dwfl_stack_unwind(bench->dwfl, snapshot, pcs, DEPTH) != stack->n)
        return false;
    for (unsigned i = 0; i < stack->n; i++)
        if (stack->frames[i].pc != pcs[i])
            return false;
    return true;
}

static void
show_place(const Bench *bench, uint64_t pc)
{
    const char *path = "?";
    uint64_t base = 0;

    for (guint i = 0; i < bench->samples->modules->len; i++) {
        const ProgramModule *module = &g_array_index(bench->samples->modules, ProgramModule, i);
        if (module->base <= pc && module->base > base) {
            base = module->base;
            path = module->path;
        }
    }
    printf(" %s+%#lx", path, (unsigned long)(pc - base));
}

static void
show_difference(Bench *bench, unsigned n_same)
{
    if (!bench->is_verbose || bench->n_shown++ >= SHOWN_MAX)
        return;
    printf("differs behind frame %u of %u, which is", n_same - 1, bench->by_tables.n);
    show_place(bench, bench->by_tables.frames[n_same - 1].pc);
    if (n_same < bench->by_tables.n) {
        printf("; right:");
        show_place(bench, bench->by_tables.frames[n_same].pc);
    }
    if (n_same < bench->by_code.n) {
        printf("; found:");
        show_place(bench, bench->by_code.frames[n_same].pc);
    }
    printf("; %s\n", uprof_end_name(bench->by_code.end));
}

static void
compare_stacks(Bench *bench)
{
    const UprofStack *right = &bench->by_tables, *found = &bench->by_code;
    unsigned n = 0;

    while (n < right->n && n < found->n && right->frames[n].pc == found->frames[n].pc)
        n++;
    bench->n_frames += right->n;
    bench->n_right_frames += n;
    bench->n_truth++;
    if (n == right->n && n == found->n && uprof_unwind_is_complete(found))
        bench->n_right++;
    else
        show_difference(bench, n);
}

/* @seen: addresses of frames so far. Returns: how many of the stack's addresses are new */
static unsigned
count_new(GHashTable *seen, const UprofStack *stack)
{
    unsigned n = 0;

    for (unsigned i = 0; i < stack->n; i++)
        n += g_hash_table_add(seen, GSIZE_TO_POINTER(stack->frames[i].pc));
    return n;
}

static void
add_time(GArray *times, uint64_t start_ns, unsigned n)
{
    const double ns = (double)(uprof_clock_now_ns() - start_ns) / n;

    g_array_append_val(times, ns);
}

static void
unwind_all(Bench *bench)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);

    for (guint i = 0; i < bench->samples->snapshots->len; i++) {
        const UprofSnapshot *snapshot = g_ptr_array_index(bench->samples->snapshots, i);
        uint64_t start_ns = uprof_clock_now_ns();
        unwind(&bench->code, snapshot, &bench->by_code);
        const unsigned n_new = count_new(seen, &bench->by_code);
        if (n_new > 0)
            add_time(bench->cold, start_ns, n_new);
        for (unsigned round = 0; round < ROUNDS; round++) {
            start_ns = uprof_clock_now_ns();
            unwind(&bench->code, snapshot, &bench->by_code);
            if (round == ROUNDS - 1)
                add_time(bench->hot, start_ns, bench->by_code.n);
        }
        if (has_truth(bench, snapshot))
            compare_stacks(bench);
    }
}

static gint
compare_doubles(gconstpointer a, gconstpointer b)
{
    const double one = *(const double *)a, other = *(const double *)b;

    return one < other ? -1 : one > other;
}

static double
find_percentile(GArray *values, unsigned percent)
{
    g_array_sort(values, compare_doubles);
    return values->len ? g_array_index(values, double, (values->len - 1) * percent / 100) : 0;
}

static void
print_figures(Bench *bench, const char *command)
{
    g_autofree char *name = g_path_get_basename(command);

    printf("%-10s %u snapshots, %u with truth, %.1f frames each: %.2f %% of stacks right, "
           "%.2f %% of frames; hot p50 %.0f ns a frame; cold p50 %.1f, p90 %.1f us a new address\n",
           name, bench->samples->snapshots->len, bench->n_truth,
           (double)bench->n_frames / MAX(bench->n_truth, 1),
           100.0 * bench->n_right / MAX(bench->n_truth, 1),
           100.0 * (double)bench->n_right_frames / (double)MAX(bench->n_frames, 1),
           find_percentile(bench->hot, 50), find_percentile(bench->cold, 50) / 1000,
           find_percentile(bench->cold, 90) / 1000);
}

int
main(int argc, char **argv)
{
    static Bench bench;
    unsigned n = SNAPSHOTS;
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-v") == 0)
            bench.is_verbose = true;
        else if (strcmp(argv[at], "-n") == 0 && at + 1 < argc)
            n = (unsigned)atoi(argv[++at]);
    }
    if (at >= argc || n == 0) {
        fprintf(stderr, "usage: bench-code-alone [-v] [-n SNAPSHOTS] COMMAND ARGUMENT...\n");
        return 2;
    }
    bench.samples = program_samples_take(argv + at, n, PAUSE_US);
    prepare_bench(&bench);
    unwind_all(&bench);
    print_figures(&bench, argv[at]);
    return bench.n_truth > 0 ? 0 : 1;
}
