/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel has its processes in a ring, and the threads of each process in another one (Linux,
 * include/linux/sched/signal.h). New tasks come to the end of a ring. A task that ends leaves its
 * neighbors; its own pointers forward stay valid until its memory has another use.
 *
 * A walk goes from task to task. It accepts the next one if this one points back, before and after
 * all of it is read, and its predecessor points to it afterwards. Otherwise the predecessor itself
 * may have left the ring; the walk then steps back.
 *
 * A read of the guest takes a round trip, whatever it reads. So the tasks that are probably next
 * are read with the next one, in one batch, and the read of the batch behind it has begun when the
 * walk comes to the first of them. All are checked in the same way.
 */
#include "uprof/task-list.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/sorted.h"

#include "kernel-priv.h"
#include "task-guess-priv.h"
#include "task-clock-priv.h"
#include "task-fill-priv.h"
#include "task-name-priv.h"
#include "task-offsets-priv.h"

enum {
    PID_MAX = 4 * 1024 * 1024, /* Linux, include/linux/threads.h, PID_MAX_LIMIT */
    READS_MAX = 2 * UPROF_TASK_LIST_MAX,
    TRIES_MAX = 100, /* of one position in a ring */
    LEVELS_MAX = 32, /* Linux, include/linux/pid_namespace.h, MAX_PID_NS_LEVEL */
    MORE_PIECES = 4,
    BATCH_MAX = 64, /* tasks that are read together */
    IDS_TOGETHER = UPROF_MEM_PIECES_MAX / 2,
    GUESS_PART = 4, /* 1 / GUESS_PART of the time may pass before the walk begins */
};

#define LIMIT_NS (60 * UPROF_NS_PER_S)
/* A peek takes 3.5 ms. List and stacks together must end before the limit of a worker's call. */
#define SLOW_LIMIT_NS (400 * UPROF_NS_PER_S)

/* Steps of a read: see uprof_mem_read_pieces(). The nodes are read in the first one. */
enum { MEMBERS_STEP = 1, CHECK_STEP };

G_STATIC_ASSERT(UPROF_TASK_PARTS_MAX + MORE_PIECES <= UPROF_MEM_PIECES_MAX);

/* A node of a ring: struct list_head */
typedef struct {
    uint64_t next, previous; /* little-endian */
} Node;

/* A task that is accepted, and its position in the ring. */
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

/* A task that was read behind another one. Its node was read before and after all else of it. */
typedef struct {
    uint64_t before, at; /* addresses of the nodes */
    Node first, last;
    uint64_t next; /* little-endian: of the node before, read at last */
    uint32_t id;   /* little-endian: read again */
    UprofTaskBytes bytes;
    bool is_read;
} Candidate;

/* Candidates of a ring that are read together. */
typedef struct {
    Candidate candidates[BATCH_MAX];
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
    unsigned n, n_used;
    /* what is probably behind them: addresses of nodes, and candidates for processes that have no
     * more threads; @next_at is 0 if that is not known */
    uint64_t next_before, next_at;
    unsigned n_processes;
} Batch;

/* The candidates of a kind of ring. */
typedef struct {
    Batch *now;  /* owned: has been read */
    Batch *next; /* owned: behind @now, has been read or begun; empty if there is none */
} Ahead;

typedef struct {
    const UprofLinux *kernel;
    const UprofTaskOffsets *offsets;
    UprofKernelMemory memory;
    UprofTaskGuess *guess; /* owned */
    Ahead processes, threads;
    Batch *begun; /* (nullable): borrowed: its read has begun */
    UprofTaskList *list;
    GHashTable *indices; /* address of a task -> its index in the list, plus 1 */
    unsigned n_reads;
    uint64_t end_ns; /* when the time is up */
} Walk;

/* ---- One task ---- */

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

/* Returns: the number of @pieces that read the candidate: node, members, and the node again */
static unsigned
list_candidate_pieces(const Walk *walk, const Ring *ring, Candidate *task, UprofMemPiece *pieces)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    const uint64_t address = task->at - ring->offset;
    unsigned n = 0;

    pieces[n++] = (UprofMemPiece){ .gva = task->at, .into = &task->first, .len = sizeof(Node) };
    n += uprof_task_offsets_list_pieces(offsets, address, &task->bytes, MEMBERS_STEP, pieces + n);
    pieces[n++] = (UprofMemPiece){ .gva = address + offsets->pid,
                                   .into = &task->id,
                                   .len = sizeof(task->id),
                                   .step = CHECK_STEP };
    pieces[n++] = (UprofMemPiece){
        .gva = task->at, .into = &task->last, .len = sizeof(Node), .step = CHECK_STEP
    };
    pieces[n++] = (UprofMemPiece){
        .gva = task->before, .into = &task->next, .len = sizeof(task->next), .step = CHECK_STEP
    };
    return n;
}

static bool
is_node_address(uint64_t at)
{
    return at >= UPROF_UPPER_HALF && at % sizeof(at) == 0;
}

/* A process of one thread has a ring of one node, which has been read already. */
static bool
is_alone(const Walk *walk, const UprofTaskBytes *bytes, uint64_t head)
{
    const uint64_t offset = walk->offsets->thread_node;

    return get_word(walk, bytes, offset) == head && get_word(walk, bytes, offset + 8) == head;
}

static uint64_t
find_thread_head(const Walk *walk, const UprofTaskBytes *process)
{
    return get_word(walk, process, walk->offsets->signal) + walk->offsets->thread_head;
}

/* ---- Batches ---- */

/*
 * Goes on with the first thread of the next process that has more of them.
 * @batch: (inout): of threads
 */
static void
guess_process(const Walk *walk, Batch *batch)
{
    const Batch *processes = walk->processes.now;

    batch->next_at = 0;
    while (batch->next_at == 0 && batch->n_processes < processes->n) {
        const Candidate *process = &processes->candidates[batch->n_processes++];
        if (!process->is_read)
            continue;
        batch->next_before = find_thread_head(walk, &process->bytes);
        if (!is_alone(walk, &process->bytes, batch->next_before))
            batch->next_at = process->at - walk->offsets->tasks + walk->offsets->thread_node;
    }
}

/* Finds what is probably behind the last candidate of the batch. */
static void
guess_next(const Walk *walk, const Ring *ring, Batch *batch)
{
    const uint64_t at = batch->next_at;
    const uint64_t next = uprof_task_guess_next(walk->guess, at - ring->offset, ring->process != 0);

    batch->next_before = at;
    batch->next_at = next != 0 ? next + ring->offset : 0;
    if (next == 0 && ring->process != 0)
        guess_process(walk, batch);
}

static unsigned
count_each(const Walk *walk)
{
    return walk->offsets->n_parts + MORE_PIECES;
}

/* @batch: (inout): only what is behind it is set; gets candidates, and what is behind these */
static void
fill_batch(const Walk *walk, const Ring *ring, Batch *batch)
{
    const unsigned n_each = count_each(walk);

    batch->n = batch->n_used = 0;
    while (batch->n < BATCH_MAX && (batch->n + 1) * n_each <= UPROF_MEM_PIECES_MAX &&
           is_node_address(batch->next_at)) {
        Candidate *task = &batch->candidates[batch->n];
        task->before = batch->next_before;
        task->at = batch->next_at;
        list_candidate_pieces(walk, ring, task, batch->pieces + batch->n++ * n_each);
        guess_next(walk, ring, batch);
    }
}

static void
end_read(Walk *walk)
{
    const unsigned n_each = count_each(walk);
    Batch *batch = walk->begun;

    if (!batch)
        return;
    walk->begun = NULL;
    uprof_kernel_end_pieces(&walk->memory);
    for (unsigned i = 0; i < batch->n; i++) {
        batch->candidates[i].is_read = true;
        for (unsigned j = 0; j < n_each; j++)
            batch->candidates[i].is_read &= !batch->pieces[i * n_each + j].is_missing;
    }
}

static void
begin_read(Walk *walk, Batch *batch)
{
    end_read(walk);
    if (batch->n == 0)
        return;
    uprof_kernel_begin_pieces(&walk->memory, batch->pieces, batch->n * count_each(walk));
    walk->begun = batch;
}

static void
begin_next(Walk *walk, const Ring *ring, Ahead *ahead)
{
    ahead->next->next_before = ahead->now->next_before;
    ahead->next->next_at = ahead->now->next_at;
    ahead->next->n_processes = ahead->now->n_processes;
    fill_batch(walk, ring, ahead->next);
    begin_read(walk, ahead->next);
}

static bool
begins_with(const Batch *batch, uint64_t before, uint64_t at)
{
    return batch->n > 0 && batch->candidates[0].before == before && batch->candidates[0].at == at;
}

/* Makes the batch that begins with the task at @at the present one. */
static void
read_ahead(Walk *walk, const Ring *ring, uint64_t before, uint64_t at, Ahead *ahead)
{
    if (begins_with(ahead->next, before, at)) {
        Batch *batch = ahead->now;
        ahead->now = ahead->next;
        ahead->next = batch;
    } else {
        ahead->now->next_before = before;
        ahead->now->next_at = at;
        ahead->now->n_processes = walk->processes.now->n_used;
        fill_batch(walk, ring, ahead->now);
        begin_read(walk, ahead->now);
    }
    end_read(walk);
    begin_next(walk, ring, ahead);
}

/* Was the task in the ring all the time in which it was read? */
static bool
is_in_ring(const Walk *walk, const Candidate *task)
{
    return task->is_read && GUINT64_FROM_LE(task->first.previous) == task->before &&
           GUINT64_FROM_LE(task->last.previous) == task->before &&
           GUINT64_FROM_LE(task->next) == task->at &&
           uprof_task_bytes_word(walk->offsets, &task->bytes, walk->offsets->pid,
                                 sizeof(task->id)) == GUINT32_FROM_LE(task->id);
}

/*
 * Reads a task that lies behind the node @before, unless it was read ahead.
 *
 * Returns: (nullable): %NULL if it was not in the ring all the time; valid until the next call for
 * this ring
 */
static const Candidate *
read_task(Walk *walk, const Ring *ring, uint64_t before, uint64_t at)
{
    Ahead *ahead = ring->process == 0 ? &walk->processes : &walk->threads;
    const Batch *batch = ahead->now;

    if (batch->n_used >= batch->n || batch->candidates[batch->n_used].before != before ||
        batch->candidates[batch->n_used].at != at)
        read_ahead(walk, ring, before, at, ahead);
    Batch *now = ahead->now;
    const Candidate *task = &now->candidates[now->n_used];
    if (now->n_used++ < now->n && is_in_ring(walk, task))
        return task;
    now->n = 0;
    return NULL;
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
    gpointer found = g_hash_table_lookup(walk->indices, &task->address);

    if (found)
        g_array_index(tasks, UprofTask, GPOINTER_TO_UINT(found) - 1).id = 0;
    g_array_append_val(tasks, *task);
    g_hash_table_replace(walk->indices, g_memdup2(&task->address, sizeof(task->address)),
                         GUINT_TO_POINTER(tasks->len));
}

static void
drop_tasks(Walk *walk, guint n_left)
{
    GArray *tasks = walk->list->tasks;

    for (guint i = n_left; i < tasks->len; i++)
        g_hash_table_remove(walk->indices, &g_array_index(tasks, UprofTask, i).address);
    g_array_set_size(tasks, n_left);
}

/* ---- Rings ---- */

static bool
is_late(Walk *walk)
{
    walk->list->is_late = walk->list->is_late || uprof_clock_now_ns() >= walk->end_ns;
    return walk->list->is_late;
}

static bool
is_spent(Walk *walk)
{
    return walk->n_reads >= READS_MAX || walk->list->tasks->len >= UPROF_TASK_LIST_MAX ||
           is_late(walk);
}

/*
 * Finds where to go on after a change: behind the last step, or, if that task has left the ring
 * itself, behind an earlier one.
 * @next: (out): the next node. Returns: false if it cannot be read
 */
static bool
step_back(Walk *walk, const Ring *ring, GArray *steps, uint64_t *next)
{
    walk->list->n_retries++;
    while (steps->len > 0 && walk->n_reads++ < READS_MAX && !is_late(walk)) {
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
    unsigned n_tries = 0;
    uint64_t at = ring->known + ring->offset; /* the first thread of a process is mostly first */

    if (ring->known == 0 && !uprof_kernel_read_word_now(&walk->memory, ring->head, &at))
        return false;
    while (at != ring->head) {
        const uint64_t before =
            steps->len > 0 ? g_array_index(steps, Step, steps->len - 1).at : ring->head;
        if (is_spent(walk) || n_tries >= TRIES_MAX)
            return false;
        walk->n_reads++;
        const Candidate *task = read_task(walk, ring, before, at);
        if (!task || !is_plausible(walk, ring, &task->bytes)) {
            n_tries++;
            if (!step_back(walk, ring, steps, &at))
                return false;
            continue;
        }
        const Step step = { at, walk->list->tasks->len };
        g_array_append_val(steps, step);
        if (at - ring->offset != ring->known)
            take(walk, at - ring->offset, &task->bytes);
        n_tries = 0;
        at = GUINT64_FROM_LE(task->last.next);
    }
    return true;
}

static void
take_thread(Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    const UprofTask task = make_task(walk, address, bytes);

    add_task(walk, &task);
}

/* Is the process in the ring of all processes now? If not, it has ended since it was read. */
static bool
is_still_listed(const Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    const uint64_t at = address + walk->offsets->tasks;
    uint64_t before, next;
    uint32_t id;

    return uprof_kernel_read_word_now(&walk->memory, at + sizeof(uint64_t), &before) &&
           uprof_kernel_read_word_now(&walk->memory, before, &next) && next == at &&
           uprof_kernel_read_now(&walk->memory, address + walk->offsets->pid, &id, sizeof(id)) &&
           GUINT32_FROM_LE(id) == get_number(walk, bytes, walk->offsets->pid);
}

static void
take_process(Walk *walk, uint64_t address, const UprofTaskBytes *bytes)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    const guint index = walk->list->tasks->len;
    const Ring threads = {
        .head = find_thread_head(walk, bytes),
        .offset = offsets->thread_node,
        .process = get_number(walk, bytes, offsets->tgid),
        .known = address,
    };

    take_thread(walk, address, bytes);
    if (!is_alone(walk, bytes, threads.head) && !walk_ring(walk, &threads, take_thread) &&
        is_still_listed(walk, address, bytes))
        g_array_index(walk->list->tasks, UprofTask, index).is_doubtful = true;
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
        task->has_wait = task->has_wait && list->has_waits;
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
        gpointer found = g_hash_table_lookup(walk->indices, &task->parent_at);
        if (found)
            task->parent = g_array_index(tasks, UprofTask, GPOINTER_TO_UINT(found) - 1).process;
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

/*
 * Finds the ids of some tasks in their innermost namespaces with one read of the guest.
 * @tasks: @n of them, up to IDS_TOGETHER, which are in namespaces of their own
 */
static void
read_inner_ids(const Walk *walk, UprofTask **tasks, unsigned n)
{
    const UprofTaskOffsets *offsets = walk->offsets;
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
    uint32_t inner[IDS_TOGETHER], outer[IDS_TOGETHER];

    for (unsigned i = 0; i < n; i++) {
        const uint64_t ids = tasks[i]->ids_at + offsets->pid_numbers + offsets->number_id;
        pieces[2 * i] = (UprofMemPiece){ .gva = ids + tasks[i]->level * offsets->number_bytes,
                                         .into = &inner[i],
                                         .len = sizeof(inner[i]) };
        pieces[2 * i + 1] =
            (UprofMemPiece){ .gva = ids, .into = &outer[i], .len = sizeof(outer[i]), .step = 1 };
    }
    uprof_kernel_read_pieces(&walk->memory, pieces, 2 * n);
    for (unsigned i = 0; i < n; i++) {
        /* The outermost id shows that the structure is still of this task. */
        if (!pieces[2 * i].is_missing && !pieces[2 * i + 1].is_missing &&
            GUINT32_FROM_LE(outer[i]) == tasks[i]->id && GUINT32_FROM_LE(inner[i]) <= PID_MAX)
            tasks[i]->inner = GUINT32_FROM_LE(inner[i]);
        else
            tasks[i]->level = 0;
    }
}

/* A task whose id is not read in time is one of the outermost namespace, it seems. */
static void
finish_ids(Walk *walk)
{
    GArray *tasks = walk->list->tasks;
    UprofTask *nested[IDS_TOGETHER];
    const bool has_levels = walk->list->has_levels;
    unsigned n = 0;

    for (guint i = 0; i < tasks->len && has_levels && !is_late(walk); i += UPROF_MEM_PIECES_MAX)
        read_levels(walk, &g_array_index(tasks, UprofTask, i),
                    MIN(tasks->len - i, (guint)UPROF_MEM_PIECES_MAX));
    for (guint i = 0; i < tasks->len; i++) {
        UprofTask *task = &g_array_index(tasks, UprofTask, i);
        if (task->level > LEVELS_MAX || (task->level > 0 && is_late(walk)))
            task->level = 0;
        if (task->level > 0)
            nested[n++] = task;
        if (n == IDS_TOGETHER || (n > 0 && i + 1 == tasks->len)) {
            read_inner_ids(walk, nested, n);
            n = 0;
        }
    }
}

static gint
compare_tasks(gconstpointer a, gconstpointer b)
{
    const UprofTask *one = a, *other = b;

    if (one->process != other->process)
        return UPROF_COMPARE(one->process, other->process);
    if ((one->id == one->process) != (other->id == other->process))
        return one->id == one->process ? -1 : 1;
    return UPROF_COMPARE(one->id, other->id);
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

/* Does a process of the list lack threads? */
static bool
has_doubtful(const GArray *tasks)
{
    for (guint i = 0; i < tasks->len; i++)
        if (g_array_index(tasks, UprofTask, i).is_doubtful)
            return true;
    return false;
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
    list->is_complete = list->is_complete && !list->is_late && !has_doubtful(list->tasks);
    g_array_sort(list->tasks, compare_tasks);
}

static void
clear_walk(Walk *walk)
{
    end_read(walk);
    uprof_task_guess_free(walk->guess);
    g_free(walk->processes.now);
    g_free(walk->processes.next);
    g_free(walk->threads.now);
    g_free(walk->threads.next);
    g_hash_table_unref(walk->indices);
}

UprofTaskList *
uprof_task_list_read(const UprofLinux *kernel, UprofMem *mem, uint64_t time_ns, GError **error)
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
        .processes = { g_new0(Batch, 1), g_new0(Batch, 1) },
        .threads = { g_new0(Batch, 1), g_new0(Batch, 1) },
        .indices = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
        .end_ns = uprof_clock_now_ns() + time_ns,
    };
    /* a walk without guesses takes longer, but has tasks, too */
    walk.guess = uprof_task_guess_new(offsets, &walk.memory, uprof_linux_symbols(kernel)->first_ids,
                                      uprof_clock_now_ns() + time_ns / GUESS_PART);
    note_missing(offsets, list);
    walk_tasks(&walk, uprof_linux_symbols(kernel)->init_task);
    clear_walk(&walk);
    return g_steal_pointer(&list);
}

uint64_t
uprof_task_list_limit_ns(const UprofMem *mem)
{
    return uprof_mem_is_slow(mem) ? SLOW_LIMIT_NS : LIMIT_NS;
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
