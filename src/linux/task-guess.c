/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel finds tasks by their numbers in a tree (Linux, include/linux/idr.h and
 * include/linux/xarray.h; kernel/pid.c). The nodes of one level are read together, so a few reads
 * tell where all tasks are. New tasks come to the ends of the rings, and mostly have rising
 * numbers, so the order of the numbers is mostly that of the rings.
 */
#include "task-guess-priv.h"

#include "current-task-priv.h"
#include "uprof/clock.h"
#include "uprof/sorted.h"
#include "uprof/task-list.h"

enum {
    WORD = 8,
    SLOTS_MAX = 64, /* Linux, XA_CHUNK_SIZE */
    NODE = 2,       /* the lowest bits of a pointer to a node */
    NODE_BITS = 3,
    INTERNAL_MAX = 4096, /* nodes are above */
    LEVELS_MAX = 12,
    NODES_MAX = UPROF_TASK_LIST_MAX / 4, /* of a tree */
    PIECES_EACH = 2,                     /* of a node */
    NODES_TOGETHER = UPROF_MEM_PIECES_MAX / PIECES_EACH,
    /* struct pid: lists of the task with that number, and of the process with that number */
    LISTS = 2,
};

/* A node of the tree. */
typedef struct {
    uint64_t at;
    unsigned shift_limit; /* its shift is below */
} Node;

typedef struct {
    uint64_t address;
    uint32_t process; /* its number */
    bool is_first;    /* the first thread of the process */
    guint order;      /* by the number of the task */
} Task;

struct _UprofTaskGuess {
    GArray *tasks;       /* of Task, by process, the first thread first; owned */
    GHashTable *indices; /* address of a task -> its index, plus 1; owned */
};

typedef struct {
    const UprofTaskOffsets *offsets;
    const UprofKernelMemory *memory;
    uint64_t until_ns; /* when the time is up */
    unsigned n_nodes;  /* so far */
    GArray *ids;       /* of uint64_t: addresses of structs pid */
} Reader;

static bool
is_late(const Reader *reader)
{
    return uprof_clock_now_ns() >= reader->until_ns;
}

/* ---- The tree ---- */

static bool
is_node(uint64_t entry)
{
    return (entry & NODE_BITS) == NODE && entry > INTERNAL_MAX;
}

/* @shift: of the node that has the entry. @below: (inout): the nodes of the next level */
static void
add_entry(Reader *reader, uint64_t entry, unsigned shift, GArray *below)
{
    const Node node = { entry & ~(uint64_t)NODE_BITS, shift };

    if (is_node(entry) && shift > 0 && reader->n_nodes < NODES_MAX) {
        reader->n_nodes++;
        g_array_append_val(below, node);
    } else if ((entry & NODE_BITS) == 0 && entry >= UPROF_UPPER_HALF &&
               reader->ids->len < UPROF_TASK_LIST_MAX) {
        g_array_append_val(reader->ids, entry);
    }
}

/* Reads some nodes with one read of the guest. */
static void
read_nodes(Reader *reader, const Node *nodes, unsigned n, GArray *below)
{
    const UprofTaskOffsets *offsets = reader->offsets;
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
    g_autofree uint64_t *slots = g_new(uint64_t, n * SLOTS_MAX);
    uint8_t shifts[NODES_TOGETHER];

    for (unsigned i = 0; i < n; i++) {
        pieces[PIECES_EACH * i] = (UprofMemPiece){ .gva = nodes[i].at + offsets->node_shift,
                                                   .into = &shifts[i],
                                                   .len = 1 };
        pieces[PIECES_EACH * i + 1] = (UprofMemPiece){
            .gva = nodes[i].at + offsets->node_slots,
            .into = slots + (size_t)i * SLOTS_MAX,
            .len = (uint32_t)(offsets->n_slots * WORD),
        };
    }
    uprof_kernel_read_pieces(reader->memory, pieces, PIECES_EACH * n);
    for (unsigned i = 0; i < n; i++) {
        if (pieces[PIECES_EACH * i].is_missing || pieces[PIECES_EACH * i + 1].is_missing ||
            shifts[i] >= nodes[i].shift_limit)
            continue;
        for (unsigned slot = 0; slot < offsets->n_slots; slot++)
            add_entry(reader, GUINT64_FROM_LE(slots[(size_t)i * SLOTS_MAX + slot]), shifts[i],
                      below);
    }
}

/* The shifts of nodes fall from level to level, so that the walk ends even if nodes are in a
 * circle. */
static void
read_tree(Reader *reader, uint64_t root)
{
    GArray *level = g_array_new(FALSE, FALSE, sizeof(Node));

    add_entry(reader, root, 64, level);
    for (unsigned depth = 0; depth < LEVELS_MAX && level->len > 0; depth++) {
        GArray *below = g_array_new(FALSE, FALSE, sizeof(Node));
        for (guint i = 0; i < level->len && !is_late(reader); i += NODES_TOGETHER)
            read_nodes(reader, &g_array_index(level, Node, i),
                       MIN(level->len - i, (guint)NODES_TOGETHER), below);
        g_array_unref(level);
        level = below;
    }
    g_array_unref(level);
}

/* ---- The tasks ---- */

static void
read_addresses(const Reader *reader, UprofTaskGuess *guess, const uint64_t *ids, unsigned n)
{
    const UprofTaskOffsets *offsets = reader->offsets;
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
    uint64_t lists[UPROF_MEM_PIECES_MAX][LISTS];

    for (unsigned i = 0; i < n; i++)
        pieces[i] = (UprofMemPiece){ .gva = ids[i] + offsets->pid_tasks,
                                     .into = lists[i],
                                     .len = sizeof(lists[i]) };
    uprof_kernel_read_pieces(reader->memory, pieces, n);
    for (unsigned i = 0; i < n; i++) {
        const Task task = { .address = GUINT64_FROM_LE(lists[i][0]) - offsets->pid_links,
                            .is_first = lists[i][1] != 0,
                            .order = guess->tasks->len };
        if (!pieces[i].is_missing && task.address >= UPROF_UPPER_HALF)
            g_array_append_val(guess->tasks, task);
    }
}

static void
read_processes(const Reader *reader, Task *tasks, unsigned n)
{
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];

    for (unsigned i = 0; i < n; i++)
        pieces[i] = (UprofMemPiece){ .gva = tasks[i].address + reader->offsets->tgid,
                                     .into = &tasks[i].process,
                                     .len = sizeof(tasks[i].process) };
    uprof_kernel_read_pieces(reader->memory, pieces, n);
    for (unsigned i = 0; i < n; i++)
        tasks[i].process = pieces[i].is_missing ? 0 : GUINT32_FROM_LE(tasks[i].process);
}

static gint
compare_order(gconstpointer a, gconstpointer b)
{
    const Task *one = a, *other = b;

    if (one->process != other->process)
        return UPROF_COMPARE(one->process, other->process);
    if (one->is_first != other->is_first)
        return one->is_first ? -1 : 1;
    return UPROF_COMPARE(one->order, other->order);
}

static void
read_tasks(const Reader *reader, UprofTaskGuess *guess)
{
    GArray *tasks = guess->tasks;

    for (guint i = 0; i < reader->ids->len && !is_late(reader); i += UPROF_MEM_PIECES_MAX)
        read_addresses(reader, guess, &g_array_index(reader->ids, uint64_t, i),
                       MIN(reader->ids->len - i, (guint)UPROF_MEM_PIECES_MAX));
    for (guint i = 0; i < tasks->len && !is_late(reader); i += UPROF_MEM_PIECES_MAX)
        read_processes(reader, &g_array_index(tasks, Task, i),
                       MIN(tasks->len - i, (guint)UPROF_MEM_PIECES_MAX));
    g_array_sort(tasks, compare_order);
    for (guint i = 0; i < tasks->len; i++)
        g_hash_table_insert(guess->indices, &g_array_index(tasks, Task, i).address,
                            GUINT_TO_POINTER(i + 1));
}

static bool
is_known(const UprofTaskOffsets *offsets)
{
    return offsets->ids_root != UPROF_TASK_NO_MEMBER &&
           offsets->node_shift != UPROF_TASK_NO_MEMBER &&
           offsets->node_slots != UPROF_TASK_NO_MEMBER && offsets->n_slots > 0 &&
           offsets->n_slots <= SLOTS_MAX && offsets->pid_tasks != UPROF_TASK_NO_MEMBER &&
           offsets->pid_links != UPROF_TASK_NO_MEMBER;
}

UprofTaskGuess *
uprof_task_guess_new(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory, uint64_t ids,
                     uint64_t until_ns)
{
    UprofTaskGuess *guess = g_new0(UprofTaskGuess, 1);
    g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    Reader reader = {
        .offsets = offsets, .memory = memory, .until_ns = until_ns, .ids = addresses
    };
    uint64_t root;

    guess->tasks = g_array_new(FALSE, FALSE, sizeof(Task));
    guess->indices = g_hash_table_new(g_int64_hash, g_int64_equal);
    if (ids == 0 || !is_known(offsets) ||
        !uprof_kernel_read_word_now(memory, ids + offsets->ids_root, &root))
        return guess;
    read_tree(&reader, root);
    read_tasks(&reader, guess);
    return guess;
}

void
uprof_task_guess_free(UprofTaskGuess *guess)
{
    g_hash_table_unref(guess->indices);
    g_array_unref(guess->tasks);
    g_free(guess);
}

uint64_t
uprof_task_guess_next(const UprofTaskGuess *guess, uint64_t task, bool is_thread)
{
    gpointer found = g_hash_table_lookup(guess->indices, &task);
    guint i = GPOINTER_TO_UINT(
        found); /* of the next task, because @found is the index of this one plus 1 */

    if (!found)
        return 0;
    while (!is_thread && i < guess->tasks->len && !g_array_index(guess->tasks, Task, i).is_first)
        i++;
    if (i >= guess->tasks->len || (is_thread && g_array_index(guess->tasks, Task, i).is_first))
        return 0;
    return g_array_index(guess->tasks, Task, i).address;
}
