/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: the paravirtual guest's interface to Xen. The guest
 * has no devices and no page tables of its own. Xen's domain builder has laid out
 * its memory, and its text goes to the console that dom0 provides for each domain.
 */
#include "guest.h"

/* Numbers and structures of Xen's interface (xen/include/public: xen.h, sched.h,
 * event_channel.h, vcpu.h, io/console.h) */
enum {
    HYPERCALL_SET_CALLBACKS = 4,
    HYPERCALL_UPDATE_VA_MAPPING = 14,
    HYPERCALL_VCPU_OP = 24,
    HYPERCALL_SCHED_OP = 29,
    HYPERCALL_EVENT_CHANNEL_OP = 32,
    SCHEDOP_SHUTDOWN = 2,
    SCHEDOP_POLL = 3,
    SHUTDOWN_POWEROFF = 0,
    SHUTDOWN_REBOOT = 1,
    CLOCK_SHIFT = 31, /* 2^31 cycles of the time stamp counter: roughly a second */
    EVTCHNOP_BIND_VIRQ = 1,
    EVTCHNOP_SEND = 4,
    VIRQ_TIMER = 0,
    VCPUOP_SET_PERIODIC_TIMER = 6,
    UVMF_INVLPG = 2,
    PAGE_USER_WRITABLE = 7, /* Xen runs its guests in ring 3 */
    VCPUS_OF_SHARED_INFO = 32,
    NS_PER_S = 1000000000,
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

struct vcpu_info {
    volatile uint8_t is_pending, is_masked;
    volatile uint64_t pending_words;
    uint64_t other[6];
};

struct shared_info {
    struct vcpu_info vcpus[VCPUS_OF_SHARED_INFO];
    volatile uint64_t pending[64];
};

long hypercall(unsigned int number, unsigned long first, const void *second, unsigned long third);
unsigned long guest_setup(const struct start_info *info);

static struct console *console;
static uint32_t console_port;
static uint64_t shared_info_frame;
static union {
    struct shared_info info;
    uint8_t bytes[PAGE_SIZE];
} shared_page __attribute__((aligned(4096)));

void tick_interrupt(void);
void handle_tick(void);

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
    hypercall(HYPERCALL_EVENT_CHANNEL_OP, EVTCHNOP_SEND, &console_port, 0);
}

static void
shut_down(uint32_t reason)
{
    for (;;)
        hypercall(HYPERCALL_SCHED_OP, SCHEDOP_SHUTDOWN, &reason, 0);
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
        hypercall(HYPERCALL_SCHED_OP, SCHEDOP_POLL, &poll, 0);
}

/* tick_interrupt calls this function. Xen has masked events. */
void
handle_tick(void)
{
    struct vcpu_info *vcpu = &shared_page.info.vcpus[0];

    do {
        vcpu->is_masked = 1;
        while (vcpu->is_pending) {
            vcpu->is_pending = 0;
            __atomic_store_n(&vcpu->pending_words, 0, __ATOMIC_SEQ_CST);
            __atomic_store_n(&shared_page.info.pending[0], 0, __ATOMIC_SEQ_CST);
            work(10 * options.unit);
        }
        vcpu->is_masked = 0;
        __asm__ volatile("" : : : "memory");
    } while (vcpu->is_pending);
}

/* As "split", with a handler of interrupts that computes, too */
NOINLINE void
ticks_loop(void)
{
    static const uint64_t period_ns = NS_PER_S / TICKS_HZ;
    struct {
        uint32_t virq, vcpu, port;
    } bind = { .virq = VIRQ_TIMER };

    hypercall(HYPERCALL_UPDATE_VA_MAPPING, (unsigned long)&shared_page,
              (const void *)(shared_info_frame | PAGE_USER_WRITABLE), UVMF_INVLPG);
    hypercall(HYPERCALL_SET_CALLBACKS, (unsigned long)tick_interrupt, (const void *)tick_interrupt,
              (unsigned long)tick_interrupt);
    hypercall(HYPERCALL_EVENT_CHANNEL_OP, EVTCHNOP_BIND_VIRQ, &bind, 0);
    hypercall(HYPERCALL_VCPU_OP, VCPUOP_SET_PERIODIC_TIMER, NULL, (unsigned long)&period_ns);
    handle_tick(); /* unmasks events */
    main_loop();
}

/* guest_entry calls this first; returns the top of the final stack */
unsigned long
guest_setup(const struct start_info *info)
{
    console = (struct console *)(MACHINE_TO_PHYSICAL[info->console_frame] * PAGE_SIZE);
    console_port = info->console_port;
    shared_info_frame = info->shared_info;
    parse_command_line(info->command_line);
    return (unsigned long)(uintptr_t)stack_region.hole_above;
}
