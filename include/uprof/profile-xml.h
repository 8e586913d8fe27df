/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile-xml.h - reads and edits <uprof:profile> in the metadata of a domain
 *
 * The element is qualified in the XML of a domain, and bare in the result of
 * virDomainGetMetadata(). The parser accepts both forms. Every user who may edit the domain can
 * write the element, so the parser treats it as hostile. settings/metadata.c gives the values their
 * meaning.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_METADATA_NAMESPACE "https://virt-uprof.org/xmlns/domain/1.0"
#define UPROF_METADATA_PREFIX "uprof"

/** UprofMetadata: attributes and children of the element; all strings are owned */
typedef struct {
    bool present;       /* the element exists in this namespace, and was readable */
    char *bad;          /* (nullable): why the element is unreadable; the rest is empty then */
    char *enabled;      /* @enabled; (nullable) */
    char *rate;         /* @rate; (nullable) */
    char *duration;     /* @duration; (nullable) */
    char *budget;       /* @budget; (nullable) */
    char *unwind;       /* <uprof:unwind>'s attribute method; (nullable) */
    GPtrArray *symbols; /* of char *, owned: attribute file of each <uprof:symbols> */
    /* (nullable): attributes of each <uprof:label>, as in a URL: "team=web&owner=a%20b" */
    char *labels;
    /* (nullable): the first unknown part: "@ATTRIBUTE", "ELEMENT", or "ELEMENT/@ATTRIBUTE" inside
     * one of the known elements; may have control characters */
    char *unknown;
} UprofMetadata;

void uprof_metadata_init(UprofMetadata *metadata);
void uprof_metadata_clear(UprofMetadata *metadata);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofMetadata, uprof_metadata_clear)

/**
 * uprof_metadata_parse:
 * @text: one element, qualified or bare
 * @metadata: (inout): initialized and empty; @bad says what is wrong with the element
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if @text is not XML, or is another element
 */
bool uprof_metadata_parse(UprofSlice text, UprofMetadata *metadata, GError **error);

/** UprofMetadataEdit: new values, borrowed; %NULL leaves the old value */
typedef struct {
    const char *enabled;
    const char *rate;
    const char *duration;
    const char *budget;
    const char *unwind;
    const GPtrArray *symbols; /* of char *: replace all files of symbols */
} UprofMetadataEdit;

/**
 * uprof_metadata_edit:
 * @text: as for uprof_metadata_parse(); empty if the domain has no such element
 *
 * Keeps all other parts of the element, unknown ones included.
 *
 * Returns: (transfer full) (nullable): the element, qualified or bare as before;
 *   %NULL with %UPROF_ERROR_BAD_DATA
 */
char *uprof_metadata_edit(UprofSlice text, const UprofMetadataEdit *edit, GError **error);
