/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Linux guest with some changed words. The bits of the first byte describe the guest: bit 0,
 * with a red-black tree; bit 1, with modules as before Linux 6.4; bit 2, with page-table
 * isolation; bit 3, with pcpu_hot; bit 4, the first sample is in the kernel. Changes of 11 bytes
 * follow. A change is 16 bits, the number of the word in memory; a byte; and a value of 64 bits.
 * Bits 0 and 1 of the byte are SET to XOR; bit 2 delays the change until the kernel is known.
 */
#include "fuzz.h"

#include <string.h>

#include "linux-guest.h"
#include "../../src/sampler/windows-priv.h"

/* The first input of a kind also makes the guest. A sample may read an image of 256 MiB. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 1000,
        .us_per_kib = 5 * 1000,
        .base_kib = 16 * 1024,
        .bytes_per_byte = 256,
        .n_mutations = 60,
    };
}

enum {
    IS_RED_BLACK = 1,
    IS_OLD_MODULE = 2,
    HAS_ISOLATION = 4,
    HAS_HOT = 8,
    IN_KERNEL = 16,
    N_KINDS = 16,
    CHANGE_BYTES = 11,
    CHANGES_MAX = 64,
    N_VCPUS = 2,
    LATER = 4,
    SPANS_MAX = 80 * 1024, /* of a sample, which may read each page of an image of 256 MiB once */
};

/* How a word changes. */
enum { SET, ADD, POINT, XOR, HOW = 3 };

/* Each kind of guest is made once. */
typedef struct {
    LinuxGuest *guest;
    uint8_t *ram;
    UprofMem *mem; /* reads in the lane of the sampler */
} Known;

static Known *
get_known(unsigned kind)
{
    static Known known[N_KINDS];
    Known *one = &known[kind];
    const LinuxPlan plan = {
        .n_vcpus = N_VCPUS,
        .n_modules = 3,
        .is_red_black = kind & IS_RED_BLACK,
        .is_old_module = kind & IS_OLD_MODULE,
        .has_isolation = kind & HAS_ISOLATION,
        .has_hot = kind & HAS_HOT,
    };

    if (!one->guest) {
        one->guest = linux_guest_new(&plan);
        one->mem = uprof_mem_new(&one->guest->memory->base, UPROF_LANE_SAMPLER);
        one->ram = g_memdup2(one->guest->memory->ram, one->guest->memory->ram_len);
    }
    uprof_mem_forget(one->mem);
    memcpy(one->guest->memory->ram, one->ram, one->guest->memory->ram_len);
    return one;
}

static uint64_t
read_number(const uint8_t *data, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++)
        number |= (uint64_t)data[i] << 8 * i;
    return number;
}

static void
change_words(LinuxGuest *guest, UprofSlice changes, bool later)
{
    const size_t n = MIN(changes.len / CHANGE_BYTES, (size_t)CHANGES_MAX);

    for (size_t i = 0; i < n; i++) {
        const uint8_t *change = (const uint8_t *)changes.data + i * CHANGE_BYTES;
        const uint64_t gpa = 8 * read_number(change, 2), value = read_number(change + 3, 8);
        if (!(change[2] & LATER) == later || gpa + 8 > guest->memory->ram_len)
            continue;
        const uint64_t before = linux_guest_get(guest, gpa);
        linux_guest_put(guest, gpa,
                        (change[2] & HOW) == SET     ? value
                        : (change[2] & HOW) == ADD   ? before + value
                        : (change[2] & HOW) == POINT ? LINUX_DIRECT + value
                                                     : before ^ value);
    }
}

static void
check_name(const char *name)
{
    g_assert(name[0] != '\0' && g_utf8_validate(name, -1, NULL));
    for (const char *c = name; *c; c++)
        g_assert((uint8_t)*c >= ' ' && *c != 0x7f && *c != ';');
}

static void
check_names(LinuxView *view)
{
    static const uint64_t places[] = { LINUX_IMAGE + 0x58,
                                       LINUX_MODULES,
                                       LINUX_MODULES + 0x10050,
                                       LINUX_PROGRAM + 0x1234,
                                       LINUX_LIBRARY + 0x28010,
                                       LINUX_ANONYMOUS,
                                       LINUX_STACK,
                                       0,
                                       UINT64_MAX };
    UprofOrcRule rule;

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        check_name(linux_view_name(view, places[i]));
        uprof_sym_orc(view->sym, places[i], &rule);
    }
}

static void
check_task(const LinuxView *view)
{
    UprofLinuxTask task;

    if (!uprof_linux_task(view->kernel, view->snapshot, &task))
        return;
    g_assert(task.name[0] != '\0' && memchr(task.name, '\0', sizeof(task.name)));
    g_assert(task.pid <= 4 * 1024 * 1024 && task.process <= 4 * 1024 * 1024);
}

static void
check_facts(const LinuxView *view)
{
    UprofLinuxFacts facts;

    uprof_linux_facts(view->kernel, &facts);
    g_assert(facts.state == UPROF_LINUX_FOUND || facts.n_symbols == 0);
    g_assert(facts.n_modules <= 4096);
    if (facts.release)
        g_assert(g_utf8_validate(facts.release, -1, NULL));
}

/* Takes a sample: its copy in the hold, and the analysis after it. */
static void
take_sample(LinuxView *view, UprofMem *mem, unsigned vcpu)
{
    const UprofWindowSize size = { .wanted = UPROF_WINDOW_BYTES_FIRST };

    linux_view_begin(view, vcpu);
    uprof_windows_copy(mem, &size, *uprof_linux_links(view->kernel), NULL, view->snapshot);
    g_assert(view->snapshot->n_windows <= UPROF_WINDOWS_MAX);
    g_assert(linux_view_take(view) <= SPANS_MAX);
    check_task(view);
    check_names(view);
    check_facts(view);
    view->time_ns += UPROF_MEM_KEEP_NS;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < 1)
        return;
    const Known *known = get_known(data[0] % N_KINDS);
    LinuxGuest *guest = known->guest;
    const UprofSlice changes = { data + 1, size - 1 };
    g_autoptr(LinuxView) view = linux_view_new(guest);

    for (unsigned i = 0; i < N_VCPUS; i++)
        linux_guest_run(guest, i, guest->task, data[0] & IN_KERNEL);
    change_words(guest, changes, false);
    take_sample(view, known->mem, 0);
    change_words(guest, changes, true);
    for (unsigned i = 0; i < N_VCPUS; i++) {
        UprofRegs *regs = &guest->memory->regs[i];
        take_sample(view, known->mem, i);
        /* then a sample in the other mode; in kernel mode, its address is one of modules */
        regs->privilege = regs->privilege ? 0 : 3;
        regs->pc = regs->privilege ? LINUX_PROGRAM + 0x1234 : LINUX_MODULES + 0x30000;
        regs->sp = regs->privilege ? LINUX_STACK : LINUX_DIRECT + guest->cpu_areas[i] + 0x800;
        take_sample(view, known->mem, i);
    }
}
