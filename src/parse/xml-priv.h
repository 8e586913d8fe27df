/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xml-priv.h - the one way from bytes to a tree of libxml2
 */
#pragma once

#include <libxml/tree.h>

#include "uprof/bytes.h"

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
