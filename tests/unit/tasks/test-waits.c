/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/tasks/wait-table-priv.h"
#include "uprof/waits.h"

#include <string.h>

#include "linux-guest.h"

enum { N_TASKS = 4, MORE_BYTES = 512 * 1024, SLEEPER = 0, BLOCKED, READY, KERNEL };

#define SECOND UINT64_C(1000000000)
#define PLACE (LINUX_IMAGE + 0x58)
#define OTHER_PLACE (LINUX_IMAGE + 0x158)

/* A guest whose tasks do not run, with a clock of the test's own. */
typedef struct {
    LinuxGuest *guest;
    UprofRun *run;
    UprofPipeline *pipeline;
    UprofWaits *waits;
    uint64_t tasks[N_TASKS]; /* guest-physical */
    UprofWaitTick tick;
} Setup;

/* Steps cost no time, so their pace does not depend on this machine. */
static uint64_t
stand_still(void)
{
    return SECOND;
}

static void
add_task(Setup *setup, unsigned i, const char *name, uint32_t state, uint64_t mm)
{
    LinuxGuest *guest = setup->guest;
    uint64_t task = guest->task;

    if (i != SLEEPER) {
        task = linux_guest_add_task(guest, name, i, mm);
        linux_guest_list_task(guest, task, 0);
    }
    memory_guest_put_u32(guest->memory, task + TASK_STATE, state);
    linux_guest_add_stack(guest, task, PLACE, NULL, 0);
    setup->tasks[i] = task;
}

static void
setup_init(Setup *setup, const LinuxPlan *plan)
{
    static UprofSnapshot snapshot;
    g_autoptr(GError) error = NULL;

    *setup = (Setup){ .guest = linux_guest_new(plan), .tick.time_ns = SECOND };
    add_task(setup, SLEEPER, "nginx", 1, 0);
    add_task(setup, BLOCKED, "sync", 2, 0);
    add_task(setup, READY, "gzip", 0, 0);
    add_task(setup, KERNEL, "kworker", 0x402, 0);
    setup->run = uprof_run_new();
    setup->run->domain = g_strdup("web-1");
    setup->run->arch = g_strdup("x86_64");
    setup->run->unwind = g_strdup("auto");
    setup->run->vcpus = 1;
    setup->run->max_depth = 64;
    setup->pipeline = uprof_pipeline_new(&setup->guest->memory->base, setup->run, NULL);
    g_assert_true(uprof_pipeline_begin(setup->pipeline, &error));
    uprof_pipeline_want_waits(setup->pipeline);
    setup->waits = uprof_waits_new(setup->pipeline, &setup->guest->memory->base, stand_still);
    uprof_snapshot_clear(&snapshot);
    snapshot.regs = setup->guest->memory->regs[0];
    snapshot.is_prime = true;
    g_assert_true(uprof_pipeline_take(setup->pipeline, &snapshot, &error));
}

static void
setup_usual(Setup *setup)
{
    const LinuxPlan plan = { .lists_tasks = true, .more_bytes = MORE_BYTES };

    setup_init(setup, &plan);
}

static void
setup_clear(Setup *setup)
{
    uprof_waits_free(setup->waits);
    uprof_pipeline_free(setup->pipeline);
    uprof_run_free(setup->run);
    linux_guest_free(setup->guest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

/* Walks after @seconds, and finds the stacks. */
static void
walk_after(Setup *setup, unsigned seconds)
{
    setup->tick.time_ns += seconds * SECOND;
    uprof_waits_step(setup->waits, &setup->tick);
}

static void
append_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GString *text = data;

    for (unsigned i = 1; i < n; i++)
        g_string_append_printf(text, "%s%s", uprof_name_text(frames[i]), i + 1 < n ? ";" : "");
    g_string_append_printf(text, " %u\n", (unsigned)weight);
}

static void
assert_waits(Setup *setup, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);

    uprof_profile_walk(setup->pipeline->waits, append_stack, text);
    g_assert_cmpstr(text->str, ==, expected);
}

static void
put_state(Setup *setup, unsigned i, unsigned member, uint32_t value)
{
    memory_guest_put_u32(setup->guest->memory, setup->tasks[i] + member, value);
}

/* The task runs, and then waits at @pc. */
static void
run_task(Setup *setup, unsigned i, uint64_t pc)
{
    const uint64_t switches = setup->tasks[i] + TASK_SWITCHES;

    linux_guest_put(setup->guest, switches, linux_guest_get(setup->guest, switches) + 1);
    if (pc != 0)
        linux_guest_add_stack(setup->guest, setup->tasks[i], pc, NULL, 0);
}

/* The time between walks counts for each task, by its state, process and place. */
static void
test_states(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    walk_after(&setup, 0);
    assert_waits(&setup, "");
    walk_after(&setup, 1);
    walk_after(&setup, 2);
    assert_waits(&setup, "[blocked];sync;[truncated];function_0005_[k] 3000000\n"
                         "[idle];kworker;[truncated];function_0005_[k] 3000000\n"
                         "[runnable];gzip;[truncated];function_0005_[k] 3000000\n"
                         "[sleeping];nginx;[truncated];function_0005_[k] 3000000\n");
    g_assert_cmpuint(setup.run->waits.walks, ==, 3);
    g_assert_cmpuint(setup.run->waits.tasks, ==, 3 * N_TASKS);
    g_assert_cmpuint(setup.run->waits.time_ns, ==, 3 * SECOND);
    g_assert_cmpuint(setup.run->waits.total_us, ==, 12 * 1000 * 1000);
    g_assert_cmpuint(setup.run->waits.unknown_us, ==, 0);
    g_assert_cmpuint(setup.run->waits.incomplete, ==, 0);
    g_assert_null(uprof_waits_obstacle(setup.waits));
    g_assert_cmpuint(setup.run->samples, ==, 0);
    g_assert_cmpuint(uprof_profile_n_stacks(setup.pipeline->profile), ==, 0);
}

/* Tasks on a CPU, and tasks that have ended, do not wait. */
static void
test_others(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    put_state(&setup, READY, TASK_ON_CPU, 1);
    put_state(&setup, BLOCKED, TASK_EXIT, 0x20);
    put_state(&setup, KERNEL, TASK_STATE, 4);
    walk_after(&setup, 0);
    walk_after(&setup, 1);
    assert_waits(&setup, "[sleeping];nginx;[truncated];function_0005_[k] 1000000\n"
                         "[stopped];kworker;[truncated];function_0005_[k] 1000000\n");
}

/* A kernel for one CPU does not tell which task runs, so no runnable task counts. */
static void
test_one_cpu(void)
{
    const LinuxPlan plan = { .lists_tasks = true, .more_bytes = MORE_BYTES, .no_member = "on_cpu" };
    g_auto(Setup) setup;

    setup_init(&setup, &plan);
    put_state(&setup, KERNEL, TASK_STATE, 0);
    walk_after(&setup, 0);
    walk_after(&setup, 1);
    assert_waits(&setup, "[blocked];sync;[truncated];function_0005_[k] 1000000\n"
                         "[sleeping];nginx;[truncated];function_0005_[k] 1000000\n");
}

/* Only a task that cannot be interrupted is blocked on I/O. */
static void
test_io(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    put_state(&setup, READY, TASK_IO, TASK_IO_MASK);
    put_state(&setup, BLOCKED, TASK_IO, TASK_IO_MASK);
    put_state(&setup, SLEEPER, TASK_IO, TASK_IO_MASK);
    put_state(&setup, KERNEL, TASK_ON_CPU, 1);
    walk_after(&setup, 0);
    walk_after(&setup, 1);
    assert_waits(&setup, "[blocked on I/O];sync;[truncated];function_0005_[k] 1000000\n"
                         "[runnable];gzip;[truncated];function_0005_[k] 1000000\n"
                         "[sleeping];nginx;[truncated];function_0005_[k] 1000000\n");
}

/* A stack is read again only if its task has run. */
static void
test_known(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    walk_after(&setup, 0);
    MemoryTally *tally = setup.guest->memory->tally;
    gint before = tally->calls[MEMORY_READ];
    walk_after(&setup, 1);
    const gint n_list = tally->calls[MEMORY_READ] - before;
    before = tally->calls[MEMORY_READ];
    run_task(&setup, SLEEPER, OTHER_PLACE);
    walk_after(&setup, 1);
    g_assert_cmpint(tally->calls[MEMORY_READ] - before, >, n_list);
    before = tally->calls[MEMORY_READ];
    walk_after(&setup, 1);
    g_assert_cmpint(tally->calls[MEMORY_READ] - before, ==, n_list);
    assert_waits(&setup, "[blocked];sync;[truncated];function_0005_[k] 3000000\n"
                         "[idle];kworker;[truncated];function_0005_[k] 3000000\n"
                         "[runnable];gzip;[truncated];function_0005_[k] 3000000\n"
                         "[sleeping];nginx;[truncated];function_0005_[k] 1000000\n"
                         "[sleeping];nginx;[truncated];function_0021_[k] 2000000\n");
}

/* The state may change without a run: what has waited for an event waits for a CPU then. */
static void
test_wakeup(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    for (unsigned i = BLOCKED; i < N_TASKS; i++)
        put_state(&setup, i, TASK_ON_CPU, 1);
    walk_after(&setup, 0);
    walk_after(&setup, 1);
    put_state(&setup, SLEEPER, TASK_STATE, 0);
    walk_after(&setup, 2);
    assert_waits(&setup, "[runnable];nginx;[truncated];function_0005_[k] 2000000\n"
                         "[sleeping];nginx;[truncated];function_0005_[k] 1000000\n");
}

/* While somebody else has stopped the guest, and before a reset, no time counts. */
static void
test_pause(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    walk_after(&setup, 0);
    setup.tick.n_pauses++;
    walk_after(&setup, 100);
    g_assert_cmpuint(setup.run->waits.total_us, ==, 0);
    walk_after(&setup, 1);
    setup.tick.reset++;
    walk_after(&setup, 100);
    g_assert_cmpuint(setup.run->waits.time_ns, ==, SECOND);
}

/* Steps come more often than walks. */
static void
test_pace(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    for (unsigned i = 0; i < 1000; i++) {
        setup.tick.time_ns += SECOND / 100;
        uprof_waits_step(setup.waits, &setup.tick);
    }
    g_assert_cmpuint(setup.run->waits.walks, >, 70);
    g_assert_cmpuint(setup.run->waits.walks, <, 140);
    g_assert_cmpuint(setup.run->waits.time_ns, >, 9 * SECOND);
}

/* A kernel without types: the next steps try again, but not all. */
static void
test_obstacle(void)
{
    const LinuxPlan plan = { .lists_tasks = true, .no_types = true, .more_bytes = MORE_BYTES };
    g_auto(Setup) setup;

    setup_init(&setup, &plan);
    walk_after(&setup, 0);
    g_assert_nonnull(strstr(uprof_waits_obstacle(setup.waits), "BTF"));
    uprof_waits_end(setup.waits, SECOND);
    g_assert_cmpuint(setup.run->waits.walks, ==, 0);
    assert_waits(&setup, "");
}

/* A ring that leads nowhere: what was found counts, and the walk is marked. */
static void
test_hostile_ring(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    walk_after(&setup, 0);
    linux_guest_put(setup.guest, setup.tasks[READY] + TASK_RING, UINT64_C(0xffff800000000000));
    walk_after(&setup, 1);
    g_assert_cmpuint(setup.run->waits.incomplete, ==, 1);
    g_assert_cmpuint(setup.run->waits.total_us, >, 0);
    g_assert_cmpuint(setup.run->waits.total_us, <, 4 * 1000 * 1000);
}

/* A stack pointer of another place than the stack, and a stack of a task that has never run */
static void
test_hostile_stack(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    linux_guest_put(setup.guest, setup.tasks[SLEEPER] + TASK_SAVED_SP, UINT64_MAX - 7);
    run_task(&setup, BLOCKED, LINUX_IMAGE + LINUX_NEW_TASK);
    put_state(&setup, READY, TASK_ON_CPU, 1);
    put_state(&setup, KERNEL, TASK_ON_CPU, 1);
    walk_after(&setup, 0);
    walk_after(&setup, 1);
    assert_waits(&setup, "[blocked];sync;[unknown] 1000000\n"
                         "[sleeping];nginx;[unknown] 1000000\n");
}

/* The guest changes when a step asks for the time again: after its walk, before its stacks. */
static struct {
    Setup *setup;
    void (*change)(Setup *setup);
    unsigned n_asked;
} meanwhile;

static uint64_t
change_guest(void)
{
    if (meanwhile.setup && ++meanwhile.n_asked == 2)
        meanwhile.change(meanwhile.setup);
    return SECOND;
}

static void
change_program(Setup *setup)
{
    const uint64_t mm = linux_guest_add_mm(setup->guest);

    linux_guest_put(setup->guest, setup->tasks[SLEEPER] + TASK_MM, LINUX_DIRECT + mm);
    linux_guest_put_text(setup->guest, setup->tasks[SLEEPER] + TASK_COMM, "vim");
}

/* An exec between the walk and the copy of the stack: the wait is that of the new program. */
static void
test_exec(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    for (unsigned i = BLOCKED; i < N_TASKS; i++)
        put_state(&setup, i, TASK_ON_CPU, 1);
    uprof_waits_free(setup.waits);
    setup.waits = uprof_waits_new(setup.pipeline, &setup.guest->memory->base, change_guest);
    meanwhile.n_asked = 0;
    meanwhile.change = change_program;
    meanwhile.setup = &setup;
    walk_after(&setup, 0);
    meanwhile.setup = NULL;
    walk_after(&setup, 1);
    assert_waits(&setup, "[sleeping];vim;[truncated];function_0005_[k] 1000000\n");
}

static void
begin_to_run(Setup *setup)
{
    put_state(setup, READY, TASK_ON_CPU, 1);
}

/* A task that runs before its stack is found: its time is that of its process, at an unknown place.
 */
static void
test_short_wait(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    for (unsigned i = 0; i < N_TASKS; i++)
        if (i != READY)
            put_state(&setup, i, TASK_ON_CPU, 1);
    uprof_waits_free(setup.waits);
    setup.waits = uprof_waits_new(setup.pipeline, &setup.guest->memory->base, change_guest);
    meanwhile.change = begin_to_run;
    meanwhile.setup = NULL;
    walk_after(&setup, 0);
    run_task(&setup, READY, OTHER_PLACE);
    meanwhile.n_asked = 0;
    meanwhile.setup = &setup;
    walk_after(&setup, 1);
    meanwhile.setup = NULL;
    walk_after(&setup, 1);
    assert_waits(&setup, "[runnable];gzip;[unknown] 1000000\n");
}

static void
delay_read(MemoryGuest *memory, MemoryCall call, gint n)
{
    if (call == MEMORY_READ)
        g_usleep(400 * 1000);
}

/* A walk ends after a second: samples wait meanwhile. */
static void
test_slow_walk(void)
{
    enum { MORE = 20 };
    g_auto(Setup) setup;

    setup_usual(&setup);
    for (unsigned i = 0; i < MORE; i++)
        linux_guest_list_task(setup.guest, linux_guest_add_task(setup.guest, "more", 50 + i, 0), 0);
    setup.guest->memory->hook = delay_read;
    walk_after(&setup, 0);
    setup.guest->memory->hook = NULL;
    g_assert_cmpuint(setup.run->waits.walks, ==, 1);
    g_assert_cmpuint(setup.run->waits.incomplete, ==, 1);
    g_assert_cmpuint(setup.run->waits.tasks, <, N_TASKS);
}

/* Another access to the same guest */
static void
test_move(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    walk_after(&setup, 0);
    uprof_waits_move(setup.waits, &setup.guest->memory->base);
    uprof_pipeline_move(setup.pipeline, &setup.guest->memory->base);
    walk_after(&setup, 1);
    g_assert_cmpuint(setup.run->waits.total_us, ==, 4 * 1000 * 1000);
}

/* ---- The table ---- */

static UprofTask
make_task(uint32_t id, uint64_t n_switches)
{
    return (UprofTask){ .id = id, .began_ns = 5, .n_switches = n_switches, .state = 'S' };
}

static UprofWait *
add_time(UprofWaitTable *table, const UprofTask *task, uint64_t us)
{
    return uprof_wait_table_add(table, task, uprof_wait_state_of(task), us);
}

/* Time whose place is not found before the task runs again is of an unknown place. */
static void
test_unknown(void)
{
    g_auto(Setup) setup;

    setup_usual(&setup);
    g_autoptr(UprofWaitTable) table = uprof_wait_table_new(setup.pipeline);
    const UprofName *name = uprof_names_marker(setup.pipeline->names, "place");
    const UprofName *unknown = uprof_names_marker(setup.pipeline->names, "[unknown]");
    const UprofTask first = make_task(1, 1), later = make_task(1, 2), gone = make_task(2, 1),
                    last = make_task(3, 1);
    uprof_wait_table_begin(table);
    add_time(table, &first, 10);
    add_time(table, &gone, 20);
    uprof_wait_table_finish(table);
    assert_waits(&setup, "");
    uprof_wait_table_begin(table);
    UprofWait *wait = uprof_wait_table_find(table, &first);
    g_assert_false(uprof_wait_table_is_same(wait, &later));
    uprof_wait_table_restart(table, wait, &later, &unknown, 1);
    g_assert_true(add_time(table, &later, 1) == wait);
    add_time(table, &last, 5);
    uprof_wait_table_finish(table);
    assert_waits(&setup, "[sleeping];[unknown] 30\n");
    uprof_wait_table_name(table, wait, &name, 1);
    add_time(table, &later, 2);
    uprof_wait_table_flush(table);
    assert_waits(&setup, "[sleeping];[unknown] 35\n[sleeping];place 3\n");
    g_assert_cmpuint(setup.run->waits.unknown_us, ==, 35);
    g_assert_null(uprof_wait_table_find(table, &gone));
}

/* Memory for frames is bounded: what does not fit is counted, and searched again later. */
static void
test_bounds(void)
{
    g_auto(Setup) setup;
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    unsigned n_named = 0;

    setup_usual(&setup);
    g_autoptr(UprofWaitTable) table = uprof_wait_table_new(setup.pipeline);
    for (unsigned i = 0; i < G_N_ELEMENTS(frames); i++)
        frames[i] = uprof_names_marker(setup.pipeline->names, "place");
    uprof_wait_table_begin(table);
    for (uint32_t id = 1; id <= 2000; id++) {
        const UprofTask task = make_task(id, 1);
        UprofWait *wait = add_time(table, &task, 1);
        uprof_wait_table_name(table, wait, frames, G_N_ELEMENTS(frames) - 1);
        n_named += wait->is_named;
    }
    uprof_wait_table_finish(table);
    g_assert_cmpuint(n_named, ==, UPROF_WAIT_FRAMES_MAX / (UPROF_PROFILE_DEPTH_MAX - 2));
    g_assert_cmpuint(setup.run->waits.total_us, ==, 2000);
    g_assert_cmpuint(uprof_profile_n_stacks(setup.pipeline->waits), ==, 1);
    /* the next walk finds no task, so there is room again */
    uprof_wait_table_begin(table);
    uprof_wait_table_finish(table);
    const UprofTask task = make_task(3000, 1);
    UprofWait *wait = add_time(table, &task, 1);
    uprof_wait_table_name(table, wait, frames, 1);
    g_assert_true(wait->is_named);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tasks/waits/states", test_states);
    g_test_add_func("/tasks/waits/others", test_others);
    g_test_add_func("/tasks/waits/one-cpu", test_one_cpu);
    g_test_add_func("/tasks/waits/io", test_io);
    g_test_add_func("/tasks/waits/known", test_known);
    g_test_add_func("/tasks/waits/wakeup", test_wakeup);
    g_test_add_func("/tasks/waits/pause", test_pause);
    g_test_add_func("/tasks/waits/pace", test_pace);
    g_test_add_func("/tasks/waits/obstacle", test_obstacle);
    g_test_add_func("/tasks/waits/hostile-ring", test_hostile_ring);
    g_test_add_func("/tasks/waits/hostile-stack", test_hostile_stack);
    g_test_add_func("/tasks/waits/exec", test_exec);
    g_test_add_func("/tasks/waits/short-wait", test_short_wait);
    g_test_add_func("/tasks/waits/slow-walk", test_slow_walk);
    g_test_add_func("/tasks/waits/move", test_move);
    g_test_add_func("/tasks/waits/unknown", test_unknown);
    g_test_add_func("/tasks/waits/bounds", test_bounds);
    return g_test_run();
}
