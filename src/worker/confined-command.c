/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confined-command.h"

#include "fetch-report-priv.h"
#include "file-rules-priv.h"
#include "protocol-priv.h"
#include "remote-priv.h"
#include "uprof/confined-job.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY_MAX_MIB = 4096, /* at least */
    MEMORY_FACTOR = 4,     /* all memory, as a multiple of that for symbols: see worker-pool.c */
    CPU_MAX_S = 3600,
};

/* ---- In the process ---- */

/* Set once, before the command runs. */
static struct {
    int requests;
    GPtrArray *outputs; /* of UprofFile: owned */
} confined;

UprofFile *
uprof_confined_output(unsigned i)
{
    return g_ptr_array_index(confined.outputs, i);
}

bool
uprof_confined_commit(unsigned i, GError **error)
{
    const uint32_t number = i;
    const UprofSlice part = { &number, sizeof(number) };
    struct {
        UprofOutcome outcome;
        char text[UPROF_NOTICE_BYTES_MAX];
    } answer = { .outcome.code = UPROF_ERROR_FAILED };
    UprofMessage message;

    uprof_remote_tell(confined.requests, UPROF_ASK_COMMIT, &part, 1);
    if (!uprof_channel_receive(confined.requests, &message, &answer, sizeof(answer) - 1))
        _exit(UPROF_SPAWNER_EXIT_CUT_OFF);
    if (answer.outcome.code != UPROF_ERROR_NONE)
        g_set_error(error, UPROF_ERROR, answer.outcome.code, "%s", answer.text);
    return answer.outcome.code == UPROF_ERROR_NONE;
}

static void
free_file(gpointer file)
{
    uprof_file_abort(file);
}

/* @fds: the request channel, then the outputs */
static int
run_confined(const int *fds, unsigned n_fds, void *data)
{
    const UprofConfinedPlan *plan = data;

    confined.requests = fds[0];
    confined.outputs = g_ptr_array_new_with_free_func(free_file);
    for (guint i = 0; i < plan->outputs->len; i++) {
        const UprofFile *file = g_ptr_array_index(plan->outputs, i);
        g_ptr_array_add(confined.outputs, uprof_file_adopt(fds[i + 1], uprof_file_path(file),
                                                           uprof_file_is_stdout(file)));
    }
    g_assert(n_fds == plan->outputs->len + 1);
    uprof_remote_open_files(confined.requests);
    const UprofErrorCode code = plan->run(plan->data);
    g_ptr_array_unref(confined.outputs);
    return (int)code;
}

/* ---- In the program ---- */

typedef struct {
    const UprofConfinedPlan *plan;
    UprofFetcher *fetcher; /* (nullable) */
} Service;

static bool
answer_commit(int channel, GPtrArray *outputs, UprofSlice ask)
{
    g_autoptr(GError) error = NULL;
    uint32_t i;

    if (ask.len != sizeof(i))
        return false;
    memcpy(&i, ask.data, sizeof(i));
    if (i >= outputs->len || !outputs->pdata[i])
        return false;
    uprof_file_commit(g_steal_pointer(&outputs->pdata[i]), &error);
    const UprofOutcome outcome = { .code = uprof_error_code_of(error) };
    const char *text = error ? error->message : "";
    const UprofSlice parts[] = {
        { &outcome, sizeof(outcome) },
        { text, MIN(strlen(text), (size_t)UPROF_NOTICE_BYTES_MAX - 2) },
    };
    return uprof_channel_send(channel, 0, parts, G_N_ELEMENTS(parts), NULL, 0);
}

static bool
answer_command(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
               void *data)
{
    const Service *service = data;

    if (message->type == UPROF_ASK_FILE)
        return uprof_file_rules_serve(service->plan->rules, service->fetcher, channel, content,
                                      last_file);
    return message->type == UPROF_ASK_COMMIT &&
           answer_commit(channel, service->plan->outputs, content);
}

/* @status: of the process: the code that run_confined() returned, if the process obeys its code */
static UprofErrorCode
read_status(int status, GError **error)
{
    if (status >= 0 && status <= UPROF_ERROR_SOME_FAILED)
        return (UprofErrorCode)status;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "the process that reads the files has failed: it ended with status %d", status);
    return UPROF_ERROR_FAILED;
}

UprofErrorCode
uprof_confined_command_run(const UprofConfinedPlan *plan, GError **error)
{
    const uint64_t memory_max =
        MAX((uint64_t)MEMORY_MAX_MIB << 20, plan->symbols_max * MEMORY_FACTOR);
    const UprofSpawnPlan spawn_plan = {
        .work = run_confined,
        .data = (void *)plan,
        .limits = { .memory_max = memory_max, .cpu_s = CPU_MAX_S },
        .keeps_streams = true,
    };
    tzset(); /* the process cannot read the files of the time zone */
    g_autoptr(GError) failure = NULL;
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&spawn_plan, &failure);
    g_autoptr(UprofFetcher) fetcher = uprof_fetcher_new(UPROF_FETCH_WAITING);
    Service service = { plan, fetcher };
    g_autofree int *fds = g_new(int, plan->outputs->len + 1);
    const UprofConfinedJob job = {
        .fds = fds,
        .n_fds = plan->outputs->len,
        .answer = answer_command,
        .data = &service,
        .has_user = true,
    };

    for (guint i = 0; i < plan->outputs->len; i++)
        fds[i] = uprof_file_fd(g_ptr_array_index(plan->outputs, i));
    const int status = spawner ? uprof_confined_job_run(spawner, &job, &failure) : -1;
    if (fetcher)
        uprof_fetch_report(fetcher, plan->notices);
    if (!failure)
        return read_status(status, error);
    const UprofErrorCode code = uprof_error_code_of(failure);
    g_propagate_error(error, g_steal_pointer(&failure));
    return code;
}
