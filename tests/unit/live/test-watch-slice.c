/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-slice-priv.h"

#include "uprof/error.h"
#include "uprof/output.h"

#include "memory-guest.h"

#include <string.h>

enum { RAM_LEN = 4096, FRAMES_MAX = 8 };

static const char facts_text[] =
    "{\"format\": \"virt-uprof-run\", \"version\": 1, \"started\": \"2026-11-20T09:15:00Z\", "
    "\"domain\": {\"name\": \"web-1\", \"vcpus\": 2},"
    " \"samples\": {\"total\": 77}}";
static const char counts_text[] =
    "{\"format\": \"virt-uprof-run\", \"version\": 1, \"started\": \"2026-11-20T09:15:00Z\", "
    "\"duration_ms\": 1000, \"samples\": {\"total\": 3}}";

typedef struct {
    GPtrArray *no_files;
    UprofSymbolSettings symbols;
    UprofLoadSettings settings;
    UprofNames *names;
    UprofLoad *load;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->no_files = g_ptr_array_new();
    fixture->symbols = (UprofSymbolSettings){ .files = fixture->no_files };
    fixture->settings = (UprofLoadSettings){ .replay.symbols = &fixture->symbols };
    fixture->names = uprof_names_new();
    fixture->load = uprof_load_new(fixture->names, &fixture->settings);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_load_free(fixture->load);
    uprof_names_free(fixture->names);
    g_ptr_array_unref(fixture->no_files);
}

static GString *
pack(const void *text, size_t len)
{
    return uprof_output_compress((UprofSlice){ text, len });
}

/* Returns: (transfer full): a slice with these stacks */
static GString *
pack_slice(const char *stacks)
{
    g_autoptr(GString) text = g_string_new_len(counts_text, sizeof(counts_text));

    g_string_append(text, stacks);
    return pack(text->str, text->len);
}

static bool
set_facts(Fixture *fixture, GError **error)
{
    g_autoptr(GString) facts = pack(facts_text, strlen(facts_text));

    return uprof_watch_slice_set_facts(fixture->load, (UprofSlice){ facts->str, facts->len },
                                       error);
}

static bool
add_slice(Fixture *fixture, const GString *slice, GError **error)
{
    return uprof_watch_slice_add(fixture->load, (UprofSlice){ slice->str, slice->len }, error);
}

/* The facts of the guest come once, and counts and stacks with each slice. */
static void
test_merge(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GString) slice = pack_slice("web-1;main;work 2\nweb-1;main 1\n");
    g_autoptr(GError) error = NULL;

    set_facts(fixture, &error);
    g_assert_no_error(error);
    g_assert_true(add_slice(fixture, slice, &error) && add_slice(fixture, slice, &error));
    g_assert_no_error(error);
    g_assert_true(uprof_load_finish(fixture->load));
    const UprofRun *run = fixture->load->run;
    g_assert_cmpstr(run->domain, ==, "web-1");
    g_assert_cmpuint(run->vcpus, ==, 2);
    g_assert_cmpuint(run->samples, ==, 6);
    g_assert_cmpuint(run->duration_ns, ==, UINT64_C(2000000000));
    GString *text = uprof_output_render(&uprof_format_folded, fixture->load->profile, run);
    g_assert_cmpstr(text->str, ==, "web-1;main 2\nweb-1;main;work 4\n");
    g_string_free(text, TRUE);
}

static void
test_hostile(Fixture *fixture, gconstpointer data)
{
    static const char zeros[1 << 16];
    g_autoptr(GString) good = pack_slice("web-1;main;work 2\n");
    g_autoptr(GError) no_error = NULL;

    g_assert_true(set_facts(fixture, &no_error));
    /* every prefix, and a change of every byte, gives an error or samples */
    for (size_t len = 0; len < good->len; len++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(
            uprof_watch_slice_add(fixture->load, (UprofSlice){ good->str, len }, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    }
    for (size_t i = 0; i < good->len; i++) {
        g_autoptr(GString) bad = g_string_new_len(good->str, (gssize)good->len);
        g_autoptr(GError) error = NULL;
        bad->str[i] ^= 0x55;
        g_assert_true(add_slice(fixture, bad, &error) == !error);
    }
    const UprofSlice texts[] = {
        { "", 0 },
        { counts_text, strlen(counts_text) }, /* no NUL, so no stacks */
        { "\0web-1;main 1\n", 14 },           /* no facts */
        { counts_text, sizeof(counts_text) }, /* no stacks: nothing ran, which is good */
        { zeros, sizeof(zeros) },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GString) slice = pack(texts[i].data, texts[i].len);
        g_autoptr(GError) error = NULL;
        const bool is_good = texts[i].data == counts_text && texts[i].len == sizeof(counts_text);
        g_assert_true(add_slice(fixture, slice, &error) == is_good);
    }
}

static void
test_bad_facts(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GString) text = pack("no facts", 8);
    g_autoptr(GError) error = NULL;

    g_assert_false(
        uprof_watch_slice_set_facts(fixture->load, (UprofSlice){ text->str, text->len }, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

/* ---- In a worker ---- */

/* clang-format off */
/* Each weight occurs once, so that a sum tells which stacks are in it. */
static const struct {
    const char *frames;
    uint64_t weight;
} stacks[] = {
    { "vcpu0;nginx;main;copy",          1 },
    { "vcpu0;nginx;main;send;tcp_[k]",  2 },
    { "vcpu0;nginx;main;walk;walk",     4 },
    { "vcpu1;nginx-812;main;copy",      8 },
    { "vcpu1;nginx-x;main;copying",     16 },
    { "vcpu10;sh;main;recopy",          32 },
    { "vcpu0;[idle]",                   1000 },
    { "vcpu1;[idle]",                   2000 },
    { "vcpu1;nginx;main;copy;[idle]",   4000 }, /* with --idle=stack */
};

static const struct {
    const char *rule;
    uint64_t matched;
} counts[] = {
    { "busy > 1 %",               1 + 2 + 4 + 8 + 16 + 32 },
    { "vcpu > 1 %",               32 },
    { "vcpu 0 > 1 %",             1 + 2 + 4 },
    { "vcpu 1 > 1 %",             8 + 16 },
    { "vcpu 10 > 1 %",            32 },
    { "vcpu 2 > 1 %",             0 },
    { "crash",                    0 },
    { "function main > 1 %",      1 + 2 + 4 + 8 + 16 + 32 },
    { "function copy > 1 %",      1 + 8 },
    { "function tcp > 1 %",       2 },
    { "function walk > 1 %",      4 },
    { "function nowhere > 1 %",   0 },
    { "process nginx > 1 %",      1 + 2 + 4 + 8 },
    { "process nginx-812 > 1 %",  8 },
    { "process sh > 1 %",         32 },
    { "process main > 1 %",       0 },
    { "process ngin > 1 %",       0 },
};
/* clang-format on */

typedef struct {
    MemoryGuest *guest;
    UprofAnalysis analysis;
    GPtrArray *rules; /* those of @counts */
} Worker;

static void
set_up_worker(Worker *worker, gconstpointer data)
{
    const MemoryPlan plan = { .n_vcpus = 11, .grain = UPROF_GRAIN_VCPU, .ram_len = RAM_LEN };
    UprofRun *run = uprof_run_new();

    run->domain = g_strdup("web-1");
    worker->guest = memory_guest_open(&plan);
    worker->analysis.run = run;
    worker->analysis.pipeline = uprof_pipeline_new(&worker->guest->base, run, NULL);
    worker->rules = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_watch_rule_free);
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_autoptr(GError) error = NULL;
        g_ptr_array_add(worker->rules, uprof_watch_rule_new(counts[i].rule, &error));
        g_assert_no_error(error);
    }
}

static void
tear_down_worker(Worker *worker, gconstpointer data)
{
    g_ptr_array_unref(worker->rules);
    uprof_pipeline_free(worker->analysis.pipeline);
    uprof_run_free(worker->analysis.run);
    memory_guest_close(worker->guest);
}

static void
add_stack(Worker *worker, const char *text, uint64_t weight)
{
    g_auto(GStrv) words = g_strsplit(text, ";", -1);
    const UprofName *frames[FRAMES_MAX];
    unsigned n = 0;

    for (; words[n]; n++)
        frames[n] = uprof_names_marker(worker->analysis.pipeline->names, words[n]);
    uprof_profile_add(worker->analysis.pipeline->profile, frames, n, weight);
}

/* Returns: the head of the reply */
static UprofWatchReply
take_step(Worker *worker)
{
    g_autoptr(UprofRun) step = uprof_run_new();
    g_autoptr(GByteArray) ask = uprof_watch_slice_ask(step, worker->rules);
    g_autoptr(GByteArray) reply = g_byte_array_new();
    UprofWatchReply head;

    uprof_watch_slice_make(&worker->analysis, (UprofSlice){ ask->data, ask->len }, reply);
    g_assert_cmpuint(reply->len, >, sizeof(head));
    memcpy(&head, reply->data, sizeof(head));
    return head;
}

static void
test_counts(Worker *worker, gconstpointer data)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stacks); i++)
        add_stack(worker, stacks[i].frames, stacks[i].weight);
    const UprofWatchReply head = take_step(worker);
    g_assert_cmpuint(head.running, ==, 1 + 2 + 4 + 8 + 16 + 32);
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_test_message("%s", counts[i].rule);
        g_assert_cmpuint(head.matched[i], ==, counts[i].matched);
    }
}

/* A step has the samples since the step before. Stacks may have no vCPU. */
static void
test_next_step(Worker *worker, gconstpointer data)
{
    add_stack(worker, "nginx;main;send;tcp_[k]", 3);
    add_stack(worker, "[idle]", 5);
    const UprofWatchReply first = take_step(worker), second = take_step(worker);
    g_assert_cmpuint(first.running, ==, 3);
    g_assert_cmpuint(second.running, ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const UprofWatchRule *rule = g_ptr_array_index(worker->rules, i);
        const bool is_in = rule->subject == UPROF_WATCH_BUSY || strcmp(rule->name, "main") == 0 ||
                           strcmp(rule->name, "tcp") == 0 || strcmp(rule->name, "nginx") == 0;
        const bool is_function = rule->subject != UPROF_WATCH_PROCESS || rule->name[0] == 'n';
        g_assert_cmpuint(first.matched[i], ==, is_in && is_function ? 3 : 0);
        g_assert_cmpuint(second.matched[i], ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/watch-slice/merge", Fixture, NULL, set_up, test_merge, tear_down);
    g_test_add("/watch-slice/hostile", Fixture, NULL, set_up, test_hostile, tear_down);
    g_test_add("/watch-slice/bad-facts", Fixture, NULL, set_up, test_bad_facts, tear_down);
    g_test_add("/watch-slice/counts", Worker, NULL, set_up_worker, test_counts, tear_down_worker);
    g_test_add("/watch-slice/next-step", Worker, NULL, set_up_worker, test_next_step,
               tear_down_worker);
    return g_test_run();
}
