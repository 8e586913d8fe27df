/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/spawner.h"

#include "confine-priv.h"
#include "uprof/channel.h"
#include "uprof/priority.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Types of requests from the program to the spawner. */
enum { REQUEST_SPAWN = 1, REQUEST_WAIT };

/* The content of each request; only WAIT uses it. */
typedef struct {
    pid_t worker;
    unsigned timeout_ms;
} Request;

/* The answer to each request, and the spawner's first message. */
typedef struct {
    int value;              /* of SPAWN: number of the process, or -1; of WAIT: status */
    int code;               /* of an error: errno */
    UprofConfined confined; /* of the first message */
} Answer;

enum {
    WAIT_STEP_MS = 2,
    WORKERS_MAX = 4096,
    EXIT_LEAKS = 98,  /* only of a build with a sanitizer */
    EXIT_UNSAFE = 99, /* the worker could not drop its rights, and did nothing */
};

struct _UprofSpawner {
    pid_t pid;
    int fd; /* channel to the process */
    UprofConfined confined;
};

/* ---- In the spawner's process ---- */

static G_GNUC_NORETURN void
run_worker(const UprofSpawnPlan *plan, int channel, const UprofMessage *message)
{
    g_autoptr(GError) error = NULL;

    close(channel);
    uprof_confine_name("uprof-worker");
    if (plan->is_background)
        uprof_priority_lower();
    if (!uprof_confine_seal(&plan->limits, &error))
        _exit(EXIT_UNSAFE);
    const int code = plan->work(message->fds, message->n_fds, plan->data);
    fflush(NULL);
    _exit(uprof_confine_has_leaks() ? EXIT_LEAKS : code);
}

static Answer
spawn_worker(const UprofSpawnPlan *plan, int channel, const UprofMessage *message)
{
    Answer answer = { .value = -1 };

    answer.value = fork();
    if (answer.value == 0)
        run_worker(plan, channel, message);
    answer.code = answer.value < 0 ? errno : 0;
    return answer;
}

/* False for a process that is not a child of the spawner, so that no such process is killed. */
static bool
is_running(pid_t worker)
{
    siginfo_t info = { 0 };

    return worker > 0 && waitid(P_PID, (id_t)worker, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

static Answer
wait_for_worker(const Request *request)
{
    Answer answer = { 0 };
    unsigned waited_ms = 0;

    while (is_running(request->worker) && waited_ms < request->timeout_ms) {
        g_usleep(WAIT_STEP_MS * 1000);
        waited_ms += WAIT_STEP_MS;
    }
    if (is_running(request->worker))
        kill(request->worker, SIGKILL);
    if (request->worker <= 0 || waitpid(request->worker, &answer.value, 0) < 0)
        answer.code = errno;
    return answer;
}

/* Returns: false if the program has ended */
static bool
serve_request(const UprofSpawnPlan *plan, int channel)
{
    UprofMessage message;
    Request request = { 0 };
    Answer answer = { 0 };

    if (!uprof_channel_receive(channel, &message, &request, sizeof(request)))
        return errno == EBADMSG;
    answer = message.type == REQUEST_SPAWN ? spawn_worker(plan, channel, &message)
                                           : wait_for_worker(&request);
    uprof_message_close(&message);
    const UprofSlice part = { &answer, sizeof(answer) };
    return uprof_channel_send(channel, 0, &part, 1, NULL, 0);
}

static G_GNUC_NORETURN void
run_spawner(const UprofSpawnPlan *plan, int channel)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1 };
    g_autoptr(GError) error = NULL;
    Answer answer = { 0 };

    uprof_confine_name("uprof-spawner");
    /* the program ends its workers itself, also after Ctrl-C */
    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
    if (!uprof_confine_drop(&channel, 1, plan->keeps_streams, &answer.confined, &error))
        _exit(EXIT_UNSAFE);
    channel = STDERR_FILENO + 1;
    const UprofSlice part = { &answer, sizeof(answer) };
    if (uprof_channel_send(channel, 0, &part, 1, NULL, 0))
        while (serve_request(plan, channel))
            ;
    /* the kernel kills the workers now: see PR_SET_PDEATHSIG in confine.c */
    _exit(0);
}

/* ---- In the program ---- */

static bool
receive_answer(const UprofSpawner *spawner, Answer *answer)
{
    UprofMessage message;

    if (!uprof_channel_receive(spawner->fd, &message, answer, sizeof(*answer)))
        return false;
    uprof_message_close(&message);
    return message.len == sizeof(*answer);
}

static bool
send_request(const UprofSpawner *spawner, uint32_t type, const Request *request, const int *fds,
             unsigned n_fds)
{
    const UprofSlice part = { request, sizeof(*request) };

    return uprof_channel_send(spawner->fd, type, &part, 1, fds, n_fds);
}

UprofSpawner *
uprof_spawner_start(const UprofSpawnPlan *plan, GError **error)
{
    g_autoptr(UprofSpawner) spawner = g_new0(UprofSpawner, 1);
    Answer answer;
    int ends[2];

    spawner->fd = -1;
    if (!uprof_channel_new(ends, error))
        return NULL;
    fflush(NULL);
    spawner->fd = ends[0];
    spawner->pid = fork();
    if (spawner->pid == 0) {
        close(ends[0]);
        run_spawner(plan, ends[1]);
    }
    close(ends[1]);
    if (spawner->pid < 0) {
        uprof_error_fail_errno(error, "no process for the analysis");
        return NULL;
    }
    if (!receive_answer(spawner, &answer)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "the process for the analysis cannot give up its rights");
        return NULL;
    }
    spawner->confined = answer.confined;
    return g_steal_pointer(&spawner);
}

void
uprof_spawner_end(UprofSpawner *spawner)
{
    if (!spawner)
        return;
    if (spawner->fd >= 0)
        close(spawner->fd);
    while (spawner->pid > 0 && waitpid(spawner->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    g_free(spawner);
}

const UprofConfined *
uprof_spawner_confined(const UprofSpawner *spawner)
{
    return &spawner->confined;
}

pid_t
uprof_spawner_spawn(UprofSpawner *spawner, const int *fds, unsigned n_fds, GError **error)
{
    const Request request = { 0 };
    Answer answer = { .value = -1, .code = EPIPE };

    g_assert(n_fds <= UPROF_SPAWNER_FDS_MAX);
    if (send_request(spawner, REQUEST_SPAWN, &request, fds, n_fds))
        receive_answer(spawner, &answer);
    if (answer.value < 0) {
        errno = answer.code;
        uprof_error_fail_errno(error, "no process for the analysis");
    }
    return answer.value;
}

char *
uprof_spawner_describe_end(int status)
{
    if (status < 0)
        return g_strdup("the process that started it has died");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return g_strdup("it used all its processor time");
    if (WIFSIGNALED(status))
        return g_strdup_printf("it died of signal %d (%s)", WTERMSIG(status),
                               strsignal(WTERMSIG(status)));
    switch (WEXITSTATUS(status)) {
    case UPROF_SPAWNER_EXIT_CUT_OFF:
        return g_strdup("it lost its channel to this program");
    case EXIT_UNSAFE:
        return g_strdup("it could not drop its rights");
    default:
        return NULL;
    }
}

int
uprof_spawner_wait(UprofSpawner *spawner, pid_t worker, unsigned timeout_ms)
{
    const Request request = { .worker = worker, .timeout_ms = timeout_ms };
    Answer answer;

    return send_request(spawner, REQUEST_WAIT, &request, NULL, 0) &&
                   receive_answer(spawner, &answer) && answer.code == 0
               ? answer.value
               : -1;
}
