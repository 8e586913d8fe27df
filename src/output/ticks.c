/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ticks-priv.h"

#include "uprof/clock.h"
#include "uprof/sorted.h"

enum { PERIOD_UNKNOWN_MS = 10 };

uint64_t
uprof_ticks_period_ns(const UprofRun *run)
{
    if (run->rate_mhz == 0)
        return PERIOD_UNKNOWN_MS * UPROF_NS_PER_MS;
    return MAX(1000 * UPROF_NS_PER_S / run->rate_mhz, 1);
}

/* Stacks without times, one after the other */
typedef struct {
    uint64_t period_ns;
    bool has_root;
    uint32_t vcpu;    /* the vCPU to visit */
    GHashTable *ends; /* vCPU -> uint64_t: the end of its last stack */
    UprofProfileTickVisit visit;
    void *data;
} Row;

static uint32_t
find_vcpu(const Row *row, const UprofName *const *frames, unsigned n)
{
    uint32_t vcpu = 0;

    if (row->has_root && n > 1)
        uprof_profile_level_is_vcpu(frames[1], &vcpu);
    return vcpu;
}

static uint64_t *
find_end(const Row *row, uint32_t vcpu)
{
    uint64_t *end = g_hash_table_lookup(row->ends, GUINT_TO_POINTER(vcpu));

    if (!end) {
        end = g_new0(uint64_t, 1);
        g_hash_table_insert(row->ends, GUINT_TO_POINTER(vcpu), end);
    }
    return end;
}

static void
put_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    const Row *row = data;
    const uint32_t vcpu = find_vcpu(row, frames, n);

    if (row->vcpu != UPROF_PROFILE_ALL_VCPUS && row->vcpu != vcpu)
        return;
    uint64_t *end = find_end(row, vcpu);
    while (weight > 0) {
        const UprofTick tick = {
            .time_ns = *end,
            .vcpu = vcpu,
            .count = (uint32_t)MIN(weight, UINT32_MAX),
            .weight = 1,
        };
        row->visit(frames, n, tick, row->data);
        *end += tick.count * row->period_ns;
        weight -= tick.count;
    }
}

void
uprof_ticks_walk(const UprofProfile *profile, const UprofRun *run, uint32_t vcpu,
                 UprofProfileTickVisit visit, void *data)
{
    if (uprof_profile_n_ticks(profile) > 0) {
        uprof_profile_walk_ticks(profile, vcpu, visit, data);
        return;
    }
    g_autoptr(GHashTable) ends = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    Row row = {
        .period_ns = uprof_ticks_period_ns(run),
        .has_root = uprof_profile_root(profile) != NULL,
        .vcpu = vcpu,
        .ends = ends,
        .visit = visit,
        .data = data,
    };
    uprof_profile_walk(profile, put_stack, &row);
}

static void
note_vcpu(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    GHashTable *vcpus = data;

    g_hash_table_add(vcpus, GUINT_TO_POINTER(tick.vcpu));
}

GArray *
uprof_ticks_vcpus(const UprofProfile *profile, const UprofRun *run)
{
    g_autoptr(GHashTable) found = g_hash_table_new(NULL, NULL);
    GArray *vcpus = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GHashTableIter iter;
    gpointer key;

    uprof_ticks_walk(profile, run, UPROF_PROFILE_ALL_VCPUS, note_vcpu, found);
    g_hash_table_iter_init(&iter, found);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const uint32_t vcpu = GPOINTER_TO_UINT(key);
        g_array_append_val(vcpus, vcpu);
    }
    g_array_sort(vcpus, uprof_compare_u32);
    return vcpus;
}
