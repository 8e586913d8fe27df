/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-mapped.h"

#include <elf.h>
#include <string.h>

enum { NOTE_AT = 0x300, FRAME_BYTES = 0x20, ID_BYTES = 8 };

static void
put(GByteArray *file, size_t at, const void *bytes, size_t len)
{
    g_assert(at + len <= file->len);
    memcpy(file->data + at, bytes, len);
}

static void
put_u32(GByteArray *file, size_t at, uint32_t value)
{
    value = GUINT32_TO_LE(value);
    put(file, at, &value, sizeof(value));
}

static void
put_head(GByteArray *file, uint8_t id)
{
    const Elf64_Phdr segments[] = {
        { .p_type = PT_LOAD,
          .p_flags = PF_R,
          .p_filesz = MAPPED_TEXT_AT,
          .p_memsz = MAPPED_TEXT_AT },
        { .p_type = PT_LOAD,
          .p_flags = PF_R | PF_X,
          .p_offset = MAPPED_TEXT_AT,
          .p_vaddr = MAPPED_TEXT_AT,
          .p_filesz = MAPPED_TEXT_LEN,
          .p_memsz = MAPPED_TEXT_LEN },
        { .p_type = PT_LOAD,
          .p_flags = PF_R,
          .p_offset = MAPPED_INDEX_AT,
          .p_vaddr = MAPPED_INDEX_AT,
          .p_filesz = MAPPED_DYNAMIC_AT - MAPPED_INDEX_AT,
          .p_memsz = MAPPED_DYNAMIC_AT - MAPPED_INDEX_AT },
        { .p_type = PT_LOAD,
          .p_flags = PF_R | PF_W,
          .p_offset = MAPPED_DYNAMIC_AT,
          .p_vaddr = MAPPED_DYNAMIC_GVA,
          .p_filesz = MAPPED_PAGE,
          .p_memsz = MAPPED_PAGE },
        { .p_type = PT_DYNAMIC,
          .p_offset = MAPPED_DYNAMIC_AT,
          .p_vaddr = MAPPED_DYNAMIC_GVA,
          .p_filesz = 8 * sizeof(Elf64_Dyn) },
        { .p_type = PT_GNU_EH_FRAME,
          .p_offset = MAPPED_INDEX_AT,
          .p_vaddr = MAPPED_INDEX_AT,
          .p_filesz = 12 + 8 * MAPPED_N_FRAMES },
        { .p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = 16 + ID_BYTES },
    };
    const Elf64_Ehdr head = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_phoff = sizeof(head),
        .e_phentsize = sizeof(segments[0]),
        .e_phnum = G_N_ELEMENTS(segments),
        .e_shoff = MAPPED_SECTIONS_AT,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 5,
        .e_shstrndx = 3,
    };
    const uint8_t note[] = { 4, 0, 0, 0,   ID_BYTES, 0,   0, 0, NT_GNU_BUILD_ID,
                             0, 0, 0, 'G', 'N',      'U', 0 };

    put(file, 0, &head, sizeof(head));
    put(file, sizeof(head), segments, sizeof(segments));
    put(file, NOTE_AT, note, sizeof(note));
    memset(file->data + NOTE_AT + sizeof(note), id, ID_BYTES);
}

static void
put_typed_symbol(GByteArray *file, size_t at, unsigned name, unsigned info, uint64_t start,
                 uint64_t size)
{
    const Elf64_Sym symbol = {
        .st_name = name,
        .st_info = (unsigned char)info,
        .st_shndx = start ? 1 : SHN_UNDEF,
        .st_value = start,
        .st_size = size,
    };

    put(file, at, &symbol, sizeof(symbol));
}

static void
put_symbol(GByteArray *file, size_t at, unsigned name, unsigned bind, uint64_t start, uint64_t size)
{
    put_typed_symbol(file, at, name, ELF64_ST_INFO(bind, STT_FUNC), start, size);
}

/* Symbol 1 is of another library; the hash table has the symbols from 2 on. */
static void
put_exported(GByteArray *file)
{
    static const char names[] = "\0malloc\0open_door\0close_door\0_PyRuntime\0Py_Version";
    const unsigned variable = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    const size_t each = sizeof(Elf64_Sym);

    put_u32(file, MAPPED_HASH_AT, 1);     /* buckets */
    put_u32(file, MAPPED_HASH_AT + 4, 2); /* first symbol */
    put_u32(file, MAPPED_HASH_AT + 8, 1); /* words of the filter */
    put_u32(file, MAPPED_HASH_AT + 24, 2);
    put_u32(file, MAPPED_HASH_AT + 28, 0x1234);
    put_u32(file, MAPPED_HASH_AT + 32, 0x5678);
    put_u32(file, MAPPED_HASH_AT + 36, 0x9abc);
    put_u32(file, MAPPED_HASH_AT + 40, 0xdef1);
    put_symbol(file, MAPPED_SYMBOLS_AT + each, 1, STB_GLOBAL, 0, 0);
    put_symbol(file, MAPPED_SYMBOLS_AT + 2 * each, 8, STB_GLOBAL, MAPPED_OPEN, MAPPED_OPEN_LEN);
    put_symbol(file, MAPPED_SYMBOLS_AT + 3 * each, 18, STB_WEAK, MAPPED_CLOSE, MAPPED_CLOSE_LEN);
    put_typed_symbol(file, MAPPED_SYMBOLS_AT + 4 * each, 29, variable, MAPPED_RUNTIME, 0x100);
    put_typed_symbol(file, MAPPED_SYMBOLS_AT + 5 * each, 40, variable, MAPPED_VERSION, 4);
    /* behind the last chain */
    put_symbol(file, MAPPED_SYMBOLS_AT + 6 * each, 1, STB_GLOBAL, MAPPED_TEXT_AT, 0x10);
    put(file, MAPPED_NAMES_AT, names, sizeof(names));
}

static void
put_dynamic(GByteArray *file)
{
    const Elf64_Dyn entries[] = {
        { .d_tag = DT_SONAME, .d_un.d_val = 1 },
        { .d_tag = DT_GNU_HASH, .d_un.d_ptr = MAPPED_HASH_AT },
        { .d_tag = DT_SYMTAB, .d_un.d_ptr = MAPPED_SYMBOLS_AT },
        { .d_tag = DT_STRTAB, .d_un.d_ptr = MAPPED_NAMES_AT },
        { .d_tag = DT_STRSZ, .d_un.d_val = 0x40 },
        { .d_tag = DT_NULL },
    };

    put(file, MAPPED_DYNAMIC_AT, entries, sizeof(entries));
}

/* Returns: offset of the CIE: the CFA is 8 above the stack pointer */
static size_t
put_cie(GByteArray *file, size_t at)
{
    static const uint8_t cie[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };

    put_u32(file, at, 4 + 16);
    put(file, at + 8, cie, sizeof(cie));
    return at;
}

/* Describes the frame of a function, which pushes a word at its start, and its entry in the index
 */
static void
put_frame(GByteArray *file, unsigned i, size_t at, size_t cie, uint64_t start, uint64_t len)
{
    static const uint8_t program[] = { 0, 0x41, 0x0e, 16, 0x86, 2, 0, 0 };
    const size_t index = MAPPED_INDEX_AT + 12 + 8 * i;

    put_u32(file, at, FRAME_BYTES - 4);
    put_u32(file, at + 4, (uint32_t)(at + 4 - cie));
    put_u32(file, at + 8, (uint32_t)(start - (at + 8)));
    put_u32(file, at + 12, (uint32_t)len);
    put(file, at + 16, program, sizeof(program));
    put_u32(file, index, (uint32_t)(start - MAPPED_INDEX_AT));
    put_u32(file, index + 4, (uint32_t)(at - MAPPED_INDEX_AT));
}

static void
put_frames(GByteArray *file)
{
    static const uint8_t head[] = { 1, 0x1b, 0x03, 0x3b };
    const size_t early = put_cie(file, MAPPED_FRAMES_AT);
    const size_t late = put_cie(file, MAPPED_LATE_FRAMES_AT);

    put(file, MAPPED_INDEX_AT, head, sizeof(head));
    put_u32(file, MAPPED_INDEX_AT + 4, MAPPED_FRAMES_AT - (MAPPED_INDEX_AT + 4));
    put_u32(file, MAPPED_INDEX_AT + 8, MAPPED_N_FRAMES);
    put_frame(file, 0, MAPPED_FRAMES_AT + 0x40, early, MAPPED_OPEN, MAPPED_OPEN_LEN);
    put_frame(file, 1, MAPPED_LATE_FRAMES_AT + 0x40, early, MAPPED_CLOSE, MAPPED_CLOSE_LEN);
    put_frame(file, 2, MAPPED_LATE_FRAMES_AT + 0x80, late, MAPPED_HIDDEN, MAPPED_HIDDEN_LEN);
}

static void
put_sections(GByteArray *file)
{
    static const char names[] = "\0open_door\0hidden_helper";
    static const char section_names[] = "\0.symtab\0.strtab\0.shstrtab\0.eh_frame";
    const size_t each = sizeof(Elf64_Sym);
    const Elf64_Shdr sections[] = {
        { .sh_type = SHT_NULL },
        { .sh_name = 1,
          .sh_type = SHT_SYMTAB,
          .sh_offset = MAPPED_ALL_SYMBOLS_AT,
          .sh_size = 3 * each,
          .sh_link = 2,
          .sh_entsize = each },
        { .sh_name = 9,
          .sh_type = SHT_STRTAB,
          .sh_offset = MAPPED_ALL_NAMES_AT,
          .sh_size = sizeof(names) },
        { .sh_name = 17,
          .sh_type = SHT_STRTAB,
          .sh_offset = MAPPED_SECTIONS_AT + 0x400,
          .sh_size = sizeof(section_names) },
        { .sh_name = 27,
          .sh_type = SHT_PROGBITS,
          .sh_offset = MAPPED_FRAMES_AT,
          .sh_addr = MAPPED_FRAMES_AT,
          .sh_size = MAPPED_DYNAMIC_AT - MAPPED_FRAMES_AT },
    };

    put_symbol(file, MAPPED_ALL_SYMBOLS_AT + each, 1, STB_GLOBAL, MAPPED_OPEN, MAPPED_OPEN_LEN);
    put_symbol(file, MAPPED_ALL_SYMBOLS_AT + 2 * each, 11, STB_LOCAL, MAPPED_HIDDEN,
               MAPPED_HIDDEN_LEN);
    put(file, MAPPED_ALL_NAMES_AT, names, sizeof(names));
    put(file, MAPPED_SECTIONS_AT, sections, sizeof(sections));
    put(file, MAPPED_SECTIONS_AT + 0x400, section_names, sizeof(section_names));
}

GByteArray *
build_mapped(uint8_t id)
{
    GByteArray *file = g_byte_array_new();

    g_byte_array_set_size(file, MAPPED_BYTES);
    memset(file->data, 0, file->len);
    put_head(file, id);
    put_exported(file);
    put_dynamic(file);
    put_frames(file);
    put_sections(file);
    return file;
}
