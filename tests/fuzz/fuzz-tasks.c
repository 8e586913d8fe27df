/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tasks and the log of a Linux guest with some changed words. An input is changes of 11 bytes.
 * A change is 16 bits, the number of the word in memory; a byte; and a value of 64 bits. Bits 0 and
 * 1 of the byte say how the value is used. The other bits are the number of the read before which
 * the word changes. The reads of the guest are slow if the number of changes is odd.
 */
#include "fuzz.h"

#include <string.h>

#include "linux-guest.h"
#include "tasks-guest.h"
#include "uprof/kernel-log.h"
#include "uprof/task-lock.h"

/* The first input also makes the guest. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 3000,
        .us_per_kib = 5 * 1000,
        .base_kib = 32 * 1024,
        .bytes_per_byte = 256,
        .n_mutations = 40,
    };
}

enum {
    CHANGE_BYTES = 11,
    CHANGES_MAX = 64,
    SEARCHES_MAX = 20, /* for locks */
    READS_MAX = 2 * UPROF_TASK_LIST_MAX + 100 * 1000 + SEARCHES_MAX * 20 * 1000,
};

enum { SET, ADD, POINT, XOR, HOW = 3 };

/* The changes, and the reads so far. */
typedef struct {
    LinuxGuest *guest; /* borrowed */
    UprofSlice changes;
    unsigned n_reads;
} Input;

static uint64_t
read_number(const uint8_t *data, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++)
        number |= (uint64_t)data[i] << 8 * i;
    return number;
}

static void
change_word(LinuxGuest *guest, const uint8_t *change)
{
    const uint64_t gpa = 8 * read_number(change, 2), value = read_number(change + 3, 8);

    if (gpa + 8 > guest->memory->ram_len)
        return;
    const uint64_t before = linux_guest_get(guest, gpa);
    linux_guest_put(guest, gpa,
                    (change[2] & HOW) == SET     ? value
                    : (change[2] & HOW) == ADD   ? before + value
                    : (change[2] & HOW) == POINT ? LINUX_DIRECT + value
                                                 : before ^ value);
}

static void
change_words(MemoryGuest *memory, MemoryCall call, gint n)
{
    Input *input = memory->hook_data;
    const uint8_t *changes = input->changes.data;
    const size_t n_changes = MIN(input->changes.len / CHANGE_BYTES, (size_t)CHANGES_MAX);

    if (call != MEMORY_READ)
        return;
    for (size_t i = 0; i < n_changes; i++)
        if (changes[i * CHANGE_BYTES + 2] >> 2 == input->n_reads)
            change_word(input->guest, changes + i * CHANGE_BYTES);
    g_assert(++input->n_reads < READS_MAX);
}

static void
check_name(const char *name)
{
    g_assert(strlen(name) < UPROF_TASK_NAME_BYTES && g_utf8_validate(name, -1, NULL));
    for (const char *c = name; *c; c++)
        g_assert((uint8_t)*c >= ' ' && *c != 0x7f);
}

static void
check_stack(const LinuxView *view, UprofTask *task)
{
    g_autofree UprofTaskStack *stack = g_new0(UprofTaskStack, 1);

    uprof_task_stacks_end(uprof_task_stacks_begin(view->kernel, view->mem, task, stack, 1));
    uprof_task_stack_is_same(view->kernel, view->mem, task);
    uprof_task_stack_state_name(stack->state);
    if (stack->state != UPROF_TASK_STACK_COPIED)
        return;
    g_assert(stack->len <= UPROF_TASK_STACK_BYTES_MAX && stack->gva >= task->stack);
    g_assert(stack->regs.sp > stack->gva && stack->regs.sp - stack->gva <= stack->len);
    uprof_task_stack_syscall_name(view->kernel, stack);
    uprof_task_stack_make_snapshot(view->kernel, task, stack, view->snapshot);
}

static void
check_lock(const UprofTaskLockSearch *search, const UprofTask *task, const UprofTaskStack *stack,
           UprofTaskLockKind kind)
{
    UprofTaskLock lock;

    if (!uprof_task_lock_find(search, kind, task, stack, &lock)) {
        g_assert(lock.kind == UPROF_TASK_LOCK_NONE && lock.owner == 0);
        return;
    }
    g_assert(lock.kind == kind && lock.address >= UPROF_UPPER_HALF);
    g_assert(lock.owner == 0 || uprof_task_lock_task(search, lock.owner));
    check_name(lock.type);
    check_name(lock.device);
}

/* Searches each kind of lock on the stacks of the first tasks. */
static void
check_locks(const LinuxView *view, const UprofTaskList *list)
{
    g_autoptr(GArray) all = g_array_copy(list->tasks);
    const UprofTaskLockSearch search = { view->kernel, view->mem, all };
    g_autofree UprofTaskStack *stack = g_new0(UprofTaskStack, 1);
    unsigned n = 0;

    uprof_task_lock_sort(all);
    for (guint i = 0; i < list->tasks->len && n < SEARCHES_MAX; i++) {
        UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        uprof_task_stacks_end(uprof_task_stacks_begin(view->kernel, view->mem, task, stack, 1));
        for (unsigned kind = UPROF_TASK_LOCK_MUTEX;
             kind <= UPROF_TASK_LOCK_PER_CPU && stack->state == UPROF_TASK_STACK_COPIED;
             kind++, n++)
            check_lock(&search, task, stack, (UprofTaskLockKind)kind);
    }
}

static void
check_list(const LinuxView *view, const UprofTaskList *list)
{
    g_autoptr(GHashTable) addresses = g_hash_table_new(g_int64_hash, g_int64_equal);

    g_assert(list->tasks->len <= UPROF_TASK_LIST_MAX);
    for (guint i = 0; i < list->tasks->len; i++) {
        UprofTask *task = &g_array_index(list->tasks, UprofTask, i);
        g_assert(task->id > 0 && task->process > 0);
        g_assert(g_hash_table_add(addresses, &task->address));
        check_name(task->name);
        uprof_task_state_name(task->state);
        check_stack(view, task);
    }
}

static void
check_log(const LinuxView *view)
{
    enum { MOST = 64 * 1024 };
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKernelLog) log = uprof_kernel_log_read(view->kernel, view->mem, &error);
    g_autoptr(GString) text = g_string_new(NULL);
    UprofKernelTrouble trouble;

    check_answer(log != NULL, error);
    if (!log)
        return;
    uprof_kernel_log_append_text(text, log, MOST);
    uprof_kernel_log_append_json(text, log, MOST);
    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
    for (size_t i = 0; i < text->len; i++)
        g_assert((uint8_t)text->str[i] >= ' ' || text->str[i] == '\n');
    if (uprof_kernel_log_find_trouble(log, &trouble))
        g_assert(trouble.what && trouble.record->text.data);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static LinuxGuest *guest;
    static uint8_t *ram;
    g_autoptr(GError) error = NULL;

    if (!guest) {
        guest = tasks_guest_new(NULL);
        ram = g_memdup2(guest->memory->ram, guest->memory->ram_len);
    }
    memcpy(guest->memory->ram, ram, guest->memory->ram_len);
    guest->memory->base.slow_reads = size / CHANGE_BYTES % 2 == 1;
    g_autoptr(LinuxView) view = linux_view_new(guest);
    Input input = { .guest = guest, .changes = { data, size } };
    uprof_linux_want_tasks(view->kernel);
    linux_view_sample(view, 0);
    guest->memory->hook_data = &input;
    guest->memory->hook = change_words;
    g_autoptr(UprofTaskList) list =
        uprof_task_list_read(view->kernel, view->mem, LINUX_LIST_NS, &error);
    check_answer(list != NULL, error);
    if (list) {
        check_list(view, list);
        check_locks(view, list);
    }
    check_log(view);
    guest->memory->hook = NULL;
}
