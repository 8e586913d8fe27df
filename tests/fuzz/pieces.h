/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pieces.h - mutates inputs that are a row of pieces
 *
 * libFuzzer's own mutations move bytes, which breaks all that follows a length or a record of fixed
 * size. mutate-pieces.c deletes, copies and swaps complete pieces, and changes the content of one
 * with libFuzzer's mutations. A target that links with it describes its pieces here.
 */
#pragma once

#include "fuzz.h"

enum { FUZZ_HEAD_BYTES_MAX = 16 };

/** FuzzPiece: a head, and behind it the content */
typedef struct {
    size_t head_len, content_len; /* bytes */
    bool is_fixed;                /* another length would make it another piece */
    bool has_pieces;              /* the content may be a row of pieces */
} FuzzPiece;

/**
 * fuzz_find_piece: finds the piece with which @rest begins
 * @at: bytes of the input before @rest; of nested pieces: not 0
 *
 * Returns: false if there is none
 */
bool fuzz_find_piece(UprofSlice rest, size_t at, FuzzPiece *piece);

/**
 * fuzz_write_head: writes the head of a piece with another length
 * @head: (inout): the head of a piece; has room for %FUZZ_HEAD_BYTES_MAX bytes
 *
 * Returns: the bytes of the head
 */
size_t fuzz_write_head(uint8_t *head, size_t content_len);
