/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dwfl-stack.h"

#include <elfutils/libdwfl.h>

/* libdwfl needs the number of a process, which need not exist */
enum { PID = 1, N_REGS = 17 };

struct _DwflStack {
    Dwfl *dwfl;
    const UprofSnapshot *snapshot;
    uint64_t *pcs;
    unsigned n, max;
};

/* Finds no separate debug file. The added files must contain the unwind tables themselves. */
static int
find_no_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
              const char *link, GElf_Word crc, char **found)
{
    return -1;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = find_no_debug,
    .section_address = dwfl_offline_section_address,
};

static pid_t
next_thread(Dwfl *dwfl, void *data, void **thread)
{
    if (*thread)
        return 0;
    *thread = data;
    return PID;
}

static bool
read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *data)
{
    const DwflStack *stack = data;

    return uprof_snapshot_read(stack->snapshot, at, word, sizeof(*word));
}

static bool
set_registers(Dwfl_Thread *thread, void *data)
{
    const uint64_t *regs = ((const DwflStack *)data)->snapshot->regs.reg;
    Dwarf_Word words[N_REGS];

    for (unsigned i = 0; i < N_REGS; i++)
        words[i] = regs[i];
    return dwfl_thread_state_registers(thread, 0, N_REGS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

DwflStack *
dwfl_stack_new(void)
{
    DwflStack *stack = g_new0(DwflStack, 1);

    stack->dwfl = dwfl_begin(&callbacks);
    g_assert_nonnull(stack->dwfl);
    dwfl_report_begin(stack->dwfl);
    return stack;
}

void
dwfl_stack_free(DwflStack *stack)
{
    dwfl_end(stack->dwfl);
    g_free(stack);
}

void
dwfl_stack_add(DwflStack *stack, const char *path, uint64_t bias)
{
    g_assert_nonnull(dwfl_report_elf(stack->dwfl, path, path, -1, bias, true));
}

void
dwfl_stack_begin(DwflStack *stack)
{
    g_assert_cmpint(dwfl_report_end(stack->dwfl, NULL, NULL), ==, 0);
    g_assert_true(dwfl_attach_state(stack->dwfl, NULL, PID, &thread_callbacks, stack));
}

static int
take_frame(Dwfl_Frame *frame, void *data)
{
    DwflStack *stack = data;
    Dwarf_Addr pc;
    bool is_exact;

    if (stack->n == stack->max || !dwfl_frame_pc(frame, &pc, &is_exact))
        return DWARF_CB_ABORT;
    stack->pcs[stack->n++] = pc;
    return DWARF_CB_OK;
}

unsigned
dwfl_stack_unwind(DwflStack *stack, const UprofSnapshot *snapshot, uint64_t *pcs, unsigned max)
{
    stack->snapshot = snapshot;
    stack->pcs = pcs;
    stack->max = max;
    stack->n = 0;
    dwfl_getthread_frames(stack->dwfl, PID, take_frame, stack);
    return stack->n;
}

const char *
dwfl_stack_name(DwflStack *stack, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(stack->dwfl, pc);

    return module ? dwfl_module_addrname(module, pc) : NULL;
}
