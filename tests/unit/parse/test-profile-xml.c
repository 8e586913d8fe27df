/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/profile-xml-priv.h"
#include "uprof/error.h"
#include "uprof/profile-xml.h"

#define NAMESPACE "xmlns:uprof=\"" UPROF_METADATA_NAMESPACE "\""

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error;   /* the parser returns this error */
    const char *bad;     /* the element has this fault */
    const char *unknown;
} cases[] = {
    { "bare",        "<profile enabled='yes' rate='9'/>", NULL, NULL, NULL },
    { "qualified",   "<uprof:profile " NAMESPACE " rate='9'><uprof:unwind method='fp'/></uprof:profile>", NULL, NULL, NULL },
    { "other-prefix", "<a:profile xmlns:a='" UPROF_METADATA_NAMESPACE "' rate='9'/>", NULL, NULL, NULL },
    { "mixed",       "<profile rate='9'><uprof:unwind " NAMESPACE " method='fp'/></profile>", NULL, NULL, "unwind" },
    { "attribute",   "<profile rate='9' rates='8'/>", NULL, NULL, "@rates" },
    { "inner",       "<profile rate='9'><symbols file='/a' base='1'/></profile>", NULL, NULL, "symbols/@base" },

    { "empty",       "", "metadata line *: *", NULL, NULL },
    { "two",         "<profile/><profile/>", "metadata line 1: *", NULL, NULL },
    { "doctype",     "<!DOCTYPE profile><profile/>", "metadata: a DOCTYPE is refused", NULL, NULL },
    { "other",       "<symbols/>", "metadata: the element is not 'profile' but 'symbols'", NULL, NULL },
    { "other-space", "<profile xmlns='x'/>", "metadata: the element is not 'profile' but 'profile'", NULL, NULL },

    { "no-file",     "<profile><symbols/></profile>", NULL, "no 'symbols/@file'", NULL },
    { "no-method",   "<profile><unwind/></profile>", NULL, "no 'unwind/@method'", NULL },
    { "label-more",  "<profile rate='9'><label name='a' value='1' more='2'/></profile>", NULL, NULL, "label/@more" },
    { "label-name",  "<profile><label name='a-b' value='1'/></profile>", NULL,
      "not a name of a label: 'label/@name'", NULL },
    { "label-own",   "<profile><label name='__name__' value='1'/></profile>", NULL,
      "not a name of a label: 'label/@name'", NULL },
    { "label-empty", "<profile><label name='a' value=''/></profile>", NULL,
      "no value, or too long a value of 'label/@value'", NULL },
    { "two-unwinds", "<profile><unwind method='fp'/><unwind method='fp'/></profile>", NULL,
      "more than one 'unwind'", NULL },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    g_auto(UprofMetadata) metadata;

    uprof_metadata_init(&metadata);
    const bool ok = uprof_metadata_parse(slice_of(cases[i].text), &metadata, &error);
    g_assert_true(ok == !cases[i].error);
    if (error) {
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_test_message("%s", error->message);
        g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
    }
    g_assert_true(metadata.present == (ok && !cases[i].bad));
    g_assert_cmpstr(metadata.bad, ==, cases[i].bad);
    g_assert_cmpstr(metadata.unknown, ==, cases[i].unknown);
    if (metadata.present)
        g_assert_cmpstr(metadata.rate, ==, "9");
}

static char *
repeat(const char *head, const char *unit, size_t n, const char *tail)
{
    GString *text = g_string_new(head);

    for (size_t i = 0; i < n; i++)
        g_string_append(text, unit);
    g_string_append(text, tail);
    return g_string_free(text, FALSE);
}

static void
assert_limit(const char *head, const char *unit, size_t most, const char *tail, const char *bad)
{
    for (unsigned more = 0; more <= 1; more++) {
        g_autofree char *text = repeat(head, unit, most + more, tail);
        g_autoptr(GError) error = NULL;
        g_auto(UprofMetadata) metadata;

        uprof_metadata_init(&metadata);
        const bool ok = uprof_metadata_parse(slice_of(text), &metadata, &error);
        g_assert_true(metadata.present == (more == 0));
        if (more)
            g_assert_cmpstr(ok ? metadata.bad : error->message, ==, bad);
    }
}

static void
test_limits(void)
{
    assert_limit("<profile>", "<symbols file='/a'/>", UPROF_METADATA_SYMBOLS_MAX, "</profile>",
                 "too many elements 'symbols'");
    assert_limit("<profile>", "<label name='a' value='123456'/>", 455, "</profile>",
                 "too many elements 'label'");
    assert_limit("<profile><label name='a' value='", "v", UPROF_METADATA_LABEL_BYTES_MAX,
                 "'/></profile>", "no value, or too long a value of 'label/@value'");
    assert_limit("<profile rate='", "9", UPROF_METADATA_VALUE_BYTES_MAX, "'/>",
                 "too long a value of 'rate'");
    assert_limit("<profile>", " ", UPROF_METADATA_BYTES_MAX - strlen("<profile></profile>"),
                 "</profile>", "metadata: 65537 bytes are too many");
}

static void
test_labels(void)
{
    static const char text[] = "<profile><label name='team' value='web'/>"
                               "<label name='_9' value='a&amp;b=c %&#10;\xc3\xbc'/></profile>";
    g_auto(UprofMetadata) metadata;

    uprof_metadata_init(&metadata);
    g_assert_true(uprof_metadata_parse(slice_of(text), &metadata, NULL));
    g_assert_cmpstr(metadata.labels, ==, "team=web&_9=a%26b%3Dc%20%25%0A%C3%BC");
}

/* clang-format off */
static const struct {
    const char *name;
    const char *before;
    UprofMetadataEdit edit; /* without symbols */
    const char *symbol;     /* the only symbol file of the edit; NULL: leave the files */
    const char *after;
} edits[] = {
    { "none-before", "", { .enabled = "yes" }, NULL, "<profile enabled=\"yes\"/>" },
    { "nothing",     "<profile enabled=\"no\"/>", { .enabled = NULL }, NULL, "<profile enabled=\"no\"/>" },
    { "keeps",       "<profile enabled=\"no\" rate=\"9\" color=\"red\"><!--c--><size a=\"1\"/><symbols file=\"/a\"/></profile>",
      { .enabled = "yes" }, NULL,
      "<profile enabled=\"yes\" rate=\"9\" color=\"red\"><!--c--><size a=\"1\"/><symbols file=\"/a\"/></profile>" },
    { "all",         "", { .enabled = "no", .rate = "1", .duration = "2s", .budget = "3", .unwind = "fp" }, "/a & \"b\"",
      "<profile enabled=\"no\" rate=\"1\" duration=\"2s\" budget=\"3\"><symbols file=\"/a &amp; &quot;b&quot;\"/><unwind method=\"fp\"/></profile>" },
    { "replaces",    "<profile><symbols file=\"/a\"/><symbols file=\"/b\"/><unwind method=\"fp\"/></profile>",
      { .unwind = "cfi" }, "/c", "<profile><symbols file=\"/c\"/><unwind method=\"cfi\"/></profile>" },
    { "qualified",   "<uprof:profile " NAMESPACE "><uprof:unwind method=\"fp\"/></uprof:profile>",
      { .unwind = "cfi", .rate = "5" }, NULL,
      "<uprof:profile " NAMESPACE " rate=\"5\"><uprof:unwind method=\"cfi\"/></uprof:profile>" },
    { "repairs",     "<profile rate=\"x\"><unwind/></profile>", { .rate = "5", .unwind = "fp" }, NULL,
      "<profile rate=\"5\"><unwind method=\"fp\"/></profile>" },
};
/* clang-format on */

static void
test_edit(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GPtrArray) symbols = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    UprofMetadataEdit edit = edits[i].edit;

    if (edits[i].symbol) {
        g_ptr_array_add(symbols, (gpointer)edits[i].symbol);
        edit.symbols = symbols;
    }
    g_autofree char *after = uprof_metadata_edit(slice_of(edits[i].before), &edit, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(after, ==, edits[i].after);
}

static void
test_edit_refused(void)
{
    const UprofMetadataEdit edit = { .enabled = "yes" };
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_metadata_edit(slice_of("<other/>"), &edit, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/profile-xml/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/profile-xml/limits", test_limits);
    g_test_add_func("/profile-xml/labels", test_labels);
    for (size_t i = 0; i < G_N_ELEMENTS(edits); i++) {
        g_autofree char *path = g_strdup_printf("/profile-xml/edit/%s", edits[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_edit);
    }
    g_test_add_func("/profile-xml/edit-refused", test_edit_refused);
    return g_test_run();
}
