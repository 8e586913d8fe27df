/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "pieces.h"
#include "uprof/pprof-reader.h"

enum { NUMBER, BYTES_8, BYTES, BYTES_4 = 5, WIRE_MASK = 7, NUMBER_BYTES_MAX = 10 };

typedef struct {
    uint64_t sum;
    unsigned n;
} Seen;

static void
check_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Seen *seen = data;

    g_assert(n > 0 && n <= UPROF_FOLDED_FRAMES_MAX && count > 0);
    g_assert(!__builtin_add_overflow(seen->sum, count, &seen->sum));
    for (unsigned i = 0; i < n; i++)
        g_assert(frames[i].len == 0 || frames[i].data);
    seen->n++;
}

/* Returns: bytes of the number; 0 if the number has no end */
static size_t
read_number(UprofSlice rest, uint64_t *number)
{
    const uint8_t *bytes = rest.data;

    *number = 0;
    for (size_t i = 0; i < MIN(rest.len, (size_t)NUMBER_BYTES_MAX); i++) {
        *number |= i < 9 ? (uint64_t)(bytes[i] & 0x7f) << 7 * i : 0;
        if (!(bytes[i] & 0x80))
            return i + 1;
    }
    return 0;
}

/* A piece is a field of a message. A field of bytes may contain a message. */
bool
fuzz_find_piece(UprofSlice rest, size_t at, FuzzPiece *piece)
{
    uint64_t tag, value;
    const size_t tag_len = read_number(rest, &tag);
    UprofSlice behind;

    if (tag_len == 0 || !uprof_slice_sub(rest, tag_len, rest.len - tag_len, &behind))
        return false;
    const size_t value_len = read_number(behind, &value);
    *piece = (FuzzPiece){ .content_len = tag_len, .is_fixed = true };
    switch (tag & WIRE_MASK) {
    case NUMBER:
        piece->content_len += value_len;
        return value_len > 0;
    case BYTES_8:
        piece->content_len += 8;
        return true;
    case BYTES_4:
        piece->content_len += 4;
        return true;
    case BYTES:
        *piece = (FuzzPiece){ tag_len + value_len, value, .has_pieces = true };
        return value_len > 0 && value <= rest.len;
    default:
        return false;
    }
}

size_t
fuzz_write_head(uint8_t *head, size_t content_len)
{
    uint64_t tag;
    size_t len = read_number((UprofSlice){ head, NUMBER_BYTES_MAX }, &tag);

    for (; content_len >= 0x80; content_len >>= 7)
        head[len++] = (uint8_t)(content_len | 0x80);
    head[len++] = (uint8_t)content_len;
    return len;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofPprofFacts untouched = { 1, 2, 3 };
    UprofPprofFacts facts = untouched;
    Seen seen = { 0 };
    g_autoptr(GError) error = NULL;

    uprof_pprof_is((UprofSlice){ data, size });
    const bool ok =
        uprof_pprof_parse("file", (UprofSlice){ data, size }, &facts, check_stack, &seen, &error);

    check_answer(ok, error);
    g_assert(ok || seen.n == 0);
    g_assert(ok || memcmp(&facts, &untouched, sizeof(facts)) == 0);
}
