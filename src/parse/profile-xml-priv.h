/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile-xml-priv.h - reads <uprof:profile> inside a document that is already loaded
 */
#pragma once

#include <libxml/tree.h>

#include "uprof/profile-xml.h"

enum {
    UPROF_METADATA_BYTES_MAX = 64 * 1024,
    UPROF_METADATA_SYMBOLS_MAX = 64,
    UPROF_METADATA_VALUE_BYTES_MAX = 16 * 1024,
    UPROF_METADATA_LABEL_BYTES_MAX = 200, /* of a name, and of a value */
    UPROF_METADATA_LABELS_BYTES_MAX = 4 * 1024,
};

/**
 * uprof_metadata_read:
 * @profile: the element; its children have the same namespace as the element, or none
 * @metadata: (inout): initialized and empty; @bad says what is wrong with the element
 */
void uprof_metadata_read(xmlNode *profile, UprofMetadata *metadata);
