/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: starts the second vCPU of a PC.
 */
#include "guest.h"

#define TRAMPOLINE 0x8000UL
#define LAPIC_COMMAND_LOW 0x300
#define LAPIC_COMMAND_HIGH 0x310
#define COMMAND_INIT 0x4500
#define COMMAND_STARTUP 0x4600

extern const uint8_t ap_trampoline[];
extern const uint64_t ap_trampoline_size;

uint32_t ap_root;

/* Waits some microseconds */
static void
delay(void)
{
    for (unsigned int i = 0; i < 1000; i++)
        outb(0x80, 0);
}

static void
send_command(uint32_t command)
{
    lapic_write(LAPIC_COMMAND_HIGH, 1U << 24); /* destination: APIC id 1 */
    lapic_write(LAPIC_COMMAND_LOW, command);
}

/* Makes guest_entry_ap run on vCPU 1 */
void
start_ap(void)
{
    volatile uint8_t *copy = (volatile uint8_t *)TRAMPOLINE;

    for (size_t i = 0; i < ap_trampoline_size; i++)
        copy[i] = ap_trampoline[i];
    ap_root = (uint32_t)paging_root_address();

    send_command(COMMAND_INIT);
    delay();
    for (unsigned int i = 0; i < 2 && !ap_running; i++) {
        send_command(COMMAND_STARTUP | (TRAMPOLINE >> 12));
        delay();
    }
}
