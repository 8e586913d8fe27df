/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/config-xml.h"

#include "config-xml-priv.h"

#include <libxml/tree.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/text.h"
#include "xml-tree-priv.h"

#define ROOT "virt-uprof"
#define DESTINATION "destination"
#define AT(member) G_STRUCT_OFFSET(UprofConfigXml, member)

/* An attribute of an element, and the member that gets its text. */
typedef struct {
    const char *element;
    const char *attribute;
    size_t offset;
} Field;

/* clang-format off */
static const Field fields[] = {
    { "profile", "rate",             AT(profile_rate)       },
    { "profile", "duration",         AT(profile_duration)   },
    { "profile", "budget",           AT(profile_budget)     },
    { "collect", "connect",          AT(connect)            },
    { "collect", "domains",          AT(domains)            },
    { "collect", "chance",           AT(chance)             },
    { "collect", "longest",          AT(longest)            },
    { "limits",  "rate",             AT(limits_rate)        },
    { "limits",  "duration",         AT(limits_duration)    },
    { "limits",  "budget",           AT(limits_budget)      },
    { "symbols", "path",             AT(symbols_path)       },
    { "symbols", "maxMegabytes",     AT(symbols_megabytes)  },
    { "store",   "directory",        AT(directory)          },
    { "store",   "sliceDays",        AT(slice_days)         },
    { "store",   "mergedDays",       AT(merged_days)        },
    { "store",   "maxMegabytes",     AT(max_megabytes)      },
    { "store",   "minFreeMegabytes", AT(min_free_megabytes) },
    { "metrics", "directory",        AT(metrics_folder)     },
};
#undef AT

#define AT(member) G_STRUCT_OFFSET(UprofDestinationXml, member)
static const Field destination_fields[] = {
    { DESTINATION, "name",               AT(name)             },
    { DESTINATION, "type",               AT(type)             },
    { DESTINATION, "url",                AT(url)              },
    { DESTINATION, "tenant",             AT(tenant)           },
    { DESTINATION, "domains",            AT(domains)          },
    { DESTINATION, "user",               AT(user)             },
    { DESTINATION, "tokenFile",          AT(token_file)       },
    { DESTINATION, "passwordFile",       AT(password_file)    },
    { DESTINATION, "caFile",             AT(ca_file)          },
    { DESTINATION, "certificateFile",    AT(certificate_file) },
    { DESTINATION, "keyFile",            AT(key_file)         },
    { DESTINATION, "maxAge",             AT(max_age)          },
    { DESTINATION, "kilobytesPerSecond", AT(kilobytes_per_s)  },
    { DESTINATION, "perVcpu",            AT(per_vcpu)         },
    { DESTINATION, "metadataLabels",     AT(metadata_labels)  },
};

static const Field label_fields[] = {
    { "label", "name",  G_STRUCT_OFFSET(UprofLabelXml, name)  },
    { "label", "value", G_STRUCT_OFFSET(UprofLabelXml, value) },
};
/* clang-format on */

/* The attributes that an element may have, and the struct that gets them. */
typedef struct {
    const Field *fields;
    size_t n;
    void *into;
} Target;

static bool
set_bad_data(const xmlNode *node, GError **error, const char *what, const char *name)
{
    g_autofree char *quoted = uprof_text_quote(name);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "line %ld: %s '%s'",
                xmlGetLineNo((xmlNode *)node), what, quoted);
    return false;
}

static bool
read_attribute(xmlNode *node, const xmlAttr *attr, const Target *target, GError **error)
{
    const char *name = (const char *)attr->name;
    char **member = NULL;

    for (size_t i = 0; i < target->n; i++)
        if (strcmp((const char *)node->name, target->fields[i].element) == 0 &&
            strcmp(name, target->fields[i].attribute) == 0)
            member = G_STRUCT_MEMBER_P(target->into, target->fields[i].offset);
    if (attr->ns || !member)
        return set_bad_data(node, error, "unknown attribute", name);

    xmlChar *raw = xmlGetNoNsProp(node, attr->name);
    g_autofree char *value = g_strdup(raw ? (const char *)raw : "");
    xmlFree(raw);
    if (strlen(value) > UPROF_CONFIG_VALUE_BYTES_MAX)
        return set_bad_data(node, error, "too long a value of", name);
    *member = g_steal_pointer(&value);
    return true;
}

static bool
read_attributes(xmlNode *node, const Target *target, GError **error)
{
    for (const xmlAttr *attr = node->properties; attr; attr = attr->next)
        if (!read_attribute(node, attr, target, error))
            return false;
    return true;
}

static void
free_fields(const Target *target)
{
    for (size_t i = 0; i < target->n; i++)
        g_free(G_STRUCT_MEMBER(char *, target->into, target->fields[i].offset));
    g_free(target->into);
}

static bool
is_called(const xmlNode *node, const char *name)
{
    return !node->ns && strcmp((const char *)node->name, name) == 0;
}

static bool
is_known_element(const xmlNode *node)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (is_called(node, fields[i].element))
            return true;
    return is_called(node, DESTINATION);
}

static bool
is_repeated_element(const xmlNode *node)
{
    for (const xmlNode *before = node->prev; before; before = before->prev)
        if (before->type == XML_ELEMENT_NODE &&
            strcmp((const char *)before->name, (const char *)node->name) == 0)
            return true;
    return false;
}

/*
 * Refuses text between elements, and elements that @parent cannot have. The parser leaves
 * references to entities unexpanded.
 *
 * @has_elements: the caller checks the elements itself
 */
static bool
check_children(const xmlNode *parent, bool has_elements, GError **error)
{
    for (const xmlNode *child = parent->children; child; child = child->next) {
        if (child->type == XML_COMMENT_NODE || child->type == XML_PI_NODE || xmlIsBlankNode(child))
            continue;
        if (child->type != XML_ELEMENT_NODE)
            return set_bad_data(child, error, "unknown text", (const char *)child->content);
        if (!has_elements)
            return set_bad_data(child, error, "unknown element", (const char *)child->name);
    }
    return true;
}

static void
free_label(gpointer data)
{
    free_fields(&(Target){ label_fields, G_N_ELEMENTS(label_fields), data });
}

static void
free_destination(gpointer data)
{
    UprofDestinationXml *destination = data;

    g_ptr_array_unref(destination->labels);
    free_fields(&(Target){ destination_fields, G_N_ELEMENTS(destination_fields), data });
}

static bool
read_label(xmlNode *node, GPtrArray *labels, GError **error)
{
    UprofLabelXml *label = g_new0(UprofLabelXml, 1);
    const Target target = { label_fields, G_N_ELEMENTS(label_fields), label };

    g_ptr_array_add(labels, label);
    if (!is_called(node, "label"))
        return set_bad_data(node, error, "unknown element", (const char *)node->name);
    if (labels->len > UPROF_CONFIG_LABELS_MAX)
        return set_bad_data(node, error, "too many elements", "label");
    return read_attributes(node, &target, error) && check_children(node, false, error);
}

static bool
read_destination(xmlNode *node, UprofConfigXml *xml, GError **error)
{
    UprofDestinationXml *destination = g_new0(UprofDestinationXml, 1);
    const Target target = { destination_fields, G_N_ELEMENTS(destination_fields), destination };

    destination->labels = g_ptr_array_new_with_free_func(free_label);
    destination->line = xmlGetLineNo(node);
    g_ptr_array_add(xml->destinations, destination);
    if (xml->destinations->len > UPROF_CONFIG_DESTINATIONS_MAX)
        return set_bad_data(node, error, "too many elements", DESTINATION);
    if (!read_attributes(node, &target, error) || !check_children(node, true, error))
        return false;
    for (xmlNode *child = node->children; child; child = child->next)
        if (child->type == XML_ELEMENT_NODE && !read_label(child, destination->labels, error))
            return false;
    return true;
}

static bool
read_element(xmlNode *node, UprofConfigXml *xml, GError **error)
{
    const Target target = { fields, G_N_ELEMENTS(fields), xml };
    const char *name = (const char *)node->name;

    if (!is_known_element(node))
        return set_bad_data(node, error, "unknown element", name);
    if (is_called(node, DESTINATION))
        return read_destination(node, xml, error);
    if (is_repeated_element(node))
        return set_bad_data(node, error, "more than one", name);
    return read_attributes(node, &target, error) && check_children(node, false, error);
}

UprofConfigXml *
uprof_config_xml_parse(UprofSlice text, GError **error)
{
    g_autoptr(xmlDoc) doc = uprof_xml_load(text, "XML", UPROF_CONFIG_BYTES_MAX, error);
    if (!doc)
        return NULL;

    g_autoptr(UprofConfigXml) xml = g_new0(UprofConfigXml, 1);
    xml->destinations = g_ptr_array_new_with_free_func(free_destination);
    xmlNode *root = xmlDocGetRootElement(doc);
    if (root->ns || strcmp((const char *)root->name, ROOT) != 0) {
        set_bad_data(root, error, "the first element is not '" ROOT "' but",
                     (const char *)root->name);
        return NULL;
    }
    if (root->properties) {
        set_bad_data(root, error, "unknown attribute", (const char *)root->properties->name);
        return NULL;
    }
    if (!check_children(root, true, error))
        return NULL;
    for (xmlNode *node = root->children; node; node = node->next)
        if (node->type == XML_ELEMENT_NODE && !read_element(node, xml, error))
            return NULL;
    return g_steal_pointer(&xml);
}

void
uprof_config_xml_free(UprofConfigXml *xml)
{
    if (!xml)
        return;
    g_ptr_array_unref(xml->destinations);
    free_fields(&(Target){ fields, G_N_ELEMENTS(fields), xml });
}
