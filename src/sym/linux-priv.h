/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux-priv.h - where a Linux kernel lies in a guest's memory, and a copy of it
 */
#pragma once

#include "uprof/btf.h"
#include "uprof/kallsyms.h"
#include "uprof/linux.h"
#include "uprof/orc.h"

enum {
    UPROF_LINUX_IMAGE_BYTES_MAX = 256 * 1024 * 1024,
    UPROF_LINUX_PATH_BYTES_MAX = 4096, /* Linux, include/uapi/linux/limits.h, PATH_MAX */
    UPROF_LINUX_PATH_PARTS_MAX = 128,  /* mounts on the way to it included */
};

/**
 * UprofLinuxPlaces: what the kernel's own table of symbols says; 0: it has none of that name
 * @root: of page tables that map the kernel, and no process
 * @areas: array: where each CPU's own variables are; those below are offsets in them
 * @hot: a structure with the two below, from 6.2 to 6.14
 * @current: pointer to the task that runs
 * @irq: pointer to the last word of the interrupt stack, or to its end
 * @all_memory: pointer to where all memory is mapped; @all_pages: to its struct pages
 * @modules: head of the list of what is loaded
 * @fred: of kernels that keep two words more above a task's registers, if they are built so
 * @info: pointer to what the kernel says of itself; @info_bytes: its length
 * @entry_start, @entry_end: code by which the kernel is entered and left
 */
typedef struct {
    uint64_t text;
    uint64_t banner;
    uint64_t root;
    uint64_t btf_start, btf_end;
    uint64_t orc_ips_start, orc_ips_end;
    uint64_t orc_start, orc_end;
    uint64_t orc_header_start, orc_header_end;
    uint64_t areas;
    uint64_t hot;
    uint64_t current;
    uint64_t irq;
    uint64_t all_memory;
    uint64_t all_pages;
    uint64_t modules;
    uint64_t fred;
    uint64_t info, info_bytes;
    uint64_t entry_start, entry_end;
} UprofLinuxPlaces;

/** uprof_linux_places_find: @places: (out) */
void uprof_linux_places_find(const UprofKallsyms *kallsyms, UprofLinuxPlaces *places);

/**
 * UprofLinuxOffsets: members of structures
 * @name, @pid, @process, @memory: of a task: its name and numbers; pointer to what it has mapped
 * @hot_current, @hot_irq: of what is hot of a CPU
 * @has_areas: all below are known
 * @is_tree: what is mapped is in a maple tree (from 6.1), else in a red-black one
 * @root: of what a task has mapped: the tree's root
 * @tables: of that: pointer to the page tables
 * @pivots, @slots, @n_slots: of a maple tree's node, of ranges; @inner_: of one with gaps
 * @node, @left, @right: of an area, in a red-black tree; of its node
 * @start, @end, @page, @file, @flags: of an area; @page: where in the file, in pages
 * @entry: of a file: its directory entry
 * @entry_name, @entry_parent: of that
 * @has_mounts: all below are known
 * @mount: of a file: as what its file system is mounted, a part @mounted of a mount
 * @mount_root: of that part: the directory entry that is its root
 * @mount_parent, @mount_point: of a mount: the one it is mounted in, and the directory entry there
 * @has_pages: all below are known
 * @mapping: of a file: what is in memory of it
 * @pages: of that: the tree's root; @page_slots: of its nodes; @page_bytes: of a struct page
 */
typedef struct {
    uint64_t name, pid, process, memory;
    uint64_t hot_current, hot_irq;
    bool has_areas;
    bool is_tree;
    uint64_t root, tables;
    uint64_t pivots, slots, n_slots;
    uint64_t inner_pivots, inner_slots, inner_n_slots;
    uint64_t node, left, right;
    uint64_t start, end, page, file, flags;
    uint64_t entry;
    uint64_t entry_name, entry_parent;
    bool has_mounts;
    uint64_t mount, mounted, mount_root;
    uint64_t mount_parent, mount_point;
    bool has_pages;
    uint64_t mapping;
    uint64_t pages, page_slots, page_bytes;
} UprofLinuxOffsets;

/** uprof_linux_offsets_find: @offsets: (out). Returns: false if one is missing */
bool uprof_linux_offsets_find(const UprofBtf *btf, bool has_hot, UprofLinuxOffsets *offsets);

/**
 * UprofLinuxModuleOffsets: members of what is loaded into the kernel
 * @list: its place among others; @state: whether it runs
 * @code, @code_len: where its code lies
 * @kallsyms: pointer to what has @symbols, @n_symbols and @names
 * @has_orcs: it may have unwind tables: @n_orcs, @orc_ips, @orcs
 */
typedef struct {
    uint64_t list, state;
    uint64_t code, code_len;
    uint64_t kallsyms;
    uint64_t symbols, n_symbols, names;
    bool has_orcs;
    uint64_t n_orcs, orc_ips, orcs;
} UprofLinuxModuleOffsets;

/** uprof_linux_module_offsets_find: @offsets: (out). Returns: false if one is missing */
bool uprof_linux_module_offsets_find(const UprofBtf *btf, UprofLinuxModuleOffsets *offsets);

/** UprofLinuxModuleSymbol: @size: 0: not known; @name: where it begins in the names */
typedef struct {
    uint64_t start, size;
    size_t name;
    UprofBinding binding;
} UprofLinuxModuleSymbol;

/**
 * UprofLinuxModules: what is loaded
 * @n: how many
 * @symbols: of UprofLinuxModuleSymbol; @names: bytes; not clean
 * @code: of UprofSymCode, sorted, without overlaps
 * @orcs: of UprofOrc
 */
typedef struct {
    unsigned n;
    GArray *symbols;
    GByteArray *names;
    GArray *code;
    GPtrArray *orcs;
} UprofLinuxModules;

/**
 * uprof_linux_modules_read:
 * @head: address of the list's head
 * @version: of the kernel's unwind tables
 * @regs: to read the kernel's memory by
 *
 * Returns: (transfer full): what could be read, perhaps nothing
 */
UprofLinuxModules *uprof_linux_modules_read(const UprofLinuxModuleOffsets *offsets, uint64_t head,
                                            UprofOrcVersion version, UprofMem *mem, unsigned vcpu,
                                            const UprofRegs *regs);
void uprof_linux_modules_free(UprofLinuxModules *modules);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinuxModules, uprof_linux_modules_free)

/** uprof_linux_offsets: Returns: (nullable): %NULL while it is not known who runs */
const UprofLinuxOffsets *uprof_linux_offsets(const UprofLinux *kernel);

/**
 * uprof_linux_path_read: where a file is in the guest
 * @offsets: with areas
 * @regs: to read the kernel's memory by
 * @file: address of the structure
 *
 * Of less than %UPROF_LINUX_PATH_BYTES_MAX bytes, which are not clean; no part of it is
 * empty, "." or "..", and if mounts are not known it begins at its file system's root.
 *
 * Returns: (transfer full) (nullable): "/usr/sbin/nginx"; %NULL if it cannot be read, or is
 *   nonsense
 */
char *uprof_linux_path_read(const UprofLinuxOffsets *offsets, UprofMem *mem, unsigned vcpu,
                            const UprofRegs *regs, uint64_t file);

/** uprof_linux_places: Returns: what its symbols say */
const UprofLinuxPlaces *uprof_linux_places(const UprofLinux *kernel);

/** uprof_linux_regs: @vcpu: (out). Returns: to read the kernel's memory by */
const UprofRegs *uprof_linux_regs(const UprofLinux *kernel, unsigned *vcpu);

/**
 * uprof_linux_links_make:
 * @before: (nullable): of the same kernel and as many vCPUs; what it says is not looked for again
 * @regs: to read the kernel's memory by
 *
 * Returns: (transfer full): end it with g_free()
 */
UprofLinks *uprof_linux_links_make(const UprofLinuxPlaces *places, const UprofLinuxOffsets *offsets,
                                   const UprofLinks *before, UprofMem *mem, unsigned vcpu,
                                   const UprofRegs *regs, unsigned n_vcpus);

/** uprof_linux_task_read: see uprof_linux_task() */
bool uprof_linux_task_read(const UprofLinks *links, const UprofLinuxOffsets *offsets,
                           const UprofSnapshot *snapshot, UprofLinuxTask *task);

/**
 * UprofLinuxImage:
 * @regs: with a page-table root that has all of it mapped
 * @base, @end: guest-virtual addresses; it may have holes
 * @pieces: neighboring pages of one kind; see linux-image.c
 * @bytes: from @base on, zeros where nothing was copied
 * @code: of UprofSymCode: where code may run
 */
typedef struct {
    UprofRegs regs;
    uint64_t base, end;
    GArray *pieces;
    uint8_t *bytes;
    GArray *code;
} UprofLinuxImage;

/**
 * uprof_linux_image_find: by one address that must lie in any Linux kernel
 * @regs: of a vCPU in any mode
 *
 * Copies what the kernel may only read: its tables are there. Returns: (transfer full)
 *   (nullable): %NULL if no kernel is where Linux has one
 */
UprofLinuxImage *uprof_linux_image_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs);

/** uprof_linux_image_copy_all: copies the rest as well: data, before it is made read-only */
void uprof_linux_image_copy_all(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu);

/** uprof_linux_image_copy: copies one part, whatever it is; what lies outside is left out */
void uprof_linux_image_copy(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu, uint64_t start,
                            uint64_t end);

/** uprof_linux_image_slice: Returns: @bytes */
UprofSlice uprof_linux_image_slice(const UprofLinuxImage *image);

/** uprof_linux_image_part: @part: (out): bytes of the copy. Returns: false if it is not inside */
bool uprof_linux_image_part(const UprofLinuxImage *image, uint64_t start, uint64_t end,
                            UprofSlice *part);

void uprof_linux_image_free(UprofLinuxImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinuxImage, uprof_linux_image_free)
