/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/worker-message-priv.h"

#include <string.h>

#include "uprof/error.h"
#include "uprof/snapshot.h"
#include "uprof/window-size.h"

enum { N_VCPUS = 2, LINKS_BYTES = sizeof(UprofLinks) + N_VCPUS * sizeof(UprofLinksVcpu) };

/* Links of an x86_64 kernel */
static const UprofLinks sound = {
    .kernel_from = UINT64_C(0xffff800000000000),
    .stack_bytes = 16384,
    .irq_bytes = 16384,
    .regs_bytes = 168,
    .regs_len = 168,
    .regs_mode = 136,
    .regs_sp = 152,
    .task_len = 1024,
    .areas = { .is_maple_tree = true,
               .range_pivots = 8,
               .range_slots = 128,
               .n_range_slots = 16,
               .gap_pivots = 8,
               .gap_slots = 80,
               .n_gap_slots = 10,
               .area_len = 144,
               .area_flags = 32,
               .area_file = 136,
               .file_from = 16,
               .file_len = 80 },
    .n_vcpus = N_VCPUS,
};

static UprofWorkerInput input;

static void
put_links(UprofLinks links)
{
    memset(&input, 0, sizeof(input));
    input.links = links;
}

static bool
has_links(UprofLinks links)
{
    put_links(links);
    return uprof_worker_message_has_links(&input, LINKS_BYTES, N_VCPUS);
}

static void
test_links(void)
{
    UprofLinks links = sound;

    g_assert_true(has_links(sound));
    g_assert_false(uprof_worker_message_has_links(&input, LINKS_BYTES - 1, N_VCPUS));
    g_assert_false(uprof_worker_message_has_links(&input, LINKS_BYTES + 1, N_VCPUS));
    g_assert_false(uprof_worker_message_has_links(&input, sizeof(UprofLinks) - 1, N_VCPUS));
    g_assert_false(uprof_worker_message_has_links(&input, LINKS_BYTES, N_VCPUS + 1));
    g_assert_false(uprof_worker_message_has_links(&input, LINKS_BYTES, N_VCPUS - 1));
    links.n_vcpus = UINT32_MAX;
    g_assert_false(has_links(links));
}

#define BAD(member, value)                                                                         \
    do {                                                                                           \
        UprofLinks links = sound;                                                                  \
        links.member = (value);                                                                    \
        g_assert_false(has_links(links));                                                          \
    } while (0)

static void
test_link_numbers(void)
{
    BAD(stack_bytes, 0);
    BAD(stack_bytes, 2048);
    BAD(stack_bytes, 16384 + 8);
    BAD(stack_bytes, 2 * 1024 * 1024);
    BAD(irq_bytes, 1024 * 1024 + 1);
    BAD(regs_bytes, 16384 + 1);
    BAD(regs_len, UPROF_LINKS_REGS_BYTES_MAX + 1);
    BAD(regs_mode, UPROF_LINKS_REGS_BYTES_MAX - 7);
    BAD(regs_sp, UINT32_MAX);
    BAD(task_len, UPROF_LINKS_TASK_BYTES_MAX + 1);
    BAD(task_from, UINT32_C(0x80000000));
}

static void
test_areas(void)
{
    UprofLinks other = sound; /* with a red-black tree */

    BAD(areas.range_slots, 129);
    BAD(areas.n_range_slots, 17);
    BAD(areas.gap_pivots, 256 - 79);
    BAD(areas.gap_slots, UINT16_MAX);
    BAD(areas.n_gap_slots, UINT16_MAX);
    BAD(areas.area_len, UPROF_LINKS_PART_BYTES_MAX + 1);
    BAD(areas.area_from, 33);
    BAD(areas.area_flags, 137);
    BAD(areas.area_file, UINT16_MAX);
    BAD(areas.file_len, 0);
    BAD(areas.file_len, UPROF_LINKS_PART_BYTES_MAX + 1);
    other.areas.is_maple_tree = false;
    other.areas.area_node = 40;
    other.areas.node_left = 16;
    other.areas.node_right = 8;
    g_assert_true(has_links(other));
    other.areas.node_left = 97;
    g_assert_false(has_links(other));
    other.areas.node_left = 16;
    other.areas.node_right = UINT16_MAX;
    g_assert_false(has_links(other));
    other.areas.node_right = 8;
    other.areas.area_from = other.areas.area_flags = 41;
    g_assert_false(has_links(other));
}

static void
test_window(void)
{
    input.window = (UprofWindowTell){ .vcpu = 1, .wanted = UPROF_WINDOW_BYTES_MIN };
    g_assert_true(uprof_worker_message_has_window(&input, sizeof(input.window), N_VCPUS));
    g_assert_false(uprof_worker_message_has_window(&input, sizeof(input.window), 1));
    g_assert_false(uprof_worker_message_has_window(&input, sizeof(input.window) + 1, N_VCPUS));
    input.window.wanted = UPROF_WINDOW_BYTES_MIN - 1;
    g_assert_false(uprof_worker_message_has_window(&input, sizeof(input.window), N_VCPUS));
    input.window.wanted = UPROF_SNAPSHOT_BYTES_MAX + 1;
    g_assert_false(uprof_worker_message_has_window(&input, sizeof(input.window), N_VCPUS));
    input.window.wanted = -1;
    g_assert_false(uprof_worker_message_has_window(&input, sizeof(input.window), N_VCPUS));
}

static bool
list_reads(size_t len)
{
    static uint8_t into[UPROF_READ_BYTES_MAX];
    UprofSpan spans[UPROF_READ_SPANS_MAX];
    unsigned n;
    size_t bytes;

    const bool ok = uprof_worker_message_list_reads(&input, len, into, spans, &n, &bytes);
    for (unsigned i = 0; ok && i < n; i++)
        g_assert_true((uint8_t *)spans[i].into + spans[i].len <= into + bytes);
    return ok;
}

static void
test_reads(void)
{
    const size_t one = sizeof(input.spans[0]);

    input.spans[0] = (UprofReadSpan){ .gpa = UINT64_MAX, .len = UPROF_READ_BYTES_MAX - 1 };
    input.spans[1] = (UprofReadSpan){ .gpa = 0, .len = 1 };
    input.spans[2] = (UprofReadSpan){ .gpa = 0, .len = 1 };
    g_assert_true(list_reads(0));
    g_assert_true(list_reads(2 * one));
    g_assert_false(list_reads(2 * one - 1));
    g_assert_false(list_reads(3 * one)); /* more bytes than a request may read */
    input.spans[1].len = UINT32_MAX;
    g_assert_false(list_reads(2 * one));
    input.spans[1].len = 0;
    g_assert_false(list_reads(2 * one));
    memset(input.bytes, 1, sizeof(input.bytes));
    g_assert_false(list_reads((UPROF_READ_SPANS_MAX + 1) * one));
}

static void
test_notice(void)
{
    UprofNoticeKind kind;
    UprofSlice text;

    memset(input.bytes, 'x', sizeof(input.bytes));
    input.number = UPROF_NOTICE_WARNING;
    g_assert_true(uprof_worker_message_find_notice(&input, 7, &kind, &text));
    g_assert_cmpint(kind, ==, UPROF_NOTICE_WARNING);
    g_assert_cmpmem(text.data, text.len, "xxx", 3);
    g_assert_false(uprof_worker_message_find_notice(&input, 3, &kind, &text));
    g_assert_false(uprof_worker_message_find_notice(
        &input, sizeof(input.number) + 1 + UPROF_NOTICE_BYTES_MAX, &kind, &text));
    input.number = UPROF_NOTICE_WARNING + 1;
    g_assert_false(uprof_worker_message_find_notice(&input, 7, &kind, &text));
}

static void
test_outcome(void)
{
    struct {
        UprofOutcome outcome;
        char text[3];
    } reply = { { UPROF_ERROR_DENIED, 1 }, "no" };
    UprofOutcome outcome;
    UprofSlice text;

    uprof_worker_message_read_outcome((UprofSlice){ &reply, sizeof(reply.outcome) + 2 }, &outcome,
                                      &text);
    g_assert_cmpint(outcome.code, ==, UPROF_ERROR_DENIED);
    g_assert_cmpuint(outcome.is_closed, ==, 1);
    g_assert_cmpmem(text.data, text.len, "no", 2);

    for (size_t len = 0; len < sizeof(reply.outcome); len++) {
        uprof_worker_message_read_outcome((UprofSlice){ &reply, len }, &outcome, &text);
        g_assert_cmpint(outcome.code, ==, UPROF_ERROR_FAILED);
        g_assert_cmpuint(outcome.is_closed, ==, 0);
        g_assert_cmpuint(text.len, ==, 0);
    }
    static const int unknown[] = { -1, UPROF_ERROR_EMPTY + 1, G_MAXINT, G_MININT };
    for (size_t i = 0; i < G_N_ELEMENTS(unknown); i++) {
        reply.outcome.code = unknown[i];
        uprof_worker_message_read_outcome((UprofSlice){ &reply, sizeof(reply) }, &outcome, &text);
        g_assert_cmpint(outcome.code, ==, UPROF_ERROR_FAILED);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/worker-message/links", test_links);
    g_test_add_func("/worker-message/link-numbers", test_link_numbers);
    g_test_add_func("/worker-message/areas", test_areas);
    g_test_add_func("/worker-message/window", test_window);
    g_test_add_func("/worker-message/reads", test_reads);
    g_test_add_func("/worker-message/notice", test_notice);
    g_test_add_func("/worker-message/outcome", test_outcome);
    return g_test_run();
}
