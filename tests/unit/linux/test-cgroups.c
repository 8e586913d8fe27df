/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "linux-guest.h"
#include "uprof/cgroups.h"

enum { NODES_MAX = 64, BYTES = 0x40, ID_DIGITS = 64, TIME_NS = 1000 };

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* clang-format off */
static const struct {
    const char *name;
    const char *path;  /* of the task's cgroup, from the root */
    const char *label; /* (nullable): NULL: not known */
} cases[] = {
    { "root", "", "/" },
    { "service", "system.slice/nginx.service", "nginx.service" },
    { "scope", "user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
    { "service-inside", "system.slice/user@1000.service/app.slice/sh.service", "user@1000.service" },
    { "below-service", "system.slice/worker.service/payload", "worker.service" },
    { "slice", "system.slice", "/system.slice" },
    { "container", "system.slice/docker-" ID ".scope/init.scope", "docker-0123456789ab.scope" },
    { "pod", "kubepods/burstable/pod12/" ID, "/kubepods/burstable/pod12/0123456789ab" },
    { "longer-id", "x/" ID "0", "/x/" ID "0" },
    { "bytes", "a;b\n\xff", "/a;b?\xef\xbf\xbd" },
    { "longest-name", "LONGEST", "LONGEST" },
    { "too-long-name", "TOO-LONG", NULL },
    { "empty-part", "a//b", NULL },
};
/* clang-format on */

/* Returns: guest-physical address of a node; @parent: 0: the root */
static uint64_t
add_node(LinuxGuest *guest, const char *name, uint64_t parent)
{
    const uint64_t node = linux_guest_alloc(guest, BYTES, 8);
    const uint64_t text = linux_guest_alloc(guest, strlen(name) + 1, 8);

    linux_guest_put_text(guest, text, name);
    linux_guest_put(guest, node + KERNFS_NAME, LINUX_DIRECT + text);
    linux_guest_put(guest, node + KERNFS_PARENT, parent == 0 ? 0 : LINUX_DIRECT + parent);
    return node;
}

static uint64_t
add_path(LinuxGuest *guest, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    uint64_t node = add_node(guest, "", 0);

    for (unsigned i = 0; parts[i]; i++)
        node = add_node(guest, parts[i], node);
    return node;
}

static void
put_cgroup(LinuxGuest *guest, uint64_t node)
{
    const uint64_t set = linux_guest_alloc(guest, BYTES, 8);
    const uint64_t cgroup = linux_guest_alloc(guest, BYTES, 8);

    linux_guest_put(guest, guest->task + TASK_SET, LINUX_DIRECT + set);
    linux_guest_put(guest, set + SET_CGROUP, LINUX_DIRECT + cgroup);
    linux_guest_put(guest, cgroup + CGROUP_NODE, LINUX_DIRECT + node);
}

static const char *
find_label(LinuxView *view, UprofCgroups *cgroups)
{
    UprofLinuxTask task;

    /* the first snapshot of all does not have the task yet */
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_true(uprof_linux_task(view->kernel, view->snapshot, &task));
    return uprof_cgroups_find(cgroups, view->mem, view->snapshot, &task);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .has_hot = i % 2 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autoptr(UprofCgroups) cgroups = uprof_cgroups_new(view->kernel);
    g_autofree char *longest = g_strnfill(255, 'x');
    g_autofree char *path = g_strdup(cases[i].path), *label = g_strdup(cases[i].label);

    if (strcmp(path, "LONGEST") == 0) {
        g_free(path);
        g_free(label);
        path = g_strdup(longest);
        label = g_strconcat("/", longest, NULL);
    } else if (strcmp(path, "TOO-LONG") == 0) {
        g_free(path);
        path = g_strconcat(longest, "x", NULL);
    }
    if (path[0] == '\0')
        put_cgroup(guest, add_node(guest, "", 0));
    else
        put_cgroup(guest, add_path(guest, path));
    g_assert_cmpstr(find_label(view, cgroups), ==, label);
}

/* A task that moves is found in its new cgroup, and a label is read again some seconds later. */
static void
test_changes(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autoptr(UprofCgroups) cgroups = uprof_cgroups_new(view->kernel);
    const uint64_t node = add_path(guest, "one.service");

    put_cgroup(guest, node);
    g_assert_cmpstr(find_label(view, cgroups), ==, "one.service");
    put_cgroup(guest, add_path(guest, "two.service"));
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    g_assert_cmpstr(find_label(view, cgroups), ==, "two.service");
    put_cgroup(guest, node);
    linux_guest_put_text(guest, linux_guest_get(guest, node + KERNFS_NAME) - LINUX_DIRECT,
                         "six.service");
    view->time_ns += 2 * UPROF_MEM_KEEP_NS;
    g_assert_cmpstr(find_label(view, cgroups), ==, "six.service");
}

/* After a reset, the same addresses may belong to another kernel. */
static void
test_reset(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autoptr(UprofCgroups) cgroups = uprof_cgroups_new(view->kernel);
    const uint64_t node = add_path(guest, "one.service");

    put_cgroup(guest, node);
    g_assert_cmpstr(find_label(view, cgroups), ==, "one.service");
    linux_guest_put_text(guest, linux_guest_get(guest, node + KERNFS_NAME) - LINUX_DIRECT,
                         "two.service");
    view->reset++;
    g_assert_cmpstr(find_label(view, cgroups), ==, "two.service");
}

/* Pointers into nothing, circles and too many parts end without a label. */
static void
test_hostile(void)
{
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    const uint64_t circle = add_path(guest, "a/b"), cut = add_path(guest, "c");
    uint64_t deep = add_path(guest, "d");

    for (unsigned i = 0; i < NODES_MAX; i++)
        deep = add_node(guest, "d", deep);
    linux_guest_put(guest, circle + KERNFS_PARENT, LINUX_DIRECT + circle);
    linux_guest_put(guest, cut + KERNFS_NAME, UINT64_MAX - 1);
    const uint64_t nodes[] = { circle, cut, deep, guest->memory->ram_len + 0x100000 };
    for (size_t i = 0; i < G_N_ELEMENTS(nodes); i++) {
        g_autoptr(UprofCgroups) cgroups = uprof_cgroups_new(view->kernel);
        put_cgroup(guest, nodes[i]);
        view->time_ns += 2 * UPROF_MEM_KEEP_NS;
        g_assert_null(find_label(view, cgroups));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/cgroups/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/cgroups/changes", test_changes);
    g_test_add_func("/cgroups/reset", test_reset);
    g_test_add_func("/cgroups/hostile", test_hostile);
    return g_test_run();
}
