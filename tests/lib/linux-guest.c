/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "linux-guest.h"

#include <elf.h>
#include <string.h>

#include "build-btf.h"
#include "build-orc.h"

enum {
    PAGE = 4096,
    RAM_BYTES = 512 * 1024, /* without the memory of modules and CPUs */
    LARGE_BYTES = 2 * 1024 * 1024,
    N_FUNCTIONS = 1000,
    LEAF_AREAS = 3,
    AREA_CODE = 0x4, /* VM_EXEC */
    PID = 4242,
};

#define PRESENT UINT64_C(0x1)
#define FRAME UINT64_C(0x000ffffffffff000)

/* A program; a library, whose first page is not in the page tables; and code without a file */
static const LinuxArea usual_areas[] = {
    { LINUX_PROGRAM, LINUX_PROGRAM + 0x1000, 0, 1, false },
    { LINUX_PROGRAM + 0x1000, LINUX_PROGRAM + 0x4000, 1, 1, true },
    { LINUX_PROGRAM + 0x4000, LINUX_PROGRAM + 0x5000, 4, 1, false },
    { LINUX_LIBRARY, LINUX_LIBRARY + 0x28000, 0, 2, false },
    { LINUX_LIBRARY + 0x28000, LINUX_LIBRARY + 0x30000, 0x28, 2, true },
    { LINUX_ANONYMOUS, LINUX_ANONYMOUS + 0x2000, 0, 0, true },
    { LINUX_STACK, LINUX_STACK + 0x21000, 0, 0, false },
};

static const char *const file_names[LINUX_ALL_FILES] = { "nginx", "libc.so.6", "perf-4242.map" };

void
linux_areas_fill(LinuxArea *areas, unsigned n)
{
    enum { LEN = 3 * PAGE };

    for (unsigned i = 0; i < n; i++) {
        const uint64_t start = LINUX_PROGRAM + (uint64_t)i * 2 * LEN;
        areas[i] = (LinuxArea){ start, start + LEN, i % 4, i % (LINUX_FILES + 1), i % 4 != 1 };
    }
}

/* ---- Words ---- */

uint64_t
linux_guest_alloc(LinuxGuest *guest, size_t len, size_t align)
{
    const uint64_t gpa = (guest->free + align - 1) / align * align;

    g_assert(gpa + len <= guest->memory->ram_len);
    guest->free = gpa + len;
    return gpa;
}

uint64_t
linux_guest_image(uint64_t offset)
{
    return LINUX_IMAGE_GPA + offset;
}

void
linux_guest_put(LinuxGuest *guest, uint64_t gpa, uint64_t word)
{
    memory_guest_put_u64(guest->memory, gpa, word);
}

uint64_t
linux_guest_get(const LinuxGuest *guest, uint64_t gpa)
{
    uint64_t word;

    g_assert(gpa + sizeof(word) <= guest->memory->ram_len);
    memcpy(&word, guest->memory->ram + gpa, sizeof(word));
    return GUINT64_FROM_LE(word);
}

/* Returns: guest-physical address of a copy */
static uint64_t
put_copy(LinuxGuest *guest, UprofSlice bytes)
{
    const uint64_t gpa = linux_guest_alloc(guest, bytes.len, PAGE);

    memory_guest_put(guest->memory, gpa, bytes.data, bytes.len);
    return gpa;
}

void
linux_guest_put_log(LinuxGuest *guest, const PrintkBuilder *builder)
{
    const UprofPrintkRing ring = printk_ring(builder);
    const uint64_t gpa = linux_guest_alloc(guest, RING_BYTES, 8);

    linux_guest_put(guest, gpa + RING_COUNT_BITS, ring.count_bits);
    linux_guest_put(guest, gpa + RING_SIZE_BITS, ring.size_bits);
    linux_guest_put(guest, gpa + RING_TAIL, ring.tail);
    linux_guest_put(guest, gpa + RING_HEAD, ring.head);
    linux_guest_put(guest, gpa + RING_DESCS, LINUX_DIRECT + put_copy(guest, ring.descs));
    linux_guest_put(guest, gpa + RING_INFOS, LINUX_DIRECT + put_copy(guest, ring.infos));
    linux_guest_put(guest, gpa + RING_TEXT, LINUX_DIRECT + put_copy(guest, ring.text));
    linux_guest_put(guest, linux_guest_image(LINUX_LOG), LINUX_DIRECT + gpa);
}

void
linux_guest_put_text(LinuxGuest *guest, uint64_t gpa, const char *text)
{
    memory_guest_put(guest->memory, gpa, text, strlen(text) + 1);
}

/* Writes a pointer of the kernel: the address of guest-physical @target in the direct map. */
static void
put_pointer(LinuxGuest *guest, uint64_t gpa, uint64_t target)
{
    linux_guest_put(guest, gpa, LINUX_DIRECT + target);
}

/* ---- Page tables ---- */

/* Returns: guest-physical address of the entry of @gva at @level; 1 is the lowest level */
static uint64_t
find_entry(LinuxGuest *guest, uint64_t root, uint64_t gva, unsigned level)
{
    uint64_t table = root;

    for (unsigned i = 4;; i--) {
        const uint64_t at = table + 8 * (gva >> (12 + 9 * (i - 1)) & 511);
        if (i == level)
            return at;
        if (linux_guest_get(guest, at) == 0) {
            const uint64_t next = linux_guest_alloc(guest, PAGE, PAGE);
            linux_guest_put(guest, at, next | PRESENT | LINUX_WRITABLE | LINUX_USER);
        }
        table = linux_guest_get(guest, at) & FRAME;
    }
}

void
linux_guest_map(LinuxGuest *guest, uint64_t root, uint64_t gva, uint64_t gpa, uint64_t bits)
{
    const uint64_t at = find_entry(guest, root, gva, bits & LINUX_LARGE ? 2 : 1);

    linux_guest_put(guest, at, gpa | bits | PRESENT);
}

void
linux_guest_unmap(LinuxGuest *guest, uint64_t offset)
{
    linux_guest_put(guest, find_entry(guest, guest->root, LINUX_IMAGE + offset, 1), 0);
}

static void
map_kernel(LinuxGuest *guest)
{
    const uint64_t idt = linux_guest_alloc(guest, PAGE, PAGE);
    const uint64_t handler = LINUX_IMAGE + 0x20;

    for (uint64_t offset = 0; offset < LINUX_IMAGE_BYTES; offset += PAGE) {
        const uint64_t kind = offset < LINUX_TABLES ? 0
                              : offset < LINUX_ORC  ? LINUX_NO_CODE
                                                    : LINUX_NO_CODE | LINUX_WRITABLE;
        linux_guest_map(guest, guest->root, LINUX_IMAGE + offset, linux_guest_image(offset), kind);
    }
    /* a paravirtual guest has no large pages */
    const uint64_t step = guest->plan.is_xen ? PAGE : LARGE_BYTES;
    const uint64_t bits = LINUX_NO_CODE | LINUX_WRITABLE | (guest->plan.is_xen ? 0 : LINUX_LARGE);
    for (uint64_t gpa = 0; gpa < guest->memory->ram_len; gpa += step)
        linux_guest_map(guest, guest->root, LINUX_DIRECT + gpa, gpa, bits);
    linux_guest_map(guest, guest->root, LINUX_IDT, idt, LINUX_NO_CODE);
    linux_guest_put(guest, idt,
                    (handler & 0xffff) | 0x8e00ULL << 32 | (handler >> 16 & 0xffff) << 48);
    linux_guest_put(guest, idt + 8, handler >> 32);
}

/* Maps the array of struct page, with one for each page of memory. */
static void
map_structs(LinuxGuest *guest)
{
    const size_t len = guest->memory->ram_len / PAGE * PAGE_STRUCT_BYTES;

    guest->structs = linux_guest_alloc(guest, len, PAGE);
    for (size_t at = 0; at < len; at += PAGE)
        linux_guest_map(guest, guest->root, LINUX_PAGES + at, guest->structs + at,
                        LINUX_NO_CODE | LINUX_WRITABLE);
}

/*
 * The process's page tables map the kernel, too. The next page has its tables of user mode: with
 * isolation they map a small part of the kernel, and on Xen nothing of the kernel.
 */
static void
make_process_root(LinuxGuest *guest)
{
    guest->process_root = linux_guest_alloc(guest, 2 * PAGE, 2 * PAGE);
    map_structs(guest);
    for (unsigned i = 256; i < 512; i++)
        linux_guest_put(guest, guest->process_root + 8 * i,
                        linux_guest_get(guest, guest->root + 8 * i));
    if (!guest->plan.has_isolation || guest->plan.is_xen)
        return;
    linux_guest_map(guest, guest->process_root + PAGE, LINUX_IMAGE, linux_guest_image(0), 0);
    linux_guest_map(guest, guest->process_root + PAGE, LINUX_IDT,
                    linux_guest_get(guest, find_entry(guest, guest->root, LINUX_IDT, 1)) & FRAME,
                    LINUX_NO_CODE);
}

static void
map_for_process(LinuxGuest *guest, uint64_t gva, uint64_t gpa, uint64_t bits)
{
    linux_guest_map(guest, guest->process_root, gva, gpa, bits | LINUX_USER);
    if (guest->plan.has_isolation || guest->plan.is_xen)
        linux_guest_map(guest, guest->process_root + PAGE, gva, gpa, bits | LINUX_USER);
}

/* ---- The kernel's image ---- */

#define STRUCT(name, size, ...)                                                                    \
    btf_add_struct(builder, name, BTF_STRUCT, false, size, (const BtfMember[]){ __VA_ARGS__ },     \
                   sizeof((const BtfMember[]){ __VA_ARGS__ }) / sizeof(BtfMember))

/* Returns: the name of a member, unless the plan's kernel lacks it */
static const char *
has_member(const LinuxPlan *plan, const char *name)
{
    return g_strcmp0(plan->no_member, name) == 0 ? "removed" : name;
}

/* @ring: of struct list_head */
static void
add_lock_types(BtfBuilder *builder, const LinuxPlan *plan, unsigned word, unsigned ring)
{
    const char *head = plan->has_first_waiter ? "first_waiter" : has_member(plan, "wait_list");
    const unsigned queue = STRUCT("wait_queue_head", 24, { "head", ring, 64 });

    STRUCT("mutex_waiter", WAITER_BYTES, { "list", ring, 8 * WAITER_NODE },
           { "task", word, 8 * WAITER_TASK });
    STRUCT("mutex", LOCK_BYTES, { "owner", word, 8 * LOCK_OWNER }, { head, ring, 8 * LOCK_HEAD });
    STRUCT("rwsem_waiter", WAITER_BYTES, { "list", ring, 8 * WAITER_NODE },
           { "task", word, 8 * WAITER_TASK });
    STRUCT("rw_semaphore", LOCK_BYTES, { "count", word, 8 * LOCK_COUNT },
           { "owner", word, 8 * LOCK_OWNER }, { "wait_list", ring, 8 * LOCK_HEAD });
    STRUCT("rt_mutex_waiter", WAITER_BYTES, { "task", word, 8 * FUTEX_TASK },
           { "lock", word, 8 * FUTEX_LOCK });
    STRUCT("rt_mutex_base", WAITER_BYTES, { "owner", word, 8 * FUTEX_OWNER });
    STRUCT("wait_queue_entry", WAITER_BYTES, { "private", word, 8 * WAITER_TASK },
           { "entry", ring, 8 * WAITER_NODE });
    STRUCT("percpu_rw_semaphore", PER_CPU_BYTES, { "waiters", queue, 8 * (PER_CPU_HEAD - 8) });
    const unsigned writers = STRUCT("sb_writers", BLOCK_BYTES - BLOCK_FROZEN, { "frozen", word, 0 },
                                    { "rw_sem", word, 8 * (BLOCK_LEVELS - BLOCK_FROZEN) });
    STRUCT("super_block", BLOCK_BYTES, { "s_type", word, 8 * BLOCK_TYPE },
           { "s_id", word, 8 * BLOCK_DEVICE }, { "s_writers", writers, 8 * BLOCK_FROZEN });
    STRUCT("file_system_type", 0x20, { "name", word, 8 * TYPE_NAME });
}

/* The types of a kernel whose tasks can be listed. @thread: of struct thread_struct */
static void
add_task_types(BtfBuilder *builder, const LinuxPlan *plan, unsigned word, unsigned thread)
{
    const unsigned number =
        btf_add(builder, "unsigned int", BTF_INT, false, 0, 4, (uint32_t[]){ 32 }, 1);
    const unsigned ring = STRUCT("list_head", 16, { "next", word, 0 }, { "prev", word, 64 });
    const unsigned times = STRUCT("prev_cputime", 16, { "utime", word, 0 }, { "stime", word, 64 });
    const unsigned entity = STRUCT("sched_entity", 16, { has_member(plan, "exec_start"), word, 0 },
                                   { "sum_exec_runtime", word, 64 });
    const unsigned text = STRUCT("text", 24, { "first", word, 0 });
#define HAS(name) has_member(plan, name)
    const BtfMember task[] = { { "mm", word, 8 * TASK_MM },
                               { "pid", number, 8 * TASK_PID },
                               { "tgid", number, 8 * TASK_TGID },
                               { "comm", word, 8 * TASK_COMM },
                               { "cgroups", word, 8 * TASK_SET },
                               { "files", word, 8 * TASK_FILES },
                               { HAS("stack"), word, 8 * TASK_STACK },
                               { "thread", thread, 8 * TASK_SAVED_SP },
                               { HAS("tasks"), ring, 8 * TASK_RING },
                               { HAS("thread_node"), ring, 8 * TASK_NODE },
                               { "signal", word, 8 * TASK_SIGNAL },
                               { HAS("__state"), number, 8 * TASK_STATE },
                               { "exit_state", number, 8 * TASK_EXIT },
                               { HAS("flags"), number, 8 * TASK_FLAGS },
                               { HAS("on_cpu"), number, 8 * TASK_ON_CPU },
                               { "cpu", number, 8 * TASK_CPU },
                               { "usage", number, 8 * TASK_USAGE },
                               { HAS("real_parent"), word, 8 * TASK_PARENT },
                               { "start_boottime", word, 8 * TASK_START },
                               { "utime", word, 8 * TASK_USER_TIME },
                               { "stime", word, 8 * TASK_SYSTEM_TIME },
                               { "prev_cputime", times, 8 * TASK_SHOWN_TIME },
                               { "se", entity, 8 * TASK_LEFT },
                               { "nvcsw", word, 8 * TASK_SWITCHES },
                               { "nivcsw", word, 8 * (TASK_SWITCHES + 8) },
                               { "thread_pid", word, 8 * TASK_IDS },
                               { "worker_private", word, 8 * TASK_WORKER },
                               { HAS("pi_blocked_on"), word, 8 * TASK_BLOCKED },
                               { "pid_links", word, 8 * TASK_LINKS },
                               { HAS("in_iowait"), number, 1 << 24 | TASK_IO_BIT } };
    btf_add_struct(builder, "task_struct", BTF_STRUCT, true, TASK_LIST_BYTES, task,
                   G_N_ELEMENTS(task));
#undef HAS
    STRUCT("signal_struct", 0x40, { "thread_head", ring, 8 * SIGNAL_HEAD });
    STRUCT("upid", IDS_EACH, { "nr", number, 0 }, { "ns", word, 64 });
    STRUCT("pid", IDS_BYTES, { "level", number, 8 * IDS_LEVEL },
           { "numbers", word, 8 * IDS_NUMBERS }, { "tasks", word, 8 * IDS_LISTS });
    const unsigned tree = STRUCT("xarray", 16, { "xa_head", word, 64 });
    const unsigned ids = STRUCT("idr", 24, { "idr_rt", tree, 0 });
    STRUCT("pid_namespace", 0x40, { "idr", ids, 8 * (IDS_ROOT - 8) });
    STRUCT("kthread", 0x20, { "data", word, 8 * THREAD_DATA },
           { "full_name", word, 8 * THREAD_NAME });
    STRUCT("worker", 0x40, { "pool", word, 8 * WORKER_POOL },
           { "current_work", word, 8 * WORKER_WORK }, { "rescue_wq", word, 8 * WORKER_QUEUE },
           { "desc", text, 8 * WORKER_TEXT });
    STRUCT("workqueue_struct", 0x40, { "name", text, 8 * QUEUE_NAME });
    STRUCT("rq", 0x40, { "clock", word, 8 * RUN_QUEUE_CLOCK },
           { has_member(plan, "clock_task"), word, 8 * RUN_QUEUE_TASK_CLOCK });
    add_lock_types(builder, plan, word, ring);
    STRUCT("inactive_task_frame", SWITCH_BYTES, { "bp", word, 8 * SWITCH_FP },
           { "ret_addr", word, 8 * SWITCH_PC });
}

#undef STRUCT

static GByteArray *
make_types(const LinuxPlan *plan)
{
    g_auto(BtfBuilder) builder;

    btf_init(&builder);
    const uint32_t integer[] = { 64 };
    const unsigned word = btf_add(&builder, "unsigned long", BTF_INT, false, 0, 8, integer, 1);
    const uint32_t slots[] = { word, word, MAPLE_N_SLOTS };
    const unsigned leaf_slots = btf_add(&builder, NULL, BTF_ARRAY, false, 0, 0, slots, 3);
    const uint32_t gap_slots[] = { word, word, MAPLE_N_GAP_SLOTS };
    const unsigned inner_slots = btf_add(&builder, NULL, BTF_ARRAY, false, 0, 0, gap_slots, 3);
    const uint32_t cache_slots[] = { word, word, NODE_N_SLOTS };
    const unsigned node_slots = btf_add(&builder, NULL, BTF_ARRAY, false, 0, 0, cache_slots, 3);
#define STRUCT(name, size, ...)                                                                    \
    btf_add_struct(&builder, name, BTF_STRUCT, false, size, (const BtfMember[]){ __VA_ARGS__ },    \
                   sizeof((const BtfMember[]){ __VA_ARGS__ }) / sizeof(BtfMember))
    const unsigned node =
        STRUCT("rb_node", 24, { "rb_right", word, 8 * RB_RIGHT }, { "rb_left", word, 8 * RB_LEFT });
    const unsigned red_black = STRUCT("rb_root", 8, { "rb_node", word, 0 });
    const unsigned maple = STRUCT("maple_tree", 16, { "ma_root", word, 64 });
    const unsigned context = STRUCT("mm_context_t", 8, { "vdso", word, 0 });
    const unsigned path = STRUCT("path", 16, { "mnt", word, 0 }, { "dentry", word, 64 });
    const unsigned text = STRUCT("qstr", 16, { "hash_len", word, 0 }, { "name", word, 64 });
    const unsigned tree = STRUCT("xarray", 16, { "xa_head", word, 64 });
    const unsigned arch =
        STRUCT("mod_arch_specific", 24, { plan->no_module_rules ? "number" : "num_orcs", word, 0 },
               { "orc_unwind_ip", word, 64 }, { "orc_unwind", word, 128 });
    const unsigned layout =
        plan->is_old_module
            ? STRUCT("module_layout", 16, { "base", word, 0 }, { "size", word, 64 },
                     { "text_size", word, 96 })
            : STRUCT("module_memory", 16, { "base", word, 0 }, { "size", word, 64 });
    const uint32_t name_at = plan->name_at ? plan->name_at : TASK_COMM;
    const unsigned thread = STRUCT("thread_struct", 16, { "sp", word, 0 }, { "fsbase", word, 64 });
    if (plan->lists_tasks)
        add_task_types(&builder, plan, word, thread);
    STRUCT("task_struct", name_at + TASK_BYTES, { "mm", word, 8 * TASK_MM },
           { "pid", word, 8 * TASK_PID }, { "tgid", word, 8 * TASK_TGID },
           { "comm", word, 8 * name_at }, { "cgroups", word, 8 * TASK_SET },
           { "files", word, 8 * TASK_FILES }, { "stack", word, 8 * TASK_STACK },
           { "thread", thread, 8 * (TASK_THREAD - 8) });
    STRUCT("files_struct", 0x40, { "fdt", word, 8 * FILES_TABLE });
    STRUCT("fdtable", 0x20, { "max_fds", word, 8 * TABLE_MAX }, { "fd", word, 8 * TABLE_FILES });
    STRUCT("inode", 0x80, { "i_size", word, 8 * INODE_SIZE });
    STRUCT("css_set", 0x20, { "dfl_cgrp", word, 8 * SET_CGROUP });
    STRUCT("cgroup", 0x10, { "kn", word, 8 * CGROUP_NODE });
    STRUCT("kernfs_node", 0x40, { plan->has_hot ? "parent" : "__parent", word, 8 * KERNFS_PARENT },
           { "name", word, 8 * KERNFS_NAME });
    STRUCT("mm_struct", MM_BYTES,
           { plan->is_red_black ? "mm_rb" : "mm_mt", plan->is_red_black ? red_black : maple,
             8 * (plan->is_red_black ? MM_ROOT : MM_TREE) },
           { "pgd", word, 8 * MM_PGD }, { "context", context, 8 * MM_VDSO },
           { "start_stack", word, 8 * MM_STACK });
    STRUCT("maple_range_64", 256, { "pivot", leaf_slots, 8 * MAPLE_PIVOTS },
           { "slot", leaf_slots, 8 * MAPLE_SLOTS });
    STRUCT("maple_arange_64", 256, { "pivot", inner_slots, 8 * MAPLE_PIVOTS },
           { "slot", inner_slots, 8 * MAPLE_GAP_SLOTS });
    STRUCT("vm_area_struct", AREA_BYTES, { "vm_start", word, 8 * AREA_START },
           { "vm_end", word, 8 * AREA_END }, { "vm_flags", word, 8 * AREA_FLAGS },
           { "vm_pgoff", word, 8 * AREA_PAGE }, { "vm_file", word, 8 * AREA_FILE },
           { "vm_rb", node, 8 * AREA_NODE });
    STRUCT("file", 0x80, { "f_mapping", word, 8 * FILE_MAPPING },
           { "f_path", path, 8 * FILE_PATH });
    const unsigned part = STRUCT("vfsmount", 16, { "mnt_root", word, 8 * MOUNT_PART_ROOT });
    STRUCT("mount", MOUNT_BYTES, { "mnt_parent", word, 8 * MOUNT_PARENT },
           { "mnt_mountpoint", word, 8 * MOUNT_POINT }, { "mnt", part, 8 * MOUNT_PART });
    STRUCT("dentry", 0x60, { "d_parent", word, 8 * ENTRY_PARENT },
           { "d_name", text, 8 * (ENTRY_NAME - 8) });
    STRUCT("address_space", 0x40, { "host", word, 8 * MAPPING_HOST },
           { "i_pages", tree, 8 * (MAPPING_HEAD - 8) });
    STRUCT("xa_node", 0x240, { "shift", word, 8 * NODE_SHIFT },
           { "slots", node_slots, 8 * NODE_SLOTS });
    STRUCT("page", PAGE_STRUCT_BYTES, { "flags", word, 8 * PAGE_FLAGS },
           { "compound_head", word, 8 * PAGE_HEAD }, { "mapping", word, 8 * PAGE_MAPPING },
           { "index", word, 8 * PAGE_INDEX });
    const uint32_t flags[] = { btf_name(&builder, "PG_locked"), 0,
                               btf_name(&builder, "PG_uptodate"), PAGE_UPTODATE };
    btf_add(&builder, "pageflags", BTF_ENUM, false, 2, 4, flags, 4);
    const uint32_t parts[] = { btf_name(&builder, "MOD_TEXT"), 0,
                               btf_name(&builder, "MOD_INIT_TEXT"), 1 };
    btf_add(&builder, "mod_mem_type", BTF_ENUM, false, 2, 4, parts, 4);
    STRUCT("pcpu_hot", 64, { "current_task", word, 0 },
           { "hardirq_stack_ptr", word, 8 * (CPU_IRQ - CPU_CURRENT) });
    STRUCT("module", MODULE_BYTES, { "state", word, 8 * MODULE_STATE },
           { "list", word, 8 * MODULE_LIST },
           { plan->is_old_module ? "core_layout" : "mem", layout, 8 * MODULE_CODE },
           { plan->is_old_module ? "init_layout" : "unused", layout, 8 * MODULE_INIT },
           { "kallsyms", word, 8 * MODULE_KALLSYMS }, { "arch", arch, 8 * MODULE_ARCH });
    STRUCT("mod_kallsyms", 24, { "symtab", word, 8 * TABLE_SYMBOLS },
           { "num_symtab", word, 8 * TABLE_N }, { "strtab", word, 8 * TABLE_NAMES });
    const uint32_t name[] = { btf_add(&builder, "char", BTF_INT, false, 0, 1, (uint32_t[]){ 8 }, 1),
                              word, BPF_NAME_BYTES };
    const unsigned names = btf_add(&builder, NULL, BTF_ARRAY, false, 0, 0, name, 3);
    STRUCT("bpf_ksym", BPF_NAME + BPF_NAME_BYTES, { "lnode", word, 8 * BPF_NODE },
           { "start", word, 8 * BPF_START }, { "end", word, 8 * BPF_END },
           { "name", names, 8 * BPF_NAME });
    STRUCT("ftrace_ops", 0x40, { "list", word, 8 * OPS_NODE }, { "trampoline", word, 8 * OPS_CODE },
           { "trampoline_size", word, 8 * OPS_LEN });
    STRUCT("kprobe_insn_cache", 0x20, { "pages", word, 8 * CACHE_PAGES });
    STRUCT("kprobe_insn_page", 0x20, { "list", word, 8 * KPROBE_NODE },
           { "insns", word, 8 * KPROBE_CODE });
    const unsigned descs = STRUCT("prb_desc_ring", 0x28, { "count_bits", word, 0 },
                                  { "descs", word, 8 * (RING_DESCS - RING_COUNT_BITS) },
                                  { "infos", word, 8 * (RING_INFOS - RING_COUNT_BITS) },
                                  { "head_id", word, 8 * (RING_HEAD - RING_COUNT_BITS) },
                                  { "tail_id", word, 8 * (RING_TAIL - RING_COUNT_BITS) });
    const unsigned data = STRUCT("prb_data_ring", 0x10, { "size_bits", word, 0 },
                                 { "data", word, 8 * (RING_TEXT - RING_SIZE_BITS) });
    STRUCT("printk_ringbuffer", RING_BYTES, { "desc_ring", descs, 8 * RING_COUNT_BITS },
           { "text_data_ring", data, 8 * RING_SIZE_BITS });
    const unsigned positions =
        STRUCT("prb_data_blk_lpos", 16, { "begin", word, 0 }, { "next", word, 64 });
    STRUCT("prb_desc", PRINTK_DESC_BYTES, { "state_var", word, 8 * PRINTK_STATE },
           { "text_blk_lpos", positions, 8 * PRINTK_BEGIN });
    const BtfMember info[] = {
        { "seq", word, 8 * PRINTK_SEQUENCE },      { "ts_nsec", word, 8 * PRINTK_TIME },
        { "text_len", word, 8 * PRINTK_TEXT_LEN }, { "facility", word, 8 * PRINTK_FACILITY },
        { "caller_id", word, 8 * PRINTK_CALLER },  { "level", word, 3 << 24 | PRINTK_LEVEL_BITS },
    };
    btf_add_struct(&builder, "printk_info", BTF_STRUCT, true, PRINTK_INFO_BYTES, info,
                   G_N_ELEMENTS(info));
#undef STRUCT
    return btf_finish(&builder);
}

static void
put_symbols(LinuxGuest *guest, guint types_len, size_t rules_len)
{
    const LinuxPlan *plan = &guest->plan;
    const KallsymsNamed named[] = {
        { "__entry_text_start", LINUX_IMAGE + LINUX_ENTRY, 'T' },
        { "__entry_text_end", LINUX_IMAGE + LINUX_ENTRY_END, 'T' },
        { "__part_start", LINUX_IMAGE + LINUX_PART, 'T' },
        { "begin_part", LINUX_IMAGE + LINUX_PART, 't' },
        { "__part_end", LINUX_IMAGE + LINUX_PART, 'T' },
        { "__alone_end", LINUX_IMAGE + LINUX_PART + 8, 'T' },
        { "linux_banner", LINUX_IMAGE + LINUX_BANNER, 'D' },
        { plan->no_types ? "a" : "__start_BTF", LINUX_IMAGE + LINUX_BTF, 'R' },
        { plan->no_types ? "b" : "__stop_BTF", LINUX_IMAGE + LINUX_BTF + types_len, 'R' },
        { plan->no_rules ? "c" : "__start_orc_unwind_ip", LINUX_IMAGE + LINUX_ORC, 'R' },
        { plan->no_rules ? "d" : "__stop_orc_unwind_ip",
          LINUX_IMAGE + LINUX_ORC + rules_len * UPROF_ORC_IP_BYTES, 'R' },
        { plan->no_rules ? "e" : "__start_orc_unwind", LINUX_IMAGE + LINUX_ORCS, 'R' },
        { plan->no_rules ? "f" : "__stop_orc_unwind",
          LINUX_IMAGE + LINUX_ORCS + rules_len * UPROF_ORC_ENTRY_BYTES, 'R' },
        { plan->no_rules ? "g" : "__start_orc_header", LINUX_IMAGE + LINUX_ORC_HEADER, 'R' },
        { plan->no_rules ? "h" : "__stop_orc_header",
          LINUX_IMAGE + LINUX_ORC_HEADER + UPROF_ORC_HEADER_BYTES, 'R' },
        { plan->no_cpus ? "j" : "__per_cpu_offset", LINUX_IMAGE + LINUX_AREAS, 'D' },
        { "page_offset_base", LINUX_IMAGE + LINUX_ALL_MEMORY, 'D' },
        { "vmemmap_base", LINUX_IMAGE + LINUX_ALL_PAGES, 'D' },
        { "modules", LINUX_IMAGE + LINUX_MODULE_LIST, 'd' },
        { "bpf_kallsyms", LINUX_IMAGE + LINUX_BPF_LIST, 'd' },
        { "ftrace_ops_trampoline_list", LINUX_IMAGE + LINUX_FTRACE_LIST, 'd' },
        { "kprobe_insn_slots", LINUX_IMAGE + LINUX_KPROBES, 'D' },
        { "kprobe_optinsn_slots", LINUX_IMAGE + LINUX_OPTIMIZED_KPROBES, 'D' },
        { "prb", LINUX_IMAGE + LINUX_LOG, 'd' },
        { "init_top_pgt", LINUX_IMAGE + LINUX_ROOT, 'D' },
        { plan->has_hot ? "pcpu_hot" : "current_task", CPU_CURRENT, 'A' },
        { plan->has_hot ? "i" : "hardirq_stack_ptr", CPU_IRQ, 'A' },
        /* from here on only if tasks can be listed */
        { "runqueues", CPU_RUN_QUEUE, 'A' },
        { "init_task", LINUX_IMAGE + LINUX_INIT_TASK, 'D' },
        { "init_pid_ns", LINUX_IMAGE + LINUX_FIRST_IDS, 'D' },
        { "__sched_text_start", LINUX_IMAGE + LINUX_WAIT, 'T' },
        { "__sched_text_end", LINUX_IMAGE + LINUX_WAIT_END, 'T' },
        { "ret_from_fork", LINUX_IMAGE + LINUX_NEW_TASK, 'T' },
        { "__mutex_lock.constprop.0", LINUX_IMAGE + LINUX_LOCK_MUTEX, 't' },
    };
    enum { TASK_SYMBOLS = 7 };
    const KallsymsPlan symbols = {
        .n = N_FUNCTIONS,
        .addresses = KALLSYMS_PERCPU,
        .addresses_last = true,
        .wide_lengths = true,
        .named = named,
        .n_named = G_N_ELEMENTS(named) - (plan->lists_tasks ? 0 : TASK_SYMBOLS),
    };
    g_autoptr(GByteArray) image = build_kallsyms(&symbols);

    if (plan->no_symbols)
        return;
    g_assert(image->len <= LINUX_BANNER);
    memory_guest_put(guest->memory, linux_guest_image(0), image->data, image->len);
}

static void
put_image(LinuxGuest *guest)
{
    static const OrcLine lines[] = {
        { LINUX_IMAGE + 0x10, 8, 0, 0x205 },
        { LINUX_IMAGE + 0x40, 16, -16, 0x215 },
        { LINUX_IMAGE + 0x80, 0, 0, 0xb05 },
        { LINUX_IMAGE + 0x1000, 0, 0, 0 },
    };
    /* of 6.4: see parse/orc-table.c */
    static const uint8_t header[UPROF_ORC_HEADER_BYTES] = { 0xfe, 0x5d, 0x32, 0xbf, 0x58,
                                                            0x1b, 0xd6, 0x3b, 0x2c, 0xa9,
                                                            0xa5, 0xc6, 0x5b, 0xa5, 0xa6,
                                                            0x25, 0xea, 0xb3, 0xfe, 0x24 };
    const LinuxPlan *plan = &guest->plan;
    g_autoptr(GByteArray) types = make_types(plan);
    g_autoptr(GByteArray) ips = g_byte_array_new(), orcs = g_byte_array_new();
    g_autofree char *banner = g_strdup_printf("Linux version %s (somebody@somewhere) #1 SMP\n",
                                              plan->release ? plan->release : "6.4.0-test");

    build_orc(lines, G_N_ELEMENTS(lines), LINUX_IMAGE + LINUX_ORC, ips, orcs);
    put_symbols(guest, types->len, G_N_ELEMENTS(lines));
    g_assert(types->len <= LINUX_ORC - LINUX_BTF);
    linux_guest_put_text(guest, linux_guest_image(LINUX_BANNER), banner);
    memory_guest_put(guest->memory, linux_guest_image(LINUX_BTF), types->data, types->len);
    memory_guest_put(guest->memory, linux_guest_image(LINUX_ORC), ips->data, ips->len);
    memory_guest_put(guest->memory, linux_guest_image(LINUX_ORCS), orcs->data, orcs->len);
    memory_guest_put(guest->memory, linux_guest_image(LINUX_ORC_HEADER), header, sizeof(header));
    linux_guest_put(guest, linux_guest_image(LINUX_ALL_MEMORY), LINUX_DIRECT);
    linux_guest_put(guest, linux_guest_image(LINUX_ALL_PAGES), LINUX_PAGES);
}

/* ---- Modules ---- */

/*
 * One page has the structure of the module, its symbols, their names and its unwind rules. The
 * page is also mapped behind the module's code, because rules must lie near the code.
 */
static uint64_t
make_module(LinuxGuest *guest, unsigned i)
{
    enum { KALLSYMS = 0x200, SYMBOLS = 0x240, NAMES = 0x300, IPS = 0x400, ORCS = 0x440 };
    const uint64_t module = linux_guest_alloc(guest, PAGE, PAGE);
    const uint64_t code = LINUX_MODULES + 0x10000 * (uint64_t)i;
    const OrcLine lines[] = { { code, 8, 0, 0x205 }, { code + 0x1000, 0, 0, 0 } };
    g_autoptr(GByteArray) ips = g_byte_array_new(), orcs = g_byte_array_new();
    g_autofree char *open = g_strdup_printf("module_%u_open", i);
    g_autofree char *read = g_strdup_printf("module_%u_read", i);
    const Elf64_Sym symbols[] = {
        { 0 },
        { .st_name = 1,
          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
          .st_value = code,
          .st_size = 0x40 },
        { .st_name = 0x40,
          .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
          .st_value = code + 0x40,
          .st_size = 0x20 },
    };

    build_orc(lines, G_N_ELEMENTS(lines), code + 0x1000 + IPS, ips, orcs);
    linux_guest_map(guest, guest->root, code + 0x1000, module, LINUX_NO_CODE | LINUX_WRITABLE);
    linux_guest_put(guest, module + MODULE_CODE, code);
    memory_guest_put_u32(guest->memory,
                         module + (guest->plan.is_old_module ? MODULE_TEXT_LEN : MODULE_CODE_LEN),
                         0x1000);
    put_pointer(guest, module + MODULE_KALLSYMS, module + KALLSYMS);
    put_pointer(guest, module + KALLSYMS + TABLE_SYMBOLS, module + SYMBOLS);
    linux_guest_put(guest, module + KALLSYMS + TABLE_N, G_N_ELEMENTS(symbols));
    put_pointer(guest, module + KALLSYMS + TABLE_NAMES, module + NAMES);
    memory_guest_put(guest->memory, module + SYMBOLS, symbols, sizeof(symbols));
    linux_guest_put_text(guest, module + NAMES + 1, open);
    linux_guest_put_text(guest, module + NAMES + 0x40, read);
    linux_guest_put(guest, module + MODULE_N_ORCS, G_N_ELEMENTS(lines));
    linux_guest_put(guest, module + MODULE_ORC_IPS, code + 0x1000 + IPS);
    linux_guest_put(guest, module + MODULE_ORCS, code + 0x1000 + ORCS);
    memory_guest_put(guest->memory, module + IPS, ips->data, ips->len);
    memory_guest_put(guest->memory, module + ORCS, orcs->data, orcs->len);
    return module;
}

static void
make_modules(LinuxGuest *guest)
{
    uint64_t last = linux_guest_image(LINUX_MODULE_LIST);

    for (unsigned i = 0; i < guest->plan.n_modules; i++) {
        const uint64_t module = make_module(guest, i);
        if (i < G_N_ELEMENTS(guest->modules))
            guest->modules[i] = module;
        put_pointer(guest, last, module + MODULE_LIST);
        last = module + MODULE_LIST;
    }
    linux_guest_put(guest, last, LINUX_IMAGE + LINUX_MODULE_LIST);
}

/* ---- Mappings of a process ---- */

static void
put_head(LinuxGuest *guest, uint64_t page, uint8_t id)
{
    enum { NOTE = 0x300, CODE = 0x1000 };
    const Elf64_Ehdr file = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
        .e_phoff = sizeof(file),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 2,
    };
    const Elf64_Phdr segments[] = {
        { .p_type = PT_LOAD },
        { .p_type = PT_NOTE, .p_offset = NOTE, .p_filesz = 24 },
    };
    const uint8_t note[24] = { 4,  0,  0,  0,   8,   0,   0, 0,  NT_GNU_BUILD_ID,
                               0,  0,  0,  'G', 'N', 'U', 0, id, id,
                               id, id, id, id,  id,  id };

    memory_guest_put(guest->memory, page, &file, sizeof(file));
    memory_guest_put(guest->memory, page + sizeof(file), segments, sizeof(segments));
    memory_guest_put(guest->memory, page + NOTE, note, sizeof(note));
}

/* Returns: a new directory entry below @parent; a root entry if @parent is 0 */
static uint64_t
make_entry(LinuxGuest *guest, uint64_t parent, const char *name)
{
    const uint64_t entry = linux_guest_alloc(guest, 0x60, 64);

    put_pointer(guest, entry + ENTRY_PARENT, parent ? parent : entry);
    put_pointer(guest, entry + ENTRY_NAME, entry + ENTRY_CHARS);
    linux_guest_put_text(guest, entry + ENTRY_CHARS, name);
    return entry;
}

uint64_t
linux_guest_struct(const LinuxGuest *guest, uint64_t gpa)
{
    return guest->structs + gpa / PAGE * PAGE_STRUCT_BYTES;
}

void
linux_guest_cache(LinuxGuest *guest, unsigned file, uint64_t number, uint64_t gpa)
{
    const uint64_t page = linux_guest_struct(guest, gpa);

    g_assert(file < LINUX_ALL_FILES && number < NODE_N_SLOTS);
    linux_guest_put(guest, guest->nodes_of_files[file] + NODE_SLOTS + 8 * number,
                    LINUX_PAGES + page - guest->structs);
    linux_guest_put(guest, page + PAGE_FLAGS, UINT64_C(1) << PAGE_UPTODATE);
    put_pointer(guest, page + PAGE_MAPPING, guest->mappings[file]);
    linux_guest_put(guest, page + PAGE_INDEX, number);
}

/* Makes a file whose pages are not in memory. */
static void
make_file(LinuxGuest *guest, unsigned i, uint64_t folder)
{
    const uint64_t file = linux_guest_alloc(guest, 0x80, 64);
    const uint64_t mapping = linux_guest_alloc(guest, 0x40, 64);
    const uint64_t node = linux_guest_alloc(guest, 0x240, 64);
    const uint64_t inode = linux_guest_alloc(guest, 0x80, 64);

    put_pointer(guest, file + FILE_MOUNT, guest->mount + MOUNT_PART);
    put_pointer(guest, file + FILE_ENTRY, make_entry(guest, folder, file_names[i]));
    put_pointer(guest, file + FILE_MAPPING, mapping);
    put_pointer(guest, mapping + MAPPING_HEAD, node | 2);
    put_pointer(guest, mapping + MAPPING_HOST, inode);
    guest->files[i] = file;
    guest->mappings[i] = mapping;
    guest->nodes_of_files[i] = node;
    guest->inodes[i] = inode;
}

/* The first page of the program or library is in the kernel's page cache. */
static void
make_elf(LinuxGuest *guest, unsigned i, uint64_t folder)
{
    const uint64_t head = linux_guest_alloc(guest, PAGE, PAGE);

    make_file(guest, i, folder);
    put_head(guest, head, (uint8_t)(0xa0 + i));
    guest->heads[i] = head;
    linux_guest_cache(guest, i, 0, head);
}

static void
make_files(LinuxGuest *guest)
{
    const uint64_t root = make_entry(guest, 0, "/");
    const uint64_t folder = make_entry(guest, root, "lib");

    guest->mount = linux_guest_alloc(guest, MOUNT_BYTES, 64);
    put_pointer(guest, guest->mount + MOUNT_PARENT, guest->mount);
    put_pointer(guest, guest->mount + MOUNT_POINT, root);
    put_pointer(guest, guest->mount + MOUNT_PART + MOUNT_PART_ROOT, root);
    for (unsigned i = 0; i < LINUX_FILES; i++)
        make_elf(guest, i, folder);
    guest->folder = folder;
}

void
linux_guest_open_perf_map(LinuxGuest *guest, uint64_t task)
{
    enum { DESCRIPTORS = 8 };
    const uint64_t open_files = linux_guest_alloc(guest, 0x40, 64);
    const uint64_t table = linux_guest_alloc(guest, 0x20, 64);

    if (guest->perf_map == 0) {
        make_file(guest, LINUX_PERF_MAP, guest->folder);
        guest->perf_map = linux_guest_alloc(guest, LINUX_PERF_MAP_PAGES * PAGE, PAGE);
        for (unsigned i = 0; i < LINUX_PERF_MAP_PAGES; i++)
            linux_guest_cache(guest, LINUX_PERF_MAP, i, guest->perf_map + (uint64_t)i * PAGE);
    }
    guest->open_files = linux_guest_alloc(guest, 8 * DESCRIPTORS, 64);
    put_pointer(guest, task + TASK_FILES, open_files);
    put_pointer(guest, open_files + FILES_TABLE, table);
    memory_guest_put_u32(guest->memory, table + TABLE_MAX, DESCRIPTORS);
    put_pointer(guest, table + TABLE_FILES, guest->open_files);
    put_pointer(guest, guest->open_files, guest->files[0]);
    put_pointer(guest, guest->open_files + 8 * LINUX_PERF_MAP_DESCRIPTOR,
                guest->files[LINUX_PERF_MAP]);
}

void
linux_guest_write_perf_map(LinuxGuest *guest, const char *text)
{
    g_assert(strlen(text) < LINUX_PERF_MAP_PAGES * PAGE);
    linux_guest_put_text(guest, guest->perf_map, text);
    linux_guest_put(guest, guest->inodes[LINUX_PERF_MAP] + INODE_SIZE, strlen(text));
}

static void
make_area(LinuxGuest *guest, unsigned i)
{
    const LinuxArea *area = &guest->plan.areas[i];
    const uint64_t at = linux_guest_alloc(guest, AREA_BYTES, 64);

    linux_guest_put(guest, at + AREA_START, area->start);
    linux_guest_put(guest, at + AREA_END, area->end);
    linux_guest_put(guest, at + AREA_FLAGS, area->is_code ? AREA_CODE : 0);
    linux_guest_put(guest, at + AREA_PAGE, area->page);
    if (area->file > 0)
        put_pointer(guest, at + AREA_FILE, guest->files[area->file - 1]);
    guest->areas[i] = at;
}

uint64_t
linux_guest_entry(uint64_t gpa, unsigned type, bool is_root)
{
    return (LINUX_DIRECT + gpa) | type << 3 | (is_root ? 2 : 4);
}

/* Makes a leaf for a range of areas and the gaps before them. Returns: the leaf */
static uint64_t
make_leaf(LinuxGuest *guest, unsigned from, unsigned end)
{
    const uint64_t node = linux_guest_alloc(guest, 256, 256);
    unsigned slot = 0;

    for (unsigned i = from; i < end; i++) {
        const LinuxArea *area = &guest->plan.areas[i];
        if (i == from || area->start != guest->plan.areas[i - 1].end)
            linux_guest_put(guest, node + MAPLE_PIVOTS + 8 * slot++, area->start - 1);
        put_pointer(guest, node + MAPLE_SLOTS + 8 * slot, guest->areas[i]);
        linux_guest_put(guest, node + MAPLE_PIVOTS + 8 * slot++, area->end - 1);
    }
    return node;
}

/*
 * Makes a root that lists gaps. Its children are the first leaf, and a node with all other leaves.
 * If there are only a few areas, the root is a leaf.
 */
static uint64_t
make_maple(LinuxGuest *guest)
{
    const unsigned n = guest->plan.n_areas;
    uint64_t *nodes = guest->nodes;

    if (n <= LEAF_AREAS) {
        nodes[0] = make_leaf(guest, 0, n);
        guest->n_nodes = 1;
        return linux_guest_entry(nodes[0], 1, true);
    }
    nodes[0] = linux_guest_alloc(guest, 256, 256);
    nodes[1] = linux_guest_alloc(guest, 256, 256);
    nodes[2] = make_leaf(guest, 0, LEAF_AREAS);
    guest->n_nodes = 3;
    linux_guest_put(guest, nodes[0] + MAPLE_PIVOTS, guest->plan.areas[LEAF_AREAS - 1].end - 1);
    linux_guest_put(guest, nodes[0] + MAPLE_GAP_SLOTS, linux_guest_entry(nodes[2], 1, false));
    linux_guest_put(guest, nodes[0] + MAPLE_GAP_SLOTS + 8, linux_guest_entry(nodes[1], 2, false));
    for (unsigned i = LEAF_AREAS, slot = 0; i < n; i += LEAF_AREAS, slot++) {
        const unsigned end = MIN(n, i + LEAF_AREAS);
        const uint64_t leaf = make_leaf(guest, i, end);
        nodes[guest->n_nodes++] = leaf;
        linux_guest_put(guest, nodes[1] + MAPLE_SLOTS + 8 * slot,
                        linux_guest_entry(leaf, 1, false));
        if (end < n)
            linux_guest_put(guest, nodes[1] + MAPLE_PIVOTS + 8 * slot,
                            guest->plan.areas[end - 1].end - 1);
    }
    return linux_guest_entry(nodes[0], 3, true);
}

/* Makes a tree whose root, the middle area, has a chain on each side. Returns: the root's node */
static uint64_t
make_red_black(LinuxGuest *guest)
{
    const unsigned n = guest->plan.n_areas, middle = n / 2;

    for (unsigned i = middle; i > 0; i--)
        put_pointer(guest, guest->areas[i] + AREA_NODE + RB_LEFT, guest->areas[i - 1] + AREA_NODE);
    for (unsigned i = middle; i + 1 < n; i++)
        put_pointer(guest, guest->areas[i] + AREA_NODE + RB_RIGHT, guest->areas[i + 1] + AREA_NODE);
    return LINUX_DIRECT + guest->areas[middle] + AREA_NODE;
}

uint64_t
linux_guest_add_mm(LinuxGuest *guest)
{
    const uint64_t mm = linux_guest_alloc(guest, MM_BYTES, 64);

    if (guest->mm)
        linux_guest_put(guest, mm + MM_ROOT, linux_guest_get(guest, guest->mm + MM_ROOT));
    put_pointer(guest, mm + MM_PGD, guest->process_root);
    linux_guest_put(guest, mm + MM_STACK, LINUX_STACK + 0x20800);
    return mm;
}

uint64_t
linux_guest_add_task(LinuxGuest *guest, const char *name, unsigned pid, uint64_t mm)
{
    const uint64_t task =
        linux_guest_alloc(guest, guest->plan.lists_tasks ? TASK_LIST_BYTES : TASK_BYTES, 64);

    if (mm)
        put_pointer(guest, task + TASK_MM, mm);
    linux_guest_put(guest, task + TASK_STACK, LINUX_KERNEL_STACK);
    memory_guest_put_u32(guest->memory, task + TASK_PID, pid);
    memory_guest_put_u32(guest->memory, task + TASK_TGID, pid);
    memory_guest_put(guest->memory, task + TASK_COMM, name,
                     MIN(strlen(name), (size_t)UPROF_LINUX_NAME_BYTES));
    return task;
}

/* Puts a node behind the last one of a ring; all are guest-physical, except @head_gva of @head. */
static void
append_node(LinuxGuest *guest, uint64_t head, uint64_t head_gva, uint64_t node)
{
    const uint64_t last = linux_guest_get(guest, head + 8);
    const uint64_t last_gpa = last == head_gva ? head : last - LINUX_DIRECT;

    linux_guest_put(guest, node, head_gva);
    linux_guest_put(guest, node + 8, last);
    put_pointer(guest, last_gpa, node);
    put_pointer(guest, head + 8, node);
}

void
linux_guest_list_task(LinuxGuest *guest, uint64_t task, uint64_t leader)
{
    const uint64_t signal = leader ? linux_guest_get(guest, leader + TASK_SIGNAL) - LINUX_DIRECT
                                   : linux_guest_alloc(guest, 0x40, 64);
    const uint64_t head = signal + SIGNAL_HEAD;

    put_pointer(guest, task + TASK_SIGNAL, signal);
    memory_guest_put_u32(guest->memory, task + TASK_USAGE, 1);
    if (!leader) {
        put_pointer(guest, head, head);
        put_pointer(guest, head + 8, head);
        append_node(guest, linux_guest_image(LINUX_INIT_TASK) + TASK_RING,
                    LINUX_IMAGE + LINUX_INIT_TASK + TASK_RING, task + TASK_RING);
    } else {
        memory_guest_put_u32(guest->memory, task + TASK_TGID,
                             (uint32_t)linux_guest_get(guest, leader + TASK_PID));
    }
    append_node(guest, head, LINUX_DIRECT + head, task + TASK_NODE);
}

static uint64_t
add_ids(LinuxGuest *guest, uint64_t task)
{
    const uint64_t ids = linux_guest_alloc(guest, IDS_BYTES, 64);
    const bool is_first = (uint32_t)linux_guest_get(guest, task + TASK_PID) ==
                          (uint32_t)linux_guest_get(guest, task + TASK_TGID);

    put_pointer(guest, ids + IDS_LISTS, task + TASK_LINKS);
    if (is_first)
        put_pointer(guest, ids + IDS_LISTS + 8, task + TASK_LINKS + 16);
    return ids;
}

uint64_t
linux_guest_number_tasks(LinuxGuest *guest, const uint64_t *tasks, unsigned n)
{
    enum { BYTES = NODE_SLOTS + NODE_N_SLOTS * 8, SHIFT = 6, MARK = 2 };
    const uint64_t root = linux_guest_alloc(guest, BYTES, 64);

    g_assert(n <= NODE_N_SLOTS * NODE_N_SLOTS);
    linux_guest_put(guest, root + NODE_SHIFT - 1, SHIFT << 8);
    for (unsigned i = 0; i < n; i += NODE_N_SLOTS) {
        const uint64_t leaf = linux_guest_alloc(guest, BYTES, 64);
        put_pointer(guest, root + NODE_SLOTS + i / NODE_N_SLOTS * 8, leaf + MARK);
        for (unsigned slot = 0; slot < NODE_N_SLOTS && i + slot < n; slot++)
            put_pointer(guest, leaf + NODE_SLOTS + slot * 8, add_ids(guest, tasks[i + slot]));
    }
    linux_guest_put(guest, linux_guest_image(LINUX_FIRST_IDS) + IDS_ROOT,
                    LINUX_DIRECT + root + MARK);
    return root;
}

void
linux_guest_add_waiter(LinuxGuest *guest, uint64_t at, uint64_t task, uint64_t head)
{
    if (linux_guest_get(guest, head) == 0) {
        put_pointer(guest, head, head);
        put_pointer(guest, head + 8, head);
    }
    append_node(guest, head, LINUX_DIRECT + head, at + WAITER_NODE);
    put_pointer(guest, at + WAITER_TASK, task);
}

static uint64_t
find_node(uint64_t gva)
{
    return gva >= LINUX_IMAGE ? linux_guest_image(gva - LINUX_IMAGE) : gva - LINUX_DIRECT;
}

void
linux_guest_unlist_task(LinuxGuest *guest, uint64_t task)
{
    const uint64_t next = linux_guest_get(guest, task + TASK_RING);
    const uint64_t previous = linux_guest_get(guest, task + TASK_RING + 8);

    linux_guest_put(guest, find_node(next) + 8, previous);
    linux_guest_put(guest, find_node(previous), next);
    linux_guest_put(guest, task + TASK_RING + 8, UINT64_C(0xdead000000000122));
}

uint64_t
linux_guest_add_stack(LinuxGuest *guest, uint64_t task, uint64_t pc, const uint64_t *words,
                      unsigned n_words)
{
    enum { STACK_BYTES = 4 * PAGE };
    const uint64_t stack = linux_guest_alloc(guest, STACK_BYTES, PAGE);
    const uint64_t end = stack + STACK_BYTES, sp = end - SWITCH_BYTES - n_words * 8;

    put_pointer(guest, task + TASK_STACK, stack);
    put_pointer(guest, task + TASK_SAVED_SP, sp);
    linux_guest_put(guest, sp + SWITCH_PC, pc);
    for (unsigned i = 0; i < n_words; i++)
        linux_guest_put(guest, sp + SWITCH_BYTES + i * 8, words[i]);
    return end;
}

void
linux_guest_run(LinuxGuest *guest, unsigned vcpu, uint64_t task, bool is_kernel)
{
    UprofRegs *regs = &guest->memory->regs[vcpu];

    put_pointer(guest, guest->cpu_areas[vcpu] + CPU_CURRENT, task);
    *regs = (UprofRegs){
        .pc = is_kernel ? LINUX_IMAGE + 0x58 : LINUX_PROGRAM + 0x1234,
        .sp = is_kernel ? LINUX_DIRECT + guest->memory->ram_len : LINUX_STACK + 0x20000,
        .word_bytes = 8,
        .privilege = is_kernel ? 0 : 3,
    };
    if (guest->plan.is_xen) {
        regs->sys[UPROF_X86_XEN_PV] = 64;
        regs->sys[UPROF_X86_XEN_ENTRY] = LINUX_IMAGE + 0x20;
        regs->sys[UPROF_X86_XEN_ROOT] = guest->process_root;
        regs->sys[UPROF_X86_CR3] = guest->process_root + (is_kernel ? 0 : PAGE);
        regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA | UPROF_X86_EFER_NXE;
        return;
    }
    regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG | UPROF_X86_CR0_PE;
    regs->sys[UPROF_X86_CR3] =
        guest->process_root + (guest->plan.has_isolation && !is_kernel ? PAGE : 0);
    regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA | UPROF_X86_EFER_NXE;
    regs->sys[UPROF_X86_IDT] = LINUX_IDT;
}

/* The ring of processes begins with the first task, which is listed nowhere. */
static void
list_first_tasks(LinuxGuest *guest)
{
    const uint64_t head = linux_guest_image(LINUX_INIT_TASK) + TASK_RING;

    linux_guest_put(guest, head, LINUX_IMAGE + LINUX_INIT_TASK + TASK_RING);
    linux_guest_put(guest, head + 8, LINUX_IMAGE + LINUX_INIT_TASK + TASK_RING);
    linux_guest_list_task(guest, guest->task, 0);
}

static void
make_process(LinuxGuest *guest)
{
    make_process_root(guest);
    make_files(guest);
    for (unsigned i = 0; i < guest->plan.n_areas; i++)
        make_area(guest, i);
    map_for_process(guest, LINUX_PROGRAM, guest->heads[0], LINUX_NO_CODE);
    guest->mm = linux_guest_add_mm(guest);
    linux_guest_put(guest, guest->mm + MM_ROOT,
                    guest->plan.is_red_black ? make_red_black(guest) : make_maple(guest));
    guest->task = linux_guest_add_task(guest, "nginx", PID, guest->mm);
    if (guest->plan.lists_tasks)
        list_first_tasks(guest);
}

static void
make_cpus(LinuxGuest *guest)
{
    for (unsigned i = 0; i < guest->plan.n_vcpus; i++) {
        const uint64_t area = linux_guest_alloc(guest, PAGE, PAGE);
        guest->cpu_areas[i] = area;
        put_pointer(guest, linux_guest_image(LINUX_AREAS) + 8 * i, area);
        put_pointer(guest, area + CPU_IRQ, area + PAGE - (guest->plan.has_irq_end ? 0 : 8));
        linux_guest_run(guest, i, guest->task, false);
    }
}

LinuxGuest *
linux_guest_new(const LinuxPlan *plan)
{
    LinuxGuest *guest = g_new0(LinuxGuest, 1);

    guest->plan = *plan;
    guest->plan.n_vcpus = MAX(plan->n_vcpus, 1);
    g_assert(guest->plan.n_vcpus <= LINUX_CPUS_MAX && plan->n_areas <= LINUX_AREAS_MAX);
    if (!plan->areas) {
        guest->plan.areas = usual_areas;
        guest->plan.n_areas = G_N_ELEMENTS(usual_areas);
    }
    const size_t pages = 2 * plan->n_modules + guest->plan.n_vcpus;
    const MemoryPlan memory = { .n_vcpus = guest->plan.n_vcpus,
                                .grain = UPROF_GRAIN_GUEST,
                                .ram_len = RAM_BYTES + PAGE * pages + plan->more_bytes };
    guest->memory = memory_guest_open(&memory);
    guest->root = linux_guest_image(LINUX_ROOT);
    guest->free = linux_guest_image(LINUX_IMAGE_BYTES);
    map_kernel(guest);
    put_image(guest);
    make_modules(guest);
    make_process(guest);
    make_cpus(guest);
    return guest;
}

void
linux_guest_free(LinuxGuest *guest)
{
    if (!guest)
        return;
    memory_guest_close(guest->memory);
    g_free(guest);
}

/* ---- The view of virt-uprof ---- */

LinuxView *
linux_view_new(LinuxGuest *guest)
{
    LinuxView *view = g_new0(LinuxView, 1);

    view->guest = guest;
    view->names = uprof_names_new();
    view->sym = uprof_sym_new(guest->memory->base.arch, view->names);
    view->mem = uprof_mem_new(&guest->memory->base, UPROF_LANE_WORKER);
    view->kernel = uprof_linux_new(view->sym, guest->plan.n_vcpus);
    view->space = uprof_space_new(view->kernel, view->sym);
    view->snapshot = g_new0(UprofSnapshot, 1);
    return view;
}

void
linux_view_free(LinuxView *view)
{
    if (!view)
        return;
    g_free(view->snapshot);
    uprof_space_free(view->space);
    uprof_linux_free(view->kernel);
    uprof_mem_free(view->mem);
    uprof_sym_free(view->sym);
    uprof_names_free(view->names);
    g_free(view);
}

/* Copies a window from the direct map, as the sampler does. */
static bool
put_window(LinuxView *view, uint64_t gva, size_t len)
{
    const MemoryGuest *memory = view->guest->memory;
    UprofSnapshot *snapshot = view->snapshot;
    const uint64_t gpa = gva - LINUX_DIRECT;
    const size_t offset = UPROF_SNAPSHOT_BYTES_MAX - uprof_snapshot_room(snapshot);

    if (gpa >= memory->ram_len || memory->ram_len - gpa < len)
        return false;
    memcpy(snapshot->bytes + offset, memory->ram + gpa, len);
    snapshot->windows[snapshot->n_windows++] =
        (UprofWindow){ .gva = gva, .offset = (uint32_t)offset, .len = (uint32_t)len };
    return true;
}

void
linux_view_copy_task(LinuxView *view, unsigned vcpu)
{
    const UprofLinks *links = *uprof_linux_links(view->kernel);
    uint64_t task;

    if (!links || links->vcpus[vcpu].task_at == 0 ||
        !put_window(view, links->vcpus[vcpu].task_at, sizeof(task)))
        return;
    g_assert_true(
        uprof_snapshot_read(view->snapshot, links->vcpus[vcpu].task_at, &task, sizeof(task)));
    task = GUINT64_FROM_LE(task);
    if (task >= links->kernel_from)
        put_window(view, task + links->task_from, links->task_len);
}

void
linux_view_begin(LinuxView *view, unsigned vcpu)
{
    UprofSnapshot *snapshot = view->snapshot;

    uprof_snapshot_clear(snapshot);
    snapshot->time_ns = view->time_ns;
    snapshot->reset = view->reset;
    snapshot->vcpu = vcpu;
    snapshot->weight = snapshot->count = 1;
    snapshot->regs = view->guest->memory->regs[vcpu];
}

unsigned
linux_view_take(LinuxView *view)
{
    const MemoryTally *tally = view->guest->memory->tally;
    const UprofSnapshot *snapshot = view->snapshot;
    const gint before = tally->spans;

    uprof_mem_begin_sample(view->mem, snapshot->time_ns, snapshot->reset);
    uprof_linux_update(view->kernel, view->mem, snapshot);
    uprof_space_begin(view->space, view->mem, snapshot);
    return (unsigned)(tally->spans - before);
}

unsigned
linux_view_sample(LinuxView *view, unsigned vcpu)
{
    linux_view_begin(view, vcpu);
    linux_view_copy_task(view, vcpu);
    return linux_view_take(view);
}

const char *
linux_view_name(LinuxView *view, uint64_t pc)
{
    const uint64_t place = uprof_space_symbol_address(view->space, pc);

    return uprof_name_text(uprof_sym_find(view->sym, place, false).name);
}
