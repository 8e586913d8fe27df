/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-printk.h"

#include <string.h>

enum { STATE_SHIFT = 62, FINALIZED = 2, REUSABLE = 3, ID_BYTES = 8, EMPTY = 3, FACILITY = 4 };

#define ID_MASK ((UINT64_C(1) << STATE_SHIFT) - 1)

const UprofPrintkLayout printk_layout = {
    .desc_bytes = PRINTK_DESC_BYTES,
    .state = PRINTK_STATE,
    .begin = PRINTK_BEGIN,
    .next = PRINTK_NEXT,
    .info_bytes = PRINTK_INFO_BYTES,
    .sequence = PRINTK_SEQUENCE,
    .time = PRINTK_TIME,
    .text_len = PRINTK_TEXT_LEN,
    .facility = PRINTK_FACILITY,
    .caller = PRINTK_CALLER,
    .level_bits = PRINTK_LEVEL_BITS,
};

static size_t
get_count(const PrintkBuilder *builder)
{
    return (size_t)1 << builder->count_bits;
}

static size_t
get_size(const PrintkBuilder *builder)
{
    return (size_t)1 << builder->size_bits;
}

/* Positions and ids begin just below their overflow, as in the kernel. */
void
printk_init(PrintkBuilder *builder, unsigned count_bits, unsigned size_bits)
{
    *builder = (PrintkBuilder){
        .count_bits = count_bits,
        .size_bits = size_bits,
        .facility = FACILITY,
    };
    builder->descs = g_malloc0(get_count(builder) * PRINTK_DESC_BYTES);
    builder->infos = g_malloc0(get_count(builder) * PRINTK_INFO_BYTES);
    builder->text = g_malloc0(get_size(builder));
    builder->head = builder->tail = -(uint64_t)get_count(builder) & ID_MASK;
    builder->end = -(uint64_t)get_size(builder);
    printk_put(printk_desc(builder, builder->head) + PRINTK_STATE,
               (uint64_t)REUSABLE << STATE_SHIFT | builder->head, 8);
}

void
printk_clear(PrintkBuilder *builder)
{
    g_free(builder->descs);
    g_free(builder->infos);
    g_free(builder->text);
}

void
printk_put(uint8_t *bytes, uint64_t number, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
}

static uint64_t
get(const uint8_t *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));
    return GUINT64_FROM_LE(number);
}

static uint8_t *
get_info(const PrintkBuilder *builder, uint64_t id)
{
    return builder->infos + (id & (get_count(builder) - 1)) * PRINTK_INFO_BYTES;
}

uint8_t *
printk_desc(const PrintkBuilder *builder, uint64_t id)
{
    return builder->descs + (id & (get_count(builder) - 1)) * PRINTK_DESC_BYTES;
}

static void
free_oldest(PrintkBuilder *builder)
{
    printk_put(printk_desc(builder, builder->tail) + PRINTK_STATE,
               (uint64_t)REUSABLE << STATE_SHIFT | builder->tail, 8);
    builder->tail = (builder->tail + 1) & ID_MASK;
}

/* Does the oldest record have text that ends at or before position @limit? */
static bool
is_before(const PrintkBuilder *builder, uint64_t limit)
{
    const uint8_t *desc = printk_desc(builder, builder->tail);

    return builder->tail != builder->head && get(desc + PRINTK_BEGIN) != EMPTY &&
           (int64_t)(get(desc + PRINTK_BEGIN) - limit) < 0;
}

/* Returns: the block of @len bytes; @begin, @next: (out): its positions */
static uint8_t *
add_block(PrintkBuilder *builder, size_t len, uint64_t *begin, uint64_t *next)
{
    const uint64_t size = get_size(builder);

    *begin = builder->end;
    *next = *begin + len;
    const bool fits = *begin / size == (*next - 1) / size;
    if (!fits)
        *next = (*begin / size + 1) * size + len;
    while (is_before(builder, *next - size))
        free_oldest(builder);
    builder->end = *next;
    return builder->text + (fits ? *begin % size : 0);
}

void
printk_add(PrintkBuilder *builder, unsigned level, const char *text)
{
    const size_t len = strlen(text);
    uint64_t begin = EMPTY, next = EMPTY;

    builder->head = (builder->head + 1) & ID_MASK;
    if (((builder->head - builder->tail) & ID_MASK) >= get_count(builder))
        free_oldest(builder);
    if (len > 0) {
        uint8_t *block = add_block(builder, (ID_BYTES + len + 7) / 8 * 8, &begin, &next);
        printk_put(block, builder->head, ID_BYTES);
        memcpy(block + ID_BYTES, text, len);
    }
    uint8_t *info = get_info(builder, builder->head);
    printk_put(info + PRINTK_SEQUENCE, builder->sequence, 8);
    printk_put(info + PRINTK_TIME, builder->sequence * 1000 * 1000, 8);
    printk_put(info + PRINTK_TEXT_LEN, len, 2);
    info[PRINTK_FACILITY] = builder->facility;
    info[PRINTK_LEVEL_BITS / 8] = (uint8_t)(level << PRINTK_LEVEL_BITS % 8 | 2);
    printk_put(info + PRINTK_CALLER, 100 + builder->sequence, 4);
    uint8_t *desc = printk_desc(builder, builder->head);
    printk_put(desc + PRINTK_BEGIN, begin, 8);
    printk_put(desc + PRINTK_NEXT, next, 8);
    printk_put(desc + PRINTK_STATE, (uint64_t)FINALIZED << STATE_SHIFT | builder->head, 8);
    builder->sequence++;
}

UprofPrintkRing
printk_ring(const PrintkBuilder *builder)
{
    const UprofSlice descs = { builder->descs, get_count(builder) * PRINTK_DESC_BYTES };

    return (UprofPrintkRing){
        .layout = &printk_layout,
        .count_bits = builder->count_bits,
        .size_bits = builder->size_bits,
        .tail = builder->tail,
        .head = builder->head,
        .descs = descs,
        .descs_after = descs,
        .infos = { builder->infos, get_count(builder) * PRINTK_INFO_BYTES },
        .text = { builder->text, get_size(builder) },
    };
}
