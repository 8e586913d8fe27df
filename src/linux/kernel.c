/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The search finds the kernel by its symbol table (kallsyms). The banner says that the kernel is
 * Linux. The search and all later checks run in uprof_linux_update(), and read guest memory.
 */
#include "kernel-priv.h"

#include "uprof/clock.h"
#include "uprof/nm.h"
#include "uprof/text.h"
#include "uprof/vmcoreinfo.h"

#include "arch-table-priv.h"
#include "current-task-priv.h"
#include "kernel-generated-priv.h"
#include "kernel-image-priv.h"
#include "kernel-modules-priv.h"
#include "symbol-search-priv.h"
#include "task-offsets-priv.h"

#include <string.h>

enum {
    BANNER_BYTES = 256,
    LINKS_MAX = 1024,       /* versions in one run: CPUs start, and guests boot */
    SEARCHES_MAX = 16,      /* failed ones from one boot to the next */
    ALIAS_PAGES_MAX = 4096, /* 16 MiB of fixed maps (Linux, Documentation/arch/arm64/memory.rst) */
    HIDDEN_BYTES_MAX = 64 * 1024, /* of code that is mapped twice */
    NEIGHBORS_MAX = 64,           /* symbols of one address that are compared, to each side */
    DISAGREEMENTS_MIN = 8,        /* samples in a row that prove that another kernel runs */
};

/* The name of the task that CPU 0 runs if there is no other. */
static const char first_task[] = "swapper/0";

/* Time that these samples must span. */
#define DISAGREEMENT_NS UINT64_C(1000000000)

/*
 * Time between two reads of the list of modules. Each read doubles it, unless the read explains
 * unknown code.
 */
#define MODULES_APART_NS UINT64_C(1000000000)
#define MODULES_APART_MAX_NS UINT64_C(16000000000)
/*
 * Time from one search for a kernel to the next: 15 ms at first, so that a run of half a second has
 * several searches. Each search doubles the time, up to %CHECK_APART_MAX_NS. A search that fails in
 * an image costs much more than the check that there is no image. So each such failure adds a time
 * of its own, which doubles with each: eight minutes in all.
 */
#define SEARCH_APART_NS UINT64_C(15000000)
#define CHECK_APART_MAX_NS UINT64_C(250000000)

static const char banner_start[] = "Linux version ";

struct _UprofLinux {
    UprofSym *sym;              /* borrowed */
    const UprofLinuxArch *arch; /* (nullable) */
    unsigned n_vcpus;
    bool wants_digest, wants_tasks;

    const UprofLinks *links; /* (nullable): other threads read it atomically */
    GPtrArray *all_links;    /* owned; another thread may still read links that were replaced */

    bool has_tasks; /* the links have the running task of at least one CPU */
    UprofLinuxMaps maps;
    /* (nullable): the last snapshot, if the kernel was changing to another task; borrowed */
    const UprofSnapshot *next_of;
    UprofLinuxTask next; /* that task */

    UprofLinuxState state;
    uint32_t resets;
    unsigned n_searches; /* failed ones */
    uint64_t next_search_ns;
    uint64_t check_apart_ns; /* time from one search to the next, if there is no image */
    uint64_t checked_ns;
    unsigned n_disagreements; /* samples in a row whose page tables have another kernel */
    uint64_t first_disagreement_ns;

    UprofRegs regs; /* with a page-table root that maps the kernel */
    unsigned vcpu;
    UprofLinuxSymbols symbols;
    bool has_btf;
    bool has_offsets;
    UprofLinuxOffsets offsets;
    bool has_module_offsets;
    UprofLinuxModuleOffsets module_offsets;
    UprofLinuxGeneratedOffsets generated_offsets;
    bool has_log_offsets;
    UprofLinuxLogOffsets log_offsets;
    UprofTaskOffsets *task_offsets; /* (nullable): owned; only if somebody wants to list tasks */
    char *lacks;                    /* (nullable): owned: why this is impossible */
    UprofOrcVersion orc_version;
    size_t n_rules;
    unsigned n_modules;
    uint64_t modules_ns;       /* when the modules were last read after the first time */
    uint64_t modules_apart_ns; /* time until they may be read again */
    uint64_t modules_digest;   /* of the list that was read */
    bool has_coming;           /* a module was being loaded when the list was read */
    uint64_t unknown_pc;       /* of a frame in unknown code among the modules; or 0 */
    char banner[BANNER_BYTES];
    char *release;
    char *build_id;
    size_t n_symbols;
    const char *layout;
    uint64_t digest;
    uint64_t base;
    uint64_t attach_ns;
    const char *why;
};

UprofLinux *
uprof_linux_new(UprofSym *sym, unsigned n_vcpus)
{
    UprofLinux *kernel = g_new0(UprofLinux, 1);

    kernel->sym = sym;
    kernel->arch = uprof_linux_arch_find(uprof_sym_arch(sym));
    kernel->n_vcpus = n_vcpus;
    kernel->modules_apart_ns = MODULES_APART_NS;
    kernel->check_apart_ns = SEARCH_APART_NS;
    kernel->all_links = g_ptr_array_new_with_free_func(g_free);
    return kernel;
}

void
uprof_linux_free(UprofLinux *kernel)
{
    if (!kernel)
        return;
    g_ptr_array_unref(kernel->all_links);
    g_free(kernel->release);
    g_free(kernel->build_id);
    g_free(kernel->task_offsets);
    g_free(kernel->lacks);
    g_free(kernel);
}

void
uprof_linux_want_digest(UprofLinux *kernel)
{
    kernel->wants_digest = true;
}

void
uprof_linux_want_tasks(UprofLinux *kernel)
{
    kernel->wants_tasks = true;
}

const UprofLinks **
uprof_linux_links(UprofLinux *kernel)
{
    return &kernel->links;
}

bool
uprof_linux_task(const UprofLinux *kernel, const UprofSnapshot *snapshot, UprofLinuxTask *task)
{
    if (kernel->next_of == snapshot) {
        *task = kernel->next;
        return true;
    }
    return kernel->links && uprof_linux_task_read(kernel->links, &kernel->offsets, snapshot, task);
}

uint64_t
uprof_linux_saved_regs(const UprofLinux *kernel, const UprofKernelMemory *memory, uint64_t task)
{
    const UprofLinks *links = kernel->links;
    uint64_t stack;

    if (!links || links->task_stack == 0 || links->regs_bytes == 0 ||
        !uprof_kernel_read_word(memory, task + links->task_stack, &stack))
        return 0;
    return stack + links->stack_bytes - links->regs_bytes;
}

bool
uprof_linux_knows_tables(const UprofLinux *kernel)
{
    return kernel->links && kernel->links->all_memory != 0;
}

bool
uprof_linux_owns_stack(const UprofLinux *kernel, const UprofKernelMemory *memory, uint64_t task,
                       uint64_t sp)
{
    return kernel->links && uprof_linux_task_owns_stack(kernel->links, memory, task, sp);
}

const UprofLinuxOffsets *
uprof_linux_offsets(const UprofLinux *kernel)
{
    return kernel->has_tasks ? &kernel->offsets : NULL;
}

const UprofLinuxLogOffsets *
uprof_linux_log_offsets(const UprofLinux *kernel)
{
    return kernel->has_log_offsets ? &kernel->log_offsets : NULL;
}

const UprofLinks *
uprof_linux_published(const UprofLinux *kernel)
{
    return kernel->links;
}

unsigned
uprof_linux_n_vcpus(const UprofLinux *kernel)
{
    return kernel->n_vcpus;
}

/* Returns: (nullable): why tasks cannot be listed; borrowed */
static const char *
find_task_obstacle(const UprofLinux *kernel)
{
    if (kernel->state != UPROF_LINUX_FOUND)
        return kernel->why ? kernel->why : "no Linux kernel was found in the guest's memory";
    if (!kernel->has_btf)
        return "the kernel has no type information (BTF); it needs CONFIG_DEBUG_INFO_BTF";
    if (kernel->lacks)
        return kernel->lacks;
    return kernel->symbols.init_task == 0 ? "the kernel has no symbol 'init_task'" : NULL;
}

const UprofTaskOffsets *
uprof_linux_task_offsets(const UprofLinux *kernel, const char **why)
{
    g_assert(kernel->wants_tasks);
    *why = find_task_obstacle(kernel);
    return *why ? NULL : kernel->task_offsets;
}

const UprofLinuxSymbols *
uprof_linux_symbols(const UprofLinux *kernel)
{
    return &kernel->symbols;
}

const UprofLinuxArch *
uprof_linux_arch(const UprofLinux *kernel)
{
    return kernel->arch;
}

const UprofLinuxMaps *
uprof_linux_maps(const UprofLinux *kernel)
{
    return &kernel->maps;
}

UprofKernelMemory
uprof_linux_memory(const UprofLinux *kernel, UprofMem *mem)
{
    return (UprofKernelMemory){ .mem = mem, .vcpu = kernel->vcpu, .regs = &kernel->regs };
}

static void
forget_kernel(UprofLinux *kernel)
{
    g_atomic_pointer_set(&kernel->links, NULL);
    kernel->has_tasks = false;
    kernel->maps = (UprofLinuxMaps){ 0 };
    if (kernel->state == UPROF_LINUX_FOUND)
        for (unsigned i = 0; i < UPROF_SYM_N_OWN; i++)
            uprof_sym_set_own(kernel->sym, i, NULL, NULL, NULL);
    kernel->state = UPROF_LINUX_UNKNOWN;
    kernel->n_searches = 0;
    kernel->next_search_ns = 0;
    kernel->check_apart_ns = SEARCH_APART_NS;
    kernel->n_disagreements = 0;
    kernel->modules_apart_ns = MODULES_APART_NS;
    kernel->has_coming = false;
    kernel->unknown_pc = 0;
    kernel->attach_ns = 0;
    g_clear_pointer(&kernel->release, g_free);
    g_clear_pointer(&kernel->build_id, g_free);
    kernel->why = NULL;
}

/* ---- Parts of a found kernel ---- */

static bool
is_code(char type)
{
    return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

/* Does the linker define this symbol for a section's start or end, like "__sched_text_start"? */
static bool
is_section_edge(const char *name)
{
    return strcmp(name, "_stext") == 0 ||
           (g_str_has_prefix(name, "__") &&
            (g_str_has_suffix(name, "_start") || g_str_has_suffix(name, "_end")));
}

/* Does a function begin at the address of symbol @i, too? Symbols are sorted by address. */
static bool
has_function_at(const UprofKallsyms *kallsyms, guint i)
{
    const UprofKallsym *all = &g_array_index(kallsyms->symbols, UprofKallsym, 0);
    const guint first = i - MIN(i, (guint)NEIGHBORS_MAX);
    const guint end = MIN(i + NEIGHBORS_MAX, kallsyms->symbols->len);

    for (guint k = i; k > first && all[k - 1].address == all[i].address; k--)
        if (is_code(all[k - 1].type) &&
            !is_section_edge(uprof_kallsyms_name(kallsyms, &all[k - 1])))
            return true;
    for (guint k = i + 1; k < end && all[k].address == all[i].address; k++)
        if (is_code(all[k].type) && !is_section_edge(uprof_kallsyms_name(kallsyms, &all[k])))
            return true;
    return false;
}

/* Returns: how far behind itself hidden code is mapped a second time; 0: nowhere */
static uint64_t
find_alias(const UprofLinux *kernel, UprofMem *mem)
{
    const UprofLinuxSymbols *symbols = &kernel->symbols;
    const uint64_t start = symbols->hidden_start - symbols->hidden_start % UPROF_PAGE_BYTES;
    uint64_t wanted, gpa, left;

    if (symbols->hidden_start == 0 || symbols->hidden_end <= symbols->hidden_start ||
        symbols->hidden_end - symbols->hidden_start > HIDDEN_BYTES_MAX ||
        kernel->arch->alias_start <= symbols->hidden_end ||
        !uprof_mem_translate(mem, kernel->vcpu, &kernel->regs, start, &wanted, &left, NULL))
        return 0;
    for (uint64_t i = 0; i < ALIAS_PAGES_MAX; i++) {
        const uint64_t gva = kernel->arch->alias_start + i * UPROF_PAGE_BYTES;
        if (uprof_mem_translate(mem, kernel->vcpu, &kernel->regs, gva, &gpa, &left, NULL) &&
            gpa == wanted)
            return gva - start;
    }
    return 0;
}

/* Adds the symbols and the code of the second map of hidden code, which lies behind all others. */
static void
add_alias(const UprofLinux *kernel, UprofMem *mem, GArray *symbols, GArray *code)
{
    const uint64_t start = kernel->symbols.hidden_start, end = kernel->symbols.hidden_end;
    const uint64_t away = find_alias(kernel, mem);
    const UprofSymCode alias = { start + away, end + away };
    const guint n = symbols->len;

    if (away == 0)
        return;
    for (guint i = 0; i < n; i++) {
        UprofSymbol symbol = g_array_index(symbols, UprofSymbol, i);
        if (symbol.start < start || symbol.start >= end)
            continue;
        symbol.start += away;
        g_array_append_val(symbols, symbol);
    }
    g_array_append_val(code, alias);
}

static void
publish_symbols(UprofLinux *kernel, UprofMem *mem, UprofKallsyms *kallsyms,
                const UprofLinuxImage *image)
{
    g_autoptr(GArray) symbols =
        g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), kallsyms->symbols->len);

    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *from = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        const char *name = uprof_kallsyms_name(kallsyms, from);
        const UprofSymbol symbol = {
            .start = from->address,
            .name = { name, strlen(name) },
            .binding = uprof_nm_binding(from->type),
            .code = is_code(from->type) && !(is_section_edge(name) && has_function_at(kallsyms, i)),
        };
        if (symbol.name.len > 0)
            g_array_append_val(symbols, symbol);
    }
    add_alias(kernel, mem, symbols, image->code);
    uprof_sym_set_own(kernel->sym, UPROF_SYM_KERNEL, symbols, g_steal_pointer(&kallsyms->names),
                      image->code);
}

/* @banner: (out): "Linux version 6.1.0-18-cloud-amd64 (somebody@somewhere) ..." */
static bool
read_banner(const UprofLinux *kernel, UprofMem *mem, char *banner)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);

    memset(banner, 0, BANNER_BYTES);
    return kernel->symbols.banner != 0 &&
           uprof_kernel_read(&memory, kernel->symbols.banner, banner, BANNER_BYTES - 1) &&
           g_str_has_prefix(banner, banner_start);
}

static void
note_release(UprofLinux *kernel)
{
    const char *start = kernel->banner + strlen(banner_start);
    const UprofSlice release = { start, strcspn(start, " \n") };

    g_free(kernel->release);
    kernel->release = uprof_text_quote_slice(release);
}

/* vmcoreinfo is text for tools that read a crashed kernel. It is empty early in the boot. */
static void
note_build_id(UprofLinux *kernel, UprofMem *mem)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);
    const UprofLinuxSymbols *symbols = &kernel->symbols;
    uint64_t at, len;

    g_clear_pointer(&kernel->build_id, g_free);
    if (symbols->info == 0 || symbols->info_bytes == 0 ||
        !uprof_kernel_read_word(&memory, symbols->info, &at) ||
        !uprof_kernel_read_word(&memory, symbols->info_bytes, &len))
        return;
    if (len == 0 || len > UPROF_VMCOREINFO_BYTES_MAX)
        return;
    g_autofree char *text = g_malloc(len);
    if (!uprof_kernel_read(&memory, at, text, len))
        return;
    g_autoptr(UprofVmcoreinfo) info = uprof_vmcoreinfo_parse((UprofSlice){ text, len }, NULL);
    if (info && strcmp(uprof_vmcoreinfo_release(info), kernel->release) == 0)
        kernel->build_id = g_strdup(uprof_vmcoreinfo_build_id(info));
}

/*
 * Changes @kernel's registers to the kernel's own page tables, which stay. The tables that the
 * registers had belong to a process and end with the process.
 */
static void
use_permanent_root(UprofLinux *kernel, UprofMem *mem)
{
    const UprofRegs before = kernel->regs;
    uint64_t gpa, left;
    char banner[BANNER_BYTES];

    if (kernel->symbols.root == 0 ||
        !uprof_mem_translate(mem, kernel->vcpu, &before, kernel->symbols.root, &gpa, &left, NULL))
        return;
    kernel->regs.sys[uprof_mem_arch(mem)->kernel_root] = gpa;
    if (!read_banner(kernel, mem, banner) || strcmp(banner, kernel->banner) != 0)
        kernel->regs = before;
}

/* The header may be missing: kernels before 6.3.10 have none. */
static UprofSlice
read_orc_header(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image)
{
    const UprofLinuxSymbols *symbols = &kernel->symbols;
    UprofSlice header = { NULL, 0 };

    if (symbols->orc_header_start == 0)
        return header;
    uprof_linux_image_copy(image, mem, kernel->vcpu, symbols->orc_header_start,
                           symbols->orc_header_end);
    if (!uprof_linux_image_part(image, symbols->orc_header_start, symbols->orc_header_end, &header))
        return (UprofSlice){ NULL, 0 };
    return header;
}

/* ORC tables lie among writable data, of which the image has no copy yet. */
static void
read_orc_tables(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image)
{
    const UprofLinuxSymbols *symbols = &kernel->symbols;
    UprofSlice ips, entries;

    kernel->n_rules = 0;
    kernel->orc_version = uprof_orc_version(read_orc_header(kernel, mem, image), kernel->release);
    uprof_linux_image_copy(image, mem, kernel->vcpu, symbols->orc_ips_start, symbols->orc_ips_end);
    uprof_linux_image_copy(image, mem, kernel->vcpu, symbols->orc_start, symbols->orc_end);
    if (kernel->orc_version == UPROF_ORC_UNKNOWN ||
        !uprof_linux_image_part(image, symbols->orc_ips_start, symbols->orc_ips_end, &ips) ||
        !uprof_linux_image_part(image, symbols->orc_start, symbols->orc_end, &entries))
        return;
    UprofOrc *orc =
        uprof_orc_parse(ips, symbols->orc_ips_start, entries, kernel->orc_version, NULL);
    if (!orc)
        return;
    kernel->n_rules = uprof_orc_n(orc);
    uprof_sym_add_orc(kernel->sym, UPROF_SYM_KERNEL, orc);
}

static bool
read_modules_digest(const UprofLinux *kernel, UprofMem *mem, uint64_t *digest)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);

    if (!kernel->has_module_offsets || kernel->symbols.modules == 0 ||
        !uprof_linux_modules_digest(&memory, kernel->symbols.modules, digest))
        return false;
    *digest ^= uprof_linux_generated_digest(&kernel->generated_offsets, &kernel->symbols, &memory);
    return true;
}

static void
publish_modules(UprofLinux *kernel, UprofLinuxModules *modules)
{
    g_autoptr(GArray) symbols =
        g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), modules->symbols->len);

    for (guint i = 0; i < modules->symbols->len; i++) {
        const UprofLinuxModuleSymbol *from =
            &g_array_index(modules->symbols, UprofLinuxModuleSymbol, i);
        const char *name = (const char *)modules->names->data + from->name;
        const UprofSymbol symbol = {
            .start = from->start,
            .size = from->size,
            .name = { name, strlen(name) },
            .binding = from->binding,
            .code = true,
        };
        g_array_append_val(symbols, symbol);
    }
    kernel->n_modules = modules->n;
    kernel->has_coming = modules->n_coming > 0;
    uprof_sym_set_own(kernel->sym, UPROF_SYM_MODULES, symbols, g_steal_pointer(&modules->names),
                      modules->code);
    while (modules->orcs->len > 0)
        uprof_sym_add_orc(kernel->sym, UPROF_SYM_MODULES,
                          g_ptr_array_steal_index(modules->orcs, modules->orcs->len - 1));
}

static void
read_modules(UprofLinux *kernel, UprofMem *mem)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);

    if (!kernel->has_module_offsets || kernel->symbols.modules == 0)
        return;
    if (!read_modules_digest(kernel, mem, &kernel->modules_digest))
        kernel->modules_digest = 0;
    g_autoptr(UprofLinuxModules) modules = uprof_linux_modules_read(
        &kernel->module_offsets, kernel->symbols.modules, kernel->orc_version, &memory);
    uprof_linux_generated_read(&kernel->generated_offsets, &kernel->symbols, &memory, modules);
    publish_modules(kernel, modules);
}

static void
read_task_types(UprofLinux *kernel, const UprofBtf *btf)
{
    if (!kernel->task_offsets)
        kernel->task_offsets = g_new0(UprofTaskOffsets, 1);
    g_free(kernel->lacks);
    const char *missing = uprof_task_offsets_find(btf, kernel->arch, kernel->task_offsets);
    kernel->lacks =
        missing ? g_strdup_printf("the kernel's types (BTF) have no '%s'", missing) : NULL;
}

static void
read_types(UprofLinux *kernel, const UprofLinuxImage *image)
{
    UprofSlice bytes;

    kernel->has_btf = kernel->has_offsets = kernel->has_module_offsets = false;
    kernel->has_log_offsets = false;
    if (!uprof_linux_image_part(image, kernel->symbols.btf_start, kernel->symbols.btf_end, &bytes))
        return;
    g_autoptr(UprofBtf) btf = uprof_btf_parse(bytes, NULL);
    kernel->has_btf = btf != NULL;
    kernel->has_offsets =
        btf && uprof_linux_offsets_find(btf, kernel->arch->thread_member, kernel->symbols.hot != 0,
                                        &kernel->offsets);
    kernel->has_module_offsets =
        btf && uprof_linux_module_offsets_find(btf, &kernel->module_offsets);
    kernel->has_log_offsets = btf && uprof_linux_log_offsets_find(btf, &kernel->log_offsets);
    kernel->generated_offsets = (UprofLinuxGeneratedOffsets){ 0 };
    if (btf)
        uprof_linux_generated_offsets_find(btf, &kernel->generated_offsets);
    if (btf && kernel->wants_tasks)
        read_task_types(kernel, btf);
}

/* Without its symbols, the running task and the first one are known by the queues of the scheduler.
 */
static void
find_tasks_in_queues(UprofLinux *kernel, UprofMem *mem)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);
    UprofLinuxSymbols *symbols = &kernel->symbols;
    char name[UPROF_LINUX_NAME_BYTES];
    uint64_t area, first;

    if (!kernel->has_offsets || symbols->run_queues == 0 || kernel->offsets.rq_current == 0)
        return;
    if (symbols->current == 0 && symbols->hot == 0)
        symbols->current = symbols->run_queues + kernel->offsets.rq_current;
    if (symbols->init_task == 0 && symbols->cpu_areas != 0 &&
        uprof_kernel_read_word_always(&memory, symbols->cpu_areas, &area) &&
        uprof_kernel_read_word_always(&memory, area + symbols->run_queues + kernel->offsets.rq_idle,
                                      &first) &&
        uprof_kernel_read_always(&memory, first + kernel->offsets.task_comm, name, sizeof(name)) &&
        memcmp(name, first_task, sizeof(first_task)) == 0)
        symbols->init_task = first;
}

/* A sample that may read no more finds no maps: those that are known stay. */
static void
update_maps(UprofLinux *kernel, UprofMem *mem)
{
    UprofLinuxMaps maps = { 0 };

    kernel->arch->find_maps(mem, kernel->vcpu, &kernel->regs, &kernel->symbols, &maps);
    if (maps.all_memory != 0)
        kernel->maps.all_memory = maps.all_memory;
    if (maps.all_pages != 0)
        kernel->maps.all_pages = maps.all_pages;
}

/* CPUs start one after the other: each call may find the stacks of more CPUs. */
static void
update_links(UprofLinux *kernel, UprofMem *mem)
{
    const size_t len = sizeof(UprofLinks) + kernel->n_vcpus * sizeof(UprofLinksVcpu);
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);

    if (!kernel->has_offsets || kernel->all_links->len >= LINKS_MAX)
        return;
    update_maps(kernel, mem);
    UprofLinks *links =
        uprof_linux_links_make(kernel->arch, &kernel->symbols, &kernel->offsets, &kernel->maps,
                               kernel->links, &memory, kernel->n_vcpus);
    if (kernel->links && memcmp(kernel->links, links, len) == 0) {
        g_free(links);
        return;
    }
    for (unsigned i = 0; i < links->n_vcpus; i++)
        kernel->has_tasks |= links->vcpus[i].task_at != 0;
    g_ptr_array_add(kernel->all_links, links);
    g_atomic_pointer_set(&kernel->links, links);
}

/* ---- The search ---- */

static UprofKallsyms *
find_kallsyms(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu)
{
    const UprofSlice bytes = uprof_linux_image_slice(image);
    UprofKallsyms *kallsyms = uprof_kallsyms_parse(bytes, image->base, UPROF_KALLSYMS_MIN, NULL);

    if (kallsyms)
        return kallsyms;
    /* During boot, and with rodata=off, the kernel's constants are writable. */
    uprof_linux_image_copy_rest(image, mem, vcpu);
    return uprof_kallsyms_parse(bytes, image->base, UPROF_KALLSYMS_MIN, NULL);
}

/* @kallsyms: its names go to the symbols. Returns: false if the image is not Linux */
static bool
read_kernel(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image, UprofKallsyms *kallsyms)
{
    kernel->regs = image->regs;
    uprof_linux_symbols_find(kallsyms, kernel->arch, &kernel->symbols);
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);
    uprof_linux_symbols_search(kernel->arch, uprof_linux_image_slice(image), image->base, &memory,
                               &kernel->symbols);
    /* The head may be mapped or not, so that the image begins one head earlier or later. */
    if (kernel->symbols.text - image->base > kernel->arch->image_head_bytes ||
        !read_banner(kernel, mem, kernel->banner))
        return false;
    note_release(kernel);
    use_permanent_root(kernel, mem);
    note_build_id(kernel, mem);
    kernel->base = kernel->symbols.text;
    kernel->n_symbols = kallsyms->symbols->len;
    kernel->layout = kallsyms->layout;
    kernel->digest = kernel->wants_digest ? uprof_kallsyms_digest(kallsyms) : 0;
    publish_symbols(kernel, mem, kallsyms, image);
    read_orc_tables(kernel, mem, image);
    read_types(kernel, image);
    find_tasks_in_queues(kernel, mem);
    update_links(kernel, mem);
    read_modules(kernel, mem);
    return true;
}

static bool
attach_to_image(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image)
{
    g_autoptr(UprofKallsyms) kallsyms = find_kallsyms(image, mem, kernel->vcpu);

    if (!kallsyms || !read_kernel(kernel, mem, image, kallsyms)) {
        kernel->why = kallsyms
                          ? "found a symbol table, but not in the address range of a Linux kernel"
                          : "the address range of a Linux kernel has no symbol table";
        return false;
    }
    return true;
}

static void
search_kernel(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    kernel->next_search_ns = snapshot->time_ns + kernel->check_apart_ns;
    kernel->check_apart_ns = MIN(2 * kernel->check_apart_ns, CHECK_APART_MAX_NS);
    kernel->vcpu = snapshot->vcpu;
    kernel->why = NULL;
    g_autoptr(UprofLinuxImage) image =
        uprof_linux_image_find(kernel->arch, mem, kernel->vcpu, &snapshot->regs);
    if (!image)
        return;
    if (attach_to_image(kernel, mem, image)) {
        kernel->state = UPROF_LINUX_FOUND;
        kernel->checked_ns = snapshot->time_ns;
        return;
    }
    kernel->next_search_ns += SEARCH_APART_NS << kernel->n_searches;
    if (++kernel->n_searches == SEARCHES_MAX)
        kernel->state = UPROF_LINUX_NONE;
}

static void
search_kernel_if_due(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    if (snapshot->time_ns < kernel->next_search_ns)
        return;
    const uint64_t began_ns = uprof_clock_now_ns();
    search_kernel(kernel, mem, snapshot);
    kernel->attach_ns = uprof_clock_now_ns() - began_ns;
}

static void
read_changed_modules(UprofLinux *kernel, UprofMem *mem, uint64_t now_ns)
{
    uint64_t digest;

    if (now_ns - kernel->modules_ns < kernel->modules_apart_ns ||
        !read_modules_digest(kernel, mem, &digest) || digest == kernel->modules_digest)
        return;
    kernel->modules_ns = now_ns;
    /* A list that changes all the time is read ever more rarely. */
    kernel->modules_apart_ns = MIN(kernel->modules_apart_ns * 2, MODULES_APART_MAX_NS);
    read_modules(kernel, mem);
}

/* Do the page tables of the sample map the kernel's banner to the same memory as before? */
static bool
has_same_mapping(const UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const uint64_t banner = kernel->symbols.banner;
    uint64_t before, now, left;

    return uprof_mem_translate(mem, snapshot->vcpu, &snapshot->regs, banner, &now, &left, NULL) &&
           uprof_mem_translate(mem, kernel->vcpu, &kernel->regs, banner, &before, &left, NULL) &&
           before == now;
}

/*
 * After kexec the old kernel's memory can be intact; only the page tables in use show that another
 * kernel runs. One sample proves nothing, because its process may have exited and its tables may be
 * reused. So DISAGREEMENTS_MIN samples in a row, over DISAGREEMENT_NS, must disagree.
 */
static bool
is_replaced(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const UprofRegs *ran = &snapshot->regs;
    const UprofLinuxSymbols *symbols = &kernel->symbols;

    if (ran->privilege != 0 || (ran->pc >= symbols->entry_start && ran->pc < symbols->entry_end))
        return false; /* the tables may be those for user mode */
    if (has_same_mapping(kernel, mem, snapshot)) {
        kernel->n_disagreements = 0;
        return false;
    }
    if (kernel->n_disagreements == 0)
        kernel->first_disagreement_ns = snapshot->time_ns;
    kernel->n_disagreements++;
    return kernel->n_disagreements >= DISAGREEMENTS_MIN &&
           snapshot->time_ns - kernel->first_disagreement_ns >= DISAGREEMENT_NS;
}

static bool
has_same_banner(const UprofLinux *kernel, UprofMem *mem)
{
    char banner[BANNER_BYTES];

    return read_banner(kernel, mem, banner) && strcmp(banner, kernel->banner) == 0;
}

/* A kernel can start another one (kexec) without a reset of the guest. */
static void
check_kernel(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const bool is_due = snapshot->time_ns - kernel->checked_ns >= UPROF_MEM_KEEP_NS;

    if (!is_due && kernel->n_disagreements == 0)
        return;
    if ((is_due && !has_same_banner(kernel, mem)) || is_replaced(kernel, mem, snapshot)) {
        forget_kernel(kernel);
        return;
    }
    if (!is_due)
        return;
    kernel->checked_ns = snapshot->time_ns;
    update_links(kernel, mem);
    read_changed_modules(kernel, mem, snapshot->time_ns);
}

static bool
is_unknown_module(const UprofLinux *kernel, uint64_t pc)
{
    return pc >= kernel->arch->modules_start && pc < kernel->arch->modules_end &&
           !uprof_sym_is_code(kernel->sym, pc);
}

void
uprof_linux_note_unknown(UprofLinux *kernel, uint64_t pc)
{
    if (kernel->state == UPROF_LINUX_FOUND && is_unknown_module(kernel, pc))
        kernel->unknown_pc = pc;
}

/*
 * Unknown code among the modules is a new module, or code that the kernel generates (BPF). It can
 * also be the caller of the code that ran. The init code of a module is freed, and another module
 * may get its place.
 */
static void
read_modules_if_unknown(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const uint64_t pc =
        is_unknown_module(kernel, snapshot->regs.pc) ? snapshot->regs.pc : kernel->unknown_pc;

    if ((pc == 0 && !kernel->has_coming) ||
        snapshot->time_ns - kernel->modules_ns < kernel->modules_apart_ns)
        return;
    kernel->unknown_pc = 0;
    kernel->modules_ns = snapshot->time_ns;
    /* Remembered memory may be older than the module. */
    uprof_mem_forget(mem);
    read_modules(kernel, mem);
    kernel->modules_apart_ns = pc == 0 || uprof_sym_is_code(kernel->sym, pc)
                                   ? MODULES_APART_NS
                                   : MIN(kernel->modules_apart_ns * 2, MODULES_APART_MAX_NS);
}

static void
find_next_task(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);

    if (kernel->has_tasks && uprof_linux_next_task_find(kernel->links, &kernel->offsets, &memory,
                                                        snapshot, &kernel->next))
        kernel->next_of = snapshot;
}

void
uprof_linux_update(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    kernel->next_of = NULL;
    if (snapshot->reset != kernel->resets) {
        kernel->resets = snapshot->reset;
        forget_kernel(kernel);
    }
    if (!kernel->arch || snapshot->regs.word_bytes == 0)
        return;
    if (kernel->state == UPROF_LINUX_FOUND) {
        check_kernel(kernel, mem, snapshot);
        read_modules_if_unknown(kernel, mem, snapshot);
    }
    if (kernel->state == UPROF_LINUX_UNKNOWN)
        search_kernel_if_due(kernel, mem, snapshot);
    if (kernel->state == UPROF_LINUX_FOUND)
        find_next_task(kernel, mem, snapshot);
}

void
uprof_linux_facts(const UprofLinux *kernel, UprofLinuxFacts *facts)
{
    const bool is_found = kernel->state == UPROF_LINUX_FOUND;

    *facts = (UprofLinuxFacts){
        .state = kernel->state,
        .attach_ns = kernel->attach_ns,
        .why = kernel->why,
    };
    if (!is_found)
        return;
    facts->release = kernel->release;
    facts->build_id = kernel->build_id;
    facts->n_symbols = kernel->n_symbols;
    facts->layout = kernel->layout;
    facts->digest = kernel->digest;
    facts->base = kernel->base;
    facts->n_modules = kernel->n_modules;
    facts->n_rules = kernel->n_rules;
    facts->rules_version = kernel->orc_version;
    facts->has_btf = kernel->has_btf;
    facts->has_types = kernel->has_offsets;
    facts->has_module_types = kernel->has_module_offsets;
    facts->has_tasks = kernel->has_tasks;
}
