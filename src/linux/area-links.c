/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "area-links-priv.h"

enum { WORD = sizeof(uint64_t) };

/* A part of a structure that has some words. */
typedef struct {
    uint64_t from, end;
} Part;

static void
add_word(Part *part, uint64_t offset)
{
    part->from = MIN(part->from, offset);
    part->end = MAX(part->end, offset + WORD);
}

static bool
has_room(const Part *part)
{
    return part->end <= G_MAXUINT16 && part->end - part->from <= UPROF_LINKS_PART_BYTES_MAX;
}

static Part
find_area_part(const UprofLinuxOffsets *offsets)
{
    const uint64_t words[] = { offsets->area_start, offsets->area_end, offsets->area_page,
                               offsets->area_file, offsets->area_flags };
    Part part = { .from = UINT64_MAX };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        add_word(&part, words[i]);
    if (!offsets->is_maple_tree) {
        add_word(&part, offsets->area_node);
        add_word(&part, offsets->area_node + offsets->node_left);
        add_word(&part, offsets->area_node + offsets->node_right);
    }
    return part;
}

static Part
find_file_part(const UprofLinuxOffsets *offsets)
{
    Part part = { .from = UINT64_MAX };

    add_word(&part, offsets->file_dentry);
    if (offsets->has_mounts)
        add_word(&part, offsets->file_vfsmount);
    if (offsets->has_pages)
        add_word(&part, offsets->file_mapping);
    return part;
}

/* Do the nodes of a maple tree look as they do in all kernels so far? */
static bool
has_usual_nodes(uint64_t pivots, uint64_t slots, uint64_t n_slots)
{
    return n_slots <= UPROF_LINKS_SLOTS_MAX &&
           MAX(pivots, slots) + n_slots * WORD <= UPROF_LINKS_NODE_BYTES;
}

static void
set_tree(const UprofLinuxOffsets *offsets, UprofLinksAreas *links)
{
    links->is_maple_tree = offsets->is_maple_tree;
    if (offsets->is_maple_tree) {
        links->range_pivots = (uint16_t)offsets->range_pivots;
        links->range_slots = (uint16_t)offsets->range_slots;
        links->n_range_slots = (uint16_t)offsets->n_range_slots;
        links->gap_pivots = (uint16_t)offsets->gap_pivots;
        links->gap_slots = (uint16_t)offsets->gap_slots;
        links->n_gap_slots = (uint16_t)offsets->n_gap_slots;
    } else {
        links->area_node = (uint16_t)offsets->area_node;
        links->node_left = (uint16_t)offsets->node_left;
        links->node_right = (uint16_t)offsets->node_right;
    }
}

void
uprof_linux_area_links_find(const UprofLinuxOffsets *offsets, UprofLinksAreas *links)
{
    const uint64_t words[] = { offsets->mm_root, offsets->mm_tables, offsets->mm_vdso,
                               offsets->mm_stack };
    const Part area = find_area_part(offsets), file = find_file_part(offsets);

    G_STATIC_ASSERT(G_N_ELEMENTS(words) == G_N_ELEMENTS(links->mm_words));
    *links = (UprofLinksAreas){ 0 };
    if (!offsets->has_areas || !has_room(&area) || !has_room(&file) ||
        (offsets->is_maple_tree &&
         (!has_usual_nodes(offsets->range_pivots, offsets->range_slots, offsets->n_range_slots) ||
          !has_usual_nodes(offsets->gap_pivots, offsets->gap_slots, offsets->n_gap_slots))))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        links->mm_words[i] = words[i] <= G_MAXUINT16 ? (uint16_t)words[i] : 0;
    set_tree(offsets, links);
    links->area_from = (uint16_t)area.from;
    links->area_len = (uint16_t)(area.end - area.from);
    links->area_flags = (uint16_t)offsets->area_flags;
    links->area_file = (uint16_t)offsets->area_file;
    links->file_from = (uint16_t)file.from;
    links->file_len = (uint16_t)(file.end - file.from);
}
