/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/annotation.h"

static void
add_insn(UprofAnnotation *annotation, UprofAnnotatedFunction *function, uint64_t samples,
         const char *line)
{
    const UprofAnnotatedInsn insn = { .samples = samples, .text = "nop", .line = line };

    uprof_annotation_add(annotation, function, &insn);
}

static void
test_functions(void)
{
    g_autoptr(UprofAnnotation) annotation = uprof_annotation_new();
    UprofAnnotatedFunction *second = uprof_annotation_begin(annotation, "[app]", 0x2000);
    UprofAnnotatedFunction *first = uprof_annotation_begin(annotation, NULL, 0x1000);
    UprofAnnotatedFunction *hottest = uprof_annotation_begin(annotation, "[app2]", 0x3000);

    add_insn(annotation, first, 1, NULL);
    add_insn(annotation, second, 1, NULL);
    add_insn(annotation, hottest, 2, NULL);
    add_insn(annotation, hottest, 5, NULL);
    uprof_annotation_sort(annotation);
    g_assert_true(annotation->functions->pdata[0] == hottest);
    g_assert_true(annotation->functions->pdata[1] == first);
    g_assert_true(annotation->functions->pdata[2] == second);
    g_assert_cmpuint(hottest->self, ==, 7);
    g_assert_cmpuint(uprof_annotation_self(annotation), ==, 9);
}

static void
assert_line(const GArray *lines, guint i, const char *line, uint64_t samples)
{
    const UprofAnnotatedLine *row = &g_array_index(lines, UprofAnnotatedLine, i);

    g_assert_cmpuint(i, <, lines->len);
    g_assert_cmpstr(row->line, ==, line);
    g_assert_cmpuint(row->samples, ==, samples);
}

/* The same line in several places, and in several functions, is one row. */
static void
test_lines(void)
{
    g_autoptr(UprofAnnotation) annotation = uprof_annotation_new();
    UprofAnnotatedFunction *one = uprof_annotation_begin(annotation, "[app]", 0x1000);
    UprofAnnotatedFunction *other = uprof_annotation_begin(annotation, "[app]", 0x2000);
    char text[] = "a.c:2";

    add_insn(annotation, one, 3, "a.c:1");
    add_insn(annotation, one, 2, text);
    text[4] = '1'; /* the texts are copies */
    add_insn(annotation, one, 0, "a.c:9");
    add_insn(annotation, one, 4, NULL);
    add_insn(annotation, other, 5, "a.c:2");
    g_autoptr(GArray) lines = uprof_annotation_lines(annotation);
    g_assert_cmpuint(lines->len, ==, 3);
    assert_line(lines, 0, "a.c:2", 7);
    assert_line(lines, 1, NULL, 4);
    assert_line(lines, 2, "a.c:1", 3);
}

static void
test_no_line(void)
{
    g_autoptr(UprofAnnotation) annotation = uprof_annotation_new();
    g_autoptr(GArray) none = uprof_annotation_lines(annotation);

    g_assert_cmpuint(none->len, ==, 0);
    add_insn(annotation, uprof_annotation_begin(annotation, "[app]", 0x1000), 3, NULL);
    g_autoptr(GArray) unknown = uprof_annotation_lines(annotation);
    g_assert_cmpuint(unknown->len, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/annotation/functions", test_functions);
    g_test_add_func("/annotation/lines", test_lines);
    g_test_add_func("/annotation/no-line", test_no_line);
    return g_test_run();
}
