/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * begin-priv.h - the first message to a worker: the domain that it analyzes
 */
#pragma once

#include "remote-priv.h"
#include "uprof/bytes.h"

/** UprofBeginOutput: an output. Descriptors of checkpoints come behind those of outputs. */
typedef struct {
    const char *format; /* name */
    const char *shown;  /* what messages call the file */
    bool is_stdout;
} UprofBeginOutput;

/** UprofBeginMode: why a process begins with a domain */
typedef enum {
    UPROF_BEGIN_FIRST, /* the domain's first process */
    UPROF_BEGIN_AGAIN, /* the first one has died at once: files that cannot be read are left out */
    UPROF_BEGIN_CONTINUE, /* the first one has died: takes over its checkpoint, and no capture */
    UPROF_BEGIN_SAVE,     /* the same, but only writes the outputs: it reads no symbol files */
} UprofBeginMode;

/** UprofBeginState: what differs for each process of a domain */
typedef struct {
    UprofRemoteFacts facts;
    UprofBeginMode mode;
    int checkpoint;   /* which one to read; -1: none */
    uint64_t outputs; /* bit i: output i is open, and its descriptor comes with the message */
} UprofBeginState;

/** UprofBegin: what the message says. Texts are borrowed: from the caller, or from the message. */
typedef struct {
    UprofBeginState state;
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

/** uprof_begin_set_state: changes the state in a message */
void uprof_begin_set_state(GByteArray *message, const UprofBeginState *state);

/**
 * uprof_begin_unpack:
 * @begin: (out): zero
 * @message: from uprof_begin_pack(), so that it is right
 */
void uprof_begin_unpack(UprofBegin *begin, UprofSlice message);
