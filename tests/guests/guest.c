/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: the command line, and the workloads that all guests
 * have. Code for the machine is in pc.c, pv.c or virt.c.
 */
#include "guest.h"

struct workload {
    const char *name;
    void (*run)(void);
    void (*finish)(void); /* called after options.seconds; or NULL */
};

struct options options = { .unit = WORK_UNIT, .seconds = 2 };
volatile uint64_t uprof_counter __attribute__((aligned(8)));
volatile uint64_t uprof_counter_ap __attribute__((aligned(8)));

struct stack_region stack_region __attribute__((section(".bss.stacks"), aligned(0x400000)));

void guest_main(void);

static const struct workload workloads[] = {
    { "split", main_loop, NULL }, /* the default */
    { "deep", deep_loop, NULL },
    { "recursion", recursion_loop, NULL },
    { "stop", main_loop, power_off },
    { "reboot", main_loop, reset },
    { "phases", phases_loop, change_phase },
#if defined(__aarch64__) || (defined(__x86_64__) && !defined(XEN_PV))
    { "smp", vcpu0_loop, NULL },
#endif
#ifdef __x86_64__
    { "idle", idle_loop, NULL },
    { "ticks", ticks_loop, NULL },
#ifndef XEN_PV
    { "halfidle", halfidle_loop, NULL },
    { "hostile", hostile_loop, NULL },
#endif
#endif
};

static const struct workload *workload = workloads;

/* Compares the word at @text, which ends at a blank, '=' or the end, with @word */
static bool
word_is(const char *text, const char *word)
{
    while (*word && *text == *word) {
        text++;
        word++;
    }
    return !*word && (!*text || *text == ' ' || *text == '=');
}

/* @value is the number after '=', or 0 if there is none */
static void
parse_word(const char *text, unsigned long value)
{
    if (word_is(text, "high"))
        options.high = true;
    if (word_is(text, "large"))
        options.large = true;
    if (word_is(text, "huge"))
        options.huge = true;
    if (word_is(text, "unit") && value > 0)
        options.unit = value;
    if (word_is(text, "shift") && value < 6)
        options.shift = value;
#ifndef __x86_64__
    if (word_is(text, "nopaging"))
        options.nopaging = true;
#endif
    for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
        if (!word_is(text, workloads[i].name))
            continue;
        workload = &workloads[i];
        if (value > 0)
            options.seconds = value;
    }
}

void
parse_command_line(const char *text)
{
    while (*text) {
        const char *word = text;
        unsigned long value = 0;

        while (*text && *text != ' ' && *text != '=')
            text++;
        if (*text == '=')
            text++;
        for (; *text && *text != ' '; text++) {
            if (*text >= '0' && *text <= '9')
                value = value * 10 + (unsigned long)(*text - '0');
        }
        parse_word(word, value);
        while (*text == ' ')
            text++;
    }
}

/* Nearly all CPU time is spent here */
#ifdef LEAF_WORK
/* This variant has nothing on the stack, so it needs no frame */
NOINLINE void
work(unsigned long iterations)
{
    unsigned long sum = iterations;

    while (iterations-- > 0)
#ifdef __aarch64__
        __asm__ volatile("add %0, %0, %0, lsl #2" : "+r"(sum));
#else
        __asm__ volatile("lea 1(%0, %0, 4), %0" : "+r"(sum));
#endif
}
#else
/* This variant has a frame, because sum is on the stack */
NOINLINE void
work(unsigned long iterations)
{
    volatile unsigned long sum = iterations;

    while (iterations-- > 0)
        sum = sum * 5 + 1;
}
#endif

NOINLINE static void
function_1(void)
{
    work((1 + options.shift) * options.unit);
}

NOINLINE static void
function_2(void)
{
    work(3 * options.unit);
}

NOINLINE static void
function_3(void)
{
    work((6 - options.shift) * options.unit);
}

/* Calls the workload's finish() whenever the clock's second has changed options.seconds times */
NOINLINE static void
check_time(void)
{
    static bool has_last;
    static unsigned int last;
    static unsigned long passed;
    const unsigned int now = clock_second();

    if (has_last && now != last)
        passed++;
    has_last = true;
    last = now;
    if (passed <= options.seconds)
        return;
    passed = 0;
    workload->finish();
}

NOINLINE void
main_loop(void)
{
    for (;;) {
        function_1();
        function_2();
        function_3();
        uprof_counter++;
        if (workload->finish && !(uprof_counter & 15))
            check_time();
    }
}

/* 64 nested functions, each with about 400 bytes of stack */
#define DEEP(name, callee)                                                                         \
    NOINLINE static void name(unsigned long iterations)                                            \
    {                                                                                              \
        volatile unsigned char locals[368];                                                        \
                                                                                                   \
        locals[0] = 0;                                                                             \
        callee(iterations);                                                                        \
        locals[sizeof(locals) - 1] = 0;                                                            \
    }

#define DEEP_10(tens, callee)                                                                      \
    DEEP(deep_##tens##9, callee)                                                                   \
    DEEP(deep_##tens##8, deep_##tens##9)                                                           \
    DEEP(deep_##tens##7, deep_##tens##8)                                                           \
    DEEP(deep_##tens##6, deep_##tens##7)                                                           \
    DEEP(deep_##tens##5, deep_##tens##6)                                                           \
    DEEP(deep_##tens##4, deep_##tens##5)                                                           \
    DEEP(deep_##tens##3, deep_##tens##4)                                                           \
    DEEP(deep_##tens##2, deep_##tens##3)                                                           \
    DEEP(deep_##tens##1, deep_##tens##2)                                                           \
    DEEP(deep_##tens##0, deep_##tens##1)

/* deep_00 calls deep_01, ... deep_63 calls work */
DEEP(deep_63, work)
DEEP(deep_62, deep_63)
DEEP(deep_61, deep_62)
DEEP(deep_60, deep_61)
DEEP_10(5, deep_60)
DEEP_10(4, deep_50)
DEEP_10(3, deep_40)
DEEP_10(2, deep_30)
DEEP_10(1, deep_20)
DEEP_10(0, deep_10)

NOINLINE void
deep_loop(void)
{
    for (;;) {
        deep_00(40 * options.unit);
        uprof_counter++;
    }
}

/* Makes @depth frames of recurse(); the innermost one calls work() */
NOINLINE static void
recurse(unsigned int depth)
{
    if (depth > 1)
        recurse(depth - 1);
    else
        work(40 * options.unit);
}

NOINLINE void
recursion_loop(void)
{
    for (;;) {
        recurse(40);
        uprof_counter++;
    }
}

static bool is_second_phase;

void
change_phase(void)
{
    is_second_phase = !is_second_phase;
}

NOINLINE static void
phase_1(void)
{
    work(10 * options.unit);
}

NOINLINE static void
phase_2(void)
{
    work(10 * options.unit);
}

NOINLINE void
phases_loop(void)
{
    for (;;) {
        if (is_second_phase)
            phase_2();
        else
            phase_1();
        uprof_counter++;
        if (!(uprof_counter & 15))
            check_time();
    }
}

NOINLINE void
guest_main(void)
{
    serial_puts("virt-uprof guest: ");
    serial_puts(workload->name);
#if PAGING_LEVELS == 5
    serial_puts(" la57");
#endif
    if (options.nopaging)
        serial_puts(" nopaging");
    if (options.high)
        serial_puts(" high");
    if (options.huge)
        serial_puts(" huge");
    else if (options.large)
        serial_puts(" large");
    serial_puts("\n");

    workload->run();
}
