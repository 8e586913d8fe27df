/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: serial line, clock and power control of a PC, and
 * the start of the guests that are not paravirtual.
 */
#include "guest.h"

#define COM1 0x3f8
#define RTC_INDEX 0x70
#define RTC_DATA 0x71
#define PM1A_CONTROL 0x604
#define PM1A_SLEEP_S5 0x2000
#define KEYBOARD_CONTROL 0x64
#define KEYBOARD_RESET 0xfe

/* The first members of struct hvm_start_info in the PVH boot protocol */
struct start_info {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t nr_modules;
    uint64_t modlist_paddr;
    uint64_t cmdline_paddr;
};

#define START_INFO_MAGIC 0x336ec578

unsigned long guest_setup(const struct start_info *info);

void
serial_puts(const char *text)
{
    for (; *text; text++) {
        while (!(inb(COM1 + 5) & 0x20))
            ;
        outb(COM1, (uint8_t)*text);
    }
}

void
halt_forever(const char *reason)
{
    serial_puts("virt-uprof guest: ");
    serial_puts(reason);
    serial_puts("\n");
    for (;;)
        __asm__ volatile("cli; hlt");
}

void
power_off(void)
{
    outw(PM1A_CONTROL, PM1A_SLEEP_S5);
    for (;;)
        __asm__ volatile("cli; hlt");
}

void
reset(void)
{
    outb(KEYBOARD_CONTROL, KEYBOARD_RESET);
    for (;;)
        __asm__ volatile("cli; hlt");
}

unsigned int
clock_second(void)
{
    outb(RTC_INDEX, 0);
    return inb(RTC_DATA);
}

/* guest_entry calls this on the identity-mapped stack; returns the top of the final stack */
unsigned long
guest_setup(const struct start_info *info)
{
    if (info->magic == START_INFO_MAGIC && info->cmdline_paddr)
        parse_command_line((const char *)(uintptr_t)info->cmdline_paddr);

    if (options.nopaging)
        return (unsigned long)(uintptr_t)stack_region.hole_above;
    return paging_setup();
}
