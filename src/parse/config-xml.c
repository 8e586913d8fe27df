/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/config-xml.h"

#include "config-xml-priv.h"

#include <libxml/tree.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/text.h"
#include "xml-tree-priv.h"

#define ROOT "virt-uprof"
#define AT(member) G_STRUCT_OFFSET(UprofConfigXml, member)

/* clang-format off */
static const struct {
    const char *element;
    const char *attribute;
    size_t offset;
} fields[] = {
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
};
/* clang-format on */

static bool
set_bad_data(const xmlNode *node, GError **error, const char *what, const char *name)
{
    g_autofree char *quoted = uprof_text_quote(name);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "line %ld: %s '%s'",
                xmlGetLineNo((xmlNode *)node), what, quoted);
    return false;
}

static bool
read_attribute(xmlNode *node, const xmlAttr *attr, UprofConfigXml *xml, GError **error)
{
    const char *name = (const char *)attr->name;
    char **member = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (strcmp((const char *)node->name, fields[i].element) == 0 &&
            strcmp(name, fields[i].attribute) == 0)
            member = G_STRUCT_MEMBER_P(xml, fields[i].offset);
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
is_known_element(const xmlNode *node)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields) && !node->ns; i++)
        if (strcmp((const char *)node->name, fields[i].element) == 0)
            return true;
    return false;
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

/* Refuses text between elements too. The parser leaves references to entities unexpanded. */
static bool
check_siblings(const xmlNode *child, GError **error)
{
    for (; child; child = child->next) {
        if (child->type == XML_COMMENT_NODE || child->type == XML_PI_NODE || xmlIsBlankNode(child))
            continue;
        if (child->type != XML_ELEMENT_NODE)
            return set_bad_data(child, error, "unknown text", (const char *)child->content);
        if (strcmp((const char *)child->parent->name, ROOT) != 0)
            return set_bad_data(child, error, "unknown element", (const char *)child->name);
    }
    return true;
}

static bool
read_element(xmlNode *node, UprofConfigXml *xml, GError **error)
{
    const char *name = (const char *)node->name;

    if (!is_known_element(node))
        return set_bad_data(node, error, "unknown element", name);
    if (is_repeated_element(node))
        return set_bad_data(node, error, "more than one", name);
    for (const xmlAttr *attr = node->properties; attr; attr = attr->next)
        if (!read_attribute(node, attr, xml, error))
            return false;
    return check_siblings(node->children, error);
}

UprofConfigXml *
uprof_config_xml_parse(UprofSlice text, GError **error)
{
    g_autoptr(xmlDoc) doc = uprof_xml_load(text, "XML", UPROF_CONFIG_BYTES_MAX, error);
    if (!doc)
        return NULL;

    g_autoptr(UprofConfigXml) xml = g_new0(UprofConfigXml, 1);
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
    if (!check_siblings(root->children, error))
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
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_free(G_STRUCT_MEMBER(char *, xml, fields[i].offset));
    g_free(xml);
}
