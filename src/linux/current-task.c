/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "current-task-priv.h"

#include <string.h>

enum {
    WORD = 8,
    PID_MAX = 4 * 1024 * 1024, /* Linux, include/linux/threads.h, PID_MAX_LIMIT */
};

/* The limit for one sample does not apply, because there may be hundreds of CPUs. */
static bool
read_pointer(const UprofKernelMemory *memory, uint64_t gva, uint64_t *pointer)
{
    return uprof_kernel_read_word_always(memory, gva, pointer) && *pointer >= UPROF_UPPER_HALF;
}

static void
find_vcpu_links(const UprofLinuxSymbols *symbols, const UprofLinuxOffsets *offsets,
                const UprofKernelMemory *memory, unsigned cpu, UprofLinksVcpu *links)
{
    uint64_t area = 0, task, top;

    *links = (UprofLinksVcpu){ 0 };
    if (symbols->cpu_areas != 0 &&
        !read_pointer(memory, symbols->cpu_areas + sizeof(area) * cpu, &area))
        return;
    const uint64_t current = symbols->hot ? symbols->hot + offsets->hot_current : symbols->current;
    const uint64_t irq = symbols->hot ? symbols->hot + offsets->hot_irq_stack : symbols->irq_stack;
    /* A CPU that has not started yet has no task. */
    if (current != 0 && read_pointer(memory, area + current, &task))
        links->task_at = area + current;
    /* Up to 5.10 the pointer is to the end of the stack, behind its last word. */
    if (irq != 0 && read_pointer(memory, area + irq, &top))
        links->irq_at = top % UPROF_PAGE_BYTES == 0 ? top - sizeof(top) : top;
}

/* One read covers all members that are needed, unless they lie too far apart. */
static void
find_task_part(const UprofLinuxOffsets *offsets, UprofLinks *links)
{
    const uint64_t from =
        MIN(MIN(offsets->task_comm, offsets->task_mm), MIN(offsets->task_pid, offsets->task_tgid));
    const uint64_t end =
        MAX(MAX(offsets->task_comm + UPROF_LINUX_NAME_BYTES, offsets->task_mm + WORD),
            MAX(offsets->task_pid, offsets->task_tgid) + sizeof(uint32_t));

    if (from > G_MAXUINT16 || end - from > UPROF_LINKS_TASK_BYTES_MAX)
        return;
    links->task_from = (uint32_t)from;
    links->task_len = (uint32_t)(end - from);
}

/* The links of a CPU never change once they are all known. */
static bool
is_complete(const UprofLinksVcpu *links, bool has_irq)
{
    return links->task_at != 0 && (links->irq_at != 0 || !has_irq);
}

UprofLinks *
uprof_linux_links_make(const UprofLinuxArch *arch, const UprofLinuxSymbols *symbols,
                       const UprofLinuxOffsets *offsets, const UprofLinks *before,
                       const UprofKernelMemory *memory, unsigned n_vcpus)
{
    UprofLinks *links = g_malloc0(sizeof(UprofLinks) + n_vcpus * sizeof(UprofLinksVcpu));
    const UprofLinuxEntryFrame *entry = arch->entry;

    links->root = arch->root(memory->regs);
    links->kernel_from = UPROF_UPPER_HALF;
    links->stack_bytes = arch->stack_bytes;
    links->irq_bytes = arch->irq_stack_bytes;
    links->regs_len = entry->regs_words * WORD;
    links->regs_bytes = links->regs_len + (symbols->fred_entry ? arch->fred_bytes : 0);
    links->regs_cs = (entry->frame_word + entry->cs_word) * WORD;
    links->regs_sp = (entry->frame_word + entry->sp_word) * WORD;
    links->n_vcpus = n_vcpus;
    find_task_part(offsets, links);
    for (unsigned i = 0; i < n_vcpus && links->task_len > 0; i++) {
        if (before && is_complete(&before->vcpus[i], symbols->hot != 0 || symbols->irq_stack != 0))
            links->vcpus[i] = before->vcpus[i];
        else
            find_vcpu_links(symbols, offsets, memory, i, &links->vcpus[i]);
    }
    return links;
}

static bool
is_printable(const char *name)
{
    const char *end = memchr(name, '\0', UPROF_LINUX_NAME_BYTES);

    for (const char *c = name; c != end; c++)
        if (!end || (uint8_t)*c < ' ' || *c == 0x7f)
            return false;
    return name[0] != '\0';
}

bool
uprof_linux_task_read(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                      const UprofSnapshot *snapshot, UprofLinuxTask *task)
{
    const uint64_t at = snapshot->vcpu < links->n_vcpus ? links->vcpus[snapshot->vcpu].task_at : 0;
    uint64_t address;
    UprofLinuxTask found;

    if (at == 0 || !uprof_snapshot_read(snapshot, at, &address, sizeof(address)))
        return false;
    address = GUINT64_FROM_LE(address);
    if (!uprof_snapshot_read(snapshot, address + offsets->task_comm, found.name,
                             sizeof(found.name)) ||
        !uprof_snapshot_read(snapshot, address + offsets->task_pid, &found.pid,
                             sizeof(found.pid)) ||
        !uprof_snapshot_read(snapshot, address + offsets->task_tgid, &found.process,
                             sizeof(found.process)) ||
        !uprof_snapshot_read(snapshot, address + offsets->task_mm, &found.memory,
                             sizeof(found.memory)))
        return false;
    found.address = address;
    found.memory = GUINT64_FROM_LE(found.memory);
    found.pid = GUINT32_FROM_LE(found.pid);
    found.process = GUINT32_FROM_LE(found.process);
    if (found.pid > PID_MAX || found.process > PID_MAX || !is_printable(found.name))
        return false;
    *task = found;
    return true;
}
