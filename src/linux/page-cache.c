/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file's pages are in an xarray (Linux, include/linux/xarray.h, lib/xarray.c and mm/filemap.c). A
 * node has a shift: each of its slots has 1 << shift pages of the file. A slot is
 *
 *   a node        its two lowest bits are 2, and it is above 4096
 *   a sibling     the same bits, but a small number: of the slot that has the entry of this one
 *   a value       its lowest bit is 1: the page is swapped out, or was in memory before
 *   a struct page of a page, or of the first page of several (a folio); 0 if there is none
 *
 * The index of a struct page in the array of all is the number of the page in memory.
 */
#include "page-cache-priv.h"

#include <string.h>

enum {
    DEPTH_MAX = 16,
    NODE = 2,
    NODE_BITS = 3,
    INTERNAL_MAX = 4096,     /* nodes are above */
    SLOT_SHIFT = 2,          /* of the number in a sibling */
    BATCH = 16,              /* pages of the file that are read together */
    STRUCTS_MAX = 2 * BATCH, /* pages of structs: of a page, and of the first page of its folio */
};
#define PAGES_MAX (UINT64_C(1) << 40) /* struct pages: 4 PiB of memory */

typedef struct {
    const UprofLinuxOffsets *offsets;
    const UprofKernelMemory *memory;
    uint64_t mapping; /* address of the struct address_space */
    UprofLinuxMaps maps;
} Reader;

/* Where a page of the file is, as the tree said. */
typedef struct {
    uint64_t first;       /* number of the first page of its folio */
    uint64_t page, folio; /* addresses of its struct page, and of the struct page of @first */
} Place;

/* Pages of structs that are read behind the pages of the file. */
typedef struct {
    uint64_t gva[STRUCTS_MAX];
    uint8_t *bytes; /* STRUCTS_MAX pages */
    unsigned n;
    bool is_missing[STRUCTS_MAX];
} Structs;

static bool
begin_reader(Reader *reader, const UprofLinuxOffsets *offsets, const UprofLinuxMaps *maps,
             const UprofKernelMemory *memory, uint64_t mapping)
{
    *reader = (Reader){ .offsets = offsets, .maps = *maps, .memory = memory, .mapping = mapping };
    return offsets->has_pages && maps->all_memory != 0 &&
           maps->all_memory % UPROF_PAGE_BYTES == 0 && maps->all_pages != 0;
}

static bool
is_node(uint64_t entry)
{
    return (entry & NODE_BITS) == NODE && entry > INTERNAL_MAX;
}

/*
 * Reads the slot of page @number. Follows one sibling, which must lead to a slot before it.
 * @first: (out): number of the first page of the slot that has the entry
 */
static bool
read_slot(const Reader *reader, uint64_t node, unsigned shift, uint64_t number, uint64_t *first,
          uint64_t *entry)
{
    const UprofLinuxOffsets *offsets = reader->offsets;
    uint64_t slot = number >> shift & (offsets->n_xa_slots - 1);
    const uint64_t start = number >> shift << shift;

    *first = start;
    if (!uprof_kernel_read_word_always(reader->memory,
                                       node + offsets->xa_slots + slot * sizeof(*entry), entry))
        return false;
    if ((*entry & NODE_BITS) != NODE || *entry > INTERNAL_MAX)
        return true;
    const uint64_t sibling = *entry >> SLOT_SHIFT;
    if (sibling >= slot)
        return false;
    *first = start - ((slot - sibling) << shift);
    return uprof_kernel_read_word_always(
               reader->memory, node + offsets->xa_slots + sibling * sizeof(*entry), entry) &&
           !is_node(*entry);
}

/* Shifts fall from level to level, so that the walk ends even if nodes are in a circle. */
static bool
find_entry(const Reader *reader, uint64_t number, uint64_t *first, uint64_t *entry)
{
    const UprofLinuxOffsets *offsets = reader->offsets;
    unsigned before = 64;

    *first = 0;
    if (!uprof_kernel_read_word_always(reader->memory, reader->mapping + offsets->mapping_pages,
                                       entry))
        return false;
    if (!is_node(*entry))
        return number == 0;
    for (unsigned depth = 0; depth < DEPTH_MAX && is_node(*entry); depth++) {
        const uint64_t node = *entry & ~(uint64_t)NODE_BITS;
        uint8_t shift;
        if (!uprof_kernel_read_always(reader->memory, node + offsets->xa_shift, &shift, 1) ||
            shift >= before || (depth == 0 && number >> shift >= offsets->n_xa_slots) ||
            !read_slot(reader, node, shift, number, first, entry))
            return false;
        before = shift;
    }
    return !is_node(*entry);
}

static bool
find_place(const Reader *reader, uint64_t number, Place *place)
{
    const uint64_t bytes = reader->offsets->page_bytes;
    uint64_t entry;

    if (!find_entry(reader, number, &place->first, &entry) || entry < reader->maps.all_pages ||
        (entry & NODE_BITS) != 0 || (entry - reader->maps.all_pages) % bytes != 0)
        return false;
    const uint64_t in_folio = number - place->first;
    const uint64_t index = (entry - reader->maps.all_pages) / bytes;
    if (index >= PAGES_MAX || in_folio >= PAGES_MAX ||
        (in_folio > 0 && reader->offsets->page_head == 0))
        return false;
    place->folio = entry;
    place->page = entry + in_folio * bytes;
    return true;
}

/* Adds the page that holds a struct page, unless it is there already. */
static void
want_struct(Structs *structs, uint64_t gva)
{
    const uint64_t page = gva - gva % UPROF_PAGE_BYTES;

    for (unsigned i = structs->n; i-- > 0;)
        if (structs->gva[i] == page)
            return;
    g_assert(structs->n < STRUCTS_MAX);
    structs->gva[structs->n++] = page;
}

/* Returns: false if the word was not read, as where a struct page lies across two pages */
static bool
get_struct_word(const Reader *reader, const Structs *structs, uint64_t gva, uint64_t offset,
                uint64_t *word)
{
    for (unsigned i = 0; i < structs->n; i++) {
        const uint64_t at = gva + offset - structs->gva[i];
        if (at > UPROF_PAGE_BYTES - sizeof(*word) || structs->is_missing[i])
            continue;
        memcpy(word, structs->bytes + i * UPROF_PAGE_BYTES + at, sizeof(*word));
        *word = GUINT64_FROM_LE(*word);
        return true;
    }
    return false;
}

/*
 * Is the page still, after it was copied, a page of this file? While the kernel reads a page from
 * disk it is in the tree already, but not up to date.
 */
static bool
is_still_there(const Reader *reader, const Structs *structs, const Place *place)
{
    const UprofLinuxOffsets *offsets = reader->offsets;
    uint64_t mapping, first, flags, head;

    if (!get_struct_word(reader, structs, place->folio, offsets->page_mapping, &mapping) ||
        !get_struct_word(reader, structs, place->folio, offsets->page_index, &first) ||
        !get_struct_word(reader, structs, place->folio, offsets->page_flags, &flags) ||
        mapping != reader->mapping || first != place->first ||
        !(flags >> offsets->page_uptodate & 1))
        return false;
    return place->page == place->folio ||
           (get_struct_word(reader, structs, place->page, offsets->page_head, &head) &&
            head == (place->folio | 1));
}

/* Reads the pages of the file first, then the structs. @pages, @places: only those with a place */
static void
read_places(const Reader *reader, Structs *structs, const Place *places, UprofFilePage **pages,
            unsigned n)
{
    UprofMemPage wanted[BATCH + STRUCTS_MAX];
    const UprofKernelMemory *memory = reader->memory;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t number =
            (places[i].page - reader->maps.all_pages) / reader->offsets->page_bytes;
        wanted[i] = (UprofMemPage){ .gva = reader->maps.all_memory + number * UPROF_PAGE_BYTES,
                                    .into = pages[i]->into };
        want_struct(structs, places[i].folio);
        want_struct(structs, places[i].page);
    }
    for (unsigned i = 0; i < structs->n; i++)
        wanted[n + i] =
            (UprofMemPage){ .gva = structs->gva[i], .into = structs->bytes + i * UPROF_PAGE_BYTES };
    uprof_mem_read_pages(memory->mem, memory->vcpu, memory->regs, wanted, n + structs->n);
    for (unsigned i = 0; i < structs->n; i++)
        structs->is_missing[i] = wanted[n + i].is_missing;
    for (unsigned i = 0; i < n; i++)
        pages[i]->is_missing = wanted[i].is_missing || !is_still_there(reader, structs, &places[i]);
}

static void
read_batch(const Reader *reader, Structs *structs, UprofFilePage *pages, unsigned n)
{
    Place places[BATCH];
    UprofFilePage *placed[BATCH];
    unsigned n_placed = 0;

    structs->n = 0;
    for (unsigned i = 0; i < n; i++)
        if (find_place(reader, pages[i].number, &places[n_placed]))
            placed[n_placed++] = &pages[i];
    if (n_placed > 0)
        read_places(reader, structs, places, placed, n_placed);
}

void
uprof_page_cache_read(const UprofLinuxOffsets *offsets, const UprofLinuxMaps *maps,
                      const UprofKernelMemory *memory, uint64_t file_mapping, UprofFilePage *pages,
                      unsigned n)
{
    Structs structs = { .n = 0 };
    Reader reader;

    for (unsigned i = 0; i < n; i++)
        pages[i].is_missing = true;
    if (!begin_reader(&reader, offsets, maps, memory, file_mapping))
        return;
    g_autofree uint8_t *bytes = g_malloc(STRUCTS_MAX * UPROF_PAGE_BYTES);
    structs.bytes = bytes;
    for (unsigned done = 0; done < n; done += BATCH)
        read_batch(&reader, &structs, &pages[done], MIN(n - done, (unsigned)BATCH));
}
