/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-trouble.c - records of the kernel's log that tell of a crash, a hang or a lack of memory
 *
 * The kernel logs names of processes, which any user of the guest can choose, for example
 * "NAME[PID]: segfault at ... in FILE[...]". So a pattern begins where the record begins, and is
 * longer than such a name (Linux, include/linux/sched.h, TASK_COMM_LEN), or the end of the record
 * must fit as well.
 */
#include "uprof/kernel-log.h"

#include "uprof/scan.h"

#include <string.h>

#define OLD_NS (UINT64_C(3600) * 1000 * 1000 * 1000)

enum {
    OF_KERNEL = 0, /* a facility: Linux, include/linux/syslog.h */
    CODE_DIGITS_MIN = 4,
};

static const char oops[] = "an oops", hang[] = "a task that hangs", stuck[] = "a CPU that hangs",
                  killed[] = "a process that was killed for lack of memory";

/* Sources of the texts in Linux: kernel/panic.c, arch/x86/mm/fault.c, lib/bug.c,
 * arch/x86/kernel/traps.c, mm/oom_kill.c, kernel/hung_task.c, kernel/watchdog.c,
 * kernel/watchdog_hld.c and kernel/rcu/tree_stall.h. */
static const struct {
    const char *start;
    const char *part; /* somewhere behind @start; or NULL */
    const char *end;  /* of the record; or NULL */
    const char *what;
} patterns[] = {
    { "Kernel panic - not syncing", NULL, NULL, "a panic" },
    { "BUG: unable to handle", NULL, NULL, oops },
    { "BUG: kernel NULL pointer dereference", NULL, NULL, oops },
    { "kernel BUG at ", NULL, "!", oops },
    { "general protection fault, ", NULL, NULL, oops },
    { "Out of memory: Killed process", NULL, NULL, killed },
    { "Memory cgroup out of memory: Killed process", NULL, NULL, killed },
    { "INFO: task ", " for more than ", " seconds.", hang },
    { "BUG: soft lockup - CPU#", NULL, NULL, stuck },
    { "watchdog: BUG: soft lockup", NULL, NULL, stuck },
    { "watchdog: Watchdog detected hard LOCKUP", NULL, NULL, stuck },
    { "NMI watchdog: Watchdog detected hard LOCKUP", NULL, NULL, stuck },
    { "INFO: rcu_sched ", "detected stall", NULL, stuck },
    { "INFO: rcu_preempt ", "detected stall", NULL, stuck },
    { "rcu: INFO: rcu_sched ", "detected stall", NULL, stuck },
    { "rcu: INFO: rcu_preempt ", "detected stall", NULL, stuck },
};

/* Returns: what is behind @start; without data if @text does not begin with it */
static UprofSlice
skip_start(UprofSlice text, const char *start)
{
    const size_t len = strlen(start);

    if (text.len < len || memcmp(text.data, start, len) != 0)
        return (UprofSlice){ NULL, 0 };
    return (UprofSlice){ (const char *)text.data + len, text.len - len };
}

static bool
has_text(UprofSlice text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

static bool
ends_with(UprofSlice text, const char *end)
{
    const size_t len = strlen(end);

    return text.len >= len && memcmp((const char *)text.data + text.len - len, end, len) == 0;
}

/* Does a code of hexadecimal digits end before @end, with ": " in front of it? */
static bool
ends_with_code(const char *text, const char *end)
{
    const char *at = end;

    while (at > text && g_ascii_isxdigit(at[-1]))
        at--;
    return end - at >= CODE_DIGITS_MIN && at - text > 2 && at[-1] == ' ' && at[-2] == ':';
}

/*
 * The first line of an oops is "KIND: CODE [#NUMBER] WORDS", where the words say how the kernel is
 * built (Linux, arch/x86/kernel/dumpstack.c, __die_header(); arch/arm64/kernel/traps.c, __die()). A
 * record about a process of such a name has "[" or ":" behind it.
 */
static bool
is_oops_header(UprofSlice text)
{
    static const char mark[] = " [#";
    const char *start = text.data, *end = start + text.len;
    const char *at = memmem(start, text.len, mark, sizeof(mark) - 1);

    if (!at || !ends_with_code(start, at))
        return false;
    const char *digits = at + sizeof(mark) - 1;
    for (at = digits; at < end && g_ascii_isdigit(*at); at++)
        ;
    if (at == digits || at == end || *at != ']')
        return false;
    for (at++; at < end && *at != '[' && *at != ':'; at++)
        ;
    return at == end;
}

/* Returns: (nullable): what the record tells of; literal */
static const char *
find_meaning(UprofSlice text)
{
    if (!text.data)
        return NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(patterns); i++) {
        const UprofSlice rest = skip_start(text, patterns[i].start);
        if (rest.data && (!patterns[i].part || has_text(rest, patterns[i].part)) &&
            (!patterns[i].end || ends_with(rest, patterns[i].end)))
            return patterns[i].what;
    }
    return is_oops_header(text) ? oops : NULL;
}

bool
uprof_kernel_log_find_trouble(const UprofKernelLog *log, UprofKernelTrouble *trouble)
{
    const GArray *records = uprof_kernel_log_records(log);

    for (guint i = records->len; i-- > 0;) {
        const UprofPrintkRecord *record = &g_array_index(records, UprofPrintkRecord, i);
        const uint64_t newest_ns =
            g_array_index(records, UprofPrintkRecord, records->len - 1).time_ns;
        const char *what = record->facility == OF_KERNEL ? find_meaning(record->text) : NULL;
        if (!what)
            continue;
        const uint64_t age_ns = newest_ns > record->time_ns ? newest_ns - record->time_ns : 0;
        *trouble = (UprofKernelTrouble){ record, what, age_ns, age_ns > OLD_NS };
        return true;
    }
    return false;
}
