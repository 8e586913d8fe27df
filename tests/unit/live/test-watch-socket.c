/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-socket-priv.h"

#include "private-run.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* A watch that knows the domain "web-1", and cannot write "full". */
static gpointer
run_watch(gpointer data)
{
    UprofWatchSocket *made = data;

    for (;;) {
        struct pollfd wait = { .fd = uprof_watch_socket_fd(made), .events = POLLIN };
        int asker;
        poll(&wait, 1, -1);
        g_autofree char *word = uprof_watch_socket_accept(made, &asker);
        if (!word)
            continue;
        if (strcmp(word, "end") == 0) {
            uprof_watch_socket_answer(asker, UPROF_WATCH_UNKNOWN, "");
            return NULL;
        }
        if (strcmp(word, "web-1") == 0)
            uprof_watch_socket_answer(asker, UPROF_WATCH_DONE, "web-1: wrote a.svg");
        else if (strcmp(word, "full") == 0)
            uprof_watch_socket_answer(asker, UPROF_WATCH_FAILED, "no space");
        else
            uprof_watch_socket_answer(asker, UPROF_WATCH_UNKNOWN, "");
    }
}

static void
test_questions(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_watch_ask("web-1", &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    g_assert_nonnull(strstr(error->message, "no 'virt-uprof watch' is running"));
    g_clear_error(&error);

    g_autoptr(UprofWatchSocket) made = uprof_watch_socket_new(&error);
    g_assert_no_error(error);
    GThread *watch = g_thread_new("watch", run_watch, made);
    g_autofree char *answer = uprof_watch_ask("web-1", &error);
    g_assert_cmpstr(answer, ==, "web-1: wrote a.svg");
    g_assert_null(uprof_watch_ask("full", &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_cmpstr(error->message, ==, "no space");
    g_clear_error(&error);
    g_assert_null(uprof_watch_ask("db-1", &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    g_assert_nonnull(strstr(error->message, "watches 'db-1'"));
    g_clear_error(&error);

    /* a question without an end is given up, and the next one is answered */
    g_autofree char *large = g_strnfill(2 * UPROF_WATCH_ASK_BYTES_MAX, 'x');
    g_assert_null(uprof_watch_ask(large, &error));
    g_clear_error(&error);
    g_autofree char *again = uprof_watch_ask("web-1", &error);
    g_assert_cmpstr(again, ==, answer);
    g_assert_null(uprof_watch_ask("end", NULL));
    g_thread_join(watch);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!private_run_enter()) {
        g_print("1..0 # SKIP this host does not permit a folder of its own\n");
        return 0;
    }
    g_test_add_func("/watch-socket/questions", test_questions);
    const int code = g_test_run();
    private_run_leave();
    return code;
}
