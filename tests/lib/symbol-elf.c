/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol-elf.h"

#include <elf.h>
#include <string.h>

/* the unwind tables, if any, and the extras follow */
enum { SECTION_NULL, SECTION_TEXT, SECTION_SYMBOLS, SECTION_STRINGS, N_SECTIONS };

static const char section_names[] = "\0.text\0.symtab\0.strtab";
enum { NAME_TEXT = 1, NAME_SYMBOLS = 7, NAME_STRINGS = 15 };

typedef struct {
    uint32_t name, type, link, info;
    uint64_t flags, address, offset, len, entry_len;
} Section;

static void
append_number(GByteArray *file, unsigned width, uint64_t value)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    g_byte_array_append(file, (const guint8 *)&bytes, width);
}

static void
append_symbol(GByteArray *file, bool is_32, uint32_t name, uint8_t info, uint16_t section,
              uint64_t start, uint64_t size)
{
    append_number(file, 4, name);
    if (is_32) {
        append_number(file, 4, start);
        append_number(file, 4, size);
    }
    append_number(file, 1, info);
    append_number(file, 1, 0);
    append_number(file, 2, section);
    if (!is_32) {
        append_number(file, 8, start);
        append_number(file, 8, size);
    }
}

static void
append_section(GByteArray *file, unsigned width, const Section *section)
{
    append_number(file, 4, section->name);
    append_number(file, 4, section->type);
    append_number(file, width, section->flags);
    append_number(file, width, section->address);
    append_number(file, width, section->offset);
    append_number(file, width, section->len);
    append_number(file, 4, section->link);
    append_number(file, 4, section->info);
    append_number(file, width, 1);
    append_number(file, width, section->entry_len);
}

static void
append_header(GByteArray *file, const ElfPlan *plan, uint64_t sections_at)
{
    const unsigned width = plan->is_32 ? 4 : 8;
    const uint8_t ident[EI_NIDENT] = {
        ELFMAG0,     ELFMAG1,   ELFMAG2, ELFMAG3, plan->is_32 ? ELFCLASS32 : ELFCLASS64,
        ELFDATA2LSB, EV_CURRENT
    };

    g_byte_array_append(file, ident, sizeof(ident));
    append_number(file, 2, ET_EXEC);
    append_number(file, 2, plan->machine ? plan->machine : plan->is_32 ? EM_386 : EM_X86_64);
    append_number(file, 4, EV_CURRENT);
    append_number(file, width, plan->entry);
    append_number(file, width, 0);
    append_number(file, width, sections_at);
    append_number(file, 4, 0);
    append_number(file, 2, plan->is_32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
    append_number(file, 2, 0);
    append_number(file, 2, 0);
    append_number(file, 2, plan->is_32 ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr));
    append_number(file, 2, N_SECTIONS + (plan->eh_frame_len > 0) + plan->n_extras);
    append_number(file, 2, SECTION_STRINGS);
}

GByteArray *
symbol_elf_new(const ElfPlan *plan)
{
    const size_t header_len = plan->is_32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    const size_t symbol_len = plan->is_32 ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
    g_autoptr(GByteArray) symbols = g_byte_array_new();
    g_autoptr(GByteArray) strings = g_byte_array_new();
    GByteArray *file = g_byte_array_new();
    unsigned n_local = 1;

    g_byte_array_append(strings, (const guint8 *)section_names, sizeof(section_names));
    append_symbol(symbols, plan->is_32, 0, 0, 0, 0, 0);
    /* local symbols stand before global ones (ELF) */
    for (unsigned is_global = 0; is_global < 2; is_global++) {
        for (size_t i = 0; i < plan->n_symbols; i++) {
            const ElfSymbol *symbol = &plan->symbols[i];
            if (symbol->is_global != is_global)
                continue;
            append_symbol(symbols, plan->is_32, strings->len,
                          ELF64_ST_INFO(is_global ? STB_GLOBAL : STB_LOCAL,
                                        symbol->is_label ? STT_NOTYPE : STT_FUNC),
                          SECTION_TEXT, symbol->start, symbol->size);
            g_byte_array_append(strings, (const guint8 *)symbol->name, strlen(symbol->name) + 1);
            n_local += !is_global;
        }
    }

    /* the unwind tables are one more extra section */
    const ElfExtra frames = { .name = ".eh_frame",
                              .type = SHT_PROGBITS,
                              .flags = SHF_ALLOC,
                              .address = plan->eh_frame_gva,
                              .bytes = plan->eh_frame,
                              .len = plan->eh_frame_len };
    g_autoptr(GArray) extras = g_array_new(FALSE, FALSE, sizeof(ElfExtra));
    if (plan->eh_frame_len > 0)
        g_array_append_val(extras, frames);
    if (plan->n_extras > 0)
        g_array_append_vals(extras, plan->extras, (guint)plan->n_extras);
    g_autofree uint32_t *names = g_new0(uint32_t, extras->len + 1);
    for (guint i = 0; i < extras->len; i++) {
        const char *name = g_array_index(extras, ElfExtra, i).name;
        names[i] = strings->len;
        g_byte_array_append(strings, (const guint8 *)name, (guint)strlen(name) + 1);
    }

    const size_t text_len = plan->is_debug ? 0 : plan->text_len;
    const uint64_t text_at = header_len, symbols_at = text_at + (text_len + 7) / 8 * 8;
    const uint64_t strings_at = symbols_at + symbols->len;
    const uint64_t extras_at = strings_at + strings->len;
    uint64_t sections_at = extras_at;
    for (guint i = 0; i < extras->len; i++)
        sections_at += g_array_index(extras, ElfExtra, i).len;
    sections_at = (sections_at + 7) / 8 * 8;
    const Section sections[N_SECTIONS] = {
        [SECTION_TEXT] = { .name = NAME_TEXT,
                           .type = plan->is_debug ? SHT_NOBITS : SHT_PROGBITS,
                           .flags = SHF_ALLOC | SHF_EXECINSTR,
                           .address = plan->text_gva,
                           .offset = text_at,
                           .len = plan->text_len },
        [SECTION_SYMBOLS] = { .name = NAME_SYMBOLS,
                              .type = plan->n_symbols > 0 ? SHT_SYMTAB : SHT_PROGBITS,
                              .link = SECTION_STRINGS,
                              .info = n_local,
                              .offset = symbols_at,
                              .len = symbols->len,
                              .entry_len = symbol_len },
        [SECTION_STRINGS] = { .name = NAME_STRINGS,
                              .type = SHT_STRTAB,
                              .offset = strings_at,
                              .len = strings->len },
    };

    append_header(file, plan, sections_at);
    if (text_len > 0)
        g_byte_array_append(file, plan->text, (guint)text_len);
    while (file->len < symbols_at)
        append_number(file, 1, 0);
    g_byte_array_append(file, symbols->data, symbols->len);
    g_byte_array_append(file, strings->data, strings->len);
    for (guint i = 0; i < extras->len; i++) {
        const ElfExtra *extra = &g_array_index(extras, ElfExtra, i);
        g_byte_array_append(file, extra->bytes, (guint)extra->len);
    }
    while (file->len < sections_at)
        append_number(file, 1, 0);
    for (unsigned i = 0; i < N_SECTIONS; i++)
        append_section(file, plan->is_32 ? 4 : 8, &sections[i]);
    uint64_t at = extras_at;
    for (guint i = 0; i < extras->len; i++) {
        const ElfExtra *extra = &g_array_index(extras, ElfExtra, i);
        const Section section = { .name = names[i],
                                  .type = extra->type,
                                  .flags = extra->flags,
                                  .address = extra->address,
                                  .offset = at,
                                  .len = extra->len };
        append_section(file, plan->is_32 ? 4 : 8, &section);
        at += extra->len;
    }
    return file;
}

static void
append_segment(GByteArray *file, uint32_t type, uint64_t offset, uint64_t address, uint64_t len)
{
    const Elf64_Phdr segment = {
        .p_type = GUINT32_TO_LE(type),
        .p_flags = GUINT32_TO_LE(PF_R | PF_X),
        .p_offset = GUINT64_TO_LE(offset),
        .p_vaddr = GUINT64_TO_LE(address),
        .p_filesz = GUINT64_TO_LE(len),
        .p_memsz = GUINT64_TO_LE(len),
    };

    g_byte_array_append(file, (const guint8 *)&segment, sizeof(segment));
}

void
symbol_elf_map(GByteArray *file, uint64_t first, const void *note, size_t note_len)
{
    const guint at = file->len;
    const uint8_t *found = memmem(file->data, file->len, note, note_len);
    const uint64_t phoff = GUINT64_TO_LE(at);
    const uint16_t sizes[] = { GUINT16_TO_LE(sizeof(Elf64_Phdr)), GUINT16_TO_LE(2) };

    g_assert_nonnull(found);
    const uint64_t note_at = (uint64_t)(found - file->data);
    append_segment(file, PT_LOAD, 0, first, at);
    append_segment(file, PT_NOTE, note_at, first + note_at, note_len);
    memcpy(file->data + G_STRUCT_OFFSET(Elf64_Ehdr, e_phoff), &phoff, sizeof(phoff));
    memcpy(file->data + G_STRUCT_OFFSET(Elf64_Ehdr, e_phentsize), sizes, sizeof(sizes));
}

void
symbol_elf_write(const ElfPlan *plan, const char *path)
{
    g_autoptr(GByteArray) file = symbol_elf_new(plan);
    g_autoptr(GError) error = NULL;

    g_file_set_contents(path, (const char *)file->data, file->len, &error);
    g_assert_no_error(error);
}
