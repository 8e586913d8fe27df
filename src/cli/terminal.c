/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * terminal.c - the size and abilities of the terminal
 */
#include "terminal-priv.h"

#include "exit-priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_USUAL = 24, COLUMNS_USUAL = 80 };

void
uprof_terminal_size(int fd, unsigned *rows, unsigned *columns)
{
    struct winsize size = { 0 };
    const bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0;

    *rows = is_known && size.ws_row > 0 ? size.ws_row : ROWS_USUAL;
    *columns = is_known && size.ws_col > 0 ? size.ws_col : COLUMNS_USUAL;
}

/*
 * The program does not call setlocale(), because a locale changes how numbers are printed. So this
 * function reads the variables.
 */
static bool
is_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = g_getenv(names[i]);
        if (value && value[0])
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8");
    }
    return false;
}

static bool
wants_colors(void)
{
    const char *none = g_getenv("NO_COLOR");

    return !(none && none[0]) && g_strcmp0(g_getenv("TERM"), "dumb") != 0;
}

UprofTableStyle
uprof_terminal_style(unsigned rows)
{
    UprofTableStyle style = { .rows = rows };
    unsigned lines;

    if (!isatty(STDOUT_FILENO))
        return style;
    uprof_terminal_size(STDOUT_FILENO, &lines, &style.width);
    style.bars = true;
    style.colors = wants_colors();
    style.unicode = is_unicode();
    return style;
}

UprofErrorCode
uprof_terminal_print(GString *text)
{
    const bool ok = fwrite(text->str, 1, text->len, stdout) == text->len && fflush(stdout) == 0;

    g_string_free(text, TRUE);
    return ok ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
}
