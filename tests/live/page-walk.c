/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * page-walk URI UUID NAME N: compares virt-uprof's walks through the page tables of a guest with
 * the translations of QEMU, for N random addresses; half of them lie in the first 4 GiB, a quarter
 * around the stack pointer, the others anywhere. The guest must be one of ours, which does not
 * change its tables.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uprof/backend.h"
#include "uprof/mem.h"

enum { NEAR = 1 << 20, SAMPLES = 3 };

/* Samples once, so that a search finds the roots. @regs: (out): with what was found */
static bool
sample(UprofGuest *guest, UprofMem *mem, UprofRegs *regs, GError **error)
{
    g_auto(UprofHold) hold = { 0 };
    uint64_t word;

    if (uprof_guest_hold(guest, 0, &hold, error) != UPROF_OK ||
        uprof_guest_read_regs(guest, 0, regs, error) != UPROF_OK)
        return false;
    uprof_mem_copy(mem, 0, regs, regs->sp, &word, sizeof(word));
    if (uprof_hold_release(&hold, NULL, NULL, error) != UPROF_OK)
        return false;
    uprof_mem_check(mem);
    memcpy(regs->sys, guest->found_sys, sizeof(regs->sys));
    return true;
}

static uint64_t
random_address(GRand *random, const UprofRegs *regs, unsigned i)
{
    const bool is_on = regs->sys[UPROF_ARM_SCTLR] & UPROF_ARM_SCTLR_M;
    /* Physical addresses of a processor have 40 bits at least. */
    const uint64_t any = ((uint64_t)g_rand_int(random) << 32 | g_rand_int(random)) &
                         (is_on ? UINT64_MAX : (UINT64_C(1) << 40) - 1);

    return i % 2 == 0 ? (uint32_t)any : i % 4 == 1 ? regs->sp - NEAR / 2 + any % NEAR : any;
}

/* Returns: how many addresses are mapped; -1 if one differs */
static int
compare(UprofGuest *guest, UprofMem *mem, const UprofRegs *regs, unsigned n)
{
    g_autoptr(GRand) random = g_rand_new();
    int n_mapped = 0;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t gva = random_address(random, regs, i);
        uint64_t ours = 0, theirs = 0, left;
        const bool is_mapped = uprof_mem_translate(mem, 0, regs, gva, &ours, &left, NULL);
        if (uprof_guest_ask_translation(guest, 0, gva, &theirs) != is_mapped || ours != theirs) {
            fprintf(stderr,
                    "0x%" PRIx64 ": 0x%" PRIx64 ", but QEMU says 0x%" PRIx64 "; TCR_EL1 0x%" PRIx64
                    ", TTBR0_EL1 0x%" PRIx64 ", TTBR1_EL1 0x%" PRIx64 "\n",
                    gva, ours, theirs, regs->sys[UPROF_ARM_TCR], regs->sys[UPROF_ARM_TTBR0],
                    regs->sys[UPROF_ARM_TTBR1]);
            return -1;
        }
        n_mapped += is_mapped;
    }
    return n_mapped;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    UprofRegs regs;

    if (argc != 5)
        return 2;
    const UprofTarget target = { .uri = argv[1],
                                 .uuid = argv[2],
                                 .name = argv[3],
                                 .id = -1,
                                 .arch = uprof_arch_find("aarch64"),
                                 .n_vcpus = 1 };
    g_autoptr(UprofGuest) guest = uprof_guest_open(&uprof_monitor_ops, &target, &error);
    if (!guest) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    g_autoptr(UprofMem) mem = uprof_mem_new(guest, UPROF_LANE_SAMPLER);
    for (unsigned i = 0; i < SAMPLES; i++)
        if (!sample(guest, mem, &regs, &error)) {
            fprintf(stderr, "%s\n", error ? error->message : "no sample");
            return 1;
        }
    const unsigned n = (unsigned)strtoul(argv[4], NULL, 10);
    const int n_mapped = compare(guest, mem, &regs, n);
    if (n_mapped < 0)
        return 1;
    printf("%u addresses, %d of them mapped: as QEMU says (%s)\n", n, n_mapped,
           uprof_paging_name(guest->arch, &regs));
    return n_mapped > 0 ? 0 : 1;
}
