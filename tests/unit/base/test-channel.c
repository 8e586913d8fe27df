/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int ends[2];
    UprofMessage message;
    uint8_t *bytes; /* UPROF_CHANNEL_BYTES_MAX of them */
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    g_assert_true(uprof_channel_new(fixture->ends, NULL));
    fixture->bytes = g_malloc0(UPROF_CHANNEL_BYTES_MAX);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    for (unsigned i = 0; i < 2; i++)
        if (fixture->ends[i] >= 0)
            close(fixture->ends[i]);
    g_free(fixture->bytes);
}

static bool
receive(Fixture *fixture, size_t size)
{
    return uprof_channel_receive(fixture->ends[1], &fixture->message, fixture->bytes, size);
}

static void
test_parts(Fixture *fixture, gconstpointer data)
{
    const UprofSlice parts[] = { { "one", 3 }, { NULL, 0 }, { "two", 3 } };

    g_assert_true(uprof_channel_send(fixture->ends[0], 7, parts, 3, NULL, 0));
    g_assert_true(uprof_channel_send(fixture->ends[0], 8, NULL, 0, NULL, 0));
    g_assert_true(receive(fixture, 6));
    g_assert_cmpuint(fixture->message.type, ==, 7);
    g_assert_cmpmem(fixture->bytes, fixture->message.len, "onetwo", 6);
    g_assert_true(receive(fixture, 6));
    g_assert_cmpuint(fixture->message.type, ==, 8);
    g_assert_cmpuint(fixture->message.len, ==, 0);
}

static void
test_largest(Fixture *fixture, gconstpointer data)
{
    const UprofSlice part = { fixture->bytes, UPROF_CHANNEL_BYTES_MAX };

    memset(fixture->bytes, 'x', UPROF_CHANNEL_BYTES_MAX);
    g_assert_true(uprof_channel_send(fixture->ends[0], 1, &part, 1, NULL, 0));
    memset(fixture->bytes, 0, UPROF_CHANNEL_BYTES_MAX);
    g_assert_true(receive(fixture, UPROF_CHANNEL_BYTES_MAX));
    g_assert_cmpuint(fixture->message.len, ==, UPROF_CHANNEL_BYTES_MAX);
    g_assert_cmpint(fixture->bytes[UPROF_CHANNEL_BYTES_MAX - 1], ==, 'x');
}

/* An end that does not wait has room for two of the longest messages. */
static void
test_two_largest(Fixture *fixture, gconstpointer data)
{
    const UprofSlice part = { fixture->bytes, UPROF_CHANNEL_BYTES_MAX };

    fcntl(fixture->ends[0], F_SETFL, O_NONBLOCK);
    for (uint32_t type = 1; type <= 2; type++)
        g_assert_true(uprof_channel_send(fixture->ends[0], type, &part, 1, NULL, 0));
    for (uint32_t type = 1; type <= 2; type++) {
        g_assert_true(receive(fixture, UPROF_CHANNEL_BYTES_MAX));
        g_assert_cmpuint(fixture->message.type, ==, type);
    }
}

/* The receiver gets a descriptor of its own, for the same file. */
static void
test_descriptors(Fixture *fixture, gconstpointer data)
{
    int pair[2];
    char byte = 0;

    g_assert_cmpint(pipe2(pair, O_CLOEXEC), ==, 0);
    g_assert_true(uprof_channel_send(fixture->ends[0], 1, NULL, 0, &pair[1], 1));
    close(pair[1]);
    g_assert_true(receive(fixture, 1));
    g_assert_cmpuint(fixture->message.n_fds, ==, 1);
    g_assert_cmpint(fcntl(fixture->message.fds[0], F_GETFD), ==, FD_CLOEXEC);
    g_assert_cmpint(write(fixture->message.fds[0], "x", 1), ==, 1);
    g_assert_cmpint(read(pair[0], &byte, 1), ==, 1);
    uprof_message_close(&fixture->message);
    g_assert_cmpint(read(pair[0], &byte, 1), ==, 0); /* no descriptor to write is left */
    close(pair[0]);
}

/* A message that is too long is refused, and its descriptors are closed. */
static void
test_too_long(Fixture *fixture, gconstpointer data)
{
    const UprofSlice part = { "four", 4 };
    int pair[2];
    char byte;

    g_assert_cmpint(pipe2(pair, O_CLOEXEC), ==, 0);
    g_assert_true(uprof_channel_send(fixture->ends[0], 1, &part, 1, &pair[1], 1));
    close(pair[1]);
    g_assert_false(receive(fixture, 3));
    g_assert_cmpint(errno, ==, EBADMSG);
    g_assert_cmpint(read(pair[0], &byte, 1), ==, 0);
    close(pair[0]);
}

static void
test_no_type(Fixture *fixture, gconstpointer data)
{
    g_assert_cmpint(write(fixture->ends[0], "abc", 3), ==, 3);
    g_assert_false(receive(fixture, 3));
    g_assert_cmpint(errno, ==, EBADMSG);
}

static void
test_ends(Fixture *fixture, gconstpointer data)
{
    fcntl(fixture->ends[1], F_SETFL, O_NONBLOCK);
    g_assert_false(receive(fixture, 1));
    g_assert_cmpint(errno, ==, EAGAIN);
    close(fixture->ends[0]);
    fixture->ends[0] = -1;
    g_assert_false(receive(fixture, 1));
    g_assert_cmpint(errno, ==, EPIPE);
    g_assert_false(uprof_channel_send(fixture->ends[1], 1, NULL, 0, NULL, 0));
    g_assert_cmpint(errno, ==, EPIPE);
}

/* The messages of an end that did not read its own are not lost. */
static void
test_ends_behind_unread(Fixture *fixture, gconstpointer data)
{
    g_assert_true(uprof_channel_send(fixture->ends[1], 1, NULL, 0, NULL, 0));
    g_assert_true(uprof_channel_send(fixture->ends[0], 2, NULL, 0, NULL, 0));
    close(fixture->ends[0]);
    fixture->ends[0] = -1;
    g_assert_true(receive(fixture, 1));
    g_assert_cmpuint(fixture->message.type, ==, 2);
    g_assert_false(receive(fixture, 1));
    g_assert_cmpint(errno, ==, EPIPE);
}

#define ADD(path, test) g_test_add("/channel/" path, Fixture, NULL, set_up, test, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("parts", test_parts);
    ADD("largest", test_largest);
    ADD("two-largest", test_two_largest);
    ADD("descriptors", test_descriptors);
    ADD("too-long", test_too_long);
    ADD("no-type", test_no_type);
    ADD("ends", test_ends);
    ADD("ends-behind-unread", test_ends_behind_unread);
    return g_test_run();
}
