/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chains as the analysis publishes them, and as a hold follows them: what one writes, the other
 * reads. */
#include "../../../src/sampler/windows-priv.h"
#include "python-guest.h"
#include "uprof/runtimes.h"

static void
take_chains(UprofRuntimes *runtimes, UprofChains *chains)
{
    UprofChain chain;
    uint32_t slot;

    while (uprof_runtimes_take_chain(runtimes, &slot, &chain)) {
        g_assert_cmpuint(slot, <, UPROF_CHAIN_SLOTS);
        g_assert_true(uprof_chain_is_sound(&chain));
        uprof_chains_set(chains, slot, &chain);
    }
}

/* Returns: functions that were found in a sample that a hold has copied */
static unsigned
take_sample(PythonGuest *python, UprofRuntimes *runtimes, const UprofChains *chains,
            UprofPythonFrame *frames, bool *is_cut)
{
    const UprofWindowSize size = { .wanted = UPROF_WINDOW_BYTES_FIRST };
    LinuxView *view = python->view;
    g_autoptr(UprofMem) mem = uprof_mem_new(&python->guest->memory->base, UPROF_LANE_SAMPLER);

    python_guest_begin(python, false);
    view->snapshot->n_windows = 0;
    view->snapshot->regs.sp = PYTHON_GVA + PYTHON_STACK;
    uprof_windows_copy(mem, &size, *uprof_linux_links(view->kernel), chains, view->snapshot);
    linux_view_take(view);
    uprof_runtimes_begin(runtimes, view->snapshot);
    return uprof_runtimes_find_python(runtimes, PYTHON_CODE, false, frames, is_cut);
}

static void
test_python(gconstpointer data)
{
    static UprofPythonFrame frames[UPROF_PYTHON_FRAMES_MAX];
    static const char *const names[] = { "fib (app.py)", "main (app.py)", "<module> (app.py)" };
    static const uint64_t places[] = { PYTHON_INNER_CALL, PYTHON_INNER_CALL, PYTHON_OUTER_CALL };
    PythonGuest *python = python_guest_new(GPOINTER_TO_UINT(data));
    const LinuxView *view = python->view;
    UprofRuntimes *runtimes = uprof_runtimes_new(view->space, view->sym, view->names);
    g_autofree UprofChains *chains = g_new0(UprofChains, 1);
    bool is_cut;

    g_assert_cmpuint(take_sample(python, runtimes, chains, frames, &is_cut), ==, 0);
    take_chains(runtimes, chains);
    g_assert_cmpuint(take_sample(python, runtimes, chains, frames, &is_cut), ==,
                     PYTHON_N_FUNCTIONS);
    g_assert_false(is_cut);
    for (unsigned i = 0; i < PYTHON_N_FUNCTIONS; i++) {
        g_assert_cmpstr(uprof_name_text(frames[i].name), ==, names[i]);
        g_assert_cmphex(frames[i].place, ==, PYTHON_GVA + places[i]);
    }
    /* without the chains, as after the worker was replaced, a hold copies none of that */
    uprof_chains_clear(chains);
    g_assert_cmpuint(take_sample(python, runtimes, chains, frames, &is_cut), ==, 0);
    uprof_runtimes_free(runtimes);
    python_guest_free(python);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (unsigned version = 0x030b; version <= 0x030d; version++) {
        g_autofree char *path = g_strdup_printf("/chain-follow/python/%x", version);
        g_test_add_data_func(path, GUINT_TO_POINTER(version), test_python);
    }
    return g_test_run();
}
