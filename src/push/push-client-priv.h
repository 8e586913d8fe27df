/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-client-priv.h - sends requests to one destination by a helper program without rights
 *
 * The program itself uses no network, and does not load libcurl.
 */
#pragma once

#include "push-answer-priv.h"
#include "uprof/bytes.h"
#include "uprof/destination.h"

typedef struct _UprofPushClient UprofPushClient;

/**
 * uprof_push_client_new: reads the credentials, and starts the helper
 * @path: of requests, below the URL of the destination
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofPushClient *
uprof_push_client_new(const UprofDestination *destination, const char *path, GError **error);
void uprof_push_client_free(UprofPushClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPushClient, uprof_push_client_free)

/**
 * uprof_push_client_send: sends a request, and waits for the answer
 * @answer: (out): clear it with uprof_push_answer_clear()
 *
 * A helper that has died is started again at the next call.
 */
void uprof_push_client_send(UprofPushClient *client, UprofSlice body, UprofPushAnswer *answer);
