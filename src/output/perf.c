/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of `perf script` for speedscope (src/import/linux-tools-perf.ts), the Firefox
 * Profiler (src/profile-logic/import/linux-perf.js), Perfetto and stackcollapse-perf.pl.
 * Each vCPU is a thread. There is one event name. The times of a thread rise. After each
 * name follows its module, in parentheses and without blanks.
 */
#include "uprof/output.h"

#include "uprof/clock.h"
#include "uprof/error.h"

#include "frame-location-priv.h"
#include "output-priv.h"
#include "ticks-priv.h"

#include <string.h>

enum {
    PROCESS = 1000, /* number of the guest; its threads have the next numbers */
    /* Each sample is a record, and a file without times may claim any number of samples. */
    EVENTS_MAX = 10 * 1000 * 1000,
    GIB_MAX = 4, /* of all records together */
    HEAD_LEN = sizeof(" 1000/1001 [000] 123456.123456:   10000000 cpu-clock:\n\n") - 1,
    FRAME_LEN = sizeof("\t               0  ()\n") - 1,
};

typedef struct {
    UprofSink *sink;
    char *thread;    /* the beginning of each record */
    GString *frames; /* text of the current stack, which may be written many times */
    uint64_t period_ns;
    bool has_root;
    GHashTable *last; /* vCPU -> uint64_t: its last time in microseconds */
} Script;

/* Readers expect a thread name without blanks and longer than one letter. */
static char *
make_thread_name(const UprofName *root)
{
    char *name = g_strconcat("vm:", root ? uprof_name_text(root) : "all", NULL);

    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '_';
    return name;
}

/* Readers skip names that begin with '(', and recognize kernel code by its module. */
static void
append_name(GString *out, const UprofName *name)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *text = uprof_name_text(name);
    const UprofKind kind = uprof_kind_of(name);
    size_t len = strlen(text);

    if (kind == UPROF_KIND_KERNEL || kind == UPROF_KIND_INTERRUPT)
        len -= strlen("_[k]");
    if (strncmp(text, anonymous, strlen(anonymous)) == 0) {
        g_string_append(out, "{anonymous}");
        text += strlen(anonymous);
        len -= strlen(anonymous);
    } else if (text[0] == '(') {
        g_string_append_c(out, '_');
    }
    g_string_append_len(out, text, (gssize)len);
}

static void
render_frames(const Script *script, const UprofName *const *frames, unsigned n)
{
    GString *out = script->frames;
    const unsigned first = script->has_root ? 1 : 0; /* the thread's name is the root */

    g_string_truncate(out, 0);
    for (unsigned i = n; i-- > first;) {
        const UprofLocation location = uprof_location_of(frames[i]);
        g_string_append_printf(out, "\t%16" G_GINT64_MODIFIER "x ", location.address);
        append_name(out, frames[i]);
        g_string_append_printf(out, " (%s)\n", location.module);
    }
    g_string_append_c(out, '\n');
}

/* Times rise by at least a microsecond. */
static uint64_t
take_time(Script *script, uint32_t vcpu, uint64_t time_ns)
{
    uint64_t *last = g_hash_table_lookup(script->last, GUINT_TO_POINTER(vcpu));
    const uint64_t time_us = time_ns / UPROF_NS_PER_US;

    if (!last) {
        last = g_new0(uint64_t, 1);
        g_hash_table_insert(script->last, GUINT_TO_POINTER(vcpu), last);
        *last = time_us;
    } else {
        *last = MAX(time_us, *last + 1);
    }
    return *last;
}

static void
append_tick(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    Script *script = data;
    const uint64_t us_per_s = UPROF_NS_PER_S / UPROF_NS_PER_US;

    render_frames(script, frames, n);
    /* A sample of weight k stands for k ticks, which are k records. */
    for (uint64_t i = 0; i < (uint64_t)tick.count * tick.weight; i++) {
        const uint64_t time_us = take_time(script, tick.vcpu, tick.time_ns + i * script->period_ns);
        g_string_append_printf(
            script->sink->text,
            "%s %d/%u [%03u] %" G_GUINT64_FORMAT ".%06u: %10" G_GUINT64_FORMAT " cpu-clock:\n",
            script->thread, PROCESS, PROCESS + 1 + tick.vcpu, tick.vcpu, time_us / us_per_s,
            (unsigned)(time_us % us_per_s), script->period_ns);
        g_string_append_len(script->sink->text, script->frames->str, (gssize)script->frames->len);
        uprof_sink_drain(script->sink);
        if (script->sink->error)
            return;
    }
}

typedef struct {
    const Script *script;
    uint64_t bytes; /* of all records, to a few percent */
} Size;

static void
add_size(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    Size *size = data;
    uint64_t len = strlen(size->script->thread) + HEAD_LEN;

    for (unsigned i = size->script->has_root ? 1 : 0; i < n; i++)
        len += FRAME_LEN + strlen(uprof_name_text(frames[i])) +
               strlen(uprof_location_of(frames[i]).module);
    if (__builtin_mul_overflow(len, (uint64_t)tick.count * tick.weight, &len) ||
        __builtin_add_overflow(size->bytes, len, &size->bytes))
        size->bytes = UINT64_MAX; /* only a forged capture overflows */
}

/* Writing fewer records would distort the shares: a small stack would have none, or one. */
static bool
check_size(const Script *script, const UprofProfile *profile, const UprofRun *run)
{
    const uint64_t n = uprof_profile_total(profile);
    Size size = { .script = script };
    GError **error = &script->sink->error;

    if (uprof_profile_n_ticks(profile) == 0 && n > EVENTS_MAX) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "format 'perf' has a record for each sample, and %" G_GUINT64_FORMAT
                    " are too many; take .pb.gz, .json or .folded",
                    n);
        return false;
    }
    uprof_ticks_walk(profile, run, UPROF_PROFILE_ALL_VCPUS, add_size, &size);
    if (size.bytes <= (uint64_t)GIB_MAX << 30)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "format 'perf' has a record for each sample, and %" G_GUINT64_FORMAT
                " MiB of them are too many; take .pb.gz, .json or .folded",
                size.bytes >> 20);
    return false;
}

static void
perf_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    g_autoptr(GHashTable) last = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autofree char *thread = make_thread_name(uprof_profile_root(profile));
    g_autoptr(GString) frames = g_string_new(NULL);
    Script script = {
        .sink = sink,
        .thread = thread,
        .frames = frames,
        .period_ns = uprof_ticks_period_ns(run),
        .has_root = uprof_profile_root(profile) != NULL,
        .last = last,
    };

    if (check_size(&script, profile, run))
        uprof_ticks_walk(profile, run, UPROF_PROFILE_ALL_VCPUS, append_tick, &script);
}

const UprofFormat uprof_format_perf = {
    .name = "perf",
    .suffixes = { ".perf" },
    .is_timed = true,
    .write = perf_write,
};
