/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-socket.h - asks a running `watch` to write what it keeps now
 *
 * Each watch has a socket in the folder of the markers, which only its user may enter. A question
 * is a domain's id, UUID or name, and a newline. An answer is one line, which begins with an
 * UprofWatchAnswer.
 */
#pragma once

#include "uprof/error.h"

/**
 * uprof_watch_ask: asks all running watches for a domain
 * @word: the domain's id, UUID or name
 *
 * Returns: (transfer full) (nullable): the answer; %NULL with %UPROF_ERROR_NOT_FOUND if no watch
 * knows the domain, or with the failure of the watch
 */
char *uprof_watch_ask(const char *word, GError **error);
