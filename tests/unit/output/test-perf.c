/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/output.h"

enum { DEPTH = 1000, BYTES_PER_FRAME = 42, RECORDS_MAX = 200 * 1000 };

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
    const UprofName *frames[DEPTH]; /* each is 42 bytes in the file */
} Fixture;

static void
init_fixture(Fixture *fixture, bool is_timed)
{
    fixture->names = uprof_names_new();
    fixture->run = uprof_run_new();
    fixture->profile =
        uprof_profile_new(fixture->names, uprof_names_marker(fixture->names, "vm"), false);
    for (unsigned i = 0; i < DEPTH; i++)
        fixture->frames[i] = uprof_names_marker(fixture->names, "function_twelve");
    if (is_timed)
        uprof_profile_keep_times(fixture->profile);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_profile_free(fixture->profile);
    uprof_names_free(fixture->names);
    uprof_run_free(fixture->run);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
add(const Fixture *fixture, unsigned depth, uint32_t count, uint32_t weight)
{
    const UprofTick tick = { .time_ns = UPROF_NS_PER_S, .count = count, .weight = weight };

    uprof_profile_add_tick(fixture->profile, fixture->frames, depth, tick, true);
}

/* Returns: the error, or "" if the file was written */
static char *
refuse(const Fixture *fixture)
{
    UprofSink sink = { .text = g_string_new(NULL) };

    uprof_format_perf.write(fixture->profile, fixture->run, &sink);
    char *why = g_strdup(sink.error ? sink.error->message : "");
    g_assert_true((sink.text->len == 0) == (why[0] != '\0'));
    g_string_free(sink.text, TRUE);
    g_clear_error(&sink.error);
    return why;
}

static void
check_bytes(bool is_timed, unsigned times, uint32_t count, uint32_t weight)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, is_timed);
    for (unsigned i = 0; i < times; i++)
        add(&fixture, DEPTH, count, weight);
    g_autofree char *why = refuse(&fixture);
    g_assert_true(g_pattern_match_simple(
        "format 'perf' has a record for each sample, and * MiB of them are too many; *", why));
    const uint64_t mib = g_ascii_strtoull(strstr(why, "and ") + 4, NULL, 10);
    const uint64_t frames = (uint64_t)times * count * weight * DEPTH * BYTES_PER_FRAME >> 20;
    g_assert_cmpuint(mib, >=, frames);
    g_assert_cmpuint(mib, <=, frames + frames / 20);
}

static void
test_bytes(void)
{
    check_bytes(false, 1, RECORDS_MAX, 1);
    check_bytes(true, 1, RECORDS_MAX, 1);
    check_bytes(true, 1, 1000, RECORDS_MAX / 1000);
    check_bytes(true, 10, RECORDS_MAX / 10, 1);
}

/* The number of bytes overflows 64 bits. */
static void
test_forged(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, true);
    add(&fixture, DEPTH, UINT32_MAX, UINT32_MAX);
    add(&fixture, DEPTH, 1, 1);
    g_autofree char *why = refuse(&fixture);
    g_assert_nonnull(strstr(why, "17592186044415 MiB of them are too many"));
}

static void
test_small(void)
{
    for (unsigned is_timed = 0; is_timed < 2; is_timed++) {
        g_auto(Fixture) fixture = { 0 };
        init_fixture(&fixture, is_timed);
        add(&fixture, DEPTH, 10, 1);
        g_autofree char *why = refuse(&fixture);
        g_assert_cmpstr(why, ==, "");
    }
}

/* A frame has the module of its function. */
static void
test_module(void)
{
    g_auto(Fixture) fixture = { 0 };
    UprofSink sink = { .text = g_string_new(NULL) };

    init_fixture(&fixture, true);
    add(&fixture, 1, 1, 1);
    uprof_format_perf.write(fixture.profile, fixture.run, &sink);
    g_assert_nonnull(strstr(sink.text->str, " function_twelve ([app])\n"));
    g_string_truncate(sink.text, 0);
    uprof_name_add_module(fixture.frames[0], uprof_names_marker(fixture.names, "libc.so.6"));
    uprof_format_perf.write(fixture.profile, fixture.run, &sink);
    g_assert_nonnull(strstr(sink.text->str, " function_twelve (libc.so.6)\n"));
    g_assert_no_error(sink.error);
    g_string_free(sink.text, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/perf/bytes", test_bytes);
    g_test_add_func("/perf/forged", test_forged);
    g_test_add_func("/perf/small", test_small);
    g_test_add_func("/perf/module", test_module);
    return g_test_run();
}
