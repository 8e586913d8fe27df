/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/settings/config-priv.h"
#include "uprof/clock.h"
#include "uprof/error.h"

#define NEEDED "name='a' type='pyroscope' url='http://h:4040'"

/* Returns: (transfer full) (nullable): of a file with one destination */
static UprofConfig *
parse_destination(const char *attributes, const char *children, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "<virt-uprof><destination %s>%s</destination></virt-uprof>", attributes, children);

    return uprof_config_parse((UprofSlice){ text, strlen(text) }, error);
}

static void
test_defaults(void)
{
    g_autoptr(UprofConfig) config = parse_destination(NEEDED, "", NULL);
    const UprofDestination *destination = g_ptr_array_index(config->destinations, 0);

    g_assert_cmpuint(config->destinations->len, ==, 1);
    g_assert_cmpstr(destination->name, ==, "a");
    g_assert_cmpstr(destination->url, ==, "http://h:4040");
    g_assert_cmpstr(uprof_destination_type_name(destination), ==, "pyroscope");
    g_assert_cmpuint(destination->max_age_ns, ==, 3600 * UPROF_NS_PER_S);
    g_assert_cmpuint(destination->bytes_per_s, ==, 0);
    g_assert_false(destination->per_vcpu);
    g_assert_true(uprof_destination_has_domain(destination, "any \xff"));
}

static void
test_all(void)
{
    g_autoptr(UprofConfig) config = parse_destination(
        "name='b.1' type='parca' url='https://h/path//' tenant='t' domains=' web-*  db-? ' "
        "user='u' "
        "passwordFile='/p' caFile='/ca' certificateFile='/c' keyFile='/k' maxAge='2d' "
        "kilobytesPerSecond='3' perVcpu='yes' metadataLabels='team owner'",
        "<!-- ours --><label name='site' value='fr a'/> <label name='_x9' value='1'/>", NULL);
    const UprofDestination *destination = g_ptr_array_index(config->destinations, 0);
    const UprofLabel *label = g_ptr_array_index(destination->labels, 0);

    g_assert_cmpint(destination->type, ==, UPROF_DESTINATION_PARCA);
    g_assert_cmpstr(destination->url, ==, "https://h/path");
    g_assert_cmpuint(destination->max_age_ns, ==, 2 * 86400 * UPROF_NS_PER_S);
    g_assert_cmpuint(destination->bytes_per_s, ==, 3000);
    g_assert_true(destination->per_vcpu);
    g_assert_cmpuint(destination->metadata_labels->len, ==, 2);
    g_assert_cmpuint(destination->labels->len, ==, 2);
    g_assert_cmpstr(label->name, ==, "site");
    g_assert_cmpstr(label->value, ==, "fr a");
    g_assert_true(uprof_destination_has_domain(destination, "web-1"));
    g_assert_true(uprof_destination_has_domain(destination, "db-\xc3\xbc"));
    g_assert_false(uprof_destination_has_domain(destination, "db-12"));
}

/* Each of these files is refused, and the message says what is wrong. */
static void
test_bad(void)
{
    static const struct {
        const char *attributes, *children, *message;
    } files[] = {
        { "type='pyroscope' url='http://h'", "", "destination/@name=''" },
        { "name='a/b' type='pyroscope' url='http://h'", "", "destination/@name='a/b'" },
        { "name='..' type='pyroscope' url='http://h'", "", "destination/@name='..'" },
        { "name='a' url='http://h'", "", "destination/@type=''" },
        { "name='a' type='otlp' url='http://h'", "", "destination/@type='otlp'" },
        { "name='a' type='parca'", "", "destination/@url=''" },
        { "name='a' type='parca' url='ftp://h'", "", "destination/@url='ftp://h'" },
        { "name='a' type='parca' url='http://u:p@h'", "", "@url has a user name" },
        { "name='a' type='parca' url='http://h?q'", "", "destination/@url=" },
        { "name='a' type='parca' url='http://'", "", "destination/@url=" },
        { "name='a' type='parca' url='http://h&#10;x'", "", "destination/@url=" },
        { NEEDED " tenant='a&#10;X-Evil: 1'", "", "destination/@tenant=" },
        { NEEDED " tokenFile='relative'", "", "destination/@tokenFile='relative'" },
        { NEEDED " user='u'", "", "either tokenFile, or user and passwordFile" },
        { NEEDED " tokenFile='/t' user='u' passwordFile='/p'", "", "either tokenFile" },
        { NEEDED " user='a:b' passwordFile='/p'", "", "destination/@user='a:b'" },
        { NEEDED " keyFile='/k'", "", "both certificateFile and keyFile" },
        { NEEDED " maxAge='1s'", "", "destination/@maxAge='1s'" },
        { NEEDED " maxAge='8d'", "", "longer than store/@sliceDays" },
        { NEEDED " kilobytesPerSecond='-1'", "", "destination/@kilobytesPerSecond='-1'" },
        { NEEDED " perVcpu='maybe'", "", "destination/@perVcpu='maybe'" },
        { NEEDED " metadataLabels='a host'", "", "destination/@label='host'" },
        { NEEDED " metadataLabels='a b c d e f g h i j k l m n o p q r s t'",
          "<label name='z' value='1'/>", "more than 20 labels" },
        { NEEDED " metadataLabels='a-b'", "", "destination/@label='a-b'" },
        { NEEDED " pervcpu='yes'", "", "unknown attribute 'pervcpu'" },
        { NEEDED, "text", "unknown text" },
        { NEEDED, "<tag/>", "unknown element 'tag'" },
        { NEEDED, "<label name='9' value='x'/>", "destination/@label='9'" },
        { NEEDED, "<label name='__name__' value='x'/>", "destination/@label='__name__'" },
        { NEEDED, "<label name='a-b' value='x'/>", "destination/@label='a-b'" },
        { NEEDED, "<label name='host' value='x'/>", "destination/@label='host'" },
        { NEEDED, "<label name='x' value='1'/><label name='x' value='2'/>",
          "destination/@label='x'" },
        { NEEDED, "<label name='x' value=''/>", "destination/@label=''" },
        { NEEDED, "<label name='x' value='1'><a/></label>", "unknown element 'a'" },
        { NEEDED, "<label name='x' other='1'/>", "unknown attribute 'other'" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofConfig) config =
            parse_destination(files[i].attributes, files[i].children, &error);
        if (config)
            g_error("%s %s is accepted", files[i].attributes, files[i].children);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        if (!strstr(error->message, files[i].message))
            g_error("'%s' lacks '%s'", error->message, files[i].message);
    }
}

static void
test_twice(void)
{
    static const char text[] =
        "<virt-uprof><destination " NEEDED "/>\n<destination " NEEDED "/></virt-uprof>";
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_config_parse((UprofSlice){ text, strlen(text) }, &error));
    g_assert_cmpstr(error->message, ==, "line 2: more than one destination is called 'a'");
}

static void
test_many(void)
{
    g_autoptr(GString) text = g_string_new("<virt-uprof>");
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < 33; i++)
        g_string_append_printf(text, "<destination name='n%u' type='parca' url='http://h'/>", i);
    g_string_append(text, "</virt-uprof>");
    g_assert_null(uprof_config_parse((UprofSlice){ text->str, text->len }, &error));
    g_assert_nonnull(strstr(error->message, "too many elements 'destination'"));
}

static void
test_url(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDestination) plain = uprof_destination_of_url("http://h:1/", NULL);
    g_autoptr(UprofDestination) parca = uprof_destination_of_url("parca+https://h", NULL);

    g_assert_cmpstr(uprof_destination_type_name(plain), ==, "pyroscope");
    g_assert_cmpstr(plain->url, ==, "http://h:1");
    g_assert_cmpstr(uprof_destination_type_name(parca), ==, "parca");
    g_assert_cmpstr(parca->url, ==, "https://h");
    g_assert_cmpstr(plain->name, ==, "http://h:1/");
    g_assert_cmpstr(plain->file, !=, parca->file);
    g_assert_null(strchr(plain->file, '/'));
    g_assert_null(uprof_destination_of_url("grafana", &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_USAGE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/destination/defaults", test_defaults);
    g_test_add_func("/destination/all", test_all);
    g_test_add_func("/destination/bad", test_bad);
    g_test_add_func("/destination/twice", test_twice);
    g_test_add_func("/destination/many", test_many);
    g_test_add_func("/destination/url", test_url);
    return g_test_run();
}
