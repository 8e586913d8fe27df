/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/priority.h"

#include "uprof/thread-number.h"

#include <glib.h>
#include <sys/resource.h>

static int
read_nice(void)
{
    return getpriority(PRIO_PROCESS, (id_t)uprof_thread_number());
}

static gpointer
lower_twice(gpointer data)
{
    const int before = read_nice();

    g_assert_true(uprof_priority_lower());
    g_assert_cmpint(read_nice(), ==, MIN(before + 5, 19));
    g_assert_true(uprof_priority_lower());
    g_assert_cmpint(read_nice(), ==, MIN(before + 10, 19));
    return NULL;
}

/* The calling thread alone is lowered, by a step from the value that it has. */
static void
test_lower(void)
{
    const int before = read_nice();

    g_thread_join(g_thread_new("lowered", lower_twice, NULL));
    g_assert_cmpint(read_nice(), ==, before);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/priority/lower", test_lower);
    return g_test_run();
}
