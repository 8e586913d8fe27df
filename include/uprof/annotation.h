/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * annotation.h - the samples of one function by instruction, and by line of the source
 *
 * Several functions can have the same name, such as static functions of several files.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofAnnotatedInsn: an instruction; texts are clean, and borrowed */
typedef struct {
    uint64_t address;   /* as the file was linked; the guest's if there is no file */
    uint64_t samples;   /* with this program counter */
    const char *text;   /* (nullable): %NULL: the bytes of the code are not known */
    const char *callee; /* (nullable): the other function to which it jumps, or which it calls */
    const char *line;   /* (nullable): such as "file.c:12" */
} UprofAnnotatedInsn;

/** UprofAnnotatedFunction: one of the functions; owned by the annotation */
typedef struct {
    const char *image; /* (nullable): label of its image; borrowed */
    uint64_t start;    /* address of its first instruction, as above */
    uint64_t self;     /* samples of all its instructions */
    GArray *insns;     /* of UprofAnnotatedInsn, by address; owned */
} UprofAnnotatedFunction;

/** UprofAnnotation: all functions of the name */
typedef struct {
    uint64_t all;         /* samples of running vCPUs, in all functions; the caller sets it */
    uint64_t n_left_out;  /* samples that could not be counted by address: there were too many */
    GPtrArray *functions; /* of UprofAnnotatedFunction; the hottest first; owned */
    GStringChunk *texts;  /* owned */
} UprofAnnotation;

UprofAnnotation *uprof_annotation_new(void);
void uprof_annotation_free(UprofAnnotation *annotation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofAnnotation, uprof_annotation_free)

/** uprof_annotation_begin: adds a function without instructions. Returns: (transfer none): the
 * function */
UprofAnnotatedFunction *
uprof_annotation_begin(UprofAnnotation *annotation, const char *image, uint64_t start);

/**
 * uprof_annotation_add: adds an instruction
 * @insn: its texts are copied
 */
void uprof_annotation_add(UprofAnnotation *annotation, UprofAnnotatedFunction *function,
                          const UprofAnnotatedInsn *insn);

/** uprof_annotation_sort: puts the functions in order; call it after the last instruction */
void uprof_annotation_sort(UprofAnnotation *annotation);

/** uprof_annotation_self: Returns: the samples of all its functions */
uint64_t uprof_annotation_self(const UprofAnnotation *annotation);

/** UprofAnnotatedLine: a line of the source */
typedef struct {
    const char *line; /* (nullable): %NULL: the instructions without a known line; borrowed */
    uint64_t samples;
} UprofAnnotatedLine;

/**
 * uprof_annotation_lines: Returns: (transfer full): of UprofAnnotatedLine: the lines of all
 * functions that have samples, the hottest first; empty if no line is known
 */
GArray *uprof_annotation_lines(const UprofAnnotation *annotation);
