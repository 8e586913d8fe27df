/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: serial line, clock, power control and second vCPU of QEMU's machine
 * "virt" for aarch64, and the start of the guests.
 */
#include "guest.h"

#define UART_DATA (*(volatile uint32_t *)0x9000000UL)
#define UART_FLAGS (*(volatile uint32_t *)0x9000018UL)
#define UART_FULL 0x20

/* Functions of PSCI (Arm DEN0022) */
#define PSCI_SYSTEM_OFF 0x84000008UL
#define PSCI_SYSTEM_RESET 0x84000009UL
#define PSCI_CPU_ON 0xc4000003UL

/* The flattened device tree (Devicetree Specification 0.4, chapter 5); words are big-endian */
#define TREE_BASE 0x40000000UL
#define TREE_MAGIC 0xd00dfeed
#define TREE_BEGIN_NODE 1
#define TREE_PROPERTY 3
#define TREE_END 9

struct tree_header {
    uint32_t magic;
    uint32_t len;
    uint32_t offset_structure;
    uint32_t offset_strings;
};

unsigned long guest_setup(const struct tree_header *tree);
void guest_fault(uint64_t syndrome, uint64_t pc, uint64_t address);
void guest_entry_ap(void);

static uint64_t
call_firmware(uint64_t function, uint64_t first, uint64_t second)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = first;
    register uint64_t x2 __asm__("x2") = second;
    register uint64_t x3 __asm__("x3") = 0;

    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
    return x0;
}

static void
wait_forever(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

void
serial_puts(const char *text)
{
    for (; *text; text++) {
        while (UART_FLAGS & UART_FULL)
            ;
        UART_DATA = (uint8_t)*text;
    }
}

void
halt_forever(const char *reason)
{
    serial_puts("virt-uprof guest: ");
    serial_puts(reason);
    serial_puts("\n");
    wait_forever();
}

static void
put_hex(uint64_t value)
{
    char text[18] = " ";

    for (unsigned int i = 0; i < 16; i++)
        text[1 + i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    serial_puts(text);
}

void
guest_fault(uint64_t syndrome, uint64_t pc, uint64_t address)
{
    serial_puts("virt-uprof guest: fault");
    put_hex(syndrome);
    put_hex(pc);
    put_hex(address);
    serial_puts("\n");
    wait_forever();
}

void
power_off(void)
{
    call_firmware(PSCI_SYSTEM_OFF, 0, 0);
    wait_forever();
}

void
reset(void)
{
    call_firmware(PSCI_SYSTEM_RESET, 0, 0);
    wait_forever();
}

unsigned int
clock_second(void)
{
    uint64_t count, frequency;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    return (unsigned int)(count / frequency % 60);
}

static uint32_t
read_word(const void *at)
{
    return __builtin_bswap32(*(const uint32_t *)at);
}

static bool
is_same(const char *one, const char *other)
{
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

/* Returns the property /chosen/bootargs, or NULL; no other node has a property of this name */
static const char *
find_command_line(const struct tree_header *tree)
{
    const char *base = (const char *)tree;
    const char *at = base + read_word(&tree->offset_structure);
    const char *strings = base + read_word(&tree->offset_strings);

    for (;;) {
        const uint32_t token = read_word(at);
        unsigned long len = 0;

        at += 4;
        if (token == TREE_END)
            return NULL;
        if (token == TREE_BEGIN_NODE) {
            while (at[len])
                len++;
            len++;
        } else if (token == TREE_PROPERTY) {
            if (is_same(strings + read_word(at + 4), "bootargs"))
                return at + 8;
            len = 8 + read_word(at);
        }
        at += (len + 3) & ~3UL;
    }
}

/* guest_entry calls this on the identity-mapped stack; returns the top of the final stack */
unsigned long
guest_setup(const struct tree_header *tree)
{
    const char *words = NULL;

    if (!tree)
        tree = (const struct tree_header *)TREE_BASE;
    if (read_word(&tree->magic) == TREE_MAGIC)
        words = find_command_line(tree);
    if (words)
        parse_command_line(words);
    return paging_setup();
}

/* Makes guest_entry_ap run on vCPU 1 */
void
start_ap(void)
{
    call_firmware(PSCI_CPU_ON, 1, (uintptr_t)guest_entry_ap);
}
