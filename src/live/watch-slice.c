/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 *   argument = u64 length, the text of uprof_capture_format_run(), { u8 subject, name, NUL }
 *   slice    = gzip(sidecar with the counts of the step, NUL, folded stacks)
 *   facts    = gzip(sidecar)
 */
#include "watch-slice-priv.h"

#include "uprof/capture-reader.h"
#include "uprof/clock.h"
#include "uprof/gzip.h"
#include "uprof/output.h"
#include "uprof/scan.h"
#include "uprof/sidecar.h"

#include <string.h>

enum { STEPS_OF_FACTS = 60 }; /* the facts are sent at least once in so many steps */

static const char shown[] = "slice";

GByteArray *
uprof_watch_slice_ask(const UprofRun *run, const GPtrArray *rules)
{
    g_autoptr(GByteArray) text = g_byte_array_new();
    GByteArray *ask = g_byte_array_new();

    uprof_capture_format_run(run, UPROF_RUN_AT_END, text);
    const uint64_t len = GUINT64_TO_LE((uint64_t)text->len);
    g_byte_array_append(ask, (const guint8 *)&len, sizeof(len));
    g_byte_array_append(ask, text->data, text->len);
    for (guint i = 0; i < rules->len; i++) {
        const UprofWatchRule *rule = g_ptr_array_index(rules, i);
        const uint8_t subject = (uint8_t)rule->subject;
        g_byte_array_append(ask, &subject, 1);
        g_byte_array_append(ask, (const guint8 *)rule->name, (guint)strlen(rule->name) + 1);
    }
    return ask;
}

/* ---- In a worker: making a slice ---- */

/* The replies that the worker has sent. */
static struct {
    unsigned n_steps;
    unsigned n_images; /* in the facts that were sent last */
    uint64_t cpu_ns;   /* processor time until the last step */
} sent;

/* Is @text the name, with the mark of the kernel or with the number of a process? */
static bool
is_meant(const char *text, const char *name)
{
    if (!g_str_has_prefix(text, name))
        return false;
    const char *rest = text + strlen(name);
    return !*rest || strcmp(rest, "_[k]") == 0 ||
           (*rest == '-' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

static uint64_t
find_row(const GArray *rows, const char *name)
{
    uint64_t total = 0;

    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        if (is_meant(uprof_name_text(row->name), name))
            total += row->total;
    }
    return total;
}

/* The samples of each vCPU, by the frame below the domain. */
static void
add_vcpu(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GHashTable *vcpus = data;
    uint32_t vcpu;

    if (n < 2 || !uprof_profile_level_is_vcpu(frames[1], &vcpu))
        return;
    const guint64 sum =
        (guint64)GPOINTER_TO_SIZE(g_hash_table_lookup(vcpus, GUINT_TO_POINTER(vcpu)));
    g_hash_table_insert(vcpus, GUINT_TO_POINTER(vcpu), GSIZE_TO_POINTER(sum + weight));
}

static bool
is_vcpu(const char *name, gpointer vcpu)
{
    uint64_t number;

    return uprof_slice_to_uint((UprofSlice){ name, strlen(name) }, 10, 0, UINT32_MAX, &number) &&
           number == GPOINTER_TO_UINT(vcpu);
}

/* @name: the vCPU; "": the busiest */
static uint64_t
count_vcpu(const UprofProfile *profile, const char *name)
{
    g_autoptr(GHashTable) vcpus = g_hash_table_new(NULL, NULL);
    GHashTableIter iter;
    gpointer vcpu, sum;
    uint64_t most = 0;

    uprof_profile_walk(profile, add_vcpu, vcpus);
    g_hash_table_iter_init(&iter, vcpus);
    while (g_hash_table_iter_next(&iter, &vcpu, &sum))
        if (!name[0] || is_vcpu(name, vcpu))
            most = MAX(most, (uint64_t)GPOINTER_TO_SIZE(sum));
    return most;
}

static void
add_running(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    if (strcmp(uprof_name_text(frames[n - 1]), "[idle]") != 0)
        uprof_profile_add(data, frames + 1, n - 1, weight);
}

/*
 * Halted vCPUs have stacks, too, if the run shows these.
 *
 * Returns: (transfer full): the stacks of running vCPUs; a sample of a lowered rate weighs more
 */
static UprofProfile *
copy_running(const UprofProfile *profile)
{
    UprofProfile *running =
        uprof_profile_new(uprof_profile_names(profile), uprof_profile_root(profile), false);

    uprof_profile_walk(profile, add_running, running);
    return running;
}

/* @running: without halted vCPUs */
static uint64_t
count_matches(const UprofProfile *running, UprofWatchSubject subject, const char *name)
{
    g_autoptr(GArray) rows = NULL;

    switch (subject) {
    case UPROF_WATCH_BUSY:
        return uprof_profile_total(running);
    case UPROF_WATCH_VCPU:
        return count_vcpu(running, name);
    case UPROF_WATCH_FUNCTION:
        rows = uprof_profile_rows(running, NULL);
        return find_row(rows, name);
    case UPROF_WATCH_PROCESS:
        rows = uprof_processes_find(running, UPROF_BY_PROCESS);
        return find_row(rows, name);
    default:
        return 0;
    }
}

/* @asked: (inout): behind the run's facts */
static void
count_rules(UprofBytes *asked, const UprofProfile *running, UprofWatchReply *head)
{
    const char *bytes = asked->all.data;
    uint8_t subject;

    for (unsigned i = 0; i < UPROF_WATCH_RULES_MAX && uprof_bytes_u8(asked, &subject); i++) {
        const char *name = bytes + asked->at;
        head->matched[i] = count_matches(running, (UprofWatchSubject)subject, name);
        asked->at += strlen(name) + 1;
    }
}

static void
append_compressed(GByteArray *out, const GString *text)
{
    GString *packed = uprof_output_compress((UprofSlice){ text->str, text->len });

    g_byte_array_append(out, (const guint8 *)packed->str, (guint)packed->len);
    g_string_free(packed, TRUE);
}

/* Appends the facts of the guest once a minute, and when there are other images. */
static void
append_facts(UprofAnalysis *analysis, GByteArray *out)
{
    const UprofRun *run = analysis->run;

    uprof_pipeline_note_facts(analysis->pipeline);
    if (sent.n_steps++ % STEPS_OF_FACTS != 0 && sent.n_images == run->images->len)
        return;
    sent.n_images = run->images->len;
    GString *facts = uprof_output_render(&uprof_format_meta, analysis->pipeline->profile, run);
    append_compressed(out, facts);
    g_string_free(facts, TRUE);
}

static void
append_slice(const UprofProfile *profile, const UprofRun *run, GByteArray *out)
{
    g_autoptr(UprofRun) counts = uprof_run_new();

    uprof_run_add_counts(counts, run);
    GString *text = uprof_output_render(&uprof_format_meta, profile, counts);
    GString *stacks = uprof_output_render(&uprof_format_folded, profile, run);
    g_string_append_c(text, '\0');
    g_string_append_len(text, stacks->str, (gssize)stacks->len);
    append_compressed(out, text);
    g_string_free(stacks, TRUE);
    g_string_free(text, TRUE);
}

void
uprof_watch_slice_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    UprofRun *run = analysis->run;
    g_autoptr(UprofProfile) profile = uprof_pipeline_take_profile(analysis->pipeline);
    g_autoptr(UprofProfile) running = copy_running(profile);
    g_autoptr(GByteArray) rest = g_byte_array_new();
    UprofBytes asked = { .name = "step", .all = argument };
    UprofWatchReply head = { 0 };
    UprofSlice text = { 0 };
    uint64_t len = 0;

    uprof_bytes_u64(&asked, &len);
    uprof_bytes_take(&asked, len, &text);
    uprof_capture_parse_run(text, run, NULL);
    const uint64_t cpu_ns = uprof_clock_cpu_ns();
    run->cpu_ns += cpu_ns - sent.cpu_ns;
    sent.cpu_ns = cpu_ns;
    count_rules(&asked, running, &head);
    head.running = uprof_profile_total(running);
    append_facts(analysis, rest);
    head.facts_len = rest->len;
    append_slice(profile, run, rest);
    g_byte_array_append(reply, (const guint8 *)&head, sizeof(head));
    g_byte_array_append(reply, rest->data, rest->len);
    uprof_run_clear_counts(run);
}

/* ---- In another process: reading slices ---- */

static UprofRun *
read_sidecar(const guint8 *bytes, size_t len, GError **error)
{
    return uprof_sidecar_parse(shown, (UprofSlice){ bytes, len }, error);
}

bool
uprof_watch_slice_set_facts(UprofLoad *load, UprofSlice facts, GError **error)
{
    g_autoptr(GByteArray) bytes = uprof_gzip_inflate(shown, facts, error);
    g_autoptr(UprofRun) run = bytes ? read_sidecar(bytes->data, bytes->len, error) : NULL;

    if (!run)
        return false;
    uprof_run_clear_counts(run);
    uprof_run_merge(load->run, run, true);
    return true;
}

static void
merge_counts(UprofRun *run, const UprofRun *other, bool is_first)
{
    uprof_run_add_counts(run, other);
}

bool
uprof_watch_slice_add(UprofLoad *load, UprofSlice slice, GError **error)
{
    g_autoptr(GByteArray) bytes = uprof_gzip_inflate(shown, slice, error);
    const guint8 *end = bytes && bytes->len > 0 ? memchr(bytes->data, '\0', bytes->len) : NULL;
    const size_t len = end ? (size_t)(end - bytes->data) : 0;
    g_autoptr(UprofRun) counts = bytes ? read_sidecar(bytes->data, len, error) : NULL;

    if (!counts)
        return false;
    const UprofSlice stacks = { end + 1, bytes->len - len - 1 };
    if (uprof_load_add_text(load, stacks, load->run->domain ? load->run->domain : shown, counts,
                            merge_counts) == UPROF_ERROR_NONE)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: its stacks cannot be read", shown);
    return false;
}
