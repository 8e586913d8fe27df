/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/session-snapshots.h"

#include "uprof/signal-mask.h"

#include "session-priv.h"

enum {
    TRIES_MAX = 4,         /* to find a Linux kernel */
    APART_US = 300 * 1000, /* longer than the worker waits after a search without an image */
    /* Holds in which no vCPU ran the kernel's code, and the time between them, which is random so
     * that the holds do not keep in step with the guest's timer. */
    BLIND_MAX = 60,
    BLIND_US_MIN = 20 * 1000,
    BLIND_US_MAX = 60 * 1000,
};

void
uprof_snapshots_clear(UprofSnapshots *snapshots)
{
    g_free(snapshots->slots);
    g_free(snapshots->pool);
}

static void
init_snapshots(UprofSnapshots *snapshots, unsigned n_vcpus)
{
    *snapshots = (UprofSnapshots){
        .slots = g_new0(UprofSnapshot *, n_vcpus),
        .pool = g_new0(UprofSnapshot, n_vcpus),
    };
    for (unsigned i = 0; i < n_vcpus; i++)
        snapshots->slots[i] = &snapshots->pool[i];
}

/* A run copies more stack after a sample needed it. Here, the largest window is copied at once. */
static void
widen_windows(UprofSession *session)
{
    for (unsigned i = 0; i < session->guest->n_vcpus; i++)
        session->sizes[i].wanted = UPROF_SNAPSHOT_BYTES_MAX;
}

/* Takes snapshots from which the worker may find the kernel. */
static UprofAnswer
take_first(UprofSession *session, UprofSnapshots *snapshots, GError **error)
{
    UprofSnapshot **slots = snapshots->slots;
    const UprofAnswer answer =
        uprof_sampler_sample_once(session->sampler, slots, &snapshots->n, error);

    for (unsigned i = 0; answer == UPROF_OK && i < snapshots->n; i++) {
        slots[i]->is_prime = true;
        uprof_worker_take(session->worker, slots[i]);
        slots[i]->is_prime = false;
    }
    return answer == UPROF_OK && !uprof_worker_sync(session->worker, error) ? UPROF_FAILED : answer;
}

static UprofAnswer
take_twice(UprofSession *session, UprofSnapshots *snapshots, GError **error)
{
    const UprofAnswer answer = take_first(session, snapshots, error);

    return answer == UPROF_OK && *uprof_worker_links(session->worker)
               ? uprof_sampler_sample_once(session->sampler, snapshots->slots, &snapshots->n, error)
               : answer;
}

/* Can no snapshot show where the kernel is? Where the registers have no page-table roots, only the
 * kernel's own code does. */
static bool
is_blind(const UprofSession *session, const UprofSnapshots *snapshots)
{
    for (unsigned i = 0; i < snapshots->n; i++)
        if (snapshots->slots[i]->regs.privilege == 0)
            return false;
    return session->guest->needs_roots;
}

/*
 * The worker reads the guest's memory while the guest runs. If the process of a snapshot ends
 * before, its page tables are gone, and the worker finds no kernel.
 */
static UprofAnswer
take_until_found(UprofSession *session, UprofSnapshots *snapshots, GError **error)
{
    UprofAnswer answer = take_first(session, snapshots, error);

    for (unsigned i = 1, n_blind = 0; answer == UPROF_OK && !session->guest->paused &&
                                      !*uprof_worker_links(session->worker) && i < TRIES_MAX &&
                                      n_blind < BLIND_MAX && !uprof_signal_end_is_pending();) {
        if (is_blind(session, snapshots)) {
            n_blind++;
            g_usleep((gulong)g_random_int_range(BLIND_US_MIN, BLIND_US_MAX));
        } else {
            i++;
            g_usleep(APART_US);
        }
        answer = take_first(session, snapshots, error);
    }
    return answer;
}

static UprofErrorCode
fail_with(const UprofSession *session, const UprofNotices *notices, UprofErrorCode code,
          const char *why)
{
    uprof_notice(notices, UPROF_NOTICE_WARNING, "%s: %s", session->shown, why);
    return code;
}

UprofErrorCode
uprof_session_note_answer(const UprofSession *session, UprofAnswer answer, const GError *error,
                          const UprofNotices *notices)
{
    switch (answer) {
    case UPROF_OK:
    case UPROF_ABSENT:
        return UPROF_ERROR_NONE;
    case UPROF_BUSY:
        return fail_with(session, notices, UPROF_ERROR_NOT_FOUND,
                         "somebody else stops, migrates or saves the domain; try again later");
    case UPROF_STUCK:
        return fail_with(session, notices, UPROF_ERROR_EMPTY,
                         "no vCPU stopped within --max-pause; try a longer one");
    case UPROF_GONE:
        return fail_with(session, notices, UPROF_ERROR_NOT_FOUND, "the domain has just ended");
    default:
        return uprof_notice_error(notices, error);
    }
}

UprofErrorCode
uprof_session_take_snapshots(UprofSession *session, UprofSnapshots *snapshots,
                             const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;

    init_snapshots(snapshots, session->guest->n_vcpus);
    widen_windows(session);
    const UprofAnswer answer = take_twice(session, snapshots, &error);
    return uprof_session_note_answer(session, answer, error, notices);
}

UprofErrorCode
uprof_session_find_linux(UprofSession *session, UprofSnapshots *snapshots,
                         const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;

    init_snapshots(snapshots, session->guest->n_vcpus);
    const UprofAnswer answer = take_until_found(session, snapshots, &error);
    return uprof_session_note_answer(session, answer, error, notices);
}
