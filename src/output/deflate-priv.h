/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * deflate-priv.h - what a writer says, packed as gzip does (RFC 1952)
 *
 * The header has no time, so that the same profile gives the same bytes.
 */
#pragma once

#include "uprof/output.h"

typedef struct _UprofDeflate UprofDeflate;

/** uprof_deflate_new: @sink: borrowed: gets what is packed */
UprofDeflate *uprof_deflate_new(UprofSink *sink);

/** uprof_deflate_write: packs all of @text, and empties it */
void uprof_deflate_write(UprofDeflate *packer, GString *text);

/** uprof_deflate_finish: frees it; the sink has all of it */
void uprof_deflate_finish(UprofDeflate *packer);
