/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-guest.h"
#include "uprof/runtimes.h"

typedef struct {
    PythonGuest *python;
    UprofRuntimes *runtimes;
    UprofPythonFrame frames[UPROF_PYTHON_FRAMES_MAX];
    bool is_cut;
} Fixture;

static void
put_word(const Fixture *fixture, uint64_t offset, uint64_t word)
{
    linux_guest_put(fixture->python->guest, fixture->python->memory + offset, word);
}

static uint64_t
get_word(const Fixture *fixture, uint64_t offset)
{
    return linux_guest_get(fixture->python->guest, fixture->python->memory + offset);
}

static void
take_sample(Fixture *fixture, bool has_chain)
{
    python_guest_begin(fixture->python, has_chain);
    linux_view_take(fixture->python->view);
    uprof_runtimes_begin(fixture->runtimes, fixture->python->view->snapshot);
}

static unsigned
find(Fixture *fixture, bool with_lines)
{
    return uprof_runtimes_find_python(fixture->runtimes, PYTHON_CODE, with_lines, fixture->frames,
                                      &fixture->is_cut);
}

static void
make_runtimes(Fixture *fixture)
{
    const LinuxView *view = fixture->python->view;

    fixture->runtimes = uprof_runtimes_new(view->space, view->sym, view->names);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->python = python_guest_new(GPOINTER_TO_UINT(data));
    make_runtimes(fixture);
    take_sample(fixture, false);
    g_assert_true(uprof_space_has_process(fixture->python->view->space));
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_runtimes_free(fixture->runtimes);
    python_guest_free(fixture->python);
}

static void
check_frame(const Fixture *fixture, unsigned i, const char *name, uint64_t place)
{
    g_assert_nonnull(fixture->frames[i].name);
    g_assert_cmpstr(uprof_name_text(fixture->frames[i].name), ==, name);
    g_assert_cmphex(fixture->frames[i].place, ==, PYTHON_GVA + place);
}

/* The first sample publishes chains of all threads; the next one has functions. */
static void
test_find(Fixture *fixture, gconstpointer data)
{
    UprofChain chain;
    uint32_t slot;
    uint64_t seen = 0;

    g_assert_cmpuint(find(fixture, false), ==, 0);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_true(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
        g_assert_true(uprof_chain_is_sound(&chain));
        g_assert_cmphex(chain.memory, ==, LINUX_DIRECT + fixture->python->guest->mm);
        seen ^= chain.thread;
    }
    g_assert_cmphex(seen, ==, PYTHON_POINTER ^ PYTHON_OTHER_POINTER);
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));

    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, PYTHON_N_FUNCTIONS);
    check_frame(fixture, 0, "fib (app.py)", PYTHON_INNER_CALL);
    check_frame(fixture, 1, "main (app.py)", PYTHON_INNER_CALL);
    check_frame(fixture, 2, "<module> (app.py)", PYTHON_OUTER_CALL);
    g_assert_cmpuint(find(fixture, true), ==, PYTHON_N_FUNCTIONS);
    check_frame(fixture, 0, "fib (app.py:10)", PYTHON_INNER_CALL);
    g_assert_false(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
}

/* A thread that runs no Python, and one whose state is gone */
static void
test_other_threads(Fixture *fixture, gconstpointer data)
{
    LinuxGuest *guest = fixture->python->guest;

    find(fixture, false);
    linux_guest_put(guest, guest->task + TASK_THREAD, PYTHON_OTHER_POINTER + 0x1000);
    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, 0);
    linux_guest_put(guest, guest->task + TASK_THREAD, PYTHON_POINTER);
    put_word(fixture, PYTHON_THREAD + fixture->python->layout.thread_id, 0x1234);
    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, 0);
}

/* The thread runs two interpreters: the functions of both are found. */
static void
test_two_interpreters(Fixture *fixture, gconstpointer data)
{
    UprofChain chain = { 0 };
    uint32_t slot;

    put_word(fixture, PYTHON_OTHER_THREAD + fixture->python->layout.thread_id, PYTHON_POINTER);
    put_word(fixture, PYTHON_OTHER_THREAD + fixture->python->layout.thread_frame,
             get_word(fixture, PYTHON_THREAD + fixture->python->layout.thread_frame));
    take_sample(fixture, false);
    find(fixture, false);
    g_assert_true(uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain));
    g_assert_true(uprof_chain_is_sound(&chain));
    g_assert_cmphex(chain.starts[0], ==, PYTHON_GVA + PYTHON_OTHER_THREAD);
    g_assert_cmphex(chain.starts[1], ==, PYTHON_GVA + PYTHON_THREAD);
    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, 2 * PYTHON_N_FUNCTIONS);
}

/* Lists that never end, and pointers that lead nowhere */
static void
test_hostile(Fixture *fixture, gconstpointer data)
{
    enum { MAX = UPROF_PYTHON_FRAMES_MAX };
    const UprofPythonLayout *layout = &fixture->python->layout;
    const struct {
        uint64_t offset, word;
        unsigned n; /* functions that are found */
        bool is_cut;
    } lies[] = {
        { PYTHON_FRAMES + layout->frame_previous, PYTHON_GVA + PYTHON_FRAMES, MAX, true },
        { PYTHON_FRAMES + layout->frame_previous, UINT64_MAX, 1, true },
        { PYTHON_FRAMES + layout->frame_code, PYTHON_GVA + PYTHON_BYTES, 3, false },
        { PYTHON_FRAMES + layout->frame_instruction, UINT64_MAX, 3, false },
        { PYTHON_THREAD + layout->thread_frame, LINUX_DIRECT, 0, false },
        { PYTHON_THREAD + layout->next_thread, PYTHON_GVA + PYTHON_THREAD, 6, false },
        { PYTHON_INTERPRETER + layout->next_interpreter, PYTHON_GVA + PYTHON_INTERPRETER, 6,
          false },
        { PYTHON_INTERPRETER + layout->first_thread, PYTHON_GVA + PYTHON_BYTES - 4, 0, false },
        { PYTHON_RUNTIME + layout->first_interpreter, UINT64_MAX, 0, false },
    };
    UprofChain chain;
    uint32_t slot;

    for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
        const uint64_t before = get_word(fixture, lies[i].offset);
        uprof_runtimes_free(fixture->runtimes);
        make_runtimes(fixture);
        put_word(fixture, lies[i].offset, lies[i].word);
        take_sample(fixture, true);
        find(fixture, true);
        take_sample(fixture, true);
        g_assert_cmpuint(find(fixture, true), ==, lies[i].n);
        g_assert_true(fixture->is_cut == lies[i].is_cut);
        while (uprof_runtimes_take_chain(fixture->runtimes, &slot, &chain))
            g_assert_true(uprof_chain_is_sound(&chain));
        put_word(fixture, lies[i].offset, before);
    }
}

/* A thread that begins after the search, while remembered memory does not have it yet */
static void
test_later_thread(Fixture *fixture, gconstpointer data)
{
    LinuxGuest *guest = fixture->python->guest;
    const uint64_t at = PYTHON_THREAD + fixture->python->layout.thread_id;

    put_word(fixture, at, PYTHON_POINTER + 0x10);
    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, 0);
    put_word(fixture, at, PYTHON_POINTER);
    fixture->python->keeps_memory = true;
    take_sample(fixture, true);
    find(fixture, false);
    take_sample(fixture, true);
    g_assert_cmpuint(find(fixture, false), ==, PYTHON_N_FUNCTIONS);
    /* the memory of the state is used for another thread */
    put_word(fixture, at, PYTHON_POINTER + 0x20);
    linux_guest_put(guest, guest->task + TASK_THREAD, PYTHON_POINTER + 0x20);
    for (unsigned i = 0; i < 4; i++) {
        take_sample(fixture, true);
        find(fixture, false);
    }
    g_assert_cmpuint(find(fixture, false), ==, PYTHON_N_FUNCTIONS);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(Fixture *, gconstpointer);
    } tests[] = {
        { "find", test_find },
        { "other-threads", test_other_threads },
        { "two-interpreters", test_two_interpreters },
        { "hostile", test_hostile },
        { "later-thread", test_later_thread },
    };

    g_test_init(&argc, &argv, NULL);

    for (unsigned version = 0x030b; version <= 0x030d; version++)
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
            g_autofree char *path = g_strdup_printf("/python-stacks/%s/%x", tests[i].name, version);
            g_test_add(path, Fixture, GUINT_TO_POINTER(version), set_up, tests[i].run, tear_down);
        }
    return g_test_run();
}
