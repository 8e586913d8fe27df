/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kallsyms.h"

#include <string.h>

#include "uprof/error.h"

/*
 * Names are made of 256 tokens: each byte of a packed name stands for one, and those of
 * digits and letters mostly for themselves. So the strings "0" to "9" stand one behind
 * the other in the table of tokens, and its index (256 offsets, 16 bits each) says
 * whether what surrounds them is that table. Packed names lie before it, headed by
 * their number; the addresses before that, or behind the index (from Linux 6.4 on). From
 * 7.0 on tables are aligned to 4 bytes, and to 8 before.
 *
 * All numbers are little-endian.
 */

enum {
    TOKENS = 256,
    TOKEN_BYTES_MAX = 512,
    INDEX_GAP_MAX = 64, /* between the tokens and their index: padding */
    INDEX_BYTES = TOKENS * 2,
    COUNT_STEP = 4,     /* tables are aligned so, up to 6.19 twice as far */
    COUNT_BYTES = 4,    /* their number of names, from 7.0 on */
    LONG_BYTES = 8,     /* before that: a long, or 32 bits and padding */
    MARKER_NAMES = 256, /* each has a marker, where it begins */
    TYPES_LOOKED_AT = 64,
    TABLE_GAP_MAX =
        8 * 1024 * 1024,     /* between the names and the tokens: markers, and numbers of names */
    FALLING_MAX_PERCENT = 2, /* of addresses: variables of each CPU stand among them */
};

static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";

/* A table that is being found. */
typedef struct {
    UprofSlice image;
    uint64_t base;
    unsigned n_min;
    uint64_t steps; /* entries looked at in all */

    size_t tokens;           /* where the table begins */
    size_t index_end;        /* where its index ends */
    uint16_t starts[TOKENS]; /* of each token, from there */
    uint16_t lengths[TOKENS];

    size_t count_at; /* where the number of names stands */
    unsigned n;
    bool is_wide; /* lengths above 127 have two bytes */
    size_t names_at;
} Search;

static const uint8_t *
at(const Search *search, size_t offset)
{
    return (const uint8_t *)search->image.data + offset;
}

static uint16_t
read16(const Search *search, size_t offset)
{
    return (uint16_t)(at(search, offset)[0] | at(search, offset)[1] << 8);
}

static uint32_t
read32(const Search *search, size_t offset)
{
    return read16(search, offset) | (uint32_t)read16(search, offset + 2) << 16;
}

static uint64_t
read64(const Search *search, size_t offset)
{
    return read32(search, offset) | (uint64_t)read32(search, offset + 4) << 32;
}

/* ---- Tokens ---- */

/* Where the string that ends with the NUL at @end begins; 0: it is too long */
static size_t
string_start(const Search *search, size_t end)
{
    size_t start = end;

    while (start > 0 && end - start < TOKEN_BYTES_MAX && at(search, start - 1)[0] != 0)
        start--;
    return start > 0 && at(search, start - 1)[0] == 0 ? start : 0;
}

/* Where the string at @start ends, at its NUL; 0: it is too long */
static size_t
string_end(const Search *search, size_t start)
{
    const size_t left = MIN(search->image.len - start, (size_t)TOKEN_BYTES_MAX + 1);
    const uint8_t *end = memchr(at(search, start), 0, left);

    return end ? (size_t)(end - at(search, 0)) : 0;
}

/* The index is of a table whose second token begins at @places[1], and so on. */
static bool
is_index(const Search *search, size_t index, const size_t places[TOKENS])
{
    if (read16(search, index) != 0)
        return false;
    for (unsigned i = 2; i < TOKENS; i++)
        if ((size_t)read16(search, index + 2 * (size_t)i) - read16(search, index + 2) !=
            places[i] - places[1])
            return false;
    return true;
}

/* What stands before a table is no part of its first token, which its index tells apart. */
static bool
take_tokens(Search *search, size_t index, const size_t places[TOKENS])
{
    const size_t first_bytes = read16(search, index + 2);

    if (first_bytes == 0 || first_bytes > TOKEN_BYTES_MAX || first_bytes > places[1])
        return false;
    search->tokens = places[1] - first_bytes;
    search->index_end = index + INDEX_BYTES;
    for (unsigned i = 0; i < TOKENS; i++) {
        const uint16_t start = read16(search, index + 2 * (size_t)i);
        const size_t end = string_end(search, search->tokens + start);
        if (end == 0)
            return false;
        search->starts[i] = start;
        search->lengths[i] = (uint16_t)(end - search->tokens - start);
    }
    return search->lengths[0] == first_bytes - 1;
}

/* @zero: where "0" stands. Returns: whether the tokens are around it */
static bool
find_tokens(Search *search, size_t zero)
{
    size_t places[TOKENS];

    places['0'] = zero;
    for (unsigned i = '0'; i > 1; i--) {
        places[i - 1] = places[i] > 0 ? string_start(search, places[i] - 1) : 0;
        if (places[i - 1] == 0)
            return false;
    }
    for (unsigned i = '0'; i < TOKENS - 1; i++) {
        const size_t end = string_end(search, places[i]);
        if (end == 0 || end + 1 >= search->image.len)
            return false;
        places[i + 1] = end + 1;
    }
    const size_t end = string_end(search, places[TOKENS - 1]);
    if (end == 0)
        return false;
    for (size_t index = (end + 2) & ~(size_t)1; index <= end + 1 + INDEX_GAP_MAX; index += 2) {
        if (index + INDEX_BYTES > search->image.len)
            return false;
        if (is_index(search, index, places))
            return take_tokens(search, index, places);
    }
    return false;
}

/* ---- Names ---- */

static bool
is_type(uint8_t letter)
{
    return g_ascii_isalpha((char)letter) || letter == '?' || letter == '-';
}

/* The first letter of a packed name is the symbol's type. @token: its first byte */
static uint8_t
first_letter(const Search *search, uint8_t token)
{
    return search->lengths[token] > 0 ? at(search, search->tokens + search->starts[token])[0] : 0;
}

/*
 * The packed name at @place: its bytes, in @body and @len. Returns: where the next one
 * is; 0: it does not end before the tokens, or there is none
 */
static size_t
next_name(const Search *search, bool is_wide, size_t place, size_t *body, size_t *len)
{
    if (place + 2 > search->tokens)
        return 0;
    *body = place + 1;
    *len = at(search, place)[0];
    if (is_wide && *len >= 128) {
        *len = (*len & 127) | (size_t)at(search, place + 1)[0] << 7;
        (*body)++;
    }
    if (*len == 0 || *len > UPROF_KALLSYMS_NAME_BYTES_MAX || *len > search->tokens - *body)
        return 0;
    return *body + *len;
}

/* A 32-bit or a 64-bit number that must stand before the tokens */
static bool
is_marker(const Search *search, size_t place, unsigned bytes, uint64_t value)
{
    return place + bytes <= search->tokens &&
           (bytes == 4 ? read32(search, place) : read64(search, place)) == value;
}

/* Behind the names, aligned: where each 256th of them begins, in 32 or 64 bits. */
static bool
has_markers(const Search *search, size_t names_end, size_t second)
{
    for (unsigned i = 0; i < 4; i++) {
        const unsigned align = i & 1 ? 4 : 8, bytes = i & 2 ? 8 : 4;
        const size_t markers = (names_end + align - 1) / align * align;
        if (is_marker(search, markers, bytes, 0) &&
            (search->n <= MARKER_NAMES || is_marker(search, markers + bytes, bytes, second)))
            return true;
    }
    return false;
}

/* Whether as many names as the number at @count_at says stand behind its @bytes */
static bool
try_names(Search *search, size_t bytes, bool is_wide)
{
    const size_t names = search->count_at + bytes;
    size_t place = names, second = 0, body, len;

    for (unsigned i = 0; i < search->n; i++) {
        if (i == MARKER_NAMES)
            second = place - names;
        if (++search->steps > UPROF_KALLSYMS_STEPS_MAX)
            return false;
        place = next_name(search, is_wide, place, &body, &len);
        if (place == 0 || place - names > UPROF_KALLSYMS_PACKED_BYTES_MAX)
            return false;
        if (i < TYPES_LOOKED_AT && !is_type(first_letter(search, at(search, body)[0])))
            return false;
    }
    if (search->tokens - place > TABLE_GAP_MAX || !has_markers(search, place, second))
        return false;
    search->is_wide = is_wide;
    search->names_at = names;
    return true;
}

static bool
find_names(Search *search)
{
    const size_t far = (size_t)UPROF_KALLSYMS_PACKED_BYTES_MAX + TABLE_GAP_MAX;
    const size_t lowest = search->tokens > far ? search->tokens - far : 0;

    /* aligned in the guest, and so in the copy, which begins with a page */
    for (size_t place = search->tokens / COUNT_STEP * COUNT_STEP; place >= lowest + COUNT_STEP;) {
        place -= COUNT_STEP;
        if (++search->steps > UPROF_KALLSYMS_STEPS_MAX)
            return false;
        search->count_at = place;
        search->n = read32(search, place);
        if (search->n < search->n_min || search->n > UPROF_KALLSYMS_MAX)
            continue;
        const bool may_be_long = place % LONG_BYTES == 0 && read32(search, place + 4) == 0;
        if (may_be_long &&
            (try_names(search, LONG_BYTES, true) || try_names(search, LONG_BYTES, false)))
            return true;
        if (try_names(search, COUNT_BYTES, true))
            return true;
    }
    return false;
}

/* ---- Addresses ---- */

/* How an address is made of an entry: @place: where it stands; @relative_base: if there is one */
typedef uint64_t (*Decode)(const Search *search, size_t place, uint64_t relative_base);

static uint64_t
decode_absolute(const Search *search, size_t place, uint64_t relative_base)
{
    return read64(search, place);
}

static uint64_t
decode_relative(const Search *search, size_t place, uint64_t relative_base)
{
    return relative_base + read32(search, place);
}

/* Not negative: absolute, a variable of each CPU. Else from the base up, from -1 on down. */
static uint64_t
decode_percpu(const Search *search, size_t place, uint64_t relative_base)
{
    const int32_t offset = (int32_t)read32(search, place);

    return offset >= 0 ? (uint64_t)offset : relative_base - 1 - (uint64_t)(int64_t)offset;
}

static uint64_t
decode_place(const Search *search, size_t place, uint64_t relative_base)
{
    return search->base + place + (uint64_t)(int64_t)(int32_t)read32(search, place);
}

/* clang-format off */

/* In the order of trying: what is absolute-percpu may pass for relative, so it goes first. */
static const struct {
    const char *name;
    Decode decode;
    unsigned entry_bytes;
    bool has_base;    /* a 64-bit number, aligned, behind the entries */
    bool is_behind;   /* the tokens' index; else before the number of names */
    unsigned align;
} layouts[] = {
    { "offsets of CPUs or of a base, behind the tokens", decode_percpu,   4, true,  true,  8 },
    { "offsets of a base, behind the tokens",            decode_relative, 4, true,  true,  8 },
    { "offsets of their own places, behind the tokens",  decode_place,    4, false, true,  4 },
    { "offsets of CPUs or of a base, before the names",  decode_percpu,   4, true,  false, 8 },
    { "offsets of a base, before the names",             decode_relative, 4, true,  false, 8 },
    { "addresses, before the names",                     decode_absolute, 8, false, false, 8 },
};
/* clang-format on */

static size_t
align_up(size_t value, size_t align)
{
    return (value + align - 1) / align * align;
}

/* Returns: false if the image has no room for such tables */
static bool
place_entries(const Search *search, size_t layout, size_t *entries, uint64_t *relative_base)
{
    const size_t len = (size_t)search->n * layouts[layout].entry_bytes;
    const size_t padded = align_up(len, 8) + (layouts[layout].has_base ? 8 : 0);

    if (layouts[layout].is_behind) {
        *entries = align_up(search->index_end, layouts[layout].align);
        if (*entries > search->image.len || padded > search->image.len - *entries)
            return false;
    } else {
        if (padded > search->count_at)
            return false;
        *entries = search->count_at - padded;
    }
    *relative_base = layouts[layout].has_base ? read64(search, *entries + align_up(len, 8)) : 0;
    return true;
}

static bool
is_in_image(const Search *search, uint64_t address)
{
    return address >= search->base && address - search->base < search->image.len;
}

/* Addresses rise but for few, and most are in the image. */
static bool
is_plausible(const Search *search, const GArray *symbols)
{
    uint64_t last = 0;
    size_t n_falling = 0, n_inside = 0;

    for (guint i = 0; i < symbols->len; i++) {
        const uint64_t address = g_array_index(symbols, UprofKallsym, i).address;
        n_falling += address < last;
        n_inside += is_in_image(search, address);
        last = address;
    }
    return n_falling * 100 <= (size_t)symbols->len * FALLING_MAX_PERCENT &&
           n_inside * 2 >= symbols->len;
}

/* Where the text begins is what makes sure of it: nobody else's symbol is of that name. */
static bool
has_text(const Search *search, const UprofKallsyms *kallsyms)
{
    uint64_t address;

    return (uprof_kallsyms_find(kallsyms, "_text", &address) ||
            uprof_kallsyms_find(kallsyms, "_stext", &address)) &&
           address % 4096 == 0 && is_in_image(search, address);
}

static bool
find_addresses(Search *search, UprofKallsyms *kallsyms)
{
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        uint64_t relative_base;
        size_t entries;
        if (!place_entries(search, i, &entries, &relative_base))
            continue;
        for (guint k = 0; k < search->n; k++)
            g_array_index(kallsyms->symbols, UprofKallsym, k).address = layouts[i].decode(
                search, entries + (size_t)k * layouts[i].entry_bytes, relative_base);
        kallsyms->layout = layouts[i].name;
        if (is_plausible(search, kallsyms->symbols) && has_text(search, kallsyms))
            return true;
    }
    return false;
}

/* ---- All of it ---- */

/* One packed name, as text. Returns: false if it would be too long */
static bool
expand(const Search *search, size_t body, size_t len, GByteArray *names, UprofKallsym *symbol)
{
    const guint start = names->len;

    for (size_t i = 0; i < len; i++) {
        const uint8_t token = at(search, body + i)[0];
        if (names->len - start + search->lengths[token] > UPROF_KALLSYMS_NAME_BYTES_MAX)
            return false;
        g_byte_array_append(names, at(search, search->tokens + search->starts[token]),
                            search->lengths[token]);
    }
    if (names->len - start < 2 || names->len > UPROF_KALLSYMS_BYTES_MAX)
        return false;
    symbol->type = (char)names->data[start];
    symbol->name = start + 1;
    g_byte_array_append(names, (const uint8_t *)"", 1);
    return true;
}

static bool
expand_all(const Search *search, UprofKallsyms *kallsyms)
{
    size_t place = search->names_at, body, len;

    for (unsigned i = 0; i < search->n; i++) {
        UprofKallsym symbol = { 0 };
        place = next_name(search, search->is_wide, place, &body, &len);
        if (place == 0 || !expand(search, body, len, kallsyms->names, &symbol))
            return false;
        g_array_append_val(kallsyms->symbols, symbol);
    }
    return true;
}

/* Returns: (nullable): the table around the token "0" at @zero */
static UprofKallsyms *
try_table(Search *search, size_t zero)
{
    g_autoptr(UprofKallsyms) kallsyms = NULL;

    if (!find_tokens(search, zero) || !find_names(search))
        return NULL;
    kallsyms = g_new0(UprofKallsyms, 1);
    kallsyms->symbols = g_array_sized_new(FALSE, FALSE, sizeof(UprofKallsym), search->n);
    kallsyms->names = g_byte_array_new();
    if (!expand_all(search, kallsyms) || !find_addresses(search, kallsyms))
        return NULL;
    return g_steal_pointer(&kallsyms);
}

UprofKallsyms *
uprof_kallsyms_parse(UprofSlice image, uint64_t base, unsigned n_min, GError **error)
{
    Search search = { .image = image, .base = base, .n_min = MAX(n_min, 1) };
    size_t from = 0;

    while (from < image.len && search.steps <= UPROF_KALLSYMS_STEPS_MAX) {
        const uint8_t *found = memmem(at(&search, from), image.len - from, digits, sizeof(digits));
        if (!found)
            break;
        from = (size_t)(found - at(&search, 0)) + 1;
        search.steps += TOKENS;
        UprofKallsyms *kallsyms = try_table(&search, from - 1);
        if (kallsyms)
            return kallsyms;
    }
    g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                        "there is no table of symbols in this kernel's image");
    return NULL;
}

void
uprof_kallsyms_free(UprofKallsyms *kallsyms)
{
    if (!kallsyms)
        return;
    g_array_unref(kallsyms->symbols);
    g_clear_pointer(&kallsyms->names, g_byte_array_unref); /* somebody may have taken them */
    g_free(kallsyms);
}

const char *
uprof_kallsyms_name(const UprofKallsyms *kallsyms, const UprofKallsym *symbol)
{
    return (const char *)kallsyms->names->data + symbol->name;
}

bool
uprof_kallsyms_find(const UprofKallsyms *kallsyms, const char *name, uint64_t *address)
{
    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        if (strcmp(uprof_kallsyms_name(kallsyms, symbol), name) != 0)
            continue;
        *address = symbol->address;
        return true;
    }
    return false;
}

/* FNV-1a, 64 bits (draft-eastlake-fnv, section 2): for its speed, not against forgery */
static uint64_t
add_to_digest(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = (digest ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return digest;
}

uint64_t
uprof_kallsyms_digest(const UprofKallsyms *kallsyms)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        char head[32];
        g_snprintf(head, sizeof(head), "%016" G_GINT64_MODIFIER "x %c ", symbol->address,
                   symbol->type);
        digest = add_to_digest(digest, head);
        digest = add_to_digest(digest, uprof_kallsyms_name(kallsyms, symbol));
        digest = add_to_digest(digest, "\n");
    }
    return digest;
}
