/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "push-log-priv.h"

#include "uprof/error.h"
#include "uprof/file.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    LOG_BYTES_MAX = 256 * 1024 * 1024,
    WORDS_BYTES_MAX = 300,
    STALE_LINES_MAX = 1000,
};

static const char *const state_words[] = {
    [UPROF_PUSH_STATE_NEW] = "",
    [UPROF_PUSH_STATE_SENT] = "sent",
    [UPROF_PUSH_STATE_REFUSED] = "refused",
    [UPROF_PUSH_STATE_TOO_OLD] = "too-old",
    [UPROF_PUSH_STATE_DAMAGED] = "damaged",
    [UPROF_PUSH_STATE_UNWANTED] = "unwanted",
    [UPROF_PUSH_STATE_LATER] = "later",
};

#define SINCE "- since "

/* The lines of a round. */
typedef struct {
    UprofPushState state;
    unsigned n_later;
    char *line; /* owned: the last line, without its end */
} Round;

struct _UprofPushLog {
    UprofStore *store; /* borrowed */
    char *path;        /* of the file */
    char *file;        /* its name in the folder */
    int folder;        /* descriptor; -1: there is none, and nothing is written */
    int fd;            /* to append; -1: nothing is written */
    bool lacks_end;    /* the last line of the file has no end */
    int64_t since_s;   /* of the first line; 0: the file has no such line */
    unsigned n_lines;
    GHashTable *rounds; /* stem, owned -> Round, owned */
};

static bool
fail_file(const UprofPushLog *log, const char *what, GError **error)
{
    const int reason = errno;
    g_autofree char *shown = uprof_text_quote(log->path);

    errno = reason;
    return uprof_error_fail_errno(error, "cannot %s '%s'", what, shown);
}

static void
free_round(gpointer data)
{
    Round *round = data;

    g_free(round->line);
    g_free(round);
}

/* ---- Lines ---- */

static UprofPushState
find_state(const char *word, size_t len)
{
    for (size_t i = UPROF_PUSH_STATE_NEW + 1; i < G_N_ELEMENTS(state_words); i++)
        if (strlen(state_words[i]) == len && memcmp(word, state_words[i], len) == 0)
            return (UprofPushState)i;
    return UPROF_PUSH_STATE_NEW;
}

/* @line: (transfer full) */
static void
keep_line(UprofPushLog *log, const char *stem, UprofPushState state, char *line)
{
    Round *round = g_hash_table_lookup(log->rounds, stem);

    log->n_lines++;
    if (!round) {
        round = g_new0(Round, 1);
        g_hash_table_insert(log->rounds, g_strdup(stem), round);
    }
    round->state = state;
    round->n_later += state == UPROF_PUSH_STATE_LATER ? 1 : 0;
    g_free(round->line);
    round->line = line;
}

/* A line that a killed process has not finished says nothing. */
static void
take_line(UprofPushLog *log, const char *line, size_t len)
{
    const char *blank = memchr(line, ' ', len);
    const size_t stem_len = blank ? (size_t)(blank - line) : len;
    const char *word = line + stem_len + 1;
    const size_t rest = blank ? len - stem_len - 1 : 0;
    const char *end = rest > 0 ? memchr(word, ' ', rest) : NULL;
    const UprofPushState state =
        rest > 0 ? find_state(word, end ? (size_t)(end - word) : rest) : UPROF_PUSH_STATE_NEW;

    if (len > strlen(SINCE) && memcmp(line, SINCE, strlen(SINCE)) == 0) {
        uint64_t since_s;
        if (uprof_slice_to_uint((UprofSlice){ line + strlen(SINCE), len - strlen(SINCE) }, 10, 1,
                                INT64_MAX, &since_s))
            log->since_s = (int64_t)since_s;
        return;
    }
    if (stem_len == 0 || state == UPROF_PUSH_STATE_NEW)
        return;
    g_autofree char *stem = g_strndup(line, stem_len);
    keep_line(log, stem, state, g_strndup(line, len));
}

static void
take_lines(UprofPushLog *log, const GByteArray *bytes)
{
    const char *at = (const char *)bytes->data;
    size_t left = bytes->len;

    while (left > 0) {
        const char *end = memchr(at, '\n', left);
        if (!end)
            break;
        take_line(log, at, (size_t)(end - at));
        left -= (size_t)(end - at) + 1;
        at = end + 1;
    }
    log->lacks_end = left > 0;
}

/* ---- The file ---- */

static bool
read_log(UprofPushLog *log, GError **error)
{
    const int fd = uprof_regular_file_open_in(log->folder, log->path, log->file);
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    if (fd < 0)
        return errno == ENOENT || fail_file(log, "read", error);
    const bool ok = uprof_read_all(fd, LOG_BYTES_MAX, bytes);
    const int reason = errno;
    close(fd);
    errno = reason;
    if (!ok)
        return fail_file(log, "read", error);
    take_lines(log, bytes);
    return true;
}

static bool
lock_folder(UprofPushLog *log, GError **error)
{
    if (flock(log->folder, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return fail_file(log, "lock the folder of", error);
    g_autofree char *shown = uprof_text_quote(uprof_store_path(log->store));
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_LOCKED,
                "another 'virt-uprof push' is running in '%s'", shown);
    return false;
}

static bool
open_to_append(UprofPushLog *log, GError **error)
{
    if (log->fd >= 0)
        close(log->fd);
    log->fd = openat(log->folder, log->file,
                     O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
    return log->fd >= 0 || fail_file(log, "write", error);
}

UprofPushLog *
uprof_push_log_open(UprofStore *store, const char *name, bool may_create, GError **error)
{
    g_autoptr(UprofPushLog) log = g_new0(UprofPushLog, 1);
    g_autoptr(GError) failure = NULL;

    log->store = store;
    log->fd = -1;
    log->file = g_strconcat(name, ".log", NULL);
    log->path = g_build_filename(uprof_store_path(store), UPROF_STORE_PUSH, log->file, NULL);
    log->rounds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_round);
    log->folder = uprof_store_open_push(store, may_create, &failure);
    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    if (log->folder < 0)
        return g_steal_pointer(&log);
    if ((may_create && !lock_folder(log, error)) || !read_log(log, error) ||
        (may_create && !open_to_append(log, error)))
        return NULL;
    return g_steal_pointer(&log);
}

void
uprof_push_log_close(UprofPushLog *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    if (log->folder >= 0)
        close(log->folder);
    g_hash_table_unref(log->rounds);
    g_free(log->file);
    g_free(log->path);
    g_free(log);
}

UprofPushState
uprof_push_log_state(const UprofPushLog *log, const char *stem, unsigned *n_later)
{
    const Round *round = g_hash_table_lookup(log->rounds, stem);

    if (n_later)
        *n_later = round ? round->n_later : 0;
    return round ? round->state : UPROF_PUSH_STATE_NEW;
}

static bool
write_line(UprofPushLog *log, const char *line, GError **error)
{
    g_autofree char *bytes = g_strconcat(log->lacks_end ? "\n" : "", line, "\n", NULL);
    const size_t len = strlen(bytes);
    const ssize_t n = write(log->fd, bytes, len);

    log->lacks_end = n > 0 ? (size_t)n < len : log->lacks_end;
    if (n == (ssize_t)len)
        return true;
    errno = n < 0 ? errno : ENOSPC;
    return fail_file(log, "write", error);
}

int64_t
uprof_push_log_begin(UprofPushLog *log, int64_t since_s, GError **error)
{
    if (log->since_s > 0)
        return log->since_s;
    log->since_s = MAX(since_s, 1);
    g_autofree char *line = g_strdup_printf(SINCE "%" G_GINT64_FORMAT, log->since_s);
    if (log->fd >= 0)
        write_line(log, line, error);
    return log->since_s;
}

bool
uprof_push_log_add(UprofPushLog *log, const char *stem, UprofPushState state, const char *words,
                   GError **error)
{
    const size_t len = words ? MIN(strlen(words), (size_t)WORDS_BYTES_MAX) : 0;
    g_autofree char *quoted = uprof_text_quote_slice((UprofSlice){ words, len });
    char *line = g_strconcat(stem, " ", state_words[state], len > 0 ? " " : "", quoted, NULL);

    keep_line(log, stem, state, line);
    return log->fd < 0 || write_line(log, line, error);
}

/* ---- Fewer lines ---- */

/* Returns: (transfer full): a line for each round that the store has */
static GString *
list_lines(const UprofPushLog *log, GHashTable *stems)
{
    GString *text = g_string_new(NULL);
    GHashTableIter at;
    gpointer stem, data;

    if (log->since_s > 0)
        g_string_append_printf(text, SINCE "%" G_GINT64_FORMAT "\n", log->since_s);
    g_hash_table_iter_init(&at, log->rounds);
    while (g_hash_table_iter_next(&at, &stem, &data)) {
        const Round *round = data;
        /* each delay has a line */
        for (unsigned i = 1; g_hash_table_contains(stems, stem) && i < round->n_later; i++)
            g_string_append_printf(text, "%s later\n", (const char *)stem);
        if (g_hash_table_contains(stems, stem))
            g_string_append_printf(text, "%s\n", round->line);
    }
    return text;
}

static bool
replace_file(UprofPushLog *log, const GString *text, GError **error)
{
    g_autoptr(UprofFile) file =
        uprof_file_open_own(uprof_store_folder(log->store), log->path, error);

    return file && uprof_file_write(file, text->str, text->len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error) && open_to_append(log, error);
}

bool
uprof_push_log_shrink(UprofPushLog *log, GHashTable *stems, GError **error)
{
    if (log->fd < 0 || log->n_lines < STALE_LINES_MAX + 2 * g_hash_table_size(stems))
        return true;
    GString *text = list_lines(log, stems);
    const bool ok = replace_file(log, text, error);
    g_string_free(text, TRUE);
    log->lacks_end = false;
    return ok;
}
