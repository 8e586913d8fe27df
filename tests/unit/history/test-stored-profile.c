/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/history/stored-profile-priv.h"
#include "../../../src/history/store-priv.h"
#include "uprof/counted-slices.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/output.h"
#include "uprof/sidecar.h"
#include "uprof/time-text.h"

static UprofRun *
make_run(void)
{
    UprofRun *run = uprof_run_new();
    const uint32_t seconds[] = { 0, 600, 86399 };
    uint64_t n = 1;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];
        if (field->kind == UPROF_RUN_TEXT)
            *(char **)G_STRUCT_MEMBER_P(run, field->offset) = g_strdup(field->key);
    }
    uint64_t *const counts[] = {
        &run->vcpus,     &run->rate_mhz, &run->late,    &run->busy,          &run->skipped,
        &run->stuck,     &run->samples,  &run->running, &run->idles,         &run->complete,
        &run->truncated, &run->unknown,  &run->frames,  &run->named,         &run->by_orc,
        &run->by_cfi,    &run->by_code,  &run->by_fp,   &run->calls_checked, &run->calls_agreed,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        *counts[i] = n++;
    run->started_utc_ns = UINT64_C(1795166100) * UPROF_NS_PER_S;
    run->duration_ns = 1000 * UPROF_NS_PER_MS;
    run->held_ns = 5 * UPROF_NS_PER_MS;
    run->cpu_ns = 96 * UPROF_NS_PER_MS;
    for (uint64_t i = 1; i <= 100; i++)
        uprof_histogram_add(&run->hold, i * UPROF_NS_PER_US);
    uprof_run_add_image(run, "[app]", "/srv/app", "3f2a91c0", NULL)->matched = true;
    g_array_append_vals(run->slices, seconds, G_N_ELEMENTS(seconds));
    run->profile_sha256 = uprof_stored_digest("x", 1);
    return run;
}

static char *
render(const UprofRun *run)
{
    return g_string_free(uprof_output_render(&uprof_format_meta, NULL, run), FALSE);
}

static UprofRun *
read_back(const char *text)
{
    g_autoptr(GError) error = NULL;
    UprofRun *run = uprof_sidecar_parse("it", (UprofSlice){ text, strlen(text) }, &error);

    g_assert_no_error(error);
    return run;
}

/* A sidecar that is read and written again has the same bytes. */
static void
test_round_trip(void)
{
    g_autoptr(UprofRun) run = make_run();
    g_autofree char *first = render(run);
    g_autoptr(UprofRun) read = read_back(first);
    g_autofree char *second = render(read);
    g_autoptr(UprofRun) again = read_back(second);
    g_autofree char *third = render(again);

    g_assert_cmpstr(first, ==, second);
    g_assert_cmpstr(second, ==, third);
    g_assert_cmpuint(read->calls_agreed, ==, 20);
}

/* clang-format off */
static const struct {
    const char *one;
    const char *other;
    const char *both;
} merged_accesses[] = {
    { "direct",         "direct",         "direct" },
    { "direct",         "monitor",        "direct+monitor" },
    { "monitor",        "direct",         "direct+monitor" },
    { "direct+monitor", "direct",         "direct+monitor" },
    { "direct+xen",     "monitor+direct", "direct+monitor+xen" },
    { NULL,             "direct",         "direct" },
    { "direct",         NULL,             "direct" },
    { NULL,             NULL,             NULL },
};
/* clang-format on */

static void
test_merged_accesses(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(merged_accesses); i++) {
        g_autoptr(UprofRun) one = uprof_run_new();
        g_autoptr(UprofRun) other = uprof_run_new();
        g_autoptr(UprofRun) sum = uprof_run_new();
        one->access = g_strdup(merged_accesses[i].one);
        one->domain = g_strdup("new");
        one->samples = 3;
        other->access = g_strdup(merged_accesses[i].other);
        other->domain = g_strdup("old");
        other->samples = 4;
        uprof_stored_merge(sum, one, true);
        uprof_stored_merge(sum, other, false);
        g_assert_cmpstr(sum->access, ==, merged_accesses[i].both);
        g_assert_cmpstr(sum->domain, ==, "new");
        g_assert_cmpuint(sum->samples, ==, 7);
    }
}

static void
test_has_slice(void)
{
    g_autoptr(UprofRun) run = make_run();
    const int64_t day_s = 1795132800;

    g_assert_true(uprof_stored_has_slice(run, day_s));
    g_assert_true(uprof_stored_has_slice(run, day_s + 600));
    g_assert_true(uprof_stored_has_slice(run, day_s + 86399));
    g_assert_false(uprof_stored_has_slice(run, day_s + 1));
}

/* ---- In a store ---- */

#define UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"

enum { DAY_S = 1795132800 }; /* 2026-11-20T00:00:00Z */

/* A store with the folder of one domain */
typedef struct {
    char *top;
    char *folder;
    UprofStore *store;
} Place;

static void
begin(Place *place)
{
    g_autoptr(GError) error = NULL;

    place->top = g_dir_make_tmp("uprof-stored-XXXXXX", NULL);
    place->folder = g_build_filename(place->top, "data", "web-1", NULL);
    place->store = uprof_store_open(place->top, true, &error);
    g_assert_no_error(error);
    g_assert_cmpint(mkdir(place->folder, 0750), ==, 0);
}

static char *
path_in(const Place *place, const char *name)
{
    return g_build_filename(place->folder, name, NULL);
}

static void
put(const Place *place, const char *name, const char *text)
{
    g_autofree char *path = path_in(place, name);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool
exists(const Place *place, const char *name)
{
    g_autofree char *path = path_in(place, name);

    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

static void
move(const Place *place, const char *from, const char *to)
{
    g_autofree char *old = path_in(place, from);
    g_autofree char *new = path_in(place, to);

    g_assert_cmpint(rename(old, new), ==, 0);
}

static void
end(Place *place)
{
    g_autoptr(GDir) dir = g_dir_open(place->folder, 0, NULL);
    g_autofree char *data = g_path_get_dirname(place->folder);
    const char *name;

    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = path_in(place, name);
        unlink(path);
    }
    uprof_store_close(place->store);
    g_assert_cmpint(rmdir(place->folder), ==, 0);
    g_assert_cmpint(rmdir(data), ==, 0);
    g_assert_cmpint(rmdir(place->top), ==, 0);
    g_free(place->folder);
    g_free(place->top);
}

/* Facts of a day whose stacks are the one byte "x". */
static char *
render_day(void)
{
    g_autoptr(UprofRun) run = make_run();

    g_free(run->uuid);
    run->uuid = g_strdup(UUID);
    return render(run);
}

/* If the stacks or the pending sidecar cannot be read for a moment, the day keeps its files. */
static void
test_recover(void)
{
    static const char day[] = "web-1-20261120";
    static const char *const moved[] = { "web-1-20261120.folded.gz", "web-1-20261120.pending" };
    g_autofree char *facts = render_day();
    g_autoptr(GError) error = NULL;
    Place place;

    begin(&place);
    put(&place, "web-1-20261120.folded.gz", "x");
    put(&place, "web-1-20261120.meta.json", "{}");
    put(&place, "web-1-20261120.pending", facts);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(place.store, "web-1", NULL);
    UprofStoreItem *item = uprof_store_item(folder, 0);
    g_assert_cmpstr(item->stem, ==, day);
    for (size_t i = 0; i < G_N_ELEMENTS(moved); i++) {
        move(&place, moved[i], "away");
        g_assert_false(uprof_stored_recover(folder, item, &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
        g_clear_error(&error);
        g_assert_true(item->has_pending);
        move(&place, "away", moved[i]);
        g_assert_true(exists(&place, "web-1-20261120.pending"));
    }
    g_assert_true(uprof_stored_recover(folder, item, &error));
    g_assert_no_error(error);
    g_assert_false(item->has_pending);
    g_assert_false(exists(&place, "web-1-20261120.pending"));
    g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(run->slices->len, ==, 3);
    end(&place);
}

/* A pending sidecar that is cut, or belongs to other stacks, is removed. The old sidecar stays. */
static void
test_recover_before(void)
{
    g_autofree char *facts = render_day();
    g_autofree char *half = g_strndup(facts, strlen(facts) / 2);
    const char *const states[][2] = { { "y", facts }, { "x", half }, { NULL, facts } };
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        Place place;
        begin(&place);
        if (states[i][0])
            put(&place, "web-1-20261120.folded.gz", states[i][0]);
        put(&place, "web-1-20261120.meta.json", "{}");
        put(&place, "web-1-20261120.pending", states[i][1]);
        g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(place.store, "web-1", NULL);
        g_assert_true(uprof_stored_recover(folder, uprof_store_item(folder, 0), &error));
        g_assert_no_error(error);
        g_assert_false(exists(&place, "web-1-20261120.pending"));
        g_assert_true(exists(&place, "web-1-20261120.meta.json"));
        end(&place);
    }
}

static bool
is_in(GHashTable *counted, int64_t at_s)
{
    return g_hash_table_contains(counted, &at_s);
}

/* No new slice gets the second of a slice that a day has counted, even if the slice is deleted. */
static void
test_counted(void)
{
    g_autofree char *facts = render_day();
    Place place;

    begin(&place);
    put(&place, "web-1-20261120.folded.gz", "x");
    put(&place, "web-1-20261120.meta.json", facts);
    put(&place, "web-1-20261121.meta.json", "{");
    g_autoptr(GHashTable) same =
        uprof_counted_slices(place.store, "web-1", UUID, DAY_S + UPROF_DAY_S - 1, NULL);
    g_assert_cmpuint(g_hash_table_size(same), ==, 3);
    g_assert_true(is_in(same, DAY_S) && is_in(same, DAY_S + 600) && is_in(same, DAY_S + 86399));
    g_autofree char *base =
        uprof_store_slice_base(place.store, "web-1", UUID, DAY_S + 600, same, NULL);
    g_assert_true(g_str_has_suffix(base, "/web-1-20261120T001001Z"));
    g_autoptr(GHashTable) before =
        uprof_counted_slices(place.store, "web-1", UUID, DAY_S - 1, NULL);
    g_assert_cmpuint(g_hash_table_size(before), ==, 3);
    g_autoptr(GHashTable) later =
        uprof_counted_slices(place.store, "web-1", UUID, DAY_S + UPROF_DAY_S, NULL);
    g_assert_cmpuint(g_hash_table_size(later), ==, 0);
    g_autoptr(GHashTable) other = uprof_counted_slices(place.store, "db", UUID, DAY_S, NULL);
    g_assert_cmpuint(g_hash_table_size(other), ==, 0);
    end(&place);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stored/round-trip", test_round_trip);
    g_test_add_func("/stored/merged-accesses", test_merged_accesses);
    g_test_add_func("/stored/has-slice", test_has_slice);
    g_test_add_func("/stored/recover", test_recover);
    g_test_add_func("/stored/recover-before", test_recover_before);
    g_test_add_func("/stored/counted", test_counted);
    return g_test_run();
}
