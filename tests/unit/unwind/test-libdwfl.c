/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs run one instruction at a time, as in test-single-step.c. After each step,
 * virt-uprof and libdwfl (elfutils) unwind the same snapshot. If the stacks differ, the list
 * of real calls decides which one is right: libdwfl may never be right where virt-uprof is wrong.
 */
#include <string.h>

#include "dwfl-stack.h"
#include "stepper.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

#ifdef __x86_64__

typedef struct {
    Stepper stepper;
    UprofNames *names;
    UprofUnwindContext context;
    UprofStack stack;
    MemoryGuest *guest;
    DwflStack *dwfl;
    GHashTable *differences;
    size_t n_same, n_other, n_other_is_right;
    size_t n_unexplained; /* stacks that differ, with a wrong frame in virt-uprof's */
} Comparison;

static void
clear_comparison(Comparison *comparison)
{
    g_hash_table_unref(comparison->differences);
    dwfl_stack_free(comparison->dwfl);
    uprof_mem_free(comparison->context.mem);
    uprof_sym_free(comparison->context.sym);
    uprof_names_free(comparison->names);
    memory_guest_close(comparison->guest);
    stepper_clear(&comparison->stepper);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Comparison, clear_comparison)

static void
start_comparison(Comparison *comparison, const char *path)
{
    g_autoptr(GError) error = NULL;

    comparison->differences = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    stepper_start(&comparison->stepper, path, "1");
    comparison->guest = stepper_guest(&comparison->stepper);
    comparison->names = uprof_names_new();
    comparison->context = (UprofUnwindContext){
        .snapshot = comparison->stepper.snapshot,
        .mem = uprof_mem_new(&comparison->guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(comparison->guest->base.arch, comparison->names),
        .max_depth = DEPTH,
    };
    g_assert_true(uprof_sym_add_file(comparison->context.sym, path, true, &error));
    g_assert_no_error(error);
    comparison->dwfl = dwfl_stack_new();
    dwfl_stack_add(comparison->dwfl, path, 0);
    dwfl_stack_begin(comparison->dwfl);
}

/* Returns: the number of right frames in @pcs, from the leaf on */
static unsigned
count_right(const Comparison *comparison, const uint64_t *pcs, unsigned n)
{
    const Stepper *stepper = &comparison->stepper;
    unsigned i = 0;

    while (i < n && i <= stepper->n_calls && pcs[i] == stepper_pc(stepper, i))
        i++;
    return i;
}

static void
count_difference(Comparison *comparison, unsigned ours, unsigned theirs)
{
    const UprofSymAnswer top =
        uprof_sym_find(comparison->context.sym, comparison->stepper.regs.rip, false);
    char *text = g_strdup_printf("%s+%u: right frames: %u by virt-uprof, %u by libdwfl, of %u",
                                 uprof_name_text(top.name),
                                 (unsigned)(comparison->stepper.regs.rip - top.start), ours, theirs,
                                 comparison->stepper.n_calls + 1);

    comparison->n_other++;
    comparison->n_unexplained += ours <= comparison->stepper.n_calls;
    comparison->n_other_is_right += theirs > ours;
    g_hash_table_add(comparison->differences, text);
}

static void
compare_stacks(Comparison *comparison)
{
    UprofStack *stack = &comparison->stack;
    uint64_t ours[DEPTH], theirs[DEPTH];

    uprof_mem_begin_sample(comparison->context.mem, 0, 0);
    uprof_unwind(&comparison->context, stack);
    for (unsigned i = 0; i < stack->n; i++)
        ours[i] = stack->frames[i].pc;
    const unsigned n = dwfl_stack_unwind(comparison->dwfl, comparison->stepper.snapshot, theirs,
                                         G_N_ELEMENTS(theirs));
    if (n == stack->n && memcmp(ours, theirs, n * sizeof(ours[0])) == 0)
        comparison->n_same++;
    else
        count_difference(comparison, count_right(comparison, ours, stack->n),
                         count_right(comparison, theirs, n));
}

/* Exceptions spend a million instructions in this function. */
static bool
is_slow_function(const Comparison *comparison)
{
    const UprofSymAnswer answer =
        uprof_sym_find(comparison->context.sym, comparison->stepper.regs.rip, false);

    return strcmp(uprof_name_text(answer.name), "_Unwind_Find_FDE") == 0;
}

static void
test_program(gconstpointer data)
{
    g_auto(Comparison) comparison = { 0 };
    GHashTableIter iter;
    void *text;

    start_comparison(&comparison, data);
    do {
        compare_stacks(&comparison);
        if (is_slow_function(&comparison))
            stepper_finish(&comparison.stepper);
    } while (stepper_step(&comparison.stepper));
    g_test_message(
        "%zu stacks are equal, %zu differ; virt-uprof is wrong in %zu of them; libdwfl has more "
        "right frames in %zu",
        comparison.n_same, comparison.n_other, comparison.n_unexplained,
        comparison.n_other_is_right);
    g_hash_table_iter_init(&iter, comparison.differences);
    while (g_hash_table_iter_next(&iter, &text, NULL))
        g_test_message("%s", (const char *)text);
    g_assert_cmpuint(comparison.n_same, >, 20000);
    g_assert_cmpuint(comparison.n_other_is_right, ==, 0);
    /* all others are in code that switches to another stack, where both fail */
    g_assert_cmpuint(comparison.n_other * 50, <=, comparison.n_same);
    g_assert_cmpuint(comparison.n_unexplained * 200, <=, comparison.n_same);
}

#else

static void
test_program(gconstpointer data)
{
    g_test_skip("only for x86-64");
}

#endif

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *path = g_strdup_printf("/libdwfl/%s", name);
        g_test_add_data_func(path, argv[i], test_program);
    }
    return g_test_run();
}
