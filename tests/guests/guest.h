/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: declarations for all source files.
 *
 * PAGING_LEVELS (2: 32-bit, 3: PAE, 4: 64-bit, 5: LA57) selects the x86 guest, PAGE_SHIFT and
 * ADDRESS_BITS select the aarch64 guest.
 */
#ifndef VIRT_UPROF_GUEST_H
#define VIRT_UPROF_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __has_attribute
#define __has_attribute(x) 0
#endif

/* The compiler must keep the function as a symbol of its own, with a frame, and not inline it */
#if __has_attribute(noipa)
#define NOINLINE __attribute__((noinline, noclone, noipa))
#else
#define NOINLINE __attribute__((noinline))
#endif

#ifdef __aarch64__
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#else
#define PAGE_SIZE 4096UL
#endif
#define STACK_PAGES (0x10000 / PAGE_SIZE)

#define LAPIC_BASE 0xfee00000UL
#define HPET_BASE 0xfed00000UL

/* Interrupts a second of the workload "ticks" */
#define TICKS_HZ 100

/* The default of options.unit */
#define WORK_UNIT 6000UL

/* Parsed command line */
struct options {
    bool high;             /* the stack has an alias in the upper half */
    bool large;            /* the alias is a 2 MiB (4 MiB) page */
    bool huge;             /* the alias is a 1 GiB page */
    bool nopaging;         /* paging stays off; 32-bit only */
    unsigned long unit;    /* unit=: iterations in a 10 % slice */
    unsigned long shift;   /* shift=: slices that function_1 takes from function_3 */
    unsigned long seconds; /* stop=, reboot=: seconds until power-off or reset */
};

extern struct options options;
extern volatile uint64_t uprof_counter;
extern volatile uint64_t uprof_counter_ap;

/*
 * One unmapped page, the stack, and one unmapped page.  4 KiB pages map the
 * large page that contains them.
 */
struct stack_region {
    uint8_t hole_below[PAGE_SIZE];
    uint8_t stack[STACK_PAGES * PAGE_SIZE];
    uint8_t hole_above[PAGE_SIZE];
};

extern struct stack_region stack_region;

/* guest.c */
void parse_command_line(const char *text);
void work(unsigned long iterations);

/* pc.c or pv.c */
void serial_puts(const char *text);
void halt_forever(const char *reason);
void power_off(void);
void reset(void);
unsigned int clock_second(void);

/* paging.c */
unsigned long paging_setup(void);
unsigned long paging_root_address(void);
void paging_set_entry(unsigned long va, unsigned int level, uint64_t entry);

/* The workloads, none of which returns */
void main_loop(void);
void deep_loop(void);
void recursion_loop(void);
void phases_loop(void);
void change_phase(void);
void vcpu0_loop(void);
void start_ap(void); /* smp-pc.c or virt.c */
void ap_main(void);
extern volatile bool ap_running;
#ifdef __x86_64__
void idle_loop(void);
void halfidle_loop(void);
void ticks_loop(void);
void hostile_loop(void);
#endif

#ifndef __aarch64__
static inline void
outb(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void
outw(uint16_t port, uint16_t value)
{
    __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t
inb(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void
lapic_write(unsigned int reg, uint32_t value)
{
    *(volatile uint32_t *)(uintptr_t)(LAPIC_BASE + reg) = value;
}
#endif

#endif
