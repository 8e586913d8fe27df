/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output-priv.h - writes text to a sink, for the writers of formats
 */
#pragma once

#include "uprof/output.h"

/** uprof_sink_drain: writes @text to @file if there is enough; call it while appending much */
void uprof_sink_drain(UprofSink *sink);
