/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * channel.h - messages between two processes of this program
 *
 * A channel is a pair of connected sockets. The kernel preserves message boundaries (SOCK_SEQPACKET
 * of unix(7)), so that a message arrives as a whole or not at all. A message can carry descriptors.
 */
#pragma once

#include "uprof/bytes.h"

#include <sys/types.h>

enum {
    UPROF_CHANNEL_BYTES_MAX = 96 * 1024, /* of a message */
    UPROF_CHANNEL_PARTS_MAX = 64,        /* from which a message is put together */
    UPROF_CHANNEL_FDS_MAX = 64,          /* descriptors of a message */
};

/** UprofMessage: a message that was received */
typedef struct {
    uint32_t type;                  /* the meaning is up to both ends */
    size_t len;                     /* bytes of the content */
    int fds[UPROF_CHANNEL_FDS_MAX]; /* owned by the receiver */
    unsigned n_fds;
} UprofMessage;

/**
 * uprof_channel_new:
 * @ends: (out) (array fixed-size=2): two descriptors, closed on exec
 *
 * Returns: false with %UPROF_ERROR_FAILED, also if the kernel's limits permit no buffer for the
 *   longest message
 */
bool uprof_channel_new(int ends[2], GError **error);

/**
 * uprof_channel_send: sends one message
 * @parts: the content, in this order; up to %UPROF_CHANNEL_BYTES_MAX bytes in all
 * @n_parts: up to %UPROF_CHANNEL_PARTS_MAX
 * @fds: (nullable): borrowed descriptors that go with the message
 *
 * Waits for room in the buffer of the socket, unless the descriptor does not block.
 *
 * Returns: false with errno: EAGAIN if there is no room now; EPIPE if the other end is closed
 */
bool uprof_channel_send(int fd, uint32_t type, const UprofSlice *parts, unsigned n_parts,
                        const int *fds, unsigned n_fds);

/**
 * uprof_channel_receive: receives one message
 * @into: gets the content
 * @size: bytes of @into; a longer message is an error
 *
 * The descriptors of a message that is refused are closed.
 *
 * Returns: false with errno: EAGAIN if there is no message now, EPIPE if the other end is closed,
 *   EBADMSG if the message is too long, too short, or has too many descriptors
 */
bool uprof_channel_receive(int fd, UprofMessage *message, void *into, size_t size);

/** uprof_message_close: closes the descriptors that came with the message */
void uprof_message_close(UprofMessage *message);
