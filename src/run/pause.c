/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pause-priv.h"

#include "uprof/clock.h"
#include "uprof/signal-mask.h"

#include <poll.h>

enum { STEP_MS = 10 }; /* between two looks for a signal */

/* The hold and its thread. */
typedef struct {
    const UprofPauseInput *input;
    GThread *thread;
    GMutex lock; /* guards the members below while the thread runs */
    GCond changed;
    bool is_answered;   /* @answer is known */
    bool is_over;       /* the call has ended */
    UprofAnswer answer; /* for the hold */
    UprofPauseEnd end;
    uint64_t held_ns;
    GError *error; /* (nullable): owned: of the hold, or of its release */
} Pause;

void
uprof_pause_result_clear(UprofPauseResult *result)
{
    g_clear_pointer(&result->reply, g_byte_array_unref);
}

/* ---- The thread that holds ---- */

static UprofAnswer
hold_guest(const UprofPauseInput *input, UprofHold *hold, GError **error)
{
    UprofGuest *guest = input->guest;

    if (guest->grain != UPROF_GRAIN_GUEST) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "access '%s' cannot hold the whole guest, as --pause asks for",
                    guest->ops->name);
        return UPROF_FAILED;
    }
    const UprofAnswer answer = uprof_guest_vet(guest, 0, error);
    /* an idle guest is held, too, because it may go on at any time */
    if (answer != UPROF_OK && answer != UPROF_IDLE)
        return answer;
    guest->worker_reads = true;
    return uprof_guest_hold(guest, 0, hold, error);
}

static bool
is_interrupted(const Pause *pause)
{
    struct pollfd wait = { .fd = pause->input->guardian, .events = POLLIN };

    return uprof_signal_end_is_pending() || poll(&wait, 1, 0) > 0;
}

/* Called with the lock. Returns: why the hold must end now */
static UprofPauseEnd
wait_for_end(Pause *pause, uint64_t until_ns)
{
    while (!pause->is_over) {
        const uint64_t now_ns = uprof_clock_now_ns();
        if (is_interrupted(pause))
            return UPROF_PAUSE_INTERRUPTED;
        if (now_ns >= until_ns)
            return UPROF_PAUSE_TOO_LONG;
        const uint64_t step_ns = MIN(until_ns - now_ns, STEP_MS * UPROF_NS_PER_MS);
        g_cond_wait_until(&pause->changed, &pause->lock,
                          g_get_monotonic_time() + (gint64)(step_ns / UPROF_NS_PER_US) + 1);
    }
    return UPROF_PAUSE_DONE;
}

static gpointer
run_hold(gpointer data)
{
    Pause *pause = data;
    g_auto(UprofHold) hold = { 0 };
    const UprofAnswer answer = hold_guest(pause->input, &hold, &pause->error);

    g_mutex_lock(&pause->lock);
    pause->answer = answer;
    pause->is_answered = true;
    g_cond_broadcast(&pause->changed);
    if (answer == UPROF_OK)
        pause->end = wait_for_end(pause, hold.stopped_since_ns + pause->input->limit_ns);
    g_mutex_unlock(&pause->lock);
    /* that the guest has ended is no failure: the worker says what could be read */
    uprof_hold_release(&hold, &pause->held_ns, NULL, &pause->error);
    pause->input->guest->worker_reads = false;
    return NULL;
}

/* ---- The thread that calls the worker ---- */

static bool
start_hold(Pause *pause, GError **error)
{
    sigset_t before;

    g_mutex_init(&pause->lock);
    g_cond_init(&pause->changed);
    uprof_signal_mask_block(&before);
    pause->thread = g_thread_try_new("pause", run_hold, pause, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pause->thread != NULL;
}

static UprofAnswer
wait_for_answer(Pause *pause)
{
    g_mutex_lock(&pause->lock);
    while (!pause->is_answered)
        g_cond_wait(&pause->changed, &pause->lock);
    const UprofAnswer answer = pause->answer;
    g_mutex_unlock(&pause->lock);
    return answer;
}

/* The call has ended: ends the hold, if it still lasts, and its thread. */
static void
end_hold(void *data)
{
    Pause *pause = data;

    g_mutex_lock(&pause->lock);
    pause->is_over = true;
    g_cond_broadcast(&pause->changed);
    g_mutex_unlock(&pause->lock);
    g_thread_join(pause->thread);
}

/* A failed release replaces any other error, because the guest may still be stopped. */
static UprofAnswer
finish_call(Pause *pause, bool is_called, GError *failure, UprofPauseResult *result, GError **error)
{
    result->end = pause->end;
    result->held_ns = pause->held_ns;
    if (pause->error) {
        g_clear_error(&failure);
        g_propagate_error(error, pause->error);
        return UPROF_FAILED;
    }
    if (is_called)
        return UPROF_OK;
    g_propagate_error(error, failure);
    return UPROF_FAILED;
}

UprofAnswer
uprof_pause_call(const UprofPauseInput *input, UprofPauseResult *result, GError **error)
{
    Pause pause = { .input = input };
    GError *failure = NULL;

    *result = (UprofPauseResult){ 0 };
    if (!start_hold(&pause, error))
        return UPROF_FAILED;
    UprofAnswer answer = wait_for_answer(&pause);
    if (answer == UPROF_OK) {
        const bool is_called = uprof_worker_call_then(input->worker, input->call, input->argument,
                                                      end_hold, &pause, &result->reply, &failure);
        answer = finish_call(&pause, is_called, failure, result, error);
    } else {
        end_hold(&pause);
        if (pause.error)
            g_propagate_error(error, pause.error);
    }
    g_cond_clear(&pause.changed);
    g_mutex_clear(&pause.lock);
    return answer;
}
