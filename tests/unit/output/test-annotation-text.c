/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/output.h"

enum { START = 0x401000 };

static void
add_insn(UprofAnnotation *annotation, UprofAnnotatedFunction *function, uint64_t samples,
         const char *text, const char *callee, const char *line)
{
    const UprofAnnotatedInsn insn = { START + function->insns->len, samples, text, callee, line };

    uprof_annotation_add(annotation, function, &insn);
}

static UprofAnnotation *
make_annotation(void)
{
    UprofAnnotation *annotation = uprof_annotation_new();
    UprofAnnotatedFunction *function = uprof_annotation_begin(annotation, "[app]", START);

    annotation->all = 400;
    add_insn(annotation, function, 0, "push   %rbp", NULL, "a.c:1");
    add_insn(annotation, function, 150, "dec    %edi", NULL, "a.c:2");
    add_insn(annotation, function, 49, "jne    401001", NULL, "a.c:2");
    add_insn(annotation, function, 1, "call   402000", "helper+0x4", NULL);
    return annotation;
}

static char *
render(const UprofAnnotation *annotation, UprofTableStyle style)
{
    return g_string_free(uprof_annotation_render(annotation, "work", &style), FALSE);
}

static void
test_table(void)
{
    g_autoptr(UprofAnnotation) annotation = make_annotation();
    g_autofree char *text = render(annotation, (UprofTableStyle){ .rows = 15 });

    g_assert_cmpstr(text, ==,
                    "work: 200 samples in the function itself, 50.0 % of all; shares below are of "
                    "these\n"
                    "\n"
                    " share  line\n"
                    "  99.5  a.c:2\n"
                    "   0.5  no known line\n"
                    "\n"
                    "[app] from 401000 on: 200 samples\n"
                    " share  address  instruction\n"
                    "               a.c:1:\n"
                    "         401000  push   %rbp\n"
                    "               a.c:2:\n"
                    "  75.0   401001  dec    %edi\n"
                    "  24.5   401002  jne    401001\n"
                    "   0.5   401003  call   402000 <helper+0x4>\n");
}

static void
test_colors(void)
{
    g_autoptr(UprofAnnotation) annotation = make_annotation();
    g_autofree char *text = render(annotation, (UprofTableStyle){ .rows = 1, .colors = true });

    g_assert_nonnull(strstr(text, "\x1b[31m  75.0\x1b[0m   401001"));
    g_assert_nonnull(strstr(text, "\x1b[33m   0.5\x1b[0m   401003"));
    g_assert_nonnull(strstr(text, "1 more lines; -n 2 shows them all\n"));
}

/* Only instructions near samples are shown. */
static void
test_far(void)
{
    g_autoptr(UprofAnnotation) annotation = uprof_annotation_new();
    UprofAnnotatedFunction *function = uprof_annotation_begin(annotation, NULL, START);

    for (unsigned i = 0; i < 100; i++)
        add_insn(annotation, function, i == 20 || i == 40 ? 1 : 0, "nop", NULL, NULL);
    g_autofree char *text = render(annotation, (UprofTableStyle){ .rows = 15 });
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    g_assert_cmpstr(lines[2], ==, "from 401000 on: 2 samples");
    g_assert_cmpstr(lines[4], ==, "                 ... 12 without samples");
    g_assert_cmpstr(lines[5], ==, "         40100c  nop");
    g_assert_cmpstr(lines[13], ==, "  50.0   401014  nop");
    g_assert_cmpstr(lines[22], ==, "                 ... 3 without samples");
    g_assert_cmpstr(lines[31], ==, "  50.0   401028  nop");
    g_assert_cmpstr(lines[40], ==, "                 ... 51 without samples");
    g_assert_cmpstr(lines[41], ==, "");
    g_assert_null(lines[42]);
}

static void
test_no_code(void)
{
    g_autoptr(UprofAnnotation) annotation = uprof_annotation_new();

    add_insn(annotation, uprof_annotation_begin(annotation, "[app]", START), 3, NULL, NULL, NULL);
    annotation->n_left_out = 2;
    g_autofree char *text = render(annotation, (UprofTableStyle){ .rows = 15 });
    g_assert_nonnull(strstr(text, "\nthe code is neither in a file nor in the capture: "));
    g_assert_nonnull(strstr(text, " 100.0   401000  ?\n"));
    g_assert_nonnull(strstr(text, "\n2 samples of the profile are not counted by address"));
}

static void
test_json(void)
{
    g_autoptr(UprofAnnotation) annotation = make_annotation();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autofree char *text = g_string_free(uprof_json_annotation(annotation, "wo\"rk", run), FALSE);

    g_assert_nonnull(strstr(text, "\"weight\": 400"));
    g_assert_nonnull(strstr(text, "\"annotation\": {\"name\": \"wo\\\"rk\", \"self\": 200"));
    g_assert_nonnull(strstr(text, "{\"line\": \"a.c:2\", \"samples\": 199}"));
    g_assert_nonnull(strstr(text, "{\"samples\": 1}"));
    g_assert_nonnull(strstr(text,
                            "{\"address\": 4198403, \"samples\": 1, \"text\": \"call   402000\", "
                            "\"callee\": \"helper+0x4\"}"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/annotation-text/table", test_table);
    g_test_add_func("/annotation-text/colors", test_colors);
    g_test_add_func("/annotation-text/far", test_far);
    g_test_add_func("/annotation-text/no-code", test_no_code);
    g_test_add_func("/annotation-text/json", test_json);
    return g_test_run();
}
