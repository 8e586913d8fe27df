/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../src/parse/symbol-priv.h"
#include "../../../src/parse/elf-image-priv.h"
#include "uprof/elf-image.h"
#include "uprof/error.h"

#include "build-elf.h"

/*
 * A file in read-only pages, directly before a page without access: a reader that reads beyond
 * the end, or swaps bytes in place, is killed.
 */
typedef struct {
    void *map;
    size_t map_len;
    UprofSlice file;
} Guarded;

static Guarded
guard(const void *data, size_t len)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t room = (len + page - 1) / page * page;
    Guarded guarded = { .map_len = room + page };

    guarded.map =
        mmap(NULL, guarded.map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert_true(guarded.map != MAP_FAILED);
    char *start = (char *)guarded.map + room - len;
    if (len > 0)
        memcpy(start, data, len);
    g_assert_cmpint(mprotect(guarded.map, guarded.map_len, PROT_READ), ==, 0);
    g_assert_cmpint(mprotect((char *)guarded.map + room, page, PROT_NONE), ==, 0);
    guarded.file = (UprofSlice){ start, len };
    return guarded;
}

static void
clear_guarded(Guarded *guarded)
{
    munmap(guarded->map, guarded->map_len);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Guarded, clear_guarded)

/* clang-format off */
static const struct {
    const char *name;
    BuiltElfKind kind;
} kinds[] = {
    { "64-little",          { .is_32 = false } },
    { "64-big",             { .big_endian = true } },
    { "32-little",          { .is_32 = true } },
    { "32-big",             { .is_32 = true, .big_endian = true } },
    { "64-little-stripped", { .is_stripped = true } },
    { "64-big-stripped",    { .big_endian = true, .is_stripped = true } },
    { "32-little-stripped", { .is_32 = true, .is_stripped = true } },
    { "wrapped",            { .is_wrapped = true } },
    { "wrapped-stripped",   { .is_wrapped = true, .is_stripped = true } },
};

static const struct {
    const char *name;
    uint64_t start, size;
    UprofBinding binding;
    bool code;
} kept[BUILT_N_KEPT_SYMBOLS] = {
    { "main",      0x401000, 16, UPROF_BINDING_GLOBAL, true  },
    { "helper",    0x401010, 8,  UPROF_BINDING_LOCAL,  true  },
    { "weak_one",  0x401018, 8,  UPROF_BINDING_WEAK,   true  },
    { "entry",     0x401020, 0,  UPROF_BINDING_GLOBAL, true  },
    { "table",     0x401028, 8,  UPROF_BINDING_LOCAL,  false },
    { "versioned", 0x401030, 4,  UPROF_BINDING_GLOBAL, true  },
    { "chosen",    0x401038, 4,  UPROF_BINDING_GLOBAL, true  },
    { "cold",      0x403000, 16, UPROF_BINDING_GLOBAL, true  },
};
/* clang-format on */

static void
assert_symbols(const GArray *symbols)
{
    g_assert_cmpuint(symbols->len, ==, BUILT_N_KEPT_SYMBOLS);
    for (unsigned i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);

        g_assert_cmpmem(symbol->name.data, symbol->name.len, kept[i].name, strlen(kept[i].name));
        g_assert_cmphex(symbol->start, ==, kept[i].start);
        g_assert_cmpuint(symbol->size, ==, kept[i].size);
        g_assert_cmpint(symbol->binding, ==, kept[i].binding);
        g_assert_true(symbol->code == kept[i].code);
    }
}

static void
test_kind(gconstpointer data)
{
    const BuiltElfKind *kind = &kinds[GPOINTER_TO_SIZE(data)].kind;
    g_autoptr(GByteArray) built = build_elf(kind);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_elf_is(guarded.file));
    const bool ok = uprof_elf_parse(guarded.file, "app", &image, &error);
    g_assert_no_error(error);
    g_assert_true(ok);

    g_assert_cmpuint(image.word_bytes, ==, kind->is_32 ? 4 : 8);
    g_assert_true(image.big_endian == kind->big_endian);
    g_assert_cmpuint(image.machine, ==, kind->is_32 ? EM_386 : EM_X86_64);
    g_assert_cmphex(image.entry, ==, BUILT_TEXT_GVA);
    g_assert_true(image.is_wrapped == kind->is_wrapped);
    g_assert_cmpuint(image.build_id.len, ==, 20);
    g_assert_cmphex(*(const uint8_t *)image.build_id.data, ==, 0xa0);

    const UprofElfRange *text = &g_array_index(image.text, UprofElfRange, 0);
    g_assert_cmphex(text->start, ==, BUILT_TEXT_GVA);
    g_assert_cmpuint(text->bytes.len, ==, BUILT_TEXT_LEN);
    g_assert_cmpuint(((const uint8_t *)text->bytes.data)[9], ==, 9);
    if (kind->is_stripped) {
        g_assert_cmpuint(image.symbols->len, ==, 0);
        g_assert_cmpuint(image.text->len, ==, 1);
        g_assert_cmpuint(text->len, ==, BUILT_TEXT_LEN + 16);
        return;
    }
    assert_symbols(image.symbols);
    g_assert_cmpuint(image.text->len, ==, 2);
    g_assert_cmpuint(text->len, ==, BUILT_TEXT_LEN);
    g_assert_cmphex(text[1].start, ==, BUILT_COLD_GVA);
    g_assert_cmpuint(text[1].len, ==, BUILT_COLD_LEN);
    g_assert_cmpuint(text[1].bytes.len, ==, 0);
}

/* Every prefix of a file is refused, or parsed without its missing parts. */
static void
test_prefixes(gconstpointer data)
{
    g_autoptr(GByteArray) built = build_elf(&kinds[GPOINTER_TO_SIZE(data)].kind);

    for (size_t len = 0; len < built->len; len++) {
        g_auto(Guarded) guarded = guard(built->data, len);
        g_auto(UprofElfImage) image = { 0 };
        g_autoptr(GError) error = NULL;

        const bool ok = uprof_elf_parse(guarded.file, "app", &image, &error);
        g_assert_true(ok == !error);
    }
}

#define EHDR(member) G_STRUCT_OFFSET(Elf64_Ehdr, member)
#define SHDR(section, member)                                                                      \
    (BUILT_SECTIONS_AT + BUILT_##section * sizeof(Elf64_Shdr) + G_STRUCT_OFFSET(Elf64_Shdr, member))
#define SYMBOL(i, member)                                                                          \
    (BUILT_SYMBOLS_AT + (i) * sizeof(Elf64_Sym) + G_STRUCT_OFFSET(Elf64_Sym, member))

/* One number of a 64-bit little-endian file is changed. */
/* clang-format off */
static const struct {
    const char *name;
    size_t at;
    unsigned width;
    uint64_t value;
    UprofErrorCode code;
    const char *error; /* NULL: must parse */
    unsigned n_symbols, n_ranges;
} damages[] = {
    { "magic",           0, 1, 0,                        UPROF_ERROR_BAD_DATA, "app byte 0: not an ELF file" },
    { "class",           EI_CLASS, 1, 3,                 UPROF_ERROR_BAD_DATA, "app byte 0: not an ELF file" },
    { "byte-order",      EI_DATA, 1, 0,                  UPROF_ERROR_BAD_DATA, "app byte 0: not an ELF file" },
    { "version",         EI_VERSION, 1, 2,               UPROF_ERROR_BAD_DATA, "app byte 0: *" },
    { "object-file",     EHDR(e_type), 2, ET_REL,        UPROF_ERROR_UNSUPPORTED, "app is not a linked image (ELF type 1)" },
    { "core-file",       EHDR(e_type), 2, ET_CORE,       UPROF_ERROR_UNSUPPORTED, "app is not a linked image*" },
    { "shared-object",   EHDR(e_type), 2, ET_DYN,        0, NULL, 8, 2 },

    { "shoff-end",       EHDR(e_shoff), 8, 0x381,        UPROF_ERROR_BAD_DATA, "*: section headers end beyond the file" },
    { "shoff-huge",      EHDR(e_shoff), 8, UINT64_MAX,   UPROF_ERROR_BAD_DATA, "*: section headers end beyond the file" },
    { "shoff-none",      EHDR(e_shoff), 8, 0,            UPROF_ERROR_BAD_DATA, "*: a number of sections, but no section headers" },
    { "shnum-plus-1",    EHDR(e_shnum), 2, 8,            UPROF_ERROR_BAD_DATA, "*: section headers end beyond the file" },
    { "shnum-huge",      EHDR(e_shnum), 2, 0xffff,       UPROF_ERROR_BAD_DATA, "*: section headers end beyond the file" },
    { "shentsize",       EHDR(e_shentsize), 2, 63,       UPROF_ERROR_BAD_DATA, "*: bad size of a section header" },
    { "phoff-huge",      EHDR(e_phoff), 8, UINT64_MAX,   UPROF_ERROR_BAD_DATA, "*: segment headers end beyond the file" },
    { "phnum-huge",      EHDR(e_phnum), 2, 0xfffe,       UPROF_ERROR_BAD_DATA, "*: segment headers end beyond the file" },
    { "phentsize",       EHDR(e_phentsize), 2, 1,        UPROF_ERROR_BAD_DATA, "*: bad size of a segment header" },

    { "text-beyond",     SHDR(TEXT, sh_size), 8, 0x10000,       UPROF_ERROR_BAD_DATA, "*: code ends beyond the file" },
    { "text-huge",       SHDR(TEXT, sh_size), 8, UINT64_MAX,    UPROF_ERROR_BAD_DATA, "*: code ends beyond the address space" },
    { "text-offset",     SHDR(TEXT, sh_offset), 8, UINT64_MAX,  UPROF_ERROR_BAD_DATA, "*: code ends beyond the file" },
    { "text-empty",      SHDR(TEXT, sh_size), 8, 0,      0, NULL, 8, 1 },
    { "text-not-loaded", SHDR(TEXT, sh_flags), 8, 0,     0, NULL, 6, 1 },
    { "cold-huge",       SHDR(COLD, sh_size), 8, UINT64_MAX,    UPROF_ERROR_BAD_DATA, "*: code ends beyond the address space" },
    { "cold-overlaps",   SHDR(COLD, sh_addr), 8, 0x401030, 0, NULL, 8, 2 },
    { "cold-inside",     SHDR(COLD, sh_addr), 8, 0x401008, 0, NULL, 8, 1 },

    { "symbols-beyond",  SHDR(SYMBOLS, sh_offset), 8, 0x1000,   UPROF_ERROR_BAD_DATA, "*: symbols end beyond the file" },
    { "symbols-huge",    SHDR(SYMBOLS, sh_size), 8, UINT64_MAX, UPROF_ERROR_BAD_DATA, "*: more than 4000000 symbols" },
    { "symbols-most",    SHDR(SYMBOLS, sh_size), 8, 4000000 * 24, UPROF_ERROR_BAD_DATA, "*: symbols end beyond the file" },
    { "symbols-plus-1",  SHDR(SYMBOLS, sh_size), 8, 4000001 * 24, UPROF_ERROR_BAD_DATA, "*: more than 4000000 symbols" },
    { "symbols-none",    SHDR(SYMBOLS, sh_size), 8, 0,   0, NULL, 0, 2 },
    { "symbols-cut",     SHDR(SYMBOLS, sh_size), 8, 23,  0, NULL, 0, 2 },
    { "symbol-size",     SHDR(SYMBOLS, sh_entsize), 8, 16, UPROF_ERROR_BAD_DATA, "*: bad size of a symbol" },
    { "symbol-size-0",   SHDR(SYMBOLS, sh_entsize), 8, 0,  UPROF_ERROR_BAD_DATA, "*: bad size of a symbol" },
    { "no-strings",      SHDR(SYMBOLS, sh_link), 4, 7,   UPROF_ERROR_BAD_DATA, "*: symbols without names" },
    { "strings-of-self", SHDR(SYMBOLS, sh_link), 4, 3,   UPROF_ERROR_BAD_DATA, "*: names of symbols end beyond the file" },
    { "strings-beyond",  SHDR(STRINGS, sh_size), 8, 0x10000, UPROF_ERROR_BAD_DATA, "*: names of symbols end beyond the file" },
    { "strings-short",   SHDR(STRINGS, sh_size), 8, 3,   0, NULL, 1, 2 },
    { "strings-empty",   SHDR(STRINGS, sh_size), 8, 0,   0, NULL, 0, 2 },
    { "dynamic-symbols", SHDR(SYMBOLS, sh_type), 4, SHT_DYNSYM, 0, NULL, 8, 2 },
    { "no-symbols",      SHDR(SYMBOLS, sh_type), 4, SHT_NOBITS, 0, NULL, 0, 2 },
    { "name-beyond",     SYMBOL(1, st_name), 4, UINT32_MAX, 0, NULL, 7, 2 },
    { "section-beyond",  SYMBOL(4, st_shndx), 2, 7,      0, NULL, 7, 2 },
    { "section-reserved", SYMBOL(4, st_shndx), 2, SHN_XINDEX, 0, NULL, 7, 2 },
    { "type-unknown",    SYMBOL(1, st_info), 1, 0xff,    0, NULL, 7, 2 },
    { "symbol-huge",     SYMBOL(1, st_size), 8, UINT64_MAX, 0, NULL, 8, 2 },
};
/* clang-format on */

static void
test_damage(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { .entry = 42 };
    g_autoptr(GError) error = NULL;

    put_number(built, damages[i].at, damages[i].width, false, damages[i].value);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    const bool ok = uprof_elf_parse(guarded.file, "app", &image, &error);

    if (!damages[i].error) {
        uint64_t end = 0;

        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpuint(image.symbols->len, ==, damages[i].n_symbols);
        g_assert_cmpuint(image.text->len, ==, damages[i].n_ranges);
        for (unsigned n = 0; n < image.text->len; n++) {
            const UprofElfRange *range = &g_array_index(image.text, UprofElfRange, n);

            g_assert_cmphex(range->start, >=, end);
            g_assert_cmpuint(range->bytes.len, <=, range->len);
            end = range->start + range->len;
        }
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, (int)damages[i].code);
    g_assert_true(g_pattern_match_simple(damages[i].error, error->message));
    g_assert_cmpuint(image.entry, ==, 42);
    g_assert_null(image.symbols);
}

/* clang-format off */
static const struct {
    const char *name;
    size_t at;
    uint32_t value;
    unsigned len; /* of the build-id found in the sections */
} notes[] = {
    { "unchanged",   0, 4,          20 },
    { "other-name",  0, 3,          0 },
    { "huge-name",   0, UINT32_MAX, 0 },
    { "short",       4, 8,          8 },
    { "empty",       4, 0,          0 },
    { "beyond",      4, 21,         0 },
    { "huge",        4, UINT32_MAX, 0 },
    { "other-type",  8, 1,          0 },
};
/* clang-format on */

static void
test_note(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    put_number(built, BUILT_NOTE_AT + notes[i].at, 4, false, notes[i].value);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    g_assert_true(uprof_elf_parse(guarded.file, "app", &image, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(image.build_id.len, ==, notes[i].len);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *owner;
    uint32_t type, len;
    uint64_t value;
    uint64_t xen, pvh; /* the entries that are found */
} xen_notes[] = {
    { "xen-entry",     "Xen", 1,  8, 0x401020, 0x401020, 0 },
    { "pvh-entry",     "Xen", 18, 4, 0x401020, 0, 0x401020 },
    { "pvh-entry-64",  "Xen", 18, 8, 0x401020, 0, 0x401020 },
    { "xen-text",      "Xen", 6,  8, 0x401020, 0, 0 },
    { "xen-odd",       "Xen", 1,  3, 0x401020, 0, 0 },
    { "xen-long",      "Xen", 1,  20, 0x401020, 0, 0 },
    { "xen-beyond",    "Xen", 1,  21, 0x401020, 0, 0 },
    { "xen-empty",     "Xen", 1,  0, 0x401020, 0, 0 },
    { "other-owner",   "Xem", 1,  8, 0x401020, 0, 0 },
};
/* clang-format on */

static void
test_xen_note(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    put_number(built, BUILT_NOTE_AT + 4, 4, false, xen_notes[i].len);
    put_number(built, BUILT_NOTE_AT + 8, 4, false, xen_notes[i].type);
    memcpy(built->data + BUILT_NOTE_AT + 12, xen_notes[i].owner, 4);
    put_number(built, BUILT_NOTE_AT + 16, 8, false, xen_notes[i].value);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    g_assert_true(uprof_elf_parse(guarded.file, "app", &image, &error));
    g_assert_no_error(error);
    g_assert_cmphex(image.xen_entry, ==, xen_notes[i].xen);
    g_assert_cmphex(image.pvh_entry, ==, xen_notes[i].pvh);
    g_assert_cmpuint(image.build_id.len, ==, 0);
}

#define FRAME_NAMES "\0.eh_frame\0.debug_frame"
enum { NAME_EH_FRAME = 1, NAME_DEBUG_FRAME = 11, NAME_CUT = 12 };

/* One number of a 64-bit little-endian file with an .eh_frame is changed. */
/* clang-format off */
static const struct {
    const char *name;
    size_t at;
    unsigned width;
    uint64_t value;
    bool is_eh, is_debug;
} frames[] = {
    { "eh",             SHDR(DATA, sh_name), 4, NAME_EH_FRAME,    true,  false },
    { "debug",          SHDR(DATA, sh_name), 4, NAME_DEBUG_FRAME, false, true  },
    { "x86-type",       SHDR(DATA, sh_type), 4, SHT_X86_64_UNWIND, true, false },
    { "other-name",     SHDR(DATA, sh_name), 4, NAME_CUT,         false, false },
    { "no-name",        SHDR(DATA, sh_name), 4, 0,                false, false },
    { "name-beyond",    SHDR(DATA, sh_name), 4, UINT32_MAX,       false, false },
    { "names-cut",      SHDR(STRINGS, sh_size), 8, 10,            false, false },
    { "names-beyond",   EHDR(e_shstrndx), 2, BUILT_N_SECTIONS,    false, false },
    { "no-names",       EHDR(e_shstrndx), 2, 0,                   false, false },
    { "names-of-code",  EHDR(e_shstrndx), 2, BUILT_TEXT,          false, false },
    { "debug-file",     SHDR(DATA, sh_type), 4, SHT_NOBITS,       false, false },
    { "compressed",     SHDR(DATA, sh_flags), 8, SHF_COMPRESSED,  false, false },
    { "beyond",         SHDR(DATA, sh_offset), 8, UINT64_MAX,     false, false },
    { "too-long",       SHDR(DATA, sh_size), 8, 0x10000,          false, false },
};
/* clang-format on */

static void
test_frames(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    memcpy(built->data + BUILT_STRINGS_AT, FRAME_NAMES, sizeof(FRAME_NAMES));
    put_number(built, EHDR(e_shstrndx), 2, false, BUILT_STRINGS);
    put_number(built, SHDR(DATA, sh_name), 4, false, NAME_EH_FRAME);
    put_number(built, SHDR(SYMBOLS, sh_size), 8, false, 0);
    put_number(built, frames[i].at, frames[i].width, false, frames[i].value);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    g_assert_true(uprof_elf_parse(guarded.file, "app", &image, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(image.eh_frame.bytes.len, ==, frames[i].is_eh ? 16 : 0);
    g_assert_cmpuint(image.debug_frame.bytes.len, ==, frames[i].is_debug ? 16 : 0);
    if (frames[i].is_eh) {
        g_assert_cmphex(image.eh_frame.start, ==, 0x402000);
        g_assert_cmpuint(((const uint8_t *)image.eh_frame.bytes.data)[9], ==, 9);
    }
}

/* 3000 zeros, packed by zlib */
#define ZEROS                                                                                      \
    "\x78\xda\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xf5\x4f\x6d\x0d\x0f\xa0\x00\x00\x80\x77\x03\x0b" \
    "\xb8\x00\x01"
#define PACKED(type, len) type "\0\0\0\0\0\0\0" len "\0\0\0\0\0\0\1\0\0\0\0\0\0\0" ZEROS
#define BYTES(text) text, sizeof(text) - 1
enum { ZEROS_LEN = 3000 };

/* A 64-bit little-endian file with one section of this name and these bytes. */
/* clang-format off */
static const struct {
    const char *name;
    const char *section;
    const char *bytes;
    size_t len;
    uint64_t flags;
    size_t debug_frame_len, debug_data_len;
    const char *link; /* (nullable) */
    bool has_lines;
} named[] = {
    { "packed",          ".debug_frame", BYTES(PACKED("\1", "\xb8\x0b")), SHF_COMPRESSED, ZEROS_LEN },
    { "packed-by-zstd",  ".debug_frame", BYTES(PACKED("\2", "\xb8\x0b")), SHF_COMPRESSED },
    { "packed-longer",   ".debug_frame", BYTES(PACKED("\1", "\xb9\x0b")), SHF_COMPRESSED },
    { "packed-shorter",  ".debug_frame", BYTES(PACKED("\1", "\xb7\x0b")), SHF_COMPRESSED },
    { "packed-bomb",     ".debug_frame", BYTES(PACKED("\1", "\0\0")), SHF_COMPRESSED },
    { "packed-header",   ".debug_frame", BYTES("\1\0\0\0\0\0\0\0\1\0\0\0"), SHF_COMPRESSED },
    { "packed-cut",      ".debug_frame", BYTES("\1"), SHF_COMPRESSED },
    { "packed-eh",       ".eh_frame",    BYTES(PACKED("\1", "\xb8\x0b")), SHF_COMPRESSED },
    { "old-packed",      ".zdebug_frame", BYTES("ZLIB\0\0\0\0\0\0\x0b\xb8" ZEROS), 0, ZEROS_LEN },
    { "old-huge",        ".zdebug_frame", BYTES("ZLIB\xff\xff\xff\xff\xff\xff\xff\xff" ZEROS), 0 },
    { "old-magic",       ".zdebug_frame", BYTES("ZLIC\0\0\0\0\0\0\x0b\xb8" ZEROS), 0 },
    { "old-cut",         ".zdebug_frame", BYTES("ZLIB\0\0"), 0 },
    { "debug-data",      ".gnu_debugdata", BYTES("123"), 0, 0, 3 },
    { "link",            ".gnu_debuglink", BYTES("app.debug\0\0\0\x78\x56\x34\x12"), 0, 0, 0, "app.debug" },
    { "link-unpadded",   ".gnu_debuglink", BYTES("abc\0\x78\x56\x34\x12"), 0, 0, 0, "abc" },
    { "link-no-crc",     ".gnu_debuglink", BYTES("app.debug\0\0\0\x78\x56\x34"), 0 },
    { "link-no-end",     ".gnu_debuglink", BYTES("abcdefgh"), 0 },
    { "link-empty",      ".gnu_debuglink", BYTES("\0\0\0\0\x78\x56\x34\x12"), 0 },
    { "lines",           ".debug_info",  BYTES("x"), 0, 0, 0, NULL, true },
    { "lines-packed",    ".debug_info",  BYTES("x"), SHF_COMPRESSED, 0, 0, NULL, true },
    { "lines-old",       ".zdebug_info", BYTES("x"), 0, 0, 0, NULL, true },
};
/* clang-format on */

static void
test_named(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;
    const size_t at = built->len;

    g_byte_array_append(built, (const guint8 *)named[i].bytes, named[i].len);
    strcpy((char *)built->data + BUILT_STRINGS_AT + 1, named[i].section);
    put_number(built, EHDR(e_shstrndx), 2, false, BUILT_STRINGS);
    put_number(built, SHDR(SYMBOLS, sh_size), 8, false, 0);
    put_number(built, SHDR(DATA, sh_name), 4, false, 1);
    put_number(built, SHDR(DATA, sh_flags), 8, false, named[i].flags);
    put_number(built, SHDR(DATA, sh_offset), 8, false, at);
    put_number(built, SHDR(DATA, sh_size), 8, false, named[i].len);
    g_auto(Guarded) guarded = guard(built->data, built->len);
    g_assert_true(uprof_elf_parse(guarded.file, "app", &image, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(image.eh_frame.bytes.len, ==, 0);
    g_assert_cmpuint(image.debug_frame.bytes.len, ==, named[i].debug_frame_len);
    g_assert_cmpuint(image.debug_frame.len, ==, named[i].debug_frame_len);
    g_assert_cmpuint(image.debug_data.len, ==, named[i].debug_data_len);
    g_assert_true(image.has_lines == named[i].has_lines);
    const size_t link_len = named[i].link ? strlen(named[i].link) : 0;
    g_assert_cmpmem(image.debug_link.data, image.debug_link.len, named[i].link, link_len);
    g_assert_cmphex(image.debug_link_crc, ==, link_len > 0 ? 0x12345678 : 0);
}

/* Load addresses of build-id and first page. */
static void
test_loaded(void)
{
    const BuiltElfKind kinds_of[] = { { 0 }, { .is_stripped = true }, { .is_32 = true } };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds_of); i++) {
        g_autoptr(GByteArray) built = build_elf(&kinds_of[i]);
        g_auto(UprofElfImage) image = { 0 };
        g_assert_true(
            uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, NULL));
        g_assert_cmphex(image.first_page, ==, BUILT_TEXT_GVA);
        g_assert_cmphex(image.build_id_at, ==, 0x400140 + 16);
    }
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };
    put_number(built, SHDR(NOTE, sh_flags), 8, false, 0);
    put_number(built, BUILT_SEGMENTS_AT, 4, false, PT_NULL);
    g_assert_true(uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, NULL));
    g_assert_cmphex(image.first_page, ==, BUILT_TEXT_GVA); /* of the first code */
    g_assert_cmphex(image.build_id_at, ==, 0);
}

static void
test_build_id_limit(void)
{
    const BuiltElfKind kind = { 0 };

    for (unsigned len = 64; len <= 65; len++) {
        g_autoptr(GByteArray) built = build_elf(&kind);
        g_auto(UprofElfImage) image = { 0 };

        put_number(built, BUILT_NOTE_AT + 4, 4, false, len);
        put_number(built, SHDR(NOTE, sh_size), 8, false, 0x100);
        g_assert_true(
            uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, NULL));
        g_assert_cmpuint(image.build_id.len, ==, len == 64 ? 64 : 0);
    }
}

/* Files with many sections. 0xff00 sections and more do not fit into the header. */
static GByteArray *
build_many_sections(unsigned n, unsigned flags)
{
    const BuiltElfKind kind = { .is_stripped = true };
    GByteArray *built = build_elf(&kind);
    const bool is_extended = n >= SHN_LORESERVE;

    put_number(built, EHDR(e_shoff), 8, false, BUILT_SECTIONS_AT);
    put_number(built, EHDR(e_shnum), 2, false, is_extended ? 0 : n);
    put_number(built, BUILT_SECTIONS_AT + (uint64_t)n * sizeof(Elf64_Shdr) - 1, 1, false, 0);
    for (unsigned i = 1; i < n; i++) {
        const size_t at = BUILT_SECTIONS_AT + i * sizeof(Elf64_Shdr);

        put_number(built, at + G_STRUCT_OFFSET(Elf64_Shdr, sh_type), 4, false, SHT_NOBITS);
        put_number(built, at + G_STRUCT_OFFSET(Elf64_Shdr, sh_flags), 8, false, flags);
        put_number(built, at + G_STRUCT_OFFSET(Elf64_Shdr, sh_addr), 8, false, i * 16);
        put_number(built, at + G_STRUCT_OFFSET(Elf64_Shdr, sh_size), 8, false, 16);
    }
    if (is_extended)
        put_number(built, BUILT_SECTIONS_AT + G_STRUCT_OFFSET(Elf64_Shdr, sh_size), 8, false, n);
    return built;
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned n_sections, flags;
    const char *error; /* NULL: must parse */
    unsigned n_ranges;
} crowds[] = {
    { "ranges-most",     UPROF_ELF_RANGES_MAX + 1, SHF_ALLOC | SHF_EXECINSTR, NULL, UPROF_ELF_RANGES_MAX },
    { "ranges-plus-1",   UPROF_ELF_RANGES_MAX + 2, SHF_ALLOC | SHF_EXECINSTR, "*: more than 4096 ranges of code" },
    { "sections-most",   UPROF_ELF_SECTIONS_MAX,     0, NULL, 0 },
    { "sections-plus-1", UPROF_ELF_SECTIONS_MAX + 1, 0, "*: more than 65535 sections" },
};
/* clang-format on */

static void
test_crowd(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) built = build_many_sections(crowds[i].n_sections, crowds[i].flags);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, &error);

    if (!crowds[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpuint(image.text->len, ==, crowds[i].n_ranges);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(crowds[i].error, error->message));
}

static void
test_too_many_segments(void)
{
    g_autoptr(GByteArray) built = build_many_sections(1, 0);
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    put_number(built, EHDR(e_phnum), 2, false, PN_XNUM);
    put_number(built, BUILT_SECTIONS_AT + G_STRUCT_OFFSET(Elf64_Shdr, sh_info), 4, false,
               UPROF_ELF_SEGMENTS_MAX + 1);
    g_assert_false(uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "app byte 0: more than 65535 segments");
}

static void
test_too_long(void)
{
    const size_t len = UPROF_ELF_FILE_BYTES_MAX + 1;
    const UprofSlice file = { "never looked at", len };
    g_auto(UprofElfImage) image = { 0 };
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_elf_parse(file, "app", &image, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "app byte 0: 2147483649 bytes are too many");
}

static void
test_long_name(void)
{
    const BuiltElfKind kind = { 0 };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_autofree char *name = g_strnfill(UPROF_SYMBOL_NAME_BYTES_MAX + 1, 'x');
    g_auto(UprofElfImage) image = { 0 };
    const uint64_t at = built->len;

    g_byte_array_append(built, (const guint8 *)name, strlen(name) + 1);
    put_number(built, SHDR(STRINGS, sh_offset), 8, false, at);
    put_number(built, SHDR(STRINGS, sh_size), 8, false, strlen(name) + 1);
    put_number(built, SYMBOL(1, st_name), 4, false, 0);
    put_number(built, SYMBOL(2, st_name), 4, false, 1);
    g_assert_true(uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, NULL));
    g_assert_cmpuint(g_array_index(image.symbols, UprofSymbol, 0).name.len, ==,
                     UPROF_SYMBOL_NAME_BYTES_MAX);
    g_assert_cmpuint(g_array_index(image.symbols, UprofSymbol, 1).name.len, ==,
                     UPROF_SYMBOL_NAME_BYTES_MAX);
}

/* A wrapper without a file inside is an ordinary ELF32 file. */
static void
test_broken_wrapper(void)
{
    const BuiltElfKind kind = { .is_wrapped = true };
    g_autoptr(GByteArray) built = build_elf(&kind);
    g_auto(UprofElfImage) image = { 0 };

    put_number(built, 64 + 32, 1, false, 0);
    g_assert_true(uprof_elf_parse((UprofSlice){ built->data, built->len }, "app", &image, NULL));
    g_assert_false(image.is_wrapped);
    g_assert_cmpuint(image.word_bytes, ==, 4);
}

static void
test_is(void)
{
    g_assert_false(uprof_elf_is((UprofSlice){ NULL, 0 }));
    g_assert_false(uprof_elf_is((UprofSlice){ ELFMAG, 3 }));
    g_assert_true(uprof_elf_is((UprofSlice){ ELFMAG, 4 }));
}

static void
test_binding(void)
{
    g_assert_cmpint(uprof_elf_binding(ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)), ==,
                    UPROF_BINDING_GLOBAL);
    g_assert_cmpint(uprof_elf_binding(ELF64_ST_INFO(STB_GNU_UNIQUE, STT_FUNC)), ==,
                    UPROF_BINDING_GLOBAL);
    g_assert_cmpint(uprof_elf_binding(ELF64_ST_INFO(STB_WEAK, STT_FUNC)), ==, UPROF_BINDING_WEAK);
    g_assert_cmpint(uprof_elf_binding(ELF64_ST_INFO(STB_LOCAL, STT_FUNC)), ==, UPROF_BINDING_LOCAL);
    g_assert_cmpint(uprof_elf_binding(0xff), ==, UPROF_BINDING_LOCAL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
        g_autofree char *path = g_strdup_printf("/elf/frames/%s", frames[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_frames);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(named); i++) {
        g_autofree char *path = g_strdup_printf("/elf/named/%s", named[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_named);
    }
    g_test_add_func("/elf/loaded", test_loaded);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *path = g_strdup_printf("/elf/kind/%s", kinds[i].name);
        g_autofree char *prefixes = g_strdup_printf("/elf/prefixes/%s", kinds[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_kind);
        g_test_add_data_func(prefixes, GSIZE_TO_POINTER(i), test_prefixes);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(damages); i++) {
        g_autofree char *path = g_strdup_printf("/elf/damage/%s", damages[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_damage);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(notes); i++) {
        g_autofree char *path = g_strdup_printf("/elf/note/%s", notes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_note);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(xen_notes); i++) {
        g_autofree char *path = g_strdup_printf("/elf/note/%s", xen_notes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_xen_note);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(crowds); i++) {
        g_autofree char *path = g_strdup_printf("/elf/crowd/%s", crowds[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_crowd);
    }
    g_test_add_func("/elf/build-id-limit", test_build_id_limit);
    g_test_add_func("/elf/too-many-segments", test_too_many_segments);
    g_test_add_func("/elf/too-long", test_too_long);
    g_test_add_func("/elf/long-name", test_long_name);
    g_test_add_func("/elf/broken-wrapper", test_broken_wrapper);
    g_test_add_func("/elf/binding", test_binding);
    g_test_add_func("/elf/is", test_is);
    return g_test_run();
}
