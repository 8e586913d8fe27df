/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/error.h"
#include "uprof/settings.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define REFUSED UINT64_MAX

typedef bool (*ParseNumber)(const char *text, uint64_t *value);

/* clang-format off */
static const struct {
    const char *name;
    ParseNumber parse;
    const char *text;
    uint64_t value;
} numbers[] = {
    { "rate",            uprof_settings_parse_rate, "99", 99000 },
    { "rate",            uprof_settings_parse_rate, "1", 1000 },
    { "rate",            uprof_settings_parse_rate, "20000", 20000000 },
    { "rate",            uprof_settings_parse_rate, "24.75", 24750 },
    { "rate",            uprof_settings_parse_rate, "1.001", 1001 },
    { "rate",            uprof_settings_parse_rate, "010", 10000 }, /* not octal */
    { "rate-refused",    uprof_settings_parse_rate, "0", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "0.999", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "20000.001", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "20001", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "-5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "+5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "0x10", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, ".", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "5.", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, ".5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "1,5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "1.0001", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "1.5.5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, " 5", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "5 ", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "5hz", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "1e3", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "18446744073709551617", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "18446744073709551", REFUSED },
    { "rate-refused",    uprof_settings_parse_rate, "\xd9\xa5", REFUSED }, /* an Arabic digit */

    { "duration",         uprof_settings_parse_duration, "10", 10 * S },
    { "duration",         uprof_settings_parse_duration, "500ms", 500 * MS },
    { "duration",         uprof_settings_parse_duration, "10s", 10 * S },
    { "duration",         uprof_settings_parse_duration, "2m", 120 * S },
    { "duration",         uprof_settings_parse_duration, "1h", 3600 * S },
    { "duration",         uprof_settings_parse_duration, "0", 0 },
    { "duration",         uprof_settings_parse_duration, "720h", 30 * 24 * 3600 * S },
    { "duration-refused", uprof_settings_parse_duration, "721h", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "2592001", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "0.000000001ms", REFUSED }, /* not 0 */
    { "duration-refused", uprof_settings_parse_duration, "10 s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "10S", REFUSED },
    { "duration",         uprof_settings_parse_duration, "1.5", 3 * S / 2 },
    { "duration",         uprof_settings_parse_duration, "0.5s", S / 2 },
    { "duration",         uprof_settings_parse_duration, "1.25h", 4500 * S },
    { "duration",         uprof_settings_parse_duration, "0.000001ms", 1 },
    { "duration",         uprof_settings_parse_duration, "1d", 86400 * S },
    { "duration",         uprof_settings_parse_duration, "30d", 30 * 86400 * S },
    { "duration-refused", uprof_settings_parse_duration, "30.1d", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "31d", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "1.s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, ".5s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "1.2.3s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "0.0000000001s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "10D", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "10sec", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "-1s", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "1s1", REFUSED },
    { "duration-refused", uprof_settings_parse_duration, "99999999999999999999h", REFUSED },

    { "budget",           uprof_settings_parse_budget, "10", 100000 },
    { "budget",           uprof_settings_parse_budget, "100", 1000000 },
    { "budget",           uprof_settings_parse_budget, "0.1", 1000 },
    { "budget",           uprof_settings_parse_budget, "0.25", 2500 },
    { "budget",           uprof_settings_parse_budget, "33.3333", 333333 },
    { "budget-refused",   uprof_settings_parse_budget, "0", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "0.0999", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "100.0001", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "101", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "10%", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "-1", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "nan", REFUSED },
    { "budget-refused",   uprof_settings_parse_budget, "", REFUSED },
};

static const struct {
    const char *text;
    const char *vcpus; /* NULL if refused */
} lists[] = {
    { "0", "0" }, { "0,2-3", "0 2 3" }, { "3,1,2", "1 2 3" }, { "1,1,1-1", "1" }, { "2-4,3-5", "2 3 4 5" },
    { "4095", "4095" }, { "0-0", "0" }, { "007", "7" },
    { "", NULL }, { ",", NULL }, { "1,", NULL }, { ",1", NULL }, { "1,,2", NULL }, { "-", NULL },
    { "1-", NULL }, { "-1", NULL }, { "3-1", NULL }, { "1-2-3", NULL }, { "4096", NULL }, { "0-4096", NULL },
    { "a", NULL }, { "1 2", NULL }, { " 1", NULL }, { "1;2", NULL }, { "0x1", NULL },
    { "18446744073709551616", NULL },
};

/*
 * Metadata in a run by hand, with nothing and with everything given on the command line. Rate,
 * duration and budget are checked, but are for periodic runs.
 */
static const struct {
    const char *name;
    UprofMetadata metadata;
    const char *error; /* NULL if accepted */
    uint64_t rate_mhz, duration_ns, budget_ppm;
    const char *unwind;
} metadata[] = {
    { "absent",          { .present = false, .rate = (char *)"junk" }, NULL, 99000, 10 * S, 0, "auto" },
    { "nothing-said",    { .present = true }, NULL, 99000, 10 * S, 0, "auto" },
    { "all-said",        { .present = true, .rate = (char *)"200", .duration = (char *)"20s", .budget = (char *)"1", .unwind = (char *)"fp" }, NULL, 99000, 10 * S, 0, "fp" },
    { "largest",         { .present = true, .rate = (char *)"1000", .duration = (char *)"1h" }, NULL, 99000, 10 * S, 0, "auto" },
    { "cfi",             { .present = true, .unwind = (char *)"cfi" }, NULL, 99000, 10 * S, 0, "cfi" },
    { "rate-too-high",   { .present = true, .rate = (char *)"1001", .duration = (char *)"20s" }, "metadata: rate='1001' is not 1 to 1000; *", 99000, 10 * S, 0, "auto" },
    { "rate-zero",       { .present = true, .rate = (char *)"0" }, "metadata: rate='0' is not *", 99000, 10 * S, 0, "auto" },
    { "rate-hostile",    { .present = true, .rate = (char *)"\x1b[31m\n%s" }, "metadata: rate='?[31m?%s' is not *", 99000, 10 * S, 0, "auto" },
    { "duration-zero",   { .present = true, .duration = (char *)"0" }, "metadata: duration='0' is not a duration of up to 1h; *", 99000, 10 * S, 0, "auto" },
    { "duration-long",   { .present = true, .duration = (char *)"61m" }, "metadata: duration='61m' is not *", 99000, 10 * S, 0, "auto" },
    { "budget-bad",      { .present = true, .rate = (char *)"200", .budget = (char *)"101" }, "metadata: budget='101' is not 0.1 to 100 (percent); *", 99000, 10 * S, 0, "auto" },
    { "unwind-bad",      { .present = true, .rate = (char *)"200", .unwind = (char *)"orc" }, "metadata: method='orc' is not auto, cfi or fp; *", 99000, 10 * S, 0, "auto" },
};
/* clang-format on */

static void
test_number(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint64_t value = 42;

    const bool ok = numbers[i].parse(numbers[i].text, &value);
    g_assert_cmpint(ok, ==, numbers[i].value != REFUSED);
    g_assert_cmpuint(value, ==, ok ? numbers[i].value : 42);
}

static void
test_lists(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_auto(UprofSettings) settings;
        uprof_settings_init(&settings);
        g_assert_true(uprof_settings_has_vcpu(&settings, 4000)); /* all */
        const bool ok = uprof_settings_parse_vcpus(lists[i].text, &settings.vcpus);
        g_test_message("'%s'", lists[i].text);
        g_assert_cmpint(ok, ==, lists[i].vcpus != NULL);
        g_assert_cmpint(settings.vcpus != NULL, ==, ok);
        if (!ok)
            continue;
        g_autoptr(GString) found = g_string_new(NULL);
        for (guint j = 0; j < settings.vcpus->len; j++)
            g_string_append_printf(found, "%s%u", j > 0 ? " " : "",
                                   g_array_index(settings.vcpus, uint32_t, j));
        g_assert_cmpstr(found->str, ==, lists[i].vcpus);
        const uint32_t first = g_array_index(settings.vcpus, uint32_t, 0);
        g_assert_true(uprof_settings_has_vcpu(&settings, first));
        g_assert_false(uprof_settings_has_vcpu(&settings, 4000));
        /* The last of two values counts. */
        g_assert_true(uprof_settings_parse_vcpus("9", &settings.vcpus));
        g_assert_cmpuint(settings.vcpus->len, ==, 1);
    }
}

static void
test_long_list(void)
{
    g_autoptr(GString) text = g_string_new("0-4095");
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    g_assert_true(uprof_settings_parse_vcpus(text->str, &settings.vcpus));
    g_assert_cmpuint(settings.vcpus->len, ==, 4096);
    for (unsigned i = 0; i < 100; i++)
        g_string_append(text, ",0-4095");
    g_assert_false(uprof_settings_parse_vcpus(text->str, &settings.vcpus));
}

static void
test_metadata(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GPtrArray) symbols = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) said = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    UprofMetadata element = metadata[i].metadata;
    g_auto(UprofSettings) settings;

    g_ptr_array_add(said, (gpointer) "/var/lib/a.dbg");
    g_ptr_array_add(said, (gpointer) "");
    element.symbols = said;
    uprof_settings_init(&settings);
    const bool ok = uprof_settings_take_metadata(&settings, &element, NULL, symbols, &error);
    g_assert_cmpint(ok, ==, metadata[i].error == NULL);
    g_assert_cmpint(ok, ==, error == NULL);
    if (error) {
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_true(g_pattern_match_simple(metadata[i].error, error->message));
    }
    g_assert_cmpuint(settings.rate_mhz, ==, metadata[i].rate_mhz);
    g_assert_cmpuint(settings.duration_ns, ==, metadata[i].duration_ns);
    g_assert_cmpuint(settings.budget_ppm, ==, metadata[i].budget_ppm);
    g_assert_cmpstr(settings.unwind, ==, metadata[i].unwind);
    g_assert_cmpuint(symbols->len, ==, ok && element.present ? 2 : 0);
    if (symbols->len > 0)
        g_assert_cmpstr(symbols->pdata[0], ==, "/var/lib/a.dbg");
}

/* Values of the command line stay, and a bad value in metadata is still refused. */
static void
test_precedence(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GPtrArray) symbols = g_ptr_array_new_with_free_func(g_free);
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    settings.rate_mhz = 5000;
    settings.duration_ns = 3 * S;
    settings.budget_ppm = 7;
    settings.unwind = "fp";
    settings.given = (UprofGiven){ true, true, true, true };
    const bool ok =
        uprof_settings_take_metadata(&settings, &metadata[i].metadata, NULL, symbols, NULL);
    g_assert_cmpint(ok, ==, metadata[i].error == NULL);
    g_assert_cmpuint(settings.rate_mhz, ==, 5000);
    g_assert_cmpuint(settings.duration_ns, ==, 3 * S);
    g_assert_cmpuint(settings.budget_ppm, ==, 7);
    g_assert_cmpstr(settings.unwind, ==, "fp");
}

/* clang-format off */
static const struct {
    const char *name;
    UprofMetadata metadata;
    const char *error;
    bool enabled;
    uint64_t rate_mhz, duration_ns, budget_ppm;
} limited[] = {
    { "absent",     { .present = false }, NULL, false, 99000, 10 * S, 0 },
    { "yes",        { .present = true, .enabled = (char *)"yes" }, NULL, true, 99000, 10 * S, 0 },
    { "no",         { .present = true, .enabled = (char *)"no", .rate = (char *)"10" }, NULL, false, 10000, 10 * S, 0 },
    { "at-limits",  { .present = true, .enabled = (char *)"yes", .rate = (char *)"200", .duration = (char *)"60s", .budget = (char *)"2" }, NULL, true, 200000, 60 * S, 20000 },
    { "beyond",     { .present = true, .enabled = (char *)"yes", .rate = (char *)"201", .duration = (char *)"61s", .budget = (char *)"2.1" }, NULL, true, 200000, 60 * S, 20000 },
    { "not-said",   { .present = true, .rate = (char *)"10" }, "metadata: enabled='' is not yes or no; *", false, 99000, 10 * S, 0 },
    { "maybe",      { .present = true, .enabled = (char *)"Yes" }, "metadata: enabled='Yes' is not yes or no; *", false, 99000, 10 * S, 0 },
    { "bad-value",  { .present = true, .enabled = (char *)"yes", .rate = (char *)"1e3" }, "metadata: rate='1e3' is not 1 to 1000; *", false, 99000, 10 * S, 0 },
    { "bad",        { .bad = (char *)"more than one 'unwind'" }, "metadata: more than one 'unwind'; the profile element is ignored", false, 99000, 10 * S, 0 },
};
/* clang-format on */

static void
test_limited(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofConfig) limits = uprof_config_new();
    g_autoptr(GPtrArray) said = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    UprofMetadata element = limited[i].metadata;
    g_auto(UprofSettings) settings;

    g_ptr_array_add(said, (gpointer) "/var/lib/a.dbg");
    element.symbols = said;
    uprof_settings_init(&settings);
    const bool ok = uprof_settings_take_metadata(&settings, &element, limits, NULL, &error);
    g_assert_true(ok == !limited[i].error);
    if (error)
        g_assert_true(g_pattern_match_simple(limited[i].error, error->message));
    g_assert_true(settings.enabled == limited[i].enabled);
    g_assert_cmpuint(settings.rate_mhz, ==, limited[i].rate_mhz);
    g_assert_cmpuint(settings.duration_ns, ==, limited[i].duration_ns);
    g_assert_cmpuint(settings.budget_ppm, ==, limited[i].budget_ppm);
}

/* Limits apply to metadata and not to the command line. */
static void
test_limits_only_metadata(void)
{
    g_autoptr(UprofConfig) limits = uprof_config_new();
    const UprofMetadata element = { .present = true,
                                    .enabled = (char *)"yes",
                                    .rate = (char *)"10" };
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    settings.rate_mhz = 5000000;
    settings.given.rate = true;
    g_assert_true(uprof_settings_take_metadata(&settings, &element, limits, NULL, NULL));
    g_assert_cmpuint(settings.rate_mhz, ==, 5000000);
}

static void
test_built_in(void)
{
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    g_assert_cmpuint(settings.rate_mhz, ==, 99000);
    g_assert_cmpuint(settings.duration_ns, ==, 10 * S);
    g_assert_cmpuint(settings.max_pause_ns, ==, 50 * MS);
    g_assert_cmpuint(settings.max_depth, ==, 127);
    g_assert_cmpuint(settings.budget_ppm, ==, 0);
    g_assert_cmpstr(settings.unwind, ==, "auto");
    g_assert_false(settings.per_vcpu || settings.pids || settings.idle || settings.no_pause);
    g_assert_false(settings.given.rate || settings.given.duration || settings.given.budget ||
                   settings.given.unwind);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_autofree char *path = g_strdup_printf("/settings/%s/%zu", numbers[i].name, i);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_number);
    }
    g_test_add_func("/settings/vcpus", test_lists);
    g_test_add_func("/settings/vcpus/long", test_long_list);
    for (size_t i = 0; i < G_N_ELEMENTS(metadata); i++) {
        g_autofree char *path = g_strdup_printf("/settings/metadata/%s", metadata[i].name);
        g_autofree char *given = g_strdup_printf("/settings/precedence/%s", metadata[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_metadata);
        g_test_add_data_func(given, GSIZE_TO_POINTER(i), test_precedence);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(limited); i++) {
        g_autofree char *path = g_strdup_printf("/settings/limited/%s", limited[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_limited);
    }
    g_test_add_func("/settings/limited/given", test_limits_only_metadata);
    g_test_add_func("/settings/built-in", test_built_in);
    return g_test_run();
}
