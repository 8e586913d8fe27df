/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fetcher-priv.h"
#include "symbol-cache-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER UPROF_MODULE_FOLDER "/debuginfod-helper"

enum {
    FAILURES_MAX = 3, /* in a row: then no server is asked any more */
    REASON_BYTES = 512,
    WAIT_STEP_MS = 20,
};

/* A file to fetch. */
typedef UprofCachedFile Wanted;

struct _UprofFetcher {
    UprofFetchKind kind;
    char *folder; /* the cache */
    char *helper;
    GThread *thread; /* (nullable) */
    uint64_t wait_left_ns;

    GMutex lock; /* guards the members below */
    GCond changed;
    GHashTable *asked;   /* set of char: paths that were asked for in this run */
    GPtrArray *programs; /* of Wanted: to fetch first, because they have code and unwind tables */
    GPtrArray *debug;    /* of Wanted: to fetch then */
    GPtrArray *arrived;  /* of char: build-ids; they stay until the end */
    GPid pid;            /* of the helper that runs; 0: none */
    bool is_fetching;    /* a file is neither in a queue nor counted */
    bool ends;           /* nothing more is fetched */
    unsigned n_failures; /* in a row */
    UprofFetchCounts counts;
};

static void
free_wanted(gpointer data)
{
    uprof_cached_file_clear(data);
    g_free(data);
}

/* ---- One download ---- */

/* Reads what the helper writes about a failure, up to its end. */
static char *
read_reason(int fd)
{
    char text[REASON_BYTES];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof(text) &&
           ((n = read(fd, text + len, sizeof(text) - len)) > 0 || (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    while (len > 0 && g_ascii_isspace(text[len - 1]))
        len--;
    return uprof_text_quote_slice((UprofSlice){ text, len });
}

/* In the new process: undoes what the program has changed for itself. */
static void
prepare_helper(gpointer data)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
}

static bool
start_helper(UprofFetcher *fetcher, const Wanted *wanted, int out, int err, GError **error)
{
    const char *const words[] = { fetcher->helper, wanted->is_debug ? "debuginfo" : "executable",
                                  wanted->build_id, NULL };
    GPid pid;

    if (!g_spawn_async_with_pipes_and_fds(NULL, words, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                                          prepare_helper, NULL, -1, out, err, NULL, NULL, 0, &pid,
                                          NULL, NULL, NULL, error))
        return false;
    g_mutex_lock(&fetcher->lock);
    fetcher->pid = pid;
    if (fetcher->ends)
        kill(pid, SIGKILL);
    g_mutex_unlock(&fetcher->lock);
    return true;
}

/* Returns: the helper's exit status */
static int
end_helper(UprofFetcher *fetcher)
{
    int status;
    pid_t found;

    do
        found = waitpid(fetcher->pid, &status, 0);
    while (found < 0 && errno == EINTR);
    g_mutex_lock(&fetcher->lock);
    fetcher->pid = 0;
    g_mutex_unlock(&fetcher->lock);
    return found > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : UPROF_HELPER_FAILED;
}

/*
 * Lets the helper write into @out.
 *
 * @why: (out) (transfer full): the reason of a failure. Returns: the helper's exit status
 */
static int
run_helper(UprofFetcher *fetcher, const Wanted *wanted, int out, char **why)
{
    g_autoptr(GError) error = NULL;
    int reasons[2];

    *why = NULL;
    if (pipe2(reasons, O_CLOEXEC) != 0) {
        *why = g_strdup(g_strerror(errno));
        return UPROF_HELPER_FAILED;
    }
    const bool has_started = start_helper(fetcher, wanted, out, reasons[1], &error);
    close(reasons[1]);
    if (has_started)
        *why = read_reason(reasons[0]);
    else
        *why = uprof_text_quote(error->message);
    close(reasons[0]);
    return has_started ? end_helper(fetcher) : UPROF_HELPER_FAILED;
}

/* Returns: true if the file is in the cache now. @why: (out) (transfer full): of a failure */
static bool
store_file(UprofFetcher *fetcher, const Wanted *wanted, int *status, char **why)
{
    g_autofree char *temporary = NULL;
    g_autoptr(GError) error = NULL;
    const int fd = uprof_symbol_cache_begin(fetcher->folder, &temporary, &error);
    struct stat info = { 0 };

    *status = UPROF_HELPER_FAILED;
    if (fd < 0) {
        *why = g_strdup(error->message);
        return false;
    }
    *status = run_helper(fetcher, wanted, fd, why);
    if (*status == UPROF_HELPER_FOUND && (fstat(fd, &info) != 0 || info.st_size == 0))
        *status = UPROF_HELPER_FAILED;
    close(fd);
    if (*status == UPROF_HELPER_FAILED) {
        unlink(temporary);
        return false;
    }
    /* an empty file remembers that the servers lack it */
    if (*status == UPROF_HELPER_MISSING && truncate(temporary, 0) != 0)
        return false;
    if (uprof_symbol_cache_commit(fetcher->folder, temporary, wanted, &error))
        return *status == UPROF_HELPER_FOUND;
    *status = UPROF_HELPER_FAILED;
    g_free(*why);
    *why = g_strdup(error->message);
    return false;
}

static void
count_file(UprofFetcher *fetcher, const Wanted *wanted, int status, char **why)
{
    UprofFetchCounts *counts = &fetcher->counts;

    g_mutex_lock(&fetcher->lock);
    fetcher->n_failures = status == UPROF_HELPER_FAILED ? fetcher->n_failures + 1 : 0;
    if (status == UPROF_HELPER_FOUND) {
        counts->n_found++;
        g_ptr_array_add(fetcher->arrived, g_strdup(wanted->build_id));
    } else if (status == UPROF_HELPER_MISSING) {
        counts->n_missing++;
    } else {
        counts->n_failed++;
        g_free(counts->why_failed);
        counts->why_failed = g_steal_pointer(why);
    }
    g_mutex_unlock(&fetcher->lock);
}

/* Returns: true if the file is in the cache now */
static bool
fetch_file(UprofFetcher *fetcher, const Wanted *wanted)
{
    g_autofree char *why = NULL;
    int status;
    const bool is_there = store_file(fetcher, wanted, &status, &why);

    count_file(fetcher, wanted, status, &why);
    return is_there;
}

/* ---- The thread ---- */

/* Call it with the lock. Returns: (transfer full) (nullable) */
static Wanted *
take_wanted(UprofFetcher *fetcher)
{
    GPtrArray *queue = fetcher->programs->len > 0 ? fetcher->programs : fetcher->debug;

    return queue->len > 0 ? g_ptr_array_steal_index(queue, 0) : NULL;
}

/* Counts all files that wait as failed. Call it with the lock. */
static void
drop_wanted(UprofFetcher *fetcher)
{
    fetcher->counts.n_failed += fetcher->programs->len + fetcher->debug->len;
    g_ptr_array_set_size(fetcher->programs, 0);
    g_ptr_array_set_size(fetcher->debug, 0);
}

static gpointer
run_thread(gpointer data)
{
    UprofFetcher *fetcher = data;

    g_mutex_lock(&fetcher->lock);
    while (!fetcher->ends) {
        if (fetcher->n_failures >= FAILURES_MAX)
            drop_wanted(fetcher);
        Wanted *wanted = take_wanted(fetcher);
        if (!wanted) {
            g_cond_wait(&fetcher->changed, &fetcher->lock);
            continue;
        }
        fetcher->is_fetching = true;
        g_mutex_unlock(&fetcher->lock);
        fetch_file(fetcher, wanted);
        free_wanted(wanted);
        g_mutex_lock(&fetcher->lock);
        fetcher->is_fetching = false;
        g_cond_broadcast(&fetcher->changed);
    }
    g_mutex_unlock(&fetcher->lock);
    return NULL;
}

static GThread *
start_thread(UprofFetcher *fetcher, GError **error)
{
    sigset_t before;

    uprof_signal_mask_block(&before);
    GThread *thread = g_thread_try_new("fetcher", run_thread, fetcher, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread;
}

/* ---- The interface ---- */

/* A user who can write to the helper could run code as root. */
static bool
check_helper(const char *helper, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(helper);
    const char *const paths[] = { folder, helper };

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        struct stat info;
        if (stat(paths[i], &info) == 0 &&
            uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "DEBUGINFOD_URLS is set, but no file is fetched: '%s' %s", paths[i],
                    access(paths[i], F_OK) != 0 ? "is missing; install the package "
                                                  "virt-uprof-debuginfod"
                                                : "can be changed by other users");
        return false;
    }
    return true;
}

UprofFetcher *
uprof_fetcher_new_by(UprofFetchKind kind, const char *helper, const char *folder, GError **error)
{
    g_autoptr(UprofFetcher) fetcher = NULL;

    if (!check_helper(helper, error) || !uprof_symbol_cache_make(folder, error))
        return NULL;
    fetcher = g_new0(UprofFetcher, 1);
    g_mutex_init(&fetcher->lock);
    g_cond_init(&fetcher->changed);
    fetcher->kind = kind;
    fetcher->helper = g_strdup(helper);
    fetcher->folder = g_strdup(folder);
    fetcher->wait_left_ns = UPROF_FETCH_WAIT_S * UPROF_NS_PER_S;
    fetcher->asked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    fetcher->programs = g_ptr_array_new_with_free_func(free_wanted);
    fetcher->debug = g_ptr_array_new_with_free_func(free_wanted);
    fetcher->arrived = g_ptr_array_new_with_free_func(g_free);
    if (kind == UPROF_FETCH_BACKGROUND) {
        fetcher->thread = start_thread(fetcher, error);
        if (!fetcher->thread)
            return NULL;
    }
    return g_steal_pointer(&fetcher);
}

UprofFetcher *
uprof_fetcher_new(UprofFetchKind kind, GError **error)
{
    g_autofree char *folder = uprof_symbol_cache_folder();

    return uprof_symbol_cache_has_servers() ? uprof_fetcher_new_by(kind, HELPER, folder, error)
                                            : NULL;
}

void
uprof_fetcher_free(UprofFetcher *fetcher)
{
    if (!fetcher)
        return;
    g_mutex_lock(&fetcher->lock);
    fetcher->ends = true;
    if (fetcher->pid > 0)
        kill(fetcher->pid, SIGKILL);
    g_cond_broadcast(&fetcher->changed);
    g_mutex_unlock(&fetcher->lock);
    if (fetcher->thread)
        g_thread_join(fetcher->thread);
    if (fetcher->counts.n_found > 0)
        uprof_symbol_cache_shrink(fetcher->folder, (uint64_t)UPROF_SYMBOL_CACHE_MIB << 20);
    g_hash_table_unref(fetcher->asked);
    g_ptr_array_unref(fetcher->programs);
    g_ptr_array_unref(fetcher->debug);
    g_ptr_array_unref(fetcher->arrived);
    g_free(fetcher->counts.why_failed);
    g_free(fetcher->helper);
    g_free(fetcher->folder);
    g_cond_clear(&fetcher->changed);
    g_mutex_clear(&fetcher->lock);
    g_free(fetcher);
}

/* Returns: false if the time of the run is over, or too many downloads have failed */
static bool
may_wait(const UprofFetcher *fetcher)
{
    return fetcher->wait_left_ns > 0 && fetcher->n_failures < FAILURES_MAX;
}

static void
spend_wait(UprofFetcher *fetcher, uint64_t since_ns)
{
    fetcher->wait_left_ns -= MIN(uprof_clock_now_ns() - since_ns, fetcher->wait_left_ns);
}

static bool
fetch_now(UprofFetcher *fetcher, const Wanted *wanted)
{
    const uint64_t start_ns = uprof_clock_now_ns();

    if (!may_wait(fetcher)) {
        fetcher->counts.n_failed++;
        return false;
    }
    const bool is_there = fetch_file(fetcher, wanted);
    spend_wait(fetcher, start_ns);
    return is_there;
}

/* Call it with the lock. Returns: false if the file was asked for before, or there are too many */
static bool
note_asked(UprofFetcher *fetcher, const char *path)
{
    if (g_hash_table_size(fetcher->asked) >= UPROF_FETCH_FILES_MAX || fetcher->ends ||
        !g_hash_table_add(fetcher->asked, g_strdup(path)))
        return false;
    fetcher->counts.n_asked++;
    return true;
}

bool
uprof_fetcher_want(UprofFetcher *fetcher, const char *path)
{
    g_auto(UprofCachedFile) file = { 0 };

    if (!uprof_symbol_cache_parse(fetcher->folder, path, &file) ||
        uprof_symbol_cache_is_asked(fetcher->folder, &file))
        return false;
    g_mutex_lock(&fetcher->lock);
    const bool is_new = note_asked(fetcher, path);
    if (is_new && fetcher->kind == UPROF_FETCH_BACKGROUND) {
        g_ptr_array_add(file.is_debug ? fetcher->debug : fetcher->programs,
                        g_memdup2(&file, sizeof(file)));
        file.build_id = NULL;
        g_cond_broadcast(&fetcher->changed);
    }
    g_mutex_unlock(&fetcher->lock);
    return is_new && fetcher->kind == UPROF_FETCH_WAITING && fetch_now(fetcher, &file);
}

const char *
uprof_fetcher_arrived(UprofFetcher *fetcher, unsigned i)
{
    g_mutex_lock(&fetcher->lock);
    const char *build_id =
        i < fetcher->arrived->len ? g_ptr_array_index(fetcher->arrived, i) : NULL;
    g_mutex_unlock(&fetcher->lock);
    return build_id;
}

bool
uprof_fetcher_is_busy(UprofFetcher *fetcher)
{
    g_mutex_lock(&fetcher->lock);
    const bool is_busy = fetcher->is_fetching || fetcher->programs->len + fetcher->debug->len > 0;
    g_mutex_unlock(&fetcher->lock);
    return is_busy;
}

bool
uprof_fetcher_wait(UprofFetcher *fetcher, bool (*gives_up)(void *data), void *data)
{
    const uint64_t start_ns = uprof_clock_now_ns();

    while (uprof_fetcher_is_busy(fetcher) &&
           uprof_clock_now_ns() - start_ns < fetcher->wait_left_ns && !gives_up(data))
        g_usleep(WAIT_STEP_MS * 1000);
    spend_wait(fetcher, start_ns);
    if (!uprof_fetcher_is_busy(fetcher))
        return true;
    g_mutex_lock(&fetcher->lock);
    drop_wanted(fetcher);
    g_mutex_unlock(&fetcher->lock);
    return false;
}

void
uprof_fetcher_counts(UprofFetcher *fetcher, UprofFetchCounts *counts)
{
    g_mutex_lock(&fetcher->lock);
    *counts = fetcher->counts;
    counts->why_failed = g_strdup(counts->why_failed);
    g_mutex_unlock(&fetcher->lock);
}
