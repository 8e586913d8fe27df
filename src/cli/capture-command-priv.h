/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-command-priv.h - the way of commands that look at a domain, for captures in place of
 * domains
 */
#pragma once

#include "read-command-priv.h"
#include "uprof/capture-replay.h"

/** UprofCaptureWork: looks at an analyzed capture, and prints what it finds */
typedef UprofErrorCode (*UprofCaptureWork)(const UprofCaptureReplay *replay,
                                           const UprofOptions *options,
                                           const UprofNotices *notices);

/** uprof_capture_command_accepts: the words of @options are files with the ending of captures */
bool uprof_capture_command_accepts(const UprofOptions *options);

/**
 * uprof_capture_command_show: in the process without rights: analyzes each capture of the options
 * in turn
 *
 * Returns: the code for all captures
 */
UprofErrorCode uprof_capture_command_show(const UprofReadCommand *command, UprofCaptureWork work);
