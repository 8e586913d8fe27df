/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * begin-priv.h - the first message to a worker: the domain that it analyzes
 */
#pragma once

#include "remote-priv.h"
#include "uprof/bytes.h"

/** UprofBeginOutput: an output, whose descriptor comes with the message */
typedef struct {
    const char *format; /* name */
    const char *shown;  /* what messages call the file */
    bool is_stdout;
} UprofBeginOutput;

/** UprofBegin: what the message says. Texts are borrowed: from the caller, or from the message. */
typedef struct {
    UprofRemoteFacts facts;
    const char *shown;
    const char *run_text;        /* of uprof_capture_format_run() */
    const char *kernel;          /* (nullable) */
    const char *kernel_hint;     /* (nullable) */
    GPtrArray *metadata_symbols; /* of char; owned */
    GPtrArray *metadata_folders; /* of char; owned */
    GPtrArray *file_names;       /* of char; owned */
    GArray *outputs;             /* of UprofBeginOutput; owned */
} UprofBegin;

void uprof_begin_clear(UprofBegin *begin);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofBegin, uprof_begin_clear)

/** uprof_begin_pack: Returns: (transfer full): the message */
GByteArray *uprof_begin_pack(const UprofBegin *begin);

/**
 * uprof_begin_unpack:
 * @begin: (out): zero
 * @message: from uprof_begin_pack(), so that it is right
 */
void uprof_begin_unpack(UprofBegin *begin, UprofSlice message);
