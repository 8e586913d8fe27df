/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/linux/space-priv.h"
#include "../../../src/mem/mem-priv.h"
#include "linux-guest.h"
#include "uprof/kallsyms.h"

#define SECOND UINT64_C(1000000000)

enum { N_SYMBOLS = 1027, PAGE = 4096 };

/* The most reads for a sample of a known kernel, for any content of the guest's memory. */
enum { READS_MAX = UPROF_MEM_FRESH_MAX };

static void
check_name(LinuxView *view, uint64_t pc, const char *name)
{
    g_assert_cmpstr(linux_view_name(view, pc), ==, name);
}

/* ---- Kernels that are found ---- */

/* clang-format off */
static const struct {
    const char *name;
    LinuxPlan plan;
    bool in_kernel;
} kernels[] = {
    { "6.4",                   { .n_modules = 2 } },
    { "in-kernel",             { .n_modules = 2 }, true },
    { "5.10",                  { .n_modules = 2, .is_red_black = true, .is_old_module = true, .has_irq_end = true, .release = "5.10.0-8" } },
    { "6.12",                  { .n_modules = 2, .has_hot = true, .release = "6.12.1" } },
    { "isolation",             { .n_modules = 2, .has_isolation = true } },
    { "isolation-in-kernel",   { .n_modules = 2, .has_isolation = true }, true },
    { "xen",                   { .n_modules = 2, .is_xen = true } },
    { "xen-in-kernel",         { .n_modules = 2, .is_xen = true }, true },
    { "cpus",                  { .n_modules = 2, .n_vcpus = 8 } },
};
/* clang-format on */

static void
check_facts(const LinuxView *view, const char *release)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_FOUND);
    g_assert_cmpstr(facts.release, ==, release);
    g_assert_cmpuint(facts.n_symbols, ==, N_SYMBOLS);
    g_assert_cmphex(facts.base, ==, LINUX_IMAGE);
    g_assert_cmpuint(facts.n_modules, ==, 2);
    g_assert_cmpuint(facts.n_rules, ==, 4);
    g_assert_true(facts.has_tasks);
    g_assert_null(facts.why);
}

static void
check_links(LinuxView *view)
{
    const LinuxGuest *guest = view->guest;
    const UprofLinks *links = *uprof_linux_links(view->kernel);

    g_assert_cmpuint(links->n_vcpus, ==, guest->plan.n_vcpus);
    g_assert_cmphex(links->root, ==, guest->root);
    for (unsigned i = 0; i < links->n_vcpus; i++) {
        const uint64_t area = LINUX_DIRECT + guest->cpu_areas[i];
        g_assert_cmphex(links->vcpus[i].task_at, ==, area + CPU_CURRENT);
        g_assert_cmphex(links->vcpus[i].irq_at, ==, area + PAGE - 8);
    }
}

static void
check_rules(LinuxView *view)
{
    UprofOrcRule rule;

    g_assert_true(uprof_sym_orc(view->sym, LINUX_IMAGE + 0x58, &rule));
    g_assert_cmpint(rule.type, ==, UPROF_ORC_CALL);
    g_assert_cmpint(rule.sp_offset, ==, 16);
    g_assert_true(uprof_sym_orc(view->sym, LINUX_IMAGE + 0x80, &rule));
    g_assert_cmpint(rule.type, ==, UPROF_ORC_REGS);
    g_assert_true(uprof_sym_orc(view->sym, LINUX_MODULES + 0x10010, &rule));
    g_assert_cmpint(rule.sp_offset, ==, 8);
    g_assert_false(uprof_sym_orc(view->sym, LINUX_MODULES + 0x20010, &rule));
}

static void
test_found(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&kernels[i].plan);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const char *release = kernels[i].plan.release;
    UprofLinuxTask task;

    linux_guest_run(guest, 0, guest->task, kernels[i].in_kernel);
    linux_view_sample(view, 0);
    check_facts(view, release ? release : "6.4.0-test");
    check_links(view);
    check_rules(view);
    check_name(view, LINUX_IMAGE, "_text_[k]");
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    check_name(view, LINUX_IMAGE + LINUX_PART, "begin_part_[k]");
    check_name(view, LINUX_IMAGE + LINUX_PART + 8, "__alone_end_[k]");
    check_name(view, LINUX_IMAGE + LINUX_IMAGE_BYTES, "[unknown]");
    check_name(view, LINUX_MODULES + 0x3f, "module_0_open_[k]");
    check_name(view, LINUX_MODULES + 0x10040, "module_1_read_[k]");
    check_name(view, LINUX_MODULES + 0x10060, "[modules+0x10060]");
    g_assert_cmpuint(linux_view_sample(view, 0), <=, READS_MAX);
    g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &task));
    g_assert_cmpstr(task.name, ==, "nginx");
    g_assert_cmpuint(task.pid, ==, 4242);
    g_assert_cmpuint(task.process, ==, 4242);
    g_assert_cmphex(task.memory, ==, LINUX_DIRECT + guest->mm);
}

/* Adds a line as of /proc/kallsyms to the FNV-1a digest (draft-eastlake-fnv). */
static uint64_t
add_line(uint64_t digest, uint64_t address, char type, const char *name)
{
    g_autofree char *line =
        g_strdup_printf("%016" G_GINT64_MODIFIER "x %c %s\n", address, type, name);

    for (const char *c = line; *c; c++) {
        digest ^= (uint8_t)*c;
        digest *= UINT64_C(1099511628211);
    }
    return digest;
}

static void
test_digest(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_types = true });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autoptr(GByteArray) image = g_byte_array_new();
    uint64_t digest = UINT64_C(14695981039346656037);
    UprofLinuxFacts facts;

    g_byte_array_append(image, guest->memory->ram + LINUX_IMAGE_GPA, LINUX_IMAGE_BYTES);
    g_autoptr(UprofKallsyms) kallsyms = uprof_kallsyms_parse(
        (UprofSlice){ image->data, image->len }, LINUX_IMAGE, UPROF_KALLSYMS_MIN, NULL);
    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        digest =
            add_line(digest, symbol->address, symbol->type, uprof_kallsyms_name(kallsyms, symbol));
    }
    uprof_linux_want_digest(view->kernel);
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmphex(facts.digest, ==, digest);
}

/* ---- Kernels without some of their tables ---- */

/* clang-format off */
static const struct {
    const char *name;
    LinuxPlan plan;
    uint64_t at;           /* where 8 bytes of the image are changed; 0: nowhere */
    bool is_found, has_rules, has_tasks;
    const char *why;       /* a pattern; NULL: no message */
} missing[] = {
    { "types",          { .no_types = true },   0, true, true, false, NULL },
    { "rules",          { .no_rules = true },   0, true, false, true, NULL },
    { "symbols",        { .no_symbols = true }, 0, false, false, false, "*has no symbol table" },
    { "cpus",           { .no_cpus = true },    0, true, true, false, NULL },
    { "task-too-large", { .name_at = 5000 },    0, true, true, false, NULL },
    { "name-too-far",   { .name_at = 1 << 20 }, 0, true, true, false, NULL },
    { "name-nowhere",   { .name_at = 1 << 28 }, 0, true, true, false, NULL },
    { "types-broken",   { 0 }, LINUX_BTF,        true, true, false, NULL },
    { "rules-unsorted", { 0 }, LINUX_ORC,        true, false, true, NULL },
    { "rules-unknown",  { 0 }, LINUX_ORC_HEADER, true, false, true, NULL },
    { "banner",         { 0 }, LINUX_BANNER,     false, false, false, "*but not in the address range of a Linux kernel" },
};
/* clang-format on */

static void
test_missing(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&missing[i].plan);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;
    UprofLinuxTask task;

    if (missing[i].at)
        linux_guest_put(guest, linux_guest_image(missing[i].at), UINT64_C(0x7f7f7f7f7f7f7f7f));
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, missing[i].is_found ? UPROF_LINUX_FOUND : UPROF_LINUX_UNKNOWN);
    g_assert_cmpint(facts.n_rules > 0, ==, missing[i].has_rules);
    g_assert_cmpint(facts.has_tasks, ==, missing[i].has_tasks);
    g_assert_cmpint(uprof_linux_task(view->kernel, view->snapshot, &task), ==,
                    missing[i].has_tasks);
    g_assert_cmpint(uprof_space_has_processes(view->space), ==, missing[i].has_tasks);
    if (!missing[i].has_tasks)
        g_assert_cmphex(uprof_space_symbol_address(view->space, LINUX_PROGRAM), ==, LINUX_PROGRAM);
    check_name(view, LINUX_IMAGE + 0x58,
               missing[i].is_found ? "function_0005_[k]" : "0xffffffff81000058");
    if (missing[i].why)
        g_assert_true(g_pattern_match_simple(missing[i].why, facts.why));
    else
        g_assert_null(facts.why);
}

/* A run of half a second has several searches, also after a reset. */
static void
test_first_searches(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_symbols = true });
    g_autoptr(LinuxView) view = linux_view_new(guest);

    for (unsigned boot = 0; boot < 2; boot++) {
        unsigned n_searches = 0;
        for (unsigned i = 0; i < 100; i++) {
            view->time_ns += SECOND / 200;
            uprof_mem_forget(view->mem);
            n_searches += linux_view_sample(view, 0) > 0;
        }
        g_assert_cmpuint(n_searches, ==, 5); /* after 0, 30, 90, 210 and 450 ms */
        view->reset++;
    }
}

/* A guest without Linux is searched less and less often, and finally not at all. */
static void
test_no_linux(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_symbols = true });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;
    unsigned n_searches = 0;

    for (unsigned i = 0; i < 100 * 60; i++) {
        view->time_ns += SECOND / 10;
        uprof_mem_forget(view->mem);
        n_searches += linux_view_sample(view, 0) > 0;
        uprof_linux_facts(view->kernel, &facts);
        if (facts.state == UPROF_LINUX_NONE)
            break;
    }
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_NONE);
    g_assert_cmpuint(n_searches, ==, 16);
    view->time_ns += 3600 * SECOND;
    g_assert_cmpuint(linux_view_sample(view, 0), ==, 0);
    /* after a reset, the guest may run another kernel */
    view->reset++;
    g_assert_cmpuint(linux_view_sample(view, 0), >, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    g_assert_nonnull(facts.why);
    /* the message and the time are from the last search */
    view->time_ns += 3600 * SECOND;
    guest->memory->regs[0].sys[UPROF_X86_IDT] = LINUX_STACK;
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_null(facts.why);
    g_assert_cmpuint(facts.attach_ns, >, 0);
    /* without a search, the time is 0 */
    guest->memory->regs[0].word_bytes = 0;
    view->reset++;
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.attach_ns, ==, 0);
}

/* If no kernel can be at its usual addresses, a search costs only a few reads. */
static void
test_no_candidate(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofRegs *regs = &guest->memory->regs[0];
    UprofLinuxFacts facts;

    regs->sys[UPROF_X86_IDT] = LINUX_STACK;
    g_assert_cmpuint(linux_view_sample(view, 0), <, 8);
    view->time_ns += SECOND;
    regs->sys[UPROF_X86_IDT] = LINUX_IDT;
    regs->sys[UPROF_X86_CR3] = UINT64_C(0xffffffffff000);
    g_assert_cmpuint(linux_view_sample(view, 0), <, 8);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    g_assert_null(facts.why);
}

/* If the kernel's own page tables map nothing, the tables of the process are used. */
static void
test_empty_kernel_root(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxTask task;

    memset(guest->memory->ram + guest->root, 0, PAGE);
    linux_view_sample(view, 0);
    check_facts(view, "6.4.0-test");
    g_assert_cmphex((*uprof_linux_links(view->kernel))->root, ==, guest->process_root);
    linux_view_sample(view, 0);
    g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &task));
}

/* The page before the symbol _text is mapped, so _text cannot be the start of the kernel. */
static void
test_before_text(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_guest_map(guest, guest->root, LINUX_IMAGE - 2 * 1024 * 1024, 0, LINUX_NO_CODE);
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    g_assert_true(
        g_pattern_match_simple("*but not in the address range of a Linux kernel", facts.why));
}

/* ---- Another kernel ---- */

static void
test_kexec(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t banner = linux_guest_image(LINUX_BANNER);
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    check_facts(view, "6.4.0-test");
    linux_guest_put_text(guest, banner, "Linux version 6.5.0-next (somebody) #2");
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_facts(view, "6.5.0-next");
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    /* this kernel is not Linux */
    linux_guest_put_text(guest, banner, "Plan 9");
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    g_assert_false(uprof_space_has_processes(view->space));
    g_assert_null(*uprof_linux_links(view->kernel));
    check_name(view, LINUX_IMAGE + 0x58, "0xffffffff81000058");
}

/* Another kernel runs at other addresses. The memory of the old kernel has not changed. */
static void
test_kexec_elsewhere(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofRegs *regs = &guest->memory->regs[0];
    const uint64_t root = regs->sys[UPROF_X86_CR3];
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    /* samples in user mode do not show the new kernel */
    linux_guest_run(guest, 0, guest->task, false);
    regs->sys[UPROF_X86_CR3] = UINT64_C(0xffffffffff000);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_facts(view, "6.4.0-test");
    linux_guest_run(guest, 0, guest->task, true);
    regs->pc = LINUX_IMAGE + 0x58;
    regs->sys[UPROF_X86_CR3] = root;
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_facts(view, "6.4.0-test");
    /* only many samples in a row count as another kernel */
    regs->sys[UPROF_X86_CR3] = UINT64_C(0xffffffffff000);
    view->time_ns += UPROF_MEM_KEEP_NS;
    for (unsigned i = 0; i < 10; i++) {
        linux_view_sample(view, 0);
        check_facts(view, "6.4.0-test");
        view->time_ns += SECOND / 10;
    }
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    check_name(view, LINUX_IMAGE + 0x58, "0xffffffff81000058");
}

/* Most samples are of processes that have ended since, so their page tables no longer exist. */
static void
test_ended_processes(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofRegs *regs = &guest->memory->regs[0];
    const uint64_t root = regs->sys[UPROF_X86_CR3];

    linux_view_sample(view, 0);
    linux_guest_run(guest, 0, guest->task, true);
    regs->pc = LINUX_IMAGE + 0x58;
    for (unsigned i = 0; i < 100; i++) {
        /* one sample in twenty is of a process that still runs */
        regs->sys[UPROF_X86_CR3] = i % 20 == 19 ? root : UINT64_C(0xffffffffff000);
        view->time_ns += i % 20 == 0 ? UPROF_MEM_KEEP_NS : SECOND / 25;
        linux_view_sample(view, 0);
        check_facts(view, "6.4.0-test");
        check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
    }
}

static void
test_reset(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autofree uint8_t *ram = g_memdup2(guest->memory->ram, guest->memory->ram_len);
    UprofLinuxTask task;
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_true(uprof_space_has_process(view->space));
    memset(guest->memory->ram, 0, guest->memory->ram_len);
    view->reset++;
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
    g_assert_false(uprof_linux_task(view->kernel, view->snapshot, &task));
    check_name(view, LINUX_MODULES, "0xffffffffc0000000");
    memcpy(guest->memory->ram, ram, guest->memory->ram_len);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_facts(view, "6.4.0-test");
    check_links(view);
}

/* ---- Malformed tasks ---- */

static const struct {
    const char *name;
    uint64_t task;    /* pointer to the running task; 0: unchanged */
    const char *text; /* the 16 bytes of its name; NULL: unchanged */
    uint64_t numbers; /* pid in the lower half, tgid in the upper half; 0: unchanged */
} malformed_tasks[] = {
    { "nowhere", LINUX_DIRECT + (UINT64_C(1) << 40), NULL, 0 },
    { "not-canonical", UINT64_C(0x8000000000001000), NULL, 0 },
    { "last-address", UINT64_MAX - 7, NULL, 0 },
    { "user-space", LINUX_PROGRAM, NULL, 0 },
    { "null", 1, NULL, 0 },
    { "zeros", LINUX_DIRECT, NULL, 0 },
    { "no-name", 0, "\0nginx\0\0\0\0\0\0\0\0\0", 0 },
    { "endless-name", 0, "nginxnginxnginxn", 0 },
    { "escape", 0, "ngi\033[31mnx\0\0\0\0\0\0", 0 },
    { "newline", 0, "ngi\nnx\0\0\0\0\0\0\0\0\0", 0 },
    { "delete", 0, "ngi\177nx\0\0\0\0\0\0\0\0\0", 0 },
    { "number", 0, NULL, UINT64_C(0x0000109200400001) },
    { "process", 0, NULL, UINT64_C(0xffffffff00001092) },
};

static void
test_malformed_task(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxTask task = { .pid = 1 };

    linux_view_sample(view, 0);
    if (malformed_tasks[i].task)
        linux_guest_put(guest, guest->cpu_areas[0] + CPU_CURRENT, malformed_tasks[i].task);
    if (malformed_tasks[i].text)
        memory_guest_put(guest->memory, guest->task + TASK_COMM, malformed_tasks[i].text, 16);
    if (malformed_tasks[i].numbers)
        linux_guest_put(guest, guest->task + TASK_PID, malformed_tasks[i].numbers);
    g_assert_cmpuint(linux_view_sample(view, 0), <=, READS_MAX);
    g_assert_false(uprof_linux_task(view->kernel, view->snapshot, &task));
    g_assert_cmpuint(task.pid, ==, 1);
    g_assert_false(uprof_space_has_process(view->space));
}

/* ---- Modules ---- */

/* Offsets in the page of the first module: see make_module() */
enum { TABLE = 0x200, SYMBOLS = 0x240, NAMES = 0x300 };

/* All modules are found, even if they have many pages. */
static void
test_many_modules(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 300 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_modules, ==, 300);
    check_name(view, LINUX_MODULES + 299 * 0x10000, "module_299_open_[k]");
}

static void
test_too_many_modules(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 4100 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_modules, ==, 4096);
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
}

/* Real kernels list the module that was loaded last as the first one. */
static void
test_modules_backwards(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    uint64_t next = LINUX_IMAGE + LINUX_MODULE_LIST;

    for (unsigned i = 0; i < 3; i++) {
        linux_guest_put(guest, guest->modules[i] + MODULE_LIST, next);
        next = LINUX_DIRECT + guest->modules[i] + MODULE_LIST;
    }
    linux_guest_put(guest, linux_guest_image(LINUX_MODULE_LIST), next);
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
    check_name(view, LINUX_MODULES + 0x10000, "module_1_open_[k]");
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
}

/* A module that is loaded later is found when it runs; an unloaded one is dropped. */
static void
test_modules_change(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofRegs *regs = &guest->memory->regs[0];
    const uint64_t last = guest->modules[1] + MODULE_LIST;
    const uint64_t next = linux_guest_get(guest, last);

    linux_guest_put(guest, last, LINUX_IMAGE + LINUX_MODULE_LIST);
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES + 0x20000, "[unknown]");
    linux_guest_put(guest, last, next);
    linux_guest_run(guest, 0, guest->task, true);
    regs->pc = LINUX_MODULES + 0x20000;
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
    /* the first module is unloaded; the code that runs is in no module */
    linux_guest_put(guest, linux_guest_image(LINUX_MODULE_LIST),
                    LINUX_DIRECT + guest->modules[1] + MODULE_LIST);
    regs->pc = LINUX_MODULES + 0x30000;
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES, "[unknown]");
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
    /* modules are read once a second at most */
    view->time_ns += SECOND / 2;
    g_assert_cmpuint(linux_view_sample(view, 0), ==, 0);
}

/* ---- Generated code ---- */

#define GENERATED (LINUX_MODULES + 0x400000)

/* Puts a node behind the head at @head, an offset in the image. */
static void
link_first(LinuxGuest *guest, uint64_t head, uint64_t node)
{
    const uint64_t at = linux_guest_image(head);
    const uint64_t first = linux_guest_get(guest, at);

    linux_guest_put(guest, node, first == 0 ? LINUX_IMAGE + head : first);
    linux_guest_put(guest, at, LINUX_DIRECT + node);
}

/* Returns: guest-physical address of a struct bpf_ksym */
static uint64_t
add_bpf(LinuxGuest *guest, uint64_t start, uint64_t len, const char *name)
{
    const uint64_t ksym = linux_guest_alloc(guest, 0x80, 8);

    linux_guest_put(guest, ksym + BPF_START, start);
    linux_guest_put(guest, ksym + BPF_END, start + len);
    linux_guest_put_text(guest, ksym + BPF_NAME, name);
    link_first(guest, LINUX_BPF_LIST, ksym + BPF_NODE);
    return ksym;
}

static void
add_page(LinuxGuest *guest, uint64_t cache, uint64_t start)
{
    const uint64_t page = linux_guest_alloc(guest, 0x20, 8);

    linux_guest_put(guest, page + KPROBE_CODE, start);
    link_first(guest, cache + CACHE_PAGES, page + KPROBE_NODE);
}

/* Generated code has the names that /proc/kallsyms shows. */
static void
test_generated(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t ops = linux_guest_alloc(guest, 0x40, 8);
    UprofLinuxFacts facts;

    add_bpf(guest, GENERATED, 0x80, "bpf_prog_0123_one");
    add_bpf(guest, GENERATED + 0x100, 0x40, "bpf_trampoline_42");
    linux_guest_put(guest, ops + OPS_CODE, GENERATED + 0x1000);
    linux_guest_put(guest, ops + OPS_LEN, 0x200);
    link_first(guest, LINUX_FTRACE_LIST, ops + OPS_NODE);
    add_page(guest, LINUX_KPROBES, GENERATED + 0x2000);
    add_page(guest, LINUX_OPTIMIZED_KPROBES, GENERATED + 0x3000);
    linux_view_sample(view, 0);
    check_name(view, GENERATED, "bpf_prog_0123_one_[k]");
    check_name(view, GENERATED + 0x7f, "bpf_prog_0123_one_[k]");
    check_name(view, GENERATED + 0x80, "[unknown]");
    check_name(view, GENERATED + 0x110, "bpf_trampoline_42_[k]");
    check_name(view, GENERATED + 0x11ff, "ftrace_trampoline_[k]");
    check_name(view, GENERATED + 0x2004, "kprobe_insn_page_[k]");
    check_name(view, GENERATED + 0x3ffc, "kprobe_optinsn_page_[k]");
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_modules, ==, 2);
}

/* A program that is loaded later is found, and so is one that gets the place of another one. */
static void
test_generated_changes(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);

    linux_view_sample(view, 0);
    check_name(view, GENERATED, "[unknown]");
    const uint64_t ksym = add_bpf(guest, GENERATED, 0x80, "bpf_prog_one");
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, GENERATED, "bpf_prog_one_[k]");
    linux_guest_put_text(guest, ksym + BPF_NAME, "bpf_prog_two");
    linux_guest_put(guest, ksym + BPF_START, GENERATED + 0x40);
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, GENERATED, "[unknown]");
    check_name(view, GENERATED + 0x40, "bpf_prog_two_[k]");
}

/* Malformed entries of the guest's lists are left out, and no entry takes the place of a module. */
static void
test_generated_hostile(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t first = add_bpf(guest, GENERATED, 0x80, "bpf_prog_first");

    add_bpf(guest, 0x400000, 0x80, "user_code");
    add_bpf(guest, GENERATED + 0x1000, 0, "empty");
    add_bpf(guest, GENERATED + 0x1100, (uint64_t)0 - 0x40, "backwards");
    add_bpf(guest, GENERATED + 0x2000, 0x100000000, "huge");
    add_bpf(guest, UINT64_MAX - 0x10, 0x8, "last");
    add_bpf(guest, GENERATED + 0x3000, 0x40, "");
    add_bpf(guest, LINUX_MODULES + 0x10, 0x8, "in_a_module");
    const uint64_t name = add_bpf(guest, GENERATED + 0x4000, 0x40, "x") + BPF_NAME;
    for (unsigned i = 0; i < 2 * BPF_NAME_BYTES; i += 8)
        linux_guest_put(guest, name + i, UINT64_C(0x6161616161616161));
    /* the list is a circle without its head, and then it leads to nowhere */
    linux_guest_put(guest, first + BPF_NODE, LINUX_DIRECT + first + BPF_NODE);
    linux_guest_put(guest, linux_guest_image(LINUX_FTRACE_LIST), LINUX_DIRECT - 0x1000);
    linux_guest_put(guest, linux_guest_image(LINUX_KPROBES + CACHE_PAGES), 1);
    linux_view_sample(view, 0);
    check_name(view, GENERATED, "bpf_prog_first_[k]");
    check_name(view, GENERATED + 0x4000, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_[k]");
    check_name(view, LINUX_MODULES + 0x12, "module_0_open_[k]");
    for (unsigned i = 0x1000; i < 0x4000; i += 0x1000)
        check_name(view, GENERATED + i, "[unknown]");
    check_name(view, 0x400010, "[unknown]");
}

/* The init code of a module has names while the module is loaded, and is freed then. */
static void
test_modules_init(gconstpointer data)
{
    const LinuxPlan plan = { .n_modules = 2, .is_old_module = GPOINTER_TO_INT(data) };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t module = guest->modules[0], init = LINUX_MODULES + 0x8000;

    linux_guest_run(guest, 0, guest->task, true);
    linux_view_sample(view, 0);
    check_name(view, init + 4, "[unknown]");
    /* the second symbol is in the init code now */
    linux_guest_put(guest, module + SYMBOLS + 2 * 24 + 8, init);
    linux_guest_put(guest, module + MODULE_INIT, init);
    memory_guest_put_u32(guest->memory, module + MODULE_INIT + (plan.is_old_module ? 12 : 8),
                         0x1000);
    memory_guest_put_u32(guest->memory, module + MODULE_STATE, 1);
    /* the caller of the code that runs is unknown */
    uprof_linux_note_unknown(view->kernel, init + 4);
    view->time_ns += 2 * SECOND;
    linux_view_sample(view, 0);
    check_name(view, init + 4, "module_0_read_[k]");
    check_name(view, init + 0x100, "[modules+0x8100]");
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
    /* It is loaded: its init code is freed, without a new module in the list. */
    memory_guest_put_u32(guest->memory, module + MODULE_STATE, 0);
    linux_guest_put(guest, module + MODULE_INIT, 0);
    view->time_ns += 2 * SECOND;
    linux_view_sample(view, 0);
    check_name(view, init + 4, "[unknown]");
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
    /* An address outside of the modules does not count. */
    view->time_ns += 2 * SECOND;
    linux_view_sample(view, 0);
    uprof_linux_note_unknown(view->kernel, LINUX_IMAGE - 8);
    view->time_ns += 2 * SECOND;
    g_assert_cmpuint(linux_view_sample(view, 0), ==, 0);
}

/* The names of a module are dropped when the module leaves the middle of the list. */
static void
test_modules_unloaded(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 5 });
    g_autoptr(LinuxView) view = linux_view_new(guest);

    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
    linux_guest_put(guest, guest->modules[1] + MODULE_LIST,
                    LINUX_DIRECT + guest->modules[3] + MODULE_LIST);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES + 0x20000, "[unknown]");
    check_name(view, LINUX_MODULES + 0x30000, "module_3_open_[k]");
}

/* Modules of a kernel without unwind tables still have names. */
static void
test_modules_without_rules(void)
{
    g_autoptr(LinuxGuest) guest =
        linux_guest_new(&(LinuxPlan){ .n_modules = 3, .no_rules = true, .no_module_rules = true });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_true(facts.has_btf && facts.has_types && facts.has_module_types);
    g_assert_cmpuint(facts.n_modules, ==, 3);
    g_assert_cmpuint(facts.n_rules, ==, 0);
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
}

/* Another module gets the address of an old one, in the same structure or in another one. */
static void
test_modules_replaced(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t head = linux_guest_image(LINUX_MODULE_LIST);

    linux_view_sample(view, 0);
    const uint32_t before = uprof_sym_epoch(view->sym);
    check_name(view, LINUX_MODULES, "module_0_open_[k]");
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    g_assert_cmpuint(uprof_sym_epoch(view->sym), ==, before); /* no module has changed */
    linux_guest_put_text(guest, guest->modules[0] + MODULE_NAME, "another");
    linux_guest_put_text(guest, guest->modules[0] + NAMES + 1, "another_open");
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES, "another_open_[k]");
    /* the first module is unloaded, and the second one has its address */
    linux_guest_put(guest, guest->modules[1] + MODULE_CODE, LINUX_MODULES);
    linux_guest_put(guest, guest->modules[1] + SYMBOLS + 32, LINUX_MODULES);
    linux_guest_put(guest, head, LINUX_DIRECT + guest->modules[1] + MODULE_LIST);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES, "module_1_open_[k]");
}

/* If the list is empty, the bytes after its head are not read as a module. */
static void
test_modules_none(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_view_sample(view, 0);
    const uint32_t before = uprof_sym_epoch(view->sym);
    linux_guest_put(guest, linux_guest_image(LINUX_MODULE_LIST) + 24, 1);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    g_assert_cmpuint(uprof_sym_epoch(view->sym), ==, before);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_modules, ==, 0);
}

/* While no known module has the running code, the list is read less and less often. */
static void
test_code_in_no_module(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t last = guest->modules[1] + MODULE_LIST;
    const uint64_t next = linux_guest_get(guest, last);
    unsigned n = 0;

    linux_guest_put(guest, last, LINUX_IMAGE + LINUX_MODULE_LIST);
    linux_guest_run(guest, 0, guest->task, true);
    linux_view_sample(view, 0);
    guest->memory->regs[0].pc = LINUX_MODULES + 0x20000;
    for (unsigned i = 0; i < 600; i++) {
        const uint32_t epoch = uprof_sym_epoch(view->sym);
        view->time_ns += SECOND / 10;
        linux_view_sample(view, 0);
        n += uprof_sym_epoch(view->sym) != epoch;
    }
    g_assert_cmpuint(n, ==, 6); /* after 1, 2, 4, 8, 16 and 16 seconds */
    linux_guest_put(guest, last, next);
    view->time_ns += 4 * SECOND;
    linux_view_sample(view, 0);
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned module;
    uint64_t at;      /* offset of the changed word in its page */
    uint64_t word;
    unsigned n;       /* modules found, of three */
    const char *first, *second; /* names of the first functions of modules 0 and 1 */
} malformed_modules[] = {
    { "next-nowhere",     1, MODULE_LIST,     LINUX_DIRECT + (UINT64_C(1) << 40), 2, "module_0_open_[k]", "module_1_open_[k]" },
    { "next-user",        0, MODULE_LIST,     LINUX_PROGRAM,        1, "module_0_open_[k]", "[unknown]" },
    { "next-null",        0, MODULE_LIST,     0,                    1, "module_0_open_[k]", "[unknown]" },
    { "state-coming",           0, MODULE_STATE,    1,                    3, "module_0_open_[k]", "module_1_open_[k]" },
    { "state-unformed",         0, MODULE_STATE,    3,                    3, "[unknown]", "module_1_open_[k]" },
    { "state-going",            0, MODULE_STATE,    2,                    3, "[unknown]", "module_1_open_[k]" },
    { "code-user",        0, MODULE_CODE,     LINUX_PROGRAM,        3, "[unknown]", "module_1_open_[k]" },
    { "code-last-address",  0, MODULE_CODE,     UINT64_MAX - 0xfff,   3, "[unknown]", "module_1_open_[k]" },
    { "code-of-another",  0, MODULE_CODE,     LINUX_MODULES + 0x10000, 3, "[unknown]", "module_1_open_[k]" },
    { "code-empty",       0, MODULE_CODE_LEN, 0,                    3, "[unknown]", "module_1_open_[k]" },
    { "code-huge",        0, MODULE_CODE_LEN, UINT32_MAX,           3, "[unknown]", "module_1_open_[k]" },
    { "table-null",       0, MODULE_KALLSYMS, 0,                    3, "[modules+0x0]", "module_1_open_[k]" },
    { "table-user",       0, MODULE_KALLSYMS, LINUX_PROGRAM,        3, "[modules+0x0]", "module_1_open_[k]" },
    { "no-symbols",       0, TABLE + TABLE_N, 0,                    3, "[modules+0x0]", "module_1_open_[k]" },
    { "absurd-symbols",   0, TABLE + TABLE_N, UINT32_MAX,           3, "[modules+0x0]", "module_1_open_[k]" },
    { "symbols-nowhere",  0, TABLE,           LINUX_DIRECT + (UINT64_C(1) << 40), 3, "[modules+0x0]", "module_1_open_[k]" },
    { "names-nowhere",    0, TABLE + TABLE_NAMES, UINT64_MAX - 3,   3, "[modules+0x0]", "module_1_open_[k]" },
    { "name-far",         0, SYMBOLS + 24,    UINT64_C(0x12ffffffff), 3, "[modules+0x0]", "module_1_open_[k]" },
    { "symbol-elsewhere", 0, SYMBOLS + 32,    LINUX_IMAGE,          3, "[modules+0x0]", "module_1_open_[k]" },
    { "name-with-escape", 0, NAMES + 1,       UINT64_C(0x006d5b33331b61), 3, "a?33[m_[k]", "module_1_open_[k]" },
    { "absurd-rules",     0, MODULE_N_ORCS,   UINT32_MAX,           3, "module_0_open_[k]", "module_1_open_[k]" },
    { "rules-nowhere",    0, MODULE_ORC_IPS,  UINT64_MAX,           3, "module_0_open_[k]", "module_1_open_[k]" },
};
/* clang-format on */

static void
test_malformed_module(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_guest_put(guest, guest->modules[malformed_modules[i].module] + malformed_modules[i].at,
                    malformed_modules[i].word);
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_FOUND);
    g_assert_cmpuint(facts.n_modules, ==, malformed_modules[i].n);
    check_name(view, LINUX_MODULES, malformed_modules[i].first);
    check_name(view, LINUX_MODULES + 0x10000, malformed_modules[i].second);
    g_assert_false(uprof_sym_is_code(view->sym, LINUX_PROGRAM));
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
}

/*
 * The list of modules has a loop. A module in the loop has as many symbols and rules as allowed. No
 * module is read twice.
 */
static void
test_modules_cyclic(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    linux_guest_put(guest, guest->modules[2] + MODULE_LIST,
                    LINUX_DIRECT + guest->modules[1] + MODULE_LIST);
    linux_guest_put(guest, guest->modules[1] + TABLE + TABLE_N, 256 * 1024);
    linux_guest_put(guest, guest->modules[1] + MODULE_N_ORCS, 256 * 1024);
    g_assert_cmpuint(linux_view_sample(view, 0), <, 4096);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_modules, ==, 3);
    check_name(view, LINUX_MODULES + 0x20000, "module_2_open_[k]");
}

/* Each module claims a huge table: the reads for all of them together are limited. */
static void
test_modules_huge(void)
{
    enum { N = 600 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = N });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    uint64_t module = guest->modules[0];

    for (unsigned i = 0; i < N; i++) {
        linux_guest_put(guest, module + TABLE + TABLE_N, 256 * 1024);
        linux_guest_put(guest, module + MODULE_N_ORCS, 256 * 1024);
        module = linux_guest_get(guest, module + MODULE_LIST) - LINUX_DIRECT - MODULE_LIST;
    }
    g_assert_cmpuint(linux_view_sample(view, 0), <, 8192);
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
}

/* ---- Many CPUs ---- */

static void
test_many_cpus(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_vcpus = 100 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxTask task;

    linux_view_sample(view, 0);
    check_links(view);
    view->time_ns += UPROF_MEM_KEEP_NS;
    g_assert_false(uprof_mem_is_spent(view->mem)); /* reads are left for unwinding the sample */
    /* known CPUs are not searched again */
    g_assert_cmpuint(linux_view_sample(view, 0), <, 16);
    check_links(view);
    linux_view_sample(view, 99);
    g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &task));
}

/* A CPU that starts later is found later. */
static void
test_cpu_starts_later(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_vcpus = 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t area = linux_guest_image(LINUX_AREAS) + 8;
    const UprofLinks **links = uprof_linux_links(view->kernel);
    const uint64_t there = linux_guest_get(guest, area);

    linux_guest_put(guest, area, 0);
    linux_view_sample(view, 0);
    g_assert_cmphex((*links)->vcpus[0].task_at, !=, 0);
    g_assert_cmphex((*links)->vcpus[1].task_at, ==, 0);
    linux_guest_put(guest, area, there);
    view->time_ns += UPROF_MEM_KEEP_NS;
    linux_view_sample(view, 0);
    check_links(view);
}

/* ---- An image of the largest size ---- */

/* The complete gigabyte for kernels is mapped to one page, or to addresses without memory. */
static void
test_largest_image(gconstpointer data)
{
    const uint64_t gpa = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    UprofLinuxFacts facts;

    for (uint64_t gva = UINT64_C(0xffffffff80000000); gva < LINUX_MODULES; gva += 2 * 1024 * 1024)
        linux_guest_map(guest, guest->root, gva, gpa, LINUX_LARGE | LINUX_NO_CODE);
    const gint before = guest->memory->tally->bytes;
    /* at most one read for each page of 256 MiB, and one for each request of several pages */
    g_assert_cmpuint(linux_view_sample(view, 0), <, 80 * 1024);
    g_assert_cmpint(guest->memory->tally->bytes - before, <, 2 * 256 * 1024 * 1024 + PAGE * PAGE);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpint(facts.state, ==, UPROF_LINUX_UNKNOWN);
}

/* The most symbols that fit, all at one address, with names of section edges. */
static void
test_symbols_at_one_address(void)
{
    enum { N = 400 * 1000, BYTES = 8 * 1024 * 1024, BEHIND = 0x100000 };
    g_autoptr(LinuxGuest) guest =
        linux_guest_new(&(LinuxPlan){ .no_symbols = true, .more_bytes = BYTES + BYTES / 512 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autofree KallsymsNamed *named = g_new(KallsymsNamed, N);
    UprofLinuxFacts facts;

    named[0] = (KallsymsNamed){ "linux_banner", LINUX_IMAGE + LINUX_BANNER, 'D' };
    for (unsigned i = 1; i < N; i++)
        named[i] = (KallsymsNamed){ "__a_start", LINUX_IMAGE + BEHIND, 'T' };
    const KallsymsPlan plan = { .n = 1000,
                                .addresses = KALLSYMS_RELATIVE,
                                .wide_lengths = true,
                                .addresses_last = true,
                                .named = named,
                                .n_named = N };
    g_autoptr(GByteArray) image = build_kallsyms(&plan);
    const uint64_t gpa = linux_guest_alloc(guest, BYTES, PAGE);
    g_assert_cmpuint(image->len, <, BYTES);
    memory_guest_put(guest->memory, gpa, image->data, image->len);
    for (uint64_t at = 0; at < image->len; at += PAGE)
        linux_guest_map(guest, guest->root, LINUX_IMAGE + BEHIND + at, gpa + at, LINUX_NO_CODE);
    linux_view_sample(view, 0);
    uprof_linux_facts(view->kernel, &facts);
    g_assert_cmpuint(facts.n_symbols, ==, 1000 + N);
    check_name(view, LINUX_IMAGE + 0x58, "function_0005_[k]");
}

/* ---- Memory that changes between reads ---- */

static void
change_memory(MemoryGuest *memory, MemoryCall call, gint n)
{
    GRand *random = memory->hook_data;

    for (unsigned i = 0; call == MEMORY_READ && i < 4; i++) {
        /* the kernel's image rarely changes, so that it can be found */
        const guint32 at = g_rand_int_range(random, 0, (gint32)memory->ram_len / 8) * 8;
        const guint32 from = g_rand_int_range(random, 0, (gint32)memory->ram_len / 8) * 8;
        if (at >= linux_guest_image(LINUX_BTF) || g_rand_int_range(random, 0, 64) == 0)
            memcpy(memory->ram + at, memory->ram + from, 8);
    }
}

static void
test_changing_memory(void)
{
    unsigned n_found = 0;

    for (guint32 seed = 0; seed < 80; seed++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .n_modules = 3 });
        g_autoptr(LinuxView) view = linux_view_new(guest);
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        UprofLinuxFacts facts;

        guest->memory->hook = change_memory;
        guest->memory->hook_data = random;
        for (unsigned i = 0; i < 20; i++) {
            view->time_ns += SECOND;
            g_assert_cmpuint(linux_view_sample(view, 0), <, 4096);
            linux_view_name(view, LINUX_PROGRAM + 0x1234);
            linux_view_name(view, LINUX_MODULES);
        }
        uprof_linux_facts(view->kernel, &facts);
        n_found += facts.state == UPROF_LINUX_FOUND;
        guest->memory->hook = NULL;
    }
    g_assert_cmpuint(n_found, >, 8);
}

#define ADD_CASES(path, table, test)                                                               \
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {                                             \
        g_autofree char *name = g_strdup_printf("/linux/" path "/%s", table[i].name);              \
        g_test_add_data_func(name, GSIZE_TO_POINTER(i), test);                                     \
    }

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    ADD_CASES("found", kernels, test_found);
    ADD_CASES("missing", missing, test_missing);
    ADD_CASES("malformed-task", malformed_tasks, test_malformed_task);
    ADD_CASES("malformed-module", malformed_modules, test_malformed_module);
    g_test_add_func("/linux/digest", test_digest);
    g_test_add_func("/linux/no-linux", test_no_linux);
    g_test_add_func("/linux/first-searches", test_first_searches);
    g_test_add_func("/linux/no-candidate", test_no_candidate);
    g_test_add_func("/linux/before-text", test_before_text);
    g_test_add_func("/linux/empty-kernel-root", test_empty_kernel_root);
    g_test_add_func("/linux/kexec", test_kexec);
    g_test_add_func("/linux/modules-without-rules", test_modules_without_rules);
    g_test_add_func("/linux/kexec-elsewhere", test_kexec_elsewhere);
    g_test_add_func("/linux/ended-processes", test_ended_processes);
    g_test_add_func("/linux/reset", test_reset);
    g_test_add_func("/linux/many-modules", test_many_modules);
    g_test_add_func("/linux/generated", test_generated);
    g_test_add_func("/linux/generated-changes", test_generated_changes);
    g_test_add_func("/linux/generated-hostile", test_generated_hostile);
    g_test_add_func("/linux/too-many-modules", test_too_many_modules);
    g_test_add_func("/linux/modules-backwards", test_modules_backwards);
    g_test_add_func("/linux/modules-change", test_modules_change);
    g_test_add_func("/linux/modules-replaced", test_modules_replaced);
    g_test_add_data_func("/linux/modules-init/6.4", GINT_TO_POINTER(false), test_modules_init);
    g_test_add_data_func("/linux/modules-init/5.10", GINT_TO_POINTER(true), test_modules_init);
    g_test_add_func("/linux/modules-unloaded", test_modules_unloaded);
    g_test_add_func("/linux/modules-none", test_modules_none);
    g_test_add_func("/linux/code-in-no-module", test_code_in_no_module);
    g_test_add_func("/linux/modules-cyclic", test_modules_cyclic);
    g_test_add_func("/linux/modules-huge", test_modules_huge);
    g_test_add_func("/linux/many-cpus", test_many_cpus);
    g_test_add_func("/linux/cpu-starts-later", test_cpu_starts_later);
    g_test_add_data_func("/linux/largest-image", GSIZE_TO_POINTER(0), test_largest_image);
    g_test_add_data_func("/linux/largest-image-without-memory", GSIZE_TO_POINTER(UINT64_C(1) << 40),
                         test_largest_image);
    g_test_add_func("/linux/symbols-at-one-address", test_symbols_at_one_address);
    g_test_add_func("/linux/changing-memory", test_changing_memory);
    return g_test_run();
}
