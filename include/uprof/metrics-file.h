/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * metrics-file.h - numbers about rounds and pushes, for Prometheus
 *
 * The textfile collector of node_exporter reads files that end in ".prom" and have the text format
 * of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/). Counters go on
 * from the values of the last file.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofMetric: a name of the table in metrics-file.c */
typedef enum {
    UPROF_METRIC_ROUNDS,       /* of a domain: stored rounds; a counter */
    UPROF_METRIC_FAILURES,     /* of a domain: failed rounds; a counter */
    UPROF_METRIC_SAMPLES,      /* of a domain: samples of stored rounds; a counter */
    UPROF_METRIC_LAST_ROUND,   /* of a domain: the time of the last attempt, since 1970 */
    UPROF_METRIC_PUSHED,       /* of a destination: profiles that it has; a counter */
    UPROF_METRIC_PUSHED_BYTES, /* of a destination: bytes of requests that it took; a counter */
    UPROF_METRIC_REFUSED,      /* of a destination: profiles that it refused; a counter */
    UPROF_METRIC_TOO_OLD,      /* of a destination: profiles that became too old; a counter */
    UPROF_METRIC_WAITING,      /* of a destination: rounds that it lacks */
    UPROF_METRIC_OLDEST, /* of a destination: when the first of these began; 0: it lacks none */
    UPROF_N_METRICS,
} UprofMetric;

typedef struct _UprofMetrics UprofMetrics;

/**
 * uprof_metrics_load:
 * @folder: that node_exporter reads
 * @name: of the file, without its ending
 *
 * A file that is missing or damaged has no values.
 *
 * Returns: (transfer full)
 */
UprofMetrics *uprof_metrics_load(const char *folder, const char *name);
void uprof_metrics_free(UprofMetrics *metrics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMetrics, uprof_metrics_free)

/** uprof_metrics_add: increases a counter. @of: the domain or destination; any bytes */
void uprof_metrics_add(UprofMetrics *metrics, UprofMetric metric, const char *of, uint64_t n);

/** uprof_metrics_set: sets a number. @of: as uprof_metrics_add() */
void uprof_metrics_set(UprofMetrics *metrics, UprofMetric metric, const char *of, uint64_t value);

/**
 * uprof_metrics_forget: removes all numbers of each domain whose %UPROF_METRIC_LAST_ROUND is before
 * @before_s
 */
void uprof_metrics_forget(UprofMetrics *metrics, int64_t before_s);

/**
 * uprof_metrics_keep: removes all numbers with the label of @metric but those of @names
 * @names: of char: domains or destinations
 */
void uprof_metrics_keep(UprofMetrics *metrics, UprofMetric metric, const GPtrArray *names);

/**
 * uprof_metrics_save: replaces the file; every user may read it
 *
 * The file is complete or does not change: see file.h.
 */
bool uprof_metrics_save(const UprofMetrics *metrics, GError **error);
