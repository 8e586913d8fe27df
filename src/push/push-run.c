/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/push-run.h"

#include "uprof/error.h"
#include "uprof/output-request.h"
#include "uprof/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOLDERS_OPEN = 8 };

struct _UprofPushRun {
    char *folder;
    UprofStore *store;
    int data;
    pid_t process;
    int go; /* a byte, written to this pipe, lets the process begin; closing it ends the process */
};

/* ---- In the process ---- */

static int
push_store(const UprofPushRunPlan *plan, UprofStore *store)
{
    g_autoptr(GPtrArray) no_words = g_ptr_array_new();
    UprofErrorCode code = UPROF_ERROR_NONE;
    const UprofPushSettings settings = {
        .store = store,
        .is_of_run = true,
        .destinations = plan->destinations,
        .words = no_words,
        .notices = plan->notices,
    };
    g_autoptr(GArray) results = uprof_push_rounds(&settings, &code);

    return plan->show(results, code, plan->data);
}

/* Ctrl-C ends the run, and not the process that then sends what the run has. */
static int
serve_run(const UprofPushRunPlan *plan, UprofStore *store, int go)
{
    char byte;

    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (read(go, &byte, 1) != 1)
        return 0;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    return push_store(plan, store);
}

/* ---- In the program ---- */

static int
remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    remove(path);
    return 0;
}

static void
free_run(UprofPushRun *run)
{
    uprof_store_close(run->store);
    if (run->folder)
        nftw(run->folder, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    g_free(run->folder);
    g_free(run);
}

static bool
fork_process(UprofPushRun *run, const UprofPushRunPlan *plan, GError **error)
{
    int go[2];

    if (pipe2(go, O_CLOEXEC) != 0)
        return uprof_error_fail_errno(error, "cannot make a pipe");
    run->process = fork();
    if (run->process == 0) {
        close(go[1]);
        _exit(serve_run(plan, run->store, go[0]));
    }
    const int reason = errno;
    close(go[0]);
    run->go = go[1];
    errno = reason;
    if (run->process > 0)
        return true;
    close(run->go);
    return uprof_error_fail_errno(error, "cannot fork");
}

UprofPushRun *
uprof_push_run_start(const UprofPushRunPlan *plan, GError **error)
{
    UprofPushRun *run = g_new0(UprofPushRun, 1);

    const mode_t mask = umask(0077);
    run->folder = g_dir_make_tmp("virt-uprof-push-XXXXXX", error);
    run->store = run->folder ? uprof_store_open(run->folder, true, error) : NULL;
    umask(mask); /* uprof_store_open() has set another one */
    if (run->store) {
        run->data = uprof_store_data(run->store);
        if (fork_process(run, plan, error))
            return run;
    }
    free_run(run);
    return NULL;
}

static void
add_output(const UprofPushRun *run, GPtrArray *requests, const char *ending,
           const UprofFormat *format)
{
    g_autofree char *path = g_strconcat(run->folder, "/data/%d/%d-%t", ending, NULL);

    uprof_output_request_add(requests, path, format, false);
    ((UprofOutputRequest *)requests->pdata[requests->len - 1])->parent = &run->data;
}

void
uprof_push_run_add_outputs(const UprofPushRun *run, GPtrArray *requests)
{
    add_output(run, requests, UPROF_STORE_FUNCTIONS, &uprof_format_functions);
    add_output(run, requests, UPROF_STORE_PROFILE, &uprof_format_folded_gz);
    add_output(run, requests, UPROF_STORE_SIDECAR, &uprof_format_meta);
}

int
uprof_push_run_end(UprofPushRun *run)
{
    int status;

    /* a second signal ends the process, and this one removes the folder */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    /* a process that has died shows that below */
    G_GNUC_UNUSED const ssize_t n = write(run->go, "g", 1);
    close(run->go);
    const pid_t found = waitpid(run->process, &status, 0);
    free_run(run);
    return found > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
