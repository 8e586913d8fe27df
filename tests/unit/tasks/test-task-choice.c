/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/tasks/task-choice-priv.h"

#include <string.h>

static const UprofTask tasks[] = {
    { .id = 1,
      .state = 'S',
      .name = "init",
      .user_ns = 5,
      .system_ns = 5,
      .has_wait = true,
      .wait_ns = 90 },
    { .id = 2, .state = 'D', .name = "nginx", .user_ns = 1, .has_wait = true, .wait_ns = 10 },
    { .id = 3, .state = 'R', .name = "nginx", .user_ns = 50 },
    { .id = 4, .state = 'D', .name = "sync", .system_ns = 7, .has_wait = true, .wait_ns = 70 },
    /* it is not known how long this one waits */
    { .id = 5, .state = 'D', .name = "sh" },
    { .id = 6, .state = 'R', .name = "cron", .has_wait = true },
};

static void
assert_order(const UprofTaskChoice *choice, const char *ids)
{
    g_autoptr(GArray) chosen = g_array_new(FALSE, FALSE, sizeof(UprofTask));
    g_autoptr(GString) found = g_string_new(NULL);

    g_array_append_vals(chosen, tasks, G_N_ELEMENTS(tasks));
    uprof_task_choice_apply(choice, chosen);
    for (guint i = 0; i < chosen->len; i++)
        g_string_append_printf(found, "%u", g_array_index(chosen, UprofTask, i).id);
    g_assert_cmpstr(found->str, ==, ids);
}

static void
test_orders(void)
{
    UprofTaskChoice choice = { .order = uprof_task_choice_order(NULL) };

    assert_order(&choice, "123456");
    choice.order = uprof_task_choice_order("cpu");
    assert_order(&choice, "314256");
    choice.order = uprof_task_choice_order("wait");
    assert_order(&choice, "142635");
    choice.order = UPROF_TASK_BLOCKED;
    assert_order(&choice, "425163");
}

static void
test_filters(void)
{
    UprofTaskChoice choice = { 0 };

    g_assert_true(uprof_task_choice_set_states(&choice, "DR"));
    assert_order(&choice, "23456");
    g_assert_true(uprof_task_choice_set_pattern(&choice, "^ng"));
    assert_order(&choice, "23");
    g_assert_true(uprof_task_choice_set_states(&choice, UPROF_TASK_STATES));
    assert_order(&choice, "23");
}

static void
test_bad(void)
{
    g_autofree char *longest = g_strnfill(UPROF_TASK_PATTERN_BYTES, 'a');
    UprofTaskChoice choice = { 0 };

    g_assert_false(uprof_task_choice_set_states(&choice, ""));
    g_assert_false(uprof_task_choice_set_states(&choice, "DQ"));
    g_assert_false(uprof_task_choice_set_states(&choice, UPROF_TASK_STATES "D"));
    g_assert_false(uprof_task_choice_set_pattern(&choice, "("));
    g_assert_false(uprof_task_choice_set_pattern(&choice, "\xff"));
    g_assert_false(uprof_task_choice_set_pattern(&choice, longest));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tasks/task-choice/orders", test_orders);
    g_test_add_func("/tasks/task-choice/filters", test_filters);
    g_test_add_func("/tasks/task-choice/bad", test_bad);
    return g_test_run();
}
