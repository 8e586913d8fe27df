/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: the paravirtual guest's interface to Xen. The guest
 * has no devices and no page tables of its own. Xen's domain builder has laid out
 * its memory, and its text goes to the console that dom0 provides for each domain.
 */
#include "guest.h"

/* Numbers and structures of Xen's interface (xen/include/public: xen.h, sched.h,
 * event_channel.h, io/console.h) */
enum {
    HYPERCALL_SCHED_OP = 29,
    HYPERCALL_EVENT_CHANNEL_OP = 32,
    SCHEDOP_SHUTDOWN = 2,
    SCHEDOP_POLL = 3,
    SHUTDOWN_POWEROFF = 0,
    SHUTDOWN_REBOOT = 1,
    CLOCK_SHIFT = 31, /* 2^31 cycles of the time stamp counter: roughly a second */
    EVTCHNOP_SEND = 4,
};

#define MACHINE_TO_PHYSICAL ((const uint64_t *)0xffff800000000000UL)

struct start_info {
    char magic[32];
    uint64_t nr_pages;
    uint64_t shared_info;
    uint32_t flags;
    uint64_t store_frame;
    uint32_t store_port;
    uint64_t console_frame;
    uint32_t console_port;
    uint64_t root, nr_table_frames, frame_list, mod_start, mod_len;
    char command_line[1024];
};

struct console {
    char in[1024];
    char out[2048];
    uint32_t in_cons, in_prod;
    volatile uint32_t out_cons, out_prod;
};

long hypercall(unsigned int number, unsigned long first, const void *second);
unsigned long guest_setup(const struct start_info *info);

static struct console *console;
static uint32_t console_port;

void
serial_puts(const char *text)
{
    for (; *text; text++) {
        while (console->out_prod - console->out_cons >= sizeof(console->out))
            ;
        console->out[console->out_prod % sizeof(console->out)] = *text;
        __asm__ volatile("" : : : "memory");
        console->out_prod++;
    }
    hypercall(HYPERCALL_EVENT_CHANNEL_OP, EVTCHNOP_SEND, &console_port);
}

static void
shut_down(uint32_t reason)
{
    for (;;)
        hypercall(HYPERCALL_SCHED_OP, SCHEDOP_SHUTDOWN, &reason);
}

void
power_off(void)
{
    shut_down(SHUTDOWN_POWEROFF);
}

void
reset(void)
{
    shut_down(SHUTDOWN_REBOOT);
}

unsigned int
clock_second(void)
{
    return (unsigned int)(__builtin_ia32_rdtsc() >> CLOCK_SHIFT);
}

/* Waits for ever, because the list of event ports is empty and there is no timeout. */
void
idle_loop(void)
{
    static const struct {
        const uint32_t *ports;
        uint32_t n_ports;
        uint64_t until_ns;
    } poll;

    for (;;)
        hypercall(HYPERCALL_SCHED_OP, SCHEDOP_POLL, &poll);
}

/* guest_entry calls this first; returns the top of the final stack */
unsigned long
guest_setup(const struct start_info *info)
{
    console = (struct console *)(MACHINE_TO_PHYSICAL[info->console_frame] * PAGE_SIZE);
    console_port = info->console_port;
    parse_command_line(info->command_line);
    return (unsigned long)(uintptr_t)stack_region.hole_above;
}
