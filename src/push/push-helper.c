/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-helper - sends requests to one engine; see push-message-priv.h
 *
 * The program starts it as root. It gives up root before it connects, and ends when the program
 * ends. It opens no file itself; libcurl and the resolver open theirs.
 */
#include "push-message-priv.h"

#include "uprof/channel.h"
#include "uprof/confine.h"
#include "uprof/error.h"
#include "uprof/json-object.h"
#include "uprof/read-all.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHANNEL = 0,
    CONNECT_S = 10,
    FILE_BYTES_MAX = 4 * 1024 * 1024, /* of a certificate or key */
    ANSWER_BYTES_MAX = 256 * 1024,
    MEMORY_MAX_MIB = 1024,
    CPU_MAX_S = 600,
};

/* The content of an answer. */
typedef struct {
    GByteArray *bytes; /* owned */
    bool is_cut;       /* the rest was refused, because it is too long */
} Content;

typedef struct {
    CURL *curl;
    struct curl_slist *lines;  /* of the header */
    char why[CURL_ERROR_SIZE]; /* of the last failure */
    Content content;
} Client;

static void
send_answer(const UprofPushAnswerHead *head, const char *words, size_t len)
{
    const UprofSlice parts[] = { { head, sizeof(*head) }, { words, len } };

    /* without a program there is nothing left to do */
    if (!uprof_channel_send(CHANNEL, UPROF_PUSH_ANSWER, parts, G_N_ELEMENTS(parts), NULL, 0))
        _exit(1);
}

static void
send_failure(UprofPushAnswerKind kind, const char *why)
{
    const UprofPushAnswerHead head = { .kind = kind };

    send_answer(&head, why, MIN(strlen(why), (size_t)UPROF_PUSH_WORDS_BYTES_MAX));
}

/* ---- The begin ---- */

/* Sets an option of libcurl to the content of a file, which libcurl copies. */
static bool
set_file(Client *client, CURLoption option, int fd)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    if (!uprof_read_all(fd, FILE_BYTES_MAX, bytes))
        return false;
    struct curl_blob blob = { bytes->data, bytes->len, CURL_BLOB_COPY };
    return curl_easy_setopt(client->curl, option, &blob) == CURLE_OK;
}

static bool
set_files(Client *client, const UprofPushBegin *begin, const UprofMessage *message)
{
    const struct {
        uint32_t is_there;
        CURLoption option;
    } files[] = {
        { begin->has_ca, CURLOPT_CAINFO_BLOB },
        { begin->has_certificate, CURLOPT_SSLCERT_BLOB },
        { begin->has_key, CURLOPT_SSLKEY_BLOB },
    };
    unsigned n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        if (!files[i].is_there)
            continue;
        if (n >= message->n_fds || !set_file(client, files[i].option, message->fds[n++]))
            return false;
    }
    /* authorities that are given replace those of the host, also those in its folder */
    return !begin->has_ca || curl_easy_setopt(client->curl, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

static size_t
take_content(char *bytes, size_t size, size_t n, void *data)
{
    Content *content = data;
    const size_t len = size * n;

    content->is_cut = len > ANSWER_BYTES_MAX - content->bytes->len;
    if (content->is_cut)
        return 0;
    g_byte_array_append(content->bytes, (const guint8 *)bytes, (guint)len);
    return len;
}

/* libcurl calls it now and then. Returns: not 0 to end a request that nobody waits for any more */
static int
check_program(void *data, curl_off_t all, curl_off_t now, curl_off_t all_up, curl_off_t now_up)
{
    struct pollfd program = { .fd = CHANNEL };

    return poll(&program, 1, 0) > 0 && (program.revents & (POLLHUP | POLLERR)) != 0;
}

static bool
set_options(Client *client, const char *url, uint32_t timeout_s)
{
    CURL *curl = client->curl;

    return curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           /* a server that redirects would get the credentials of another one */
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)timeout_s) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->lines) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->why) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_program) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_content) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEDATA, &client->content) == CURLE_OK;
}

/* @texts: the URL and the lines, each with a NUL at its end. Returns: false if there is no NUL */
static bool
set_texts(Client *client, const char *texts, size_t len, uint32_t timeout_s)
{
    const char *end = texts + len;

    if (len == 0 || end[-1] != '\0')
        return false;
    for (const char *line = texts + strlen(texts) + 1; line < end; line += strlen(line) + 1)
        client->lines = curl_slist_append(client->lines, line);
    return set_options(client, texts, timeout_s);
}

static bool
begin_client(Client *client)
{
    struct {
        UprofPushBegin head;
        char texts[UPROF_PUSH_TEXT_BYTES_MAX];
    } begin;
    UprofMessage message;

    if (!uprof_channel_receive(CHANNEL, &message, &begin, sizeof(begin)))
        return false;
    client->curl = curl_easy_init();
    const bool ok =
        client->curl && message.type == UPROF_PUSH_BEGIN && message.len > sizeof(begin.head) &&
        set_files(client, &begin.head, &message) &&
        set_texts(client, begin.texts, message.len - sizeof(begin.head), begin.head.timeout_s);
    uprof_message_close(&message);
    return ok;
}

/* ---- Requests ---- */

static UprofPushAnswerKind
classify_failure(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return UPROF_PUSH_DISTRUSTED;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
        return UPROF_PUSH_IMPOSSIBLE;
    default:
        return UPROF_PUSH_UNANSWERED;
    }
}

/* Returns: the time of the answer, since 1970; 0: the engine does not say */
static int64_t
find_date(CURL *curl)
{
    struct curl_header *header;

    return curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? MAX(curl_getdate(header->value, NULL), 0)
               : 0;
}

/* The engines answer with a JSON object; a page of a proxy is none. */
static bool
is_json_object(const Content *content)
{
    const UprofSlice text = { content->bytes->data, content->bytes->len };

    return !content->is_cut && uprof_json_is_object(text);
}

static void
answer_request(Client *client, CURLcode code)
{
    const Content *content = &client->content;
    curl_off_t retry_s = 0;
    long status = 0;

    if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && content->is_cut)) {
        send_failure(classify_failure(code),
                     client->why[0] ? client->why : curl_easy_strerror(code));
        return;
    }
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &retry_s);
    const UprofPushAnswerHead head = {
        .kind = UPROF_PUSH_ANSWERED,
        .status = (uint32_t)status,
        .retry_s = (uint32_t)CLAMP(retry_s, 0, INT32_MAX),
        .is_json = is_json_object(content) ? 1 : 0,
        .date_s = find_date(client->curl),
    };
    send_answer(&head, (const char *)content->bytes->data,
                MIN(content->bytes->len, (guint)UPROF_PUSH_WORDS_BYTES_MAX));
}

/* @body: a file in memory */
static void
send_request(Client *client, int body)
{
    struct stat info;
    void *bytes = MAP_FAILED;

    if (fstat(body, &info) == 0 && info.st_size > 0)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, body, 0);
    if (bytes == MAP_FAILED) {
        send_failure(UPROF_PUSH_IMPOSSIBLE, g_strerror(errno));
        return;
    }
    g_byte_array_set_size(client->content.bytes, 0);
    client->content.is_cut = false;
    client->why[0] = '\0';
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)info.st_size);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, bytes);
    answer_request(client, curl_easy_perform(client->curl));
    munmap(bytes, (size_t)info.st_size);
}

/* Returns: false when the program has closed the channel */
static bool
serve_request(Client *client)
{
    UprofMessage message;
    char none;

    if (!uprof_channel_receive(CHANNEL, &message, &none, sizeof(none)))
        return false;
    if (message.type == UPROF_PUSH_SEND && message.n_fds == 1)
        send_request(client, message.fds[0]);
    else
        send_failure(UPROF_PUSH_IMPOSSIBLE, "a malformed request");
    uprof_message_close(&message);
    return true;
}

int
main(void)
{
    static const UprofPushAnswerHead ready = { .kind = UPROF_PUSH_ANSWERED,
                                               .status = 200,
                                               .is_json = 1 };
    static Client client;
    g_autoptr(GError) error = NULL;

    if (!uprof_confine_leave_root(&error)) {
        send_failure(UPROF_PUSH_IMPOSSIBLE, error->message);
        return 1;
    }
    client.content.bytes = g_byte_array_new();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (!uprof_confine_limit_helper((uint64_t)MEMORY_MAX_MIB << 20, CPU_MAX_S) ||
        curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        send_failure(UPROF_PUSH_IMPOSSIBLE, "libcurl cannot be prepared");
        return 1;
    }
    if (!begin_client(&client)) {
        send_failure(UPROF_PUSH_IMPOSSIBLE,
                     "libcurl does not take the url, or a certificate or key (up to 4 MiB)");
        return 1;
    }
    send_answer(&ready, "", 0);
    while (serve_request(&client))
        ;
    curl_easy_cleanup(client.curl);
    curl_slist_free_all(client.lines);
    g_byte_array_unref(client.content.bytes);
    return 0;
}
