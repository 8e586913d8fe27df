/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * word-distance.h - which word did the user mean?
 */
#pragma once

#include <stdbool.h>

enum { UPROF_WORD_FAR = 3 }; /* a word that differs by so many letters is another word */

/**
 * uprof_word_is_closer: is @candidate closer to @word than all candidates before?
 * @nearest: (inout): %UPROF_WORD_FAR before the first candidate; then the number of letters to add,
 *   drop or change to make a word of the nearest candidate
 *
 * Words of more than 64 bytes are close to no word.
 */
bool uprof_word_is_closer(const char *word, const char *candidate, unsigned *nearest);
