/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output-request.h"

#include "uprof/error.h"

#include <string.h>

static void
add(GPtrArray *list, const char *path, const UprofFormat *format)
{
    uprof_output_request_add(list, path, format, false);
}

static const char *
get_path(const GPtrArray *list, guint i, bool is_waits)
{
    const UprofOutputRequest *request = g_ptr_array_index(list, i);

    g_assert_true(request->is_waits == is_waits);
    return request->path;
}

/* A file of waits stands beside each file that has one value. */
static void
test_waits(void)
{
    g_autoptr(GPtrArray) list = uprof_output_request_list();

    add(list, "%d.d/%d-%t.svg", &uprof_format_svg);
    add(list, "a.folded.gz", &uprof_format_folded_gz);
    add(list, "a.pb.gz", &uprof_format_pprof);
    add(list, "a.perf", &uprof_format_perf);
    add(list, "a.meta.json", &uprof_format_meta);
    add(list, "a.capture", uprof_format_by_name("capture"));
    add(list, "-", &uprof_format_folded);
    add(list, "v1.2/plain", &uprof_format_folded);
    add(list, "a.txt", &uprof_format_folded);
    g_assert_true(uprof_output_request_add_waits(list, NULL));
    g_assert_cmpuint(list->len, ==, 13);
    for (guint i = 0; i < 9; i++)
        get_path(list, i, false);
    g_assert_cmpstr(get_path(list, 9, true), ==, "%d.d/%d-%t.waits.svg");
    g_assert_cmpstr(get_path(list, 10, true), ==, "a.waits.folded.gz");
    g_assert_cmpstr(get_path(list, 11, true), ==, "v1.2/plain.waits");
    g_assert_cmpstr(get_path(list, 12, true), ==, "a.waits.txt");
}

static void
test_no_waits(void)
{
    g_autoptr(GPtrArray) none = uprof_output_request_list();
    g_autoptr(GPtrArray) both = uprof_output_request_list();
    g_autoptr(GError) error = NULL;

    add(none, "-", &uprof_format_folded);
    add(none, "a.perf", &uprof_format_perf);
    g_assert_false(uprof_output_request_add_waits(none, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_cmpuint(none->len, ==, 2);
    add(both, "a.pb.gz", &uprof_format_pprof);
    g_assert_true(uprof_output_request_add_waits(both, NULL));
    g_assert_cmpuint(both->len, ==, 1);
    add(both, "a.svg", &uprof_format_svg);
    add(both, "a.waits.svg", &uprof_format_svg);
    g_assert_false(uprof_output_request_add_waits(both, &error));
    g_assert_cmpstr(error->message, ==, "--waits writes 'a.waits.svg', which -o names, too");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/output-request/waits", test_waits);
    g_test_add_func("/run/output-request/no-waits", test_no_waits);
    return g_test_run();
}
