/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-record.h"

#include "uprof/error.h"

#include <string.h>

enum { HEAD_BYTES = 4, STATE_AT = 10 * 8 + 6 * 4, NAME_AT = STATE_AT + 2 };

static UprofTaskList *
make_list(unsigned n)
{
    UprofTaskList *list = g_new0(UprofTaskList, 1);

    list->tasks = g_array_new(FALSE, FALSE, sizeof(UprofTask));
    list->is_complete = list->has_times = list->has_levels = true;
    list->missing = g_strdup("its parent (real_parent)");
    for (unsigned i = 0; i < n; i++) {
        UprofTask task = {
            .address = 1 + i,
            .began_ns = 2,
            .user_ns = 3,
            .system_ns = 4,
            .wait_ns = 5,
            .n_switches = 6,
            .memory = 7,
            .stack = 8,
            .saved_sp = 9,
            .cgroup = 10,
            .id = 11 + i,
            .process = 12,
            .parent = 13,
            .inner = 14,
            .level = 15,
            .cpu = 16,
            .state = "DS"[i % 2],
            .is_on_cpu = i % 2,
            .is_kernel = i % 2 == 0,
            .is_in_io = i % 3 == 0,
            .has_run = i % 3 == 1,
            .is_doubtful = i % 3 == 2,
            .has_wait = i % 4 == 0,
            .may_run = i % 4 == 1,
            .name = "kworker/0:1-events",
            .comm = "kworker/0:1",
        };
        g_array_append_val(list->tasks, task);
    }
    return list;
}

/* ---- A list is written and read again ---- */

static void
assert_same(const UprofTaskList *one, const UprofTaskList *other)
{
    g_assert_cmpuint(one->tasks->len, ==, other->tasks->len);
    g_assert_true(one->is_complete == other->is_complete);
    g_assert_true(one->has_parents == other->has_parents);
    g_assert_true(one->has_times == other->has_times);
    g_assert_true(one->has_waits == other->has_waits);
    g_assert_true(one->has_levels == other->has_levels);
    g_assert_cmpstr(one->missing, ==, other->missing);
    for (guint i = 0; i < one->tasks->len; i++) {
        const UprofTask *a = &g_array_index(one->tasks, UprofTask, i);
        const UprofTask *b = &g_array_index(other->tasks, UprofTask, i);
        g_assert_cmpstr(a->name, ==, b->name);
        g_assert_cmpstr(a->comm, ==, b->comm);
        g_assert_cmphex(a->address, ==, b->address);
        g_assert_cmpuint(a->id, ==, b->id);
        g_assert_cmpint(a->state, ==, b->state);
        g_assert_true(a->is_on_cpu == b->is_on_cpu && a->is_kernel == b->is_kernel &&
                      a->is_in_io == b->is_in_io && a->has_run == b->has_run &&
                      a->has_wait == b->has_wait && a->may_run == b->may_run &&
                      a->is_doubtful == b->is_doubtful);
        g_assert_cmpuint(a->began_ns + a->user_ns + a->system_ns + a->wait_ns + a->n_switches +
                             a->memory + a->stack + a->saved_sp + a->cgroup,
                         ==,
                         b->began_ns + b->user_ns + b->system_ns + b->wait_ns + b->n_switches +
                             b->memory + b->stack + b->saved_sp + b->cgroup);
        g_assert_cmpuint(a->process + a->parent + a->inner + a->level + a->cpu, ==,
                         b->process + b->parent + b->inner + b->level + b->cpu);
    }
}

static void
test_same(void)
{
    static const unsigned sizes[] = { 0, 1, 7, 2000 };

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofTaskList) list = make_list(sizes[i]);
        g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
        g_autoptr(UprofTaskList) read =
            uprof_task_record_parse((UprofSlice){ bytes->data, bytes->len }, &error);
        g_assert_no_error(error);
        assert_same(list, read);
        g_autoptr(GByteArray) again = uprof_task_record_make(read);
        g_assert_cmpmem(bytes->data, bytes->len, again->data, again->len);
    }
}

/* ---- Hostile bytes ---- */

/* Returns: (transfer full) (nullable) */
static UprofTaskList *
parse_part(const GByteArray *bytes, size_t len)
{
    g_autoptr(GError) error = NULL;
    UprofTaskList *list = uprof_task_record_parse((UprofSlice){ bytes->data, len }, &error);

    if (!list)
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    return list;
}

/* A record that is cut between tasks is a shorter list. Each other cut is an error. */
static void
test_cut(void)
{
    g_autoptr(UprofTaskList) list = make_list(2);
    g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
    unsigned n_lists = 0;

    for (size_t len = 0; len < bytes->len; len++) {
        g_autoptr(UprofTaskList) part = parse_part(bytes, len);
        n_lists += part != NULL;
    }
    g_assert_cmpuint(n_lists, ==, 2);
}

static void
test_text(void)
{
    g_autoptr(UprofTaskList) list = make_list(1);
    g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
    const size_t at = HEAD_BYTES + strlen(list->missing) + NAME_AT;

    memcpy(bytes->data + at + 1, "evil\x1b[2J\n", 9);
    g_autoptr(UprofTaskList) clean = parse_part(bytes, bytes->len);
    g_assert_nonnull(clean);
    g_assert_cmpstr(g_array_index(clean->tasks, UprofTask, 0).name, ==, "evil?[2J?:1-events");
}

static void
test_wrong(void)
{
    g_autoptr(UprofTaskList) list = make_list(1);
    const size_t head = HEAD_BYTES + strlen(list->missing);
    const struct {
        size_t at;
        uint8_t byte;
    } cases[] = {
        { 3, 0xff },                               /* a text that is too long */
        { head + STATE_AT, 'Q' },                  /* no state */
        { head + STATE_AT, '\0' },                 /* no state */
        { head + NAME_AT, UPROF_TASK_NAME_BYTES }, /* a name that does not fit */
        { head + NAME_AT, 0xff },                  /* a name beyond the end */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
        bytes->data[cases[i].at] = cases[i].byte;
        g_autoptr(UprofTaskList) bad = parse_part(bytes, bytes->len);
        g_assert_null(bad);
    }
}

static void
test_many(void)
{
    g_autoptr(UprofTaskList) list = make_list(UPROF_TASK_LIST_MAX);
    g_autoptr(GByteArray) bytes = uprof_task_record_make(list);
    g_autoptr(UprofTaskList) all = parse_part(bytes, bytes->len);
    g_autoptr(UprofTaskList) one = make_list(1);
    g_autoptr(GByteArray) more = uprof_task_record_make(one);
    const size_t head = HEAD_BYTES + strlen(one->missing);

    g_assert_cmpuint(all->tasks->len, ==, UPROF_TASK_LIST_MAX);
    g_byte_array_append(bytes, more->data + head, (guint)(more->len - head));
    g_autoptr(UprofTaskList) bad = parse_part(bytes, bytes->len);
    g_assert_null(bad);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linux/task-record/same", test_same);
    g_test_add_func("/linux/task-record/cut", test_cut);
    g_test_add_func("/linux/task-record/text", test_text);
    g_test_add_func("/linux/task-record/wrong", test_wrong);
    g_test_add_func("/linux/task-record/many", test_many);
    return g_test_run();
}
