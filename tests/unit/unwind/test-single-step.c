/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs run one instruction at a time. Before every third one, the stack is unwound from a
 * copy and compared with the list of real calls: with unwind tables alone, with all methods
 * together, as in a run, and by machine code alone, without tables and symbols. Programs that are
 * built with frame pointers are also unwound by frame pointers alone. That covers only their own
 * code, because the C library has no frame pointers. Arguments: --tables FILE... --frame-pointers
 * FILE...
 *
 * Each unwound stack gets a result. Each expected kind of miss has a result of its own below,
 * with its reason, and counts as a miss. Any other wrong stack fails the test.
 */
#include <string.h>

#include "stepper.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

#ifdef __x86_64__

enum { STEPS_MAX = 1000 * 1000 };

/* Rounds of a program's work, each with a new argument. */
#define ROUNDS "2"

/*
 * The known misses of a program, which do not depend on its rounds: the start of the C library has
 * code without tables, and the program leaves its stack by one longjmp() and one exception. The
 * limits are for the instructions that are judged (STRIDE).
 */
enum { NO_TABLE_MAX = 334, EXCHANGE_MAX = 134, AHEAD_MAX = 67 };

enum { BY_TABLES, BY_FRAME_POINTERS, BY_ALL, BY_CODE, N_METHODS };

static const char *const method_names[N_METHODS] = { "tables", "frame pointers", "all", "code" };

/* The least number of stacks that code alone gets right, of a thousand that all methods together
 * get right. */
enum { CODE_RIGHT_MIN = 995 };

/* The test judges one of this many instructions. */
enum { STRIDE = 3 };

/* Code runs for longer than it is remembered. */
enum { STEP_NS = 200 * 1000 };

typedef enum { RIGHT, AHEAD, NO_TABLE, EXCHANGE, COLD, WRONG, N_RESULTS } Result;

static const char *const result_names[N_RESULTS] = {
    [RIGHT] = "right: the calls that were made",
    [AHEAD] = "right: the new stack, before the switch to it is complete",
    [NO_TABLE] = "miss: code without unwind tables",
    [EXCHANGE] = "miss: during a switch to another stack, with registers of both",
    [COLD] = "miss: a cold part of a function, without a frame record",
    [WRONG] = "miss: unexpected",
};

enum {
    LEAVING_FRAMES_MAX = 3, /* leaf frames up to a function that leaves its stack */
    AHEAD_FRAMES_MAX = 64,  /* frames in a Pending */
};

/* A stack that is judged when the program has switched to the new stack. */
typedef struct {
    unsigned method_used, n;
    unsigned n_leaving; /* leaf frames of the functions that leave the old stack */
    bool is_complete;
    uint64_t pcs[AHEAD_FRAMES_MAX];
} Pending;

typedef struct {
    Stepper stepper;
    UprofUnwindContext context;
    MemoryGuest *guest;
    UprofNames *names;
    UprofStack stack;
    UprofUnwindCache *cache;
    UprofUnwindContext code_context; /* knows no symbols */
    size_t tally[N_METHODS][N_RESULTS];
    GHashTable *misses; /* owned: description of an unexpected miss -> how often it came */
    bool is_exchanging;
    GArray *pending;
    unsigned deepest;
} Oracle;

static void
clear_oracle(Oracle *oracle)
{
    g_hash_table_unref(oracle->misses);
    g_array_unref(oracle->pending);
    uprof_unwind_cache_free(oracle->cache);
    uprof_unwind_cache_free(oracle->code_context.cache);
    uprof_mem_free(oracle->code_context.mem);
    uprof_sym_free(oracle->code_context.sym);
    uprof_mem_free(oracle->context.mem);
    uprof_sym_free(oracle->context.sym);
    uprof_names_free(oracle->names);
    memory_guest_close(oracle->guest);
    stepper_clear(&oracle->stepper);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Oracle, clear_oracle)

static void
start_oracle(Oracle *oracle, const char *path, bool has_frame_pointers)
{
    g_autoptr(GError) error = NULL;

    oracle->misses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    oracle->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
    stepper_start(&oracle->stepper, path, ROUNDS);
    oracle->guest = stepper_guest(&oracle->stepper);
    oracle->names = uprof_names_new();
    oracle->cache = uprof_unwind_cache_new();
    oracle->context = (UprofUnwindContext){
        .snapshot = oracle->stepper.snapshot,
        .mem = uprof_mem_new(&oracle->guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(oracle->guest->base.arch, oracle->names),
        .max_depth = DEPTH,
    };
    oracle->code_context = (UprofUnwindContext){
        .snapshot = oracle->stepper.snapshot,
        .mem = uprof_mem_new(&oracle->guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(oracle->guest->base.arch, oracle->names),
        .cache = uprof_unwind_cache_new(),
        .max_depth = DEPTH,
    };
    g_assert_true(uprof_sym_add_file(oracle->context.sym, path, true, &error));
    g_assert_no_error(error);
}

static const char *
find_name(const Oracle *oracle, uint64_t pc, bool is_return)
{
    return uprof_name_text(uprof_sym_find(oracle->context.sym, pc, is_return).name);
}

static void
count_miss(Oracle *oracle, unsigned method_used, unsigned n)
{
    const UprofStack *stack = &oracle->stack;
    const uint64_t pc = stepper_pc(&oracle->stepper, n);
    const UprofSymAnswer answer = uprof_sym_find(oracle->context.sym, pc, n > 0);
    const UprofSymAnswer top = uprof_sym_find(oracle->context.sym, oracle->stepper.regs.rip, false);
    char *text =
        g_strdup_printf("%s: %s+%u: frame %u (%s+%u): %s", method_names[method_used],
                        uprof_name_text(top.name), (unsigned)(oracle->stepper.regs.rip - top.start),
                        n, uprof_name_text(answer.name), (unsigned)(pc - answer.start),
                        n + 1 < stack->n ? find_name(oracle, stack->frames[n + 1].pc, true)
                                         : uprof_end_name(stack->end));

    oracle->tally[method_used][WRONG]++;
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

/* Functions that compilers add without unwind tables. */
static const char *const names_without_tables[] = {
    "_init",
    "_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
};

/*
 * Returns: true if the last frame is one of these functions, or a stub of the linker. In a static
 * program, stubs jump to functions that are chosen when the program starts. A stub is one jump
 * (FF /4) without a name.
 */
static bool
has_no_table(const Oracle *oracle)
{
    const UprofFrame *last = &oracle->stack.frames[oracle->stack.n - 1];
    const UprofSymAnswer answer = uprof_sym_find(oracle->context.sym, last->pc, last->is_return);
    const uint8_t *code = oracle->stepper.code;

    if (is_one_of(uprof_name_text(answer.name), names_without_tables,
                  G_N_ELEMENTS(names_without_tables)))
        return true;
    return oracle->stack.n == 1 && answer.kind != UPROF_SYM_NAMED && code[0] == 0xff &&
           code[1] == 0x25;
}

/*
 * Returns: the number of frames from the leaf to a function that switches to another stack; 0 if
 * there is no such function
 */
static unsigned
count_leaving(const Oracle *oracle)
{
    static const char *const names[] = { "__longjmp", "uw_install_context_1",
                                         "_Unwind_RaiseException", "_Unwind_Resume" };

    for (unsigned n = MIN(LEAVING_FRAMES_MAX, oracle->stepper.n_calls + 1); n > 0; n--)
        if (is_one_of(find_name(oracle, stepper_pc(&oracle->stepper, n - 1), n > 1), names,
                      G_N_ELEMENTS(names)))
            return n;
    return 0;
}

/* Returns: true if the leaf replaces registers of the old stack by those of the new one */
static bool
begins_exchange(const Oracle *oracle)
{
    static const char *const names[] = { "__longjmp", "uw_install_context_1" };

    return is_one_of(find_name(oracle, oracle->stepper.regs.rip, false), names,
                     G_N_ELEMENTS(names));
}

/*
 * Returns: true if the frames of @pending are those of the new stack. The address of the frame that
 * resumes is set last, so this frame may still have the address of its old call.
 */
static bool
is_new_stack(const Oracle *oracle, const Pending *pending)
{
    const Stepper *stepper = &oracle->stepper;
    const unsigned first = pending->n_leaving;

    if (!pending->is_complete || pending->n != first + stepper->n_calls + 1)
        return false;
    for (unsigned n = 1; n <= stepper->n_calls; n++)
        if (pending->pcs[first + n] != stepper_pc(stepper, n))
            return false;
    return pending->pcs[first] == stepper->regs.rip ||
           uprof_sym_find(oracle->context.sym, pending->pcs[first], true).start ==
               uprof_sym_find(oracle->context.sym, stepper->regs.rip, false).start;
}

/* Judges the pending stacks. The program now runs on its new stack. */
static void
judge_pending(Oracle *oracle)
{
    for (guint i = 0; i < oracle->pending->len; i++) {
        const Pending *pending = &g_array_index(oracle->pending, Pending, i);
        oracle->tally[pending->method_used][is_new_stack(oracle, pending) ? AHEAD : EXCHANGE]++;
    }
    g_array_set_size(oracle->pending, 0);
}

static void
add_pending(Oracle *oracle, unsigned method_used, unsigned n_leaving)
{
    const UprofStack *stack = &oracle->stack;
    Pending pending = { .method_used = method_used,
                        .n_leaving = n_leaving,
                        .n = MIN(stack->n, (unsigned)AHEAD_FRAMES_MAX),
                        .is_complete = uprof_unwind_is_complete(stack) };

    for (unsigned n = 0; n < pending.n; n++)
        pending.pcs[n] = stack->frames[n].pc;
    g_array_append_val(oracle->pending, pending);
}

/* Returns: the number of right frames, from the leaf on */
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
check_complete_stack(Oracle *oracle, unsigned method_used)
{
    const UprofStack *stack = &oracle->stack;
    const unsigned n_same = count_same(oracle), n_all = oracle->stepper.n_calls + 1;
    const unsigned n_leaving = oracle->is_exchanging ? count_leaving(oracle) : 0;

    oracle->deepest = MAX(oracle->deepest, stack->n);
    if (n_same == n_all && stack->n == n_all && uprof_unwind_is_complete(stack))
        oracle->tally[method_used][RIGHT]++;
    else if (n_same == stack->n && stack->end == UPROF_END_NO_RULE && has_no_table(oracle))
        oracle->tally[method_used][NO_TABLE]++;
    else if (n_leaving > 0 && n_same >= n_leaving)
        add_pending(oracle, method_used, n_leaving);
    else
        count_miss(oracle, method_used, n_same - 1);
}

/* Returns: the number of frames up to main(); 0 if some of them are not the program's own */
static unsigned
count_own(const Oracle *oracle)
{
    for (unsigned n = 0; n <= oracle->stepper.n_calls; n++) {
        const char *name = find_name(oracle, stepper_pc(&oracle->stepper, n), n > 0);
        if (strcmp(name, "main") == 0)
            return n + 1;
        if (!strstr(name, "shape_"))
            return 0;
    }
    return 0;
}

static void
check_own_frames(Oracle *oracle, unsigned n_own)
{
    const unsigned n_same = count_same(oracle);
    const uint64_t pc = stepper_pc(&oracle->stepper, n_same - 1);

    oracle->deepest = MAX(oracle->deepest, oracle->stack.n);
    if (n_same >= n_own)
        oracle->tally[BY_FRAME_POINTERS][RIGHT]++;
    else if (strstr(find_name(oracle, pc, n_same > 1), ".cold"))
        oracle->tally[BY_FRAME_POINTERS][COLD]++;
    else
        count_miss(oracle, BY_FRAME_POINTERS, n_same - 1);
}

static void
unwind_by(Oracle *oracle, UprofUnwindMethod method)
{
    oracle->context.method = method;
    uprof_mem_begin_sample(oracle->context.mem, 0, 0);
    uprof_unwind(&oracle->context, &oracle->stack);
}

static void
unwind_by_code(Oracle *oracle)
{
    uprof_mem_begin_sample(oracle->code_context.mem, oracle->stepper.snapshot->time_ns, 0);
    uprof_unwind(&oracle->code_context, &oracle->stack);
}

static void
check_step(Oracle *oracle, bool has_frame_pointers)
{
    oracle->stepper.snapshot->time_ns = oracle->stepper.n_steps * STEP_NS;
    oracle->is_exchanging |= begins_exchange(oracle);
    if (oracle->is_exchanging && count_leaving(oracle) == 0) {
        judge_pending(oracle);
        oracle->is_exchanging = false;
    }
    /* the offset changes, because the length of a loop may be a multiple of the stride */
    if ((oracle->stepper.n_steps + oracle->stepper.n_steps / 1021) % STRIDE != 0)
        return;
    const unsigned n_own = has_frame_pointers ? count_own(oracle) : 0;
    unwind_by(oracle, UPROF_UNWIND_CFI);
    check_complete_stack(oracle, BY_TABLES);
    /* a run unwinds like this, with a cache */
    oracle->context.cache = oracle->cache;
    unwind_by(oracle, UPROF_UNWIND_AUTO);
    check_complete_stack(oracle, BY_ALL);
    if (n_own > 0) {
        unwind_by(oracle, UPROF_UNWIND_FP);
        check_own_frames(oracle, n_own);
    }
    oracle->context.cache = NULL;
    unwind_by_code(oracle);
    check_complete_stack(oracle, BY_CODE);
}

static void
report_results(const Oracle *oracle)
{
    GHashTableIter iter;
    void *text, *count;

    g_test_message("%zu instructions, %zu signals, up to %u frames", oracle->stepper.n_steps,
                   oracle->stepper.n_signals, oracle->deepest);
    for (unsigned method_used = 0; method_used < N_METHODS; method_used++)
        for (unsigned i = 0; i < N_RESULTS; i++)
            if (oracle->tally[method_used][i] > 0)
                g_test_message("%s: %zu %s", method_names[method_used],
                               oracle->tally[method_used][i], result_names[i]);
    g_hash_table_iter_init(&iter, oracle->misses);
    while (g_hash_table_iter_next(&iter, &text, &count))
        g_test_message("%u times at %s", GPOINTER_TO_UINT(count), (const char *)text);
}

/*
 * Exceptions spend their time in these functions. Their loops over all functions and registers
 * execute many similar instructions.
 */
static bool
is_slow_function(const Oracle *oracle)
{
    static const char *const names[] = { "_Unwind_Find_FDE", "uw_frame_state_for",
                                         "uw_update_context_1" };

    return is_one_of(find_name(oracle, oracle->stepper.regs.rip, false), names,
                     G_N_ELEMENTS(names));
}

static bool
step_program(Oracle *oracle)
{
    if (is_slow_function(oracle))
        stepper_finish(&oracle->stepper);
    return oracle->stepper.n_steps < STEPS_MAX && stepper_step(&oracle->stepper);
}

static void
run_program(Oracle *oracle, const char *path, bool has_frame_pointers)
{
    start_oracle(oracle, path, has_frame_pointers);
    do
        check_step(oracle, has_frame_pointers);
    while (step_program(oracle));
    report_results(oracle);
    g_assert_cmpint(oracle->stepper.pid, ==, 0);
    g_assert_cmpuint(oracle->stepper.n_signals, ==, 1);
    g_assert_cmpuint(oracle->pending->len, ==, 0);
}

static size_t
count_all(const size_t *tally)
{
    size_t n = 0;

    for (unsigned i = 0; i < N_RESULTS; i++)
        n += tally[i];
    return n;
}

static void
test_program(const char *path, bool has_frame_pointers)
{
    g_auto(Oracle) oracle = { 0 };

    run_program(&oracle, path, has_frame_pointers);
    const size_t *tables = oracle.tally[BY_TABLES], *all = oracle.tally[BY_ALL];
    const size_t *own = oracle.tally[BY_FRAME_POINTERS], *code = oracle.tally[BY_CODE];
    const size_t n_steps = count_all(all);
    g_assert_cmpuint(count_all(tables), ==, n_steps);
    g_assert_cmpuint(tables[WRONG] + all[WRONG] + own[WRONG], ==, 0);
    g_assert_cmpuint(tables[NO_TABLE], <=, NO_TABLE_MAX);
    g_assert_cmpuint(all[NO_TABLE], ==, 0);
    g_assert_cmpuint(tables[EXCHANGE], <=, EXCHANGE_MAX);
    g_assert_cmpuint(all[EXCHANGE], <=, EXCHANGE_MAX);
    g_assert_cmpuint(tables[AHEAD], <=, AHEAD_MAX);
    g_assert_cmpuint(all[AHEAD], <=, AHEAD_MAX);
    g_assert_cmpuint(all[RIGHT], >, 10 * 1000 / STRIDE);
    g_assert_cmpuint(code[RIGHT] * 1000, >=, all[RIGHT] * CODE_RIGHT_MIN);
    if (!has_frame_pointers)
        return;
    g_assert_cmpuint(own[RIGHT], >, 1000 / STRIDE);
    g_assert_cmpuint(own[RIGHT] * 100, >=, count_all(own) * 99);
}

static void
test_tables(gconstpointer data)
{
    test_program(data, false);
}

static void
test_frame_pointers(gconstpointer data)
{
    test_program(data, true);
}

#else

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
    }
    return g_test_run();
}
