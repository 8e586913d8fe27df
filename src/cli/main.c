/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Composition: options, then one command. What is global to the process
 * (signals, locale) is set here and nowhere else.
 */
#include "commands-priv.h"
#include "exit-priv.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
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

/* Each vCPU that is sampled takes a few; the usual limit is for programs with select(2). */
static void
raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int
main(int argc, char **argv)
{
    int code = UPROF_EXIT_USAGE;

    open_standard_files();
    raise_file_limit();
    /* a closed stdout, or a file that may not grow, shows as a failed write */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "--complete") == 0)
        return uprof_complete_run(argc - 2, (const char *const *)argv + 2);
    g_autoptr(UprofOptions) options = uprof_options_parse(argc, (const char **)argv, &code);

    return options ? options->command->run(options) : code;
}
