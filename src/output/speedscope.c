/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * speedscope's JSON (https://www.speedscope.app/file-format-schema.json): a
 * profile per vCPU, stacks in the order of time, equal neighbors joined.
 */
#include "uprof/output.h"

#include "ticks-priv.h"
#include "uprof/text.h"

#include <string.h>

typedef struct {
    UprofSink *sink;
    const UprofRun *run;
    const UprofProfile *profile;
    GHashTable *indices; /* UprofName -> number of its frame */
    GPtrArray *names;
    uint64_t n_samples;
    bool is_time;
    uint64_t period_ns; /* what a sample weighs; 1, of no unit, where it weighs no time */
    /* of the vCPU that is written: */
    const UprofName *last[UPROF_PROFILE_DEPTH_MAX];
    unsigned n_last;
    uint64_t weight; /* of the last stack so far */
    GArray *weights; /* of uint64_t: of those before it */
    uint64_t total_ns;
} Speedscope;

static void
append_string(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    uprof_text_append_json(out, text);
    g_string_append_c(out, '"');
}

/* Numbers that JavaScript can hold: 104 days. */
static const uint64_t total_max_ns = UINT64_C(1) << 53;

static void
note_names(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    Speedscope *state = data;

    if (__builtin_add_overflow(state->n_samples, (uint64_t)tick.count * tick.weight,
                               &state->n_samples))
        state->n_samples = UINT64_MAX; /* a forged capture */
    for (unsigned i = 0; i < n; i++) {
        if (g_hash_table_contains(state->indices, frames[i]))
            continue;
        g_hash_table_insert(state->indices, (gpointer)frames[i],
                            GUINT_TO_POINTER(state->names->len));
        g_ptr_array_add(state->names, (gpointer)frames[i]);
    }
}

static void
append_frames(Speedscope *state)
{
    GString *out = state->sink->text;

    g_string_append(out, "\"shared\":{\"frames\":[");
    for (guint i = 0; i < state->names->len; i++) {
        g_string_append(out, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
        append_string(out, uprof_name_text(g_ptr_array_index(state->names, i)));
        g_string_append_c(out, '}');
        uprof_sink_drain(state->sink);
    }
    g_string_append(out, "]},\n");
}

static void
end_stack(Speedscope *state)
{
    GString *out = state->sink->text;
    const uint64_t weight_ns = state->weight * state->period_ns;

    if (state->weight == 0)
        return;
    g_string_append(out, state->weights->len > 0 ? ",[" : "[");
    for (unsigned i = 0; i < state->n_last; i++)
        g_string_append_printf(
            out, "%s%u", i > 0 ? "," : "",
            GPOINTER_TO_UINT(g_hash_table_lookup(state->indices, state->last[i])));
    g_string_append_c(out, ']');
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
        end_stack(state);
        memcpy(state->last, frames, n * sizeof(*frames));
        state->n_last = n;
    }
    state->weight += (uint64_t)tick.count * tick.weight;
}

static void
append_profile(Speedscope *state, uint32_t vcpu)
{
    GString *out = state->sink->text;
    g_autofree char *domain = uprof_text_quote(state->run->domain);
    g_autofree char *name = g_strdup_printf("%s vcpu%u", domain, vcpu);

    g_string_append(out, "{\"type\":\"sampled\",\"name\":");
    append_string(out, name);
    g_string_append_printf(out, ",\"unit\":\"%s\",\"startValue\":0,\n\"samples\":[",
                           state->is_time ? "nanoseconds" : "none");
    g_array_set_size(state->weights, 0);
    state->n_last = 0;
    state->total_ns = 0;
    uprof_ticks_walk(state->profile, state->run, vcpu, take_tick, state);
    end_stack(state);
    g_string_append(out, "],\n\"weights\":[");
    for (guint i = 0; i < state->weights->len; i++) {
        g_string_append_printf(out, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               g_array_index(state->weights, uint64_t, i));
        uprof_sink_drain(state->sink);
    }
    g_string_append_printf(out, "],\n\"endValue\":%" G_GUINT64_FORMAT "}", state->total_ns);
}

static void
append_head(const Speedscope *state)
{
    GString *out = state->sink->text;
    g_autofree char *domain = uprof_text_quote(state->run->domain);
    g_autofree char *program =
        uprof_text_quote(state->run->program ? state->run->program : "virt-uprof");

    g_strdelimit(program, " ", '@');
    g_string_append(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                         "\"exporter\":");
    append_string(out, program);
    g_string_append(out, ",\"name\":");
    append_string(out, domain);
    g_string_append(out, ",\"activeProfileIndex\":0,\n");
}

static void
speedscope_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    g_autoptr(GHashTable) indices = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GArray) weights = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GArray) vcpus = uprof_ticks_vcpus(profile, run);
    g_autofree Speedscope *state = g_new0(Speedscope, 1);

    *state = (Speedscope){
        .sink = sink,
        .run = run,
        .profile = profile,
        .indices = indices,
        .names = names,
        .weights = weights,
    };
    uprof_ticks_walk(profile, run, UPROF_PROFILE_ALL_VCPUS, note_names, state);
    /* counts of others may be bytes, or nanoseconds: time is only what has a rate */
    state->is_time =
        run->rate_mhz > 0 && state->n_samples <= total_max_ns / uprof_ticks_period_ns(run);
    state->period_ns = state->is_time ? uprof_ticks_period_ns(run) : 1;
    append_head(state);
    append_frames(state);
    g_string_append(sink->text, "\"profiles\":[\n");
    for (guint i = 0; i < vcpus->len; i++) {
        g_string_append(sink->text, i > 0 ? ",\n" : "");
        append_profile(state, g_array_index(vcpus, uint32_t, i));
    }
    g_string_append(sink->text, "]}\n");
}

const UprofFormat uprof_format_speedscope = {
    .name = "speedscope",
    .suffixes = { ".json" },
    .is_timed = true,
    .write = speedscope_write,
};
