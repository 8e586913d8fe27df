/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process gets a file in memory with the facts and the slices, and the files to write. Its first
 * message says how to read them:
 *
 *   u64 content_len, started_ns, facts_len, n_files; trigger, NUL; then for each file: format, NUL, shown, NUL
 *
 * The file in memory: the facts; then for each slice: u64 length, bytes. The process answers with the
 * text of each error, and ends with status 0 if there was none.
 */
#include "watch-writer-priv.h"

#include "uprof/bytes.h"
#include "uprof/confined-job.h"
#include "uprof/read-all.h"
#include "uprof/text.h"

#include "watch-slice-priv.h"
#include "watch-socket-priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ERROR_BYTES_MAX = 4096,
    SILENCE_MS = 20 * 1000,
    TIME_MS = 30 * 1000,
    CPU_S = 30,
    MEMORY_MAX_MIB = 1024,
};

struct _UprofWatchWriter {
    UprofSpawner *spawner;
    GThread *thread;
    GAsyncQueue *profiles; /* of UprofWatchProfile */
    GAsyncQueue *results;  /* of UprofWatchResult */
};

/* ---- In the process without rights ---- */

typedef struct {
    int channel;
    bool has_failed;
} Process;

static void
send_error(Process *process, const GError *error)
{
    const UprofSlice part = { error->message,
                              MIN(strlen(error->message), (size_t)ERROR_BYTES_MAX) };

    process->has_failed = true;
    uprof_channel_send(process->channel, 0, &part, 1, NULL, 0);
}

static void
read_slices(Process *process, UprofLoad *load, UprofBytes *bytes, uint64_t facts_len)
{
    UprofSlice part;
    uint64_t len;
    bool ok = uprof_bytes_take(bytes, facts_len, &part);
    g_autoptr(GError) error = NULL;

    ok = ok && uprof_watch_slice_set_facts(load, part, &error);
    while (ok && uprof_bytes_left(bytes) > 0)
        ok = uprof_bytes_u64(bytes, &len) && uprof_bytes_take(bytes, len, &part) &&
             uprof_watch_slice_add(load, part, &error);
    if (!ok && !error)
        uprof_bytes_fail(bytes, &error, "it ends early");
    if (error)
        send_error(process, error);
}

/* Returns: the text at the cursor, which moves behind its NUL; "" at the end */
static const char *
take_text(UprofBytes *bytes)
{
    const char *text = (const char *)bytes->all.data + bytes->at;
    const char *end = memchr(text, '\0', uprof_bytes_left(bytes));

    if (!end)
        return "";
    bytes->at += (size_t)(end - text) + 1;
    return text;
}

static void
write_file(Process *process, const UprofLoad *load, UprofBytes *begin, int fd)
{
    const UprofFormat *format = uprof_format_by_name(take_text(begin));
    g_autoptr(UprofFile) file = uprof_file_adopt(fd, take_text(begin), false);
    g_autoptr(GError) error = NULL;

    if (!uprof_output_write(format, load->profile, load->run, file, &error))
        send_error(process, error);
}

/* Returns: (transfer full): all bytes of the file in memory, or fewer */
static GByteArray *
read_content(int fd, uint64_t len)
{
    GByteArray *content = g_byte_array_new();

    g_byte_array_set_size(content, (guint)len);
    const ssize_t n = uprof_read_at(fd, 0, content->data, content->len);
    g_byte_array_set_size(content, n > 0 ? (guint)n : 0);
    return content;
}

static void
write_profile(Process *process, UprofBytes *begin, int content_fd, const int *files)
{
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofLoadSettings settings = { .replay.symbols = &symbols };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, &settings);
    uint64_t content_len = 0, started_ns = 0, facts_len = 0, n_files = 0;

    uprof_bytes_u64(begin, &content_len);
    uprof_bytes_u64(begin, &started_ns);
    uprof_bytes_u64(begin, &facts_len);
    uprof_bytes_u64(begin, &n_files);
    g_autoptr(GByteArray) content = read_content(content_fd, content_len);
    UprofBytes bytes = { .name = "samples", .all = { content->data, content->len } };
    read_slices(process, load, &bytes, facts_len);
    load->run->started_utc_ns = started_ns;
    load->run->trigger = g_strdup(take_text(begin));
    uprof_load_finish(load);
    for (uint64_t i = 0; i < n_files; i++)
        write_file(process, load, begin, files[i]);
}

/* @fds: the channel, the file in memory, then the files to write. Returns: exit status */
static int
run_process(const int *fds, unsigned n_fds, void *data)
{
    g_autofree char *begin = g_malloc(UPROF_CHANNEL_BYTES_MAX);
    Process process = { .channel = fds[0] };
    UprofMessage message;

    if (!uprof_channel_receive(fds[0], &message, begin, UPROF_CHANNEL_BYTES_MAX))
        return UPROF_SPAWNER_EXIT_CUT_OFF;
    UprofBytes asked = { .name = "begin", .all = { begin, message.len } };
    write_profile(&process, &asked, fds[1], fds + 2);
    return process.has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- In the program ---- */

UprofWatchProfile *
uprof_watch_profile_new(const char *shown, const char *trigger)
{
    UprofWatchProfile *profile = g_new0(UprofWatchProfile, 1);

    profile->shown = g_strdup(shown);
    profile->trigger = g_strdup(trigger);
    profile->slices = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    profile->files = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_file_abort);
    profile->formats = g_ptr_array_new();
    profile->asker = -1;
    return profile;
}

void
uprof_watch_profile_free(UprofWatchProfile *profile)
{
    g_free(profile->shown);
    g_free(profile->trigger);
    g_clear_pointer(&profile->facts, g_bytes_unref);
    g_ptr_array_unref(profile->slices);
    g_ptr_array_unref(profile->files);
    g_ptr_array_unref(profile->formats);
    if (profile->asker >= 0)
        close(profile->asker);
    g_free(profile);
}

void
uprof_watch_result_free(UprofWatchResult *result)
{
    if (!result)
        return;
    g_free(result->text);
    g_free(result);
}

static bool
append_bytes(int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        const ssize_t n = write(fd, (const char *)bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* @len: (out): bytes. Returns: a file in memory with the facts and the slices; -1 with an error */
static int
make_content(const UprofWatchProfile *profile, uint64_t *len, GError **error)
{
    const int fd = memfd_create("slices", MFD_CLOEXEC);
    bool ok = fd >= 0 && append_bytes(fd, g_bytes_get_data(profile->facts, NULL),
                                      g_bytes_get_size(profile->facts));

    for (guint i = 0; ok && i < profile->slices->len; i++) {
        GBytes *slice = g_ptr_array_index(profile->slices, i);
        const uint64_t slice_len = GUINT64_TO_LE((uint64_t)g_bytes_get_size(slice));
        ok = append_bytes(fd, &slice_len, sizeof(slice_len)) &&
             append_bytes(fd, g_bytes_get_data(slice, NULL), g_bytes_get_size(slice));
    }
    const off_t end = ok ? lseek(fd, 0, SEEK_END) : -1;
    *len = (uint64_t)MAX(end, 0);
    if (end > 0)
        return fd;
    uprof_error_fail_errno(error, "no memory for a copy of the samples");
    if (fd >= 0)
        close(fd);
    return -1;
}

static void
append_number(GByteArray *out, uint64_t number)
{
    number = GUINT64_TO_LE(number);
    g_byte_array_append(out, (const guint8 *)&number, sizeof(number));
}

static void
append_text(GByteArray *out, const char *text)
{
    g_byte_array_append(out, (const guint8 *)text, (guint)strlen(text) + 1);
}

static GByteArray *
make_begin(const UprofWatchProfile *profile, uint64_t content_len)
{
    GByteArray *begin = g_byte_array_new();

    append_number(begin, content_len);
    append_number(begin, profile->started_ns);
    append_number(begin, g_bytes_get_size(profile->facts));
    append_number(begin, profile->files->len);
    append_text(begin, profile->trigger);
    for (guint i = 0; i < profile->files->len; i++) {
        append_text(begin, ((const UprofFormat *)g_ptr_array_index(profile->formats, i))->name);
        append_text(begin, uprof_file_path(g_ptr_array_index(profile->files, i)));
    }
    return begin;
}

/* Keeps the first error that the process sends. */
static bool
keep_error(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
           void *data)
{
    char **text = data;

    if (message->type != 0 || content.len > ERROR_BYTES_MAX)
        return false;
    if (!*text) {
        g_autofree char *raw = g_strndup(content.data, content.len);
        *text = uprof_text_quote(raw);
    }
    return true;
}

static bool
run_job(UprofWatchWriter *writer, const UprofWatchProfile *profile, int content, uint64_t len,
        GError **error)
{
    g_autoptr(GByteArray) begin = make_begin(profile, len);
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree char *text = NULL;

    g_array_append_val(fds, content);
    for (guint i = 0; i < profile->files->len; i++) {
        const int fd = uprof_file_fd(g_ptr_array_index(profile->files, i));
        g_array_append_val(fds, fd);
    }
    const UprofConfinedJob job = {
        .begin = { begin->data, begin->len },
        .fds = (const int *)fds->data,
        .n_fds = fds->len,
        .answer = keep_error,
        .data = &text,
        .silence_ms = SILENCE_MS,
        .time_ms = TIME_MS,
    };
    const int status = uprof_confined_job_run(writer->spawner, &job, error);
    if (status > 0)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s",
                    text ? text : "its process has failed");
    return status == 0;
}

/* Makes the files complete, and lists them in @names. */
static bool
commit_files(UprofWatchProfile *profile, GString *names, GError **error)
{
    for (guint i = 0; i < profile->files->len; i++) {
        UprofFile *file = g_ptr_array_index(profile->files, i);
        g_autofree char *path = uprof_text_quote(uprof_file_path(file));
        profile->files->pdata[i] = NULL;
        if (!uprof_file_commit(file, error))
            return false;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", path);
    }
    return true;
}

static void
answer_asker(UprofWatchProfile *profile, const UprofWatchResult *result)
{
    if (profile->asker >= 0)
        uprof_watch_socket_answer(
            profile->asker, result->is_error ? UPROF_WATCH_FAILED : UPROF_WATCH_DONE, result->text);
    profile->asker = -1;
}

static void
write_one(UprofWatchWriter *writer, UprofWatchProfile *profile)
{
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    UprofWatchResult *result = g_new0(UprofWatchResult, 1);
    uint64_t len;
    const int content = make_content(profile, &len, &error);

    result->is_error = content < 0 || !run_job(writer, profile, content, len, &error) ||
                       !commit_files(profile, names, &error);
    result->text =
        result->is_error
            ? g_strdup_printf("%s: '%s': nothing is kept: %s", profile->shown, profile->trigger,
                              error->message)
            : g_strdup_printf("%s: '%s': wrote %s", profile->shown, profile->trigger, names->str);
    if (content >= 0)
        close(content);
    answer_asker(profile, result);
    g_async_queue_push(writer->results, result);
    uprof_watch_profile_free(profile);
}

static gpointer
run_writer(gpointer data)
{
    UprofWatchWriter *writer = data;

    for (;;) {
        UprofWatchProfile *profile = g_async_queue_pop(writer->profiles);
        if (!profile->shown) { /* of uprof_watch_writer_finish() */
            uprof_watch_profile_free(profile);
            return NULL;
        }
        write_one(writer, profile);
    }
}

UprofWatchWriter *
uprof_watch_writer_new(GError **error)
{
    static const UprofSpawnPlan plan = {
        .work = run_process,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20, .cpu_s = CPU_S },
    };
    UprofSpawner *spawner = uprof_spawner_start(&plan, error);

    if (!spawner)
        return NULL;
    UprofWatchWriter *writer = g_new0(UprofWatchWriter, 1);
    writer->spawner = spawner;
    writer->profiles = g_async_queue_new_full((GDestroyNotify)uprof_watch_profile_free);
    writer->results = g_async_queue_new_full((GDestroyNotify)uprof_watch_result_free);
    return writer;
}

void
uprof_watch_writer_add(UprofWatchWriter *writer, UprofWatchProfile *profile)
{
    if (!writer->thread)
        writer->thread = g_thread_new("watch-writer", run_writer, writer);
    g_async_queue_push(writer->profiles, profile);
}

void
uprof_watch_writer_finish(UprofWatchWriter *writer)
{
    if (!writer->thread)
        return;
    g_async_queue_push(writer->profiles, uprof_watch_profile_new(NULL, NULL));
    g_thread_join(g_steal_pointer(&writer->thread));
}

UprofWatchResult *
uprof_watch_writer_take(UprofWatchWriter *writer)
{
    return g_async_queue_try_pop(writer->results);
}

void
uprof_watch_writer_free(UprofWatchWriter *writer)
{
    if (!writer)
        return;
    uprof_watch_writer_finish(writer);
    uprof_spawner_end(writer->spawner);
    g_async_queue_unref(writer->profiles);
    g_async_queue_unref(writer->results);
    g_free(writer);
}
