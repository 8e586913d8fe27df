/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "current-task-priv.h"

#include "area-links-priv.h"

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
    links->task_mm = (uint32_t)offsets->task_mm;
    links->task_number = (uint32_t)offsets->task_tgid;
    links->mm_tables = (uint32_t)MIN(offsets->mm_tables, (uint64_t)G_MAXUINT16);
    links->task_from = (uint32_t)from;
    links->task_len = (uint32_t)(end - from);
}

/* The links of a CPU never change once they are all known. */
static bool
is_complete(const UprofLinksVcpu *links, bool has_irq)
{
    return links->task_at != 0 && (links->irq_at != 0 || !has_irq);
}

/* Kernels for aarch64 have more or fewer members behind the registers. */
static uint32_t
find_regs_len(const UprofLinuxEntryFrame *entry, const UprofLinuxOffsets *offsets)
{
    const uint64_t bytes = offsets->regs_bytes;
    const uint64_t least = (entry->frame_word + entry->mode_word + 1U) * WORD;

    return bytes >= least && bytes <= UPROF_LINKS_REGS_BYTES_MAX && bytes % WORD == 0
               ? (uint32_t)bytes
               : entry->regs_words * WORD;
}

UprofLinks *
uprof_linux_links_make(const UprofLinuxArch *arch, const UprofLinuxSymbols *symbols,
                       const UprofLinuxOffsets *offsets, const UprofLinuxMaps *maps,
                       const UprofLinks *before, const UprofKernelMemory *memory, unsigned n_vcpus)
{
    UprofLinks *links = g_malloc0(sizeof(UprofLinks) + n_vcpus * sizeof(UprofLinksVcpu));
    const UprofLinuxEntryFrame *entry = arch->entry;

    links->root = memory->regs->sys[uprof_mem_arch(memory->mem)->kernel_root];
    links->root_mask = arch->root_mask;
    links->kernel_from = UPROF_UPPER_HALF;
    if (arch->has_direct_roots(memory->regs) && maps->all_memory >= UPROF_UPPER_HALF)
        links->all_memory = maps->all_memory;
    links->stack_bytes = arch->stack_bytes;
    links->irq_bytes = arch->irq_stack_bytes;
    links->regs_len = find_regs_len(entry, offsets);
    links->regs_bytes = links->regs_len + (symbols->fred_entry ? arch->fred_bytes : 0);
    links->regs_mode = (entry->frame_word + entry->mode_word) * WORD;
    links->regs_sp = (entry->frame_word + entry->sp_word) * WORD;
    links->task_stack = offsets->task_stack <= G_MAXUINT16 ? (uint32_t)offsets->task_stack : 0;
    links->task_thread = offsets->task_thread <= G_MAXUINT16 ? (uint32_t)offsets->task_thread : 0;
    links->n_vcpus = n_vcpus;
    uprof_linux_area_links_find(offsets, &links->areas);
    if (links->all_memory != 0 || !arch->has_roots_in_tasks)
        find_task_part(offsets, links);
    for (unsigned i = 0; i < n_vcpus && links->task_len > 0; i++) {
        if (before && is_complete(&before->vcpus[i], symbols->hot != 0 || symbols->irq_stack != 0))
            links->vcpus[i] = before->vcpus[i];
        else
            find_vcpu_links(symbols, offsets, memory, i, &links->vcpus[i]);
    }
    return links;
}

bool
uprof_linux_task_is_named(const char *name)
{
    const char *end = memchr(name, '\0', UPROF_LINUX_NAME_BYTES);

    for (const char *c = name; c != end; c++)
        if (!end || (uint8_t)*c < ' ' || *c == 0x7f)
            return false;
    return name[0] != '\0';
}

/* Reads @len bytes of a task at a guest-virtual address. Returns: false if they are unknown */
typedef bool ReadTask(const void *data, uint64_t gva, void *into, size_t len);

static bool
read_from_snapshot(const void *data, uint64_t gva, void *into, size_t len)
{
    const UprofSnapshot *snapshot = data;

    return uprof_snapshot_read(snapshot, gva, into, len);
}

static bool
read_from_memory(const void *data, uint64_t gva, void *into, size_t len)
{
    const UprofKernelMemory *memory = data;

    return uprof_kernel_read(memory, gva, into, len);
}

static bool
read_task(ReadTask *read, const void *data, const UprofLinuxOffsets *offsets, uint64_t address,
          UprofLinuxTask *task)
{
    UprofLinuxTask found = { .address = address };

    if (!read(data, address + offsets->task_comm, found.name, sizeof(found.name)) ||
        !read(data, address + offsets->task_pid, &found.pid, sizeof(found.pid)) ||
        !read(data, address + offsets->task_tgid, &found.process, sizeof(found.process)) ||
        !read(data, address + offsets->task_mm, &found.memory, sizeof(found.memory)))
        return false;
    found.memory = GUINT64_FROM_LE(found.memory);
    found.pid = GUINT32_FROM_LE(found.pid);
    found.process = GUINT32_FROM_LE(found.process);
    if (found.pid > PID_MAX || found.process > PID_MAX || !uprof_linux_task_is_named(found.name))
        return false;
    *task = found;
    return true;
}

bool
uprof_linux_task_read(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                      const UprofSnapshot *snapshot, UprofLinuxTask *task)
{
    const uint64_t at = snapshot->vcpu < links->n_vcpus ? links->vcpus[snapshot->vcpu].task_at : 0;
    uint64_t address;

    if (at == 0 || !uprof_snapshot_read(snapshot, at, &address, sizeof(address)))
        return false;
    return read_task(read_from_snapshot, snapshot, offsets, GUINT64_FROM_LE(address), task);
}

static bool
is_on_stack(const UprofLinks *links, uint64_t stack, uint64_t sp)
{
    return stack >= links->kernel_from && sp - stack <= links->stack_bytes;
}

static bool
is_on_irq_stack(const UprofLinksVcpu *links, uint32_t irq_bytes, uint64_t sp)
{
    const uint64_t end = links->irq_at + sizeof(end);

    return links->irq_at != 0 && sp < end && end - sp <= irq_bytes;
}

bool
uprof_linux_task_owns_stack(const UprofLinks *links, const UprofKernelMemory *memory, uint64_t task,
                            uint64_t sp)
{
    uint64_t stack;

    return links->task_stack != 0 && task >= links->kernel_from && task % WORD == 0 &&
           uprof_kernel_read_word(memory, task + links->task_stack, &stack) &&
           is_on_stack(links, stack, sp);
}

/*
 * Some register has the task that owns the stack, or its struct thread_struct: the kernel's
 * __switch_to() uses only this part of both tasks.
 *
 * Returns: its address; 0 if there is none
 */
static uint64_t
find_owner(const UprofLinks *links, const UprofLinuxOffsets *offsets,
           const UprofKernelMemory *memory, const UprofRegs *ran)
{
    const uint64_t parts[] = { 0, offsets->task_registers };

    for (size_t part = 0; part < G_N_ELEMENTS(parts); part++)
        for (unsigned i = 0; i < G_N_ELEMENTS(ran->reg); i++)
            if (uprof_linux_task_owns_stack(links, memory, ran->reg[i] - parts[part], ran->sp))
                return ran->reg[i] - parts[part];
    return 0;
}

bool
uprof_linux_next_task_find(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                           const UprofKernelMemory *memory, const UprofSnapshot *snapshot,
                           UprofLinuxTask *task)
{
    const UprofRegs *ran = &snapshot->regs;

    if (links->task_stack == 0 || ran->privilege != 0 || ran->sp < links->kernel_from ||
        !uprof_linux_task_read(links, offsets, snapshot, task) ||
        uprof_linux_task_owns_stack(links, memory, task->address, ran->sp) ||
        is_on_irq_stack(&links->vcpus[snapshot->vcpu], links->irq_bytes, ran->sp))
        return false;
    const uint64_t owner = find_owner(links, offsets, memory, ran);
    return owner != 0 && read_task(read_from_memory, memory, offsets, owner, task);
}
