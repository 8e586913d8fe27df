/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "name-pattern-priv.h"

#define SEPARATORS " \t\r\n"

/* Returns: @text after its first character; @text is not empty and may be any bytes */
static const char *
next_character(const char *text)
{
    do
        text++;
    while (((unsigned char)*text & 0xc0) == 0x80);
    return text;
}

/*
 * After a mismatch, only the last '*' is extended, so the time is bounded for any name. fnmatch()
 * and GPatternSpec extend each earlier '*' again, too.
 */
bool
uprof_name_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *tried = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            tried = name;
        } else if (*pattern == '?') {
            pattern++;
            name = next_character(name);
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = tried = next_character(tried);
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool
uprof_name_pattern_any(const GPtrArray *patterns, const char *name)
{
    for (guint i = 0; i < patterns->len; i++)
        if (uprof_name_pattern_matches(g_ptr_array_index(patterns, i), name))
            return true;
    return false;
}

GPtrArray *
uprof_name_pattern_split(const char *text)
{
    g_auto(GStrv) parts = g_strsplit_set(text, SEPARATORS, -1);
    GPtrArray *patterns = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; parts[i]; i++)
        if (*parts[i])
            g_ptr_array_add(patterns, g_strdup(parts[i]));
    return patterns;
}
