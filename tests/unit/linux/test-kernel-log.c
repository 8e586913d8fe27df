/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kernel-log.h"

#include <string.h>

#include "linux-guest.h"
#include "uprof/error.h"

enum { COUNT_BITS = 5, SIZE_BITS = 12 };

/* Reads the log of a guest in which the kernel was found. */
static UprofKernelLog *
read_log(LinuxGuest *guest, GError **error)
{
    g_autoptr(LinuxView) view = linux_view_new(guest);

    linux_view_sample(view, 0);
    return uprof_kernel_log_read(view->kernel, view->mem, error);
}

/* Returns: the text of a log with @texts. @n_left_out: records */
static char *
show_end(const char *const *texts, bool as_json, size_t most, unsigned n_left_out)
{
    const LinuxPlan plan = { .n_vcpus = 1 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_auto(PrintkBuilder) builder;
    g_autoptr(GError) error = NULL;
    GString *out = g_string_new(NULL);

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; texts[i]; i++)
        printk_add(&builder, i % 8, texts[i]);
    linux_guest_put_log(guest, &builder);
    g_autoptr(UprofKernelLog) log = read_log(guest, &error);
    g_assert_no_error(error);
    const unsigned n = as_json ? uprof_kernel_log_append_json(out, log, most)
                               : uprof_kernel_log_append_text(out, log, most);
    g_assert_cmpuint(n, ==, n_left_out);
    return g_string_free(out, FALSE);
}

static char *
show_log(const char *const *texts, bool as_json)
{
    return show_end(texts, as_json, 1000 * 1000, 0);
}

static void
test_text(void)
{
    static const char *const texts[] = { "Linux version 6.1", "",  "two\nlines", "end\n",
                                         "\33[31mred\a;1",    NULL };
    g_autofree char *text = show_log(texts, false);

    g_assert_cmpstr(text, ==,
                    "[    0.000000] Linux version 6.1\n"
                    "[    0.001000] \n"
                    "[    0.002000] two\n"
                    "[    0.002000] lines\n"
                    "[    0.003000] end\n"
                    "[    0.003000] \n"
                    "[    0.004000] ?[31mred?;1\n");
}

static void
test_json(void)
{
    static const char *const texts[] = { "a \"b\"", "two\nlines", NULL };
    g_autofree char *text = show_log(texts, true);

    g_assert_cmpstr(
        text, ==,
        "[\n {\"sequence\": 0, \"time_ns\": 0, \"level\": \"emerg\", \"facility\": 4, \"tid\": "
        "100, "
        "\"text\": \"a \\\"b\\\"\"},"
        "\n {\"sequence\": 1, \"time_ns\": 1000000, \"level\": \"alert\", \"facility\": 4, "
        "\"tid\": 101, \"text\": \"two\\u000alines\"}]\n");
}

static void
test_overwritten(void)
{
    const char *texts[101] = { NULL };

    for (unsigned i = 0; i < 100; i++)
        texts[i] = "a record";
    g_autofree char *text = show_log(texts, false);
    g_assert_true(g_str_has_prefix(text, "[68 records overwritten]\n[    0.068000] a record\n"));
    g_assert_true(g_str_has_suffix(text, "\n[    0.099000] a record\n"));
}

/* @sequences: of records, ended by 0. Returns: the text of the log */
static char *
show_gaps(const unsigned *sequences)
{
    const LinuxPlan plan = { .n_vcpus = 1 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_auto(PrintkBuilder) builder;
    GString *out = g_string_new(NULL);

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; sequences[i]; i++) {
        builder.sequence = sequences[i];
        printk_add(&builder, 6, "a record");
    }
    linux_guest_put_log(guest, &builder);
    g_autoptr(UprofKernelLog) log = read_log(guest, NULL);
    uprof_kernel_log_append_text(out, log, 1000);
    return g_string_free(out, FALSE);
}

/* Only what is missing before the first record was overwritten for certain. */
static void
test_gaps(void)
{
    static const unsigned many[] = { 7, 10, 11, 0 }, few[] = { 1, 3, 0 };
    g_autofree char *several = show_gaps(many);
    g_autofree char *single = show_gaps(few);

    g_assert_cmpstr(several, ==,
                    "[7 records overwritten]\n"
                    "[    0.007000] a record\n"
                    "[2 records missing]\n"
                    "[    0.010000] a record\n"
                    "[    0.011000] a record\n");
    g_assert_cmpstr(single, ==,
                    "[1 record overwritten]\n"
                    "[    0.001000] a record\n"
                    "[1 record missing]\n"
                    "[    0.003000] a record\n");
}

/* A text that is too long lacks its oldest records. */
static void
test_long(void)
{
    static const char *const texts[] = { "a\n\n\n\n\n\n\n\n\n\n", "second", "third", NULL };
    g_autofree char *text = show_end(texts, false, 200, 1);
    g_autofree char *json = show_end(texts, true, 400, 1);
    g_autofree char *nothing = show_end(texts, false, 10, 3);

    g_assert_true(g_str_has_suffix(text, "[    0.001000] second\n[    0.002000] third\n"));
    g_assert_null(strstr(text, "[    0.000000]"));
    g_assert_true(g_str_has_prefix(json, "[\n {\"sequence\": 1, "));
    g_assert_cmpstr(nothing, ==, "");
}

static const struct {
    const char *text, *what; /* NULL: no trouble */
} troubles[] = {
    { "Kernel panic - not syncing: Fatal exception", "a panic" },
    { "Oops: 0002 [#1] PREEMPT SMP PTI", "an oops" },
    { "Oops: 0000 [#1]", "an oops" },
    { "Oops: Oops: 0000 [#12] SMP", "an oops" },
    { "divide error: 0000 [#1] PREEMPT SMP", "an oops" },
    { "stack segment: 0000 [#2] SMP NOPTI", "an oops" },
    { "invalid opcode: 0000 [#1] PREEMPT SMP", "an oops" },
    { "general protection fault: 0000 [#1] SMP", "an oops" },
    { "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
      "an oops" },
    { "Internal error: Oops: 0000000096000004 [#1] SMP", "an oops" },
    { "BUG: kernel NULL pointer dereference, address: 0000000000000008", "an oops" },
    { "BUG: unable to handle page fault for address: ffffffffc0000000", "an oops" },
    { "kernel BUG at mm/slub.c:321!", "an oops" },
    { "Out of memory: Killed process 4711 (java)", "a process that was killed for lack of memory" },
    { "Memory cgroup out of memory: Killed process 4711 (java)",
      "a process that was killed for lack of memory" },
    { "INFO: task sync:12 blocked for more than 120 seconds.", "a task that hangs" },
    { "INFO: task sync:12 blocked in I/O wait for more than 120 seconds.", "a task that hangs" },
    { "watchdog: BUG: soft lockup - CPU#1 stuck for 23s!", "a CPU that hangs" },
    { "watchdog: Watchdog detected hard LOCKUP on cpu 1", "a CPU that hangs" },
    { "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1", "a CPU that hangs" },
    { "rcu: INFO: rcu_preempt self-detected stall on CPU", "a CPU that hangs" },
    { "INFO: rcu_sched detected stalls on CPUs/tasks:", "a CPU that hangs" },
    { "traps: app[12] general protection fault ip:401136 sp:7ffc error:0", NULL },
    /* names of processes */
    { "Oops: [7]: segfault at 0 ip 0 sp 0 error 4", NULL },
    { "Oops: 0000 [#1][7]: segfault at 0 ip 0 sp 0 error 4", NULL },
    { "a: 0000 [#1] b[7]: segfault at 0 ip 0 sp 0 error 4", NULL },
    { "a: 0000 [#1]: page allocation failure: order:0", NULL },
    { "kernel BUG at x[7]: segfault at 0 ip 0 sp 0 error 4 in a![400000+1000]", NULL },
    { "INFO: task a[7]: segfault at 0 in b for more than 1 seconds.[400000+1000]", NULL },
    { "watchdog: [7]: segfault at 0 in BUG: soft lockup[400000+1000]", NULL },
    { "rcu: INFO: rcu_[7]: segfault at 0 in detected stall[400000+1000]", NULL },
    { "hard LOCKUP[7]: segfault at 0 ip 0 sp 0 error 4", NULL },
    { "detected stall[7]: segfault at 0 ip 0 sp 0 error 4", NULL },
    { "process 'Kernel panic - not syncing' launched", NULL },
    { " [#1]", NULL },
    { ": 0000 [#1]", NULL },
    { "x: 000 [#1]", NULL },
    { "x: 0000 [#]", NULL },
    { "x: 0000 [#1", NULL },
    { "", NULL },
    { "systemd[1]: Started session", NULL },
};

static void
test_trouble(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(troubles); i++) {
        const LinuxPlan plan = { .n_vcpus = 1 };
        g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
        g_auto(PrintkBuilder) builder;
        UprofKernelTrouble trouble;
        printk_init(&builder, COUNT_BITS, SIZE_BITS);
        builder.facility = 0;
        printk_add(&builder, 6, "before");
        printk_add(&builder, 0, troubles[i].text);
        printk_add(&builder, 6, "after");
        linux_guest_put_log(guest, &builder);
        g_autoptr(UprofKernelLog) log = read_log(guest, NULL);
        const bool is_found = uprof_kernel_log_find_trouble(log, &trouble);
        g_assert_true(is_found == (troubles[i].what != NULL));
        if (!is_found)
            continue;
        g_assert_cmpstr(trouble.what, ==, troubles[i].what);
        g_assert_cmpuint(trouble.record->sequence, ==, 1);
        g_assert_cmpuint(trouble.age_ns, ==, 1000 * 1000);
        g_assert_false(trouble.is_old);
    }
}

/* A program's own record of trouble does not count; and an old one is marked. The time is in ms. */
static const struct {
    const char *name;
    uint8_t facility;
    unsigned newest_ms;
    bool is_found, is_old;
} ages[] = {
    { "program", 3, 2, false, false },
    { "new", 0, 1 + 3600 * 1000, true, false },
    { "old", 0, 2 + 3600 * 1000, true, true },
};

static void
test_age(gconstpointer data)
{
    const unsigned i = GPOINTER_TO_UINT(data);
    const LinuxPlan plan = { .n_vcpus = 1 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_auto(PrintkBuilder) builder;
    UprofKernelTrouble trouble;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    builder.facility = ages[i].facility;
    builder.sequence = 1;
    printk_add(&builder, 0, "Out of memory: Killed process 4711 (java)");
    builder.facility = 0;
    builder.sequence = ages[i].newest_ms;
    printk_add(&builder, 6, "after");
    linux_guest_put_log(guest, &builder);
    g_autoptr(UprofKernelLog) log = read_log(guest, NULL);
    g_assert_true(uprof_kernel_log_find_trouble(log, &trouble) == ages[i].is_found);
    g_assert_true(!ages[i].is_found || trouble.is_old == ages[i].is_old);
}

/* Members of the struct printk_ringbuffer that lead nowhere. */
static const struct {
    const char *name;
    unsigned at;
    uint64_t value;
} hostile[] = {
    { "count-bits", RING_COUNT_BITS, 60 },
    { "size-bits", RING_SIZE_BITS, 33 },
    { "descs", RING_DESCS, 0 },
    { "infos", RING_INFOS, UINT64_MAX },
    { "text", RING_TEXT, UINT64_C(0x7fff00000000) },
    { "more-than-memory", RING_SIZE_BITS, UPROF_PRINTK_SIZE_BITS_MAX },
};

static void
test_hostile(gconstpointer data)
{
    const unsigned i = GPOINTER_TO_UINT(data);
    const LinuxPlan plan = { .n_vcpus = 1 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_auto(PrintkBuilder) builder;
    g_autoptr(GError) error = NULL;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    printk_add(&builder, 0, "text");
    linux_guest_put_log(guest, &builder);
    const uint64_t ring = linux_guest_get(guest, linux_guest_image(LINUX_LOG)) - LINUX_DIRECT;
    linux_guest_put(guest, ring + hostile[i].at, hostile[i].value);
    g_assert_null(read_log(guest, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

static void
test_no_types(void)
{
    const LinuxPlan plan = { .n_vcpus = 1, .no_types = true };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(GError) error = NULL;

    g_assert_null(read_log(guest, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernel-log/text", test_text);
    g_test_add_func("/kernel-log/json", test_json);
    g_test_add_func("/kernel-log/overwritten", test_overwritten);
    g_test_add_func("/kernel-log/gaps", test_gaps);
    g_test_add_func("/kernel-log/long", test_long);
    g_test_add_func("/kernel-log/trouble", test_trouble);
    for (unsigned i = 0; i < G_N_ELEMENTS(ages); i++) {
        g_autofree char *name = g_strdup_printf("/kernel-log/age/%s", ages[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_age);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autofree char *name = g_strdup_printf("/kernel-log/hostile/%s", hostile[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_hostile);
    }
    g_test_add_func("/kernel-log/no-types", test_no_types);
    return g_test_run();
}
