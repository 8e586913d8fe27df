/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes a function from its start, one instruction after the other. A sample says for certain
 * where an instruction begins, so that the decoding goes on there if it has come to another result.
 */
#include "hot-places-priv.h"

#include "uprof/clock.h"
#include "uprof/x86-text.h"

#include <inttypes.h>

enum { SWEEP_BYTES_MAX = 1024 * 1024 }; /* of a function that are decoded in a row */

#define BAD_TEXT "(bad)" /* as objdump */

typedef struct {
    uint64_t address; /* symbol address */
    uint64_t samples;
    bool has_text;
    UprofX86Text text;
} Row;

typedef struct {
    const UprofHotPlaces *places;     /* borrowed */
    UprofSym *sym;                    /* borrowed */
    UprofAnnotation *annotation;      /* borrowed */
    uint64_t begun_ns;                /* processor time of this process at the start */
    unsigned n_insns;                 /* of all functions */
    const UprofHotPlace *next, *last; /* the next place of the function; behind its last one */
    uint64_t end;                     /* symbol address behind what is decoded in a row */
    GArray *rows;                     /* of Row, of this function; owned */
} Annotating;

/* The number of an instruction of aarch64, as binutils write what they do not know. */
static void
write_arm_insn(UprofX86Text *text, const uint8_t *bytes)
{
    text->len = sizeof(uint32_t);
    g_snprintf(text->text, sizeof(text->text), ".inst 0x%08" PRIx32, uprof_read_le32(bytes));
}

/* Returns: false if the bytes at the row's address are not known */
static bool
decode_row(const Annotating *annotating, Row *row)
{
    UprofSymPlace place;
    UprofHotCode code;

    uprof_sym_place(annotating->sym, row->address, &place);
    uprof_hot_places_code(annotating->places, annotating->sym, row->address, &code);
    if (code.len == 0)
        return false;
    row->has_text = true;
    if (uprof_sym_arch(annotating->sym)->family == UPROF_FAMILY_ARM && code.len >= sizeof(uint32_t))
        write_arm_insn(&row->text, code.bytes);
    else if (!uprof_x86_text((UprofSlice){ code.bytes, code.len }, place.link_address,
                             code.word_bytes, &row->text))
        row->text = (UprofX86Text){ .len = 1, .text = BAD_TEXT };
    return true;
}

static void
add_row(Annotating *annotating, Row *row)
{
    if (annotating->next < annotating->last && annotating->next->address == row->address)
        row->samples = annotating->next++->samples;
    g_array_append_val(annotating->rows, *row);
    annotating->n_insns++;
}

/* Returns: the next address with a sample; UINT64_MAX if there is none */
static uint64_t
get_next(const Annotating *annotating)
{
    return annotating->next < annotating->last ? annotating->next->address : UINT64_MAX;
}

/* Instructions with samples always have room, because there is a limit of places. */
static bool
has_room(const Annotating *annotating)
{
    return annotating->n_insns < UPROF_ANNOTATE_INSNS_MAX;
}

/* Adds the row at @address. Returns: where the next row is; UINT64_MAX behind the last one */
static uint64_t
step_row(Annotating *annotating, uint64_t address)
{
    const bool is_sampled = address == get_next(annotating);
    Row row = { .address = address };

    if (!decode_row(annotating, &row)) {
        if (is_sampled)
            add_row(annotating, &row);
        return get_next(annotating);
    }
    const uint64_t behind = address + row.text.len;
    if (!is_sampled && get_next(annotating) < behind)
        row.text = (UprofX86Text){ .len = 1, .text = BAD_TEXT };
    add_row(annotating, &row);
    const uint64_t next = get_next(annotating);
    const bool goes_on = behind > address && behind < annotating->end && has_room(annotating);
    return goes_on ? MIN(behind, next) : next;
}

/*
 * Returns: (transfer full) (nullable): the function to which the row leads, with the distance from
 * its start; %NULL if it is @function
 */
static char *
name_callee(const Annotating *annotating, const Row *row, uint64_t link_address,
            const UprofHotPlace *function)
{
    const uint64_t target = row->address + (row->text.target - link_address);

    if (!row->text.has_target)
        return NULL;
    const UprofSymAnswer answer = uprof_sym_find(annotating->sym, target, false);
    if (answer.kind != UPROF_SYM_NAMED || answer.start == function->start)
        return NULL;
    const uint64_t distance = target - answer.start;
    g_autofree char *offset =
        distance > 0 ? g_strdup_printf("+0x%" G_GINT64_MODIFIER "x", distance) : g_strdup("");
    return g_strconcat(uprof_name_text(answer.name), offset, NULL);
}

/*
 * All functions together have the time for lines. If there are too many instructions, only those
 * with samples get lines.
 *
 * Returns: (transfer full): by row: (nullable)
 */
static const UprofName **
find_lines(const Annotating *annotating)
{
    const uint64_t spent_ms = (uprof_clock_cpu_ns() - annotating->begun_ns) / UPROF_NS_PER_MS;
    const guint n_rows = annotating->rows->len;
    const UprofName **lines = g_new0(const UprofName *, n_rows);
    g_autofree const UprofName **found = g_new0(const UprofName *, n_rows);
    g_autofree uint64_t *addresses = g_new(uint64_t, n_rows);
    g_autofree guint *rows = g_new(guint, n_rows);
    unsigned n = 0;

    for (guint i = 0; i < n_rows; i++) {
        const Row *row = &g_array_index(annotating->rows, Row, i);
        if (n_rows > UPROF_SYM_LINES_MAX && row->samples == 0)
            continue;
        addresses[n] = row->address;
        rows[n++] = i;
    }
    if (spent_ms < UPROF_SYM_RESOLVE_MS)
        uprof_sym_lines(annotating->sym, addresses, n, UPROF_SYM_RESOLVE_MS - (unsigned)spent_ms,
                        found);
    for (unsigned i = 0; i < n; i++)
        lines[rows[i]] = found[i];
    return lines;
}

static void
keep_rows(Annotating *annotating, const UprofHotPlace *place)
{
    g_autofree const UprofName **lines = find_lines(annotating);
    UprofAnnotatedFunction *function = NULL;

    for (guint i = 0; i < annotating->rows->len; i++) {
        const Row *row = &g_array_index(annotating->rows, Row, i);
        UprofSymPlace at;
        uprof_sym_place(annotating->sym, row->address, &at);
        if (!function)
            function = uprof_annotation_begin(annotating->annotation, at.image,
                                              at.link_address - (row->address - place->start));
        g_autofree char *callee = name_callee(annotating, row, at.link_address, place);
        const UprofAnnotatedInsn insn = {
            .address = at.link_address,
            .samples = row->samples,
            .text = row->has_text ? row->text.text : NULL,
            .callee = callee,
            .line = lines[i] ? uprof_name_text(lines[i]) : NULL,
        };
        uprof_annotation_add(annotating->annotation, function, &insn);
    }
}

/* @places: @n places of one function */
static void
annotate_function(Annotating *annotating, const UprofHotPlace *places, guint n)
{
    const uint64_t size = MIN(places->size, (uint64_t)SWEEP_BYTES_MAX);
    uint64_t address = has_room(annotating) ? places->start : places->address;

    annotating->next = places;
    annotating->last = places + n;
    annotating->end = places->start + size;
    annotating->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    while (address != UINT64_MAX)
        address = step_row(annotating, address);
    keep_rows(annotating, places);
    g_array_unref(annotating->rows);
}

UprofAnnotation *
uprof_hot_places_annotate(const UprofHotPlaces *places, UprofSym *sym)
{
    g_autoptr(GArray) list = uprof_hot_places_list(places, sym);
    UprofAnnotation *annotation = uprof_annotation_new();
    Annotating annotating = {
        .places = places, .sym = sym, .annotation = annotation, .begun_ns = uprof_clock_cpu_ns()
    };
    const UprofHotPlace *all = (const UprofHotPlace *)(void *)list->data;

    annotation->n_left_out = uprof_hot_places_left_out(places);
    for (guint i = 0, n; i < list->len; i += n) {
        for (n = 1; i + n < list->len && all[i + n].start == all[i].start;)
            n++;
        annotate_function(&annotating, &all[i], n);
    }
    uprof_annotation_sort(annotation);
    return annotation;
}
