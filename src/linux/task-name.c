/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Linux, fs/proc/array.c (proc_task_name()), kernel/workqueue.c (wq_worker_comm()),
 * kernel/kthread.c.
 */
#include "task-name-priv.h"

#include "current-task-priv.h"
#include "uprof/text.h"

#include <string.h>

enum {
    WORKER = 0x20,   /* Linux, include/linux/sched.h, PF_WQ_WORKER */
    TEXT_BYTES = 24, /* Linux, include/linux/workqueue.h, WORKER_DESC_LEN and WQ_NAME_LEN */
};

static const char rescuer_prefix[] = "kworker/R-";

/* Cuts @raw at its first NUL, and makes the rest safe to print. @size, @room: bytes of @raw, of
 * @text */
static void
set_text(char *text, size_t room, const char *raw, size_t size)
{
    g_autofree char *clean = uprof_text_quote_slice((UprofSlice){ raw, strnlen(raw, size) });

    g_strlcpy(text, clean, room);
    /* a cut in the middle of a character */
    const char *end;
    if (!g_utf8_validate(text, -1, &end))
        text[end - text] = '\0';
}

static void
set_name(UprofTask *task, const char *raw, size_t size)
{
    set_text(task->name, sizeof(task->name), raw, size);
}

/*
 * Reads up to @size bytes of text; a text may end right before an unmapped page.
 * @text: (out): filled with NUL. Returns: false if nothing can be read
 */
static bool
read_text(const UprofKernelMemory *memory, uint64_t gva, char *text, size_t size)
{
    const size_t left = UPROF_PAGE_BYTES - gva % UPROF_PAGE_BYTES;

    memset(text, 0, size);
    return uprof_kernel_read_now(memory, gva, text, size) ||
           (left < size && uprof_kernel_read_now(memory, gva, text, left));
}

void
uprof_task_name_read_text(const UprofKernelMemory *memory, uint64_t gva, char *text, size_t size)
{
    g_autofree char *raw = g_malloc(size);

    text[0] = '\0';
    if (read_text(memory, gva, raw, size))
        set_text(text, size, raw, size);
}

static bool
read_member(const UprofKernelMemory *memory, uint64_t structure, uint64_t offset, uint64_t *word)
{
    return structure >= UPROF_UPPER_HALF && offset != UPROF_TASK_NO_MEMBER &&
           uprof_kernel_read_word_now(memory, structure + offset, word);
}

/* A rescuer has the name of its queue, which its own name may have in part only. */
static bool
name_rescuer(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory, uint64_t worker,
             UprofTask *task)
{
    char text[sizeof(rescuer_prefix) - 1 + TEXT_BYTES];
    const size_t prefix = sizeof(rescuer_prefix) - 1;
    uint64_t queue;

    if (!g_str_has_prefix(task->name, rescuer_prefix) ||
        !read_member(memory, worker, offsets->worker_queue, &queue) || queue < UPROF_UPPER_HALF ||
        offsets->queue_name == UPROF_TASK_NO_MEMBER ||
        !read_text(memory, queue + offsets->queue_name, text + prefix, TEXT_BYTES))
        return false;
    memcpy(text, rescuer_prefix, prefix);
    set_name(task, text, sizeof(text));
    return true;
}

/* Adds the queue for which a worker works ("+"), or has worked last ("-"). */
static void
name_worker(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory, uint64_t worker,
            UprofTask *task)
{
    char text[TEXT_BYTES], whole[UPROF_TASK_NAME_BYTES + TEXT_BYTES];
    uint64_t pool, work;

    if (name_rescuer(offsets, memory, worker, task) ||
        !read_member(memory, worker, offsets->worker_pool, &pool) || pool == 0 ||
        !read_member(memory, worker, offsets->worker_work, &work) ||
        offsets->worker_text == UPROF_TASK_NO_MEMBER ||
        !read_text(memory, worker + offsets->worker_text, text, sizeof(text)) || text[0] == '\0')
        return;
    g_snprintf(whole, sizeof(whole), "%s%c%.*s", task->name, work != 0 ? '+' : '-', TEXT_BYTES,
               text);
    set_name(task, whole, sizeof(whole));
}

/* Does the thread still have the structure that its name comes from? */
static bool
is_same_thread(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory,
               const UprofTask *task, uint64_t thread)
{
    uint64_t now;

    return uprof_kernel_read_word_now(memory, task->address + offsets->worker, &now) &&
           now == thread;
}

void
uprof_task_name_read(const UprofTaskOffsets *offsets, const UprofKernelMemory *memory,
                     const UprofTaskBytes *bytes, UprofTask *task)
{
    const uint8_t *comm =
        uprof_task_bytes_at(offsets, bytes, offsets->comm, UPROF_LINUX_NAME_BYTES);
    const uint64_t thread =
        uprof_task_bytes_word(offsets, bytes, offsets->worker, sizeof(uint64_t));
    const bool is_worker =
        uprof_task_bytes_word(offsets, bytes, offsets->flags, sizeof(uint32_t)) & WORKER;
    char text[UPROF_TASK_NAME_BYTES];
    uint64_t at;

    if (uprof_linux_task_is_named((const char *)comm))
        memcpy(task->comm, comm, sizeof(task->comm));
    set_name(task, (const char *)comm, UPROF_LINUX_NAME_BYTES);
    if (!task->is_kernel || thread < UPROF_UPPER_HALF)
        return;
    if (is_worker && read_member(memory, thread, offsets->thread_data, &at))
        name_worker(offsets, memory, at, task);
    else if (!is_worker && read_member(memory, thread, offsets->thread_name, &at) &&
             at >= UPROF_UPPER_HALF && read_text(memory, at, text, sizeof(text)))
        set_name(task, text, sizeof(text));
    if (!is_same_thread(offsets, memory, task, thread))
        set_name(task, (const char *)comm, UPROF_LINUX_NAME_BYTES);
}
