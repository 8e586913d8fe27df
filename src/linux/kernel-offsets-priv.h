/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-offsets-priv.h - offsets of members in the kernel's structures, from its own BTF
 */
#pragma once

#include "uprof/btf.h"
#include "uprof/printk-ring.h"

/**
 * UprofLinuxOffsets: all in bytes from the start of the structure, unless a comment says otherwise
 */
typedef struct {
    /* struct task_struct; task_mm is a pointer to its struct mm_struct */
    uint64_t task_comm, task_pid, task_tgid, task_mm;
    /* struct rq: pointers to the running task, and to the task that runs if there is no other; 0 if
     * not known */
    uint64_t rq_current, rq_idle;
    uint64_t regs_bytes; /* of struct pt_regs; 0 if not known */
    /* struct pcpu_hot; only in kernels that have it */
    uint64_t hot_current, hot_irq_stack;

    /* The members up to dentry_parent are known. */
    bool has_areas;
    /* true: a process's areas are in a maple tree (from 6.1); false: in a red-black tree */
    bool is_maple_tree;
    /* struct mm_struct: root of the tree of areas; pointer to the page tables */
    uint64_t mm_root, mm_tables;
    /* struct mm_struct: address of the code that the kernel maps, and of the arguments on the
     * stack; 0 if the member is not known */
    uint64_t mm_vdso, mm_stack;
    /* maple tree: members of leaf and range nodes, and how many slots they have */
    uint64_t range_pivots, range_slots, n_range_slots;
    /* maple tree: the same of inner nodes that also list gaps */
    uint64_t gap_pivots, gap_slots, n_gap_slots;
    /* red-black tree: the node in struct vm_area_struct; members of the node */
    uint64_t area_node, node_left, node_right;
    /* struct vm_area_struct; area_page is the first page's number in the file */
    uint64_t area_start, area_end, area_page, area_file, area_flags;
    /* struct file: pointer to its directory entry */
    uint64_t file_dentry;
    /* struct dentry */
    uint64_t dentry_name, dentry_parent;

    /* The members up to mount_point are known. */
    bool has_mounts;
    /* struct file: pointer to the struct vfsmount of its file system */
    uint64_t file_vfsmount;
    /* struct vfsmount: pointer to the directory entry that is the file system's root */
    uint64_t vfsmount_root;
    /* struct mount: its struct vfsmount; the mount it is mounted in, and the dentry there */
    uint64_t mount_vfsmount, mount_parent, mount_point;

    /* The members up to page_uptodate are known. */
    bool has_pages;
    /* struct file: pointer to its struct address_space, which lists its pages in memory */
    uint64_t file_mapping;
    /* struct address_space: root of the tree of pages */
    uint64_t mapping_pages;
    /* struct xa_node: its shift, its slots, and how many slots it has, a power of two */
    uint64_t xa_shift, xa_slots, n_xa_slots;
    /* size of struct page, and its members: pointer to the address_space; number in the file */
    uint64_t page_bytes, page_mapping, page_index, page_flags;
    /* number of the bit in the flags that says that the page was read from disk */
    uint32_t page_uptodate;
    /* struct page: pointer to the first page of the folio, plus 1; 0 if it is not known */
    uint64_t page_head;

    /* struct task_struct: pointer to its kernel stack, the thread pointer of user space, and the
     * struct thread_struct with the latter; 0 if the member is not known */
    uint64_t task_stack, task_thread, task_registers;

    /* The members up to inode_size are known. */
    bool has_open_files;
    /* struct task_struct: pointer to its struct files_struct, which points to a struct fdtable */
    uint64_t task_files, files_table;
    /* struct fdtable: how many descriptors it has; pointer to their array of struct file pointers
     */
    uint64_t table_max, table_files;
    /* struct address_space: pointer to its struct inode, which has the size of the file */
    uint64_t mapping_inode, inode_size;

    /* The members up to node_name are known. */
    bool has_cgroups;
    /* struct task_struct: pointer to its struct css_set, which points to the struct cgroup */
    uint64_t task_set, set_cgroup;
    /* struct cgroup: pointer to its struct kernfs_node, which has a parent and a name */
    uint64_t cgroup_node, node_parent, node_name;
} UprofLinuxOffsets;

/**
 * uprof_linux_offsets_find:
 * @thread_member: see UprofLinuxArch
 * @has_hot: the kernel has a struct pcpu_hot
 * @offsets: (out)
 *
 * Returns: false if a member of struct task_struct or struct pcpu_hot is missing
 */
bool uprof_linux_offsets_find(const UprofBtf *btf, const char *thread_member, bool has_hot,
                              UprofLinuxOffsets *offsets);

/** UprofLinuxModuleOffsets: members of struct module, unless a comment says otherwise; in bytes */
typedef struct {
    uint64_t list;           /* links the module to the next one */
    uint64_t state;          /* MODULE_STATE_LIVE once the module is loaded */
    uint64_t code, code_len; /* address and length of its code */
    /* the same of the code that runs while the module is loaded; both 0 if it is not known */
    uint64_t init, init_len;
    uint64_t kallsyms; /* pointer to its struct mod_kallsyms */
    /* struct mod_kallsyms: ELF symbols, how many, and their string table */
    uint64_t symbols, n_symbols, names;
    /* The kernel is built with ORC unwind tables; the next members are known. */
    bool has_orcs;
    uint64_t n_orcs, orc_ips, orcs;
} UprofLinuxModuleOffsets;

/** uprof_linux_module_offsets_find: @offsets: (out). Returns: false if a member is missing */
bool uprof_linux_module_offsets_find(const UprofBtf *btf, UprofLinuxModuleOffsets *offsets);

/** UprofLinuxGeneratedOffsets: of lists of generated code; in bytes */
typedef struct {
    bool has_bpf;
    /* struct bpf_ksym: its link, its code and its name; the length of the array of the name */
    uint64_t bpf_node, bpf_start, bpf_end, bpf_name, bpf_name_bytes;
    bool has_ftrace;
    /* struct ftrace_ops: its link; address and length of its trampoline */
    uint64_t ops_node, ops_code, ops_len;
    bool has_kprobes;
    /* struct kprobe_insn_cache: its list of pages; struct kprobe_insn_page: its link, its code */
    uint64_t cache_pages, page_node, page_code;
} UprofLinuxGeneratedOffsets;

/** UprofLinuxLogOffsets: of the kernel's log; in bytes */
typedef struct {
    /* struct printk_ringbuffer: logarithms of the number of descriptors and of the bytes of text;
     * pointers to the three rings; ids of the oldest and newest descriptor */
    uint64_t count_bits, size_bits, descs, infos, text, tail, head;
    UprofPrintkLayout layout;
} UprofLinuxLogOffsets;

/** uprof_linux_log_offsets_find: @offsets: (out). Returns: false if a member is missing */
bool uprof_linux_log_offsets_find(const UprofBtf *btf, UprofLinuxLogOffsets *offsets);

/** uprof_linux_generated_offsets_find: @offsets: (out) */
void uprof_linux_generated_offsets_find(const UprofBtf *btf, UprofLinuxGeneratedOffsets *offsets);
