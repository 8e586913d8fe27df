/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch-socket-priv.h"

#include "uprof/marker.h"
#include "uprof/text.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BEGINNING "watch-"
#define ENDING ".sock"

enum {
    BACKLOG = 16,
    QUESTION_MS = 200,
    ANSWER_MS = 60 * 1000,
    NO_ROOM_US = 10 * 1000,
    ANSWER_BYTES_MAX = 16 * 1024,
};

struct _UprofWatchSocket {
    int fd;
    char *path;
};

static bool
set_address(struct sockaddr_un *address, const char *path, GError **error)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (g_strlcpy(address->sun_path, path, sizeof(address->sun_path)) < sizeof(address->sun_path))
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "'%s' is too long for a socket", path);
    return false;
}

UprofWatchSocket *
uprof_watch_socket_new(GError **error)
{
    g_autoptr(UprofWatchSocket) made = g_new0(UprofWatchSocket, 1);
    struct sockaddr_un address;

    made->fd = -1;
    if (!uprof_marker_make_folder(error))
        return NULL;
    made->path = g_strdup_printf("%s/" BEGINNING "%d" ENDING, uprof_marker_folder(), (int)getpid());
    /* it gets its name when it can be asked: a name that does not answer is removed */
    g_autofree char *early = g_strconcat(made->path, ".new", NULL);
    if (!set_address(&address, early, error))
        return NULL;
    unlink(early);
    made->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made->fd >= 0 && bind(made->fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(made->fd, BACKLOG) == 0 && rename(early, made->path) == 0)
        return g_steal_pointer(&made);
    uprof_error_fail_errno(error, "cannot listen on '%s'", made->path);
    return NULL;
}

void
uprof_watch_socket_free(UprofWatchSocket *made)
{
    if (!made)
        return;
    if (made->fd >= 0) {
        close(made->fd);
        unlink(made->path);
    }
    g_free(made->path);
    g_free(made);
}

int
uprof_watch_socket_fd(const UprofWatchSocket *made)
{
    return made->fd;
}

/* Returns: (transfer full) (nullable): the first line, without its newline */
static char *
read_line(int fd, size_t max, int timeout_ms)
{
    g_autoptr(GString) line = g_string_new(NULL);
    const gint64 end_us = g_get_monotonic_time() + timeout_ms * G_TIME_SPAN_MILLISECOND;

    while (line->len < max && !strchr(line->str, '\n')) {
        const gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        char bytes[256];
        if (poll(&wait, 1, (int)MAX(left_ms, 0)) <= 0)
            return NULL;
        const ssize_t n = recv(fd, bytes, MIN(sizeof(bytes), max - line->len), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return NULL;
        g_string_append_len(line, bytes, MAX(n, 0));
    }
    char *end = strchr(line->str, '\n');
    return end ? g_strndup(line->str, (gsize)(end - line->str)) : NULL;
}

char *
uprof_watch_socket_accept(UprofWatchSocket *made, int *asker)
{
    *asker = accept4(made->fd, NULL, NULL, SOCK_CLOEXEC);
    if (*asker < 0) {
        g_usleep(NO_ROOM_US); /* without a free descriptor, the question stays */
        return NULL;
    }
    char *word = read_line(*asker, UPROF_WATCH_ASK_BYTES_MAX, QUESTION_MS);
    if (!word)
        close(*asker);
    return word;
}

void
uprof_watch_socket_answer(int asker, UprofWatchAnswer answer, const char *text)
{
    g_autofree char *line = g_strdup_printf("%c%s\n", answer, text);

    send(asker, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(asker);
}

/* ---- The side that asks ---- */

static bool
is_socket_name(const char *name)
{
    return g_str_has_prefix(name, BEGINNING) && g_str_has_suffix(name, ENDING);
}

static char *
read_answer(int fd)
{
    char *answer = read_line(fd, ANSWER_BYTES_MAX, ANSWER_MS);

    return answer ? answer : g_strdup("");
}

/* Returns: (transfer full) (nullable): the answer; "" if there is none; %NULL: nobody listens */
static char *
ask_socket(const char *path, const char *word)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_autofree char *question = g_strconcat(word, "\n", NULL);
    struct sockaddr_un address;
    char *answer = NULL;

    if (fd >= 0 && set_address(&address, path, NULL)) {
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
            send(fd, question, strlen(question), MSG_NOSIGNAL) == (ssize_t)strlen(question))
            answer = read_answer(fd);
        else if (errno == ECONNREFUSED)
            unlink(path); /* of a watch that was killed */
    }
    if (fd >= 0)
        close(fd);
    return answer;
}

/* @answer: (inout): replaced by a better one: one that knows the domain, else one at all */
static void
take_answer(char **answer, char *other)
{
    const bool is_better =
        other && (!*answer || !(*answer)[0] || ((*answer)[0] == UPROF_WATCH_UNKNOWN && other[0]));

    if (is_better) {
        g_free(*answer);
        *answer = other;
    } else {
        g_free(other);
    }
}

char *
uprof_watch_ask(const char *word, GError **error)
{
    g_autofree char *quoted = uprof_text_quote(word);
    g_autoptr(GDir) folder = g_dir_open(uprof_marker_folder(), 0, NULL);
    g_autofree char *answer = NULL;
    const char *name;

    while (folder && (name = g_dir_read_name(folder))) {
        g_autofree char *path = g_build_filename(uprof_marker_folder(), name, NULL);
        if (is_socket_name(name))
            take_answer(&answer, ask_socket(path, word));
    }
    if (answer && answer[0] == UPROF_WATCH_DONE)
        return uprof_text_quote(answer + 1);
    if (answer && answer[0] == UPROF_WATCH_FAILED)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s", answer + 1);
    else if (answer && !answer[0])
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "'virt-uprof watch' has not answered; try again");
    else if (answer)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "no running 'virt-uprof watch' watches '%s'", quoted);
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "no 'virt-uprof watch' is running; start one with: virt-uprof watch %s",
                    uprof_text_shell_word(word, "DOMAIN"));
    return NULL;
}
