/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-message-priv.h - the messages between the program and its helper, disk-helper
 *
 * The helper's standard input is a channel (channel.h). The program sends UPROF_DISK_BEGIN once,
 * and then UPROF_DISK_COPY for each file. The helper replies to each message with UPROF_DISK_REPLY,
 * and ends when the channel is closed. Both ends belong to one version, so messages are structs as
 * in memory. The program checks what the helper sends.
 */
#pragma once

#include "uprof/disk-copy.h"

enum {
    UPROF_DISK_PATH_BYTES_MAX = 4096,       /* with its NUL */
    UPROF_DISK_FILE_MIB_MAX = 256,          /* larger files are not copied */
    UPROF_DISK_BUILD_ID_BYTES_MAX = 64,     /* usual ones have 20 */
    UPROF_DISK_BEGIN_BYTES_MAX = 80 * 1024, /* of the texts of UPROF_DISK_BEGIN */
    UPROF_DISK_WORDS_BYTES_MAX = 1024,      /* of the text of UPROF_DISK_REPLY */
};

/** UprofDiskMessage: types of messages */
typedef enum {
    UPROF_DISK_BEGIN, /* UprofDiskBegin; format and path of each disk, each with a NUL at its end */
    UPROF_DISK_COPY,  /* build-id in hex and path, each with a NUL at its end; an empty file, open
                       * for  reading and writing, as a descriptor */
    UPROF_DISK_REPLY, /* UprofDiskReply, and a text about a failure */
} UprofDiskMessage;

typedef struct {
    uint32_t uid, gid; /* whose rights the helper has; 0: those of the workers */
} UprofDiskBegin;

typedef struct {
    uint32_t answer; /* UprofDiskAnswer: COPIED, MISSING, CHANGED or FAILED */
} UprofDiskReply;
