/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One message or reply of a worker. The first byte says which one follows, and the second byte how
 * many vCPUs the guest has. The target also acts on each message that the program accepts: it
 * copies stacks by links, follows chains, reads memory, and opens files.
 */
#include "fuzz.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/fetch/symbol-cache-priv.h"
#include "memory-guest.h"
#include "uprof/capture.h"
#include "uprof/diagnosis.h"
#include "uprof/output.h"
#include "uprof/row-list.h"
#include "uprof/text.h"
#include "../../src/sampler/chain-priv.h"
#include "../../src/sampler/windows-priv.h"
#include "../../src/worker/file-rules-priv.h"
#include "../../src/worker/worker-message-priv.h"

enum {
    HEADER = 2,
    RAM_LEN = 0x20000,
    VCPUS_MAX = 4,
};

/* The program receives messages into a buffer of the size of the largest message. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 100,
        .us_per_kib = 5 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 256,
    };
}

static UprofWorkerInput input;

static MemoryGuest *
get_guest(void)
{
    static MemoryGuest *guest;
    const MemoryPlan plan = { .n_vcpus = VCPUS_MAX, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };

    if (!guest) {
        guest = memory_guest_open(&plan);
        for (uint64_t gpa = 0; gpa < RAM_LEN; gpa += 8)
            memory_guest_put_u64(guest, gpa, gpa % 0x1000 < 0x800 ? gpa : gpa | 3);
    }
    return guest;
}

/* ---- Links and chains ---- */

static void
check_windows(const UprofSnapshot *snapshot)
{
    uint32_t used = 0;

    g_assert(snapshot->n_windows <= UPROF_WINDOWS_MAX);
    for (unsigned i = 0; i < snapshot->n_windows; i++) {
        const UprofWindow *window = &snapshot->windows[i];
        g_assert(window->offset == used && window->len <= UPROF_SNAPSHOT_BYTES_MAX - used);
        used += window->len;
    }
}

/* Copies the stacks of a sample as the sampler does in a hold. */
static void
copy_by_links(uint64_t sp, unsigned privilege, unsigned vcpu)
{
    static UprofSnapshot snapshot;
    const UprofWindowSize size = { .wanted = UPROF_WINDOW_BYTES_FIRST };
    MemoryGuest *guest = get_guest();
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);

    uprof_snapshot_clear(&snapshot);
    memory_guest_identity(guest, vcpu, 0x1000, sp, 0);
    snapshot.vcpu = vcpu;
    snapshot.regs = guest->regs[vcpu];
    snapshot.regs.privilege = privilege;
    uprof_windows_copy(mem, &size, &input.links, NULL, &snapshot);
    check_windows(&snapshot);
}

static void
check_links(size_t len, unsigned n_vcpus)
{
    if (!uprof_worker_message_has_links(&input, len, n_vcpus))
        return;
    for (unsigned i = 0; i <= n_vcpus && i < VCPUS_MAX; i++) {
        const uint64_t irq_at = i < n_vcpus ? input.links.vcpus[i].irq_at : 0;
        const uint64_t stacks[] = { 0, 0x8010, irq_at - 64, UINT64_MAX - 8 };
        for (size_t j = 0; j < G_N_ELEMENTS(stacks); j++) {
            copy_by_links(stacks[j], 0, i);
            copy_by_links(stacks[j], 3, i);
        }
    }
}

/* Follows the chain as the sampler does in a hold. */
static void
check_chain(size_t len)
{
    static UprofSnapshot snapshot;
    static const UprofLinks links = { .kernel_from = RAM_LEN };
    MemoryGuest *guest = get_guest();

    if (!uprof_worker_message_has_chain(&input, len))
        return;
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    const UprofCopy copy = {
        .mem = mem, .links = &links, .snapshot = &snapshot, .wanted = UPROF_WINDOW_BYTES_FIRST
    };
    uprof_snapshot_clear(&snapshot);
    memory_guest_identity(guest, 0, 0x1000, 0x8000, 0);
    snapshot.regs = guest->regs[0];
    uprof_chain_copy(&copy, &snapshot.regs, &input.chain.chain, 0x8010);
    check_windows(&snapshot);
}

/* ---- Reads ---- */

static void
check_reads(size_t len)
{
    static uint8_t into[UPROF_READ_BYTES_MAX];
    UprofSpan spans[UPROF_READ_SPANS_MAX];
    size_t n_bytes, sum = 0;
    unsigned n;

    if (!uprof_worker_message_list_reads(&input, len, into, spans, &n, &n_bytes))
        return;
    for (unsigned i = 0; i < n; i++) {
        g_assert((uint8_t *)spans[i].into == into + sum);
        sum += spans[i].len;
    }
    g_assert(n <= UPROF_READ_SPANS_MAX && sum == n_bytes && sum <= UPROF_READ_BYTES_MAX);
    uprof_guest_read(&get_guest()->base, UPROF_LANE_WORKER, spans, n);
}

/* ---- Files ---- */

static char *top; /* folder of files that the rules allow, and of some that they refuse */

static void
put_file(const char *path)
{
    g_autofree char *full = g_build_filename(top, path, NULL);
    g_autofree char *folder = g_path_get_dirname(full);

    g_assert(g_mkdir_with_parents(folder, 0700) == 0);
    g_assert(g_file_set_contents(full, "x", 1, NULL));
}

static void
put_link(const char *target, const char *path)
{
    g_autofree char *full = g_build_filename(top, path, NULL);

    g_assert(symlink(target, full) == 0);
}

static void
remove_tree(void)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", top);

    if (system(command) != 0)
        g_printerr("cannot remove '%s'\n", top);
}

static UprofFileRules *
make_rules(void)
{
    static const char *const paths[] = { "bin/app",  "bin/app.dbg", "in",    "secret",
                                         "debug/id", "root/lib/x",  "own/x", "secrets/x" };
    UprofFileRules *rules = uprof_file_rules_new();

    top = g_dir_make_tmp("fuzz-worker-message-XXXXXX", NULL);
    atexit(remove_tree);
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
        put_file(paths[i]);
    put_link("../secret", "root/out");
    put_link("/secret", "root/up");
    put_link("../secret", "own/out");
    g_autofree char *debug = g_build_filename(top, "debug", NULL);
    g_autofree char *root = g_build_filename(top, "root", NULL);
    g_autofree char *in = g_build_filename(top, "in", NULL);
    g_autofree char *app = g_build_filename(top, "bin/app", NULL);
    g_autofree char *own = g_build_filename(top, "own", NULL);
    g_autoptr(GPtrArray) files = g_ptr_array_new();
    const UprofSymbolSettings settings = {
        .files = files,
        .config = { .debug_folders = (const char *const[]){ debug, NULL },
                    .sysroots = (const char *const[]){ root, NULL } },
    };
    uprof_file_rules_add_settings(rules, &settings);
    uprof_file_rules_add_input(rules, in);
    uprof_file_rules_add_symbols(rules, app);
    uprof_file_rules_add_folder(rules, own);
    return rules;
}

static void
check_open_file(int fd)
{
    static const char *const allowed[] = { "bin/app",  "bin/app.dbg", "in",
                                           "debug/id", "root/lib/x",  "own/x" };
    g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *path = g_file_read_link(link, NULL);
    bool is_allowed =
        g_str_has_prefix(path, "/usr/lib/debug/") || g_str_has_prefix(path, "/usr/lib/.build-id/");

    for (size_t i = 0; i < G_N_ELEMENTS(allowed); i++) {
        g_autofree char *full = g_build_filename(top, allowed[i], NULL);
        is_allowed = is_allowed || strcmp(path, full) == 0;
    }
    if (!is_allowed)
        g_error("the rules let a worker open '%s'", path);
}

/* Replaces each '~' by @top, whose name differs in each run. */
static GByteArray *
expand_top(size_t len)
{
    GByteArray *ask = g_byte_array_new();

    for (size_t i = 0; i < len; i++) {
        const bool is_top = input.bytes[i] == '~';
        g_byte_array_append(ask, is_top ? (const uint8_t *)top : &input.bytes[i],
                            is_top ? (guint)strlen(top) : 1);
    }
    return ask;
}

/* A build-id is hexadecimal, so it leads to no other folder. */
static void
check_cached(const GByteArray *ask)
{
    g_autofree char *text = g_strndup((const char *)ask->data, ask->len);
    g_autofree char *path = g_strconcat("/c/.build-id/", text, NULL);
    g_auto(UprofCachedFile) file = { 0 };

    if (uprof_symbol_cache_parse("/c", path, &file))
        g_assert_cmpuint(strspn(file.build_id, "0123456789abcdef"), ==, strlen(file.build_id));
}

static void
check_file(size_t len)
{
    static UprofFileRules *rules;
    int reason = -1;

    if (!rules)
        rules = make_rules();
    g_autoptr(GByteArray) ask = expand_top(len);
    const int fd =
        uprof_file_rules_answer(rules, NULL, (UprofSlice){ ask->data, ask->len }, &reason);
    g_assert(fd >= 0 ? reason == 0 : reason > 0);
    check_cached(ask);
    if (fd < 0)
        return;
    check_open_file(fd);
    close(fd);
}

/* ---- Replies ---- */

static void
check_notice(size_t len)
{
    const UprofSlice all = { input.bytes, len };
    UprofNoticeKind kind;
    UprofSlice text;

    if (!uprof_worker_message_find_notice(&input, len, &kind, &text))
        return;
    g_autofree char *shown = uprof_text_quote_slice(text);
    g_assert(is_part(text, all) && kind <= UPROF_NOTICE_WARNING);
    g_assert(g_utf8_validate(shown, -1, NULL) && !strchr(shown, '\n') && !strchr(shown, '\x1b'));
}

static void
check_outcome(UprofSlice reply)
{
    UprofOutcome outcome;
    UprofSlice text;

    uprof_worker_message_read_outcome(reply, &outcome, &text);
    g_assert(outcome.code >= UPROF_ERROR_NONE && outcome.code <= UPROF_ERROR_EMPTY);
    g_assert(is_part(text, reply));
}

/* Rows from a worker can have any values; @total: the sum of these values */
static void
check_table(const GArray *rows, uint64_t total)
{
    const UprofTableStyle style = { .rows = 5, .width = 60, .bars = true, .unicode = true };
    g_autoptr(GString) table = g_string_new(NULL);

    uprof_table_append(table, &style, rows, total);
    g_assert(g_utf8_validate(table->str, (gssize)table->len, NULL));
    g_auto(GStrv) lines = g_strsplit(table->str, "\n", -1);
    g_assert(g_strv_length(lines) == MIN(rows->len, style.rows) + 2);
}

static void
check_rows(UprofSlice reply)
{
    UprofBytes bytes = { .name = "reply", .all = reply };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GArray) rows = uprof_row_list_unpack(&bytes, names);
    uint64_t total = 0;

    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        const char *name = uprof_name_text(row->name);
        g_assert(name[0] != '\0' && g_utf8_validate(name, -1, NULL) && !strchr(name, '\n'));
        total += row->self;
    }
    check_table(rows, total);
}

static void
check_findings(UprofSlice reply)
{
    g_auto(UprofDiagnosis) diagnosis;

    uprof_diagnosis_init(&diagnosis, "web-1");
    uprof_diagnosis_unpack(&diagnosis, reply);
    for (guint i = 0; i < diagnosis.findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis.findings, UprofFinding, i);
        g_assert(finding->level <= UPROF_LEVEL_FAIL);
        g_assert(g_utf8_validate(finding->topic, -1, NULL) && !strchr(finding->topic, '\n'));
        g_assert(g_utf8_validate(finding->text, -1, NULL) && !strchr(finding->text, '\n'));
    }
}

static void
check_lines(UprofSlice reply)
{
    g_autoptr(GString) text = g_string_new(NULL);

    uprof_text_append_lines(text, reply);
    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEADER || size - HEADER > sizeof(input))
        return;
    const size_t len = size - HEADER;
    const unsigned n_vcpus = data[1] % (VCPUS_MAX + 1);

    memset(&input, 0,
           MAX(sizeof(UprofLinks) + VCPUS_MAX * sizeof(UprofLinksVcpu), sizeof(UprofChainTell)));
    memcpy(input.bytes, data + HEADER, len);
    switch (data[0] % 10) {
    case 0:
        check_reads(len);
        break;
    case 1:
        check_file(len);
        break;
    case 2:
        check_notice(len);
        break;
    case 3:
        check_links(len, n_vcpus);
        break;
    case 4:
        if (uprof_worker_message_has_window(&input, len, n_vcpus))
            g_assert(input.window.vcpu < n_vcpus && input.window.wanted > 0);
        break;
    case 5:
        check_outcome((UprofSlice){ data + HEADER, len });
        break;
    case 6:
        check_rows((UprofSlice){ data + HEADER, len });
        break;
    case 7:
        check_lines((UprofSlice){ data + HEADER, len });
        break;
    case 8:
        check_findings((UprofSlice){ data + HEADER, len });
        break;
    default:
        check_chain(len);
        break;
    }
}
