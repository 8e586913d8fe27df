/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/sidecar-priv.h"
#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/sidecar.h"

/* clang-format off */
#define HEAD "{\"format\": \"virt-uprof-run\", \"version\": 1, \"started\": \"2026-11-20T09:15:00Z\""
#define WITH(members) HEAD ", " members "}"
#define UUID "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"

static const char whole[] = WITH(
    "\"program\": \"virt-uprof 0.1.0\",\n"
    " \"domain\": {\"name\": \"web-1\", \"uuid\": \"" UUID "\", \"driver\": \"QEMU\", \"arch\": \"x86_64\", \"vcpus\": 2},\n"
    " \"duration_ms\": 10001, \"ended_by\": \"duration\",\n"
    " \"rate\": {\"asked_millihertz\": 99000, \"got_millihertz\": 98940}, \"access\": \"direct\", \"access_why\": \"\", \"unwind\": \"cfi\",\n"
    " \"samples\": {\"total\": 1980, \"running\": 1168, \"idle\": 812}, \"ticks\": {\"late\": 1, \"busy\": 2, \"skipped\": 3, \"stuck\": 4},\n"
    " \"stacks\": {\"complete\": 1134, \"truncated\": 28, \"unknown\": 6},\n"
    " \"frames\": {\"total\": 14211, \"named\": 14068, \"orc\": 77, \"cfi\": 12890, \"code\": 1101, \"fp\": 220}, \"call_sites\": {\"checked\": 13040, \"agreed\": 12988},\n"
    " \"hold_us\": {\"count\": 1168, \"min\": 16, \"p50\": 18, \"p90\": 21, \"p99\": 42, \"max\": 97, \"total\": 22140},\n"
    " \"stopped_us\": {\"count\": 0, \"min\": 0, \"p50\": 0, \"p90\": 0, \"p99\": 0, \"max\": 0, \"total\": 0},\n"
    " \"held_share_ppm\": 1180, \"profiler_cpu_ms\": 96,\n"
    " \"linux\": {\"release\": \"6.1.0-56-cloud-amd64\", \"symbols\": 87347, \"modules\": 12, \"orc_rules\": 368456, \"orc_version\": 4,"
    " \"btf\": true, \"processes\": true, \"kernel_stacks\": 500, \"kernel_complete\": 499, \"user_stacks\": 900, \"user_complete\": 800},\n"
    " \"images\": [{\"name\": \"[app]\", \"build_id\": \"3f2a91c0\", \"symbols\": \"app.dbg\", \"matched\": true, \"module\": true, \"memory\": true},"
    " {\"name\": \"[app2]\", \"build_id\": \"\", \"symbols\": \"\", \"matched\": false}],\n"
    " \"slices\": [600,0, 86399],\n"
    " \"files\": [\"web-1-20261120T091500Z.folded.gz\"], \"of-tomorrow\": [{}]");

#define BAD(what) "it: bad value of '" what "'"
static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must be read */
} cases[] = {
    { "least",           HEAD "}",                                   NULL },
    { "names-of-none",   WITH("\"domain\": {\"name\": \"\"}"),       NULL },
    { "empty",           "",                                         "it: empty" },
    { "cut",             HEAD,                                       "it: ends too early" },
    { "blank",           "  ",                                       "it: is not a sidecar of virt-uprof" },
    { "array",           "[]",                                       "it: is not a sidecar of virt-uprof" },
    { "null",            "null",                                     "it: is not a sidecar of virt-uprof" },
    { "other",           "{\"format\": \"virt-uprof-diff\", \"version\": 1}", "it: is not a sidecar of virt-uprof" },
    { "no-version",      "{\"format\": \"virt-uprof-run\"}",         "it: is not a sidecar of virt-uprof" },
    { "later",           "{\"format\": \"virt-uprof-run\", \"version\": 2}", "it: is of another version of virt-uprof" },
    { "no-start",        "{\"format\": \"virt-uprof-run\", \"version\": 1}", BAD("started") },
    { "start-of-never",  WITH("\"started\": \"2026-13-20T09:15:00Z\""), BAD("started") },
    { "start-too-late",  WITH("\"started\": \"9999-01-01T00:00:00Z\""), BAD("started") },
    { "start-too-soon",  WITH("\"started\": \"1969-12-31T23:59:59Z\""), BAD("started") },
    { "start-with-more", WITH("\"started\": \"2026-11-20T09:15:00Z \""), BAD("started") },
    { "start-signed",    WITH("\"started\": \"2026-11-20T+9:15:00Z\""), BAD("started") },
    { "start-number",    WITH("\"started\": 5"),                     BAD("started") },
    { "domain-text",     WITH("\"domain\": \"web-1\""),              BAD("domain") },
    { "domain-array",    WITH("\"domain\": []"),                     BAD("domain") },
    { "domain-null",     WITH("\"domain\": null"),                   BAD("domain") },
    { "name-number",     WITH("\"domain\": {\"name\": 1}"),          BAD("domain.name") },
    { "samples-text",    WITH("\"samples\": {\"total\": \"5\"}"),    BAD("samples.total") },
    { "samples-negative", WITH("\"samples\": {\"total\": -1}"),      BAD("samples.total") },
    { "samples-fraction", WITH("\"samples\": {\"total\": 1.5}"),     BAD("samples.total") },
    { "samples-many",    WITH("\"samples\": {\"total\": 4503599627370497}"), BAD("samples.total") },
    { "samples-most",    WITH("\"samples\": {\"total\": 4503599627370496}"), NULL },
    { "time-long",       WITH("\"duration_ms\": 8589934593"),        BAD("duration_ms") },
    { "held-long",       WITH("\"held_share_ppm\": 1000000001"),     BAD("held_share_ppm") },
    { "hold-count",      WITH("\"hold_us\": {\"count\": 4294967296}"), BAD("hold_us.count") },
    { "hold-text",       WITH("\"hold_us\": \"x\""),                 BAD("hold_us") },
    { "images-object",   WITH("\"images\": {}"),                     BAD("images") },
    { "images-text",     WITH("\"images\": [\"x\"]"),                BAD("images") },
    { "images-nameless", WITH("\"images\": [{}]"),                   BAD("images") },
    { "images-id",       WITH("\"images\": [{\"name\": \"a\", \"build_id\": \"../x\"}]"), BAD("images") },
    { "linux-text",      WITH("\"linux\": \"6.1\""),                BAD("linux") },
    { "linux-release",   WITH("\"linux\": {\"release\": 6}"),       BAD("linux.release") },
    { "linux-btf",       WITH("\"linux\": {\"btf\": 1}"),           BAD("linux.btf") },
    { "linux-symbols",   WITH("\"linux\": {\"symbols\": -1}"),      BAD("linux.symbols") },
    { "slices-object",   WITH("\"slices\": {}"),                     BAD("slices") },
    { "slices-text",     WITH("\"slices\": [\"0\"]"),                BAD("slices") },
    { "slices-negative", WITH("\"slices\": [-1]"),                   BAD("slices") },
    { "slices-late",     WITH("\"slices\": [86400]"),                BAD("slices") },
    { "slices-null",     WITH("\"slices\": [null]"),                 BAD("slices") },
};
/* clang-format on */

static UprofRun *
parse(const char *text, GError **error)
{
    return uprof_sidecar_parse("it", (UprofSlice){ text, strlen(text) }, error);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = parse(cases[i].text, &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_nonnull(run);
        g_assert_null(run->domain);
        g_assert_cmpuint(run->started_utc_ns, ==, UINT64_C(1795166100) * UPROF_NS_PER_S);
        return;
    }
    g_assert_null(run);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, cases[i].error);
}

static void
test_whole(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = parse(whole, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(run->program, ==, "virt-uprof 0.1.0");
    g_assert_cmpstr(run->domain, ==, "web-1");
    g_assert_cmpstr(run->uuid, ==, UUID);
    g_assert_cmpstr(run->driver, ==, "QEMU");
    g_assert_cmpstr(run->arch, ==, "x86_64");
    g_assert_cmpstr(run->access, ==, "direct");
    g_assert_null(run->why);
    g_assert_cmpstr(run->unwind, ==, "cfi");
    g_assert_cmpstr(run->ended_by, ==, "duration");
    g_assert_cmpstr(run->kernel.release, ==, "6.1.0-56-cloud-amd64");
    g_assert_true(run->kernel.has_types && run->kernel.has_tasks);
    const uint64_t found[] = {
        run->vcpus,
        run->duration_ns,
        run->rate_mhz,
        run->samples,
        run->running,
        run->idles,
        run->late,
        run->busy,
        run->skipped,
        run->stuck,
        run->complete,
        run->truncated,
        run->unknown,
        run->frames,
        run->named,
        run->by_orc,
        run->by_cfi,
        run->by_code,
        run->by_fp,
        run->cpu_ns,
        run->held_ns,
        run->hold.count,
        run->calls_checked,
        run->calls_agreed,
        run->stopped.count,
        run->kernel.symbols,
        run->kernel.modules,
        run->kernel.rules,
        run->kernel.rules_version,
        run->kernel.kernel_stacks,
        run->kernel.kernel_complete,
        run->kernel.user_stacks,
        run->kernel.user_complete,
    };
    const uint64_t wanted[] = {
        2,        UINT64_C(10001000000),
        99000,    1980,
        1168,     812,
        1,        2,
        3,        4,
        1134,     28,
        6,        14211,
        14068,    77,
        12890,    1101,
        220,      96000000,
        11801180, 1168,
        13040,    12988,
        0,        87347,
        12,       368456,
        4,        500,
        499,      900,
        800,
    };
    g_assert_cmpmem(found, sizeof(found), wanted, sizeof(wanted));
    g_assert_cmpuint(run->images->len, ==, 2);
    const UprofRunImage *image = g_ptr_array_index(run->images, 0);
    g_assert_cmpstr(image->label, ==, "[app]");
    g_assert_cmpstr(image->build_id, ==, "3f2a91c0");
    g_assert_cmpstr(image->path, ==, "app.dbg");
    g_assert_true(image->matched);
    g_assert_true(image->is_module);
    g_assert_true(image->is_from_memory);
    image = g_ptr_array_index(run->images, 1);
    g_assert_false(image->is_from_memory);
    g_assert_null(image->build_id);
    g_assert_null(image->path);
    const uint32_t slices[] = { 0, 600, 86399 };
    g_assert_cmpmem(run->slices->data, run->slices->len * sizeof(uint32_t), slices, sizeof(slices));
}

static void
assert_about(uint64_t ns, uint64_t wanted_us)
{
    g_assert_cmpuint(ns, >=, wanted_us * UPROF_NS_PER_US);
    g_assert_cmpuint(ns, <=, wanted_us * UPROF_NS_PER_US * 65 / 64);
}

/* A histogram has the percentiles of the file; those of merged histograms are not too low. */
static void
test_histogram(void)
{
    g_autoptr(UprofRun) run = parse(whole, NULL);
    g_autoptr(UprofRun) sum = uprof_run_new();

    uprof_run_merge(sum, run, true);
    uprof_run_merge(sum, run, false);
    for (unsigned i = 0; i < 2; i++) {
        const UprofHistogram *hold = i == 0 ? &run->hold : &sum->hold;
        g_assert_cmpuint(hold->count, ==, 1168 * (i + 1));
        g_assert_cmpuint(hold->min_ns, ==, 16000);
        g_assert_cmpuint(hold->max_ns, ==, 97000);
        g_assert_cmpuint(hold->total_ns, ==, 22140000 * (i + 1));
        assert_about(uprof_histogram_percentile(hold, 50), 18);
        assert_about(uprof_histogram_percentile(hold, 90), 21);
        assert_about(uprof_histogram_percentile(hold, 99), 42);
        assert_about(uprof_histogram_percentile(hold, 100), 97);
    }
}

static void
test_hostile_text(void)
{
    g_autoptr(UprofRun) run =
        parse(WITH("\"domain\": {\"name\": \"a\\u001b[2J\\u0000\\u202eb\"}, \"images\": "
                   "[{\"name\": \"\\n\", \"symbols\": \"\\u009b\"}]"),
              NULL);
    const UprofRunImage *image = g_ptr_array_index(run->images, 0);

    g_assert_cmpstr(run->domain, ==, "a?[2J");
    g_assert_cmpstr(image->label, ==, "?");
    g_assert_cmpstr(image->path, ==, "?");
}

static void
test_too_many_images(void)
{
    GString *text = g_string_new(HEAD ", \"images\": [");

    for (unsigned i = 0; i <= UPROF_SIDECAR_IMAGES_MAX; i++)
        g_string_append(text, i > 0 ? ",{\"name\": \"a\"}" : "{\"name\": \"a\"}");
    g_string_append(text, "]}");
    g_autoptr(GError) error = NULL;
    g_assert_null(parse(text->str, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_string_free(text, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/sidecar/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/sidecar/whole", test_whole);
    g_test_add_func("/sidecar/histogram", test_histogram);
    g_test_add_func("/sidecar/hostile-text", test_hostile_text);
    g_test_add_func("/sidecar/too-many-images", test_too_many_images);
    return g_test_run();
}
