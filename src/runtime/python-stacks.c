/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-stacks-priv.h"

#include "uprof/clock.h"

#include <string.h>

enum {
    PROCESSES_MAX = 256,
    THREADS_MAX = 1024,    /* states of a process, in all interpreters together */
    INTERPRETERS_MAX = 64, /* of a process */
    PUBLISHED_MAX = 64,    /* threads whose chains are published before they are seen */
    NODES_MAX =
        2 * UPROF_PYTHON_FRAMES_MAX, /* of a list: functions, and calls of the interpreter */
};

/* Time between two searches for the runtime, or for threads. A search that does not help doubles
 * it. */
#define SEARCH_APART_NS (UPROF_NS_PER_S / 8)
#define SEARCH_APART_MAX_NS (16 * UPROF_NS_PER_S)

/* Pointers to objects are aligned; some have a mark in their lowest bits (3.14). */
#define POINTER(word) ((word) & ~UINT64_C(7))

/* The states of a thread: one for each interpreter that it runs. 0: there is none */
typedef struct {
    uint64_t states[UPROF_CHAIN_STARTS];
} Thread;

/* Where a module has the variables that tell the version and the threads */
typedef struct {
    bool is_searched; /* the file was read; the members below are valid */
    bool has_runtime, has_version;
    uint64_t runtime, version; /* bytes from the first page of the module */
} Module;

typedef struct {
    bool is_known; /* the next two members are valid */
    uint64_t runtime;
    UprofPythonLayout layout;
    uint64_t next_ns; /* when to search again for the runtime, or for a thread */
    uint64_t apart_ns;
    GHashTable *threads; /* thread pointer -> Thread; owned */
} Process;

struct _UprofPythonStacks {
    UprofSpace *space;       /* borrowed */
    UprofChainTable *chains; /* borrowed */
    UprofPythonNames *names; /* owned */
    GHashTable *processes;   /* id -> Process; owned */
    GArray *modules;         /* of Module, by number; owned */
};

static void
free_process(gpointer data)
{
    Process *process = data;

    g_hash_table_unref(process->threads);
    g_free(process);
}

UprofPythonStacks *
uprof_python_stacks_new(UprofSpace *space, UprofNames *names, UprofChainTable *chains)
{
    UprofPythonStacks *stacks = g_new0(UprofPythonStacks, 1);

    stacks->space = space;
    stacks->chains = chains;
    stacks->names = uprof_python_names_new(space, names);
    stacks->processes = g_hash_table_new_full(NULL, NULL, NULL, free_process);
    stacks->modules = g_array_new(FALSE, TRUE, sizeof(Module));
    return stacks;
}

void
uprof_python_stacks_free(UprofPythonStacks *stacks)
{
    g_hash_table_unref(stacks->processes);
    g_array_unref(stacks->modules);
    uprof_python_names_free(stacks->names);
    g_free(stacks);
}

static Process *
find_process(UprofPythonStacks *stacks, uint32_t id)
{
    Process *process = g_hash_table_lookup(stacks->processes, GUINT_TO_POINTER(id));

    if (process)
        return process;
    if (g_hash_table_size(stacks->processes) >= PROCESSES_MAX)
        g_hash_table_remove_all(stacks->processes);
    process = g_new0(Process, 1);
    process->threads = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    g_hash_table_insert(stacks->processes, GUINT_TO_POINTER(id), process);
    return process;
}

/* ---- The runtime and its threads, as they are now ---- */

/* @helped: the search has found what it was for */
static void
schedule_search(Process *process, bool helped, uint64_t now_ns)
{
    process->apart_ns = process->apart_ns == 0 || helped
                            ? SEARCH_APART_NS
                            : MIN(2 * process->apart_ns, SEARCH_APART_MAX_NS);
    process->next_ns = now_ns + process->apart_ns;
}

/* Returns: (nullable): the module at @pc, and where its first page is */
static const Module *
find_module(UprofPythonStacks *stacks, uint64_t pc, uint64_t *base)
{
    const unsigned number = uprof_space_module(stacks->space, pc, base);

    if (number == 0)
        return NULL;
    if (number >= stacks->modules->len)
        g_array_set_size(stacks->modules, number + 1);
    Module *module = &g_array_index(stacks->modules, Module, number);
    if (!module->has_runtime) {
        module->has_runtime =
            uprof_space_find_object(stacks->space, pc, "_PyRuntime", &module->runtime);
        module->has_version =
            uprof_space_find_object(stacks->space, pc, "Py_Version", &module->version);
    }
    return module->has_runtime ? module : NULL;
}

/* @pc: in the interpreter's code */
static void
find_runtime(UprofPythonStacks *stacks, uint64_t pc, Process *process)
{
    uint8_t offsets[UPROF_PYTHON_OFFSETS_BYTES];
    uint32_t version = 0;
    uint64_t base;
    const Module *module = find_module(stacks, pc, &base);

    if (!module ||
        !uprof_space_read(stacks->space, base + module->runtime, offsets, sizeof(offsets)))
        return;
    process->runtime = base + module->runtime;
    if (module->has_version &&
        uprof_space_read(stacks->space, base + module->version, &version, sizeof(version)))
        version = GUINT32_FROM_LE(version);
    process->is_known = uprof_python_layout_find(version, (UprofSlice){ offsets, sizeof(offsets) },
                                                 &process->layout);
}

/* Threads begin and end all the time, so memory that was read earlier does not count. */
static bool
read_fresh_word(const UprofPythonStacks *stacks, uint64_t gva, uint64_t *word)
{
    uprof_space_forget(stacks->space, gva);
    return uprof_space_read_word(stacks->space, gva, word);
}

static void
add_state(Process *process, uint64_t pointer, uint64_t state)
{
    Thread *thread = g_hash_table_lookup(process->threads, &pointer);

    if (!thread) {
        thread = g_new0(Thread, 1);
        g_hash_table_insert(process->threads, g_memdup2(&pointer, sizeof(pointer)), thread);
    }
    for (unsigned i = 0; i < UPROF_CHAIN_STARTS; i++)
        if (thread->states[i] == 0) {
            thread->states[i] = state;
            return;
        }
}

/* @n_left: (inout): states that may still be read */
static void
add_states(const UprofPythonStacks *stacks, uint64_t interpreter, Process *process,
           unsigned *n_left)
{
    const UprofPythonLayout *layout = &process->layout;
    uint64_t state, pointer;

    if (!read_fresh_word(stacks, interpreter + layout->first_thread, &state))
        return;
    for (; *n_left > 0 && state != 0; --*n_left) {
        if (!read_fresh_word(stacks, state + layout->thread_id, &pointer))
            return;
        add_state(process, pointer, state);
        if (!uprof_space_read_word(stacks->space, state + layout->next_thread, &state))
            return;
    }
}

/* Finds the threads of all interpreters. */
static void
search_threads(const UprofPythonStacks *stacks, Process *process)
{
    const UprofPythonLayout *layout = &process->layout;
    unsigned n_left = THREADS_MAX;
    uint64_t interpreter;

    g_hash_table_remove_all(process->threads);
    if (!read_fresh_word(stacks, process->runtime + layout->first_interpreter, &interpreter))
        return;
    for (unsigned i = 0; i < INTERPRETERS_MAX && interpreter != 0; i++) {
        add_states(stacks, interpreter, process, &n_left);
        if (!uprof_space_read_word(stacks->space, interpreter + layout->next_interpreter,
                                   &interpreter))
            return;
    }
}

static void
add_load(UprofChain *chain, int8_t *n, int from, uint32_t offset)
{
    chain->steps[(*n)++] =
        (UprofChainStep){ .op = UPROF_CHAIN_LOAD, .from = (int8_t)from, .offset = (int32_t)offset };
}

/* For each state: its thread pointer, and all frames, by way of the _PyCFrame if there is one */
static void
publish_chain(const UprofPythonStacks *stacks, const Process *process, uint64_t memory,
              uint64_t pointer, const Thread *thread)
{
    const UprofPythonLayout *layout = &process->layout;
    UprofChain chain = { .memory = memory, .thread = pointer };
    int8_t n = 0;

    for (int i = 0; i < UPROF_CHAIN_STARTS && thread->states[i] != 0; i++) {
        chain.starts[i] = thread->states[i];
        add_load(&chain, &n, -1 - i, layout->thread_id);
        add_load(&chain, &n, -1 - i, layout->thread_frame);
        if (layout->has_c_frames)
            add_load(&chain, &n, n - 1, layout->c_frame_frame);
        chain.steps[n] = (UprofChainStep){ .op = UPROF_CHAIN_LIST,
                                           .from = (int8_t)(n - 1),
                                           .len = (uint16_t)layout->frame_bytes,
                                           .offset = (int32_t)layout->frame_previous };
        n++;
    }
    uprof_chain_table_publish(stacks->chains, &chain);
}

/* Other threads will run soon. If there are many, each one is published when it runs. */
static void
publish_chains(const UprofPythonStacks *stacks, const Process *process, uint64_t memory)
{
    GHashTableIter iter;
    gpointer pointer, thread;
    unsigned n = 0;

    g_hash_table_iter_init(&iter, process->threads);
    while (g_hash_table_iter_next(&iter, &pointer, &thread) && n++ < PUBLISHED_MAX)
        publish_chain(stacks, process, memory, *(const uint64_t *)pointer, thread);
}

/*
 * Searches for all threads of the process, and publishes their chains.
 *
 * Returns: (nullable): the thread that ran
 */
static const Thread *
search_thread(const UprofPythonStacks *stacks, const UprofSpaceProcess *ran, Process *process,
              uint64_t now_ns)
{
    search_threads(stacks, process);
    publish_chains(stacks, process, ran->memory);
    const Thread *thread = g_hash_table_lookup(process->threads, &ran->thread);
    schedule_search(process, thread != NULL, now_ns);
    return thread;
}

/* ---- Frames, as the hold has copied them ---- */

static uint64_t
get_pointer(const uint8_t *bytes, uint32_t at)
{
    return POINTER(uprof_read_le64(bytes + at));
}

/* The frames of one thread while they are found. */
typedef struct {
    UprofPythonStacks *stacks;
    const UprofSnapshot *snapshot;
    const UprofPythonLayout *layout;
    uint32_t process;
    uint64_t thread; /* thread pointer */
    bool with_lines;
    UprofPythonFrame *frames; /* (out) */
    unsigned n;               /* of @frames */
    unsigned group;           /* the first of @frames whose place is not known yet */
    bool is_cut;              /* the outermost functions are missing */
    uint64_t c_frame;         /* _PyCFrame of the call that runs the next functions; 0: none */
} Walk;

/* The frames of a call are complete: @place is in the frame of the call. */
static void
end_group(Walk *walk, uint64_t place)
{
    for (; walk->group < walk->n; walk->group++)
        walk->frames[walk->group].place = place;
}

static void
end_c_frame(Walk *walk)
{
    end_group(walk, walk->c_frame);
    if (walk->c_frame != 0 &&
        !uprof_snapshot_read_word(walk->snapshot, walk->c_frame + walk->layout->c_frame_previous,
                                  &walk->c_frame))
        walk->c_frame = 0;
}

static void
add_frame(Walk *walk, const uint8_t *bytes)
{
    const UprofPythonLayout *layout = walk->layout;
    uint64_t instruction;

    memcpy(&instruction, bytes + layout->frame_instruction, sizeof(instruction));
    walk->frames[walk->n++] = (UprofPythonFrame){
        .name = uprof_python_names_find(walk->stacks->names, layout, walk->process,
                                        get_pointer(bytes, layout->frame_code),
                                        GUINT64_FROM_LE(instruction), walk->with_lines),
    };
}

/* Returns: false if the list does not end where a list ends */
static bool
walk_frames(Walk *walk, uint64_t frame)
{
    const UprofPythonLayout *layout = walk->layout;
    uint8_t bytes[UPROF_PYTHON_FRAME_BYTES_MAX];

    for (unsigned i = 0; i < NODES_MAX && walk->n < UPROF_PYTHON_FRAMES_MAX; i++) {
        if (frame == 0)
            return true;
        if (!uprof_snapshot_read(walk->snapshot, frame, bytes, layout->frame_bytes))
            return false;
        if (bytes[layout->frame_owner] < UPROF_PYTHON_OWNERS) {
            add_frame(walk, bytes);
            if (layout->frame_is_entry != 0 && bytes[layout->frame_is_entry])
                end_c_frame(walk);
        } else {
            end_group(walk, frame);
        }
        frame = get_pointer(bytes, layout->frame_previous);
    }
    return frame == 0;
}

static void
walk_state(Walk *walk, uint64_t state)
{
    uint64_t frame, id;

    /* the memory of a thread that has ended may be used for something else */
    if (!uprof_snapshot_read_word(walk->snapshot, state + walk->layout->thread_id, &id) ||
        id != walk->thread ||
        !uprof_snapshot_read_word(walk->snapshot, state + walk->layout->thread_frame, &frame))
        return;
    walk->c_frame = 0;
    if (walk->layout->has_c_frames) {
        walk->c_frame = walk->layout->frame_is_entry != 0 ? frame : 0;
        if (!uprof_snapshot_read_word(walk->snapshot, frame + walk->layout->c_frame_frame, &frame))
            return;
    }
    walk->is_cut |= !walk_frames(walk, POINTER(frame));
    end_group(walk, 0);
}

/* Returns: (nullable): the process, if it is known to run Python */
static Process *
find_python_process(UprofPythonStacks *stacks, const UprofSpaceProcess *ran, uint64_t pc,
                    uint64_t now_ns)
{
    Process *process = find_process(stacks, ran->id);

    if (!process->is_known && now_ns >= process->next_ns) {
        find_runtime(stacks, pc, process);
        if (process->is_known)
            process->apart_ns = process->next_ns = 0;
        else
            schedule_search(process, false, now_ns);
    }
    return process->is_known ? process : NULL;
}

static void
walk_thread(Walk *walk, const Thread *thread)
{
    for (unsigned i = 0; i < UPROF_CHAIN_STARTS && thread->states[i] != 0; i++)
        walk_state(walk, thread->states[i]);
}

unsigned
uprof_python_stacks_find(UprofPythonStacks *stacks, const UprofSnapshot *snapshot, uint64_t pc,
                         bool with_lines, UprofPythonFrame *frames, bool *is_cut)
{
    UprofSpaceProcess ran;

    *is_cut = false;
    if (!uprof_space_process(stacks->space, &ran) || ran.thread == 0)
        return 0;
    uprof_space_allow_more(stacks->space);
    Process *process = find_python_process(stacks, &ran, pc, snapshot->time_ns);
    if (!process)
        return 0;
    const Thread *thread = g_hash_table_lookup(process->threads, &ran.thread);
    Walk walk = { .stacks = stacks,
                  .snapshot = snapshot,
                  .layout = &process->layout,
                  .process = ran.id,
                  .thread = ran.thread,
                  .with_lines = with_lines,
                  .frames = frames };
    if (thread)
        walk_thread(&walk, thread);
    /* The thread is new, or the memory of its state is used for something else now. */
    if (walk.n == 0 && snapshot->time_ns >= process->next_ns)
        thread = search_thread(stacks, &ran, process, snapshot->time_ns);
    if (thread)
        publish_chain(stacks, process, ran.memory, ran.thread, thread);
    *is_cut = walk.n > 0 && walk.is_cut;
    return walk.n;
}
