/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "linux-priv.h"

#include "uprof/clock.h"
#include "uprof/text.h"
#include "uprof/vmcoreinfo.h"

#include <string.h>

enum {
    BANNER_BYTES = 256,
    LINKS_MAX = 1024,       /* of a run: CPUs that start, and boots */
    TRIES_MAX = 12,         /* from one boot to the next */
    COMPANY_MAX = 64,       /* symbols of one address that are looked at, to each side */
    MARK_BYTES = 72,        /* of a module: its place in the list, and behind that its name */
    MARK_MODULES_MAX = 256, /* that are looked at to see whether they are the same */
    DOUBTS_MIN = 8,         /* samples that all say that another kernel runs */
};

#define DOUBT_NS UINT64_C(1000000000) /* and for how long */

#define MODULES_APART_NS UINT64_C(1000000000) /* and more after each in vain, up to: */
#define MODULES_APART_MAX_NS UINT64_C(16000000000)
#define TRY_APART_NS UINT64_C(250000000) /* and more after each in vain */

static const char banner_start[] = "Linux version ";

struct _UprofLinux {
    UprofSym *sym; /* borrowed */
    unsigned n_vcpus;
    bool wants_digest;

    const UprofLinks *links; /* (nullable): read by others */
    GPtrArray *all_links;    /* that there ever were: somebody may still have the last but one */

    bool has_tasks; /* these say of a CPU what it runs */

    UprofLinuxState state;
    uint32_t resets;
    unsigned n_tries;
    uint64_t next_try_ns;
    uint64_t checked_ns;
    unsigned n_doubts; /* one after the other: samples by whose tables the kernel is elsewhere */
    uint64_t doubted_ns;

    UprofRegs regs; /* to read the kernel's memory by, whatever runs */
    unsigned vcpu;
    UprofLinuxPlaces places;
    bool has_btf;
    bool has_offsets;
    UprofLinuxOffsets offsets;
    bool has_module_offsets;
    UprofLinuxModuleOffsets module_offsets;
    UprofOrcVersion orc_version;
    size_t n_rules;
    unsigned n_modules;
    uint64_t modules_ns;       /* when they were looked for, after the first time */
    uint64_t modules_apart_ns; /* from then on */
    uint64_t modules_mark;     /* of those that were read */
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
    kernel->n_vcpus = n_vcpus;
    kernel->modules_apart_ns = MODULES_APART_NS;
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
    g_free(kernel);
}

void
uprof_linux_want_digest(UprofLinux *kernel)
{
    kernel->wants_digest = true;
}

const UprofLinks **
uprof_linux_links(UprofLinux *kernel)
{
    return &kernel->links;
}

bool
uprof_linux_task(const UprofLinux *kernel, const UprofSnapshot *snapshot, UprofLinuxTask *task)
{
    return kernel->links && uprof_linux_task_read(kernel->links, &kernel->offsets, snapshot, task);
}

const UprofLinuxOffsets *
uprof_linux_offsets(const UprofLinux *kernel)
{
    return kernel->has_tasks ? &kernel->offsets : NULL;
}

const UprofLinuxPlaces *
uprof_linux_places(const UprofLinux *kernel)
{
    return &kernel->places;
}

const UprofRegs *
uprof_linux_regs(const UprofLinux *kernel, unsigned *vcpu)
{
    *vcpu = kernel->vcpu;
    return &kernel->regs;
}

static void
forget(UprofLinux *kernel)
{
    g_atomic_pointer_set(&kernel->links, NULL);
    kernel->has_tasks = false;
    if (kernel->state == UPROF_LINUX_FOUND)
        for (unsigned i = 0; i < UPROF_SYM_N_OWN; i++)
            uprof_sym_set_own(kernel->sym, i, NULL, NULL, NULL);
    kernel->state = UPROF_LINUX_UNKNOWN;
    kernel->n_tries = 0;
    kernel->next_try_ns = 0;
    kernel->n_doubts = 0;
    kernel->modules_apart_ns = MODULES_APART_NS;
    kernel->attach_ns = 0;
    g_clear_pointer(&kernel->release, g_free);
    g_clear_pointer(&kernel->build_id, g_free);
    kernel->why = NULL;
}

/* ---- What is found ---- */

static bool
is_code(char type)
{
    return type == 'T' || type == 't' || type == 'W' || type == 'w';
}

static UprofBinding
find_binding(char type)
{
    if (type == 'W' || type == 'w')
        return UPROF_BINDING_WEAK;
    return g_ascii_isupper(type) ? UPROF_BINDING_GLOBAL : UPROF_BINDING_LOCAL;
}

/* What the linker puts where a part of the code begins or ends, as "__sched_text_start". */
static bool
is_mark(const char *name)
{
    return g_str_has_prefix(name, "__") &&
           (g_str_has_suffix(name, "_start") || g_str_has_suffix(name, "_end"));
}

/* Whether something else begins there, too; they are sorted. */
static bool
has_company(const UprofKallsyms *kallsyms, guint i)
{
    const UprofKallsym *all = &g_array_index(kallsyms->symbols, UprofKallsym, 0);
    const guint first = i - MIN(i, (guint)COMPANY_MAX);
    const guint end = MIN(i + COMPANY_MAX, kallsyms->symbols->len);

    for (guint k = i; k > first && all[k - 1].address == all[i].address; k--)
        if (is_code(all[k - 1].type) && !is_mark(uprof_kallsyms_name(kallsyms, &all[k - 1])))
            return true;
    for (guint k = i + 1; k < end && all[k].address == all[i].address; k++)
        if (is_code(all[k].type) && !is_mark(uprof_kallsyms_name(kallsyms, &all[k])))
            return true;
    return false;
}

static void
publish_symbols(UprofLinux *kernel, UprofKallsyms *kallsyms, const UprofLinuxImage *image)
{
    g_autoptr(GArray) symbols =
        g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), kallsyms->symbols->len);

    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *from = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        const char *name = uprof_kallsyms_name(kallsyms, from);
        const UprofSymbol symbol = {
            .start = from->address,
            .name = { name, strlen(name) },
            .binding = find_binding(from->type),
            .code = is_code(from->type) && !(is_mark(name) && has_company(kallsyms, i)),
        };
        if (symbol.name.len > 0)
            g_array_append_val(symbols, symbol);
    }
    uprof_sym_set_own(kernel->sym, UPROF_SYM_KERNEL, symbols, g_steal_pointer(&kallsyms->names),
                      image->code);
}

/* "Linux version 6.1.0-18-cloud-amd64 (somebody@somewhere) ..." */
static bool
read_banner(const UprofLinux *kernel, UprofMem *mem, char *banner)
{
    memset(banner, 0, BANNER_BYTES);
    return kernel->places.banner != 0 &&
           uprof_mem_read(mem, kernel->vcpu, &kernel->regs, kernel->places.banner, banner,
                          BANNER_BYTES - 1) &&
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

/* What it says for those who read a dead kernel's memory; a little after it began to boot. */
static void
note_build_id(UprofLinux *kernel, UprofMem *mem)
{
    const UprofLinuxPlaces *places = &kernel->places;
    uint64_t at, len;

    g_clear_pointer(&kernel->build_id, g_free);
    if (places->info == 0 || places->info_bytes == 0 ||
        !uprof_mem_read(mem, kernel->vcpu, &kernel->regs, places->info, &at, sizeof(at)) ||
        !uprof_mem_read(mem, kernel->vcpu, &kernel->regs, places->info_bytes, &len, sizeof(len)))
        return;
    len = GUINT64_FROM_LE(len);
    if (len == 0 || len > UPROF_VMCOREINFO_BYTES_MAX)
        return;
    g_autofree char *text = g_malloc(len);
    if (!uprof_mem_read(mem, kernel->vcpu, &kernel->regs, GUINT64_FROM_LE(at), text, len))
        return;
    g_autoptr(UprofVmcoreinfo) info = uprof_vmcoreinfo_parse((UprofSlice){ text, len }, NULL);
    if (info && strcmp(uprof_vmcoreinfo_release(info), kernel->release) == 0)
        kernel->build_id = g_strdup(uprof_vmcoreinfo_build_id(info));
}

/* The tables that a process has go with it; those of the kernel alone stay. */
static void
take_root(UprofLinux *kernel, UprofMem *mem)
{
    UprofRegs *regs = &kernel->regs;
    UprofRegs with_root = *regs;
    uint64_t gpa, left;
    char banner[BANNER_BYTES];

    if (kernel->places.root == 0 ||
        !uprof_mem_translate(mem, kernel->vcpu, regs, kernel->places.root, &gpa, &left, NULL))
        return;
    with_root.sys[UPROF_X86_CR3] = gpa;
    const UprofRegs before = *regs;
    *regs = with_root;
    if (!read_banner(kernel, mem, banner) || strcmp(banner, kernel->banner) != 0)
        *regs = before;
}

static void
take_rules(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image)
{
    const UprofLinuxPlaces *places = &kernel->places;
    UprofSlice ips, entries, header = { NULL, 0 };

    kernel->n_rules = 0;
    /* they lie among data */
    if (places->orc_header_start != 0) {
        uprof_linux_image_copy(image, mem, kernel->vcpu, places->orc_header_start,
                               places->orc_header_end);
        if (!uprof_linux_image_part(image, places->orc_header_start, places->orc_header_end,
                                    &header))
            header = (UprofSlice){ NULL, 0 };
    }
    kernel->orc_version = uprof_orc_version(header, kernel->release);
    uprof_linux_image_copy(image, mem, kernel->vcpu, places->orc_ips_start, places->orc_ips_end);
    uprof_linux_image_copy(image, mem, kernel->vcpu, places->orc_start, places->orc_end);
    if (kernel->orc_version == UPROF_ORC_UNKNOWN ||
        !uprof_linux_image_part(image, places->orc_ips_start, places->orc_ips_end, &ips) ||
        !uprof_linux_image_part(image, places->orc_start, places->orc_end, &entries))
        return;
    UprofOrc *orc = uprof_orc_parse(ips, places->orc_ips_start, entries, kernel->orc_version, NULL);
    if (!orc)
        return;
    kernel->n_rules = uprof_orc_n(orc);
    uprof_sym_add_orc(kernel->sym, UPROF_SYM_KERNEL, orc);
}

/* Where modules are loaded, behind the kernel (Linux, mm.rst as above). */
#define MODULES_START UINT64_C(0xffffffffc0000000)
#define MODULES_END UINT64_C(0xffffffffff000000)

/* FNV-1a, of 64 bits */
static uint64_t
add_to_mark(uint64_t mark, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        mark = (mark ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return mark;
}

/*
 * Where the modules are, and the beginning of the one that was loaded last: another may lie
 * where one was that is gone, or even be called by the same address.
 */
static bool
read_modules_mark(const UprofLinux *kernel, UprofMem *mem, uint64_t *mark)
{
    const uint64_t head = kernel->places.modules;
    uint8_t first[MARK_BYTES];
    uint64_t node = head;

    if (!kernel->has_module_offsets || head == 0)
        return false;
    *mark = UINT64_C(0xcbf29ce484222325);
    for (unsigned i = 0; i < MARK_MODULES_MAX && (i == 0 || node != head); i++) {
        if (!uprof_mem_read_always(mem, kernel->vcpu, &kernel->regs, node, &node, sizeof(node)))
            return i > 0;
        node = GUINT64_FROM_LE(node);
        *mark = add_to_mark(*mark, &node, sizeof(node));
        if (i == 0 && node != head &&
            uprof_mem_read_always(mem, kernel->vcpu, &kernel->regs, node, first, sizeof(first)))
            *mark = add_to_mark(*mark, first, sizeof(first));
    }
    return true;
}

static void
update_modules(UprofLinux *kernel, UprofMem *mem)
{
    if (!kernel->has_module_offsets || kernel->places.modules == 0)
        return;
    if (!read_modules_mark(kernel, mem, &kernel->modules_mark))
        kernel->modules_mark = 0;
    g_autoptr(UprofLinuxModules) modules =
        uprof_linux_modules_read(&kernel->module_offsets, kernel->places.modules,
                                 kernel->orc_version, mem, kernel->vcpu, &kernel->regs);
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
    uprof_sym_set_own(kernel->sym, UPROF_SYM_MODULES, symbols, g_steal_pointer(&modules->names),
                      modules->code);
    while (modules->orcs->len > 0)
        uprof_sym_add_orc(kernel->sym, UPROF_SYM_MODULES,
                          g_ptr_array_steal_index(modules->orcs, modules->orcs->len - 1));
}

static void
take_types(UprofLinux *kernel, const UprofLinuxImage *image)
{
    UprofSlice bytes;

    kernel->has_btf = kernel->has_offsets = kernel->has_module_offsets = false;
    if (!uprof_linux_image_part(image, kernel->places.btf_start, kernel->places.btf_end, &bytes))
        return;
    g_autoptr(UprofBtf) btf = uprof_btf_parse(bytes, NULL);
    kernel->has_btf = btf != NULL;
    kernel->has_offsets =
        btf && uprof_linux_offsets_find(btf, kernel->places.hot != 0, &kernel->offsets);
    kernel->has_module_offsets =
        btf && uprof_linux_module_offsets_find(btf, &kernel->module_offsets);
}

/* CPUs start one after the other, and so their stacks come to be known. */
static void
update_links(UprofLinux *kernel, UprofMem *mem)
{
    const size_t len = sizeof(UprofLinks) + kernel->n_vcpus * sizeof(UprofLinksVcpu);

    if (!kernel->has_offsets || kernel->all_links->len >= LINKS_MAX)
        return;
    UprofLinks *links = uprof_linux_links_make(&kernel->places, &kernel->offsets, kernel->links,
                                               mem, kernel->vcpu, &kernel->regs, kernel->n_vcpus);
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
    /* while it boots, and with rodata=off, its constants can be written to */
    uprof_linux_image_copy_all(image, mem, vcpu);
    return uprof_kallsyms_parse(bytes, image->base, UPROF_KALLSYMS_MIN, NULL);
}

/* Returns: whether it is Linux; @kallsyms loses its names to the symbols */
static bool
take_kernel(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image, UprofKallsyms *kallsyms)
{
    kernel->regs = image->regs;
    uprof_linux_places_find(kallsyms, &kernel->places);
    if (kernel->places.text != image->base || !read_banner(kernel, mem, kernel->banner))
        return false;
    note_release(kernel);
    take_root(kernel, mem);
    note_build_id(kernel, mem);
    kernel->base = image->base;
    kernel->n_symbols = kallsyms->symbols->len;
    kernel->layout = kallsyms->layout;
    kernel->digest = kernel->wants_digest ? uprof_kallsyms_digest(kallsyms) : 0;
    publish_symbols(kernel, kallsyms, image);
    take_rules(kernel, mem, image);
    take_types(kernel, image);
    update_links(kernel, mem);
    update_modules(kernel, mem);
    return true;
}

static bool
attach(UprofLinux *kernel, UprofMem *mem, UprofLinuxImage *image)
{
    g_autoptr(UprofKallsyms) kallsyms = find_kallsyms(image, mem, kernel->vcpu);

    if (!kallsyms || !take_kernel(kernel, mem, image, kallsyms)) {
        kernel->why = kallsyms ? "a table of symbols is there, but not where Linux has its kernel"
                               : "what lies where Linux has its kernel has no table of symbols";
        return false;
    }
    return true;
}

static void
try_attach(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    kernel->next_try_ns = snapshot->time_ns + TRY_APART_NS;
    kernel->vcpu = snapshot->vcpu;
    kernel->why = NULL;
    g_autoptr(UprofLinuxImage) image = uprof_linux_image_find(mem, kernel->vcpu, &snapshot->regs);
    if (!image)
        return;
    if (attach(kernel, mem, image)) {
        kernel->state = UPROF_LINUX_FOUND;
        kernel->checked_ns = snapshot->time_ns;
        return;
    }
    /* each costs more than a look at where a kernel might be */
    kernel->next_try_ns += TRY_APART_NS << kernel->n_tries;
    if (++kernel->n_tries == TRIES_MAX)
        kernel->state = UPROF_LINUX_NONE;
}

/* Now and then. */
static void
look_for_kernel(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const uint64_t began_ns = uprof_clock_now_ns();

    if (snapshot->time_ns < kernel->next_try_ns)
        return;
    try_attach(kernel, mem, snapshot);
    kernel->attach_ns = uprof_clock_now_ns() - began_ns;
}

static void
check_modules(UprofLinux *kernel, UprofMem *mem, uint64_t now_ns)
{
    uint64_t mark;

    if (now_ns - kernel->modules_ns < kernel->modules_apart_ns ||
        !read_modules_mark(kernel, mem, &mark) || mark == kernel->modules_mark)
        return;
    kernel->modules_ns = now_ns;
    /* a list that changes all the time is read more and more seldom */
    kernel->modules_apart_ns = MIN(kernel->modules_apart_ns * 2, MODULES_APART_MAX_NS);
    update_modules(kernel, mem);
}

/* By the page tables that were used in the sample: whether the kernel is where it was. */
static bool
is_at_its_place(const UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const uint64_t banner = kernel->places.banner;
    uint64_t before, now, left;

    return uprof_mem_translate(mem, snapshot->vcpu, &snapshot->regs, banner, &now, &left, NULL) &&
           uprof_mem_translate(mem, kernel->vcpu, &kernel->regs, banner, &before, &left, NULL) &&
           before == now;
}

/*
 * Where another kernel was started, the memory of the one before may be as it was, and only
 * the tables that are used now tell. One sample's do not: its process may have ended since,
 * and anything may lie there by now. All do, and for a while.
 */
static bool
is_replaced(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const UprofRegs *ran = &snapshot->regs;
    const UprofLinuxPlaces *places = &kernel->places;

    if (ran->privilege != 0 || (ran->pc >= places->entry_start && ran->pc < places->entry_end))
        return false; /* the tables may be those of user space */
    if (is_at_its_place(kernel, mem, snapshot)) {
        kernel->n_doubts = 0;
        return false;
    }
    if (kernel->n_doubts == 0)
        kernel->doubted_ns = snapshot->time_ns;
    kernel->n_doubts++;
    return kernel->n_doubts >= DOUBTS_MIN && snapshot->time_ns - kernel->doubted_ns >= DOUBT_NS;
}

static bool
has_same_banner(const UprofLinux *kernel, UprofMem *mem)
{
    char banner[BANNER_BYTES];

    return read_banner(kernel, mem, banner) && strcmp(banner, kernel->banner) == 0;
}

/* A kernel can start another one (kexec) without a reset. */
static void
check_again(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const bool is_due = snapshot->time_ns - kernel->checked_ns >= UPROF_MEM_KEEP_NS;

    if (!is_due && kernel->n_doubts == 0)
        return;
    if ((is_due && !has_same_banner(kernel, mem)) || is_replaced(kernel, mem, snapshot)) {
        forget(kernel);
        return;
    }
    if (!is_due)
        return;
    kernel->checked_ns = snapshot->time_ns;
    update_links(kernel, mem);
    check_modules(kernel, mem, snapshot->time_ns);
}

/* What runs may have been loaded just now; or it is code that the kernel has made itself. */
static void
look_for_modules(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    const uint64_t pc = snapshot->regs.pc;

    if (kernel->state != UPROF_LINUX_FOUND || pc < MODULES_START || pc >= MODULES_END ||
        snapshot->time_ns - kernel->modules_ns < kernel->modules_apart_ns ||
        uprof_sym_is_code(kernel->sym, pc))
        return;
    kernel->modules_ns = snapshot->time_ns;
    update_modules(kernel, mem);
    kernel->modules_apart_ns = uprof_sym_is_code(kernel->sym, pc)
                                   ? MODULES_APART_NS
                                   : MIN(kernel->modules_apart_ns * 2, MODULES_APART_MAX_NS);
}

void
uprof_linux_look(UprofLinux *kernel, UprofMem *mem, const UprofSnapshot *snapshot)
{
    if (snapshot->reset != kernel->resets) {
        kernel->resets = snapshot->reset;
        forget(kernel);
    }
    if (snapshot->regs.word_bytes == 0)
        return;
    if (kernel->state == UPROF_LINUX_FOUND) {
        check_again(kernel, mem, snapshot);
        look_for_modules(kernel, mem, snapshot);
    }
    if (kernel->state == UPROF_LINUX_UNKNOWN)
        look_for_kernel(kernel, mem, snapshot);
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
