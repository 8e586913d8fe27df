/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwind tables. The bits of the first byte: bit 0, a 32-bit image; bit 1, a .debug_frame; bit 2,
 * both sections, of which each has half of the input. Code is at TEXT and FAR.
 */
#include "fuzz.h"

#include "../../src/parse/cfi-table-priv.h"

enum { IS_32 = 1, IS_DEBUG = 2, IS_BOTH = 4, TEXT = 0x1000, FAR = 0x40000000, TEXT_LEN = 0x2000 };

static void
check_value(const UprofCfi *cfi, unsigned how, int32_t value, UprofSlice all)
{
    if (how == UPROF_CFI_REGISTER)
        g_assert(value >= 0 && value < uprof_cfi_arch(cfi)->n_regs);
    if (how == UPROF_CFI_EXPRESSION || how == UPROF_CFI_AT_EXPRESSION)
        g_assert(is_part(uprof_cfi_expression(cfi, value), all));
}

static void
check_rule(const UprofCfi *cfi, const UprofCfiRule *rule, UprofSlice all)
{
    const UprofArch *arch = uprof_cfi_arch(cfi);
    unsigned n_pcs = 0;

    if (rule->flags & UPROF_CFI_END)
        return;
    g_assert(rule->cfa_how == UPROF_CFI_OFFSET || rule->cfa_how == UPROF_CFI_EXPRESSION);
    g_assert(rule->cfa_reg < arch->n_regs);
    check_value(cfi, rule->cfa_how, rule->cfa_value, all);
    for (unsigned i = 0; i < rule->n_saved; i++) {
        const UprofCfiSaved *saved = &uprof_cfi_saved(cfi, rule)[i];

        g_assert(saved->reg < arch->n_regs);
        g_assert(saved->how > UPROF_CFI_SAME && saved->how <= UPROF_CFI_EXPRESSION);
        g_assert(i == 0 || saved->reg > saved[-1].reg);
        check_value(cfi, saved->how, saved->value, all);
        n_pcs += saved->reg == arch->pc;
    }
    g_assert(n_pcs == 1);
}

static void
check_rows(const UprofCfi *cfi, UprofSlice all)
{
    const UprofCfiRule *rule, *before = NULL;
    uint64_t pc, pc_before = 0;

    for (size_t i = 0; uprof_cfi_row(cfi, i, &pc, &rule); i++) {
        g_assert(i == 0 || pc > pc_before);
        g_assert((pc >= TEXT && pc <= TEXT + TEXT_LEN) || (pc >= FAR && pc <= FAR + TEXT_LEN));
        g_assert(rule != before);
        g_assert(uprof_cfi_find(cfi, pc) == rule);
        g_assert(uprof_cfi_find(cfi, pc - 1) == before);
        if (rule)
            check_rule(cfi, rule, all);
        before = rule;
        pc_before = pc;
    }
    g_assert(!before);
    g_assert(!uprof_cfi_find(cfi, 0) && !uprof_cfi_find(cfi, UINT64_MAX));
}

/* Compiles the entries at offsets that the input gives. */
static void
check_listed(const UprofElfImage *image, UprofSlice all)
{
    g_autoptr(GArray) listed = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < all.len; i += 4) {
        const uint64_t at = i % 8 ? i : ((const uint8_t *)all.data)[i];
        g_array_append_val(listed, at);
    }
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile_listed(image, listed, "file", &error);
    check_answer(cfi != NULL, error);
    if (cfi)
        check_rows(cfi, all);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofElfRange texts[] = { { TEXT, TEXT_LEN, { NULL, 0 } },
                                    { FAR, TEXT_LEN, { NULL, 0 } } };
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    g_autoptr(GError) error = NULL;

    if (size == 0)
        return;
    const bool is_32 = data[0] & IS_32;
    const UprofSlice all = { data + 1, size - 1 };
    UprofSlice eh = all, debug = { NULL, 0 };
    if (data[0] & IS_BOTH) {
        uprof_slice_sub(all, 0, all.len / 2, &eh);
        uprof_slice_sub(all, eh.len, all.len - eh.len, &debug);
    } else if (data[0] & IS_DEBUG) {
        debug = all;
        eh.len = 0;
    }
    g_array_append_vals(text, texts, G_N_ELEMENTS(texts));
    const UprofElfImage image = {
        .word_bytes = is_32 ? 4 : 8,
        .machine = is_32 ? 3 : 62, /* EM_386, EM_X86_64 */
        .text = text,
        .eh_frame = { 0x8000, eh.len, eh },
        .debug_frame = { 0, debug.len, debug },
    };
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile(&image, "file", &error);

    check_answer(cfi != NULL, error);
    check_listed(&image, all);
    if (!cfi)
        return;
    const UprofCfiSummary summary = uprof_cfi_summary(cfi);
    g_assert(summary.n_rows <= size * 2);
    g_assert(summary.n_rules <= size);
    g_assert(summary.n_expressions <= size);
    check_rows(cfi, all);
}
