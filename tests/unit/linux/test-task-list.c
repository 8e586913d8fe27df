/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "uprof/error.h"
#include "uprof/task-list.h"

enum {
    KERNEL_THREAD = 0x200000,
    WORKER = 0x20,
    FIRST_ID = 100,
    MORE_BYTES = 256 * 1024,
    READS_MAX = 2 * UPROF_TASK_LIST_MAX + 1000,
};

static const LinuxPlan plan = { .lists_tasks = true, .more_bytes = MORE_BYTES, .n_vcpus = 2 };

/* A guest, its kernel found, and some processes beside nginx (4242). */
typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    uint64_t tasks[8];
} Setup;

static bool is_slow; /* the guests of tests are slow */

static void
setup_init(Setup *setup, const LinuxPlan *guest_plan, unsigned n)
{
    setup->guest = linux_guest_new(guest_plan);
    setup->guest->memory->base.slow_reads = is_slow;
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("task-%u", i);
        setup->tasks[i] = linux_guest_add_task(setup->guest, name, FIRST_ID + i, 0);
        linux_guest_list_task(setup->guest, setup->tasks[i], 0);
    }
    setup->view = linux_view_new(setup->guest);
    uprof_linux_want_tasks(setup->view->kernel);
    linux_view_sample(setup->view, 0);
}

static void
setup_clear(Setup *setup)
{
    linux_view_free(setup->view);
    linux_guest_free(setup->guest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static UprofTaskList *
read_list(Setup *setup)
{
    g_autoptr(GError) error = NULL;
    const gint before = setup->guest->memory->tally->calls[MEMORY_READ];
    UprofTaskList *list =
        uprof_task_list_read(setup->view->kernel, setup->view->mem, LINUX_LIST_NS, &error);

    g_assert_no_error(error);
    g_assert_cmpint(setup->guest->memory->tally->calls[MEMORY_READ] - before, <, READS_MAX);
    return list;
}

static const UprofTask *
find_task(const UprofTaskList *list, uint32_t id)
{
    for (guint i = 0; i < list->tasks->len; i++)
        if (g_array_index(list->tasks, UprofTask, i).id == id)
            return &g_array_index(list->tasks, UprofTask, i);
    return NULL;
}

/* Asserts that the list has these tasks, in this order. */
static void
assert_ids(const UprofTaskList *list, const uint32_t *ids, unsigned n)
{
    g_assert_cmpuint(list->tasks->len, ==, n);
    for (unsigned i = 0; i < n; i++)
        g_assert_cmpuint(g_array_index(list->tasks, UprofTask, i).id, ==, ids[i]);
}

/* Asserts that each task of the list is nginx or one of the @n others, and is there once. */
static void
assert_known(const UprofTaskList *list, unsigned n)
{
    for (guint i = 0; i < list->tasks->len; i++) {
        const UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        g_assert_true(task->id == 4242 || (task->id >= FIRST_ID && task->id < FIRST_ID + n));
        g_assert_true(find_task(list, task->id) == task);
        for (guint k = 0; k < i; k++)
            g_assert_cmphex(g_array_index(list->tasks, UprofTask, k).address, !=, task->address);
    }
}

static void
test_processes(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 3);
    g_autoptr(UprofTaskList) list = read_list(&setup);
    assert_ids(list, (const uint32_t[]){ 100, 101, 102, 4242 }, 4);
    g_assert_true(list->is_complete);
    g_assert_null(list->missing);
    g_assert_cmpuint(list->n_retries, ==, 0);
    g_assert_cmpstr(find_task(list, 4242)->name, ==, "nginx");
    g_assert_cmphex(find_task(list, 4242)->memory, ==, LINUX_DIRECT + setup.guest->mm);
    g_assert_cmpuint(find_task(list, 101)->process, ==, 101);
}

static void
test_threads(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 1);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t thread = linux_guest_add_task(setup.guest, "thread", 7 - i, setup.guest->mm);
        linux_guest_list_task(setup.guest, thread, setup.guest->task);
    }
    g_autoptr(UprofTaskList) list = read_list(&setup);
    assert_ids(list, (const uint32_t[]){ 100, 4242, 6, 7 }, 4);
    g_assert_cmpuint(find_task(list, 7)->process, ==, 4242);
    g_assert_false(find_task(list, 4242)->is_doubtful);
    /* a ring of threads that leads nowhere spoils no other process */
    linux_guest_put(setup.guest, setup.guest->task + TASK_NODE, 8);
    g_autoptr(UprofTaskList) bad = read_list(&setup);
    g_assert_false(bad->is_complete);
    g_assert_true(find_task(bad, 4242)->is_doubtful);
    g_assert_nonnull(find_task(bad, 100));
}

static void
put_clocks(LinuxGuest *guest, unsigned cpu, uint64_t clock, uint64_t task_clock)
{
    const uint64_t run_queue = guest->cpu_areas[cpu] + CPU_RUN_QUEUE;

    linux_guest_put(guest, run_queue + RUN_QUEUE_CLOCK, clock);
    linux_guest_put(guest, run_queue + RUN_QUEUE_TASK_CLOCK, task_clock);
}

/* ---- Guesses ---- */

enum { MANY = 150, MORE_THREADS = 3 };

/* Processes with rising numbers, of which each third one has more threads. Returns: how many tasks
 */
static unsigned
add_many(Setup *setup, uint64_t *tasks)
{
    unsigned n = 0;

    for (unsigned i = 0; i < MANY; i++) {
        const uint64_t task =
            linux_guest_add_task(setup->guest, "many", 10000 + i * 10, setup->guest->mm);
        linux_guest_list_task(setup->guest, task, 0);
        tasks[n++] = task;
        for (unsigned j = 0; i % 3 == 0 && j < MORE_THREADS; j++) {
            tasks[n] =
                linux_guest_add_task(setup->guest, "thread", 10001 + i * 10 + j, setup->guest->mm);
            linux_guest_list_task(setup->guest, tasks[n++], task);
        }
    }
    return n;
}

/* Returns: reads of the guest for its list, which must have @n tasks of add_many(), and nginx */
static unsigned
count_reads(Setup *setup, unsigned n)
{
    MemoryTally *tally = setup->guest->memory->tally;
    const gint before = tally->calls[MEMORY_READ];
    g_autoptr(UprofTaskList) list = read_list(setup);

    g_assert_true(list->is_complete);
    g_assert_cmpuint(list->tasks->len, ==, n + 1);
    for (guint i = 1; i < list->tasks->len; i++)
        g_assert_cmpuint(g_array_index(list->tasks, UprofTask, i - 1).id, <,
                         g_array_index(list->tasks, UprofTask, i).id);
    for (guint i = 0; i < list->tasks->len; i++)
        g_assert_false(g_array_index(list->tasks, UprofTask, i).is_doubtful);
    return (unsigned)(tally->calls[MEMORY_READ] - before);
}

static void
reverse_order(uint64_t *tasks, unsigned n)
{
    for (unsigned i = 0; i < n / 2; i++) {
        const uint64_t task = tasks[i];
        tasks[i] = tasks[n - 1 - i];
        tasks[n - 1 - i] = task;
    }
}

/* The tree of numbers saves reads. If it is wrong, the list is the same. */
static void
test_guesses(void)
{
    const LinuxPlan large = { .lists_tasks = true, .more_bytes = 1024 * 1024 };
    uint64_t tasks[MANY * (1 + MORE_THREADS)];
    g_auto(Setup) setup;

    setup_init(&setup, &large, 0);
    const unsigned n = add_many(&setup, tasks);
    const unsigned n_alone = count_reads(&setup, n);
    g_assert_cmpuint(n_alone, >, n);
    const uint64_t root = linux_guest_number_tasks(setup.guest, tasks, n);
    g_assert_cmpuint(count_reads(&setup, n), <, n / 3);
    /* a part of the tasks, nodes in a circle, and numbers of other memory */
    linux_guest_number_tasks(setup.guest, tasks, n / 2);
    g_assert_cmpuint(count_reads(&setup, n), <, n_alone);
    const uint64_t leaf = linux_guest_get(setup.guest, root + NODE_SLOTS) - LINUX_DIRECT - 2;
    linux_guest_put(setup.guest, leaf + NODE_SLOTS, LINUX_DIRECT + root + 2);
    linux_guest_put(setup.guest, leaf + NODE_SLOTS + 8, LINUX_DIRECT + tasks[0]);
    linux_guest_put(setup.guest, leaf + NODE_SLOTS + 16, LINUX_IMAGE - 64);
    linux_guest_put(setup.guest, linux_guest_image(LINUX_FIRST_IDS) + IDS_ROOT,
                    LINUX_DIRECT + root + 2);
    g_assert_cmpuint(count_reads(&setup, n), <, n_alone);
    reverse_order(tasks, n);
    linux_guest_number_tasks(setup.guest, tasks, n);
    g_assert_cmpuint(count_reads(&setup, n), <, 3 * n_alone);
}

/* ---- Members ---- */

static void
test_members(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 2);
    const uint64_t task = setup.tasks[1];
    memory_guest_put_u32(setup.guest->memory, task + TASK_STATE, 2);
    memory_guest_put_u32(setup.guest->memory, task + TASK_CPU, 1);
    linux_guest_put(setup.guest, task + TASK_PARENT, LINUX_DIRECT + setup.tasks[0]);
    linux_guest_put(setup.guest, task + TASK_START, 5000);
    linux_guest_put(setup.guest, task + TASK_USER_TIME, 30);
    linux_guest_put(setup.guest, task + TASK_SYSTEM_TIME, 10);
    linux_guest_put(setup.guest, task + TASK_RUN_TIME, 4000);
    linux_guest_put(setup.guest, task + TASK_LEFT, 7000);
    linux_guest_put(setup.guest, task + TASK_SWITCHES, 3);
    linux_guest_put(setup.guest, task + TASK_SWITCHES + 8, 4);
    linux_guest_put(setup.guest, task + TASK_IO, TASK_IO_MASK);
    linux_guest_put(setup.guest, setup.tasks[0] + TASK_IO, 0xff & ~TASK_IO_MASK);
    memory_guest_put_u32(setup.guest->memory, setup.tasks[0] + TASK_ON_CPU, 1);
    put_clocks(setup.guest, 0, 8000, 8000);
    put_clocks(setup.guest, 1, 9000, 9000);
    g_autoptr(UprofTaskList) list = read_list(&setup);
    const UprofTask *found = find_task(list, 101);
    g_assert_cmpint(found->state, ==, 'D');
    g_assert_cmpuint(found->parent, ==, 100);
    g_assert_cmpuint(found->cpu, ==, 1);
    g_assert_cmpuint(found->began_ns, ==, 5000);
    g_assert_cmpuint(found->user_ns, ==, 3000);
    g_assert_cmpuint(found->system_ns, ==, 1000);
    g_assert_cmpuint(found->wait_ns, ==, 2000);
    g_assert_cmpuint(found->n_switches, ==, 7);
    g_assert_false(found->is_on_cpu);
    g_assert_true(found->is_in_io);
    g_assert_true(find_task(list, 100)->is_on_cpu);
    g_assert_false(find_task(list, 100)->is_in_io);
    g_assert_true(found->has_wait);
    g_assert_cmpuint(find_task(list, 100)->wait_ns, ==, 0);
    g_assert_false(find_task(list, 100)->has_wait);
    /* the kernel has not noted when nginx left its CPU */
    g_assert_cmpuint(find_task(list, 4242)->wait_ns, ==, 0);
    g_assert_false(find_task(list, 4242)->has_wait);
}

/* Clocks of two CPUs, and the wait of a task that has left each of them. The second clock is the
 * newest. */
static const struct {
    const char *no_member;
    uint64_t task_clocks[2];
    uint64_t left, waits[2];
} clock_cases[] = {
    /* the first CPU has had interrupts for 3000 ns */
    { NULL, { 5000, 9000 }, 4000, { 2000, 5000 } },
    { NULL, { 5000, 9000 }, 7000, { 0, 2000 } },
    { "clock_task", { 5000, 9000 }, 4000, { 5000, 5000 } },
    /* nonsense */
    { NULL, { 0, UINT64_MAX }, 1, { 999, 8999 } },
    { NULL, { UINT64_MAX, 0 }, 8999, { 1, 0 } },
    { NULL, { 0, 0 }, UINT64_MAX, { 0, 0 } },
};

static void
test_clocks(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(clock_cases); i++) {
        LinuxPlan lacking = plan;
        g_auto(Setup) setup;
        lacking.no_member = clock_cases[i].no_member;
        setup_init(&setup, &lacking, 3);
        put_clocks(setup.guest, 0, 8000, clock_cases[i].task_clocks[0]);
        put_clocks(setup.guest, 1, 9000, clock_cases[i].task_clocks[1]);
        for (unsigned n = 0; n < 3; n++) {
            /* the last one was on a CPU that does not exist */
            memory_guest_put_u32(setup.guest->memory, setup.tasks[n] + TASK_CPU, n < 2 ? n : 99);
            linux_guest_put(setup.guest, setup.tasks[n] + TASK_LEFT, clock_cases[i].left);
        }
        g_autoptr(UprofTaskList) list = read_list(&setup);
        g_assert_cmpuint(find_task(list, 100)->wait_ns, ==, clock_cases[i].waits[0]);
        g_assert_cmpuint(find_task(list, 101)->wait_ns, ==, clock_cases[i].waits[1]);
        g_assert_true(find_task(list, 101)->has_wait);
        g_assert_cmpuint(find_task(list, 102)->wait_ns, <=, 9000);
    }
}

static void
test_namespaces(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 2);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t ids = linux_guest_alloc(setup.guest, 0x40, 64);
        linux_guest_put(setup.guest, setup.tasks[i] + TASK_IDS, LINUX_DIRECT + ids);
        memory_guest_put_u32(setup.guest->memory, ids + IDS_LEVEL, 1);
        /* the second structure belongs to another task by now */
        memory_guest_put_u32(setup.guest->memory, ids + IDS_NUMBERS, 100);
        memory_guest_put_u32(setup.guest->memory, ids + IDS_NUMBERS + IDS_EACH, 1);
    }
    g_autoptr(UprofTaskList) list = read_list(&setup);
    g_assert_cmpuint(find_task(list, 100)->inner, ==, 1);
    g_assert_cmpuint(find_task(list, 100)->level, ==, 1);
    g_assert_cmpuint(find_task(list, 101)->inner, ==, 101);
    g_assert_cmpuint(find_task(list, 101)->level, ==, 0);
}

/* ---- Names ---- */

static uint64_t
add_thread(Setup *setup, unsigned i, uint32_t flags)
{
    const uint64_t thread = linux_guest_alloc(setup->guest, 0x40, 64);

    memory_guest_put_u32(setup->guest->memory, setup->tasks[i] + TASK_FLAGS, KERNEL_THREAD | flags);
    linux_guest_put(setup->guest, setup->tasks[i] + TASK_WORKER, LINUX_DIRECT + thread);
    return thread;
}

static void
test_names(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 5);
    /* a long name */
    const uint64_t text = linux_guest_alloc(setup.guest, 0x40, 64);
    linux_guest_put_text(setup.guest, text, "a-very-long-name-of-a-thread\n");
    linux_guest_put(setup.guest, add_thread(&setup, 0, 0) + THREAD_NAME, LINUX_DIRECT + text);
    /* a worker that works, and one without a pool */
    for (unsigned i = 1; i < 3; i++) {
        const uint64_t worker = linux_guest_alloc(setup.guest, 0x40, 64);
        linux_guest_put(setup.guest, add_thread(&setup, i, WORKER) + THREAD_DATA,
                        LINUX_DIRECT + worker);
        linux_guest_put(setup.guest, worker + WORKER_POOL, i == 1 ? LINUX_DIRECT + worker : 0);
        linux_guest_put(setup.guest, worker + WORKER_WORK, 1);
        linux_guest_put_text(setup.guest, worker + WORKER_TEXT, "events");
    }
    /* a rescuer */
    const uint64_t rescuer = linux_guest_alloc(setup.guest, 0x40, 64);
    const uint64_t queue = linux_guest_alloc(setup.guest, 0x40, 64);
    linux_guest_put_text(setup.guest, setup.tasks[3] + TASK_COMM, "kworker/R-netn");
    linux_guest_put(setup.guest, add_thread(&setup, 3, WORKER) + THREAD_DATA,
                    LINUX_DIRECT + rescuer);
    linux_guest_put(setup.guest, rescuer + WORKER_QUEUE, LINUX_DIRECT + queue);
    linux_guest_put_text(setup.guest, queue + QUEUE_NAME, "netns");
    /* pointers that lead nowhere */
    linux_guest_put(setup.guest, add_thread(&setup, 4, 0) + THREAD_NAME, UINT64_MAX);
    linux_guest_put_text(setup.guest, setup.guest->task + TASK_COMM, "a\x1b[2J\xff");
    g_autoptr(UprofTaskList) list = read_list(&setup);
    g_assert_cmpstr(find_task(list, 100)->name, ==, "a-very-long-name-of-a-thread?");
    g_assert_cmpstr(find_task(list, 101)->name, ==, "task-1+events");
    g_assert_cmpstr(find_task(list, 102)->name, ==, "task-2");
    g_assert_cmpstr(find_task(list, 103)->name, ==, "kworker/R-netns");
    g_assert_cmpstr(find_task(list, 104)->name, ==, "task-4");
    g_assert_true(find_task(list, 104)->is_kernel);
    g_assert_cmpstr(find_task(list, 4242)->name, ==, "a?[2J\xef\xbf\xbd");
}

/* ---- Kernels that lack something ---- */

static void
test_missing(void)
{
    static const struct {
        const char *member, *missing;
    } cases[] = {
        { "real_parent", "its parent (real_parent)" },
        { "exec_start", "how long it waits (se.exec_start)" },
        { "stack", "its stack (stack)" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        LinuxPlan lacking = plan;
        g_auto(Setup) setup;
        lacking.no_member = cases[i].member;
        setup_init(&setup, &lacking, 1);
        put_clocks(setup.guest, 0, 1, 1);
        g_autoptr(UprofTaskList) list = read_list(&setup);
        g_assert_cmpstr(list->missing, ==, cases[i].missing);
        g_assert_cmpuint(list->tasks->len, ==, 2);
        g_assert_cmpint(list->has_parents, ==, i != 0);
        g_assert_cmpint(list->has_waits, ==, i != 1);
    }
}

static void
assert_error(const LinuxPlan *guest_plan, const char *message)
{
    g_auto(Setup) setup;
    g_autoptr(GError) error = NULL;

    setup_init(&setup, guest_plan, 0);
    g_assert_null(uprof_task_list_read(setup.view->kernel, setup.view->mem, LINUX_LIST_NS, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    g_assert_cmpstr(error->message, ==, message);
}

static void
test_errors(void)
{
    LinuxPlan bad = plan;

    bad.no_types = true;
    assert_error(&bad, "tasks cannot be listed: the kernel has no type information (BTF); it needs "
                       "CONFIG_DEBUG_INFO_BTF");
    bad.no_types = false;
    bad.no_member = "tasks";
    assert_error(&bad, "tasks cannot be listed: the kernel's types (BTF) have no 'tasks'");
    bad.no_member = NULL;
    bad.lists_tasks = false;
    assert_error(&bad, "tasks cannot be listed: the kernel's types (BTF) have no 'tasks'");
    bad.no_symbols = true;
    assert_error(&bad, "tasks cannot be listed: the address range of a Linux kernel has no symbol "
                       "table");
}

/* ---- Rings that change, or lie ---- */

/* Reads up to the change, and the task that ends then. */
typedef struct {
    Setup *setup;
    gint n; /* reads until the change; counted down */
    uint64_t task;
} Change;

static void
end_task(MemoryGuest *memory, MemoryCall call, gint n)
{
    Change *change = memory->hook_data;

    if (call == MEMORY_READ && --change->n == 0)
        linux_guest_unlist_task(change->setup->guest, change->task);
}

/* A task ends at any time while the ring is read: all others are listed, once. */
static void
test_ends(void)
{
    for (gint n = 1; n < 12; n++)
        for (unsigned which = 0; which < 4; which++) {
            g_auto(Setup) setup;
            setup_init(&setup, &plan, 4);
            Change change = { &setup, n, setup.tasks[which] };
            setup.guest->memory->hook_data = &change;
            setup.guest->memory->hook = end_task;
            g_autoptr(UprofTaskList) list = read_list(&setup);
            setup.guest->memory->hook = NULL;
            g_assert_true(list->is_complete);
            for (uint32_t id = FIRST_ID; id < FIRST_ID + 4; id++)
                g_assert_true(find_task(list, id) || id == FIRST_ID + which);
            g_assert_nonnull(find_task(list, 4242));
            g_assert_cmpuint(list->tasks->len, <=, 5);
        }
}

/* The threads of a process that ends while they are read cannot be followed. None is missing. */
static void
test_process_ends(void)
{
    unsigned n_ended = 0;

    for (gint n = 1; n < 300; n += 3) {
        g_auto(Setup) setup;
        setup_init(&setup, &plan, 4);
        const uint64_t process = setup.tasks[1];
        const uint64_t thread = linux_guest_add_task(setup.guest, "thread", 7, setup.guest->mm);
        linux_guest_list_task(setup.guest, thread, process);
        linux_guest_put(setup.guest, process + TASK_NODE, 8);
        linux_guest_number_tasks(setup.guest, setup.tasks, 4); /* so they are read ahead */
        Change change = { &setup, n, process };
        setup.guest->memory->hook_data = &change;
        setup.guest->memory->hook = end_task;
        g_autoptr(UprofTaskList) list = read_list(&setup);
        setup.guest->memory->hook = NULL;
        const UprofTask *found = find_task(list, FIRST_ID + 1);
        g_assert_true(list->is_complete == !(found && found->is_doubtful));
        n_ended += found && !found->is_doubtful;
        assert_known(list, 4);
    }
    g_assert_cmpuint(n_ended, >, 0);
}

/* Words of the second task's node, and what they are overwritten with. */
static void
test_lies(void)
{
    static const uint64_t lies[] = {
        0, 8, UINT64_MAX, LINUX_DIRECT, LINUX_DIRECT - 8, LINUX_IMAGE, LINUX_IMAGE + LINUX_DATA + 4,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(lies) * 2; i++) {
        g_auto(Setup) setup;
        setup_init(&setup, &plan, 3);
        linux_guest_put(setup.guest, setup.tasks[1] + TASK_RING + i % 2 * 8, lies[i / 2]);
        g_autoptr(UprofTaskList) list = read_list(&setup);
        g_assert_false(list->is_complete);
        assert_known(list, 3);
    }
}

/* A ring of its own, which the first ring leads into. */
static void
test_cycle(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 4);
    linux_guest_put(setup.guest, setup.tasks[3] + TASK_RING,
                    LINUX_DIRECT + setup.tasks[1] + TASK_RING);
    g_autoptr(UprofTaskList) list = read_list(&setup);
    g_assert_false(list->is_complete);
    assert_known(list, 4);
    /* also of one task */
    linux_guest_put(setup.guest, setup.tasks[0] + TASK_RING,
                    LINUX_DIRECT + setup.tasks[0] + TASK_RING);
    linux_guest_put(setup.guest, setup.tasks[0] + TASK_RING + 8,
                    LINUX_DIRECT + setup.tasks[0] + TASK_RING);
    g_autoptr(UprofTaskList) other = read_list(&setup);
    g_assert_false(other->is_complete);
    assert_known(other, 4);
}

/* The guest of lead_around(). */
typedef struct {
    LinuxGuest *guest;     /* borrowed */
    uint64_t first;        /* guest-physical: node of the first process */
    uint64_t head, second; /* addresses of these nodes */
    unsigned n_head_reads; /* reads until the first process points back to the second one */
    unsigned n_reads;
} Endless;

/* Every read finds another ring: the walk ends all the same. */
static void
turn_ring(MemoryGuest *memory, MemoryCall call, gint n)
{
    Setup *setup = memory->hook_data;

    if (call == MEMORY_READ)
        linux_guest_put(setup->guest, setup->tasks[n % 4] + TASK_RING + n / 4 % 2 * 8,
                        LINUX_DIRECT + setup->tasks[n / 8 % 4] + TASK_RING);
}

static void
test_restless(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 4);
    setup.guest->memory->hook_data = &setup;
    setup.guest->memory->hook = turn_ring;
    g_autoptr(UprofTaskList) list = read_list(&setup);
    setup.guest->memory->hook = NULL;
    assert_known(list, 4);
}

/*
 * Two processes follow each other. Each read finds a first one that points back to where the walk
 * came from, so that the list has no end: first to the head of the ring, then to the second one.
 */
static void
lead_around(MemoryGuest *memory, MemoryCall call, gint n)
{
    Endless *endless = memory->hook_data;

    if (call == MEMORY_READ)
        linux_guest_put(endless->guest, endless->first + 8,
                        endless->n_reads++ < endless->n_head_reads ? endless->head
                                                                   : endless->second);
}

/* Returns: reads of a list of which the first @n_head_reads find the head before the first process
 */
static unsigned
count_endless_reads(unsigned n_head_reads)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 2);
    const uint64_t first = setup.guest->task + TASK_RING, second = setup.tasks[0] + TASK_RING;
    Endless endless = {
        setup.guest,           first,        linux_guest_get(setup.guest, first + 8),
        LINUX_DIRECT + second, n_head_reads, 0
    };
    linux_guest_put(setup.guest, second, LINUX_DIRECT + first);
    setup.guest->memory->hook_data = &endless;
    setup.guest->memory->hook = lead_around;
    g_autoptr(UprofTaskList) list = read_list(&setup);
    setup.guest->memory->hook = NULL;
    g_assert_false(list->is_complete);
    assert_known(list, 2);
    return endless.n_reads;
}

/* The list is not longer than it may be, and a task is in it once. */
static void
test_endless(void)
{
    enum { HEAD_READS_MAX = 30 };
    unsigned most = 0;

    for (unsigned n = 1; n < HEAD_READS_MAX && most <= UPROF_TASK_LIST_MAX; n++)
        most = MAX(most, count_endless_reads(n));
    g_assert_cmpuint(most, >, UPROF_TASK_LIST_MAX);
}

/* ---- Time ---- */

/* Reads up to one that takes long, or all of them do. */
typedef struct {
    gint n; /* counted down */
    bool is_each;
    gulong us;
} Delay;

static void
delay_read(MemoryGuest *memory, MemoryCall call, gint n)
{
    Delay *delay = memory->hook_data;

    if (call == MEMORY_READ && (--delay->n == 0 || delay->is_each))
        g_usleep(delay->us);
}

static UprofTaskList *
read_slowly(Setup *setup, Delay *delay, uint64_t time_ns)
{
    setup->guest->memory->hook_data = delay;
    setup->guest->memory->hook = delay_read;
    UprofTaskList *list =
        uprof_task_list_read(setup->view->kernel, setup->view->mem, time_ns, NULL);
    setup->guest->memory->hook = NULL;
    return list;
}

/* Each read takes 2 ms, and the list 20 ms: it ends early, also in the middle of threads. */
static void
test_time(void)
{
    enum { THREADS = 30 };

    for (unsigned i = 0; i < 2; i++) {
        g_auto(Setup) setup;
        Delay delay = { .is_each = true, .us = 2000 };
        setup_init(&setup, &plan, 8);
        for (unsigned k = 0; k < THREADS; k++) {
            const uint64_t thread =
                linux_guest_add_task(setup.guest, "thread", 1000 + k, setup.guest->mm);
            linux_guest_list_task(setup.guest, thread, i == 0 ? setup.guest->task : 0);
        }
        const gint before = setup.guest->memory->tally->calls[MEMORY_READ];
        g_autoptr(UprofTaskList) list = read_slowly(&setup, &delay, 20 * UINT64_C(1000) * 1000);
        g_assert_false(list->is_complete);
        g_assert_true(list->is_late);
        g_assert_cmpuint(list->tasks->len, <, 20);
        g_assert_cmpint(setup.guest->memory->tally->calls[MEMORY_READ] - before, <, 40);
    }
}

/* A quarter of the time is up before the tree of numbers is read: the list is made without it. */
static void
test_time_of_guesses(void)
{
    enum { TREE_READS = 4 };
    const LinuxPlan large = { .lists_tasks = true, .more_bytes = 1024 * 1024 };
    uint64_t tasks[MANY * (1 + MORE_THREADS)];
    g_auto(Setup) setup;

    setup_init(&setup, &large, 0);
    const unsigned n = add_many(&setup, tasks);
    const unsigned n_alone = count_reads(&setup, n);
    linux_guest_number_tasks(setup.guest, tasks, n);
    for (gint i = 1; i <= TREE_READS; i++) {
        Delay delay = { .n = i, .us = 300 * 1000 };
        const gint before = setup.guest->memory->tally->calls[MEMORY_READ];
        g_autoptr(UprofTaskList) list = read_slowly(&setup, &delay, UINT64_C(1000) * 1000 * 1000);
        g_assert_true(list->is_complete);
        g_assert_cmpuint(list->tasks->len, ==, n + 1); /* and nginx */
        if (i == 1)
            g_assert_cmpuint((unsigned)(setup.guest->memory->tally->calls[MEMORY_READ] - before),
                             >=, n_alone);
    }
}

/* The time is up while the depths of namespaces are read: ids in them are not read any more. */
static void
test_time_of_ids(void)
{
    enum { LEVELS_READS = 2 }; /* the depths, and the ids */
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 2);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t ids = linux_guest_alloc(setup.guest, 0x40, 64);
        linux_guest_put(setup.guest, setup.tasks[i] + TASK_IDS, LINUX_DIRECT + ids);
        memory_guest_put_u32(setup.guest->memory, ids + IDS_LEVEL, 1);
        memory_guest_put_u32(setup.guest->memory, ids + IDS_NUMBERS, 100 + i);
        memory_guest_put_u32(setup.guest->memory, ids + IDS_NUMBERS + IDS_EACH, 1);
    }
    Delay none = { 0 };
    const gint before = setup.guest->memory->tally->calls[MEMORY_READ];
    g_autoptr(UprofTaskList) all = read_slowly(&setup, &none, LINUX_LIST_NS);
    g_assert_true(all->is_complete);
    g_assert_cmpuint(find_task(all, 101)->inner, ==, 1);
    const gint n = setup.guest->memory->tally->calls[MEMORY_READ] - before;
    Delay delay = { .n = n - LEVELS_READS, .us = 300 * 1000 };
    g_autoptr(UprofTaskList) list = read_slowly(&setup, &delay, 300 * UINT64_C(1000) * 1000);
    g_assert_false(list->is_complete);
    g_assert_true(list->is_late);
    g_assert_cmpuint(list->tasks->len, ==, 3);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpuint(find_task(list, 100 + i)->inner, ==, 100 + i);
        g_assert_cmpuint(find_task(list, 100 + i)->level, ==, 0);
    }
}

static void
test_implausible(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, &plan, 2);
    memory_guest_put_u32(setup.guest->memory, setup.tasks[0] + TASK_PID, UINT32_MAX);
    g_autoptr(UprofTaskList) list = read_list(&setup);
    g_assert_false(list->is_complete);
}

/* clang-format off */
static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    { "processes", test_processes },
    { "threads", test_threads },
    { "guesses", test_guesses },
    { "members", test_members },
    { "clocks", test_clocks },
    { "namespaces", test_namespaces },
    { "names", test_names },
    { "missing", test_missing },
    { "errors", test_errors },
    { "ends", test_ends },
    { "process-ends", test_process_ends },
    { "lies", test_lies },
    { "cycle", test_cycle },
    { "restless", test_restless },
    { "endless", test_endless },
    { "time", test_time },
    { "time-of-guesses", test_time_of_guesses },
    { "time-of-ids", test_time_of_ids },
    { "implausible", test_implausible },
};
/* clang-format on */

/* A slow guest reads the pieces of a list in another order. */
static void
test_slow(gconstpointer data)
{
    is_slow = true;
    tests[GPOINTER_TO_SIZE(data)].run();
    is_slow = false;
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_autofree char *path = g_strconcat("/linux/task-list/", tests[i].name, NULL);
        g_autofree char *slow_path = g_strconcat("/linux/task-list/slow/", tests[i].name, NULL);
        g_test_add_func(path, tests[i].run);
        g_test_add_data_func(slow_path, GSIZE_TO_POINTER(i), test_slow);
    }
    return g_test_run();
}
