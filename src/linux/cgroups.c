/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A task points to its css_set, which names its cgroup in the unified hierarchy. The cgroup has a
 * node of kernfs, whose names up to the root are the path (Linux, include/linux/cgroup-defs.h and
 * include/linux/kernfs.h).
 */
#include "uprof/cgroups.h"

#include "uprof/text.h"

#include "kernel-priv.h"

#include <string.h>

enum {
    PARTS_MAX = 32,
    SETS_MAX = 4096, /* that are remembered */
    ID_DIGITS = 64,  /* of a container's id */
    SHOWN_DIGITS = 12,
};

/* The label of a css_set. */
typedef struct {
    uint64_t set; /* its address; the key */
    uint64_t since_ns;
    char *label; /* (nullable): owned */
} Known;

struct _UprofCgroups {
    UprofLinux *kernel; /* borrowed */
    GHashTable *known;  /* a set of Known, by address; owned */
    uint32_t resets;    /* of the guest; another kernel uses the addresses for other structures */
};

static void
free_known(gpointer data)
{
    Known *known = data;

    g_free(known->label);
    g_free(known);
}

UprofCgroups *
uprof_cgroups_new(UprofLinux *kernel)
{
    UprofCgroups *cgroups = g_new0(UprofCgroups, 1);

    cgroups->kernel = kernel;
    cgroups->known = g_hash_table_new_full(g_int64_hash, g_int64_equal, free_known, NULL);
    return cgroups;
}

void
uprof_cgroups_free(UprofCgroups *cgroups)
{
    if (!cgroups)
        return;
    g_hash_table_unref(cgroups->known);
    g_free(cgroups);
}

/* ---- Paths ---- */

/* Returns: (transfer full) (nullable): "/system.slice/nginx.service", or "/" */
static char *
read_path(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory, uint64_t node)
{
    g_autoptr(GString) path = g_string_new(NULL);
    char name[UPROF_KERNEL_NAME_BYTES];

    for (unsigned i = 0; i < PARTS_MAX; i++) {
        uint64_t parent, text;
        if (!uprof_kernel_read_word(memory, node + offsets->node_parent, &parent))
            return NULL;
        if (parent == 0)
            return g_strdup(path->len > 0 ? path->str : "/");
        if (!uprof_kernel_read_word(memory, node + offsets->node_name, &text) ||
            !uprof_kernel_read_name(memory, text, name))
            return NULL;
        g_string_prepend(path, name);
        g_string_prepend_c(path, '/');
        node = parent;
    }
    return NULL;
}

/* ---- Labels ---- */

static bool
is_unit(const char *part)
{
    return g_str_has_suffix(part, ".service") || g_str_has_suffix(part, ".scope");
}

/* Appends @text, with long ids cut. */
static void
append_short(GString *label, const char *text)
{
    while (*text != '\0') {
        const size_t digits = strspn(text, "0123456789abcdef");
        const size_t len = MAX(digits, (size_t)1);
        g_string_append_len(label, text,
                            (gssize)(digits == ID_DIGITS ? (size_t)SHOWN_DIGITS : len));
        text += len;
    }
}

static char *
make_label(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path + 1, "/", -1);
    g_autoptr(GString) label = g_string_new(NULL);
    const char *shown = path;

    for (unsigned i = 0; parts[i]; i++)
        if (is_unit(parts[i])) {
            shown = parts[i];
            break;
        }
    append_short(label, shown);
    return uprof_text_quote(label->str);
}

/* ---- Tasks ---- */

static char *
read_label(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory, uint64_t set)
{
    uint64_t cgroup, node;

    if (!uprof_kernel_read_word(memory, set + offsets->set_cgroup, &cgroup) ||
        !uprof_kernel_read_word(memory, cgroup + offsets->cgroup_node, &node))
        return NULL;
    g_autofree char *path = read_path(offsets, memory, node);
    return path ? make_label(path) : NULL;
}

/* @label: (nullable) (transfer full) */
static const Known *
remember_label(UprofCgroups *cgroups, uint64_t set, uint64_t now_ns, char *label)
{
    Known *known = g_new0(Known, 1);

    if (g_hash_table_size(cgroups->known) >= SETS_MAX)
        g_hash_table_remove_all(cgroups->known);
    *known = (Known){ set, now_ns, label };
    g_hash_table_add(cgroups->known, known);
    return known;
}

const char *
uprof_cgroups_find_set(UprofCgroups *cgroups, UprofMem *mem, uint64_t time_ns, uint32_t resets,
                       uint64_t set)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(cgroups->kernel);
    const UprofKernelMemory memory = uprof_linux_memory(cgroups->kernel, mem);

    if (!offsets || !offsets->has_cgroups || set == 0)
        return NULL;
    if (cgroups->resets != resets)
        g_hash_table_remove_all(cgroups->known);
    cgroups->resets = resets;
    const Known *known = g_hash_table_lookup(cgroups->known, &set);
    if (known && time_ns - known->since_ns < UPROF_MEM_KEEP_NS)
        return known->label;
    char *label = read_label(offsets, &memory, set);
    /* the next sample may read what this one may not read any more */
    if (!label && uprof_mem_is_spent(mem))
        return NULL;
    return remember_label(cgroups, set, time_ns, label)->label;
}

const char *
uprof_cgroups_find(UprofCgroups *cgroups, UprofMem *mem, const UprofSnapshot *snapshot,
                   const UprofLinuxTask *task)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(cgroups->kernel);
    const UprofKernelMemory memory = uprof_linux_memory(cgroups->kernel, mem);
    uint64_t set;

    if (!offsets || !offsets->has_cgroups ||
        !uprof_kernel_read_word(&memory, task->address + offsets->task_set, &set))
        return NULL;
    return uprof_cgroups_find_set(cgroups, mem, snapshot->time_ns, snapshot->reset, set);
}
