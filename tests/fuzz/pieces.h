/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pieces.h - mutates inputs that are a row of pieces
 *
 * libFuzzer's own mutations insert and delete bytes. This makes lengths wrong, and moves all later
 * records. mutate-pieces.c deletes and copies complete pieces, and changes the content of a piece
 * by libFuzzer's mutations. A target that links with mutate-pieces.c defines the functions below.
 */
#pragma once

#include "fuzz.h"

enum { FUZZ_HEAD_BYTES_MAX = 16 };

/** FuzzPiece: a head, followed by the content */
typedef struct {
    size_t head_len, content_len; /* bytes */
    bool is_fixed;                /* the length of the content must not change */
    bool has_pieces;              /* the content may be a row of pieces */
} FuzzPiece;

/**
 * fuzz_find_piece: finds the piece at the start of @rest
 * @at: bytes of the input before @rest; never 0 for a nested piece
 *
 * Returns: false if @rest does not begin with a piece
 */
bool fuzz_find_piece(UprofSlice rest, size_t at, FuzzPiece *piece);

/**
 * fuzz_write_head: writes the head of a piece with another length
 * @head: (inout): the head of a piece; has room for %FUZZ_HEAD_BYTES_MAX bytes
 *
 * Returns: the bytes of the head
 */
size_t fuzz_write_head(uint8_t *head, size_t content_len);
