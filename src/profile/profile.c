/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/profile.h"

#include <string.h>

/* A frame with everything above it; children are a list, found through `edges`. */
typedef struct Node Node;
struct Node {
    const UprofName *name;
    Node *parent;
    Node *children;
    Node *sibling;
    uint64_t weight; /* of stacks that end here */
};

struct _UprofProfile {
    UprofNames *names; /* borrowed */
    bool bounded;
    Node *root;
    GHashTable *edges; /* (parent, name) -> Node; nodes are their own keys */
    uint64_t total;
    size_t n_stacks;
};

static guint
hash_node(gconstpointer key)
{
    const Node *node = key;

    return g_direct_hash(node->parent) * 31 + g_direct_hash(node->name);
}

static gboolean
equal_nodes(gconstpointer a, gconstpointer b)
{
    const Node *one = a, *other = b;

    return one->parent == other->parent && one->name == other->name;
}

UprofProfile *
uprof_profile_new(UprofNames *names, const UprofName *root, bool bounded)
{
    UprofProfile *profile = g_new0(UprofProfile, 1);

    profile->names = names;
    profile->bounded = bounded;
    profile->root = g_new0(Node, 1);
    profile->root->name = root;
    profile->edges = g_hash_table_new_full(hash_node, equal_nodes, g_free, NULL);
    return profile;
}

void
uprof_profile_free(UprofProfile *profile)
{
    if (!profile)
        return;
    g_hash_table_unref(profile->edges);
    g_free(profile->root);
    g_free(profile);
}

static Node *
find_child(UprofProfile *profile, Node *parent, const UprofName *name, bool make)
{
    const Node key = { .name = name, .parent = parent };
    Node *node = g_hash_table_lookup(profile->edges, &key);

    if (node || !make)
        return node;
    node = g_new(Node, 1);
    *node = key;
    node->sibling = parent->children;
    parent->children = node;
    g_hash_table_add(profile->edges, node);
    return node;
}

/* Returns: (nullable): where the stack ends; NULL if it is new and may not be made */
static Node *
find_stack(UprofProfile *profile, const UprofName *const *frames, unsigned n, bool make)
{
    Node *node = profile->root;

    for (unsigned i = 0; i < n && node; i++)
        node = find_child(profile, node, frames[i], make);
    return node;
}

void
uprof_profile_add(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                  uint64_t weight)
{
    g_assert(n >= 1 && n < UPROF_PROFILE_DEPTH_MAX);
    const bool full =
        profile->bounded && (profile->n_stacks >= UPROF_PROFILE_STACKS_MAX ||
                             g_hash_table_size(profile->edges) >= UPROF_PROFILE_FRAMES_MAX);
    Node *node = find_stack(profile, frames, n, !full);

    if (!node) {
        const UprofName *unknown = uprof_names_marker(profile->names, "[unknown]");
        node = find_stack(profile, &unknown, 1, true);
    }
    if (node->weight == 0)
        profile->n_stacks++;
    node->weight += weight;
    profile->total += weight;
}

uint64_t
uprof_profile_total(const UprofProfile *profile)
{
    return profile->total;
}

static int
compare_nodes(gconstpointer a, gconstpointer b)
{
    const Node *const *one = a;
    const Node *const *other = b;

    return strcmp(uprof_name_text((*one)->name), uprof_name_text((*other)->name));
}

static void
push_children(GPtrArray *todo, const Node *node)
{
    const guint first = todo->len;

    for (Node *child = node->children; child; child = child->sibling)
        g_ptr_array_add(todo, child);
    if (todo->len - first > 1)
        qsort(todo->pdata + first, todo->len - first, sizeof(gpointer), compare_nodes);
    /* the last pushed is visited first */
    for (guint i = first, j = todo->len; i + 1 < j; i++) {
        gpointer swap = todo->pdata[--j];
        todo->pdata[j] = todo->pdata[i];
        todo->pdata[i] = swap;
    }
}

void
uprof_profile_walk(const UprofProfile *profile, UprofProfileVisit visit, void *data)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_new();
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];

    push_children(todo, profile->root);
    while (todo->len > 0) {
        const Node *node = g_ptr_array_steal_index(todo, todo->len - 1);
        if (node->weight > 0) {
            unsigned n = 0;
            for (const Node *up = node; up; up = up->parent)
                n++;
            unsigned i = n;
            for (const Node *up = node; up; up = up->parent)
                frames[--i] = up->name;
            visit(frames, n, node->weight, data);
        }
        push_children(todo, node);
    }
}

static void
count_rows(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    GHashTable *rows = data;

    for (unsigned i = 1; i < n; i++) {
        bool again = false;
        for (unsigned j = 1; j < i && !again; j++)
            again = frames[j] == frames[i];
        UprofProfileRow *row = g_hash_table_lookup(rows, frames[i]);
        if (!row) {
            row = g_new0(UprofProfileRow, 1);
            row->name = frames[i];
            g_hash_table_insert(rows, (gpointer)frames[i], row);
        }
        if (!again)
            row->total += weight;
        if (i == n - 1)
            row->self += weight;
    }
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofProfileRow *one = a, *other = b;

    if (one->self != other->self)
        return one->self > other->self ? -1 : 1;
    if (one->total != other->total)
        return one->total > other->total ? -1 : 1;
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

GArray *
uprof_profile_rows(const UprofProfile *profile)
{
    g_autoptr(GHashTable) found = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer row;

    uprof_profile_walk(profile, count_rows, found);
    g_hash_table_iter_init(&iter, found);
    while (g_hash_table_iter_next(&iter, NULL, &row))
        g_array_append_vals(rows, row, 1);
    g_array_sort(rows, compare_rows);
    return rows;
}
