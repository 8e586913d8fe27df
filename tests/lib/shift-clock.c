/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shift-clock.c - a library to preload: changes the time of day
 *
 * UPROF_TEST_CLOCK: a file with the number of seconds to add. The library reads the file at each
 * call, so that a test can change the time while a program runs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long
read_shift(void)
{
    const char *path = getenv("UPROF_TEST_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32] = "";

    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *);

    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += read_shift();
    return result;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;

    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t
time(time_t *now)
{
    struct timespec precise;

    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
