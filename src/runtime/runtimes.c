/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/runtimes.h"

#include "chain-table-priv.h"
#include "go-stacks-priv.h"
#include "python-stacks-priv.h"

/* Is a module the interpreter? */
typedef enum {
    NOT_ASKED,
    IS_OTHER,
    IS_PYTHON,
} Kind;

struct _UprofRuntimes {
    UprofChainTable *chains;       /* owned */
    UprofGoStacks *go;             /* owned */
    UprofPythonStacks *python;     /* owned */
    UprofSym *sym;                 /* borrowed */
    GArray *kinds;                 /* of uint8_t (Kind), by number of the module; owned */
    const UprofSnapshot *snapshot; /* borrowed */
};

UprofRuntimes *
uprof_runtimes_new(UprofSpace *space, UprofSym *sym, UprofNames *names)
{
    UprofRuntimes *runtimes = g_new0(UprofRuntimes, 1);

    runtimes->chains = uprof_chain_table_new();
    runtimes->go = uprof_go_stacks_new(space, sym, runtimes->chains);
    runtimes->python = uprof_python_stacks_new(space, names, runtimes->chains);
    runtimes->sym = sym;
    runtimes->kinds = g_array_new(FALSE, TRUE, sizeof(uint8_t));
    return runtimes;
}

void
uprof_runtimes_free(UprofRuntimes *runtimes)
{
    if (!runtimes)
        return;
    uprof_go_stacks_free(runtimes->go);
    uprof_python_stacks_free(runtimes->python);
    g_array_unref(runtimes->kinds);
    uprof_chain_table_free(runtimes->chains);
    g_free(runtimes);
}

void
uprof_runtimes_begin(UprofRuntimes *runtimes, const UprofSnapshot *snapshot)
{
    runtimes->snapshot = snapshot;
}

UprofGoCaller
uprof_runtimes_leave_go_stack(UprofRuntimes *runtimes, uint64_t start, uint64_t symbol_address,
                              UprofRegs *regs)
{
    return uprof_go_stacks_leave(runtimes->go, runtimes->snapshot, start, symbol_address, regs);
}

void
uprof_runtimes_note_go_signal(UprofRuntimes *runtimes, uint64_t context)
{
    uprof_go_stacks_note_signal(runtimes->go, context);
}

/* The interpreter is a program such as python3.11, or a library such as libpython3.11.so.1.0. */
static Kind
find_kind(const UprofRuntimes *runtimes, unsigned number)
{
    UprofSymModule module;

    return uprof_sym_module(runtimes->sym, number, &module) &&
                   (g_str_has_prefix(module.label, "[python3.") ||
                    g_str_has_prefix(module.label, "[libpython3."))
               ? IS_PYTHON
               : IS_OTHER;
}

bool
uprof_runtimes_is_python(UprofRuntimes *runtimes, uint64_t symbol_address)
{
    const unsigned number = uprof_sym_module_of(symbol_address);

    if (number == 0)
        return false;
    if (number >= runtimes->kinds->len)
        g_array_set_size(runtimes->kinds, number + 1);
    uint8_t *kind = &g_array_index(runtimes->kinds, uint8_t, number);
    if (*kind == NOT_ASKED)
        *kind = (uint8_t)find_kind(runtimes, number);
    return *kind == IS_PYTHON;
}

unsigned
uprof_runtimes_find_python(UprofRuntimes *runtimes, uint64_t pc, bool with_lines,
                           UprofPythonFrame *frames, bool *is_cut)
{
    return uprof_python_stacks_find(runtimes->python, runtimes->snapshot, pc, with_lines, frames,
                                    is_cut);
}

bool
uprof_runtimes_take_chain(UprofRuntimes *runtimes, uint32_t *slot, UprofChain *chain)
{
    return uprof_chain_table_take(runtimes->chains, slot, chain);
}
