/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "uprof/task-stack.h"

enum {
    REGS_WORDS = 21,
    CALL_WORD = 15,
    SEGMENT_WORD = 17,
    SP_WORD = 19,
    MORE_BYTES = 32 * 1024 * UPROF_TASK_STACKS_MAX
};

#define RETURN (LINUX_IMAGE + 0x58)

typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    uint64_t end; /* guest-physical: of the stack of nginx */
    UprofTask task;
    UprofTaskStack stack;
} Setup;

/* @no_member: (nullable): that the kernel lacks */
static void
setup_init_without(Setup *setup, uint64_t pc, const char *no_member)
{
    const LinuxPlan plan = { .lists_tasks = true,
                             .more_bytes = MORE_BYTES,
                             .no_member = no_member };
    const uint64_t regs[REGS_WORDS] = {
        [CALL_WORD] = 202,
        [SEGMENT_WORD] = 0x33,
        [SP_WORD] = LINUX_STACK + 0x1000,
    };

    setup->guest = linux_guest_new(&plan);
    setup->end = linux_guest_add_stack(setup->guest, setup->guest->task, pc, regs, REGS_WORDS);
    setup->view = linux_view_new(setup->guest);
    uprof_linux_want_tasks(setup->view->kernel);
    linux_view_sample(setup->view, 0);
    g_autoptr(UprofTaskList) list =
        uprof_task_list_read(setup->view->kernel, setup->view->mem, LINUX_LIST_NS, NULL);
    setup->task = g_array_index(list->tasks, UprofTask, 0);
}

static void
setup_init(Setup *setup, uint64_t pc)
{
    setup_init_without(setup, pc, NULL);
}

static void
setup_clear(Setup *setup)
{
    linux_view_free(setup->view);
    linux_guest_free(setup->guest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static void
copy_stack(Setup *setup)
{
    uprof_task_stacks_end(uprof_task_stacks_begin(setup->view->kernel, setup->view->mem,
                                                  &setup->task, &setup->stack, 1));
}

static void
assert_state(Setup *setup, UprofTaskStackState state)
{
    copy_stack(setup);
    g_assert_cmpint(setup->stack.state, ==, state);
}

static void
test_copy(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_cmphex(setup.stack.regs.pc, ==, RETURN);
    g_assert_cmphex(setup.stack.regs.sp, ==, LINUX_DIRECT + setup.end - REGS_WORDS * 8);
    g_assert_cmpuint(setup.stack.len, ==, REGS_WORDS * 8 + SWITCH_BYTES);
    g_assert_true(setup.stack.has_user);
    g_assert_cmpint(setup.stack.syscall, ==, 202);
    g_assert_cmpstr(uprof_task_stack_syscall_name(setup.view->kernel, &setup.stack), ==, "futex");
    g_assert_cmphex(setup.stack.user_sp, ==, LINUX_STACK + 0x1000);
    /* 32-bit code has other numbers */
    linux_guest_put(setup.guest, setup.end - (REGS_WORDS - SEGMENT_WORD) * 8, 0x23);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_null(uprof_task_stack_syscall_name(setup.view->kernel, &setup.stack));
    /* a thread of the kernel */
    linux_guest_put(setup.guest, setup.end - (REGS_WORDS - SEGMENT_WORD) * 8, 0x10);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_false(setup.stack.has_user);
}

/* The snapshot shows the task as if it ran. */
static void
test_snapshot(void)
{
    g_auto(Setup) setup;
    UprofLinuxTask task;
    uint64_t word;

    setup_init(&setup, RETURN);
    copy_stack(&setup);
    setup.view->snapshot->time_ns = 77;
    uprof_task_stack_make_snapshot(setup.view->kernel, &setup.task, &setup.stack,
                                   setup.view->snapshot);
    g_assert_cmpuint(setup.view->snapshot->time_ns, ==, 77);
    g_assert_true(uprof_linux_task(setup.view->kernel, setup.view->snapshot, &task));
    g_assert_cmpuint(task.pid, ==, 4242);
    g_assert_cmpstr(task.name, ==, "nginx");
    g_assert_cmphex(task.memory, ==, LINUX_DIRECT + setup.guest->mm);
    g_assert_true(uprof_snapshot_read_word(
        setup.view->snapshot, LINUX_DIRECT + setup.end - (REGS_WORDS - CALL_WORD) * 8, &word));
    g_assert_cmpuint(word, ==, 202);
}

static void
test_waiting(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    g_assert_true(uprof_task_stack_is_waiting(setup.view->kernel, LINUX_IMAGE + LINUX_WAIT));
    g_assert_false(uprof_task_stack_is_waiting(setup.view->kernel, LINUX_IMAGE + LINUX_WAIT_END));
}

static void
test_states(void)
{
    g_auto(Setup) fresh;
    g_auto(Setup) setup;

    setup_init(&fresh, LINUX_IMAGE + LINUX_NEW_TASK);
    assert_state(&fresh, UPROF_TASK_STACK_NEW);
    setup_init(&setup, RETURN);
    /* the task is on a CPU by now */
    memory_guest_put_u32(setup.guest->memory, setup.guest->task + TASK_ON_CPU, 1);
    assert_state(&setup, UPROF_TASK_STACK_RUNS);
    g_assert_true(setup.task.is_on_cpu);
    memory_guest_put_u32(setup.guest->memory, setup.guest->task + TASK_ON_CPU, 0);
    setup.task.is_on_cpu = false;
    /* it has run since the list was read */
    linux_guest_put(setup.guest, setup.guest->task + TASK_SWITCHES, 9);
    setup.task.wait_ns = 1000;
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_cmpuint(setup.task.n_switches, ==, 9);
    g_assert_cmpuint(setup.task.wait_ns, ==, 0);
    g_assert_false(setup.task.has_wait);
    linux_guest_put(setup.guest, setup.guest->task + TASK_LEFT, 50);
    linux_guest_put(setup.guest, setup.guest->task + TASK_SWITCHES, 10);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_true(setup.task.has_wait);
    /* the pages of a capture are of different moments */
    setup.task.has_run = true;
    assert_state(&setup, UPROF_TASK_STACK_CHANGED);
    setup.task.has_run = false;
    /* it has ended, and its memory is another task's */
    memory_guest_put_u32(setup.guest->memory, setup.guest->task + TASK_PID, 5);
    assert_state(&setup, UPROF_TASK_STACK_NONE);
    memory_guest_put_u32(setup.guest->memory, setup.guest->task + TASK_PID, 4242);
    memory_guest_put_u32(setup.guest->memory, setup.guest->task + TASK_EXIT, 0x20);
    assert_state(&setup, UPROF_TASK_STACK_NONE);
    setup.task.state = 'Z';
    assert_state(&setup, UPROF_TASK_STACK_NONE);
}

/* An exec after the list was read: nothing is left of the program that waited before. */
static void
test_exec(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    const uint64_t task = setup.guest->task, mm = linux_guest_add_mm(setup.guest);
    linux_guest_put(setup.guest, task + TASK_SWITCHES, 9);
    linux_guest_put(setup.guest, task + TASK_MM, LINUX_DIRECT + mm);
    linux_guest_put_text(setup.guest, task + TASK_COMM, "vim");
    linux_guest_put(setup.guest, task + TASK_SET, LINUX_DIRECT + 0x40);
    linux_guest_put(setup.guest, task + TASK_RUN_TIME, 5000);
    linux_guest_put(setup.guest, task + TASK_USER_TIME, 1);
    memory_guest_put_u32(setup.guest->memory, task + TASK_STATE, 2);
    linux_guest_put(setup.guest, task + TASK_IO, TASK_IO_MASK);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_cmpstr(setup.task.name, ==, "vim");
    g_assert_cmpstr(setup.task.comm, ==, "vim");
    g_assert_cmphex(setup.task.memory, ==, LINUX_DIRECT + mm);
    g_assert_cmphex(setup.task.cgroup, ==, LINUX_DIRECT + 0x40);
    g_assert_cmpuint(setup.task.user_ns, ==, 5000);
    g_assert_cmpint(setup.task.state, ==, 'D');
    g_assert_true(setup.task.is_in_io);
}

/* Other memory is another wait, also in a kernel that does not count switches. */
static void
test_memory(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    copy_stack(&setup);
    const uint64_t mm = linux_guest_add_mm(setup.guest);
    linux_guest_put(setup.guest, setup.guest->task + TASK_MM, LINUX_DIRECT + mm);
    g_assert_false(uprof_task_stack_is_same(setup.view->kernel, setup.view->mem, &setup.task));
    setup.task.wait_ns = 1000;
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_cmphex(setup.task.memory, ==, LINUX_DIRECT + mm);
    g_assert_cmpuint(setup.task.wait_ns, ==, 0);
}

/* A thread of the kernel has the name of the work that it does now. */
static void
test_name(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    const uint64_t task = setup.guest->task;
    const uint64_t thread = linux_guest_alloc(setup.guest, 0x40, 64);
    const uint64_t text = linux_guest_alloc(setup.guest, 0x40, 64);
    linux_guest_put_text(setup.guest, text, "a-long-name-of-a-thread");
    linux_guest_put(setup.guest, thread + THREAD_NAME, LINUX_DIRECT + text);
    memory_guest_put_u32(setup.guest->memory, task + TASK_FLAGS, 0x200000);
    linux_guest_put(setup.guest, task + TASK_WORKER, LINUX_DIRECT + thread);
    linux_guest_put(setup.guest, task + TASK_SWITCHES, 9);
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    g_assert_cmpstr(setup.task.name, ==, "a-long-name-of-a-thread");
    g_assert_true(setup.task.is_kernel);
}

/* A kernel for one CPU does not tell which task runs: the stack of a runnable one may be old. */
static void
test_one_cpu(void)
{
    g_auto(Setup) setup;

    setup_init_without(&setup, RETURN, "on_cpu");
    const uint64_t task = setup.guest->task;
    linux_guest_put(setup.guest, task + TASK_LEFT, 1);
    g_assert_true(setup.task.may_run);
    g_assert_false(setup.task.has_wait);
    assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
    /* it waits by now, and later it does not any more */
    memory_guest_put_u32(setup.guest->memory, task + TASK_STATE, 1);
    setup.task.may_run = false;
    assert_state(&setup, UPROF_TASK_STACK_COPIED);
    memory_guest_put_u32(setup.guest->memory, task + TASK_STATE, 0);
    g_assert_false(uprof_task_stack_is_same(setup.view->kernel, setup.view->mem, &setup.task));
    assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
    g_assert_true(setup.task.may_run);
}

/* The task runs between any two reads. */
static void
run_task(MemoryGuest *memory, MemoryCall call, gint n)
{
    const LinuxGuest *guest = memory->hook_data;

    if (call == MEMORY_READ)
        memory_guest_put_u64(memory, guest->task + TASK_SWITCHES, (uint64_t)n);
}

static void
test_changes(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    setup.guest->memory->hook_data = setup.guest;
    setup.guest->memory->hook = run_task;
    assert_state(&setup, UPROF_TASK_STACK_CHANGED);
    setup.guest->memory->hook = NULL;
}

/* The stacks of several tasks are copied with few reads; one that ends leaves the others. */
static void
test_together(void)
{
    enum { N = UPROF_TASK_STACKS_MAX };
    g_auto(Setup) setup;
    UprofTask tasks[N];
    g_autofree UprofTaskStack *stacks = g_new(UprofTaskStack, N);

    setup_init(&setup, RETURN);
    for (unsigned i = 0; i < N; i++) {
        const uint64_t task = linux_guest_add_task(setup.guest, "task", 1 + i, setup.guest->mm);
        linux_guest_list_task(setup.guest, task, 0);
        linux_guest_add_stack(setup.guest, task, RETURN + i, NULL, 0);
    }
    g_autoptr(UprofTaskList) list =
        uprof_task_list_read(setup.view->kernel, setup.view->mem, LINUX_LIST_NS, NULL);
    g_assert_cmpuint(list->tasks->len, ==, N + 1);
    memcpy(tasks, list->tasks->data, sizeof(tasks));
    memory_guest_put_u32(setup.guest->memory, tasks[2].address - LINUX_DIRECT + TASK_PID, 77);
    const gint before = setup.guest->memory->tally->calls[MEMORY_READ];
    uprof_task_stacks_end(
        uprof_task_stacks_begin(setup.view->kernel, setup.view->mem, tasks, stacks, N));
    g_assert_cmpint(setup.guest->memory->tally->calls[MEMORY_READ] - before, <=, N / 2);
    for (unsigned i = 0; i < N; i++)
        if (i == 2)
            g_assert_cmpint(stacks[i].state, ==, UPROF_TASK_STACK_NONE);
        else
            g_assert_cmphex(stacks[i].regs.pc, ==, RETURN + i);
}

static void
test_same(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, RETURN);
    copy_stack(&setup);
    g_assert_true(uprof_task_stack_is_same(setup.view->kernel, setup.view->mem, &setup.task));
    linux_guest_put(setup.guest, setup.guest->task + TASK_SWITCHES, 1);
    g_assert_false(uprof_task_stack_is_same(setup.view->kernel, setup.view->mem, &setup.task));
}

static void
test_lies(void)
{
    static const uint64_t lies[] = { 0, 8, UINT64_MAX, UINT64_MAX - 7, LINUX_DIRECT };

    for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
        g_auto(Setup) setup;
        setup_init(&setup, RETURN);
        UprofTask task = setup.task;
        setup.task.saved_sp = lies[i];
        assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
        setup.task = task;
        setup.task.stack = lies[i] == 0 ? 8 : lies[i];
        assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
        setup.task = task;
        setup.task.saved_sp++;
        assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
        setup.task.saved_sp = LINUX_DIRECT + setup.end - 8;
        assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
        setup.task.saved_sp = LINUX_DIRECT + setup.end;
        assert_state(&setup, UPROF_TASK_STACK_UNKNOWN);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linux/task-stack/copy", test_copy);
    g_test_add_func("/linux/task-stack/snapshot", test_snapshot);
    g_test_add_func("/linux/task-stack/waiting", test_waiting);
    g_test_add_func("/linux/task-stack/states", test_states);
    g_test_add_func("/linux/task-stack/exec", test_exec);
    g_test_add_func("/linux/task-stack/memory", test_memory);
    g_test_add_func("/linux/task-stack/name", test_name);
    g_test_add_func("/linux/task-stack/one-cpu", test_one_cpu);
    g_test_add_func("/linux/task-stack/changes", test_changes);
    g_test_add_func("/linux/task-stack/together", test_together);
    g_test_add_func("/linux/task-stack/same", test_same);
    g_test_add_func("/linux/task-stack/lies", test_lies);
    return g_test_run();
}
