/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * terminal-priv.h - the size and abilities of the terminal
 */
#pragma once

#include "uprof/error.h"
#include "uprof/output.h"

/**
 * uprof_terminal_style: Returns: the style of tables on stdout
 * @rows: the most rows of a table
 *
 * A pipe or file gets plain text of any width. A terminal gets bars, and colors unless
 * NO_COLOR is set (https://no-color.org) or TERM is "dumb".
 */
UprofTableStyle uprof_terminal_style(unsigned rows);

/** uprof_terminal_size: @rows, @columns: (out): of the terminal @fd; 24 and 80 if unknown */
void uprof_terminal_size(int fd, unsigned *rows, unsigned *columns);

/** uprof_terminal_print: prints @text (transfer full) on stdout. Returns: NONE or FAILED */
UprofErrorCode uprof_terminal_print(GString *text);
