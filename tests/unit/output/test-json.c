/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <json-glib/json-glib.h>
#include <string.h>

#include "uprof/clock.h"
#include "uprof/output.h"

enum { MEMBERS_MAX = 24 };

/* Each object of the sidecar with exactly its members. Members are never renamed. */
/* clang-format off */
static const struct {
    const char *path; /* "": the outermost object; images.0: an element */
    const char *members[MEMBERS_MAX];
} objects[] = {
    { "",           { "format", "version", "program", "domain", "started", "duration_ms", "ended_by",
                      "rate", "access", "access_why", "unwind", "samples", "ticks", "stacks", "frames",
                      "call_sites", "hold_us", "stopped_us", "held_share_ppm", "profiler_cpu_ms",
                      "linux", "images", "files" } },
    { "domain",     { "name", "uuid", "driver", "type", "arch", "vcpus" } },
    { "rate",       { "asked_millihertz", "got_millihertz", "divisor" } },
    { "samples",    { "total", "running", "idle" } },
    { "ticks",      { "late", "busy", "skipped", "stuck" } },
    { "stacks",     { "complete", "truncated", "unknown" } },
    { "frames",     { "total", "named", "orc", "cfi", "code", "fp" } },
    { "call_sites", { "checked", "agreed" } },
    { "linux",      { "release", "symbols", "modules", "orc_rules", "orc_version", "btf", "processes",
                      "kernel_stacks", "kernel_complete", "user_stacks", "user_complete" } },
    { "hold_us",    { "count", "min", "p50", "p90", "p99", "max", "total" } },
    { "stopped_us", { "count", "min", "p50", "p90", "p99", "max", "total" } },
};

static const struct {
    const char *object; /* "": the outermost object */
    const char *member;
    gint64 value;
} numbers[] = {
    { "", "version", 1 }, { "", "duration_ms", 10001 }, { "", "held_share_ppm", 3999 },
    { "", "profiler_cpu_ms", 96 }, { "domain", "vcpus", 2 },
    { "rate", "asked_millihertz", 99000 }, { "samples", "total", 1980 },
    { "samples", "running", 1168 }, { "samples", "idle", 812 }, { "ticks", "late", 1 },
    { "ticks", "busy", 2 }, { "ticks", "skipped", 3 }, { "ticks", "stuck", 4 }, { "stacks", "complete", 1134 },
    { "stacks", "truncated", 28 }, { "stacks", "unknown", 6 }, { "frames", "total", 14211 },
    { "frames", "named", 14068 }, { "frames", "orc", 77 }, { "frames", "cfi", 12890 }, { "frames", "code", 1101 },
    { "frames", "fp", 220 }, { "call_sites", "checked", 13040 }, { "call_sites", "agreed", 12988 },
    { "linux", "symbols", 87347 }, { "linux", "modules", 12 }, { "linux", "orc_rules", 368456 },
    { "linux", "orc_version", 4 }, { "linux", "kernel_stacks", 500 }, { "linux", "kernel_complete", 499 },
    { "linux", "user_stacks", 900 }, { "linux", "user_complete", 800 },
    { "hold_us", "count", 2 }, { "hold_us", "min", 20000 }, { "hold_us", "max", 30000 },
    { "hold_us", "total", 50000 }, { "stopped_us", "count", 0 }, { "stopped_us", "p99", 0 },
};

static const char *const hostile[] = {
    "web-1", "", "a\"b\\c", "</script>", "\x1b[31m", "a\nb\tc", "\xff\xfe", "\xc2\x9b", "a;b", "%s%n",
    "\xe2\x80\xae", "[unknown]", "\x01\x02\x1f",
};
/* clang-format on */

static UprofRun *
make_run(const char *text)
{
    UprofRun *run = uprof_run_new();

    run->program = g_strdup("virt-uprof 0.1.0");
    run->domain = g_strdup(text);
    run->uuid = g_strdup(text);
    run->driver = g_strdup(text);
    run->arch = g_strdup(text);
    run->access = g_strdup(text);
    run->why = g_strdup(text);
    run->unwind = g_strdup(text);
    run->ended_by = g_strdup(text);
    run->vcpus = 2;
    run->started_utc_ns = UINT64_C(1795166100) * UPROF_NS_PER_S;
    run->rate_mhz = 99000;
    run->duration_ns = 10001 * UPROF_NS_PER_MS;
    run->late = 1;
    run->busy = 2;
    run->skipped = 3;
    run->stuck = 4;
    run->held_ns = 40 * UPROF_NS_PER_MS;
    run->cpu_ns = 96 * UPROF_NS_PER_MS + 5;
    run->samples = 1980;
    run->running = 1168;
    run->idles = 812;
    run->complete = 1134;
    run->truncated = 28;
    run->unknown = 6;
    run->frames = 14211;
    run->named = 14068;
    run->by_orc = 77;
    run->by_cfi = 12890;
    run->by_code = 1101;
    run->by_fp = 220;
    run->calls_checked = 13040;
    run->calls_agreed = 12988;
    run->kernel = (UprofRunLinux){ .release = g_strdup(text),
                                   .symbols = 87347,
                                   .modules = 12,
                                   .rules = 368456,
                                   .rules_version = 4,
                                   .has_types = true,
                                   .kernel_stacks = 500,
                                   .kernel_complete = 499,
                                   .user_stacks = 900,
                                   .user_complete = 800 };
    uprof_histogram_add(&run->hold, 20 * UPROF_NS_PER_MS);
    uprof_histogram_add(&run->hold, 30 * UPROF_NS_PER_MS);
    uprof_run_add_image(run, "[app]", text, text, "00ff")->matched = true;
    uprof_run_add_image(run, "[app2]", NULL, NULL, NULL);
    g_ptr_array_add(run->files, g_strdup(text));
    g_ptr_array_add(run->files, g_strdup("second"));
    return run;
}

static GString *
render(const UprofRun *run)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);

    return uprof_output_render(&uprof_format_meta, profile, run);
}

static JsonParser *
parse(const GString *text)
{
    JsonParser *parser = json_parser_new();
    g_autoptr(GError) error = NULL;

    json_parser_load_from_data(parser, text->str, (gssize)text->len, &error);
    g_assert_no_error(error);
    return parser;
}

static JsonObject *
object_of(JsonParser *parser, const char *name)
{
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));

    return name[0] ? json_object_get_object_member(root, name) : root;
}

static void
check_members(JsonObject *object, const char *const *members)
{
    unsigned n = 0;

    for (; n < MEMBERS_MAX && members[n]; n++)
        g_assert_true(json_object_has_member(object, members[n]));
    g_assert_cmpuint(json_object_get_size(object), ==, n);
}

/* All numbers are integers, because fractions depend on the locale. */
static void
check_integers(JsonObject *object, const char *name, JsonNode *node, gpointer data)
{
    if (JSON_NODE_HOLDS_VALUE(node))
        g_assert_cmpint(json_node_get_value_type(node), !=, G_TYPE_DOUBLE);
    if (JSON_NODE_HOLDS_OBJECT(node))
        json_object_foreach_member(json_node_get_object(node), check_integers, NULL);
}

static void
test_members(void)
{
    static const char *const image[MEMBERS_MAX] = { "name",    "build_id", "symbols", "guest_path",
                                                    "matched", "module",   "memory" };
    g_autoptr(UprofRun) run = make_run("web-1");
    GString *text = render(run);
    g_autoptr(JsonParser) parser = parse(text);
    JsonObject *root = object_of(parser, "");

    for (size_t i = 0; i < G_N_ELEMENTS(objects); i++)
        check_members(object_of(parser, objects[i].path), objects[i].members);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_assert_cmpint(
            json_object_get_int_member(object_of(parser, numbers[i].object), numbers[i].member), ==,
            numbers[i].value);
    json_object_foreach_member(root, check_integers, NULL);
    g_assert_cmpstr(json_object_get_string_member(root, "format"), ==, "virt-uprof-run");
    g_assert_cmpstr(json_object_get_string_member(root, "program"), ==, "virt-uprof 0.1.0");
    g_assert_cmpstr(json_object_get_string_member(root, "started"), ==, "2026-11-20T09:15:00Z");
    g_assert_cmpstr(json_object_get_string_member(root, "ended_by"), ==, "web-1");
    JsonArray *images = json_object_get_array_member(root, "images");
    g_assert_cmpuint(json_array_get_length(images), ==, 2);
    for (guint i = 0; i < 2; i++)
        check_members(json_array_get_object_element(images, i), image);
    g_assert_true(
        json_object_get_boolean_member(json_array_get_object_element(images, 0), "matched"));
    g_assert_false(
        json_object_get_boolean_member(json_array_get_object_element(images, 1), "matched"));
    g_assert_cmpuint(json_array_get_length(json_object_get_array_member(root, "files")), ==, 2);
    g_string_free(text, TRUE);
}

static void
test_hostile(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autoptr(UprofRun) run = make_run(hostile[i]);
        GString *text = render(run);
        g_autoptr(JsonParser) parser = parse(text);
        g_assert_true(g_utf8_validate(text->str, (gssize)text->len, NULL));
        g_assert_null(strstr(text->str, "</"));
        for (gsize at = 0; at < text->len; at++)
            g_assert_true((unsigned char)text->str[at] >= 0x20 || text->str[at] == '\n');
        check_members(object_of(parser, ""), objects[0].members);
        g_string_free(text, TRUE);
    }
}

/* An empty run, and a run with the largest numbers. */
static void
test_extremes(void)
{
    g_autoptr(UprofRun) empty = uprof_run_new();
    g_autoptr(UprofRun) huge = make_run("x");
    GString *text = render(empty);
    g_autoptr(JsonParser) parser = parse(text);

    g_assert_false(json_object_has_member(object_of(parser, ""), "linux"));
    g_string_free(text, TRUE);
    empty->kernel.symbols = 1;
    text = render(empty);
    g_autoptr(JsonParser) least = parse(text);
    check_members(object_of(least, ""), objects[0].members);
    g_string_free(text, TRUE);
    for (size_t i = 0; i < uprof_run_n_fields; i++)
        if (uprof_run_fields[i].kind == UPROF_RUN_UINT)
            *(uint64_t *)G_STRUCT_MEMBER_P(huge, uprof_run_fields[i].offset) = G_MAXINT64;
    text = render(huge);
    g_autoptr(JsonParser) other = parse(text);
    check_members(object_of(other, ""), objects[0].members);
    g_string_free(text, TRUE);
}

/* A closed day has two more members. */
static void
test_day(void)
{
    g_autoptr(UprofRun) run = make_run("web-1");
    const uint32_t seconds[] = { 0, 600 };

    g_array_append_vals(run->slices, seconds, G_N_ELEMENTS(seconds));
    run->profile_sha256 = g_strdup("00ff");
    GString *text = render(run);
    g_autoptr(JsonParser) parser = parse(text);
    JsonArray *slices = json_object_get_array_member(object_of(parser, ""), "slices");
    g_assert_cmpuint(json_array_get_length(slices), ==, 2);
    g_assert_cmpint(json_array_get_int_element(slices, 1), ==, 600);
    g_assert_cmpstr(json_object_get_string_member(object_of(parser, ""), "profile_sha256"), ==,
                    "00ff");
    g_string_free(text, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/json/members", test_members);
    g_test_add_func("/json/hostile", test_hostile);
    g_test_add_func("/json/extremes", test_extremes);
    g_test_add_func("/json/day", test_day);
    return g_test_run();
}
