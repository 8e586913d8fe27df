/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xml-tree-priv.h"

#include <libxml/parser.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/text.h"

/*
 * Without XML_PARSE_HUGE libxml2 limits the depth of a document to 256 elements, and with
 * the depth its own recursion. A DOCTYPE stops the parser before the parser reads an entity
 * of the DOCTYPE. The parser ignores the encoding that a text declares, because libvirt
 * sends UTF-8.
 */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlParserCtxt, xmlFreeParserCtxt)

bool
uprof_xml_is_element(const xmlNode *node, const char *name, const char *namespace)
{
    const char *href = node->ns ? (const char *)node->ns->href : NULL;

    return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0 &&
           g_strcmp0(href, namespace) == 0;
}

char *
uprof_xml_value(xmlNode *node, const char *attribute)
{
    xmlChar *raw =
        attribute ? xmlGetNoNsProp(node, (const xmlChar *)attribute) : xmlNodeGetContent(node);
    char *value = g_strdup((const char *)raw);

    if (raw)
        xmlFree(raw);
    return value;
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
