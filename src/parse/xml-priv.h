/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xml-priv.h - the one way from bytes to a tree of libxml2, and what is found there
 */
#pragma once

#include <libxml/tree.h>

#include "uprof/profile-xml.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

/**
 * uprof_xml_load:
 * @what: begins each message; borrowed
 * @bytes_max: longer texts are refused
 *
 * No network, no entities, no DOCTYPE, no words on stderr.
 *
 * Returns: (transfer full) (nullable): a document that has a root element;
 *   %NULL with %UPROF_ERROR_BAD_DATA
 */
xmlDoc *uprof_xml_load(UprofSlice text, const char *what, size_t bytes_max, GError **error);

/** uprof_xml_is_element: @namespace: (nullable): URI. Returns: whether @node is one of that name */
bool uprof_xml_is_element(const xmlNode *node, const char *name, const char *namespace);

/**
 * uprof_xml_value:
 * @attribute: (nullable): without namespace; %NULL: the element's text
 *
 * Returns: (transfer full) (nullable): %NULL if there is none
 */
char *uprof_xml_value(xmlNode *node, const char *attribute);

/**
 * uprof_metadata_read:
 * @profile: the element; what is in it is of the same namespace, or of none
 * @metadata: (inout): empty; @bad says what is wrong with the element
 */
void uprof_metadata_read(xmlNode *profile, UprofMetadata *metadata);
