/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A fuzz target that exceeds its bound of time or memory aborts. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIB = 1024 * 1024,
    LITTLE_MIB = 4, /* realloc() may have the old and the new block at the same time */
    MUCH_MIB = 12,
    INPUT_KIB = 8,
};

/* An input of 1 KiB may use 8 MiB + 256 KiB, one of 8 KiB may use 10 MiB. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 100,
        .us_per_kib = 1000,
        .base_kib = 8 * 1024,
        .bytes_per_byte = 256,
    };
}

static void
burn_time(void)
{
    for (;;)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void
waste_memory(unsigned mib)
{
    g_autoptr(GPtrArray) blocks = g_ptr_array_new_with_free_func(free);

    for (unsigned i = 0; i < mib; i++)
        g_ptr_array_add(blocks, malloc(MIB));
}

static void
grow_block(unsigned mib)
{
    void *volatile block = NULL; /* compilers may leave out a block that nothing uses */

    for (unsigned i = 1; i <= mib; i++)
        block = realloc(block, (size_t)i * MIB);
    free(block);
}

static void
reuse_memory(void)
{
    for (unsigned i = 0; i < MUCH_MIB; i++)
        waste_memory(1);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    switch (data[0]) {
    case 't':
        burn_time();
        break;
    case 'm':
        waste_memory(MUCH_MIB);
        break;
    case 'g':
        grow_block(MUCH_MIB);
        break;
    case 'l':
        waste_memory(LITTLE_MIB);
        grow_block(LITTLE_MIB);
        reuse_memory();
        break;
    case '9': /* more than the base allows, and less than base and size allow */
        waste_memory(9);
        break;
    }
}

static void
feed_letter(char letter, size_t size)
{
    g_autofree uint8_t *data = g_malloc0(size);

    data[0] = (uint8_t)letter;
    LLVMFuzzerTestOneInput(data, size);
}

/* clang-format off */
static const struct {
    const char *name;
    char letter;
    size_t size;
    const char *message; /* (nullable): NULL: within the bounds */
} cases[] = {
    { "little", 'l', 1024, NULL },
    { "by-size", '9', INPUT_KIB * 1024, NULL },
    { "by-size-too-much", '9', 1024, "fuzz: an input of 1024 bytes uses more than 8448 KiB of memory*" },
    { "memory", 'm', 1024, "fuzz: an input of 1024 bytes uses more than 8448 KiB of memory*" },
    { "growth", 'g', 1024, "fuzz: an input of 1024 bytes uses more than 8448 KiB of memory*" },
    { "time", 't', 1024, "fuzz: an input of 1024 bytes uses more than 101* ms of processor time*" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    if (g_test_subprocess()) {
        feed_letter(cases[i].letter, cases[i].size);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    if (!cases[i].message) {
        g_test_trap_assert_passed();
        return;
    }
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(cases[i].message);
}

static void
test_worst(void)
{
    feed_letter('l', 1024);
    const FuzzWorst worst = fuzz_worst();
    g_assert_cmpuint(worst.memory_bytes, >=, LITTLE_MIB * MIB);
    g_assert_cmpuint(worst.memory_bytes, <, 2 * LITTLE_MIB * MIB);
    g_assert_cmpuint(worst.time_us, <, 1000 * 1000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/bounds/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/bounds/worst", test_worst);
    return g_test_run();
}
