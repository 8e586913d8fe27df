/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux-guest.h - a guest of a few hundred KiB that looks as if it ran Linux on x86_64
 *
 * Its kernel has the tables and the structures that the program looks for, and nothing
 * else; where their members are only its own types say. Tests alter it by its words.
 */
#pragma once

#include "build-kallsyms.h"
#include "memory-guest.h"
#include "uprof/space.h"

#define LINUX_IMAGE KALLSYMS_BASE
#define LINUX_DIRECT UINT64_C(0xffff888000000000) /* where all memory is mapped */
#define LINUX_PAGES UINT64_C(0xffffea0000000000)
#define LINUX_IDT UINT64_C(0xfffffe0000000000)
#define LINUX_MODULES UINT64_C(0xffffffffc0000000)
#define LINUX_PROGRAM UINT64_C(0x555555554000)
#define LINUX_LIBRARY UINT64_C(0x7f0000000000)
#define LINUX_ANONYMOUS UINT64_C(0x7f1000000000)
#define LINUX_STACK UINT64_C(0x7ffffffde000)

/* Offsets in the image. */
enum {
    LINUX_TEXT = 0,
    LINUX_ENTRY = 0x800, /* code by which the kernel is entered */
    LINUX_ENTRY_END = 0xa00,
    LINUX_PART = 0xb04, /* where one part of the code ends, and another begins */
    LINUX_TABLES = 0x1000,
    LINUX_BANNER = 0xa000,
    LINUX_BTF = 0xb000,
    LINUX_ORC = 0xe000,
    LINUX_ORCS = LINUX_ORC + 0x400,
    LINUX_ORC_HEADER = LINUX_ORC + 0x800,
    LINUX_DATA = 0xf000,
    LINUX_AREAS = LINUX_DATA, /* __per_cpu_offset */
    LINUX_ALL_MEMORY = LINUX_DATA + 0x800,
    LINUX_ALL_PAGES = LINUX_DATA + 0x808,
    LINUX_MODULE_LIST = LINUX_DATA + 0x810,
    LINUX_ROOT = 0x10000, /* page tables; behind them those of a process, with isolation */
    LINUX_IMAGE_BYTES = 0x12000,
    LINUX_IMAGE_GPA = 0x10000,
};

/* Offsets in structures. */
enum {
    TASK_MM = 0x20,
    TASK_PID = 0x28,
    TASK_TGID = 0x2c,
    TASK_COMM = 0x40,
    TASK_BYTES = 0x80,
    MM_TREE = 0x40, /* the tree, whose root is behind a lock */
    MM_ROOT = MM_TREE + 8,
    MM_PGD = 0x60,
    MM_BYTES = 0x80,
    AREA_START = 0,
    AREA_END = 8,
    AREA_FLAGS = 0x20,
    AREA_PAGE = 0x28,
    AREA_FILE = 0x30,
    AREA_NODE = 0x40,
    AREA_BYTES = 0x60,
    RB_RIGHT = 8,
    RB_LEFT = 16,
    MAPLE_PIVOTS = 8,
    MAPLE_SLOTS = 128,
    MAPLE_N_SLOTS = 16,
    MAPLE_GAP_SLOTS = 80,
    MAPLE_N_GAP_SLOTS = 10,
    FILE_MAPPING = 0x18,
    FILE_PATH = 0x40,
    FILE_MOUNT = FILE_PATH, /* of a mount, the part below */
    FILE_ENTRY = FILE_PATH + 8,
    MOUNT_PARENT = 0x10,
    MOUNT_POINT = 0x18,
    MOUNT_PART = 0x20,
    MOUNT_PART_ROOT = 8,
    MOUNT_BYTES = 0x40,
    ENTRY_PARENT = 0x18,
    ENTRY_NAME = 0x28,
    ENTRY_CHARS = 0x38, /* the name itself, as Linux keeps short ones */
    MAPPING_HEAD = 0x18,
    NODE_SLOTS = 0x28,
    PAGE_STRUCT_BYTES = 64,
    MODULE_STATE = 0,
    MODULE_LIST = 8,
    MODULE_NAME = 24,
    MODULE_CODE = 0x60,
    MODULE_CODE_LEN = MODULE_CODE + 8,
    MODULE_TEXT_LEN = MODULE_CODE + 12, /* up to 6.3 */
    MODULE_KALLSYMS = 0x80,
    MODULE_ARCH = 0x90,
    MODULE_N_ORCS = MODULE_ARCH,
    MODULE_ORC_IPS = MODULE_ARCH + 8,
    MODULE_ORCS = MODULE_ARCH + 16,
    MODULE_BYTES = 0x100,
    TABLE_SYMBOLS = 0, /* mod_kallsyms */
    TABLE_N = 8,
    TABLE_NAMES = 16,
    CPU_CURRENT = 0x100, /* in a CPU's area */
    CPU_IRQ = 0x110,
};

/* Bits of page-table entries. */
#define LINUX_WRITABLE UINT64_C(0x2)
#define LINUX_USER UINT64_C(0x4)
#define LINUX_LARGE UINT64_C(0x80)
#define LINUX_NO_CODE (UINT64_C(1) << 63)

/** LinuxArea: @page: in its file, in pages; @file: its number, from 1; 0: none */
typedef struct {
    uint64_t start, end;
    uint64_t page;
    unsigned file;
    bool is_code;
} LinuxArea;

enum { LINUX_AREAS_MAX = 32, LINUX_FILES = 2, LINUX_CPUS_MAX = 128 };

/**
 * LinuxPlan: zeros are a kernel of 6.4 with a maple tree
 * @n_vcpus: 0 is 1
 * @release: (nullable)
 * @is_red_black: areas as before 6.1
 * @is_old_module: modules as before 6.4
 * @has_hot: who runs is in pcpu_hot, as from 6.2 to 6.14
 * @has_irq_end: what points to the last word of the interrupt stack points behind it, as up
 *   to 5.10
 * @has_isolation: a process's own tables map hardly any of the kernel
 * @is_xen: Xen's hypervisor runs it, paravirtualized
 * @no_symbols, @no_types, @no_rules: it was built without
 * @no_module_rules: its types know of no unwind tables of modules
 * @no_cpus: nothing says where CPUs have their own variables
 * @name_at: where a task's name is, as its types say; 0: where it is
 * @n_modules: each has a page of its own
 * @more_bytes: of memory, for tests
 * @areas: (nullable): sorted, @n_areas of them
 */
typedef struct {
    unsigned n_vcpus;
    const char *release;
    bool is_red_black, is_old_module;
    bool has_hot;
    bool has_irq_end;
    bool has_isolation;
    bool is_xen;
    bool no_symbols, no_types, no_rules, no_module_rules;
    bool no_cpus;
    uint32_t name_at;
    unsigned n_modules;
    size_t more_bytes;
    const LinuxArea *areas;
    unsigned n_areas;
} LinuxPlan;

/**
 * LinuxGuest: where things are, by guest-physical addresses
 * @free: memory from here on is
 * @root: page tables that map the kernel alone; @process_root: of the process
 * @cpu_areas: per CPU
 * @task, @mm: of the process, which runs on all CPUs
 * @areas: each in its place; @nodes: of the maple tree: the root, with gaps; one that
 *   has leaves; leaves
 * @files, @heads: files, in "/lib", and their first pages
 * @mount: of the file system that they are in, which is mounted nowhere else
 * @modules: of the first ones
 */
typedef struct {
    LinuxPlan plan;
    MemoryGuest *memory;
    uint64_t free;
    uint64_t root, process_root;
    uint64_t cpu_areas[LINUX_CPUS_MAX];
    uint64_t task, mm;
    uint64_t areas[LINUX_AREAS_MAX];
    uint64_t nodes[LINUX_AREAS_MAX];
    unsigned n_nodes;
    uint64_t files[LINUX_FILES], heads[LINUX_FILES];
    uint64_t mount;
    uint64_t modules[16];
} LinuxGuest;

/** linux_guest_new: all vCPUs run the process's code */
LinuxGuest *linux_guest_new(const LinuxPlan *plan);
void linux_guest_free(LinuxGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LinuxGuest, linux_guest_free)

/** linux_guest_alloc: Returns: guest-physical address of @len bytes, zero, aligned to @align */
uint64_t linux_guest_alloc(LinuxGuest *guest, size_t len, size_t align);

/** linux_guest_image: Returns: guest-physical address of an offset in the image */
uint64_t linux_guest_image(uint64_t offset);

/** linux_guest_put: a word at guest-physical @gpa; linux_guest_get: Returns: that there is */
void linux_guest_put(LinuxGuest *guest, uint64_t gpa, uint64_t word);
uint64_t linux_guest_get(const LinuxGuest *guest, uint64_t gpa);

/** linux_guest_put_text: @text with its NUL */
void linux_guest_put_text(LinuxGuest *guest, uint64_t gpa, const char *text);

/**
 * linux_guest_map: one page
 * @root: of page tables
 * @bits: of its entry, besides that it is present
 */
void linux_guest_map(LinuxGuest *guest, uint64_t root, uint64_t gva, uint64_t gpa, uint64_t bits);

/** linux_guest_unmap: of the image, the page at @offset */
void linux_guest_unmap(LinuxGuest *guest, uint64_t offset);

/** linux_guest_add_task: Returns: guest-physical address of a task of its own memory @mm, or none */
uint64_t linux_guest_add_task(LinuxGuest *guest, const char *name, unsigned pid, uint64_t mm);

/** linux_guest_add_mm: Returns: of one with the areas, and the page tables, of the first process */
uint64_t linux_guest_add_mm(LinuxGuest *guest);

/** linux_guest_run: @vcpu runs @task from now on; in the kernel, if it @is_kernel */
void linux_guest_run(LinuxGuest *guest, unsigned vcpu, uint64_t task, bool is_kernel);

/** linux_guest_entry: Returns: pointer to a maple tree's node at @gpa, as trees have them */
uint64_t linux_guest_entry(uint64_t gpa, unsigned type, bool is_root);

/** LinuxView: what the program has come to know of a guest */
typedef struct {
    LinuxGuest *guest; /* borrowed */
    UprofNames *names;
    UprofSym *sym;
    UprofMem *mem;
    UprofLinux *kernel;
    UprofSpace *space;
    UprofSnapshot *snapshot;
    uint64_t time_ns;
    uint32_t reset;
} LinuxView;

/** linux_view_new: @guest: borrowed, outlives what is returned */
LinuxView *linux_view_new(LinuxGuest *guest);
void linux_view_free(LinuxView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LinuxView, linux_view_free)

/**
 * linux_view_sample: one snapshot of @vcpu, with who runs if that is known, and looks at it
 *
 * At the view's time and reset. Returns: how many spans of memory were read for it
 */
unsigned linux_view_sample(LinuxView *view, unsigned vcpu);

/** linux_view_begin: the snapshot alone, of @vcpu's registers */
void linux_view_begin(LinuxView *view, unsigned vcpu);

/** linux_view_take: looks at the snapshot. Returns: as linux_view_sample() */
unsigned linux_view_take(LinuxView *view);

/** linux_view_name: Returns: what the frame at @pc of the last snapshot is called */
const char *linux_view_name(LinuxView *view, uint64_t pc);
