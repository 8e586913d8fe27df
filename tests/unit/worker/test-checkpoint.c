/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/checkpoint-priv.h"

#include "uprof/arch.h"
#include "uprof/error.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    UprofNames *names;
    UprofSym *sym;
    UprofProfile *profile, *waits;
    UprofRun *run;
    int fd;
} Fixture;

static const UprofName *
intern(UprofNames *names, const char *text)
{
    return uprof_names_read_back(names, (UprofSlice){ text, strlen(text) });
}

static UprofProfile *
new_profile(UprofNames *names)
{
    return uprof_profile_new(names, intern(names, "web-1"), true);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->names = uprof_names_new();
    f->sym = uprof_sym_new(uprof_arch_find("x86_64"), f->names);
    f->profile = new_profile(f->names);
    f->waits = new_profile(f->names);
    f->run = uprof_run_new();
    f->run->domain = g_strdup("web-1");
    f->fd = uprof_checkpoint_new(&error);
    g_assert_no_error(error);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    close(f->fd);
    uprof_run_free(f->run);
    uprof_profile_free(f->profile);
    uprof_profile_free(f->waits);
    uprof_sym_free(f->sym);
    uprof_names_free(f->names);
}

static void
add_stack(Fixture *f, const char *outer, const char *inner, uint64_t weight)
{
    const UprofName *frames[] = { intern(f->names, outer), intern(f->names, inner) };

    uprof_profile_add(f->profile, frames, G_N_ELEMENTS(frames), weight);
}

static bool
write_checkpoint(const Fixture *f)
{
    const UprofCheckpointProfiles profiles = { f->profile, f->waits };

    return uprof_checkpoint_write(f->fd, &profiles, f->run, f->sym);
}

typedef struct {
    UprofNames *names;
    UprofProfile *profile, *waits;
    UprofRun *run;
    GError *error;
} Result;

static Result
read_back(const Fixture *f)
{
    Result result = { .names = uprof_names_new(), .run = uprof_run_new() };

    result.profile = new_profile(result.names);
    result.waits = new_profile(result.names);
    const UprofCheckpointProfiles profiles = { result.profile, result.waits };
    const bool ok = uprof_checkpoint_read(f->fd, &profiles, result.run, &result.error);
    g_assert_true(ok == !result.error);
    return result;
}

static void
clear_result(Result *result)
{
    g_clear_error(&result->error);
    uprof_profile_free(result->profile);
    uprof_profile_free(result->waits);
    uprof_run_free(result->run);
    uprof_names_free(result->names);
}

static void
append_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GString *text = data;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text, "%s;", uprof_name_text(frames[i]));
    g_string_append_printf(text, "%u ", (unsigned)weight);
}

static void
test_round_trip(Fixture *f, gconstpointer data)
{
    g_autoptr(GString) text = g_string_new(NULL);

    add_stack(f, "main", "work_[k]", 7);
    add_stack(f, "[truncated]", "[app+0x10]", 2);
    f->run->samples = 9;
    f->run->by_cfi = 11;
    uprof_histogram_add(&f->run->hold, 20000);
    g_assert_true(write_checkpoint(f));

    Result result = read_back(f);
    g_assert_no_error(result.error);
    uprof_profile_walk(result.profile, append_stack, text);
    g_assert_cmpstr(text->str, ==, "web-1;[truncated];[app+0x10];2 web-1;main;work_[k];7 ");
    g_assert_cmpuint(result.run->samples, ==, 9);
    g_assert_cmpuint(result.run->by_cfi, ==, 11);
    g_assert_cmpuint(result.run->hold.count, ==, 1);
    clear_result(&result);
}

/* Waits stay apart from samples, even if their stacks are equal. */
static void
test_waits(Fixture *f, gconstpointer data)
{
    const UprofName *frames[] = { intern(f->names, "main"), intern(f->names, "work_[k]") };
    g_autoptr(GString) samples = g_string_new(NULL);
    g_autoptr(GString) waits = g_string_new(NULL);

    add_stack(f, "main", "work_[k]", 7);
    uprof_profile_add(f->waits, frames, G_N_ELEMENTS(frames), 5);
    f->run->waits = (UprofRunWaits){ .walks = 2, .tasks = 30, .total_us = 5 };
    g_assert_true(write_checkpoint(f));

    Result result = read_back(f);
    g_assert_no_error(result.error);
    uprof_profile_walk(result.profile, append_stack, samples);
    uprof_profile_walk(result.waits, append_stack, waits);
    g_assert_cmpstr(samples->str, ==, "web-1;main;work_[k];7 ");
    g_assert_cmpstr(waits->str, ==, "web-1;main;work_[k];5 ");
    g_assert_cmpuint(result.run->waits.walks, ==, 2);
    g_assert_cmpuint(result.run->waits.tasks, ==, 30);
    g_assert_cmpuint(result.run->waits.total_us, ==, 5);
    clear_result(&result);
}

/* A shorter checkpoint replaces a longer one completely. */
static void
test_again(Fixture *f, gconstpointer data)
{
    for (unsigned i = 0; i < 1000; i++) {
        g_autofree char *name = g_strdup_printf("function_%u", i);
        add_stack(f, "main", name, 1);
    }
    g_assert_true(write_checkpoint(f));
    uprof_profile_free(f->profile);
    f->profile = new_profile(f->names);
    add_stack(f, "main", "work", 1);
    g_assert_true(write_checkpoint(f));

    Result result = read_back(f);
    g_assert_no_error(result.error);
    g_assert_cmpuint(uprof_profile_n_stacks(result.profile), ==, 1);
    clear_result(&result);
}

/* A worker that a hostile file controls can fill the memory that it got, and no more. */
static void
test_full(Fixture *f, gconstpointer data)
{
    const char byte = 0;

    g_assert_cmpint(pwrite(f->fd, &byte, 1, UPROF_CHECKPOINT_BYTES_MAX), ==, -1);
    g_assert_cmpint(ftruncate(f->fd, UPROF_CHECKPOINT_BYTES_MAX + 1), ==, -1);
    g_assert_cmpint(ftruncate(f->fd, 0), ==, -1);
}

/* A profile that is too large for a checkpoint is not written. */
static void
test_too_large(Fixture *f, gconstpointer data)
{
    g_autofree char *long_name = g_strnfill(1000, 'x');

    for (unsigned i = 0; i < UPROF_CHECKPOINT_BYTES_MAX / 1000 + 100; i++) {
        g_autofree char *name = g_strdup_printf("%u%s", i, long_name);
        add_stack(f, "main", name, 1);
    }
    g_assert_false(write_checkpoint(f));
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t head[2];
    const char *body;
    const char *error;
} bad_cases[] = {
    { "empty",         { 0, 0 },                  "",                            "*" },
    { "huge-facts",    { UINT64_MAX, 0 },         "",                            "*too large*" },
    { "huge-stacks",   { 2, UINT64_MAX },         "{}",                          "*too large*" },
    { "behind-end",    { 2, 64 * 1024 * 1024 },   "{}",                          "*" },
    { "no-sidecar",    { 2, 0 },                  "{}",                          "*" },
    { "not-json",      { 5, 0 },                  "\xff\xff\xff\xff\xff",        "*" },
    { "bad-stacks",    { 101, 4 },
      "{\"format\":\"virt-uprof-run\",\"version\":1,\"domain\":{\"name\":\"x\"},"
      "\"started\":\"2026-01-01T00:00:00Z\"}    nope",                           "*" },
};
/* clang-format on */

static void
test_bad(Fixture *f, gconstpointer data)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        const size_t len = strlen(bad_cases[i].body);
        g_assert_cmpint(pwrite(f->fd, bad_cases[i].head, sizeof(bad_cases[i].head), 0), ==,
                        sizeof(bad_cases[i].head));
        g_assert_cmpint(pwrite(f->fd, bad_cases[i].body, len, sizeof(bad_cases[i].head)), ==,
                        (ssize_t)len);
        Result result = read_back(f);
        g_test_message("%s", bad_cases[i].name);
        g_assert_error(result.error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_true(g_pattern_match_simple(bad_cases[i].error, result.error->message));
        g_assert_cmpuint(result.run->samples, ==, 0);
        clear_result(&result);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) g_test_add(path, Fixture, NULL, set_up, test, tear_down)
    ADD("/checkpoint/round-trip", test_round_trip);
    ADD("/checkpoint/waits", test_waits);
    ADD("/checkpoint/again", test_again);
    ADD("/checkpoint/full", test_full);
    ADD("/checkpoint/too-large", test_too_large);
    ADD("/checkpoint/bad", test_bad);
    return g_test_run();
}
