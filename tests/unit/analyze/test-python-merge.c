/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/analyze/python-merge-priv.h"

#include "python-guest.h"

#define PROGRAM UINT64_C(0x401000) /* code of another file */

typedef struct {
    PythonGuest *python;
    UprofRuntimes *runtimes;
    UprofStack *stack;
    UprofPythonMerge *merge;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->python = python_guest_new(GPOINTER_TO_UINT(data));
    const LinuxView *view = fixture->python->view;
    fixture->runtimes = uprof_runtimes_new(view->space, view->sym, view->names);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->merge = g_new0(UprofPythonMerge, 1);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_free(fixture->merge);
    g_free(fixture->stack);
    uprof_runtimes_free(fixture->runtimes);
    python_guest_free(fixture->python);
}

static void
add_frame(Fixture *fixture, uint64_t pc, uint64_t sp)
{
    UprofStack *stack = fixture->stack;

    stack->frames[stack->n++] = (UprofFrame){
        .pc = pc,
        .symbol_address = uprof_space_symbol_address(fixture->python->view->space, pc),
        .sp = PYTHON_GVA + sp,
    };
}

/* A function in C that the inner call of the interpreter has called, both calls, and the program */
static void
make_stack(Fixture *fixture)
{
    fixture->stack->n = 0;
    add_frame(fixture, PROGRAM, PYTHON_STACK + 0x40);
    add_frame(fixture, PYTHON_CODE + 0x10, PYTHON_STACK + 0x90);      /* plumbing */
    add_frame(fixture, PYTHON_CODE + 0x20, PYTHON_INNER_CALL - 0x20); /* the inner call */
    add_frame(fixture, PYTHON_CODE + 0x30, PYTHON_INNER_CALL + 0x40); /* plumbing */
    add_frame(fixture, PYTHON_CODE + 0x20, PYTHON_OUTER_CALL - 0x20); /* the outer call */
    add_frame(fixture, PYTHON_CODE + 0x40, PYTHON_OUTER_CALL + 0x40); /* plumbing */
    add_frame(fixture, PROGRAM + 0x100, PYTHON_OUTER_CALL + 0x80);
}

static bool
find(Fixture *fixture, bool has_chain)
{
    python_guest_begin(fixture->python, has_chain);
    linux_view_take(fixture->python->view);
    uprof_runtimes_begin(fixture->runtimes, fixture->python->view->snapshot);
    make_stack(fixture);
    return uprof_python_merge_find(fixture->runtimes, fixture->stack, false, fixture->merge);
}

static void
check_hidden(const Fixture *fixture, const char *hidden)
{
    for (unsigned i = 0; i < fixture->stack->n; i++)
        g_assert_true(uprof_python_merge_hides(fixture->runtimes, fixture->merge, fixture->stack,
                                               i) == (hidden[i] == 'x'));
}

static void
test_merge(Fixture *fixture, gconstpointer data)
{
    const UprofPythonMerge *merge = fixture->merge;

    g_assert_false(find(fixture, false));
    g_assert_true(find(fixture, true));
    g_assert_cmpuint(merge->n, ==, PYTHON_N_FUNCTIONS);
    g_assert_cmpuint(merge->innermost, ==, 2);
    g_assert_cmpuint(merge->first[2], ==, 0);
    g_assert_cmpuint(merge->count[2], ==, 2);
    g_assert_cmpuint(merge->first[4], ==, 2);
    g_assert_cmpuint(merge->count[4], ==, 1);
    /* what the innermost function has called is shown, also if it is in the interpreter */
    check_hidden(fixture, "..xxxx.");
}

/* The stack was cut in front of the outer call: its function belongs to the call that is known. */
static void
test_cut(Fixture *fixture, gconstpointer data)
{
    const UprofPythonMerge *merge = fixture->merge;

    find(fixture, false);
    find(fixture, true);
    fixture->stack->n = 4;
    g_assert_true(
        uprof_python_merge_find(fixture->runtimes, fixture->stack, false, fixture->merge));
    g_assert_cmpuint(merge->count[2], ==, PYTHON_N_FUNCTIONS);
    check_hidden(fixture, "..xx");
    /* no call of the interpreter is known */
    fixture->stack->n = 2;
    g_assert_false(
        uprof_python_merge_find(fixture->runtimes, fixture->stack, false, fixture->merge));
}

/* Code of other files only: nothing is read. */
static void
test_other_program(Fixture *fixture, gconstpointer data)
{
    find(fixture, false);
    find(fixture, true);
    for (unsigned i = 0; i < fixture->stack->n; i++)
        fixture->stack->frames[i].symbol_address = PROGRAM;
    g_assert_false(
        uprof_python_merge_find(fixture->runtimes, fixture->stack, false, fixture->merge));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (unsigned version = 0x030b; version <= 0x030d; version++) {
        const gconstpointer data = GUINT_TO_POINTER(version);
        g_autofree char *merge_path = g_strdup_printf("/python-merge/merge/%x", version);
        g_autofree char *cut_path = g_strdup_printf("/python-merge/cut/%x", version);
        g_autofree char *other_path = g_strdup_printf("/python-merge/other-program/%x", version);
        g_test_add(merge_path, Fixture, data, set_up, test_merge, tear_down);
        g_test_add(cut_path, Fixture, data, set_up, test_cut, tear_down);
        g_test_add(other_path, Fixture, data, set_up, test_other_program, tear_down);
    }
    return g_test_run();
}
