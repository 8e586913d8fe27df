/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-socket-priv.h - the side of the socket that answers
 */
#pragma once

#include "uprof/watch-socket.h"

enum { UPROF_WATCH_ASK_BYTES_MAX = 1024 }; /* of a question */

typedef struct _UprofWatchSocket UprofWatchSocket;

/** uprof_watch_socket_new: Returns: (transfer full) (nullable): %NULL with an error */
UprofWatchSocket *uprof_watch_socket_new(GError **error);

/** uprof_watch_socket_free: @socket: (nullable): removes the socket */
void uprof_watch_socket_free(UprofWatchSocket *socket);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchSocket, uprof_watch_socket_free)

/** uprof_watch_socket_fd: Returns: borrowed: readable when somebody asks */
int uprof_watch_socket_fd(const UprofWatchSocket *socket);

/**
 * uprof_watch_socket_accept: takes a question
 * @asker: (out): the connection, for the answer; owned by the caller
 *
 * Returns: (transfer full) (nullable): the domain; %NULL: the question could not be read
 */
char *uprof_watch_socket_accept(UprofWatchSocket *socket, int *asker);

/** UprofWatchAnswer: the first character of an answer */
typedef enum {
    UPROF_WATCH_DONE = '+',
    UPROF_WATCH_FAILED = '!',
    UPROF_WATCH_UNKNOWN = '-', /* this watch does not know the domain */
} UprofWatchAnswer;

/** uprof_watch_socket_answer: answers, and closes the connection; @text: one line */
void uprof_watch_socket_answer(int asker, UprofWatchAnswer answer, const char *text);
