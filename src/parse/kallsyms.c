/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kallsyms.h"

#include "kallsyms-priv.h"

#include <string.h>

#include "uprof/error.h"
#include "uprof/fnv.h"

/*
 * The tables in the image, from low to high addresses. scripts/kallsyms.c writes them,
 * kernel/kallsyms.c reads them:
 *
 *            before Linux 6.4              from 6.4 on
 *
 *            entries: addresses, or        number of names
 *              offsets and their base      packed names      { length, tokens } each
 *            number of names               markers           where each 256th name begins
 *            packed names                  ... sequence numbers
 *            markers                       tokens            256 strings, each ends with NUL
 *            tokens                        token index       256 x u16: offset of each token
 *            token index                   entries
 *
 * Each byte of a packed name stands for a token. The tokens of digits and letters are mostly
 * the characters themselves. The search therefore begins with the strings "0" to "9", one
 * after the other. If the strings around them have a matching token index, they are the
 * tokens. The search then goes down until it finds a number that is followed by that many packed
 * names. Finally the search tries the layouts of the entries.
 *
 * Tables are aligned to 4 bytes from Linux 7.0 on, and to 8 bytes before. All numbers are
 * little-endian.
 */

enum {
    TOKENS = 256,
    TOKEN_BYTES_MAX = 512,
    INDEX_GAP_MAX = 64, /* padding between the tokens and their index */
    INDEX_BYTES = TOKENS * 2,
    COUNT_STEP = 4,     /* alignment of the number of names; 8 before 7.0 */
    COUNT_BYTES = 4,    /* the number of names, from 7.0 on */
    LONG_BYTES = 8,     /* the same before 7.0: a long, or 32 bits and padding */
    MARKER_NAMES = 256, /* names from one marker to the next */
    TYPES_CHECKED = 64, /* names whose type letter is checked */
    TABLE_GAP_MAX =
        8 * 1024 * 1024,     /* markers and sequence numbers, between the names and the tokens */
    FALLING_MAX_PERCENT = 2, /* of addresses; per-CPU variables break the order */
};

static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";

/* A search for the tables. */
typedef struct {
    UprofSlice image; /* borrowed */
    uint64_t base;    /* guest-virtual address of the image */
    unsigned n_min;
    uint64_t steps; /* table entries read so far */

    size_t tokens;           /* offset of the first token in the image */
    size_t index_end;        /* offset of the end of the token index */
    uint16_t starts[TOKENS]; /* of each token, from @tokens on */
    uint16_t lengths[TOKENS];

    size_t count_at; /* offset of the number of names */
    unsigned n;      /* names */
    bool is_wide;    /* lengths above 127 have two bytes, from 6.1 on */
    size_t names_at; /* offset of the first packed name */
} Search;

static const uint8_t *
get_bytes(const Search *search, size_t offset)
{
    return (const uint8_t *)search->image.data + offset;
}

static uint16_t
read_u16(const Search *search, size_t offset)
{
    return (uint16_t)(get_bytes(search, offset)[0] | get_bytes(search, offset)[1] << 8);
}

static uint32_t
read_u32(const Search *search, size_t offset)
{
    return read_u16(search, offset) | (uint32_t)read_u16(search, offset + 2) << 16;
}

static uint64_t
read_u64(const Search *search, size_t offset)
{
    return read_u32(search, offset) | (uint64_t)read_u32(search, offset + 4) << 32;
}

/* ---- Tokens ---- */

/* Returns: the start of the string whose NUL is at @end; 0: the string is too long */
static size_t
find_string_start(const Search *search, size_t end)
{
    size_t start = end;

    while (start > 0 && end - start < TOKEN_BYTES_MAX && get_bytes(search, start - 1)[0] != 0)
        start--;
    return start > 0 && get_bytes(search, start - 1)[0] == 0 ? start : 0;
}

/* Returns: offset of the NUL of the string at @start; 0: the string is too long */
static size_t
find_string_end(const Search *search, size_t start)
{
    const size_t left = MIN(search->image.len - start, (size_t)TOKEN_BYTES_MAX + 1);
    const uint8_t *end = memchr(get_bytes(search, start), 0, left);

    return end ? (size_t)(end - get_bytes(search, 0)) : 0;
}

/*
 * Checks that the u16 at @index are the offsets of the tokens at @starts. The first token may
 * begin before @starts[0], so all offsets are compared with the second token.
 */
static bool
is_token_index(const Search *search, size_t index, const size_t starts[TOKENS])
{
    if (read_u16(search, index) != 0)
        return false;
    for (unsigned i = 2; i < TOKENS; i++)
        if ((size_t)read_u16(search, index + 2 * (size_t)i) - read_u16(search, index + 2) !=
            starts[i] - starts[1])
            return false;
    return true;
}

/*
 * The index has the length of the first token; the bytes before this token belong to another table.
 */
static bool
take_tokens(Search *search, size_t index, const size_t starts[TOKENS])
{
    const size_t first_bytes = read_u16(search, index + 2);

    if (first_bytes == 0 || first_bytes > TOKEN_BYTES_MAX || first_bytes > starts[1])
        return false;
    search->tokens = starts[1] - first_bytes;
    search->index_end = index + INDEX_BYTES;
    for (unsigned i = 0; i < TOKENS; i++) {
        const uint16_t start = read_u16(search, index + 2 * (size_t)i);
        const size_t end = find_string_end(search, search->tokens + start);
        if (end == 0)
            return false;
        search->starts[i] = start;
        search->lengths[i] = (uint16_t)(end - search->tokens - start);
    }
    return search->lengths[0] == first_bytes - 1;
}

/* @zero: offset of the string "0", which may be a token */
static bool
find_tokens(Search *search, size_t zero)
{
    size_t starts[TOKENS];

    starts['0'] = zero;
    for (unsigned i = '0'; i > 1; i--) {
        starts[i - 1] = starts[i] > 0 ? find_string_start(search, starts[i] - 1) : 0;
        if (starts[i - 1] == 0)
            return false;
    }
    for (unsigned i = '0'; i < TOKENS - 1; i++) {
        const size_t end = find_string_end(search, starts[i]);
        if (end == 0 || end + 1 >= search->image.len)
            return false;
        starts[i + 1] = end + 1;
    }
    const size_t end = find_string_end(search, starts[TOKENS - 1]);
    if (end == 0)
        return false;
    for (size_t index = (end + 2) & ~(size_t)1; index <= end + 1 + INDEX_GAP_MAX; index += 2) {
        if (index + INDEX_BYTES > search->image.len)
            return false;
        if (is_token_index(search, index, starts))
            return take_tokens(search, index, starts);
    }
    return false;
}

/* ---- Names ---- */

static bool
is_type(uint8_t letter)
{
    return g_ascii_isalpha((char)letter) || letter == '?' || letter == '-';
}

/* The first letter of a name is the type of the symbol. @token: first byte of the packed name */
static uint8_t
get_first_letter(const Search *search, uint8_t token)
{
    return search->lengths[token] > 0 ? get_bytes(search, search->tokens + search->starts[token])[0]
                                      : 0;
}

/* A packed name in the image. */
typedef struct {
    size_t body; /* offset of its first token */
    size_t len;  /* bytes, one for each token */
} PackedName;

/*
 * Reads the packed name at offset @start.
 * Returns: offset of the next name; 0 if there is no name that ends before the tokens
 */
static size_t
read_packed_name(const Search *search, bool is_wide, size_t start, PackedName *name)
{
    if (start + 2 > search->tokens)
        return 0;
    name->body = start + 1;
    name->len = get_bytes(search, start)[0];
    if (is_wide && name->len >= 128) {
        name->len = (name->len & 127) | (size_t)get_bytes(search, start + 1)[0] << 7;
        name->body++;
    }
    if (name->len == 0 || name->len > UPROF_KALLSYMS_NAME_BYTES_MAX ||
        name->len > search->tokens - name->body)
        return 0;
    return name->body + name->len;
}

/* Checks for the number @value of @bytes bytes, before the tokens. */
static bool
is_marker(const Search *search, size_t offset, unsigned bytes, uint64_t value)
{
    return offset + bytes <= search->tokens &&
           (bytes == 4 ? read_u32(search, offset) : read_u64(search, offset)) == value;
}

/* Markers follow the names, with 32 or 64 bits each. @second: value of the second marker */
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

/*
 * Walks over @search->n packed names from offset @names on.
 * @second: (out): bytes before the name that has the second marker
 * Returns: offset of the end of the names; 0 if the bytes are not names
 */
static size_t
walk_names(Search *search, size_t names, bool is_wide, size_t *second)
{
    size_t end = names;
    PackedName name;

    *second = 0;
    for (unsigned i = 0; i < search->n; i++) {
        if (i == MARKER_NAMES)
            *second = end - names;
        if (++search->steps > UPROF_KALLSYMS_STEPS_MAX)
            return 0;
        end = read_packed_name(search, is_wide, end, &name);
        if (end == 0 || end - names > UPROF_KALLSYMS_PACKED_BYTES_MAX)
            return 0;
        if (i < TYPES_CHECKED &&
            !is_type(get_first_letter(search, get_bytes(search, name.body)[0])))
            return 0;
    }
    return end;
}

/* Checks that names follow their number, which has @bytes bytes, and that markers follow them. */
static bool
try_names(Search *search, size_t bytes, bool is_wide)
{
    const size_t names = search->count_at + bytes;
    size_t second;
    const size_t end = walk_names(search, names, is_wide, &second);

    if (end == 0 || search->tokens - end > TABLE_GAP_MAX || !has_markers(search, end, second))
        return false;
    search->is_wide = is_wide;
    search->names_at = names;
    return true;
}

/* Checks whether the 32 bits at @count_at can be the number of the names that follow. */
static bool
try_count(Search *search, size_t count_at)
{
    search->count_at = count_at;
    search->n = read_u32(search, count_at);
    if (search->n < search->n_min || search->n > UPROF_KALLSYMS_MAX)
        return false;
    const bool may_be_long = count_at % LONG_BYTES == 0 && read_u32(search, count_at + 4) == 0;
    return (may_be_long &&
            (try_names(search, LONG_BYTES, true) || try_names(search, LONG_BYTES, false))) ||
           try_names(search, COUNT_BYTES, true);
}

/*
 * Searches downward from the tokens. The copy of the image begins at a page boundary, so offsets in
 * the copy have the alignment of addresses.
 */
static bool
find_names(Search *search)
{
    const size_t far = (size_t)UPROF_KALLSYMS_PACKED_BYTES_MAX + TABLE_GAP_MAX;
    const size_t lowest = search->tokens > far ? search->tokens - far : 0;

    for (size_t at = search->tokens / COUNT_STEP * COUNT_STEP; at >= lowest + COUNT_STEP;) {
        at -= COUNT_STEP;
        if (++search->steps > UPROF_KALLSYMS_STEPS_MAX)
            return false;
        if (try_count(search, at))
            return true;
    }
    return false;
}

/* ---- Addresses ---- */

/*
 * Returns: the address that an entry stands for
 * @entry: offset of the entry; @relative_base: 0 if the layout has none
 */
typedef uint64_t (*Decode)(const Search *search, size_t entry, uint64_t relative_base);

static uint64_t
decode_absolute(const Search *search, size_t entry, uint64_t relative_base)
{
    return read_u64(search, entry);
}

static uint64_t
decode_relative(const Search *search, size_t entry, uint64_t relative_base)
{
    return relative_base + read_u32(search, entry);
}

/* An offset from 0 up is a per-CPU variable, and absolute; -1, -2 ... are base, base + 1 ... */
static uint64_t
decode_percpu(const Search *search, size_t entry, uint64_t relative_base)
{
    const int32_t offset = (int32_t)read_u32(search, entry);

    return offset >= 0 ? (uint64_t)offset : relative_base - 1 - (uint64_t)(int64_t)offset;
}

/* The entry is the distance from itself to the address. */
static uint64_t
decode_own(const Search *search, size_t entry, uint64_t relative_base)
{
    return search->base + entry + (uint64_t)(int64_t)(int32_t)read_u32(search, entry);
}

/* clang-format off */

/* In the order of the tries: absolute-percpu tables can look like relative ones. */
static const struct {
    const char *name;
    Decode decode;
    unsigned entry_bytes;
    bool has_base;    /* a 64-bit base, aligned, follows the entries */
    bool is_behind;   /* entries follow the token index; else they precede the number of names */
    unsigned align;
} layouts[] = {
    { "offsets of CPUs or of a base, behind the tokens", decode_percpu,   4, true,  true,  8 },
    { "offsets of a base, behind the tokens",            decode_relative, 4, true,  true,  8 },
    { "offsets from each entry itself, behind the tokens", decode_own,    4, false, true,  4 },
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

/* Returns: false if the image has no room for entries of this layout */
static bool
find_entries(const Search *search, size_t layout, size_t *entries, uint64_t *relative_base)
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
    *relative_base = layouts[layout].has_base ? read_u64(search, *entries + align_up(len, 8)) : 0;
    return true;
}

static bool
is_in_image(const Search *search, uint64_t address)
{
    return address >= search->base && address - search->base < search->image.len;
}

/* Nearly all addresses rise, and most lie in the image. */
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

/* @address: (out): of the first symbol of that name */
static bool
find_symbol(const UprofKallsyms *kallsyms, const char *name, uint64_t *address)
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

/* A wrong layout gives the start of the kernel's code a wrong address. */
static bool
has_kernel_start(const Search *search, const UprofKallsyms *kallsyms)
{
    uint64_t address;

    return (find_symbol(kallsyms, "_text", &address) ||
            find_symbol(kallsyms, "_stext", &address)) &&
           address % 4096 == 0 && is_in_image(search, address);
}

static bool
find_addresses(Search *search, UprofKallsyms *kallsyms)
{
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        uint64_t relative_base;
        size_t entries;
        if (!find_entries(search, i, &entries, &relative_base))
            continue;
        for (guint k = 0; k < search->n; k++)
            g_array_index(kallsyms->symbols, UprofKallsym, k).address = layouts[i].decode(
                search, entries + (size_t)k * layouts[i].entry_bytes, relative_base);
        kallsyms->layout = layouts[i].name;
        if (is_plausible(search, kallsyms->symbols) && has_kernel_start(search, kallsyms))
            return true;
    }
    return false;
}

/* ---- The complete table ---- */

/* Appends the text of @packed to @names. Returns: false if the text is too long */
static bool
expand_name(const Search *search, const PackedName *packed, GByteArray *names, UprofKallsym *symbol)
{
    uint8_t text[UPROF_KALLSYMS_NAME_BYTES_MAX + 1];
    size_t len = 0;

    for (size_t i = 0; i < packed->len; i++) {
        const uint8_t token = get_bytes(search, packed->body + i)[0];
        if (len + search->lengths[token] > UPROF_KALLSYMS_NAME_BYTES_MAX)
            return false;
        memcpy(text + len, get_bytes(search, search->tokens + search->starts[token]),
               search->lengths[token]);
        len += search->lengths[token];
    }
    if (len < 2 || names->len + len > UPROF_KALLSYMS_BYTES_MAX)
        return false;
    text[len] = '\0';
    symbol->type = (char)text[0];
    symbol->name = names->len + 1;
    g_byte_array_append(names, text, (guint)len + 1);
    return true;
}

static bool
expand_all_names(const Search *search, UprofKallsyms *kallsyms)
{
    size_t at = search->names_at;
    PackedName packed;

    for (unsigned i = 0; i < search->n; i++) {
        UprofKallsym symbol = { 0 };
        at = read_packed_name(search, search->is_wide, at, &packed);
        if (at == 0 || !expand_name(search, &packed, kallsyms->names, &symbol))
            return false;
        g_array_append_val(kallsyms->symbols, symbol);
    }
    return true;
}

/* Returns: (nullable): the table whose token "0" is at offset @zero */
static UprofKallsyms *
try_table(Search *search, size_t zero)
{
    g_autoptr(UprofKallsyms) kallsyms = NULL;

    if (!find_tokens(search, zero) || !find_names(search))
        return NULL;
    kallsyms = g_new0(UprofKallsyms, 1);
    kallsyms->symbols = g_array_sized_new(FALSE, FALSE, sizeof(UprofKallsym), search->n);
    kallsyms->names = g_byte_array_new();
    if (!expand_all_names(search, kallsyms) || !find_addresses(search, kallsyms))
        return NULL;
    return g_steal_pointer(&kallsyms);
}

UprofKallsyms *
uprof_kallsyms_parse(UprofSlice image, uint64_t base, unsigned n_min, GError **error)
{
    Search search = { .image = image, .base = base, .n_min = MAX(n_min, 1) };
    size_t from = 0;

    while (from < image.len && search.steps <= UPROF_KALLSYMS_STEPS_MAX) {
        const uint8_t *found =
            memmem(get_bytes(&search, from), image.len - from, digits, sizeof(digits));
        if (!found)
            break;
        from = (size_t)(found - get_bytes(&search, 0)) + 1;
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
    g_clear_pointer(&kallsyms->names, g_byte_array_unref); /* NULL if a caller took the bytes */
    g_free(kallsyms);
}

const char *
uprof_kallsyms_name(const UprofKallsyms *kallsyms, const UprofKallsym *symbol)
{
    return (const char *)kallsyms->names->data + symbol->name;
}

static uint64_t
add_to_digest(uint64_t digest, const char *text)
{
    return uprof_fnv64_add(digest, text, strlen(text));
}

uint64_t
uprof_kallsyms_digest(const UprofKallsyms *kallsyms)
{
    uint64_t digest = UPROF_FNV64_START;

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
