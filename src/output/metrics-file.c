/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/metrics-file.h"

#include "uprof/error.h"
#include "uprof/file.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 8 * 1024 * 1024,
    VALUES_MAX = 100 * 1000,
};

static const struct {
    const char *name, *label, *type, *help;
} table[UPROF_N_METRICS] = {
    [UPROF_METRIC_ROUNDS] = { "virt_uprof_rounds_total", "domain", "counter",
                              "Rounds that stored a profile." },
    [UPROF_METRIC_FAILURES] = { "virt_uprof_round_failures_total", "domain", "counter",
                                "Rounds that failed." },
    [UPROF_METRIC_SAMPLES] = { "virt_uprof_samples_total", "domain", "counter",
                               "Samples of stored profiles." },
    [UPROF_METRIC_LAST_ROUND] = { "virt_uprof_last_round_timestamp_seconds", "domain", "gauge",
                                  "Time of the last round." },
    [UPROF_METRIC_PUSHED] = { "virt_uprof_pushed_profiles_total", "destination", "counter",
                              "Profiles that the destination took." },
    [UPROF_METRIC_PUSHED_BYTES] = { "virt_uprof_pushed_bytes_total", "destination", "counter",
                                    "Bytes of requests that the destination took." },
    [UPROF_METRIC_REFUSED] = { "virt_uprof_refused_profiles_total", "destination", "counter",
                               "Profiles that the destination refused." },
    [UPROF_METRIC_TOO_OLD] = { "virt_uprof_too_old_profiles_total", "destination", "counter",
                               "Profiles that became too old before they were sent." },
    [UPROF_METRIC_WAITING] = { "virt_uprof_waiting_profiles", "destination", "gauge",
                               "Profiles that the destination does not have yet." },
    [UPROF_METRIC_OLDEST] = { "virt_uprof_oldest_waiting_timestamp_seconds", "destination", "gauge",
                              "Time of the oldest profile that the destination does not have yet; "
                              "0: none." },
};

struct _UprofMetrics {
    char *path;
    GHashTable *values; /* the text before the number, owned -> uint64_t, owned */
};

/* Returns: (transfer full): such as: virt_uprof_rounds_total{domain="web-1"} */
static char *
make_key(UprofMetric metric, const char *of)
{
    g_autofree char *clean = uprof_text_quote(of);
    GString *key = g_string_new(NULL);

    g_string_append_printf(key, "%s{%s=\"", table[metric].name, table[metric].label);
    for (const char *at = clean; *at; at++) {
        if (*at == '\\' || *at == '"')
            g_string_append_c(key, '\\');
        g_string_append_c(key, *at);
    }
    g_string_append(key, "\"}");
    return g_string_free(key, FALSE);
}

static bool
is_of_metric(const char *key, UprofMetric metric)
{
    const size_t len = strlen(table[metric].name);

    return strncmp(key, table[metric].name, len) == 0 && key[len] == '{';
}

static bool
is_known(const char *key)
{
    for (unsigned i = 0; i < UPROF_N_METRICS; i++)
        if (is_of_metric(key, (UprofMetric)i))
            return true;
    return false;
}

/* @key: (transfer full) */
static void
set_value(UprofMetrics *metrics, char *key, uint64_t value)
{
    if (g_hash_table_size(metrics->values) >= VALUES_MAX &&
        !g_hash_table_contains(metrics->values, key)) {
        g_free(key);
        return;
    }
    g_hash_table_insert(metrics->values, key, g_memdup2(&value, sizeof(value)));
}

static void
take_line(UprofMetrics *metrics, const char *line, size_t len)
{
    const char *blank = memrchr(line, ' ', len);
    uint64_t value;

    if (!blank || !uprof_slice_to_uint((UprofSlice){ blank + 1, len - (size_t)(blank + 1 - line) },
                                       10, 0, UINT64_MAX, &value))
        return;
    char *key = g_strndup(line, (gsize)(blank - line));
    if (g_str_has_suffix(key, "\"}") && is_known(key) && g_utf8_validate(key, -1, NULL))
        set_value(metrics, key, value);
    else
        g_free(key);
}

static void
take_lines(UprofMetrics *metrics, const GByteArray *bytes)
{
    const char *at = (const char *)bytes->data;
    size_t left = bytes->len;
    const char *end;

    for (; left > 0 && (end = memchr(at, '\n', left)); at = end + 1) {
        take_line(metrics, at, (size_t)(end - at));
        left -= (size_t)(end - at) + 1;
    }
}

UprofMetrics *
uprof_metrics_load(const char *folder, const char *name)
{
    UprofMetrics *metrics = g_new0(UprofMetrics, 1);
    g_autofree char *file = g_strconcat(name, ".prom", NULL);
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    metrics->path = g_build_filename(folder, file, NULL);
    metrics->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const int fd = uprof_regular_file_open(metrics->path);
    if (fd < 0)
        return metrics;
    if (uprof_read_all(fd, FILE_BYTES_MAX, bytes))
        take_lines(metrics, bytes);
    close(fd);
    return metrics;
}

void
uprof_metrics_free(UprofMetrics *metrics)
{
    if (!metrics)
        return;
    g_hash_table_unref(metrics->values);
    g_free(metrics->path);
    g_free(metrics);
}

void
uprof_metrics_add(UprofMetrics *metrics, UprofMetric metric, const char *of, uint64_t n)
{
    char *key = make_key(metric, of);
    const uint64_t *old = g_hash_table_lookup(metrics->values, key);

    set_value(metrics, key, (old ? *old : 0) + n);
}

void
uprof_metrics_set(UprofMetrics *metrics, UprofMetric metric, const char *of, uint64_t value)
{
    set_value(metrics, make_key(metric, of), value);
}

static gboolean
is_forgotten(gpointer key, gpointer value, gpointer data)
{
    const char *label = strchr(key, '{');

    return label && g_hash_table_contains(data, label);
}

void
uprof_metrics_forget(UprofMetrics *metrics, int64_t before_s)
{
    g_autoptr(GHashTable) labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter at;
    gpointer key, value;

    g_hash_table_iter_init(&at, metrics->values);
    while (g_hash_table_iter_next(&at, &key, &value))
        if (is_of_metric(key, UPROF_METRIC_LAST_ROUND) &&
            *(const uint64_t *)value < (uint64_t)MAX(before_s, 0))
            g_hash_table_add(labels, g_strdup(strchr(key, '{')));
    g_hash_table_foreach_remove(metrics->values, is_forgotten, labels);
}

typedef struct {
    GHashTable *labels; /* set of char: the labels to keep */
    const char *begin;  /* of each label of that kind */
} Keeping;

static gboolean
is_of_other(gpointer key, gpointer value, gpointer data)
{
    const Keeping *keeping = data;
    const char *label = strchr(key, '{');

    return label && g_str_has_prefix(label, keeping->begin) &&
           !g_hash_table_contains(keeping->labels, label);
}

void
uprof_metrics_keep(UprofMetrics *metrics, UprofMetric metric, const GPtrArray *names)
{
    g_autoptr(GHashTable) labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *begin = g_strdup_printf("{%s=\"", table[metric].label);
    Keeping keeping = { labels, begin };

    for (guint i = 0; i < names->len; i++) {
        g_autofree char *key = make_key(metric, g_ptr_array_index(names, i));
        g_hash_table_add(labels, g_strdup(strchr(key, '{')));
    }
    g_hash_table_foreach_remove(metrics->values, is_of_other, &keeping);
}

static int
compare_keys(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
append_metric(GString *text, const UprofMetrics *metrics, UprofMetric metric)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    GHashTableIter at;
    gpointer key;

    g_hash_table_iter_init(&at, metrics->values);
    while (g_hash_table_iter_next(&at, &key, NULL))
        if (is_of_metric(key, metric))
            g_ptr_array_add(keys, key);
    if (keys->len == 0)
        return;
    g_ptr_array_sort(keys, compare_keys);
    g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", table[metric].name,
                           table[metric].help, table[metric].name, table[metric].type);
    for (guint i = 0; i < keys->len; i++) {
        const uint64_t *value = g_hash_table_lookup(metrics->values, keys->pdata[i]);
        g_string_append_printf(text, "%s %" G_GUINT64_FORMAT "\n", (const char *)keys->pdata[i],
                               *value);
    }
}

bool
uprof_metrics_save(const UprofMetrics *metrics, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(UprofFile) file = uprof_file_open(metrics->path, false, error);

    for (unsigned i = 0; i < UPROF_N_METRICS; i++)
        append_metric(text, metrics, (UprofMetric)i);
    if (file && fchmod(uprof_file_fd(file), 0644) != 0)
        return uprof_error_fail_errno(error, "cannot let others read '%s'", metrics->path);
    return file && uprof_file_write(file, text->str, text->len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error);
}
