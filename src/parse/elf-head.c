/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/elf-head.h"

#include <elf.h>
#include <string.h>

enum { PAGE_BYTES = 4096, NOTES_MAX = 64 };

/* Stores the first build-id of @notes, if there is one. */
static bool
take_build_id(UprofSlice notes, UprofElfHead *head)
{
    UprofBytes bytes = { .all = notes };
    uint32_t name_len, len, type;
    UprofSlice name, body, rest;

    for (unsigned i = 0; i < NOTES_MAX; i++) {
        if (!uprof_bytes_u32(&bytes, &name_len) || !uprof_bytes_u32(&bytes, &len) ||
            !uprof_bytes_u32(&bytes, &type) || !uprof_bytes_take(&bytes, name_len, &name) ||
            !uprof_bytes_take(&bytes, (4 - name_len % 4) % 4, &rest) ||
            !uprof_bytes_take(&bytes, len, &body))
            return false;
        if (type == NT_GNU_BUILD_ID && name.len == 4 && memcmp(name.data, "GNU", 4) == 0 &&
            body.len > 0 && body.len <= sizeof(head->build_id)) {
            memcpy(head->build_id, body.data, body.len);
            head->build_id_len = (unsigned)body.len;
            return true;
        }
        if (!uprof_bytes_take(&bytes, (4 - len % 4) % 4, &rest))
            return false;
    }
    return false;
}

static void
add_load(UprofElfHead *head, uint64_t offset, uint64_t address)
{
    head->loads[head->n_loads].offset = offset - offset % PAGE_BYTES;
    head->loads[head->n_loads].address = address - address % PAGE_BYTES;
    if (head->n_loads == 0)
        head->first_page = head->loads[0].address;
    head->n_loads++;
}

bool
uprof_elf_head_parse(UprofSlice page, UprofElfHead *head)
{
    Elf64_Ehdr file;

    *head = (UprofElfHead){ 0 };
    if (page.len < sizeof(file))
        return false;
    memcpy(&file, page.data, sizeof(file));
    if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_ident[EI_DATA] != ELFDATA2LSB ||
        GUINT16_FROM_LE(file.e_phentsize) != sizeof(Elf64_Phdr))
        return false;
    const uint64_t from = MIN(GUINT64_FROM_LE(file.e_phoff), (uint64_t)page.len);
    for (unsigned i = 0; i < GUINT16_FROM_LE(file.e_phnum); i++) {
        Elf64_Phdr segment;
        UprofSlice part, notes;
        if (!uprof_slice_sub(page, from + i * sizeof(segment), sizeof(segment), &part))
            break;
        memcpy(&segment, part.data, sizeof(segment));
        if (GUINT32_FROM_LE(segment.p_type) == PT_LOAD && head->n_loads < UPROF_ELF_HEAD_LOADS_MAX)
            add_load(head, GUINT64_FROM_LE(segment.p_offset), GUINT64_FROM_LE(segment.p_vaddr));
        if (GUINT32_FROM_LE(segment.p_type) == PT_NOTE && head->build_id_len == 0 &&
            uprof_slice_sub(page, GUINT64_FROM_LE(segment.p_offset),
                            GUINT64_FROM_LE(segment.p_filesz), &notes))
            take_build_id(notes, head);
    }
    return head->n_loads > 0;
}
