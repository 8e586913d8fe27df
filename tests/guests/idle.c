/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: the workloads that halt the vCPU, or that are
 * interrupted.  The timer of the local APIC does both.
 */
#include "guest.h"

#define TIMER_VECTOR 0x20
#define SPURIOUS_VECTOR 0xff
#define LAPIC_END_OF_INTERRUPT 0x0b0
#define LAPIC_SPURIOUS 0x0f0
#define LAPIC_TIMER 0x320
#define LAPIC_TIMER_COUNT 0x380
#define LAPIC_TIMER_DIVIDE 0x3e0

/* The timers of QEMU and KVM count at 1 GHz; the divisor is set to 16 */
#define TIMER_HZ (1000000000U / 16)

struct gate {
    uint16_t offset_low;
    uint16_t selector;
    uint16_t type;
    uint16_t offset_middle;
    uint32_t offset_high;
    uint32_t reserved;
};

struct table_pointer {
    uint16_t limit;
    uint64_t base;
} __attribute__((packed));

static struct gate idt[256] __attribute__((aligned(16)));
volatile uint64_t timer_ticks;

void timer_interrupt(void);
void tick_interrupt(void);
void handle_tick(void);
void spurious_interrupt(void);

static void
set_gate(unsigned int vector, void (*handler)(void))
{
    uint64_t address = (uintptr_t)handler;

    idt[vector].offset_low = (uint16_t)address;
    idt[vector].offset_middle = (uint16_t)(address >> 16);
    idt[vector].offset_high = (uint32_t)(address >> 32);
    idt[vector].selector = 0x18;
    idt[vector].type = 0x8e00;
}

static void
start_timer(unsigned int hz, void (*handler)(void))
{
    struct table_pointer pointer = { sizeof(idt) - 1, (uintptr_t)idt };

    set_gate(TIMER_VECTOR, handler);
    set_gate(SPURIOUS_VECTOR, spurious_interrupt);
    __asm__ volatile("lidt %0" : : "m"(pointer));

    /* Mask all interrupts of the two PICs */
    outb(0x21, 0xff);
    outb(0xa1, 0xff);

    lapic_write(LAPIC_SPURIOUS, 0x100 | SPURIOUS_VECTOR);
    lapic_write(LAPIC_TIMER_DIVIDE, 0x3);
    lapic_write(LAPIC_TIMER, 0x20000 | TIMER_VECTOR);
    lapic_write(LAPIC_TIMER_COUNT, TIMER_HZ / hz);
}

/* The vCPU is halted, and wakes up four times a second */
NOINLINE void
idle_loop(void)
{
    start_timer(4, timer_interrupt);
    for (;;) {
        __asm__ volatile("sti; hlt; cli" : : : "memory");
        uprof_counter++;
    }
}

/* Computes until the next tick */
NOINLINE static void
burst(uint64_t tick)
{
    while (timer_ticks == tick)
        work(options.unit);
}

/* Computes for 10 ms, then halts for 10 ms */
NOINLINE void
halfidle_loop(void)
{
    uint64_t tick;

    start_timer(100, timer_interrupt);
    for (;;) {
        __asm__ volatile("sti" : : : "memory");
        burst(timer_ticks);
        __asm__ volatile("cli" : : : "memory");
        tick = timer_ticks;
        while (timer_ticks == tick)
            __asm__ volatile("sti; hlt; cli" : : : "memory");
        uprof_counter++;
    }
}

/* tick_interrupt calls this function */
void
handle_tick(void)
{
    timer_ticks++;
    work(10 * options.unit);
    lapic_write(LAPIC_END_OF_INTERRUPT, 0);
}

/* As "split", with a handler of interrupts that computes, too */
NOINLINE void
ticks_loop(void)
{
    start_timer(TICKS_HZ, tick_interrupt);
    __asm__ volatile("sti" : : : "memory");
    main_loop();
}
