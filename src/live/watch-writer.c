/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process gets a file in memory with the facts and the slices, and the files to write. Its
 * first message says how to read them:
 *
 *   u64 content_len, started_ns, facts_len, n_files; trigger, NUL; then for each file: format, NUL,
 * shown, NUL
 *
 * The file in memory: the facts; then for each slice: u64 length, bytes. The process answers with
 * the text of each error, and ends with status 0 if there was none.
 */
#include "watch-writer-priv.h"

#include "uprof/bytes.h"
#include "uprof/clock.h"
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
    TIME_MS = 15 * 1000, /* for one profile */
    FINISH_S = 15,
    CPU_S = 30,
    WAITING_MAX = 100, /* profiles */
    MEMORY_MAX_MIB = 1024,
};

struct _UprofWatchWriter {
    UprofWatchTarget target;
    UprofSpawner *spawner;
    GThread *thread;
    GAsyncQueue *profiles;   /* of UprofWatchProfile */
    GAsyncQueue *results;    /* of UprofWatchResult */
    _Atomic gint64 until_us; /* when to begin no other profile; 0: no limit */
};

/* The files of a profile that are open. */
typedef struct {
    GPtrArray *files;   /* of UprofFile, or NULL; owned */
    GPtrArray *formats; /* of UprofFormat, borrowed; as @files */
} Files;

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

    uprof_channel_send(process->channel, 0, &part, 1, NULL, 0);
}

/* A slice that cannot be read is left out, and the first such error is sent. */
static void
read_slices(Process *process, UprofLoad *load, UprofBytes *bytes, uint64_t facts_len)
{
    UprofSlice part;
    uint64_t len;
    g_autoptr(GError) error = NULL;
    bool ok = uprof_bytes_take(bytes, facts_len, &part) &&
              uprof_watch_slice_set_facts(load, part, &error);

    while (ok && uprof_bytes_left(bytes) > 0) {
        ok = uprof_bytes_u64(bytes, &len) && uprof_bytes_take(bytes, len, &part);
        if (ok)
            uprof_watch_slice_add(load, part, error ? NULL : &error);
    }
    if (!ok && !error)
        uprof_bytes_fail(bytes, &error, "it ends early");
    if (load->run->samples == 0 && !error)
        g_set_error(&error, UPROF_ERROR, UPROF_ERROR_EMPTY, "it has no samples");
    if (error)
        send_error(process, error);
    process->has_failed = load->run->samples == 0;
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

    if (uprof_output_write(format, load->profile, load->run, file, &error))
        return;
    process->has_failed = true;
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
    for (uint64_t i = 0; i < n_files && !process->has_failed; i++)
        write_file(process, load, begin, files[i]);
}

/* @fds: the channel, the file in memory, then the files to write. Returns: an error code */
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
    return process.has_failed ? UPROF_ERROR_FAILED : UPROF_ERROR_NONE;
}

/* ---- In the program ---- */

UprofWatchProfile *
uprof_watch_profile_new(void)
{
    UprofWatchProfile *profile = g_new0(UprofWatchProfile, 1);

    profile->slices = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    profile->asker = -1;
    return profile;
}

void
uprof_watch_profile_free(UprofWatchProfile *profile)
{
    g_free(profile->name);
    g_free(profile->uuid);
    g_free(profile->shown);
    g_free(profile->trigger);
    g_clear_pointer(&profile->facts, g_bytes_unref);
    g_ptr_array_unref(profile->slices);
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

/* ---- Its files ---- */

static bool
open_file(const UprofWatchTarget *target, Files *files, const char *path, const UprofFormat *format,
          GError **error)
{
    UprofFile *file = target->store
                          ? uprof_file_open_own(uprof_store_data(target->store), path, error)
                          : uprof_file_open(path, format->is_secret, error);

    if (!file)
        return false;
    g_ptr_array_add(files->files, file);
    g_ptr_array_add(files->formats, (gpointer)format);
    return true;
}

static bool
open_in_store(const UprofWatchTarget *target, const UprofWatchProfile *profile, Files *files,
              GError **error)
{
    const int64_t start_s = (int64_t)(profile->started_ns / UPROF_NS_PER_S);

    if (!uprof_store_has_room(target->store, target->min_free_megabytes, error))
        return false;
    g_autofree char *base =
        uprof_store_slice_base(target->store, profile->name, profile->uuid, start_s, NULL, error);
    if (!base)
        return false;
    g_autofree char *stacks = g_strconcat(base, UPROF_STORE_PROFILE, NULL);
    g_autofree char *sidecar = g_strconcat(base, UPROF_STORE_SIDECAR, NULL);
    /* the sidecar is the last file: it is the commit mark of the slice */
    return open_file(target, files, stacks, &uprof_format_folded_gz, error) &&
           open_file(target, files, sidecar, &uprof_format_meta, error);
}

static bool
open_files(const UprofWatchTarget *target, const UprofWatchProfile *profile, Files *files,
           GError **error)
{
    g_autofree char *time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE);

    if (target->store)
        return open_in_store(target, profile, files, error);
    for (guint i = 0; i < target->outputs->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(target->outputs, i);
        g_autofree char *path =
            uprof_output_request_path(request, profile->name, profile->uuid, time);
        if (!open_file(target, files, path, request->format, error))
            return false;
    }
    return true;
}

/* ---- Its process ---- */

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
make_begin(const UprofWatchProfile *profile, const Files *files, uint64_t content_len)
{
    GByteArray *begin = g_byte_array_new();

    append_number(begin, content_len);
    append_number(begin, profile->started_ns);
    append_number(begin, g_bytes_get_size(profile->facts));
    append_number(begin, files->files->len);
    append_text(begin, profile->trigger);
    for (guint i = 0; i < files->files->len; i++) {
        append_text(begin, ((const UprofFormat *)g_ptr_array_index(files->formats, i))->name);
        append_text(begin, uprof_file_path(g_ptr_array_index(files->files, i)));
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

/* @warning: (out) (transfer full) (nullable): what could not be read */
static bool
run_job(UprofWatchWriter *writer, const UprofWatchProfile *profile, const Files *files,
        char **warning, GError **error)
{
    uint64_t len;
    const int content = make_content(profile, &len, error);

    if (content < 0)
        return false;
    g_autoptr(GByteArray) begin = make_begin(profile, files, len);
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_val(fds, content);
    for (guint i = 0; i < files->files->len; i++) {
        const int fd = uprof_file_fd(g_ptr_array_index(files->files, i));
        g_array_append_val(fds, fd);
    }
    const UprofConfinedJob job = {
        .begin = { begin->data, begin->len },
        .fds = (const int *)fds->data,
        .n_fds = fds->len,
        .answer = keep_error,
        .data = warning,
        .silence_ms = TIME_MS,
        .time_ms = TIME_MS,
    };
    const int status = uprof_confined_job_run(writer->spawner, &job, error);
    close(content);
    if (status > 0)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s",
                    *warning ? *warning : "its process has failed");
    return status == 0;
}

/* Makes the files complete, and lists them in @names. */
static bool
commit_files(const Files *files, GString *names, GError **error)
{
    for (guint i = 0; i < files->files->len; i++) {
        UprofFile *file = g_ptr_array_index(files->files, i);
        g_autofree char *path = uprof_text_quote(uprof_file_path(file));
        files->files->pdata[i] = NULL;
        if (!uprof_file_commit(file, error))
            return false;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", path);
    }
    return true;
}

static void
answer_asker(UprofWatchProfile *profile, UprofWatchResult *result)
{
    result->is_answered = profile->asker >= 0;
    if (result->is_answered)
        uprof_watch_socket_answer(
            profile->asker, result->is_error ? UPROF_WATCH_FAILED : UPROF_WATCH_DONE, result->text);
    profile->asker = -1;
}

/* Returns: (transfer full) (nullable): the names of the files; %NULL with an error */
static char *
write_files(UprofWatchWriter *writer, const UprofWatchProfile *profile, GError **error)
{
    const gint64 until_us = writer->until_us;
    g_autoptr(GPtrArray) open = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_file_abort);
    g_autoptr(GPtrArray) formats = g_ptr_array_new();
    g_autoptr(GString) names = g_string_new(NULL);
    g_autofree char *warning = NULL;
    Files files = { open, formats };

    if (until_us > 0 && g_get_monotonic_time() > until_us) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "the run ends, and no time is left");
        return NULL;
    }
    if (!open_files(&writer->target, profile, &files, error) ||
        !run_job(writer, profile, &files, &warning, error) || !commit_files(&files, names, error))
        return NULL;
    if (warning)
        g_string_append_printf(names, "; a part could not be read: %s", warning);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static void
write_one(UprofWatchWriter *writer, UprofWatchProfile *profile)
{
    g_autoptr(GError) error = NULL;
    UprofWatchResult *result = g_new0(UprofWatchResult, 1);
    g_autofree char *names = write_files(writer, profile, &error);

    result->is_error = !names;
    result->text =
        names ? g_strdup_printf("%s: '%s': wrote %s", profile->shown, profile->trigger, names)
              : g_strdup_printf("%s: the profile of '%s' is not written: %s", profile->shown,
                                profile->trigger, error->message);
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
uprof_watch_writer_new(const UprofWatchTarget *target, GError **error)
{
    static const UprofSpawnPlan plan = {
        .work = run_process,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20, .cpu_s = CPU_S },
    };
    UprofSpawner *spawner = uprof_spawner_start(&plan, error);

    if (!spawner)
        return NULL;
    UprofWatchWriter *writer = g_new0(UprofWatchWriter, 1);
    writer->target = *target;
    writer->spawner = spawner;
    writer->profiles = g_async_queue_new_full((GDestroyNotify)uprof_watch_profile_free);
    writer->results = g_async_queue_new_full((GDestroyNotify)uprof_watch_result_free);
    return writer;
}

bool
uprof_watch_writer_add(UprofWatchWriter *writer, UprofWatchProfile *profile)
{
    if (!writer->thread)
        writer->thread = g_thread_try_new("watch-writer", run_writer, writer, NULL);
    if (!writer->thread || g_async_queue_length(writer->profiles) >= WAITING_MAX) {
        uprof_watch_profile_free(profile);
        return false;
    }
    g_async_queue_push(writer->profiles, profile);
    return true;
}

void
uprof_watch_writer_finish(UprofWatchWriter *writer)
{
    if (!writer->thread)
        return;
    writer->until_us = g_get_monotonic_time() + FINISH_S * G_TIME_SPAN_SECOND;
    g_async_queue_push(writer->profiles, uprof_watch_profile_new());
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
