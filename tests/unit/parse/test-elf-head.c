/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/elf-head.h"

#include <elf.h>
#include <string.h>

enum { PAGE = 4096, NOTE_AT = 0x300 };

typedef struct {
    uint8_t bytes[PAGE];
} Page;

static const uint8_t id[] = { 0xde, 0xad, 0xbe, 0xef, 0x01 };

/* A note of another kind, and the build-id. Returns: bytes */
static size_t
put_notes(uint8_t *into)
{
    static const uint8_t notes[] = {
        4, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 'G', 'N', 'U', 0, 9,    9,    9,    9,    9,    0, 0, 0,
        4, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef, 0x01, 0, 0, 0,
    };

    memcpy(into, notes, sizeof(notes));
    return sizeof(notes);
}

static void
put_segment(Page *page, unsigned i, Elf64_Phdr segment)
{
    memcpy(page->bytes + sizeof(Elf64_Ehdr) + i * sizeof(segment), &segment, sizeof(segment));
}

static void
make_page(Page *page)
{
    const Elf64_Ehdr file = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
        .e_phoff = sizeof(file),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 4,
    };

    memset(page, 0, sizeof(*page));
    memcpy(page->bytes, &file, sizeof(file));
    const size_t len = put_notes(page->bytes + NOTE_AT);
    put_segment(page, 0, (Elf64_Phdr){ .p_type = PT_PHDR, .p_offset = sizeof(file) });
    put_segment(page, 1, (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = 0x400010 });
    put_segment(page, 2,
                (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x1234, .p_vaddr = 0x402234 });
    put_segment(page, 3, (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = len });
}

static bool
parse(const Page *page, size_t len, UprofElfHead *head)
{
    return uprof_elf_head_parse((UprofSlice){ page->bytes, len }, head);
}

static void
test_plain(void)
{
    UprofElfHead head;
    Page page;

    make_page(&page);
    g_assert_true(parse(&page, PAGE, &head));
    g_assert_cmphex(head.first_page, ==, 0x400000);
    g_assert_cmpuint(head.n_loads, ==, 2);
    g_assert_cmphex(head.loads[1].offset, ==, 0x1000);
    g_assert_cmphex(head.loads[1].address, ==, 0x402000);
    g_assert_cmpmem(head.build_id, head.build_id_len, id, sizeof(id));
}

/* In each row one byte is changed, so the file is of a kind that must be refused. */
static void
test_others(void)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        { 0, 'e' },
        { EI_CLASS, ELFCLASS32 },
        { EI_DATA, ELFDATA2MSB },
        { G_STRUCT_OFFSET(Elf64_Ehdr, e_phentsize), 32 },
        { G_STRUCT_OFFSET(Elf64_Ehdr, e_phnum), 0 },
        { G_STRUCT_OFFSET(Elf64_Ehdr, e_phnum), 1 }, /* none that is loaded */
    };
    UprofElfHead head;
    Page page;

    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        make_page(&page);
        page.bytes[changes[i].at] = changes[i].value;
        g_assert_false(parse(&page, PAGE, &head));
    }
    make_page(&page);
    for (size_t len = 0; len < sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr); len++)
        g_assert_false(parse(&page, len, &head));
}

/* A truncated or false page gives the parts that are present. */
static void
test_hostile(void)
{
    static const uint8_t many[] = { 0xff, 0xff };
    UprofElfHead head;
    Page page;

    make_page(&page);
    g_assert_true(parse(&page, NOTE_AT + 8, &head));
    g_assert_cmpuint(head.build_id_len, ==, 0);

    memcpy(page.bytes + G_STRUCT_OFFSET(Elf64_Ehdr, e_phnum), many, sizeof(many));
    for (unsigned i = 0; i < 40; i++)
        put_segment(&page, i, (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = i * UINT64_C(0x1000) });
    g_assert_true(parse(&page, PAGE, &head));
    g_assert_cmpuint(head.n_loads, ==, UPROF_ELF_HEAD_LOADS_MAX);

    /* tables and notes at the highest offsets */
    make_page(&page);
    memset(page.bytes + G_STRUCT_OFFSET(Elf64_Ehdr, e_phoff), 0xff, 8);
    g_assert_false(parse(&page, PAGE, &head));
    make_page(&page);
    put_segment(&page, 3,
                (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = UINT64_MAX, .p_filesz = 16 });
    g_assert_true(parse(&page, PAGE, &head));
    g_assert_cmpuint(head.build_id_len, ==, 0);
    /* notes with names and ids of any length */
    for (size_t at = 0; at < 12; at++) {
        make_page(&page);
        memset(page.bytes + NOTE_AT + 24 + at / 4 * 4, 0xff, 1 + at % 4);
        g_assert_true(parse(&page, PAGE, &head));
        g_assert_cmpuint(head.build_id_len, ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/elf-head/plain", test_plain);
    g_test_add_func("/elf-head/others", test_others);
    g_test_add_func("/elf-head/hostile", test_hostile);
    return g_test_run();
}
