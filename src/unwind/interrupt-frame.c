/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interrupt-frame-priv.h"

/* RFLAGS: bit 1 is always set; bits 3, 5, 15 and those above 21 never (Intel SDM, volume 1, 3.4.3)
 */
#define FLAGS_SET UINT64_C(0x2)
#define FLAGS_CLEAR (~UINT64_C(0x3fffff) | 0x8028)

/* In a code segment's word Xen has eight bits for itself. */
#define CS_CLEAR (~UINT64_C(0xff0000ffff))
#define SELECTOR_BITS UINT64_C(0xffff)
#define SELECTOR_INDEX UINT64_C(0xfff8)

enum {
    PC,
    CS,
    FLAGS,
    SP,
    SS,
    WORDS,
    WORDS_32_SAME = 3, /* of a 32-bit frame without a change of privilege */
    PRIVILEGE = 3,
};

static bool
read_words(UprofCodeFrame *frame, uint64_t slot, unsigned first, unsigned end, uint64_t *words)
{
    const UprofRegs *regs = &frame->cursor->regs;

    for (unsigned i = first; i < end; i++)
        if (!uprof_unwind_read_word(frame->context, regs, slot + i * regs->word_bytes, &words[i])) {
            frame->is_cut = true;
            return false;
        }
    return true;
}

static bool
is_plausible(const UprofCodeFrame *frame, const uint64_t *words)
{
    const uint64_t cs = words[CS], flags = words[FLAGS];
    const uint64_t privilege = cs & PRIVILEGE;

    return (flags & FLAGS_SET) && !(flags & FLAGS_CLEAR) && !(cs & CS_CLEAR) &&
           (cs & SELECTOR_INDEX) && (privilege == 0 || privilege == PRIVILEGE) &&
           (frame->cursor->regs.word_bytes == 8 || cs <= SELECTOR_BITS);
}

/*
 * A paravirtual kernel runs in ring 3, and sets the privilege right before it returns. So code of
 * the kernel's own image is the kernel's, unless the thread is known to belong to a process.
 */
static bool
is_of_process(const UprofCodeFrame *frame, const uint64_t *words)
{
    const UprofUnwindContext *context = frame->context;

    if ((words[CS] & PRIVILEGE) == 0)
        return false;
    return (context->space && uprof_space_is_of_process(context->space)) ||
           !uprof_sym_is_code(context->sym, uprof_unwind_symbol_address(context, words[PC]));
}

bool
uprof_interrupt_frame_read(UprofCodeFrame *frame, uint64_t slot, UprofInterrupted *found)
{
    const unsigned word_bytes = frame->cursor->regs.word_bytes;
    uint64_t words[WORDS] = { 0 };

    if (!read_words(frame, slot, PC, WORDS_32_SAME, words) || !is_plausible(frame, words))
        return false;
    *found = (UprofInterrupted){ .pc = words[PC],
                                 .flags = words[FLAGS],
                                 .is_user = is_of_process(frame, words) };
    if (word_bytes == 4 && !found->is_user) {
        found->sp = slot + WORDS_32_SAME * word_bytes;
        return uprof_code_text_is_code(frame->tools->text, found->pc);
    }
    if (!read_words(frame, slot, WORDS_32_SAME, WORDS, words) || (words[SS] & ~SELECTOR_BITS))
        return false;
    found->sp = words[SP];
    return found->is_user || uprof_code_text_is_code(frame->tools->text, found->pc);
}
