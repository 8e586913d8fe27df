/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "uprof/task-lock.h"

enum {
    WAITERS = 3, /* tasks that wait for the lock; nginx is the owner */
    STACK_WORDS = 32,
    WAITER_WORD = 4, /* of a stack: where the waiter is */
    POINTER_WORD = 20,
    MORE_BYTES = 512 * 1024,
    RING_MAX = 4096, /* waiters of a lock: see task-lock.c */
};

#define RETURN (LINUX_IMAGE + 0x58)

typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    uint64_t lock;             /* guest-physical */
    uint64_t tasks[WAITERS];   /* guest-physical */
    uint64_t waiters[WAITERS]; /* guest-physical */
    uint64_t stacks[WAITERS];  /* guest-physical: first words above the frames */
    GArray *all;
    UprofTaskLockSearch search;
    UprofTaskLock found;
    uint64_t endless[2]; /* guest-physical: nodes of the ring of turn_ring() */
    unsigned n_reads;    /* in turn_ring() */
} Setup;

/* Three tasks wait in the ring whose head is at @head in a structure of @bytes. */
static void
setup_plan(Setup *setup, const LinuxPlan *plan, size_t bytes, uint64_t head)
{
    const uint64_t words[STACK_WORDS] = { 0 };

    setup->n_reads = 0;
    setup->guest = linux_guest_new(plan);
    setup->lock = linux_guest_alloc(setup->guest, bytes, 64);
    for (unsigned i = 0; i < WAITERS; i++) {
        setup->tasks[i] = linux_guest_add_task(setup->guest, "waiter", 10 + i, setup->guest->mm);
        linux_guest_list_task(setup->guest, setup->tasks[i], 0);
        memory_guest_put_u32(setup->guest->memory, setup->tasks[i] + TASK_STATE, 2);
        setup->stacks[i] =
            linux_guest_add_stack(setup->guest, setup->tasks[i], RETURN, words, STACK_WORDS) -
            STACK_WORDS * 8;
        setup->waiters[i] = setup->stacks[i] + WAITER_WORD * 8;
        linux_guest_add_waiter(setup->guest, setup->waiters[i], setup->tasks[i],
                               setup->lock + head);
    }
    setup->view = linux_view_new(setup->guest);
    uprof_linux_want_tasks(setup->view->kernel);
    linux_view_sample(setup->view, 0);
    g_autoptr(UprofTaskList) list =
        uprof_task_list_read(setup->view->kernel, setup->view->mem, LINUX_LIST_NS, NULL);
    setup->all = g_array_ref(list->tasks);
    g_assert_cmpuint(setup->all->len, ==, 1 + WAITERS);
    uprof_task_lock_sort(setup->all);
    setup->search = (UprofTaskLockSearch){ setup->view->kernel, setup->view->mem, setup->all };
}

static void
setup_init(Setup *setup)
{
    const LinuxPlan plan = { .lists_tasks = true, .more_bytes = MORE_BYTES };

    setup_plan(setup, &plan, LOCK_BYTES, LOCK_HEAD);
}

static void
setup_clear(Setup *setup)
{
    g_array_unref(setup->all);
    linux_view_free(setup->view);
    linux_guest_free(setup->guest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Setup, setup_clear)

static void
put_owner(Setup *setup, uint64_t task, uint64_t flags)
{
    linux_guest_put(setup->guest, setup->lock + LOCK_OWNER, LINUX_DIRECT + task + flags);
}

/* Copies the stack of the waiter number @i. @hook: (nullable): of the reads of the search. */
static bool
search(Setup *setup, UprofTaskLockKind kind, unsigned i,
       void (*hook)(MemoryGuest *memory, MemoryCall call, gint n))
{
    g_autofree UprofTaskStack *stack = g_new0(UprofTaskStack, 1);
    UprofTask task = *uprof_task_lock_task(&setup->search, LINUX_DIRECT + setup->tasks[i]);

    uprof_task_stacks_end(
        uprof_task_stacks_begin(setup->view->kernel, setup->view->mem, &task, stack, 1));
    g_assert_cmpint(stack->state, ==, UPROF_TASK_STACK_COPIED);
    setup->guest->memory->hook_data = setup;
    setup->guest->memory->hook = hook;
    const bool is_found = uprof_task_lock_find(&setup->search, kind, &task, stack, &setup->found);
    setup->guest->memory->hook = NULL;
    g_assert_cmpint(is_found, ==, setup->found.kind != UPROF_TASK_LOCK_NONE);
    return is_found;
}

static bool
find(Setup *setup, UprofTaskLockKind kind)
{
    return search(setup, kind, 1, NULL);
}

static void
assert_holder(Setup *setup, UprofTaskLockKind kind, UprofTaskLockHolder holder, uint64_t owner)
{
    for (unsigned i = 0; i < WAITERS; i++) {
        g_assert_true(search(setup, kind, i, NULL));
        g_assert_cmpint(setup->found.kind, ==, kind);
        g_assert_cmphex(setup->found.address, ==, LINUX_DIRECT + setup->lock);
        g_assert_cmpint(setup->found.holder, ==, holder);
        g_assert_cmphex(setup->found.owner, ==, owner ? LINUX_DIRECT + owner : 0);
    }
}

static void
test_kinds(void)
{
    static const struct {
        const char *function, *name;
    } kinds[] = {
        { "__mutex_lock.constprop.0_[k]", "mutex" },
        { "__mutex_lock_slowpath_[k]", "mutex" },
        { "rwsem_down_read_slowpath_[k]", "rwsem-read" },
        { "rwsem_down_write_slowpath_[k]", "rwsem-write" },
        { "rt_mutex_slowlock_block.constprop.0_[k]", "rt-mutex" },
        { "percpu_rwsem_wait_[k]", "percpu-rwsem" },
        { "mutex_unlock_[k]", "none" },
        { "", "none" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_assert_cmpstr(uprof_task_lock_kind_name(uprof_task_lock_kind(kinds[i].function)), ==,
                        kinds[i].name);
}

static void
test_mutex(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    /* all flags of the owner */
    put_owner(&setup, setup.guest->task, 7);
    assert_holder(&setup, UPROF_TASK_LOCK_MUTEX, UPROF_TASK_LOCK_HELD, setup.guest->task);
    g_assert_cmpuint(setup.found.n_waiters, ==, WAITERS);
    linux_guest_put(setup.guest, setup.lock + LOCK_OWNER, 1);
    assert_holder(&setup, UPROF_TASK_LOCK_MUTEX, UPROF_TASK_LOCK_RELEASED, 0);
    put_owner(&setup, setup.guest->task + 8, 0);
    assert_holder(&setup, UPROF_TASK_LOCK_MUTEX, UPROF_TASK_LOCK_UNKNOWN, 0);
    linux_guest_put(setup.guest, setup.lock + LOCK_OWNER, UINT64_MAX);
    assert_holder(&setup, UPROF_TASK_LOCK_MUTEX, UPROF_TASK_LOCK_UNKNOWN, 0);
}

static void
test_semaphore(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    put_owner(&setup, setup.guest->task, 0);
    linux_guest_put(setup.guest, setup.lock + LOCK_COUNT, 3);
    assert_holder(&setup, UPROF_TASK_LOCK_WRITE, UPROF_TASK_LOCK_HELD, setup.guest->task);
    assert_holder(&setup, UPROF_TASK_LOCK_READ, UPROF_TASK_LOCK_HELD, setup.guest->task);
    /* the bit for readers that found no room does not count */
    put_owner(&setup, setup.guest->task, 3);
    linux_guest_put(setup.guest, setup.lock + LOCK_COUNT, UINT64_C(1) << 63 | 5 << 8 | 2);
    assert_holder(&setup, UPROF_TASK_LOCK_WRITE, UPROF_TASK_LOCK_READERS, setup.guest->task);
    g_assert_cmpuint(setup.found.n_readers, ==, 5);
    /* the last reader has ended */
    put_owner(&setup, setup.guest->task + 0x1000, 3);
    assert_holder(&setup, UPROF_TASK_LOCK_WRITE, UPROF_TASK_LOCK_READERS, 0);
    /* the last reader has left, and nobody has come yet */
    put_owner(&setup, setup.guest->task, 3);
    linux_guest_put(setup.guest, setup.lock + LOCK_COUNT, 2);
    assert_holder(&setup, UPROF_TASK_LOCK_WRITE, UPROF_TASK_LOCK_RELEASED, 0);
    put_owner(&setup, setup.guest->task, 0);
    assert_holder(&setup, UPROF_TASK_LOCK_WRITE, UPROF_TASK_LOCK_RELEASED, 0);
}

static void
test_futex(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    const uint64_t waiter = setup.stacks[1];
    linux_guest_put(setup.guest, setup.tasks[1] + TASK_BLOCKED, LINUX_DIRECT + waiter);
    linux_guest_put(setup.guest, waiter + FUTEX_TASK, LINUX_DIRECT + setup.tasks[1]);
    linux_guest_put(setup.guest, waiter + FUTEX_LOCK, LINUX_DIRECT + setup.lock);
    linux_guest_put(setup.guest, setup.lock + FUTEX_OWNER, LINUX_DIRECT + setup.guest->task + 1);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_FUTEX));
    g_assert_cmphex(setup.found.address, ==, LINUX_DIRECT + setup.lock);
    g_assert_cmphex(setup.found.owner, ==, LINUX_DIRECT + setup.guest->task);
    /* a waiter of another task, or on another stack */
    linux_guest_put(setup.guest, waiter + FUTEX_TASK, LINUX_DIRECT + setup.tasks[0]);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_FUTEX));
    linux_guest_put(setup.guest, waiter + FUTEX_TASK, LINUX_DIRECT + setup.tasks[1]);
    linux_guest_put(setup.guest, setup.tasks[1] + TASK_BLOCKED, LINUX_DIRECT + setup.stacks[0]);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_FUTEX));
    linux_guest_put(setup.guest, setup.tasks[1] + TASK_BLOCKED, 0);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_FUTEX));
}

/* The waiters are in the ring of the last level of freezing. */
static void
init_block(Setup *setup)
{
    const LinuxPlan plan = { .lists_tasks = true, .more_bytes = MORE_BYTES };
    const uint64_t level = BLOCK_LEVELS + 2 * PER_CPU_BYTES;

    setup_plan(setup, &plan, BLOCK_BYTES, level + PER_CPU_HEAD);
    const uint64_t type = linux_guest_alloc(setup->guest, 0x40, 64);
    linux_guest_put(setup->guest, setup->lock + BLOCK_TYPE, LINUX_DIRECT + type);
    linux_guest_put(setup->guest, type + TYPE_NAME, LINUX_DIRECT + type + 0x20);
    linux_guest_put_text(setup->guest, type + 0x20, "ext4");
    linux_guest_put_text(setup->guest, setup->lock + BLOCK_DEVICE,
                         "ram\x1b"
                         "0");
    linux_guest_put(setup->guest, setup->lock + BLOCK_FROZEN, 4);
}

static void
test_frozen(void)
{
    g_auto(Setup) setup;

    init_block(&setup);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_PER_CPU));
    g_assert_cmphex(setup.found.address, ==,
                    LINUX_DIRECT + setup.lock + BLOCK_LEVELS + 2 * PER_CPU_BYTES);
    g_assert_cmpint(setup.found.holder, ==, UPROF_TASK_LOCK_UNTOLD);
    g_assert_cmpuint(setup.found.n_waiters, ==, WAITERS);
    g_assert_cmpstr(setup.found.type, ==, "ext4");
    g_assert_cmpstr(setup.found.device, ==, "ram?0");
    /* the semaphore belongs to no file system, or the file system is not frozen */
    static const uint64_t states[] = { 0, 5, 0xffff };
    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        linux_guest_put(setup.guest, setup.lock + BLOCK_FROZEN, states[i]);
        g_assert_true(find(&setup, UPROF_TASK_LOCK_PER_CPU));
        g_assert_cmpstr(setup.found.type, ==, "");
    }
    linux_guest_put(setup.guest, setup.lock + BLOCK_FROZEN, 4);
    linux_guest_put(setup.guest, setup.lock + BLOCK_TYPE, 0x1000);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_PER_CPU));
    g_assert_cmpstr(setup.found.type, ==, "");
}

/* A ring without a head: the stack has a pointer to the lock. */
static void
test_first_waiter(void)
{
    const LinuxPlan plan = { .lists_tasks = true,
                             .more_bytes = MORE_BYTES,
                             .has_first_waiter = true };
    g_auto(Setup) setup;

    setup_plan(&setup, &plan, 2 * LOCK_BYTES, LOCK_HEAD);
    const uint64_t first = LINUX_DIRECT + setup.waiters[0];
    put_owner(&setup, setup.guest->task, 1);
    linux_guest_put(setup.guest, first - LINUX_DIRECT + WAITER_NODE + 8,
                    LINUX_DIRECT + setup.waiters[2] + WAITER_NODE);
    linux_guest_put(setup.guest, setup.waiters[2] + WAITER_NODE, first + WAITER_NODE);
    linux_guest_put(setup.guest, setup.lock + LOCK_HEAD, first);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
    const uint64_t word = setup.stacks[1] + POINTER_WORD * 8;
    linux_guest_put(setup.guest, word, LINUX_DIRECT + setup.lock);
    linux_guest_put(setup.guest, word + 8, LINUX_DIRECT + setup.lock);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_MUTEX));
    g_assert_cmphex(setup.found.address, ==, LINUX_DIRECT + setup.lock);
    g_assert_cmphex(setup.found.owner, ==, LINUX_DIRECT + setup.guest->task);
    /* two locks that point to the ring; then the other one has no owner */
    const uint64_t other = setup.lock + LOCK_BYTES;
    linux_guest_put(setup.guest, other + LOCK_HEAD, first);
    linux_guest_put(setup.guest, other + LOCK_OWNER, LINUX_DIRECT + setup.guest->task);
    linux_guest_put(setup.guest, word + 16, LINUX_DIRECT + other);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
    linux_guest_put(setup.guest, other + LOCK_OWNER, LINUX_DIRECT + setup.lock);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_MUTEX));
    /* a lock that points to no waiter of the ring */
    linux_guest_put(setup.guest, setup.lock + LOCK_HEAD, first + 8);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
}

/* Each word of the ring is wrong once. */
static void
test_links(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    put_owner(&setup, setup.guest->task, 0);
    g_assert_true(find(&setup, UPROF_TASK_LOCK_MUTEX));
    const uint64_t nodes[] = { setup.lock + LOCK_HEAD, setup.waiters[0] + WAITER_NODE,
                               setup.waiters[1] + WAITER_NODE, setup.waiters[2] + WAITER_NODE };
    const uint64_t lies[] = { 0,
                              8,
                              UINT64_MAX,
                              UINT64_MAX - 7,
                              UINT64_C(0xdead000000000122),
                              LINUX_DIRECT,
                              LINUX_DIRECT + setup.guest->task,
                              LINUX_DIRECT + nodes[0] + 8,
                              LINUX_DIRECT + setup.guest->memory->ram_len - 8 };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(nodes); i++)
        for (size_t k = 0; k < G_N_ELEMENTS(lies); k++) {
            const uint64_t at = nodes[i / 2] + i % 2 * 8, word = linux_guest_get(setup.guest, at);
            linux_guest_put(setup.guest, at, lies[k]);
            g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
            linux_guest_put(setup.guest, at, word);
        }
    g_assert_true(find(&setup, UPROF_TASK_LOCK_MUTEX));
}

/* Rings that never come back to the waiter, that have two heads, or only strange tasks. */
static void
test_rings(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    put_owner(&setup, setup.guest->task, 0);
    /* the waiter of another task is a second head */
    linux_guest_put(setup.guest, setup.waiters[0] + WAITER_TASK, LINUX_DIRECT + setup.tasks[2]);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
    linux_guest_put(setup.guest, setup.waiters[0] + WAITER_TASK, LINUX_DIRECT + setup.tasks[0]);
    /* a node that points to itself in both directions */
    const uint64_t last = setup.waiters[2] + WAITER_NODE;
    linux_guest_put(setup.guest, last, LINUX_DIRECT + last);
    linux_guest_put(setup.guest, last + 8, LINUX_DIRECT + last);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
    /* a waiter that is alone, without a lock */
    const uint64_t own = setup.waiters[1] + WAITER_NODE;
    linux_guest_put(setup.guest, own, LINUX_DIRECT + own);
    linux_guest_put(setup.guest, own + 8, LINUX_DIRECT + own);
    g_assert_false(find(&setup, UPROF_TASK_LOCK_MUTEX));
}

/*
 * The waiter number 1 is in a ring without an end: two waiters on the stack of its task follow each
 * other. The guest changes the first one's pointer back, so that each link leads back when it is
 * read.
 */
static void
turn_ring(MemoryGuest *memory, MemoryCall call, gint n)
{
    enum { TURNS = RING_MAX + 1 }; /* the search reads so often before it starts again */
    Setup *setup = memory->hook_data;

    if (call == MEMORY_READ)
        linux_guest_put(setup->guest, setup->endless[0] + 8,
                        LINUX_DIRECT + (setup->n_reads++ % TURNS == 1
                                            ? setup->waiters[1] + WAITER_NODE
                                            : setup->endless[1]));
}

/* A stack full of waiters in a ring without an end costs a bounded number of reads. */
static void
test_bound(void)
{
    enum { FIRST_WORD = 10, EACH = 6 };
    g_auto(Setup) setup;

    setup_init(&setup);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t waiter = setup.stacks[1] + (FIRST_WORD + i * EACH) * 8;
        setup.endless[i] = waiter + WAITER_NODE;
        linux_guest_put(setup.guest, waiter + WAITER_TASK, LINUX_DIRECT + setup.tasks[1]);
    }
    linux_guest_put(setup.guest, setup.waiters[1] + WAITER_NODE, LINUX_DIRECT + setup.endless[0]);
    linux_guest_put(setup.guest, setup.endless[0], LINUX_DIRECT + setup.endless[1]);
    linux_guest_put(setup.guest, setup.endless[1], LINUX_DIRECT + setup.endless[0]);
    linux_guest_put(setup.guest, setup.endless[1] + 8, LINUX_DIRECT + setup.endless[0]);
    g_assert_false(search(&setup, UPROF_TASK_LOCK_MUTEX, 1, turn_ring));
    g_assert_cmpuint(setup.n_reads, >, 3 * RING_MAX);
    g_assert_cmpuint(setup.n_reads, <, 5 * RING_MAX);
}

/* The task runs while its lock is searched. */
static void
run_task(MemoryGuest *memory, MemoryCall call, gint n)
{
    const Setup *setup = memory->hook_data;

    if (call == MEMORY_READ)
        memory_guest_put_u64(memory, setup->tasks[1] + TASK_SWITCHES, (uint64_t)n);
}

static void
test_changes(void)
{
    g_auto(Setup) setup;

    setup_init(&setup);
    put_owner(&setup, setup.guest->task, 0);
    g_assert_false(search(&setup, UPROF_TASK_LOCK_MUTEX, 1, run_task));
    g_assert_true(search(&setup, UPROF_TASK_LOCK_MUTEX, 0, run_task));
    g_assert_false(find(&setup, UPROF_TASK_LOCK_NONE));
}

static void
test_missing(void)
{
    static const struct {
        const char *member, *missing;
    } cases[] = {
        { "wait_list", "which mutex it waits for (wait_list)" },
        { "pi_blocked_on", "which PI futex it waits for (pi_blocked_on)" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const LinuxPlan plan = { .lists_tasks = true,
                                 .more_bytes = MORE_BYTES,
                                 .no_member = cases[i].member };
        g_auto(Setup) setup;
        setup_plan(&setup, &plan, LOCK_BYTES, LOCK_HEAD);
        g_autoptr(UprofTaskList) list =
            uprof_task_list_read(setup.view->kernel, setup.view->mem, LINUX_LIST_NS, NULL);
        g_assert_cmpstr(list->missing, ==, cases[i].missing);
        g_assert_cmpint(find(&setup, UPROF_TASK_LOCK_MUTEX), ==, i == 1);
        g_assert_false(find(&setup, UPROF_TASK_LOCK_FUTEX));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linux/task-lock/kinds", test_kinds);
    g_test_add_func("/linux/task-lock/mutex", test_mutex);
    g_test_add_func("/linux/task-lock/semaphore", test_semaphore);
    g_test_add_func("/linux/task-lock/futex", test_futex);
    g_test_add_func("/linux/task-lock/frozen", test_frozen);
    g_test_add_func("/linux/task-lock/first-waiter", test_first_waiter);
    g_test_add_func("/linux/task-lock/links", test_links);
    g_test_add_func("/linux/task-lock/rings", test_rings);
    g_test_add_func("/linux/task-lock/bound", test_bound);
    g_test_add_func("/linux/task-lock/changes", test_changes);
    g_test_add_func("/linux/task-lock/missing", test_missing);
    return g_test_run();
}
