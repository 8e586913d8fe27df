/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text.h - makes foreign text safe to show, and escapes text for a syntax
 *
 * All text from outside (symbols, domain names, messages of other programs) is cleaned
 * here. Clean text is valid UTF-8 without control characters, never empty, and never looks
 * like a marker of virt-uprof. It can be written to a terminal, a folded stack or a message
 * as it is. Output formats only escape it for their syntax.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_TEXT_BYTES_MAX = 1024, /* of a clean text, with the "..." of a cut */
};

/**
 * uprof_text_clean:
 * @raw: any bytes
 *
 * Makes a name of @raw, in these steps:
 *
 *   1. Each byte that is not valid UTF-8 becomes U+FFFD, as with g_utf8_make_valid().
 *   2. Control characters (NUL, too), format characters (bidirectional controls, zero width),
 *      private-use, surrogate and unassigned characters, and separators of lines and paragraphs
 *      become '?'. Each other space becomes a blank.
 *   3. ';' becomes ':'.
 *   4. A blank before digits at the end becomes '_'. A leading '#' becomes '_'.
 *   5. A leading '[' becomes '{', and a trailing "_[x]" (any one character x) becomes "_{x}". So
 *      no foreign text looks like a marker.
 *   6. Text longer than %UPROF_TEXT_BYTES_MAX is cut between characters and ends in "...".
 *
 * Empty text becomes "[unknown]", the only marker that this function returns.
 *
 * A clean text other than that marker stays the same if it is cleaned again.
 *
 * Returns: (transfer full): the clean text
 */
char *uprof_text_clean(UprofSlice raw);

/**
 * uprof_text_quote:
 * @raw: (nullable): a NUL-terminated string from outside
 *
 * Replaces the same characters as uprof_text_clean(), for messages. Markers, blanks before
 * digits and ';' stay as they are. %NULL and empty text give "".
 *
 * Returns: (transfer full): text for the argument of a "%s"
 */
char *uprof_text_quote(const char *raw);

/** uprof_text_quote_slice: the same for any bytes */
char *uprof_text_quote_slice(UprofSlice raw);

/**
 * uprof_text_append_lines: appends text of several lines, for a terminal
 * @raw: any bytes, of any length
 *
 * Replaces the same characters as uprof_text_quote(), except ends of lines, and the control
 * sequences of ECMA-48 that only choose a color or a weight: ESC [ digits and ';' m.
 */
void uprof_text_append_lines(GString *out, UprofSlice raw);

/**
 * uprof_text_append_xml:
 * @out: @text is appended, with & < > " ' escaped
 * @text: valid UTF-8
 */
void uprof_text_append_xml(GString *out, const char *text);

/**
 * uprof_text_file_name:
 * @name: a domain's name, any bytes
 * @uuid: the domain's UUID; its first 8 digits distinguish names that were cut
 *
 * Makes a file name: bytes outside [A-Za-z0-9_.-], and a leading '.' or '-', become %XX. A
 * name longer than 100 bytes is cut, not inside "%XX", and ends in '~' and 8 digits of @uuid.
 * An empty name becomes '~' and these digits.
 *
 * Returns: (transfer full): the file name, never empty, "." or ".."
 */
char *uprof_text_file_name(const char *name, const char *uuid);

/**
 * uprof_text_shell_word:
 * @name: any bytes
 *
 * Returns: @name if shells and option parsers read it as a plain word, else @fallback
 */
const char *uprof_text_shell_word(const char *name, const char *fallback);
