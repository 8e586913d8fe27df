/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/metrics-file.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    char *folder, *path;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->folder = g_dir_make_tmp("uprof-metrics-XXXXXX", NULL);
    fixture->path = g_build_filename(fixture->folder, "a.prom", NULL);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_unlink(fixture->path);
    g_assert_cmpint(g_rmdir(fixture->folder), ==, 0);
    g_free(fixture->path);
    g_free(fixture->folder);
}

static void
assert_file(const Fixture *fixture, const char *expected)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(fixture->path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expected);
}

static void
save_metrics(UprofMetrics *metrics)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_metrics_save(metrics, &error));
    g_assert_no_error(error);
    uprof_metrics_free(metrics);
}

static void
test_again(Fixture *fixture, gconstpointer data)
{
    struct stat info;

    for (unsigned i = 1; i <= 2; i++) {
        UprofMetrics *metrics = uprof_metrics_load(fixture->folder, "a");
        uprof_metrics_add(metrics, UPROF_METRIC_ROUNDS, "b", 1);
        uprof_metrics_add(metrics, UPROF_METRIC_ROUNDS, "a\"\\\n", 3);
        uprof_metrics_set(metrics, UPROF_METRIC_OLDEST, "x", i);
        save_metrics(metrics);
    }
    assert_file(fixture, "# HELP virt_uprof_rounds_total Rounds that stored a profile.\n"
                         "# TYPE virt_uprof_rounds_total counter\n"
                         "virt_uprof_rounds_total{domain=\"a\\\"\\\\?\"} 6\n"
                         "virt_uprof_rounds_total{domain=\"b\"} 2\n"
                         "# HELP virt_uprof_oldest_waiting_timestamp_seconds Time of the oldest "
                         "profile that the destination does not have yet; 0: none.\n"
                         "# TYPE virt_uprof_oldest_waiting_timestamp_seconds gauge\n"
                         "virt_uprof_oldest_waiting_timestamp_seconds{destination=\"x\"} 2\n");
    g_assert_cmpint(stat(fixture->path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0644);
}

static void
test_forget(Fixture *fixture, gconstpointer data)
{
    UprofMetrics *metrics = uprof_metrics_load(fixture->folder, "a");

    uprof_metrics_add(metrics, UPROF_METRIC_SAMPLES, "old", 7);
    uprof_metrics_set(metrics, UPROF_METRIC_LAST_ROUND, "old", 99);
    uprof_metrics_add(metrics, UPROF_METRIC_SAMPLES, "new", 8);
    uprof_metrics_set(metrics, UPROF_METRIC_LAST_ROUND, "new", 100);
    uprof_metrics_forget(metrics, 100);
    save_metrics(metrics);
    assert_file(fixture, "# HELP virt_uprof_samples_total Samples of stored profiles.\n"
                         "# TYPE virt_uprof_samples_total counter\n"
                         "virt_uprof_samples_total{domain=\"new\"} 8\n"
                         "# HELP virt_uprof_last_round_timestamp_seconds Time of the last round.\n"
                         "# TYPE virt_uprof_last_round_timestamp_seconds gauge\n"
                         "virt_uprof_last_round_timestamp_seconds{domain=\"new\"} 100\n");
}

/* Domains stay if destinations are removed. */
static void
test_keep(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    UprofMetrics *metrics = uprof_metrics_load(fixture->folder, "a");

    g_ptr_array_add(names, (gpointer) "kept");
    uprof_metrics_add(metrics, UPROF_METRIC_PUSHED, "kept", 1);
    uprof_metrics_add(metrics, UPROF_METRIC_REFUSED, "gone", 2);
    uprof_metrics_add(metrics, UPROF_METRIC_ROUNDS, "web-1", 3);
    uprof_metrics_keep(metrics, UPROF_METRIC_PUSHED, names);
    save_metrics(metrics);
    assert_file(fixture, "# HELP virt_uprof_rounds_total Rounds that stored a profile.\n"
                         "# TYPE virt_uprof_rounds_total counter\n"
                         "virt_uprof_rounds_total{domain=\"web-1\"} 3\n"
                         "# HELP virt_uprof_pushed_profiles_total Profiles that the destination "
                         "took.\n"
                         "# TYPE virt_uprof_pushed_profiles_total counter\n"
                         "virt_uprof_pushed_profiles_total{destination=\"kept\"} 1\n");
}

/* Lines that this program did not write are dropped. */
static void
test_strange_file(Fixture *fixture, gconstpointer data)
{
    static const char text[] = "other_metric{domain=\"a\"} 4\nvirt_uprof_rounds_total 4\n"
                               "virt_uprof_rounds_total{domain=\"a\"} -4\n"
                               "virt_uprof_rounds_total{domain=\"b\"} 99999999999999999999\n"
                               "virt_uprof_rounds_total{domain=\"\xff\"} 1\n"
                               "virt_uprof_rounds_total{domain=\"c\"} 5\n\n }\n"
                               "virt_uprof_rounds_total{domain=\"d\"} 5";
    UprofMetrics *metrics;

    g_assert_true(g_file_set_contents(fixture->path, text, -1, NULL));
    metrics = uprof_metrics_load(fixture->folder, "a");
    save_metrics(metrics);
    assert_file(fixture, "# HELP virt_uprof_rounds_total Rounds that stored a profile.\n"
                         "# TYPE virt_uprof_rounds_total counter\n"
                         "virt_uprof_rounds_total{domain=\"c\"} 5\n");
}

static void
test_no_folder(Fixture *fixture, gconstpointer data)
{
    g_autoptr(UprofMetrics) metrics = uprof_metrics_load("/nowhere/at/all", "a");
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_metrics_save(metrics, &error));
    g_assert_nonnull(strstr(error->message, "/nowhere/at/all/a.prom"));
    g_assert_true(g_file_set_contents(fixture->path, "", 0, NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/metrics-file/again", Fixture, NULL, set_up, test_again, tear_down);
    g_test_add("/metrics-file/forget", Fixture, NULL, set_up, test_forget, tear_down);
    g_test_add("/metrics-file/keep", Fixture, NULL, set_up, test_keep, tear_down);
    g_test_add("/metrics-file/strange-file", Fixture, NULL, set_up, test_strange_file, tear_down);
    g_test_add("/metrics-file/no-folder", Fixture, NULL, set_up, test_no_folder, tear_down);
    return g_test_run();
}
