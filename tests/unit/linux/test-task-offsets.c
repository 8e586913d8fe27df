/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/linux/task-offsets-priv.h"

#include "../../../src/linux/arch-table-priv.h"
#include "../../lib/build-btf.h"

#include "uprof/arch.h"

static const char *const names[] = { "tasks", "thread_node", "signal",  "pid",
                                     "tgid",  "comm",        "__state", "exit_state" };

/* Types of a kernel whose tasks have a needed member all @apart bytes. */
static GByteArray *
build_types(uint32_t apart)
{
    BtfMember members[G_N_ELEMENTS(names)];
    g_auto(BtfBuilder) builder;

    btf_init(&builder);
    const unsigned word =
        btf_add(&builder, "unsigned long", BTF_INT, false, 0, 8, (uint32_t[]){ 64 }, 1);
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++)
        members[i] = (BtfMember){ names[i], word, 8 * i * apart };
    btf_add_struct(&builder, "task_struct", BTF_STRUCT, false, apart * G_N_ELEMENTS(names), members,
                   G_N_ELEMENTS(names));
    btf_add_struct(&builder, "signal_struct", BTF_STRUCT, false, 8,
                   &(BtfMember){ "thread_head", word, 0 }, 1);
    return btf_finish(&builder);
}

/* Returns: (nullable): what is missing; literal */
static const char *
find_offsets(uint32_t apart, UprofTaskOffsets *offsets)
{
    g_autoptr(GByteArray) types = build_types(apart);
    g_autoptr(UprofBtf) btf = uprof_btf_parse((UprofSlice){ types->data, types->len }, NULL);

    g_assert_nonnull(btf);
    return uprof_task_offsets_find(btf, uprof_linux_arch_find(uprof_arch_find("x86_64")), offsets);
}

static void
test_parts(void)
{
    static const struct {
        uint32_t apart; /* bytes between two members */
        unsigned n_parts;
    } cases[] = {
        { 64, 1 },
        { 500, 1 }, /* the bytes between the members take less than more parts */
        { 600, 8 }, /* one part would be too large */
        { 1000, 8 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        UprofTaskOffsets offsets;
        g_assert_null(find_offsets(cases[i].apart, &offsets));
        g_assert_cmpuint(offsets.n_parts, ==, cases[i].n_parts);
        for (uint32_t k = 0; k < G_N_ELEMENTS(names); k++) {
            UprofTaskBytes bytes = { { 0 } };
            const uint8_t *at = uprof_task_bytes_at(&offsets, &bytes, k * cases[i].apart, 4);
            g_assert_nonnull(at);
            g_assert_cmpuint(at - bytes.bytes, <=, sizeof(bytes.bytes) - 4);
        }
    }
}

/* The parts of a task that is too large cannot be read. */
static void
test_far(void)
{
    UprofTaskOffsets offsets;

    g_assert_cmpstr(find_offsets(20 * 1000, &offsets), ==, "a usable task_struct");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linux/task-offsets/parts", test_parts);
    g_test_add_func("/linux/task-offsets/far", test_far);
    return g_test_run();
}
