/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "text-priv.h"

#include <string.h>

static const char ellipsis[] = "...";

/* Returns: the character to show for @c */
static gunichar
make_harmless(gunichar c)
{
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_PRIVATE_USE:
    case G_UNICODE_SURROGATE:
    case G_UNICODE_UNASSIGNED:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
        return '?';
    case G_UNICODE_SPACE_SEPARATOR:
        return ' ';
    default:
        return c;
    }
}

/* Returns: bytes of printable ASCII at the beginning of the @left bytes at @at */
static size_t
measure_ascii(const char *at, size_t left)
{
    size_t len = 0;

    while (len < left && g_ascii_isprint(at[len]))
        len++;
    return len;
}

/*
 * Appends the first character of the @left bytes at @at, or all that are printable ASCII.
 *
 * Returns: bytes that were read
 */
static size_t
append_harmless(GString *out, const char *at, size_t left)
{
    const size_t n_ascii = measure_ascii(at, left);

    if (n_ascii > 0) {
        g_string_append_len(out, at, (gssize)n_ascii);
        return n_ascii;
    }
    /* NUL is an ordinary control character here, but invalid for g_utf8_*(). */
    const gunichar c = *at ? g_utf8_get_char_validated(at, (gssize)left) : 0;
    const bool is_valid = c != (gunichar)-1 && c != (gunichar)-2;

    g_string_append_unichar(out, is_valid ? make_harmless(c) : 0xfffd);
    return is_valid ? (size_t)g_unichar_to_utf8(c, NULL) : 1;
}

static GString *
make_utf8(UprofSlice raw)
{
    const size_t len = MIN(raw.len, UPROF_TEXT_RAW_BYTES_MAX);
    GString *out = g_string_sized_new(len);

    for (size_t at = 0; at < len;)
        at += append_harmless(out, (const char *)raw.data + at, len - at);
    return out;
}

/* Returns: bytes of the sequence "ESC [ digits and ';' m" at @at; 0 if there is none */
static size_t
measure_color(const char *at, size_t left)
{
    size_t len = 2;

    if (left < 3 || at[0] != '\x1b' || at[1] != '[')
        return 0;
    while (len < left && (g_ascii_isdigit(at[len]) || at[len] == ';'))
        len++;
    return len < left && at[len] == 'm' ? len + 1 : 0;
}

void
uprof_text_append_lines(GString *out, UprofSlice raw)
{
    for (size_t at = 0; at < raw.len;) {
        const char *text = (const char *)raw.data + at;
        const size_t kept = *text == '\n' ? 1 : measure_color(text, raw.len - at);
        g_string_append_len(out, text, (gssize)kept);
        at += kept > 0 ? kept : append_harmless(out, text, raw.len - at);
    }
}

/* A line of folded stacks ends with a blank and a number, so a name must not. */
static void
join_count(GString *text)
{
    size_t at = text->len;

    while (at > 0 && g_ascii_isdigit(text->str[at - 1]))
        at--;
    if (at > 0 && at < text->len && text->str[at - 1] == ' ')
        text->str[at - 1] = '_';
}

static void
disarm_suffix(GString *text)
{
    char *end = text->str + text->len;

    if (text->len < 4 || end[-1] != ']')
        return;

    char *mark = g_utf8_find_prev_char(text->str, end - 1);
    if (!mark || mark - text->str < 2 || mark[-1] != '[' || mark[-2] != '_')
        return;
    mark[-1] = '{';
    end[-1] = '}';
}

static void
replace_first(GString *text, char from, char to)
{
    if (text->str[0] == from)
        text->str[0] = to;
}

static void
shorten_text(GString *text, bool force)
{
    if (text->len <= UPROF_TEXT_BYTES_MAX && !force)
        return;

    size_t len = MIN(text->len, UPROF_TEXT_BYTES_MAX - strlen(ellipsis));
    while (len > 0 && (text->str[len] & 0xc0) == 0x80)
        len--;
    g_string_truncate(text, len);
    g_string_append(text, ellipsis);
}

char *
uprof_text_clean(UprofSlice raw)
{
    if (raw.len == 0)
        return g_strdup("[unknown]");

    GString *text = make_utf8(raw);

    for (char *c = text->str; *c; c++)
        if (*c == ';')
            *c = ':';
    join_count(text);
    replace_first(text, '#', '_');
    replace_first(text, '[', '{');
    disarm_suffix(text);
    shorten_text(text, raw.len > UPROF_TEXT_RAW_BYTES_MAX);
    return g_string_free(text, FALSE);
}

char *
uprof_text_quote(const char *raw)
{
    if (!raw)
        return g_strdup("");
    return uprof_text_quote_slice((UprofSlice){ raw, strlen(raw) });
}

char *
uprof_text_quote_slice(UprofSlice raw)
{
    GString *text = make_utf8(raw);

    shorten_text(text, raw.len > UPROF_TEXT_RAW_BYTES_MAX);
    return g_string_free(text, FALSE);
}

void
uprof_text_append_json(GString *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            g_string_append_printf(out, "\\u%04x", *c);
        else if (*c == '/' && c > text && c[-1] == '<')
            g_string_append(out, "\\/"); /* "</script>" ends a script even in a string */
        else
            g_string_append_c(out, *c);
    }
}

void
uprof_text_append_xml(GString *out, const char *text)
{
    /* clang-format off */
    static const struct {
        char c;
        const char *escape;
    } escapes[] = {
        { '&',  "&amp;"  },
        { '<',  "&lt;"   },
        { '>',  "&gt;"   },
        { '"',  "&quot;" },
        { '\'', "&#39;"  },
    };
    /* clang-format on */

    for (const char *c = text; *c; c++) {
        const char *escape = NULL;

        for (size_t i = 0; i < G_N_ELEMENTS(escapes); i++)
            if (escapes[i].c == *c)
                escape = escapes[i].escape;
        if (escape)
            g_string_append(out, escape);
        else
            g_string_append_c(out, *c);
    }
}

enum {
    FILE_NAME_BYTES_MAX = 100,
    UUID_DIGITS = 8,
};

static bool
is_file_name_char(char c, bool is_first)
{
    if (c == '.' || c == '-')
        return !is_first;
    return g_ascii_isalnum(c) || c == '_';
}

static void
append_uuid(GString *out, const char *uuid)
{
    unsigned n = 0;

    for (; n < UUID_DIGITS && g_ascii_isxdigit(uuid[n]); n++)
        g_string_append_c(out, g_ascii_tolower(uuid[n]));
    for (; n < UUID_DIGITS; n++)
        g_string_append_c(out, '0');
}

char *
uprof_text_file_name(const char *name, const char *uuid)
{
    GString *out = g_string_new(NULL);

    for (const char *c = name; *c; c++) {
        const bool is_plain = is_file_name_char(*c, c == name);

        if (out->len + (is_plain ? 1 : 3) > FILE_NAME_BYTES_MAX) {
            g_string_append_c(out, '~');
            append_uuid(out, uuid);
            return g_string_free(out, FALSE);
        }
        if (is_plain)
            g_string_append_c(out, *c);
        else
            g_string_append_printf(out, "%%%02X", (unsigned char)*c);
    }
    if (out->len == 0) {
        g_string_append_c(out, '~');
        append_uuid(out, uuid);
    }
    return g_string_free(out, FALSE);
}

const char *
uprof_text_shell_word(const char *name, const char *fallback)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._+-";
    const size_t len = strlen(name);

    return len > 0 && name[0] != '-' && strspn(name, plain) == len ? name : fallback;
}
