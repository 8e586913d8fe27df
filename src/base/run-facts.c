/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/run-facts.h"

#include "uprof/clock.h"

#include <string.h>

#define TEXT(member) #member, UPROF_RUN_TEXT, G_STRUCT_OFFSET(UprofRun, member)
#define UINT(member) #member, UPROF_RUN_UINT, G_STRUCT_OFFSET(UprofRun, member)
#define BOOL(member) #member, UPROF_RUN_BOOL, G_STRUCT_OFFSET(UprofRun, member)

/* clang-format off */
const UprofRunField uprof_run_fields[] = {
    /* member                when */
    { TEXT(program),         UPROF_RUN_AT_START },
    { TEXT(domain),          UPROF_RUN_AT_START },
    { TEXT(uuid),            UPROF_RUN_AT_START },
    { TEXT(driver),          UPROF_RUN_AT_START },
    { TEXT(type),            UPROF_RUN_AT_START },
    { TEXT(arch),            UPROF_RUN_AT_START },
    { TEXT(labels),          UPROF_RUN_AT_START },
    { TEXT(access),          UPROF_RUN_AT_BOTH  },
    { TEXT(why),             UPROF_RUN_AT_BOTH  },
    { TEXT(unwind),          UPROF_RUN_AT_START },
    { UINT(vcpus),           UPROF_RUN_AT_START },
    { UINT(vcpus_sampled),   UPROF_RUN_AT_START },
    { UINT(started_utc_ns),  UPROF_RUN_AT_BOTH  },
    { UINT(rate_mhz),        UPROF_RUN_AT_START },
    { UINT(asked_ns),        UPROF_RUN_AT_START },
    { UINT(max_depth),       UPROF_RUN_AT_START },
    { BOOL(per_vcpu),        UPROF_RUN_AT_START },
    { BOOL(pids),            UPROF_RUN_AT_START },
    { BOOL(cgroups),         UPROF_RUN_AT_START },
    { BOOL(native),          UPROF_RUN_AT_START },
    { BOOL(idle),            UPROF_RUN_AT_START },
    { BOOL(idle_stacks),     UPROF_RUN_AT_START },
    { BOOL(no_pause),        UPROF_RUN_AT_START },
    { TEXT(ended_by),        UPROF_RUN_AT_END   },
    { UINT(duration_ns),     UPROF_RUN_AT_END   },
    { UINT(divisor),         UPROF_RUN_AT_END   },
    { UINT(late),            UPROF_RUN_AT_END   },
    { UINT(busy),            UPROF_RUN_AT_END   },
    { UINT(skipped),         UPROF_RUN_AT_END   },
    { UINT(stuck),           UPROF_RUN_AT_END   },
    { UINT(held_ns),         UPROF_RUN_AT_END   },
    { UINT(cpu_ns),          UPROF_RUN_AT_END   },
};
/* clang-format on */

const size_t uprof_run_n_fields = G_N_ELEMENTS(uprof_run_fields);

static void
free_image(gpointer data)
{
    UprofRunImage *image = data;

    g_free(image->label);
    g_free(image->path);
    g_free(image->guest_path);
    g_free(image->build_id);
    g_free(image->digest);
    g_free(image->base);
    g_free(image->mismatch);
    g_free(image->lines_hint);
    g_free(image);
}

UprofRun *
uprof_run_new(void)
{
    UprofRun *run = g_new0(UprofRun, 1);

    run->images = g_ptr_array_new_with_free_func(free_image);
    run->files = g_ptr_array_new_with_free_func(g_free);
    run->slices = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return run;
}

void
uprof_run_free(UprofRun *run)
{
    if (!run)
        return;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];

        if (field->kind == UPROF_RUN_TEXT)
            g_free(G_STRUCT_MEMBER(char *, run, field->offset));
    }
    g_ptr_array_unref(run->images);
    g_ptr_array_unref(run->files);
    g_array_unref(run->slices);
    g_free(run->trigger);
    g_free(run->profile_sha256);
    g_free(run->kernel.release);
    g_free(run);
}

UprofRunImage *
uprof_run_add_image(UprofRun *run, const char *label, const char *path, const char *build_id,
                    const char *digest)
{
    UprofRunImage *image = g_new0(UprofRunImage, 1);

    image->label = g_strdup(label);
    image->path = g_strdup(path);
    image->build_id = g_strdup(build_id);
    image->digest = g_strdup(digest);
    g_ptr_array_add(run->images, image);
    return image;
}

static void
merge_texts(UprofRun *run, const UprofRun *other, bool is_first)
{
    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];
        if (field->kind != UPROF_RUN_TEXT)
            continue;
        char **text = G_STRUCT_MEMBER_P(run, field->offset);
        const char *others = G_STRUCT_MEMBER(char *, other, field->offset);
        if (!is_first && g_strcmp0(*text, others) == 0)
            continue;
        g_free(*text);
        *text = is_first ? g_strdup(others) : NULL;
    }
}

#define AT(member) G_STRUCT_OFFSET(UprofRun, member)

static void
add_histogram(UprofHistogram *sum, const UprofHistogram *other)
{
    if (other->count == 0)
        return;
    sum->min_ns = sum->count > 0 ? MIN(sum->min_ns, other->min_ns) : other->min_ns;
    sum->max_ns = MAX(sum->max_ns, other->max_ns);
    sum->count += other->count;
    sum->total_ns += other->total_ns;
    for (unsigned i = 0; i < UPROF_HISTOGRAM_BUCKETS; i++)
        sum->buckets[i] += other->buckets[i];
}

/* clang-format off */
static const size_t count_members[] = {
    AT(asked_ns), AT(duration_ns), AT(late), AT(busy), AT(skipped), AT(stuck),
    AT(held_ns), AT(cpu_ns), AT(samples), AT(running), AT(idles), AT(torn),
    AT(complete), AT(truncated), AT(unknown), AT(frames), AT(named), AT(by_orc),
    AT(by_cfi), AT(by_code), AT(by_fp), AT(calls_checked), AT(calls_agreed), AT(one_frame),
    AT(kernel.kernel_stacks), AT(kernel.kernel_complete), AT(kernel.user_stacks),
    AT(kernel.user_complete), AT(waits.walks), AT(waits.tasks), AT(waits.incomplete),
    AT(waits.time_ns), AT(waits.total_us), AT(waits.unknown_us),
};
/* clang-format on */

void
uprof_run_add_counts(UprofRun *run, const UprofRun *other)
{
    for (size_t i = 0; i < G_N_ELEMENTS(count_members); i++)
        G_STRUCT_MEMBER(uint64_t, run, count_members[i]) +=
            G_STRUCT_MEMBER(uint64_t, other, count_members[i]);
    add_histogram(&run->hold, &other->hold);
    add_histogram(&run->stopped, &other->stopped);
}

void
uprof_run_clear_counts(UprofRun *run)
{
    for (size_t i = 0; i < G_N_ELEMENTS(count_members); i++)
        G_STRUCT_MEMBER(uint64_t, run, count_members[i]) = 0;
    run->hold = (UprofHistogram){ 0 };
    run->stopped = (UprofHistogram){ 0 };
}

/* Keeps facts of a kernel only if the releases are equal. uprof_run_add_counts() adds counts. */
static void
merge_linux(UprofRunLinux *kernel, const UprofRunLinux *other, bool is_first)
{
    const bool is_same = g_strcmp0(kernel->release, other->release) == 0;

    if (is_first)
        kernel->release = g_strdup(other->release);
    else if (!is_same)
        g_clear_pointer(&kernel->release, g_free);
    kernel->symbols = is_first || is_same ? MAX(kernel->symbols, other->symbols) : 0;
    kernel->modules = is_first || is_same ? MAX(kernel->modules, other->modules) : 0;
    kernel->rules = is_first || is_same ? MAX(kernel->rules, other->rules) : 0;
    kernel->rules_version =
        is_first || is_same ? MAX(kernel->rules_version, other->rules_version) : 0;
    kernel->has_types = other->has_types && (is_first || kernel->has_types);
    kernel->has_tasks = other->has_tasks && (is_first || kernel->has_tasks);
}

/* Returns: the samples that the run took, including those that a filter has dropped */
static uint64_t
count_taken(const UprofRun *run)
{
    return run->unfiltered > 0 ? run->unfiltered : run->samples;
}

static bool
is_same_image(const UprofRunImage *one, const UprofRunImage *other)
{
    return strcmp(one->label, other->label) == 0 && g_strcmp0(one->path, other->path) == 0 &&
           g_strcmp0(one->build_id, other->build_id) == 0 &&
           g_strcmp0(one->digest, other->digest) == 0 && g_strcmp0(one->base, other->base) == 0 &&
           one->checked == other->checked && one->matched == other->matched &&
           one->is_module == other->is_module && one->is_from_memory == other->is_from_memory &&
           g_strcmp0(one->mismatch, other->mismatch) == 0;
}

void
uprof_run_leave_module_out(UprofRun *run, const char *label)
{
    for (guint i = 0; i < run->images->len; i++) {
        UprofRunImage *image = g_ptr_array_index(run->images, i);
        if (image->is_module && strcmp(image->label, label) == 0)
            g_clear_pointer(&image->build_id, g_free);
    }
}

bool
uprof_run_image_is_called(const UprofRunImage *image, UprofSlice name)
{
    return strlen(image->label) == name.len + 2 &&
           memcmp(image->label + 1, name.data, name.len) == 0;
}

const char *
uprof_run_module_id(const UprofRun *run, UprofSlice name)
{
    const char *id = NULL;

    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        if (!image->is_module || !uprof_run_image_is_called(image, name))
            continue;
        if (!image->build_id || (id && strcmp(image->build_id, id) != 0))
            return NULL;
        id = image->build_id;
    }
    return id;
}

static void
merge_image(UprofRun *run, const UprofRunImage *image)
{
    for (guint i = 0; i < run->images->len; i++) {
        UprofRunImage *known = g_ptr_array_index(run->images, i);
        if (is_same_image(known, image)) {
            known->n_seen += image->n_seen;
            return;
        }
    }
    /* Merged days accumulate modules, and sidecars must stay small enough to be read back. */
    if (image->is_module && run->images->len >= UPROF_RUN_MODULES_MAX) {
        uprof_run_leave_module_out(run, image->label);
        return;
    }
    UprofRunImage *copy =
        uprof_run_add_image(run, image->label, image->path, image->build_id, image->digest);
    copy->guest_path = g_strdup(image->guest_path);
    copy->base = g_strdup(image->base);
    copy->checked = image->checked;
    copy->matched = image->matched;
    copy->is_module = image->is_module;
    copy->is_from_memory = image->is_from_memory;
    copy->mismatch = g_strdup(image->mismatch);
    copy->n_seen = image->n_seen;
}

void
uprof_run_merge(UprofRun *run, const UprofRun *other, bool is_first)
{
    if (run->unfiltered > 0 || other->unfiltered > 0)
        run->unfiltered = count_taken(run) + count_taken(other);
    merge_texts(run, other, is_first);
    merge_linux(&run->kernel, &other->kernel, is_first);
    uprof_run_add_counts(run, other);
    run->vcpus = MAX(run->vcpus, other->vcpus);
    run->vcpus_sampled =
        is_first || run->vcpus_sampled == other->vcpus_sampled ? other->vcpus_sampled : 0;
    run->max_depth = MAX(run->max_depth, other->max_depth);
    run->divisor = MAX(run->divisor, other->divisor);
    run->per_vcpu |= other->per_vcpu;
    run->pids |= other->pids;
    run->cgroups |= other->cgroups;
    run->native |= other->native;
    run->idle |= other->idle;
    run->idle_stacks |= other->idle_stacks;
    run->no_pause |= other->no_pause;
    run->rate_mhz = is_first || run->rate_mhz == other->rate_mhz ? other->rate_mhz : 0;
    run->started_utc_ns =
        is_first ? other->started_utc_ns : MIN(run->started_utc_ns, other->started_utc_ns);
    for (guint i = 0; i < other->images->len; i++)
        merge_image(run, g_ptr_array_index(other->images, i));
}

uint64_t
uprof_run_got_mhz(const UprofRun *run)
{
    const uint64_t vcpus = run->vcpus_sampled > 0 ? run->vcpus_sampled : run->vcpus;

    if (vcpus == 0 || run->duration_ns == 0)
        return 0;

    const unsigned __int128 samples = count_taken(run);
    const unsigned __int128 mhz = samples * 1000 * UPROF_NS_PER_S / run->duration_ns / vcpus;
    return MIN(mhz, UINT64_MAX);
}

uint64_t
uprof_run_held_ns(const UprofRun *run)
{
    return run->held_ns > 0 ? run->held_ns : run->hold.total_ns;
}

uint64_t
uprof_permille(uint64_t part, uint64_t whole)
{
    /* 128 bits: a capture may contain any weights */
    return whole > 0 ? (uint64_t)(((unsigned __int128)part * 1000 + whole / 2) / whole) : 0;
}
