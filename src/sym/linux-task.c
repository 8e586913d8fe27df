/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which task a CPU of a Linux guest runs, and where its stacks hang together
 * (Linux, arch/x86/include/asm/current.h, arch/x86/include/asm/irq_stack.h,
 * arch/x86/include/asm/processor.h, arch/x86/include/asm/ptrace.h).
 */
#include "linux-priv.h"

#include <string.h>

enum {
    STACK_BYTES = 16 * 1024, /* THREAD_SIZE, and IRQ_STACK_SIZE, without KASAN */
    REGS_BYTES = 168,        /* struct pt_regs: 15 registers, a number, what the processor leaves */
    REGS_CS = 136,
    REGS_SP = 152,
    FRED_BYTES = 16, /* above them, with CONFIG_X86_FRED */
    PID_MAX = 4 * 1024 * 1024,
};

/* Addresses of the kernel, and of what it maps, are negative. */
#define KERNEL_FROM (UINT64_C(1) << 63)

static bool
find_tree_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    offsets->is_tree = uprof_btf_member(btf, "mm_struct", "mm_mt.ma_root", &offsets->root);
    if (!offsets->is_tree)
        return uprof_btf_member(btf, "mm_struct", "mm_rb.rb_node", &offsets->root) &&
               uprof_btf_member(btf, "vm_area_struct", "vm_rb", &offsets->node) &&
               uprof_btf_member(btf, "rb_node", "rb_left", &offsets->left) &&
               uprof_btf_member(btf, "rb_node", "rb_right", &offsets->right);
    return uprof_btf_member(btf, "maple_range_64", "pivot", &offsets->pivots) &&
           uprof_btf_member(btf, "maple_range_64", "slot", &offsets->slots) &&
           uprof_btf_array(btf, "maple_range_64", "slot", &offsets->n_slots) &&
           uprof_btf_member(btf, "maple_arange_64", "pivot", &offsets->inner_pivots) &&
           uprof_btf_member(btf, "maple_arange_64", "slot", &offsets->inner_slots) &&
           uprof_btf_array(btf, "maple_arange_64", "slot", &offsets->inner_n_slots);
}

static bool
find_area_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return find_tree_offsets(btf, offsets) &&
           uprof_btf_member(btf, "mm_struct", "pgd", &offsets->tables) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_start", &offsets->start) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_end", &offsets->end) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_pgoff", &offsets->page) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_file", &offsets->file) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_flags", &offsets->flags) &&
           uprof_btf_member(btf, "file", "f_path.dentry", &offsets->entry) &&
           uprof_btf_member(btf, "dentry", "d_name.name", &offsets->entry_name) &&
           uprof_btf_member(btf, "dentry", "d_parent", &offsets->entry_parent);
}

static bool
find_mount_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return uprof_btf_member(btf, "file", "f_path.mnt", &offsets->mount) &&
           uprof_btf_member(btf, "vfsmount", "mnt_root", &offsets->mount_root) &&
           uprof_btf_member(btf, "mount", "mnt", &offsets->mounted) &&
           uprof_btf_member(btf, "mount", "mnt_parent", &offsets->mount_parent) &&
           uprof_btf_member(btf, "mount", "mnt_mountpoint", &offsets->mount_point);
}

static bool
find_page_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return uprof_btf_member(btf, "file", "f_mapping", &offsets->mapping) &&
           uprof_btf_member(btf, "address_space", "i_pages.xa_head", &offsets->pages) &&
           uprof_btf_member(btf, "xa_node", "slots", &offsets->page_slots) &&
           uprof_btf_size(btf, "page", &offsets->page_bytes) && offsets->page_bytes > 0;
}

bool
uprof_linux_offsets_find(const UprofBtf *btf, bool has_hot, UprofLinuxOffsets *offsets)
{
    *offsets = (UprofLinuxOffsets){ 0 };
    offsets->has_areas = find_area_offsets(btf, offsets);
    offsets->has_mounts = find_mount_offsets(btf, offsets);
    offsets->has_pages = find_page_offsets(btf, offsets);
    return uprof_btf_member(btf, "task_struct", "comm", &offsets->name) &&
           uprof_btf_member(btf, "task_struct", "mm", &offsets->memory) &&
           uprof_btf_member(btf, "task_struct", "pid", &offsets->pid) &&
           uprof_btf_member(btf, "task_struct", "tgid", &offsets->process) &&
           (!has_hot ||
            (uprof_btf_member(btf, "pcpu_hot", "current_task", &offsets->hot_current) &&
             uprof_btf_member(btf, "pcpu_hot", "hardirq_stack_ptr", &offsets->hot_irq)));
}

/* There may be hundreds of CPUs. */
static bool
read_pointer(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, uint64_t *pointer)
{
    if (!uprof_mem_read_always(mem, vcpu, regs, gva, pointer, sizeof(*pointer)))
        return false;
    *pointer = GUINT64_FROM_LE(*pointer);
    return *pointer >= KERNEL_FROM;
}

static void
find_vcpu(const UprofLinuxPlaces *places, const UprofLinuxOffsets *offsets, UprofMem *mem,
          unsigned vcpu, const UprofRegs *regs, unsigned cpu, UprofLinksVcpu *links)
{
    uint64_t area = 0;

    *links = (UprofLinksVcpu){ 0 };
    if (places->areas != 0 &&
        !read_pointer(mem, vcpu, regs, places->areas + sizeof(area) * cpu, &area))
        return;
    const uint64_t current = places->hot ? places->hot + offsets->hot_current : places->current;
    const uint64_t irq = places->hot ? places->hot + offsets->hot_irq : places->irq;
    uint64_t task;
    /* on a CPU that has not started yet there is none */
    if (current != 0 && read_pointer(mem, vcpu, regs, area + current, &task))
        links->task_at = area + current;
    uint64_t top;
    /* up to 5.10 it points behind that word, to the end of the stack */
    if (irq != 0 && read_pointer(mem, vcpu, regs, area + irq, &top))
        links->irq_at = top % UPROF_PAGE_BYTES == 0 ? top - sizeof(top) : top;
}

/* From the first to the last member, if that is not too much. */
static void
find_task_part(const UprofLinuxOffsets *offsets, UprofLinks *links)
{
    const uint64_t from =
        MIN(MIN(offsets->name, offsets->memory), MIN(offsets->pid, offsets->process));
    const uint64_t end = MAX(MAX(offsets->name + UPROF_LINUX_NAME_BYTES, offsets->memory + 8),
                             MAX(offsets->pid, offsets->process) + 4);

    if (from > G_MAXUINT16 || end - from > UPROF_LINKS_TASK_BYTES_MAX)
        return;
    links->task_from = (uint32_t)from;
    links->task_len = (uint32_t)(end - from);
}

/* Where a CPU has its variables, and its interrupt stack, it keeps them. */
static bool
is_complete(const UprofLinksVcpu *links, bool has_irq)
{
    return links->task_at != 0 && (links->irq_at != 0 || !has_irq);
}

UprofLinks *
uprof_linux_links_make(const UprofLinuxPlaces *places, const UprofLinuxOffsets *offsets,
                       const UprofLinks *before, UprofMem *mem, unsigned vcpu,
                       const UprofRegs *regs, unsigned n_vcpus)
{
    UprofLinks *links = g_malloc0(sizeof(UprofLinks) + n_vcpus * sizeof(UprofLinksVcpu));

    links->root = regs->sys[UPROF_X86_CR3];
    links->kernel_from = KERNEL_FROM;
    links->stack_bytes = links->irq_bytes = STACK_BYTES;
    links->regs_bytes = REGS_BYTES + (places->fred ? FRED_BYTES : 0);
    links->regs_len = REGS_BYTES;
    links->regs_cs = REGS_CS;
    links->regs_sp = REGS_SP;
    links->n_vcpus = n_vcpus;
    find_task_part(offsets, links);
    for (unsigned i = 0; i < n_vcpus && links->task_len > 0; i++) {
        if (before && is_complete(&before->vcpus[i], places->hot != 0 || places->irq != 0))
            links->vcpus[i] = before->vcpus[i];
        else
            find_vcpu(places, offsets, mem, vcpu, regs, i, &links->vcpus[i]);
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
    if (!uprof_snapshot_read(snapshot, address + offsets->name, found.name, sizeof(found.name)) ||
        !uprof_snapshot_read(snapshot, address + offsets->pid, &found.pid, sizeof(found.pid)) ||
        !uprof_snapshot_read(snapshot, address + offsets->process, &found.process,
                             sizeof(found.process)) ||
        !uprof_snapshot_read(snapshot, address + offsets->memory, &found.memory,
                             sizeof(found.memory)))
        return false;
    found.memory = GUINT64_FROM_LE(found.memory);
    found.pid = GUINT32_FROM_LE(found.pid);
    found.process = GUINT32_FROM_LE(found.process);
    if (found.pid > PID_MAX || found.process > PID_MAX || !is_printable(found.name))
        return false;
    *task = found;
    return true;
}
