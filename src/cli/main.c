/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Composition: options, then one command. What is global to the process
 * (signals, locale) is set here and nowhere else.
 */
#include "commands-priv.h"
#include "exit-priv.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Whoever starts us may have closed them; no file of ours shall take their place. */
static void
open_standard_files(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY); /* writing to what was closed shall fail */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int
main(int argc, char **argv)
{
    int code = UPROF_EXIT_USAGE;

    open_standard_files();
    /* a closed stdout shows as a failed write */
    signal(SIGPIPE, SIG_IGN);
    g_autoptr(UprofOptions) options = uprof_options_parse(argc, (const char **)argv, &code);

    return options ? options->command->run(options) : code;
}
