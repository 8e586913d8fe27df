/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fetcher-priv.h"
#include "symbol-cache-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/helper-process.h"
#include "uprof/owner-check.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER UPROF_MODULE_FOLDER "/debuginfod-helper"

enum {
    FAILURES_MAX = 3, /* without any server, in a row: then no server is asked any more */
    REASON_BYTES = 512,
    WAIT_STEP_MS = 20,
    STOP_MS = 1500, /* until a helper is killed */
    STOP_HURRIED_MS = 200,
    FILE_S = 150, /* for one file, in the background */
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
    bool is_fetching;    /* a file is neither in a queue nor counted */
    gint ends;           /* atomic, bool: nothing more is fetched */
    gint is_hurried;     /* atomic, bool: a signal ends the run */
    bool is_prepared, is_unusable; /* see prepare_downloads() */
    unsigned n_failures;           /* in a row */
    UprofFetchCounts counts;
};

static void
free_wanted(gpointer data)
{
    uprof_cached_file_clear(data);
    g_free(data);
}

/* ---- One download ---- */

/* The helper of one download. */
typedef struct {
    pid_t pid;
    int stop;    /* the helper ends when this end of a pipe is closed */
    int reasons; /* file in memory: what the helper writes about a failure */
} Helper;

/* @out: the helper's standard output. Returns: false with errno */
static bool
start_helper(const UprofFetcher *fetcher, const Wanted *wanted, int out, Helper *helper)
{
    static char executable[] = "executable", debug[] = "debuginfo";
    char *const words[] = { fetcher->helper, wanted->is_debug ? debug : executable,
                            wanted->build_id, NULL };
    int stop[2];

    helper->reasons = memfd_create("reasons", MFD_CLOEXEC);
    if (helper->reasons < 0)
        return false;
    if (pipe2(stop, O_CLOEXEC) != 0) {
        close(helper->reasons);
        return false;
    }
    helper->stop = stop[1];
    const int fds[] = { stop[0], out, helper->reasons };
    const int code = uprof_helper_process_start(words, fds, &helper->pid);
    close(stop[0]);
    if (code == 0)
        return true;
    close(helper->stop);
    close(helper->reasons);
    errno = code;
    return false;
}

static bool
has_ended(const UprofFetcher *fetcher)
{
    return g_atomic_int_get(&fetcher->ends);
}

/* Returns: false at @until_ns, or if the fetcher ends */
static bool
await_helper(const UprofFetcher *fetcher, const Helper *helper, uint64_t until_ns, bool may_end,
             int *status)
{
    pid_t found;

    while ((found = waitpid(helper->pid, status, WNOHANG)) == 0) {
        if (uprof_clock_now_ns() >= until_ns || (may_end && has_ended(fetcher)))
            return false;
        g_usleep(WAIT_STEP_MS * 1000);
    }
    return found == helper->pid;
}

/*
 * Asks the helper to end, which then removes its temporary files. A service may not be allowed to
 * kill it; it then ends by itself.
 */
static void
stop_helper(const UprofFetcher *fetcher, Helper *helper)
{
    int status;

    close(helper->stop);
    helper->stop = -1;
    const uint64_t wait_ms = g_atomic_int_get(&fetcher->is_hurried) ? STOP_HURRIED_MS : STOP_MS;
    if (await_helper(fetcher, helper, uprof_clock_now_ns() + wait_ms * UPROF_NS_PER_MS, false,
                     &status))
        return;
    if (kill(helper->pid, SIGKILL) == 0)
        waitpid(helper->pid, &status, 0);
}

/* Returns: (transfer full): what the helper has written about a failure, safe to print */
static char *
read_reason(int fd)
{
    char text[REASON_BYTES];
    ssize_t n = pread(fd, text, sizeof(text), 0);

    while (n > 0 && g_ascii_isspace(text[n - 1]))
        n--;
    return uprof_text_quote_slice((UprofSlice){ text, n > 0 ? (size_t)n : 0 });
}

/*
 * Lets the helper write into @out.
 *
 * @why: (out) (transfer full): the reason of a failure. Returns: the helper's exit status
 */
static int
run_helper(const UprofFetcher *fetcher, const Wanted *wanted, int out, uint64_t limit_ns,
           char **why)
{
    const uint64_t until_ns = uprof_clock_now_ns() + limit_ns;
    Helper helper;
    int status = 0;

    if (!start_helper(fetcher, wanted, out, &helper)) {
        *why = g_strdup(g_strerror(errno));
        return UPROF_HELPER_FAILED;
    }
    const bool is_done = await_helper(fetcher, &helper, until_ns, true, &status);
    if (!is_done)
        stop_helper(fetcher, &helper);
    if (helper.stop >= 0)
        close(helper.stop);
    *why = is_done ? read_reason(helper.reasons) : g_strdup("it took too long");
    close(helper.reasons);
    return is_done && WIFEXITED(status) ? WEXITSTATUS(status) : UPROF_HELPER_FAILED;
}

/*
 * Stores the file, or an empty file, which remembers that the servers lack it.
 *
 * @why: (out) (transfer full) (nullable): of a failure. Returns: as the helper
 */
static int
store_file(const UprofFetcher *fetcher, const Wanted *wanted, uint64_t limit_ns, char **why)
{
    g_autofree char *temporary = NULL;
    g_autoptr(GError) error = NULL;
    struct stat info = { 0 };

    *why = NULL;
    const int fd = uprof_symbol_cache_begin(fetcher->folder, &temporary, &error);
    if (fd < 0) {
        *why = g_strdup(error->message);
        return UPROF_HELPER_FAILED;
    }
    int status = run_helper(fetcher, wanted, fd, limit_ns, why);
    if (status == UPROF_HELPER_FOUND && (fstat(fd, &info) != 0 || info.st_size == 0))
        status = UPROF_HELPER_FAILED;
    if (status == UPROF_HELPER_MISSING && ftruncate(fd, 0) != 0)
        status = UPROF_HELPER_FAILED;
    close(fd);
    if (status != UPROF_HELPER_FOUND && status != UPROF_HELPER_MISSING) {
        unlink(temporary);
        return status;
    }
    if (!uprof_symbol_cache_commit(fetcher->folder, temporary, wanted, &error)) {
        g_free(*why);
        *why = g_strdup(error->message);
        return UPROF_HELPER_FAILED;
    }
    if (status == UPROF_HELPER_FOUND)
        uprof_symbol_cache_shrink(fetcher->folder, (uint64_t)UPROF_SYMBOL_CACHE_MIB << 20);
    return status;
}

static void
count_file(UprofFetcher *fetcher, const Wanted *wanted, int status, char **why)
{
    UprofFetchCounts *counts = &fetcher->counts;

    g_mutex_lock(&fetcher->lock);
    fetcher->n_failures = status == UPROF_HELPER_NO_SERVER ? fetcher->n_failures + 1 : 0;
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

/* @limit_ns: the time that it may take. Returns: true if the file is in the cache now */
static bool
fetch_file(UprofFetcher *fetcher, const Wanted *wanted, uint64_t limit_ns)
{
    g_autofree char *why = NULL;
    const int status = store_file(fetcher, wanted, limit_ns, &why);

    count_file(fetcher, wanted, status, &why);
    return status == UPROF_HELPER_FOUND;
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
    while (!has_ended(fetcher)) {
        if (fetcher->n_failures >= FAILURES_MAX)
            drop_wanted(fetcher);
        Wanted *wanted = take_wanted(fetcher);
        if (!wanted) {
            g_cond_wait(&fetcher->changed, &fetcher->lock);
            continue;
        }
        fetcher->is_fetching = true;
        g_mutex_unlock(&fetcher->lock);
        fetch_file(fetcher, wanted, FILE_S * UPROF_NS_PER_S);
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
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "'%s' %s", paths[i],
                    access(paths[i], F_OK) != 0 ? "is missing; install the package "
                                                  "virt-uprof-debuginfod"
                                                : "can be changed by other users");
        return false;
    }
    return true;
}

UprofFetcher *
uprof_fetcher_new_by(UprofFetchKind kind, const char *helper, const char *folder)
{
    UprofFetcher *fetcher = g_new0(UprofFetcher, 1);

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
    return fetcher;
}

UprofFetcher *
uprof_fetcher_new(UprofFetchKind kind)
{
    g_autofree char *folder = uprof_symbol_cache_folder();

    return uprof_symbol_cache_has_servers() ? uprof_fetcher_new_by(kind, HELPER, folder) : NULL;
}

/*
 * Prepares the first download. Most runs need none. Call it with the lock.
 *
 * Returns: false if files cannot be fetched; then the first file counts as failed, with the reason
 */
static bool
prepare_downloads(UprofFetcher *fetcher)
{
    g_autoptr(GError) error = NULL;

    if (fetcher->is_prepared)
        return !fetcher->is_unusable;
    fetcher->is_prepared = true;
    if (check_helper(fetcher->helper, &error) && uprof_symbol_cache_make(fetcher->folder, &error) &&
        (fetcher->kind == UPROF_FETCH_WAITING || (fetcher->thread = start_thread(fetcher, &error))))
        return true;
    fetcher->is_unusable = true;
    fetcher->counts.n_failed++;
    fetcher->counts.why_failed = g_strdup(error->message);
    return false;
}

void
uprof_fetcher_hurry(UprofFetcher *fetcher)
{
    g_atomic_int_set(&fetcher->is_hurried, 1);
    g_atomic_int_set(&fetcher->ends, 1);
}

void
uprof_fetcher_free(UprofFetcher *fetcher)
{
    if (!fetcher)
        return;
    g_mutex_lock(&fetcher->lock);
    g_atomic_int_set(&fetcher->ends, 1);
    g_cond_broadcast(&fetcher->changed);
    g_mutex_unlock(&fetcher->lock);
    if (fetcher->thread)
        g_thread_join(fetcher->thread);
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
    const bool is_there = fetch_file(fetcher, wanted, fetcher->wait_left_ns);
    spend_wait(fetcher, start_ns);
    return is_there;
}

/* Call it with the lock. Returns: false if the file was asked for before, or there are too many */
static bool
note_asked(UprofFetcher *fetcher, const char *path)
{
    if (g_hash_table_size(fetcher->asked) >= UPROF_FETCH_FILES_MAX || has_ended(fetcher) ||
        !g_hash_table_add(fetcher->asked, g_strdup(path)))
        return false;
    if (!prepare_downloads(fetcher))
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
uprof_fetcher_has_time(const UprofFetcher *fetcher)
{
    return fetcher->wait_left_ns > 0;
}

bool
uprof_fetcher_wait(UprofFetcher *fetcher, bool (*gives_up)(void *data), void *data)
{
    const uint64_t start_ns = uprof_clock_now_ns();

    while (uprof_fetcher_is_busy(fetcher) &&
           uprof_clock_now_ns() - start_ns < fetcher->wait_left_ns && !gives_up(data))
        g_usleep(WAIT_STEP_MS * 1000);
    spend_wait(fetcher, start_ns);
    return !uprof_fetcher_is_busy(fetcher);
}

void
uprof_fetcher_counts(UprofFetcher *fetcher, UprofFetchCounts *counts)
{
    g_mutex_lock(&fetcher->lock);
    *counts = fetcher->counts;
    counts->why_failed = g_strdup(counts->why_failed);
    g_mutex_unlock(&fetcher->lock);
}
