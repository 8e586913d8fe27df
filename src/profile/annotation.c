/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/annotation.h"

#include "uprof/sorted.h"

enum { CHUNK_BYTES = 16 * 1024 };

static void
free_function(gpointer data)
{
    UprofAnnotatedFunction *function = data;

    g_array_unref(function->insns);
    g_free(function);
}

UprofAnnotation *
uprof_annotation_new(void)
{
    UprofAnnotation *annotation = g_new0(UprofAnnotation, 1);

    annotation->functions = g_ptr_array_new_with_free_func(free_function);
    annotation->texts = g_string_chunk_new(CHUNK_BYTES);
    return annotation;
}

void
uprof_annotation_free(UprofAnnotation *annotation)
{
    if (!annotation)
        return;
    g_ptr_array_unref(annotation->functions);
    g_string_chunk_free(annotation->texts);
    g_free(annotation);
}

/* Equal texts are kept once, so that their pointers are equal, too. */
static const char *
keep_text(UprofAnnotation *annotation, const char *text)
{
    return text ? g_string_chunk_insert_const(annotation->texts, text) : NULL;
}

UprofAnnotatedFunction *
uprof_annotation_begin(UprofAnnotation *annotation, const char *image, uint64_t start)
{
    UprofAnnotatedFunction *function = g_new0(UprofAnnotatedFunction, 1);

    function->image = keep_text(annotation, image);
    function->start = start;
    function->insns = g_array_new(FALSE, FALSE, sizeof(UprofAnnotatedInsn));
    g_ptr_array_add(annotation->functions, function);
    return function;
}

void
uprof_annotation_add(UprofAnnotation *annotation, UprofAnnotatedFunction *function,
                     const UprofAnnotatedInsn *insn)
{
    const UprofAnnotatedInsn kept = {
        .address = insn->address,
        .samples = insn->samples,
        .text = keep_text(annotation, insn->text),
        .callee = keep_text(annotation, insn->callee),
        .line = keep_text(annotation, insn->line),
    };

    g_array_append_val(function->insns, kept);
    function->self += insn->samples;
}

static int
compare_functions(gconstpointer one, gconstpointer other)
{
    const UprofAnnotatedFunction *const *a = one, *const *b = other;

    if ((*a)->self != (*b)->self)
        return UPROF_COMPARE((*b)->self, (*a)->self);
    return UPROF_COMPARE((*a)->start, (*b)->start);
}

void
uprof_annotation_sort(UprofAnnotation *annotation)
{
    g_ptr_array_sort(annotation->functions, compare_functions);
}

uint64_t
uprof_annotation_self(const UprofAnnotation *annotation)
{
    uint64_t self = 0;

    for (guint i = 0; i < annotation->functions->len; i++)
        self += ((const UprofAnnotatedFunction *)g_ptr_array_index(annotation->functions, i))->self;
    return self;
}

static void
count_line(GHashTable *counts, const UprofAnnotatedInsn *insn)
{
    UprofAnnotatedLine *line = g_hash_table_lookup(counts, insn->line);

    if (!line) {
        line = g_new0(UprofAnnotatedLine, 1);
        line->line = insn->line;
        g_hash_table_insert(counts, (gpointer)insn->line, line);
    }
    line->samples += insn->samples;
}

static int
compare_lines(gconstpointer one, gconstpointer other)
{
    const UprofAnnotatedLine *a = one, *b = other;

    if (a->samples != b->samples)
        return UPROF_COMPARE(b->samples, a->samples);
    return g_strcmp0(a->line, b->line);
}

GArray *
uprof_annotation_lines(const UprofAnnotation *annotation)
{
    g_autoptr(GHashTable) counts = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GArray *lines = g_array_new(FALSE, FALSE, sizeof(UprofAnnotatedLine));
    GHashTableIter iter;
    gpointer line;
    bool any_known = false;

    for (guint i = 0; i < annotation->functions->len; i++) {
        const UprofAnnotatedFunction *function = g_ptr_array_index(annotation->functions, i);
        for (guint j = 0; j < function->insns->len; j++)
            count_line(counts, &g_array_index(function->insns, UprofAnnotatedInsn, j));
    }
    g_hash_table_iter_init(&iter, counts);
    while (g_hash_table_iter_next(&iter, NULL, &line)) {
        any_known |= ((const UprofAnnotatedLine *)line)->line != NULL;
        if (((const UprofAnnotatedLine *)line)->samples > 0)
            g_array_append_vals(lines, line, 1);
    }
    g_array_sort(lines, compare_lines);
    if (!any_known)
        g_array_set_size(lines, 0);
    return lines;
}
