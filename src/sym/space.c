/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Areas of a process: Linux, include/linux/mm_types.h; where they are kept: from 6.1 on
 * lib/maple_tree.c and include/linux/maple_tree.h, before that lib/rbtree.c.
 */
#include "uprof/space.h"

#include <string.h>

#include "linux-priv.h"
#include "uprof/elf-head.h"

enum {
    DEPTH_MAX = 16,     /* of a maple tree, and of an xarray */
    RED_DEPTH_MAX = 64, /* of a red-black tree of as many areas as there may be */
    MAPLE_SLOTS_MAX = 16,
    NAME_BYTES = 256,

};

#define RENEW_APART_NS UINT64_C(50000000)
#define KEEP_NS (2 * UPROF_MEM_KEEP_NS)
#define AREA_CODE UINT64_C(0x4) /* VM_EXEC */

/* Pointers to nodes of both kinds of trees; of a maple tree's the type is in them, too. */
#define MAPLE_LOW_BITS UINT64_C(0xff)
#define NODE_LOW_BITS UINT64_C(0x3) /* of a pointer to an xarray's node */
#define IS_NODE(entry) (((entry)&3) == 2 && (entry) > 4096)
/* Of CR3, where page tables are, without what names them to the TLB; and the bit of user mode. */
#define ROOT_BITS UINT64_C(0x000ffffffffff000)
#define USER_ROOT_BIT UINT64_C(0x1000)
#define MAPLE_TYPE(entry) ((entry) >> 3 & 0xf)
enum { MAPLE_LEAF = 1, MAPLE_RANGE = 2, MAPLE_WITH_GAPS = 3 };

/* An area of the guest's, as it says. */
typedef struct {
    uint64_t start, end;
    uint64_t page;
    uint64_t file;
    bool is_code;
} Mapped;

/* What is remembered of one: @module: 0: it is in none; @base: where the module's first page is */
typedef struct {
    uint64_t start, end;
    unsigned module;
    uint64_t base;
} Area;

typedef struct {
    uint64_t memory;
    uint32_t number; /* of its process: another's may have the same memory later */
    uint32_t reset;
    uint32_t mark; /* to tell its code that is in no module from others' */
    uint64_t since_ns;
    GArray *areas; /* of Area, in the order in which they were found */
    guint last;    /* which was asked for last */
} Process;

struct _UprofSpace {
    const UprofLinux *kernel; /* borrowed */
    UprofSym *sym;            /* borrowed */
    GHashTable *processes;    /* by memory */
    GHashTable *modules;      /* char * -> number; 0 is none */
    uint32_t n_marks;

    UprofMem *mem; /* borrowed, as is what follows */
    const UprofSnapshot *snapshot;
    Process *process; /* (nullable): that ran */
    unsigned n_lookups;
    uint64_t renewed_ns; /* when what was remembered was last dropped */
};

static void
free_process(gpointer data)
{
    Process *process = data;

    g_array_unref(process->areas);
    g_free(process);
}

UprofSpace *
uprof_space_new(const UprofLinux *kernel, UprofSym *sym)
{
    UprofSpace *space = g_new0(UprofSpace, 1);

    space->kernel = kernel;
    space->sym = sym;
    space->processes = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_process);
    space->modules = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return space;
}

void
uprof_space_free(UprofSpace *space)
{
    if (!space)
        return;
    g_hash_table_unref(space->processes);
    g_hash_table_unref(space->modules);
    g_free(space);
}

bool
uprof_space_has_processes(const UprofSpace *space)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);

    return offsets && offsets->has_areas;
}

bool
uprof_space_has_process(const UprofSpace *space)
{
    return space->process != NULL;
}

/* ---- Memory of the kernel ---- */

static bool
read_kernel(const UprofSpace *space, uint64_t gva, void *into, size_t len)
{
    unsigned vcpu;
    const UprofRegs *regs = uprof_linux_regs(space->kernel, &vcpu);

    return uprof_mem_read(space->mem, vcpu, regs, gva, into, len);
}

static bool
read_word(const UprofSpace *space, uint64_t gva, uint64_t *word)
{
    if (!read_kernel(space, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

static bool
read_area(const UprofSpace *space, uint64_t at, Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t flags;

    if (!read_word(space, at + offsets->start, &mapped->start) ||
        !read_word(space, at + offsets->end, &mapped->end) ||
        !read_word(space, at + offsets->page, &mapped->page) ||
        !read_word(space, at + offsets->file, &mapped->file) ||
        !read_word(space, at + offsets->flags, &flags))
        return false;
    mapped->is_code = flags & AREA_CODE;
    return mapped->start < mapped->end && mapped->end % UPROF_PAGE_BYTES == 0 &&
           mapped->start % UPROF_PAGE_BYTES == 0;
}

/*
 * The slot of a node for @address: those before it end below. Returns: false if there
 * is none; @at: (out): the slot's place
 */
static bool
find_slot(const UprofSpace *space, uint64_t entry, uint64_t address, uint64_t *at)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const bool has_gaps = MAPLE_TYPE(entry) == MAPLE_WITH_GAPS;
    const uint64_t node = entry & ~MAPLE_LOW_BITS;
    const uint64_t pivots = node + (has_gaps ? offsets->inner_pivots : offsets->pivots);
    const uint64_t slots = node + (has_gaps ? offsets->inner_slots : offsets->slots);
    const uint64_t n_slots = has_gaps ? offsets->inner_n_slots : offsets->n_slots;
    uint64_t i, pivot;

    /* one pivot less than slots; 0 behind the first: up to the node's end */
    for (i = 0; i + 1 < MIN(n_slots, (uint64_t)MAPLE_SLOTS_MAX); i++) {
        if (!read_word(space, pivots + i * sizeof(pivot), &pivot))
            return false;
        if (address <= pivot || (pivot == 0 && i > 0))
            break;
    }
    *at = slots + i * sizeof(pivot);
    return true;
}

static bool
find_in_maple(const UprofSpace *space, uint64_t root, uint64_t address, Mapped *mapped)
{
    uint64_t entry, at;

    if (!read_word(space, root, &entry))
        return false;
    /* a tree of one entry has no node; and only the root says that it is one */
    if (!IS_NODE(entry))
        return entry > 4096 && (entry & 3) == 0 && read_area(space, entry, mapped);
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        const uint64_t type = MAPLE_TYPE(entry);
        if (type < MAPLE_LEAF || type > MAPLE_WITH_GAPS || !find_slot(space, entry, address, &at) ||
            !read_word(space, at, &entry))
            return false;
        if (type == MAPLE_LEAF)
            return read_area(space, entry, mapped);
    }
    return false;
}

static bool
find_in_red_black(const UprofSpace *space, uint64_t root, uint64_t address, Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t node;

    if (!read_word(space, root, &node))
        return false;
    for (unsigned depth = 0; depth < RED_DEPTH_MAX && node != 0; depth++) {
        if (!read_area(space, node - offsets->node, mapped))
            return false;
        if (address >= mapped->start && address < mapped->end)
            return true;
        if (!read_word(space, node + (address < mapped->start ? offsets->left : offsets->right),
                       &node))
            return false;
    }
    return false;
}

/* Returns: whether the process that ran has mapped something at @address */
static bool
find_mapped(UprofSpace *space, uint64_t address, Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const uint64_t root = space->process->memory + offsets->root;

    if (space->n_lookups++ >= UPROF_SPACE_LOOKUPS_MAX)
        return false;
    return (offsets->is_tree ? find_in_maple(space, root, address, mapped)
                             : find_in_red_black(space, root, address, mapped)) &&
           address >= mapped->start && address < mapped->end;
}

/* ---- Modules ---- */

/* Returns: (transfer full) (nullable): the last part of a mapped file's path; not clean */
static char *
read_name(const UprofSpace *space, uint64_t file)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t entry, at;
    char name[NAME_BYTES];

    if (!read_word(space, file + offsets->entry, &entry) ||
        !read_word(space, entry + offsets->entry_name, &at))
        return NULL;
    /* short as they are, names lie where what follows may not be mapped */
    for (size_t i = 0; i < sizeof(name); i++) {
        if (!read_kernel(space, at + i, &name[i], 1))
            return NULL;
        if (name[i] == '\0')
            return i > 0 ? g_strdup(name) : NULL;
    }
    return NULL;
}

/* By the pages of the process that ran. */
static bool
read_mapped_page(const UprofSpace *space, uint64_t gva, uint8_t *page)
{
    const UprofSnapshot *snapshot = space->snapshot;

    return uprof_mem_read(space->mem, snapshot->vcpu, &snapshot->regs, gva, page, UPROF_PAGE_BYTES);
}

/*
 * What is in memory of a file, whoever has it mapped (Linux, include/linux/xarray.h, and
 * mm/filemap.c): its first page is the leftmost of a tree. A page's number is that of its
 * struct page, and all pages are mapped one behind the other.
 */
static bool
read_cached_page(const UprofSpace *space, uint64_t file, uint8_t *page)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const UprofLinuxPlaces *places = uprof_linux_places(space->kernel);
    uint64_t entry, memory, pages;

    if (!offsets->has_pages || places->all_memory == 0 || places->all_pages == 0 ||
        !read_word(space, places->all_memory, &memory) ||
        !read_word(space, places->all_pages, &pages) ||
        !read_word(space, file + offsets->mapping, &entry) ||
        !read_word(space, entry + offsets->pages, &entry))
        return false;
    for (unsigned depth = 0; depth < DEPTH_MAX && IS_NODE(entry); depth++)
        if (!read_word(space, (entry & ~NODE_LOW_BITS) + offsets->page_slots, &entry))
            return false;
    if (entry < pages || (entry & 3) != 0 || (entry - pages) % offsets->page_bytes != 0)
        return false;
    const uint64_t number = (entry - pages) / offsets->page_bytes;
    return number < (UINT64_C(1) << 40) &&
           read_kernel(space, memory + number * UPROF_PAGE_BYTES, page, UPROF_PAGE_BYTES);
}

/*
 * A process that was forked has not touched the first page of what it runs, as a rule;
 * that is still in memory.
 */
static bool
read_head(const UprofSpace *space, const Mapped *code, UprofElfHead *head)
{
    const uint64_t usual = code->start - code->page * UPROF_PAGE_BYTES;
    uint8_t page[UPROF_PAGE_BYTES];

    return (read_mapped_page(space, usual, page) &&
            uprof_elf_head_parse((UprofSlice){ page, sizeof(page) }, head)) ||
           (read_cached_page(space, code->file, page) &&
            uprof_elf_head_parse((UprofSlice){ page, sizeof(page) }, head));
}

/*
 * Where the first page of the area's file lies, or would: as a rule as far before the area
 * as the area is into the file; the file itself knows better.
 */
static uint64_t
find_base(const Mapped *code, const UprofElfHead *head)
{
    for (unsigned i = 0; i < head->n_loads; i++)
        if (head->loads[i].offset / UPROF_PAGE_BYTES == code->page)
            return code->start - (head->loads[i].address - head->first_page);
    return code->start - code->page * UPROF_PAGE_BYTES;
}

/* Returns: (transfer full) (nullable): where in the guest a mapped file is */
static char *
read_path(const UprofSpace *space, uint64_t file)
{
    unsigned vcpu;
    const UprofRegs *regs = uprof_linux_regs(space->kernel, &vcpu);

    return uprof_linux_path_read(uprof_linux_offsets(space->kernel), space->mem, vcpu, regs, file);
}

/* Returns: the module's number; 0: there is no room for it, or this sample has read enough */
static unsigned
take_module(UprofSpace *space, uint64_t file, const char *name, const UprofElfHead *head)
{
    const UprofSlice id = { head->build_id, head->build_id_len };
    g_autofree char *build_id = id.len > 0 ? uprof_sym_hex(id) : NULL;
    char *key = g_strdup(build_id ? build_id : name);
    unsigned number = GPOINTER_TO_UINT(g_hash_table_lookup(space->modules, key));

    if (number == 0 && g_hash_table_size(space->modules) < UPROF_SYM_MODULES_MAX) {
        g_autofree char *path = read_path(space, file);
        /* what could not be read is found by a later one */
        if (!uprof_mem_is_spent(space->mem)) {
            number = uprof_sym_add_module(space->sym, name, path, build_id);
            g_hash_table_insert(space->modules, g_steal_pointer(&key), GUINT_TO_POINTER(number));
        }
    }
    g_free(key);
    return number;
}

/* Returns: false if this sample has read too much to find it */
static bool
find_module(UprofSpace *space, const Mapped *mapped, Area *area)
{
    UprofElfHead head = { 0 };

    if (mapped->file == 0 || !mapped->is_code)
        return true;
    g_autofree char *name = read_name(space, mapped->file);
    if (!name)
        return !uprof_mem_is_spent(space->mem);
    if (!read_head(space, mapped, &head))
        head = (UprofElfHead){ 0 };
    area->base = find_base(mapped, &head);
    area->module = take_module(space, mapped->file, name, &head);
    return area->module > 0 || !uprof_mem_is_spent(space->mem);
}

/* ---- Places ---- */

/*
 * A tree that changes all the time is remembered in parts that do not belong to each
 * other: look at it as it is now, but not all the time.
 */
static bool
find_again(UprofSpace *space, uint64_t pc, Mapped *mapped)
{
    const uint64_t now_ns = space->snapshot->time_ns;

    if (now_ns - space->renewed_ns < RENEW_APART_NS)
        return false;
    space->renewed_ns = now_ns;
    uprof_mem_forget(space->mem);
    return find_mapped(space, pc, mapped);
}

static const Area *
find_area(UprofSpace *space, uint64_t pc)
{
    Process *process = space->process;
    GArray *areas = process->areas;
    Mapped mapped;

    for (guint i = 0; i < areas->len; i++) {
        const guint at = (process->last + i) % areas->len;
        const Area *area = &g_array_index(areas, Area, at);
        if (pc - area->start < area->end - area->start) {
            process->last = at;
            return area;
        }
    }
    if (!find_mapped(space, pc, &mapped) && !find_again(space, pc, &mapped))
        return NULL;
    Area area = { .start = mapped.start, .end = mapped.end };
    if (!find_module(space, &mapped, &area))
        return NULL;
    if (areas->len >= UPROF_SPACE_AREAS_MAX)
        g_array_set_size(areas, 0);
    process->last = areas->len;
    g_array_append_val(areas, area);
    return &g_array_index(areas, Area, areas->len - 1);
}

static bool
is_current(const Process *process, const UprofLinuxTask *task, const UprofSnapshot *snapshot)
{
    return process && process->number == task->process && process->reset == snapshot->reset &&
           snapshot->time_ns - process->since_ns < KEEP_NS;
}

static bool
is_entry(const UprofSpace *space, uint64_t pc)
{
    const UprofLinuxPlaces *places = uprof_linux_places(space->kernel);

    return pc >= places->entry_start && pc < places->entry_end;
}

/*
 * While the kernel changes from one task to the next, the page tables are the next one's
 * already: what was copied by them of user mode is not of the process that ran (Linux,
 * kernel/sched/core.c, context_switch). Those for user mode lie behind the kernel's, and are
 * in use until it is entered (Linux, Documentation/arch/x86/pti.rst). In user mode they are
 * others where a vCPU is not the CPU of that number, or the process has ended since.
 */
static bool
has_own_tables(const UprofSpace *space, uint64_t memory)
{
    const UprofRegs *ran = &space->snapshot->regs;
    const uint64_t offset = uprof_linux_offsets(space->kernel)->tables;
    uint64_t tables, gpa, left;
    unsigned vcpu;
    const UprofRegs *regs = uprof_linux_regs(space->kernel, &vcpu);

    /* in user mode Xen's paravirtual guests use tables that lie anywhere */
    if (ran->privilege != 0 && ran->sys[UPROF_X86_XEN_PV] != 0)
        return true;
    if (!read_word(space, memory + offset, &tables) ||
        !uprof_mem_translate(space->mem, vcpu, regs, tables, &gpa, &left, NULL))
        return false;
    const uint64_t difference = (ran->sys[UPROF_X86_CR3] ^ gpa) & ROOT_BITS;
    const bool may_be_users = ran->privilege != 0 || is_entry(space, ran->pc);
    return difference == 0 || (difference == USER_ROOT_BIT && may_be_users);
}

void
uprof_space_begin(UprofSpace *space, UprofMem *mem, const UprofSnapshot *snapshot)
{
    UprofLinuxTask task;

    space->mem = mem;
    space->snapshot = snapshot;
    space->process = NULL;
    space->n_lookups = 0;
    if (!uprof_space_has_processes(space) || !uprof_linux_task(space->kernel, snapshot, &task) ||
        task.memory == 0 || !has_own_tables(space, task.memory))
        return;
    Process *process = g_hash_table_lookup(space->processes, &task.memory);
    if (!is_current(process, &task, snapshot)) {
        if (g_hash_table_size(space->processes) >= UPROF_SPACE_PROCESSES_MAX)
            g_hash_table_remove_all(space->processes);
        process = g_new0(Process, 1);
        process->memory = task.memory;
        process->number = task.process;
        process->mark = ++space->n_marks;
        process->reset = snapshot->reset;
        process->since_ns = snapshot->time_ns;
        process->areas = g_array_new(FALSE, FALSE, sizeof(Area));
        g_hash_table_replace(space->processes, &process->memory, process);
    }
    space->process = process;
}

uint64_t
uprof_space_place(UprofSpace *space, uint64_t pc)
{
    if (pc >> 63 || !uprof_space_has_processes(space))
        return pc;
    const Area *area = space->process ? find_area(space, pc) : NULL;
    if (area && area->module > 0 && pc - area->base < UPROF_SYM_MODULE_BYTES_MAX)
        return uprof_sym_module_place(area->module, pc - area->base);
    /* the same elsewhere would be other code */
    const uint64_t mark = space->process ? space->process->mark : 0;
    return UINT64_C(1) << 62 | (mark & 0x3fff) << 48 | (pc & (UINT64_MAX >> 16));
}
