/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Linux, kernel/locking: mutex.c, rwsem.c, percpu-rwsem.c and rtmutex.c.
 */
#include "uprof/task-lock.h"

#include "kernel-priv.h"
#include "task-name-priv.h"
#include "uprof/sorted.h"

enum {
    WORD = 8,
    RING_MAX = 4096,   /* waiters of a lock */
    READS_MAX = 16384, /* for one task */
    TRIES_MAX = 3,     /* to follow a ring that changes */
    FLAGS = 7,         /* in the low bits of a pointer to an owner */
    READER_OWNED = 1,  /* one of them, of a rw-semaphore */
    WRITER_LOCKED = 1, /* in the count of a rw-semaphore */
    READERS_SHIFT = 8, /* the number of readers in that count */
    LEVELS = 3,        /* Linux, include/linux/fs.h, SB_FREEZE_LEVELS */
    FROZEN_MAX = 4,    /* SB_FREEZE_COMPLETE */
};

/* A node of a ring: struct list_head */
typedef struct {
    uint64_t next, previous;
} Node;

typedef struct {
    const UprofTaskLockSearch *search;
    const UprofLockOffsets *offsets;
    const UprofLockLayout *layout; /* of the kind of lock that is searched */
    UprofKernelMemory memory;
    uint64_t stack_bytes; /* of each task */
    unsigned n_reads;
} Finder;

/* ---- Tasks ---- */

static gint
compare_addresses(gconstpointer a, gconstpointer b)
{
    const UprofTask *one = a, *other = b;

    return UPROF_COMPARE(one->address, other->address);
}

void
uprof_task_lock_sort(GArray *tasks)
{
    g_array_sort(tasks, compare_addresses);
}

const UprofTask *
uprof_task_lock_task(const UprofTaskLockSearch *search, uint64_t address)
{
    const UprofTask wanted = { .address = address };
    guint index;

    /* glib takes no pointer to const */
    if (!g_array_binary_search((GArray *)search->tasks, &wanted, compare_addresses, &index))
        return NULL;
    return &g_array_index(search->tasks, UprofTask, index);
}

/* ---- Names ---- */

UprofTaskLockKind
uprof_task_lock_kind(const char *function)
{
    static const struct {
        const char *prefix;
        UprofTaskLockKind kind;
    } kinds[] = {
        { "__mutex_lock", UPROF_TASK_LOCK_MUTEX },
        { "__ww_mutex_lock", UPROF_TASK_LOCK_MUTEX },
        { "rwsem_down_read", UPROF_TASK_LOCK_READ },
        { "rwsem_down_write", UPROF_TASK_LOCK_WRITE },
        { "percpu_rwsem_wait", UPROF_TASK_LOCK_PER_CPU },
        { "rt_mutex_", UPROF_TASK_LOCK_FUTEX },
        { "__rt_mutex_", UPROF_TASK_LOCK_FUTEX },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_has_prefix(function, kinds[i].prefix))
            return kinds[i].kind;
    return UPROF_TASK_LOCK_NONE;
}

const char *
uprof_task_lock_kind_name(UprofTaskLockKind kind)
{
    static const char *const names[] = {
        [UPROF_TASK_LOCK_NONE] = "none",       [UPROF_TASK_LOCK_MUTEX] = "mutex",
        [UPROF_TASK_LOCK_READ] = "rwsem-read", [UPROF_TASK_LOCK_WRITE] = "rwsem-write",
        [UPROF_TASK_LOCK_FUTEX] = "rt-mutex",  [UPROF_TASK_LOCK_PER_CPU] = "percpu-rwsem",
    };

    return names[kind];
}

/* ---- The ring of waiters ---- */

static bool
read_word(Finder *finder, uint64_t gva, uint64_t *word)
{
    return finder->n_reads++ < READS_MAX && gva >= UPROF_UPPER_HALF && gva % WORD == 0 &&
           uprof_kernel_read_word_now(&finder->memory, gva, word);
}

/* @task: (out): 0 if the node may be in no waiter */
static bool
read_node(Finder *finder, uint64_t at, Node *node, uint64_t *task)
{
    const UprofLockLayout *layout = finder->layout;
    UprofMemPiece pieces[] = {
        { .gva = at, .into = node, .len = sizeof(*node) },
        { .gva = at - layout->node + layout->task, .into = task, .len = sizeof(*task) },
    };

    if (finder->n_reads++ >= READS_MAX || at < UPROF_UPPER_HALF || at % WORD != 0)
        return false;
    uprof_kernel_read_pieces(&finder->memory, pieces, G_N_ELEMENTS(pieces));
    *task = pieces[1].is_missing ? 0 : GUINT64_FROM_LE(*task);
    node->next = GUINT64_FROM_LE(node->next);
    node->previous = GUINT64_FROM_LE(node->previous);
    return !pieces[0].is_missing;
}

/* Is the node on the stack of that task? The head of a ring is on no stack. */
static bool
is_waiter(const Finder *finder, uint64_t at, uint64_t address)
{
    const UprofTask *task = uprof_task_lock_task(finder->search, address);

    return task && at >= task->stack && at - task->stack < finder->stack_bytes;
}

/*
 * Follows a ring from the node of a waiter until it ends there.
 * @nodes: (out): of uint64_t: the waiters. @head: (out): the only other node; 0 if there is none
 * Returns: false if a link does not lead back, or the ring is too long
 */
static bool
follow_ring(Finder *finder, uint64_t start, GArray *nodes, uint64_t *head)
{
    uint64_t at = start, task;
    Node node;

    g_array_set_size(nodes, 0);
    *head = 0;
    if (!read_node(finder, start, &node, &task) || !is_waiter(finder, start, task))
        return false;
    const uint64_t last = node.previous;
    g_array_append_val(nodes, start);
    while (node.next != start) {
        const uint64_t next = node.next;
        if (nodes->len > RING_MAX || !read_node(finder, next, &node, &task) || node.previous != at)
            return false;
        if (is_waiter(finder, next, task))
            g_array_append_val(nodes, next);
        else if (*head == 0)
            *head = next;
        else
            return false;
        at = next;
    }
    return last == at;
}

static bool
has_node(const GArray *nodes, uint64_t at)
{
    for (guint i = 0; i < nodes->len; i++)
        if (g_array_index(nodes, uint64_t, i) == at)
            return true;
    return false;
}

/*
 * A ring without a head: a word of the stack points to the lock, which points to a waiter of the
 * ring. The owner must be a task, because such words also point elsewhere.
 *
 * Returns: 0 if there is no such lock, or more than one
 */
static uint64_t
find_pointed(Finder *finder, const UprofTask *task, const UprofTaskStack *stack,
             const GArray *nodes)
{
    const UprofLockLayout *layout = finder->layout;
    uint64_t lock = 0, first, owner;

    for (uint32_t i = 0; i + WORD <= stack->len && layout->first != UPROF_LOCK_NO_MEMBER;
         i += WORD) {
        const uint64_t word = uprof_read_le64(stack->bytes + i);
        if (word < UPROF_UPPER_HALF || word == lock ||
            (word >= task->stack && word - task->stack < finder->stack_bytes) ||
            !read_word(finder, word + layout->first, &first) ||
            !has_node(nodes, first + layout->node) ||
            !read_word(finder, word + layout->owner, &owner) ||
            !uprof_task_lock_task(finder->search, owner & ~(uint64_t)FLAGS))
            continue;
        if (lock != 0)
            return 0;
        lock = word;
    }
    return lock;
}

/* Follows the ring of waiters from @node. Returns: true if the ring belongs to a lock */
static bool
try_waiter(Finder *finder, const UprofTask *task, const UprofTaskStack *stack, uint64_t node,
           UprofTaskLock *lock)
{
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    uint64_t head = 0;
    bool is_ring = false;

    for (unsigned i = 0; i < TRIES_MAX && !is_ring; i++)
        is_ring = follow_ring(finder, node, nodes, &head);
    if (!is_ring || (head != 0 && finder->layout->head == UPROF_LOCK_NO_MEMBER))
        return false;
    lock->address =
        head != 0 ? head - finder->layout->head : find_pointed(finder, task, stack, nodes);
    lock->n_waiters = nodes->len;
    return lock->address >= UPROF_UPPER_HALF;
}

/* Searches the stack for the waiter, which points to the task. */
static bool
find_ring(Finder *finder, const UprofLockLayout *layout, const UprofTask *task,
          const UprofTaskStack *stack, UprofTaskLock *lock)
{
    finder->layout = layout;
    if (!uprof_lock_offsets_has_ring(layout))
        return false;
    for (uint32_t i = 0; i + WORD <= stack->len; i += WORD) {
        const uint64_t node = stack->gva + i - layout->task + layout->node;
        if (uprof_read_le64(stack->bytes + i) == task->address && node >= stack->gva &&
            node - stack->gva < stack->len && try_waiter(finder, task, stack, node, lock))
            return true;
    }
    return false;
}

/* ---- Owners ---- */

static void
set_owner(const Finder *finder, uint64_t word, UprofTaskLock *lock)
{
    const uint64_t address = word & ~(uint64_t)FLAGS;

    if (address == 0)
        lock->holder = UPROF_TASK_LOCK_RELEASED;
    else if (!uprof_task_lock_task(finder->search, address))
        lock->holder = UPROF_TASK_LOCK_UNKNOWN;
    else
        lock->holder = UPROF_TASK_LOCK_HELD;
    lock->owner = lock->holder == UPROF_TASK_LOCK_HELD ? address : 0;
}

static bool
find_mutex(Finder *finder, const UprofTask *task, const UprofTaskStack *stack, UprofTaskLock *lock)
{
    const UprofLockLayout *layout = &finder->offsets->mutex;
    uint64_t owner;

    if (layout->owner == UPROF_LOCK_NO_MEMBER || !find_ring(finder, layout, task, stack, lock) ||
        !read_word(finder, lock->address + layout->owner, &owner))
        return false;
    set_owner(finder, owner, lock);
    return true;
}

static bool
find_semaphore(Finder *finder, const UprofTask *task, const UprofTaskStack *stack,
               UprofTaskLock *lock)
{
    const UprofLockLayout *layout = &finder->offsets->rw_semaphore;
    uint64_t owner, count;

    if (layout->owner == UPROF_LOCK_NO_MEMBER || finder->offsets->count == UPROF_LOCK_NO_MEMBER ||
        !find_ring(finder, layout, task, stack, lock) ||
        !read_word(finder, lock->address + layout->owner, &owner) ||
        !read_word(finder, lock->address + finder->offsets->count, &count))
        return false;
    set_owner(finder, owner, lock);
    /* a count with the highest bit has readers, too */
    const uint64_t n_readers = (count & INT64_MAX) >> READERS_SHIFT;
    if ((owner & READER_OWNED) && n_readers > 0) {
        lock->holder = UPROF_TASK_LOCK_READERS;
        lock->n_readers = n_readers;
    } else if ((owner & READER_OWNED) || !(count & WRITER_LOCKED)) {
        lock->holder = UPROF_TASK_LOCK_RELEASED;
        lock->owner = 0;
    }
    return true;
}

static bool
find_futex(Finder *finder, const UprofTask *task, UprofTaskLock *lock)
{
    const UprofLockOffsets *offsets = finder->offsets;
    uint64_t waiter, waiter_task, owner;

    if (!uprof_lock_offsets_has_waiter(offsets) ||
        !read_word(finder, task->address + offsets->blocked_on, &waiter) ||
        !is_waiter(finder, waiter, task->address) ||
        !read_word(finder, waiter + offsets->waiter_task, &waiter_task) ||
        waiter_task != task->address ||
        !read_word(finder, waiter + offsets->waiter_lock, &lock->address) ||
        !read_word(finder, lock->address + offsets->base_owner, &owner))
        return false;
    set_owner(finder, owner, lock);
    return true;
}

/* ---- File systems ---- */

/* Is there a frozen file system at @block? */
static bool
read_system(Finder *finder, uint64_t block, UprofTaskLock *lock)
{
    const UprofLockOffsets *offsets = finder->offsets;
    uint64_t type, name;
    uint16_t frozen;

    if (!read_word(finder, block + offsets->type, &type) ||
        !read_word(finder, type + offsets->type_at, &name) || name < UPROF_UPPER_HALF ||
        !uprof_kernel_read_now(&finder->memory, block + offsets->frozen, &frozen, sizeof(frozen)))
        return false;
    frozen = GUINT16_FROM_LE(frozen);
    if (frozen == 0 || frozen > FROZEN_MAX)
        return false;
    uprof_task_name_read_text(&finder->memory, name, lock->type, sizeof(lock->type));
    uprof_task_name_read_text(&finder->memory, block + offsets->device, lock->device,
                              sizeof(lock->device));
    return lock->type[0] != '\0';
}

/* A file system has such a semaphore for each level of freezing. */
static bool
find_per_cpu(Finder *finder, const UprofTask *task, const UprofTaskStack *stack,
             UprofTaskLock *lock)
{
    const UprofLockOffsets *offsets = finder->offsets;

    if (!find_ring(finder, &offsets->per_cpu, task, stack, lock))
        return false;
    for (unsigned i = 0; i < LEVELS && uprof_lock_offsets_has_system(offsets); i++)
        if (read_system(finder, lock->address - offsets->levels - i * offsets->level_bytes, lock))
            break;
    return true;
}

/* ---- All kinds ---- */

static bool
find_kind(Finder *finder, UprofTaskLockKind kind, const UprofTask *task,
          const UprofTaskStack *stack, UprofTaskLock *lock)
{
    switch (kind) {
    case UPROF_TASK_LOCK_MUTEX:
        return find_mutex(finder, task, stack, lock);
    case UPROF_TASK_LOCK_READ:
    case UPROF_TASK_LOCK_WRITE:
        return find_semaphore(finder, task, stack, lock);
    case UPROF_TASK_LOCK_FUTEX:
        return find_futex(finder, task, lock);
    case UPROF_TASK_LOCK_PER_CPU:
        return find_per_cpu(finder, task, stack, lock);
    default:
        return false;
    }
}

bool
uprof_task_lock_find(const UprofTaskLockSearch *search, UprofTaskLockKind kind,
                     const UprofTask *task, const UprofTaskStack *stack, UprofTaskLock *lock)
{
    const char *why;
    const UprofTaskOffsets *offsets = uprof_linux_task_offsets(search->kernel, &why);
    const UprofLinks *links = uprof_linux_published(search->kernel);

    *lock = (UprofTaskLock){ 0 };
    if (!offsets || !links || stack->state != UPROF_TASK_STACK_COPIED)
        return false;
    Finder finder = {
        .search = search,
        .offsets = &offsets->locks,
        .memory = uprof_linux_memory(search->kernel, search->mem),
        .stack_bytes = links->stack_bytes,
    };
    lock->kind = kind;
    if (find_kind(&finder, kind, task, stack, lock) &&
        uprof_task_stack_is_same(search->kernel, search->mem, task))
        return true;
    *lock = (UprofTaskLock){ 0 };
    return false;
}
