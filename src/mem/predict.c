/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict-priv.h"

#include <string.h>

/* WAYS walks whose keys have the same hash; a stack's own pages rarely do */
enum {
    SETS_BITS = 7,
    SETS = 1 << SETS_BITS,
    WAYS = 4,
    CHECKS_MAX = UPROF_PREDICT_SPANS_MAX,
};

/* x86 has pages of these sizes: small ones first, which are the most */
static const uint64_t page_lens[] = { 4 << 10, 2 << 20, 4 << 20, 1 << 30 };

/**
 * Place: of a walk
 * @page: number of the page, by its own length
 * @walked, @used: number of the copy that walked it, and of the last that used
 *   it; 0: there is no walk here
 */
typedef struct {
    uint64_t space;
    uint64_t page;
    uint64_t walked;
    uint64_t used;
    UprofWalk walk;
} Place;

struct _UprofPredict {
    Place places[SETS][WAYS];
    uint64_t n_copies;

    /* of this copy */
    bool only_own;
    bool has_walked;
    unsigned entry_bytes;
    unsigned n_doubted;
    unsigned n_checks;
    unsigned last_len; /* index of the page length that was found last: the next is likely alike */
    Place *doubted[UPROF_COPY_PAGES_MAX]; /* used, and not walked by this copy */
    UprofStep checks[CHECKS_MAX];         /* what those went by, in order of gpa */
    uint8_t bytes[CHECKS_MAX * 8];        /* the same entries, read again */
};

UprofPredict *
uprof_predict_new(void)
{
    UprofPredict *predict = g_new(UprofPredict, 1);

    /* touched here, so that no page fault happens in a hold */
    memset(predict, 0, sizeof(*predict));
    return predict;
}

void
uprof_predict_free(UprofPredict *predict)
{
    g_free(predict);
}

void
uprof_predict_forget(UprofPredict *predict)
{
    memset(predict->places, 0, sizeof(predict->places));
}

void
uprof_predict_begin(UprofPredict *predict)
{
    predict->n_copies++;
    predict->only_own = false;
    predict->has_walked = false;
    predict->n_doubted = 0;
    predict->n_checks = 0;
}

static Place *
find_set(UprofPredict *predict, uint64_t space, uint64_t page)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: Knuth, 6.4 */

    return predict->places[(space * golden + page) * golden >> (64 - SETS_BITS)];
}

/* Returns: (nullable): where the walk of @gva's page is, if the page is so long */
static Place *
find_place(UprofPredict *predict, uint64_t space, uint64_t gva, uint64_t page_len)
{
    const uint64_t page = gva / page_len;
    Place *set = find_set(predict, space, page);

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].walk.page_len == page_len && set[i].page == page && set[i].space == space)
            return &set[i];
    return NULL;
}

static Place *
find_oldest(Place *set)
{
    Place *oldest = &set[0];

    for (unsigned i = 1; i < WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    return oldest;
}

static bool
is_same_entry(uint64_t before, uint64_t after)
{
    return ((before ^ after) & ~UPROF_ENTRY_VOLATILE) == 0;
}

/* Keeps the checks in order. Walks of one stack share their upper steps. */
static void
add_check(UprofPredict *predict, const UprofStep *step)
{
    unsigned at = predict->n_checks;

    while (at > 0 && predict->checks[at - 1].gpa > step->gpa)
        at--;
    for (unsigned i = at; i > 0 && predict->checks[i - 1].gpa == step->gpa; i--)
        if (is_same_entry(predict->checks[i - 1].value, step->value))
            return;
    g_assert(predict->n_checks < CHECKS_MAX);
    memmove(&predict->checks[at + 1], &predict->checks[at],
            (predict->n_checks - at) * sizeof(predict->checks[0]));
    predict->checks[at] = *step;
    predict->n_checks++;
}

static void
doubt(UprofPredict *predict, Place *place)
{
    g_assert(predict->n_doubted < UPROF_COPY_PAGES_MAX);
    predict->doubted[predict->n_doubted++] = place;
    predict->entry_bytes = place->walk.entry_bytes;
    for (unsigned i = 0; i < place->walk.n_steps; i++)
        add_check(predict, &place->walk.steps[i]);
}

bool
uprof_predict_find(UprofPredict *predict, uint64_t space, uint64_t gva, UprofWalk *walk)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(page_lens); i++) {
        const unsigned n_len = (predict->last_len + i) % G_N_ELEMENTS(page_lens);
        Place *place = find_place(predict, space, gva, page_lens[n_len]);
        const bool is_own = place && place->walked == predict->n_copies;
        if (!place || (predict->only_own && !is_own))
            continue;
        if (!is_own)
            doubt(predict, place);
        place->used = predict->n_copies;
        predict->last_len = n_len;
        *walk = place->walk;
        return true;
    }
    return false;
}

void
uprof_predict_keep(UprofPredict *predict, uint64_t space, uint64_t gva, const UprofWalk *walk)
{
    predict->has_walked = true;
    /* what has no entries costs nothing; what was cut cannot be checked */
    if (walk->n_steps == 0 || walk->cut)
        return;
    const uint64_t page = gva / walk->page_len;
    Place *place = find_place(predict, space, gva, walk->page_len);
    if (!place)
        place = find_oldest(find_set(predict, space, page));
    *place = (Place){
        .space = space,
        .page = page,
        .walked = predict->n_copies,
        .used = predict->n_copies,
        .walk = *walk,
    };
}

unsigned
uprof_predict_spans(UprofPredict *predict, UprofSpan *spans)
{
    const unsigned len = predict->entry_bytes;
    unsigned n = 0;

    for (unsigned i = 0; i < predict->n_checks; i++) {
        const uint64_t gpa = predict->checks[i].gpa;
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        /* not across pages: they may be of different RAM */
        if (last && last->gpa + last->len == gpa && gpa % UPROF_PAGE_BYTES != 0)
            last->len += len;
        else
            spans[n++] = (UprofSpan){ .gpa = gpa, .into = predict->bytes + i * len, .len = len };
    }
    return n;
}

const UprofStep *
uprof_predict_steps(const UprofPredict *predict, unsigned *n, unsigned *entry_bytes)
{
    *n = predict->n_checks;
    *entry_bytes = predict->entry_bytes;
    return predict->checks;
}

bool
uprof_predict_is_all(const UprofPredict *predict)
{
    return !predict->has_walked;
}

bool
uprof_predict_is_same(const UprofStep *step, const uint8_t *bytes, unsigned entry_bytes)
{
    uint64_t now = 0;

    memcpy(&now, bytes, entry_bytes);
    return is_same_entry(step->value, GUINT64_FROM_LE(now));
}

static bool
is_same(const UprofPredict *predict, const UprofSpan *spans, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (spans[i].missing)
            return false;
    for (unsigned i = 0; i < predict->n_checks; i++)
        if (!uprof_predict_is_same(&predict->checks[i],
                                   predict->bytes + (size_t)i * predict->entry_bytes,
                                   predict->entry_bytes))
            return false;
    return true;
}

bool
uprof_predict_check(UprofPredict *predict, const UprofSpan *spans, unsigned n)
{
    const bool same = is_same(predict, spans, n);

    /* meanwhile a place may have become that of a walk of this copy: that one stays */
    for (unsigned i = 0; i < predict->n_doubted && !same; i++)
        if (predict->doubted[i]->walked != predict->n_copies)
            *predict->doubted[i] = (Place){ 0 };
    predict->only_own = !same;
    predict->n_doubted = 0;
    predict->n_checks = 0;
    return same;
}
