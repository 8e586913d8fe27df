/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux-guest.h - a guest of a few hundred KiB that looks like Linux on x86_64
 *
 * The guest's kernel has only the tables and structures that virt-uprof reads. The offsets of
 * members are not those of a real kernel; virt-uprof must find them in the kernel's type
 * information. Tests change single words of the guest's memory.
 */
#pragma once

#include "build-kallsyms.h"
#include "build-printk.h"
#include "memory-guest.h"
#include "uprof/space.h"

#define LINUX_IMAGE KALLSYMS_BASE
#define LINUX_DIRECT UINT64_C(0xffff888000000000) /* direct map of all memory */
#define LINUX_PAGES UINT64_C(0xffffea0000000000)
#define LINUX_IDT UINT64_C(0xfffffe0000000000)
#define LINUX_MODULES UINT64_C(0xffffffffc0000000)
#define LINUX_PROGRAM UINT64_C(0x555555554000)
#define LINUX_LIBRARY UINT64_C(0x7f0000000000)
#define LINUX_ANONYMOUS UINT64_C(0x7f1000000000)
#define LINUX_STACK UINT64_C(0x7ffffffde000)
#define LINUX_KERNEL_STACK UINT64_C(0xffffc90000020000) /* of all tasks; not in memory */

/* Time for a list of tasks: so much that tests do not depend on the host */
#define LINUX_LIST_NS (UINT64_C(1000) * 1000 * 1000 * 1000)

/* Offsets in the image. */
enum {
    LINUX_TEXT = 0,
    LINUX_ENTRY = 0x800, /* code that enters the kernel */
    LINUX_ENTRY_END = 0xa00,
    LINUX_PART = 0xb04, /* end of one section of code, and start of the next */
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
    LINUX_BPF_LIST = LINUX_DATA + 0x820,
    LINUX_FTRACE_LIST = LINUX_DATA + 0x830,
    LINUX_KPROBES = LINUX_DATA + 0x840, /* struct kprobe_insn_cache */
    LINUX_OPTIMIZED_KPROBES = LINUX_DATA + 0x860,
    LINUX_LOG = LINUX_DATA + 0x880, /* pointer to the struct printk_ringbuffer */
    LINUX_INIT_TASK = LINUX_DATA + 0xa00,
    LINUX_FIRST_IDS = LINUX_DATA + 0xd00, /* struct pid_namespace */
    LINUX_WAIT = 0x20,                    /* code that waits */
    LINUX_WAIT_END = 0x40,
    LINUX_NEW_TASK = 0x300,   /* code to which a task that has never run returns */
    LINUX_LOCK_MUTEX = 0x30d, /* code that waits for a mutex */
    LINUX_ROOT = 0x10000,     /* page tables */
    LINUX_IMAGE_BYTES = 0x12000,
    LINUX_IMAGE_GPA = 0x10000,
};

/* Offsets in structures. */
enum {
    TASK_MM = 0x20,
    TASK_PID = 0x28,
    TASK_TGID = 0x2c,
    TASK_COMM = 0x40,
    TASK_SET = 0x58,    /* pointer to a css_set */
    TASK_FILES = 0x60,  /* pointer to a files_struct */
    TASK_STACK = 0x68,  /* pointer to the kernel stack, LINUX_KERNEL_STACK */
    TASK_THREAD = 0x78, /* the thread pointer */
    FILES_TABLE = 0x20,
    TABLE_MAX = 0, /* fdtable */
    TABLE_FILES = 8,
    SET_CGROUP = 0x10,
    CGROUP_NODE = 8,
    KERNFS_PARENT = 0x18, /* kernfs_node */
    KERNFS_NAME = 0x20,
    TASK_BYTES = 0x80,
    /* only with LinuxPlan.lists_tasks */
    TASK_SAVED_SP = TASK_THREAD - 8, /* the stack pointer */
    TASK_RING = 0x80,                /* node in the ring of processes */
    TASK_NODE = 0x90,                /* node in the ring of threads */
    TASK_SIGNAL = 0xa0,
    TASK_STATE = 0xa8,
    TASK_EXIT = 0xac,
    TASK_FLAGS = 0xb0,
    TASK_ON_CPU = 0xb4,
    TASK_CPU = 0xb8,
    TASK_USAGE = 0xbc,
    TASK_PARENT = 0xc0,
    TASK_START = 0xc8,
    TASK_USER_TIME = 0xd0,
    TASK_SYSTEM_TIME = 0xd8,
    TASK_SHOWN_TIME = 0xe0, /* user and system time */
    TASK_LEFT = 0x200,      /* struct sched_entity: far from the other members */
    TASK_RUN_TIME = 0x208,
    TASK_SWITCHES = 0x210, /* voluntary and involuntary */
    TASK_IDS = 0x220,
    TASK_WORKER = 0x228,
    TASK_BLOCKED = 0x230, /* the waiter of a PI futex */
    TASK_IO = 0x238,      /* a byte that has a bit field */
    TASK_IO_MASK = 4,
    TASK_IO_BIT = 8 * TASK_IO + 2, /* for tasks that wait for I/O */
    TASK_LINKS = 0x240,            /* nodes of the lists in struct pid */
    TASK_LIST_BYTES = 0x260,
    WAITER_TASK = 0x18, /* mutex_waiter, rwsem_waiter, wait_queue_entry */
    WAITER_NODE = 8,
    WAITER_BYTES = 0x20,
    LOCK_OWNER = 8, /* mutex, rw_semaphore */
    LOCK_COUNT = 0, /* rw_semaphore */
    LOCK_HEAD = 0x20,
    LOCK_BYTES = 0x30,
    FUTEX_TASK = 8, /* rt_mutex_waiter */
    FUTEX_LOCK = 0x10,
    FUTEX_OWNER = 0x18, /* rt_mutex_base */
    PER_CPU_HEAD = 8,   /* percpu_rw_semaphore */
    PER_CPU_BYTES = 0x20,
    BLOCK_TYPE = 8, /* super_block */
    BLOCK_DEVICE = 0x10,
    BLOCK_FROZEN = 0x30,
    BLOCK_LEVELS = 0x38,
    BLOCK_BYTES = 0x98,
    TYPE_NAME = 8,      /* file_system_type */
    SIGNAL_HEAD = 0x10, /* signal_struct */
    IDS_LEVEL = 4,      /* pid */
    IDS_NUMBERS = 0x10,
    IDS_LISTS = 0x30, /* of the task, and of the process */
    IDS_BYTES = 0x40,
    IDS_ROOT = 0x18, /* pid_namespace: root of the tree */
    IDS_EACH = 16,
    THREAD_DATA = 8, /* kthread */
    THREAD_NAME = 0x10,
    WORKER_POOL = 0, /* worker */
    WORKER_WORK = 8,
    WORKER_QUEUE = 0x10,
    WORKER_TEXT = 0x18,
    QUEUE_NAME = 8,   /* workqueue_struct */
    SWITCH_FP = 0x28, /* inactive_task_frame */
    SWITCH_PC = 0x30,
    SWITCH_BYTES = 0x38,
    RUN_QUEUE_CLOCK = 0x20, /* rq */
    RUN_QUEUE_TASK_CLOCK = 0x28,
    MM_TREE = 0x40, /* the tree; its root is behind a lock */
    MM_ROOT = MM_TREE + 8,
    MM_PGD = 0x60,
    MM_VDSO = 0x68,
    MM_STACK = 0x70,
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
    FILE_MOUNT = FILE_PATH, /* pointer to MOUNT_PART of a mount */
    FILE_ENTRY = FILE_PATH + 8,
    MOUNT_PARENT = 0x10,
    MOUNT_POINT = 0x18,
    MOUNT_PART = 0x20,
    MOUNT_PART_ROOT = 8,
    MOUNT_BYTES = 0x40,
    ENTRY_PARENT = 0x18,
    ENTRY_NAME = 0x28,
    ENTRY_CHARS = 0x38, /* the name itself, if it is short */
    MAPPING_HOST = 8,
    MAPPING_HEAD = 0x18,
    INODE_SIZE = 0x50,
    NODE_SHIFT = 1,
    NODE_SLOTS = 0x28,
    NODE_N_SLOTS = 64,
    PAGE_FLAGS = 0,
    PAGE_HEAD = 8,
    PAGE_MAPPING = 0x18,
    PAGE_INDEX = 0x20,
    PAGE_STRUCT_BYTES = 64,
    PAGE_UPTODATE = 3, /* number of a bit in the flags */
    MODULE_STATE = 0,
    MODULE_LIST = 8,
    MODULE_NAME = 24,
    MODULE_CODE = 0x60,
    MODULE_CODE_LEN = MODULE_CODE + 8,
    MODULE_TEXT_LEN = MODULE_CODE + 12, /* up to 6.3 */
    MODULE_INIT = MODULE_CODE + 16,     /* as MODULE_CODE */
    MODULE_KALLSYMS = 0x80,
    MODULE_ARCH = 0x90,
    MODULE_N_ORCS = MODULE_ARCH,
    MODULE_ORC_IPS = MODULE_ARCH + 8,
    MODULE_ORCS = MODULE_ARCH + 16,
    MODULE_BYTES = 0x100,
    TABLE_SYMBOLS = 0, /* mod_kallsyms */
    TABLE_N = 8,
    TABLE_NAMES = 16,
    BPF_START = 0x20, /* bpf_ksym */
    BPF_END = 0x28,
    BPF_NAME = 0x30,
    BPF_NAME_BYTES = 32,
    BPF_NODE = 0x10,
    OPS_NODE = 8, /* ftrace_ops */
    OPS_CODE = 0x18,
    OPS_LEN = 0x20,
    CACHE_PAGES = 8, /* kprobe_insn_cache */
    KPROBE_NODE = 0, /* kprobe_insn_page */
    KPROBE_CODE = 0x10,
    RING_COUNT_BITS = 8, /* printk_ringbuffer */
    RING_DESCS = 0x10,
    RING_INFOS = 0x18,
    RING_HEAD = 0x20,
    RING_TAIL = 0x28,
    RING_SIZE_BITS = 0x30,
    RING_TEXT = 0x38,
    RING_BYTES = 0x40,
    CPU_CURRENT = 0x100, /* in the area of a CPU */
    CPU_IRQ = 0x110,
    CPU_RUN_QUEUE = 0x200,
};

/* Bits of page-table entries. */
#define LINUX_WRITABLE UINT64_C(0x2)
#define LINUX_USER UINT64_C(0x4)
#define LINUX_LARGE UINT64_C(0x80)
#define LINUX_NO_CODE (UINT64_C(1) << 63)

/** LinuxArea: a mapping of the process */
typedef struct {
    uint64_t start, end; /* guest-virtual addresses */
    uint64_t page;       /* offset in the file, in pages */
    unsigned file;       /* number of the file, from 1; 0: no file */
    bool is_code;
} LinuxArea;

/** linux_areas_fill: @areas: (out): @n areas of a program and two files, some of them code */
void linux_areas_fill(LinuxArea *areas, unsigned n);

enum {
    LINUX_AREAS_MAX = 32,
    LINUX_FILES = 2,
    LINUX_PERF_MAP = LINUX_FILES, /* index of one more file, which is not mapped */
    LINUX_ALL_FILES,
    LINUX_PERF_MAP_PAGES = 4,
    LINUX_PERF_MAP_DESCRIPTOR = 5,
    LINUX_CPUS_MAX = 128,
};

/** LinuxPlan: the guest to make; all zeros make Linux 6.4 with a maple tree */
typedef struct {
    unsigned n_vcpus;     /* 0 means 1 */
    const char *release;  /* (nullable): borrowed */
    bool is_red_black;    /* areas are in a red-black tree, as before 6.1 */
    bool is_old_module;   /* struct module as before 6.4 */
    bool has_hot;         /* pcpu_hot has the running task, as from 6.2 to 6.14 */
    bool has_irq_end;     /* the pointer to the interrupt stack points to its end, as up to 5.10 */
    bool has_isolation;   /* the page tables of user mode map only a small part of the kernel */
    bool is_xen;          /* a paravirtual guest of Xen */
    bool no_symbols;      /* the kernel is built without symbols */
    bool no_types;        /* the kernel is built without BTF */
    bool no_rules;        /* the kernel is built without unwind tables */
    bool no_module_rules; /* BTF lacks the members for unwind tables of modules */
    bool lists_tasks;     /* the kernel has types and symbols for its tasks */
    const char
        *no_member; /* (nullable): borrowed: a member of task_struct or a lock that BTF lacks */
    bool has_first_waiter;  /* a mutex points to its first waiter, and has no head of a ring */
    bool no_cpus;           /* the kernel lacks the symbol for the areas of CPUs */
    uint32_t name_at;       /* wrong offset of a task's name in BTF; 0: the right one */
    unsigned n_modules;     /* each module has one page */
    size_t more_bytes;      /* additional memory */
    const LinuxArea *areas; /* (nullable): borrowed; sorted; NULL: a program and a library */
    unsigned n_areas;       /* in @areas */
} LinuxPlan;

/** LinuxGuest: the guest, and the guest-physical addresses of its parts */
typedef struct {
    LinuxPlan plan;
    MemoryGuest *memory;   /* owned */
    uint64_t free;         /* memory from here on is free */
    uint64_t root;         /* page tables that map only the kernel */
    uint64_t process_root; /* page tables of the process; with isolation, its tables of user mode
                            * are in the next page */
    uint64_t cpu_areas[LINUX_CPUS_MAX]; /* by CPU */
    uint64_t task, mm;                  /* of the process, which runs on all CPUs */
    uint64_t areas[LINUX_AREAS_MAX];    /* in the order of the plan */
    uint64_t nodes[LINUX_AREAS_MAX];    /* maple tree: the root, a node with leaves, leaves */
    unsigned n_nodes;                   /* in @nodes */
    uint64_t files[LINUX_ALL_FILES];    /* files in "/lib" */
    uint64_t heads[LINUX_ALL_FILES];    /* their first pages */
    uint64_t mappings[LINUX_ALL_FILES]; /* the structs address_space of the files */
    uint64_t inodes[LINUX_ALL_FILES];
    uint64_t nodes_of_files[LINUX_ALL_FILES]; /* xarray nodes of their first pages */
    uint64_t folder;                          /* the directory entry of "/lib" */
    uint64_t perf_map;                        /* the pages of the perf map; 0: there is none */
    uint64_t open_files;                      /* the pointers to open files */
    uint64_t structs;                         /* the array of struct page */
    uint64_t mount;       /* of the only mounted file system, which has the files */
    uint64_t modules[16]; /* the first modules */
} LinuxGuest;

/** linux_guest_new: makes a guest in which all vCPUs run the code of the process */
LinuxGuest *linux_guest_new(const LinuxPlan *plan);
void linux_guest_free(LinuxGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LinuxGuest, linux_guest_free)

/** linux_guest_alloc: Returns: guest-physical address of @len zero bytes, aligned to @align */
uint64_t linux_guest_alloc(LinuxGuest *guest, size_t len, size_t align);

/** linux_guest_image: Returns: guest-physical address of an offset in the image */
uint64_t linux_guest_image(uint64_t offset);

/** linux_guest_put, linux_guest_get: write and read the word at guest-physical @gpa */
void linux_guest_put(LinuxGuest *guest, uint64_t gpa, uint64_t word);
uint64_t linux_guest_get(const LinuxGuest *guest, uint64_t gpa);

/** linux_guest_struct: Returns: guest-physical address of the struct page of the page at @gpa */
uint64_t linux_guest_struct(const LinuxGuest *guest, uint64_t gpa);

/** linux_guest_cache: puts the page at @gpa into the page cache, as page @number of @file (from 0)
 */
void linux_guest_cache(LinuxGuest *guest, unsigned file, uint64_t number, uint64_t gpa);

/**
 * linux_guest_open_perf_map: the process of @task opens an empty perf map, as the descriptor
 * %LINUX_PERF_MAP_DESCRIPTOR
 */
void linux_guest_open_perf_map(LinuxGuest *guest, uint64_t task);

/** linux_guest_write_perf_map: replaces the content by @text, up to %LINUX_PERF_MAP_PAGES */
void linux_guest_write_perf_map(LinuxGuest *guest, const char *text);

/** linux_guest_put_log: the kernel has the log of @builder */
void linux_guest_put_log(LinuxGuest *guest, const PrintkBuilder *builder);

/** linux_guest_put_text: writes @text with its NUL */
void linux_guest_put_text(LinuxGuest *guest, uint64_t gpa, const char *text);

/**
 * linux_guest_map: maps one page
 * @root: of the page tables to change
 * @bits: of the entry, without the present bit
 */
void linux_guest_map(LinuxGuest *guest, uint64_t root, uint64_t gva, uint64_t gpa, uint64_t bits);

/** linux_guest_unmap: unmaps the page at @offset in the image */
void linux_guest_unmap(LinuxGuest *guest, uint64_t offset);

/** linux_guest_add_task: Returns: guest-physical address of a new task; @mm: 0: none */
uint64_t linux_guest_add_task(LinuxGuest *guest, const char *name, unsigned pid, uint64_t mm);

/**
 * linux_guest_list_task: adds a task to the ring of processes, or, with @leader, to the ring of its
 * threads
 * @leader: 0, or guest-physical address of the first thread
 */
void linux_guest_list_task(LinuxGuest *guest, uint64_t task, uint64_t leader);

/**
 * linux_guest_number_tasks: makes the tree by which the kernel finds tasks
 * @tasks: guest-physical addresses of @n tasks, in the order of their numbers
 *
 * Returns: guest-physical address of the root node
 */
uint64_t linux_guest_number_tasks(LinuxGuest *guest, const uint64_t *tasks, unsigned n);

/** linux_guest_unlist_task: removes a process from the ring, as the kernel does */
void linux_guest_unlist_task(LinuxGuest *guest, uint64_t task);

/**
 * linux_guest_add_stack: gives a task a kernel stack of its own, on which it waits
 * @pc: where its frame returns; the words @words are above the frame
 *
 * Returns: guest-physical address of the end of the stack
 */
uint64_t linux_guest_add_stack(LinuxGuest *guest, uint64_t task, uint64_t pc, const uint64_t *words,
                               unsigned n_words);

/**
 * linux_guest_add_waiter: puts a waiter behind the last one of a ring
 * @at: guest-physical address of the waiter, which is zeros
 * @head: guest-physical address of the head of the ring; a head of zeros is made one
 */
void linux_guest_add_waiter(LinuxGuest *guest, uint64_t at, uint64_t task, uint64_t head);

/**
 * linux_guest_add_mm: Returns: guest-physical address of a new mm, which has the areas and page
 * tables of the first process
 */
uint64_t linux_guest_add_mm(LinuxGuest *guest);

/** linux_guest_run: @vcpu runs @task from now on; @is_kernel: in kernel mode */
void linux_guest_run(LinuxGuest *guest, unsigned vcpu, uint64_t task, bool is_kernel);

/** linux_guest_entry: Returns: pointer to the maple tree node at @gpa, encoded as in a tree */
uint64_t linux_guest_entry(uint64_t gpa, unsigned type, bool is_root);

/** LinuxView: what virt-uprof knows of a guest; all members are owned unless they say "borrowed" */
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

/** linux_view_new: @guest: borrowed; must outlive the result */
LinuxView *linux_view_new(LinuxGuest *guest);
void linux_view_free(LinuxView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LinuxView, linux_view_free)

/**
 * linux_view_sample: takes a snapshot of @vcpu and analyzes it
 *
 * The snapshot has the running task, if its address is known, and the view's time and reset.
 *
 * Returns: number of spans of memory that were read for the analysis
 */
unsigned linux_view_sample(LinuxView *view, unsigned vcpu);

/** linux_view_begin: makes a snapshot that has only the registers of @vcpu */
void linux_view_begin(LinuxView *view, unsigned vcpu);

/** linux_view_copy_task: adds the running task to the snapshot, if its address is known */
void linux_view_copy_task(LinuxView *view, unsigned vcpu);

/** linux_view_take: analyzes the snapshot. Returns: as linux_view_sample() */
unsigned linux_view_take(LinuxView *view);

/** linux_view_name: Returns: the name of a frame at @pc in the last snapshot */
const char *linux_view_name(LinuxView *view, uint64_t pc);
