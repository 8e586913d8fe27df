/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/session-tasks.h"

#include "linux-guest.h"
#include "uprof/clock.h"
#include "uprof/task-reply.h"

#include <string.h>

enum {
    CALL_PREPARE,
    CALL_READ,
    CALL_WRITE,
    SHORT_MS = 60,
    LIMIT_S = 60,
    BYTES = 0x40,      /* of a structure */
    HOLD_OF_TASKS = 2, /* the first hold is for the snapshot that shows the kernel */
};

/* A session of a Linux guest with one task that sleeps. */
typedef struct {
    LinuxGuest *guest;
    GPtrArray *no_names;
    GArray *no_outputs;
    UprofWorkers *workers;
    UprofSession session;
    UprofSessionTasks tasks;
    GString *notices;
    UprofNotices receiver;
    uint64_t cgroup_at; /* guest-physical address of the name of the task's cgroup */
    gint slow_ms;       /* atomic: how long each read of the worker takes from the hold on */
    gint n_held;        /* atomic: reads of the worker in the hold */
} Setup;

static const UprofAnalysisCall calls[] = {
    [CALL_PREPARE] = uprof_task_reply_prepare,
    [CALL_READ] = uprof_task_reply_read_table,
    [CALL_WRITE] = uprof_task_reply_write,
};

static void
note(UprofNoticeKind kind, const char *text, void *data)
{
    g_string_append_printf(data, "%s\n", text);
}

static void
meet_read(MemoryGuest *guest, MemoryCall call, gint n)
{
    Setup *setup = guest->hook_data;

    if (call == MEMORY_HOLD && n == HOLD_OF_TASKS)
        linux_guest_put_text(setup->guest, setup->cgroup_at, "during.service");
    if (call != MEMORY_READ || !guest->base.worker_reads)
        return;
    if (g_atomic_int_get(&guest->tally->is_held))
        g_atomic_int_inc(&setup->n_held);
    g_usleep((gulong)g_atomic_int_get(&setup->slow_ms) * 1000);
}

static uint64_t
add_node(LinuxGuest *guest, uint64_t name_at, uint64_t parent)
{
    const uint64_t node = linux_guest_alloc(guest, BYTES, 8);

    linux_guest_put(guest, node + KERNFS_NAME, LINUX_DIRECT + name_at);
    linux_guest_put(guest, node + KERNFS_PARENT, parent == 0 ? 0 : LINUX_DIRECT + parent);
    return node;
}

/* The task sleeps, and is in the cgroup before.service. */
static void
add_task(Setup *setup)
{
    LinuxGuest *guest = setup->guest;
    const uint64_t set = linux_guest_alloc(guest, BYTES, 8);
    const uint64_t cgroup = linux_guest_alloc(guest, BYTES, 8);
    const uint64_t root_at = linux_guest_alloc(guest, BYTES, 8);

    setup->cgroup_at = linux_guest_alloc(guest, BYTES, 8);
    linux_guest_put_text(guest, root_at, "");
    linux_guest_put_text(guest, setup->cgroup_at, "before.service");
    linux_guest_put(guest, guest->task + TASK_SET, LINUX_DIRECT + set);
    linux_guest_put(guest, set + SET_CGROUP, LINUX_DIRECT + cgroup);
    linux_guest_put(guest, cgroup + CGROUP_NODE,
                    LINUX_DIRECT + add_node(guest, setup->cgroup_at, add_node(guest, root_at, 0)));
    memory_guest_put_u32(guest->memory, guest->task + TASK_STATE, 1);
}

static UprofDomain *
make_domain(void)
{
    UprofDomain *domain = g_new0(UprofDomain, 1);

    domain->name = g_strdup("web-1");
    g_strlcpy(domain->uuid, "9b1c2a9e-0000-4000-8000-000000000001", sizeof(domain->uuid));
    domain->xml = g_new0(UprofDomainXml, 1);
    uprof_metadata_init(&domain->xml->metadata);
    return domain;
}

static void
start_worker(Setup *setup)
{
    const UprofWorkerPlan plan = {
        .symbols = { .files = setup->no_names },
        .calls = calls,
        .n_calls = G_N_ELEMENTS(calls),
    };
    UprofSession *session = &setup->session;
    const UprofWorkerJob job = { .shown = session->shown,
                                 .guest = session->guest,
                                 .run = session->run,
                                 .metadata_symbols = setup->no_names,
                                 .metadata_folders = setup->no_names,
                                 .outputs = setup->no_outputs,
                                 .file_names = setup->no_names,
                                 .notices = &setup->receiver };
    g_autoptr(GError) error = NULL;

    setup->workers = uprof_workers_new(&plan, &error);
    g_assert_no_error(error);
    session->worker = uprof_worker_new(setup->workers, &job, session->rules, &error);
    g_assert_no_error(error);
}

static void
make_sampler(UprofSession *session)
{
    session->wanted = g_new0(bool, session->guest->n_vcpus);
    session->sizes = g_new0(UprofWindowSize, session->guest->n_vcpus);
    for (unsigned i = 0; i < session->guest->n_vcpus; i++) {
        session->wanted[i] = true;
        uprof_window_size_init(&session->sizes[i]);
    }
    const UprofSamplerSettings settings = {
        .rate_mhz = 1000,
        .budget_ppm = 1000 * 1000,
        .max_pause_ns = session->settings.max_pause_ns,
        .wanted = session->wanted,
        .sizes = session->sizes,
        .links = uprof_worker_links(session->worker),
        .chains = uprof_worker_chains(session->worker),
        .owner = session->worker,
    };
    session->sampler = uprof_sampler_new(session->guest, &settings, NULL);
}

static void
setup_init(Setup *setup, bool is_paused)
{
    const LinuxPlan plan = { .lists_tasks = true, .more_bytes = 256 * 1024 };
    UprofSession *session = &setup->session;

    *setup =
        (Setup){ .guest = linux_guest_new(&plan),
                 .no_names = g_ptr_array_new(),
                 .no_outputs = g_array_new(FALSE, FALSE, sizeof(UprofWorkerOutput)),
                 .notices = g_string_new(NULL),
                 .tasks = { .prepare = CALL_PREPARE, .read = CALL_READ, .write = CALL_WRITE } };
    setup->receiver = (UprofNotices){ note, setup->notices };
    add_task(setup);
    setup->guest->memory->base.paused = is_paused;
    setup->guest->memory->hook = meet_read;
    setup->guest->memory->hook_data = setup;
    session->shown = g_strdup("web-1");
    session->domain = make_domain();
    uprof_settings_init(&session->settings);
    session->settings.pause_ns = LIMIT_S * UPROF_NS_PER_S;
    session->guest = &setup->guest->memory->base;
    session->rules = uprof_file_rules_new();
    session->run = uprof_run_new();
    session->run->domain = g_strdup("web-1");
    session->run->arch = g_strdup("x86_64");
    session->run->unwind = g_strdup("auto");
    session->run->vcpus = session->guest->n_vcpus;
    session->run->max_depth = 64;
    start_worker(setup);
    make_sampler(session);
}

static void
setup_clear(Setup *setup)
{
    UprofSession *session = &setup->session;

    uprof_sampler_free(session->sampler);
    uprof_worker_free(session->worker);
    uprof_workers_free(setup->workers);
    uprof_file_rules_free(session->rules);
    uprof_run_free(session->run);
    uprof_domain_free(session->domain);
    uprof_settings_clear(&session->settings);
    g_free(session->shown);
    g_free(session->sizes);
    g_free(session->wanted);
    linux_guest_free(setup->guest);
    g_array_unref(setup->no_outputs);
    g_ptr_array_unref(setup->no_names);
    g_string_free(setup->notices, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static void
assert_matches(const char *text, const char *pattern)
{
    if (!g_regex_match_simple(pattern, text, 0, 0))
        g_error("no '%s' in '%s'", pattern, text);
}

static GString *
read_tasks(Setup *setup, bool is_json)
{
    GString *text;

    setup->tasks.request.is_json = is_json;
    g_assert_cmpint(
        uprof_session_read_tasks(&setup->session, &setup->tasks, &text, &setup->receiver), ==,
        UPROF_ERROR_NONE);
    return text;
}

static void
assert_holds(const Setup *setup, int n)
{
    g_assert_cmpint(setup->guest->memory->tally->holds, ==, n);
    g_assert_cmpint(setup->guest->memory->tally->releases, ==, n);
}

static void
test_runs(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, false);
    setup.session.settings.pause_ns = 0;
    g_autoptr(GString) text = read_tasks(&setup, true);
    assert_matches(text->str, "^{\"domain\": \"web-1\", .*\"paused\": false, \"held_ns\": 0, ");
    assert_matches(text->str, "\"name\": \"nginx\".*\"cgroup\": \"before.service\"");
    g_assert_cmpstr(setup.notices->str, ==, "");
    assert_holds(&setup, HOLD_OF_TASKS - 1);
}

static void
test_held(gconstpointer data)
{
    const bool is_json = GPOINTER_TO_INT(data) == 1;
    g_auto(Setup) setup;

    setup_init(&setup, false);
    g_autoptr(GString) text = read_tasks(&setup, is_json);
    assert_matches(text->str,
                   is_json ? "\"paused\": false, \"held_ns\": [1-9][0-9]*, " : "^web-1: 1 task: ");
    /* nothing is remembered from before the hold */
    assert_matches(text->str, "during[.]service.*nginx|nginx.*during[.]service");
    assert_matches(setup.notices->str, "^web-1: held for [0-9.]+ [mu]?s\n$");
    g_assert_cmpint(setup.n_held, >, 0);
    assert_holds(&setup, HOLD_OF_TASKS);
}

/* All tasks are read, although the hold ends early. */
static void
test_too_long(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, false);
    setup.session.settings.pause_ns = SHORT_MS * UPROF_NS_PER_MS;
    setup.slow_ms = 2 * SHORT_MS;
    g_autoptr(GString) text = read_tasks(&setup, true);
    assert_matches(text->str, "\"held_ns\": [1-9][0-9]*, ");
    assert_matches(text->str, "\"name\": \"nginx\"");
    assert_matches(setup.notices->str,
                   "^web-1: the pause ended after [0-9.]+ m?s, before all tasks were read: the "
                   "others were read while the guest ran; try --max-pause [1-9]s\n$");
    assert_holds(&setup, HOLD_OF_TASKS);
}

/* A guest that somebody else has paused is not held, and stays as it is. */
static void
test_paused(void)
{
    g_auto(Setup) setup;

    setup_init(&setup, true);
    g_autoptr(GString) text = read_tasks(&setup, true);
    assert_matches(text->str, "\"paused\": true, \"held_ns\": 0, ");
    g_assert_cmpstr(setup.notices->str, ==, "");
    g_assert_cmpint(setup.guest->memory->tally->calls[MEMORY_HOLD], ==, 0);
}

static void
test_busy(void)
{
    g_auto(Setup) setup;
    GString *text;

    setup_init(&setup, false);
    memory_guest_rule(setup.guest->memory, MEMORY_HOLD, HOLD_OF_TASKS, HOLD_OF_TASKS, UPROF_BUSY);
    g_assert_cmpint(uprof_session_read_tasks(&setup.session, &setup.tasks, &text, &setup.receiver),
                    ==, UPROF_ERROR_NOT_FOUND);
    g_assert_null(text);
    g_assert_cmpstr(setup.notices->str, ==,
                    "web-1: somebody else stops, migrates or saves the domain; try again later\n");
    assert_holds(&setup, HOLD_OF_TASKS - 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/session-tasks/runs", test_runs);
    g_test_add_data_func("/session-tasks/held/text", GINT_TO_POINTER(0), test_held);
    g_test_add_data_func("/session-tasks/held/json", GINT_TO_POINTER(1), test_held);
    g_test_add_func("/session-tasks/too-long", test_too_long);
    g_test_add_func("/session-tasks/paused", test_paused);
    g_test_add_func("/session-tasks/busy", test_busy);
    return g_test_run();
}
