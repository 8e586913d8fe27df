/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf-head.h - recognizes the file that a process has mapped, by the first page of the file
 *
 * Reads 64-bit little-endian files (System V gABI, "ELF Header" and "Program Header"). A
 * hostile guest may write any page.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_ELF_HEAD_LOADS_MAX = 16,
    UPROF_ELF_HEAD_BUILD_ID_BYTES_MAX = 64,
};

typedef struct {
    uint64_t first_page; /* link address of the first loaded page */
    struct {
        uint64_t offset;               /* in the file, rounded down to a page */
        uint64_t address;              /* link address, rounded down to a page */
    } loads[UPROF_ELF_HEAD_LOADS_MAX]; /* the first @n_loads loaded segments */
    unsigned n_loads;
    uint8_t build_id[UPROF_ELF_HEAD_BUILD_ID_BYTES_MAX];
    unsigned build_id_len; /* bytes; 0 if the page has no build-id */
} UprofElfHead;

/**
 * uprof_elf_head_parse:
 * @page: first bytes of the file
 * @head: (out)
 *
 * Returns: false if the page does not begin such a file, or has no loaded segment
 */
bool uprof_elf_head_parse(UprofSlice page, UprofElfHead *head);
