/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "uprof/runtimes.h"

/* The process's memory: one page that the guest and the program agree on. */
#define HEAP UINT64_C(0x7f2000000000)
#define THREAD (HEAP + 0x100)
#define G0 (HEAP + 0x200)
#define M (HEAP + 0x300)
#define CURG (HEAP + 0x800)
#define STACK (HEAP + 0xc00)
#define SYSTEMSTACK (LINUX_ANONYMOUS + 0x100)
#define MORESTACK (LINUX_ANONYMOUS + 0x200)
#define NANOTIME (LINUX_ANONYMOUS + 0x300)
#define MARK (LINUX_ANONYMOUS + 0x400) /* systemstack_switch */
#define CALLER (LINUX_ANONYMOUS + 0x510)

enum { PAGE = 4096, CLOCK_SP = 0x320, CLOCK_PC = 0x328 };

static const char perf_map[] = "7f1000000100 40 runtime.systemstack.abi0\n"
                               "7f1000000200 40 runtime.morestack\n"
                               "7f1000000300 80 runtime.nanotime1\n"
                               "7f1000000400 40 runtime.systemstack_switch.abi0\n"
                               "7f1000000500 40 main.work\n";

typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    UprofRuntimes *runtimes;
    uint64_t heap, code; /* guest-physical */
} Fixture;

static void
put_word(const Fixture *fixture, uint64_t gva, uint64_t word)
{
    linux_guest_put(fixture->guest, fixture->heap + (gva - HEAP), word);
}

/* The hold copies all of the process's page if @has_chain. */
static void
take_sample(Fixture *fixture, bool has_chain)
{
    LinuxView *view = fixture->view;
    UprofSnapshot *snapshot = view->snapshot;

    view->time_ns += 100 * 1000 * 1000;
    linux_view_begin(view, 0);
    linux_view_copy_task(view, 0);
    if (has_chain) {
        const size_t offset = UPROF_SNAPSHOT_BYTES_MAX - uprof_snapshot_room(snapshot);
        memcpy(snapshot->bytes + offset, fixture->guest->memory->ram + fixture->heap, PAGE);
        snapshot->windows[snapshot->n_windows++] =
            (UprofWindow){ .gva = HEAP, .offset = (uint32_t)offset, .len = PAGE };
    }
    linux_view_take(view);
    uprof_runtimes_begin(fixture->runtimes, snapshot);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    const unsigned curg = GPOINTER_TO_UINT(data);

    fixture->guest = linux_guest_new(&(LinuxPlan){ .more_bytes = 64 * PAGE });
    LinuxGuest *guest = fixture->guest;
    fixture->heap = linux_guest_alloc(guest, PAGE, PAGE);
    fixture->code = linux_guest_alloc(guest, PAGE, PAGE);
    linux_guest_map(guest, guest->process_root, HEAP, fixture->heap, LINUX_USER);
    linux_guest_map(guest, guest->process_root, LINUX_ANONYMOUS, fixture->code, LINUX_USER);
    linux_guest_open_perf_map(guest, guest->task);
    linux_guest_write_perf_map(guest, perf_map);
    linux_guest_put(guest, guest->task + TASK_THREAD, THREAD);
    put_word(fixture, THREAD - 8, G0);
    put_word(fixture, G0 + 48, M);
    put_word(fixture, M, G0);
    put_word(fixture, M + curg, CURG);
    put_word(fixture, CURG + 48, M);
    put_word(fixture, CURG + 56, STACK);
    put_word(fixture, CURG + 64, MARK);
    put_word(fixture, STACK, LINUX_PROGRAM + 0x1234);
    fixture->view = linux_view_new(guest);
    fixture->runtimes =
        uprof_runtimes_new(fixture->view->space, fixture->view->sym, fixture->view->names);
    take_sample(fixture, false);
    take_sample(fixture, false);
    g_assert_true(uprof_space_has_process(fixture->view->space));
    uprof_space_symbol_address(fixture->view->space, SYSTEMSTACK);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_runtimes_free(fixture->runtimes);
    linux_view_free(fixture->view);
    linux_guest_free(fixture->guest);
}

static UprofGoCaller
call_leave(Fixture *fixture, uint64_t start, UprofRegs *regs)
{
    *regs = (UprofRegs){ .pc = start + 0x10, .sp = HEAP + 0xf00 };
    return uprof_runtimes_leave_go_stack(
        fixture->runtimes, start, uprof_space_symbol_address(fixture->view->space, start), regs);
}

static bool
leave(Fixture *fixture, uint64_t start, UprofRegs *regs)
{
    return call_leave(fixture, start, regs) == UPROF_GO_FOUND;
}

/* The first sample finds the chain; the second one has the goroutine's stack. */
static void
test_leave(Fixture *fixture, gconstpointer data)
{
    UprofChain chain;
    UprofRegs regs;
    uint32_t slot;

    g_assert_false(leave(fixture, SYSTEMSTACK, &regs));
    g_assert_cmphex(regs.sp, ==, HEAP + 0xf00);
    g_assert_true(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
    g_assert_true(uprof_chain_is_sound(&chain));
    g_assert_cmphex(chain.memory, ==, LINUX_DIRECT + fixture->guest->mm);
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));

    take_sample(fixture, true);
    g_assert_true(leave(fixture, SYSTEMSTACK, &regs));
    g_assert_cmphex(regs.pc, ==, LINUX_PROGRAM + 0x1234);
    g_assert_cmphex(regs.sp, ==, STACK + 8);
    /* since Go 1.21 the frame pointer comes first */
    put_word(fixture, CURG + 64, MARK + 8);
    put_word(fixture, STACK + 8, LINUX_PROGRAM + 0x1238);
    take_sample(fixture, true);
    g_assert_true(leave(fixture, SYSTEMSTACK, &regs));
    g_assert_cmphex(regs.pc, ==, LINUX_PROGRAM + 0x1238);
    g_assert_cmphex(regs.sp, ==, STACK + 16);
    /* what was saved is not of a goroutine that has changed the stack */
    put_word(fixture, CURG + 64, CALLER);
    take_sample(fixture, true);
    g_assert_false(leave(fixture, SYSTEMSTACK, &regs));
    g_assert_true(leave(fixture, MORESTACK, &regs));
    g_assert_cmphex(regs.pc, ==, CALLER);
    g_assert_cmphex(regs.sp, ==, STACK);
    /* a function that only has a similar name */
    g_assert_false(leave(fixture, CALLER - 0x10, &regs));
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));

    /* morestack has handed the goroutine to the scheduler */
    put_word(fixture, M + GPOINTER_TO_UINT(data), 0);
    take_sample(fixture, true);
    g_assert_cmpint(call_leave(fixture, MORESTACK, &regs), ==, UPROF_GO_NONE);
    g_assert_cmpint(call_leave(fixture, SYSTEMSTACK, &regs), ==, UPROF_GO_UNKNOWN);
    put_word(fixture, M + GPOINTER_TO_UINT(data), CURG);

    /* the goroutine's own stack: what was saved is old */
    put_word(fixture, THREAD - 8, CURG);
    take_sample(fixture, true);
    g_assert_false(leave(fixture, SYSTEMSTACK, &regs));
}

/* mov %rcx,CLOCK_PC(%rbx); mov %rdx,CLOCK_SP(%rbx); cmp CURG(%rbx),%r14 */
static void
put_clock_code(const Fixture *fixture, unsigned curg)
{
    uint8_t *code = fixture->guest->memory->ram + fixture->code + (NANOTIME - LINUX_ANONYMOUS);
    static const uint8_t insns[] = { 0x90, 0x48, 0x89, 0x8b, 0x28, 0x03, 0,    0, 0x48, 0x89, 0x93,
                                     0x20, 0x03, 0,    0,    0x4c, 0x3b, 0xb3, 0, 0,    0,    0 };

    memcpy(code, insns, sizeof(insns));
    code[18] = (uint8_t)curg;
}

static void
test_clock(Fixture *fixture, gconstpointer data)
{
    UprofChain chain;
    UprofRegs regs;
    uint32_t slot;

    put_clock_code(fixture, GPOINTER_TO_UINT(data));
    g_assert_false(leave(fixture, NANOTIME, &regs));
    g_assert_true(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
    g_assert_true(uprof_chain_is_sound(&chain));
    /* the vDSO does not run */
    take_sample(fixture, true);
    g_assert_false(leave(fixture, NANOTIME, &regs));
    put_word(fixture, M + CLOCK_SP, STACK + 0x40);
    put_word(fixture, M + CLOCK_PC, CALLER);
    take_sample(fixture, true);
    g_assert_true(leave(fixture, NANOTIME, &regs));
    g_assert_cmphex(regs.pc, ==, CALLER);
    g_assert_cmphex(regs.sp, ==, STACK + 0x40);
}

/* The context of a signal is at a fixed distance from the top of the stack for signals. */
static void
test_signal(Fixture *fixture, gconstpointer data)
{
    const unsigned signal_at = GPOINTER_TO_UINT(data) == 184 ? 72 : 80;
    UprofChain chain;
    uint32_t slot;
    unsigned n = 0;

    put_word(fixture, M + signal_at, G0 + 0x20);
    put_word(fixture, G0 + 0x20 + 8, HEAP + 0xff0);
    uprof_mem_forget(fixture->view->mem);
    take_sample(fixture, true);
    /* neither above the top, nor far below it */
    uprof_runtimes_note_go_signal(fixture->runtimes, HEAP + 0xff0);
    uprof_runtimes_note_go_signal(fixture->runtimes, HEAP + 0xff0 - 64 * 1024);
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
    uprof_runtimes_note_go_signal(fixture->runtimes, HEAP + 0xd00);
    g_assert_true(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
    g_assert_true(uprof_chain_is_sound(&chain));
    for (unsigned i = 0; i < UPROF_CHAIN_STEPS_MAX; i++)
        n += chain.steps[i].op == UPROF_CHAIN_SKIP_UNLESS_COPIED &&
             chain.steps[i].offset == 160 - 0x2f0 &&
             chain.steps[chain.steps[i].from].op == UPROF_CHAIN_LOAD;
    g_assert_cmpuint(n, ==, 1);
    uprof_runtimes_note_go_signal(fixture->runtimes, HEAP + 0xd00);
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
}

/* Pointers that lead nowhere: no chain is published, and nothing is found. */
static void
test_hostile(Fixture *fixture, gconstpointer data)
{
    static const uint64_t words[] = { 0, 1, HEAP + PAGE - 4, UINT64_MAX, LINUX_DIRECT };
    const uint64_t at[] = { THREAD - 8, G0 + 48, M + GPOINTER_TO_UINT(data), CURG + 48 };
    UprofChain chain;
    UprofRegs regs;
    uint32_t slot;

    for (size_t i = 0; i < G_N_ELEMENTS(at); i++) {
        const uint64_t before = linux_guest_get(fixture->guest, fixture->heap + (at[i] - HEAP));
        for (size_t j = 0; j < G_N_ELEMENTS(words); j++) {
            put_word(fixture, at[i], words[j]);
            uprof_mem_forget(fixture->view->mem);
            take_sample(fixture, true);
            g_assert_false(leave(fixture, SYSTEMSTACK, &regs));
            g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
        }
        put_word(fixture, at[i], before);
    }
    uprof_mem_forget(fixture->view->mem);
    take_sample(fixture, true);
    g_assert_true(leave(fixture, SYSTEMSTACK, &regs));
}

int
main(int argc, char **argv)
{
    static const unsigned curgs[] = { 184, 192 };

    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(curgs); i++) {
        const gconstpointer data = GUINT_TO_POINTER(curgs[i]);
        g_autofree char *leave_path = g_strdup_printf("/go-stacks/leave/%u", curgs[i]);
        g_autofree char *clock_path = g_strdup_printf("/go-stacks/clock/%u", curgs[i]);
        g_autofree char *hostile_path = g_strdup_printf("/go-stacks/hostile/%u", curgs[i]);
        g_test_add(leave_path, Fixture, data, set_up, test_leave, tear_down);
        g_autofree char *signal_path = g_strdup_printf("/go-stacks/signal/%u", curgs[i]);
        g_test_add(signal_path, Fixture, data, set_up, test_signal, tear_down);
        g_test_add(clock_path, Fixture, data, set_up, test_clock, tear_down);
        g_test_add(hostile_path, Fixture, data, set_up, test_hostile, tear_down);
    }
    return g_test_run();
}
