/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs are run one instruction at a time, and before each one the whole
 * stack is unwound from a copy and compared with the right one: with unwind
 * tables, as a run does it, and of programs that are built with frame pointers
 * also without tables, as far as their own code goes (the C library has none).
 * Arguments: --tables, files, --frame-pointers, files.
 *
 * Each answer gets a verdict. Every kind of miss that there may be is written down
 * here, with its reason, counted and said; it counts as a miss. All else fails.
 */
#include <string.h>

#include "stepper.h"
#include "uprof/unwind.h"

#ifdef __x86_64__

enum { STEPS_MAX = 1000 * 1000 };

enum { BY_TABLES, BY_FRAME_POINTERS, BY_ALL, N_WAYS };

static const char *const way_names[N_WAYS] = { "tables", "frame pointers", "all" };

typedef enum { RIGHT, AHEAD, NO_TABLE, EXCHANGE, COLD, WRONG, N_VERDICTS } Verdict;

static const char *const verdict_names[N_VERDICTS] = {
    [RIGHT] = "right: the calls that were made",
    [AHEAD] = "right: the calls of the frame that goes on, when what it called is thrown away",
    [NO_TABLE] = "miss: code that comes without tables",
    [EXCHANGE] = "miss: the registers are exchanged for another stack's, and not all of them are",
    [COLD] = "miss: part of a function that was moved away from it, without its frame",
    [WRONG] = "not explained",
};

/* Frames from the innermost on that those which leave their stack, and what they call, are in. */
enum { LEAVING_FRAMES_MAX = 3, AHEAD_FRAMES_MAX = 64 };

/**
 * Left: an answer of which it is not known yet whether it is the stack that comes
 * @n_leaving: frames of those that leave; the others are the answer
 */
typedef struct {
    unsigned way, n_leaving, n;
    bool is_complete;
    uint64_t pcs[AHEAD_FRAMES_MAX];
} Left;

typedef struct {
    Stepper stepper;
    UprofUnwindContext context;
    MemoryGuest *guest;
    UprofNames *names;
    UprofStack stack;
    UprofUnwindCache *cache;
    size_t tally[N_WAYS][N_VERDICTS];
    GHashTable *misses; /* what was wrong where, how often */
    bool is_exchanging;
    GArray *left;
    unsigned deepest;
} Oracle;

static void
clear_oracle(Oracle *oracle)
{
    g_hash_table_unref(oracle->misses);
    g_array_unref(oracle->left);
    uprof_unwind_cache_free(oracle->cache);
    uprof_mem_free(oracle->context.mem);
    uprof_sym_free(oracle->context.sym);
    uprof_names_free(oracle->names);
    memory_guest_close(oracle->guest);
    stepper_clear(&oracle->stepper);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Oracle, clear_oracle)

/*
 * How often a program does all that it can. It throws once, as programs seldom do: 110
 * of its steps are misses then, and 310 where exceptions exchange frame pointers. What
 * is not optimized takes twice as many for the same work.
 */
static const char *
choose_rounds(const char *path, bool has_frame_pointers)
{
    static const char *const rounds[2][2] = { { "14", "7" }, { "18", "9" } };

    return rounds[has_frame_pointers][g_str_has_suffix(path, "-O0")];
}

static void
start(Oracle *oracle, const char *path, bool has_frame_pointers)
{
    g_autoptr(GError) error = NULL;

    oracle->misses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    oracle->left = g_array_new(FALSE, FALSE, sizeof(Left));
    stepper_start(&oracle->stepper, path, choose_rounds(path, has_frame_pointers));
    oracle->guest = stepper_guest(&oracle->stepper);
    oracle->names = uprof_names_new();
    oracle->cache = uprof_unwind_cache_new();
    oracle->context = (UprofUnwindContext){
        .snapshot = oracle->stepper.snapshot,
        .mem = uprof_mem_new(&oracle->guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(oracle->guest->base.arch, oracle->names),
        .max_depth = UPROF_DEPTH_DEFAULT,
    };
    g_assert_true(uprof_sym_add_file(oracle->context.sym, path, true, &error));
    g_assert_no_error(error);
}

static const char *
name_of(const Oracle *oracle, uint64_t pc, bool is_return)
{
    return uprof_name_text(uprof_sym_find(oracle->context.sym, pc, is_return).name);
}

static void
miss(Oracle *oracle, unsigned way, unsigned n)
{
    const UprofStack *stack = &oracle->stack;
    const uint64_t pc = stepper_pc(&oracle->stepper, n);
    const UprofSymAnswer answer = uprof_sym_find(oracle->context.sym, pc, n > 0);
    const UprofSymAnswer top = uprof_sym_find(oracle->context.sym, oracle->stepper.regs.rip, false);
    char *text =
        g_strdup_printf("%s: %s+%u: frame %u (%s+%u): %s", way_names[way],
                        uprof_name_text(top.name), (unsigned)(oracle->stepper.regs.rip - top.start),
                        n, uprof_name_text(answer.name), (unsigned)(pc - answer.start),
                        n + 1 < stack->n ? name_of(oracle, stack->frames[n + 1].pc, true)
                                         : uprof_end_name(stack->end));

    oracle->tally[way][WRONG]++;
    g_hash_table_insert(
        oracle->misses, text,
        GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(oracle->misses, text)) + 1));
}

static bool
is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What comes with compilers without tables. */
static const char *const without_tables[] = {
    "_init",
    "_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
};

/*
 * Whether it is known that no table says anything of the frame that the stack
 * ended in: those above, and the stubs that linkers put into a static program
 * to call functions that are chosen at its start, which are one jump (FF /4)
 * and have no names.
 */
static bool
has_no_table(const Oracle *oracle)
{
    const UprofFrame *last = &oracle->stack.frames[oracle->stack.n - 1];
    const UprofSymAnswer answer = uprof_sym_find(oracle->context.sym, last->pc, last->is_return);
    const uint8_t *code = oracle->stepper.code;

    if (is_one_of(uprof_name_text(answer.name), without_tables, G_N_ELEMENTS(without_tables)))
        return true;
    return oracle->stack.n == 1 && answer.kind != UPROF_SYM_NAMED && code[0] == 0xff &&
           code[1] == 0x25;
}

/*
 * Those that go on with another stack than the one they were called on.
 *
 * Returns: how many frames they and what they call for it are, 0 if there are none
 */
static unsigned
count_leaving(const Oracle *oracle)
{
    static const char *const names[] = { "__longjmp", "uw_install_context_1",
                                         "_Unwind_RaiseException", "_Unwind_Resume" };

    for (unsigned n = MIN(LEAVING_FRAMES_MAX, oracle->stepper.n_calls + 1); n > 0; n--)
        if (is_one_of(name_of(oracle, stepper_pc(&oracle->stepper, n - 1), n > 1), names,
                      G_N_ELEMENTS(names)))
            return n;
    return 0;
}

/* Where the registers that were saved, or are, begin to become those of the other stack. */
static bool
begins_exchange(const Oracle *oracle)
{
    static const char *const names[] = { "__longjmp", "uw_install_context_1" };

    return is_one_of(name_of(oracle, oracle->stepper.regs.rip, false), names, G_N_ELEMENTS(names));
}

/*
 * The frame that goes on may still be at its call, as it was: those between are
 * thrown away already, and where it goes on is not in it yet.
 */
static bool
is_what_came(const Oracle *oracle, const Left *left)
{
    const Stepper *stepper = &oracle->stepper;
    const unsigned first = left->n_leaving;

    if (!left->is_complete || left->n != first + stepper->n_calls + 1)
        return false;
    for (unsigned n = 1; n <= stepper->n_calls; n++)
        if (left->pcs[first + n] != stepper_pc(stepper, n))
            return false;
    return left->pcs[first] == stepper->regs.rip ||
           uprof_sym_find(oracle->context.sym, left->pcs[first], true).start ==
               uprof_sym_find(oracle->context.sym, stepper->regs.rip, false).start;
}

/* The stack was left: now it is known which answers were the one to come. */
static void
judge_left(Oracle *oracle)
{
    for (guint i = 0; i < oracle->left->len; i++) {
        const Left *left = &g_array_index(oracle->left, Left, i);
        oracle->tally[left->way][is_what_came(oracle, left) ? AHEAD : EXCHANGE]++;
    }
    g_array_set_size(oracle->left, 0);
}

static void
keep_left(Oracle *oracle, unsigned way, unsigned n_leaving)
{
    const UprofStack *stack = &oracle->stack;
    Left left = { .way = way,
                  .n_leaving = n_leaving,
                  .n = MIN(stack->n, (unsigned)AHEAD_FRAMES_MAX),
                  .is_complete = uprof_unwind_is_complete(stack) };

    for (unsigned n = 0; n < left.n; n++)
        left.pcs[n] = stack->frames[n].pc;
    g_array_append_val(oracle->left, left);
}

/* Returns: how many frames are the same, from the innermost on */
static unsigned
count_same(const Oracle *oracle)
{
    unsigned n = 0;

    while (n < oracle->stack.n && n <= oracle->stepper.n_calls &&
           oracle->stack.frames[n].pc == stepper_pc(&oracle->stepper, n))
        n++;
    return n;
}

static void
check_whole(Oracle *oracle, unsigned way)
{
    const UprofStack *stack = &oracle->stack;
    const unsigned n_same = count_same(oracle), n_all = oracle->stepper.n_calls + 1;
    const unsigned n_leaving = oracle->is_exchanging ? count_leaving(oracle) : 0;

    oracle->deepest = MAX(oracle->deepest, stack->n);
    if (n_same == n_all && stack->n == n_all && uprof_unwind_is_complete(stack))
        oracle->tally[way][RIGHT]++;
    else if (n_same == stack->n && stack->end == UPROF_END_NO_RULE && has_no_table(oracle))
        oracle->tally[way][NO_TABLE]++;
    else if (n_leaving > 0 && n_same >= n_leaving)
        keep_left(oracle, way, n_leaving);
    else
        miss(oracle, way, n_same - 1);
}

/* Returns: frames up to that of main(), 0 if others than the program's own are among them */
static unsigned
count_own(const Oracle *oracle)
{
    for (unsigned n = 0; n <= oracle->stepper.n_calls; n++) {
        const char *name = name_of(oracle, stepper_pc(&oracle->stepper, n), n > 0);
        if (strcmp(name, "main") == 0)
            return n + 1;
        if (!strstr(name, "shape_"))
            return 0;
    }
    return 0;
}

static void
check_own(Oracle *oracle, unsigned n_own)
{
    const unsigned n_same = count_same(oracle);
    const uint64_t pc = stepper_pc(&oracle->stepper, n_same - 1);

    oracle->deepest = MAX(oracle->deepest, oracle->stack.n);
    if (n_same >= n_own)
        oracle->tally[BY_FRAME_POINTERS][RIGHT]++;
    else if (strstr(name_of(oracle, pc, n_same > 1), ".cold"))
        oracle->tally[BY_FRAME_POINTERS][COLD]++;
    else
        miss(oracle, BY_FRAME_POINTERS, n_same - 1);
}

static void
unwind(Oracle *oracle, UprofUnwindMethod method)
{
    oracle->context.method = method;
    uprof_mem_begin_sample(oracle->context.mem, 0, 0);
    uprof_unwind(&oracle->context, &oracle->stack);
}

static void
check(Oracle *oracle, bool has_frame_pointers)
{
    const unsigned n_own = has_frame_pointers ? count_own(oracle) : 0;

    oracle->is_exchanging |= begins_exchange(oracle);
    if (oracle->is_exchanging && count_leaving(oracle) == 0) {
        judge_left(oracle);
        oracle->is_exchanging = false;
    }
    unwind(oracle, UPROF_UNWIND_CFI);
    check_whole(oracle, BY_TABLES);
    /* as a run does, which keeps what it knows */
    oracle->context.cache = oracle->cache;
    unwind(oracle, UPROF_UNWIND_AUTO);
    check_whole(oracle, BY_ALL);
    if (n_own > 0) {
        unwind(oracle, UPROF_UNWIND_FP);
        check_own(oracle, n_own);
    }
    oracle->context.cache = NULL;
}

static void
report(const Oracle *oracle)
{
    GHashTableIter iter;
    void *text, *count;

    g_test_message("%zu instructions, %zu signals, up to %u frames", oracle->stepper.n_steps,
                   oracle->stepper.n_signals, oracle->deepest);
    for (unsigned way = 0; way < N_WAYS; way++)
        for (unsigned i = 0; i < N_VERDICTS; i++)
            if (oracle->tally[way][i] > 0)
                g_test_message("%s: %zu %s", way_names[way], oracle->tally[way][i],
                               verdict_names[i]);
    g_hash_table_iter_init(&iter, oracle->misses);
    while (g_hash_table_iter_next(&iter, &text, &count))
        g_test_message("%u times at %s", GPOINTER_TO_UINT(count), (const char *)text);
}

/*
 * What exceptions spend their time on, in loops over all functions and all
 * registers: many instructions, all the same.
 */
static bool
is_long(const Oracle *oracle)
{
    static const char *const names[] = { "_Unwind_Find_FDE", "uw_frame_state_for",
                                         "uw_update_context_1" };

    return is_one_of(name_of(oracle, oracle->stepper.regs.rip, false), names, G_N_ELEMENTS(names));
}

static bool
go_on(Oracle *oracle)
{
    if (is_long(oracle))
        stepper_finish(&oracle->stepper);
    return oracle->stepper.n_steps < STEPS_MAX && stepper_step(&oracle->stepper);
}

static void
run(Oracle *oracle, const char *path, bool has_frame_pointers)
{
    start(oracle, path, has_frame_pointers);
    do
        check(oracle, has_frame_pointers);
    while (go_on(oracle));
    report(oracle);
    g_assert_cmpint(oracle->stepper.pid, ==, 0);
    g_assert_cmpuint(oracle->stepper.n_signals, ==, 1);
    g_assert_cmpuint(oracle->left->len, ==, 0);
}

static size_t
count_all(const size_t *tally)
{
    size_t n = 0;

    for (unsigned i = 0; i < N_VERDICTS; i++)
        n += tally[i];
    return n;
}

/* Of all programs */
static struct {
    size_t n_programs, n_steps, right, n_with_tables, right_by_tables;
} total;

/* What is right of a stack that is about to come does not count. */
static void
test(const char *path, bool has_frame_pointers)
{
    g_auto(Oracle) oracle = { 0 };

    run(&oracle, path, has_frame_pointers);
    const size_t *tables = oracle.tally[BY_TABLES], *all = oracle.tally[BY_ALL];
    const size_t *own = oracle.tally[BY_FRAME_POINTERS];
    const size_t n_steps = count_all(all);
    g_assert_cmpuint(count_all(tables), ==, n_steps);
    g_assert_cmpuint(tables[NO_TABLE] * 100, <, n_steps);
    g_assert_cmpuint(tables[WRONG] + all[WRONG] + own[WRONG], ==, 0);
    g_assert_cmpuint(tables[RIGHT] * 1000, >=, (n_steps - tables[NO_TABLE]) * 998);
    g_assert_cmpuint(all[RIGHT] * 1000, >=, n_steps * 998);
    total.n_programs++;
    total.n_steps += n_steps;
    total.right += all[RIGHT];
    total.n_with_tables += n_steps - tables[NO_TABLE];
    total.right_by_tables += tables[RIGHT];
    if (!has_frame_pointers)
        return;
    g_assert_cmpuint(own[RIGHT], >, 1000);
    g_assert_cmpuint(own[RIGHT] * 100, >=, count_all(own) * 99);
}

/* Of what code with tables does, 99.9 % are right by tables, and of all by all means. */
static void
check_total(size_t n_programs)
{
    if (total.n_programs != n_programs)
        return; /* one failed, or only some were asked for */
    g_test_message("all: %zu of %zu steps; by tables %zu of %zu", total.right, total.n_steps,
                   total.right_by_tables, total.n_with_tables);
    g_assert_cmpuint(total.right * 1000, >=, total.n_steps * 999);
    g_assert_cmpuint(total.right_by_tables * 1000, >=, total.n_with_tables * 999);
}

static void
test_tables(gconstpointer data)
{
    test(data, false);
}

static void
test_frame_pointers(gconstpointer data)
{
    test(data, true);
}

#else

static void
check_total(size_t n_programs)
{
}

static void
test_tables(gconstpointer data)
{
    g_test_skip("only for x86-64");
}

static void
test_frame_pointers(gconstpointer data)
{
    g_test_skip("only for x86-64");
}

#endif

int
main(int argc, char **argv)
{
    bool by_tables = true;
    size_t n_programs = 0;

    g_test_init(&argc, &argv, NULL);
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            by_tables = strcmp(argv[i], "--tables") == 0;
            continue;
        }
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *path =
            g_strdup_printf("/single-step/%s/%s", by_tables ? "tables" : "frame-pointers", name);
        g_test_add_data_func(path, argv[i], by_tables ? test_tables : test_frame_pointers);
        n_programs++;
    }
    const int result = g_test_run();
    check_total(n_programs);
    return result;
}
