/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../src/settings/config-priv.h"
#include "uprof/config.h"
#include "uprof/config-xml.h"
#include "uprof/error.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define CONFIG(inner) "<virt-uprof>" inner "</virt-uprof>"

static const char *shipped; /* xml/virt-uprof.xml */

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static char *
join(GPtrArray *list)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(text, "%s[%s]", i ? " " : "", (char *)g_ptr_array_index(list, i));
    return g_string_free(text, FALSE);
}

/* Returns: all members as text, to compare two configurations */
static char *
describe(const UprofConfig *config)
{
    g_autofree char *uris = join(config->uris);
    g_autofree char *domains = join(config->domains);
    g_autofree char *folders = join(config->symbol_folders);

    return g_strdup_printf(
        "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " | %s | %s | "
        "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " | %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
        " %" G_GUINT64_FORMAT " | %s | %s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
        " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
        config->rate_mhz, config->duration_ns, config->budget_ppm, uris, domains,
        config->chance_ppm, config->longest_ns, config->limit_rate_mhz, config->limit_duration_ns,
        config->limit_budget_ppm, folders, config->store, config->slice_days, config->merged_days,
        config->max_megabytes, config->min_free_megabytes);
}

static const char built_in[] =
    "99000 20000000000 10000 |  |  | 1000000 480000000000 | 200000 60000000000 20000 | "
    "[/var/lib/virt-uprof/symbols] [/usr/lib/debug] | /var/lib/virt-uprof 7 90 512 500";

static void
test_built_in(void)
{
    g_autoptr(UprofConfig) config = uprof_config_new();
    g_autofree char *text = describe(config);

    g_assert_cmpstr(text, ==, built_in);
    uprof_config_free(NULL);
}

/* The installed file has all values, and they are the defaults. */
static void
test_shipped(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    size_t len;

    g_assert_true(g_file_get_contents(shipped, &text, &len, NULL));
    g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse((UprofSlice){ text, len }, &error);
    g_assert_no_error(error);
    for (size_t i = 0; i < sizeof(*xml) / sizeof(char *); i++)
        g_assert_nonnull(((char **)xml)[i]);

    g_autoptr(UprofConfig) config = uprof_config_parse((UprofSlice){ text, len }, &error);
    g_assert_no_error(error);
    g_autofree char *said = describe(config);
    g_assert_cmpstr(said, ==, built_in);
}

static void
test_all_given(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_parse(
        slice_of(CONFIG(
            "<profile rate='24.75' duration='500ms' budget='0.5'/>"
            "<collect connect=' qemu:///system\n xen:///system ' domains='a* b?' chance='0.2' "
            "longest='1h'/>"
            "<limits rate='20000' duration='2m' budget='100'/>"
            "<symbols path=':/a b::/c:'/>"
            "<store directory='/srv/p' sliceDays='1' mergedDays='36500' maxMegabytes='0' "
            "minFreeMegabytes='0'/>")),
        &error);

    g_assert_no_error(error);
    g_autofree char *text = describe(config);
    g_assert_cmpstr(text, ==,
                    "24750 500000000 5000 | [qemu:///system] [xen:///system] | [a*] [b?] | "
                    "200000 3600000000000 | 20000000 120000000000 1000000 | [/a b] [/c] | "
                    "/srv/p 1 36500 0 0");
}

/* clang-format off */
static const struct {
    const char *name;
    const char *inner;
    const char *error; /* NULL: must parse */
} cases[] = {
    { "chance-0",        "<collect chance='0'/>", NULL },
    { "chance-places",   "<collect chance='0.000001'/>", NULL },
    { "no-folders",      "<symbols path=''/>", NULL },

    { "rate",            "<profile rate='0'/>", "profile/@rate='0' is not 1 to 20000 (per second)" },
    { "rate-empty",      "<profile rate=''/>", "profile/@rate='' is not *" },
    { "rate-hostile",    "<limits rate='&#x9b;31m&#10;%s'/>", "limits/@rate='?31m?%s' is not *" },
    { "duration",        "<profile duration='0'/>", "profile/@duration='0' is not 1ms to 720h" },
    { "duration-long",   "<profile duration='721h'/>", "profile/@duration='721h' is not *" },
    { "limits-duration", "<limits duration='1w'/>", "limits/@duration='1w' is not *" },
    { "budget",          "<limits budget='0'/>", "limits/@budget='0' is not 0.1 to 100 (percent)" },
    { "chance",          "<collect chance='1.1'/>", "collect/@chance='1.1' is not 0 to 1, such as 0.2" },
    { "chance-percent",  "<collect chance='20%'/>", "collect/@chance='20%' is not *" },
    { "chance-tiny",     "<collect chance='0.0000001'/>", "collect/@chance=* is not *" },
    { "longest",         "<collect longest='0s'/>", "collect/@longest='0s' is not *" },
    { "no-memory",       "<symbols maxMegabytes='15'/>", "symbols/@maxMegabytes='15' is not 16 to 65536*" },
    { "path",            "<symbols path='/a:b'/>", "symbols/@path='/a:b' is not absolute paths *" },
    { "directory",       "<store directory='data'/>", "store/@directory='data' is not an absolute path" },
    { "directory-empty", "<store directory=''/>", "store/@directory='' is not an absolute path" },
    { "days",            "<store sliceDays='0'/>", "store/@sliceDays='0' is not 1 to 36500 (days)" },
    { "days-many",       "<store mergedDays='36501'/>", "store/@mergedDays='36501' is not *" },
    { "days-negative",   "<store mergedDays='-1'/>", "store/@mergedDays='-1' is not *" },
    { "megabytes",       "<store maxMegabytes='1k'/>", "store/@maxMegabytes='1k' is not *" },
    { "megabytes-many",  "<store minFreeMegabytes='1073741825'/>", "store/@minFreeMegabytes=* is not *" },
    { "unknown",         "<store days='1'/>", "line 1: unknown attribute 'days'" },
};

static const struct {
    const char *pattern, *name;
    bool has;
} names[] = {
    { "*",       "",            true  },
    { "*",       "-rf",         true  },
    { "web-*",   "web-1",       true  },
    { "web-*",   "web-",        true  },
    { "web-*",   "my-web-1",    false },
    { "web-?",   "web-1",       true  },
    { "web-?",   "web-",        false },
    { "web-?",   "web-12",      false },
    { "a?c",     "a c",         true  },
    { "a?c",     "a\xc3\xa4" "c", true },
    { "a?c",     "a\xff" "c",      true  },
    { "*.b*",    "a.a.b",       true  },
    { "*a*b",    "abab",        true  },
    { "*a*b",    "abaa",        false },
    { "web-1",   "web-1",       true  },
    { "web-1",   "web-10",      false },
    { "WEB-1",   "web-1",       false },
    { "[a]",     "a",           false }, /* brackets are ordinary characters, not a class */
    { "[a]",     "[a]",         true  },
    { "\\*",     "*",           false },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *text = g_strconcat("<virt-uprof>", cases[i].inner, "</virt-uprof>", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_parse(slice_of(text), &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        return;
    }
    g_assert_null(config);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
}

static void
test_names(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(UprofConfig) config = uprof_config_new();

        g_assert_false(uprof_config_has_domain(config, names[i].name));
        g_ptr_array_add(config->domains, g_strdup("other"));
        g_ptr_array_add(config->domains, g_strdup(names[i].pattern));
        g_test_message("row %zu", i);
        g_assert_true(uprof_config_has_domain(config, names[i].name) == names[i].has);
    }
}

static void
test_other_names(void)
{
    static const struct {
        const char *patterns[3];
        bool names_others;
    } rows[] = {
        { { NULL }, false },         { { "web-1" }, false }, { { "*" }, false },
        { { "w*", "db-?" }, false }, { { "uk-1" }, true },   { { "web-1", "uk-*" }, true },
    };
    g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(known, g_strdup("web-1"));
    g_ptr_array_add(known, g_strdup("db-1"));
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(UprofConfig) config = uprof_config_new();
        for (const char *const *pattern = rows[i].patterns; *pattern; pattern++)
            g_ptr_array_add(config->domains, g_strdup(*pattern));
        g_test_message("row %zu", i);
        g_assert_true(uprof_config_names_others(config, known) == rows[i].names_others);
    }
}

/* A matcher that backtracks over each star would take forever. */
static void
test_slow_name(void)
{
    g_autoptr(UprofConfig) config = uprof_config_new();
    g_autoptr(GString) pattern = g_string_new(NULL);
    g_autofree char *name = g_strnfill(5000, 'a');

    for (unsigned i = 0; i < 100; i++)
        g_string_append(pattern, "*a");
    g_string_append(pattern, "*b");
    g_ptr_array_add(config->domains, g_strdup(pattern->str));
    g_assert_false(uprof_config_has_domain(config, name));
    name[4999] = 'b';
    g_assert_true(uprof_config_has_domain(config, name));
}

/* The message must be @head, the quoted @path and the pattern @tail. */
static void
assert_refused(const char *path, UprofErrorCode code, const char *head, const char *tail)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *message = g_strdup_printf("%s '%s': %s", head, path, tail);

    g_assert_null(uprof_config_load(path, &error));
    g_assert_error(error, UPROF_ERROR, (gint)code);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(message, error->message));
}

static void
test_load(void)
{
    g_autofree char *folder = g_dir_make_tmp("uprof-config-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "c.xml", NULL);
    g_autofree char *fifo = g_build_filename(folder, "fifo", NULL);
    g_autoptr(GError) error = NULL;

    assert_refused(path, UPROF_ERROR_FAILED, "cannot read configuration",
                   "No such file or directory");
    g_assert_true(g_file_set_contents(path, CONFIG("<store sliceDays='3'/>"), -1, NULL));
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
    g_autoptr(UprofConfig) config = uprof_config_load(path, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(config->slice_days, ==, 3);

    g_assert_true(g_file_set_contents(path, CONFIG("<store sliceDays='x'/>"), -1, NULL));
    assert_refused(path, UPROF_ERROR_BAD_DATA, "configuration", "store/@sliceDays='x' is not *");
    assert_refused(folder, UPROF_ERROR_BAD_DATA, "configuration", "it is not a regular file");
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    assert_refused(fifo, UPROF_ERROR_BAD_DATA, "configuration", "it is not a regular file");
    g_unlink(fifo);
    g_unlink(path);
    g_rmdir(folder);
}

static void
test_owner(void)
{
    g_autofree char *folder = g_dir_make_tmp("uprof-config-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "c.xml", NULL);

    if (geteuid() != 0) {
        g_test_skip("only root is asked who may write the file");
        g_rmdir(folder);
        return;
    }
    g_assert_true(g_file_set_contents(path, CONFIG(""), -1, NULL));
    g_assert_cmpint(g_chmod(path, 0664), ==, 0);
    assert_refused(path, UPROF_ERROR_DENIED, "configuration",
                   "users other than root may write it; *");
    g_assert_cmpint(g_chmod(path, 0646), ==, 0);
    assert_refused(path, UPROF_ERROR_DENIED, "configuration",
                   "users other than root may write it; *");
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
    g_assert_cmpint(chown(path, 65534, 0), ==, 0);
    assert_refused(path, UPROF_ERROR_DENIED, "configuration",
                   "users other than root may write it; *");
    g_unlink(path);
    g_rmdir(folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    shipped = argv[1];

    g_test_add_func("/config/built-in", test_built_in);
    g_test_add_func("/config/shipped", test_shipped);
    g_test_add_func("/config/all-given", test_all_given);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/config/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/config/names", test_names);
    g_test_add_func("/config/other-names", test_other_names);
    g_test_add_func("/config/slow-name", test_slow_name);
    g_test_add_func("/config/load", test_load);
    g_test_add_func("/config/owner", test_owner);
    return g_test_run();
}
