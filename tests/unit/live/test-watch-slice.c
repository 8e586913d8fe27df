/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-slice-priv.h"

#include "uprof/error.h"
#include "uprof/output.h"

#include <string.h>

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

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/watch-slice/merge", Fixture, NULL, set_up, test_merge, tear_down);
    g_test_add("/watch-slice/hostile", Fixture, NULL, set_up, test_hostile, tear_down);
    g_test_add("/watch-slice/bad-facts", Fixture, NULL, set_up, test_bad_facts, tear_down);
    return g_test_run();
}
