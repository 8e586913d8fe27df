/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "thread-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "uprof/error.h"
#include "uprof/process-stat.h"
#include "uprof/scan.h"

enum {
    PATH_BYTES = 64,
    /* longer than any of these files; only the beginning of status is needed */
    TEXT_BYTES_MAX = 1024,
};

/* The syscall file of a zombie: its stack has been freed (Linux lib/syscall.c). */
#define NO_STACK "-1 0x0 0x0"

/* Returns: bytes read, -1 with errno; never more than @text has */
static ssize_t
read_text(int fd, char text[static TEXT_BYTES_MAX], UprofSlice *read)
{
    const ssize_t len = pread(fd, text, TEXT_BYTES_MAX, 0);

    if (len >= 0)
        *read = (UprofSlice){ text, (size_t)len };
    return len;
}

static ssize_t
read_file(int folder, const char *name, char text[static TEXT_BYTES_MAX], UprofSlice *read)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    const ssize_t len = read_text(fd, text, read);
    close(fd);
    return len;
}

static bool
parse_start(UprofSlice text, uint64_t *start)
{
    UprofSlice word = { NULL, 0 };

    return uprof_process_stat_find(text, UPROF_PROCESS_STAT_START, &word) &&
           uprof_slice_to_uint(word, 10, 0, UINT64_MAX, start);
}

static bool
fail_to_find(pid_t process, pid_t thread, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND, "process %d has no thread %d", process,
                thread);
    return false;
}

/* @folder: a descriptor that stays bound to one thread, even if another gets its number */
static bool
open_files(UprofThread *thread, int folder, GError **error)
{
    char text[TEXT_BYTES_MAX];
    UprofSlice read;

    if (read_file(folder, "stat", text, &read) < 0)
        return fail_to_find(thread->process, thread->thread, error);
    if (!parse_start(read, &thread->start)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "no start time in '/proc/%d/task/%d'",
                    thread->process, thread->thread);
        return false;
    }
    if (read_file(folder, "comm", text, &read) < 0)
        return fail_to_find(thread->process, thread->thread, error);
    if (read.len > 0 && text[read.len - 1] == '\n')
        read.len--;
    memcpy(thread->name, text, MIN(read.len, sizeof(thread->name) - 1));
    thread->schedstat_fd = openat(folder, "schedstat", O_RDONLY | O_CLOEXEC);
    thread->stat_fd = openat(folder, "stat", O_RDONLY | O_CLOEXEC);
    thread->syscall_fd = openat(folder, "syscall", O_RDONLY | O_CLOEXEC);
    return true;
}

UprofThread *
uprof_thread_open(pid_t process, pid_t thread, GError **error)
{
    g_autoptr(UprofThread) opened = g_new0(UprofThread, 1);
    char path[PATH_BYTES];

    opened->process = process;
    opened->thread = thread;
    opened->schedstat_fd = opened->stat_fd = opened->syscall_fd = -1;
    g_snprintf(path, sizeof(path), "/proc/%d/task/%d", process, thread);
    const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        if (errno == ENOENT || errno == ESRCH)
            fail_to_find(process, thread, error);
        else
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot open '%s': %s", path,
                        g_strerror(errno));
        return NULL;
    }
    const bool ok = open_files(opened, folder, error);
    close(folder);
    return ok ? g_steal_pointer(&opened) : NULL;
}

void
uprof_thread_close(UprofThread *thread)
{
    if (!thread)
        return;
    if (thread->schedstat_fd >= 0)
        close(thread->schedstat_fd);
    if (thread->stat_fd >= 0)
        close(thread->stat_fd);
    if (thread->syscall_fd >= 0)
        close(thread->syscall_fd);
    g_free(thread);
}

/*
 * schedstat: RUN_NS " " WAIT_NS " " SLICES "\n", decimal
 */
static UprofThreadTimes
parse_times(UprofSlice text)
{
    UprofThreadTimes times = { 0 };
    uint64_t *const fields[] = { &times.run_ns, &times.wait_ns, &times.slices };
    UprofSlice line = uprof_slice_trim(text), word;

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (!uprof_scan_word(&line, &word) ||
            !uprof_slice_to_uint(word, 10, 0, UINT64_MAX, fields[i]))
            return (UprofThreadTimes){ 0 };
    times.is_known = times.run_ns != 0 || times.wait_ns != 0 || times.slices != 0;
    return times;
}

bool
uprof_thread_exists(const UprofThread *thread)
{
    char byte;

    /* the shortest of the files that Linux always has */
    return thread->schedstat_fd < 0 || pread(thread->schedstat_fd, &byte, 1, 0) >= 0 ||
           errno != ESRCH;
}

bool
uprof_thread_times(const UprofThread *thread, UprofThreadTimes *times)
{
    char text[TEXT_BYTES_MAX];
    UprofSlice read = { NULL, 0 };

    if (thread->schedstat_fd >= 0 && read_text(thread->schedstat_fd, text, &read) < 0 &&
        errno == ESRCH)
        return false;
    *times = parse_times(read);
    return true;
}

static bool
parse_hex(UprofSlice *line, uint64_t *value)
{
    UprofSlice word;

    return uprof_scan_word(line, &word) && uprof_slice_starts(word, "0x") &&
           uprof_slice_sub(word, 2, word.len - 2, &word) &&
           uprof_slice_to_uint(word, 16, 0, UINT64_MAX, value);
}

/*
 * syscall: "running\n"
 *        | "-1 0xSP 0xPC\n"
 *        | NUMBER " 0xARG" x 6 " 0xSP 0xPC\n", the number decimal
 */
static UprofThreadWhere
parse_where(UprofSlice text, UprofThreadCall *call)
{
    UprofSlice line = uprof_slice_trim(text), word;
    UprofThreadCall found;

    if (uprof_slice_is(line, "running"))
        return UPROF_THREAD_RUNNING;
    if (uprof_slice_is(line, NO_STACK))
        return UPROF_THREAD_GONE;
    if (!uprof_scan_word(&line, &word))
        return UPROF_THREAD_UNKNOWN;
    if (uprof_slice_is(word, "-1"))
        return UPROF_THREAD_BLOCKED;
    if (!uprof_slice_to_uint(word, 10, 0, INT32_MAX, &found.number) ||
        !parse_hex(&line, &found.args[0]) || !parse_hex(&line, &found.args[1]))
        return UPROF_THREAD_UNKNOWN;
    if (call)
        *call = found;
    return UPROF_THREAD_IN_CALL;
}

UprofThreadWhere
uprof_thread_where(const UprofThread *thread, UprofThreadCall *call)
{
    char text[TEXT_BYTES_MAX];
    UprofSlice read;

    if (thread->syscall_fd < 0)
        return UPROF_THREAD_UNKNOWN;
    if (read_text(thread->syscall_fd, text, &read) < 0)
        return errno == ESRCH ? UPROF_THREAD_GONE : UPROF_THREAD_UNKNOWN;
    return parse_where(read, call);
}

bool
uprof_thread_is_asleep(const UprofThread *thread)
{
    char text[TEXT_BYTES_MAX];
    UprofSlice read, state = { NULL, 0 };

    return thread->stat_fd >= 0 && read_text(thread->stat_fd, text, &read) >= 0 &&
           uprof_process_stat_find(read, UPROF_PROCESS_STAT_STATE, &state) &&
           uprof_slice_is(state, "S");
}

/* @value: (out): of the line of a status file that begins with @key */
static bool
find_line(UprofSlice text, const char *key, UprofSlice *value)
{
    UprofScan scan = { .name = "status", .rest = text };
    UprofSlice line, before, behind;

    while (uprof_scan_line(&scan, &line)) {
        if (!uprof_slice_split(line, ':', &before, &behind) || !uprof_slice_is(before, key))
            continue;
        *value = uprof_slice_trim(behind);
        return true;
    }
    return false;
}

bool
uprof_thread_status(pid_t thread, UprofThreadStatus *status)
{
    char path[PATH_BYTES], text[TEXT_BYTES_MAX];
    UprofSlice read, state, value;
    uint64_t process, tracer;

    g_snprintf(path, sizeof(path), "/proc/%d/status", thread);
    if (read_file(AT_FDCWD, path, text, &read) < 0 || !find_line(read, "State", &state) ||
        !find_line(read, "Tgid", &value) ||
        !uprof_slice_to_uint(value, 10, 0, INT32_MAX, &process) ||
        !find_line(read, "TracerPid", &value) ||
        !uprof_slice_to_uint(value, 10, 0, INT32_MAX, &tracer))
        return false;
    *status = (UprofThreadStatus){
        .process = (pid_t)process,
        .tracer = (pid_t)tracer,
        .has_ended = uprof_slice_starts(state, "Z") || uprof_slice_starts(state, "X"),
        .is_stopped = uprof_slice_starts(state, "T"),
    };
    return true;
}
