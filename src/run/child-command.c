/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/child-command.h"

#include "uprof/error.h"
#include "uprof/text.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct rlimit callers_files; /* the limit of open files, as the caller has set it */
static bool has_raised;

void
uprof_child_raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    callers_files = limit;
    limit.rlim_cur = limit.rlim_max;
    has_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool
uprof_child_is_there(char *const *words, GError **error)
{
    g_autofree char *path = g_find_program_in_path(words[0]);
    g_autofree char *shown = uprof_text_quote(words[0]);

    if (!path)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE,
                    "cannot run '%s': there is no such program", shown);
    return path != NULL;
}

/* In the new process, which has one thread: undoes what the program has changed for itself. */
static void
restore_caller(gpointer data)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (has_raised)
        setrlimit(RLIMIT_NOFILE, &callers_files);
}

bool
uprof_child_start(UprofChild *child, char *const *words, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *shown = uprof_text_quote(words[0]);

    if (g_spawn_async(NULL, (char **)words, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                          G_SPAWN_CHILD_INHERITS_STDIN,
                      restore_caller, NULL, &child->pid, &failure))
        return true;
    child->has_ended = true;
    child->exit_status = UPROF_CHILD_NOT_FOUND;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot run '%s': %s", shown,
                failure->message);
    return false;
}

static void
note_end(UprofChild *child, int status)
{
    child->has_ended = true;
    child->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool
uprof_child_has_ended(UprofChild *child)
{
    int status;

    if (child->pid != 0 && !child->has_ended && waitpid(child->pid, &status, WNOHANG) == child->pid)
        note_end(child, status);
    return child->has_ended;
}

void
uprof_child_signal(UprofChild *child, int number)
{
    if (child->pid != 0 && !uprof_child_has_ended(child))
        kill(child->pid, number);
}

int
uprof_child_wait(UprofChild *child)
{
    int status = 0;
    pid_t found = 0;

    while (child->pid != 0 && !child->has_ended) {
        found = waitpid(child->pid, &status, 0);
        if (found == child->pid)
            note_end(child, status);
        else if (errno != EINTR)
            break;
    }
    return child->exit_status;
}
