/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * terminal-priv.h - what stdout and stderr can show
 */
#pragma once

#include "uprof/output.h"

/**
 * uprof_terminal_style: for tables on stdout
 * @rows: at most
 *
 * A pipe or file gets plain text of any width; a terminal bars, and colors unless
 * NO_COLOR is set (https://no-color.org) or it is a dumb one.
 */
UprofTableStyle uprof_terminal_style(unsigned rows);

/** uprof_terminal_size: @rows, @columns: (out): of the terminal @fd; 24 and 80 if it does not say */
void uprof_terminal_size(int fd, unsigned *rows, unsigned *columns);

/** uprof_terminal_print: @text: (transfer full): to stdout. Returns: exit code */
int uprof_terminal_print(GString *text);
