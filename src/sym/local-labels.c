/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "local-labels-priv.h"

#include "call-targets-priv.h"

#include "uprof/sorted.h"
#include "uprof/x86-insn.h"

/* A symbol, and what becomes of it. */
typedef struct {
    uint64_t start;
    uint64_t end; /* the first address behind it; @start if the size is not known */
    guint number; /* in the list of symbols */
    bool is_label;
    bool is_code;
    bool is_inside; /* a label: part of a function */
} Entry;

typedef struct {
    GArray *entries; /* of Entry, by address; owned */
    const GArray *ranges;
    unsigned word_bytes;
    size_t n_bytes_left; /* of code that may still be read */
    GArray **targets;    /* of uint64_t: of direct calls; %NULL until needed */
} Labels;

static void
clear_labels(Labels *labels)
{
    g_array_unref(labels->entries);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Labels, clear_labels)

/* At an address labels come last. */
static int
compare_entries(gconstpointer a, gconstpointer b)
{
    const Entry *one = a, *other = b;

    if (one->start != other->start)
        return UPROF_COMPARE(one->start, other->start);
    if (one->is_label != other->is_label)
        return one->is_label ? 1 : -1;
    return UPROF_COMPARE(one->number, other->number);
}

static Entry *
get_entry(const Labels *labels, guint i)
{
    return &g_array_index(labels->entries, Entry, i);
}

static bool
has_label(const GArray *symbols)
{
    for (guint i = 0; i < symbols->len; i++)
        if (g_array_index(symbols, UprofSymbol, i).is_label)
            return true;
    return false;
}

static void
add_entries(Labels *labels, const GArray *symbols)
{
    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        const Entry entry = { .start = symbol->start,
                              .end = symbol->start + MIN(symbol->size, UINT64_MAX - symbol->start),
                              .number = i,
                              .is_label = symbol->is_label,
                              .is_code = symbol->code };
        g_array_append_val(labels->entries, entry);
    }
    g_array_sort(labels->entries, compare_entries);
}

static bool
is_called(Labels *labels, uint64_t address)
{
    if (!*labels->targets)
        *labels->targets = uprof_call_targets_find(labels->ranges, labels->word_bytes);
    const GArray *targets = *labels->targets;
    const size_t n = uprof_sorted_count_up_to((const uint64_t *)(const void *)targets->data,
                                              targets->len, sizeof(uint64_t), address);

    return n > 0 && g_array_index(targets, uint64_t, n - 1) == address;
}

/* Notes that code branches to @address, where entries @first to @end - 1 may have labels. */
static void
note_reached(const Labels *labels, guint first, guint end, uint64_t address)
{
    guint i = first + (guint)uprof_sorted_count_below(&get_entry(labels, first)->start, end - first,
                                                      sizeof(Entry), address);

    /* all labels at one address are noted together, so hostile files cannot make this long */
    for (; i < end && get_entry(labels, i)->start == address && !get_entry(labels, i)->is_inside;
         i++)
        get_entry(labels, i)->is_inside = true;
}

/* Does the code go on behind @insn? @before: did it go on before? A call may not return. */
static bool
goes_on(const UprofX86Insn *insn, bool before)
{
    switch (insn->kind) {
    case UPROF_X86_NOP:
        return before;
    case UPROF_X86_CALL:
    case UPROF_X86_CALL_ANY:
    case UPROF_X86_JUMP:
    case UPROF_X86_JUMP_FIXED:
    case UPROF_X86_JUMP_TABLE:
    case UPROF_X86_JUMP_ANY:
    case UPROF_X86_RETURN:
    case UPROF_X86_HALT:
    case UPROF_X86_IRET:
    case UPROF_X86_STOP:
        return false;
    default:
        return true;
    }
}

static void
keep_labels(const Labels *labels, guint first, guint end)
{
    for (guint i = first; i < end; i++)
        get_entry(labels, i)->is_inside = false;
}

/*
 * Is @label part of the function without a size at @start?
 * @at: the address that the reading has reached
 * @is_going_on: the code before @at goes on at @at
 */
static bool
is_of_function(Labels *labels, const Entry *label, uint64_t start, uint64_t at, bool is_going_on)
{
    if (label->start == start)
        return true; /* another name of the function */
    return (label->is_inside || (is_going_on && label->start == at)) &&
           !is_called(labels, label->start);
}

/*
 * Reads the code from the function without a size at @owner to the last of its labels, which are
 * entries @first to @end - 1. The function ends at the first label that is not part of it.
 */
static void
read_function(Labels *labels, guint owner, guint first, guint end)
{
    const uint64_t start = get_entry(labels, owner)->start;
    const uint64_t last = get_entry(labels, end - 1)->start;
    const UprofCodeRange *range = uprof_code_range_find(labels->ranges, start);
    bool is_going_on = true;
    UprofX86Insn insn;

    if (!range || last - start > UPROF_LABEL_REACH_BYTES_MAX ||
        last - start > labels->n_bytes_left || last - range->start >= range->bytes.len)
        return;
    labels->n_bytes_left -= last - start;
    for (uint64_t at = start; first < end; at += insn.len) {
        for (; first < end && get_entry(labels, first)->start <= at; first++) {
            Entry *label = get_entry(labels, first);
            label->is_inside = is_of_function(labels, label, start, at, is_going_on);
            if (!label->is_inside) {
                keep_labels(labels, first, end);
                return;
            }
        }
        const uint64_t offset = at - range->start;
        const UprofSlice code = { (const char *)range->bytes.data + offset,
                                  range->bytes.len - offset };
        if (first == end || !uprof_x86_insn(code, labels->word_bytes, &insn))
            break;
        if (insn.kind == UPROF_X86_JUMP || insn.kind == UPROF_X86_BRANCH)
            note_reached(labels, first, end, at + insn.len + (uint64_t)insn.value);
        is_going_on = goes_on(&insn, is_going_on);
    }
    keep_labels(labels, first, end);
}

/* Labels in functions with a size. Returns: true if other labels are left */
static bool
find_covered(Labels *labels)
{
    uint64_t end = 0;
    bool has_others = false;

    for (guint i = 0; i < labels->entries->len; i++) {
        Entry *entry = get_entry(labels, i);
        if (!entry->is_label && entry->is_code)
            end = MAX(end, entry->end);
        entry->is_inside = entry->is_label && entry->start < end;
        has_others |= entry->is_label && !entry->is_inside;
    }
    return has_others;
}

static void
find_reached(Labels *labels)
{
    for (guint i = 0; i < labels->entries->len;) {
        const Entry *owner = get_entry(labels, i);
        guint first = i + 1, end;

        /* another name of the function */
        for (; first < labels->entries->len && get_entry(labels, first)->start == owner->start &&
               !get_entry(labels, first)->is_label;
             first++)
            ;
        for (end = first; end < labels->entries->len && get_entry(labels, end)->is_label &&
                          !get_entry(labels, end)->is_inside;
             end++)
            ;
        if (end > first && !owner->is_label && owner->is_code && owner->end == owner->start)
            read_function(labels, i, first, end);
        i = MAX(end, i + 1);
    }
}

void
uprof_local_labels_drop(GArray *symbols, const GArray *ranges, unsigned word_bytes,
                        GArray **targets)
{
    g_auto(Labels) labels = { .ranges = ranges,
                              .word_bytes = word_bytes,
                              .targets = targets,
                              .n_bytes_left = UPROF_LABEL_CODE_BYTES_MAX };
    guint n = 0;

    labels.entries = g_array_new(FALSE, FALSE, sizeof(Entry));
    if (!has_label(symbols))
        return;
    add_entries(&labels, symbols);
    if (find_covered(&labels) && word_bytes != 0)
        find_reached(&labels);
    g_autofree bool *is_dropped = g_new0(bool, symbols->len);
    for (guint i = 0; i < labels.entries->len; i++)
        is_dropped[get_entry(&labels, i)->number] = get_entry(&labels, i)->is_inside;
    for (guint i = 0; i < symbols->len; i++)
        if (!is_dropped[i])
            g_array_index(symbols, UprofSymbol, n++) = g_array_index(symbols, UprofSymbol, i);
    g_array_set_size(symbols, n);
}
