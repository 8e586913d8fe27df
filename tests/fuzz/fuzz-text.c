/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "../../src/base/text-priv.h"
#include "uprof/text.h"

static void
check_shown(const char *text, size_t raw_len)
{
    const size_t len = strlen(text);

    g_assert(g_utf8_validate(text, len, NULL));
    g_assert(len <= UPROF_TEXT_BYTES_MAX && len <= 3 * raw_len + 16);
    for (const char *c = text; *c; c = g_utf8_next_char(c))
        g_assert((unsigned char)*c >= 0x20 && g_unichar_isprint(g_utf8_get_char(c)));
}

static void
check_clean(UprofSlice raw)
{
    g_autofree char *clean = uprof_text_clean(raw);

    g_assert(clean[0] != '\0');
    check_shown(clean, raw.len);
    if (raw.len == 0)
        return;

    g_assert(!strchr(clean, ';') && clean[0] != '[' && clean[0] != '#');
    g_assert(!g_str_has_suffix(clean, "_[k]"));
    const char *blank = strrchr(clean, ' ');
    g_assert(!blank || !blank[1] || blank[1 + strspn(blank + 1, "0123456789")]);

    g_autofree char *again = uprof_text_clean((UprofSlice){ clean, strlen(clean) });
    g_assert_cmpstr(again, ==, clean);
}

static void
check_quoted(UprofSlice raw)
{
    g_autofree char *quoted = uprof_text_quote_slice(raw);
    g_autoptr(GString) json = g_string_new(NULL), xml = g_string_new(NULL);

    check_shown(quoted, raw.len);
    uprof_text_append_json(json, quoted);
    uprof_text_append_xml(xml, quoted);
    g_assert(!strstr(json->str, "</"));
    g_assert(!strpbrk(xml->str, "<>\"'"));
    g_assert(g_utf8_validate(json->str, -1, NULL) && g_utf8_validate(xml->str, -1, NULL));
}

static void
check_file_name(UprofSlice raw)
{
    g_autofree char *name = g_strndup(raw.data ? raw.data : "", raw.len);
    g_autofree char *file = uprof_text_file_name(name, name);

    g_assert(file[0] != '\0' && file[0] != '.' && file[0] != '-');
    g_assert(strlen(file) <= 109);
    for (const char *c = file; *c; c++)
        g_assert(g_ascii_isalnum(*c) || strchr("_.-%~", *c));
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice raw = { data, size };

    check_clean(raw);
    check_quoted(raw);
    check_file_name(raw);
}
