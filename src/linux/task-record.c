/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-record.h"

#include "uprof/capture.h"
#include "uprof/error.h"
#include "uprof/text.h"

#include <string.h>

enum {
    HAS_PARENTS = 1,
    HAS_TIMES = 2,
    HAS_WAITS = 4,
    HAS_LEVELS = 8,
    IS_ON_CPU = 1,
    IS_KERNEL = 2,
    IS_IN_IO = 4,
    HAS_RUN = 8,
    IS_DOUBTFUL = 16,
    HAS_WAIT = 32,
    MAY_RUN = 64,
    MISSING_BYTES_MAX = 4096,
    ROW_BYTES_MAX = 10 * 8 + 6 * 4 + 4 + UPROF_TASK_NAME_BYTES + UPROF_LINUX_NAME_BYTES,
};

G_STATIC_ASSERT((uint64_t)UPROF_TASK_LIST_MAX *ROW_BYTES_MAX + MISSING_BYTES_MAX + 4 <=
                UPROF_CAPTURE_TASKS_BYTES_MAX);

#define WORD(member) G_STRUCT_OFFSET(UprofTask, member)

/* Members, in their order in the record. */
static const size_t words[] = {
    WORD(address),    WORD(began_ns), WORD(user_ns), WORD(system_ns), WORD(wait_ns),
    WORD(n_switches), WORD(memory),   WORD(stack),   WORD(saved_sp),  WORD(cgroup),
};
static const size_t numbers[] = {
    WORD(id), WORD(process), WORD(parent), WORD(inner), WORD(level), WORD(cpu),
};

/* ---- Making ---- */

static void
put_u8(GByteArray *out, unsigned value)
{
    const uint8_t byte = (uint8_t)value;

    g_byte_array_append(out, &byte, 1);
}

static void
put_u16(GByteArray *out, size_t value)
{
    const uint16_t number = GUINT16_TO_LE((uint16_t)value);

    g_byte_array_append(out, (const guint8 *)&number, sizeof(number));
}

static void
put_u32(GByteArray *out, uint32_t value)
{
    const uint32_t number = GUINT32_TO_LE(value);

    g_byte_array_append(out, (const guint8 *)&number, sizeof(number));
}

static void
put_u64(GByteArray *out, uint64_t value)
{
    const uint64_t word = GUINT64_TO_LE(value);

    g_byte_array_append(out, (const guint8 *)&word, sizeof(word));
}

static void
put_text(GByteArray *out, const char *text)
{
    put_u8(out, (unsigned)strlen(text));
    g_byte_array_append(out, (const guint8 *)text, (guint)strlen(text));
}

static void
put_task(GByteArray *out, const UprofTask *task)
{
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        put_u64(out, G_STRUCT_MEMBER(uint64_t, task, words[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        put_u32(out, G_STRUCT_MEMBER(uint32_t, task, numbers[i]));
    put_u8(out, (uint8_t)task->state);
    put_u8(out, (task->is_on_cpu ? IS_ON_CPU : 0) | (task->is_kernel ? IS_KERNEL : 0) |
                    (task->is_in_io ? IS_IN_IO : 0) | (task->has_run ? HAS_RUN : 0) |
                    (task->is_doubtful ? IS_DOUBTFUL : 0) | (task->has_wait ? HAS_WAIT : 0) |
                    (task->may_run ? MAY_RUN : 0));
    put_text(out, task->name);
    put_text(out, task->comm);
}

GByteArray *
uprof_task_record_make(const UprofTaskList *list)
{
    GByteArray *out = g_byte_array_new();
    const char *missing = list->missing ? list->missing : "";
    const size_t len = MIN(strlen(missing), (size_t)MISSING_BYTES_MAX);

    put_u8(out, list->is_complete);
    put_u8(out, (list->has_parents ? HAS_PARENTS : 0) | (list->has_times ? HAS_TIMES : 0) |
                    (list->has_waits ? HAS_WAITS : 0) | (list->has_levels ? HAS_LEVELS : 0));
    put_u16(out, len);
    g_byte_array_append(out, (const guint8 *)missing, (guint)len);
    for (guint i = 0; i < list->tasks->len; i++)
        put_task(out, &g_array_index(list->tasks, UprofTask, i));
    return out;
}

/* ---- Parsing ---- */

static bool
parse_text(UprofBytes *bytes, char *text, size_t room)
{
    UprofSlice raw;
    uint8_t len;

    if (!uprof_bytes_u8(bytes, &len) || len >= room || !uprof_bytes_take(bytes, len, &raw))
        return false;
    g_autofree char *clean = uprof_text_quote_slice(raw);
    g_strlcpy(text, clean, room);
    /* a cut in the middle of a character */
    const char *end;
    if (!g_utf8_validate(text, -1, &end))
        text[end - text] = '\0';
    return true;
}

static bool
is_state(uint8_t letter)
{
    return letter != '\0' && strchr("RSDTtXZPI", letter);
}

static bool
parse_task(UprofBytes *bytes, UprofTask *task)
{
    uint8_t state, flags;

    *task = (UprofTask){ 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (!uprof_bytes_u64(bytes, &G_STRUCT_MEMBER(uint64_t, task, words[i])))
            return false;
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        if (!uprof_bytes_u32(bytes, &G_STRUCT_MEMBER(uint32_t, task, numbers[i])))
            return false;
    if (!uprof_bytes_u8(bytes, &state) || !is_state(state) || !uprof_bytes_u8(bytes, &flags))
        return false;
    task->state = (char)state;
    task->is_on_cpu = flags & IS_ON_CPU;
    task->is_kernel = flags & IS_KERNEL;
    task->is_in_io = flags & IS_IN_IO;
    task->has_run = flags & HAS_RUN;
    task->is_doubtful = flags & IS_DOUBTFUL;
    task->has_wait = flags & HAS_WAIT;
    task->may_run = flags & MAY_RUN;
    return parse_text(bytes, task->name, sizeof(task->name)) &&
           parse_text(bytes, task->comm, sizeof(task->comm));
}

static bool
parse_head(UprofBytes *bytes, UprofTaskList *list)
{
    uint8_t is_complete, flags;
    UprofSlice missing;
    uint16_t len;

    if (!uprof_bytes_u8(bytes, &is_complete) || !uprof_bytes_u8(bytes, &flags) ||
        !uprof_bytes_u16(bytes, &len) || len > MISSING_BYTES_MAX ||
        !uprof_bytes_take(bytes, len, &missing))
        return false;
    list->is_complete = is_complete == 1;
    list->has_parents = flags & HAS_PARENTS;
    list->has_times = flags & HAS_TIMES;
    list->has_waits = flags & HAS_WAITS;
    list->has_levels = flags & HAS_LEVELS;
    list->missing = len > 0 ? uprof_text_quote_slice(missing) : NULL;
    return true;
}

UprofTaskList *
uprof_task_record_parse(UprofSlice all, GError **error)
{
    UprofBytes bytes = { .name = "the list of tasks", .all = all };
    g_autoptr(UprofTaskList) list = g_new0(UprofTaskList, 1);
    UprofTask task;

    list->tasks = g_array_new(FALSE, FALSE, sizeof(UprofTask));
    if (!parse_head(&bytes, list)) {
        uprof_bytes_fail(&bytes, error, "no list begins here");
        return NULL;
    }
    while (uprof_bytes_left(&bytes) > 0) {
        if (list->tasks->len == UPROF_TASK_LIST_MAX || !parse_task(&bytes, &task)) {
            uprof_bytes_fail(&bytes, error, "no task is described here");
            return NULL;
        }
        g_array_append_val(list->tasks, task);
    }
    return g_steal_pointer(&list);
}
