/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debuginfod-helper - downloads one symbol file; see fetcher-priv.h
 *
 * The program starts it as root. It gives up root before it connects, and keeps nothing: the
 * client's own cache is a temporary folder. The environment sets the servers and the times of the
 * client (debuginfod-find(1)); times that it does not set, and the limit of the size, are those
 * below.
 */
#include "fetcher-priv.h"

#include "uprof/confine.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 256 * 1024 * 1024,
    CPU_MAX_S = 60,
    BUILD_ID_BYTES_MAX = 64,
    COPY_BYTES = 1024 * 1024,
    FOLDERS_OPEN = 8,
};

/* Returns: the exit status */
static int
tell_failure(const char *what, const char *why)
{
    g_autofree char *line = g_strdup_printf("%s: %s\n", what, why);

    /* nothing can be done if the program does not read the line */
    G_GNUC_UNUSED const ssize_t n = write(STDERR_FILENO, line, strlen(line));
    return UPROF_HELPER_FAILED;
}

static void
set_defaults(void)
{
    char bytes[32];

    g_snprintf(bytes, sizeof(bytes), "%d", FILE_BYTES_MAX);
    setenv("DEBUGINFOD_TIMEOUT", "10", false);  /* seconds without 100 KiB of progress */
    setenv("DEBUGINFOD_MAXTIME", "120", false); /* seconds for a download */
    setenv("DEBUGINFOD_MAXSIZE", bytes, true);
    unsetenv("DEBUGINFOD_PROGRESS");
    unsetenv("DEBUGINFOD_VERBOSE");
}

static volatile sig_atomic_t is_over; /* the limit of processor time */

static void
note_signal(int number)
{
    is_over = 1;
}

/* A limit must not end the process before it has removed its temporary files. */
static bool
limit_process(void)
{
    const struct rlimit file = { FILE_BYTES_MAX, FILE_BYTES_MAX };
    const struct rlimit cpu = { CPU_MAX_S, CPU_MAX_S + 10 };
    const struct rlimit core = { 0, 0 };

    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXCPU, note_signal);
    return setrlimit(RLIMIT_FSIZE, &file) == 0 && setrlimit(RLIMIT_CPU, &cpu) == 0 &&
           setrlimit(RLIMIT_CORE, &core) == 0;
}

static int
remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    remove(path);
    return 0;
}

static void
remove_folder(const char *path)
{
    nftw(path, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Removes the folders of helpers that were killed. They belong to the same user. */
static void
remove_stale(void)
{
    enum { STALE_S = 3600 };
    glob_t found;
    struct stat info;

    if (glob("/tmp/virt-uprof-??????", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (lstat(found.gl_pathv[i], &info) == 0 && S_ISDIR(info.st_mode) &&
            info.st_uid == geteuid() && time(NULL) - info.st_mtime > STALE_S)
            remove_folder(found.gl_pathv[i]);
    globfree(&found);
}

static bool
must_end(void)
{
    struct pollfd stop = { .fd = STDIN_FILENO, .events = POLLIN };

    return is_over || (poll(&stop, 1, 0) > 0 && stop.revents != 0);
}

/* The client calls it now and then. Returns: not 0 to end the download */
static int
check_end(debuginfod_client *client, long done, long all)
{
    return must_end();
}

/* The client has just written the file, so the descriptor is at its end. */
static bool
copy_file(int from)
{
    off_t at = 0;
    ssize_t n;

    do
        n = sendfile(STDOUT_FILENO, from, &at, COPY_BYTES);
    while (n > 0 && !must_end());
    return n == 0;
}

/* Returns: the exit status for a reason of the client, an errno */
static int
tell_reason(int reason)
{
    tell_failure("debuginfod", strerror(reason));
    switch (reason) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNREFUSED:
    case ETIME:
    case ETIMEDOUT:
    case ENOSYS: /* no server is named */
        return UPROF_HELPER_NO_SERVER;
    default:
        return UPROF_HELPER_FAILED;
    }
}

static int
find_file(debuginfod_client *client, bool is_debug, const char *build_id)
{
    const unsigned char *id = (const unsigned char *)build_id;

    /* a length of 0 means that the build-id is text in hex */
    return is_debug ? debuginfod_find_debuginfo(client, id, 0, NULL)
                    : debuginfod_find_executable(client, id, 0, NULL);
}

static int
download_file(bool is_debug, const char *build_id)
{
    debuginfod_client *client = debuginfod_begin();

    if (!client)
        return tell_failure("debuginfod", "no client");
    debuginfod_set_progressfn(client, check_end);
    const int fd = find_file(client, is_debug, build_id);
    debuginfod_end(client);
    if (fd == -ENOENT)
        return UPROF_HELPER_MISSING;
    if (fd < 0)
        return tell_reason(-fd);
    return copy_file(fd) ? UPROF_HELPER_FOUND
                         : tell_failure("cannot write the file", strerror(errno));
}

static bool
is_build_id(const char *text)
{
    const size_t len = strlen(text);

    return len > 0 && len <= BUILD_ID_BYTES_MAX * 2 && strspn(text, "0123456789abcdef") == len;
}

int
main(int argc, char **argv)
{
    char folder[] = "/tmp/virt-uprof-XXXXXX";
    g_autoptr(GError) error = NULL;

    if (argc != 3 || !is_build_id(argv[2]) ||
        (strcmp(argv[1], "executable") != 0 && strcmp(argv[1], "debuginfo") != 0))
        return tell_failure("usage", "debuginfod-helper executable|debuginfo BUILD_ID");
    if (!uprof_confine_leave_root(&error))
        return tell_failure("cannot drop rights", error->message);
    if (!limit_process() || !mkdtemp(folder))
        return tell_failure("cannot prepare the download", strerror(errno));
    remove_stale();
    set_defaults();
    setenv("DEBUGINFOD_CACHE_PATH", folder, true);
    const int status = download_file(strcmp(argv[1], "debuginfo") == 0, argv[2]);
    remove_folder(folder);
    return status;
}
