/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-picture.h - a picture of all samples of a domain that `top` has seen
 *
 * The worker of the domain keeps the samples and draws the picture. The program writes its bytes to
 * a file and does not read them.
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/session.h"

/**
 * uprof_top_picture_draw: in a worker, a function for uprof_top_picture_save()
 * @argument: the facts of the run at its end: the text of uprof_capture_format_run()
 * @reply: (inout): gets the picture, or nothing if there are no samples
 */
void uprof_top_picture_draw(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);

/**
 * uprof_top_picture_save: writes the picture to a new file in the current folder
 * @call: the number of uprof_top_picture_draw() in the worker
 *
 * Returns: (transfer full) (nullable): the name of the file; %NULL with an error
 */
char *uprof_top_picture_save(UprofSession *session, unsigned call, GError **error);
