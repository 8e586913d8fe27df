/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-offsets-priv.h"

enum { MODULE_PARTS_MAX = 16 };

#define OFFSET(member) G_STRUCT_OFFSET(UprofLinuxModuleOffsets, member)

static bool
find_tree_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    offsets->is_maple_tree = uprof_btf_member(btf, "mm_struct", "mm_mt.ma_root", &offsets->mm_root);
    if (!offsets->is_maple_tree)
        return uprof_btf_member(btf, "mm_struct", "mm_rb.rb_node", &offsets->mm_root) &&
               uprof_btf_member(btf, "vm_area_struct", "vm_rb", &offsets->area_node) &&
               uprof_btf_member(btf, "rb_node", "rb_left", &offsets->node_left) &&
               uprof_btf_member(btf, "rb_node", "rb_right", &offsets->node_right);
    return uprof_btf_member(btf, "maple_range_64", "pivot", &offsets->range_pivots) &&
           uprof_btf_member(btf, "maple_range_64", "slot", &offsets->range_slots) &&
           uprof_btf_array(btf, "maple_range_64", "slot", &offsets->n_range_slots) &&
           uprof_btf_member(btf, "maple_arange_64", "pivot", &offsets->gap_pivots) &&
           uprof_btf_member(btf, "maple_arange_64", "slot", &offsets->gap_slots) &&
           uprof_btf_array(btf, "maple_arange_64", "slot", &offsets->n_gap_slots);
}

static bool
find_area_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    if (!uprof_btf_member(btf, "mm_struct", "context.vdso", &offsets->mm_vdso))
        offsets->mm_vdso = 0;
    if (!uprof_btf_member(btf, "mm_struct", "start_stack", &offsets->mm_stack))
        offsets->mm_stack = 0;
    return find_tree_offsets(btf, offsets) &&
           uprof_btf_member(btf, "mm_struct", "pgd", &offsets->mm_tables) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_start", &offsets->area_start) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_end", &offsets->area_end) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_pgoff", &offsets->area_page) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_file", &offsets->area_file) &&
           uprof_btf_member(btf, "vm_area_struct", "vm_flags", &offsets->area_flags) &&
           uprof_btf_member(btf, "file", "f_path.dentry", &offsets->file_dentry) &&
           uprof_btf_member(btf, "dentry", "d_name.name", &offsets->dentry_name) &&
           uprof_btf_member(btf, "dentry", "d_parent", &offsets->dentry_parent);
}

static bool
find_mount_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return uprof_btf_member(btf, "file", "f_path.mnt", &offsets->file_vfsmount) &&
           uprof_btf_member(btf, "vfsmount", "mnt_root", &offsets->vfsmount_root) &&
           uprof_btf_member(btf, "mount", "mnt", &offsets->mount_vfsmount) &&
           uprof_btf_member(btf, "mount", "mnt_parent", &offsets->mount_parent) &&
           uprof_btf_member(btf, "mount", "mnt_mountpoint", &offsets->mount_point);
}

/* Newer kernels have some members in struct folio only; the rest of both is the same. */
static bool
find_struct_page(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    if (!uprof_btf_member(btf, "page", "compound_head", &offsets->page_head))
        offsets->page_head = 0;
    return uprof_btf_size(btf, "page", &offsets->page_bytes) && offsets->page_bytes > 0 &&
           (uprof_btf_member(btf, "page", "mapping", &offsets->page_mapping) ||
            uprof_btf_member(btf, "folio", "mapping", &offsets->page_mapping)) &&
           (uprof_btf_member(btf, "page", "index", &offsets->page_index) ||
            uprof_btf_member(btf, "folio", "index", &offsets->page_index)) &&
           uprof_btf_member(btf, "page", "flags", &offsets->page_flags) &&
           uprof_btf_enum(btf, "pageflags", "PG_uptodate", &offsets->page_uptodate) &&
           offsets->page_uptodate < 64;
}

static bool
find_page_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return uprof_btf_member(btf, "file", "f_mapping", &offsets->file_mapping) &&
           uprof_btf_member(btf, "address_space", "i_pages.xa_head", &offsets->mapping_pages) &&
           uprof_btf_member(btf, "xa_node", "shift", &offsets->xa_shift) &&
           uprof_btf_member(btf, "xa_node", "slots", &offsets->xa_slots) &&
           uprof_btf_array(btf, "xa_node", "slots", &offsets->n_xa_slots) &&
           offsets->n_xa_slots > 0 && (offsets->n_xa_slots & (offsets->n_xa_slots - 1)) == 0 &&
           find_struct_page(btf, offsets);
}

static bool
find_open_file_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return offsets->has_pages &&
           uprof_btf_member(btf, "task_struct", "files", &offsets->task_files) &&
           uprof_btf_member(btf, "files_struct", "fdt", &offsets->files_table) &&
           uprof_btf_member(btf, "fdtable", "max_fds", &offsets->table_max) &&
           uprof_btf_member(btf, "fdtable", "fd", &offsets->table_files) &&
           uprof_btf_member(btf, "address_space", "host", &offsets->mapping_inode) &&
           uprof_btf_member(btf, "inode", "i_size", &offsets->inode_size);
}

/* A node's parent has another name from 6.15 on. */
static bool
find_cgroup_offsets(const UprofBtf *btf, UprofLinuxOffsets *offsets)
{
    return uprof_btf_member(btf, "task_struct", "cgroups", &offsets->task_set) &&
           uprof_btf_member(btf, "css_set", "dfl_cgrp", &offsets->set_cgroup) &&
           uprof_btf_member(btf, "cgroup", "kn", &offsets->cgroup_node) &&
           (uprof_btf_member(btf, "kernfs_node", "parent", &offsets->node_parent) ||
            uprof_btf_member(btf, "kernfs_node", "__parent", &offsets->node_parent)) &&
           uprof_btf_member(btf, "kernfs_node", "name", &offsets->node_name);
}

bool
uprof_linux_offsets_find(const UprofBtf *btf, const char *thread_member, bool has_hot,
                         UprofLinuxOffsets *offsets)
{
    *offsets = (UprofLinuxOffsets){ 0 };
    offsets->has_areas = find_area_offsets(btf, offsets);
    offsets->has_mounts = find_mount_offsets(btf, offsets);
    offsets->has_pages = find_page_offsets(btf, offsets);
    offsets->has_open_files = find_open_file_offsets(btf, offsets);
    offsets->has_cgroups = find_cgroup_offsets(btf, offsets);
    if (!uprof_btf_member(btf, "task_struct", "stack", &offsets->task_stack))
        offsets->task_stack = 0;
    if (!uprof_btf_size(btf, "pt_regs", &offsets->regs_bytes))
        offsets->regs_bytes = 0;
    if (!uprof_btf_member(btf, "rq", "curr", &offsets->rq_current) ||
        !uprof_btf_member(btf, "rq", "idle", &offsets->rq_idle))
        offsets->rq_current = offsets->rq_idle = 0;
    if (!uprof_btf_member(btf, "task_struct", thread_member, &offsets->task_thread))
        offsets->task_thread = 0;
    if (!uprof_btf_member(btf, "task_struct", "thread", &offsets->task_registers))
        offsets->task_registers = 0;
    return uprof_btf_member(btf, "task_struct", "comm", &offsets->task_comm) &&
           uprof_btf_member(btf, "task_struct", "mm", &offsets->task_mm) &&
           uprof_btf_member(btf, "task_struct", "pid", &offsets->task_pid) &&
           uprof_btf_member(btf, "task_struct", "tgid", &offsets->task_tgid) &&
           (!has_hot ||
            (uprof_btf_member(btf, "pcpu_hot", "current_task", &offsets->hot_current) &&
             uprof_btf_member(btf, "pcpu_hot", "hardirq_stack_ptr", &offsets->hot_irq_stack)));
}

/*
 * Until 6.3 a module was two pieces of memory that began with their code, one of which is freed
 * when the module is loaded. Since then a module has more pieces, of which the first one holds its
 * code (MOD_TEXT).
 */
static bool
find_module_code(const UprofBtf *btf, UprofLinuxModuleOffsets *offsets)
{
    uint64_t part, base, len, each;
    uint32_t init;

    if (uprof_btf_member(btf, "module", "core_layout.base", &offsets->code)) {
        if (!uprof_btf_member(btf, "module", "init_layout.base", &offsets->init) ||
            !uprof_btf_member(btf, "module", "init_layout.text_size", &offsets->init_len))
            offsets->init = offsets->init_len = 0;
        return uprof_btf_member(btf, "module", "core_layout.text_size", &offsets->code_len);
    }
    if (!uprof_btf_member(btf, "module", "mem", &part) ||
        !uprof_btf_member(btf, "module_memory", "base", &base) ||
        !uprof_btf_member(btf, "module_memory", "size", &len) ||
        !uprof_btf_size(btf, "module_memory", &each))
        return false;
    offsets->code = part + base;
    offsets->code_len = part + len;
    if (uprof_btf_enum(btf, "mod_mem_type", "MOD_INIT_TEXT", &init) && init < MODULE_PARTS_MAX) {
        offsets->init = offsets->code + init * each;
        offsets->init_len = offsets->code_len + init * each;
    }
    return true;
}

bool
uprof_linux_module_offsets_find(const UprofBtf *btf, UprofLinuxModuleOffsets *offsets)
{
    static const struct {
        const char *type, *member;
        size_t offset;
    } needed[] = {
        { "module", "list", OFFSET(list) },
        { "module", "state", OFFSET(state) },
        { "module", "kallsyms", OFFSET(kallsyms) },
        { "mod_kallsyms", "symtab", OFFSET(symbols) },
        { "mod_kallsyms", "num_symtab", OFFSET(n_symbols) },
        { "mod_kallsyms", "strtab", OFFSET(names) },
    };

    *offsets = (UprofLinuxModuleOffsets){ 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(needed); i++)
        if (!uprof_btf_member(btf, needed[i].type, needed[i].member,
                              G_STRUCT_MEMBER_P(offsets, needed[i].offset)))
            return false;
    /* A kernel may be built without ORC tables. */
    offsets->has_orcs = uprof_btf_member(btf, "module", "arch.num_orcs", &offsets->n_orcs) &&
                        uprof_btf_member(btf, "module", "arch.orc_unwind_ip", &offsets->orc_ips) &&
                        uprof_btf_member(btf, "module", "arch.orc_unwind", &offsets->orcs);
    return find_module_code(btf, offsets);
}

void
uprof_linux_generated_offsets_find(const UprofBtf *btf, UprofLinuxGeneratedOffsets *offsets)
{
    *offsets = (UprofLinuxGeneratedOffsets){ 0 };
    offsets->has_bpf = uprof_btf_member(btf, "bpf_ksym", "lnode", &offsets->bpf_node) &&
                       uprof_btf_member(btf, "bpf_ksym", "start", &offsets->bpf_start) &&
                       uprof_btf_member(btf, "bpf_ksym", "end", &offsets->bpf_end) &&
                       uprof_btf_member(btf, "bpf_ksym", "name", &offsets->bpf_name) &&
                       uprof_btf_array(btf, "bpf_ksym", "name", &offsets->bpf_name_bytes);
    offsets->has_ftrace = uprof_btf_member(btf, "ftrace_ops", "list", &offsets->ops_node) &&
                          uprof_btf_member(btf, "ftrace_ops", "trampoline", &offsets->ops_code) &&
                          uprof_btf_member(btf, "ftrace_ops", "trampoline_size", &offsets->ops_len);
    offsets->has_kprobes =
        uprof_btf_member(btf, "kprobe_insn_cache", "pages", &offsets->cache_pages) &&
        uprof_btf_member(btf, "kprobe_insn_page", "list", &offsets->page_node) &&
        uprof_btf_member(btf, "kprobe_insn_page", "insns", &offsets->page_code);
}

static bool
find_ring_offsets(const UprofBtf *btf, UprofLinuxLogOffsets *offsets)
{
    static const char ring[] = "printk_ringbuffer";

    return uprof_btf_member(btf, ring, "desc_ring.count_bits", &offsets->count_bits) &&
           uprof_btf_member(btf, ring, "desc_ring.descs", &offsets->descs) &&
           uprof_btf_member(btf, ring, "desc_ring.infos", &offsets->infos) &&
           uprof_btf_member(btf, ring, "desc_ring.head_id", &offsets->head) &&
           uprof_btf_member(btf, ring, "desc_ring.tail_id", &offsets->tail) &&
           uprof_btf_member(btf, ring, "text_data_ring.size_bits", &offsets->size_bits) &&
           uprof_btf_member(btf, ring, "text_data_ring.data", &offsets->text);
}

static bool
find_record_offsets(const UprofBtf *btf, UprofPrintkLayout *layout)
{
    static const char desc[] = "prb_desc", info[] = "printk_info";
    uint64_t n_bits;

    return uprof_btf_size(btf, desc, &layout->desc_bytes) &&
           uprof_btf_member(btf, desc, "state_var", &layout->state) &&
           uprof_btf_member(btf, desc, "text_blk_lpos.begin", &layout->begin) &&
           uprof_btf_member(btf, desc, "text_blk_lpos.next", &layout->next) &&
           uprof_btf_size(btf, info, &layout->info_bytes) &&
           uprof_btf_member(btf, info, "seq", &layout->sequence) &&
           uprof_btf_member(btf, info, "ts_nsec", &layout->time) &&
           uprof_btf_member(btf, info, "text_len", &layout->text_len) &&
           uprof_btf_member(btf, info, "facility", &layout->facility) &&
           uprof_btf_member(btf, info, "caller_id", &layout->caller) &&
           uprof_btf_bits(btf, info, "level", &layout->level_bits, &n_bits);
}

bool
uprof_linux_log_offsets_find(const UprofBtf *btf, UprofLinuxLogOffsets *offsets)
{
    return find_ring_offsets(btf, offsets) && find_record_offsets(btf, &offsets->layout) &&
           uprof_printk_layout_is_valid(&offsets->layout);
}
