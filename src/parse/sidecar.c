/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sidecar.h"

#include "sidecar-priv.h"
#include "json-text-priv.h"
#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/sorted.h"
#include "uprof/text.h"

#include <string.h>
#include <time.h>

/*
 * sidecar = { "format": "virt-uprof-run", "version": 1, "domain": { ... }, ... }
 *
 * The inner objects have strings, numbers and booleans. "images" is an array of objects, and
 * "slices" an array of numbers.
 */

enum {
    SECONDS_OF_DAY = 24 * 60 * 60,
    PERCENT = 100,
    HELD_PPM_MAX = 1000 * 1000 * 1000, /* of a run that was killed: all its holds together */
};

#define AT(member) G_STRUCT_OFFSET(UprofRun, member)

/* clang-format off */
static const struct {
    const char *object; /* NULL: the outermost object */
    const char *key;
    size_t offset; /* of a char * */
} texts[] = {
    { NULL,     "program",    AT(program) },
    { "domain", "name",       AT(domain) },
    { "domain", "uuid",       AT(uuid) },
    { "domain", "driver",     AT(driver) },
    { "domain", "type",       AT(type) },
    { "domain", "arch",       AT(arch) },
    { "domain", "labels",     AT(labels) },
    { NULL,     "access",     AT(access) },
    { NULL,     "access_why", AT(why) },
    { NULL,     "unwind",     AT(unwind) },
    { NULL,     "ended_by",   AT(ended_by) },
    { NULL,     "trigger",    AT(trigger) },
    { NULL,     "profile_sha256", AT(profile_sha256) },
    { "linux",  "release",    AT(kernel.release) },
};

static const struct {
    const char *object;
    const char *key;
    size_t offset; /* of a bool */
} switches[] = {
    { "linux", "btf",       AT(kernel.has_types) },
    { "linux", "processes", AT(kernel.has_tasks) },
};

static const struct {
    const char *object; /* NULL: the outermost object */
    const char *key;
    uint64_t max;
    uint64_t unit; /* multiplied into the member */
    size_t offset; /* of a uint64_t */
} numbers[] = {
    { "domain",     "vcpus",            65536,                   1,               AT(vcpus) },
    { "domain",     "vcpus_sampled",    65536,                   1,               AT(vcpus_sampled) },
    { NULL,         "duration_ms",      UPROF_SIDECAR_MS_MAX,    UPROF_NS_PER_MS, AT(duration_ns) },
    { "rate",       "asked_millihertz", UINT32_MAX,              1,               AT(rate_mhz) },
    { "rate",       "divisor",          UINT32_MAX,              1,               AT(divisor) },
    { "samples",    "total",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(samples) },
    { "samples",    "running",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(running) },
    { "samples",    "idle",             UPROF_SIDECAR_COUNT_MAX, 1,               AT(idles) },
    { "ticks",      "late",             UPROF_SIDECAR_COUNT_MAX, 1,               AT(late) },
    { "ticks",      "busy",             UPROF_SIDECAR_COUNT_MAX, 1,               AT(busy) },
    { "ticks",      "skipped",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(skipped) },
    { "ticks",      "stuck",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(stuck) },
    { "stacks",     "complete",         UPROF_SIDECAR_COUNT_MAX, 1,               AT(complete) },
    { "stacks",     "truncated",        UPROF_SIDECAR_COUNT_MAX, 1,               AT(truncated) },
    { "stacks",     "unknown",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(unknown) },
    { "frames",     "total",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(frames) },
    { "frames",     "named",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(named) },
    { "frames",     "orc",              UPROF_SIDECAR_COUNT_MAX, 1,               AT(by_orc) },
    { "frames",     "cfi",              UPROF_SIDECAR_COUNT_MAX, 1,               AT(by_cfi) },
    { "frames",     "code",             UPROF_SIDECAR_COUNT_MAX, 1,               AT(by_code) },
    { "frames",     "fp",               UPROF_SIDECAR_COUNT_MAX, 1,               AT(by_fp) },
    { "call_sites", "checked",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(calls_checked) },
    { "call_sites", "agreed",           UPROF_SIDECAR_COUNT_MAX, 1,               AT(calls_agreed) },
    { NULL,         "profiler_cpu_ms",  UPROF_SIDECAR_MS_MAX,    UPROF_NS_PER_MS, AT(cpu_ns) },
    { "linux",      "symbols",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.symbols) },
    { "linux",      "modules",          UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.modules) },
    { "linux",      "orc_rules",        UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.rules) },
    { "linux",      "orc_version",      UINT32_MAX,              1,               AT(kernel.rules_version) },
    { "linux",      "kernel_stacks",    UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.kernel_stacks) },
    { "linux",      "kernel_complete",  UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.kernel_complete) },
    { "linux",      "user_stacks",      UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.user_stacks) },
    { "linux",      "user_complete",    UPROF_SIDECAR_COUNT_MAX, 1,               AT(kernel.user_complete) },
    { "waits",      "walks",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(waits.walks) },
    { "waits",      "tasks",            UPROF_SIDECAR_COUNT_MAX, 1,               AT(waits.tasks) },
    { "waits",      "incomplete",       UPROF_SIDECAR_COUNT_MAX, 1,               AT(waits.incomplete) },
    { "waits",      "time_ms",          UPROF_SIDECAR_MS_MAX,    UPROF_NS_PER_MS, AT(waits.time_ns) },
    { "waits",      "total_us",         UPROF_SIDECAR_COUNT_MAX, 1,               AT(waits.total_us) },
    { "waits",      "unknown_us",       UPROF_SIDECAR_COUNT_MAX, 1,               AT(waits.unknown_us) },
};

/* The keys of a histogram, and the percentage of durations at or below each of them. */
enum { COUNT, MIN_US, P50, P90, P99, MAX_US, TOTAL_US, N_HISTOGRAM };
static const char *const histogram_keys[N_HISTOGRAM] = {
    "count", "min", "p50", "p90", "p99", "max", "total",
};
static const struct {
    unsigned key;
    unsigned percent;
} steps[] = { { P50, 50 }, { P90, 90 }, { P99, 99 }, { MAX_US, PERCENT } };
/* clang-format on */

typedef struct {
    const char *name;
    JsonNode *root;
} Reading;

static bool
set_bad_value(const Reading *reading, const char *object, const char *key, GError **error)
{
    g_autofree char *what =
        g_strdup_printf("bad value of '%s%s%s'", object ? object : "", object ? "." : "", key);

    return uprof_json_fail(reading->name, what, error);
}

/* @node: (out): NULL if it is absent. Returns: false if member @object is not an object */
static bool
find_object(const Reading *reading, const char *object, JsonNode **node, GError **error)
{
    JsonObject *root = json_node_get_object(reading->root);

    *node = object ? json_object_get_member(root, object) : reading->root;
    return !*node || JSON_NODE_HOLDS_OBJECT(*node) || set_bad_value(reading, NULL, object, error);
}

/* @node: (out): NULL if the member is absent. Returns: false if the member has another type */
static bool
find_value(const Reading *reading, const char *object, const char *key, GType type, JsonNode **node,
           GError **error)
{
    JsonNode *parent;

    *node = NULL;
    if (!find_object(reading, object, &parent, error))
        return false;
    if (!parent || !json_object_has_member(json_node_get_object(parent), key))
        return true;
    *node = uprof_json_member(parent, key, type);
    return *node || set_bad_value(reading, object, key, error);
}

static bool
read_number(const Reading *reading, const char *object, const char *key, uint64_t max,
            uint64_t *number, GError **error)
{
    JsonNode *node;

    if (!find_value(reading, object, key, G_TYPE_INT64, &node, error))
        return false;
    const int64_t value = node ? json_node_get_int(node) : 0;
    if (value < 0 || (uint64_t)value > max)
        return set_bad_value(reading, object, key, error);
    *number = (uint64_t)value;
    return true;
}

static bool
read_switch(const Reading *reading, const char *object, const char *key, bool *is_on,
            GError **error)
{
    JsonNode *node;

    if (!find_value(reading, object, key, G_TYPE_BOOLEAN, &node, error))
        return false;
    *is_on = node && json_node_get_boolean(node);
    return true;
}

/* An empty text means that the value is unknown. */
static bool
read_text(const Reading *reading, const char *object, const char *key, char **text, GError **error)
{
    JsonNode *node;

    if (!find_value(reading, object, key, G_TYPE_STRING, &node, error))
        return false;
    g_autofree char *clean = uprof_text_quote(node ? json_node_get_string(node) : NULL);
    if (clean[0])
        *text = g_steal_pointer(&clean);
    return true;
}

static bool
take_digits(UprofSlice text, size_t at, size_t n, int min, int max, int *value)
{
    uint64_t number;

    if (!uprof_slice_to_uint((UprofSlice){ (const char *)text.data + at, n }, 10, (uint64_t)min,
                             (uint64_t)max, &number))
        return false;
    *value = (int)number;
    return true;
}

/* Parses a time like 2026-11-20T09:15:00Z. */
static bool
parse_time(const char *text, uint64_t *utc_ns)
{
    static const char between[] = "    -  -  T  :  :  Z"; /* a blank stands for a digit */
    const UprofSlice slice = { text, strlen(text) };
    struct tm parts = { 0 };

    if (slice.len != strlen(between))
        return false;
    for (size_t i = 0; i < slice.len; i++)
        if (between[i] != ' ' && text[i] != between[i])
            return false;
    if (!take_digits(slice, 0, 4, 1970, 9999, &parts.tm_year) ||
        !take_digits(slice, 5, 2, 1, 12, &parts.tm_mon) ||
        !take_digits(slice, 8, 2, 1, 31, &parts.tm_mday) ||
        !take_digits(slice, 11, 2, 0, 23, &parts.tm_hour) ||
        !take_digits(slice, 14, 2, 0, 59, &parts.tm_min) ||
        !take_digits(slice, 17, 2, 0, 60, &parts.tm_sec))
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    const time_t seconds = timegm(&parts);
    /* later times do not fit into 64 bits of nanoseconds */
    if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / UPROF_NS_PER_S)
        return false;
    *utc_ns = (uint64_t)seconds * UPROF_NS_PER_S;
    return true;
}

static bool
read_start(const Reading *reading, UprofRun *run, GError **error)
{
    g_autofree char *text = NULL;

    if (!read_text(reading, NULL, "started", &text, error))
        return false;
    return (text && parse_time(text, &run->started_utc_ns)) ||
           set_bad_value(reading, NULL, "started", error);
}

/*
 * Adds the durations between two percentiles as the higher one, so that percentiles of merged
 * histograms are never too low.
 */
static bool
read_histogram(const Reading *reading, const char *object, UprofHistogram *histogram,
               GError **error)
{
    uint64_t values[N_HISTOGRAM];
    uint64_t done = 0;

    for (unsigned i = 0; i < N_HISTOGRAM; i++) {
        const uint64_t max = i == COUNT      ? UINT32_MAX
                             : i == TOTAL_US ? UPROF_SIDECAR_MS_MAX * 1000
                                             : UINT32_MAX;
        if (!read_number(reading, object, histogram_keys[i], max, &values[i], error))
            return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        const uint64_t until = (values[COUNT] * steps[i].percent + PERCENT - 1) / PERCENT;
        uprof_histogram_add_many(histogram, values[steps[i].key] * UPROF_NS_PER_US, until - done);
        done = until;
    }
    histogram->min_ns = values[MIN_US] * UPROF_NS_PER_US;
    histogram->max_ns = values[MAX_US] * UPROF_NS_PER_US;
    histogram->total_ns = values[TOTAL_US] * UPROF_NS_PER_US;
    return true;
}

static const char *
get_text(JsonNode *node, const char *key)
{
    JsonNode *member = uprof_json_member(node, key, G_TYPE_STRING);
    const char *text = member ? json_node_get_string(member) : "";

    return text[0] ? text : NULL;
}

static bool
read_image(const Reading *reading, JsonNode *node, UprofRun *run, GError **error)
{
    JsonNode *matched = uprof_json_member(node, "matched", G_TYPE_BOOLEAN);
    JsonNode *module = uprof_json_member(node, "module", G_TYPE_BOOLEAN);
    JsonNode *memory = uprof_json_member(node, "memory", G_TYPE_BOOLEAN);
    g_autofree char *label = uprof_text_quote(get_text(node, "name"));
    const char *const id = get_text(node, "build_id");
    const char *const symbols = get_text(node, "symbols");
    const char *const guest_path = get_text(node, "guest_path");
    g_autofree char *path = symbols ? uprof_text_quote(symbols) : NULL;

    if (!JSON_NODE_HOLDS_OBJECT(node) || !label[0] ||
        (id && strspn(id, "0123456789abcdef") < strlen(id)))
        return set_bad_value(reading, NULL, "images", error);
    UprofRunImage *image = uprof_run_add_image(run, label, path, id, NULL);
    image->guest_path = guest_path ? uprof_text_quote(guest_path) : NULL;
    image->matched = matched && json_node_get_boolean(matched);
    image->is_module = module && json_node_get_boolean(module);
    image->is_from_memory = memory && json_node_get_boolean(memory);
    image->n_seen = 1; /* the sidecar does not have the number; 0 would cause a warning */
    return true;
}

static bool
read_images(const Reading *reading, UprofRun *run, GError **error)
{
    JsonNode *node;

    if (!find_value(reading, NULL, "images", JSON_TYPE_ARRAY, &node, error))
        return false;
    JsonArray *array = node ? json_node_get_array(node) : NULL;
    const guint n = array ? json_array_get_length(array) : 0;
    if (n > UPROF_SIDECAR_IMAGES_MAX)
        return set_bad_value(reading, NULL, "images", error);
    for (guint i = 0; i < n; i++)
        if (!read_image(reading, json_array_get_element(array, i), run, error))
            return false;
    return true;
}

static bool
read_slices(const Reading *reading, UprofRun *run, GError **error)
{
    JsonNode *node;

    if (!find_value(reading, NULL, "slices", JSON_TYPE_ARRAY, &node, error))
        return false;
    JsonArray *array = node ? json_node_get_array(node) : NULL;
    const guint n = array ? json_array_get_length(array) : 0;
    if (n > SECONDS_OF_DAY)
        return set_bad_value(reading, NULL, "slices", error);
    for (guint i = 0; i < n; i++) {
        JsonNode *element = json_array_get_element(array, i);
        if (json_node_get_value_type(element) != G_TYPE_INT64 || json_node_get_int(element) < 0 ||
            json_node_get_int(element) >= SECONDS_OF_DAY)
            return set_bad_value(reading, NULL, "slices", error);
        const uint32_t second = (uint32_t)json_node_get_int(element);
        g_array_append_val(run->slices, second);
    }
    if (n > 0)
        qsort(run->slices->data, n, sizeof(uint32_t), uprof_compare_u32);
    return true;
}

static bool
check_kind(const Reading *reading, GError **error)
{
    JsonNode *format = uprof_json_member(reading->root, "format", G_TYPE_STRING);
    JsonNode *version = uprof_json_member(reading->root, "version", G_TYPE_INT64);

    if (!format || strcmp(json_node_get_string(format), "virt-uprof-run") != 0 || !version)
        return uprof_json_fail(reading->name, "is not a sidecar of virt-uprof", error);
    return json_node_get_int(version) == UPROF_SIDECAR_VERSION ||
           uprof_json_fail(reading->name, "is of another version of virt-uprof", error);
}

static bool
read_run(const Reading *reading, UprofRun *run, GError **error)
{
    uint64_t held_ppm;

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        if (!read_text(reading, texts[i].object, texts[i].key,
                       G_STRUCT_MEMBER_P(run, texts[i].offset), error))
            return false;
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        uint64_t number;
        if (!read_number(reading, numbers[i].object, numbers[i].key, numbers[i].max, &number,
                         error))
            return false;
        G_STRUCT_MEMBER(uint64_t, run, numbers[i].offset) = number * numbers[i].unit;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++)
        if (!read_switch(reading, switches[i].object, switches[i].key,
                         G_STRUCT_MEMBER_P(run, switches[i].offset), error))
            return false;
    if (!read_number(reading, NULL, "held_share_ppm", HELD_PPM_MAX, &held_ppm, error))
        return false;
    run->held_ns = (uint64_t)((unsigned __int128)run->duration_ns * held_ppm / (1000 * 1000));
    return read_start(reading, run, error) &&
           read_histogram(reading, "hold_us", &run->hold, error) &&
           read_histogram(reading, "stopped_us", &run->stopped, error) &&
           read_images(reading, run, error) && read_slices(reading, run, error);
}

UprofRun *
uprof_sidecar_parse(const char *name, UprofSlice text, GError **error)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(JsonParser) parser = uprof_json_load(name, text, UPROF_SIDECAR_BYTES_MAX, error);

    if (!parser)
        return NULL;
    const Reading reading = { name, json_parser_get_root(parser) };
    if (!check_kind(&reading, error) || !read_run(&reading, run, error))
        return NULL;
    return g_steal_pointer(&run);
}
