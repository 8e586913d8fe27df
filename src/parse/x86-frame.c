/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/x86-frame.h"

#include <string.h>

#include "uprof/x86-insn.h"

enum {
    ROUNDS = 8, /* walks over the code, as long as jumps back change states */
    ROWS_MAX = 2048,
    DEPTH_MAX = 16 * 1024 * 1024,
};

/** State: the known facts before an instruction */
typedef struct {
    bool is_known;
    bool is_own;   /* the frame pointer does not have the caller's value any more */
    bool is_zero;  /* the frame pointer is 0 */
    int32_t depth; /* bytes from the stack pointer up to the CFA; 0: unknown */
    int32_t base;  /* bytes from the frame pointer up to the CFA; 0: unrelated */
    int32_t saved; /* bytes from the saved frame pointer up to the CFA; 0: not saved */
} State;

/** Row: the answer from the byte at @at up to the next row */
typedef struct {
    uint16_t at;
    bool is_known;
    UprofX86Frame frame;
} Row;

struct _UprofX86Frames {
    size_t len; /* of the code */
    GArray *rows;
};

/** Walk: one function while its code is followed */
typedef struct {
    UprofSlice code;                         /* borrowed */
    int32_t word;                            /* bytes */
    State states[UPROF_X86_FRAME_BYTES_MAX]; /* before the instruction at each byte */
    State table;                             /* before jumps through a table */
    bool has_changed;                        /* in this round */
} Walk;

G_STATIC_ASSERT(UPROF_X86_FRAME_BYTES_MAX <= UINT16_MAX);

/* @by: bytes that are added to the stack pointer */
static void
move_sp(State *state, int64_t by)
{
    const int64_t depth = state->depth - by;

    if (state->depth != 0)
        state->depth = depth > 0 && depth < DEPTH_MAX ? (int32_t)depth : 0;
}

static void
push_word(State *state, int32_t word, uint8_t reg)
{
    move_sp(state, -word);
    if (reg == UPROF_X86_RBP && !state->is_own && state->saved == 0)
        state->saved = state->depth;
}

static void
pop_word(State *state, int32_t word, uint8_t reg)
{
    if (reg == UPROF_X86_RBP) {
        state->is_own = state->saved == 0 || state->depth != state->saved;
        state->base = 0;
        state->is_zero = false;
        if (!state->is_own)
            state->saved = 0;
    }
    move_sp(state, word);
}

static void
save_fp(State *state, int32_t at)
{
    const int64_t saved = (int64_t)state->depth - at;

    if (state->depth != 0 && !state->is_own && state->saved == 0 && saved > 0 && saved < DEPTH_MAX)
        state->saved = (int32_t)saved;
}

/* Returns: offset to the CFA of a pointer that becomes the other pointer + @value; 0: unknown */
static int32_t
derive_offset(int32_t from, int32_t value)
{
    const int64_t to = (int64_t)from - value;

    return from != 0 && to > 0 && to < DEPTH_MAX ? (int32_t)to : 0;
}

/* Forgets the pointers in @writes */
static void
lose_pointers(State *state, unsigned writes)
{
    if (writes >> UPROF_X86_RSP & 1)
        state->depth = 0;
    if (writes >> UPROF_X86_RBP & 1) {
        state->base = 0;
        state->is_own = true;
        state->is_zero = false;
    }
}

/* One of the pointers becomes the other pointer, or itself, + @value. */
static void
add_value(State *state, const UprofX86Insn *insn)
{
    const bool is_from_sp = insn->from == UPROF_X86_RSP, is_from_fp = insn->from == UPROF_X86_RBP;
    const int32_t value = (int32_t)insn->value;
    const int32_t offset = derive_offset(is_from_sp   ? state->depth
                                         : is_from_fp ? state->base
                                                      : 0,
                                         value);

    if (insn->to == UPROF_X86_RSP) {
        state->depth = offset;
    } else if (insn->to == UPROF_X86_RBP && !(is_from_fp && value == 0)) {
        lose_pointers(state, 1u << UPROF_X86_RBP);
        state->base = offset;
    }
}

static void
apply_insn(State *state, const UprofX86Insn *insn, int32_t word)
{
    lose_pointers(state, insn->writes);
    switch (insn->kind) {
    case UPROF_X86_PUSH:
        push_word(state, word, insn->from);
        break;
    case UPROF_X86_POP:
        pop_word(state, word, insn->to);
        break;
    case UPROF_X86_LEAVE:
        state->depth = state->base;
        pop_word(state, word, UPROF_X86_RBP);
        break;
    case UPROF_X86_ADD:
        add_value(state, insn);
        break;
    case UPROF_X86_STORE:
        if (insn->from == UPROF_X86_RBP && insn->to == UPROF_X86_RSP)
            save_fp(state, (int32_t)insn->value);
        break;
    case UPROF_X86_SET:
    case UPROF_X86_LOAD:
    case UPROF_X86_ALIGN_SP:
        lose_pointers(state, 1u << insn->to);
        state->is_zero |=
            insn->kind == UPROF_X86_SET && insn->to == UPROF_X86_RBP && insn->value == 0;
        break;
    default:
        break;
    }
}

/* @other: another possible state at the same instruction. Returns: true if facts were lost */
static bool
merge_state(State *state, const State *other)
{
    const State before = *state;

    if (state->depth != other->depth)
        state->depth = 0;
    if (state->base != other->base)
        state->base = 0;
    if (state->is_own != other->is_own || state->saved != other->saved) {
        /* one of the two states has lost the frame pointer */
        state->is_own = true;
        state->saved = 0;
    }
    state->is_zero &= other->is_zero;
    return state->depth != before.depth || state->base != before.base ||
           state->saved != before.saved || state->is_own != before.is_own ||
           state->is_zero != before.is_zero;
}

/* @state: another possible state before the instruction at @at */
static void
reach_insn(Walk *walk, size_t at, const State *state)
{
    State *here = &walk->states[at];

    if (!here->is_known) {
        *here = *state;
        walk->has_changed = true;
    } else if (merge_state(here, state)) {
        walk->has_changed = true;
    }
}

/* @to: may lie outside of the function, which is ignored */
static void
follow_jump(Walk *walk, int64_t to, const State *state)
{
    if (to >= 0 && (uint64_t)to < walk->code.len)
        reach_insn(walk, (size_t)to, state);
}

/*
 * @state: (inout): becomes the state after @insn. Returns: true if the next instruction may follow
 */
static bool
follow_insn(Walk *walk, size_t end, const UprofX86Insn *insn, State *state)
{
    switch (insn->kind) {
    case UPROF_X86_BRANCH:
        follow_jump(walk, (int64_t)end + insn->value, state);
        return true;
    case UPROF_X86_JUMP:
        follow_jump(walk, (int64_t)end + insn->value, state);
        return false;
    case UPROF_X86_JUMP_FIXED:
    case UPROF_X86_JUMP_TABLE:
    case UPROF_X86_JUMP_ANY:
        if (!walk->table.is_known)
            walk->table = *state;
        else
            merge_state(&walk->table, state);
        return false;
    case UPROF_X86_RETURN:
    case UPROF_X86_STOP:
        return false;
    case UPROF_X86_CALL:
        /* a call of the next instruction: 32-bit code finds its own address this way */
        if (insn->value == 0 && insn->len == 5)
            push_word(state, walk->word, UPROF_X86_REG_NONE);
        return true;
    default:
        apply_insn(state, insn, walk->word);
        return true;
    }
}

/*
 * Walks over all instructions. The state before an instruction comes from the instruction
 * before and from jumps. After an unconditional jump or a return the state is unknown, or is
 * that of jumps through a table, if @use_table.
 */
static void
walk_code(Walk *walk, bool use_table)
{
    const uint8_t *bytes = walk->code.data;
    State state = { 0 };

    for (size_t at = 0; at < walk->code.len;) {
        const UprofSlice rest = { bytes + at, walk->code.len - at };
        State *here = &walk->states[at];
        UprofX86Insn insn;

        if (!uprof_x86_insn(rest, (unsigned)walk->word, &insn))
            return;
        if (!here->is_known && !state.is_known && use_table)
            state = walk->table;
        if (state.is_known)
            reach_insn(walk, at, &state);
        state = *here;
        at += insn.len;
        if (state.is_known && !follow_insn(walk, at, &insn, &state))
            state.is_known = false;
    }
}

static bool
describe_frame(const State *state, UprofX86Frame *frame)
{
    /* a frame pointer that is set to 0 without being saved belongs to no caller */
    const bool is_root = state->is_zero && state->saved == 0;

    if (state->base == 0 && state->depth == 0 && !is_root)
        return false;
    *frame = (UprofX86Frame){
        .is_root = is_root,
        .by_fp = state->base != 0,
        .cfa = state->base != 0 ? state->base : state->depth,
        .fp = !state->is_own      ? UPROF_X86_FP_KEPT
              : state->saved != 0 ? UPROF_X86_FP_SAVED
                                  : UPROF_X86_FP_GONE,
        .saved = state->saved,
    };
    return true;
}

static bool
is_same_row(const Row *one, const Row *other)
{
    const UprofX86Frame *a = &one->frame, *b = &other->frame;

    return one->is_known == other->is_known &&
           (!one->is_known || (a->is_root == b->is_root && a->by_fp == b->by_fp &&
                               a->cfa == b->cfa && a->fp == b->fp && a->saved == b->saved));
}

/* If the table is full, the last row says that the rest is unknown. */
static void
add_row(GArray *rows, const Row *row)
{
    const Row last = { .at = row->at };

    if (rows->len < ROWS_MAX &&
        (rows->len == 0 || !is_same_row(&g_array_index(rows, Row, rows->len - 1), row)))
        g_array_append_vals(rows, rows->len == ROWS_MAX - 1 ? &last : row, 1);
}

/* A row holds for all bytes of its instruction, up to a byte where another instruction begins. */
static GArray *
list_rows(const Walk *walk)
{
    const uint8_t *bytes = walk->code.data;
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    size_t end = 0;

    for (size_t at = 0; at < walk->code.len && rows->len < ROWS_MAX; at++) {
        const UprofSlice rest = { bytes + at, walk->code.len - at };
        Row row = { .at = (uint16_t)at };
        UprofX86Insn insn;
        if (walk->states[at].is_known) {
            const bool is_insn = uprof_x86_insn(rest, (unsigned)walk->word, &insn);
            row.is_known = is_insn && describe_frame(&walk->states[at], &row.frame);
            end = at + (is_insn ? insn.len : 1);
        } else if (at < end) {
            continue;
        }
        add_row(rows, &row);
    }
    return rows;
}

static const Row *
find_row(const GArray *rows, size_t at)
{
    guint low = 0, high = rows->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(rows, Row, middle).at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &g_array_index(rows, Row, low - 1) : NULL;
}

/* Returns: the rows of @first, and those of @second where @first is unknown */
static GArray *
join_rows(const GArray *first, const GArray *second)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(Row));
    guint i = 0, j = 0;

    while (i < first->len || j < second->len) {
        const unsigned at = i < first->len ? g_array_index(first, Row, i).at : UINT_MAX;
        const unsigned other = j < second->len ? g_array_index(second, Row, j).at : UINT_MAX;
        const unsigned here = MIN(at, other);
        i += at == here;
        j += other == here;
        Row row = *find_row(first, here);
        if (!row.is_known)
            row = *find_row(second, here);
        row.at = (uint16_t)here;
        add_row(rows, &row);
    }
    return rows;
}

/* Returns: false if states still change in the last round */
static bool
repeat_walk(Walk *walk, unsigned *rounds, bool use_table)
{
    for (; *rounds < ROUNDS; ++*rounds) {
        walk->has_changed = false;
        walk_code(walk, use_table);
        if (!walk->has_changed)
            return true;
    }
    return false;
}

UprofX86Frames *
uprof_x86_frames_new(UprofSlice code, unsigned word_bytes)
{
    UprofX86Frames *frames = g_new0(UprofX86Frames, 1);
    g_autofree Walk *walk = g_new(Walk, 1);
    unsigned rounds = 0;

    code.len = MIN(code.len, (size_t)UPROF_X86_FRAME_BYTES_MAX);
    frames->len = code.len;
    if (code.len == 0 || (word_bytes != 8 && word_bytes != 4)) {
        frames->rows = g_array_new(FALSE, FALSE, sizeof(Row));
        return frames;
    }
    memset(walk->states, 0, code.len * sizeof(walk->states[0]));
    walk->code = code;
    walk->word = (int32_t)word_bytes;
    walk->table.is_known = false;
    walk->states[0] = (State){ .is_known = true, .depth = walk->word };
    if (!repeat_walk(walk, &rounds, false)) {
        frames->rows = g_array_new(FALSE, FALSE, sizeof(Row));
        return frames;
    }
    frames->rows = list_rows(walk);
    if (walk->table.is_known && repeat_walk(walk, &rounds, true)) {
        g_autoptr(GArray) first = frames->rows, second = list_rows(walk);
        frames->rows = join_rows(first, second);
    }
    return frames;
}

void
uprof_x86_frames_free(UprofX86Frames *frames)
{
    if (!frames)
        return;
    g_array_unref(frames->rows);
    g_free(frames);
}

bool
uprof_x86_frames_find(const UprofX86Frames *frames, size_t at, UprofX86Frame *frame)
{
    const Row *row = at < frames->len ? find_row(frames->rows, at) : NULL;

    if (!row || !row->is_known)
        return false;
    *frame = row->frame;
    return true;
}
