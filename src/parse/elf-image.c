/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/elf-image.h"

#include "elf-image-priv.h"
#include "uprof/error.h"
#include "uprof/sorted.h"
#include "uprof/unpack.h"

#include "go-lines-priv.h"
#include "symbol-priv.h"
#include "unpack-priv.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <zlib.h>

/*
 * libelf trusts its input. This file therefore checks before libelf reads: both header tables
 * lie in the file and have entries of the usual size, and the numbers of entries are within
 * limits. Of the sections libelf reads only a symbol table, after the same checks. libelf gets
 * the bytes of the caller: under ELF_C_READ, which elf_memory() implies, libelf copies before
 * it converts (elfutils 0.188, libelf/elf_getdata.c).
 */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Elf, elf_end)

enum {
    MULTIBOOT_AT = 52, /* directly behind the ELF32 header */
    WRAPPED_AT = 64,   /* plus the ELF32 program headers */
    MULTIBOOT_MAGIC = 0x1BADB002,

    NOTES_MAX = 4096, /* read in one file */
    NOTE_BUILD_ID = 3,
    NOTE_XEN_ENTRY = 1, /* Xen, public/elfnote.h */
    NOTE_XEN_PHYS32_ENTRY = 18,

    PAGE_BYTES = 4096,
};

/* Offsets of fields, which differ between the two classes of files. */
typedef struct {
    size_t phoff, shoff, phentsize, phnum, shentsize, shnum; /* in the ELF header */
    size_t section_size, section_info;                       /* in a section header */
    size_t phdr_bytes, shdr_bytes, sym_bytes;
    uint8_t word_bytes;
} Layout;

#define LAYOUT(class, word)                                                                        \
    {                                                                                              \
        .phoff = G_STRUCT_OFFSET(class##_Ehdr, e_phoff),                                           \
        .shoff = G_STRUCT_OFFSET(class##_Ehdr, e_shoff),                                           \
        .phentsize = G_STRUCT_OFFSET(class##_Ehdr, e_phentsize),                                   \
        .phnum = G_STRUCT_OFFSET(class##_Ehdr, e_phnum),                                           \
        .shentsize = G_STRUCT_OFFSET(class##_Ehdr, e_shentsize),                                   \
        .shnum = G_STRUCT_OFFSET(class##_Ehdr, e_shnum),                                           \
        .section_size = G_STRUCT_OFFSET(class##_Shdr, sh_size),                                    \
        .section_info = G_STRUCT_OFFSET(class##_Shdr, sh_info),                                    \
        .phdr_bytes = sizeof(class##_Phdr), .shdr_bytes = sizeof(class##_Shdr),                    \
        .sym_bytes = sizeof(class##_Sym), .word_bytes = word,                                      \
    }

static const Layout layout32 = LAYOUT(Elf32, 4);
static const Layout layout64 = LAYOUT(Elf64, 8);

typedef struct {
    UprofBytes bytes; /* the file, or the file inside a multiboot wrapper */
    const Layout *layout;
    Elf *elf;
    UprofElfRange go_table; /* empty if there is none */
    uint64_t text_at;       /* link address of the section .text; 0: there is none */
    bool has_all_symbols;
    size_t n_sections, n_segments;
    bool *is_code; /* by section: the section has instructions */
    unsigned n_notes;
    UprofElfImage image;
} Reader;

static void
clear_reader(Reader *reader)
{
    elf_end(reader->elf);
    g_free(reader->is_code);
    uprof_elf_clear(&reader->image);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reader, clear_reader)

bool
uprof_elf_is(UprofSlice file)
{
    return file.len >= SELFMAG && memcmp(file.data, ELFMAG, SELFMAG) == 0;
}

static bool
read_number(const UprofBytes *bytes, uint64_t at, unsigned width, uint64_t *value)
{
    UprofBytes cursor = *bytes;
    uint16_t u16;
    uint32_t u32;

    if (!uprof_bytes_seek(&cursor, at))
        return false;
    if (width == 8)
        return uprof_bytes_u64(&cursor, value);
    if (width == 4 && uprof_bytes_u32(&cursor, &u32)) {
        *value = u32;
        return true;
    }
    if (width == 2 && uprof_bytes_u16(&cursor, &u16)) {
        *value = u16;
        return true;
    }
    return false;
}

/* Returns: false if @bytes does not begin with a header of a known class and byte order */
static bool
read_ident(UprofBytes *bytes, const Layout **layout)
{
    const uint8_t *ident = bytes->all.data;

    if (bytes->all.len < EI_NIDENT || !uprof_elf_is(bytes->all))
        return false;
    if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
        return false;
    if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
        return false;

    *layout = ident[EI_CLASS] == ELFCLASS64 ? &layout64 : &layout32;
    bytes->big_endian = ident[EI_DATA] == ELFDATA2MSB;
    return true;
}

/* If the file is a multiboot wrapper, replaces it by the file inside. */
static void
open_wrapper(Reader *reader)
{
    UprofBytes inner = reader->bytes;
    const Layout *layout;
    uint64_t magic, n_segments;

    if (reader->layout != &layout32 || reader->bytes.big_endian ||
        !read_number(&reader->bytes, MULTIBOOT_AT, 4, &magic) || magic != MULTIBOOT_MAGIC ||
        !read_number(&reader->bytes, layout32.phnum, 2, &n_segments))
        return;

    const uint64_t at = WRAPPED_AT + n_segments * layout32.phdr_bytes;
    if (at > inner.all.len || !uprof_slice_sub(inner.all, at, inner.all.len - at, &inner.all) ||
        !read_ident(&inner, &layout) || layout != &layout64)
        return;
    reader->bytes = inner;
    reader->layout = layout;
    reader->image.is_wrapped = true;
}

/* Checks that a table lies in the file and has entries of the usual size. */
static bool
check_table(const Reader *reader, uint64_t at, uint64_t n, size_t entry_bytes, size_t entsize_at,
            const char *what, GError **error)
{
    uint64_t entsize, len;
    UprofSlice table;

    if (n == 0)
        return true;
    if (!read_number(&reader->bytes, entsize_at, 2, &entsize) || entsize != entry_bytes)
        return uprof_bytes_fail(&reader->bytes, error, "bad size of a %s header", what);
    if (__builtin_mul_overflow(n, entry_bytes, &len) ||
        !uprof_slice_sub(reader->bytes.all, at, len, &table))
        return uprof_bytes_fail(&reader->bytes, error, "%s headers end beyond the file", what);
    return true;
}

static bool
check_sections(Reader *reader, GError **error)
{
    const Layout *layout = reader->layout;
    const UprofBytes *bytes = &reader->bytes;
    uint64_t at, n;

    if (!read_number(bytes, layout->shoff, layout->word_bytes, &at) ||
        !read_number(bytes, layout->shnum, 2, &n))
        return uprof_bytes_fail(bytes, error, "the file ends inside the ELF header");

    /* the number is too large for the header: the size of the first section is the number */
    if (n == 0 && at != 0) {
        if (!check_table(reader, at, 1, layout->shdr_bytes, layout->shentsize, "section", error))
            return false;
        if (!read_number(bytes, at + layout->section_size, layout->word_bytes, &n))
            return uprof_bytes_fail(bytes, error, "no room for a section header");
    }
    if (n > UPROF_ELF_SECTIONS_MAX)
        return uprof_bytes_fail(bytes, error, "more than %d sections", UPROF_ELF_SECTIONS_MAX);
    if (n > 0 && at == 0)
        return uprof_bytes_fail(bytes, error, "a number of sections, but no section headers");
    reader->n_sections = n;
    return check_table(reader, at, n, layout->shdr_bytes, layout->shentsize, "section", error);
}

static bool
check_segments(Reader *reader, GError **error)
{
    const Layout *layout = reader->layout;
    const UprofBytes *bytes = &reader->bytes;
    uint64_t at, n, sections_at;

    if (!read_number(bytes, layout->phoff, layout->word_bytes, &at) ||
        !read_number(bytes, layout->phnum, 2, &n) ||
        !read_number(bytes, layout->shoff, layout->word_bytes, &sections_at))
        return uprof_bytes_fail(bytes, error, "the file ends inside the ELF header");

    if (n == PN_XNUM && reader->n_sections > 0 &&
        !read_number(bytes, sections_at + layout->section_info, 4, &n))
        return uprof_bytes_fail(bytes, error, "no room for a section header");
    if (n > UPROF_ELF_SEGMENTS_MAX)
        return uprof_bytes_fail(bytes, error, "more than %d segments", UPROF_ELF_SEGMENTS_MAX);
    reader->n_segments = n;
    return check_table(reader, at, n, layout->phdr_bytes, layout->phentsize, "segment", error);
}

static bool
open_elf(Reader *reader, GError **error)
{
    const UprofSlice all = reader->bytes.all;
    size_t n_sections, n_segments;
    GElf_Ehdr header;

    if (elf_version(EV_CURRENT) == EV_NONE)
        g_assert_not_reached();

    reader->elf = elf_memory((char *)all.data, all.len);
    if (!reader->elf || elf_kind(reader->elf) != ELF_K_ELF || !gelf_getehdr(reader->elf, &header) ||
        elf_getshdrnum(reader->elf, &n_sections) != 0 ||
        elf_getphdrnum(reader->elf, &n_segments) != 0)
        return uprof_bytes_fail(&reader->bytes, error, "libelf says '%s'", elf_errmsg(-1));
    if (n_sections != reader->n_sections || n_segments != reader->n_segments)
        return uprof_bytes_fail(&reader->bytes, error,
                                "the numbers of headers contradict each other");

    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "%s is not a linked image (ELF type %u)", reader->bytes.name, header.e_type);
        return false;
    }
    reader->image.word_bytes = reader->layout->word_bytes;
    reader->image.big_endian = reader->bytes.big_endian;
    reader->image.machine = header.e_machine;
    reader->image.entry = header.e_entry;
    reader->image.file = all;
    reader->image.has_sections = n_sections > 0;
    return true;
}

static bool
read_section(const Reader *reader, size_t i, GElf_Shdr *section, GError **error)
{
    Elf_Scn *handle = elf_getscn(reader->elf, i);

    if (!handle || !gelf_getshdr(handle, section))
        return uprof_bytes_fail(&reader->bytes, error, "section %zu: libelf says '%s'", i,
                                elf_errmsg(-1));
    return true;
}

static bool
read_segment(const Reader *reader, size_t i, GElf_Phdr *segment, GError **error)
{
    if (!gelf_getphdr(reader->elf, i, segment))
        return uprof_bytes_fail(&reader->bytes, error, "segment %zu: libelf says '%s'", i,
                                elf_errmsg(-1));
    return true;
}

static bool
is_note_of(UprofSlice name, const char *owner)
{
    return name.len == strlen(owner) + 1 && memcmp(name.data, owner, name.len) == 0;
}

/* @gva: link address of the note's content, or 0 */
static void
store_note(Reader *reader, UprofSlice name, uint32_t type, UprofSlice content, uint64_t gva)
{
    const UprofBytes bytes = { .all = content, .big_endian = reader->bytes.big_endian };
    UprofElfImage *image = &reader->image;

    if (is_note_of(name, "GNU") && type == NOTE_BUILD_ID && image->build_id.len == 0 &&
        content.len > 0 && content.len <= UPROF_ELF_BUILD_ID_BYTES_MAX) {
        image->build_id = content;
        image->build_id_at = gva;
    } else if (is_note_of(name, "Xen") && type == NOTE_XEN_ENTRY) {
        read_number(&bytes, 0, (unsigned)content.len, &image->xen_entry);
    } else if (is_note_of(name, "Xen") && type == NOTE_XEN_PHYS32_ENTRY) {
        read_number(&bytes, 0, (unsigned)content.len, &image->pvh_entry);
    }
}

/*
 * note = u32 name_len, u32 len, u32 type, name, padding to 4, bytes, padding to 4
 *
 * A malformed note ends the search without an error, because an image without notes is usable
 * too.
 */
static void
read_notes(Reader *reader, uint64_t at, uint64_t len, uint64_t gva)
{
    UprofBytes notes = { .big_endian = reader->bytes.big_endian };
    uint32_t name_len, content_len, type;
    UprofSlice name, content, padding;

    if (!uprof_slice_sub(reader->bytes.all, at, len, &notes.all))
        return;

    while (reader->n_notes++ < NOTES_MAX) {
        if (!uprof_bytes_u32(&notes, &name_len) || !uprof_bytes_u32(&notes, &content_len) ||
            !uprof_bytes_u32(&notes, &type) || !uprof_bytes_take(&notes, name_len, &name) ||
            !uprof_bytes_take(&notes, -notes.at & 3, &padding) ||
            !uprof_bytes_take(&notes, content_len, &content))
            return;
        store_note(reader, name, type, content, gva > 0 ? gva + notes.at - content.len : 0);
        if (!uprof_bytes_take(&notes, -notes.at & 3, &padding))
            return;
    }
}

static bool
add_text(Reader *reader, uint64_t start, uint64_t len, uint64_t at, uint64_t file_len,
         GError **error)
{
    UprofElfRange range = { .start = start, .len = len };
    uint64_t end;

    if (len == 0)
        return true;
    if (__builtin_add_overflow(start, len, &end))
        return uprof_bytes_fail(&reader->bytes, error, "code ends beyond the address space");
    if (file_len > 0 && !uprof_slice_sub(reader->bytes.all, at, MIN(file_len, len), &range.bytes))
        return uprof_bytes_fail(&reader->bytes, error, "code ends beyond the file");
    if (reader->image.text->len == UPROF_ELF_RANGES_MAX)
        return uprof_bytes_fail(&reader->bytes, error, "more than %d ranges of code",
                                UPROF_ELF_RANGES_MAX);
    g_array_append_val(reader->image.text, range);
    return true;
}

/* Returns: the names of sections; empty if there are none or they are malformed */
static UprofSlice
find_section_names(const Reader *reader)
{
    UprofSlice names = { NULL, 0 };
    GElf_Shdr section;
    size_t i;

    if (elf_getshdrstrndx(reader->elf, &i) == 0 && i > 0 && i < reader->n_sections &&
        read_section(reader, i, &section, NULL) && section.sh_type == SHT_STRTAB)
        uprof_slice_sub(reader->bytes.all, section.sh_offset, section.sh_size, &names);
    return names;
}

static bool
is_named(UprofSlice names, uint64_t at, const char *name)
{
    const size_t len = strlen(name) + 1;
    UprofSlice found;

    return uprof_slice_sub(names, at, len, &found) && memcmp(found.data, name, len) == 0;
}

/*
 * Elf32_Chdr = u32 type, u32 size, u32 alignment; Elf64_Chdr = u32 type, u32 0,
 * u64 size, u64 alignment (System V gABI, "Section Compression")
 */
static bool
read_compression(const Reader *reader, UprofBytes *bytes, uint64_t *len)
{
    uint32_t type, word;

    if (!uprof_bytes_u32(bytes, &type) || type != ELFCOMPRESS_ZLIB ||
        !uprof_bytes_u32(bytes, &word))
        return false;
    if (reader->layout->word_bytes == 8)
        return uprof_bytes_u64(bytes, len) && uprof_bytes_seek(bytes, sizeof(Elf64_Chdr));
    *len = word;
    return uprof_bytes_seek(bytes, sizeof(Elf32_Chdr));
}

/* .zdebug = "ZLIB", u64 length, big-endian */
static bool
read_old_compression(UprofBytes *bytes, uint64_t *len)
{
    UprofSlice magic;

    bytes->big_endian = true;
    return uprof_bytes_take(bytes, 4, &magic) && memcmp(magic.data, "ZLIB", 4) == 0 &&
           uprof_bytes_u64(bytes, len);
}

static void
unpack_debug_frame(Reader *reader, UprofElfRange range, bool is_old)
{
    UprofBytes bytes = { .all = range.bytes, .big_endian = reader->bytes.big_endian };
    UprofSlice packed;
    uint64_t len;

    if (reader->image.unpacked ||
        !(is_old ? read_old_compression(&bytes, &len) : read_compression(reader, &bytes, &len)) ||
        !uprof_bytes_take(&bytes, uprof_bytes_left(&bytes), &packed))
        return;
    reader->image.unpacked = uprof_unpack_zlib(packed, reader->bytes.name, len, NULL);
    if (!reader->image.unpacked)
        return;
    range.len = len;
    range.bytes = (UprofSlice){ reader->image.unpacked->data, len };
    reader->image.debug_frame = range;
}

/* .gnu_debuglink = name, NUL, padding to 4, u32 CRC (gdb, "Separate Debug Files") */
static void
store_debug_link(Reader *reader, UprofSlice section)
{
    UprofBytes bytes = { .all = section, .big_endian = reader->bytes.big_endian };
    const char *end = section.len > 0 ? memchr(section.data, '\0', section.len) : NULL;
    UprofSlice name;
    uint32_t crc;

    if (!end || end == section.data ||
        !uprof_slice_sub(section, 0, end - (const char *)section.data, &name) ||
        !uprof_bytes_seek(&bytes, (name.len + 4) / 4 * 4) || !uprof_bytes_u32(&bytes, &crc))
        return;
    reader->image.debug_link = name;
    reader->image.debug_link_crc = crc;
}

/*
 * Stores the sections that the analysis finds by name. An image without these sections, or with
 * malformed ones, is usable too.
 */
static void
store_named_section(Reader *reader, const GElf_Shdr *section, UprofSlice names)
{
    UprofElfImage *image = &reader->image;
    UprofElfRange range = { .start = section->sh_addr, .len = section->sh_size };
    const bool is_packed = section->sh_flags & SHF_COMPRESSED;

    if (section->sh_type == SHT_NOBITS ||
        !uprof_slice_sub(reader->bytes.all, section->sh_offset, section->sh_size, &range.bytes))
        return;
    if (is_named(names, section->sh_name, ".debug_frame") && !is_packed)
        image->debug_frame = range;
    else if (is_named(names, section->sh_name, ".debug_frame"))
        unpack_debug_frame(reader, range, false);
    else if (is_named(names, section->sh_name, ".zdebug_frame"))
        unpack_debug_frame(reader, range, true);
    else if (is_named(names, section->sh_name, ".debug_info") ||
             is_named(names, section->sh_name, ".zdebug_info"))
        image->has_lines = true;
    else if (is_packed)
        return;
    else if (is_named(names, section->sh_name, ".eh_frame"))
        image->eh_frame = range;
    else if (is_named(names, section->sh_name, ".gnu_debugdata"))
        image->debug_data = range.bytes;
    else if (is_named(names, section->sh_name, ".gopclntab") ||
             is_named(names, section->sh_name, ".data.rel.ro.gopclntab"))
        reader->go_table = range;
    else if (is_named(names, section->sh_name, ".text"))
        reader->text_at = section->sh_addr;
    else if (is_named(names, section->sh_name, ".gnu_debuglink"))
        store_debug_link(reader, range.bytes);
}

static bool
is_symbol_table(const GElf_Shdr *section)
{
    return section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM;
}

/* Finds code and build-id. @symbols: (out): index of the best symbol table; 0 if there is none */
static bool
read_sections(Reader *reader, size_t *symbols, GError **error)
{
    const UprofSlice names = find_section_names(reader);
    uint32_t best = SHT_NULL;

    reader->is_code = g_new0(bool, reader->n_sections);
    *symbols = 0;
    for (size_t i = 1; i < reader->n_sections; i++) {
        GElf_Shdr section;

        if (!read_section(reader, i, &section, error))
            return false;
        store_named_section(reader, &section, names);
        if (section.sh_type == SHT_NOTE)
            read_notes(reader, section.sh_offset, section.sh_size,
                       section.sh_flags & SHF_ALLOC ? section.sh_addr : 0);
        if (is_symbol_table(&section) && best != SHT_SYMTAB && section.sh_type != best) {
            best = section.sh_type;
            reader->has_all_symbols = best == SHT_SYMTAB;
            *symbols = i;
        }
        if (!(section.sh_flags & SHF_ALLOC) || !(section.sh_flags & SHF_EXECINSTR))
            continue;

        const bool is_here = section.sh_type != SHT_NOBITS;
        reader->is_code[i] = true;
        if (!add_text(reader, section.sh_addr, section.sh_size, section.sh_offset,
                      is_here ? section.sh_size : 0, error))
            return false;
    }
    return true;
}

static bool
read_segments(Reader *reader, GError **error)
{
    reader->image.first_page = UINT64_MAX;
    for (size_t i = 0; i < reader->n_segments; i++) {
        GElf_Phdr segment;

        if (!read_segment(reader, i, &segment, error))
            return false;
        if (segment.p_type == PT_NOTE)
            read_notes(reader, segment.p_offset, segment.p_filesz, segment.p_vaddr);
        if (segment.p_type == PT_LOAD)
            reader->image.first_page = MIN(reader->image.first_page, segment.p_vaddr);
        if (reader->n_sections == 0 && segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
            !add_text(reader, segment.p_vaddr, segment.p_memsz, segment.p_offset, segment.p_filesz,
                      error))
            return false;
    }
    return true;
}

static int
compare_ranges(gconstpointer a, gconstpointer b)
{
    const UprofElfRange *first = a, *second = b;

    if (first->start != second->start)
        return UPROF_COMPARE(first->start, second->start);
    return UPROF_COMPARE(first->len, second->len);
}

/* Sorts the code by address. Cuts bytes that the range before contains too. */
static void
sort_text(GArray *text)
{
    uint64_t end = 0;
    unsigned n = 0;

    g_array_sort(text, compare_ranges);
    for (unsigned i = 0; i < text->len; i++) {
        UprofElfRange range = g_array_index(text, UprofElfRange, i);
        const uint64_t cut = end > range.start ? end - range.start : 0;

        if (cut >= range.len)
            continue;
        range.start += cut;
        range.len -= cut;
        const uint64_t cut_bytes = MIN(cut, range.bytes.len);
        uprof_slice_sub(range.bytes, cut_bytes, range.bytes.len - cut_bytes, &range.bytes);
        end = range.start + range.len;
        g_array_index(text, UprofElfRange, n++) = range;
    }
    g_array_set_size(text, n);
}

static bool
find_name(UprofSlice strings, uint64_t at, UprofSlice *name)
{
    UprofSlice rest;

    if (at >= strings.len || !uprof_slice_sub(strings, at, strings.len - at, &rest))
        return false;
    rest.len = MIN(rest.len, UPROF_SYMBOL_NAME_BYTES_MAX + 1);

    const char *end = memchr(rest.data, '\0', rest.len);
    if (end)
        rest.len = end - (const char *)rest.data;
    *name = rest;
    return trim_symbol_name(name);
}

UprofBinding
uprof_elf_binding(unsigned char st_info)
{
    switch (GELF_ST_BIND(st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return UPROF_BINDING_GLOBAL;
    case STB_WEAK:
        return UPROF_BINDING_WEAK;
    default:
        return UPROF_BINDING_LOCAL;
    }
}

/* Returns: false if the analysis does not need the symbol */
static bool
make_symbol(const Reader *reader, const GElf_Sym *raw, UprofSlice strings, UprofSymbol *symbol)
{
    const unsigned type = GELF_ST_TYPE(raw->st_info);
    const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
    const bool is_in_code = raw->st_shndx < reader->n_sections && reader->is_code[raw->st_shndx];

    if (raw->st_shndx == SHN_UNDEF)
        return false;
    if (!is_function && !(is_in_code && (type == STT_NOTYPE || type == STT_OBJECT)))
        return false;
    if (!find_name(strings, raw->st_name, &symbol->name))
        return false;

    symbol->start = raw->st_value;
    symbol->size = MIN(raw->st_size, UINT64_MAX - raw->st_value);
    symbol->binding = uprof_elf_binding(raw->st_info);
    symbol->code = type != STT_OBJECT;
    symbol->is_label =
        type == STT_NOTYPE && symbol->binding == UPROF_BINDING_LOCAL && symbol->size == 0;
    return true;
}

static bool
find_strings(const Reader *reader, const GElf_Shdr *table, UprofSlice *strings, GError **error)
{
    GElf_Shdr section;

    if (table->sh_link >= reader->n_sections)
        return uprof_bytes_fail(&reader->bytes, error, "symbols without names");
    if (!read_section(reader, table->sh_link, &section, error))
        return false;
    if (section.sh_type != SHT_STRTAB ||
        !uprof_slice_sub(reader->bytes.all, section.sh_offset, section.sh_size, strings))
        return uprof_bytes_fail(&reader->bytes, error, "names of symbols end beyond the file");
    return true;
}

static bool
read_symbols(Reader *reader, size_t index, uint64_t symbols_max, bool *has_more, GError **error)
{
    GElf_Shdr table;
    UprofSlice strings, raws;

    if (!read_section(reader, index, &table, error))
        return false;
    if (table.sh_entsize != reader->layout->sym_bytes)
        return uprof_bytes_fail(&reader->bytes, error, "bad size of a symbol");
    const uint64_t n = table.sh_size / table.sh_entsize;
    *has_more = n > symbols_max;
    if (*has_more)
        return uprof_bytes_fail(&reader->bytes, error, "more than %" G_GUINT64_FORMAT " symbols",
                                symbols_max);
    if (!uprof_slice_sub(reader->bytes.all, table.sh_offset, table.sh_size, &raws))
        return uprof_bytes_fail(&reader->bytes, error, "symbols end beyond the file");
    if (!find_strings(reader, &table, &strings, error))
        return false;

    Elf_Data *data = n > 0 ? elf_getdata(elf_getscn(reader->elf, index), NULL) : NULL;
    for (uint64_t i = 0; data && i < n; i++) {
        UprofSymbol symbol;
        GElf_Sym raw;

        if (gelf_getsym(data, i, &raw) && make_symbol(reader, &raw, strings, &symbol))
            g_array_append_val(reader->image.symbols, symbol);
    }
    return true;
}

/* @bytes: (out): of the segment that has @address, from there on. Returns: false if none has it */
static bool
find_loaded(const Reader *reader, uint64_t address, UprofSlice *bytes)
{
    GElf_Phdr segment;

    for (size_t i = 0; i < reader->n_segments; i++)
        if (read_segment(reader, i, &segment, NULL) && segment.p_type == PT_LOAD &&
            address - segment.p_vaddr < segment.p_filesz)
            return uprof_slice_sub(reader->bytes.all,
                                   segment.p_offset + (address - segment.p_vaddr),
                                   segment.p_filesz - (address - segment.p_vaddr), bytes);
    return false;
}

static bool
find_go_module(const Reader *reader, const UprofGoBytes *table, UprofGoModule *module)
{
    uint64_t left = UPROF_GO_DATA_BYTES_MAX;
    GElf_Phdr segment;

    for (size_t i = 0; i < reader->n_segments && left > 0; i++) {
        UprofGoBytes data = { 0 };
        if (!read_segment(reader, i, &segment, NULL) || segment.p_type != PT_LOAD ||
            !(segment.p_flags & PF_W) ||
            !uprof_slice_sub(reader->bytes.all, segment.p_offset, MIN(segment.p_filesz, left),
                             &data.all))
            continue;
        left -= data.all.len;
        if (uprof_go_module_find(&data, table, reader->go_table.start, module))
            return true;
    }
    return false;
}

/* Programs in Go have the sizes of their frames, and the names of their functions if they are
 * stripped. */
static void
read_go_table(Reader *reader, uint64_t symbols_max)
{
    UprofElfImage *image = &reader->image;
    const UprofGoBytes table = { .all = reader->go_table.bytes };
    const UprofGoFound found = { reader->has_all_symbols ? NULL : image->symbols,
                                 (guint)symbols_max,
                                 g_array_new(FALSE, FALSE, sizeof(UprofFrameSize)) };
    UprofGoModule module = { reader->text_at, 0 };
    UprofGoBytes trees = { 0 };

    image->frames = found.frames;
    const bool has_module = find_go_module(reader, &table, &module);
    const bool has_trees = has_module && find_loaded(reader, module.trees, &trees.all);
    const uint64_t text =
        uprof_go_table_read(&table, module.text, has_module ? module.text : image->entry, &found);
    if (text != 0)
        image->go_lines = uprof_go_lines_new(&table, text, has_trees ? &trees : NULL);
}

bool
uprof_elf_parse(UprofSlice file, const char *name, UprofElfImage *image, GError **error)
{
    bool has_more;

    return uprof_elf_parse_some(file, name, UPROF_SYMBOLS_MAX, image, &has_more, error);
}

bool
uprof_elf_parse_some(UprofSlice file, const char *name, uint64_t symbols_max, UprofElfImage *image,
                     bool *has_more, GError **error)
{
    g_auto(Reader) reader = { .bytes = { .name = name, .all = file } };
    size_t symbols = 0;

    *has_more = false;
    if (file.len > UPROF_ELF_FILE_BYTES_MAX)
        return uprof_bytes_fail(&reader.bytes, error, "%zu bytes are too many", file.len);
    if (!read_ident(&reader.bytes, &reader.layout))
        return uprof_bytes_fail(&reader.bytes, error, "not an ELF file");

    open_wrapper(&reader);
    reader.image.symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    reader.image.text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    if (!check_sections(&reader, error) || !check_segments(&reader, error) ||
        !open_elf(&reader, error) || !read_sections(&reader, &symbols, error) ||
        !read_segments(&reader, error))
        return false;
    if (symbols != 0 && !read_symbols(&reader, symbols, symbols_max, has_more, error))
        return false;
    if (reader.go_table.bytes.len > 0)
        read_go_table(&reader, symbols_max);
    sort_text(reader.image.text);
    if (reader.image.first_page == UINT64_MAX)
        reader.image.first_page = reader.image.text->len > 0
                                      ? g_array_index(reader.image.text, UprofElfRange, 0).start
                                      : 0;
    reader.image.first_page -= reader.image.first_page % PAGE_BYTES;

    *image = reader.image;
    reader.image = (UprofElfImage){ 0 };
    return true;
}

uint32_t
uprof_elf_debug_link_crc(UprofSlice file)
{
    return (uint32_t)crc32_z(0, file.data, file.len);
}

void
uprof_elf_clear(UprofElfImage *image)
{
    g_clear_pointer(&image->symbols, g_array_unref);
    g_clear_pointer(&image->text, g_array_unref);
    g_clear_pointer(&image->unpacked, g_byte_array_unref);
    g_clear_pointer(&image->frames, g_array_unref);
    g_clear_pointer(&image->go_lines, uprof_go_lines_free);
}
