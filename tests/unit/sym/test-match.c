/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The check that the guest runs the code of a symbol file. Each case has the file of an image, and
 * guest memory that equals the image completely, in part, or not at all.
 */
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/sym.h"

enum { CODE = 0x1000, CODE_LEN = 0x2000, NOTE_AT = 0x4000, RAM_LEN = 0x10000, FUNCTION_LEN = 0x40 };

/* A note "GNU" with 4 bytes of build-id */
#define NOTE(id) "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0" id
enum { NOTE_LEN = 20 };

static uint8_t text[CODE_LEN];

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem;
    char *path;
    UprofNames *names;
    UprofSym *sym;
    UprofRegs regs;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };
    g_autoptr(GError) error = NULL;
    const gint fd = g_file_open_tmp("uprof-test-XXXXXX", &fixture->path, &error);

    g_assert_no_error(error);
    close(fd);
    fixture->guest = memory_guest_open(&plan);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    fixture->regs = (UprofRegs){ .word_bytes = 8 };
    memory_guest_put(fixture->guest, CODE, text, sizeof(text));
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_mem_free(fixture->mem);
    memory_guest_close(fixture->guest);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    unlink(fixture->path);
    g_free(fixture->path);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* @note: (nullable): the note with the build-id */
static void
add_elf(const Fixture *fixture, const char *note)
{
    static const ElfSymbol symbols[] = { { "work", CODE, CODE_LEN, true } };
    const ElfExtra extra = { ".note", SHT_NOTE, SHF_ALLOC, NOTE_AT, note, NOTE_LEN };
    const ElfPlan plan = { .text_gva = CODE,
                           .text = text,
                           .text_len = CODE_LEN,
                           .symbols = symbols,
                           .n_symbols = 1,
                           .extras = &extra,
                           .n_extras = note ? 1 : 0 };

    symbol_elf_write(&plan, fixture->path);
    g_assert_true(uprof_sym_add_file(fixture->sym, fixture->path, true, NULL));
}

static void
add_text(const Fixture *fixture, uint64_t start)
{
    g_autoptr(GString) table = g_string_new(NULL);

    for (uint64_t at = 0; at < CODE_LEN; at += FUNCTION_LEN)
        g_string_append_printf(table, "%" G_GINT64_MODIFIER "x T function_%u\n", start + at,
                               (unsigned)(at / FUNCTION_LEN));
    g_assert_true(g_file_set_contents(fixture->path, table->str, -1, NULL));
    g_assert_true(uprof_sym_add_file(fixture->sym, fixture->path, true, NULL));
}

/* Takes a sample at @pc. Returns: true if the check came to a result */
static bool
take_sample(const Fixture *fixture, uint64_t pc, uint32_t reset)
{
    uprof_mem_begin_sample(fixture->mem, 0, reset);
    return uprof_sym_check(fixture->sym, fixture->mem, 0, &fixture->regs, pc, reset);
}

static void
assert_match(const Fixture *fixture, UprofSymMatch match, const char *mismatch)
{
    UprofSymSource source;

    uprof_sym_source(fixture->sym, 0, &source);
    g_assert_cmpint(source.match, ==, match);
    g_assert_cmpstr(source.mismatch, ==, mismatch);
    g_assert_true(uprof_sym_is_code(fixture->sym, CODE + 0x50) == (match != UPROF_SYM_MISMATCHED));
    const UprofSymAnswer answer = uprof_sym_find(fixture->sym, CODE + 0x50, false);
    g_assert_true((answer.kind == UPROF_SYM_NAMED) == (match != UPROF_SYM_MISMATCHED));
}

#define OTHER_CODE "its code differs from the guest's"
/* clang-format off */
static const struct {
    const char *name;
    unsigned damaged;  /* of the 8 pieces of 256 bytes that are compared */
    unsigned missing;  /* pages without memory, from the first page of the code on */
    const char *note, *guest_note;
    UprofSymMatch match;
    const char *mismatch;
} cases[] = {
    { "same",          0, 0, NULL, NULL, UPROF_SYM_MATCHED, NULL },
    { "patched",       2, 0, NULL, NULL, UPROF_SYM_MATCHED, NULL },
    { "another",       3, 0, NULL, NULL, UPROF_SYM_MISMATCHED, OTHER_CODE },
    { "all-different", 8, 0, NULL, NULL, UPROF_SYM_MISMATCHED, OTHER_CODE },
    { "half-there",    0, 1, NULL, NULL, UPROF_SYM_MATCHED, NULL },
    { "not-there",     0, 2, NULL, NULL, UPROF_SYM_UNCHECKED, NULL },
    /* with equal build-ids, patched code does not matter */
    { "build-id",      8, 0, NOTE("\1\2\3\4"), NOTE("\1\2\3\4"), UPROF_SYM_MATCHED, NULL },
    { "other-build-id", 0, 0, NOTE("\1\2\3\4"), NOTE("\1\2\3\5"), UPROF_SYM_MISMATCHED,
      "its build-id is 01020304, the guest's is 01020305" },
    { "no-note-there", 0, 0, NOTE("\1\2\3\4"), NULL, UPROF_SYM_MATCHED, NULL },
    { "no-note-no-code", 8, 0, NOTE("\1\2\3\4"), NULL, UPROF_SYM_MISMATCHED, OTHER_CODE },
    { "another-note",  0, 0, NOTE("\1\2\3\4"), "\4\0\0\0\4\0\0\0\1\0\0\0GNU\0\1\1\1\1", UPROF_SYM_MATCHED, NULL },
    { "huge-note",     0, 0, NOTE("\1\2\3\4"), "\4\0\0\0\377\377\377\377\3\0\0\0GNU\0\1\1\1\1", UPROF_SYM_MATCHED, NULL },
    { "empty-note",    0, 0, NOTE("\1\2\3\4"), "\4\0\0\0\0\0\0\0\3\0\0\0GNU\0\1\1\1\1", UPROF_SYM_MATCHED, NULL },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_elf(&fixture, cases[i].note);
    for (unsigned piece = 0; piece < cases[i].damaged; piece++)
        fixture.guest->ram[CODE + piece * (CODE_LEN / 8) + 17] ^= 1;
    if (cases[i].guest_note)
        memory_guest_put(fixture.guest, NOTE_AT, cases[i].guest_note, NOTE_LEN);
    fixture.guest->hole = CODE;
    fixture.guest->hole_end = CODE + cases[i].missing * 4096;
    /* a sample outside of the image decides nothing */
    g_assert_false(take_sample(&fixture, CODE - 1, 0));
    assert_match(&fixture, UPROF_SYM_UNCHECKED, NULL);
    g_assert_cmpint(take_sample(&fixture, CODE + 0x50, 0), ==,
                    cases[i].match != UPROF_SYM_UNCHECKED);
    assert_match(&fixture, cases[i].match, cases[i].mismatch);
    /* matching code is not checked again for a long time */
    const gint spans = fixture.guest->tally->spans;
    for (unsigned n = 0; n < 1000; n++)
        g_assert_false(take_sample(&fixture, CODE + 0x50, 0));
    if (cases[i].match == UPROF_SYM_MATCHED)
        g_assert_cmpint(fixture.guest->tally->spans, ==, spans);
    assert_match(&fixture, cases[i].match, cases[i].mismatch);
}

/* At the same addresses, firmware runs before the kernel; after a reset, another kernel runs. */
static void
test_boot(void)
{
    g_auto(Fixture) fixture;
    unsigned n = 0;

    init_fixture(&fixture);
    add_elf(&fixture, NULL);
    memset(fixture.guest->ram + CODE, 0x90, CODE_LEN);
    g_assert_true(take_sample(&fixture, CODE, 0));
    assert_match(&fixture, UPROF_SYM_MISMATCHED, OTHER_CODE);
    for (unsigned i = 0; i < 500; i++)
        g_assert_false(take_sample(&fixture, CODE, 0));
    memory_guest_put(fixture.guest, CODE, text, sizeof(text));
    while (!take_sample(&fixture, CODE, 0))
        g_assert_cmpuint(++n, <, 64);
    assert_match(&fixture, UPROF_SYM_MATCHED, NULL);

    memset(fixture.guest->ram + CODE, 0x90, CODE_LEN);
    g_assert_false(take_sample(&fixture, CODE, 0));
    assert_match(&fixture, UPROF_SYM_MATCHED, NULL);
    g_assert_true(take_sample(&fixture, CODE, 1));
    assert_match(&fixture, UPROF_SYM_MISMATCHED, OTHER_CODE);
    memory_guest_put(fixture.guest, CODE, text, sizeof(text));
    take_sample(&fixture, CODE, 2);
    assert_match(&fixture, UPROF_SYM_MATCHED, NULL);
}

/* A kernel starts another one without a reset. */
static void
test_kexec(void)
{
    g_auto(Fixture) fixture;
    unsigned n = 0;

    init_fixture(&fixture);
    add_elf(&fixture, NULL);
    g_assert_true(take_sample(&fixture, CODE, 0));
    assert_match(&fixture, UPROF_SYM_MATCHED, NULL);
    memset(fixture.guest->ram + CODE, 0x90, CODE_LEN);
    do {
        uprof_mem_begin_sample(fixture.mem, n * (UPROF_MEM_KEEP_NS / 500), 0);
        g_assert_cmpuint(++n, <, 2000);
    } while (!uprof_sym_check(fixture.sym, fixture.mem, 0, &fixture.regs, CODE, 0));
    assert_match(&fixture, UPROF_SYM_MISMATCHED, OTHER_CODE);
}

/* After a mismatch, only one in 64 samples is checked again. */
static void
test_checks_are_rare(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_elf(&fixture, NULL);
    memset(fixture.guest->ram + CODE, 0x90, CODE_LEN);
    for (unsigned i = 0; i < 6400; i++)
        take_sample(&fixture, CODE, 0);
    g_assert_cmpint(fixture.guest->tally->spans, <, 110 * 8);
}

/* Puts a call in each 16 bytes from CODE on: to @first, and to each @step bytes after it. */
static void
put_calls(const Fixture *fixture, uint64_t first, uint64_t step)
{
    memset(fixture->guest->ram + CODE, 0x90, CODE_LEN);
    for (uint64_t at = CODE, i = 0; at < CODE + 0x1000; at += 16, i++) {
        const uint64_t target = first + i * step % (CODE_LEN / 2);
        fixture->guest->ram[at] = 0xe8;
        memory_guest_put_u32(fixture->guest, at + 1, (uint32_t)(target - (at + 5)));
    }
}

#define OTHER_CALLS "the guest's calls do not lead to its functions"
/* clang-format off */
static const struct {
    const char *name;
    uint64_t first, step;
    UprofSymMatch match;
    const char *mismatch;
} tables[] = {
    { "same",         CODE,                0x40, UPROF_SYM_MATCHED, NULL },
    { "half",         CODE,                0x20, UPROF_SYM_MATCHED, NULL },
    { "a-third-of-calls",      CODE,                0x70, UPROF_SYM_UNCHECKED, NULL },
    { "moved",        CODE + 0x10,         0x40, UPROF_SYM_MISMATCHED, OTHER_CALLS },
    { "few-hits-by-chance", CODE,               0x08, UPROF_SYM_MISMATCHED, OTHER_CALLS },
    { "calls-others", CODE + 0x100000,     0x40, UPROF_SYM_UNCHECKED, NULL },
};
/* clang-format on */

static void
test_text(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_text(&fixture, CODE);
    put_calls(&fixture, tables[i].first, tables[i].step);
    if (strcmp(tables[i].name, "a-third-of-calls") == 0) {
        /* a third of the calls lead to the start of a function, the others 8 bytes after it */
        for (uint64_t at = CODE, n = 0; at < CODE + 0x1000; at += 16, n++)
            memory_guest_put_u32(fixture.guest, at + 1,
                                 (uint32_t)(CODE + 0x40 + (n % 3 ? 8 : 0) - (at + 5)));
    }
    for (unsigned n = 0; n < 3; n++)
        take_sample(&fixture, CODE + 0x123, 0);
    assert_match(&fixture, tables[i].match, tables[i].mismatch);
}

/* If the first page has too few calls, the next ones are read, before any symbol is used. */
static void
test_sparse_calls(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_text(&fixture, CODE);
    put_calls(&fixture, CODE + 0x10, 0x40);
    memmove(fixture.guest->ram + CODE + 0x1000, fixture.guest->ram + CODE, 0x1000);
    memset(fixture.guest->ram + CODE, 0x90, 0x1000);
    g_assert_true(take_sample(&fixture, CODE + 0x123, 0));
    assert_match(&fixture, UPROF_SYM_MISMATCHED, OTHER_CALLS);
}

/* A symbol table is not used if the kernel runs at other addresses. */
static void
test_moved_kernel(void)
{
    const uint64_t start = UINT64_C(0xffffffff81000000);
    g_auto(Fixture) fixture;
    UprofSymSource source;

    init_fixture(&fixture);
    add_text(&fixture, start);
    /* four levels of paging; the tables are empty */
    fixture.regs.sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    fixture.regs.sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA;
    fixture.regs.sys[UPROF_X86_CR3] = 0x8000;
    /* samples in user mode, or in the lower half, decide nothing about a kernel */
    g_assert_false(take_sample(&fixture, 0x400000, 0));
    fixture.regs.privilege = 3;
    g_assert_false(take_sample(&fixture, start + 0x2000000, 0));
    fixture.regs.privilege = 0;
    g_assert_true(take_sample(&fixture, start + 0x2000000, 0));
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_cmpint(source.match, ==, UPROF_SYM_MISMATCHED);
    g_assert_true(strstr(source.mismatch, "KASLR"));
    g_assert_true(strstr(source.mismatch, "FILE@BASE"));
    g_assert_false(uprof_sym_is_code(fixture.sym, start));
    g_assert_cmpuint(source.n_seen, ==, 0);
    /* a sample at an address that the table has does not change the result */
    g_assert_false(take_sample(&fixture, start + 0x10, 0));
    g_assert_false(take_sample(&fixture, start + 0x2000000, 0));
    g_assert_false(uprof_sym_is_code(fixture.sym, start));
    /*
     * The samples above may have had the page tables of a process, which map little of the
     * kernel. So code that is mapped now resets the result.
     */
    memory_guest_put_u64(fixture.guest, 0x8000 + 511 * 8, 0x9001);
    memory_guest_put_u64(fixture.guest, 0x9000 + 510 * 8, 0xa001);
    memory_guest_put_u64(fixture.guest, 0xa000 + 8 * 8, 0x81); /* 2 MiB */
    uprof_mem_forget(fixture.mem);
    take_sample(&fixture, start + 0x10, 0);
    uprof_sym_source(fixture.sym, 0, &source);
    g_assert_cmpint(source.match, ==, UPROF_SYM_UNCHECKED);
    g_assert_cmpuint(source.n_seen, ==, 1);
    g_assert_true(uprof_sym_is_code(fixture.sym, start));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 31 + (i >> 8));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/match/elf/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autofree char *path = g_strdup_printf("/match/text/%s", tables[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_text);
    }
    g_test_add_func("/match/boot", test_boot);
    g_test_add_func("/match/kexec", test_kexec);
    g_test_add_func("/match/sparse-calls", test_sparse_calls);
    g_test_add_func("/match/checks-are-rare", test_checks_are_rare);
    g_test_add_func("/match/moved-kernel", test_moved_kernel);
    return g_test_run();
}
