/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/domain-xml.h"

#include "domain-xml-priv.h"

#include <libxml/tree.h>
#include <string.h>

#include "profile-xml-priv.h"
#include "uprof/error.h"
#include "uprof/scan.h"
#include "xml-tree-priv.h"

/* Where the value of one member of UprofDomainXml is found, below /domain. */
typedef struct {
    const char *element;   /* path of element names; "": the root element */
    const char *attribute; /* NULL: the element's text */
    bool required;
    size_t offset;
} Field;

#define AT(member) G_STRUCT_OFFSET(UprofDomainXml, member)

/* clang-format off */
static const Field fields[] = {
    /* element         attribute  required */
    { "",               "type",    true,   AT(type)     },
    { "name",           NULL,      true,   AT(name)     },
    { "uuid",           NULL,      true,   AT(uuid)     },
    { "os/type",        "arch",    false,  AT(arch)     },
    { "os/type",        "machine", false,  AT(machine)  },
    { "os/kernel",      NULL,      false,  AT(kernel)   },
    { "launchSecurity", "type",    false,  AT(security) },
};
/* clang-format on */

static bool
set_bad_data(GError **error, const char *what, const char *where)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "domain XML: %s '%s'", what, where);
    return false;
}

/* Returns: (nullable): the element at @path below @node; no element of the path has a namespace */
static xmlNode *
find_element(xmlNode *node, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);

    for (unsigned i = 0; names[i] && node; i++) {
        node = node->children;
        while (node && !uprof_xml_is_element(node, names[i], NULL))
            node = node->next;
    }
    return node;
}

/* @value: (transfer full) (nullable) */
static bool
store_value(char **member, char *value, const char *where, GError **error)
{
    g_autofree char *owned = value;

    if (owned && strlen(owned) > UPROF_XML_VALUE_BYTES_MAX)
        return set_bad_data(error, "too long a value of", where);

    g_free(*member);
    *member = g_steal_pointer(&owned);
    return true;
}

static bool
read_fields(xmlNode *root, UprofDomainXml *xml, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const Field *field = &fields[i];
        const char *where = field->attribute ? field->attribute : field->element;
        char **member = G_STRUCT_MEMBER_P(xml, field->offset);
        xmlNode *node = find_element(root, field->element);

        if (node && !store_value(member, uprof_xml_value(node, field->attribute), where, error))
            return false;
        if (field->required && (!*member || !**member))
            return set_bad_data(error, "no", where);
    }
    return true;
}

static bool
parse_count(const char *text, unsigned max, unsigned *count)
{
    const UprofSlice slice = uprof_slice_trim((UprofSlice){ text, strlen(text) });
    uint64_t value;

    if (!uprof_slice_to_uint(slice, 10, 1, max, &value))
        return false;
    *count = value;
    return true;
}

static bool
read_vcpus(xmlNode *root, UprofDomainXml *xml, GError **error)
{
    xmlNode *node = find_element(root, "vcpu");

    xml->vcpus = xml->vcpus_max = 1;
    if (!node)
        return true;

    g_autofree char *max = uprof_xml_value(node, NULL);
    g_autofree char *current = uprof_xml_value(node, "current");
    if (!max || !parse_count(max, UPROF_XML_VCPUS_MAX, &xml->vcpus_max))
        return set_bad_data(error, "bad value of", "vcpu");
    if (!parse_count(current ? current : max, xml->vcpus_max, &xml->vcpus))
        return set_bad_data(error, "bad value of", "vcpu/@current");
    return true;
}

static void
read_features(xmlNode *root, UprofDomainXml *xml)
{
    xmlNode *node = find_element(root, "memoryBacking/access");
    g_autofree char *mode = node ? uprof_xml_value(node, "mode") : NULL;

    xml->shared_memory = g_strcmp0(mode, "shared") == 0;
    xml->has_panic = find_element(root, "devices/panic") != NULL;
}

static void
free_disk(gpointer data)
{
    UprofDomainDisk *disk = data;

    g_free(disk->format);
    g_free(disk->path);
    g_free(disk);
}

static void
add_disk(xmlNode *node, GPtrArray *disks)
{
    xmlNode *source = find_element(node, "source"), *driver = find_element(node, "driver");
    g_autofree char *device = uprof_xml_value(node, "device");
    char *file = source ? uprof_xml_value(source, "file") : NULL;
    g_autofree char *path = !file && source ? uprof_xml_value(source, "dev") : file;
    g_autofree char *format = driver ? uprof_xml_value(driver, "type") : NULL;

    if ((device && strcmp(device, "disk") != 0) || !path || path[0] != '/' ||
        strlen(path) > UPROF_XML_VALUE_BYTES_MAX || disks->len >= UPROF_DOMAIN_DISKS_MAX)
        return;
    UprofDomainDisk *disk = g_new0(UprofDomainDisk, 1);
    disk->format = format && format[0] ? g_steal_pointer(&format) : g_strdup("raw");
    disk->path = g_steal_pointer(&path);
    g_ptr_array_add(disks, disk);
}

static void
read_disks(xmlNode *root, GPtrArray *disks)
{
    const xmlNode *devices = find_element(root, "devices");

    for (xmlNode *node = devices ? devices->children : NULL; node; node = node->next)
        if (uprof_xml_is_element(node, "disk", NULL))
            add_disk(node, disks);
}

static void
read_metadata(xmlNode *root, UprofMetadata *metadata)
{
    xmlNode *node = find_element(root, "metadata");

    /* libvirt keeps one element per namespace. If another program wrote more, the first counts. */
    node = node ? node->children : NULL;
    while (node && !uprof_xml_is_element(node, "profile", UPROF_METADATA_NAMESPACE))
        node = node->next;
    if (node)
        uprof_metadata_read(node, metadata);
}

UprofDomainXml *
uprof_domain_xml_parse(UprofSlice text, GError **error)
{
    g_autoptr(xmlDoc) doc = uprof_xml_load(text, "domain XML", UPROF_XML_BYTES_MAX, error);
    if (!doc)
        return NULL;

    xmlNode *root = xmlDocGetRootElement(doc);
    if (!uprof_xml_is_element(root, "domain", NULL)) {
        set_bad_data(error, "no element", "domain");
        return NULL;
    }

    g_autoptr(UprofDomainXml) xml = g_new0(UprofDomainXml, 1);
    xml->disks = g_ptr_array_new_with_free_func(free_disk);
    uprof_metadata_init(&xml->metadata);
    if (!read_fields(root, xml, error) || !read_vcpus(root, xml, error))
        return NULL;
    read_features(root, xml);
    read_disks(root, xml->disks);
    read_metadata(root, &xml->metadata);
    return g_steal_pointer(&xml);
}

void
uprof_domain_xml_free(UprofDomainXml *xml)
{
    if (!xml)
        return;

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(G_STRUCT_MEMBER(char *, xml, fields[i].offset));
    g_clear_pointer(&xml->disks, g_ptr_array_unref);
    uprof_metadata_clear(&xml->metadata);
    g_free(xml);
}
