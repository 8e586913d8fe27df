/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kind.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *name;
    UprofKind kind;
} cases[] = {
    { "main",                         UPROF_KIND_APP },
    { "0xffffffff81000000",           UPROF_KIND_APP },
    { "[app+0x1a2b]",                 UPROF_KIND_APP },
    { "copy_user_generic_[k]",        UPROF_KIND_KERNEL },
    { "_[k]",                         UPROF_KIND_APP },
    { "asm_sysvec_apic_timer_interrupt_[k]", UPROF_KIND_INTERRUPT },
    { "asm_sysvec_apic_timer_interrupt", UPROF_KIND_APP },
    { "memcpy_[i]",                   UPROF_KIND_INLINED },
    { "[idle]",                       UPROF_KIND_IDLE },
    { "[unknown]",                    UPROF_KIND_MARKER },
    { "[truncated]",                  UPROF_KIND_MARKER },
    { "[truncated] ",                 UPROF_KIND_APP },
    { "vcpu0",                        UPROF_KIND_DOMAIN },
    { "vcpu0_loop",                   UPROF_KIND_APP },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();

    g_assert_cmpint(uprof_kind_of(uprof_names_marker(names, cases[i].name)), ==, cases[i].kind);
}

/* Files contain the letters, so each letter must mean one kind. */
static void
test_letters(void)
{
    bool seen[128] = { false };

    for (unsigned kind = 0; kind < UPROF_N_KINDS; kind++) {
        const char letter = uprof_kind_letter((UprofKind)kind);
        g_assert_true(g_ascii_islower(letter) && !seen[(unsigned char)letter]);
        seen[(unsigned char)letter] = true;
        g_assert_cmpuint(strlen(uprof_kind_label((UprofKind)kind)), >, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/kind/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/kind/letters", test_letters);
    return g_test_run();
}
