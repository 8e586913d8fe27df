/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confined-command.h"

#include "file-rules-priv.h"
#include "protocol-priv.h"
#include "remote-priv.h"
#include "uprof/spawner.h"
#include "uprof/text.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MEMORY_MAX_MIB = 4096,
    CPU_MAX_S = 3600,
    END_WAIT_MS = 10 * 1000, /* for the process, after it has closed its channel */
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
    const int code = plan->run(plan->data);
    g_ptr_array_unref(confined.outputs);
    return code;
}

/* ---- In the program ---- */

/* The program's side of one command. */
typedef struct {
    const UprofConfinedPlan *plan;
    int requests;
    char *last_file; /* (nullable): owned; safe to print */
} Command;

static bool
answer_file(Command *command, UprofSlice ask)
{
    UprofFileAnswer answer;
    const UprofSlice part = { &answer, sizeof(answer) };
    const int fd = uprof_file_rules_answer(command->plan->rules, ask, &answer.reason);
    const bool ok = uprof_channel_send(command->requests, 0, &part, 1, &fd, fd >= 0);

    if (fd < 0)
        return ok;
    close(fd);
    g_free(command->last_file);
    const char *path = (const char *)ask.data + sizeof(UprofFileAsk);
    path += strlen(path) + 1; /* behind the folder */
    command->last_file = uprof_text_quote(path);
    return ok;
}

static bool
answer_commit(Command *command, UprofSlice ask)
{
    GPtrArray *outputs = command->plan->outputs;
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
    return uprof_channel_send(command->requests, 0, parts, G_N_ELEMENTS(parts), NULL, 0);
}

/* Answers requests until the process ends, or breaks the rules. */
static void
serve_command(Command *command)
{
    g_autofree uint8_t *bytes = g_malloc(UPROF_CHANNEL_BYTES_MAX);
    UprofMessage message;
    bool ok = true;

    while (ok &&
           uprof_channel_receive(command->requests, &message, bytes, UPROF_CHANNEL_BYTES_MAX)) {
        const UprofSlice ask = { bytes, message.len };
        uprof_message_close(&message);
        ok = message.type == UPROF_ASK_FILE     ? answer_file(command, ask)
             : message.type == UPROF_ASK_COMMIT ? answer_commit(command, ask)
                                                : false;
    }
}

static int
judge_end(const Command *command, int status, GError **error)
{
    g_autofree char *why = uprof_spawner_describe_end(status);

    if (!why)
        return WEXITSTATUS(status);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "the process that reads the files has failed: %s%s%s%s", why,
                command->last_file ? "; the last file that it read is '" : "",
                command->last_file ? command->last_file : "", command->last_file ? "'" : "");
    return -1;
}

static int
spawn_command(Command *command, UprofSpawner *spawner, GError **error)
{
    const GPtrArray *outputs = command->plan->outputs;
    int ends[2], fds[UPROF_SPAWNER_FDS_MAX];

    if (outputs->len + 1 > G_N_ELEMENTS(fds)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "more than %d outputs",
                    UPROF_SPAWNER_FDS_MAX - 1);
        return -1;
    }
    if (!uprof_channel_new(ends, error))
        return -1;
    command->requests = ends[0];
    fds[0] = ends[1];
    for (guint i = 0; i < outputs->len; i++)
        fds[i + 1] = uprof_file_fd(g_ptr_array_index(outputs, i));
    const pid_t worker = uprof_spawner_spawn(spawner, fds, outputs->len + 1, error);
    close(ends[1]);
    return worker;
}

int
uprof_confined_command_run(const UprofConfinedPlan *plan, GError **error)
{
    const UprofSpawnPlan spawn_plan = {
        .work = run_confined,
        .data = (void *)plan,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20, .cpu_s = CPU_MAX_S },
        .keeps_streams = true,
    };
    Command command = { .plan = plan, .requests = -1 };
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&spawn_plan, error);
    const pid_t worker = spawner ? spawn_command(&command, spawner, error) : -1;
    int code = -1;

    if (worker > 0)
        serve_command(&command);
    /* a process that still waits for an answer ends now */
    if (command.requests >= 0)
        close(command.requests);
    if (worker > 0)
        code = judge_end(&command, uprof_spawner_wait(spawner, worker, END_WAIT_MS), error);
    g_free(command.last_file);
    return code;
}
