/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hot-places-priv.h"

#include "uprof/sorted.h"

#include <string.h>

enum {
    PAGES_MAX = 1024,         /* of code: 4 MiB */
    AROUND_BYTES = 64 * 1024, /* that one sample reads before its page, and behind it */
    TRIES_MAX = 16,           /* for a page that is missing: a capture may have it later */
};

typedef struct {
    uint64_t address; /* symbol address of its first byte */
    bool is_known;
    unsigned n_tries;
    uint8_t bytes[UPROF_PAGE_BYTES];
} CodePage;

struct _UprofHotPlaces {
    char *function;
    UprofMem *mem;       /* (nullable): apart from that of the analysis, which must not notice it */
    GHashTable *places;  /* of UprofHotPlace, by address */
    GHashTable *pages;   /* of CodePage, by address */
    unsigned word_bytes; /* of the code in @pages */
    uint64_t n_left_out; /* samples */
};

UprofHotPlaces *
uprof_hot_places_new(const char *function, UprofGuest *guest)
{
    UprofHotPlaces *places = g_new0(UprofHotPlaces, 1);

    places->function = g_strdup(function);
    places->mem = guest ? uprof_mem_new(guest, UPROF_LANE_WORKER) : NULL;
    places->places = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    places->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    return places;
}

void
uprof_hot_places_free(UprofHotPlaces *places)
{
    if (!places)
        return;
    uprof_mem_free(places->mem);
    g_hash_table_unref(places->places);
    g_hash_table_unref(places->pages);
    g_free(places->function);
    g_free(places);
}

/* Is the function wanted? Functions of kernels may be named without their suffix. */
static bool
is_wanted(const UprofHotPlaces *places, const UprofSymAnswer *answer)
{
    const size_t len = strlen(places->function);

    if (answer->kind != UPROF_SYM_NAMED)
        return false;
    const char *name = uprof_name_text(answer->name);
    return strncmp(name, places->function, len) == 0 &&
           (name[len] == '\0' || strcmp(name + len, "_[k]") == 0);
}

/* ---- Code in guest memory ---- */

static CodePage *
find_page(UprofHotPlaces *places, uint64_t address)
{
    CodePage *page = g_hash_table_lookup(places->pages, &address);

    if (page || g_hash_table_size(places->pages) >= PAGES_MAX)
        return page;
    page = g_new0(CodePage, 1);
    page->address = address;
    g_hash_table_insert(places->pages, &page->address, page);
    return page;
}

static void
read_page(UprofHotPlaces *places, const UprofSnapshot *snapshot, const UprofFrame *frame,
          uint64_t address)
{
    CodePage *page = find_page(places, address);

    if (!page || page->is_known || page->n_tries++ >= TRIES_MAX)
        return;
    page->is_known = uprof_mem_read_always(places->mem, snapshot->vcpu, &snapshot->regs,
                                           frame->pc + (address - frame->symbol_address),
                                           page->bytes, sizeof(page->bytes));
}

/* Reads the pages of the function around the frame that are not known yet. */
static void
read_around(UprofHotPlaces *places, const UprofSnapshot *snapshot, const UprofFrame *frame,
            const UprofSymAnswer *function)
{
    const uint64_t offset = frame->symbol_address % UPROF_PAGE_BYTES;
    const uint64_t page = frame->symbol_address - offset;

    read_page(places, snapshot, frame, page);
    for (uint64_t distance = UPROF_PAGE_BYTES; distance <= AROUND_BYTES;
         distance += UPROF_PAGE_BYTES) {
        if (page + distance - function->start < function->size)
            read_page(places, snapshot, frame, page + distance);
        if (page - function->start + UPROF_PAGE_BYTES > distance && page >= distance)
            read_page(places, snapshot, frame, page - distance);
    }
}

void
uprof_hot_places_see(UprofHotPlaces *places, UprofSym *sym, const UprofSnapshot *snapshot,
                     const UprofFrame *frame)
{
    UprofSymPlace place;

    if (!places->mem)
        return;
    const UprofSymAnswer answer = uprof_sym_find(sym, frame->symbol_address, false);
    if (!is_wanted(places, &answer))
        return;
    uprof_sym_place(sym, frame->symbol_address, &place);
    if (place.code.len > 0)
        return;
    places->word_bytes = snapshot->regs.word_bytes;
    uprof_mem_begin_sample(places->mem, snapshot->time_ns, snapshot->reset);
    read_around(places, snapshot, frame, &answer);
}

/* Copies up to the first page that is missing. */
static size_t
copy_code(const UprofHotPlaces *places, uint64_t address, uint8_t *into, size_t len)
{
    size_t n = 0;

    while (n < len) {
        const uint64_t offset = (address + n) % UPROF_PAGE_BYTES, first = address + n - offset;
        const CodePage *page = g_hash_table_lookup(places->pages, &first);
        const size_t part = MIN(len - n, (size_t)(UPROF_PAGE_BYTES - offset));
        if (!page || !page->is_known)
            break;
        memcpy(into + n, page->bytes + offset, part);
        n += part;
    }
    return n;
}

void
uprof_hot_places_code(const UprofHotPlaces *places, const UprofSym *sym, uint64_t address,
                      UprofHotCode *code)
{
    UprofSymPlace place;

    uprof_sym_place(sym, address, &place);
    code->word_bytes = place.word_bytes;
    code->len = MIN(place.code.len, sizeof(code->bytes));
    if (code->len > 0) {
        memcpy(code->bytes, place.code.data, code->len);
        return;
    }
    code->len = copy_code(places, address, code->bytes, sizeof(code->bytes));
    if (places->word_bytes > 0)
        code->word_bytes = places->word_bytes;
}

/* ---- Counts ---- */

void
uprof_hot_places_add(UprofHotPlaces *places, UprofSym *sym, uint64_t address, uint64_t weight)
{
    UprofHotPlace *place = g_hash_table_lookup(places->places, &address);

    if (!place) {
        const UprofSymAnswer answer = uprof_sym_find(sym, address, false);
        if (g_hash_table_size(places->places) >= UPROF_HOT_PLACES_MAX) {
            places->n_left_out += weight;
            return;
        }
        place = g_new0(UprofHotPlace, 1);
        place->address = address;
        if (is_wanted(places, &answer)) {
            place->start = answer.start;
            place->size = answer.size;
        }
        g_hash_table_insert(places->places, &place->address, place);
    }
    place->samples += weight;
}

uint64_t
uprof_hot_places_left_out(const UprofHotPlaces *places)
{
    return places->n_left_out;
}

static int
compare_places(gconstpointer one, gconstpointer other)
{
    const UprofHotPlace *a = one, *b = other;

    return a->start != b->start ? UPROF_COMPARE(a->start, b->start)
                                : UPROF_COMPARE(a->address, b->address);
}

GArray *
uprof_hot_places_list(const UprofHotPlaces *places, UprofSym *sym)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(UprofHotPlace));
    GHashTableIter iter;
    gpointer data;

    g_hash_table_iter_init(&iter, places->places);
    while (g_hash_table_iter_next(&iter, NULL, &data)) {
        UprofHotPlace place = *(const UprofHotPlace *)data;
        const UprofSymAnswer answer = uprof_sym_find(sym, place.address, false);
        if (is_wanted(places, &answer)) {
            place.start = answer.start;
            place.size = answer.size;
        }
        /* Generated code may have lost its name since. */
        if (place.size > 0 && place.address - place.start < place.size)
            g_array_append_val(list, place);
    }
    g_array_sort(list, compare_places);
    return list;
}
