/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile-xml-priv.h"

#include <libxml/tree.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/text.h"
#include "xml-tree-priv.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlBuffer, xmlBufferFree)

/* clang-format off */
static const struct {
    const char *attribute; /* of <profile> */
    size_t offset;
    size_t edit;
} fields[] = {
    { "enabled",  G_STRUCT_OFFSET(UprofMetadata, enabled),  G_STRUCT_OFFSET(UprofMetadataEdit, enabled)  },
    { "rate",     G_STRUCT_OFFSET(UprofMetadata, rate),     G_STRUCT_OFFSET(UprofMetadataEdit, rate)     },
    { "duration", G_STRUCT_OFFSET(UprofMetadata, duration), G_STRUCT_OFFSET(UprofMetadataEdit, duration) },
    { "budget",   G_STRUCT_OFFSET(UprofMetadata, budget),   G_STRUCT_OFFSET(UprofMetadataEdit, budget)   },
};
/* clang-format on */

void
uprof_metadata_init(UprofMetadata *metadata)
{
    *metadata = (UprofMetadata){ .symbols = g_ptr_array_new_with_free_func(g_free) };
}

void
uprof_metadata_clear(UprofMetadata *metadata)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_clear_pointer((char **)G_STRUCT_MEMBER_P(metadata, fields[i].offset), g_free);
    g_clear_pointer(&metadata->bad, g_free);
    g_clear_pointer(&metadata->unwind, g_free);
    g_clear_pointer(&metadata->labels, g_free);
    g_clear_pointer(&metadata->unknown, g_free);
    g_clear_pointer(&metadata->symbols, g_ptr_array_unref);
    metadata->present = false;
}

static bool
set_bad(UprofMetadata *metadata, const char *what, const char *where)
{
    metadata->bad = g_strdup_printf("%s '%s'", what, where);
    return false;
}

static const char *
get_name(const xmlNode *node)
{
    return (const char *)node->name;
}

static const char *
get_namespace(const xmlNode *node)
{
    return node->ns ? (const char *)node->ns->href : NULL;
}

/* @value: (transfer full) (nullable) */
static bool
store_value(UprofMetadata *metadata, char **member, char *value, const char *where)
{
    g_autofree char *owned = value;

    if (owned && strlen(owned) > UPROF_METADATA_VALUE_BYTES_MAX)
        return set_bad(metadata, "too long a value of", where);

    g_free(*member);
    *member = g_steal_pointer(&owned);
    return true;
}

/* Keeps only the first path. @path: (transfer full) */
static void
note_unknown(UprofMetadata *metadata, char *path)
{
    if (metadata->unknown)
        g_free(path);
    else
        metadata->unknown = path;
}

/* Notes the children of @node, and its attributes except @known. */
static void
note_unknown_parts(UprofMetadata *metadata, const xmlNode *node, const char *known)
{
    for (const xmlAttr *attr = node->properties; attr; attr = attr->next)
        if (attr->ns || strcmp((const char *)attr->name, known) != 0)
            note_unknown(metadata, g_strdup_printf("%s/@%s", get_name(node), attr->name));
    for (const xmlNode *child = node->children; child; child = child->next)
        if (child->type == XML_ELEMENT_NODE)
            note_unknown(metadata, g_strdup_printf("%s/%s", get_name(node), get_name(child)));
}

static bool
read_attributes(xmlNode *profile, UprofMetadata *metadata)
{
    for (const xmlAttr *attr = profile->properties; attr; attr = attr->next) {
        const char *name = (const char *)attr->name;
        char **member = NULL;

        for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
            if (!attr->ns && strcmp(name, fields[i].attribute) == 0)
                member = G_STRUCT_MEMBER_P(metadata, fields[i].offset);
        if (!member)
            note_unknown(metadata, g_strdup_printf("@%s", name));
        else if (!store_value(metadata, member, uprof_xml_value(profile, name), name))
            return false;
    }
    return true;
}

static bool
read_symbols(xmlNode *node, UprofMetadata *metadata)
{
    g_autofree char *file = NULL;

    note_unknown_parts(metadata, node, "file");
    if (!store_value(metadata, &file, uprof_xml_value(node, "file"), "symbols/@file"))
        return false;
    if (!file)
        return set_bad(metadata, "no", "symbols/@file");
    if (metadata->symbols->len == UPROF_METADATA_SYMBOLS_MAX)
        return set_bad(metadata, "too many elements", "symbols");
    g_ptr_array_add(metadata->symbols, g_steal_pointer(&file));
    return true;
}

static bool
read_unwind(xmlNode *node, UprofMetadata *metadata)
{
    note_unknown_parts(metadata, node, "method");
    if (metadata->unwind)
        return set_bad(metadata, "more than one", "unwind");
    if (!store_value(metadata, &metadata->unwind, uprof_xml_value(node, "method"),
                     "unwind/@method"))
        return false;
    return metadata->unwind || set_bad(metadata, "no", "unwind/@method");
}

/* Engines take such names, which need no quotes. */
static bool
is_label_name(const char *name)
{
    static const char characters[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_";
    const size_t len = strlen(name);

    return len > 0 && len <= UPROF_METADATA_LABEL_BYTES_MAX && strspn(name, characters) == len &&
           !g_ascii_isdigit(name[0]) && !g_str_has_prefix(name, "__");
}

static bool
read_label(xmlNode *node, UprofMetadata *metadata)
{
    g_autofree char *name = uprof_xml_value(node, "name");
    g_autofree char *value = uprof_xml_value(node, "value");

    for (const xmlAttr *attr = node->properties; attr; attr = attr->next)
        if (attr->ns || (strcmp((const char *)attr->name, "name") != 0 &&
                         strcmp((const char *)attr->name, "value") != 0))
            note_unknown(metadata, g_strdup_printf("label/@%s", attr->name));
    if (!name || !is_label_name(name))
        return set_bad(metadata, "not a name of a label:", "label/@name");
    if (!value || !value[0] || strlen(value) > UPROF_METADATA_LABEL_BYTES_MAX)
        return set_bad(metadata, "no value, or too long a value of", "label/@value");
    g_autofree char *escaped = g_uri_escape_string(value, NULL, FALSE);
    char *labels = g_strconcat(metadata->labels ? metadata->labels : "",
                               metadata->labels ? "&" : "", name, "=", escaped, NULL);
    g_free(metadata->labels);
    metadata->labels = labels;
    return strlen(labels) <= UPROF_METADATA_LABELS_BYTES_MAX ||
           set_bad(metadata, "too many elements", "label");
}

static bool
check_size(xmlNode *profile, UprofMetadata *metadata)
{
    g_autoptr(xmlBuffer) buffer = xmlBufferCreate();
    const int len = xmlNodeDump(buffer, profile->doc, profile, 0, 0);

    return (len >= 0 && len <= UPROF_METADATA_BYTES_MAX) ||
           set_bad(metadata, "too long an element", "profile");
}

static bool
read_children(xmlNode *profile, UprofMetadata *metadata)
{
    const char *namespace = get_namespace(profile);

    for (xmlNode *child = profile->children; child; child = child->next) {
        bool ok = true;

        if (uprof_xml_is_element(child, "symbols", namespace))
            ok = read_symbols(child, metadata);
        else if (uprof_xml_is_element(child, "unwind", namespace))
            ok = read_unwind(child, metadata);
        else if (uprof_xml_is_element(child, "label", namespace))
            ok = read_label(child, metadata);
        else if (child->type == XML_ELEMENT_NODE)
            note_unknown(metadata, g_strdup(get_name(child)));
        if (!ok)
            return false;
    }
    return true;
}

void
uprof_metadata_read(xmlNode *profile, UprofMetadata *metadata)
{
    metadata->present = check_size(profile, metadata) && read_attributes(profile, metadata) &&
                        read_children(profile, metadata);
    if (metadata->present)
        return;

    char *bad = g_steal_pointer(&metadata->bad);
    uprof_metadata_clear(metadata);
    uprof_metadata_init(metadata);
    metadata->bad = bad;
}

/* Returns: (nullable) (transfer full): a document whose root element is <profile> */
static xmlDoc *
load_profile(UprofSlice text, GError **error)
{
    g_autoptr(xmlDoc) doc = uprof_xml_load(text, "metadata", UPROF_METADATA_BYTES_MAX, error);
    if (!doc)
        return NULL;

    const xmlNode *root = xmlDocGetRootElement(doc);
    if (uprof_xml_is_element(root, "profile", NULL) ||
        uprof_xml_is_element(root, "profile", UPROF_METADATA_NAMESPACE))
        return g_steal_pointer(&doc);
    g_autofree char *quoted = uprof_text_quote(get_name(root));
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "metadata: the element is not 'profile' but '%s'", quoted);
    return NULL;
}

bool
uprof_metadata_parse(UprofSlice text, UprofMetadata *metadata, GError **error)
{
    g_autoptr(xmlDoc) doc = load_profile(text, error);

    if (!doc)
        return false;
    uprof_metadata_read(xmlDocGetRootElement(doc), metadata);
    return true;
}

static void
remove_children(xmlNode *profile, const char *name)
{
    xmlNode *next;

    for (xmlNode *child = profile->children; child; child = next) {
        next = child->next;
        if (!uprof_xml_is_element(child, name, get_namespace(profile)))
            continue;
        xmlUnlinkNode(child);
        xmlFreeNode(child);
    }
}

static void
add_child(xmlNode *profile, const char *name, const char *attribute, const char *value)
{
    xmlNode *child = xmlNewChild(profile, profile->ns, (const xmlChar *)name, NULL);

    xmlNewProp(child, (const xmlChar *)attribute, (const xmlChar *)value);
}

static void
edit_profile(xmlNode *profile, const UprofMetadataEdit *edit)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        const char *value = G_STRUCT_MEMBER(char *, edit, fields[i].edit);
        if (value)
            xmlSetProp(profile, (const xmlChar *)fields[i].attribute, (const xmlChar *)value);
    }
    if (edit->symbols)
        remove_children(profile, "symbols");
    for (guint i = 0; edit->symbols && i < edit->symbols->len; i++)
        add_child(profile, "symbols", "file", g_ptr_array_index(edit->symbols, i));
    if (edit->unwind) {
        remove_children(profile, "unwind");
        add_child(profile, "unwind", "method", edit->unwind);
    }
}

char *
uprof_metadata_edit(UprofSlice text, const UprofMetadataEdit *edit, GError **error)
{
    static const char none[] = "<profile/>";
    const UprofSlice before = text.len ? text : (UprofSlice){ none, strlen(none) };
    g_autoptr(xmlDoc) doc = load_profile(before, error);

    if (!doc)
        return NULL;
    g_autoptr(xmlBuffer) buffer = xmlBufferCreate();
    xmlNode *profile = xmlDocGetRootElement(doc);
    edit_profile(profile, edit);
    if (xmlNodeDump(buffer, doc, profile, 0, 0) < 0) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot write XML");
        return NULL;
    }
    return g_strdup((const char *)xmlBufferContent(buffer));
}
