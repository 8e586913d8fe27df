/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/sampler/seen-processes-priv.h"

#include <glib.h>
#include <string.h>

enum { TASK_AT = 0x1000, TASK = 0x2000, MEMORY = 8, NUMBER = 16, TASK_BYTES = 24 };

/* A sample of process @number with this struct mm_struct. */
static void
fill_snapshot(UprofSnapshot *snapshot, uint64_t memory, uint32_t number)
{
    const uint64_t task = GUINT64_TO_LE(TASK);
    uint8_t bytes[TASK_BYTES] = { 0 };

    memory = GUINT64_TO_LE(memory);
    memcpy(bytes + MEMORY, &memory, sizeof(memory));
    memcpy(bytes + NUMBER, &number, sizeof(number));
    uprof_snapshot_clear(snapshot);
    uprof_snapshot_add_window(snapshot, TASK_AT, &task, sizeof(task));
    uprof_snapshot_add_window(snapshot, TASK, bytes, sizeof(bytes));
}

/* clang-format off */
static const struct {
    uint64_t memory;
    uint32_t number;
    bool is_new;
} samples[] = {
    { 0x8000, 7, true },
    { 0x8000, 7, false },
    { 0x8000, 8, true },  /* another process with the memory of the first one */
    { 0x9000, 8, true },  /* another program of the same process */
    { 0x9000, 8, false },
    { 0x8000, 8, false },
    { 0,      9, false }, /* a thread of the kernel */
};
/* clang-format on */

static void
test_add(void)
{
    g_autofree UprofSeenProcesses *seen = g_new0(UprofSeenProcesses, 1);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = g_malloc0(sizeof(*links) + sizeof(links->vcpus[0]));

    links->n_vcpus = 1;
    links->vcpus[0].task_at = TASK_AT;
    links->task_mm = MEMORY;
    links->task_number = NUMBER;
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        fill_snapshot(snapshot, samples[i].memory, samples[i].number);
        g_assert_false(uprof_seen_processes_add(seen, NULL, snapshot));
        g_assert_true(uprof_seen_processes_add(seen, links, snapshot) == samples[i].is_new);
    }
    fill_snapshot(snapshot, 0xa000, 10);
    snapshot->vcpu = 1; /* the links are of one vCPU */
    g_assert_false(uprof_seen_processes_add(seen, links, snapshot));
    uprof_snapshot_clear(snapshot);
    g_assert_false(uprof_seen_processes_add(seen, links, snapshot));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seen-processes/add", test_add);
    return g_test_run();
}
