/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * diagnosis.h - findings about a domain or the host: what works, what does not, and what to do
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/error.h"

/** UprofLevel: the severity of a finding */
typedef enum {
    UPROF_LEVEL_OK,
    UPROF_LEVEL_NOTE,
    UPROF_LEVEL_WARN,
    UPROF_LEVEL_FAIL,
} UprofLevel;

/** UprofFinding: one line; all members are owned */
typedef struct {
    UprofLevel level;
    char *topic;
    char *text; /* safe to print */
} UprofFinding;

/** UprofDiagnosis: the findings; all members are owned */
typedef struct {
    char *title;         /* the domain, or the host */
    GArray *findings;    /* of UprofFinding */
    UprofErrorCode code; /* of the worst finding */
} UprofDiagnosis;

void uprof_diagnosis_init(UprofDiagnosis *diagnosis, const char *title);
void uprof_diagnosis_clear(UprofDiagnosis *diagnosis);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofDiagnosis, uprof_diagnosis_clear)

/** uprof_diagnosis_add: adds a finding; @format and its arguments must be safe to print */
void uprof_diagnosis_add(UprofDiagnosis *diagnosis, UprofLevel level, const char *topic,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);

/** uprof_diagnosis_add_error: adds a failure with the message of @error, and notes its code */
void uprof_diagnosis_add_error(UprofDiagnosis *diagnosis, const char *topic, const GError *error);

/** uprof_diagnosis_pack: appends the findings to @bytes, for another process */
void uprof_diagnosis_pack(const UprofDiagnosis *diagnosis, GByteArray *bytes);

/**
 * uprof_diagnosis_unpack: adds the findings of another process
 * @packed: any bytes; ignored from the first malformed finding on
 */
void uprof_diagnosis_unpack(UprofDiagnosis *diagnosis, UprofSlice packed);
