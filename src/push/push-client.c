/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "push-client-priv.h"

#include "credentials-priv.h"
#include "uprof/channel.h"
#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/helper-process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TIMEOUT_S = 30, /* for a request */
    SPARE_S = 15,   /* until a helper that does not answer is killed */
    FILES_MAX = 3,
};

struct _UprofPushClient {
    char *url;        /* of requests */
    GPtrArray *lines; /* of the header */
    UprofPushBegin begin;
    int files[FILES_MAX]; /* descriptors, in the order of UprofPushBegin */
    unsigned n_files;
    char *program;
    pid_t helper; /* 0: none */
    int channel;
};

/* ---- The helper ---- */

static void
end_helper(UprofPushClient *client)
{
    if (client->helper == 0)
        return;
    close(client->channel);
    kill(client->helper, SIGKILL);
    waitpid(client->helper, NULL, 0);
    client->helper = 0;
}

static bool
start_process(UprofPushClient *client, GError **error)
{
    client->channel = uprof_helper_process_connect(
        client->program, "which sends profiles (install virt-uprof-push)", &client->helper, error);
    if (client->channel >= 0)
        return true;
    client->helper = 0;
    return false;
}

/* Returns: false if the helper has died or does not answer in time */
static bool
receive_answer(UprofPushClient *client, UprofPushAnswer *answer)
{
    struct {
        UprofPushAnswerHead head;
        char words[UPROF_PUSH_WORDS_BYTES_MAX];
    } reply;
    struct pollfd wait = { .fd = client->channel, .events = POLLIN };
    UprofMessage message;

    if (poll(&wait, 1, (TIMEOUT_S + SPARE_S) * 1000) <= 0 ||
        !uprof_channel_receive(client->channel, &message, &reply, sizeof(reply)))
        return false;
    uprof_message_close(&message);
    if (message.type != UPROF_PUSH_ANSWER || message.len < sizeof(reply.head))
        return false;
    uprof_push_answer_read(&reply.head,
                           (UprofSlice){ reply.words, message.len - sizeof(reply.head) }, answer);
    return true;
}

/* The URL and the lines, each with a NUL at its end, in one message */
static bool
send_begin(UprofPushClient *client)
{
    UprofSlice parts[UPROF_CHANNEL_PARTS_MAX] = {
        { &client->begin, sizeof(client->begin) },
        { client->url, strlen(client->url) + 1 },
    };
    unsigned n = 2;

    for (guint i = 0; i < client->lines->len && n < G_N_ELEMENTS(parts); i++) {
        const char *line = g_ptr_array_index(client->lines, i);
        parts[n++] = (UprofSlice){ line, strlen(line) + 1 };
    }
    return uprof_channel_send(client->channel, UPROF_PUSH_BEGIN, parts, n, client->files,
                              client->n_files);
}

/* The helper reads its files from their beginning, also when it is started again. */
static bool
rewind_files(const UprofPushClient *client)
{
    for (unsigned i = 0; i < client->n_files; i++)
        if (lseek(client->files[i], 0, SEEK_SET) != 0)
            return false;
    return true;
}

static bool
start_helper(UprofPushClient *client, GError **error)
{
    g_auto(UprofPushAnswer) answer = { 0 };

    if (!rewind_files(client))
        return uprof_error_fail_errno(error, "cannot read the certificates");
    if (!start_process(client, error))
        return false;
    const bool is_alive = send_begin(client) && receive_answer(client, &answer);
    if (is_alive && answer.verdict == UPROF_VERDICT_SENT)
        return true;
    end_helper(client);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "'%s' has failed: %s", client->program,
                is_alive ? answer.words : "it has ended early");
    return false;
}

/* ---- The client ---- */

static bool
open_file(UprofPushClient *client, const char *path, bool is_secret, uint32_t *is_there,
          GError **error)
{
    if (!path)
        return true;
    const int fd = uprof_credentials_open(path, is_secret, error);
    if (fd < 0)
        return false;
    client->files[client->n_files++] = fd;
    *is_there = 1;
    return true;
}

static bool
open_files(UprofPushClient *client, const UprofDestination *destination, GError **error)
{
    UprofPushBegin *begin = &client->begin;

    return open_file(client, destination->ca_file, false, &begin->has_ca, error) &&
           open_file(client, destination->certificate_file, false, &begin->has_certificate,
                     error) &&
           open_file(client, destination->key_file, true, &begin->has_key, error);
}

UprofPushClient *
uprof_push_client_new(const UprofDestination *destination, const char *path, GError **error)
{
    g_autoptr(UprofPushClient) client = g_new0(UprofPushClient, 1);

    client->url = g_strconcat(destination->url, path, NULL);
    client->program = uprof_helper_process_find("push-helper", UPROF_MODULE_FOLDER);
    client->begin.timeout_s = TIMEOUT_S;
    client->lines = uprof_credentials_header(destination, error);
    if (!client->lines || !open_files(client, destination, error) || !start_helper(client, error))
        return NULL;
    return g_steal_pointer(&client);
}

void
uprof_push_client_free(UprofPushClient *client)
{
    if (!client)
        return;
    end_helper(client);
    for (unsigned i = 0; i < client->n_files; i++)
        close(client->files[i]);
    g_clear_pointer(&client->lines, g_ptr_array_unref);
    g_free(client->program);
    g_free(client->url);
    g_free(client);
}

/* Returns: a file in memory; -1 with errno */
static int
make_body(UprofSlice body)
{
    const int fd = memfd_create("body", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < body.len) {
        const ssize_t n = write(fd, (const char *)body.data + done, body.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    return fd;
}

void
uprof_push_client_send(UprofPushClient *client, UprofSlice body, UprofPushAnswer *answer)
{
    g_autoptr(GError) error = NULL;
    const int fd = make_body(body);

    if (fd < 0) {
        uprof_push_answer_fail(answer, UPROF_VERDICT_LEAVE, g_strerror(errno));
        return;
    }
    if (client->helper == 0 && !start_helper(client, &error)) {
        uprof_push_answer_fail(answer, UPROF_VERDICT_LEAVE, error->message);
    } else if (!uprof_channel_send(client->channel, UPROF_PUSH_SEND, NULL, 0, &fd, 1) ||
               !receive_answer(client, answer)) {
        end_helper(client);
        uprof_push_answer_fail(answer, UPROF_VERDICT_AGAIN, "the program that sends it has died");
    }
    close(fd);
}
