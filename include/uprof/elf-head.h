/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf-head.h - which file a process has mapped, by the first page of it
 *
 * 64-bit, little-endian (System V gABI, "ELF Header" and "Program Header"). The page is
 * the guest's, and may be made to hurt.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_ELF_HEAD_LOADS_MAX = 16,
    UPROF_ELF_HEAD_BUILD_ID_BYTES_MAX = 64,
};

/**
 * UprofElfHead:
 * @first_page: link address of the first page that is loaded
 * @loads: the first @n_loads pieces that are loaded: by pages, where in the file, and their
 *   link addresses
 * @build_id: bytes, @build_id_len of them; none if it has none, or not in this page
 */
typedef struct {
    uint64_t first_page;
    struct {
        uint64_t offset;
        uint64_t address;
    } loads[UPROF_ELF_HEAD_LOADS_MAX];
    unsigned n_loads;
    uint8_t build_id[UPROF_ELF_HEAD_BUILD_ID_BYTES_MAX];
    unsigned build_id_len;
} UprofElfHead;

/**
 * uprof_elf_head_parse:
 * @page: the file's first bytes
 * @head: (out)
 *
 * Returns: false if it is none of such files
 */
bool uprof_elf_head_parse(UprofSlice page, UprofElfHead *head);
