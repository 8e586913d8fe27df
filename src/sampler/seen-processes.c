/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seen-processes-priv.h"

/*
 * The number alone is not enough: a program that replaces another one has its number. A later
 * process may get the same struct mm_struct.
 *
 * Returns: 0 if the sample is of no process
 */
static uint64_t
find_key(const UprofLinks *links, const UprofSnapshot *snapshot)
{
    uint64_t task, memory;
    uint32_t number;

    if (!uprof_snapshot_read_word(snapshot, links->vcpus[snapshot->vcpu].task_at, &task) ||
        !uprof_snapshot_read_word(snapshot, task + links->task_mm, &memory) || memory == 0 ||
        !uprof_snapshot_read(snapshot, task + links->task_number, &number, sizeof(number)))
        return 0;
    return memory ^ (uint64_t)number << 48 ^ number;
}

bool
uprof_seen_processes_add(UprofSeenProcesses *seen, const UprofLinks *links,
                         const UprofSnapshot *snapshot)
{
    const uint64_t key = links && snapshot->vcpu < links->n_vcpus ? find_key(links, snapshot) : 0;
    uint64_t *known =
        &seen->keys[(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % UPROF_SEEN_PROCESSES];

    if (key == 0 || *known == key)
        return false;
    *known = key;
    return true;
}
