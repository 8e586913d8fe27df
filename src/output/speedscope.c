/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * speedscope's JSON (https://www.speedscope.app/file-format-schema.json): a profile for each vCPU,
 * with its stacks in the order of time. Equal stacks that follow each other become one.
 */
#include "uprof/output.h"

#include "uprof/json-writer.h"
#include "uprof/text.h"

#include "output-priv.h"
#include "ticks-priv.h"

#include <string.h>

typedef struct {
    UprofSink *sink;
    UprofJsonWriter json;
    const UprofRun *run;
    const UprofProfile *profile;
    GHashTable *indices; /* UprofName -> index in the frames of the file */
    GPtrArray *names;    /* the names by index */
    uint64_t n_samples;
    bool is_time;
    uint64_t period_ns; /* the weight of a sample; if weights are no times, 1 without a unit */

    /* Of the vCPU that is being written: */
    const UprofName *last[UPROF_PROFILE_DEPTH_MAX]; /* its last stack */
    unsigned n_last;
    uint64_t weight; /* of the last stack, in samples */
    GArray *weights; /* of uint64_t: of all stacks before the last, in ns or without unit */
    uint64_t total_ns;
} Speedscope;

/* The largest exact integer of JavaScript: 104 days */
static const uint64_t total_max_ns = UINT64_C(1) << 53;

static void
note_names(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    Speedscope *state = data;

    if (__builtin_add_overflow(state->n_samples, (uint64_t)tick.count * tick.weight,
                               &state->n_samples))
        state->n_samples = UINT64_MAX; /* only a forged capture overflows */
    for (unsigned i = 0; i < n; i++) {
        if (g_hash_table_contains(state->indices, frames[i]))
            continue;
        g_hash_table_insert(state->indices, (gpointer)frames[i],
                            GUINT_TO_POINTER(state->names->len));
        g_ptr_array_add(state->names, (gpointer)frames[i]);
    }
}

static void
write_frames(Speedscope *state)
{
    UprofJsonWriter *json = &state->json;

    uprof_json_begin(json, "shared", UPROF_JSON_OBJECT);
    uprof_json_begin(json, "frames", UPROF_JSON_ARRAY);
    for (guint i = 0; i < state->names->len; i++) {
        uprof_json_break_line(json, "\n");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_string(json, "name", uprof_name_text(g_ptr_array_index(state->names, i)));
        uprof_json_end(json, UPROF_JSON_OBJECT);
        uprof_sink_drain(state->sink);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_last_stack(Speedscope *state)
{
    const uint64_t weight_ns = state->weight * state->period_ns;

    if (state->weight == 0)
        return;
    uprof_json_begin(&state->json, NULL, UPROF_JSON_ARRAY);
    for (unsigned i = 0; i < state->n_last; i++)
        uprof_json_uint(&state->json, NULL,
                        GPOINTER_TO_UINT(g_hash_table_lookup(state->indices, state->last[i])));
    uprof_json_end(&state->json, UPROF_JSON_ARRAY);
    g_array_append_val(state->weights, weight_ns);
    state->total_ns += weight_ns;
    state->weight = 0;
    uprof_sink_drain(state->sink);
}

static void
take_tick(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    Speedscope *state = data;

    if (n != state->n_last || memcmp(frames, state->last, n * sizeof(*frames)) != 0) {
        write_last_stack(state);
        memcpy(state->last, frames, n * sizeof(*frames));
        state->n_last = n;
    }
    state->weight += (uint64_t)tick.count * tick.weight;
}

static void
write_samples(Speedscope *state, uint32_t vcpu)
{
    g_array_set_size(state->weights, 0);
    state->n_last = 0;
    state->total_ns = 0;
    uprof_json_break_line(&state->json, "\n");
    uprof_json_begin(&state->json, "samples", UPROF_JSON_ARRAY);
    uprof_ticks_walk(state->profile, state->run, vcpu, take_tick, state);
    write_last_stack(state);
    uprof_json_end(&state->json, UPROF_JSON_ARRAY);
}

static void
write_weights(Speedscope *state)
{
    uprof_json_break_line(&state->json, "\n");
    uprof_json_begin(&state->json, "weights", UPROF_JSON_ARRAY);
    for (guint i = 0; i < state->weights->len; i++) {
        uprof_json_uint(&state->json, NULL, g_array_index(state->weights, uint64_t, i));
        uprof_sink_drain(state->sink);
    }
    uprof_json_end(&state->json, UPROF_JSON_ARRAY);
    uprof_json_break_line(&state->json, "\n");
}

static void
write_vcpu(Speedscope *state, uint32_t vcpu)
{
    UprofJsonWriter *json = &state->json;
    g_autofree char *domain = uprof_text_quote(state->run->domain);
    g_autofree char *name = g_strdup_printf("%s vcpu%u", domain, vcpu);

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "type", "sampled");
    uprof_json_string(json, "name", name);
    uprof_json_string(json, "unit", state->is_time ? "nanoseconds" : "none");
    uprof_json_uint(json, "startValue", 0);
    write_samples(state, vcpu);
    write_weights(state);
    uprof_json_uint(json, "endValue", state->total_ns);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_vcpus(Speedscope *state)
{
    g_autoptr(GArray) vcpus = uprof_ticks_vcpus(state->profile, state->run);
    UprofJsonWriter *json = &state->json;

    uprof_json_break_line(json, "\n");
    uprof_json_begin(json, "profiles", UPROF_JSON_ARRAY);
    for (guint i = 0; i < vcpus->len; i++) {
        uprof_json_break_line(json, "\n");
        write_vcpu(state, g_array_index(vcpus, uint32_t, i));
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_head(Speedscope *state)
{
    UprofJsonWriter *json = &state->json;
    g_autofree char *domain = uprof_text_quote(state->run->domain);
    g_autofree char *program =
        uprof_text_quote(state->run->program ? state->run->program : "virt-uprof");

    g_strdelimit(program, " ", '@');
    uprof_json_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    uprof_json_break_line(json, "\n");
    uprof_json_string(json, "exporter", program);
    uprof_json_string(json, "name", domain);
    uprof_json_uint(json, "activeProfileIndex", 0);
    uprof_json_break_line(json, "\n");
}

static void
speedscope_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    g_autoptr(GHashTable) indices = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GArray) weights = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autofree Speedscope *state = g_new0(Speedscope, 1);

    *state = (Speedscope){
        .sink = sink,
        .json = { .out = sink->text, .is_compact = true },
        .run = run,
        .profile = profile,
        .indices = indices,
        .names = names,
        .weights = weights,
    };
    uprof_ticks_walk(profile, run, UPROF_PROFILE_ALL_VCPUS, note_names, state);
    /* Counts are times only if the rate is known: counts of other profilers can be bytes. */
    state->is_time =
        run->rate_mhz > 0 && state->n_samples <= total_max_ns / uprof_ticks_period_ns(run);
    state->period_ns = state->is_time ? uprof_ticks_period_ns(run) : 1;
    uprof_json_begin(&state->json, NULL, UPROF_JSON_OBJECT);
    write_head(state);
    write_frames(state);
    write_vcpus(state);
    uprof_json_end(&state->json, UPROF_JSON_OBJECT);
    g_string_append_c(sink->text, '\n');
}

const UprofFormat uprof_format_speedscope = {
    .name = "speedscope",
    .suffixes = { ".json" },
    .is_timed = true,
    .write = speedscope_write,
    .has_waits_file = true,
};
