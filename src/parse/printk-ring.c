/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/printk-ring.h"

#include "printk-ring-priv.h"

#include <string.h>

/*
 * desc  = state: 2 bits, id: 62 bits; begin: u64; next: u64
 * block = id: u64; text; padding to 8 bytes
 *
 * Descriptor number id % count has the id. begin and next are positions in the ring of text. They
 * count on from turn to turn of the ring, and overflow. A block that does not fit at the end of the
 * ring begins at its start, one turn later.
 */

enum {
    STATE_SHIFT = 62,
    COMMITTED = 1, /* more text may follow */
    FINALIZED = 2,
    LEVEL_BITS = 3,
    SEQUENCE_BYTES = 8,
    TEXT_LEN_BYTES = 2,
    CALLER_BYTES = 4,
    HAS_NO_TEXT = 1, /* in begin and next: the record has no block */
    IS_EMPTY = 3,    /* in both: because its text is empty */
};

#define ID_MASK ((UINT64_C(1) << STATE_SHIFT) - 1)

typedef struct {
    uint64_t state, begin, next;
} Desc;

static uint64_t
read_number(const uint8_t *bytes, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

static bool
is_inside(uint64_t offset, unsigned len, uint64_t size)
{
    return offset <= size && len <= size - offset;
}

bool
uprof_printk_layout_is_valid(const UprofPrintkLayout *layout)
{
    return layout->desc_bytes <= UPROF_PRINTK_DESC_BYTES_MAX &&
           layout->info_bytes <= UPROF_PRINTK_INFO_BYTES_MAX &&
           is_inside(layout->state, 8, layout->desc_bytes) &&
           is_inside(layout->begin, 8, layout->desc_bytes) &&
           is_inside(layout->next, 8, layout->desc_bytes) &&
           is_inside(layout->sequence, SEQUENCE_BYTES, layout->info_bytes) &&
           is_inside(layout->time, 8, layout->info_bytes) &&
           is_inside(layout->text_len, TEXT_LEN_BYTES, layout->info_bytes) &&
           is_inside(layout->facility, 1, layout->info_bytes) &&
           is_inside(layout->caller, CALLER_BYTES, layout->info_bytes) &&
           is_inside(layout->level_bits / 8, 1, layout->info_bytes) &&
           layout->level_bits % 8 <= 8 - LEVEL_BITS;
}

static bool
check_copies(const UprofPrintkRing *ring, GError **error)
{
    const UprofBytes bytes = { .name = "kernel log", .all = ring->text };

    if (ring->count_bits > UPROF_PRINTK_COUNT_BITS_MAX ||
        ring->size_bits > UPROF_PRINTK_SIZE_BITS_MAX)
        return uprof_bytes_fail(&bytes, error, "rings of 2^%u records and 2^%u bytes",
                                ring->count_bits, ring->size_bits);
    const uint64_t count = UINT64_C(1) << ring->count_bits;
    if (ring->descs.len != count * ring->layout->desc_bytes ||
        ring->descs_after.len != ring->descs.len ||
        ring->infos.len != count * ring->layout->info_bytes ||
        ring->text.len != UINT64_C(1) << ring->size_bits)
        return uprof_bytes_fail(&bytes, error, "a ring that is not complete");
    return true;
}

static uint64_t
find_index(const UprofPrintkRing *ring, uint64_t id)
{
    return id & ((UINT64_C(1) << ring->count_bits) - 1);
}

static Desc
read_desc(const UprofPrintkRing *ring, UprofSlice descs, uint64_t id)
{
    const UprofPrintkLayout *layout = ring->layout;
    const uint8_t *bytes = (const uint8_t *)descs.data + find_index(ring, id) * layout->desc_bytes;

    return (Desc){
        .state = read_number(bytes + layout->state, 8),
        .begin = read_number(bytes + layout->begin, 8),
        .next = read_number(bytes + layout->next, 8),
    };
}

/* Returns: false unless the descriptor has a record of this @id that did not change */
static bool
take_desc(const UprofPrintkRing *ring, uint64_t id, Desc *desc)
{
    const Desc after = read_desc(ring, ring->descs_after, id);
    const uint64_t state = after.state >> STATE_SHIFT;

    *desc = read_desc(ring, ring->descs, id);
    return (after.state & ID_MASK) == id && (state == COMMITTED || state == FINALIZED) &&
           desc->state == after.state && desc->begin == after.begin && desc->next == after.next;
}

/* @block: (out): the block of a record that has one. Returns: false if there is no such block */
static bool
find_block(const UprofPrintkRing *ring, const Desc *desc, UprofSlice *block)
{
    const uint64_t size = UINT64_C(1) << ring->size_bits, mask = size - 1;
    const uint64_t begin_turn = desc->begin >> ring->size_bits;
    const uint64_t next_turn = desc->next >> ring->size_bits;
    const uint64_t start = desc->begin & mask, end = desc->next & mask;

    if (begin_turn == next_turn)
        return start < end && uprof_slice_sub(ring->text, start, end - start, block);
    /* The turns are the high bits of a position, which overflows. */
    if ((desc->begin + size) >> ring->size_bits != next_turn)
        return false;
    return end == 0 ? uprof_slice_sub(ring->text, start, size - start, block)
                    : uprof_slice_sub(ring->text, 0, end, block);
}

/* Returns: the text of a record; without data if the text is lost */
static UprofSlice
find_text(const UprofPrintkRing *ring, uint64_t id, const Desc *desc, size_t text_len)
{
    static const UprofSlice lost = { NULL, 0 };
    UprofSlice block;

    if (desc->begin == IS_EMPTY && desc->next == IS_EMPTY)
        return (UprofSlice){ "", 0 };
    if (desc->begin & HAS_NO_TEXT || desc->next & HAS_NO_TEXT || !find_block(ring, desc, &block) ||
        block.len < sizeof(id) || read_number(block.data, sizeof(id)) != id)
        return lost;
    return (UprofSlice){ (const char *)block.data + sizeof(id),
                         MIN(text_len, block.len - sizeof(id)) };
}

static UprofPrintkRecord
read_record(const UprofPrintkRing *ring, uint64_t id, const Desc *desc)
{
    const UprofPrintkLayout *layout = ring->layout;
    const uint8_t *info =
        (const uint8_t *)ring->infos.data + find_index(ring, id) * layout->info_bytes;
    const uint8_t level = info[layout->level_bits / 8] >> layout->level_bits % 8;

    return (UprofPrintkRecord){
        .sequence = read_number(info + layout->sequence, SEQUENCE_BYTES),
        .time_ns = read_number(info + layout->time, 8),
        .caller = (uint32_t)read_number(info + layout->caller, CALLER_BYTES),
        .facility = info[layout->facility],
        .level = level & ((1 << LEVEL_BITS) - 1),
        .text = find_text(ring, id, desc, read_number(info + layout->text_len, TEXT_LEN_BYTES)),
    };
}

/*
 * Blocks of a kernel do not overlap. In a hostile guest each could be most of the ring.
 * @left: (inout): bytes that the texts of this record and the following ones may have
 */
static void
limit_text(UprofPrintkRecord *record, size_t *left)
{
    if (record->text.len > *left)
        record->text = (UprofSlice){ NULL, 0 };
    *left -= record->text.len;
}

GArray *
uprof_printk_ring_list(const UprofPrintkRing *ring, GError **error)
{
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(UprofPrintkRecord));

    if (!check_copies(ring, error))
        return NULL;
    const uint64_t count = UINT64_C(1) << ring->count_bits;
    const uint64_t head = ring->head & ID_MASK;
    const uint64_t n = MIN((head - ring->tail) & ID_MASK, count - 1) + 1;
    uint64_t sequence = 0;
    size_t text_left = ring->text.len;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t id = (head - (n - 1 - i)) & ID_MASK;
        Desc desc;
        if (!take_desc(ring, id, &desc))
            continue;
        UprofPrintkRecord record = read_record(ring, id, &desc);
        /* An info that was being written has another number. */
        if (records->len > 0 && record.sequence <= sequence)
            continue;
        sequence = record.sequence;
        limit_text(&record, &text_left);
        g_array_append_val(records, record);
    }
    return g_steal_pointer(&records);
}
