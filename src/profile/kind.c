/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kind.h"

#include "uprof/profile.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *label;
    char letter;
} kinds[UPROF_N_KINDS] = {
    [UPROF_KIND_APP]       = { "application",  'a' },
    [UPROF_KIND_KERNEL]    = { "guest kernel", 'k' },
    [UPROF_KIND_INTERRUPT] = { "interrupt",    'q' },
    [UPROF_KIND_INLINED]   = { "inlined",      'i' },
    [UPROF_KIND_IDLE]      = { "idle",         'z' },
    [UPROF_KIND_MARKER]    = { "unknown", 'm' },
    [UPROF_KIND_DOMAIN]    = { "domain",       'd' },
};

static const char *const markers[] = { "[unknown]", "[truncated]", "[cgroup]" };

/* Prefixes of function names of Linux: arch/x86/include/asm/idtentry.h, kernel/softirq.c,
 * arch/arm64/kernel/entry-common.c, v6.1. */
static const char *const interrupts[] = {
    "asm_sysvec_", "asm_common_interrupt", "sysvec_", "common_interrupt", "do_IRQ", "asm_exc_nmi",
    "__do_softirq", "irq_exit", "el1h_64_irq", "el0t_64_irq",
};
/* clang-format on */

static bool
is_interrupt(const char *text)
{
    for (size_t i = 0; i < G_N_ELEMENTS(interrupts); i++)
        if (strncmp(text, interrupts[i], strlen(interrupts[i])) == 0)
            return true;
    return false;
}

UprofKind
uprof_kind_of(const UprofName *name)
{
    const char *text = uprof_name_text(name);
    const size_t len = strlen(text);
    uint32_t vcpu;

    if (text[0] == '[') {
        for (size_t i = 0; i < G_N_ELEMENTS(markers); i++)
            if (strcmp(text, markers[i]) == 0)
                return UPROF_KIND_MARKER;
        return strcmp(text, "[idle]") == 0 ? UPROF_KIND_IDLE : UPROF_KIND_APP;
    }
    if (len > 4 && strcmp(text + len - 4, "_[k]") == 0)
        return is_interrupt(text) ? UPROF_KIND_INTERRUPT : UPROF_KIND_KERNEL;
    if (uprof_profile_level_is_vcpu(name, &vcpu))
        return UPROF_KIND_DOMAIN;
    if (len > 4 && strcmp(text + len - 4, "_[i]") == 0)
        return UPROF_KIND_INLINED;
    return UPROF_KIND_APP;
}

const char *
uprof_kind_label(UprofKind kind)
{
    return kinds[kind].label;
}

char
uprof_kind_letter(UprofKind kind)
{
    return kinds[kind].letter;
}
