/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-seeds.c - writes the seeds of the corpora btf, capture-reader, cfi-entry, cfi-table,
 *   checkpoint, elf-image, expr, file-unwind, image, kallsyms, linux, mapped-elf, orc-table,
 *   printk-ring, python, space, store-process, symbol-search, task-record, tasks, unwind and
 *   worker-message
 *
 * Usage: make-seeds CORPUS. A developer runs this program when a format or a builder in
 * tests/lib changes. The repository keeps the seeds, beside inputs that once broke a parser.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build-btf.h"
#include "build-elf.h"
#include "build-kallsyms.h"
#include "build-mapped.h"
#include "build-python.h"
#include "build-orc.h"
#include "build-printk.h"
#include "linux-guest.h"
#include "symbol-elf.h"
#include "tasks-guest.h"
#include "uprof/capture.h"
#include "uprof/orc-table.h"
#include "uprof/arch.h"
#include "uprof/links.h"
#include "uprof/output.h"
#include "uprof/task-record.h"
#include "../../src/history/item-facts-priv.h"
#include "../../src/worker/checkpoint-priv.h"
#include "../../src/worker/protocol-priv.h"

/* clang-format off */
static const struct {
    const char *name;
    BuiltElfKind kind;
} elves[] = {
    { "64-little",        { .is_32 = false } },
    { "64-big",           { .big_endian = true } },
    { "32-little",        { .is_32 = true } },
    { "32-big",           { .is_32 = true, .big_endian = true } },
    { "64-stripped",      { .is_stripped = true } },
    { "32-stripped",      { .is_32 = true, .is_stripped = true } },
    { "wrapped",          { .is_wrapped = true } },
    { "wrapped-stripped", { .is_wrapped = true, .is_stripped = true } },
};

/* Unwind tables: the first byte for fuzz-cfi-table.c, a CIE, and FDEs of code at 0x1000. */
#define START "\x0c\x07\x08\x90\x01"
#define EH_CIE "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\3" START "\0\0"
#define EH_FDE(back, len, start) len "\0\0\0" back "\0\0\0" start "\0\0\x40\0\0\0\0"
#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *name, *bytes;
    size_t len;
} tables[] = {
    { "eh", BYTES("\0" EH_CIE
        EH_FDE("\x1c", "\x16", "\0\x10") "\x41\x0e\x10\x86\2\x43\x0d\6\x50"
        EH_FDE("\x36", "\x1f", "\0\x11") "\x41\x0e\x10\x83\2\x0a\x41\xc3\x0e\x08\x41\x0b\x2e\x10\x41\x07\x10\0"
        "\0\0\0\0") },
    { "eh-expressions", BYTES("\0" EH_CIE
        EH_FDE("\x1c", "\x2a", "\0\x10")
        "\x41\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22\x41\x10\6\2\x77\x08\x41\x16\7\2\x70\0\x14\7\1") },
    { "eh-32", BYTES("\1\x12\0\0\0\0\0\0\0\1zR\0\1\x7c\x08\1\3\x0c\4\4\x88\1"
        EH_FDE("\x1a", "\x13", "\0\x10") "\x41\x0e\x08\x85\2\x41") },
    { "eh-letters", BYTES("\0\x1b\0\0\0\0\0\0\0\3zPLRS\0\1\x78\x10\7\x9b\1\2\3\4\xff\3" START
        EH_FDE("\x23", "\x11", "\0\x10") "\x41\x0e\x10\x41") },
    { "debug", BYTES("\2\x10\0\0\0\xff\xff\xff\xff\4\0\x08\0\1\x78\x10" START
        "\x1b\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x02\4\x0e\x10\3\4\0") },
    { "debug-long", BYTES("\2\xff\xff\xff\xff\x12\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\3\0\1\x78\x10" START
        "\xff\xff\xff\xff\x1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x41\x0e\x10\0") },
    { "both", BYTES("\4" EH_CIE EH_FDE("\x1c", "\x10", "\x10\x10") "\x41\x0e\x10"
        "\x10\0\0\0\xff\xff\xff\xff\3\0\1\x78\x10" START "\0\0"
        "\x17\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x41\x0e\x18") },
};

/* DWARF expressions, in the format of fuzz-expr.c. */
static const struct {
    const char *name, *bytes;
    size_t len;
} expressions[] = {
    { "plt",        BYTES("\0\0\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22") },
    { "deref",      BYTES("\4\x10\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\x06\x94\4\x23\x08") },
    { "32-big",     BYTES("\3\4\0\0\0\7\x0a\1\2\x0d\xff\xff\xff\xff\x1e\x30\x06\x14\x1b") },
    { "loop",       BYTES("\0\0\x08\xff\x31\x1c\x12\x28\xfb\xff") },
    { "endless",    BYTES("\0\0\x30\x2f\xfd\xff") },
    { "stack",      BYTES("\0\0\x31\x32\x33\x12\x14\x15\2\x16\x17\x13\x19\x1f\x20\x21\x27\x1a\x2e\x96") },
    { "constants",  BYTES("\0\0\x09\xff\x0b\xff\xff\x0f\xff\xff\xff\xff\xff\xff\xff\xff\x10\xff\1\x11\x7f\x92\7\0") },
    { "divide",     BYTES("\0\0\x11\x7f\x0e\0\0\0\0\0\0\0\x80\x16\x1b\x30\x1d") },
};

/* Stacks in the format of fuzz-unwind.c: the caller is at 0x1031, its frame record at 0x10018. */
#define LINES "\x31\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" \
    "\x31\x10\0\0\0\0\0\0"
#define PAD16 "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
#define CALLER PAD16 PAD16 "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xe8\x0f\0\0\0" \
    "\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
static const struct {
    const char *name, *bytes;
    size_t len;
} stacks[] = {
    { "frameless", BYTES("\0\x43\0\0\0\x18\0\x50\0" CALLER PAD16 LINES) },
    { "prologue",  BYTES("\0\x41\0\0\0\x18\0\x48\0" CALLER "\x55\x48\x89\xe5\x90\x90\x5d\xc3" LINES) },
    { "body",      BYTES("\4\x45\0\0\0\x18\0\x48\0" CALLER "\x55\x48\x89\xe5\x90\x90\x5d\xc3" LINES) },
    { "pushes",    BYTES("\2\x43\0\0\0\x18\0\x48\0" CALLER "\x53\x41\x57\x90\x41\x5f\x5b\xc3" LINES) },
    { "stub",      BYTES("\0\x40\0\0\0\x18\0\x48\0" CALLER "\xff\x25\0\0\0\0\x66\x90" LINES) },
    { "32-bit",    BYTES("\1\x41\0\0\0\x18\0\x48\0" CALLER "\x55\x89\xe5\x90\x90\x90\x5d\xc3" LINES) },
};

/* Messages of processes in the format of fuzz-store-process.c. A dry run has the first four. */
#define END "\xff\0"
#define DRY_RUN END END END END
#define ASK(type, stem, ending, to) type "\1" stem "\0" ending "\0" to "\0"
#define DAY_OF(type, ending, to) ASK(type, "web-1-20261119", ending, to)
#define NO_ERROR "\x08\4\0\0\0\0"
static const struct {
    const char *name, *bytes;
    size_t len;
} processes[] = {
    { "day",    BYTES(DRY_RUN NO_ERROR END DAY_OF("\2", ".pending", "") "\3\0" DAY_OF("\1", ".pending", "")
        DAY_OF("\2", ".folded.gz", "") "\3\0" DAY_OF("\4", ".pending", ".meta.json") NO_ERROR END) },
    { "undo",   BYTES(DRY_RUN END DAY_OF("\2", ".pending", "") "\3\0" DAY_OF("\5", ".pending", "") NO_ERROR END) },
    { "read",   BYTES(ASK("\0", "web-1-20261120T091500Z", ".meta.json", "") "\0\0db-20261118\0.pending\0\0" END) },
    { "outside", BYTES(ASK("\0", "../../secret", "", "") END ASK("\0", "secret", "", "") END
        ASK("\2", "web-1-20261120T091500Z", ".folded.gz", "") END) },
    { "say",    BYTES("\6\x09\1\0\0\0a\x1b[2J" "\7\x10\x00\x3c\xfe\x6a\x00\x00\x00\x00\x11\0\0\0\0\0\0\0" NO_ERROR END
        "\7\x10\0\0\0\0\0\0\0\x80\1\0\0\0\0\0\0\0" END) },
    { "die",    BYTES("\xff\xff\xff\1\x09\3\0") },
};
/* clang-format on */

static void
save_bytes(const char *corpus, const char *parser, const char *name, const void *bytes, size_t len)
{
    g_autofree char *path = g_build_filename(corpus, parser, name, NULL);
    g_autoptr(GError) error = NULL;

    if (!g_file_set_contents(path, bytes, (gssize)len, &error))
        g_error("%s", error->message);
}

static void
make_expressions(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(expressions); i++)
        save_bytes(corpus, "expr", expressions[i].name, expressions[i].bytes, expressions[i].len);
}

/*
 * A stack for the ORC rules of fuzz-unwind.c, from 0x1140 on: to the stack at which the word at
 * the stack pointer points, to the code that was interrupted there, and to the end.
 */
static void
make_orc_stack(const char *corpus)
{
    static const uint8_t header[] = { 8, 0x40, 0x01, 0, 0, 0x18, 0, 0, 0 };
    const uint64_t words[24] = {
        [0] = 0x10010, [1] = 0x1181, [2] = 0x1081, [19] = 0x1005, [20] = 0x10, [22] = 0x10008
    };
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, header, sizeof(header));
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        const uint64_t word = GUINT64_TO_LE(words[i]);
        g_byte_array_append(all, (const uint8_t *)&word, sizeof(word));
    }
    save_bytes(corpus, "unwind", "orc", all->data, all->len);
}

static void
make_stacks(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stacks); i++)
        save_bytes(corpus, "unwind", stacks[i].name, stacks[i].bytes, stacks[i].len);
    make_orc_stack(corpus);
}

/* Saves an image and its debug file in the format of fuzz-image.c. */
static void
save_image(const char *corpus, const char *name, const ElfPlan *image, const ElfPlan *debug)
{
    g_autoptr(GByteArray) file = symbol_elf_new(image), all = g_byte_array_new();
    const uint8_t len[] = { (uint8_t)file->len, (uint8_t)(file->len >> 8) };

    g_byte_array_append(all, len, sizeof(len));
    g_byte_array_append(all, file->data, file->len);
    if (debug) {
        g_autoptr(GByteArray) beside = symbol_elf_new(debug);
        g_byte_array_append(all, beside->data, beside->len);
    }
    save_bytes(corpus, "image", name, all->data, all->len);
}

static void
make_images(const char *corpus)
{
    static const uint8_t text[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0x07, 0,    0,    0,    0x5d,
                                    0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x31, 0xc0, 0xc3, 0x90 };
    static const ElfSymbol symbols[] = { { "_start", 0x1000, 11, true },
                                         { "leaf", 0x1010, 0, true },
                                         { "_ZN1a1bEv", 0x1010, 3, false } };
    static const char id[] = "\4\0\0\0\x08\0\0\0\3\0\0\0GNU\0abcdefgh";
    static const char link[] = "app.debug\0\0\0\1\2\3\4";
    const ElfExtra note = { ".note.gnu.build-id", 7, 2, 0x3000, id, sizeof(id) - 1 };
    const ElfExtra extras[] = { note, { ".gnu_debuglink", 1, 0, 0, link, sizeof(link) - 1 } };
    const ElfPlan named = { .entry = 0x1000,
                            .text_gva = 0x1000,
                            .text = text,
                            .text_len = sizeof(text),
                            .symbols = symbols,
                            .n_symbols = G_N_ELEMENTS(symbols) };
    ElfPlan stripped = named, linked = named, debug = named, narrow = named;

    stripped.n_symbols = 0;
    linked.n_symbols = 0;
    linked.extras = extras;
    linked.n_extras = G_N_ELEMENTS(extras);
    debug.is_debug = true;
    debug.extras = &note;
    debug.n_extras = 1;
    narrow.is_32 = true;
    save_image(corpus, "named", &named, NULL);
    save_image(corpus, "narrow", &narrow, NULL);
    save_image(corpus, "stripped", &stripped, NULL);
    save_image(corpus, "sibling", &stripped, &named);
    save_image(corpus, "other", &stripped, &narrow);
    save_image(corpus, "build-id", &linked, &debug);
    save_image(corpus, "link", &linked, &named);
}

/* Saves an image and all other files in the format of fuzz-symbol-search.c. */
static void
save_search(const char *corpus, const char *name, uint8_t exists, const ElfPlan *image,
            const ElfPlan *other)
{
    g_autoptr(GByteArray) file = symbol_elf_new(image), beside = symbol_elf_new(other);
    g_autoptr(GByteArray) all = g_byte_array_new();
    const uint8_t header[] = { exists, (uint8_t)file->len, (uint8_t)(file->len >> 8) };

    g_byte_array_append(all, header, sizeof(header));
    g_byte_array_append(all, file->data, file->len);
    g_byte_array_append(all, beside->data, beside->len);
    save_bytes(corpus, "symbol-search", name, all->data, all->len);
}

/* ---- Guests with a symbol file, in the format of fuzz-file-unwind.c ---- */

enum { FILE_CODE = 0x1000, FILE_HAS_CALLS = 16 };

static void
save_file_unwind(const char *corpus, const char *name, uint8_t flags, const GByteArray *file)
{
    const uint8_t header[] = { flags,
                               0x35,
                               0,
                               0,
                               0,
                               0x18,
                               0,
                               0xff,
                               0xff,
                               0,
                               0,
                               (uint8_t)file->len,
                               (uint8_t)(file->len >> 8) };
    static const char stack[] = LINES "\0\0\0\0\0\0\0\0" LINES;
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, header, sizeof(header));
    g_byte_array_append(all, file->data, file->len);
    g_byte_array_append(all, (const uint8_t *)stack, sizeof(stack) - 1);
    save_bytes(corpus, "file-unwind", name, all->data, all->len);
}

/* Files with each of the tables, one that can be compared by build-id, and a text table. */
static void
make_file_unwinds(const char *corpus)
{
    static const char text[] = CALLER "\x55\x48\x89\xe5\x90\x90\x5d\xc3" CALLER CALLER;
    static const ElfSymbol symbols[] = { { "main", FILE_CODE, 0x40, true },
                                         { "_ZN1a1bEv", FILE_CODE + 0x40, 0x40, true } };
    static const char id[] = "\4\0\0\0\x08\0\0\0\3\0\0\0GNU\0abcdefgh";
    static const char table[] = "0000000000001000 T _start\n0000000000001040 T first\n"
                                "0000000000002000 T second\n0000000000004fff T last\n";
    const ElfExtra note = { ".note.gnu.build-id", 7, 2, 0x3000, id, sizeof(id) - 1 };
    ElfPlan plan = { .entry = FILE_CODE,
                     .text_gva = FILE_CODE,
                     .text = (const uint8_t *)text,
                     .text_len = sizeof(text) - 1,
                     .eh_frame_gva = 0x5000,
                     .symbols = symbols,
                     .n_symbols = G_N_ELEMENTS(symbols) };

    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        plan.eh_frame = (const uint8_t *)tables[i].bytes + 1;
        plan.eh_frame_len = tables[i].len - 1;
        g_autoptr(GByteArray) file = symbol_elf_new(&plan);
        save_file_unwind(corpus, tables[i].name, 0, file);
    }
    plan.extras = &note;
    plan.n_extras = 1;
    g_autoptr(GByteArray) mapped = symbol_elf_new(&plan);
    symbol_elf_map(mapped, FILE_CODE - 0x40, id, sizeof(id) - 1);
    save_file_unwind(corpus, "build-id", 2, mapped);
    g_autoptr(GByteArray) names = g_byte_array_new();
    g_byte_array_append(names, (const uint8_t *)table, sizeof(table) - 1);
    save_file_unwind(corpus, "table", FILE_HAS_CALLS, names);
}

/* Debug links out of the image's folder or to no file, and build-ids of unusual lengths. */
static void
make_searches(const char *corpus)
{
    static const uint8_t text[] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3, 0x90, 0x90 };
    static const ElfSymbol symbols[] = { { "main", 0x1000, 6, true } };
    static const char id[] = "\4\0\0\0\x08\0\0\0\3\0\0\0GNU\0abcdefgh";
    static const char short_id[] = "\4\0\0\0\1\0\0\0\3\0\0\0GNU\0a\0\0\0";
    static const struct {
        const char *name, *link;
        size_t len;
    } links[] = {
        { "plain", BYTES("app.debug\0\0\0\1\2\3\4") },
        { "dots", BYTES("..\0\0\1\2\3\4") },
        { "up", BYTES("../../etc/shadow\0\0\0\0\1\2\3\4") },
        { "absolute", BYTES("/dev/zero\0\0\0\1\2\3\4") },
        { "itself", BYTES("app\0\1\2\3\4") },
        { "no-end", BYTES("app.debug") },
        { "bytes", BYTES("\x1b[31m\xff\n;\0\0\0\0\1\2\3\4") },
    };
    const ElfPlan debug = { .text_gva = 0x1000,
                            .text = text,
                            .text_len = sizeof(text),
                            .symbols = symbols,
                            .n_symbols = G_N_ELEMENTS(symbols),
                            .is_debug = true };

    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        const ElfExtra extras[] = {
            { ".gnu_debuglink", 1, 0, 0, links[i].link, links[i].len },
            { ".gnu_debugaltlink", 1, 0, 0, links[i].link, links[i].len },
            { ".note.gnu.build-id", 7, 2, 0x3000, i % 2 ? short_id : id,
              (i % 2 ? sizeof(short_id) : sizeof(id)) - 1 },
        };
        ElfPlan image = debug;
        image.is_debug = false;
        image.n_symbols = 0;
        image.extras = extras;
        image.n_extras = i < 2 ? 2 : 3;
        save_search(corpus, links[i].name, 0xfe, &image, &debug);
    }
}

/* The seeds have no page of text before the tables, because no address is relative to it. */
static void
make_kallsyms(const char *corpus)
{
    static const struct {
        const char *name;
        KallsymsPlan plan;
    } kernels[] = {
        { "absolute", { .n = 6, .addresses = KALLSYMS_ABSOLUTE, .wide_markers = true } },
        { "relative", { .n = 6, .addresses = KALLSYMS_RELATIVE, .long_bytes = 130 } },
        { "percpu", { .n = 8, .addresses = KALLSYMS_PERCPU, .wide_lengths = true } },
        { "relative-last",
          { .n = 6,
            .addresses = KALLSYMS_RELATIVE,
            .wide_lengths = true,
            .addresses_last = true } },
        { "long",
          { .n = 6,
            .addresses = KALLSYMS_RELATIVE,
            .wide_lengths = true,
            .long_bytes = 200,
            .has_seqs = true } },
        { "many", { .n = 300, .addresses = KALLSYMS_RELATIVE, .wide_lengths = true } },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autoptr(GByteArray) image = build_kallsyms(&kernels[i].plan);
        save_bytes(corpus, "kallsyms", kernels[i].name, image->data + 4096, image->len - 4096);
    }
}

/* Saves a log of @n records in the format of fuzz-printk-ring.c. */
static void
make_printk(const char *corpus, const char *name, unsigned n, const char *text)
{
    static const uint8_t no_change[3] = { 0 };
    const uint8_t bits[] = { 4, 8 };
    g_auto(PrintkBuilder) builder;
    g_autoptr(GByteArray) all = g_byte_array_new();

    printk_init(&builder, bits[0], bits[1]);
    for (unsigned i = 0; i < n; i++)
        printk_add(&builder, i % 8, text);
    const UprofPrintkRing ring = printk_ring(&builder);
    g_byte_array_append(all, bits, sizeof(bits));
    g_byte_array_append(all, (const uint8_t *)&ring.tail, sizeof(ring.tail));
    g_byte_array_append(all, (const uint8_t *)&ring.head, sizeof(ring.head));
    g_byte_array_append(all, ring.descs.data, (guint)ring.descs.len);
    g_byte_array_append(all, ring.infos.data, (guint)ring.infos.len);
    g_byte_array_append(all, ring.text.data, (guint)ring.text.len);
    g_byte_array_append(all, no_change, sizeof(no_change));
    save_bytes(corpus, "printk-ring", name, all->data, all->len);
}

/* Saves a list of @n tasks. */
static void
make_task_record(const char *corpus, const char *name, unsigned n, const char *missing)
{
    UprofTaskList list = {
        .tasks = g_array_new(FALSE, FALSE, sizeof(UprofTask)),
        .is_complete = n > 1,
        .missing = (char *)missing,
        .has_times = true,
        .has_waits = n > 1,
    };

    for (unsigned i = 0; i < n; i++) {
        const UprofTask task = {
            .address = UINT64_C(0xffff888001000000) + i * 9728,
            .id = i + 1,
            .process = i + 1,
            .state = "SDRI"[i % 4],
            .is_kernel = i % 2,
            .has_run = i % 3 == 0,
            .name = "kworker/0:1-events",
            .comm = "kworker/0:1",
        };
        g_array_append_val(list.tasks, task);
    }
    g_autoptr(GByteArray) record = uprof_task_record_make(&list);
    save_bytes(corpus, "task-record", name, record->data, record->len);
    g_array_unref(list.tasks);
}

/* Saves a table in the format of fuzz-orc-table.c. @flags: one per 4096 bytes, ending with 0 */
static void
save_orc(const char *corpus, const char *name, UprofOrcVersion version, const uint16_t *flags)
{
    const uint64_t table = UINT64_C(0xffffffff82400000);
    const uint8_t header[] = { (uint8_t)(version - UPROF_ORC_4_14), 0 };
    g_autoptr(GByteArray) all = g_byte_array_new(), entries = g_byte_array_new();
    OrcLine lines[16];
    unsigned n = 0;

    for (; flags[n] != 0; n++)
        lines[n] = (OrcLine){ table - 0xc000 + 0x1000 * n, 16, -16, flags[n] };
    lines[n] = (OrcLine){ .pc = table - 0xc000 + 0x1000 * n };
    g_byte_array_append(all, header, sizeof(header));
    build_orc(lines, n + 1, table, all, entries);
    g_byte_array_append(all, entries->data, entries->len);
    save_bytes(corpus, "orc-table", name, all->data, all->len);
}

static void
make_orc(const char *corpus)
{
    static const uint16_t old[] = { 0x15, 0x105, 0x205, 0x400, 0x46, 0x9, 0 };
    static const uint16_t signals[] = { 0x15, 0x505, 0x605, 0x800, 0x400, 0 };
    static const uint16_t types[] = { 0x215, 0xb05, 0xc05, 0x100, 0x248, 0x20a, 0x515, 0 };
    static const uint16_t now[] = { 0x283, 0xb03, 0xc03, 0x100, 0x244, 0x209, 0 };

    save_orc(corpus, "4.14", UPROF_ORC_4_14, old);
    save_orc(corpus, "5.12", UPROF_ORC_5_12, old);
    save_orc(corpus, "6.3", UPROF_ORC_6_3, signals);
    save_orc(corpus, "6.4", UPROF_ORC_6_4, types);
    save_orc(corpus, "7.1", UPROF_ORC_7_1, now);
}

/* Adds a change in the format of fuzz-linux.c; @later: made after the first sample */
static void
add_change(GByteArray *changes, uint64_t gpa, bool later, uint64_t difference)
{
    uint8_t change[11] = { (uint8_t)(gpa / 8), (uint8_t)(gpa / 8 >> 8), later ? 5 : 1 };

    for (unsigned i = 0; i < 8; i++)
        change[3 + i] = (uint8_t)(difference >> 8 * i);
    g_byte_array_append(changes, change, sizeof(change));
}

/* Saves small changes of @n words from @gpa on; @step: bytes from one word to the next */
static void
save_linux(const char *corpus, const char *name, uint8_t kind, uint64_t gpa, unsigned step,
           unsigned n, bool later)
{
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, &kind, 1);
    for (unsigned i = 0; i < n; i++)
        add_change(all, gpa + (uint64_t)i * step, later, i % 2 ? 0 : 8);
    save_bytes(corpus, "linux", name, all->data, all->len);
}

static void
make_linux(const char *corpus)
{
    const LinuxPlan plan = { .n_vcpus = 2, .n_modules = 3 };
    const LinuxPlan red_plan = { .n_vcpus = 2, .n_modules = 3, .is_red_black = true };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(LinuxGuest) red = linux_guest_new(&red_plan);

    save_linux(corpus, "image", 8, linux_guest_image(LINUX_TABLES + 0x10), 0x1fa0, 7, false);
    save_linux(corpus, "page-tables", 4, guest->root + 8 * 511, 0x1000, 4, false);
    save_linux(corpus, "modules", 2, guest->modules[1], 0x10, 10, false);
    save_linux(corpus, "task", 8 | 16, guest->task + TASK_MM, 8, 6, true);
    save_linux(corpus, "maple-tree", 0, guest->nodes[0] + 8, 8, 10, true);
    save_linux(corpus, "area", 0, guest->areas[1], 8, 8, true);
    save_linux(corpus, "file", 4, guest->files[1] + FILE_MAPPING, 8, 8, true);
    save_linux(corpus, "red-black-tree", 1, red->areas[3] + AREA_NODE, AREA_BYTES, 4, true);
}

/* ---- Tasks, in the format of fuzz-tasks.c ---- */

/* Saves a change of the word at @gpa; @when: number of the read before which it changes */
static void
save_task_change(const char *corpus, const char *name, uint64_t gpa, unsigned when,
                 uint64_t difference)
{
    uint8_t change[11] = { (uint8_t)(gpa / 8), (uint8_t)(gpa / 8 >> 8), (uint8_t)(when << 2 | 1) };

    for (unsigned i = 0; i < 8; i++)
        change[3 + i] = (uint8_t)(difference >> 8 * i);
    save_bytes(corpus, "tasks", name, change, sizeof(change));
}

static void
make_tasks(const char *corpus)
{
    uint64_t tree;
    g_autoptr(LinuxGuest) guest = tasks_guest_new(&tree);
    const uint64_t task = guest->task;

    save_task_change(corpus, "ring", task + TASK_RING, 0, 8);
    save_task_change(corpus, "ring-later", task + TASK_RING, 6, -(uint64_t)TASK_RING);
    save_task_change(corpus, "ring-backward", task + TASK_RING + 8, 3, 0x40);
    save_task_change(corpus, "threads", task + TASK_NODE, 0, 0x40);
    save_task_change(corpus, "signal", task + TASK_SIGNAL, 1, 1 << 20);
    save_task_change(corpus, "saved-sp", task + TASK_SAVED_SP, 0, 8);
    save_task_change(corpus, "switches", task + TASK_SWITCHES, 20, 1);
    save_task_change(corpus, "stack", task + TASK_STACK, 0, 0x1000);
    const uint64_t waiter = tasks_guest_waiter(guest, task);
    save_task_change(corpus, "waiter-task", waiter + WAITER_TASK, 0, 0x40);
    save_task_change(corpus, "waiter-next", waiter + WAITER_NODE, 0, 8);
    save_task_change(corpus, "waiter-later", waiter + WAITER_NODE, 40, -(uint64_t)LOCK_BYTES);
    save_task_change(corpus, "waiter-previous", waiter + WAITER_NODE + 8, 30, 16);
    const uint64_t lock =
        linux_guest_get(guest, waiter + WAITER_NODE + 8) - LINUX_DIRECT - LOCK_HEAD;
    save_task_change(corpus, "lock-owner", lock + LOCK_OWNER, 0, 0x40);
    save_task_change(corpus, "lock-count", lock + LOCK_COUNT, 0, UINT64_C(1) << 63);
    save_task_change(corpus, "lock-head", lock + LOCK_HEAD, 0, 0x20);
    save_task_change(corpus, "id", task + TASK_PID, 2, UINT64_MAX);
    /* the tree of ids: its depth, a node that leads back to the root, and ids of another task */
    save_task_change(corpus, "tree-depth", tree + NODE_SHIFT - 1, 0, 60 << 8);
    const uint64_t leaf = linux_guest_get(guest, tree + NODE_SLOTS) & ~UINT64_C(3);
    save_task_change(corpus, "tree-circle", tree + NODE_SLOTS, 0, tree - (leaf - LINUX_DIRECT));
    save_task_change(corpus, "tree-ids", leaf - LINUX_DIRECT + NODE_SLOTS, 0, 0x40);
    const uint64_t log = linux_guest_get(guest, linux_guest_image(LINUX_LOG)) - LINUX_DIRECT;
    save_task_change(corpus, "log-count", log + RING_COUNT_BITS, 0, 3);
    save_task_change(corpus, "log-text", log + RING_TEXT, 0, 8);
    save_task_change(corpus, "log-head", log + RING_HEAD, 0, 2);
}

/* ---- Files that are mapped in part, in the format of fuzz-mapped-elf.c ---- */

static void
make_mapped(const char *corpus)
{
    static const struct {
        const char *name;
        uint64_t missing; /* a bit for each page */
    } files[] = { { "whole", 0 }, { "without-frames", 0x40 }, { "without-sections", 0xe00 } };
    g_autoptr(GByteArray) file = build_mapped(0xab);

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autoptr(GByteArray) seed = g_byte_array_new();
        const uint64_t missing = GUINT64_TO_LE(files[i].missing);
        g_byte_array_append(seed, (const uint8_t *)&missing, sizeof(missing));
        g_byte_array_append(seed, file->data, file->len);
        save_bytes(corpus, "mapped-elf", files[i].name, seed->data, seed->len);
    }
}

/* ---- Trees of a process, in the format of fuzz-space.c ---- */

enum { SPACE_AREAS = 24, SET_WORD = 0, POINT_TO_WORD = 2, POINT_TO_NODE = 3 };

typedef struct {
    LinuxGuest *guest;
    GByteArray *bytes;
} SpaceSeed;

static SpaceSeed
begin_space(uint8_t kind)
{
    static LinuxArea areas[SPACE_AREAS];
    const LinuxPlan plan = { .n_vcpus = 2,
                             .is_red_black = kind & 1,
                             .has_isolation = kind & 2,
                             .has_hot = kind & 4,
                             .areas = areas,
                             .n_areas = SPACE_AREAS,
                             .more_bytes = 2 * MAPPED_BYTES };
    SpaceSeed seed = { .bytes = g_byte_array_new() };

    linux_areas_fill(areas, SPACE_AREAS);
    seed.guest = linux_guest_new(&plan);
    g_byte_array_append(seed.bytes, &kind, 1);
    return seed;
}

static void
change_space(const SpaceSeed *seed, uint64_t gpa, uint8_t how, uint64_t value)
{
    const uint64_t word = (gpa - seed->guest->process_root) / 8;
    uint8_t change[11] = { (uint8_t)word, (uint8_t)(word >> 8), how };

    for (unsigned i = 0; i < 8; i++)
        change[3 + i] = (uint8_t)(value >> 8 * i);
    g_byte_array_append(seed->bytes, change, sizeof(change));
}

/* @low: low byte of the pointer */
static void
point_to_node(const SpaceSeed *seed, uint64_t gpa, uint64_t target, uint8_t low)
{
    change_space(seed, gpa, POINT_TO_NODE, (target - seed->guest->process_root) << 8 | low);
}

static void
point_to_word(const SpaceSeed *seed, uint64_t gpa, uint64_t target)
{
    change_space(seed, gpa, POINT_TO_WORD, target - seed->guest->process_root);
}

static void
save_space(const char *corpus, const char *name, SpaceSeed *seed)
{
    save_bytes(corpus, "space", name, seed->bytes->data, seed->bytes->len);
    g_byte_array_unref(seed->bytes);
    linux_guest_free(seed->guest);
}

/* Nodes that contain themselves: a range node, and one that lists gaps */
static void
make_maple_circles(const char *corpus)
{
    SpaceSeed seed = begin_space(0);
    const uint64_t *nodes = seed.guest->nodes;

    for (unsigned i = 0; i < MAPLE_N_GAP_SLOTS; i++)
        point_to_node(&seed, nodes[0] + MAPLE_GAP_SLOTS + 8 * i, nodes[0], 3 << 3 | 4);
    save_space(corpus, "maple-circle-gaps", &seed);
    seed = begin_space(0);
    nodes = seed.guest->nodes;
    for (unsigned i = 0; i < MAPLE_N_SLOTS; i++) {
        point_to_node(&seed, nodes[1] + MAPLE_SLOTS + 8 * i, nodes[1], 2 << 3 | 4);
        change_space(&seed, nodes[1] + MAPLE_PIVOTS + 8 * i, SET_WORD, 0);
    }
    save_space(corpus, "maple-circle", &seed);
}

static void
make_red_black_circle(const char *corpus)
{
    SpaceSeed seed = begin_space(1);

    for (unsigned i = 0; i < 8; i++) {
        const uint64_t node = seed.guest->areas[i] + AREA_NODE;
        point_to_word(&seed, node + RB_LEFT, node);
        point_to_word(&seed, node + RB_RIGHT, seed.guest->areas[7 - i] + AREA_NODE);
    }
    save_space(corpus, "red-black-circle", &seed);
}

static void
make_file_circles(const char *corpus)
{
    SpaceSeed seed = begin_space(2);
    const LinuxGuest *guest = seed.guest;

    for (unsigned i = 0; i < LINUX_FILES; i++)
        for (unsigned slot = 0; slot < NODE_N_SLOTS; slot++)
            point_to_node(&seed, guest->nodes_of_files[i] + NODE_SLOTS + 8 * slot,
                          guest->nodes_of_files[i], 2);
    save_space(corpus, "xarray-circle", &seed);
    seed = begin_space(2);
    guest = seed.guest;
    for (unsigned i = 0; i < LINUX_FILES; i++) {
        change_space(&seed, guest->nodes_of_files[i], SET_WORD, 6 << 8 * NODE_SHIFT);
        for (unsigned slot = 1; slot < NODE_N_SLOTS; slot++)
            change_space(&seed, guest->nodes_of_files[i] + NODE_SLOTS + 8 * slot, SET_WORD,
                         (slot - 1) << 2 | 2);
    }
    save_space(corpus, "xarray-siblings", &seed);
    seed = begin_space(4);
    guest = seed.guest;
    point_to_word(&seed, guest->mount + MOUNT_PARENT, guest->files[0]);
    point_to_word(&seed, guest->mount + MOUNT_POINT, guest->mount);
    point_to_word(&seed, guest->mount + MOUNT_PART + MOUNT_PART_ROOT, guest->files[1]);
    save_space(corpus, "mount-circle", &seed);
}

static void
make_areas(const char *corpus)
{
    SpaceSeed seed = begin_space(0);

    for (unsigned i = 0; i < 8; i++) {
        change_space(&seed, seed.guest->areas[i] + AREA_START, SET_WORD, 0);
        change_space(&seed, seed.guest->areas[i] + AREA_END, SET_WORD, UINT64_MAX << 12);
        change_space(&seed, seed.guest->areas[i] + AREA_PAGE, SET_WORD, UINT64_MAX - i);
        point_to_word(&seed, seed.guest->areas[i] + AREA_FILE, seed.guest->areas[i]);
    }
    save_space(corpus, "areas", &seed);
    seed = begin_space(6);
    for (unsigned i = 0; i < 2; i++) {
        change_space(&seed, seed.guest->task + TASK_COMM + 8 * i, SET_WORD, UINT64_MAX);
        change_space(&seed, seed.guest->cpu_areas[i] + CPU_IRQ, SET_WORD, UINT64_MAX);
        point_to_word(&seed, seed.guest->cpu_areas[i] + CPU_CURRENT, seed.guest->mm);
    }
    save_space(corpus, "tasks", &seed);
}

/* ---- Memory of Python, in the format of fuzz-python.c ---- */

static void
change_python(GByteArray *seed, uint16_t offset, uint8_t how, uint64_t value)
{
    uint8_t change[11] = { (uint8_t)offset, (uint8_t)(offset >> 8), how };

    for (unsigned i = 0; i < 8; i++)
        change[3 + i] = (uint8_t)(value >> 8 * i);
    g_byte_array_append(seed, change, sizeof(change));
}

/* Nothing is changed; frames that call themselves; texts and lists that are too long */
static void
make_python(const char *corpus)
{
    enum { REPLACE, POINT };

    for (uint8_t version = 0; version < 3; version++) {
        static const char *const names[] = { "plain-", "circle-", "long-" };
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
            g_autofree char *name = g_strdup_printf("%s%u", names[i], version);
            g_autoptr(GByteArray) seed = g_byte_array_new();
            g_byte_array_append(seed, &version, 1);
            for (uint16_t at = 0; i == 1 && at < 0x180; at += 8)
                change_python(seed, (uint16_t)(PYTHON_FRAMES + at), POINT, PYTHON_FRAMES);
            for (uint16_t at = 0; i == 2 && at < 0x200; at += PYTHON_TEXT_BYTES)
                change_python(seed, (uint16_t)(PYTHON_TEXTS + at + 16), REPLACE, 512);
            save_bytes(corpus, "python", name, seed->data, seed->len);
        }
    }
}

/* ---- Messages of a worker, in the format of fuzz-worker-message.c ---- */

static void
save_message(const char *corpus, const char *name, uint8_t type, const void *bytes, size_t len)
{
    const uint8_t header[] = { type, 2 };
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, header, sizeof(header));
    g_byte_array_append(all, bytes, (guint)len);
    save_bytes(corpus, "worker-message", name, all->data, all->len);
}

/* @path: '~' stands for the folder of the target's files */
static void
save_file_ask(const char *corpus, const char *name, UprofFileKind kind, const char *folder,
              const char *path)
{
    const UprofFileAsk ask = { .kind = kind };
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, (const uint8_t *)&ask, sizeof(ask));
    g_byte_array_append(all, (const uint8_t *)folder, (guint)strlen(folder) + 1);
    g_byte_array_append(all, (const uint8_t *)path, (guint)strlen(path) + 1);
    save_message(corpus, name, 1, all->data, all->len);
}

/* "links-deep" makes the sampler copy as many parts of memory as possible. */
static void
make_links(const char *corpus)
{
    struct {
        UprofLinks links;
        UprofLinksVcpu vcpus[2];
    } told = { { .kernel_from = 0x1000,
                 .stack_bytes = 16384,
                 .irq_bytes = 16384,
                 .regs_bytes = 168,
                 .regs_len = 168,
                 .regs_mode = 136,
                 .regs_sp = 152,
                 .task_len = 1024,
                 .n_vcpus = 2 },
               { { 0x2000, 0x9ff8 }, { 0x3000, 0 } } };

    save_message(corpus, "links", 3, &told, sizeof(told));
    told.links.irq_bytes = 1024 * 1024;
    told.links.stack_bytes = 4096;
    told.links.kernel_from = 0;
    told.vcpus[0].irq_at = 0x1fff8;
    save_message(corpus, "links-deep", 3, &told, sizeof(told));
    told.vcpus[0].irq_at = UINT64_MAX;
    told.vcpus[1].task_at = UINT64_MAX - 7;
    told.links.task_from = INT32_MAX;
    save_message(corpus, "links-last-address", 3, &told, sizeof(told));
}

/* The guest's words hold their own addresses, or these plus 3. */
static void
make_chains(const char *corpus)
{
    UprofChainTell tell = {
        .slot = 5,
        .chain = {
            .memory = 0x1000,
            .steps = {
                { .op = UPROF_CHAIN_LOAD, .from = -1, .offset = -8 },
                { .op = UPROF_CHAIN_LOAD, .from = 0, .offset = 0x1800 },
                { .op = UPROF_CHAIN_SKIP_IF_EQUAL, .from = 0, .other = 1, .len = 1 },
                { .op = UPROF_CHAIN_STACK, .from = 1 },
                { .op = UPROF_CHAIN_LIST, .from = 1, .len = 88, .offset = 8 },
            },
        },
    };

    save_message(corpus, "chain", 9, &tell, sizeof(tell));
    /* a node that is its own successor; steps that lead out of memory */
    tell.chain.starts[0] = UINT64_MAX;
    tell.chain.steps[0] = (UprofChainStep){ .op = UPROF_CHAIN_LIST, .from = -1, .len = 8 };
    tell.chain.steps[1] = (UprofChainStep){ .op = UPROF_CHAIN_STACK, .from = -1 };
    tell.chain.steps[2] = (UprofChainStep){
        .op = UPROF_CHAIN_SKIP_IF_EQUAL, .from = -1, .other = -1, .len = UINT8_MAX
    };
    save_message(corpus, "chain-outside", 9, &tell, sizeof(tell));
    tell.chain.starts[0] = 0x1f000;
    save_message(corpus, "chain-loop", 9, &tell, sizeof(tell));
}

static void
make_messages(const char *corpus)
{
    const UprofReadSpan spans[] = { { 0x1000, 8 }, { UINT64_MAX - 4, 4096 }, { 0x1ff00, 4096 } };
    const UprofWindowTell window = { 1, 8192 };
    const UprofOutcome outcome = { UPROF_ERROR_DENIED, 1 };
    static const char notice[] = "\2\0\0\0\x1b[31mred\x1b]0;title\a\nnext";
    static const char findings[] =
        "\2\0\0\0\7\0\0\0\4\0\0\0symbolsnone\3\0\0\0\1\0\0\0\2\0\0\0a\x1b[";
    static const char rows[] = "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0main";

    save_message(corpus, "reads", 0, spans, sizeof(spans));
    save_message(corpus, "notice", 2, notice, sizeof(notice) - 1);
    save_message(corpus, "window", 4, &window, sizeof(window));
    save_message(corpus, "outcome", 5, &outcome, sizeof(outcome));
    save_message(corpus, "rows", 6, rows, sizeof(rows) - 1);
    save_message(corpus, "findings", 8, findings, sizeof(findings) - 1);
    save_message(corpus, "lines", 7, notice, sizeof(notice) - 1);
    save_file_ask(corpus, "file", UPROF_FILE_REGULAR, "", "~/bin/app.dbg");
    save_file_ask(corpus, "file-dots", UPROF_FILE_REGULAR, "", "~/debug/../secret");
    save_file_ask(corpus, "file-input", UPROF_FILE_INPUT, "", "~/in");
    save_file_ask(corpus, "file-below", UPROF_FILE_BELOW, "~/root", "lib/x");
    save_file_ask(corpus, "file-link", UPROF_FILE_BELOW, "~/root", "out");
    save_file_ask(corpus, "file-strict", UPROF_FILE_BELOW, "~/own", "out");
    make_links(corpus);
    make_chains(corpus);
}

/* Saves the messages of processes: facts about files of both folders, and texts of a summary. */
static void
make_facts(const char *corpus)
{
    const UprofItemFacts read = { .is_read = true, .uuid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0" };
    const UprofItemFacts merged = { .is_merged = true };
    const UprofItemFacts of_db[] = { read, { 0 } }, of_web[] = { merged, read, { 0 } };
    static const uint8_t summary[] = { 8, 11, 0, 0, 0, 0, 1, 0, 0, 0, 'd', 'a', 'y', 255, 0 };
    static const uint8_t end[] = { 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0 };
    const uint8_t db_head[] = { 8, sizeof(of_db) }, web_head[] = { 8, sizeof(of_web) };
    g_autoptr(GByteArray) all = g_byte_array_new();

    g_byte_array_append(all, end, sizeof(end));
    g_byte_array_append(all, db_head, sizeof(db_head));
    g_byte_array_append(all, (const uint8_t *)of_db, sizeof(of_db));
    g_byte_array_append(all, end, 2);
    g_byte_array_append(all, web_head, sizeof(web_head));
    g_byte_array_append(all, (const uint8_t *)of_web, sizeof(of_web));
    g_byte_array_append(all, end, 2);
    g_byte_array_append(all, summary, sizeof(summary));
    save_bytes(corpus, "store-process", "facts", all->data, all->len);
}

static void
make_processes(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(processes); i++)
        save_bytes(corpus, "store-process", processes[i].name, processes[i].bytes,
                   processes[i].len);
    make_facts(corpus);
}

/* ---- Checkpoints, in the format of fuzz-checkpoint.c ---- */

/* Saves facts and stacks without a head, which the target adds. */
static void
save_checkpoint_text(const char *corpus, const char *name, const UprofRun *run, const char *folded)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) none = uprof_profile_new(names, NULL, false);
    g_autoptr(GString) all = g_string_new(NULL);
    GString *facts = uprof_output_render(&uprof_format_meta, none, run);

    g_string_append_c(all, '\2');
    g_string_append(all, facts->str);
    g_string_append_c(all, '\0');
    g_string_append(all, folded);
    save_bytes(corpus, "checkpoint", name, all->str, all->len);
    g_string_free(facts, TRUE);
}

/* Saves a checkpoint as a worker writes it; @lost: bytes to cut from its end */
static void
save_checkpoint(const char *corpus, const char *name, const UprofRun *run, size_t lost)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
    const UprofName *frames[] = {
        uprof_names_intern(names, (UprofSlice){ "main", 4 }),
        uprof_names_marker(names, "[truncated]"),
        uprof_names_intern(names, (UprofSlice){ "a b;c", 5 }),
    };
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_intern(names, (UprofSlice){ "web-1", 5 }), true);
    g_autoptr(UprofProfile) waits = uprof_profile_new(names, uprof_profile_root(profile), true);
    const int fd = uprof_checkpoint_new(NULL);
    uint8_t bytes[8192] = { 1 };
    uint64_t lengths[2];

    for (unsigned i = 1; i <= G_N_ELEMENTS(frames); i++)
        uprof_profile_add(profile, frames, i, i);
    uprof_profile_add(waits, frames, 1, 3);
    const UprofCheckpointProfiles profiles = { profile, waits };
    if (fd < 0 || !uprof_checkpoint_write(fd, &profiles, run, sym) ||
        pread(fd, bytes + 1, sizeof(bytes) - 1, 0) < 0)
        g_error("no checkpoint");
    memcpy(lengths, bytes + 1, sizeof(lengths));
    save_bytes(corpus, "checkpoint", name, bytes,
               1 + sizeof(lengths) + lengths[0] + lengths[1] - lost);
    close(fd);
}

static void
make_checkpoints(const char *corpus)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    const uint64_t lengths[] = { 0, UINT64_MAX };
    uint8_t large[1 + sizeof(lengths)] = { 1 };

    run->domain = g_strdup("web-1");
    run->samples = 9;
    run->running = 7;
    run->by_cfi = 11;
    uprof_histogram_add(&run->hold, 20000);
    save_checkpoint(corpus, "whole", run, 0);
    save_checkpoint(corpus, "cut", run, 9);
    save_checkpoint_text(corpus, "text", run, "web-1;main;work_[k] 7\nweb-1;[truncated];f 2\n");
    save_checkpoint_text(corpus, "only-root", run, "web-1 3\nweb-1;a;;b 18446744073709551615\n");
    save_checkpoint_text(corpus, "odd", run, "web-1;[idle];a#b;9 9 1\r\n#x\n\n;;; 1\n");
    memcpy(large + 1, lengths, sizeof(lengths));
    save_bytes(corpus, "checkpoint", "large", large, sizeof(large));
}

static void
make_btf(const char *corpus)
{
    const uint32_t rest[] = { 1, 2, 3 };
    const BtfMember itself[] = { { NULL, 1, 0 }, { "pid", 1, 0 }, { NULL, 1, 32 } };
    g_autoptr(GByteArray) usual = build_btf();
    g_auto(BtfBuilder) builder;

    save_bytes(corpus, "btf", "usual", usual->data, usual->len);
    btf_init(&builder);
    btf_add_struct(&builder, "task_struct", BTF_STRUCT, false, 8, itself, 3);
    for (unsigned kind = 0; kind <= 20; kind++)
        btf_add_layout(&builder, 4, 8);
    btf_add(&builder, NULL, 20, false, 1, 0, rest, 3);
    g_autoptr(GByteArray) later = btf_finish(&builder);
    save_bytes(corpus, "btf", "later", later->data, later->len);
}

static void
make_tables(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        save_bytes(corpus, "cfi-table", tables[i].name, tables[i].bytes, tables[i].len);
        save_bytes(corpus, "cfi-entry", tables[i].name, tables[i].bytes, tables[i].len);
    }
}

static void
make_elves(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(elves); i++) {
        g_autoptr(GByteArray) file = build_elf(&elves[i].kind);
        g_autofree char *cut = g_strdup_printf("%s-cut", elves[i].name);

        save_bytes(corpus, "elf-image", elves[i].name, file->data, file->len);
        save_bytes(corpus, "elf-image", cut, file->data, file->len / 3);
    }
}

static void
make_capture(const char *corpus, const char *name, unsigned n_windows, unsigned len, bool has_rest)
{
    g_autofree char *path = g_build_filename(corpus, "capture-reader", name, NULL);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofSnapshot *rest = g_new0(UprofSnapshot, 1);
    const uint8_t page[UPROF_CAPTURE_PAGE_BYTES] = { 0 };
    g_autoptr(GError) error = NULL;

    run->domain = g_strdup("web-1");
    run->ended_by = g_strdup("duration");
    const UprofRunImage *image = uprof_run_add_image(run, "[app]", "app", "00ff", "00");
    snapshot->weight = 1;
    snapshot->regs.word_bytes = 8;
    snapshot->n_windows = n_windows;
    for (unsigned i = 0; i < n_windows; i++)
        snapshot->windows[i] = (UprofWindow){ 0x1000 * (i + 1), i * len, len };

    rest->weight = 2;
    rest->count = 100;
    rest->grain = UPROF_GRAIN_VCPU;
    rest->idle = rest->same = true;

    if (!uprof_writer_run(writer, run, &error) || !uprof_writer_image(writer, image, &error) ||
        !uprof_writer_snapshot(writer, snapshot, &error) ||
        (has_rest && !uprof_writer_snapshot(writer, rest, &error)) ||
        !uprof_writer_page(writer, 0x7000, n_windows > 1 ? page : NULL, &error) ||
        (has_rest &&
         !uprof_writer_tasks(writer, (UprofSlice){ page, UPROF_CAPTURE_TEXT_BYTES_MAX / 1024 },
                             &error)) ||
        !uprof_writer_end(writer, run, &error) || !uprof_writer_flush(writer, &error))
        g_error("%s: %s", path, error->message);
    close(fd);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return EXIT_FAILURE;
    }
    make_btf(argv[1]);
    make_python(argv[1]);
    make_messages(argv[1]);
    make_checkpoints(argv[1]);
    make_processes(argv[1]);
    make_maple_circles(argv[1]);
    make_red_black_circle(argv[1]);
    make_file_circles(argv[1]);
    make_areas(argv[1]);
    make_tables(argv[1]);
    make_elves(argv[1]);
    make_expressions(argv[1]);
    make_images(argv[1]);
    make_searches(argv[1]);
    make_file_unwinds(argv[1]);
    make_kallsyms(argv[1]);
    make_linux(argv[1]);
    make_tasks(argv[1]);
    make_mapped(argv[1]);
    make_orc(argv[1]);
    make_printk(argv[1], "few", 3, "text");
    make_printk(argv[1], "turns", 40, "a longer text\nof two lines");
    make_printk(argv[1], "no-text", 2, "");
    make_task_record(argv[1], "none", 0, NULL);
    make_task_record(argv[1], "missing", 1, "its parent (real_parent)");
    make_task_record(argv[1], "five", 5, NULL);
    make_stacks(argv[1]);
    make_capture(argv[1], "no-window", 0, 0, false);
    make_capture(argv[1], "one-window", 1, 64, false);
    make_capture(argv[1], "four-windows", 4, 16, false);
    make_capture(argv[1], "rest", 1, 16, true);
    return EXIT_SUCCESS;
}
