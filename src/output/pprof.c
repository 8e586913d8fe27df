/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pprof (google/pprof, proto/profile.proto), compressed. The order of fields is free: samples come
 * first, and then the tables to which they refer.
 *
 * The domain and the vCPU are labels, not frames. Each location has a line, because speedscope
 * drops locations without a line. Its number is that of the line where the function begins, because
 * a frame stands for all places of a function; it is 0 if that line is not known. The flags of the
 * mapping say that names are complete, so that readers do not search files of the host for symbols.
 */
#include "uprof/output.h"

#include "deflate-priv.h"
#include "frame-location-priv.h"
#include "ticks-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <string.h>

enum { VARINT = 0, LENGTH = 2 };
enum { BLOCK = 64 * 1024 }; /* bytes to compress at a time */
enum { MAPPING_NONE, MAPPING_APP, MAPPING_KERNEL, MAPPING_MODULES };

typedef struct {
    UprofDeflate *packer;
    GString *out;
    const UprofRun *run;
    GHashTable *strings; /* char -> index */
    GPtrArray *texts;    /* (element-type utf8): owned, by index */
    GHashTable *ids;     /* UprofName -> id */
    GHashTable *modules; /* UprofName -> id of its mapping, behind those of app and kernel */
    /* (element-type UprofName): index n has id n + 1, as location and as function */
    GPtrArray *locations;
    GString *message, *inner;
    uint64_t period_ns;
    bool has_root;
    bool has_kernel;
    bool has_waits;             /* samples have a third value: the time for which tasks waited */
    bool is_waits;              /* the stacks that are written now have only this value */
    const UprofPprofForm *form; /* (nullable) */
} Pprof;

static void
append_varint(GString *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        g_string_append_c(out, (char)(value | 0x80));
    g_string_append_c(out, (char)value);
}

static void
append_number(GString *out, unsigned field, uint64_t value)
{
    append_varint(out, field << 3 | VARINT);
    append_varint(out, value);
}

static void
append_bytes(GString *out, unsigned field, const char *bytes, size_t len)
{
    append_varint(out, field << 3 | LENGTH);
    append_varint(out, len);
    g_string_append_len(out, bytes, (gssize)len);
}

/* Appends @message as a field of its parent, and empties @message. */
static void
append_message(GString *out, unsigned field, GString *message)
{
    append_bytes(out, field, message->str, message->len);
    g_string_truncate(message, 0);
}

static void
pack_output(Pprof *pprof, size_t from)
{
    if (pprof->out->len >= from)
        uprof_deflate_write(pprof->packer, pprof->out);
}

static uint64_t
index_string(Pprof *pprof, const char *text)
{
    gpointer index;

    if (!g_hash_table_lookup_extended(pprof->strings, text, NULL, &index)) {
        char *copy = g_strdup(text);
        index = GUINT_TO_POINTER(pprof->texts->len);
        g_ptr_array_add(pprof->texts, copy);
        g_hash_table_insert(pprof->strings, copy, index);
    }
    return GPOINTER_TO_UINT(index);
}

static uint64_t
find_location(Pprof *pprof, const UprofName *name)
{
    gpointer id = g_hash_table_lookup(pprof->ids, name);

    if (!id) {
        g_ptr_array_add(pprof->locations, (gpointer)name);
        id = GUINT_TO_POINTER(pprof->locations->len);
        g_hash_table_insert(pprof->ids, (gpointer)name, id);
    }
    return GPOINTER_TO_UINT(id);
}

static void
append_label(Pprof *pprof, const char *key, const char *text)
{
    append_number(pprof->inner, 1, index_string(pprof, key));
    append_number(pprof->inner, 2, index_string(pprof, text));
    append_message(pprof->message, 3, pprof->inner);
}

static bool
is_kernel(const UprofName *name)
{
    const UprofKind kind = uprof_kind_of(name);

    return kind == UPROF_KIND_KERNEL || kind == UPROF_KIND_INTERRUPT;
}

static void
note_kernel(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Pprof *pprof = data;

    for (unsigned i = 0; i < n && !pprof->has_kernel; i++)
        pprof->has_kernel = is_kernel(frames[i]);
}

static void
append_time(Pprof *pprof, uint64_t n, uint64_t unit_ns)
{
    append_varint(pprof->inner, (uint64_t)MIN((unsigned __int128)n * unit_ns, INT64_MAX));
}

static void
append_values(Pprof *pprof, uint64_t weight)
{
    const uint64_t n_samples = pprof->is_waits ? 0 : weight;

    append_varint(pprof->inner, n_samples);
    append_time(pprof, n_samples, pprof->period_ns);
    if (pprof->has_waits)
        append_time(pprof, weight - n_samples, UPROF_NS_PER_US);
    append_message(pprof->message, 2, pprof->inner);
}

/* Engines make a series for each set of labels, so a form has few of them. */
static void
append_labels(Pprof *pprof, const UprofName *const *frames, unsigned n, bool has_vcpu)
{
    if (pprof->has_root && !pprof->form)
        append_label(pprof, "domain", uprof_name_text(frames[0]));
    if (has_vcpu)
        append_label(pprof, "vcpu", uprof_name_text(frames[1]));
    if (pprof->has_kernel && !pprof->form)
        append_label(pprof, "mode", is_kernel(frames[n - 1]) ? "kernel" : "user");
}

static void
append_sample(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Pprof *pprof = data;
    unsigned first = pprof->has_root ? 1 : 0;
    uint32_t vcpu;
    const bool has_vcpu = pprof->has_root && n > 2 && uprof_profile_level_is_vcpu(frames[1], &vcpu);

    first += has_vcpu ? 1 : 0;
    for (unsigned i = n; i-- > first;)
        append_varint(pprof->inner, find_location(pprof, frames[i]));
    append_message(pprof->message, 1, pprof->inner);
    append_values(pprof, weight);
    append_labels(pprof, frames, n, has_vcpu);
    append_message(pprof->out, 2, pprof->message);
    pack_output(pprof, BLOCK);
}

/* Returns: the type of the times: halted vCPUs have no processor time */
static const char *
name_time(const Pprof *pprof)
{
    return pprof->run->idle && !pprof->form ? "wall" : "cpu";
}

static void
append_value_type(Pprof *pprof, unsigned field, const char *type, const char *unit)
{
    append_number(pprof->message, 1, index_string(pprof, type));
    append_number(pprof->message, 2, index_string(pprof, unit));
    append_message(pprof->out, field, pprof->message);
}

static void
append_mapping(Pprof *pprof, uint64_t id, const char *module, const char *build_id)
{
    append_number(pprof->message, 1, id);
    append_number(pprof->message, 5, index_string(pprof, module));
    if (build_id)
        append_number(pprof->message, 6, index_string(pprof, build_id));
    append_number(pprof->message, 7, 1); /* has_functions */
    append_message(pprof->out, 3, pprof->message);
}

/* Returns: the mapping of the module, which is written when it is needed first */
static uint64_t
find_module(Pprof *pprof, const UprofName *module)
{
    gpointer id = g_hash_table_lookup(pprof->modules, module);

    if (!id) {
        const char *name = uprof_name_text(module);
        const char *build_id = uprof_run_module_id(pprof->run, (UprofSlice){ name, strlen(name) });
        g_autofree char *shown_id = build_id ? uprof_text_quote(build_id) : NULL;
        /* Parca refuses ids with gaps */
        const unsigned first = pprof->has_kernel ? MAPPING_MODULES : MAPPING_KERNEL;
        id = GUINT_TO_POINTER(first + g_hash_table_size(pprof->modules));
        g_hash_table_insert(pprof->modules, (gpointer)module, id);
        append_mapping(pprof, GPOINTER_TO_UINT(id), name, shown_id);
    }
    return GPOINTER_TO_UINT(id);
}

static uint64_t
find_mapping(Pprof *pprof, const UprofName *name)
{
    const UprofName *module = uprof_name_module(name);

    return is_kernel(name) ? MAPPING_KERNEL : module ? find_module(pprof, module) : MAPPING_APP;
}

static void
append_mappings(Pprof *pprof)
{
    const GPtrArray *images = pprof->run->images;
    const char *id = NULL;

    for (guint i = 0; i < images->len && !id; i++) {
        const UprofRunImage *image = g_ptr_array_index(images, i);
        id = image->is_module ? NULL : image->build_id;
    }
    g_autofree char *build_id = id ? uprof_text_quote(id) : NULL;

    append_mapping(pprof, MAPPING_APP, UPROF_LOCATION_APP, build_id);
    if (pprof->has_kernel)
        append_mapping(pprof, MAPPING_KERNEL, UPROF_LOCATION_KERNEL, NULL);
}

static void
append_location(Pprof *pprof, uint64_t id, const UprofName *name)
{
    const UprofLocation location = uprof_location_of(name);
    const uint64_t text = index_string(pprof, uprof_name_text(name));
    const uint64_t mapping = location.is_code ? find_mapping(pprof, name) : MAPPING_NONE;
    const UprofNameSource source = uprof_name_source(name);

    append_number(pprof->message, 1, id);
    if (mapping != MAPPING_NONE)
        append_number(pprof->message, 2, mapping);
    if (location.address > 0)
        append_number(pprof->message, 3, location.address);
    append_number(pprof->inner, 1, id);
    if (source.line > 0)
        append_number(pprof->inner, 2, source.line);
    append_message(pprof->message, 4, pprof->inner);
    append_message(pprof->out, 4, pprof->message);

    append_number(pprof->message, 1, id);
    append_number(pprof->message, 2, text);
    append_number(pprof->message, 3, text);
    if (source.file)
        append_number(pprof->message, 4, index_string(pprof, uprof_name_text(source.file)));
    if (source.line > 0)
        append_number(pprof->message, 5, source.line);
    append_message(pprof->out, 5, pprof->message);
    pack_output(pprof, BLOCK);
}

static void
append_comment(Pprof *pprof, const char *text)
{
    append_number(pprof->out, 13, index_string(pprof, text));
}

static void
append_facts(Pprof *pprof)
{
    const UprofRun *run = pprof->run;
    g_autofree char *program = uprof_text_quote(run->program ? run->program : "virt-uprof");
    g_autofree char *domain = uprof_text_quote(run->domain);
    g_autofree char *uuid = uprof_text_quote(run->uuid);
    g_autofree char *who = g_strdup_printf("domain %s %s", domain, uuid);
    g_autofree char *quality =
        g_strdup_printf("%" G_GUINT64_FORMAT " samples, %" G_GUINT64_FORMAT
                        " running, %" G_GUINT64_FORMAT " complete, %" G_GUINT64_FORMAT " truncated",
                        run->samples, run->running, run->complete, run->truncated);
    const char *what = name_time(pprof);

    if (run->started_utc_ns > 0)
        append_number(pprof->out, 9, run->started_utc_ns);
    if (run->duration_ns > 0)
        append_number(pprof->out, 10, run->duration_ns);
    append_value_type(pprof, 11, what, "nanoseconds");
    append_number(pprof->out, 12, pprof->period_ns);
    append_comment(pprof, program);
    append_comment(pprof, who);
    append_comment(pprof, quality);
    if (pprof->form && pprof->form->comment)
        append_comment(pprof, pprof->form->comment);
    if (run->rate_mhz == 0)
        append_comment(pprof, "the rate is not known: times are those of 100 samples a second");
    append_number(pprof->out, 14, index_string(pprof, what));
}

/* @waits: (nullable) */
static void
append_all(Pprof *pprof, const UprofProfile *profile, const UprofProfile *waits)
{
    index_string(pprof, ""); /* index 0 must be the empty string */
    append_value_type(pprof, 1, "samples", "count");
    append_value_type(pprof, 1, name_time(pprof), "nanoseconds");
    if (waits)
        append_value_type(pprof, 1, "waiting", "nanoseconds");
    uprof_profile_walk(profile, note_kernel, pprof);
    if (waits)
        uprof_profile_walk(waits, note_kernel, pprof);
    uprof_profile_walk(profile, append_sample, pprof);
    pprof->is_waits = true;
    if (waits)
        uprof_profile_walk(waits, append_sample, pprof);
    append_mappings(pprof);
    for (guint i = 0; i < pprof->locations->len; i++)
        append_location(pprof, i + 1, g_ptr_array_index(pprof->locations, i));
    append_facts(pprof);
    for (guint i = 0; i < pprof->texts->len; i++) {
        const char *text = g_ptr_array_index(pprof->texts, i);
        append_bytes(pprof->out, 6, text, strlen(text));
        pack_output(pprof, BLOCK);
    }
    pack_output(pprof, 0);
}

static void
write_profile(const UprofProfile *profile, const UprofProfile *waits, const UprofRun *run,
              const UprofPprofForm *form, UprofSink *sink)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) message = g_string_new(NULL);
    g_autoptr(GString) inner = g_string_new(NULL);
    g_autoptr(GHashTable) strings = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) ids = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) modules = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) locations = g_ptr_array_new();
    Pprof pprof = {
        .packer = uprof_deflate_new(sink),
        .out = out,
        .run = run,
        .strings = strings,
        .texts = texts,
        .ids = ids,
        .modules = modules,
        .locations = locations,
        .message = message,
        .inner = inner,
        .period_ns = uprof_ticks_period_ns(run),
        .has_root = uprof_profile_root(profile) != NULL,
        .has_waits = waits != NULL,
        .form = form,
    };

    append_all(&pprof, profile, waits);
    uprof_deflate_finish(pprof.packer);
}

static void
pprof_write_both(const UprofProfile *profile, const UprofProfile *waits, const UprofRun *run,
                 UprofSink *sink)
{
    write_profile(profile, waits, run, NULL, sink);
}

static void
pprof_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    write_profile(profile, NULL, run, NULL, sink);
}

GString *
uprof_pprof_render(const UprofProfile *profile, const UprofRun *run, const UprofPprofForm *form)
{
    UprofSink sink = { .text = g_string_new(NULL) };

    write_profile(profile, NULL, run, form, &sink);
    return sink.text;
}

const UprofFormat uprof_format_pprof = {
    .name = "pprof",
    .suffixes = { ".pb.gz" },
    .is_binary = true,
    .write = pprof_write,
    .write_both = pprof_write_both,
};
