/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "timeline-priv.h"

#include "digits-priv.h"
#include "ticks-priv.h"
#include "uprof/clock.h"
#include "uprof/kind.h"
#include "uprof/sorted.h"

#include <stdlib.h>

enum {
    SHARE_FACTOR = 4,
    /* Parts of ticks in cells. Only a forged capture has more; its further ticks count in the cell
     * in which they begin. */
    PARTS_MAX = 8 * 1000 * 1000,
};

/* Seconds of a column; longer columns are multiples of the last one. */
static const uint64_t steps_s[] = { 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600 };

/* The weight of a stack in a cell */
typedef struct {
    uint32_t cell;
    uint32_t number; /* of the stack */
    uint64_t weight;
} Part;

/* The stack of ticks, once for all of them */
typedef struct {
    uint32_t number;
    bool is_idle;
    bool is_counted; /* the profile has it */
} Stack;

/* Finds the frame of a stack in a picture. */
typedef struct {
    GHashTable *names;   /* UprofName -> index in the names of the picture, plus 1 */
    GHashTable *indices; /* uint64_t in @keys -> index in the frames of the picture */
    uint64_t *keys;      /* caller and name of each frame */
} Finder;

typedef struct {
    UprofTimeline *timeline;
    const UprofPicture *picture;
    Finder finder;
    GHashTable *stacks; /* UprofProfileStack -> Stack */
    uint64_t first_ns, last_ns, period_ns;
    GArray *parts; /* of Part */
    size_t n_parts;
} Filling;

static uint64_t
make_key(uint32_t caller, uint32_t name)
{
    return (uint64_t)caller << 32 | name;
}

static void
clear_finder(Finder *finder)
{
    g_hash_table_unref(finder->indices);
    g_hash_table_unref(finder->names);
    g_free(finder->keys);
}

static void
init_finder(Finder *finder, const UprofPicture *picture)
{
    finder->names = g_hash_table_new(NULL, NULL);
    finder->indices = g_hash_table_new(g_int64_hash, g_int64_equal);
    finder->keys = g_new(uint64_t, picture->frames->len);
    for (guint i = 0; i < picture->names->len; i++)
        g_hash_table_insert(finder->names, g_ptr_array_index(picture->names, i),
                            GUINT_TO_POINTER(i + 1));
    for (guint i = 1; i < picture->frames->len; i++) {
        const UprofPictureFrame *frame = &g_array_index(picture->frames, UprofPictureFrame, i);
        finder->keys[i] = make_key(frame->parent, frame->name);
        g_hash_table_insert(finder->indices, &finder->keys[i], GUINT_TO_POINTER(i));
    }
}

/* Returns: number of the stack */
static uint32_t
find_number(const Filling *filling, const UprofName *const *frames, unsigned n)
{
    uint32_t frame = 0;

    for (unsigned i = filling->picture->tree->is_made_up ? 0 : 1; i < n; i++) {
        const gpointer name = g_hash_table_lookup(filling->finder.names, frames[i]);
        const uint64_t key = make_key(frame, GPOINTER_TO_UINT(name) - 1);
        const gpointer index = name ? g_hash_table_lookup(filling->finder.indices, &key) : NULL;
        if (!index)
            return 2 * frame + 1;
        frame = GPOINTER_TO_UINT(index);
    }
    return 2 * frame;
}

static const Stack *
find_stack(const Filling *filling, const UprofProfileStack *stack)
{
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];
    Stack *known = g_hash_table_lookup(filling->stacks, stack);

    if (known)
        return known;
    const unsigned n = uprof_profile_stack_frames(stack, frames);
    known = g_new(Stack, 1);
    *known = (Stack){
        .number = find_number(filling, frames, n),
        .is_idle = n > 0 && uprof_kind_of(frames[n - 1]) == UPROF_KIND_IDLE,
        .is_counted = uprof_profile_stack_weight(stack) > 0,
    };
    g_hash_table_insert(filling->stacks, (gpointer)stack, known);
    return known;
}

/* Returns: the time of the last tick */
static uint64_t
find_end(const UprofTick *tick, uint64_t period_ns)
{
    uint64_t length, end;

    if (__builtin_mul_overflow((uint64_t)MAX(tick->count, 1) - 1, period_ns, &length) ||
        __builtin_add_overflow(tick->time_ns, length, &end))
        return UINT64_MAX;
    return end;
}

static void
widen_range(const UprofProfileStack *stack, UprofTick tick, void *data)
{
    Filling *filling = data;

    filling->first_ns = MIN(filling->first_ns, tick.time_ns);
    filling->last_ns = MAX(filling->last_ns, find_end(&tick, filling->period_ns));
}

/* The slots count samples of halted vCPUs, too, which have no stacks. */
static void
take_slots(UprofTimeline *timeline)
{
    const UprofCalendar *calendar = timeline->calendar;

    timeline->n_rows = UPROF_CALENDAR_HOURS;
    timeline->cell_ns = 3600 * UPROF_NS_PER_S;
    timeline->n_columns = calendar->days->len;
    for (guint i = 0; i < calendar->slots->len; i++) {
        const UprofSlot *slot = &g_array_index(calendar->slots, UprofSlot, i);
        const UprofTimeCell cell = { slot->samples, slot->running };
        g_array_append_val(timeline->cells, cell);
    }
}

/* Chooses the length of columns, and makes empty cells. */
static void
make_cells(Filling *filling)
{
    UprofTimeline *timeline = filling->timeline;
    const uint64_t length_s = (filling->last_ns - filling->first_ns) / UPROF_NS_PER_S + 1;
    const uint64_t least_s =
        (length_s + UPROF_TIMELINE_COLUMNS_MAX - 1) / UPROF_TIMELINE_COLUMNS_MAX;
    const uint64_t longest_s = steps_s[G_N_ELEMENTS(steps_s) - 1];
    uint64_t step_s = (least_s + longest_s - 1) / longest_s * longest_s;

    for (size_t i = G_N_ELEMENTS(steps_s); i-- > 0;)
        if (steps_s[i] >= least_s)
            step_s = steps_s[i];
    timeline->n_rows = UPROF_TIMELINE_ROWS;
    timeline->cell_ns = step_s * UPROF_NS_PER_S / UPROF_TIMELINE_ROWS;
    timeline->n_columns = (unsigned)((length_s + step_s - 1) / step_s);
    g_array_set_size(timeline->cells, timeline->n_columns * UPROF_TIMELINE_ROWS);
}

static void
add_part(Filling *filling, uint32_t cell, const Stack *known, uint64_t weight)
{
    UprofTimeCell *counts = &g_array_index(filling->timeline->cells, UprofTimeCell, cell);
    const Part part = { cell, known->number, weight };

    if (!filling->timeline->calendar) {
        counts->samples += weight;
        counts->running += known->is_idle ? 0 : weight;
    }
    if (known->is_counted)
        g_array_append_val(filling->parts, part);
    filling->n_parts++;
}

/* Divides the ticks among the cells in which they lie. */
static void
add_ticks(const UprofProfileStack *stack, UprofTick tick, void *data)
{
    Filling *filling = data;
    const Stack *known = find_stack(filling, stack);
    const uint64_t cell_ns = filling->timeline->cell_ns;
    uint64_t at_ns = tick.time_ns - filling->first_ns;
    uint32_t left = tick.count;

    while (left > 0) {
        /* the end of forged ticks can lie beyond all times */
        const uint32_t cell = (uint32_t)MIN(at_ns / cell_ns, filling->timeline->cells->len - 1);
        const uint64_t room = ((cell + 1) * cell_ns - at_ns - 1) / filling->period_ns + 1;
        const uint32_t n = filling->n_parts < PARTS_MAX ? (uint32_t)MIN(left, room) : left;
        add_part(filling, cell, known, (uint64_t)n * tick.weight);
        at_ns += n * filling->period_ns;
        left -= n;
    }
}

static int
compare_parts(const void *a, const void *b, void *data)
{
    const Part *one = a, *other = b;
    const unsigned n_shared = *(const unsigned *)data;
    const uint32_t group = one->cell / n_shared, other_group = other->cell / n_shared;

    if (group != other_group)
        return UPROF_COMPARE(group, other_group);
    return UPROF_COMPARE(one->number, other->number);
}

/* Sorts the parts, and merges those of equal stacks in cells that share a list. */
static void
merge_parts(GArray *parts, unsigned n_shared)
{
    Part *all = (Part *)parts->data;
    guint n = 0;

    if (parts->len == 0)
        return;
    qsort_r(all, parts->len, sizeof(*all), compare_parts, &n_shared);
    for (guint i = 1; i < parts->len; i++) {
        if (compare_parts(&all[n], &all[i], &n_shared) == 0)
            all[n].weight += all[i].weight;
        else
            all[++n] = all[i];
    }
    g_array_set_size(parts, n + 1);
}

/* Returns: false if the lists need too many bytes; they are then incomplete */
static bool
write_lists(UprofTimeline *timeline, const GArray *parts)
{
    const gsize bytes_max = timeline->calendar ? UPROF_TIMELINE_DAYS_BYTES : UPROF_TIMELINE_BYTES;
    const guint n_lists = (timeline->cells->len + timeline->n_shared - 1) / timeline->n_shared;
    guint at = 0;

    g_string_truncate(timeline->lists, 0);
    for (guint list = 0; list < n_lists; list++) {
        uint64_t last = 0;
        for (; at < parts->len; at++) {
            const Part *part = &g_array_index(parts, Part, at);
            if (part->cell / timeline->n_shared != list)
                break;
            uprof_digits_append(timeline->lists, (part->number - last) << 1 | (part->weight != 1));
            if (part->weight != 1)
                uprof_digits_append(timeline->lists, part->weight);
            last = part->number;
            if (timeline->lists->len > bytes_max)
                return false;
        }
        g_string_append_c(timeline->lists, '\n');
    }
    return true;
}

/* Lets more cells share a list until the lists fit. One list for all cells always fits, because it
 * has each frame of the picture at most twice. */
static void
make_lists(UprofTimeline *timeline, GArray *parts)
{
    for (timeline->n_shared = 1;; timeline->n_shared *= SHARE_FACTOR) {
        merge_parts(parts, timeline->n_shared);
        if (write_lists(timeline, parts) || timeline->n_shared > timeline->cells->len)
            return;
    }
}

/* @calendar: (nullable). Returns: (transfer full): with cells and lists */
static UprofTimeline *
make_timeline(const UprofProfile *profile, const UprofCalendar *calendar, uint64_t period_ns,
              const UprofPicture *picture)
{
    g_autoptr(GHashTable) stacks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GArray) parts =
        g_array_sized_new(FALSE, FALSE, sizeof(Part), (guint)uprof_profile_n_ticks(profile));
    UprofTimeline *timeline = g_new0(UprofTimeline, 1);
    Filling filling = {
        .timeline = timeline,
        .picture = picture,
        .stacks = stacks,
        .first_ns = calendar ? 0 : UINT64_MAX,
        .period_ns = period_ns,
        .parts = parts,
    };

    timeline->calendar = calendar;
    timeline->cells = g_array_new(FALSE, TRUE, sizeof(UprofTimeCell));
    timeline->lists = g_string_new(NULL);
    timeline->n_untimed = uprof_profile_n_untimed(profile);
    init_finder(&filling.finder, picture);
    if (calendar) {
        take_slots(timeline);
    } else {
        uprof_profile_walk_times(profile, widen_range, &filling);
        make_cells(&filling);
    }
    uprof_profile_walk_times(profile, add_ticks, &filling);
    make_lists(timeline, parts);
    clear_finder(&filling.finder);
    return timeline;
}

UprofTimeline *
uprof_timeline_new(const UprofProfile *profile, const UprofRun *run, const UprofPicture *picture)
{
    if (uprof_profile_n_ticks(profile) == 0)
        return NULL;
    return make_timeline(profile, NULL, uprof_ticks_period_ns(run), picture);
}

UprofTimeline *
uprof_timeline_new_of_days(const UprofCalendar *calendar, const UprofPicture *picture)
{
    return make_timeline(calendar->profile, calendar, UPROF_NS_PER_S, picture);
}

void
uprof_timeline_free(UprofTimeline *timeline)
{
    if (!timeline)
        return;
    g_array_unref(timeline->cells);
    g_string_free(timeline->lists, TRUE);
    g_free(timeline);
}
