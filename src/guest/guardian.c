/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/guardian.h"

#include "uprof/clock.h"
#include "uprof/process-stat.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include "guest-priv.h"
#include "marker-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GUARDED_MAX = 1024,
    MESSAGE_BYTES_MAX = 4096,
    CHECK_MS = 250,             /* between checks of how old the holds are */
    STOPPED_HOLD_S = 2,         /* limit for a hold of a profiler that is itself stopped */
    STUCK_HOLD_S = 70,          /* limit for a running profiler, which itself retries for 60 s */
    WATCH_REPLY_MS = 60 * 1000, /* the socket of a daemon may have to start it first */
    END_REPLY_MS = 75 * 1000,
    RETRY_MAX_MS = 1000,
    END_RETRY_S = 60,           /* while the profiler waits for the answer */
    ORPHAN_RETRY_S = 24 * 3600, /* after the profiler's death: a guest is stopped */
    HEAL_RETRY_S = 5,
    OOM_SCORE_ADJ = 500,
};

/* Requests, one per packet; WATCH carries the marker's descriptor, FORGET a UUID. */
enum { REQUEST_WATCH = 'W', REQUEST_FORGET = 'F', REQUEST_END = 'E' };

typedef struct {
    char request;
    char uuid[UPROF_MARKER_UUID_BYTES];
} Request;

/* The answer to a request that has succeeded; else the answer is "CODE MESSAGE", an error. */
#define YES "+"

struct _UprofGuardian {
    pid_t pid;
    int fd;
};

typedef struct {
    UprofMarker *marker; /* owned */
    UprofMarkerInfo info;
    UprofGuest *guest; /* owned; NULL while the connection is lost */
} Guarded;

/* The guardian's own state. */
typedef struct {
    UprofGuardianFind find;
    int fd;       /* socket to the profiler */
    int profiler; /* pidfd; -1: not known */
    pid_t profiler_pid;
    Guarded guarded[GUARDED_MAX];
    unsigned n_guarded;
} Guard;

/* One guest that a thread of the guardian resumes. */
typedef struct {
    UprofGuardianFind find;
    Guarded *guarded; /* borrowed */
    unsigned seconds; /* how long to retry */
    GError *error;    /* owned; NULL: the guest runs */
} Rescue;

static UprofGuest *
open_for_rescue(UprofGuardianFind find, UprofMarker *marker, const UprofMarkerInfo *info,
                GError **error)
{
    const UprofGuestOps *ops = find(info->access);
    const UprofTarget target = {
        .uri = info->uri[0] ? info->uri : NULL,
        .uuid = info->uuid,
        .name = info->name,
        .id = info->id,
        .rescue_only = true,
        .marker = marker,
    };

    if (!ops) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "this program has no access '%s'",
                    info->access);
        return NULL;
    }
    return uprof_guest_open(ops, &target, error);
}

/* The number and the start time identify the process that runs a guest. */
static bool
is_same_process(const UprofMarkerInfo *info)
{
    return info->qemu_pid == 0 || uprof_process_stat_start(info->qemu_pid) == info->qemu_start;
}

/*
 * libvirt does not know a domain that has ended. A daemon that is just starting may not know a
 * running domain either. So if the domain's process is known, only the end of the process counts.
 */
static bool
has_ended(const Guarded *guarded, const GError *failure)
{
    return guarded->info.qemu_pid == 0 &&
           g_error_matches(failure, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
}

/* Returns: true if the hold is over: the guest was resumed, or has ended */
static bool
try_release(UprofGuardianFind find, Guarded *guarded, UprofHeld held, GError **error)
{
    if (!is_same_process(&guarded->info))
        return true;
    if (!guarded->guest)
        guarded->guest = open_for_rescue(find, guarded->marker, &guarded->info, error);
    if (!guarded->guest)
        return has_ended(guarded, *error);
    return uprof_guest_rescue(guarded->guest, held != UPROF_HELD_YES, error);
}

/*
 * Resumes one guest. Retries with new connections.
 * @seconds: 0: only one try
 */
static bool
release_guest(UprofGuardianFind find, Guarded *guarded, unsigned seconds, GError **error)
{
    const uint64_t until_ns = uprof_clock_now_ns() + seconds * UPROF_NS_PER_S;
    unsigned wait_ms = 10;

    for (;;) {
        g_autoptr(GError) failure = NULL;
        const UprofHeld held = uprof_marker_held(guarded->marker, NULL);

        if (held == UPROF_HELD_NOT)
            return true;
        if (try_release(find, guarded, held, &failure)) {
            uprof_marker_set_held(guarded->marker, UPROF_HELD_NOT);
            return true;
        }
        g_clear_pointer(&guarded->guest, uprof_guest_close);
        if (uprof_clock_now_ns() >= until_ns) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        g_usleep(wait_ms * 1000);
        wait_ms = MIN(wait_ms * 2, (unsigned)RETRY_MAX_MS);
    }
}

static gpointer
rescue_one(gpointer data)
{
    Rescue *rescue = data;

    release_guest(rescue->find, rescue->guarded, rescue->seconds, &rescue->error);
    return NULL;
}

static void
set_left_held(GError **error, const UprofMarkerInfo *info, const GError *why)
{
    const char *word = uprof_text_shell_word(info->name, info->uuid);
    /* libvirt does not know that a domain was paused through Xen itself */
    g_autofree char *resume = strcmp(info->access, "xen") == 0
                                  ? g_strdup_printf("xl unpause %d", (int)info->id)
                                  : g_strdup_printf("virsh resume %s", word);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD,
                "%s MAY STILL BE STOPPED. Run: virt-uprof check --heal %s   or: %s   (%s)",
                info->name, word, resume, why->message);
}

/* Resumes all guests at the same time: a slow daemon must not delay guests of another daemon. */
static bool
release_all_guests(Guard *guard, unsigned seconds, GError **error)
{
    g_autofree Rescue *rescues = g_new0(Rescue, guard->n_guarded + 1);
    g_autofree GThread **threads = g_new0(GThread *, guard->n_guarded + 1);
    bool ok = true;

    for (unsigned i = 0; i < guard->n_guarded; i++) {
        if (uprof_marker_held(guard->guarded[i].marker, NULL) == UPROF_HELD_NOT)
            continue;
        rescues[i] = (Rescue){ guard->find, &guard->guarded[i], seconds, NULL };
        threads[i] = g_thread_try_new("rescue", rescue_one, &rescues[i], NULL);
        /* the limit that killed the profiler may also forbid new threads */
        if (!threads[i])
            rescue_one(&rescues[i]);
    }
    for (unsigned i = 0; i < guard->n_guarded; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
        if (!rescues[i].error)
            continue;
        if (ok)
            set_left_held(error, &guard->guarded[i].info, rescues[i].error);
        g_clear_error(&rescues[i].error);
        ok = false;
    }
    return ok;
}

static bool
has_hung_up(const Guard *guard)
{
    struct pollfd wait = { .fd = guard->fd };

    return poll(&wait, 1, 0) > 0 && (wait.revents & POLLHUP);
}

static void
send_answer(const Guard *guard, const GError *error)
{
    g_autofree char *text =
        error ? g_strdup_printf("%d %s", error->code, error->message) : g_strdup(YES);
    const size_t len = MIN(strlen(text), (size_t)MESSAGE_BYTES_MAX);

    /* a live profiler goes on without this guardian; a dead profiler shows as end of file */
    if (send(guard->fd, text, len, MSG_NOSIGNAL) < 0 && !has_hung_up(guard))
        _exit(1);
}

static void
watch_guest(Guard *guard, int fd)
{
    g_autoptr(GError) error = NULL;
    Guarded *guarded = &guard->guarded[guard->n_guarded];

    if (fd < 0 || guard->n_guarded == GUARDED_MAX) {
        if (fd >= 0)
            close(fd);
        g_set_error(&error, UPROF_ERROR, UPROF_ERROR_FAILED, "too many guests for one guardian");
        send_answer(guard, error);
        return;
    }
    *guarded = (Guarded){ .marker = uprof_marker_adopt(fd, &error) };
    if (guarded->marker && uprof_marker_get_info(guarded->marker, &guarded->info))
        guarded->guest = open_for_rescue(guard->find, guarded->marker, &guarded->info, &error);
    else if (!error)
        g_set_error(&error, UPROF_ERROR, UPROF_ERROR_FAILED, "the marker does not name a guest");
    if (error)
        g_clear_pointer(&guarded->marker, uprof_marker_close);
    else
        guard->n_guarded++;
    send_answer(guard, error);
}

/* Closes the marker before the answer, because the answer promises that the lock is free. */
static void
forget_guest(Guard *guard, const char *uuid)
{
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < guard->n_guarded; i++) {
        Guarded *guarded = &guard->guarded[i];
        if (strcmp(guarded->info.uuid, uuid) != 0)
            continue;
        g_autoptr(GError) why = NULL;
        if (!release_guest(guard->find, guarded, END_RETRY_S, &why)) {
            set_left_held(&error, &guarded->info, why);
            break;
        }
        uprof_guest_close(guarded->guest);
        uprof_marker_close(guarded->marker);
        *guarded = guard->guarded[--guard->n_guarded];
        break;
    }
    send_answer(guard, error);
}

/* @uuid: (out): %UPROF_MARKER_UUID_BYTES. Returns: the request; 0 at end of file */
static char
receive_request(const Guard *guard, int *fd, char *uuid)
{
    Request request = { 0 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { &request, sizeof(request) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof(control) };
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(guard->fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    request.uuid[sizeof(request.uuid) - 1] = '\0';
    memcpy(uuid, request.uuid, sizeof(request.uuid));
    return request.request;
}

static void
kill_profiler(const Guard *guard)
{
    if (guard->profiler >= 0)
        syscall(SYS_pidfd_send_signal, guard->profiler, SIGKILL, NULL, 0);
    else if (getppid() == guard->profiler_pid)
        kill(guard->profiler_pid, SIGKILL);
}

/*
 * Resumes guests that the profiler could not resume. Kills a profiler that holds a guest if the
 * profiler is itself stopped, or the hold is longer than all retries of the profiler take. End of
 * file then starts the rescue. A stop that is only asked for has no limit, because the stop may
 * wait for a daemon.
 */
static void
check_holds(Guard *guard)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    for (unsigned i = 0; i < guard->n_guarded; i++) {
        Guarded *guarded = &guard->guarded[i];
        uint64_t since_ns = 0;
        const UprofHeld held = uprof_marker_held(guarded->marker, &since_ns);
        if (held == UPROF_HELD_LEFT)
            release_guest(guard->find, guarded, 0, NULL);
        if (held == UPROF_HELD_NOT || held == UPROF_HELD_LEFT ||
            now_ns < since_ns + STOPPED_HOLD_S * UPROF_NS_PER_S)
            continue;
        if (uprof_process_stat_is_stopped(guard->profiler_pid) ||
            (held == UPROF_HELD_YES && now_ns > since_ns + STUCK_HOLD_S * UPROF_NS_PER_S))
            kill_profiler(guard);
    }
}

static int
serve_requests(Guard *guard)
{
    for (;;) {
        struct pollfd waits = { .fd = guard->fd, .events = POLLIN };
        g_autoptr(GError) error = NULL;
        char uuid[UPROF_MARKER_UUID_BYTES];
        int fd = -1;

        if (poll(&waits, 1, guard->n_guarded > 0 ? CHECK_MS : -1) == 0) {
            check_holds(guard);
            continue;
        }
        switch (receive_request(guard, &fd, uuid)) {
        case REQUEST_WATCH:
            watch_guest(guard, fd);
            break;
        case REQUEST_FORGET:
            forget_guest(guard, uuid);
            break;
        case REQUEST_END:
            release_all_guests(guard, END_RETRY_S, &error);
            send_answer(guard, error);
            return 0;
        default:
            return release_all_guests(guard, ORPHAN_RETRY_S, &error) ? 0 : 1;
        }
    }
}

/* Returns: false if a descriptor could not be moved */
static bool
keep_descriptor(int fd, int keep)
{
    const int opened = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int null = fcntl(opened, F_DUPFD_CLOEXEC, 100); /* not one of the numbers used below */
    bool ok = null >= 0 && (fd == keep || dup3(fd, keep, O_CLOEXEC) >= 0);

    for (int i = 0; i < keep; i++)
        ok = ok && dup2(null, i) >= 0;
    return ok;
}

/*
 * The guardian keeps its socket to the profiler. It leaves the session and the terminal, and closes
 * all other descriptors.
 */
static int
leave_profiler(int fd)
{
    static const int ignored[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,
                                   SIGTTIN, SIGTTOU, SIGPIPE, SIGUSR1, SIGUSR2 };
    const int keep = STDERR_FILENO + 1;

    setsid();
    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "uprof-guardian");
    /* with a wrong socket the guardian would not see the end of the profiler */
    if (!keep_descriptor(fd, keep))
        _exit(1);
    closefrom(keep + 1);
    return keep;
}

static G_GNUC_NORETURN void
run_guardian(UprofGuardianFind find, int fd, pid_t profiler)
{
    Guard *guard = g_new0(Guard, 1);

    guard->find = find;
    guard->fd = leave_profiler(fd);
    guard->profiler = (int)syscall(SYS_pidfd_open, profiler, 0);
    guard->profiler_pid = profiler;
    if (getppid() != profiler) {
        /* the profiler has died, and its number may be reused; the socket's end of file follows */
        close(guard->profiler);
        guard->profiler = -1;
    }
    _exit(serve_requests(guard));
}

/* Makes the kernel kill the profiler before the guardian if memory runs out. */
static void
raise_oom_score(void)
{
    g_autofree char *score = g_strdup_printf("%d\n", OOM_SCORE_ADJ);

    g_file_set_contents_full("/proc/self/oom_score_adj", score, -1, G_FILE_SET_CONTENTS_NONE, 0644,
                             NULL);
}

UprofGuardian *
uprof_guardian_start(UprofGuardianFind find, GError **error)
{
    int pair[2];
    const pid_t profiler = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot make a socket pair: %s",
                    g_strerror(errno));
        return NULL;
    }
    const pid_t pid = fork();
    if (pid == 0)
        run_guardian(find, pair[1], profiler);
    close(pair[1]);
    if (pid < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot fork the guardian: %s",
                    g_strerror(errno));
        close(pair[0]);
        return NULL;
    }
    raise_oom_score();
    UprofGuardian *guardian = g_new0(UprofGuardian, 1);
    guardian->pid = pid;
    guardian->fd = pair[0];
    return guardian;
}

static bool
read_answer(const UprofGuardian *guardian, int wait_ms, GError **error)
{
    char text[MESSAGE_BYTES_MAX + 1];
    struct pollfd waits = { .fd = guardian->fd, .events = POLLIN };
    struct iovec part = { text, MESSAGE_BYTES_MAX };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    uint64_t code = UPROF_ERROR_FAILED;
    ssize_t n = -1;
    int ready;

    do
        ready = poll(&waits, 1, wait_ms);
    while (ready < 0 && errno == EINTR);
    if (ready > 0)
        n = recvmsg(guardian->fd, &message, 0);
    if (n <= 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "the guardian process %s",
                    ready == 0 ? "does not answer" : "has died");
        /* a late answer must not be treated as the answer to the next request */
        shutdown(guardian->fd, SHUT_RDWR);
        return false;
    }
    text[n] = '\0';
    if (strcmp(text, YES) == 0)
        return true;
    const char *blank = strchr(text, ' ');
    if (blank)
        uprof_slice_to_uint((UprofSlice){ text, (size_t)(blank - text) }, 10, 0,
                            UPROF_ERROR_LEFT_HELD, &code);
    g_set_error(error, UPROF_ERROR, (gint)code, "%s", blank ? blank + 1 : text);
    return false;
}

static bool
send_request(const UprofGuardian *guardian, char kind, const char *uuid, int fd, GError **error)
{
    Request request = { .request = kind };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec part = { &request, sizeof(request) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    g_strlcpy(request.uuid, uuid, sizeof(request.uuid));
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    if (sendmsg(guardian->fd, &message, MSG_NOSIGNAL) == sizeof(request))
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "the guardian process has died");
    return false;
}

bool
uprof_guardian_watch(UprofGuardian *guardian, UprofMarker *marker, GError **error)
{
    return send_request(guardian, REQUEST_WATCH, "", uprof_marker_fd(marker), error) &&
           read_answer(guardian, WATCH_REPLY_MS, error);
}

bool
uprof_guardian_forget(UprofGuardian *guardian, const char *uuid, GError **error)
{
    return send_request(guardian, REQUEST_FORGET, uuid, -1, error) &&
           read_answer(guardian, END_REPLY_MS, error);
}

int
uprof_guardian_fd(const UprofGuardian *guardian)
{
    return guardian->fd;
}

bool
uprof_guardian_end(UprofGuardian *guardian, GError **error)
{
    if (!guardian)
        return true;
    const bool ok = send_request(guardian, REQUEST_END, "", -1, error) &&
                    read_answer(guardian, END_REPLY_MS, error);

    close(guardian->fd);
    while (waitpid(guardian->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    g_free(guardian);
    return ok;
}

bool
uprof_guardian_heal_marker(UprofGuardianFind find, UprofMarker *marker, bool *was_held,
                           GError **error)
{
    Guarded guarded = { .marker = marker };
    g_autoptr(GError) why = NULL;

    *was_held = uprof_marker_get_info(marker, &guarded.info) &&
                uprof_marker_held(marker, NULL) != UPROF_HELD_NOT;
    if (!*was_held)
        return true;
    const bool ok = release_guest(find, &guarded, HEAL_RETRY_S, &why);
    uprof_guest_close(guarded.guest);
    if (!ok)
        set_left_held(error, &guarded.info, why);
    return ok;
}

/* Reports a flagged guest whose marker cannot be opened. @why: the reason */
static void
report_closed_marker(const char *uuid, const GError *why, UprofGuardianHealed healed, void *data)
{
    g_autoptr(GError) error = NULL;
    UprofMarkerInfo info = { .id = -1 };

    g_strlcpy(info.uuid, uuid, sizeof(info.uuid));
    g_strlcpy(info.name, uuid, sizeof(info.name));
    set_left_held(&error, &info, why);
    healed(uuid, error, data);
}

/* Returns: false if the guest may still be stopped */
static bool
heal_guest(UprofGuardianFind find, const char *uuid, UprofGuardianHealed healed, void *data)
{
    g_autoptr(GError) error = NULL;
    bool taken = false;
    UprofMarkerInfo info;
    bool was_held;

    /* this check takes no lock: a run that begins just now must not find the lock taken */
    if (!uprof_marker_is_flagged(uuid))
        return true;
    g_autoptr(GError) why = NULL;
    g_autoptr(UprofMarker) marker = uprof_marker_open(uuid, &taken, &why);
    /* a locked marker belongs to a run with its own guardian */
    if (!marker && !taken)
        report_closed_marker(uuid, why, healed, data);
    if (!marker)
        return taken;
    if (!uprof_marker_get_info(marker, &info))
        return true;
    const bool ok = uprof_guardian_heal_marker(find, marker, &was_held, &error);
    if (was_held)
        healed(info.name, error, data);
    return ok;
}

bool
uprof_guardian_heal(UprofGuardianFind find, UprofGuardianHealed healed, void *data)
{
    g_autoptr(GPtrArray) uuids = uprof_marker_list();
    bool ok = true;

    for (guint i = 0; i < uuids->len; i++)
        ok = heal_guest(find, g_ptr_array_index(uuids, i), healed, data) && ok;
    return ok;
}
