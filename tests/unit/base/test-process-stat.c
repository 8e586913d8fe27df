/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/process-stat.h"

#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    unsigned field;
    const char *word; /* NULL if the field is missing */
} cases[] = {
    { "state",                    "7 (cat) S 1 7",        3, "S" },
    { "later-field",              "7 (cat) S 1 7",        5, "7" },
    { "last-field-and-newline",   "7 (cat) S 1 7\n",      5, "7" },
    { "blank-in-name",            "7 (a cat) R 1 7",      3, "R" },
    { "parentheses-in-name",      "7 (a) Z 9 (b) T 1 7",  3, "T" },
    { "empty-name",               "7 () S 1 7",           4, "1" },
    { "field-behind-the-end",     "7 (cat) S 1 7",        6, NULL },
    { "nothing-behind-the-name",  "7 (cat)",              3, NULL },
    { "no-name",                  "7 S 1 7",              3, NULL },
    { "empty-text",               "",                     3, NULL },
};
/* clang-format on */

static void
test_find(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice text = { cases[i].text, strlen(cases[i].text) };
    UprofSlice word;

    const bool found = uprof_process_stat_find(text, cases[i].field, &word);

    g_assert_cmpint(found, ==, cases[i].word != NULL);
    if (found)
        g_assert_cmpmem(word.data, word.len, cases[i].word, strlen(cases[i].word));
}

static void
test_start_of_a_process(void)
{
    const uint64_t start = uprof_process_stat_start(getpid());

    g_assert_cmpuint(start, >, 0);
    g_assert_cmpuint(uprof_process_stat_start(getpid()), ==, start);
}

static void
test_start_of_no_process(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    g_assert_cmpuint(uprof_process_stat_start(pid), ==, 0);
    g_assert_cmpuint(uprof_process_stat_start(0), ==, 0);
    g_assert_cmpuint(uprof_process_stat_start(-1), ==, 0);
}

static void
test_stopped_by_a_signal(void)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, WUNTRACED), ==, pid);
    g_assert_true(WIFSTOPPED(status));
    g_assert_true(uprof_process_stat_is_stopped(pid));
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    g_assert_false(uprof_process_stat_is_stopped(pid));
    g_assert_false(uprof_process_stat_is_stopped(getpid()));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/process-stat/find/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_find);
    }
    g_test_add_func("/process-stat/start/process", test_start_of_a_process);
    g_test_add_func("/process-stat/start/no-process", test_start_of_no_process);
    g_test_add_func("/process-stat/stopped-by-a-signal", test_stopped_by_a_signal);
    return g_test_run();
}
