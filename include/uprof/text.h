/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text.h - any bytes made safe to show, and escapes per syntax
 *
 * The one place where text from outside (symbols, domain names, messages of
 * other programs) is cleaned. What comes out is valid UTF-8 without control
 * characters, is never empty and never looks like one of our markers; it may
 * stand in a terminal, a folded stack or a message as it is. Writers only
 * escape for their own syntax.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_TEXT_BYTES_MAX = 1024,     /* of a clean text, "..." of a cut included */
    UPROF_TEXT_RAW_BYTES_MAX = 4096, /* of the input that is looked at */
};

/**
 * uprof_text_clean:
 * @raw: any bytes
 *
 * Makes a name of @raw, in this order: invalid UTF-8 becomes U+FFFD per maximal
 * bad piece (as g_utf8_make_valid() counts them); control (NUL too), format
 * (bidirectional controls, zero width), private-use, surrogate and unassigned characters and
 * line and paragraph separators become '?'; other spaces one blank; ';' becomes
 * ':'; a blank before digits at the end becomes '_'; a leading '#' becomes '_';
 * a leading '[' becomes '{' and a trailing "_[x]" (any one character x) "_{x}",
 * so that nothing from outside passes for a marker of ours; what is longer than
 * %UPROF_TEXT_BYTES_MAX is cut between characters and ends in "...". Empty
 * becomes "[unknown]", the only marker this function makes.
 *
 * Deterministic, and idempotent on what it returns (other than the marker).
 *
 * Returns: (transfer full): the clean text
 */
char *uprof_text_clean(UprofSlice raw);

/**
 * uprof_text_quote:
 * @raw: (nullable): a NUL-terminated string from outside
 *
 * As uprof_text_clean() for messages: same characters, but markers, blanks
 * before digits and ';' stay as they are, and %NULL or empty gives "".
 *
 * Returns: (transfer full): text for the argument of a "%s"
 */
char *uprof_text_quote(const char *raw);

/** uprof_text_quote_slice: the same for @raw bytes */
char *uprof_text_quote_slice(UprofSlice raw);

/**
 * uprof_text_append_json:
 * @out: gets @text with '"', '\', what is below 0x20, and "</" escaped
 * @text: valid UTF-8
 */
void uprof_text_append_json(GString *out, const char *text);

/**
 * uprof_text_append_xml:
 * @out: gets @text with & < > " ' escaped
 * @text: valid UTF-8
 */
void uprof_text_append_xml(GString *out, const char *text);

/**
 * uprof_text_file_name:
 * @name: a domain's name, any bytes
 * @uuid: the domain's UUID; its first 8 digits mark a name that was cut
 *
 * A name for files: bytes outside [A-Za-z0-9_.-], and a leading '.' or '-', as
 * %XX; cut at 100 bytes, never inside "%XX", then '~' and 8 digits of @uuid.
 * An empty name is '~' and those digits.
 *
 * Returns: (transfer full): the file name, never empty, "." or ".."
 */
char *uprof_text_file_name(const char *name, const char *uuid);

/**
 * uprof_text_shell_word:
 * @name: any bytes
 * @fallback: what to say instead
 *
 * Returns: @name if no shell and no option parser would take it for anything
 *   but a plain word, else @fallback
 */
const char *uprof_text_shell_word(const char *name, const char *fallback);
