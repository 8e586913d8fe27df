/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker-message-priv.h"

#include "uprof/capture.h"
#include "uprof/error.h"
#include "uprof/window-size.h"

#include <string.h>

enum { STACK_BYTES_MAX = 1024 * 1024 }; /* of a kernel stack */

bool
uprof_worker_message_list_reads(const UprofWorkerInput *input, size_t len, uint8_t *into,
                                UprofSpan *spans, unsigned *n, size_t *bytes)
{
    *bytes = 0;
    *n = (unsigned)(len / sizeof(input->spans[0]));
    if (len % sizeof(input->spans[0]) != 0 || *n > UPROF_READ_SPANS_MAX)
        return false;
    for (unsigned i = 0; i < *n; i++) {
        const UprofReadSpan *wanted = &input->spans[i];
        if (wanted->len == 0 || wanted->len > UPROF_READ_BYTES_MAX - *bytes)
            return false;
        spans[i] = (UprofSpan){ .gpa = wanted->gpa, .into = into + *bytes, .len = wanted->len };
        *bytes += wanted->len;
    }
    return true;
}

bool
uprof_worker_message_find_notice(const UprofWorkerInput *input, size_t len, UprofNoticeKind *kind,
                                 UprofSlice *text)
{
    const size_t head = sizeof(input->number);

    if (len < head || len > head + UPROF_NOTICE_BYTES_MAX || input->number > UPROF_NOTICE_WARNING)
        return false;
    *kind = (UprofNoticeKind)input->number;
    *text = (UprofSlice){ input->bytes + head, len - head };
    return true;
}

static bool
are_sound_nodes(unsigned pivots, unsigned slots, unsigned n_slots)
{
    return n_slots <= UPROF_LINKS_SLOTS_MAX &&
           MAX(pivots, slots) + n_slots * sizeof(uint64_t) <= UPROF_LINKS_NODE_BYTES;
}

/* Does the part of a structure have the word at @offset? */
static bool
has_word(unsigned from, unsigned len, unsigned offset)
{
    return offset >= from && offset + sizeof(uint64_t) <= from + len;
}

static bool
are_sound_areas(const UprofLinksAreas *areas)
{
    const unsigned from = areas->area_from, len = areas->area_len;

    return len == 0 ||
           (len <= UPROF_LINKS_PART_BYTES_MAX && areas->file_len > 0 &&
            areas->file_len <= UPROF_LINKS_PART_BYTES_MAX &&
            has_word(from, len, areas->area_flags) && has_word(from, len, areas->area_file) &&
            (areas->is_maple_tree
                 ? are_sound_nodes(areas->range_pivots, areas->range_slots, areas->n_range_slots) &&
                       are_sound_nodes(areas->gap_pivots, areas->gap_slots, areas->n_gap_slots)
                 : has_word(from, len, areas->area_node + areas->node_left) &&
                       has_word(from, len, areas->area_node + areas->node_right) &&
                       areas->area_node >= from));
}

static bool
are_sound_links(const UprofLinks *links)
{
    const uint32_t stack = links->stack_bytes;

    return stack >= UPROF_CAPTURE_PAGE_BYTES && stack <= STACK_BYTES_MAX &&
           (stack & (stack - 1)) == 0 && links->irq_bytes <= STACK_BYTES_MAX &&
           links->regs_bytes <= stack && links->regs_len <= UPROF_LINKS_REGS_BYTES_MAX &&
           links->regs_mode <= UPROF_LINKS_REGS_BYTES_MAX - sizeof(uint64_t) &&
           links->regs_sp <= UPROF_LINKS_REGS_BYTES_MAX - sizeof(uint64_t) &&
           links->task_len <= UPROF_LINKS_TASK_BYTES_MAX && links->task_from <= INT32_MAX &&
           links->task_thread <= INT32_MAX && are_sound_areas(&links->areas);
}

bool
uprof_worker_message_has_links(const UprofWorkerInput *input, size_t len, unsigned n_vcpus)
{
    const UprofLinks *told = &input->links;

    return len >= sizeof(*told) && told->n_vcpus == n_vcpus && n_vcpus <= UPROF_VCPUS_MAX &&
           len == sizeof(*told) + n_vcpus * sizeof(told->vcpus[0]) && are_sound_links(told);
}

bool
uprof_worker_message_has_chain(const UprofWorkerInput *input, size_t len)
{
    const UprofChainTell *tell = &input->chain;

    return len == sizeof(*tell) && tell->slot < UPROF_CHAIN_SLOTS &&
           uprof_chain_is_sound(&tell->chain);
}

bool
uprof_worker_message_has_window(const UprofWorkerInput *input, size_t len, unsigned n_vcpus)
{
    const UprofWindowTell *tell = &input->window;

    return len == sizeof(*tell) && tell->vcpu < n_vcpus && tell->wanted >= UPROF_WINDOW_BYTES_MIN &&
           tell->wanted <= UPROF_SNAPSHOT_BYTES_MAX;
}

void
uprof_worker_message_read_outcome(UprofSlice reply, UprofOutcome *outcome, UprofSlice *text)
{
    const size_t head = MIN(reply.len, sizeof(*outcome));

    *outcome = (UprofOutcome){ .code = UPROF_ERROR_FAILED };
    if (head == sizeof(*outcome))
        memcpy(outcome, reply.data, head);
    if (outcome->code < UPROF_ERROR_NONE || outcome->code > UPROF_ERROR_EMPTY)
        outcome->code = UPROF_ERROR_FAILED;
    *text = (UprofSlice){ (const uint8_t *)reply.data + head, reply.len - head };
}
