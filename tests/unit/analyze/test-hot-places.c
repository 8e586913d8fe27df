/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* usage: test-hot-places IMAGE...; the images are builds of tests/lib/inlined.c */
#include <glib/gstdio.h>
#include <string.h>

#include "../../../src/analyze/hot-places-priv.h"
#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/elf-image.h"

enum {
    CODE = 0x2000,
    HELPER = CODE + 0x40,
    OTHER = CODE + 0x80, /* a second function of the name "work" */
    TEXT_LEN = 0x100,
    LOOP = CODE + 4,
    RAM_LEN = 0x8000,
    LARGE_LEN = 3 * 1024 * 1024,
};

/* work */
static const char code[] = "\x55"                 /* 00 push %rbp */
                           "\x48\x89\xe5"         /* 01 mov %rsp,%rbp */
                           "\x48\x8d\x44\x80\x01" /* 04 lea 0x1(%rax,%rax,4),%rax */
                           "\xff\xcf"             /* 09 dec %edi */
                           "\x75\xf7"             /* 0b jne 04 */
                           "\xe8\x2e\x00\x00\x00" /* 0d call helper */
                           "\x5d"                 /* 12 pop %rbp */
                           "\xc3";                /* 13 ret */

enum { WORK_LEN = sizeof(code) - 1 };

static const ElfSymbol symbols[] = {
    { "work", CODE, WORK_LEN, true },
    { "helper", HELPER, 0x10, true },
    { "work", OTHER, 0x10, false },
};

typedef struct {
    UprofNames *names;
    UprofSym *sym;
    UprofHotPlaces *places;
    MemoryGuest *guest;
    UprofSnapshot *snapshot;
} Fixture;

/* @base: (nullable): guest-virtual address of the file's first page; %NULL: as it was linked */
static void
add_file_at(const Fixture *fixture, const void *bytes, size_t len, const uint64_t *base)
{
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    const int fd = g_file_open_tmp("uprof-test-XXXXXX", &path, &error);

    g_assert_no_error(error);
    g_assert_true(g_close(fd, NULL));
    g_assert_true(g_file_set_contents(path, bytes, (gssize)len, &error));
    g_assert_true(uprof_sym_add_file_at(fixture->sym, path, base, true, &error));
    g_assert_no_error(error);
    g_unlink(path);
}

static void
add_file(const Fixture *fixture, const void *bytes, size_t len)
{
    add_file_at(fixture, bytes, len, NULL);
}

static void
add_elf_at(const Fixture *fixture, const uint64_t *base)
{
    static uint8_t text[TEXT_LEN];

    memcpy(text, code, WORK_LEN);
    const ElfPlan plan = { .text_gva = CODE,
                           .text = text,
                           .text_len = sizeof(text),
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols) };
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);
    add_file_at(fixture, file->data, file->len, base);
}

static void
add_elf(const Fixture *fixture)
{
    add_elf_at(fixture, NULL);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    const MemoryPlan plan = { .n_vcpus = 1, .ram_len = RAM_LEN, .arch = "x86_64" };

    fixture->guest = memory_guest_open(&plan);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    fixture->places = uprof_hot_places_new("work", &fixture->guest->base);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_hot_places_free(fixture->places);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    memory_guest_close(fixture->guest);
    g_free(fixture->snapshot);
}

static void
add_samples(const Fixture *fixture, uint64_t address, uint64_t n)
{
    uprof_hot_places_add(fixture->places, fixture->sym, address, n);
}

/* A sample of which the pipeline shows the memory. */
static void
see_sample(const Fixture *fixture, uint64_t pc)
{
    const UprofFrame frame = { .pc = pc, .symbol_address = pc };

    memory_guest_identity(fixture->guest, 0, pc, 0x100, 0x100);
    fixture->snapshot->regs = fixture->guest->regs[0];
    fixture->snapshot->time_ns += UPROF_MEM_KEEP_NS;
    uprof_hot_places_see(fixture->places, fixture->sym, fixture->snapshot, &frame);
    add_samples(fixture, pc, 1);
}

static const UprofAnnotatedFunction *
get_function(const UprofAnnotation *annotation, guint i)
{
    g_assert_cmpuint(i, <, annotation->functions->len);
    return g_ptr_array_index(annotation->functions, i);
}

static void
assert_insn(const UprofAnnotatedFunction *function, guint i, uint64_t address, uint64_t samples,
            const char *text)
{
    g_assert_cmpuint(i, <, function->insns->len);
    const UprofAnnotatedInsn *insn = &g_array_index(function->insns, UprofAnnotatedInsn, i);
    g_assert_cmphex(insn->address, ==, address);
    g_assert_cmpuint(insn->samples, ==, samples);
    g_assert_cmpstr(insn->text, ==, text);
}

static void
assert_work(const UprofAnnotatedFunction *function, uint64_t in_loop)
{
    g_assert_cmpuint(function->insns->len, ==, 8);
    assert_insn(function, 0, CODE, 0, "push   %rbp");
    assert_insn(function, 1, CODE + 1, 0, "mov    %rsp,%rbp");
    assert_insn(function, 2, LOOP, in_loop, "lea    0x1(%rax,%rax,4),%rax");
    assert_insn(function, 3, LOOP + 5, 0, "dec    %edi");
    assert_insn(function, 4, LOOP + 7, 0, "jne    2004");
    assert_insn(function, 5, CODE + 0xd, 0, "call   2040");
    assert_insn(function, 6, CODE + 0x12, 0, "pop    %rbp");
    assert_insn(function, 7, CODE + 0x13, 0, "ret");
}

static void
test_rows(Fixture *fixture, gconstpointer data)
{
    add_elf(fixture);
    add_samples(fixture, LOOP, 3);
    add_samples(fixture, HELPER, 9);
    add_samples(fixture, LOOP, 2);
    add_samples(fixture, OTHER + 2, 7);
    add_samples(fixture, 0x40000000, 4);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(annotation->functions->len, ==, 2);
    g_assert_cmpuint(uprof_annotation_self(annotation), ==, 12);
    g_assert_cmpuint(annotation->n_left_out, ==, 0);
    const UprofAnnotatedFunction *other = get_function(annotation, 0);
    g_assert_cmphex(other->start, ==, OTHER);
    assert_insn(other, 1, OTHER + 2, 7, "add    %al,(%rax)");
    const UprofAnnotatedFunction *work = get_function(annotation, 1);
    g_assert_cmpstr(work->image, ==, "[app]");
    g_assert_cmphex(work->start, ==, CODE);
    g_assert_cmpuint(work->self, ==, 5);
    assert_work(work, 5);
    g_assert_cmpstr(g_array_index(work->insns, UprofAnnotatedInsn, 5).callee, ==, "helper");
    g_assert_null(g_array_index(work->insns, UprofAnnotatedInsn, 4).callee);
}

/* Addresses are those of the file, wherever the guest has loaded it. */
static void
test_moved(Fixture *fixture, gconstpointer data)
{
    const uint64_t base = UINT64_C(0x7f0000000000);

    add_elf_at(fixture, &base);
    add_samples(fixture, base + (LOOP - CODE), 3);
    add_samples(fixture, LOOP, 9);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(annotation->functions->len, ==, 1);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);
    g_assert_cmphex(work->start, ==, CODE);
    assert_work(work, 3);
    g_assert_cmpstr(g_array_index(work->insns, UprofAnnotatedInsn, 5).callee, ==, "helper");
}

static void
test_nothing(Fixture *fixture, gconstpointer data)
{
    add_elf(fixture);
    add_samples(fixture, HELPER, 9);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(annotation->functions->len, ==, 0);
    g_assert_cmpuint(uprof_annotation_self(annotation), ==, 0);
}

/* A sample within an instruction shows that the decoding is wrong there. It goes on at the sample.
 */
static void
test_misfit(Fixture *fixture, gconstpointer data)
{
    add_elf(fixture);
    add_samples(fixture, CODE + 6, 1);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);

    g_assert_cmpuint(work->self, ==, 1);
    assert_insn(work, 2, LOOP, 0, "(bad)");
    assert_insn(work, 3, CODE + 6, 1, "addb   $0xff,(%rcx)");
}

/* Samples may overlap: only a capture that was forged has them. Each counts once, in order. */
static void
test_overlap(Fixture *fixture, gconstpointer data)
{
    uint64_t last = 0;

    add_elf(fixture);
    for (unsigned i = 0; i < WORK_LEN; i++)
        add_samples(fixture, CODE + i, 1);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);

    g_assert_cmpuint(work->self, ==, WORK_LEN);
    g_assert_cmpuint(work->insns->len, ==, WORK_LEN);
    for (guint i = 0; i < work->insns->len; i++) {
        const UprofAnnotatedInsn *insn = &g_array_index(work->insns, UprofAnnotatedInsn, i);
        g_assert_cmphex(insn->address, >, last);
        last = insn->address;
    }
}

/* The function ends where the address space ends. */
static void
test_end(Fixture *fixture, gconstpointer data)
{
    static const char table[] = "fffffffffffff000 0000000000000fff T work\n";

    add_file(fixture, table, strlen(table));
    add_samples(fixture, UINT64_C(0xfffffffffffffffe), 1);
    add_samples(fixture, UINT64_C(0xfffffffffffff000), 1);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(get_function(annotation, 0)->insns->len, ==, 2);
}

/* Only the guest's memory has the code. */
static void
test_memory(Fixture *fixture, gconstpointer data)
{
    static const char table[] = "2000 T work\n2014 T end\n2018 D data\n";

    memory_guest_put(fixture->guest, CODE, code, WORK_LEN);
    add_file(fixture, table, strlen(table));
    see_sample(fixture, LOOP);
    see_sample(fixture, LOOP);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(annotation->functions->len, ==, 1);
    assert_work(get_function(annotation, 0), 2);
}

/* Without the code, the addresses and their counts remain. */
static void
test_no_code(Fixture *fixture, gconstpointer data)
{
    static const char table[] = "2000 T work\n2014 T end\n2018 D data\n";

    fixture->guest->hole = CODE;
    fixture->guest->hole_end = CODE + UPROF_PAGE_BYTES;
    add_file(fixture, table, strlen(table));
    for (unsigned i = 0; i < 40; i++)
        see_sample(fixture, i % 2 ? LOOP : CODE);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);

    g_assert_cmpuint(work->insns->len, ==, 2);
    assert_insn(work, 0, CODE, 20, NULL);
    assert_insn(work, 1, LOOP, 20, NULL);
}

/* A page that comes late is used. The code before it cannot be decoded, and is left out. */
static void
test_late_page(Fixture *fixture, gconstpointer data)
{
    static const char table[] = "2ff0 T work\n3010 T end\n3018 D data\n";

    add_file(fixture, table, strlen(table));
    fixture->guest->hole = CODE;
    fixture->guest->hole_end = CODE + 2 * UPROF_PAGE_BYTES;
    see_sample(fixture, 0x3000);
    fixture->guest->hole_end = CODE + UPROF_PAGE_BYTES;
    memory_guest_put(fixture->guest, 0x3000, "\x90\xc3", 2);
    see_sample(fixture, 0x3000);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);

    g_assert_cmphex(work->start, ==, 0x2ff0);
    assert_insn(work, 0, 0x3000, 2, "nop");
    assert_insn(work, 1, 0x3001, 0, "ret");
}

static void
test_kernel_suffix(Fixture *fixture, gconstpointer data)
{
    const UprofSymbol symbol = {
        .start = UINT64_C(0xffffffff81000000), .size = 16, .name = { "work", 4 }, .code = true
    };
    const UprofSymCode range = { symbol.start, symbol.start + 0x1000 };
    g_autoptr(GArray) kernel_symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));

    g_array_append_val(kernel_symbols, symbol);
    g_array_append_val(ranges, range);
    uprof_sym_set_own(fixture->sym, UPROF_SYM_KERNEL, kernel_symbols, g_byte_array_new(), ranges);
    g_assert_cmpstr(uprof_name_text(uprof_sym_find(fixture->sym, symbol.start, false).name), ==,
                    "work_[k]");
    add_samples(fixture, symbol.start + 8, 2);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    g_assert_cmpuint(uprof_annotation_self(annotation), ==, 2);
    g_assert_cmpstr(get_function(annotation, 0)->image, ==, "[kernel]");
}

/* A function that covers megabytes is decoded in part, and no sample is lost. */
static void
test_large(Fixture *fixture, gconstpointer data)
{
    g_autofree uint8_t *text = g_malloc(LARGE_LEN);
    const ElfSymbol large = { "work", CODE, UINT64_C(1) << 40, true };
    const ElfPlan plan = {
        .text_gva = CODE, .text = text, .text_len = LARGE_LEN, .symbols = &large, .n_symbols = 1
    };

    memset(text, 0x90, LARGE_LEN);
    memset(text, 0x06, 0x1000); /* no instructions of 64-bit code */
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);
    add_file(fixture, file->data, file->len);
    add_samples(fixture, CODE + 5, 1);
    add_samples(fixture, CODE + LARGE_LEN - 1, 1);
    add_samples(fixture, CODE + LARGE_LEN - 0x1000, 1);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);
    const UprofAnnotatedFunction *work = get_function(annotation, 0);

    assert_insn(work, 5, CODE + 5, 1, "(bad)");
    g_assert_cmpuint(work->insns->len, ==, UPROF_ANNOTATE_INSNS_MAX + 2);
    assert_insn(work, work->insns->len - 1, CODE + LARGE_LEN - 1, 1, "nop");
    g_assert_cmpuint(work->self, ==, 3);
}

static void
test_too_many(Fixture *fixture, gconstpointer data)
{
    add_elf(fixture);
    for (unsigned i = 0; i < UPROF_HOT_PLACES_MAX; i++)
        add_samples(fixture, 0x100000 + i, 1);
    add_samples(fixture, LOOP, 5);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(fixture->places, fixture->sym);

    g_assert_cmpuint(annotation->functions->len, ==, 0);
    g_assert_cmpuint(annotation->n_left_out, ==, 5);
}

/* Returns: address of a symbol of the file */
static uint64_t
find_symbol(const char *path, const char *name)
{
    g_auto(UprofElfImage) image = { 0 };
    g_autofree char *bytes = NULL;
    size_t len;

    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    g_assert_true(uprof_elf_parse((UprofSlice){ bytes, len }, path, &image, NULL));
    for (guint i = 0; i < image.symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(image.symbols, UprofSymbol, i);
        if (symbol->name.len == strlen(name) && memcmp(symbol->name.data, name, strlen(name)) == 0)
            return symbol->start;
    }
    g_assert_not_reached();
}

/* The labels of the image are symbols, too, so that each is a function of its own. */
static void
test_lines(gconstpointer data)
{
    Fixture fixture;
    g_autoptr(GError) error = NULL;

    set_up(&fixture, NULL);
    g_clear_pointer(&fixture.places, uprof_hot_places_free);
    fixture.places = uprof_hot_places_new("at_inner", NULL);
    g_assert_true(uprof_sym_add_file(fixture.sym, data, true, &error));
    add_samples(&fixture, find_symbol(data, "at_inner"), 4);
    g_autoptr(UprofAnnotation) annotation = uprof_hot_places_annotate(fixture.places, fixture.sym);
    const UprofAnnotatedFunction *function = get_function(annotation, 0);
    const UprofAnnotatedInsn *first = &g_array_index(function->insns, UprofAnnotatedInsn, 0);

    g_assert_cmpuint(first->samples, ==, 4);
    g_assert_cmpstr(first->text, ==, "nop");
    g_assert_cmpstr(first->line, ==, "inner.h:103");
    tear_down(&fixture, NULL);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*run)(Fixture *fixture, gconstpointer data);
    } tests[] = {
        { "/hot-places/rows", test_rows },
        { "/hot-places/moved", test_moved },
        { "/hot-places/nothing", test_nothing },
        { "/hot-places/misfit", test_misfit },
        { "/hot-places/overlap", test_overlap },
        { "/hot-places/end", test_end },
        { "/hot-places/memory", test_memory },
        { "/hot-places/no-code", test_no_code },
        { "/hot-places/late-page", test_late_page },
        { "/hot-places/kernel-suffix", test_kernel_suffix },
        { "/hot-places/large", test_large },
        { "/hot-places/too-many", test_too_many },
    };

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *path = g_strdup_printf("/hot-places/lines/%s", name);
        g_test_add_data_func(path, argv[i], test_lines);
    }
    return g_test_run();
}
