/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chain-priv.h"

#include "uprof/bytes.h"

#include <string.h>

enum {
    NODES_MAX = 512, /* of a list */
    PIECES_MAX = 10, /* copied pieces of a list */
    PIECE_BYTES_FIRST = 1024,
    STACK_BYTES_MIN = 256,
};

/* The state of a chain while it is followed. */
typedef struct {
    const UprofCopy *copy;
    const UprofRegs *regs;
    uint64_t starts[UPROF_CHAIN_STARTS];
    uint64_t values[UPROF_CHAIN_STEPS_MAX];
} Walk;

static uint64_t
get_value(const Walk *walk, int number)
{
    return number < 0 ? walk->starts[-number - 1] : walk->values[number];
}

static bool
is_in_process(const Walk *walk, uint64_t gva)
{
    return gva < walk->copy->links->kernel_from;
}

static void
load_word(Walk *walk, unsigned i, const UprofChainStep *step)
{
    const uint64_t at = get_value(walk, step->from) + (uint64_t)(int64_t)step->offset;

    if (!is_in_process(walk, at) || !uprof_copy_word(walk->copy, walk->regs, at, &walk->values[i]))
        walk->values[i] = 0;
}

static bool
is_copied(const Walk *walk, uint64_t gva)
{
    uint64_t word;

    return uprof_snapshot_read(walk->copy->snapshot, gva, &word, sizeof(word));
}

/* A stack that is copied already needs no second copy. A window of a few words is no stack. */
static void
copy_other_stack(const Walk *walk, uint64_t sp)
{
    uint8_t top[STACK_BYTES_MIN];

    if (is_in_process(walk, sp) && !uprof_snapshot_read(walk->copy->snapshot, sp, top, sizeof(top)))
        uprof_copy_stack(walk->copy, walk->regs, sp, 0);
}

/*
 * A node's caller usually lies right below it in memory. So a piece holds what is below the node,
 * up to the begin of the page. Each piece may be larger than the one before, because most lists are
 * short.
 */
static bool
copy_piece(const Walk *walk, uint64_t node, uint16_t len, unsigned n_pieces)
{
    const uint64_t page = node - node % UPROF_PAGE_BYTES;
    const uint64_t bytes = MIN((uint64_t)PIECE_BYTES_FIRST << n_pieces, (uint64_t)UPROF_PAGE_BYTES);
    const uint64_t from = node - page > bytes ? node - bytes : page;

    return uprof_copy_window(walk->copy, walk->regs, from, node + len - from) == node + len - from;
}

static void
copy_list(const Walk *walk, const UprofChainStep *step)
{
    const UprofSnapshot *snapshot = walk->copy->snapshot;
    uint64_t node = get_value(walk, step->from);
    unsigned n_pieces = 0;
    uint8_t bytes[UPROF_CHAIN_NODE_BYTES_MAX];

    for (unsigned i = 0; i < NODES_MAX && node != 0 && is_in_process(walk, node); i++) {
        if (!uprof_snapshot_read(snapshot, node, bytes, step->len) &&
            (n_pieces >= PIECES_MAX || !copy_piece(walk, node, step->len, n_pieces++) ||
             !uprof_snapshot_read(snapshot, node, bytes, step->len)))
            return;
        node = uprof_read_le64(bytes + step->offset);
    }
}

/* Returns: number of the next step */
static unsigned
run_step(Walk *walk, unsigned i, const UprofChainStep *step)
{
    const uint64_t value = step->op != UPROF_CHAIN_END ? get_value(walk, step->from) : 0;

    if (step->op != UPROF_CHAIN_END && value == 0)
        return i + 1;
    switch (step->op) {
    case UPROF_CHAIN_LOAD:
        load_word(walk, i, step);
        return i + 1;
    case UPROF_CHAIN_SKIP_IF_EQUAL:
        return i + 1 + (value == get_value(walk, step->other) ? step->len : 0);
    case UPROF_CHAIN_SKIP_UNLESS_COPIED:
        return i + 1 + (is_copied(walk, value + (uint64_t)(int64_t)step->offset) ? 0 : step->len);
    case UPROF_CHAIN_STACK:
        copy_other_stack(walk, value);
        return i + 1;
    case UPROF_CHAIN_LIST:
        copy_list(walk, step);
        return i + 1;
    default:
        return UPROF_CHAIN_STEPS_MAX;
    }
}

void
uprof_chain_copy(const UprofCopy *copy, const UprofRegs *regs, const UprofChain *chain,
                 uint64_t thread)
{
    Walk walk = {
        .copy = copy,
        .regs = regs,
        .starts = { chain->starts[0] != 0 ? chain->starts[0] : thread, chain->starts[1] },
    };

    for (unsigned i = 0; i < UPROF_CHAIN_STEPS_MAX;)
        i = run_step(&walk, i, &chain->steps[i]);
}
