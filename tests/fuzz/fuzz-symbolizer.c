/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names for the addresses of a profile, and the instructions of one function. The input is a
 * sidecar, a NUL, and frames, one a line. Two files are symbol files: one has a build-id, the other
 * has none. Modules are found by build-id.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "check-outputs.h"
#include "memory-file.h"
#include "symbol-elf.h"
#include "uprof/regular-file.h"
#include "uprof/sidecar.h"
#include "uprof/symbolizer.h"

enum { FRAMES_MAX = 200, TEXT_GVA = 0x1000, TEXT_LEN = 0x800 };

/* Each input reads two files, with a cache for each. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 100,
        .us_per_kib = 20 * 1000,
        .base_kib = 8 * 1024,
        .bytes_per_byte = 2048,
        .n_mutations = 200,
    };
}

static GByteArray *
make_file(bool has_id)
{
    static const char id[] = "\4\0\0\0\x08\0\0\0\3\0\0\0GNU\0abcdefgh";
    static const uint8_t text[TEXT_LEN] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 };
    static const ElfSymbol symbols[] = { { "main", TEXT_GVA, 0x100, true },
                                         { "_ZN1a1bEv", TEXT_GVA + 0x100, 0x80, true },
                                         { "strange \x1b;\n", TEXT_GVA + 0x200, 0, false } };
    const ElfExtra note = { ".note.gnu.build-id", 7, 2, 0x3000, id, sizeof(id) - 1 };
    const ElfPlan plan = { .entry = TEXT_GVA,
                           .text_gva = TEXT_GVA,
                           .text = text,
                           .text_len = sizeof(text),
                           .extras = &note,
                           .n_extras = has_id ? 1 : 0,
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols) };

    return symbol_elf_new(&plan);
}

static GByteArray *with_id, *without_id;

static int
open_stub(const UprofFileRequest *request, void *data)
{
    const GByteArray *file = strcmp(request->path, "/app") == 0            ? with_id
                             : strcmp(request->path, "/app2") == 0         ? without_id
                             : strstr(request->path, "/61/62636465666768") ? with_id
                                                                           : NULL;

    g_assert(request->kind == UPROF_FILE_REGULAR && request->path[0] == '/');
    if (file)
        return memory_file_open((UprofSlice){ file->data, file->len });
    errno = ENOENT;
    return -1;
}

static UprofSymbolizer *
make_symbolizer(UprofNames *names)
{
    static UprofSymbolFile first = { .path = (char *)"/app" };
    static UprofSymbolFile second = { .path = (char *)"/app2", .base = 0x10000, .is_moved = true };
    static const char *const folders[] = { "/debug", NULL };
    g_autoptr(GPtrArray) files = g_ptr_array_new();
    const UprofSymbolSettings settings = { .files = files, .config = { .debug_folders = folders } };
    g_autoptr(GError) error = NULL;

    g_ptr_array_add(files, &first);
    g_ptr_array_add(files, &second);
    UprofSymbolizer *symbolizer = uprof_symbolizer_new(&settings, names, "x86_64", &error);
    if (!symbolizer)
        g_error("%s", error->message);
    return symbolizer;
}

static void
check_name(const UprofName *name)
{
    const char *text = uprof_name_text(name);

    g_assert(text[0] != '\0' && g_utf8_validate(text, -1, NULL));
    for (const char *c = text; *c; c++)
        g_assert((uint8_t)*c >= ' ' && *c != 0x7f && *c != ';');
}

static void
check_notice(UprofNoticeKind kind, const char *text, void *data)
{
    g_assert(g_utf8_validate(text, -1, NULL) && !strchr(text, '\x1b'));
}

static void
check_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    for (unsigned i = 0; i < n; i++)
        check_name(frames[i]);
    *(uint64_t *)data += weight;
}

/* Returns: (transfer full): a profile with a stack of each frame, and its name */
static UprofProfile *
name_frames(UprofSymbolizer *symbolizer, UprofNames *names, UprofHotPlaces *places,
            UprofSlice lines)
{
    UprofProfile *profile = uprof_profile_new(names, NULL, false);
    UprofScan scan = { .name = "frames", .rest = lines };
    UprofSlice line;

    for (unsigned i = 0; i < FRAMES_MAX && uprof_scan_line(&scan, &line); i++) {
        const UprofName *frame = uprof_names_read_back(names, line);
        const UprofName *name = uprof_symbolizer_name_frame(symbolizer, frame);
        check_name(name);
        g_assert(uprof_symbolizer_name_frame(symbolizer, frame) == name);
        uprof_profile_add(profile, (const UprofName *const[]){ frame, name }, 2, 1);
        uprof_symbolizer_annotate(symbolizer, frame, places, 1);
    }
    return profile;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    const UprofNotices notices = { check_notice, NULL };
    uint64_t sum = 0;

    if (!end)
        return;
    if (!with_id) {
        with_id = make_file(true);
        without_id = make_file(false);
        uprof_regular_file_delegate(open_stub, NULL);
    }
    const UprofSlice facts = { data, (size_t)(end - data) };
    const UprofSlice lines = { end + 1, size - facts.len - 1 };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_sidecar_parse("facts", facts, NULL);
    g_autoptr(UprofSymbolizer) symbolizer = make_symbolizer(names);
    uprof_symbolizer_begin_profile(symbolizer, run);
    g_autoptr(UprofHotPlaces) places = uprof_hot_places_new("main", NULL);
    UprofProfile *profile = name_frames(symbolizer, names, places, lines);
    const uint64_t total = uprof_profile_total(profile);

    g_autoptr(UprofProfile) named = uprof_symbolizer_end(symbolizer, profile, &notices);
    uprof_profile_walk(named, check_stack, &sum);
    g_assert(sum == total);
    g_autoptr(UprofRun) no_facts = uprof_run_new();
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(places, uprof_symbolizer_sym(symbolizer));
    check_annotation(annotation, no_facts);
    g_assert(uprof_annotation_self(annotation) <= total);
    uprof_symbolizer_is_refused(symbolizer);
}
