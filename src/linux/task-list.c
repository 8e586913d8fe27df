/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel has its processes in a ring, and the threads of each process in another one (Linux,
 * include/linux/sched/signal.h). New tasks come to the end of a ring. A task that ends leaves its
 * neighbors; its own pointers forward stay valid until its memory has another use.
 *
 * A walk goes from task to task. It accepts the next one if this one points back, before and after all
 * of it is read, and its predecessor points to it afterwards. Otherwise the predecessor itself may
 * have left the ring; the walk then steps back.
 */
#include "uprof/task-list.h"

#include "uprof/error.h"

#include "kernel-priv.h"
#include "task-clock-priv.h"
#include "task-fill-priv.h"
#include "task-name-priv.h"
#include "task-offsets-priv.h"

enum {
    PID_MAX = 4 * 1024 * 1024, /* Linux, include/linux/threads.h, PID_MAX_LIMIT */
    READS_MAX = 2 * UPROF_TASK_LIST_MAX,
    TRIES_MAX = 8,   /* of one place in a ring */
    LEVELS_MAX = 32, /* Linux, include/linux/pid_namespace.h, MAX_PID_NS_LEVEL */
    MORE_PIECES = 4,
};

G_STATIC_ASSERT(UPROF_TASK_PARTS_MAX + MORE_PIECES <= UPROF_MEM_PIECES_MAX);

/* A node of a ring: struct list_head */
typedef struct {
    uint64_t next, previous; /* little-endian */
} Node;

/* A task that is accepted, and its place in the ring. */
typedef struct {
    uint64_t at;   /* of its node */
    guint n_tasks; /* in the list before it */
} Step;

/* One ring. */
typedef struct {
    uint64_t head;    /* address of its first node, which is in no task that is listed */
    uint64_t offset;  /* of the node in a task */
    uint32_t process; /* of all tasks in the ring; 0: each is the first thread of another process */
    uint64_t known;   /* address of a task in the ring that is in the list already; or 0 */
} Ring;

typedef struct {
    const UprofLinux *kernel;
    const UprofTaskOffsets *offsets;
    UprofKernelMemory memory;
    UprofTaskList *list;
    GHashTable *places; /* address of a task -> its index in the list, plus 1 */
    unsigned n_reads;
} Walk;

/* ---- One task ---- */

/* Reads a task that lies behind the node @before. Returns: false if it was not in the ring all the time */
static bool
read_task(Walk *walk, const Ring *ring, uint64_t before, uint64_t at, UprofTaskBytes *task,
          Node *node)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    const uint64_t address = at - ring->offset;
    UprofMemPiece pieces[UPROF_TASK_PARTS_MAX + MORE_PIECES];
    uint64_t next;
    uint32_t id;
    Node first;
    unsigned n = 0;

    if (at < UPROF_UPPER_HALF || at % sizeof(at) != 0)
        return false;
    pieces[n++] = (UprofMemPiece){ .gva = at, .into = &first, .len = sizeof(first) };
    n += uprof_task_offsets_plan(offsets, address, task, pieces + n);
    pieces[n++] = (UprofMemPiece){ .gva = address + offsets->pid, .into = &id, .len = sizeof(id) };
    pieces[n++] = (UprofMemPiece){ .gva = at, .into = node, .len = sizeof(*node) };
    pieces[n++] = (UprofMemPiece){ .gva = before, .into = &next, .len = sizeof(next) };
    return uprof_kernel_read_pieces(&walk->memory, pieces, n) &&
           GUINT64_FROM_LE(first.previous) == before && GUINT64_FROM_LE(node->previous) == before &&
           GUINT64_FROM_LE(next) == at &&
           uprof_task_bytes_word(offsets, task, offsets->pid, sizeof(id)) == GUINT32_FROM_LE(id);
}

static uint32_t
get_number(const Walk *walk, const UprofTaskBytes *task, uint64_t offset)
{
    return (uint32_t)uprof_task_bytes_word(walk->offsets, task, offset, sizeof(uint32_t));
}

static uint64_t
get_word(const Walk *walk, const UprofTaskBytes *task, uint64_t offset)
{
    return uprof_task_bytes_word(walk->offsets, task, offset, sizeof(uint64_t));
}

static bool
is_plausible(const Walk *walk, const Ring *ring, const UprofTaskBytes *task)
{
    const uint32_t id = get_number(walk, task, walk->offsets->pid);
    const uint32_t process = get_number(walk, task, walk->offsets->tgid);

    return id > 0 && id <= PID_MAX && process > 0 && process <= PID_MAX &&
           (ring->process == 0 ? id == process : process == ring->process);
}

static UprofTask
make_task(const Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    UprofTask task = { .address = address };

    uprof_task_fill(walk->offsets, bytes, &task);
    task.inner = task.id;
    /* finish_waits() makes a duration of it */
    task.wait_ns = uprof_task_fill_left(walk->offsets, bytes);
    uprof_task_name_read(walk->offsets, &walk->memory, bytes, &task);
    return task;
}

/* An address in the list twice: the earlier task has ended, and a new one has got its memory. */
static void
add_task(Walk *walk, const UprofTask *task)
{
    GArray *tasks = walk->list->tasks;
    gpointer place = g_hash_table_lookup(walk->places, &task->address);

    if (place)
        g_array_index(tasks, UprofTask, GPOINTER_TO_UINT(place) - 1).id = 0;
    g_array_append_val(tasks, *task);
    g_hash_table_replace(walk->places, g_memdup2(&task->address, sizeof(task->address)),
                         GUINT_TO_POINTER(tasks->len));
}

static void
drop_tasks(Walk *walk, guint n_left)
{
    GArray *tasks = walk->list->tasks;

    for (guint i = n_left; i < tasks->len; i++)
        g_hash_table_remove(walk->places, &g_array_index(tasks, UprofTask, i).address);
    g_array_set_size(tasks, n_left);
}

/* ---- Rings ---- */

static bool
is_spent(const Walk *walk)
{
    return walk->n_reads >= READS_MAX || walk->list->tasks->len >= UPROF_TASK_LIST_MAX;
}

/*
 * Finds where to go on after a change: behind the last step, or, if that task has left the ring itself,
 * behind an earlier one.
 * @next: (out): the next node. Returns: false if it cannot be read
 */
static bool
step_back(Walk *walk, const Ring *ring, GArray *steps, uint64_t *next)
{
    walk->list->n_again++;
    while (steps->len > 0 && walk->n_reads++ < READS_MAX) {
        const Step *last = &g_array_index(steps, Step, steps->len - 1);
        const uint64_t before =
            steps->len > 1 ? g_array_index(steps, Step, steps->len - 2).at : ring->head;
        uint64_t at;
        if (uprof_kernel_read_word_now(&walk->memory, before, &at) && at == last->at &&
            uprof_kernel_read_word_now(&walk->memory, last->at, next))
            return true;
        drop_tasks(walk, last->n_tasks);
        g_array_set_size(steps, steps->len - 1);
    }
    return uprof_kernel_read_word_now(&walk->memory, ring->head, next);
}

typedef void TakeTask(Walk *walk, uint64_t address, const UprofTaskBytes *bytes);

/* Returns: false if the ring cannot be followed to its end */
static bool
walk_ring(Walk *walk, const Ring *ring, TakeTask *take)
{
    g_autoptr(GArray) steps = g_array_new(FALSE, FALSE, sizeof(Step));
    g_autofree UprofTaskBytes *bytes = g_new(UprofTaskBytes, 1);
    unsigned n_tries = 0;
    uint64_t at;
    Node node;

    if (!uprof_kernel_read_word_now(&walk->memory, ring->head, &at))
        return false;
    while (at != ring->head) {
        const uint64_t before =
            steps->len > 0 ? g_array_index(steps, Step, steps->len - 1).at : ring->head;
        if (is_spent(walk) || n_tries >= TRIES_MAX)
            return false;
        walk->n_reads++;
        if (!read_task(walk, ring, before, at, bytes, &node) || !is_plausible(walk, ring, bytes)) {
            n_tries++;
            if (!step_back(walk, ring, steps, &at))
                return false;
            continue;
        }
        const Step step = { at, walk->list->tasks->len };
        g_array_append_val(steps, step);
        if (at - ring->offset != ring->known)
            take(walk, at - ring->offset, bytes);
        n_tries = 0;
        at = GUINT64_FROM_LE(node.next);
    }
    return true;
}

static void
take_thread(Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    const UprofTask task = make_task(walk, address, bytes);

    add_task(walk, &task);
}

/* A process of one thread has a ring of one node, which has been read already. */
static bool
is_alone(const Walk *walk, const UprofTaskBytes *bytes, uint64_t head)
{
    const uint64_t offset = walk->offsets->thread_node;

    return get_word(walk, bytes, offset) == head && get_word(walk, bytes, offset + 8) == head;
}

static void
take_process(Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    const guint place = walk->list->tasks->len;
    const Ring threads = {
        .head = get_word(walk, bytes, offsets->signal) + offsets->thread_head,
        .offset = offsets->thread_node,
        .process = get_number(walk, bytes, offsets->tgid),
        .known = address,
    };

    take_thread(walk, address, bytes);
    if (!is_alone(walk, bytes, threads.head) && !walk_ring(walk, &threads, take_thread))
        g_array_index(walk->list->tasks, UprofTask, place).is_doubtful = true;
}

/* ---- All tasks ---- */

static void
finish_waits(const Walk *walk)
{
    UprofTaskList *list = walk->list;
    g_auto(UprofTaskClock) clock = { 0 };

    if (list->has_waits)
        uprof_task_clock_init(&clock, walk->kernel, &walk->memory, walk->offsets);
    list->has_waits = clock.now != 0;
    for (guint i = 0; i < list->tasks->len; i++) {
        UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        task->has_wait = list->has_waits && task->wait_ns != 0 && !task->is_on_cpu;
        task->wait_ns =
            task->has_wait ? uprof_task_clock_since(&clock, task->cpu, task->wait_ns) : 0;
    }
}

static void
finish_parents(const Walk *walk)
{
    GArray *tasks = walk->list->tasks;

    for (guint i = 0; i < tasks->len; i++) {
        UprofTask *task = &g_array_index(tasks, UprofTask, i);
        gpointer place = g_hash_table_lookup(walk->places, &task->parent_at);
        if (place)
            task->parent = g_array_index(tasks, UprofTask, GPOINTER_TO_UINT(place) - 1).process;
    }
}

/* Reads the depths of some namespaces with one read of the guest. */
static void
read_levels(const Walk *walk, UprofTask *tasks, unsigned n)
{
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
    uint32_t levels[UPROF_MEM_PIECES_MAX];

    for (unsigned i = 0; i < n; i++)
        pieces[i] = (UprofMemPiece){
            .gva = tasks[i].ids_at + walk->offsets->pid_level,
            .into = &levels[i],
            .len = sizeof(levels[i]),
        };
    uprof_kernel_read_pieces(&walk->memory, pieces, n);
    for (unsigned i = 0; i < n; i++)
        tasks[i].level = pieces[i].is_missing ? 0 : GUINT32_FROM_LE(levels[i]);
}

/* Finds the id in the innermost namespace, if it is another one. */
static void
read_inner_id(const Walk *walk, UprofTask *task)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    const uint64_t ids = task->ids_at + offsets->pid_numbers;
    uint32_t outer, inner;

    if (task->level == 0)
        return;
    const uint64_t at = ids + task->level * offsets->number_bytes + offsets->number_id;
    /* The outermost id shows that the structure is still of this task. */
    if (task->level <= LEVELS_MAX &&
        uprof_kernel_read_now(&walk->memory, at, &inner, sizeof(inner)) &&
        uprof_kernel_read_now(&walk->memory, ids + offsets->number_id, &outer, sizeof(outer)) &&
        GUINT32_FROM_LE(outer) == task->id && GUINT32_FROM_LE(inner) <= PID_MAX)
        task->inner = GUINT32_FROM_LE(inner);
    else
        task->level = 0;
}

static void
finish_ids(const Walk *walk)
{
    GArray *tasks = walk->list->tasks;

    for (guint i = 0; i < tasks->len && walk->list->has_levels; i += UPROF_MEM_PIECES_MAX)
        read_levels(walk, &g_array_index(tasks, UprofTask, i),
                    MIN(tasks->len - i, (guint)UPROF_MEM_PIECES_MAX));
    for (guint i = 0; i < tasks->len; i++)
        read_inner_id(walk, &g_array_index(tasks, UprofTask, i));
}

static gint
compare_tasks(gconstpointer a, gconstpointer b)
{
    const UprofTask *one = a, *other = b;

    if (one->process != other->process)
        return one->process < other->process ? -1 : 1;
    if ((one->id == one->process) != (other->id == other->process))
        return one->id == one->process ? -1 : 1;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* Removes tasks whose memory has got another use. */
static void
drop_replaced(GArray *tasks)
{
    guint n = 0;

    for (guint i = 0; i < tasks->len; i++)
        if (g_array_index(tasks, UprofTask, i).id != 0)
            g_array_index(tasks, UprofTask, n++) = g_array_index(tasks, UprofTask, i);
    g_array_set_size(tasks, n);
}

static void
note_missing(const UprofTaskOffsets *offsets, UprofTaskList *list)
{
    list->missing = uprof_task_offsets_missing(offsets);
    list->has_parents = offsets->parent != UPROF_TASK_NO_MEMBER;
    list->has_times = offsets->run_time != UPROF_TASK_NO_MEMBER &&
                      offsets->user_time != UPROF_TASK_NO_MEMBER &&
                      offsets->system_time != UPROF_TASK_NO_MEMBER;
    list->has_waits =
        offsets->left != UPROF_TASK_NO_MEMBER && offsets->clock != UPROF_TASK_NO_MEMBER;
    list->has_levels =
        offsets->thread_pid != UPROF_TASK_NO_MEMBER && offsets->pid_level != UPROF_TASK_NO_MEMBER &&
        offsets->pid_numbers != UPROF_TASK_NO_MEMBER && offsets->number_id != UPROF_TASK_NO_MEMBER;
}

static void
walk_tasks(Walk *walk, uint64_t first_task)
{
    UprofTaskList *list = walk->list;
    const Ring processes = {
        .head = first_task + walk->offsets->tasks,
        .offset = walk->offsets->tasks,
    };

    list->is_complete = walk_ring(walk, &processes, take_process);
    finish_waits(walk);
    finish_parents(walk);
    finish_ids(walk);
    drop_replaced(list->tasks);
    g_array_sort(list->tasks, compare_tasks);
}

UprofTaskList *
uprof_task_list_read(const UprofLinux *kernel, UprofMem *mem, GError **error)
{
    const char *why = NULL;
    const UprofTaskOffsets *offsets = uprof_linux_task_offsets(kernel, &why);

    if (!offsets) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "tasks cannot be listed: %s", why);
        return NULL;
    }
    g_autoptr(UprofTaskList) list = g_new0(UprofTaskList, 1);
    list->tasks = g_array_new(FALSE, FALSE, sizeof(UprofTask));
    Walk walk = {
        .kernel = kernel,
        .offsets = offsets,
        .memory = uprof_linux_memory(kernel, mem),
        .list = list,
        .places = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
    note_missing(offsets, list);
    walk_tasks(&walk, uprof_linux_symbols(kernel)->init_task);
    g_hash_table_unref(walk.places);
    return g_steal_pointer(&list);
}

UprofTaskList *
uprof_task_list_copy(const UprofTaskList *list)
{
    UprofTaskList *copy = g_memdup2(list, sizeof(*list));

    copy->tasks = g_array_copy(list->tasks);
    copy->missing = g_strdup(list->missing);
    return copy;
}

void
uprof_task_list_free(UprofTaskList *list)
{
    if (!list)
        return;
    g_array_unref(list->tasks);
    g_free(list->missing);
    g_free(list);
}
