/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile-priv.h"

#include "uprof/scan.h"
#include "uprof/sorted.h"

#include <string.h>

enum {
    FRAMES_MAX = 2 * 1000 * 1000, /* of all stacks; shared callers count once */
    NODES_PER_BLOCK = 1024,
};

/* A frame with all its callers. Its callees are a list, and `edges` finds one of them fast. */
typedef struct _UprofProfileStack Node;
struct _UprofProfileStack {
    const UprofName *name;
    Node *parent;
    Node *children;
    Node *sibling;
    uint64_t weight; /* of stacks that end here */
};

typedef struct {
    UprofTick tick;
    const Node *stack;
} Timed;

struct _UprofProfile {
    UprofNames *names; /* borrowed */
    const UprofName *unknown;
    bool bounded;
    Node *first;       /* owned */
    Node *root;        /* `first`, or the frame that all stacks begin with */
    GHashTable *edges; /* (parent, name) -> Node; nodes are their own keys */
    GPtrArray *blocks; /* arrays of nodes, owned */
    unsigned n_used;   /* nodes used in the last block */
    GArray *timed;     /* (nullable): of Timed */
    uint64_t n_untimed;
    uint64_t total;
    size_t n_stacks;
};

static guint
hash_node(gconstpointer key)
{
    const Node *node = key;
    const uint64_t mixed = ((uint64_t)(uintptr_t)node->parent >> 4) * UINT64_C(0x9e3779b97f4a7c15) +
                           ((uint64_t)(uintptr_t)node->name >> 4);

    return (guint)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
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
    profile->unknown = uprof_names_marker(names, "[unknown]");
    profile->bounded = bounded;
    profile->first = profile->root = g_new0(Node, 1);
    profile->root->name = root;
    profile->edges = g_hash_table_new(hash_node, equal_nodes);
    profile->blocks = g_ptr_array_new_with_free_func(g_free);
    profile->n_used = NODES_PER_BLOCK;
    return profile;
}

void
uprof_profile_free(UprofProfile *profile)
{
    if (!profile)
        return;
    g_hash_table_unref(profile->edges);
    g_ptr_array_unref(profile->blocks);
    g_clear_pointer(&profile->timed, g_array_unref);
    g_free(profile->first);
    g_free(profile);
}

static Node *
take_node(UprofProfile *profile)
{
    if (profile->n_used == NODES_PER_BLOCK) {
        g_ptr_array_add(profile->blocks, g_new(Node, NODES_PER_BLOCK));
        profile->n_used = 0;
    }
    Node *block = g_ptr_array_index(profile->blocks, profile->blocks->len - 1);
    return &block[profile->n_used++];
}

static Node *
find_child(UprofProfile *profile, Node *parent, const UprofName *name, bool make)
{
    const Node key = { .name = name, .parent = parent };
    Node *node = g_hash_table_lookup(profile->edges, &key);

    if (node || !make)
        return node;
    node = take_node(profile);
    *node = key;
    node->sibling = parent->children;
    parent->children = node;
    g_hash_table_add(profile->edges, node);
    return node;
}

/* Returns: (nullable): the node of the leaf; NULL if the stack is new and exceeds a limit */
static Node *
find_stack(UprofProfile *profile, const UprofName *const *frames, unsigned n, bool make)
{
    Node *node = profile->root;

    for (unsigned i = 0; i < n && node; i++)
        node = find_child(profile, node, frames[i], make);
    return node;
}

static const Node *
add_stack(UprofProfile *profile, const UprofName *const *frames, unsigned n, uint64_t weight)
{
    g_assert(n >= 1 && n < UPROF_PROFILE_DEPTH_MAX);
    const bool full = profile->bounded && (profile->n_stacks >= UPROF_PROFILE_STACKS_MAX ||
                                           g_hash_table_size(profile->edges) >= FRAMES_MAX);
    Node *node = find_stack(profile, frames, n, !full);

    if (!node)
        node = find_stack(profile, &profile->unknown, 1, true);
    if (node->weight == 0 && weight > 0)
        profile->n_stacks++;
    node->weight += weight;
    profile->total += weight;
    return node;
}

void
uprof_profile_add(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                  uint64_t weight)
{
    add_stack(profile, frames, n, weight);
}

void
uprof_profile_keep_times(UprofProfile *profile)
{
    if (!profile->timed)
        profile->timed = g_array_new(FALSE, FALSE, sizeof(Timed));
}

void
uprof_profile_add_tick(UprofProfile *profile, const UprofName *const *frames, unsigned n,
                       UprofTick tick, bool counts)
{
    if (!counts && !profile->timed)
        return;
    const uint64_t weight = counts ? (uint64_t)tick.count * tick.weight : 0;
    const Timed timed = { .tick = tick, .stack = add_stack(profile, frames, n, weight) };
    if (profile->timed && profile->timed->len < UPROF_PROFILE_TICKS_MAX)
        g_array_append_val(profile->timed, timed);
    else if (profile->timed)
        profile->n_untimed += tick.count;
}

void
uprof_profile_settle(UprofProfile *profile, const UprofName *name)
{
    Node *only = profile->root->children;

    if (profile->root->name)
        return;
    if (!only)
        profile->root->name = name;
    else if (!only->sibling && only->weight == 0)
        profile->root = only;
}

const UprofName *
uprof_profile_root(const UprofProfile *profile)
{
    return profile->root->name;
}

const UprofName *
uprof_profile_unknown(const UprofProfile *profile)
{
    return profile->unknown;
}

UprofNames *
uprof_profile_names(const UprofProfile *profile)
{
    return profile->names;
}

size_t
uprof_profile_n_ticks(const UprofProfile *profile)
{
    return profile->timed ? profile->timed->len : 0;
}

uint64_t
uprof_profile_n_untimed(const UprofProfile *profile)
{
    return profile->n_untimed;
}

/* Writes the frames root first. Returns: their number */
static unsigned
find_frames(const Node *node, const UprofName **frames)
{
    unsigned n = 0;

    for (const Node *up = node; up && up->name; up = up->parent)
        n++;
    unsigned i = n;
    for (const Node *up = node; up && up->name; up = up->parent)
        frames[--i] = up->name;
    return n;
}

void
uprof_profile_walk_ticks(const UprofProfile *profile, uint32_t vcpu, UprofProfileTickVisit visit,
                         void *data)
{
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX];

    for (guint i = 0; profile->timed && i < profile->timed->len; i++) {
        const Timed *timed = &g_array_index(profile->timed, Timed, i);
        if (vcpu == UPROF_PROFILE_ALL_VCPUS || vcpu == timed->tick.vcpu)
            visit(frames, find_frames(timed->stack, frames), timed->tick, data);
    }
}

void
uprof_profile_walk_times(const UprofProfile *profile, UprofProfileTimeVisit visit, void *data)
{
    for (guint i = 0; profile->timed && i < profile->timed->len; i++) {
        const Timed *timed = &g_array_index(profile->timed, Timed, i);
        visit(timed->stack, timed->tick, data);
    }
}

unsigned
uprof_profile_stack_frames(const UprofProfileStack *stack, const UprofName **frames)
{
    return find_frames(stack, frames);
}

uint64_t
uprof_profile_stack_weight(const UprofProfileStack *stack)
{
    return stack->weight;
}

void
uprof_profile_add_untimed(UprofProfile *profile, uint64_t n)
{
    profile->n_untimed += n;
}

size_t
uprof_profile_n_frames(const UprofProfile *profile)
{
    return g_hash_table_size(profile->edges);
}

size_t
uprof_profile_n_stacks(const UprofProfile *profile)
{
    return profile->n_stacks;
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
    /* A stack visits the last node first, so the callees are reversed. */
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
        if (node->weight > 0)
            visit(frames, find_frames(node, frames), node->weight, data);
        push_children(todo, node);
    }
}

typedef struct {
    const UprofProfile *from;
    UprofProfile *to;
    UprofProfileMap map;
    void *data;
    GHashTable *stacks; /* Node of @from -> Node of @to */
} Mapping;

static const Node *
map_stack(Mapping *mapping, const Node *node, uint64_t weight)
{
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX], *into[UPROF_PROFILE_DEPTH_MAX];
    const Node *known = g_hash_table_lookup(mapping->stacks, node);

    if (known)
        return known;
    const unsigned first = mapping->from->root->name ? 1 : 0;
    const unsigned n = find_frames(node, frames);
    const unsigned n_into = mapping->map(frames + first, n - first, into, mapping->data);
    known = add_stack(mapping->to, into, n_into, weight);
    g_hash_table_insert(mapping->stacks, (gpointer)node, (gpointer)known);
    return known;
}

static void
map_nodes(Mapping *mapping)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_new();

    push_children(todo, mapping->from->root);
    while (todo->len > 0) {
        const Node *node = g_ptr_array_steal_index(todo, todo->len - 1);
        if (node->weight > 0)
            map_stack(mapping, node, node->weight);
        push_children(todo, node);
    }
}

UprofProfile *
uprof_profile_map(const UprofProfile *profile, UprofProfileMap map, void *data)
{
    g_autoptr(GHashTable) stacks = g_hash_table_new(NULL, NULL);
    Mapping mapping = {
        .from = profile,
        .to = uprof_profile_new(profile->names, profile->root->name, profile->bounded),
        .map = map,
        .data = data,
        .stacks = stacks,
    };

    map_nodes(&mapping);
    if (!profile->timed)
        return mapping.to;
    uprof_profile_keep_times(mapping.to);
    mapping.to->n_untimed = profile->n_untimed;
    for (guint i = 0; i < profile->timed->len; i++) {
        Timed timed = g_array_index(profile->timed, Timed, i);
        /* ticks whose stacks have no weight */
        timed.stack = map_stack(&mapping, timed.stack, 0);
        g_array_append_val(mapping.to->timed, timed);
    }
    return mapping.to;
}

bool
uprof_profile_level_is_vcpu(const UprofName *name, uint32_t *vcpu)
{
    const char *text = uprof_name_text(name);
    uint64_t number;

    if (strncmp(text, "vcpu", 4) != 0 ||
        !uprof_slice_to_uint((UprofSlice){ text + 4, strlen(text + 4) }, 10, 0, UINT16_MAX,
                             &number))
        return false;
    *vcpu = (uint32_t)number;
    return true;
}

bool
uprof_profile_level_is_cgroup(const UprofName *name)
{
    const char *text = uprof_name_text(name);

    return text[0] == '/' || g_str_has_suffix(text, ".service") ||
           g_str_has_suffix(text, ".scope") || strcmp(text, "[cgroup]") == 0;
}

bool
uprof_profile_is_halt(const UprofName *const *frames, unsigned n)
{
    uint32_t vcpu;

    if (strcmp(uprof_name_text(frames[n - 1]), "[idle]") != 0)
        return false;
    return n <= 2 || (n == 3 && uprof_profile_level_is_vcpu(frames[1], &vcpu));
}

typedef struct {
    GHashTable *rows; /* UprofName -> Counted */
    unsigned first;   /* index of the first frame below the root */
    uint64_t stack;   /* number of the current stack, so that a function counts once in it */
    uint64_t *halted;
} Counting;

typedef struct {
    UprofProfileRow row;
    uint64_t stack;
} Counted;

static void
count_rows(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Counting *counting = data;

    if (counting->halted && uprof_profile_is_halt(frames, n)) {
        *counting->halted += weight;
        return;
    }
    counting->stack++;
    for (unsigned i = counting->first; i < n; i++) {
        Counted *counted = g_hash_table_lookup(counting->rows, frames[i]);
        if (!counted) {
            counted = g_new0(Counted, 1);
            counted->row.name = frames[i];
            g_hash_table_insert(counting->rows, (gpointer)frames[i], counted);
        }
        if (counted->stack != counting->stack)
            counted->row.total += weight;
        counted->stack = counting->stack;
        if (i == n - 1)
            counted->row.self += weight;
    }
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofProfileRow *one = a, *other = b;

    if (one->self != other->self)
        return UPROF_COMPARE(other->self, one->self);
    if (one->total != other->total)
        return UPROF_COMPARE(other->total, one->total);
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

GArray *
uprof_profile_rows(const UprofProfile *profile, uint64_t *halted)
{
    g_autoptr(GHashTable) found = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    Counting counting = {
        .rows = found,
        .first = profile->root->name ? 1 : 0,
        .halted = halted,
    };
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    GHashTableIter iter;
    gpointer counted;

    if (halted)
        *halted = 0;
    uprof_profile_walk(profile, count_rows, &counting);
    g_hash_table_iter_init(&iter, found);
    while (g_hash_table_iter_next(&iter, NULL, &counted))
        g_array_append_vals(rows, &((Counted *)counted)->row, 1);
    g_array_sort(rows, compare_rows);
    return rows;
}
