/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * begin-priv.h - the first message to a worker: the domain that it analyzes
 */
#pragma once

#include "remote-priv.h"
#include "uprof/bytes.h"

/** UprofBeginOutput: an output. The descriptors of checkpoints follow those of outputs. */
typedef struct {
    const char *format; /* name */
    const char *shown;  /* the name of the file, for messages */
    bool is_stdout;
    bool is_waits; /* as in UprofWorkerOutput */
} UprofBeginOutput;

/** UprofBeginMode: which process of a domain this is */
typedef enum {
    UPROF_BEGIN_FIRST,    /* the first one */
    UPROF_BEGIN_AGAIN,    /* replaces one that died at its start: leaves out unreadable files */
    UPROF_BEGIN_CONTINUE, /* replaces one that died later: begins with its checkpoint, no capture */
    UPROF_BEGIN_SAVE,     /* only writes the outputs from the checkpoint: reads no symbol files */
} UprofBeginMode;

/** UprofBeginState: the part of the message that is different for each process of a domain */
typedef struct {
    UprofRemoteFacts facts;
    UprofBeginMode mode;
    int checkpoint;   /* the one to read; -1: none */
    uint64_t outputs; /* bit i: output i is open, and its descriptor comes with the message */
    bool has_kept;    /* the last descriptor is of kept-file-priv.h */
} UprofBeginState;

/** UprofBegin: the message. Texts are borrowed: from the caller, or from the packed message. */
typedef struct {
    UprofBeginState state;
    const char *shown;
    const char *run_text;        /* of uprof_capture_format_run() */
    const char *kernel;          /* (nullable) */
    const char *kernel_hint;     /* (nullable): why @kernel is missing */
    GPtrArray *metadata_symbols; /* of char; owned */
    GPtrArray *metadata_folders; /* of char; owned */
    GPtrArray *file_names;       /* of char; owned */
    bool waits;                  /* as in UprofWorkerJob */
    GArray *outputs;             /* of UprofBeginOutput; owned */
} UprofBegin;

void uprof_begin_clear(UprofBegin *begin);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofBegin, uprof_begin_clear)

/** uprof_begin_pack: Returns: (transfer full): the message */
GByteArray *uprof_begin_pack(const UprofBegin *begin);

/** uprof_begin_set_state: changes the state in a message */
void uprof_begin_set_state(GByteArray *message, const UprofBeginState *state);

/**
 * uprof_begin_unpack:
 * @begin: (out): zero
 * @message: from uprof_begin_pack(); not checked
 */
void uprof_begin_unpack(UprofBegin *begin, UprofSlice message);
