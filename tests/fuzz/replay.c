/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * replay.c - feeds a corpus to a fuzz target, without libFuzzer
 *
 * Usage: replay-PARSER FOLDER. Feeds each file, every prefix of a short file, and some hundred
 * mutations of each file. The mutations are the same in every run.
 */
#include "fuzz.h"

#include "../../src/base/sanitized-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PREFIX_BYTES_MAX = 1024,
    MUTATIONS = 400, /* per file, unless the target says otherwise */
    CHANGES_MAX = 4, /* per mutation */
    PLAIN_DIVISOR = 4,
};

/* Feeds a copy of exactly that size, so that sanitizers detect reads after its end. */
static void
feed_input(const guint8 *data, size_t len)
{
    g_autofree uint8_t *copy = g_memdup2(data, len);

    LLVMFuzzerTestOneInput(copy, len);
}

static void
change_bytes(GByteArray *input, GRand *random)
{
    static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '"', '<', '=', '[', '{' };
    const guint at = g_rand_int_range(random, 0, input->len);
    const guint wanted = 1U << g_rand_int_range(random, 0, 6);
    const guint len = MIN(input->len - at, wanted);

    switch (g_rand_int_range(random, 0, 5)) {
    case 0:
        input->data[at] ^= 1 << g_rand_int_range(random, 0, 8);
        break;
    case 1:
        input->data[at] = bytes[g_rand_int_range(random, 0, G_N_ELEMENTS(bytes))];
        break;
    case 2:
        memset(input->data + at, g_rand_boolean(random) ? 0xff : 0, len);
        break;
    case 3:
        if (len < input->len)
            g_byte_array_remove_range(input, at, len);
        break;
    default: {
        g_autofree guint8 *again = g_memdup2(input->data + at, len);
        g_byte_array_append(input, again, len);
        break;
    }
    }
}

/* A build without sanitizers finds less in the same time, so it feeds fewer mutations. */
static unsigned
count_mutations(void)
{
    const FuzzBounds bounds = fuzz_bounds();

    const unsigned n = bounds.n_mutations > 0 ? bounds.n_mutations : MUTATIONS;
    return IS_SANITIZED ? n : n / PLAIN_DIVISOR;
}

/* Feeds all prefixes of a short file; some of them if the target has a small n_mutations. */
static void
feed_prefixes(const guint8 *data, size_t len)
{
    const size_t n = count_mutations();
    const size_t step = n < MUTATIONS && len > n ? len / n : 1;

    for (size_t at = 0; len <= PREFIX_BYTES_MAX && at < len; at += step)
        feed_input(data, at);
}

static void
feed_mutations(const guint8 *data, size_t len)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(len);

    const unsigned n_mutations = count_mutations();

    for (unsigned i = 0; len > 0 && i < n_mutations; i++) {
        g_autoptr(GByteArray) input = g_byte_array_new();

        g_byte_array_append(input, data, len);
        for (int n = g_rand_int_range(random, 1, CHANGES_MAX + 1); n > 0; n--)
            change_bytes(input, random);
        feed_input(input->data, input->len);
    }
}

static void
replay_file(const char *path)
{
    g_autofree char *data = NULL;
    g_autoptr(GError) error = NULL;
    size_t len;

    if (!g_file_get_contents(path, &data, &len, &error))
        g_error("%s", error->message);
    feed_input((const guint8 *)data, len);
    feed_prefixes((const guint8 *)data, len);
    feed_mutations((const guint8 *)data, len);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int
main(int argc, char **argv)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) folder = argc == 2 ? g_dir_open(argv[1], 0, NULL) : NULL;
    const char *name;

    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return EXIT_FAILURE;
    }
    while ((name = g_dir_read_name(folder)))
        g_ptr_array_add(names, g_build_filename(argv[1], name, NULL));
    g_ptr_array_sort(names, compare_names);

    for (unsigned i = 0; i < names->len; i++) {
        printf("%s\n", (const char *)g_ptr_array_index(names, i));
        fflush(stdout); /* so that the name is printed before a crash */
        replay_file(g_ptr_array_index(names, i));
    }
    const FuzzWorst worst = fuzz_worst();
    printf("at most %.1f ms and %.1f KiB for one input\n", (double)worst.time_us / 1000,
           (double)worst.memory_bytes / 1024);
    return names->len > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
