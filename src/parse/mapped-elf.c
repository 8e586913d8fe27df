/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/mapped-elf.h"

#include "mapped-elf-priv.h"
#include "go-lines-priv.h"
#include "symbol-priv.h"
#include "uprof/elf-head.h"
#include "uprof/scan.h"

#include <elf.h>
#include <string.h>

enum {
    PAGE_BYTES = 4096,
    DYNAMIC_MAX = 1024, /* entries of the dynamic section */
    SECTIONS_MAX = 4096,
    HASH_BYTES = 16,       /* of the head of DT_GNU_HASH */
    INDEX_HEAD_BYTES = 12, /* of the index of .eh_frame */
    INDEX_ENTRY_BYTES = 8,
    ENTRY_TAIL_BYTES = 64 * 1024, /* .eh_frame ends at most this far behind its last entry */
    GO_PIECE_BYTES = 256 * 1024,  /* of variables that are searched for Go's record at once */
    GO_OVERLAP_BYTES = 4096,      /* the record may be at the end of a piece */
    GO_TREES_BYTES_MAX = 8 * 1024 * 1024,
};

/* Encodings of the index of .eh_frame that all linkers write (LSB, section 10.5.1) */
enum { PCREL_SDATA4 = 0x1b, UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };

/* A range of the file, of which some pages may be missing. */
typedef struct {
    uint64_t at;       /* offset in the file of the first wanted byte */
    GByteArray *bytes; /* (nullable): complete pages; owned unless it is kept */
    bool *is_here;     /* of each page; owned */
} Part;

typedef struct {
    uint64_t address, offset, file_len, len;
    bool is_code, is_variable;
} Load;

/* A part of the file that a program header or a section header names */
typedef struct {
    uint64_t at, len, address;
} Place;

typedef struct {
    const UprofMappedReader *source;
    UprofMappedElf found;
    uint64_t n_bytes; /* that were wanted */
    Elf64_Ehdr head;
    Load loads[UPROF_MAPPED_ELF_SEGMENTS_MAX];
    unsigned n_loads;
    Place dynamic, index; /* with @len 0 if there is none; @index of .eh_frame */
    Place go_table;       /* the same */
    uint64_t text_at;     /* link address of the section .text; 0: not known */
} Reader;

/* ---- Parts of the file ---- */

static void
clear_part(Part *part)
{
    g_clear_pointer(&part->bytes, g_byte_array_unref);
    g_clear_pointer(&part->is_here, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Part, clear_part)

/* Returns: false if there is nothing to read, or too much */
static bool
read_part(Reader *reader, uint64_t at, uint64_t len, Part *part)
{
    const uint64_t before = at % PAGE_BYTES;

    if (len == 0 || len > UPROF_MAPPED_ELF_PART_BYTES_MAX || at > INT64_MAX)
        return false;
    const uint64_t n = (before + len + PAGE_BYTES - 1) / PAGE_BYTES;
    if (n * PAGE_BYTES > UPROF_MAPPED_ELF_BYTES_MAX - reader->n_bytes)
        return false;
    reader->n_bytes += n * PAGE_BYTES;
    part->at = at;
    part->bytes = g_byte_array_sized_new((guint)(n * PAGE_BYTES));
    g_byte_array_set_size(part->bytes, (guint)(n * PAGE_BYTES));
    part->is_here = g_new0(bool, n);
    reader->source->read(reader->source->data, at / PAGE_BYTES, (unsigned)n, part->bytes->data,
                         part->is_here);
    for (uint64_t i = 0; i < n; i++) {
        reader->found.n_here += part->is_here[i];
        reader->found.n_missing += !part->is_here[i];
    }
    return true;
}

/* @offset: from the first wanted byte. Returns: false if a page of these bytes is missing */
static bool
get_bytes(const Part *part, uint64_t offset, uint64_t len, UprofSlice *slice)
{
    const UprofSlice all = { part->bytes->data, part->bytes->len };
    const uint64_t from = part->at % PAGE_BYTES + offset;

    if (offset > all.len || len == 0 || !uprof_slice_sub(all, from, len, slice))
        return false;
    for (uint64_t page = from / PAGE_BYTES; page <= (from + len - 1) / PAGE_BYTES; page++)
        if (!part->is_here[page])
            return false;
    return true;
}

static bool
get_u32(const Part *part, uint64_t offset, uint32_t *value)
{
    UprofSlice slice;

    if (!get_bytes(part, offset, sizeof(*value), &slice))
        return false;
    memcpy(value, slice.data, sizeof(*value));
    *value = GUINT32_FROM_LE(*value);
    return true;
}

/* Keeps the bytes of a part, which slices of the result point into. */
static void
keep_part(Reader *reader, Part *part)
{
    g_ptr_array_add(reader->found.parts, g_steal_pointer(&part->bytes));
}

/* @offset: (out): in the file. Returns: false if no segment has bytes at @address */
static bool
find_offset(const Reader *reader, uint64_t address, uint64_t *offset, uint64_t *left)
{
    for (unsigned i = 0; i < reader->n_loads; i++) {
        const Load *load = &reader->loads[i];
        if (address - load->address >= load->file_len)
            continue;
        *offset = load->offset + (address - load->address);
        *left = load->file_len - (address - load->address);
        return true;
    }
    return false;
}

/* ---- Program headers ---- */

/* Ranges of code must be in order; linkers write segments in the order of their addresses. */
static void
add_text(UprofElfImage *elf, const Load *load)
{
    const UprofElfRange text = { .start = load->address, .len = load->len };
    const UprofElfRange *last =
        elf->text->len > 0 ? &g_array_index(elf->text, UprofElfRange, elf->text->len - 1) : NULL;

    if (!last || load->address >= last->start + last->len)
        g_array_append_val(elf->text, text);
}

static void
add_load(Reader *reader, const Elf64_Phdr *segment)
{
    const Load load = {
        .address = GUINT64_FROM_LE(segment->p_vaddr),
        .offset = GUINT64_FROM_LE(segment->p_offset),
        .file_len = GUINT64_FROM_LE(segment->p_filesz),
        .len = GUINT64_FROM_LE(segment->p_memsz),
        .is_code = GUINT32_FROM_LE(segment->p_flags) & PF_X,
        .is_variable = GUINT32_FROM_LE(segment->p_flags) & PF_W,
    };

    if (load.address > INT64_MAX || load.len > INT64_MAX || load.file_len > load.len ||
        load.offset > INT64_MAX)
        return;
    reader->loads[reader->n_loads++] = load;
    if (load.is_code && load.len > 0)
        add_text(&reader->found.elf, &load);
}

static void
read_segment(Reader *reader, const Elf64_Phdr *segment)
{
    const Place place = { GUINT64_FROM_LE(segment->p_offset), GUINT64_FROM_LE(segment->p_filesz),
                          GUINT64_FROM_LE(segment->p_vaddr) };

    switch (GUINT32_FROM_LE(segment->p_type)) {
    case PT_LOAD:
        add_load(reader, segment);
        break;
    case PT_DYNAMIC:
        reader->dynamic = place;
        break;
    case PT_GNU_EH_FRAME:
        reader->index = place;
        break;
    default:
        break;
    }
}

static void
keep_build_id(Reader *reader, const UprofElfHead *head)
{
    GByteArray *id = g_byte_array_new();

    g_byte_array_append(id, head->build_id, head->build_id_len);
    g_ptr_array_add(reader->found.parts, id);
    reader->found.elf.build_id = (UprofSlice){ id->data, id->len };
}

static bool
read_head(Reader *reader)
{
    UprofElfImage *elf = &reader->found.elf;
    g_auto(Part) part = { 0 };
    UprofElfHead head;
    UprofSlice page, bytes;

    if (!read_part(reader, 0, PAGE_BYTES, &part) || !get_bytes(&part, 0, PAGE_BYTES, &page) ||
        !uprof_elf_head_parse(page, &head))
        return false;
    memcpy(&reader->head, page.data, sizeof(reader->head));
    const uint64_t at = GUINT64_FROM_LE(reader->head.e_phoff);
    const unsigned n =
        MIN(GUINT16_FROM_LE(reader->head.e_phnum), (unsigned)UPROF_MAPPED_ELF_SEGMENTS_MAX);
    for (unsigned i = 0; i < n; i++) {
        Elf64_Phdr segment;
        if (at > PAGE_BYTES || !get_bytes(&part, at + i * sizeof(segment), sizeof(segment), &bytes))
            break;
        memcpy(&segment, bytes.data, sizeof(segment));
        read_segment(reader, &segment);
    }
    elf->word_bytes = 8;
    elf->machine = GUINT16_FROM_LE(reader->head.e_machine);
    elf->entry = GUINT64_FROM_LE(reader->head.e_entry);
    elf->first_page = head.first_page;
    if (head.build_id_len > 0)
        keep_build_id(reader, &head);
    return true;
}

/* ---- Symbols ---- */

static bool
is_in_code(const Reader *reader, uint64_t address)
{
    const GArray *text = reader->found.elf.text;

    for (guint i = 0; i < text->len; i++) {
        const UprofElfRange *range = &g_array_index(text, UprofElfRange, i);
        if (address - range->start < range->len)
            return true;
    }
    return false;
}

/* @name: (out): up to its NUL, which must be there. Returns: false if a page of it is missing */
static bool
get_name(const Part *names, uint64_t at, UprofSlice *name)
{
    const uint64_t before = names->at % PAGE_BYTES;

    for (uint64_t len = 0; len <= UPROF_SYMBOL_NAME_BYTES_MAX;) {
        const uint64_t more = PAGE_BYTES - (before + at + len) % PAGE_BYTES;
        UprofSlice piece;
        if (at > names->bytes->len || !get_bytes(names, at + len, more, &piece))
            return false;
        const char *end = memchr(piece.data, '\0', piece.len);
        len += end ? (uint64_t)(end - (const char *)piece.data) : more;
        if (end)
            return len > 0 && get_bytes(names, at, len, name) && trim_symbol_name(name);
    }
    return false;
}

static void
add_symbol(Reader *reader, const Elf64_Sym *raw, const Part *names)
{
    const unsigned type = ELF64_ST_TYPE(raw->st_info);
    UprofSymbol symbol = {
        .start = GUINT64_FROM_LE(raw->st_value),
        .binding = uprof_elf_binding(raw->st_info),
        .code = true,
    };

    symbol.size = MIN(GUINT64_FROM_LE(raw->st_size), UINT64_MAX - symbol.start);
    if ((type == STT_FUNC || type == STT_GNU_IFUNC) && raw->st_shndx != SHN_UNDEF &&
        is_in_code(reader, symbol.start) &&
        get_name(names, GUINT32_FROM_LE(raw->st_name), &symbol.name))
        g_array_append_val(reader->found.elf.symbols, symbol);
}

/* @first: the first symbol that counts. Returns: false unless all pages are here */
static bool
read_symbols(Reader *reader, Place table, uint64_t first, Place strings)
{
    const uint64_t n = table.len / sizeof(Elf64_Sym), missing = reader->found.n_missing;
    g_auto(Part) symbols = { 0 }, names = { 0 };
    UprofSlice bytes;
    Elf64_Sym raw;

    if (n <= first || n > UPROF_MAPPED_ELF_SYMBOLS_MAX ||
        !read_part(reader, table.at, table.len, &symbols) ||
        !read_part(reader, strings.at, strings.len, &names))
        return false;
    for (uint64_t i = first; i < n; i++)
        if (get_bytes(&symbols, i * sizeof(raw), sizeof(raw), &bytes)) {
            memcpy(&raw, bytes.data, sizeof(raw));
            add_symbol(reader, &raw, &names);
        }
    keep_part(reader, &names);
    return reader->found.n_missing == missing;
}

/* Entries of the dynamic section; 0 if there is none */
typedef struct {
    uint64_t symbols, strings, strings_len, hash, gnu_hash;
} Dynamic;

static void
read_dynamic(Reader *reader, Dynamic *dynamic)
{
    const uint64_t n = MIN(reader->dynamic.len / sizeof(Elf64_Dyn), (uint64_t)DYNAMIC_MAX);
    g_auto(Part) part = { 0 };
    UprofSlice bytes;
    Elf64_Dyn entry;

    *dynamic = (Dynamic){ 0 };
    if (!read_part(reader, reader->dynamic.at, n * sizeof(entry), &part))
        return;
    for (uint64_t i = 0; i < n; i++) {
        if (!get_bytes(&part, i * sizeof(entry), sizeof(entry), &bytes))
            continue;
        memcpy(&entry, bytes.data, sizeof(entry));
        const uint64_t value = GUINT64_FROM_LE(entry.d_un.d_val);
        switch (GINT64_FROM_LE(entry.d_tag)) {
        case DT_NULL:
            return;
        case DT_SYMTAB:
            dynamic->symbols = value;
            break;
        case DT_STRTAB:
            dynamic->strings = value;
            break;
        case DT_STRSZ:
            dynamic->strings_len = value;
            break;
        case DT_HASH:
            dynamic->hash = value;
            break;
        case DT_GNU_HASH:
            dynamic->gnu_hash = value;
            break;
        default:
            break;
        }
    }
}

/* DT_HASH = u32 n_buckets, u32 n_chains: there is a chain for each symbol. */
static uint64_t
count_by_hash(Reader *reader, uint64_t hash)
{
    uint64_t at, left;
    g_auto(Part) part = { 0 };
    uint32_t n;

    return find_offset(reader, hash, &at, &left) && read_part(reader, at, 8, &part) &&
                   get_u32(&part, 4, &n)
               ? n
               : 0;
}

/* Returns: number of the last symbol that a bucket begins with; 0 if a bucket is missing */
static uint64_t
find_last_bucket(const Part *buckets, uint64_t n)
{
    uint64_t last = 0;
    uint32_t first;

    for (uint64_t i = 0; i < n; i++) {
        if (!get_u32(buckets, i * sizeof(first), &first))
            return 0;
        last = MAX(last, (uint64_t)first);
    }
    return last;
}

/*
 * DT_GNU_HASH = u32 n_buckets, u32 first symbol, u32 n words of the filter, u32 shift,
 * u64 filter[], u32 buckets[], u32 chains[] from the first symbol on; the lowest bit ends a chain.
 * Symbols before the first one are not exported.
 */
static uint64_t
count_by_gnu_hash(Reader *reader, uint64_t hash, uint64_t *first)
{
    g_auto(Part) head = { 0 }, buckets = { 0 }, chains = { 0 };
    uint32_t n_buckets, symbol, n_words, chain;
    uint64_t at, left;

    if (!find_offset(reader, hash, &at, &left) || !read_part(reader, at, HASH_BYTES, &head) ||
        !get_u32(&head, 0, &n_buckets) || !get_u32(&head, 4, &symbol) ||
        !get_u32(&head, 8, &n_words) || n_buckets > UPROF_MAPPED_ELF_SYMBOLS_MAX ||
        n_words > UPROF_MAPPED_ELF_SYMBOLS_MAX)
        return 0;
    const uint64_t buckets_at = HASH_BYTES + (uint64_t)n_words * 8;
    const uint64_t chains_at = buckets_at + (uint64_t)n_buckets * 4;
    if (chains_at >= left || !read_part(reader, at + buckets_at, n_buckets * 4ull, &buckets))
        return 0;
    uint64_t last = find_last_bucket(&buckets, n_buckets);
    if (last < symbol || last >= UPROF_MAPPED_ELF_SYMBOLS_MAX ||
        (last - symbol) * 4 >= left - chains_at)
        return 0;
    /* A chain has few symbols; one page more than its start is enough for any table. */
    const uint64_t chain_at = chains_at + (last - symbol) * 4;
    if (!read_part(reader, at + chain_at, MIN(left - chain_at, (uint64_t)PAGE_BYTES), &chains))
        return 0;
    for (uint64_t i = 0; get_u32(&chains, i * 4, &chain); i++) {
        last++;
        if (chain & 1) {
            *first = symbol;
            return last;
        }
    }
    return 0;
}

/* @first: (out): number of the first exported symbol. Returns: false if the file exports none */
static bool
find_dynamic_symbols(Reader *reader, Place *symbols, uint64_t *first, Place *strings)
{
    Dynamic dynamic;
    uint64_t n = 0, left, names_left;

    *first = 0;
    if (reader->dynamic.len == 0)
        return false;
    read_dynamic(reader, &dynamic);
    if (!find_offset(reader, dynamic.symbols, &symbols->at, &left) ||
        !find_offset(reader, dynamic.strings, &strings->at, &names_left))
        return false;
    if (dynamic.gnu_hash != 0)
        n = count_by_gnu_hash(reader, dynamic.gnu_hash, first);
    if (n == 0 && dynamic.hash != 0)
        n = count_by_hash(reader, dynamic.hash);
    symbols->len = MIN(n, left / sizeof(Elf64_Sym)) * sizeof(Elf64_Sym);
    strings->len = MIN(dynamic.strings_len, names_left);
    return true;
}

static void
read_dynamic_symbols(Reader *reader)
{
    Place symbols = { 0 }, strings = { 0 };
    uint64_t first;

    if (find_dynamic_symbols(reader, &symbols, &first, &strings))
        read_symbols(reader, symbols, first, strings);
}

/* @address: (out): link address */
static bool
find_object(const Part *symbols, uint64_t n, const Part *names, const char *name, uint64_t *address)
{
    UprofSlice bytes, found;
    Elf64_Sym raw;

    for (uint64_t i = 0; i < n; i++) {
        if (!get_bytes(symbols, i * sizeof(raw), sizeof(raw), &bytes))
            continue;
        memcpy(&raw, bytes.data, sizeof(raw));
        if (ELF64_ST_TYPE(raw.st_info) != STT_OBJECT || raw.st_shndx == SHN_UNDEF ||
            !get_name(names, GUINT32_FROM_LE(raw.st_name), &found) || !uprof_slice_is(found, name))
            continue;
        *address = GUINT64_FROM_LE(raw.st_value);
        return true;
    }
    return false;
}

/* ---- Unwind tables ---- */

/* Reads an entry of the index. @at: (out): offset in .eh_frame, which begins at @start */
static bool
get_frame(const Reader *reader, const Part *index, uint64_t i, uint64_t start, uint64_t *at)
{
    uint32_t raw;

    if (!get_u32(index, INDEX_HEAD_BYTES + i * INDEX_ENTRY_BYTES + 4, &raw))
        return false;
    *at = reader->index.address + (uint64_t)(int64_t)(int32_t)raw - start;
    return *at < UPROF_MAPPED_ELF_PART_BYTES_MAX;
}

/* Is the entry at @at here as a whole? @id: (out): the word behind its length */
static bool
has_entry(const Part *frames, uint64_t at, uint32_t *id)
{
    UprofSlice bytes;
    uint32_t len;

    return get_u32(frames, at, &len) && len >= sizeof(*id) && len < 0xfffffff0 &&
           get_bytes(frames, at + 4, len, &bytes) && get_u32(frames, at + 4, id);
}

/* Adds the offset of an entry, if the CIE that it refers to is here. @id: of the entry */
static void
add_frame(Reader *reader, const Part *frames, uint64_t at, uint32_t id, uint64_t *good_cie)
{
    const uint64_t cie = at + 4 - id;
    uint32_t cie_id;

    if (id == 0 || id > at + 4 ||
        (cie != *good_cie && !(has_entry(frames, cie, &cie_id) && cie_id == 0)))
        return;
    *good_cie = cie;
    g_array_append_val(reader->found.frames, at);
}

/* Adds the entries that are here and that the index lists. */
static void
add_listed_frames(Reader *reader, const Part *index, uint64_t n, const Part *frames, uint64_t start)
{
    uint64_t at, good_cie = UINT64_MAX;
    uint32_t id;

    for (uint64_t i = 0; i < n; i++)
        if (get_frame(reader, index, i, start, &at) && has_entry(frames, at, &id))
            add_frame(reader, frames, at, id, &good_cie);
}

/* Adds the entries before the first missing one. A length of 0 separates entries. */
static void
add_first_frames(Reader *reader, const Part *frames, uint64_t len)
{
    uint64_t good_cie = UINT64_MAX;
    uint32_t id, entry_len;

    for (uint64_t at = 0; at < len && get_u32(frames, at, &entry_len) &&
                          reader->found.frames->len < UPROF_MAPPED_ELF_FRAMES_MAX;) {
        if (entry_len != 0) {
            if (!has_entry(frames, at, &id))
                return;
            add_frame(reader, frames, at, id, &good_cie);
        }
        at += sizeof(entry_len) + entry_len;
    }
}

static void
keep_frames(Reader *reader, Part *frames, uint64_t start, uint64_t len)
{
    reader->found.elf.eh_frame = (UprofElfRange){
        .start = start,
        .len = len,
        .bytes = { frames->bytes->data + frames->at % PAGE_BYTES, len },
    };
    keep_part(reader, frames);
}

/*
 * index = u8 version, u8 encodings of the next two, and of the table; s32 address of .eh_frame,
 * counted from itself; u32 n; then for each of n entries s32 address of the code, and s32 address
 * of the entry, both counted from the start of the index
 */
static bool
read_index(Reader *reader, Part *index, uint64_t *n, uint64_t *start)
{
    static const uint8_t head[] = { 1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4 };
    UprofSlice bytes;
    uint32_t raw, count;

    if (!read_part(reader, reader->index.at, reader->index.len, index) ||
        !get_bytes(index, 0, sizeof(head), &bytes) || memcmp(bytes.data, head, sizeof(head)) != 0 ||
        !get_u32(index, 4, &raw) || !get_u32(index, 8, &count) ||
        reader->index.len < INDEX_HEAD_BYTES)
        return false;
    *start = reader->index.address + 4 + (uint64_t)(int64_t)(int32_t)raw;
    *n = MIN((uint64_t)count, (reader->index.len - INDEX_HEAD_BYTES) / INDEX_ENTRY_BYTES);
    return *n > 0 && *n <= UPROF_MAPPED_ELF_FRAMES_MAX;
}

static void
read_frames(Reader *reader)
{
    uint64_t n, start, file_at, left, at, last = 0;
    g_auto(Part) index = { 0 }, frames = { 0 };

    if (reader->index.len == 0 || !read_index(reader, &index, &n, &start) ||
        !find_offset(reader, start, &file_at, &left))
        return;
    for (uint64_t i = 0; i < n; i++)
        if (get_frame(reader, &index, i, start, &at))
            last = MAX(last, at);
    const uint64_t len =
        MIN(MIN(left, last + ENTRY_TAIL_BYTES), (uint64_t)UPROF_MAPPED_ELF_PART_BYTES_MAX);
    if (!read_part(reader, file_at, len, &frames))
        return;
    add_listed_frames(reader, &index, n, &frames, start);
    keep_frames(reader, &frames, start, len);
}

/* Static programs have no index. */
static void
read_frames_section(Reader *reader, const Elf64_Shdr *section)
{
    const uint64_t len = GUINT64_FROM_LE(section->sh_size);
    g_auto(Part) frames = { 0 };

    if (!read_part(reader, GUINT64_FROM_LE(section->sh_offset), len, &frames))
        return;
    add_first_frames(reader, &frames, len);
    keep_frames(reader, &frames, GUINT64_FROM_LE(section->sh_addr), len);
}

/* ---- Sections ---- */

static bool
get_section(const Part *sections, uint64_t i, Elf64_Shdr *section)
{
    UprofSlice bytes;

    if (!get_bytes(sections, i * sizeof(*section), sizeof(*section), &bytes))
        return false;
    memcpy(section, bytes.data, sizeof(*section));
    return true;
}

static Place
place_section(const Elf64_Shdr *section)
{
    return (Place){ GUINT64_FROM_LE(section->sh_offset), GUINT64_FROM_LE(section->sh_size),
                    GUINT64_FROM_LE(section->sh_addr) };
}

/* .gnu_debugdata is compressed, so that it is of use only as a whole. */
static void
read_debug_data(Reader *reader, const Elf64_Shdr *section)
{
    const Place place = place_section(section);
    g_auto(Part) part = { 0 };
    UprofSlice bytes;

    if (!read_part(reader, place.at, place.len, &part) || !get_bytes(&part, 0, place.len, &bytes))
        return;
    reader->found.elf.debug_data = bytes;
    keep_part(reader, &part);
}

static bool
is_named(const Part *names, const Elf64_Shdr *section, const char *name)
{
    const size_t len = strlen(name) + 1;
    UprofSlice found;

    return names->bytes && get_bytes(names, GUINT32_FROM_LE(section->sh_name), len, &found) &&
           memcmp(found.data, name, len) == 0;
}

static void
read_section(Reader *reader, const Part *sections, const Part *names, const Elf64_Shdr *section)
{
    Elf64_Shdr strings;

    if (GUINT32_FROM_LE(section->sh_type) == SHT_SYMTAB && !reader->found.has_all_symbols &&
        get_section(sections, GUINT32_FROM_LE(section->sh_link), &strings))
        reader->found.has_all_symbols =
            read_symbols(reader, place_section(section), 0, place_section(&strings));
    if (reader->found.elf.debug_data.len == 0 && is_named(names, section, ".gnu_debugdata"))
        read_debug_data(reader, section);
    if (reader->index.len == 0 && reader->found.elf.eh_frame.bytes.len == 0 &&
        is_named(names, section, ".eh_frame"))
        read_frames_section(reader, section);
    if (is_named(names, section, ".gopclntab") ||
        is_named(names, section, ".data.rel.ro.gopclntab"))
        reader->go_table = place_section(section);
    if (is_named(names, section, ".text"))
        reader->text_at = GUINT64_FROM_LE(section->sh_addr);
}

/* Section headers are at the end of a file; the symbols that they name are often missing. */
static void
read_sections(Reader *reader)
{
    const uint64_t n = MIN(GUINT16_FROM_LE(reader->head.e_shnum), (unsigned)SECTIONS_MAX);
    g_auto(Part) sections = { 0 }, names = { 0 };
    Elf64_Shdr section;

    if (GUINT16_FROM_LE(reader->head.e_shentsize) != sizeof(section) ||
        !read_part(reader, GUINT64_FROM_LE(reader->head.e_shoff), n * sizeof(section), &sections))
        return;
    if (get_section(&sections, GUINT16_FROM_LE(reader->head.e_shstrndx), &section))
        read_part(reader, GUINT64_FROM_LE(section.sh_offset), GUINT64_FROM_LE(section.sh_size),
                  &names);
    for (uint64_t i = 1; i < n; i++)
        if (get_section(&sections, i, &section))
            read_section(reader, &sections, &names, &section);
}

/* ---- Go ---- */

/* @part: borrowed. @offset: from its first wanted byte */
static UprofGoBytes
view_part(const Part *part, uint64_t offset, uint64_t len)
{
    const uint64_t from = part->at % PAGE_BYTES + offset;

    return (UprofGoBytes){ .all = { part->bytes->data + from, len },
                           .is_here = part->is_here + from / PAGE_BYTES,
                           .before = from % PAGE_BYTES };
}

/* The record is mostly near the start of the variables, so they are read piece by piece. */
static bool
find_go_module(Reader *reader, const UprofGoBytes *table, UprofGoModule *module)
{
    uint64_t left = UPROF_GO_DATA_BYTES_MAX;

    for (unsigned i = 0; i < reader->n_loads; i++) {
        const Load *load = &reader->loads[i];
        for (uint64_t at = 0; load->is_variable && at < load->file_len && left > 0;
             at += GO_PIECE_BYTES - GO_OVERLAP_BYTES) {
            const uint64_t len = MIN(MIN(load->file_len - at, left), (uint64_t)GO_PIECE_BYTES);
            g_auto(Part) part = { 0 };
            if (!read_part(reader, load->offset + at, len, &part))
                return false;
            left -= len;
            const UprofGoBytes data = view_part(&part, 0, len);
            if (uprof_go_module_find(&data, table, reader->go_table.address, module))
                return true;
        }
    }
    return false;
}

/*
 * The trees of inlined functions are in the table's section since Go 1.26, and before that in front
 * of it, or in another segment.
 */
static bool
read_go_trees(Reader *reader, const Part *table, uint64_t address, Part *part, UprofGoBytes *trees)
{
    const Place *place = &reader->go_table;
    uint64_t offset, left;

    if (address - place->address < place->len) {
        *trees =
            view_part(table, address - place->address, place->len - (address - place->address));
        return true;
    }
    if (!find_offset(reader, address, &offset, &left))
        return false;
    if (place->at > offset)
        left = MIN(left, place->at - offset);
    left = MIN(left, (uint64_t)GO_TREES_BYTES_MAX);
    if (!read_part(reader, offset, left, part))
        return false;
    *trees = view_part(part, 0, left);
    return true;
}

/* Programs in Go have the sizes of their frames, and the names of their functions if they are
 * stripped. */
static void
read_go_table(Reader *reader)
{
    UprofElfImage *elf = &reader->found.elf;
    const Place *place = &reader->go_table;
    UprofGoModule module = { reader->text_at, 0 };
    g_auto(Part) part = { 0 }, trees_part = { 0 };
    UprofGoBytes trees;
    UprofGoHead head;

    if (!read_part(reader, place->at, place->len, &part))
        return;
    const UprofGoBytes table = view_part(&part, 0, place->len);
    elf->frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    const UprofGoFound found = { reader->found.has_all_symbols ? NULL : elf->symbols,
                                 UPROF_MAPPED_ELF_SYMBOLS_MAX, elf->frames };
    const bool has_module =
        uprof_go_head_read(&table, &head) && find_go_module(reader, &table, &module);
    const uint64_t text =
        uprof_go_table_read(&table, module.text, has_module ? module.text : elf->entry, &found);
    const bool has_trees =
        has_module && read_go_trees(reader, &part, module.trees, &trees_part, &trees);
    if (text != 0)
        elf->go_lines = uprof_go_lines_new(&table, text, has_trees ? &trees : NULL);
    keep_part(reader, &part);
    if (trees_part.bytes)
        keep_part(reader, &trees_part);
}

static void
init_found(UprofMappedElf *found)
{
    found->elf.symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    found->elf.text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    found->frames = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    found->parts = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
}

void
uprof_mapped_elf_clear(UprofMappedElf *mapped)
{
    uprof_elf_clear(&mapped->elf);
    g_clear_pointer(&mapped->frames, g_array_unref);
    g_clear_pointer(&mapped->parts, g_ptr_array_unref);
}

bool
uprof_mapped_elf_read(const UprofMappedReader *source, UprofMappedElf *mapped)
{
    Reader reader = { .source = source };

    init_found(&reader.found);
    if (!read_head(&reader)) {
        uprof_mapped_elf_clear(&reader.found);
        return false;
    }
    read_dynamic_symbols(&reader);
    read_frames(&reader);
    read_sections(&reader);
    read_go_table(&reader);
    *mapped = reader.found;
    return true;
}

bool
uprof_mapped_elf_find_object(const UprofMappedReader *source, const char *name, uint64_t *offset)
{
    Reader reader = { .source = source };
    g_auto(Part) symbols = { 0 }, names = { 0 };
    Place symbols_at = { 0 }, names_at = { 0 };
    uint64_t first, address;

    init_found(&reader.found);
    const bool ok =
        read_head(&reader) && find_dynamic_symbols(&reader, &symbols_at, &first, &names_at) &&
        read_part(&reader, symbols_at.at, symbols_at.len, &symbols) &&
        read_part(&reader, names_at.at, names_at.len, &names) &&
        find_object(&symbols, symbols_at.len / sizeof(Elf64_Sym), &names, name, &address);
    if (ok)
        *offset = address - reader.found.elf.first_page;
    uprof_mapped_elf_clear(&reader.found);
    return ok;
}
