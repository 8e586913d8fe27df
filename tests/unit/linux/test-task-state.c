/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "../../../src/linux/task-state-priv.h"
#include "uprof/task-list.h"

static void
test_letters(void)
{
    static const struct {
        uint32_t state, exit_state;
        char letter;
    } cases[] = {
        { 0, 0, 'R' },
        { 0x1, 0, 'S' },
        { 0x2, 0, 'D' },
        { 0x102, 0, 'D' },
        { 0x2102, 0, 'D' },
        { 0x402, 0, 'I' },
        { 0x4, 0, 'T' },
        { 0x104, 0, 'T' },
        { 0x8, 0, 't' },
        { 0x40, 0, 'P' },
        { 0x1001, 0, 'D' },
        { 0x8000, 0, 'D' },
        { 0x80, 0x10, 'X' },
        { 0x80, 0x20, 'Z' },
        { 0x2001, 0, 'S' },
        { 0x800, 0, 'R' },
        { UINT32_MAX, UINT32_MAX, 'I' },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(uprof_task_state_letter(cases[i].state, cases[i].exit_state), ==,
                        cases[i].letter);
    g_assert_cmpstr(uprof_task_state_name('D'), ==, "uninterruptible");
    g_assert_cmpstr(uprof_task_state_name('t'), ==, "traced");
    g_assert_cmpstr(uprof_task_state_name('?'), ==, "unknown");
}

static void
test_times(void)
{
    static const struct {
        UprofTaskTimes times;
        uint64_t user, system;
    } cases[] = {
        { { .user = 30, .system = 10, .run = 4000 }, 3000, 1000 },
        { { .user = 30, .run = 4000 }, 4000, 0 },
        { { .system = 10, .run = 4000 }, 0, 4000 },
        { { .run = 4000 }, 4000, 0 },
        /* a time that was shown does not go back */
        { { .user = 30, .system = 10, .shown_system = 1500, .run = 4000 }, 2500, 1500 },
        { { .user = 30, .system = 10, .shown_user = 3500, .run = 4000 }, 3500, 500 },
        { { .user = 1, .system = 1, .shown_user = 3, .shown_system = 9, .run = 11 }, 3, 9 },
        /* no overflow */
        { { .user = UINT64_MAX / 2, .system = UINT64_MAX / 2, .run = UINT64_MAX },
          UINT64_MAX / 2 + 1,
          UINT64_MAX / 2 },
        { { .user = UINT64_MAX, .system = 2, .run = 7 }, 0, 7 },
        { { .shown_user = UINT64_MAX, .shown_system = UINT64_MAX, .run = 7 },
          UINT64_MAX,
          UINT64_MAX },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t user, system;
        uprof_task_state_scale(&cases[i].times, &user, &system);
        g_assert_cmpuint(user, ==, cases[i].user);
        g_assert_cmpuint(system, ==, cases[i].system);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linux/task-state/letters", test_letters);
    g_test_add_func("/linux/task-state/times", test_times);
    return g_test_run();
}
