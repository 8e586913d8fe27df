/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include <glib/gstdio.h>

#include "memory-guest.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

/*
 * Functions of FUNCTION_LEN bytes follow each other from CODE on. CALLER has a call that
 * returns to RETURN. CALLEE is the function that runs. All other code is NOPs.
 */
enum { CODE = 0x2000, FUNCTION_LEN = 0x40, RAM_LEN = 0x8000, RETURN = CODE + 0x25 };

enum { CALLER, CALLED, CALLEE, SECOND, THIRD, FOURTH, THUNK, STATIC_CALL, N_FUNCTIONS };

static const char *const function_names[N_FUNCTIONS] = {
    "caller",
    "called",
    "callee",
    "second",
    "third",
    "fourth",
    "__x86_indirect_thunk_rax",
    "__SCT__might_resched",
};

#define AT(function) (CODE + (function)*FUNCTION_LEN)

typedef struct {
    UprofNames *names;
    UprofSym *sym;
    MemoryGuest *guest;
    UprofMem *mem;
    UprofSnapshot *snapshot;
    UprofStack *stack;
    UprofUnwindContext context;
} Fixture;

static void
add_names(const Fixture *fixture)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    for (unsigned i = 0; i < N_FUNCTIONS; i++)
        g_string_append_printf(text, "%x T %s\n", AT(i), function_names[i]);
    g_string_append_printf(text, "%x D end\n", AT(N_FUNCTIONS));
    const int fd = g_file_open_tmp("uprof-test-XXXXXX", &path, &error);
    g_assert_no_error(error);
    g_assert_true(g_close(fd, NULL));
    g_assert_true(g_file_set_contents(path, text->str, -1, &error));
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_assert_no_error(error);
    g_unlink(path);
}

static void
init_fixture(Fixture *fixture)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };

    fixture->guest = memory_guest_open(&plan);
    memset(fixture->guest->ram, 0x90, RAM_LEN);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    add_names(fixture);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->snapshot->regs = (UprofRegs){ .pc = AT(CALLEE) + 4, .word_bytes = 8 };
    fixture->stack = g_new0(UprofStack, 1);
    fixture->stack->n = 2;
    fixture->stack->frames[0] =
        (UprofFrame){ .pc = AT(CALLEE) + 4, .symbol_address = AT(CALLEE) + 4 };
    fixture->stack->frames[1] =
        (UprofFrame){ .pc = RETURN, .symbol_address = RETURN, .is_return = true };
    fixture->context = (UprofUnwindContext){
        .snapshot = fixture->snapshot, .mem = fixture->mem, .sym = fixture->sym, .max_depth = DEPTH
    };
    uprof_mem_begin_sample(fixture->mem, 0, 0);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_mem_free(fixture->mem);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    memory_guest_close(fixture->guest);
    g_free(fixture->snapshot);
    g_free(fixture->stack);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* A call or jump; @len: bytes of the distance, which follows the @n_bytes of the opcode */
typedef struct {
    uint8_t bytes[2];
    uint8_t n_bytes, len;
} Insn;

#define CALL                                                                                       \
    {                                                                                              \
        { 0xe8 }, 1, 4                                                                             \
    }
#define JUMP                                                                                       \
    {                                                                                              \
        { 0xe9 }, 1, 4                                                                             \
    }
#define JUMP_IF                                                                                    \
    {                                                                                              \
        { 0x0f, 0x85 }, 2, 4                                                                       \
    }
#define SHORT_JUMP                                                                                 \
    {                                                                                              \
        { 0xeb }, 1, 1                                                                             \
    }
#define SHORT_JUMP_IF                                                                              \
    {                                                                                              \
        { 0x7f }, 1, 1                                                                             \
    }
#define CALL_RAX                                                                                   \
    {                                                                                              \
        { 0xff, 0xd0 }, 2, 0                                                                       \
    }

static void
put_insn(Fixture *fixture, unsigned at, const Insn *insn, unsigned target)
{
    const int32_t distance = GINT32_TO_LE((int32_t)(target - at - insn->n_bytes - insn->len));

    memcpy(fixture->guest->ram + at, insn->bytes, insn->n_bytes);
    memcpy(fixture->guest->ram + at + insn->n_bytes, &distance, insn->len);
}

/* clang-format off */
static const struct {
    const char *name;
    Insn call;
    unsigned called;
    struct { Insn insn; unsigned from, to; } jumps[4];
    bool is_agreed;
} cases[] = {
    { "direct",           CALL, AT(CALLEE), { { { { 0 }, 0, 0 }, 0, 0 } }, true },
    { "another",          CALL, AT(SECOND), { { { { 0 }, 0, 0 }, 0, 0 } }, false },
    { "into-callee",          CALL, AT(CALLEE) + 1, { { { { 0 }, 0, 0 }, 0, 0 } }, false },
    { "by-register",      CALL_RAX, 0, { { { { 0 }, 0, 0 }, 0, 0 } }, true },
    { "by-thunk",         CALL, AT(THUNK), { { { { 0 }, 0, 0 }, 0, 0 } }, true },
    { "patched",          CALL, AT(STATIC_CALL), { { { { 0 }, 0, 0 }, 0, 0 } }, true },
    { "jump",             CALL, AT(CALLED), { { JUMP, AT(CALLED) + 8, AT(CALLEE) } }, true },
    { "jump-at-the-end",  CALL, AT(CALLED), { { JUMP, AT(CALLEE) - 5, AT(CALLEE) } }, true },
    { "jump-if",          CALL, AT(CALLED), { { JUMP_IF, AT(CALLED) + 8, AT(CALLEE) } }, true },
    { "short-jump",       CALL, AT(CALLED), { { SHORT_JUMP, AT(CALLED) + 8, AT(CALLEE) } }, true },
    { "short-jump-if",    CALL, AT(CALLED), { { SHORT_JUMP_IF, AT(CALLED) + 8, AT(CALLEE) } }, true },
    { "jump-into-callee",   CALL, AT(CALLED), { { JUMP_IF, AT(CALLED) + 8, AT(CALLEE) + 2 } }, true },
    { "short-jump-into-callee",    CALL, AT(CALLED), { { SHORT_JUMP, AT(CALLED) + 8, AT(CALLEE) + 2 } }, false },
    { "jump-by-thunk",    CALL, AT(CALLED), { { JUMP, AT(CALLED) + 8, AT(THUNK) } }, true },
    { "jump-back",        CALL, AT(CALLED), { { JUMP, AT(CALLED) + 8, AT(CALLED) } }, false },
    { "jump-of-another",       CALL, AT(CALLED), { { JUMP, AT(SECOND) + 8, AT(CALLEE) } }, false },
    { "called-inside",    CALL, AT(CALLED) + 4, { { JUMP, AT(CALLED) + 8, AT(CALLEE) } }, false },
    { "two-jumps",        CALL, AT(CALLED), { { JUMP, AT(CALLED), AT(SECOND) }, { JUMP, AT(SECOND), AT(CALLEE) } }, true },
    { "three-jumps",      CALL, AT(CALLED), { { JUMP, AT(CALLED), AT(SECOND) }, { JUMP, AT(SECOND), AT(THIRD) }, { JUMP, AT(THIRD), AT(CALLEE) } }, true },
    { "four-jumps",       CALL, AT(CALLED), { { JUMP, AT(CALLED), AT(SECOND) }, { JUMP, AT(SECOND), AT(THIRD) }, { JUMP, AT(THIRD), AT(FOURTH) }, { JUMP, AT(FOURTH), AT(CALLEE) } }, false },
    { "thunk-after-jump", CALL, AT(CALLED), { { JUMP, AT(CALLED), AT(SECOND) }, { JUMP, AT(SECOND), AT(THUNK) } }, false },
    { "circle",           CALL, AT(CALLED), { { JUMP, AT(CALLED), AT(SECOND) }, { JUMP, AT(SECOND), AT(CALLED) } }, false },
    { "jump-to-nowhere",       CALL, AT(CALLED), { { JUMP, AT(CALLED), 0x70000000 } }, false },
    { "no-call",          { { 0x90 }, 1, 4 }, AT(CALLEE), { { { { 0 }, 0, 0 }, 0, 0 } }, false },
};
/* clang-format on */

static void
assert_calls(Fixture *fixture, unsigned n_checked, unsigned n_agreed)
{
    unsigned checked, agreed;

    uprof_unwind_check_calls(&fixture->context, fixture->stack, &checked, &agreed);
    g_assert_cmpuint(checked, ==, n_checked);
    g_assert_cmpuint(agreed, ==, n_agreed);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const unsigned call_len = cases[i].call.n_bytes + cases[i].call.len;
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    put_insn(&fixture, RETURN - call_len, &cases[i].call, cases[i].called);
    for (unsigned k = 0; k < G_N_ELEMENTS(cases[i].jumps) && cases[i].jumps[k].from > 0; k++)
        put_insn(&fixture, cases[i].jumps[k].from, &cases[i].jumps[k].insn, cases[i].jumps[k].to);
    assert_calls(&fixture, 1, cases[i].is_agreed);
    /* the second time from the cache */
    fixture.context.cache = uprof_unwind_cache_new();
    assert_calls(&fixture, 1, cases[i].is_agreed);
    memset(fixture.guest->ram, 0x90, RAM_LEN);
    assert_calls(&fixture, 1, cases[i].is_agreed);
    uprof_unwind_cache_free(fixture.context.cache);
}

/* A stub of a library: with and without the marks of indirect branches. */
static void
test_stub(void)
{
    static const uint8_t marked[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 };
    static const uint8_t old[] = { 0xff, 0x25 };
    enum { STUB = 0x1000, POINTER = 0x1100 };
    const struct {
        const uint8_t *bytes;
        uint32_t len, pointer;
        uint64_t to;
        bool is_checked, is_agreed;
    } stubs[] = {
        { marked, sizeof(marked), POINTER, AT(CALLEE), true, true },
        { old, sizeof(old), POINTER, AT(CALLEE), true, true },
        { marked, sizeof(marked), POINTER, AT(SECOND), true, false },
        { old, sizeof(old), POINTER, AT(CALLEE) + 1, true, false },
        { old, 1, POINTER, AT(CALLEE), false, false },              /* no jump */
        { old, sizeof(old), 0x70000000, AT(CALLEE), false, false }, /* no memory */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(stubs); i++) {
        const Insn call = CALL;
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        put_insn(&fixture, RETURN - 5, &call, STUB);
        memcpy(fixture.guest->ram + STUB, stubs[i].bytes, stubs[i].len);
        const uint32_t distance = GUINT32_TO_LE(stubs[i].pointer - STUB - stubs[i].len - 4);
        memcpy(fixture.guest->ram + STUB + stubs[i].len, &distance, sizeof(distance));
        memory_guest_put_u64(fixture.guest, POINTER, stubs[i].to);
        assert_calls(&fixture, stubs[i].is_checked, stubs[i].is_agreed);
    }
}

/*
 * Frames that were not called, or whose code cannot be read, are not counted. Neither are calls of
 * code without symbols, and calls from which such code runs.
 */
static void
test_unchecked(void)
{
    static const Insn call = CALL;
    const uint64_t unnamed = CODE - 0x100;
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    put_insn(&fixture, RETURN - 5, &call, unnamed);
    assert_calls(&fixture, 0, 0);
    put_insn(&fixture, RETURN - 5, &call, AT(CALLED));
    uprof_mem_forget(fixture.mem);
    assert_calls(&fixture, 1, 0);
    fixture.stack->frames[0].pc = fixture.stack->frames[0].symbol_address = unnamed;
    assert_calls(&fixture, 0, 0);
    fixture.stack->frames[1].is_return = false;
    assert_calls(&fixture, 0, 0);
    fixture.stack->frames[1] =
        (UprofFrame){ .pc = 1 << 30, .symbol_address = 1 << 30, .is_return = true };
    assert_calls(&fixture, 0, 0);
}

/* Functions that call generated code jump to it by a register, so only the direct call is judged.
 */
static void
test_generated(void)
{
    static const Insn call = CALL;
    static const char map[] = "2080 40 generated\n";
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    g_assert_true(
        uprof_sym_add_generated(fixture.sym, 1, false, (UprofSlice){ map, strlen(map) }, 0));
    fixture.stack->frames[0].symbol_address = uprof_sym_process_address(1, AT(CALLEE) + 4);
    put_insn(&fixture, RETURN - 5, &call, AT(CALLED));
    assert_calls(&fixture, 0, 0);
    put_insn(&fixture, RETURN - 5, &call, AT(CALLEE));
    uprof_mem_forget(fixture.mem);
    assert_calls(&fixture, 1, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/call-check/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/call-check/stub", test_stub);
    g_test_add_func("/call-check/unchecked", test_unchecked);
    g_test_add_func("/call-check/generated", test_generated);
    return g_test_run();
}
