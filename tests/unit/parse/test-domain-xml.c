/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/domain-xml-priv.h"
#include "uprof/error.h"
#include "uprof/domain-xml.h"

/* clang-format off */
#define HEAD "<domain type='kvm' id='3'>\n<name>web-1</name>\n" \
    "<uuid>00112233-4455-6677-8899-aabbccddeeff</uuid>\n"
#define TAIL "</domain>"
#define NAMESPACE "xmlns:uprof='https://virt-uprof.org/xmlns/domain/1.0'"
#define METADATA(inner) HEAD "<metadata>" inner "</metadata>" TAIL
#define PROFILE(inner) \
    METADATA("<uprof:profile " NAMESPACE " enabled='yes'>" inner "</uprof:profile>")

static const char complete[] =
    HEAD
    "  <metadata>\n"
    "    <other:profile xmlns:other='http://example.org/1' rate='7'/>\n"
    "    <uprof:profile xmlns:uprof=\"https://virt-uprof.org/xmlns/domain/1.0\" enabled=\"yes\" "
    "rate=\"99\" duration=\"20s\" budget=\"0.5\">\n"
    "      <uprof:symbols file=\"/a/app-3f2a.dbg\"/>\n"
    "      <uprof:symbols file=\"/b &amp; c\"/>\n"
    "      <uprof:unwind method=\"fp\"/>\n"
    "    </uprof:profile>\n"
    "  </metadata>\n"
    "  <vcpu placement='static' current='2'>4</vcpu>\n"
    "  <os>\n"
    "    <type arch='x86_64' machine='pc-i440fx-7.2'>hvm</type>\n"
    "    <kernel>/images/app</kernel>\n"
    "  </os>\n"
    "  <devices><panic model='isa'/></devices>\n"
    "  <memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>\n"
    "  <launchSecurity type='sev'/>\n"
    TAIL;
/* clang-format on */

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static void
test_complete(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(complete), &error);

    g_assert_no_error(error);
    g_assert_nonnull(xml);
    g_assert_cmpstr(xml->type, ==, "kvm");
    g_assert_cmpstr(xml->name, ==, "web-1");
    g_assert_cmpstr(xml->uuid, ==, "00112233-4455-6677-8899-aabbccddeeff");
    g_assert_cmpstr(xml->arch, ==, "x86_64");
    g_assert_cmpstr(xml->machine, ==, "pc-i440fx-7.2");
    g_assert_cmpstr(xml->kernel, ==, "/images/app");
    g_assert_cmpstr(xml->security, ==, "sev");
    g_assert_cmpuint(xml->vcpus, ==, 2);
    g_assert_cmpuint(xml->vcpus_max, ==, 4);
    g_assert_true(xml->shared_memory);
    g_assert_true(xml->has_panic);

    const UprofMetadata *metadata = &xml->metadata;
    g_assert_true(metadata->present);
    g_assert_cmpstr(metadata->enabled, ==, "yes");
    g_assert_cmpstr(metadata->rate, ==, "99");
    g_assert_cmpstr(metadata->duration, ==, "20s");
    g_assert_cmpstr(metadata->budget, ==, "0.5");
    g_assert_cmpstr(metadata->unwind, ==, "fp");
    g_assert_null(metadata->unknown);
    g_assert_cmpuint(metadata->symbols->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(metadata->symbols, 1), ==, "/b & c");
}

/* Only files and devices of this host are disks; a CD is none. */
static void
test_disks(void)
{
    static const char text[] =
        HEAD "<devices><disk type='file'><driver name='qemu' type='qcow2'/>"
             "<source file='/a/b &amp; c.qcow2'/></disk>"
             "<disk type='block' device='disk'><source dev='/dev/vg/web-1'/></disk>"
             "<disk type='file' device='cdrom'><source file='/a/cd.iso'/></disk>"
             "<disk type='network'><source protocol='rbd' name='pool/x'/></disk>"
             "<disk type='file'><source file='relative'/></disk>"
             "<disk type='file'/></devices>" TAIL;
    static const char *const expected[][2] = { { "qcow2", "/a/b & c.qcow2" },
                                               { "raw", "/dev/vg/web-1" } };
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(text), NULL);

    g_assert_cmpuint(xml->disks->len, ==, G_N_ELEMENTS(expected));
    for (guint i = 0; i < xml->disks->len; i++) {
        const UprofDomainDisk *disk = g_ptr_array_index(xml->disks, i);
        g_assert_cmpstr(disk->format, ==, expected[i][0]);
        g_assert_cmpstr(disk->path, ==, expected[i][1]);
    }
}

static void
test_many_disks(void)
{
    enum { MORE = UPROF_DOMAIN_DISKS_MAX + 10 };
    g_autoptr(GString) text = g_string_new(HEAD "<devices>");

    for (unsigned i = 0; i < MORE; i++)
        g_string_append(text, "<disk type='file'><source file='/a'/></disk>");
    g_string_append(text, "</devices>" TAIL);
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(text->str), NULL);
    g_assert_cmpuint(xml->disks->len, ==, UPROF_DOMAIN_DISKS_MAX);
}

/* A user can still sample a domain by hand if the metadata of the domain is bad. */
static void
test_bad_metadata(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml =
        uprof_domain_xml_parse(slice_of(PROFILE("<uprof:symbols/>")), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(xml->name, ==, "web-1");
    g_assert_false(xml->metadata.present);
    g_assert_cmpstr(xml->metadata.bad, ==, "no 'symbols/@file'");
}

static void
test_minimal(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(HEAD TAIL), &error);

    g_assert_no_error(error);
    g_assert_null(xml->arch);
    g_assert_null(xml->machine);
    g_assert_null(xml->kernel);
    g_assert_null(xml->security);
    g_assert_cmpuint(xml->vcpus, ==, 1);
    g_assert_cmpuint(xml->vcpus_max, ==, 1);
    g_assert_false(xml->shared_memory);
    g_assert_false(xml->has_panic);
    g_assert_false(xml->metadata.present);
    g_assert_null(xml->metadata.enabled);
    g_assert_cmpuint(xml->metadata.symbols->len, ==, 0);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: the text is valid */
    const char *unknown;
} cases[] = {
    { "other-namespace",  METADATA("<profile xmlns='https://virt-uprof.org/xmlns/domain/2.0'/>"), NULL },
    { "no-namespace",     METADATA("<profile enabled='yes'/>"), NULL },
    { "declared-latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?>" HEAD TAIL, NULL },
    { "cdata",            HEAD "<os><kernel><![CDATA[/a]]></kernel></os>" TAIL, NULL },
    { "unknown-attribute", METADATA("<uprof:profile " NAMESPACE " rates='1'/>"), NULL, "@rates" },
    { "their-attribute",  METADATA("<uprof:profile " NAMESPACE " uprof:rate='1'/>"), NULL, "@rate" },
    { "unknown-element",  PROFILE("<uprof:color/><uprof:size/>"), NULL, "color" },
    { "their-element",    PROFILE("<symbols file='x'/>"), NULL, "symbols" },
    { "inner-attribute",  PROFILE("<uprof:symbols file='x' line='1'/>"), NULL, "symbols/@line" },
    { "inner-element",    PROFILE("<uprof:unwind method='fp'><a/></uprof:unwind>"), NULL, "unwind/a" },

    { "empty",            "",                        "domain XML line *: *" },
    { "blank",            " \n",                     "domain XML line *: *" },
    { "not-xml",          "hello",                   "domain XML line 1: *" },
    { "cut",              HEAD,                      "domain XML line 4: *" },
    { "not-utf-8",        "<domain>\xff</domain>",   "domain XML line 1: *" },
    { "other-root",       "<network/>",              "domain XML: no element 'domain'" },
    { "root-namespace",   "<domain xmlns='x'/>",     "domain XML: no element 'domain'" },
    { "doctype",          "<!DOCTYPE domain>" HEAD TAIL, "domain XML: a DOCTYPE is refused" },
    { "external",         "<!DOCTYPE domain SYSTEM 'file:///etc/passwd'>" HEAD TAIL,
      "domain XML: a DOCTYPE is refused" },
    { "entities",         "<!DOCTYPE d [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><domain type='&b;'/>",
      "domain XML: a DOCTYPE is refused" },
    { "unknown-entity",   "<domain type='&b;'/>",    "domain XML line 1: *" },
    { "no-type",          "<domain><name>a</name><uuid>b</uuid></domain>", "domain XML: no 'type'" },
    { "no-name",          "<domain type='kvm'><uuid>b</uuid></domain>", "domain XML: no 'name'" },
    { "empty-name",       "<domain type='kvm'><name/><uuid>b</uuid></domain>", "domain XML: no 'name'" },
    { "no-uuid",          "<domain type='kvm'><name>a</name></domain>", "domain XML: no 'uuid'" },
    { "vcpu-text",        HEAD "<vcpu>many</vcpu>" TAIL, "domain XML: bad value of 'vcpu'" },
    { "vcpu-zero",        HEAD "<vcpu>0</vcpu>" TAIL, "domain XML: bad value of 'vcpu'" },
    { "vcpu-most",        HEAD "<vcpu>65535</vcpu>" TAIL, NULL },
    { "vcpu-plus-1",      HEAD "<vcpu>65536</vcpu>" TAIL, "domain XML: bad value of 'vcpu'" },
    { "vcpu-current",     HEAD "<vcpu current='5'>4</vcpu>" TAIL,
      "domain XML: bad value of 'vcpu/@current'" },
};
/* clang-format on */

static void
assert_fails(const char *text, const char *pattern)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_domain_xml_parse(slice_of(text), &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
}

static void
assert_parses(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(text), &error);

    g_assert_no_error(error);
    g_assert_nonnull(xml);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    if (cases[i].error) {
        assert_fails(cases[i].text, cases[i].error);
        return;
    }

    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomainXml) xml = uprof_domain_xml_parse(slice_of(cases[i].text), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(xml->name, ==, "web-1");
    g_assert_cmpstr(xml->metadata.unknown, ==, cases[i].unknown);
    g_assert_true(xml->metadata.present == (cases[i].unknown != NULL));
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

/* clang-format off */
static const struct {
    const char *name;
    const char *head, *unit, *tail;
    size_t most; /* the highest number of repetitions that parse */
    const char *error;
} limits[] = {
    { "value",    HEAD "<os><kernel>", "x", "</kernel></os>" TAIL,
      UPROF_XML_VALUE_BYTES_MAX, "domain XML: too long a value of 'os/kernel'" },
    { "all",      HEAD TAIL, " ", "",
      UPROF_XML_BYTES_MAX - strlen(HEAD TAIL), "domain XML: 4194305 bytes are too many" },
};
/* clang-format on */

static void
test_limit(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *most = repeat(limits[i].head, limits[i].unit, limits[i].most, limits[i].tail);
    g_autofree char *more =
        repeat(limits[i].head, limits[i].unit, limits[i].most + 1, limits[i].tail);

    assert_parses(most);
    assert_fails(more, limits[i].error);
}

static void
test_depth(void)
{
    g_autofree char *deep = repeat(HEAD, "<a>", 100 * 1000, "");

    assert_fails(deep, "domain XML line 4: *");
    uprof_domain_xml_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/domain-xml/complete", test_complete);
    g_test_add_func("/domain-xml/bad-metadata", test_bad_metadata);
    g_test_add_func("/domain-xml/minimal", test_minimal);
    g_test_add_func("/domain-xml/disks", test_disks);
    g_test_add_func("/domain-xml/many-disks", test_many_disks);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/domain-xml/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autofree char *path = g_strdup_printf("/domain-xml/limit/%s", limits[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_limit);
    }
    g_test_add_func("/domain-xml/depth", test_depth);
    return g_test_run();
}
