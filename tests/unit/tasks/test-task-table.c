/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-groups.h"
#include "uprof/task-stack.h"
#include "uprof/task-table.h"

#include <string.h>

#include "linux-guest.h"

enum {
    REGS_WORDS = 21,
    CALL_WORD = 15,
    SEGMENT_WORD = 17,
    SP_WORD = 19,
    N_TASKS = 3,
    N_MORE = 2 * UPROF_TASK_STACKS_MAX, /* so that their stacks are not read together */
    STACK_BYTES = 16 * 1024,
    LAST_READS = 10, /* of a table: those of stacks are among them */
    CLOCK = 9000
};

#define SECOND UINT64_C(1000000000)

typedef struct {
    LinuxGuest *guest;
    UprofRun *run;
    UprofPipeline *pipeline;
    GString *notices;
    UprofNotices receiver;
} Setup;

static void
note(UprofNoticeKind kind, const char *text, void *data)
{
    g_string_append_printf(data, "%s\n", text);
}

/* nginx (4242) and two other processes wait in equal stacks of the kernel; the last one for I/O. */
static void
add_tasks(LinuxGuest *guest)
{
    const uint64_t regs[REGS_WORDS] = { [CALL_WORD] = 202, [SEGMENT_WORD] = 0x33, [SP_WORD] = 8 };

    for (unsigned i = 0; i < N_TASKS; i++) {
        uint64_t task = guest->task;
        if (i > 0) {
            g_autofree char *name = g_strdup_printf("wait\x1b%u", i);
            task = linux_guest_add_task(guest, name, i, guest->mm);
            linux_guest_list_task(guest, task, 0);
        }
        memory_guest_put_u32(guest->memory, task + TASK_STATE, i == 2 ? 2 : 1);
        linux_guest_put(guest, task + TASK_IO, i > 0 ? TASK_IO_MASK : 0);
        linux_guest_put(guest, task + TASK_LEFT, (CLOCK - 10 * i) * SECOND);
        linux_guest_add_stack(guest, task, LINUX_IMAGE + 0x58, regs, REGS_WORDS);
    }
    linux_guest_put(guest, guest->cpu_areas[0] + CPU_RUN_QUEUE + RUN_QUEUE_CLOCK, CLOCK * SECOND);
    linux_guest_put(guest, guest->cpu_areas[0] + CPU_RUN_QUEUE + RUN_QUEUE_TASK_CLOCK,
                    CLOCK * SECOND);
}

static void
setup_init(Setup *setup, const char *no_member)
{
    const LinuxPlan plan = { .lists_tasks = true,
                             .more_bytes = 256 * 1024 + N_MORE * 2 * STACK_BYTES,
                             .no_member = no_member };
    static UprofSnapshot snapshot;
    g_autoptr(GError) error = NULL;

    setup->guest = linux_guest_new(&plan);
    add_tasks(setup->guest);
    setup->run = uprof_run_new();
    setup->run->domain = g_strdup("web-1");
    setup->run->arch = g_strdup("x86_64");
    setup->run->unwind = g_strdup("auto");
    setup->run->vcpus = 1;
    setup->run->max_depth = 64;
    setup->pipeline = uprof_pipeline_new(&setup->guest->memory->base, setup->run, NULL);
    g_assert_true(uprof_pipeline_begin(setup->pipeline, &error));
    uprof_linux_want_tasks(setup->pipeline->kernel);
    setup->notices = g_string_new(NULL);
    setup->receiver = (UprofNotices){ note, setup->notices };
    uprof_snapshot_clear(&snapshot);
    snapshot.regs = setup->guest->memory->regs[0];
    snapshot.is_prime = true;
    g_assert_true(uprof_pipeline_take(setup->pipeline, &snapshot, &error));
}

static void
setup_clear(Setup *setup)
{
    uprof_pipeline_free(setup->pipeline);
    uprof_run_free(setup->run);
    linux_guest_free(setup->guest);
    g_string_free(setup->notices, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static void
assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        g_error("no '%s' in '%s'", part, text);
}

static GString *
make_text(Setup *setup, const UprofTaskRequest *request, bool is_table)
{
    g_autoptr(GError) error = NULL;
    GString *text =
        is_table
            ? uprof_task_table_make(setup->pipeline, request, "web-1", &setup->receiver, &error)
            : uprof_task_groups_make(setup->pipeline, request, "web-1", &setup->receiver, &error);

    g_assert_no_error(error);
    return text;
}

static uint64_t
find_task(Setup *setup, uint64_t after)
{
    return linux_guest_get(setup->guest, after + TASK_RING) - LINUX_DIRECT - TASK_RING;
}

static void
test_table(void)
{
    const UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_autoptr(GString) text = make_text(&setup, &request, true);
    assert_has(text->str, "web-1: 3 tasks: 0 on a vCPU, 0 runnable, 1 uninterruptible\n");
    assert_has(text->str, "     PID      TID     PPID STATE       TIME     WAIT  WAITS IN");
    assert_has(text->str, "\n       1        1        0 S           0.0s    10.0s  ");
    assert_has(text->str, "\n       2        2        0 D io        0.0s    20.0s  ");
    assert_has(text->str, "  futex    -       nginx\n");
    assert_has(text->str, "  futex    -       wait?1\n");
    g_assert_cmpstr(setup.notices->str, ==, "");
}

/* A task that is about to leave its vCPU still runs: it shows the vCPU, and nothing that it waits
 * for. */
static void
test_running(void)
{
    UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    const uint64_t second = find_task(&setup, find_task(&setup, setup.guest->task));
    memory_guest_put_u32(setup.guest->memory, second + TASK_ON_CPU, 1);
    memory_guest_put_u32(setup.guest->memory, second + TASK_CPU, 3);
    g_autoptr(GString) text = make_text(&setup, &request, true);
    assert_has(text->str, "web-1: 3 tasks: 1 on a vCPU, 0 runnable, 0 uninterruptible\n");
    assert_has(text->str, "\n       2        2        0 D cpu3 ");
    request.is_json = true;
    g_autoptr(GString) json = make_text(&setup, &request, true);
    assert_has(json->str, "\"state_name\": \"running\", \"vcpu\": 3, ");
}

/* The kernel has not noted when process 2 left its CPU. */
static void
test_unknown_wait(void)
{
    UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    const uint64_t second = find_task(&setup, find_task(&setup, setup.guest->task));
    linux_guest_put(setup.guest, second + TASK_LEFT, 0);
    g_autoptr(GString) table = make_text(&setup, &request, true);
    assert_has(table->str, "\n       2        2        0 D io        0.0s        -  ");
    g_assert_true(uprof_task_choice_set_states(&request.choice, "D"));
    g_autoptr(GString) groups = make_text(&setup, &request, false);
    assert_has(groups->str, "web-1 1 task uninterruptible, wait?2[2]: ");
    request.is_json = true;
    g_autoptr(GString) json = make_text(&setup, &request, true);
    g_assert_null(strstr(json->str, "wait_ns"));
    g_assert_true(uprof_task_choice_set_states(&request.choice, "S"));
    g_autoptr(GString) known = make_text(&setup, &request, true);
    assert_has(known->str, "wait_ns");
}

static void
test_table_json(void)
{
    UprofTaskRequest request = { .is_json = true, .uuid = "1234" };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_assert_true(uprof_task_choice_set_states(&request.choice, "D"));
    g_autoptr(GString) text = make_text(&setup, &request, true);
    assert_has(text->str, "{\"domain\": \"web-1\", \"uuid\": \"1234\", \"paused\": false, "
                          "\"held_ns\": 0, "
                          "\"missing\": \"\", \"retries\": 0,\n \"tasks\": [\n"
                          "  {\"pid\": 2, \"tid\": 2, \"parent\": 0, ");
    assert_has(text->str, "\"state\": \"D\", \"state_name\": \"uninterruptible\", \"in_io\": true");
    assert_has(text->str, "\"wait_ns\": 20000000000");
    assert_has(text->str, "\"syscall_number\": 202, \"syscall\": \"futex\"");
    g_assert_null(strstr(text->str, "nginx"));
    g_assert_true(g_str_has_suffix(text->str, "}], \"complete\": true}\n"));
    request.is_json = false;
    g_autoptr(GString) table = make_text(&setup, &request, true);
    g_assert_true(g_str_has_prefix(table->str, "web-1: 1 task: 0 on a vCPU, "));
}

static unsigned
count_parts(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

/* A text that becomes too long ends with a complete row. */
static void
test_full(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    for (unsigned i = 0; i < 8; i++) {
        const bool is_table = i & 1, is_json = i & 2, is_tight = i & 4;
        const UprofTaskRequest request = {
            .is_json = is_json,
            .most = is_tight  ? 1
                    : is_json ? 300
                              : 100,
        };
        g_string_truncate(setup.notices, 0);
        g_autoptr(GString) text = make_text(&setup, &request, is_table);
        const unsigned n = is_json ? count_parts(text->str, "\"tid\"")
                           : is_table
                               ? count_parts(text->str, "futex")
                               : count_parts(text->str, "wait?") + count_parts(text->str, "nginx[");
        g_autofree char *notice = g_strdup_printf(
            "web-1: %u task%s left out: the text is longer than 48 MiB; choose fewer tasks\n",
            N_TASKS - n, N_TASKS - n == 1 ? " is" : "s are");
        g_assert_cmpuint(n, <, N_TASKS);
        g_assert_true(!is_tight || n == 0 || (!is_json && !is_table));
        g_assert_cmpstr(setup.notices->str, ==, notice);
        g_assert_true(!is_json || g_str_has_suffix(text->str, "], \"complete\": false}\n"));
    }
}

/* Equal stacks are shown once; another state is another group. */
static void
test_groups(void)
{
    const UprofTaskRequest request = { .choice.order = UPROF_TASK_BLOCKED };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_autoptr(GString) text = make_text(&setup, &request, false);
    g_assert_true(
        g_str_has_prefix(text->str, "web-1 1 task uninterruptible for 20.0s, wait?2[2]: "));
    assert_has(text->str, "\nweb-1 2 tasks sleeping for up to 10.0s, wait?1[1], nginx[4242]: ");
    assert_has(text->str, "\n  #0   ffffffff81000058  ");
}

static void
test_groups_json(void)
{
    const UprofTaskRequest request = { .is_json = true };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_autoptr(GString) text = make_text(&setup, &request, false);
    assert_has(text->str, "\"stacks\": [\n  {\"tasks\": [{\"pid\": 1, ");
    assert_has(text->str, "\"frames\": [{\"address\": \"0xffffffff81000058\"");
}

/* nginx and process 2 wait for a mutex each; process 1 holds that of nginx, and nobody the other.
 */
static void
add_locks(LinuxGuest *guest, uint64_t first, uint64_t second)
{
    const uint64_t words[REGS_WORDS] = { 0 }, tasks[] = { guest->task, second };

    for (unsigned i = 0; i < G_N_ELEMENTS(tasks); i++) {
        const uint64_t lock = linux_guest_alloc(guest, LOCK_BYTES, 64);
        const uint64_t end = linux_guest_add_stack(
            guest, tasks[i], LINUX_IMAGE + LINUX_LOCK_MUTEX + 1, words, REGS_WORDS);
        linux_guest_add_waiter(guest, end - REGS_WORDS * 8, tasks[i], lock + LOCK_HEAD);
        linux_guest_put(guest, lock + LOCK_OWNER, i == 0 ? LINUX_DIRECT + first : 1);
        memory_guest_put_u32(guest->memory, tasks[i] + TASK_STATE, 2);
    }
}

/* The owner is named even if it is not chosen itself. */
static void
test_locks(void)
{
    UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    const uint64_t first = find_task(&setup, setup.guest->task);
    add_locks(setup.guest, first, find_task(&setup, first));
    g_assert_true(uprof_task_choice_set_states(&request.choice, "D"));
    g_autoptr(GString) text = make_text(&setup, &request, false);
    assert_has(text->str, ": 1 frame, ");
    assert_has(text->str, "\n  waits for a mutex at ffff88");
    assert_has(text->str, " that wait?1[1] (sleeping for 10.0s) holds\n");
    assert_has(text->str, ", just released\n");
    g_assert_null(strstr(text->str, "sleeping for up"));
    request.is_json = true;
    for (unsigned i = 0; i < 2; i++) {
        g_autoptr(GString) json = make_text(&setup, &request, i == 0);
        assert_has(json->str, "\"lock\": {\"kind\": \"mutex\", \"address\": \"0xffff88");
        assert_has(json->str, "\"holder\": \"held\", \"waiters\": 1, \"owner\": {\"pid\": 1, "
                              "\"tid\": 1, \"name\": \"wait?1\", \"state_name\": \"sleeping\", "
                              "\"wait_ns\": 10000000000}}");
        assert_has(json->str, "\"holder\": \"released\", \"waiters\": 1}");
    }
    g_assert_cmpstr(setup.notices->str, ==, "");
}

/* The time is up before the first stack is read. */
static void
test_time(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    for (unsigned i = 0; i < 4; i++) {
        const UprofTaskRequest request = { .kernel_ns = 1, .is_json = i & 1 };
        g_string_truncate(setup.notices, 0);
        g_autoptr(GString) text = make_text(&setup, &request, i & 2);
        g_assert_cmpstr(setup.notices->str, ==,
                        "web-1: the stacks of 3 tasks were not read, to save time; choose fewer "
                        "tasks\n");
        g_assert_null(strstr(text->str, "futex"));
        g_assert_true(!request.is_json || strstr(text->str, "\"complete\": false}\n"));
        g_assert_true(i & 2 || strstr(text->str, "not read, to save time"));
    }
}

/* Delays one read. */
static void
delay_read(MemoryGuest *memory, MemoryCall call, gint n)
{
    gint *n_left = memory->hook_data;

    if (call == MEMORY_READ && --*n_left == 0)
        g_usleep(300 * 1000);
}

/* The time is up after some stacks were read, and while others are. */
static void
test_time_between(void)
{
    const UprofTaskRequest patient = { 0 }, request = { .kernel_ns = 200 * 1000 * 1000 };
    unsigned n_some = 0;
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    for (unsigned i = 0; i < N_MORE; i++) {
        const uint64_t task = linux_guest_add_task(setup.guest, "more", 100 + i, setup.guest->mm);
        linux_guest_list_task(setup.guest, task, 0);
        linux_guest_add_stack(setup.guest, task, LINUX_IMAGE + 0x58, NULL, 0);
    }
    const gint before = setup.guest->memory->tally->calls[MEMORY_READ];
    g_autoptr(GString) whole = make_text(&setup, &patient, true);
    const gint n_reads = setup.guest->memory->tally->calls[MEMORY_READ] - before;
    assert_has(whole->str, "web-1: 131 tasks: ");
    g_assert_cmpstr(setup.notices->str, ==, "");
    for (gint n = MAX(n_reads - LAST_READS, 1); n <= n_reads; n++) {
        gint n_left = n;
        setup.guest->memory->hook_data = &n_left;
        setup.guest->memory->hook = delay_read;
        g_string_truncate(setup.notices, 0);
        g_autoptr(GString) text = make_text(&setup, &request, true);
        setup.guest->memory->hook = NULL;
        assert_has(text->str, "web-1: 131 tasks: ");
        n_some += strstr(setup.notices->str, "the stacks of ") &&
                  !strstr(setup.notices->str, "the stacks of 131 tasks");
    }
    g_assert_cmpuint(n_some, >, 0);
}

/* The time is up before the first task is read. */
static void
test_no_time(void)
{
    const UprofTaskRequest request = { .list_ns = 1 };
    g_autoptr(GError) error = NULL;
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_assert_null(
        uprof_task_table_make(setup.pipeline, &request, "web-1", &setup.receiver, &error));
    g_assert_cmpstr(error->message, ==, "no task can be read in time");
}

static void
test_missing(void)
{
    const UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, "stack");
    g_autoptr(GString) text = make_text(&setup, &request, true);
    g_assert_cmpstr(setup.notices->str, ==,
                    "web-1: the kernel's types do not tell of a task: its stack (stack)\n");
    assert_has(text->str, "  -         -        -       nginx\n");
}

/* The ring of tasks is followed no further than to the first one. */
static void
test_incomplete(void)
{
    const UprofTaskRequest request = { .is_json = true };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    linux_guest_put(setup.guest, setup.guest->task + TASK_RING, 8);
    g_autoptr(GString) text = make_text(&setup, &request, true);
    g_assert_cmpstr(setup.notices->str, ==,
                    "web-1: the list of tasks may lack some: it changed all the time, is longer "
                    "than 100000 tasks, or the guest's memory is malformed\n");
    assert_has(text->str, "\"complete\": false}\n");
    assert_has(text->str, "\"retries\": 100,\n");
}

static void
test_nothing(void)
{
    UprofTaskRequest request = { 0 };
    g_auto(Setup) setup;

    setup_init(&setup, NULL);
    g_assert_true(uprof_task_choice_set_pattern(&request.choice, "nobody"));
    g_autoptr(GString) groups = make_text(&setup, &request, false);
    g_assert_cmpstr(groups->str, ==, "web-1: no such task\n");
    g_autoptr(GString) table = make_text(&setup, &request, true);
    assert_has(table->str, "web-1: 0 tasks: ");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tasks/task-table/table", test_table);
    g_test_add_func("/tasks/task-table/unknown-wait", test_unknown_wait);
    g_test_add_func("/tasks/task-table/table-json", test_table_json);
    g_test_add_func("/tasks/task-table/running", test_running);
    g_test_add_func("/tasks/task-table/full", test_full);
    g_test_add_func("/tasks/task-table/groups", test_groups);
    g_test_add_func("/tasks/task-table/groups-json", test_groups_json);
    g_test_add_func("/tasks/task-table/locks", test_locks);
    g_test_add_func("/tasks/task-table/time", test_time);
    g_test_add_func("/tasks/task-table/time-between", test_time_between);
    g_test_add_func("/tasks/task-table/no-time", test_no_time);
    g_test_add_func("/tasks/task-table/missing", test_missing);
    g_test_add_func("/tasks/task-table/incomplete", test_incomplete);
    g_test_add_func("/tasks/task-table/nothing", test_nothing);
    return g_test_run();
}
