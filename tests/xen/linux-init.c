/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only program of the lab's Linux guest: says that it is there, and works,
 * some in user mode and some in the kernel.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

enum { SPINS = 100000, RANDOM_BYTES = 4096 };

static volatile unsigned long sum;

static void __attribute__((noinline)) spin_in_user_mode(void)
{
    for (unsigned i = 0; i < SPINS; i++)
        sum = sum * 5 + 1;
}

static void __attribute__((noinline)) read_random(int file)
{
    char bytes[RANDOM_BYTES];

    if (read(file, bytes, sizeof(bytes)) > 0)
        sum += (unsigned char)bytes[0];
}

int
main(void)
{
    static const char words[] = "lab init: running\n";

    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    const int console = open("/dev/hvc0", O_WRONLY);
    const int random = open("/dev/urandom", O_RDONLY);
    if (write(console, words, sizeof(words) - 1) < 0)
        sum++;
    /* one for each vCPU */
    if (fork() < 0)
        return 1;
    for (;;) {
        spin_in_user_mode();
        read_random(random);
    }
}
