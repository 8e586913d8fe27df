/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xml-tree-priv.h - turns bytes into a tree of libxml2, and reads values from the tree
 *
 * Every XML reader of this module loads its text here, so that the limits hold for all.
 */
#pragma once

#include <libxml/tree.h>

#include "uprof/bytes.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

/**
 * uprof_xml_load:
 * @text: UTF-8; an encoding that the text declares is ignored
 * @what: the first words of each message; borrowed
 * @bytes_max: longer texts are refused
 *
 * Opens no file and no connection, expands no entities, refuses a DOCTYPE and prints nothing.
 *
 * Returns: (transfer full) (nullable): a document that has a root element;
 *   %NULL with %UPROF_ERROR_BAD_DATA
 */
xmlDoc *uprof_xml_load(UprofSlice text, const char *what, size_t bytes_max, GError **error);

/**
 * uprof_xml_is_element:
 * @name: without prefix; borrowed
 * @namespace: (nullable): URI; %NULL: the element must have no namespace
 */
bool uprof_xml_is_element(const xmlNode *node, const char *name, const char *namespace);

/**
 * uprof_xml_value:
 * @attribute: (nullable): name of an attribute without namespace; %NULL: the element's text
 *
 * Returns: (transfer full) (nullable): %NULL if @node has no such attribute
 */
char *uprof_xml_value(xmlNode *node, const char *attribute);
