/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-step-x86_64-priv.h"

#include "call-insn-x86_64-priv.h"
#include "code-cache-priv.h"

enum { PAGE = UPROF_PAGE_BYTES };

/* Returns: bytes of the function that can be read, up to a limit */
static size_t
read_function(const UprofUnwindContext *context, const UprofFunction *function, uint8_t *code)
{
    const size_t len = MIN(function->len, (uint64_t)UPROF_X86_FRAME_BYTES_MAX);
    size_t done = 0;

    while (done < len) {
        const uint64_t at = function->start + done;
        const size_t n = MIN(len - done, PAGE - at % PAGE);
        if (!uprof_unwind_read_code(context, at, code + done, n))
            break;
        done += n;
    }
    return done;
}

static UprofX86Frames *
follow_function(const UprofUnwindContext *context, const UprofFunction *function,
                unsigned word_bytes)
{
    uint8_t code[UPROF_X86_FRAME_BYTES_MAX];
    const UprofSlice slice = { code, read_function(context, function, code) };

    return uprof_x86_frames_new(slice, word_bytes);
}

static bool
is_cached_for(const UprofCachedCode *cached, const UprofFunction *function, unsigned word_bytes)
{
    return cached->frames && cached->start == function->symbol_address &&
           cached->len == function->len && cached->word_bytes == word_bytes;
}

/* Follows and caches the complete function, because later frames have other addresses in it. */
static bool
follow_code(const UprofUnwindContext *context, const UprofCursor *cursor, UprofX86Frame *frame)
{
    const unsigned word_bytes = cursor->regs.word_bytes;
    g_autoptr(UprofX86Frames) own = NULL;
    UprofFunction function;

    if (!uprof_unwind_function(context, cursor, &function) || function.is_entry)
        return false;
    const uint64_t at = cursor->regs.pc - cursor->is_return - function.start;
    if (at >= UPROF_X86_FRAME_BYTES_MAX)
        return false;
    UprofCachedCode *cached = uprof_cache_code(context, function.symbol_address);
    if (cached && is_cached_for(cached, &function, word_bytes))
        return uprof_x86_frames_find(cached->frames, (size_t)at, frame);
    own = follow_function(context, &function, word_bytes);
    const bool is_known = uprof_x86_frames_find(own, (size_t)at, frame);
    if (cached && !uprof_mem_is_spent(context->mem)) {
        uprof_x86_frames_free(cached->frames);
        *cached = (UprofCachedCode){ function.symbol_address, function.len, word_bytes,
                                     g_steal_pointer(&own) };
    }
    return is_known;
}

/* The key lacks the processor's mode: code of known images runs in one mode only. */
static bool
find_frame(const UprofUnwindContext *context, const UprofCursor *cursor, UprofX86Frame *frame)
{
    const uint64_t at = uprof_unwind_symbol_address(context, cursor->regs.pc - cursor->is_return);
    UprofCachedFrame *cached = uprof_cache_frame(context, at);

    if (!cached)
        return follow_code(context, cursor, frame);
    if (cached->pc != at) {
        const bool is_known = follow_code(context, cursor, frame);
        /* Not cached: the next sample may be able to read the code. */
        if (uprof_mem_is_spent(context->mem))
            return is_known;
        *cached = (UprofCachedFrame){ .pc = at, .is_known = is_known, .frame = *frame };
    }
    *frame = cached->frame;
    return cached->is_known;
}

UprofStep
uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const unsigned word_bytes = cursor->regs.word_bytes;
    UprofRegs *regs = &cursor->regs;
    UprofX86Frame frame = { 0 };
    uint64_t pc, fp = regs->fp, target;

    if ((word_bytes != 8 && word_bytes != 4) || !find_frame(context, cursor, &frame))
        return UPROF_STEP_PASS;
    if (frame.is_root)
        return UPROF_STEP_BASE;
    if (frame.by_fp && cursor->unknown >> UPROF_X86_RBP & 1)
        return UPROF_STEP_PASS;
    const uint64_t cfa = (frame.by_fp ? regs->fp : regs->sp) + (uint64_t)frame.cfa;
    if (cfa <= regs->sp || cfa - regs->sp > UPROF_FRAME_BYTES_MAX)
        return UPROF_STEP_PASS;
    if (!uprof_unwind_read_word(context, regs, cfa - word_bytes, &pc))
        return frame.by_fp ? UPROF_STEP_PASS : UPROF_STEP_CUT;
    /* A word of 0 alone proves nothing. */
    if (pc == 0)
        return frame.by_fp ? UPROF_STEP_BASE : UPROF_STEP_PASS;
    if (uprof_x86_64_call_before(context, pc, &target) < UPROF_CALL_DIRECT)
        return UPROF_STEP_PASS;
    bool is_known = frame.fp != UPROF_X86_FP_GONE;
    if (frame.fp == UPROF_X86_FP_KEPT)
        is_known = !(cursor->unknown >> UPROF_X86_RBP & 1);
    if (frame.fp == UPROF_X86_FP_SAVED)
        is_known = uprof_unwind_read_word(context, regs, cfa - (uint64_t)frame.saved, &fp);
    cursor->how = frame.by_fp ? UPROF_HOW_FP : UPROF_HOW_LEAF;
    regs->pc = pc;
    regs->sp = cfa;
    regs->fp = fp;
    cursor->unknown = is_known ? ~(UINT64_C(1) << UPROF_X86_RBP) : UINT64_MAX;
    cursor->is_return = true;
    return UPROF_STEP_OK;
}
