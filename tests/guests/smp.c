/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: a workload for two vCPUs, whose functions have
 * different names.  A guest with one vCPU runs only the part of vCPU 0.
 */
#include "guest.h"

volatile bool ap_running;

NOINLINE static void
vcpu0_work(unsigned long iterations)
{
    volatile unsigned long sum = iterations;

    while (iterations-- > 0)
        sum = sum * 5 + 1;
}

NOINLINE static void
vcpu1_work(unsigned long iterations)
{
    volatile unsigned long sum = iterations;

    while (iterations-- > 0)
        sum = sum * 5 + 1;
}

NOINLINE void
vcpu0_loop(void)
{
    start_ap();
    for (;;) {
        vcpu0_work(10 * options.unit);
        uprof_counter++;
    }
}

NOINLINE static void
vcpu1_loop(void)
{
    for (;;) {
        vcpu1_work(10 * options.unit);
        uprof_counter_ap++;
    }
}

/* Called by guest_entry_ap */
NOINLINE void
ap_main(void)
{
    ap_running = true;
    vcpu1_loop();
}
