/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store-process-priv.h"

#include "store-message-priv.h"
#include "stored-profile-priv.h"
#include "uprof/clock.h"
#include "uprof/confined-job.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    MEMORY_MAX_MIB = 4096,
    CPU_MAX_S = 3600,
    TEXT_BYTES_MAX = 8 * 1024,
    NOTICES_MAX = 1000, /* of one job */
    REPLY_PART_BYTES = 64 * 1024,
    REPLY_BYTES_MAX = 64 * 1024 * 1024,
};

struct _UprofStoreProcess {
    UprofSpawner *spawner;
    const GPtrArray *folders; /* borrowed */
};

/* ---- In the process ---- */

/* Set once, before the work begins. */
static struct {
    int channel;
    const GPtrArray *folders; /* borrowed */
} own;

/* The program has ended, or its answer cannot be used: nobody waits for the work. */
static G_GNUC_NORETURN void
end_process(void)
{
    _exit(1);
}

static void
send_message(UprofStoreMessage type, const UprofSlice *parts, unsigned n_parts)
{
    if (!uprof_channel_send(own.channel, type, parts, n_parts, NULL, 0))
        end_process();
}

static UprofStoreFileAsk
describe_file(const UprofStoreFolder *folder, const char *stem, const char *ending, const char *to)
{
    UprofStoreFileAsk ask = { 0 };

    if (!g_ptr_array_find((GPtrArray *)own.folders, folder, &ask.folder))
        end_process();
    g_strlcpy(ask.stem, stem, sizeof(ask.stem));
    g_strlcpy(ask.ending, ending, sizeof(ask.ending));
    g_strlcpy(ask.to, to, sizeof(ask.to));
    return ask;
}

/*
 * @fd: (out) (nullable): the descriptor that comes with the answer; -1: none
 *
 * Returns: the answer; if it is not ok, @error is set
 */
static UprofStoreAnswer
ask_program(UprofStoreMessage type, const UprofStoreFileAsk *ask, int *fd, GError **error)
{
    const UprofSlice part = { ask, sizeof(*ask) };
    struct {
        UprofStoreAnswer head;
        char text[TEXT_BYTES_MAX];
    } answer = { 0 };
    UprofMessage message;

    send_message(type, &part, ask ? 1 : 0);
    if (!uprof_channel_receive(own.channel, &message, &answer, sizeof(answer) - 1))
        end_process();
    if (fd)
        *fd = message.n_fds == 1 ? message.fds[0] : -1;
    if (!answer.head.ok)
        g_set_error(error, UPROF_ERROR, (gint)answer.head.code, "%s", answer.text);
    return answer.head;
}

static int
ask_open(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    const UprofStoreFileAsk ask = describe_file(folder, stem, ending, "");
    int fd;
    const UprofStoreAnswer answer = ask_program(UPROF_STORE_ASK_READ, &ask, &fd, NULL);

    errno = answer.reason;
    return fd;
}

static bool
ask_has(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    const UprofStoreFileAsk ask = describe_file(folder, stem, ending, "");

    return ask_program(UPROF_STORE_ASK_HAS, &ask, NULL, NULL).ok;
}

static bool
ask_write(const UprofStoreFolder *folder, const char *stem, const char *ending, UprofSlice bytes,
          GError **error)
{
    const UprofStoreFileAsk ask = describe_file(folder, stem, ending, "");
    g_autofree char *path = g_strconcat(folder->path, "/", stem, ending, NULL);
    int fd;

    if (!ask_program(UPROF_STORE_ASK_WRITE, &ask, &fd, error).ok)
        return false;
    g_autoptr(UprofFile) file = uprof_file_adopt(fd, path, false);
    return uprof_file_write(file, bytes.data, bytes.len, error) &&
           ask_program(UPROF_STORE_ASK_COMMIT, NULL, NULL, error).ok;
}

static bool
ask_rename(const UprofStoreFolder *folder, const char *stem, const char *from, const char *to,
           GError **error)
{
    const UprofStoreFileAsk ask = describe_file(folder, stem, from, to);

    return ask_program(UPROF_STORE_ASK_RENAME, &ask, NULL, error).ok;
}

static bool
ask_remove(const UprofStoreFolder *folder, const char *stem, const char *ending, GError **error)
{
    const UprofStoreFileAsk ask = describe_file(folder, stem, ending, "");

    return ask_program(UPROF_STORE_ASK_REMOVE, &ask, NULL, error).ok;
}

static void
tell_notice(UprofNoticeKind kind, const char *text, void *data)
{
    const UprofStoreNotice head = { kind };
    const UprofSlice parts[] = {
        { &head, sizeof(head) },
        { text, MIN(strlen(text), (size_t)TEXT_BYTES_MAX) },
    };

    send_message(UPROF_STORE_TELL_NOTICE, parts, G_N_ELEMENTS(parts));
}

void
uprof_store_process_show_day(int64_t day_s, unsigned n_slices)
{
    const UprofStoreClosedDay day = { day_s, n_slices };
    const UprofSlice part = { &day, sizeof(day) };

    send_message(UPROF_STORE_TELL_CLOSED_DAY, &part, 1);
}

static void
send_reply(const GByteArray *reply)
{
    for (guint at = 0; at < reply->len; at += REPLY_PART_BYTES) {
        const UprofSlice part = { reply->data + at, MIN(reply->len - at, REPLY_PART_BYTES) };
        send_message(UPROF_STORE_TELL_REPLY, &part, 1);
    }
}

/* @fds: the channel */
static int
run_work(const int *fds, unsigned n_fds, void *data)
{
    static const UprofStoreAccess access = {
        ask_open, ask_has, ask_write, ask_rename, ask_remove,
    };
    static const UprofNotices notices = { tell_notice, NULL };
    const UprofStoreWork *work = data;
    g_autoptr(GByteArray) reply = g_byte_array_new();
    UprofMessage message;
    guint job;

    g_assert(n_fds == 1);
    own.channel = fds[0];
    own.folders = work->folders;
    if (!uprof_channel_receive(own.channel, &message, &job, sizeof(job)))
        end_process();
    uprof_store_set_access(&access);
    work->work(job, &notices, reply, work->data);
    send_reply(reply);
    return 0;
}

/* ---- In the program ---- */

/* One job, as the program sees it. */
typedef struct {
    const UprofStoreProcess *process;
    const UprofStoreReaction *reaction;
    GByteArray *reply;
    UprofFile *file; /* (nullable): owned; the process writes it */
    unsigned n_notices;
} Job;

/* Returns: (nullable): the folder of the file; %NULL if the request breaks the rules */
static const UprofStoreFolder *
check_file(const Job *job, UprofSlice content, UprofStoreFileAsk *ask, int64_t *day_s)
{
    if (content.len != sizeof(*ask))
        return NULL;
    memcpy(ask, content.data, sizeof(*ask));
    if (ask->folder >= job->process->folders->len || !memchr(ask->stem, '\0', sizeof(ask->stem)) ||
        !memchr(ask->ending, '\0', sizeof(ask->ending)) || !memchr(ask->to, '\0', sizeof(ask->to)))
        return NULL;
    const UprofStoreFolder *folder = g_ptr_array_index(job->process->folders, ask->folder);
    return uprof_store_may_have(folder, ask->stem, ask->ending, day_s) ? folder : NULL;
}

static bool
send_answer(int channel, const UprofStoreAnswer *answer, const char *text, int fd)
{
    const UprofSlice parts[] = {
        { answer, sizeof(*answer) },
        { text, MIN(strlen(text), (size_t)TEXT_BYTES_MAX - 2) },
    };

    return uprof_channel_send(channel, 0, parts, G_N_ELEMENTS(parts), &fd, fd >= 0);
}

/* @error: (nullable): why it failed */
static bool
answer_result(int channel, const GError *error, int fd)
{
    const UprofStoreAnswer answer = { .ok = !error, .code = uprof_error_code_of(error) };

    return send_answer(channel, &answer, error ? error->message : "", fd);
}

static bool
answer_read(int channel, const UprofStoreFolder *folder, const UprofStoreFileAsk *ask,
            char **last_file)
{
    g_autofree char *name = g_strconcat(ask->stem, ask->ending, NULL);
    const int fd = uprof_store_open_file(folder, ask->stem, ask->ending);
    const UprofStoreAnswer answer = { .ok = fd >= 0, .reason = fd < 0 ? errno : 0 };
    const bool ok = send_answer(channel, &answer, "", fd);

    if (fd < 0)
        return ok;
    close(fd);
    g_free(*last_file);
    *last_file = g_strconcat(folder->path, "/", name, NULL);
    return ok;
}

static bool
answer_has(int channel, const UprofStoreFolder *folder, const UprofStoreFileAsk *ask)
{
    const UprofStoreAnswer answer = { .ok = uprof_store_has(folder, ask->stem, ask->ending) };

    return send_answer(channel, &answer, "", -1);
}

static void
drop_file(Job *job)
{
    uprof_file_abort(g_steal_pointer(&job->file));
}

static bool
answer_write(int channel, Job *job, const UprofStoreFolder *folder, const UprofStoreFileAsk *ask)
{
    g_autoptr(GError) error = NULL;

    if (strcmp(ask->ending, UPROF_STORE_PENDING) != 0 &&
        strcmp(ask->ending, UPROF_STORE_PROFILE) != 0)
        return false;
    drop_file(job);
    job->file = uprof_store_new_file(folder, ask->stem, ask->ending, &error);
    return answer_result(channel, error, job->file ? uprof_file_fd(job->file) : -1);
}

static bool
answer_commit(int channel, Job *job)
{
    g_autoptr(GError) error = NULL;

    if (!job->file)
        return false;
    uprof_file_commit(g_steal_pointer(&job->file), &error);
    return answer_result(channel, error, -1);
}

static bool
answer_rename(int channel, const UprofStoreFolder *folder, const UprofStoreFileAsk *ask)
{
    g_autoptr(GError) error = NULL;

    if (strcmp(ask->ending, UPROF_STORE_PENDING) != 0 || strcmp(ask->to, UPROF_STORE_SIDECAR) != 0)
        return false;
    uprof_store_rename(folder, ask->stem, UPROF_STORE_PENDING, UPROF_STORE_SIDECAR, &error);
    return answer_result(channel, error, -1);
}

static bool
answer_remove(int channel, const UprofStoreFolder *folder, const UprofStoreFileAsk *ask)
{
    g_autoptr(GError) error = NULL;

    if (strcmp(ask->ending, UPROF_STORE_PENDING) != 0)
        return false;
    uprof_store_remove_one(folder, ask->stem, UPROF_STORE_PENDING, &error);
    return answer_result(channel, error, -1);
}

/* Answers a request that names a file. */
static bool
answer_file(int channel, Job *job, UprofStoreMessage type, UprofSlice content, char **last_file)
{
    UprofStoreFileAsk ask;
    int64_t day_s;
    const UprofStoreFolder *folder = check_file(job, content, &ask, &day_s);

    if (!folder)
        return false;
    if (type == UPROF_STORE_ASK_READ)
        return answer_read(channel, folder, &ask, last_file);
    if (type == UPROF_STORE_ASK_HAS)
        return answer_has(channel, folder, &ask);
    if (day_s < 0 || day_s >= job->reaction->today_s || folder != job->reaction->written)
        return false;
    return type == UPROF_STORE_ASK_WRITE    ? answer_write(channel, job, folder, &ask)
           : type == UPROF_STORE_ASK_RENAME ? answer_rename(channel, folder, &ask)
                                            : answer_remove(channel, folder, &ask);
}

static bool
take_notice(Job *job, UprofSlice content)
{
    UprofStoreNotice head;

    if (content.len < sizeof(head) || content.len > sizeof(head) + TEXT_BYTES_MAX)
        return false;
    memcpy(&head, content.data, sizeof(head));
    if ((guint)head.kind > UPROF_NOTICE_WARNING)
        return false;
    g_autofree char *text = uprof_text_quote_slice(
        (UprofSlice){ (const char *)content.data + sizeof(head), content.len - sizeof(head) });
    if (job->n_notices++ < NOTICES_MAX)
        uprof_notice(job->reaction->notices, head.kind, "%s", text);
    return true;
}

static bool
take_closed_day(const Job *job, UprofSlice content)
{
    const UprofStoreReaction *reaction = job->reaction;
    UprofStoreClosedDay day;

    if (content.len != sizeof(day) || !reaction->show_day)
        return false;
    memcpy(&day, content.data, sizeof(day));
    /* later dates than those of 2554 cannot be shown */
    if (day.day_s < 0 || day.day_s > (int64_t)(UINT64_MAX / UPROF_NS_PER_S) ||
        uprof_time_day_start(day.day_s) != day.day_s)
        return false;
    reaction->show_day(reaction->shown, day.day_s, day.n_slices, reaction->data);
    return true;
}

static bool
take_reply(Job *job, UprofSlice content)
{
    if (content.len > REPLY_BYTES_MAX - job->reply->len)
        return false;
    g_byte_array_append(job->reply, content.data, (guint)content.len);
    return true;
}

static bool
answer_message(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
               void *data)
{
    Job *job = data;

    switch (message->type) {
    case UPROF_STORE_ASK_READ:
    case UPROF_STORE_ASK_HAS:
    case UPROF_STORE_ASK_WRITE:
    case UPROF_STORE_ASK_RENAME:
    case UPROF_STORE_ASK_REMOVE:
        return answer_file(channel, job, message->type, content, last_file);
    case UPROF_STORE_ASK_COMMIT:
        return answer_commit(channel, job);
    case UPROF_STORE_TELL_NOTICE:
        return take_notice(job, content);
    case UPROF_STORE_TELL_CLOSED_DAY:
        return take_closed_day(job, content);
    case UPROF_STORE_TELL_REPLY:
        return take_reply(job, content);
    default:
        return false;
    }
}

UprofStoreProcess *
uprof_store_process_start(const UprofStoreWork *work, GError **error)
{
    const UprofSpawnPlan plan = {
        .work = run_work,
        .data = (void *)work,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20,
                    .cpu_s = CPU_MAX_S,
                    .file_max = UPROF_STORED_PACKED_MAX },
    };
    UprofSpawner *spawner = uprof_spawner_start(&plan, error);

    if (!spawner)
        return NULL;
    UprofStoreProcess *process = g_new(UprofStoreProcess, 1);
    *process = (UprofStoreProcess){ spawner, work->folders };
    return process;
}

void
uprof_store_process_end(UprofStoreProcess *process)
{
    if (!process)
        return;
    uprof_spawner_end(process->spawner);
    g_free(process);
}

GByteArray *
uprof_store_process_run(UprofStoreProcess *process, guint job, const UprofStoreReaction *reaction,
                        GError **error)
{
    Job served = { .process = process, .reaction = reaction, .reply = g_byte_array_new() };
    const UprofConfinedJob confined = {
        .begin = { &job, sizeof(job) },
        .answer = answer_message,
        .data = &served,
        .silence_ms = reaction->time_ms,
        .time_ms = reaction->time_ms,
    };
    GError *failure = NULL;
    const int status = uprof_confined_job_run(process->spawner, &confined, &failure);

    drop_file(&served);
    if (status > 0)
        g_set_error(&failure, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "the process that reads the files has ended with status %d", status);
    if (!failure)
        return served.reply;
    g_byte_array_unref(served.reply);
    g_propagate_error(error, failure);
    return NULL;
}
