/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cases that need no guest. Tests with real guests cover all others. */
#include "../../../src/backend/kvm-vcpu-priv.h"

#include "uprof/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 1000 };

static pid_t
start_child(void)
{
    const pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

static void
end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, NULL, __WALL), ==, pid);
}

static pid_t
find_tracer(pid_t pid)
{
    UprofThreadStatus status;

    g_assert_true(uprof_thread_status(pid, &status));
    return status.tracer;
}

/* If the thread has ended and another one has its number, the other thread is not held. */
static void
test_other_thread(void)
{
    UprofTracer tracer;
    const pid_t first = start_child(), second = start_child();
    UprofKvmVcpu vcpu = {
        .thread = uprof_thread_open(first, first, NULL),
        .tracee.thread = first,
    };

    uprof_tracer_init(&tracer);
    UprofTraceAnswer answer = uprof_kvm_vcpu_stop(&vcpu, &tracer, LIMIT_MS * UPROF_NS_PER_MS);
    if (answer == UPROF_TRACE_DENIED) {
        g_test_skip("this host does not let the test trace");
    } else {
        g_assert_cmpint(answer, ==, UPROF_TRACE_STOPPED);
        g_assert_cmpint(find_tracer(first), ==, gettid());
        uprof_tracee_release(&vcpu.tracee);
        g_assert_true(uprof_thread_exists(vcpu.thread));
        end_child(first);
        g_assert_false(uprof_thread_exists(vcpu.thread));
        vcpu.tracee = (UprofTracee){ .thread = second };
        answer = uprof_kvm_vcpu_stop(&vcpu, &tracer, LIMIT_MS * UPROF_NS_PER_MS);
        g_assert_cmpint(answer, ==, UPROF_TRACE_GONE);
        g_assert_cmpint(vcpu.tracee.state, ==, UPROF_TRACEE_DETACHED);
        g_assert_cmpint(find_tracer(second), ==, 0);
    }
    uprof_tracer_clear(&tracer);
    uprof_thread_close(vcpu.thread);
    end_child(second);
    if (answer == UPROF_TRACE_DENIED)
        end_child(first);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kvm-vcpu/other-thread", test_other_thread);
    return g_test_run();
}
