/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of members: Linux, include/linux/sched.h, kernel/workqueue_internal.h, kernel/kthread.c.
 * Members are named differently in older kernels: state before 5.14, cpu before 5.16,
 * real_start_time before 5.5.
 */
#include "task-offsets-priv.h"

#include "uprof/linux.h"
#include "uprof/sorted.h"

#include <string.h>

enum {
    WORD = 8,
    NUMBER = 4,
    /* bytes between two members that are read with them: a part more takes longer than they do */
    GAP_BYTES = 768,
    SMALL_GAP_BYTES = 256, /* if the members lie so far apart that the parts become too large */
};

#define MEMBER(name) G_STRUCT_OFFSET(UprofTaskOffsets, name)
#define TASK "task_struct"

/* clang-format off */

/* A member with a length belongs to struct task_struct, and is read with the other members. */
static const struct {
    const char *type, *name, *old_name; /* @old_name: (nullable): in older kernels */
    size_t member;
    unsigned len;    /* bytes */
    bool is_needed;  /* tasks cannot be listed without it */
    const char *tells; /* (nullable): what it tells */
} members[] = {
    { TASK, "tasks", NULL, MEMBER(tasks), 2 * WORD, true, NULL },
    { TASK, "thread_node", NULL, MEMBER(thread_node), 2 * WORD, true, NULL },
    { TASK, "signal", NULL, MEMBER(signal), WORD, true, NULL },
    { "signal_struct", "thread_head", NULL, MEMBER(thread_head), 0, true, NULL },
    { TASK, "pid", NULL, MEMBER(pid), NUMBER, true, NULL },
    { TASK, "tgid", NULL, MEMBER(tgid), NUMBER, true, NULL },
    { TASK, "comm", NULL, MEMBER(comm), UPROF_LINUX_NAME_BYTES, true, NULL },
    { TASK, "__state", "state", MEMBER(state), NUMBER, true, NULL },
    { TASK, "exit_state", NULL, MEMBER(exit_state), NUMBER, true, NULL },
    { TASK, "flags", NULL, MEMBER(flags), NUMBER, false, "whether it is the kernel's own thread" },
    { TASK, "real_parent", NULL, MEMBER(parent), WORD, false, "its parent" },
    { TASK, "on_cpu", NULL, MEMBER(on_cpu), NUMBER, false, "whether it runs" },
    { TASK, "thread_info.cpu", "cpu", MEMBER(cpu), NUMBER, false, "its vCPU" },
    { TASK, "start_boottime", "real_start_time", MEMBER(start), WORD, false, "when it began" },
    { TASK, "mm", NULL, MEMBER(memory), WORD, false, "its memory" },
    { TASK, "stack", NULL, MEMBER(stack), WORD, false, "its stack" },
    { TASK, "usage", NULL, MEMBER(usage), NUMBER, false, NULL },
    { TASK, "utime", NULL, MEMBER(user_time), WORD, false, "its CPU time" },
    { TASK, "stime", NULL, MEMBER(system_time), WORD, false, "its CPU time" },
    { TASK, "prev_cputime.utime", NULL, MEMBER(shown_user), WORD, false, NULL },
    { TASK, "prev_cputime.stime", NULL, MEMBER(shown_system), WORD, false, NULL },
    { TASK, "se.sum_exec_runtime", NULL, MEMBER(run_time), WORD, false, "its CPU time" },
    { TASK, "se.exec_start", NULL, MEMBER(left), WORD, false, "how long it waits" },
    { TASK, "nvcsw", NULL, MEMBER(voluntary), WORD, false, NULL },
    { TASK, "nivcsw", NULL, MEMBER(involuntary), WORD, false, NULL },
    { TASK, "cgroups", NULL, MEMBER(cgroups), WORD, false, "its cgroup" },
    { TASK, "thread_pid", NULL, MEMBER(thread_pid), WORD, false, "its id in a container" },
    { TASK, "worker_private", NULL, MEMBER(worker), WORD, false, NULL },
    { "pid", "level", NULL, MEMBER(pid_level), 0, false, "its id in a container" },
    { "pid", "numbers", NULL, MEMBER(pid_numbers), 0, false, "its id in a container" },
    { "pid", "tasks", NULL, MEMBER(pid_tasks), 0, false, NULL },
    { TASK, "pid_links", NULL, MEMBER(pid_links), 0, false, NULL },
    { "pid_namespace", "idr.idr_rt.xa_head", NULL, MEMBER(ids_root), 0, false, NULL },
    { "xa_node", "shift", NULL, MEMBER(node_shift), 0, false, NULL },
    { "xa_node", "slots", NULL, MEMBER(node_slots), 0, false, NULL },
    { "upid", "nr", NULL, MEMBER(number_id), 0, false, "its id in a container" },
    { "kthread", "full_name", NULL, MEMBER(thread_name), 0, false, NULL },
    { "kthread", "data", NULL, MEMBER(thread_data), 0, false, NULL },
    { "worker", "pool", NULL, MEMBER(worker_pool), 0, false, NULL },
    { "worker", "current_work", NULL, MEMBER(worker_work), 0, false, NULL },
    { "worker", "desc", NULL, MEMBER(worker_text), 0, false, NULL },
    { "worker", "rescue_wq", NULL, MEMBER(worker_queue), 0, false, NULL },
    { "workqueue_struct", "name", NULL, MEMBER(queue_name), 0, false, NULL },
    { "rq", "clock", NULL, MEMBER(clock), 0, false, "how long it waits" },
    { "rq", "clock_task", NULL, MEMBER(task_clock), 0, false, NULL },
};
/* clang-format on */

static uint64_t
find_member(const UprofBtf *btf, const char *type, const char *name, const char *old_name)
{
    uint64_t offset;

    if (uprof_btf_member(btf, type, name, &offset) ||
        (old_name && uprof_btf_member(btf, type, old_name, &offset)))
        return offset;
    return UPROF_TASK_NO_MEMBER;
}

/* ---- Parts ---- */

/* Returns: false if there are too many parts, or too many bytes in them */
static bool
add_part(UprofTaskOffsets *offsets, uint64_t offset, unsigned len, unsigned gap)
{
    UprofTaskPart *last = offsets->n_parts > 0 ? &offsets->parts[offsets->n_parts - 1] : NULL;

    if (offset > G_MAXUINT16)
        return false;
    if (last && offset <= (uint64_t)last->offset + last->len + gap) {
        last->len = MAX(last->len, (uint32_t)offset + len - last->offset);
    } else {
        if (offsets->n_parts == UPROF_TASK_PARTS_MAX)
            return false;
        const uint32_t at = last ? last->at + last->len : 0;
        last = &offsets->parts[offsets->n_parts++];
        *last = (UprofTaskPart){ (uint32_t)offset, len, at };
    }
    return last->at + last->len <= UPROF_TASK_BYTES_MAX;
}

static int
compare_parts(gconstpointer a, gconstpointer b)
{
    const UprofTaskPart *one = a, *other = b;

    return UPROF_COMPARE(one->offset, other->offset);
}

static void
want_member(GArray *wanted, uint64_t offset, unsigned len)
{
    const UprofTaskPart part = { (uint32_t)MIN(offset, (uint64_t)G_MAXUINT32), len, 0 };

    if (len > 0 && offset != UPROF_TASK_NO_MEMBER)
        g_array_append_val(wanted, part);
}

/* @wanted: of UprofTaskPart, sorted. Returns: false if the parts are too large or too many */
static bool
join_parts(UprofTaskOffsets *offsets, const GArray *wanted, unsigned gap)
{
    offsets->n_parts = 0;
    for (guint i = 0; i < wanted->len; i++) {
        const UprofTaskPart *one = &g_array_index(wanted, UprofTaskPart, i);
        if (!add_part(offsets, one->offset, one->len, gap))
            return false;
    }
    return true;
}

static bool
make_parts(UprofTaskOffsets *offsets)
{
    g_autoptr(GArray) wanted = g_array_new(FALSE, FALSE, sizeof(UprofTaskPart));

    want_member(wanted, offsets->saved_sp, WORD);
    if (offsets->frame_bytes == 0) {
        want_member(wanted, offsets->frame_pc, WORD);
        want_member(wanted, offsets->frame_fp, WORD);
    }
    want_member(wanted, offsets->io_wait, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        want_member(wanted, G_STRUCT_MEMBER(uint64_t, offsets, members[i].member), members[i].len);
    g_array_sort(wanted, compare_parts);
    return join_parts(offsets, wanted, GAP_BYTES) || join_parts(offsets, wanted, SMALL_GAP_BYTES);
}

/* ---- Offsets ---- */

/* The byte of a bit is read like a member. */
static void
find_io_wait(const UprofBtf *btf, UprofTaskOffsets *offsets)
{
    uint64_t bit, n;

    offsets->io_wait = UPROF_TASK_NO_MEMBER;
    if (!uprof_btf_bits(btf, TASK, "in_iowait", &bit, &n))
        return;
    offsets->io_wait = bit / 8;
    offsets->io_wait_mask = (uint8_t)(1 << bit % 8);
}

static void
find_frame(const UprofBtf *btf, const UprofLinuxArch *arch, UprofTaskOffsets *offsets)
{
    const UprofLinuxSwitchFrame *frame = arch->switch_frame;

    offsets->saved_sp = find_member(btf, TASK, frame->sp_member, NULL);
    offsets->frame_pc = find_member(btf, frame->type ? frame->type : TASK, frame->pc_member, NULL);
    offsets->frame_fp = find_member(btf, frame->type ? frame->type : TASK, frame->fp_member, NULL);
    offsets->frame_bytes = 0;
    if (frame->type && !uprof_btf_size(btf, frame->type, &offsets->frame_bytes))
        offsets->frame_bytes = UPROF_TASK_NO_MEMBER;
}

const char *
uprof_task_offsets_find(const UprofBtf *btf, const UprofLinuxArch *arch, UprofTaskOffsets *offsets)
{
    const char *missing = NULL;

    *offsets = (UprofTaskOffsets){ 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        const uint64_t offset =
            find_member(btf, members[i].type, members[i].name, members[i].old_name);
        G_STRUCT_MEMBER(uint64_t, offsets, members[i].member) = offset;
        if (offset == UPROF_TASK_NO_MEMBER && members[i].is_needed && !missing)
            missing = members[i].name;
    }
    if (!uprof_btf_array(btf, "xa_node", "slots", &offsets->n_slots))
        offsets->n_slots = 0;
    find_io_wait(btf, offsets);
    find_frame(btf, arch, offsets);
    uprof_lock_offsets_find(btf, &offsets->locks);
    if (!uprof_btf_size(btf, "upid", &offsets->number_bytes))
        offsets->number_id = UPROF_TASK_NO_MEMBER;
    if (!missing && !make_parts(offsets))
        missing = "a usable task_struct";
    return missing;
}

/* Appends what a member tells, once, with the name of the first member that is missing for it. */
static void
append_missing(void *data, const char *tells, const char *name)
{
    GString *out = data;

    if (strstr(out->str, tells))
        return;
    g_string_append_printf(out, "%s%s (%s)", out->len > 0 ? ", " : "", tells, name);
}

char *
uprof_task_offsets_missing(const UprofTaskOffsets *offsets)
{
    g_autoptr(GString) out = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        if (members[i].tells &&
            G_STRUCT_MEMBER(uint64_t, offsets, members[i].member) == UPROF_TASK_NO_MEMBER)
            append_missing(out, members[i].tells, members[i].name);
    if (offsets->saved_sp == UPROF_TASK_NO_MEMBER || offsets->frame_pc == UPROF_TASK_NO_MEMBER ||
        offsets->frame_fp == UPROF_TASK_NO_MEMBER || offsets->frame_bytes == UPROF_TASK_NO_MEMBER)
        append_missing(out, "what it waits in", "its saved registers");
    uprof_lock_offsets_missing(&offsets->locks, append_missing, out);
    return out->len > 0 ? g_string_free(g_steal_pointer(&out), FALSE) : NULL;
}

/* ---- Bytes ---- */

unsigned
uprof_task_offsets_list_pieces(const UprofTaskOffsets *offsets, uint64_t address,
                               UprofTaskBytes *bytes, unsigned step, UprofMemPiece *pieces)
{
    for (unsigned i = 0; i < offsets->n_parts; i++)
        pieces[i] = (UprofMemPiece){
            .gva = address + offsets->parts[i].offset,
            .into = bytes->bytes + offsets->parts[i].at,
            .len = offsets->parts[i].len,
            .step = (uint8_t)step,
        };
    return offsets->n_parts;
}

const uint8_t *
uprof_task_bytes_at(const UprofTaskOffsets *offsets, const UprofTaskBytes *task, uint64_t offset,
                    unsigned len)
{
    for (unsigned i = 0; i < offsets->n_parts; i++) {
        const UprofTaskPart *part = &offsets->parts[i];
        if (offset >= part->offset && offset < (uint64_t)part->offset + part->len &&
            len <= part->offset + part->len - offset)
            return task->bytes + part->at + (offset - part->offset);
    }
    return NULL;
}

uint64_t
uprof_task_bytes_word(const UprofTaskOffsets *offsets, const UprofTaskBytes *task, uint64_t offset,
                      unsigned len)
{
    const uint8_t *at = uprof_task_bytes_at(offsets, task, offset, len);
    uint64_t word = 0;

    if (at)
        memcpy(&word, at, len);
    return GUINT64_FROM_LE(word);
}
