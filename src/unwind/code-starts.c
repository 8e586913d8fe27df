/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A function begins behind an instruction that does not go on, or behind padding.
 * Compilers align most functions. Functions that are not aligned must begin like a function.
 */
#include "code-starts-priv.h"

#include <string.h>

#include "code-state-priv.h"

enum {
    BEFORE = UPROF_X86_INSN_BYTES_MAX + 1, /* bytes that are looked at before an address */
    ALIGN = 16,
    ALIGNED_BYTES_MAX = 128 * 1024, /* searched */
    ANYWHERE_BYTES_MAX = 32 * 1024,
    FILLS_MAX = 16, /* instructions that fill space */
    GAP_BYTES_MAX = 64,
    ENTRY_BYTES = 8,
    PROLOGUE_INSNS_MAX = 24,
    RECORD_INSNS_MAX = 48,
    WORK_OF_BYTES = 16,
    INT3 = 0xcc,
    NOP = 0x90,
};

void
uprof_code_starts_begin(UprofCodeStarts *starts, UprofCodeText *text, UprofStartKind kind,
                        uint64_t pc, unsigned word_bytes)
{
    const uint64_t max = kind == UPROF_START_ALIGNED ? ALIGNED_BYTES_MAX : ANYWHERE_BYTES_MAX;

    starts->text = text;
    starts->kind = kind;
    starts->word_bytes = word_bytes;
    starts->at = kind == UPROF_START_ALIGNED ? pc - pc % ALIGN : pc;
    starts->lowest = pc > max + BEFORE ? pc - max : BEFORE;
    starts->block = 0;
}

/* Bytes before the page that cannot be read become INT3, which functions may follow. */
static bool
load_block(UprofCodeStarts *starts)
{
    const uint64_t block = starts->at - starts->at % UPROF_STARTS_BLOCK_BYTES;

    if (starts->block == block)
        return true;
    starts->block = 0;
    if (block < BEFORE || !uprof_code_text_read(starts->text, block, starts->bytes + BEFORE,
                                                UPROF_STARTS_BLOCK_BYTES))
        return false;
    if (!uprof_code_text_read(starts->text, block - BEFORE, starts->bytes, BEFORE))
        memset(starts->bytes, INT3, BEFORE);
    starts->block = block;
    return true;
}

/* Returns: length of the instruction before @end that only fills space; 0 if there is none */
static unsigned
find_fill(const UprofCodeStarts *starts, const uint8_t *end)
{
    UprofX86Insn insn;

    if (end[-1] == INT3 || end[-1] == NOP)
        if (end[-1] == INT3 || end[-2] != 0x66)
            return 1;
    if (end[-1] != NOP && end[-1] != 0)
        return 0;
    for (unsigned len = UPROF_X86_INSN_BYTES_MAX; len > 1; len--) {
        const uint8_t *insn_start = end - len;
        if (!memchr("\x66\x0f\x2e\x8d", *insn_start, 4))
            continue;
        if (!uprof_code_text_spend(starts->text, 1))
            return 0;
        if (uprof_x86_insn((UprofSlice){ insn_start, len }, starts->word_bytes, &insn) &&
            insn.len == len && insn.kind == UPROF_X86_NOP)
            return len;
    }
    return 0;
}

/* Does an instruction end here after which the code does not go on? A call may be the last one. */
static bool
ends_path(const uint8_t *end)
{
    return end[-1] == 0xc3 || end[-1] == INT3 || end[-1] == 0xf4 || /* RET, INT3, HLT */
           (end[-2] == 0x0f && end[-1] == 0x0b) ||                  /* UD2 */
           end[-3] == 0xc2 ||                                       /* RET with bytes */
           end[-5] == 0xe9 || end[-5] == 0xe8 || end[-2] == 0xeb || /* JMP, CALL */
           (end[-2] == 0xff && ((end[-1] & 0xf8) == 0xe0 || (end[-1] & 0xf8) == 0xd0)) ||
           (end[-3] == 0xff && ((end[-2] & 0xf8) == 0x60 || (end[-2] & 0xf8) == 0x50)) ||
           (end[-6] == 0xff && (end[-5] == 0x25 || end[-5] == 0x15));
}

/*
 * The linker fills the space between two sections with zeros. The first function of .text, often
 * main(), lies behind entries of a procedure linkage table, which have 8 bytes each. .text is
 * aligned to 64 bytes at most.
 *
 * Returns: where the section before ends; @at if there is no such space
 */
static uint64_t
skip_gap(const UprofCodeStarts *starts, uint64_t at)
{
    static const uint8_t zeros[ENTRY_BYTES];
    uint64_t end = at;

    while (at - end < GAP_BYTES_MAX && end - starts->block > ENTRY_BYTES &&
           memcmp(starts->bytes + BEFORE + (end - starts->block) - ENTRY_BYTES, zeros,
                  ENTRY_BYTES) == 0)
        end -= ENTRY_BYTES;
    return end;
}

/* @n_fills: (out): instructions that fill the space before @at */
static bool
may_begin_at(const UprofCodeStarts *starts, uint64_t at, unsigned *n_fills)
{
    uint64_t end = skip_gap(starts, at);
    unsigned len;

    for (*n_fills = 0; *n_fills < FILLS_MAX; ++*n_fills) {
        if (end < starts->block + 1)
            return true; /* the space goes on in the page before */
        len = find_fill(starts, starts->bytes + BEFORE + (end - starts->block));
        if (len == 0 || end - len < starts->block)
            break;
        end -= len;
    }
    return ends_path(starts->bytes + BEFORE + (end - starts->block));
}

static bool
moves_sp_down(const UprofX86Insn *insn)
{
    return insn->kind == UPROF_X86_ADD && insn->to == UPROF_X86_RSP &&
           insn->from == UPROF_X86_RSP && insn->value < 0;
}

static bool
has_prologue(UprofCodeText *text, uint64_t pc)
{
    UprofX86Insn insn;

    for (unsigned i = 0; i < PROLOGUE_INSNS_MAX; i++, pc += insn.len) {
        if (!uprof_code_text_insn(text, pc, &insn))
            return false;
        if (insn.kind == UPROF_X86_PUSH || moves_sp_down(&insn))
            return true;
        if (insn.kind == UPROF_X86_POP || insn.kind == UPROF_X86_LEAVE ||
            (insn.kind >= UPROF_X86_CALL && insn.kind != UPROF_X86_BRANCH))
            return false;
    }
    return false;
}

static bool
begins_prologue(UprofCodeText *text, uint64_t pc, unsigned word_bytes)
{
    UprofX86Insn insn;

    if (!uprof_code_text_insn(text, pc, &insn))
        return false;
    if (insn.kind == UPROF_X86_PUSH)
        return insn.from != UPROF_X86_REG_NONE &&
               (uprof_code_saved_regs(word_bytes) >> insn.from & 1);
    if (insn.kind == UPROF_X86_ADD && insn.from == UPROF_X86_RSP)
        return moves_sp_down(&insn) || insn.value == 0 || insn.value == word_bytes;
    return insn.kind == UPROF_X86_MARK;
}

static bool
is_start(UprofCodeStarts *starts, uint64_t at)
{
    unsigned n_fills;

    if (starts->kind == UPROF_START_ALIGNED)
        return may_begin_at(starts, at, &n_fills) &&
               uprof_code_text_spend(starts->text, PROLOGUE_INSNS_MAX) &&
               has_prologue(starts->text, at);
    /* first bytes of the instructions that begins_prologue() accepts */
    if (at % ALIGN == 0 || !memchr("\x55\x56\x57\x53\x41\x48\x4c\x49\x54\x83\x81\x89\x8d\xf3",
                                   starts->bytes[BEFORE + (at - starts->block)], 14))
        return false;
    return may_begin_at(starts, at, &n_fills) && uprof_code_text_spend(starts->text, 1) &&
           begins_prologue(starts->text, at, starts->word_bytes);
}

bool
uprof_code_starts_next(UprofCodeStarts *starts, uint64_t *start)
{
    const unsigned step = starts->kind == UPROF_START_ALIGNED ? ALIGN : 1;

    while (starts->at >= starts->lowest) {
        const uint64_t at = starts->at;
        const bool is_readable = load_block(starts);
        /* @lowest is above 0, so this does not wrap around */
        starts->at = is_readable ? at - step : at - at % UPROF_STARTS_BLOCK_BYTES - 1;
        starts->at -= is_readable ? 0 : starts->at % step;
        if ((at % WORK_OF_BYTES == 0 || !is_readable) && !uprof_code_text_spend(starts->text, 1))
            return false;
        if (is_readable && is_start(starts, at)) {
            *start = at;
            return true;
        }
        if (!is_readable && at < UPROF_STARTS_BLOCK_BYTES)
            return false;
    }
    return false;
}

bool
uprof_code_makes_record(UprofCodeText *text, uint64_t start)
{
    UprofX86Insn insn;

    for (unsigned i = 0; i < RECORD_INSNS_MAX; i++, start += insn.len) {
        if (!uprof_code_text_insn(text, start, &insn) ||
            (insn.kind >= UPROF_X86_JUMP && insn.kind != UPROF_X86_BRANCH))
            return false;
        if (insn.kind == UPROF_X86_ADD && insn.to == UPROF_X86_RBP && insn.from == UPROF_X86_RSP &&
            insn.value == 0)
            return true;
    }
    return false;
}
