/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * deflate-priv.h - compresses the text of a format like gzip (RFC 1952)
 *
 * The header contains no time, so that the same profile gives the same bytes.
 */
#pragma once

#include "uprof/output.h"

typedef struct _UprofDeflate UprofDeflate;

/** uprof_deflate_new: @sink: borrowed: takes the compressed bytes */
UprofDeflate *uprof_deflate_new(UprofSink *sink);

/** uprof_deflate_write: compresses all of @text, and empties @text */
void uprof_deflate_write(UprofDeflate *packer, GString *text);

/** uprof_deflate_finish: sends the last bytes to the sink, and frees @packer */
void uprof_deflate_finish(UprofDeflate *packer);
