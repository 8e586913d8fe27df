/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The child walks each compile unit with wanted addresses once, and enters only functions that
 * contain wanted addresses. It looks up the ranges of an inlined function among the addresses,
 * instead of each address among the ranges.
 */
#include "lines-priv.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "uprof/child.h"
#include "uprof/sorted.h"

enum {
    DEPTH_MAX = 128, /* levels of entries inside each other */
    ENTRIES_MAX = 100 * 1000 * 1000,
    RANGES_MAX = 1000 * 1000, /* of one entry */
    TEXT_BYTES_MAX = 4096,
    MEMORY_MAX_MIB = 2048,
    TIME_MAX_MS = 20 * 1000,
    ANSWER_BYTES_MAX = 256 * 1024 * 1024,
};

/*
 * ---- In the child ----
 *
 * The child may call only those functions of GLib that need nothing but malloc(). Slices, and so
 * arrays, have a lock that another thread may have held at the fork.
 */

/* An inlined function. */
typedef struct {
    const char *name;
    Dwarf_Off entry;
    const char *call_file;
    uint32_t call_line;
} Inlined;

/* The inlined functions around an address, outermost first. */
typedef struct {
    unsigned n;
    Inlined inlined[UPROF_LINES_FRAMES_MAX - 1];
} Chain;

typedef struct {
    UprofChildOutput *output;
    UprofSlice elf;
    const uint64_t *addresses;
    unsigned n;
    bool *done;     /* per address */
    unsigned *hits; /* room for as many */
    unsigned n_entries;
} Job;

typedef struct {
    Job *job;
    Dwarf_Die die;
    unsigned *hits; /* wanted addresses in the unit, rising */
    unsigned n_hits;
    Chain *chains;
} Unit;

static void
put_number(UprofChildOutput *output, uint64_t value, size_t len)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    uprof_child_put(output, &bytes, len);
}

static void
put_text(UprofChildOutput *output, const char *text)
{
    const size_t len = text ? strnlen(text, TEXT_BYTES_MAX) : 0;

    put_number(output, len, 2);
    uprof_child_put(output, text ? text : "", len);
}

/* Returns: the first hit at or behind @address */
static unsigned
find_hit(const Unit *unit, uint64_t address)
{
    unsigned low = 0, high = unit->n_hits;

    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (unit->job->addresses[unit->hits[middle]] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const char *
find_name(Dwarf_Die *die)
{
    static const unsigned wanted[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };

    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++) {
        Dwarf_Attribute attribute;
        const char *name =
            dwarf_formstring(dwarf_attr_integrate(die, wanted[i], &attribute) ? &attribute : NULL);
        if (name && name[0])
            return name;
    }
    return "?";
}

static Dwarf_Word
find_number(Dwarf_Die *die, unsigned wanted)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;

    if (!dwarf_attr(die, wanted, &attribute) || dwarf_formudata(&attribute, &value) != 0)
        return 0;
    return value;
}

static Inlined
describe_inlined(Unit *unit, Dwarf_Die *die)
{
    const Dwarf_Word file = find_number(die, DW_AT_call_file);
    Inlined inlined = { .name = find_name(die),
                        .entry = dwarf_dieoffset(die),
                        .call_line = (uint32_t)find_number(die, DW_AT_call_line) };
    Dwarf_Files *files;
    size_t n;

    if (dwarf_getsrcfiles(&unit->die, &files, &n) == 0 && file < n)
        inlined.call_file = dwarf_filesrc(files, file, NULL, NULL);
    return inlined;
}

static void
add_inlined(Chain *chain, const Inlined *inlined)
{
    /* Ranges of one function may overlap. */
    if (chain->n > 0 && chain->inlined[chain->n - 1].entry == inlined->entry)
        return;
    if (chain->n < G_N_ELEMENTS(chain->inlined))
        chain->inlined[chain->n++] = *inlined;
}

/* @unless_said: the answer if @die has no ranges. Returns: true if it covers wanted addresses */
static bool
visit_code(Unit *unit, Dwarf_Die *die, bool is_inlined, bool unless_said)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    bool any = false, is_said = false;
    Inlined inlined = { 0 };

    for (unsigned i = 0; i < RANGES_MAX; i++) {
        at = dwarf_ranges(die, at, &base, &start, &end);
        if (at <= 0)
            break;
        is_said = true;
        for (unsigned hit = find_hit(unit, start); hit < unit->n_hits; hit++) {
            if (unit->job->addresses[unit->hits[hit]] >= end)
                break;
            if (is_inlined && !any)
                inlined = describe_inlined(unit, die);
            any = true;
            if (is_inlined)
                add_inlined(&unit->chains[hit], &inlined);
        }
    }
    return is_said ? any : unless_said;
}

/* Returns: true if entries below @die must be visited */
static bool
visit_entry(Unit *unit, Dwarf_Die *die)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return true;
    case DW_TAG_subprogram:
        return visit_code(unit, die, false, false);
    case DW_TAG_inlined_subroutine:
        return visit_code(unit, die, true, false);
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
        return visit_code(unit, die, false, true);
    default:
        return false;
    }
}

static void
walk_entries(Unit *unit)
{
    Dwarf_Die path[DEPTH_MAX];
    unsigned depth = 0;

    if (dwarf_child(&unit->die, &path[0]) != 0)
        return;
    while (unit->job->n_entries++ < ENTRIES_MAX) {
        if (visit_entry(unit, &path[depth]) && depth + 1 < DEPTH_MAX &&
            dwarf_child(&path[depth], &path[depth + 1]) == 0) {
            depth++;
            continue;
        }
        while (dwarf_siblingof(&path[depth], &path[depth]) != 0)
            if (depth-- == 0)
                return;
    }
}

/*
 * answer = { u32 address, u8 n, n * { u16 len, name, u16 len, file, u32 line } }
 *
 * The innermost frame comes first.
 */
static void
put_hit(Unit *unit, unsigned hit)
{
    const unsigned address = unit->hits[hit];
    const Chain *chain = &unit->chains[hit];
    UprofChildOutput *output = unit->job->output;
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, unit->job->addresses[address]);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;

    if (line)
        dwarf_lineno(line, &number);
    put_number(output, address, 4);
    put_number(output, chain->n + 1, 1);
    for (unsigned i = chain->n + 1; i-- > 0;) {
        put_text(output, i > 0 ? chain->inlined[i - 1].name : "");
        put_text(output, file);
        put_number(output, (uint32_t)number, 4);
        if (i > 0) {
            file = chain->inlined[i - 1].call_file;
            number = (int)chain->inlined[i - 1].call_line;
        }
    }
}

/* Collects the wanted addresses in [@start, @end) that no unit has claimed yet. */
static void
collect_hits(Unit *unit, uint64_t start, uint64_t end)
{
    Job *job = unit->job;
    size_t at = uprof_sorted_count_below(job->addresses, job->n, sizeof(uint64_t), start);

    for (; at < job->n && job->addresses[at] < end; at++) {
        if (job->done[at])
            continue;
        job->done[at] = true;
        unit->hits[unit->n_hits++] = (unsigned)at;
    }
}

static void
read_unit(Job *job, const Dwarf_Die *die)
{
    Unit unit = { .job = job, .die = *die, .hits = job->hits };
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;

    for (unsigned i = 0; i < RANGES_MAX; i++) {
        at = dwarf_ranges(&unit.die, at, &base, &start, &end);
        if (at <= 0)
            break;
        collect_hits(&unit, start, end);
    }
    if (unit.n_hits == 0)
        return;
    qsort(unit.hits, unit.n_hits, sizeof(unit.hits[0]), uprof_compare_u32);
    unit.chains = g_new0(Chain, unit.n_hits);
    walk_entries(&unit);
    for (unsigned hit = 0; hit < unit.n_hits; hit++)
        put_hit(&unit, hit);
    g_free(unit.chains);
}

static void
read_dwarf(UprofChildOutput *output, void *data)
{
    Job *job = data;
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;

    job->output = output;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)job->elf.data, job->elf.len);
    Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    while (dwarf && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
        if (dwarf_tag(&die) == DW_TAG_compile_unit)
            read_unit(job, &die);
    dwarf_end(dwarf);
    elf_end(elf);
}

/* ---- In the parent ---- */

typedef struct {
    guint first;
    unsigned n;
} Span;

struct _UprofLines {
    GByteArray *answer;
    unsigned n;
    Span *spans;    /* per address */
    GArray *frames; /* of UprofLineFrame */
};

static bool
read_frame(UprofBytes *bytes, UprofLineFrame *frame)
{
    uint16_t len;

    return uprof_bytes_u16(bytes, &len) && uprof_bytes_take(bytes, len, &frame->name) &&
           uprof_bytes_u16(bytes, &len) && uprof_bytes_take(bytes, len, &frame->file) &&
           uprof_bytes_u32(bytes, &frame->line);
}

/* Returns: false at the end of the answer, or if it is malformed */
static bool
read_span(UprofLines *lines, UprofBytes *bytes)
{
    UprofLineFrame frames[UPROF_LINES_FRAMES_MAX];
    uint32_t address;
    uint8_t n;

    if (!uprof_bytes_u32(bytes, &address) || address >= lines->n || !uprof_bytes_u8(bytes, &n) ||
        n == 0 || n > UPROF_LINES_FRAMES_MAX)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (!read_frame(bytes, &frames[i]))
            return false;
    lines->spans[address] = (Span){ lines->frames->len, n };
    g_array_append_vals(lines->frames, frames, n);
    return true;
}

UprofLines *
uprof_lines_parse(GByteArray *answer, unsigned n)
{
    UprofBytes bytes = { .name = "lines", .all = { answer->data, answer->len } };
    UprofLines *lines = g_new0(UprofLines, 1);

    lines->answer = g_byte_array_ref(answer);
    lines->n = n;
    lines->spans = g_new0(Span, n);
    lines->frames = g_array_new(FALSE, FALSE, sizeof(UprofLineFrame));
    while (read_span(lines, &bytes))
        ;
    return lines;
}

void
uprof_lines_free(UprofLines *lines)
{
    if (!lines)
        return;
    g_byte_array_unref(lines->answer);
    g_free(lines->spans);
    g_array_unref(lines->frames);
    g_free(lines);
}

unsigned
uprof_lines_get(const UprofLines *lines, unsigned i, const UprofLineFrame **frames)
{
    g_assert(i < lines->n);
    const Span *span = &lines->spans[i];
    *frames = span->n > 0 ? &g_array_index(lines->frames, UprofLineFrame, span->first) : NULL;
    return span->n;
}

UprofLines *
uprof_lines_read(UprofSlice elf, const uint64_t *addresses, unsigned n, char **why)
{
    static const char *const reasons[] = {
        [UPROF_CHILD_DIED] = "its DWARF is damaged, or too large",
        [UPROF_CHILD_SLOW] = "its DWARF took too long to read",
        [UPROF_CHILD_WORDY] = "its DWARF gives more than the limit",
    };
    g_autofree bool *done = g_new0(bool, n + 1);
    g_autofree unsigned *hits = g_new(unsigned, n + 1);
    Job job = { .elf = elf, .addresses = addresses, .n = n, .done = done, .hits = hits };
    const UprofChildPlan plan = {
        .work = read_dwarf,
        .data = &job,
        .memory_max = (uint64_t)MEMORY_MAX_MIB << 20,
        .time_max_ms = TIME_MAX_MS,
        .answer_max = ANSWER_BYTES_MAX,
    };
    UprofChildEnd end = UPROF_CHILD_DONE;
    g_autoptr(GError) error = NULL;

    g_assert(n <= UPROF_LINES_ADDRESSES_MAX);
    g_autoptr(GByteArray) answer = uprof_child_run(&plan, &end, &error);
    *why = g_strdup(error ? error->message : end != UPROF_CHILD_DONE ? reasons[end] : NULL);
    if (!answer)
        answer = g_byte_array_new();
    return uprof_lines_parse(answer, n);
}
