/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The areas of a process: Linux, include/linux/mm_types.h. They are in a maple tree from 6.1 on
 * (lib/maple_tree.c, include/linux/maple_tree.h), before that in a red-black tree
 * (lib/rbtree.c).
 */
#include "space-priv.h"

#include "uprof/build-id.h"
#include "uprof/copies.h"
#include "uprof/elf-head.h"
#include "uprof/fnv.h"

#include "file-path-priv.h"
#include "kernel-priv.h"
#include "memory-files-priv.h"
#include "generated-files-priv.h"

#include <string.h>

enum {
    DEPTH_MAX = 16,           /* levels of a maple tree */
    RED_BLACK_DEPTH_MAX = 64, /* levels of a red-black tree with as many areas as possible */
    MAPLE_SLOTS_MAX = 16,
    NAME_BYTES = 256, /* NAME_MAX, and NUL */
    COPIED_MAX = 64,  /* processes with copies */
    /* The first function aligns the stack, and pushes two words before it calls (glibc's _start).
     */
    ROOT_BYTES = 16,
};

#define REFRESH_APART_NS UINT64_C(50000000)
#define KEEP_NS (2 * UPROF_MEM_KEEP_NS)
#define COPIES_NS UINT64_C(1000000000)
#define AREA_WRITE UINT64_C(0x2) /* VM_WRITE */
#define AREA_CODE UINT64_C(0x4)  /* VM_EXEC */

/* A maple tree marks pointers to nodes by 2 in their lowest two bits. */
#define IS_NODE(entry) (((entry)&3) == 2 && (entry) > 4096)
/* Maple tree: the lowest 8 bits of a pointer to a node hold the node's type. */
#define MAPLE_LOW_BITS UINT64_C(0xff)
#define MAPLE_TYPE(entry) ((entry) >> 3 & 0xf)
enum { MAPLE_LEAF = 1, MAPLE_RANGE = 2, MAPLE_WITH_GAPS = 3 };

/* An area as the guest's kernel describes it. */
typedef struct {
    uint64_t start, end; /* guest-virtual */
    uint64_t page;       /* number of its first page in the file */
    uint64_t file;       /* address of the struct file, or 0 */
    bool is_code, is_writable;
} Mapped;

/* A remembered area. */
typedef struct {
    uint64_t start, end; /* guest-virtual */
    bool is_code;
    unsigned module;      /* 0 if the area is in no module */
    uint64_t base;        /* guest-virtual address of the module's first page */
    uint64_t page;        /* number of its first page in the file */
    UprofFilePlace place; /* of the file, if the process cannot write to its code; else zeros */
} Area;

typedef struct {
    uint64_t memory; /* address of its struct mm_struct */
    uint32_t number; /* process ID: a later process may get the same struct mm_struct */
    uint32_t reset;
    uint32_t id;   /* differs between processes: a part of symbol addresses of code in no file */
    UprofSym *sym; /* borrowed; has names of code in no file */
    uint64_t since_ns;
    uint64_t stack; /* guest-virtual address of its arguments, above its first frame; or 0 */
    uint64_t vdso;  /* guest-virtual address of the code that the kernel maps; or 0 */
    GBytes *copies; /* (nullable): of its structures, from when it was new; owned */
    uint64_t copied_ns;
    GArray *areas; /* of Area, in the order in which they were found; owned */
    guint last;    /* index of the area that was asked for last */
    UprofGeneratedFile generated;
} Process;

struct _UprofSpace {
    const UprofLinux *kernel; /* borrowed */
    UprofSym *sym;            /* borrowed */
    GHashTable *processes;    /* Process.memory -> Process; owned */
    GHashTable *modules;      /* build-id or file name, perhaps "@" and mapping -> number; owned */
    UprofFilePages *pages;    /* owned */
    UprofMemoryFiles *files;  /* owned */
    UprofGeneratedFiles *generated_files; /* owned */
    uint32_t n_ids;
    uint64_t copied[COPIED_MAX]; /* Process.memory of those with copies; 0: none */
    unsigned n_copied;

    UprofMem *mem;                 /* borrowed */
    const UprofSnapshot *snapshot; /* borrowed */
    Process *process;              /* (nullable): the process that ran; borrowed */
    uint64_t task; /* address of the struct task_struct that ran, if it is of a process; else 0 */
    UprofKernelMemory memory;
    bool has_other_tables; /* the page tables of the snapshot are not those of the process */
    bool has_ended;        /* its page tables may be those of another process by now */
    UprofRegs own;         /* the snapshot's registers, with the process's page tables */
    unsigned n_lookups;
    uint64_t refreshed_ns; /* when find_again() last dropped remembered memory */
};

static void
free_process(gpointer data)
{
    Process *process = data;

    uprof_sym_forget_process(process->sym, process->id);
    g_clear_pointer(&process->copies, g_bytes_unref);
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
    space->pages = uprof_file_pages_new(kernel);
    space->files = uprof_memory_files_new(space->pages, sym);
    space->generated_files = uprof_generated_files_new(space->pages, kernel, sym);
    return space;
}

void
uprof_space_free(UprofSpace *space)
{
    if (!space)
        return;
    g_hash_table_unref(space->processes);
    g_hash_table_unref(space->modules);
    uprof_generated_files_free(space->generated_files);
    uprof_memory_files_free(space->files);
    uprof_file_pages_free(space->pages);
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

/* ---- Areas in guest memory ---- */

static bool
read_area(const UprofSpace *space, uint64_t at, Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t flags;

    if (!uprof_kernel_read_word(&space->memory, at + offsets->area_start, &mapped->start) ||
        !uprof_kernel_read_word(&space->memory, at + offsets->area_end, &mapped->end) ||
        !uprof_kernel_read_word(&space->memory, at + offsets->area_page, &mapped->page) ||
        !uprof_kernel_read_word(&space->memory, at + offsets->area_file, &mapped->file) ||
        !uprof_kernel_read_word(&space->memory, at + offsets->area_flags, &flags))
        return false;
    mapped->is_code = flags & AREA_CODE;
    mapped->is_writable = flags & AREA_WRITE;
    return mapped->start < mapped->end && mapped->end % UPROF_PAGE_BYTES == 0 &&
           mapped->start % UPROF_PAGE_BYTES == 0;
}

/*
 * A node has one pivot less than slots; each pivot is the last address of its slot.
 * @slot: (out): address of the slot that covers @address. Returns: false if it cannot be read
 */
static bool
find_slot(const UprofSpace *space, uint64_t entry, uint64_t address, uint64_t *slot)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const bool has_gaps = MAPLE_TYPE(entry) == MAPLE_WITH_GAPS;
    const uint64_t node = entry & ~MAPLE_LOW_BITS;
    const uint64_t pivots = node + (has_gaps ? offsets->gap_pivots : offsets->range_pivots);
    const uint64_t slots = node + (has_gaps ? offsets->gap_slots : offsets->range_slots);
    const uint64_t n_slots = has_gaps ? offsets->n_gap_slots : offsets->n_range_slots;
    uint64_t i, pivot;

    /* A pivot of 0 behind the first one: the slot reaches to the node's end. */
    for (i = 0; i + 1 < MIN(n_slots, (uint64_t)MAPLE_SLOTS_MAX); i++) {
        if (!uprof_kernel_read_word(&space->memory, pivots + i * sizeof(pivot), &pivot))
            return false;
        if (address <= pivot || (pivot == 0 && i > 0))
            break;
    }
    *slot = slots + i * sizeof(pivot);
    return true;
}

static bool
find_in_maple(const UprofSpace *space, uint64_t root, uint64_t address, Mapped *mapped)
{
    uint64_t entry, at;

    if (!uprof_kernel_read_word(&space->memory, root, &entry))
        return false;
    /* A tree of one entry has no node: its root is the entry. */
    if (!IS_NODE(entry))
        return entry > 4096 && (entry & 3) == 0 && read_area(space, entry, mapped);
    for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
        const uint64_t type = MAPLE_TYPE(entry);
        if (type < MAPLE_LEAF || type > MAPLE_WITH_GAPS || !find_slot(space, entry, address, &at) ||
            !uprof_kernel_read_word(&space->memory, at, &entry))
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

    if (!uprof_kernel_read_word(&space->memory, root, &node))
        return false;
    for (unsigned depth = 0; depth < RED_BLACK_DEPTH_MAX && node != 0; depth++) {
        if (!read_area(space, node - offsets->area_node, mapped))
            return false;
        if (address >= mapped->start && address < mapped->end)
            return true;
        if (!uprof_kernel_read_word(
                &space->memory,
                node + (address < mapped->start ? offsets->node_left : offsets->node_right), &node))
            return false;
    }
    return false;
}

static bool
find_in_tree(const UprofSpace *space, uint64_t address, Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const uint64_t root = space->process->memory + offsets->mm_root;

    return (offsets->is_maple_tree ? find_in_maple(space, root, address, mapped)
                                   : find_in_red_black(space, root, address, mapped)) &&
           address >= mapped->start && address < mapped->end;
}

/*
 * The copies have the areas of code that the process had when it was new. The rest of their tree
 * may be gone, so a search uses either only the copies or only the memory.
 *
 * Returns: false if the process that ran has nothing mapped at @address
 */
static bool
find_mapped(UprofSpace *space, uint64_t address, Mapped *mapped)
{
    const UprofSlice copies = space->memory.copies;

    if (space->n_lookups++ >= UPROF_SPACE_LOOKUPS_MAX)
        return false;
    space->memory.is_copy = true;
    bool ok = copies.len > 0 && find_in_tree(space, address, mapped);
    space->memory.is_copy = false;
    if (!ok) {
        space->memory.copies = (UprofSlice){ 0 };
        ok = find_in_tree(space, address, mapped);
        space->memory.copies = copies;
    }
    return ok;
}

/* ---- Modules ---- */

/* Returns: (transfer full) (nullable): the last part of a mapped file's path: any bytes */
static char *
read_name(const UprofSpace *space, uint64_t file)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t entry, at;
    char name[NAME_BYTES];

    if (!uprof_kernel_read_word(&space->memory, file + offsets->file_dentry, &entry) ||
        !uprof_kernel_read_word(&space->memory, entry + offsets->dentry_name, &at))
        return NULL;
    /* Byte by byte: a short name may end right before an unmapped page. */
    for (size_t i = 0; i < sizeof(name); i++) {
        if (!uprof_kernel_read(&space->memory, at + i, &name[i], 1))
            return NULL;
        if (name[i] == '\0')
            return i > 0 ? g_strdup(name) : NULL;
    }
    return NULL;
}

/* Returns: registers with the page tables of the process that ran */
static const UprofRegs *
get_tables(const UprofSpace *space)
{
    return space->has_other_tables ? &space->own : &space->snapshot->regs;
}

static bool
read_mapped_page(const UprofSpace *space, uint64_t gva, uint8_t *page)
{
    return !space->has_ended && uprof_mem_read(space->mem, space->snapshot->vcpu, get_tables(space),
                                               gva, page, UPROF_PAGE_BYTES);
}

/* The first page of a file. */
typedef struct {
    UprofElfHead elf; /* zeros if it cannot be read */
    uint64_t digest;  /* of the page; 0 if it cannot be read */
} Head;

static bool
parse_head(const uint8_t *page, Head *head)
{
    if (!uprof_elf_head_parse((UprofSlice){ page, UPROF_PAGE_BYTES }, &head->elf))
        return false;
    head->digest = uprof_fnv64_add(UPROF_FNV64_START, page, UPROF_PAGE_BYTES);
    return true;
}

/*
 * The page cache, which all processes share, is the second try: a process that was just started has
 * usually not touched the first page of its program.
 */
static void
read_head(const UprofSpace *space, const Mapped *code, const UprofFilePlace *place, Head *head)
{
    const uint64_t usual = code->start - code->page * UPROF_PAGE_BYTES;
    uint8_t page[UPROF_PAGE_BYTES];

    if (read_mapped_page(space, usual, page) && parse_head(page, head))
        return;
    const uint8_t *cached = uprof_file_pages_find(space->pages, place, 0);
    if (!cached || !parse_head(cached, head))
        *head = (Head){ 0 };
}

/*
 * Uses the file's own headers if they are known. Otherwise assumes that the file is mapped in one
 * piece.
 *
 * Returns: the guest-virtual address of the file's first page
 */
static uint64_t
find_base(const Mapped *code, const UprofElfHead *head)
{
    for (unsigned i = 0; i < head->n_loads; i++)
        if (head->loads[i].offset / UPROF_PAGE_BYTES == code->page)
            return code->start - (head->loads[i].address - head->first_page);
    return code->start - code->page * UPROF_PAGE_BYTES;
}

static unsigned
look_up_module(const UprofSpace *space, const char *key)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(space->modules, key));
}

/*
 * A file of this host is the same for all processes with its build-id. Other names come from
 * memory, and another file of the guest may pretend to have the same build-id.
 *
 * Returns: the module's number; 0 if there are too many, or this sample has read too much
 */
static unsigned
add_module(UprofSpace *space, const char *name, const Head *head, const Mapped *mapped,
           const UprofFilePlace *place)
{
    const UprofSlice id = { head->elf.build_id, head->elf.build_id_len };
    g_autofree char *build_id = id.len > 0 ? uprof_build_id_hex(id) : NULL;
    g_autofree char *shared = g_strdup(build_id ? build_id : name);
    /* Without a build-id, the first page distinguishes a file from the one that it replaces. */
    g_autofree char *own = g_strdup_printf("%s@%" G_GINT64_MODIFIER "x-%" G_GINT64_MODIFIER "x",
                                           shared, place->mapping, build_id ? 0 : head->digest);
    unsigned number = look_up_module(space, own);
    UprofSymModule module;

    if (number == 0)
        number = look_up_module(space, shared);
    if (number != 0 || g_hash_table_size(space->modules) >= UPROF_SYM_MODULES_MAX)
        return number;
    g_autofree char *path = mapped->file != 0
                                ? uprof_linux_path_read(uprof_linux_offsets(space->kernel),
                                                        &space->memory, mapped->file)
                                : NULL;
    /* A sample that has read too much leaves the module to a later sample. */
    if (uprof_mem_is_spent(space->mem))
        return 0;
    number = uprof_sym_add_module(space->sym, name, path, build_id);
    const bool is_shared = !uprof_sym_module(space->sym, number, &module) || module.path;
    g_hash_table_insert(space->modules, g_strdup(is_shared ? shared : own),
                        GUINT_TO_POINTER(number));
    return number;
}

/*
 * Where the pages of the area's file are. The pages of an area that the process may write to can be
 * the process's own, and so can those of data that was relocated and then protected.
 */
static UprofFilePlace
find_place(const UprofSpace *space, const Mapped *mapped)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    UprofFilePlace place = { 0 };

    if (mapped->is_writable || !mapped->is_code)
        return place;
    if (mapped->file == 0 && mapped->start == space->process->vdso)
        return (UprofFilePlace){ .base = mapped->start, .len = mapped->end - mapped->start };
    if (mapped->file == 0 || !offsets->has_pages ||
        !uprof_kernel_read_word(&space->memory, mapped->file + offsets->file_mapping,
                                &place.mapping))
        return (UprofFilePlace){ 0 };
    return place;
}

static bool
has_place(const UprofFilePlace *place)
{
    return place->mapping != 0 || place->len > 0;
}

/* Returns: (transfer full) (nullable): the name of the area's file: any bytes */
static char *
name_area(const UprofSpace *space, const Mapped *mapped)
{
    return mapped->file != 0 ? read_name(space, mapped->file) : g_strdup("vdso");
}

/*
 * Some runtimes map generated code from a file without a name: shared memory of PHP, or a memfd of
 * .NET. Such a file has no ELF header.
 */
static bool
is_generated(const char *name, const Head *head)
{
    return head->digest == 0 && (strcmp(name, "dev/zero") == 0 || g_str_has_prefix(name, "memfd:"));
}

/* Returns: false if this sample has read too much, so that a later sample must find the module */
static bool
find_module(UprofSpace *space, const Mapped *mapped, Area *area)
{
    Head head;

    area->page = mapped->page;
    area->place = find_place(space, mapped);
    if (!mapped->is_code || (mapped->file == 0 && !has_place(&area->place)))
        return true;
    g_autofree char *name = name_area(space, mapped);
    if (!name)
        return !uprof_mem_is_spent(space->mem);
    read_head(space, mapped, &area->place, &head);
    if (is_generated(name, &head))
        return true;
    area->base = find_base(mapped, &head.elf);
    area->module = add_module(space, name, &head, mapped, &area->place);
    return area->module > 0 || !uprof_mem_is_spent(space->mem);
}

/* Reads names and unwind rules of the area's file, if the host has no such file. */
static void
read_file(UprofSpace *space, const Area *area)
{
    const uint64_t now_ns = space->snapshot->time_ns;

    if (has_place(&area->place) && uprof_memory_files_is_due(space->files, area->module, now_ns))
        uprof_memory_files_read(space->files, area->module, &area->place, now_ns);
}

/* ---- Symbol addresses ---- */

/*
 * Remembered pages of a tree that changes all the time may be of different ages. So they are
 * dropped and read again, but not for every sample.
 */
static bool
find_again(UprofSpace *space, uint64_t pc, Mapped *mapped)
{
    const uint64_t now_ns = space->snapshot->time_ns;

    if (now_ns - space->refreshed_ns < REFRESH_APART_NS)
        return false;
    space->refreshed_ns = now_ns;
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
    uprof_mem_allow_more(space->mem);
    if (!find_mapped(space, pc, &mapped) && !find_again(space, pc, &mapped))
        return NULL;
    Area area = { .start = mapped.start, .end = mapped.end, .is_code = mapped.is_code };
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
           snapshot->time_ns < process->since_ns + KEEP_NS;
}

static bool
is_entry(const UprofSpace *space, uint64_t pc)
{
    const UprofLinuxSymbols *symbols = uprof_linux_symbols(space->kernel);

    return pc >= symbols->entry_start && pc < symbols->entry_end;
}

/*
 * While the kernel switches tasks, the page tables already belong to the next process (Linux,
 * kernel/sched/core.c, context_switch), and the kernel is on the stack of the task that ran. The
 * tables also differ if the vCPU is not the CPU of that number, or if the process has ended
 * meanwhile.
 *
 * Returns: false if the task's process did not run
 */
static bool
find_own_tables(UprofSpace *space, const UprofLinuxTask *task)
{
    const UprofRegs *ran = &space->snapshot->regs;
    const UprofLinuxArch *arch = uprof_linux_arch(space->kernel);
    const uint64_t offset = uprof_linux_offsets(space->kernel)->mm_tables;
    uint64_t tables, gpa, left;

    if (arch->has_hidden_user_root(ran))
        return true;
    if (!uprof_kernel_read_word(&space->memory, task->memory + offset, &tables) ||
        !uprof_mem_translate(space->mem, space->memory.vcpu, space->memory.regs, tables, &gpa,
                             &left, NULL))
        return false;
    if (arch->is_same_root(ran, gpa, ran->privilege != 0 || is_entry(space, ran->pc)))
        return true;
    if (ran->privilege != 0 || !uprof_linux_knows_tables(space->kernel) ||
        !uprof_linux_owns_stack(space->kernel, &space->memory, task->address, ran->sp))
        return false;
    space->own = *ran;
    uprof_paging_use_process(uprof_mem_arch(space->mem), &space->own, gpa);
    space->has_other_tables = true;
    return true;
}

/* Returns: a member of the process's struct mm_struct; 0 if the member is not known */
static uint64_t
read_process_word(const UprofSpace *space, const UprofLinuxTask *task, uint64_t offset)
{
    uint64_t word;

    return offset != 0 &&
                   uprof_kernel_read_word_always(&space->memory, task->memory + offset, &word)
               ? word
               : 0;
}

static Process *
add_process(UprofSpace *space, const UprofLinuxTask *task)
{
    Process *process = g_new0(Process, 1);

    if (g_hash_table_size(space->processes) >= UPROF_SPACE_PROCESSES_MAX)
        g_hash_table_remove_all(space->processes);
    process->memory = task->memory;
    process->number = task->process;
    process->id = ++space->n_ids;
    process->sym = space->sym;
    process->reset = space->snapshot->reset;
    process->areas = g_array_new(FALSE, FALSE, sizeof(Area));
    uprof_sym_forget_process(space->sym, process->id);
    g_hash_table_replace(space->processes, &process->memory, process);
    return process;
}

/*
 * @process: (nullable): the process that had the same struct mm_struct before. It is still the same
 *   one if the kernel has not given it other random addresses.
 */
static Process *
remember_process(UprofSpace *space, Process *process, const UprofLinuxTask *task)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    const uint64_t vdso = read_process_word(space, task, offsets->mm_vdso);
    const uint64_t stack = read_process_word(space, task, offsets->mm_stack);

    if (!process || process->number != task->process || process->reset != space->snapshot->reset ||
        process->vdso != vdso || process->stack != stack)
        process = add_process(space, task);
    process->since_ns = space->snapshot->time_ns;
    process->vdso = vdso;
    process->stack = stack;
    process->last = 0;
    g_clear_pointer(&process->copies, g_bytes_unref);
    g_array_set_size(process->areas, 0);
    return process;
}

/*
 * The first samples of a process may all be analyzed after its end. Later ones are analyzed while
 * it runs, and it may have mapped other files meanwhile.
 *
 * Returns: the process's copies, if they are not too old
 */
static UprofSlice
get_copies(const Process *process, const UprofSnapshot *snapshot)
{
    UprofSlice copies = { 0 };

    if (process->copies && snapshot->time_ns - process->copied_ns < COPIES_NS)
        copies.data = g_bytes_get_data(process->copies, &copies.len);
    return copies;
}

/* Only the last processes keep their copies. */
static void
keep_copies(UprofSpace *space, Process *process, UprofSlice copies)
{
    uint64_t *memory = &space->copied[space->n_copied++ % COPIED_MAX];
    Process *before = g_hash_table_lookup(space->processes, memory);

    if (before)
        g_clear_pointer(&before->copies, g_bytes_unref);
    g_clear_pointer(&process->copies, g_bytes_unref);
    process->copies = g_bytes_new(copies.data, copies.len);
    process->copied_ns = space->snapshot->time_ns;
    *memory = process->memory;
}

/* Reads a word as it is now. */
static bool
read_word_now(const UprofSpace *space, uint64_t gva, uint64_t *word)
{
    UprofKernelMemory now = space->memory;

    now.copies = (UprofSlice){ 0 };
    uprof_mem_drop_page(space->mem, now.vcpu, now.regs, gva);
    return uprof_kernel_read_word(&now, gva, word);
}

/*
 * Has the process whose structures were copied ended? Then its task has no memory, its tree is
 * empty, or its memory has other page tables. A process that goes on may map more files, so its
 * tree may change.
 */
static bool
has_process_ended(const UprofSpace *space, const UprofLinuxTask *task)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(space->kernel);
    uint64_t copied, memory, tables, root;

    return !uprof_kernel_read_word(&space->memory, task->memory + offsets->mm_tables, &copied) ||
           !read_word_now(space, task->address + offsets->task_mm, &memory) ||
           !read_word_now(space, task->memory + offsets->mm_tables, &tables) ||
           !read_word_now(space, task->memory + offsets->mm_root, &root) ||
           memory != task->memory || tables != copied || root == 0;
}

void
uprof_space_begin(UprofSpace *space, UprofMem *mem, const UprofSnapshot *snapshot)
{
    UprofLinuxTask task;

    space->mem = mem;
    space->memory = uprof_linux_memory(space->kernel, mem);
    space->snapshot = snapshot;
    space->process = NULL;
    space->task = 0;
    space->has_other_tables = false;
    space->n_lookups = 0;
    uprof_file_pages_begin(space->pages, mem, snapshot);
    if (!uprof_space_has_processes(space) || !uprof_linux_task(space->kernel, snapshot, &task) ||
        task.memory == 0)
        return;
    space->task = task.address;
    Process *process = g_hash_table_lookup(space->processes, &task.memory);
    const bool is_known = is_current(process, &task, snapshot);
    const UprofSlice copies = uprof_copies_find(snapshot);
    space->memory.copies = is_known && copies.len == 0 ? get_copies(process, snapshot) : copies;
    space->has_ended = space->memory.copies.len > 0 && has_process_ended(space, &task);
    if (!find_own_tables(space, &task))
        return;
    space->process = is_known ? process : remember_process(space, process, &task);
    if (copies.len > 0)
        keep_copies(space, space->process, copies);
}

bool
uprof_space_is_of_process(const UprofSpace *space)
{
    return space->task != 0;
}

const UprofRegs *
uprof_space_tables(const UprofSpace *space)
{
    return space->has_other_tables ? &space->own : NULL;
}

bool
uprof_space_process(const UprofSpace *space, UprofSpaceProcess *process)
{
    const uint64_t offset = space->process ? uprof_linux_offsets(space->kernel)->task_thread : 0;

    if (!space->process)
        return false;
    *process = (UprofSpaceProcess){ .memory = space->process->memory, .id = space->process->id };
    if (offset == 0)
        return true;
    if (uprof_snapshot_read(space->snapshot, space->task + offset, &process->thread,
                            sizeof(process->thread)))
        process->thread = GUINT64_FROM_LE(process->thread);
    else if (!uprof_kernel_read_word(&space->memory, space->task + offset, &process->thread))
        process->thread = 0;
    return true;
}

bool
uprof_space_read(const UprofSpace *space, uint64_t gva, void *into, size_t len)
{
    return space->process && !space->has_ended && gva < UPROF_UPPER_HALF &&
           uprof_mem_read(space->mem, space->snapshot->vcpu, get_tables(space), gva, into, len);
}

bool
uprof_space_read_word(const UprofSpace *space, uint64_t gva, uint64_t *word)
{
    uint64_t raw;

    if (!uprof_space_read(space, gva, &raw, sizeof(raw)))
        return false;
    *word = GUINT64_FROM_LE(raw);
    return true;
}

void
uprof_space_allow_more(UprofSpace *space)
{
    uprof_mem_allow_more(space->mem);
}

void
uprof_space_forget(const UprofSpace *space, uint64_t gva)
{
    if (space->process && gva < UPROF_UPPER_HALF)
        uprof_mem_drop_page(space->mem, space->snapshot->vcpu, get_tables(space), gva);
}

/* Returns: (nullable): the area of the process's file at @pc */
static const Area *
find_file_area(UprofSpace *space, uint64_t pc)
{
    const Area *area = space->process && pc < UPROF_UPPER_HALF ? find_area(space, pc) : NULL;

    return area && area->module > 0 ? area : NULL;
}

unsigned
uprof_space_module(UprofSpace *space, uint64_t pc, uint64_t *base)
{
    const Area *area = find_file_area(space, pc);

    if (!area)
        return 0;
    *base = area->base;
    return area->module;
}

bool
uprof_space_find_object(UprofSpace *space, uint64_t pc, const char *name, uint64_t *offset)
{
    const Area *area = find_file_area(space, pc);

    return area && has_place(&area->place) &&
           uprof_memory_files_find_object(space->files, &area->place, name, offset);
}

uint64_t
uprof_space_saved_regs(const UprofSpace *space)
{
    return space->task != 0 ? uprof_linux_saved_regs(space->kernel, &space->memory, space->task)
                            : 0;
}

/* Returns: the symbol address of code that is in no file */
static uint64_t
find_generated(UprofSpace *space, const Area *area, uint64_t pc)
{
    Process *process = space->process;
    const uint64_t address = uprof_sym_process_address(process ? process->id : 0, pc);

    if (area && area->is_code)
        uprof_generated_files_update(
            space->generated_files, &space->memory, space->task, process->id, &process->generated,
            uprof_sym_find(space->sym, address, false).kind == UPROF_SYM_NAMED,
            space->snapshot->time_ns);
    return address;
}

uint64_t
uprof_space_symbol_address(UprofSpace *space, uint64_t pc)
{
    if (pc >= UPROF_UPPER_HALF || !uprof_space_has_processes(space))
        return pc;
    const Area *area = space->process ? find_area(space, pc) : NULL;
    if (area && area->module > 0 && pc - area->base < UPROF_SYM_MODULE_BYTES_MAX) {
        read_file(space, area);
        return uprof_sym_module_address(area->module, pc - area->base);
    }
    return find_generated(space, area, pc);
}

bool
uprof_space_is_root(const UprofSpace *space, uint64_t sp)
{
    return space->process && space->process->stack != 0 &&
           sp - (space->process->stack - ROOT_BYTES) <= 2 * ROOT_BYTES;
}

bool
uprof_space_read_code(UprofSpace *space, uint64_t gva, void *into, size_t len)
{
    size_t done = 0;

    if (gva >= UPROF_UPPER_HALF || !space->process || uprof_mem_is_spent(space->mem))
        return false;
    while (done < len) {
        const Area *area = find_area(space, gva + done);
        if (!area || area->place.mapping == 0)
            return false;
        const uint64_t offset = gva + done - area->start;
        const size_t part = MIN(len - done, (size_t)(UPROF_PAGE_BYTES - offset % UPROF_PAGE_BYTES));
        const uint8_t *page = uprof_file_pages_find(space->pages, &area->place,
                                                    area->page + offset / UPROF_PAGE_BYTES);
        if (!page)
            return false;
        memcpy((uint8_t *)into + done, page + offset % UPROF_PAGE_BYTES, part);
        done += part;
    }
    return true;
}
