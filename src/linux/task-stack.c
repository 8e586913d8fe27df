/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Linux, arch/x86/include/asm/switch_to.h and arch/x86/kernel/process.c: a task that leaves its CPU
 * pushes a frame, and saves its stack pointer. The registers of user space are at the end of the
 * stack. Linux, arch/arm64/kernel/process.c and entry.S: on aarch64 the task_struct gets the
 * registers.
 */
#include "uprof/task-stack.h"

#include "kernel-priv.h"
#include "task-fill-priv.h"
#include "task-name-priv.h"

#include <string.h>

enum {
    WORD = 8,
    DEAD = 0x80, /* Linux, include/linux/sched.h, TASK_DEAD */
    PIECES = UPROF_TASK_PARTS_MAX + 1,
    TASK_STEP = 1, /* the step in which a task_struct is read: behind its stack */
};

/* The input of each copy; all pointers are borrowed. */
typedef struct {
    const UprofLinux *kernel;
    const UprofTaskOffsets *offsets;
    const UprofLinks *links;
    UprofKernelMemory memory;
} Copier;

/* Stacks whose copies one read of the guest makes. */
struct _UprofTaskCopying {
    Copier copier;
    UprofTask *tasks;       /* borrowed */
    UprofTaskStack *stacks; /* borrowed */
    unsigned n;
    unsigned n_begun;      /* of the first of them the copies have begun ... */
    unsigned n_pieces;     /* ... with so many pieces; 0: nothing is read */
    UprofTaskBytes *bytes; /* owned; by stack */
    bool is_wanted[UPROF_TASK_STACKS_MAX];
    unsigned first[UPROF_TASK_STACKS_MAX]; /* piece of each wanted stack */
    UprofMemPiece pieces[UPROF_MEM_PIECES_MAX];
};

const char *
uprof_task_stack_state_name(UprofTaskStackState state)
{
    static const char *const names[] = {
        [UPROF_TASK_STACK_COPIED] = "copied",
        [UPROF_TASK_STACK_NEW] = "has never run",
        [UPROF_TASK_STACK_RUNS] = "runs: see dump without --tasks",
        [UPROF_TASK_STACK_NONE] = "has ended",
        [UPROF_TASK_STACK_CHANGED] = "changed while it was read",
        [UPROF_TASK_STACK_UNKNOWN] = "its stack is not known",
        [UPROF_TASK_STACK_SKIPPED] = "not read, to save time",
    };

    return names[state];
}

static uint64_t
get_word(const UprofTaskStack *stack, uint64_t gva)
{
    uint64_t word;

    g_assert(gva >= stack->gva && gva - stack->gva + sizeof(word) <= stack->len);
    memcpy(&word, stack->bytes + (gva - stack->gva), sizeof(word));
    return GUINT64_FROM_LE(word);
}

static bool
knows_stacks(const Copier *copier)
{
    const UprofTaskOffsets *offsets = copier->offsets;

    return copier->links && offsets->stack != UPROF_TASK_NO_MEMBER &&
           offsets->saved_sp != UPROF_TASK_NO_MEMBER && offsets->frame_pc != UPROF_TASK_NO_MEMBER &&
           offsets->frame_fp != UPROF_TASK_NO_MEMBER &&
           (offsets->frame_bytes == 0 ||
            MAX(offsets->frame_pc, offsets->frame_fp) + WORD <= offsets->frame_bytes) &&
           offsets->frame_bytes <= UPROF_TASK_STACK_BYTES_MAX &&
           copier->links->stack_bytes <= UPROF_TASK_STACK_BYTES_MAX;
}

/* Is the saved stack pointer on the stack of the task, with its frame above? */
static bool
is_on_stack(const Copier *copier, const UprofTask *task)
{
    const uint64_t end = task->stack + copier->links->stack_bytes;

    return task->stack >= UPROF_UPPER_HALF && end > task->stack && task->saved_sp >= task->stack &&
           task->saved_sp < end && task->saved_sp % WORD == 0 &&
           end - task->saved_sp >= copier->offsets->frame_bytes;
}

/* ---- Copying ---- */

/* Are both of one wait? An exec gives the task other memory. */
static bool
is_same_wait(const UprofTask *one, const UprofTask *other)
{
    return one->n_switches == other->n_switches && one->saved_sp == other->saved_sp &&
           one->memory == other->memory;
}

/*
 * Takes all members from the copied task_struct. A thread of the kernel that has not run has its
 * name still; other names need no reads.
 *
 * Returns: true if the task is in the same wait as before
 */
static bool
update_task(const Copier *copier, const UprofTaskBytes *bytes, UprofTask *task)
{
    const UprofTask before = *task;

    uprof_task_fill(copier->offsets, bytes, task);
    const bool is_same = is_same_wait(task, &before);
    if (!is_same || !task->is_kernel)
        uprof_task_name_read(copier->offsets, &copier->memory, bytes, task);
    if (!is_same || task->is_on_cpu)
        task->wait_ns = 0; /* it has left its CPU after the list was read, if at all */
    else
        task->has_wait = before.has_wait && task->has_wait;
    return is_same;
}

/* Is the memory still that task, and has it not ended? */
static bool
is_alive(const Copier *copier, const UprofTaskBytes *bytes, const UprofTask *task)
{
    const UprofTaskOffsets *offsets = copier->offsets;

    return uprof_task_bytes_word(offsets, bytes, offsets->pid, 4) == task->id &&
           uprof_task_bytes_word(offsets, bytes, offsets->start, WORD) == task->began_ns &&
           uprof_task_bytes_word(offsets, bytes, offsets->stack, WORD) == task->stack &&
           uprof_task_bytes_word(offsets, bytes, offsets->exit_state, 4) == 0 &&
           !(uprof_task_bytes_word(offsets, bytes, offsets->state, 4) & DEAD) &&
           (offsets->usage == UPROF_TASK_NO_MEMBER ||
            uprof_task_bytes_word(offsets, bytes, offsets->usage, 4) != 0);
}

/*
 * Lists one read of the guest: the stack first, then the task_struct. The task_struct shows if the
 * task has run while the stack was copied.
 */
static unsigned
list_copy_pieces(const Copier *copier, const UprofTask *task, UprofTaskStack *stack,
                 UprofTaskBytes *bytes, UprofMemPiece *pieces)
{
    stack->gva = task->saved_sp;
    stack->len = (uint32_t)(task->stack + copier->links->stack_bytes - task->saved_sp);
    pieces[0] = (UprofMemPiece){ .gva = stack->gva, .into = stack->bytes, .len = stack->len };
    return 1 + uprof_task_offsets_list_pieces(copier->offsets, task->address, bytes, TASK_STEP,
                                              pieces + 1);
}

/*
 * Tells whether a copy is of one wait.
 * @pieces: of list_copy_pieces(), after they are read
 * @task: (inout): as it was after the copy, if the answer is CHANGED
 */
static UprofTaskStackState
judge_copy(const Copier *copier, const UprofMemPiece *pieces, const UprofTaskBytes *bytes,
           UprofTask *task)
{
    for (unsigned i = 0; i < copier->offsets->n_parts; i++)
        if (pieces[1 + i].is_missing)
            return UPROF_TASK_STACK_UNKNOWN;
    if (!is_alive(copier, bytes, task))
        return UPROF_TASK_STACK_NONE;
    const bool is_same = update_task(copier, bytes, task);
    if (task->is_on_cpu)
        return UPROF_TASK_STACK_RUNS;
    if (task->may_run)
        return UPROF_TASK_STACK_UNKNOWN;
    if (!is_same)
        return UPROF_TASK_STACK_CHANGED;
    return pieces[0].is_missing ? UPROF_TASK_STACK_UNKNOWN : UPROF_TASK_STACK_COPIED;
}

/* Takes registers out of the copied task_struct, if the kernel saves them there. */
static void
take_frame(const Copier *copier, const UprofTaskBytes *bytes, UprofTaskStack *stack)
{
    const UprofTaskOffsets *offsets = copier->offsets;

    if (offsets->frame_bytes > 0)
        return;
    stack->regs.pc = uprof_task_bytes_word(offsets, bytes, offsets->frame_pc, WORD);
    stack->regs.fp = uprof_task_bytes_word(offsets, bytes, offsets->frame_fp, WORD);
}

static UprofTaskStackState
copy_once(const Copier *copier, UprofTask *task, UprofTaskStack *stack)
{
    g_autofree UprofTaskBytes *bytes = g_new(UprofTaskBytes, 1);
    UprofMemPiece pieces[PIECES];
    const unsigned n = list_copy_pieces(copier, task, stack, bytes, pieces);

    uprof_kernel_read_pieces(&copier->memory, pieces, n);
    take_frame(copier, bytes, stack);
    return judge_copy(copier, pieces, bytes, task);
}

/* Begins to copy the stacks from @i on for which there is room in one read. */
static void
begin_copies(UprofTaskCopying *copying, unsigned i)
{
    const Copier *copier = &copying->copier;

    copying->n_pieces = 0;
    for (copying->n_begun = i; copying->n_begun < copying->n; copying->n_begun++) {
        const unsigned k = copying->n_begun;
        if (!copying->is_wanted[k])
            continue;
        if (copying->n_pieces + 1 + copier->offsets->n_parts > UPROF_MEM_PIECES_MAX)
            break;
        copying->first[k] = copying->n_pieces;
        copying->n_pieces +=
            list_copy_pieces(copier, &copying->tasks[k], &copying->stacks[k], &copying->bytes[k],
                             copying->pieces + copying->n_pieces);
    }
    if (copying->n_pieces > 0)
        uprof_kernel_begin_pieces(&copier->memory, copying->pieces, copying->n_pieces);
}

/* Ends what begin_copies() has begun for stacks from @i on. */
static void
end_copies(UprofTaskCopying *copying, unsigned i)
{
    if (copying->n_pieces > 0)
        uprof_kernel_end_pieces(&copying->copier.memory);
    for (; i < copying->n_begun; i++)
        if (copying->is_wanted[i]) {
            take_frame(&copying->copier, &copying->bytes[i], &copying->stacks[i]);
            copying->stacks[i].state =
                judge_copy(&copying->copier, copying->pieces + copying->first[i],
                           &copying->bytes[i], &copying->tasks[i]);
        }
}

/* ---- Registers in the copy ---- */

static void
find_user_regs(const Copier *copier, const UprofTask *task, UprofTaskStack *stack)
{
    const UprofLinuxArch *arch = uprof_linux_arch(copier->kernel);
    const UprofLinuxEntryFrame *entry = arch->entry;
    const UprofLinks *links = copier->links;
    const uint64_t at = task->stack + links->stack_bytes - links->regs_bytes;
    const uint64_t frame = at + entry->frame_word * WORD;

    if (task->is_kernel || task->memory == 0 || links->regs_bytes == 0 || at < stack->gva)
        return;
    const UprofArch *row = uprof_mem_arch(copier->memory.mem);
    const uint64_t mode = get_word(stack, frame + entry->mode_word * WORD);
    stack->has_user = (mode & row->mode_mask) == row->user_mode;
    stack->user_sp = get_word(stack, frame + entry->sp_word * WORD);
    const uint64_t number = get_word(stack, at + arch->syscall_word * WORD);
    stack->syscall = arch->syscall_bytes == WORD ? (int64_t)number : (int32_t)number;
    for (unsigned i = 0; i < entry->n_segments; i++)
        if (entry->segments[i].selector == (uint16_t)mode)
            stack->is_narrow = entry->segments[i].word_bytes != WORD;
}

static bool
is_new(const Copier *copier, uint64_t pc)
{
    const UprofLinuxSymbols *symbols = uprof_linux_symbols(copier->kernel);

    return pc != 0 && (pc == symbols->fork_return || pc == symbols->old_fork_return);
}

static void
find_regs(const Copier *copier, UprofTaskStack *stack)
{
    const UprofTaskOffsets *offsets = copier->offsets;
    const bool is_in_task = offsets->frame_bytes == 0;
    UprofRegs *regs = &stack->regs;
    const uint64_t pc = is_in_task ? regs->pc : get_word(stack, stack->gva + offsets->frame_pc);
    const uint64_t fp = is_in_task ? regs->fp : get_word(stack, stack->gva + offsets->frame_fp);

    *regs = *copier->memory.regs;
    memset(regs->reg, 0, sizeof(regs->reg));
    regs->pc = pc;
    regs->fp = fp;
    regs->sp = stack->gva + offsets->frame_bytes;
    regs->privilege = 0;
    regs->word_bytes = WORD;
    regs->halted = regs->smm = false;
    stack->vcpu = copier->memory.vcpu;
    if (is_new(copier, regs->pc))
        stack->state = UPROF_TASK_STACK_NEW;
}

static Copier
make_copier(const UprofLinux *kernel, UprofMem *mem)
{
    const char *why;

    return (Copier){
        .kernel = kernel,
        .offsets = uprof_linux_task_offsets(kernel, &why),
        .links = uprof_linux_published(kernel),
        .memory = uprof_linux_memory(kernel, mem),
    };
}

/* Returns: false if there is nothing to copy; the stack's state says why */
static bool
begin_stack(const Copier *copier, const UprofTask *task, UprofTaskStack *stack)
{
    memset(stack, 0, G_STRUCT_OFFSET(UprofTaskStack, bytes));
    stack->syscall = -1;
    stack->state = task->is_on_cpu                                 ? UPROF_TASK_STACK_RUNS
                   : task->stack == 0 || strchr("ZX", task->state) ? UPROF_TASK_STACK_NONE
                   : task->has_run                                 ? UPROF_TASK_STACK_CHANGED
                                                                   : UPROF_TASK_STACK_UNKNOWN;
    return stack->state == UPROF_TASK_STACK_UNKNOWN && !task->may_run && copier->offsets &&
           knows_stacks(copier) && is_on_stack(copier, task);
}

/* The stack of a task that has run may be mapped since a time after the page tables were read. */
static void
finish_stack(const Copier *copier, UprofTask *task, UprofTaskStack *stack)
{
    if (stack->state == UPROF_TASK_STACK_CHANGED && !task->has_run && is_on_stack(copier, task)) {
        uprof_mem_forget(copier->memory.mem);
        stack->state = copy_once(copier, task, stack);
    }
    if (stack->state != UPROF_TASK_STACK_COPIED)
        return;
    find_regs(copier, stack);
    find_user_regs(copier, task, stack);
}

static void
free_copying(UprofTaskCopying *copying)
{
    g_free(copying->bytes);
    g_free(copying);
}

UprofTaskCopying *
uprof_task_stacks_begin(const UprofLinux *kernel, UprofMem *mem, UprofTask *tasks,
                        UprofTaskStack *stacks, unsigned n)
{
    UprofTaskCopying *copying = g_new(UprofTaskCopying, 1);

    g_assert(n <= UPROF_TASK_STACKS_MAX);
    copying->copier = make_copier(kernel, mem);
    copying->tasks = tasks;
    copying->stacks = stacks;
    copying->n = n;
    copying->bytes = g_new(UprofTaskBytes, n);
    for (unsigned i = 0; i < n; i++)
        copying->is_wanted[i] = begin_stack(&copying->copier, &tasks[i], &stacks[i]);
    begin_copies(copying, 0);
    return copying;
}

void
uprof_task_stacks_end(UprofTaskCopying *copying)
{
    if (!copying)
        return;
    end_copies(copying, 0);
    while (copying->n_begun < copying->n) {
        const unsigned i = copying->n_begun;
        begin_copies(copying, i);
        end_copies(copying, i);
    }
    for (unsigned i = 0; i < copying->n; i++)
        finish_stack(&copying->copier, &copying->tasks[i], &copying->stacks[i]);
    free_copying(copying);
}

void
uprof_task_stacks_drop(UprofTaskCopying *copying)
{
    if (!copying)
        return;
    if (copying->n_pieces > 0)
        uprof_kernel_end_pieces(&copying->copier.memory);
    free_copying(copying);
}

bool
uprof_task_stack_is_same(const UprofLinux *kernel, UprofMem *mem, const UprofTask *task)
{
    const Copier copier = make_copier(kernel, mem);
    g_autofree UprofTaskBytes *bytes = g_new(UprofTaskBytes, 1);
    UprofMemPiece pieces[PIECES] = { { .len = 0 } };
    UprofTask now = *task;

    if (!copier.offsets)
        return false;
    const unsigned n =
        uprof_task_offsets_list_pieces(copier.offsets, task->address, bytes, TASK_STEP, pieces + 1);
    uprof_kernel_read_pieces(&copier.memory, pieces + 1, n);
    return judge_copy(&copier, pieces, bytes, &now) == UPROF_TASK_STACK_COPIED;
}

/* ---- Using the copy ---- */

bool
uprof_task_stack_is_waiting(const UprofLinux *kernel, uint64_t pc)
{
    const UprofLinuxSymbols *symbols = uprof_linux_symbols(kernel);

    return (pc >= symbols->wait_start && pc < symbols->wait_end) ||
           (pc >= symbols->lock_start && pc < symbols->lock_end);
}

const char *
uprof_task_stack_syscall_name(const UprofLinux *kernel, const UprofTaskStack *stack)
{
    const UprofLinuxArch *arch = uprof_linux_arch(kernel);

    return stack->has_user && !stack->is_narrow && stack->syscall >= 0 &&
                   stack->syscall < arch->n_syscall_names
               ? arch->syscall_names[stack->syscall]
               : NULL;
}

static void
add_number(UprofSnapshot *snapshot, uint64_t gva, uint64_t number, uint32_t len)
{
    const uint64_t bytes = GUINT64_TO_LE(number);

    uprof_snapshot_add_window(snapshot, gva, &bytes, len);
}

void
uprof_task_stack_make_snapshot(const UprofLinux *kernel, const UprofTask *task,
                               const UprofTaskStack *stack, UprofSnapshot *snapshot)
{
    const UprofLinks *links = uprof_linux_published(kernel);
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(kernel);
    char name[UPROF_LINUX_NAME_BYTES] = "";
    const uint64_t time_ns = snapshot->time_ns;
    const uint32_t reset = snapshot->reset;

    uprof_snapshot_clear(snapshot);
    snapshot->time_ns = time_ns;
    snapshot->reset = reset;
    snapshot->weight = snapshot->count = 1;
    snapshot->vcpu = stack->vcpu;
    snapshot->regs = stack->regs;
    uprof_snapshot_add_window(snapshot, stack->gva, stack->bytes, stack->len);
    if (!links || !offsets || stack->vcpu >= links->n_vcpus ||
        links->vcpus[stack->vcpu].task_at == 0)
        return;
    g_strlcpy(name, task->name, sizeof(name));
    add_number(snapshot, links->vcpus[stack->vcpu].task_at, task->address, WORD);
    uprof_snapshot_add_window(snapshot, task->address + offsets->task_comm, name, sizeof(name));
    add_number(snapshot, task->address + offsets->task_pid, task->id, 4);
    add_number(snapshot, task->address + offsets->task_tgid, task->process, 4);
    add_number(snapshot, task->address + offsets->task_mm, task->memory, WORD);
}
