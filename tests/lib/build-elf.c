/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-elf.h"

#include <elf.h>
#include <string.h>

enum { DATA_GVA = 0x402000, NOTE_GVA = 0x400140, NOTE_LEN = 36, MAGIC = 0x1BADB002 };

/* clang-format off */
static const struct {
    const char *name;
    unsigned value, size, type, binding, section;
} symbols[] = {
    { "",             0,        0,  STT_NOTYPE,    STB_LOCAL,      SHN_UNDEF  },
    { "main",         0x401000, 16, STT_FUNC,      STB_GLOBAL,     BUILT_TEXT },
    { "helper",       0x401010, 8,  STT_FUNC,      STB_LOCAL,      BUILT_TEXT },
    { "weak_one",     0x401018, 8,  STT_FUNC,      STB_WEAK,       BUILT_TEXT },
    { "entry",        0x401020, 0,  STT_NOTYPE,    STB_GLOBAL,     BUILT_TEXT },
    { "counter",      0x402000, 8,  STT_OBJECT,    STB_GLOBAL,     BUILT_DATA },
    { "table",        0x401028, 8,  STT_OBJECT,    STB_LOCAL,      BUILT_TEXT },
    { "puts@V2",      0,        0,  STT_FUNC,      STB_GLOBAL,     SHN_UNDEF  },
    { "versioned@@V", 0x401030, 4,  STT_FUNC,      STB_GLOBAL,     BUILT_TEXT },
    { ".L1",          0x401034, 0,  STT_NOTYPE,    STB_LOCAL,      BUILT_TEXT },
    { "$x",           0x401034, 0,  STT_NOTYPE,    STB_LOCAL,      BUILT_TEXT },
    { "file.c",       0,        0,  STT_FILE,      STB_LOCAL,      SHN_ABS    },
    { "",             0x401000, 0,  STT_SECTION,   STB_LOCAL,      BUILT_TEXT },
    { "chosen",       0x401038, 4,  STT_GNU_IFUNC, STB_GLOBAL,     BUILT_TEXT },
    { "cold",         0x403000, 16, STT_FUNC,      STB_GNU_UNIQUE, BUILT_COLD },
};

static const struct {
    unsigned type, flags, gva, at, len, link;
    bool has_entries;
} sections[BUILT_N_SECTIONS] = {
    [BUILT_TEXT]    = { SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, BUILT_TEXT_GVA, BUILT_TEXT_AT, BUILT_TEXT_LEN },
    [BUILT_NOTE]    = { SHT_NOTE, SHF_ALLOC, NOTE_GVA, BUILT_NOTE_AT, NOTE_LEN },
    [BUILT_SYMBOLS] = { SHT_SYMTAB, 0, 0, BUILT_SYMBOLS_AT, G_N_ELEMENTS(symbols), BUILT_STRINGS, true },
    [BUILT_STRINGS] = { SHT_STRTAB, 0, 0, BUILT_STRINGS_AT, BUILT_SYMBOLS_AT - BUILT_STRINGS_AT },
    [BUILT_DATA]    = { SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA_GVA, BUILT_TEXT_AT, 16 },
    [BUILT_COLD]    = { SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, BUILT_COLD_GVA, BUILT_TEXT_AT, BUILT_COLD_LEN },
};
/* clang-format on */

typedef struct {
    GByteArray *file;
    const BuiltElfKind *kind;
    size_t at;
} Builder;

void
put_number(GByteArray *file, size_t at, unsigned width, bool big_endian, uint64_t value)
{
    if (file->len < at + width) {
        const guint old = file->len;

        g_byte_array_set_size(file, at + width);
        memset(file->data + old, 0, at + width - old);
    }
    for (unsigned i = 0; i < width; i++)
        file->data[at + i] = value >> 8 * (big_endian ? width - 1 - i : i);
}

size_t
built_section_at(unsigned section, size_t member)
{
    return BUILT_SECTIONS_AT + section * sizeof(Elf64_Shdr) + member;
}

static void
put(Builder *builder, unsigned width, uint64_t value)
{
    put_number(builder->file, builder->at, width, builder->kind->big_endian, value);
    builder->at += width;
}

/* Appends a number as wide as an address. */
static void
put_word(Builder *builder, uint64_t value)
{
    put(builder, builder->kind->is_32 ? 4 : 8, value);
}

static void
put_header(Builder *builder)
{
    const bool is_32 = builder->kind->is_32, has_sections = !builder->kind->is_stripped;
    const uint8_t ident[EI_NIDENT] = {
        ELFMAG0,
        ELFMAG1,
        ELFMAG2,
        ELFMAG3,
        is_32 ? ELFCLASS32 : ELFCLASS64,
        builder->kind->big_endian ? ELFDATA2MSB : ELFDATA2LSB,
        EV_CURRENT,
    };

    for (unsigned i = 0; i < EI_NIDENT; i++)
        put(builder, 1, ident[i]);
    put(builder, 2, ET_EXEC);
    put(builder, 2, is_32 ? EM_386 : EM_X86_64);
    put(builder, 4, EV_CURRENT);
    put_word(builder, BUILT_TEXT_GVA);
    put_word(builder, BUILT_SEGMENTS_AT);
    put_word(builder, has_sections ? BUILT_SECTIONS_AT : 0);
    put(builder, 4, 0);
    put(builder, 2, is_32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
    put(builder, 2, is_32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr));
    put(builder, 2, 2);
    put(builder, 2, is_32 ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr));
    put(builder, 2, has_sections ? BUILT_N_SECTIONS : 0);
    put(builder, 2, 0);
}

static void
put_segment(Builder *builder, unsigned type, unsigned flags, uint64_t at, uint64_t gva,
            uint64_t file_len, uint64_t len)
{
    put(builder, 4, type);
    if (!builder->kind->is_32)
        put(builder, 4, flags);
    put_word(builder, at);
    put_word(builder, gva);
    put_word(builder, gva);
    put_word(builder, file_len);
    put_word(builder, len);
    if (builder->kind->is_32)
        put(builder, 4, flags);
    put_word(builder, 4);
}

static void
put_symbol(Builder *builder, unsigned i, unsigned name)
{
    const unsigned info = ELF64_ST_INFO(symbols[i].binding, symbols[i].type);

    put(builder, 4, name);
    if (builder->kind->is_32) {
        put(builder, 4, symbols[i].value);
        put(builder, 4, symbols[i].size);
    }
    put(builder, 1, info);
    put(builder, 1, 0);
    put(builder, 2, symbols[i].section);
    if (!builder->kind->is_32) {
        put(builder, 8, symbols[i].value);
        put(builder, 8, symbols[i].size);
    }
}

static void
put_section(Builder *builder, unsigned i)
{
    const size_t entry = !sections[i].has_entries ? 0
                         : builder->kind->is_32   ? sizeof(Elf32_Sym)
                                                  : sizeof(Elf64_Sym);

    put(builder, 4, 0);
    put(builder, 4, sections[i].type);
    put_word(builder, sections[i].flags);
    put_word(builder, sections[i].gva);
    put_word(builder, sections[i].at);
    put_word(builder, entry ? entry * sections[i].len : sections[i].len);
    put(builder, 4, sections[i].link);
    put(builder, 4, 0);
    put_word(builder, 4);
    put_word(builder, entry);
}

static void
put_contents(Builder *builder)
{
    unsigned name = 1;

    builder->at = BUILT_TEXT_AT;
    for (unsigned i = 0; i < BUILT_TEXT_LEN; i++)
        put(builder, 1, i);

    builder->at = BUILT_NOTE_AT;
    put(builder, 4, 4);
    put(builder, 4, 20);
    put(builder, 4, NT_GNU_BUILD_ID);
    for (unsigned i = 0; i < 4; i++)
        put(builder, 1, "GNU"[i]);
    for (unsigned i = 0; i < 20; i++)
        put(builder, 1, 0xa0 + i);

    builder->at = BUILT_SYMBOLS_AT;
    for (unsigned i = 0; i < G_N_ELEMENTS(symbols); i++) {
        const size_t len = strlen(symbols[i].name);

        put_symbol(builder, i, len ? name : 0);
        if (len == 0)
            continue;
        memcpy(builder->file->data + BUILT_STRINGS_AT + name, symbols[i].name, len);
        name += len + 1;
    }
    g_assert_cmpuint(BUILT_STRINGS_AT + name, <=, BUILT_SYMBOLS_AT);
    g_assert_cmpuint(builder->at, <=, BUILT_SECTIONS_AT);
}

static GByteArray *
wrap(GByteArray *inner)
{
    const BuiltElfKind kind = { .is_32 = true, .is_stripped = true };
    Builder builder = { .file = g_byte_array_new(), .kind = &kind };

    put_header(&builder);
    put_number(builder.file, G_STRUCT_OFFSET(Elf32_Ehdr, e_phnum), 2, false, 1);
    put(&builder, 4, MAGIC);
    put(&builder, 8, 0);
    put_segment(&builder, PT_LOAD, PF_X | PF_R, 0, 0x100000, inner->len, inner->len);
    g_byte_array_append(builder.file, inner->data, inner->len);
    g_byte_array_unref(inner);
    return builder.file;
}

GByteArray *
build_elf(const BuiltElfKind *kind)
{
    Builder builder = { .file = g_byte_array_new(), .kind = kind };

    put_number(builder.file, BUILT_SECTIONS_AT - 1, 1, false, 0);
    put_header(&builder);
    builder.at = BUILT_SEGMENTS_AT;
    put_segment(&builder, PT_LOAD, PF_X | PF_R, BUILT_TEXT_AT, BUILT_TEXT_GVA, BUILT_TEXT_LEN,
                BUILT_TEXT_LEN + 16);
    put_segment(&builder, PT_NOTE, PF_R, BUILT_NOTE_AT, NOTE_GVA, NOTE_LEN, NOTE_LEN);
    put_contents(&builder);
    builder.at = BUILT_SECTIONS_AT;
    for (unsigned i = 0; !kind->is_stripped && i < BUILT_N_SECTIONS; i++)
        put_section(&builder, i);
    return kind->is_wrapped ? wrap(builder.file) : builder.file;
}
