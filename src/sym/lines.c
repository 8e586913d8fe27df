/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks each compile unit with wanted addresses once, and enters only functions that contain wanted
 * addresses. Searches the addresses for the ranges of an inlined function, instead of the ranges
 * for each address.
 */
#include "lines-priv.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "uprof/clock.h"
#include "uprof/sorted.h"

enum {
    DEPTH_MAX = 128, /* levels of entries inside each other */
    STEPS_MAX = 1000 * 1000 * 1000,
    STEPS_OF_CHECK = 4096,    /* between two reads of the clock */
    RANGES_MAX = 1000 * 1000, /* of one entry */
    TEXT_BYTES_MAX = 4096,    /* of one name or path */
    TEXTS_BYTES_MAX = 256 * 1024 * 1024,
    CHUNK_BYTES = 64 * 1024,
};

typedef struct {
    guint first;
    unsigned n;
} Span;

struct _UprofLines {
    GStringChunk *texts; /* owned */
    size_t n_bytes;      /* in @texts */
    unsigned n;
    Span *spans;    /* by address */
    GArray *frames; /* of UprofLineFrame */
};

/* Where a function is declared. */
typedef struct {
    const char *file; /* (nullable) */
    uint32_t line;
} Declaration;

/* An inlined function. */
typedef struct {
    const char *name;
    Dwarf_Off entry;
    Declaration declared;
    const char *call_file;
    uint32_t call_line;
} Inlined;

/* The function at an address, and the inlined functions around the address, outermost first. */
typedef struct {
    Declaration declared;
    unsigned n;
    Inlined inlined[UPROF_LINES_FRAMES_MAX - 1];
} Chain;

typedef struct {
    UprofLines *lines; /* gets the results */
    const uint64_t *addresses;
    unsigned n;
    bool *done;       /* by address */
    unsigned *hits;   /* room for one hit per address */
    uint64_t n_steps; /* entries and ranges so far */
    uint64_t end_ns;  /* processor time of this process at which the work ends */
    const char *why;  /* (nullable): why the work has ended early; literal */
} Job;

typedef struct {
    Job *job;
    Dwarf_Die die;
    unsigned *hits; /* wanted addresses in the unit, rising */
    unsigned n_hits;
    Chain *chains;
} Unit;

/* Counts an entry or a range. Returns: false at a limit: then the work ends */
static bool
take_step(Job *job)
{
    if (job->why || job->n_steps++ % STEPS_OF_CHECK != 0)
        return !job->why;
    if (job->n_steps > STEPS_MAX || uprof_clock_cpu_ns() > job->end_ns)
        job->why = "its DWARF took too long to read";
    else if (job->lines->n_bytes > TEXTS_BYTES_MAX)
        job->why = "its DWARF gives more than the limit";
    return !job->why;
}

static UprofSlice
keep_text(UprofLines *lines, const char *text)
{
    const size_t len = text ? strnlen(text, TEXT_BYTES_MAX) : 0;

    lines->n_bytes += len;
    return (UprofSlice){ len > 0 ? g_string_chunk_insert_len(lines->texts, text, (gssize)len) : "",
                         len };
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

static Declaration
find_declaration(Dwarf_Die *die)
{
    Declaration declared = { .file = dwarf_decl_file(die) };
    int line;

    if (declared.file && dwarf_decl_line(die, &line) == 0 && line > 0)
        declared.line = (uint32_t)line;
    return declared;
}

static Inlined
describe_inlined(Unit *unit, Dwarf_Die *die)
{
    const Dwarf_Word file = find_number(die, DW_AT_call_file);
    Inlined inlined = { .name = find_name(die),
                        .entry = dwarf_dieoffset(die),
                        .declared = find_declaration(die),
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
visit_code(Unit *unit, Dwarf_Die *die, bool unless_said)
{
    const bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
    const bool is_function = dwarf_tag(die) == DW_TAG_subprogram;
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    bool any = false, is_said = false;
    Inlined inlined = { 0 };
    Declaration declared = { 0 };

    for (unsigned i = 0; i < RANGES_MAX && take_step(unit->job); i++) {
        at = dwarf_ranges(die, at, &base, &start, &end);
        if (at <= 0)
            break;
        is_said = true;
        for (unsigned hit = find_hit(unit, start); hit < unit->n_hits; hit++) {
            if (unit->job->addresses[unit->hits[hit]] >= end || !take_step(unit->job))
                break;
            if (is_inlined && !any)
                inlined = describe_inlined(unit, die);
            else if (is_function && !any)
                declared = find_declaration(die);
            any = true;
            if (is_inlined)
                add_inlined(&unit->chains[hit], &inlined);
            else if (is_function)
                unit->chains[hit].declared = declared;
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
    case DW_TAG_inlined_subroutine:
        return visit_code(unit, die, false);
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
        return visit_code(unit, die, true);
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
    while (take_step(unit->job)) {
        if (visit_entry(unit, &path[depth]) && depth + 1 < DEPTH_MAX &&
            dwarf_child(&path[depth], &path[depth + 1]) == 0) {
            depth++;
            continue;
        }
        while (dwarf_siblingof(&path[depth], &path[depth]) != 0)
            if (depth-- == 0 || !take_step(unit->job))
                return;
    }
}

/* The innermost frame comes first. */
static void
keep_hit(Unit *unit, unsigned hit)
{
    const unsigned address = unit->hits[hit];
    const Chain *chain = &unit->chains[hit];
    UprofLines *lines = unit->job->lines;
    Dwarf_Line *line = dwarf_getsrc_die(&unit->die, unit->job->addresses[address]);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;

    if (line)
        dwarf_lineno(line, &number);
    lines->spans[address] = (Span){ lines->frames->len, chain->n + 1 };
    for (unsigned i = chain->n + 1; i-- > 0;) {
        const Declaration declared = i > 0 ? chain->inlined[i - 1].declared : chain->declared;
        const UprofLineFrame frame = {
            .name = keep_text(lines, i > 0 ? chain->inlined[i - 1].name : ""),
            .file = keep_text(lines, file),
            .line = (uint32_t)number,
            .function_file = keep_text(lines, declared.file),
            .function_line = declared.line,
        };
        g_array_append_val(lines->frames, frame);
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

    for (unsigned i = 0; i < RANGES_MAX && take_step(job); i++) {
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
    for (unsigned hit = 0; hit < unit.n_hits && take_step(job); hit++)
        keep_hit(&unit, hit);
    g_free(unit.chains);
}

static void
read_dwarf(Job *job, UprofSlice bytes)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;

    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)bytes.data, bytes.len);
    Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    while (dwarf && take_step(job) && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
        if (dwarf_tag(&die) == DW_TAG_compile_unit)
            read_unit(job, &die);
    dwarf_end(dwarf);
    elf_end(elf);
}

void
uprof_lines_free(UprofLines *lines)
{
    if (!lines)
        return;
    g_string_chunk_free(lines->texts);
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
uprof_lines_read(UprofSlice elf, const uint64_t *addresses, unsigned n, uint64_t cpu_ns, char **why)
{
    g_autofree bool *done = g_new0(bool, n + 1);
    g_autofree unsigned *hits = g_new(unsigned, n + 1);
    UprofLines *lines = g_new0(UprofLines, 1);
    Job job = {
        .lines = lines,
        .addresses = addresses,
        .n = n,
        .done = done,
        .hits = hits,
        .end_ns = uprof_clock_cpu_ns() + cpu_ns,
    };

    g_assert(n <= UPROF_LINES_ADDRESSES_MAX);
    lines->texts = g_string_chunk_new(CHUNK_BYTES);
    lines->n = n;
    lines->spans = g_new0(Span, n + 1);
    lines->frames = g_array_new(FALSE, FALSE, sizeof(UprofLineFrame));
    read_dwarf(&job, elf);
    *why = g_strdup(job.why);
    return lines;
}
