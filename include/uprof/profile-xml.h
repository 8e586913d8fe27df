/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile-xml.h - <uprof:profile> of a domain's metadata, as it stands there
 *
 * Qualified in domain XML, bare as virDomainGetMetadata() gives it: both are
 * read. Whoever may edit the domain writes it. What the values mean is the
 * business of settings/metadata.c.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_METADATA_NAMESPACE "https://virt-uprof.org/xmlns/domain/1.0"
#define UPROF_METADATA_PREFIX "uprof"

enum {
    UPROF_METADATA_BYTES_MAX = 64 * 1024,
    UPROF_METADATA_SYMBOLS_MAX = 64,
    UPROF_METADATA_VALUE_BYTES_MAX = 16 * 1024,
};

/**
 * UprofMetadata:
 * @present: there is one, it could be read, and its namespace is ours
 * @bad: (nullable): why it could not be read; nothing else is known of it then
 * @enabled, @rate, @duration, @budget: (nullable): its attributes, and
 * @unwind: (nullable): <uprof:unwind>'s attribute method, as text
 * @symbols: of char, owned: attributes file of <uprof:symbols>
 * @unknown: (nullable): the first part that is not known, "@ATTRIBUTE",
 *   "ELEMENT" or, inside one of those two, "ELEMENT/@ATTRIBUTE"; not clean
 */
typedef struct {
    bool present;
    char *bad;
    char *enabled;
    char *rate;
    char *duration;
    char *budget;
    char *unwind;
    GPtrArray *symbols;
    char *unknown;
} UprofMetadata;

void uprof_metadata_init(UprofMetadata *metadata);
void uprof_metadata_clear(UprofMetadata *metadata);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofMetadata, uprof_metadata_clear)

/**
 * uprof_metadata_parse:
 * @text: one element, qualified or bare
 * @metadata: (inout): initialized, and empty
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if it is no XML, or another element;
 *   what is wrong with the right one is in @bad
 */
bool uprof_metadata_parse(UprofSlice text, UprofMetadata *metadata, GError **error);

/**
 * UprofMetadataEdit: what is to be so; %NULL: as it was
 * @symbols: of char: in place of all there are
 */
typedef struct {
    const char *enabled;
    const char *rate;
    const char *duration;
    const char *budget;
    const char *unwind;
    const GPtrArray *symbols;
} UprofMetadataEdit;

/**
 * uprof_metadata_edit:
 * @text: as for uprof_metadata_parse(); empty: there was none
 *
 * What is not to be changed stays, also what is not known here.
 *
 * Returns: (transfer full) (nullable): the element, in the form that it had;
 *   %NULL with %UPROF_ERROR_BAD_DATA
 */
char *uprof_metadata_edit(UprofSlice text, const UprofMetadataEdit *edit, GError **error);
