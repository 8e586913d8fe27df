/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trees: Linux, include/linux/maple_tree.h and include/linux/rbtree.h; src/linux/space.c reads
 * the copies.
 */
#include "areas-priv.h"

#include "uprof/bytes.h"
#include "uprof/copies.h"

enum {
    PENDING_MAX = 64, /* nodes that wait */
    READS_MAX = 256,  /* of nodes, areas and files */
    AREA_CODE = 4,    /* VM_EXEC */
    NODE_BITS = 0xff, /* of a pointer to a node of a maple tree */
    ROOT_IS_NODE = 2, /* in the lowest two bits of the root: it is no area */
    NODE_TYPE_SHIFT = 3,
    NODE_TYPE = 0xf,
    LEAF = 1,
    GAPPED = 3,
    ENTRY_MIN = 4096, /* the tree keeps smaller entries for itself */
};

typedef struct {
    UprofMem *mem;
    const UprofLinks *links;
    const UprofLinksAreas *offsets;
    UprofRegs regs; /* with page tables that map the kernel */
    UprofCopies copies;
    uint64_t pending[PENDING_MAX];
    unsigned n_pending, n_reads;
} Tree;

/* Returns: (nullable): a new copy; %NULL if it cannot be read, or has no room */
static const uint8_t *
copy_piece(Tree *tree, uint64_t gva, size_t len)
{
    if (gva < tree->links->kernel_from || tree->n_reads++ >= READS_MAX)
        return NULL;
    uint8_t *bytes = uprof_copies_add(&tree->copies, gva, len);
    if (!bytes)
        return NULL;
    if (uprof_mem_copy(tree->mem, tree->copies.snapshot->vcpu, &tree->regs, gva, bytes, len) == len)
        return bytes;
    uprof_copies_drop(&tree->copies, len);
    return NULL;
}

/* Returns: the word; 0 if it cannot be copied */
static uint64_t
copy_word(Tree *tree, uint64_t gva)
{
    const uint8_t *bytes = copy_piece(tree, gva, sizeof(uint64_t));

    return bytes ? uprof_read_le64(bytes) : 0;
}

static void
add_pending(Tree *tree, uint64_t node)
{
    if (tree->n_pending < PENDING_MAX)
        tree->pending[tree->n_pending++] = node;
}

/* Returns: false if it cannot be copied */
static bool
copy_file(Tree *tree, uint64_t file)
{
    const UprofSlice packed = { tree->copies.snapshot->bytes + tree->copies.offset,
                                tree->copies.used };
    uint8_t byte;

    return file == 0 || uprof_copies_read(packed, file + tree->offsets->file_from, &byte, 1) ||
           copy_piece(tree, file + tree->offsets->file_from, tree->offsets->file_len);
}

/*
 * Only code is of interest, together with its file. A red-black tree goes on in the area, so each
 * of its areas is kept.
 *
 * Returns: (nullable): the copy
 */
static const uint8_t *
copy_area(Tree *tree, uint64_t area, bool is_kept)
{
    const UprofLinksAreas *offsets = tree->offsets;
    const uint8_t *bytes = copy_piece(tree, area + offsets->area_from, offsets->area_len);

    if (!bytes)
        return NULL;
    const bool is_code =
        uprof_read_le64(bytes + offsets->area_flags - offsets->area_from) & AREA_CODE;
    const uint64_t file = uprof_read_le64(bytes + offsets->area_file - offsets->area_from);
    if ((!is_code && !is_kept) || (is_code && !copy_file(tree, file))) {
        uprof_copies_drop(&tree->copies, offsets->area_len);
        return NULL;
    }
    return bytes;
}

/* A pivot of 0 behind the first one: the node has no further slot. */
static void
copy_maple_node(Tree *tree, uint64_t entry)
{
    const UprofLinksAreas *offsets = tree->offsets;
    const unsigned type = entry >> NODE_TYPE_SHIFT & NODE_TYPE;
    const bool has_gaps = type == GAPPED;
    const uint8_t *node = copy_piece(tree, entry & ~(uint64_t)NODE_BITS, UPROF_LINKS_NODE_BYTES);
    const unsigned n_slots = has_gaps ? offsets->n_gap_slots : offsets->n_range_slots;

    if (!node || type < LEAF || type > GAPPED)
        return;
    const uint8_t *pivots = node + (has_gaps ? offsets->gap_pivots : offsets->range_pivots);
    const uint8_t *slots = node + (has_gaps ? offsets->gap_slots : offsets->range_slots);
    for (unsigned i = 0; i < n_slots; i++) {
        const uint64_t child = uprof_read_le64(slots + i * sizeof(uint64_t));
        if (child > ENTRY_MIN && type == LEAF)
            copy_area(tree, child, false);
        else if (child > ENTRY_MIN)
            add_pending(tree, child);
        if (i > 0 && i + 1 < n_slots && uprof_read_le64(pivots + i * sizeof(uint64_t)) == 0)
            return;
    }
}

static void
copy_red_black_node(Tree *tree, uint64_t node)
{
    const UprofLinksAreas *offsets = tree->offsets;
    const uint8_t *area = copy_area(tree, node - offsets->area_node, true);

    if (!area)
        return;
    area += offsets->area_node - offsets->area_from;
    const uint64_t left = uprof_read_le64(area + offsets->node_left);
    const uint64_t right = uprof_read_le64(area + offsets->node_right);
    if (left != 0)
        add_pending(tree, left);
    if (right != 0)
        add_pending(tree, right);
}

static void
copy_tree(Tree *tree, uint64_t root)
{
    if (!tree->offsets->is_maple_tree || (root & 3) == ROOT_IS_NODE)
        add_pending(tree, root);
    else
        copy_area(tree, root, false); /* a tree of one entry has no node */
    while (tree->n_pending > 0) {
        const uint64_t node = tree->pending[--tree->n_pending];
        if (tree->offsets->is_maple_tree)
            copy_maple_node(tree, node);
        else
            copy_red_black_node(tree, node);
    }
}

/* Returns: false if the sample is of no process. @memory: (out): address of its struct mm_struct */
static bool
find_memory(const UprofLinks *links, const UprofSnapshot *snapshot, uint64_t *memory)
{
    uint64_t task;

    return snapshot->vcpu < links->n_vcpus && links->areas.area_len > 0 &&
           uprof_snapshot_read_word(snapshot, links->vcpus[snapshot->vcpu].task_at, &task) &&
           uprof_snapshot_read_word(snapshot, task + links->task_mm, memory) && *memory != 0;
}

void
uprof_areas_copy(UprofMem *mem, const UprofLinks *links, UprofSnapshot *snapshot)
{
    Tree tree = { .mem = mem, .links = links, .offsets = &links->areas, .regs = snapshot->regs };
    uint64_t memory, words[G_N_ELEMENTS(links->areas.mm_words)] = { 0 };

    if (!find_memory(links, snapshot, &memory))
        return;
    if (links->root != 0)
        tree.regs.sys[uprof_mem_arch(mem)->kernel_root] = links->root;
    uprof_copies_begin(&tree.copies, snapshot);
    for (unsigned i = 0; i < G_N_ELEMENTS(links->areas.mm_words); i++)
        if (links->areas.mm_words[i] != 0)
            words[i] = copy_word(&tree, memory + links->areas.mm_words[i]);
    if (words[0] != 0)
        copy_tree(&tree, words[0]);
    uprof_copies_end(&tree.copies);
}
