/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-kallsyms.h"

#include <string.h>

enum { TEXT_BYTES = 4096, TOKEN_WORD = 0x80, TOKENS = 256 };

static const char word[] = "function_";

char *
kallsyms_name(const KallsymsPlan *plan, unsigned i)
{
    if (i >= plan->n)
        return g_strdup(plan->named[i - plan->n].name);
    if (i < plan->n_percpu)
        return g_strdup_printf("cpu_%04u", i);
    if (i == plan->n_percpu)
        return g_strdup("_text");
    g_autofree char *name = g_strdup_printf("%s%04u", word, i - plan->n_percpu);
    if (i + 1 < plan->n || plan->long_bytes <= strlen(name))
        return g_steal_pointer(&name);
    g_autofree char *more = g_strnfill(plan->long_bytes - strlen(name), 'x');
    return g_strconcat(name, more, NULL);
}

uint64_t
kallsyms_address(const KallsymsPlan *plan, unsigned i)
{
    if (i >= plan->n)
        return plan->named[i - plan->n].address;
    return i < plan->n_percpu ? 8 * (uint64_t)i
                              : KALLSYMS_BASE + 16 * (uint64_t)(i - plan->n_percpu);
}

static char
find_type(const KallsymsPlan *plan, unsigned i)
{
    if (i >= plan->n)
        return plan->named[i - plan->n].type;
    return i < plan->n_percpu ? 'A' : i % 2 ? 't' : 'T';
}

static unsigned
count_all(const KallsymsPlan *plan)
{
    return plan->n + plan->n_named;
}

static void
put(GByteArray *image, uint64_t value, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        const uint8_t byte = i < 8 ? (uint8_t)(value >> 8 * i) : 0;
        g_byte_array_append(image, &byte, 1);
    }
}

static void
align(GByteArray *image, unsigned len)
{
    while (image->len % len != 0)
        put(image, 0, 1);
}

/* Returns: the alignment of tables: 4 bytes from 7.0 on */
static unsigned
table_bytes(const KallsymsPlan *plan)
{
    return plan->addresses == KALLSYMS_PLACE ? 4 : 8;
}

/* Tables with an alignment of 4 are not aligned to 8, like some tables of real kernels. */
static void
align_table(GByteArray *image, const KallsymsPlan *plan)
{
    align(image, table_bytes(plan));
    if (table_bytes(plan) == 4 && image->len % 8 == 0)
        put(image, 0, 4);
}

static uint32_t
offset_of(const KallsymsPlan *plan, unsigned i, uint64_t place)
{
    const uint64_t address = kallsyms_address(plan, i);

    switch (plan->addresses) {
    case KALLSYMS_PLACE:
        return (uint32_t)(address - place);
    case KALLSYMS_PERCPU:
        return address < KALLSYMS_BASE ? (uint32_t)address
                                       : (uint32_t)(KALLSYMS_BASE - 1 - address);
    default:
        return (uint32_t)(address - KALLSYMS_BASE);
    }
}

static void
put_addresses(GByteArray *image, const KallsymsPlan *plan)
{
    align(image, table_bytes(plan));
    for (unsigned i = 0; i < count_all(plan); i++) {
        if (plan->addresses == KALLSYMS_ABSOLUTE)
            put(image, kallsyms_address(plan, i), 8);
        else
            put(image, offset_of(plan, i, KALLSYMS_BASE + image->len), 4);
    }
    align(image, 8);
    if (plan->addresses == KALLSYMS_RELATIVE || plan->addresses == KALLSYMS_PERCPU)
        put(image, KALLSYMS_BASE, 8);
}

static void
put_name(GByteArray *image, const KallsymsPlan *plan, unsigned i)
{
    g_autofree char *name = kallsyms_name(plan, i);
    const bool has_word = g_str_has_prefix(name, word);
    const char *rest = has_word ? name + strlen(word) : name;
    const size_t len = 1 + has_word + strlen(rest);

    if (plan->wide_lengths && len >= 128) {
        put(image, (len & 127) | 128, 1);
        put(image, len >> 7, 1);
    } else {
        put(image, len, 1);
    }
    put(image, (uint8_t)find_type(plan, i), 1);
    if (has_word)
        put(image, TOKEN_WORD, 1);
    g_byte_array_append(image, (const uint8_t *)rest, (guint)strlen(rest));
}

static void
put_names(GByteArray *image, const KallsymsPlan *plan)
{
    g_autoptr(GArray) markers = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    align_table(image, plan);
    put(image, count_all(plan), plan->wide_markers ? 8 : 4);
    align(image, table_bytes(plan));
    const guint names = image->len;
    for (unsigned i = 0; i < count_all(plan); i++) {
        const uint64_t at = image->len - names;
        if (i % 256 == 0)
            g_array_append_val(markers, at);
        put_name(image, plan, i);
    }
    align(image, table_bytes(plan));
    for (guint i = 0; i < markers->len; i++)
        put(image, g_array_index(markers, uint64_t, i), plan->wide_markers ? 8 : 4);
    for (unsigned i = 0; plan->has_seqs && i < count_all(plan); i++)
        put(image, i, 3);
}

static void
put_tokens(GByteArray *image, const KallsymsPlan *plan)
{
    uint16_t starts[TOKENS];

    align_table(image, plan);
    const guint table = image->len;
    for (unsigned i = 0; i < TOKENS; i++) {
        starts[i] = (uint16_t)(image->len - table);
        if (i == TOKEN_WORD)
            g_byte_array_append(image, (const uint8_t *)word, (guint)strlen(word));
        else if (g_ascii_isgraph((char)i))
            put(image, i, 1);
        put(image, 0, 1);
    }
    align_table(image, plan);
    for (unsigned i = 0; i < TOKENS; i++)
        put(image, starts[i], 2);
}

GByteArray *
build_kallsyms(const KallsymsPlan *plan)
{
    GByteArray *image = g_byte_array_new();

    put(image, 0, TEXT_BYTES);
    if (!plan->addresses_last)
        put_addresses(image, plan);
    put_names(image, plan);
    put_tokens(image, plan);
    if (plan->addresses_last)
        put_addresses(image, plan);
    /* the image contains the addresses of all symbols */
    const guint end = MAX(image->len, 16 * plan->n);
    put(image, 0, end - image->len + 64);
    return image;
}
