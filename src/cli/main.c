/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Composition: options, then one command. What is global to the process
 * (signals, locale) is set here and nowhere else.
 */
#include "commands-priv.h"
#include "exit-priv.h"

#include <signal.h>

int
main(int argc, char **argv)
{
    int code = UPROF_EXIT_USAGE;

    /* a closed stdout shows as a failed write */
    signal(SIGPIPE, SIG_IGN);
    g_autoptr(UprofOptions) options = uprof_options_parse(argc, (const char **)argv, &code);

    return options ? options->command->run(options) : code;
}
