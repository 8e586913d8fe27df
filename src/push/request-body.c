/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "request-body-priv.h"

#include "fitted-profile-priv.h"
#include "label-value-priv.h"
#include "uprof/clock.h"
#include "uprof/json-writer.h"

#include <string.h>

/* ---- Labels ---- */

static void
add_label(GPtrArray *labels, const char *name, const char *value)
{
    g_autofree char *encoded = uprof_label_value(value);

    uprof_labels_add(labels, name, encoded);
}

static int
compare_labels(const void *a, const void *b)
{
    const UprofLabel *const *one = a, *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

static void
add_known(GPtrArray *labels, const char *name, const char *value)
{
    if (value && value[0])
        add_label(labels, name, value);
}

/*
 * Adds the labels of the domain's metadata, whose users may not be those of the engine, as far as
 * the destination allows them. The first one of a name counts.
 */
static void
add_metadata(GPtrArray *labels, const UprofRequestContext *context, const UprofRun *run)
{
    const GPtrArray *allowed = context->destination->metadata_labels;
    g_auto(GStrv) pairs = g_strsplit(run->labels ? run->labels : "", "&", -1);

    for (char **pair = pairs; *pair; pair++) {
        g_auto(GStrv) parts = g_strsplit(*pair, "=", 2);
        g_autofree char *value =
            parts[0] && parts[1] ? g_uri_unescape_string(parts[1], NULL) : NULL;
        if (value &&
            g_ptr_array_find_with_equal_func((GPtrArray *)allowed, parts[0], g_str_equal, NULL) &&
            !uprof_labels_has(labels, parts[0]))
            add_known(labels, parts[0], value);
    }
}

/* Returns: (transfer full): of UprofLabel, by name */
static GPtrArray *
make_labels(const UprofRequestContext *context, const UprofStoredRound *round, const UprofRun *run)
{
    g_autofree char *name = uprof_stored_rounds_name(round, run);
    const GPtrArray *given = context->destination->labels;
    GPtrArray *labels = uprof_labels_new();

    /* Pyroscope shows processor time for this name with the sample types samples and cpu. */
    add_label(labels, "__name__", "process_cpu");
    add_label(labels, "service_name", name[0] ? name : run->uuid);
    add_known(labels, "host", context->host);
    add_known(labels, "domain_uuid", run->uuid);
    add_known(labels, "hypervisor", run->type ? run->type : run->driver);
    add_known(labels, "access", run->access);
    for (guint i = 0; i < given->len; i++) {
        const UprofLabel *label = g_ptr_array_index(given, i);
        add_label(labels, label->name, label->value);
    }
    add_metadata(labels, context, run);
    g_ptr_array_sort(labels, compare_labels);
    return labels;
}

static void
write_labels(UprofJsonWriter *json, const char *key, const GPtrArray *labels)
{
    uprof_json_begin(json, key, UPROF_JSON_ARRAY);
    for (guint i = 0; i < labels->len; i++) {
        const UprofLabel *label = g_ptr_array_index(labels, i);
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_string(json, "name", label->name);
        uprof_json_string(json, "value", label->value);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

/* ---- The profile ---- */

/*
 * Two rounds of a domain may have begun at the same time, because the clock was set back. Their
 * names differ, and so do the times here.
 */
static void
set_time(UprofRun *run, int64_t start_s)
{
    if (run->started_utc_ns / UPROF_NS_PER_S != (uint64_t)start_s)
        run->started_utc_ns = (uint64_t)start_s * UPROF_NS_PER_S;
    run->duration_ns = MAX(run->duration_ns, 1);
}

/* A sample of a run whose rate was divided from its start on stands for more time. */
static void
set_rate(UprofRun *run)
{
    if (run->divisor > 1)
        run->rate_mhz = MAX(run->rate_mhz / run->divisor, 1);
}

/* Returns: (transfer full): a UUID that only this round has (version 8 of RFC 9562) */
static char *
make_id(const UprofStoredRound *round, const UprofRun *run)
{
    g_autofree char *name = g_strconcat(run->uuid ? run->uuid : "", "/", round->stem, NULL);
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);

    return g_strdup_printf("%.8s-%.4s-8%.3s-a%.3s-%.12s", digest, digest + 8, digest + 12,
                           digest + 15, digest + 18);
}

static char *
encode_profile(const UprofRequestContext *context, const UprofProfile *profile, const UprofRun *run)
{
    GString *packed = uprof_fitted_profile_render(profile, run, context->destination->per_vcpu);
    char *text = g_base64_encode((const guchar *)packed->str, packed->len);

    g_string_free(packed, TRUE);
    return text;
}

/* ---- Bodies ---- */

static void
write_samples(UprofJsonWriter *json, const char *key, const char *profile, const char *id)
{
    uprof_json_begin(json, "samples", UPROF_JSON_ARRAY);
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, key, profile);
    if (id)
        uprof_json_string(json, "ID", id);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_pyroscope(UprofJsonWriter *json, const GPtrArray *labels, const char *profile, const char *id)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_begin(json, "series", UPROF_JSON_ARRAY);
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    write_labels(json, "labels", labels);
    write_samples(json, "rawProfile", profile, id);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_parca(UprofJsonWriter *json, const GPtrArray *labels, const char *profile, const char *tenant)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "tenant", tenant ? tenant : "");
    uprof_json_begin(json, "series", UPROF_JSON_ARRAY);
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_begin(json, "labels", UPROF_JSON_OBJECT);
    write_labels(json, "labels", labels);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    write_samples(json, "rawProfile", profile, NULL);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_bool(json, "normalized", false);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

const char *
uprof_request_path(const UprofDestination *destination)
{
    return destination->type == UPROF_DESTINATION_PARCA ? "/api/profiles/writeraw"
                                                        : "/push.v1.PusherService/Push";
}

bool
uprof_request_may_want(const UprofStoredRound *round, const UprofDestination *destination)
{
    g_autofree char *name = uprof_stored_rounds_folder_name(round);

    return !name || uprof_destination_has_domain(destination, name);
}

static bool
is_named(const GPtrArray *words, const UprofRun *run, const char *name)
{
    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        if (strcmp(word, name) == 0 || g_ascii_strcasecmp(word, run->uuid ? run->uuid : "") == 0)
            return true;
    }
    return words->len == 0;
}

bool
uprof_request_wants(const UprofStoredRound *round, const UprofRun *run, void *data)
{
    const UprofRequestContext *context = data;
    g_autofree char *name = uprof_stored_rounds_name(round, run);

    return is_named(context->words, run, name) &&
           uprof_destination_has_domain(context->destination, name);
}

void
uprof_request_make(const UprofStoredRound *round, const UprofProfile *profile, UprofRun *run,
                   GByteArray *content, void *data)
{
    const UprofRequestContext *context = data;
    g_autoptr(GString) body = g_string_new(NULL);
    UprofJsonWriter json = { .out = body, .is_compact = true };

    if (context->is_dry)
        return;
    set_time(run, round->start_s);
    set_rate(run);
    g_autoptr(GPtrArray) labels = make_labels(context, round, run);
    g_autofree char *text = encode_profile(context, profile, run);
    g_autofree char *id = make_id(round, run);
    if (context->destination->type == UPROF_DESTINATION_PARCA)
        write_parca(&json, labels, text, context->destination->tenant);
    else
        write_pyroscope(&json, labels, text, id);
    g_byte_array_append(content, (const guint8 *)body->str, (guint)body->len);
}
