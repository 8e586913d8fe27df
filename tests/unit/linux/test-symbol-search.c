/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/linux/symbol-search-priv.h"
#include "memory-guest.h"

enum {
    IMAGE_LEN = 0x40000,
    BASE = 0x1000000,
    HEAD = 0x10000, /* of the image, before its first code */
    BANNER = 0x2345,
    TYPES = 0x8000,
    TYPES_LEN = 0x10000,
    STRINGS_LEN = 0x2000,
    CODE = 0x4000, /* of idle_task() */
    RAM_LEN = 0x10000,
};

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem;
    UprofRegs regs;
    uint8_t *image;
    UprofLinuxSymbols symbols;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_LEN, .arch = "aarch64"
    };

    *fixture = (Fixture){ .guest = memory_guest_open(&plan), .image = g_malloc0(IMAGE_LEN) };
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->regs.word_bytes = 8;
}

static void
clear_fixture(Fixture *fixture)
{
    g_free(fixture->image);
    uprof_mem_free(fixture->mem);
    memory_guest_close(fixture->guest);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
search(Fixture *fixture)
{
    const UprofKernelMemory memory = { .mem = fixture->mem, .regs = &fixture->regs };

    uprof_mem_forget(fixture->mem);
    uprof_linux_symbols_search(&uprof_linux_arch_aarch64, (UprofSlice){ fixture->image, IMAGE_LEN },
                               BASE, &memory, &fixture->symbols);
}

static void
test_banner(void)
{
    static const char pattern[] = "%s: Linux version %s";
    static const char banner[] = "Linux version 6.1.0-50-arm64 (somebody)";
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    memcpy(fixture.image + 0x100, pattern, sizeof(pattern));
    search(&fixture);
    g_assert_cmphex(fixture.symbols.banner, ==, 0);
    memcpy(fixture.image + BANNER, banner, sizeof(banner));
    search(&fixture);
    g_assert_cmphex(fixture.symbols.banner, ==, BASE + BANNER);
    /* the banner ends with the image */
    memset(fixture.image, 0, IMAGE_LEN);
    memcpy(fixture.image + IMAGE_LEN - 14, banner, 14);
    fixture.symbols.banner = 0;
    search(&fixture);
    g_assert_cmphex(fixture.symbols.banner, ==, 0);
}

static void
test_text(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    fixture.symbols.first_code = BASE + HEAD;
    search(&fixture);
    g_assert_cmphex(fixture.symbols.text, ==, BASE);
    fixture.symbols.text = BASE + 4;
    search(&fixture);
    g_assert_cmphex(fixture.symbols.text, ==, BASE + 4);
}

static void
put_types(uint8_t *at, uint16_t magic, uint32_t types_len, uint32_t strings, uint32_t strings_len)
{
    const uint32_t words[] = {
        GUINT32_TO_LE(magic | 1U << 16), GUINT32_TO_LE(24),      0,
        GUINT32_TO_LE(types_len),        GUINT32_TO_LE(strings), GUINT32_TO_LE(strings_len)
    };

    memcpy(at, words, sizeof(words));
}

static void
test_types(void)
{
    static const struct {
        uint16_t magic;
        uint32_t types_len, strings, strings_len;
    } bad[] = {
        { 0xeb9e, TYPES_LEN, TYPES_LEN, STRINGS_LEN },
        { 0xeb9f, TYPES_LEN, TYPES_LEN + 4, STRINGS_LEN },
        { 0xeb9f, 0x100, 0x100, 0x100 },               /* too few for a kernel */
        { 0xeb9f, IMAGE_LEN, IMAGE_LEN, STRINGS_LEN }, /* beyond the image */
        { 0xeb9f, UINT32_MAX, UINT32_MAX, UINT32_MAX },
    };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        put_types(fixture.image + TYPES, bad[i].magic, bad[i].types_len, bad[i].strings,
                  bad[i].strings_len);
        search(&fixture);
        g_assert_cmphex(fixture.symbols.btf_start, ==, 0);
    }
    put_types(fixture.image + TYPES, 0xeb9f, TYPES_LEN, TYPES_LEN, STRINGS_LEN);
    search(&fixture);
    g_assert_cmphex(fixture.symbols.btf_start, ==, BASE + TYPES);
    g_assert_cmphex(fixture.symbols.btf_end, ==, BASE + TYPES + 24 + TYPES_LEN + STRINGS_LEN);
}

/* clang-format off */
static const struct {
    const char *name;
    uint32_t insns[12];
    bool is_understood;
} codes[] = {
    /* Debian's 6.1, as compiled: two NOPs are for ftrace */
    { "usual",   { 0xd503201f, 0xd503201f, 0xb0000002, 0x913da042, 0xd0000001, 0x91290021, 0xf860d840, 0xd503233f, 0xd50323bf, 0x8b010000, 0xf944b400, 0xd65f03c0 }, true },
    { "traced",  { 0xaa1e03e9, 0xd503201f, 0xb0000002, 0x913da042, 0xd0000001, 0x91290021, 0xf860d840, 0xd503233f, 0xd50323bf, 0x8b010000, 0xf944b400, 0xd65f03c0 }, true },
    { "swapped", { 0xd503201f, 0xd503201f, 0xb0000002, 0x913da042, 0xd0000001, 0x91290021, 0xf860d840, 0xd503201f, 0xd503201f, 0x8b000020, 0xf944b400, 0xd65f03c0 }, true },
    { "branch",  { 0xd503201f, 0xb4000080, 0xb0000002, 0x913da042, 0xd0000001, 0x91290021, 0xf860d840, 0xd503233f, 0xd50323bf, 0x8b010000, 0xf944b400, 0xd65f03c0 }, false },
    { "no-load", { 0xd503201f, 0xd503201f, 0xb0000002, 0x913da042, 0xd0000001, 0x91290021, 0x8b010040, 0xd65f03c0 }, false },
    { "unknown-base", { 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f, 0xd0000001, 0x91290021, 0xf860d840, 0x8b010000, 0xd65f03c0 }, false },
    { "return",  { 0xd65f03c0 }, false },
};
/* clang-format on */

/* The code is at CODE, and ADRP adds one page (0xb...) or two pages (0xd...) to this address. */
static void
test_code(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    for (size_t k = 0; k < G_N_ELEMENTS(codes[i].insns); k++)
        memory_guest_put_u32(fixture.guest, CODE + 4 * k, codes[i].insns[k]);
    fixture.symbols.idle_task_code = CODE;
    search(&fixture);
    g_assert_cmphex(fixture.symbols.cpu_areas, ==, codes[i].is_understood ? CODE + 0x1f68 : 0);
    g_assert_cmphex(fixture.symbols.run_queues, ==, codes[i].is_understood ? CODE + 0x2a40 : 0);
}

/* Code at the end of memory, and any bytes as code */
static void
test_hostile_code(void)
{
    enum { ROUNDS = 20000, INSNS = 16 };
    g_auto(Fixture) fixture;
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);

    init_fixture(&fixture);
    fixture.symbols.idle_task_code = RAM_LEN - 4;
    search(&fixture);
    g_assert_cmphex(fixture.symbols.run_queues, ==, 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t areas = 0, queues = 0;
        for (unsigned k = 0; k < INSNS; k++) {
            const uint32_t insn = codes[i % 2].insns[k % G_N_ELEMENTS(codes[0].insns)];
            memory_guest_put_u32(fixture.guest, CODE + 4 * k,
                                 insn ^ UINT32_C(1) << g_rand_int_range(rand, 0, 32));
        }
        uprof_mem_forget(fixture.mem);
        uprof_linux_arch_aarch64.read_cpu_areas(fixture.mem, 0, &fixture.regs, CODE, &areas,
                                                &queues);
        g_assert_true((areas == 0) == (queues == 0));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/symbol-search/banner", test_banner);
    g_test_add_func("/symbol-search/text", test_text);
    g_test_add_func("/symbol-search/types", test_types);
    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
        g_autofree char *path = g_strdup_printf("/symbol-search/code/%s", codes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_code);
    }
    g_test_add_func("/symbol-search/hostile-code", test_hostile_code);
    return g_test_run();
}
