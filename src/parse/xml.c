/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/xml.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/text.h"
#include "xml-priv.h"

/*
 * Without XML_PARSE_HUGE libxml2 bounds the depth (256) and thereby its own
 * recursion; ours is none. A DOCTYPE ends parsing before any of its entities
 * is known. What the text says of its encoding is not asked: libvirt sends
 * UTF-8.
 */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlParserCtxt, xmlFreeParserCtxt)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlBuffer, xmlBufferFree)

/* where a member of UprofDomainXml stands, below /domain */
typedef struct {
    const char *element;   /* path; "": the root */
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

static const struct {
    const char *attribute; /* of <profile> */
    size_t offset;
} profile_attributes[] = {
    { "enabled",  G_STRUCT_OFFSET(UprofMetadata, enabled)  },
    { "rate",     G_STRUCT_OFFSET(UprofMetadata, rate)     },
    { "duration", G_STRUCT_OFFSET(UprofMetadata, duration) },
    { "budget",   G_STRUCT_OFFSET(UprofMetadata, budget)   },
};
/* clang-format on */

static bool
fail(GError **error, const char *what, const char *where)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "domain XML: %s '%s'", what, where);
    return false;
}

static const char *
name_of(const xmlNode *node)
{
    return (const char *)node->name;
}

static bool
is_element(const xmlNode *node, const char *name, const char *namespace)
{
    const char *href = node->ns ? (const char *)node->ns->href : NULL;

    return node->type == XML_ELEMENT_NODE && strcmp(name_of(node), name) == 0 &&
           g_strcmp0(href, namespace) == 0;
}

/* Returns: (nullable): the element at @path below @node, all without namespace */
static xmlNode *
find_element(xmlNode *node, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, "/", -1);

    for (unsigned i = 0; names[i] && node; i++) {
        node = node->children;
        while (node && !is_element(node, names[i], NULL))
            node = node->next;
    }
    return node;
}

/* Returns: (transfer full) (nullable): the value; %NULL if there is none */
static char *
read_value(xmlNode *node, const char *attribute)
{
    xmlChar *raw =
        attribute ? xmlGetNoNsProp(node, (const xmlChar *)attribute) : xmlNodeGetContent(node);
    char *value = g_strdup((const char *)raw);

    if (raw)
        xmlFree(raw);
    return value;
}

/* Takes @value, which may be %NULL. */
static bool
store(char **member, char *value, const char *where, GError **error)
{
    g_autofree char *owned = value;

    if (owned && strlen(owned) > UPROF_XML_VALUE_BYTES_MAX)
        return fail(error, "too long a value of", where);

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

        if (node && !store(member, read_value(node, field->attribute), where, error))
            return false;
        if (field->required && (!*member || !**member))
            return fail(error, "no", where);
    }
    return true;
}

static bool
to_count(const char *text, unsigned max, unsigned *count)
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

    g_autofree char *max = read_value(node, NULL);
    g_autofree char *current = read_value(node, "current");
    if (!max || !to_count(max, UPROF_XML_VCPUS_MAX, &xml->vcpus_max))
        return fail(error, "bad value of", "vcpu");
    if (!to_count(current ? current : max, xml->vcpus_max, &xml->vcpus))
        return fail(error, "bad value of", "vcpu/@current");
    return true;
}

static void
read_memory(xmlNode *root, UprofDomainXml *xml)
{
    xmlNode *node = find_element(root, "memoryBacking/access");
    g_autofree char *mode = node ? read_value(node, "mode") : NULL;

    xml->shared_memory = g_strcmp0(mode, "shared") == 0;
}

/* Takes @path; only the first one is kept. */
static void
note_unknown(UprofMetadata *metadata, char *path)
{
    if (metadata->unknown)
        g_free(path);
    else
        metadata->unknown = path;
}

/* Notes the attributes of @node that are not @known. */
static void
note_attributes(UprofMetadata *metadata, const xmlNode *node, const char *known)
{
    for (const xmlAttr *attr = node->properties; attr; attr = attr->next)
        if (attr->ns || strcmp((const char *)attr->name, known) != 0)
            note_unknown(metadata, g_strdup_printf("%s/@%s", name_of(node), attr->name));
    for (const xmlNode *child = node->children; child; child = child->next)
        if (child->type == XML_ELEMENT_NODE)
            note_unknown(metadata, g_strdup_printf("%s/%s", name_of(node), name_of(child)));
}

static bool
read_profile_attributes(xmlNode *profile, UprofMetadata *metadata, GError **error)
{
    for (const xmlAttr *attr = profile->properties; attr; attr = attr->next) {
        const char *name = (const char *)attr->name;
        char **member = NULL;

        for (size_t i = 0; i < G_N_ELEMENTS(profile_attributes); i++)
            if (!attr->ns && strcmp(name, profile_attributes[i].attribute) == 0)
                member = G_STRUCT_MEMBER_P(metadata, profile_attributes[i].offset);
        if (!member)
            note_unknown(metadata, g_strdup_printf("@%s", name));
        else if (!store(member, read_value(profile, name), name, error))
            return false;
    }
    return true;
}

static bool
read_symbols(xmlNode *node, UprofMetadata *metadata, GError **error)
{
    g_autofree char *file = NULL;

    note_attributes(metadata, node, "file");
    if (!store(&file, read_value(node, "file"), "symbols/@file", error))
        return false;
    if (!file)
        return fail(error, "no", "symbols/@file");
    if (metadata->symbols->len == UPROF_METADATA_SYMBOLS_MAX)
        return fail(error, "too many elements", "symbols");
    g_ptr_array_add(metadata->symbols, g_steal_pointer(&file));
    return true;
}

static bool
read_unwind(xmlNode *node, UprofMetadata *metadata, GError **error)
{
    note_attributes(metadata, node, "method");
    if (metadata->unwind)
        return fail(error, "more than one", "unwind");
    if (!store(&metadata->unwind, read_value(node, "method"), "unwind/@method", error))
        return false;
    return metadata->unwind || fail(error, "no", "unwind/@method");
}

static bool
check_profile_size(xmlNode *profile, GError **error)
{
    g_autoptr(xmlBuffer) buffer = xmlBufferCreate();
    const int len = xmlNodeDump(buffer, profile->doc, profile, 0, 0);

    if (len < 0 || len > UPROF_METADATA_BYTES_MAX)
        return fail(error, "too long an element", "profile");
    return true;
}

static bool
read_profile(xmlNode *profile, UprofMetadata *metadata, GError **error)
{
    if (!check_profile_size(profile, error) || !read_profile_attributes(profile, metadata, error))
        return false;

    for (xmlNode *child = profile->children; child; child = child->next) {
        bool ok = true;

        if (is_element(child, "symbols", UPROF_METADATA_NAMESPACE))
            ok = read_symbols(child, metadata, error);
        else if (is_element(child, "unwind", UPROF_METADATA_NAMESPACE))
            ok = read_unwind(child, metadata, error);
        else if (child->type == XML_ELEMENT_NODE)
            note_unknown(metadata, g_strdup(name_of(child)));
        if (!ok)
            return false;
    }
    metadata->present = true;
    return true;
}

static bool
read_metadata(xmlNode *root, UprofMetadata *metadata, GError **error)
{
    xmlNode *node = find_element(root, "metadata");

    /* libvirt keeps one element per namespace; of others the first counts */
    for (node = node ? node->children : NULL; node; node = node->next)
        if (is_element(node, "profile", UPROF_METADATA_NAMESPACE))
            return read_profile(node, metadata, error);
    return true;
}

static void
refuse_doctype(void *context, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
    xmlParserCtxt *parser = context;

    *(bool *)parser->_private = true;
    xmlStopParser(parser);
}

xmlDoc *
uprof_xml_load(UprofSlice text, const char *what, size_t bytes_max, GError **error)
{
    g_autoptr(xmlParserCtxt) parser = xmlNewParserCtxt();
    bool has_doctype = false;

    if (text.len > bytes_max) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: %zu bytes are too many", what,
                    text.len);
        return NULL;
    }

    parser->_private = &has_doctype;
    parser->sax->internalSubset = refuse_doctype;
    g_autoptr(xmlDoc) doc = xmlCtxtReadMemory(
        parser, text.len ? text.data : "", text.len, NULL, "UTF-8",
        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA);

    if (has_doctype) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: a DOCTYPE is refused", what);
        return NULL;
    }
    if (!doc || !xmlDocGetRootElement(doc)) {
        const xmlError *cause = xmlCtxtGetLastError(parser);
        g_autofree char *raw = g_strdup(cause && cause->message ? cause->message : "no element");
        g_autofree char *quoted = uprof_text_quote(g_strchomp(raw));

        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s line %d: %s", what,
                    cause ? cause->line : 0, quoted);
        return NULL;
    }
    return g_steal_pointer(&doc);
}

UprofDomainXml *
uprof_domain_xml_parse(UprofSlice text, GError **error)
{
    g_autoptr(xmlDoc) doc = uprof_xml_load(text, "domain XML", UPROF_XML_BYTES_MAX, error);
    if (!doc)
        return NULL;

    xmlNode *root = xmlDocGetRootElement(doc);
    if (!is_element(root, "domain", NULL)) {
        fail(error, "no element", "domain");
        return NULL;
    }

    g_autoptr(UprofDomainXml) xml = g_new0(UprofDomainXml, 1);
    xml->metadata.symbols = g_ptr_array_new_with_free_func(g_free);
    if (!read_fields(root, xml, error) || !read_vcpus(root, xml, error) ||
        !read_metadata(root, &xml->metadata, error))
        return NULL;
    read_memory(root, xml);
    return g_steal_pointer(&xml);
}

void
uprof_domain_xml_free(UprofDomainXml *xml)
{
    if (!xml)
        return;

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(G_STRUCT_MEMBER(char *, xml, fields[i].offset));
    for (size_t i = 0; i < G_N_ELEMENTS(profile_attributes); i++)
        g_free(G_STRUCT_MEMBER(char *, &xml->metadata, profile_attributes[i].offset));
    g_free(xml->metadata.unwind);
    g_free(xml->metadata.unknown);
    g_ptr_array_unref(xml->metadata.symbols);
    g_free(xml);
}
