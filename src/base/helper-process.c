/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/helper-process.h"

#include "uprof/channel.h"
#include "uprof/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

/* Who can replace a file beside the program can replace the program, too. */
char *
uprof_helper_process_find(const char *name, const char *folder)
{
    g_autofree char *own = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *own_folder = g_path_get_dirname(own ? own : "/");
    g_autofree char *beside = g_build_filename(own_folder, name, NULL);

    return g_file_test(beside, G_FILE_TEST_IS_EXECUTABLE) ? g_steal_pointer(&beside)
                                                          : g_build_filename(folder, name, NULL);
}

int
uprof_helper_process_start(char *const *words, const int fds[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    const int code = posix_spawn(pid, words[0], &actions, &attributes, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code;
}

int
uprof_helper_process_connect(const char *program, const char *hint, pid_t *pid, GError **error)
{
    char *const words[] = { (char *)program, NULL };
    int ends[2];

    if (!uprof_channel_new(ends, error))
        return -1;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = { ends[1], null, null };
    const int code = uprof_helper_process_start(words, fds, pid);
    close(ends[1]);
    if (null >= 0)
        close(null);
    if (code == 0)
        return ends[0];
    close(ends[0]);
    errno = code;
    uprof_error_fail_errno(error, "cannot start '%s', %s", program, hint);
    return -1;
}
