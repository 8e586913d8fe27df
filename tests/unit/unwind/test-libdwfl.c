/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs are run one instruction at a time, as in test-single-step.c, and the
 * stacks that elfutils' libdwfl finds in the same snapshots are compared with
 * ours. Where they differ, the list of calls says who is right: that must be us.
 */
#include <string.h>

#include "dwfl-stack.h"
#include "stepper.h"
#include "uprof/unwind.h"

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
    size_t n_unexplained; /* different, and ours is not all right */
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
start(Comparison *comparison, const char *path)
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
        .max_depth = UPROF_DEPTH_DEFAULT,
    };
    g_assert_true(uprof_sym_add_file(comparison->context.sym, path, true, &error));
    g_assert_no_error(error);
    comparison->dwfl = dwfl_stack_new();
    dwfl_stack_add(comparison->dwfl, path, 0);
    dwfl_stack_begin(comparison->dwfl);
}

/* Returns: how many frames of @pcs are right, from the innermost on */
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
note_difference(Comparison *comparison, unsigned ours, unsigned theirs)
{
    const UprofSymAnswer top =
        uprof_sym_find(comparison->context.sym, comparison->stepper.regs.rip, false);
    char *text = g_strdup_printf("%s+%u: %u of our frames are right, %u of theirs, of %u",
                                 uprof_name_text(top.name),
                                 (unsigned)(comparison->stepper.regs.rip - top.start), ours, theirs,
                                 comparison->stepper.n_calls + 1);

    comparison->n_other++;
    comparison->n_unexplained += ours <= comparison->stepper.n_calls;
    comparison->n_other_is_right += theirs > ours;
    g_hash_table_add(comparison->differences, text);
}

static void
compare(Comparison *comparison)
{
    UprofStack *stack = &comparison->stack;
    uint64_t ours[UPROF_DEPTH_DEFAULT], theirs[UPROF_DEPTH_DEFAULT];

    uprof_mem_begin_sample(comparison->context.mem, 0, 0);
    uprof_unwind(&comparison->context, stack);
    for (unsigned i = 0; i < stack->n; i++)
        ours[i] = stack->frames[i].pc;
    const unsigned n = dwfl_stack_unwind(comparison->dwfl, comparison->stepper.snapshot, theirs,
                                         G_N_ELEMENTS(theirs));
    if (n == stack->n && memcmp(ours, theirs, n * sizeof(ours[0])) == 0)
        comparison->n_same++;
    else
        note_difference(comparison, count_right(comparison, ours, stack->n),
                        count_right(comparison, theirs, n));
}

/* In which exceptions spend a million instructions. */
static bool
is_long(const Comparison *comparison)
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

    start(&comparison, data);
    do {
        compare(&comparison);
        if (is_long(&comparison))
            stepper_finish(&comparison.stepper);
    } while (stepper_step(&comparison.stepper));
    g_test_message(
        "%zu stacks are the same, %zu are not, of which ours are right but for %zu; libdwfl is "
        "right where we are not: %zu",
        comparison.n_same, comparison.n_other, comparison.n_unexplained,
        comparison.n_other_is_right);
    g_hash_table_iter_init(&iter, comparison.differences);
    while (g_hash_table_iter_next(&iter, &text, NULL))
        g_test_message("%s", (const char *)text);
    g_assert_cmpuint(comparison.n_same, >, 20000);
    g_assert_cmpuint(comparison.n_other_is_right, ==, 0);
    /* what is left is about to be on another stack, and both are lost there */
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
