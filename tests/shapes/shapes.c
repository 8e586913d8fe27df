/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shapes.c - a program with every form of stack frame that compilers make
 *
 * Tests examine its unwind tables, and its stack at every instruction, in several
 * builds. The program needs no input, prints nothing and ends by itself. Functions
 * with the prefix shape_ have frame pointers in builds with frame pointers.
 * Functions of the C library, and those with the prefix asm_, never have them.
 *
 * Usage: shapes [ROUNDS]. Each round calls every function, except those that
 * leave frames by longjmp or by an exception. These functions run only once,
 * because real programs seldom leave frames in this way.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

typedef unsigned (*Function)(unsigned n);

/* shapes.S */
unsigned shape_asm_leaf(unsigned n);
unsigned shape_asm_framed(unsigned n);
unsigned asm_plain(unsigned n);
unsigned asm_pushes(unsigned n);
unsigned asm_by_rbx(unsigned n);
unsigned asm_expression(unsigned n);
unsigned shape_for_asm(unsigned n);

/* shapes.cc */
int shape_throw(int n);
unsigned shape_objects(unsigned n);

static volatile unsigned sink;
static jmp_buf back;

/* has no frame, and uses the red zone */
static NOINLINE unsigned
shape_leaf(unsigned n)
{
    volatile unsigned room[4] = { n, n + 1, n + 2, n + 3 };

    return room[n % 4] * 3;
}

static NOINLINE unsigned
shape_tail(unsigned n)
{
    sink += n;
    return shape_leaf(n + 1);
}

/* has a frame on one path only */
static NOINLINE unsigned
shape_shrink_wrapped(unsigned n)
{
    if (n == 0)
        return 1;
    unsigned sum = shape_leaf(n);
    for (unsigned i = 0; i < n; i++)
        sum += shape_leaf(sum + i) ^ shape_tail(i);
    return sum;
}

static NOINLINE unsigned
shape_recursive(unsigned n)
{
    return n == 0 ? shape_leaf(n) : shape_recursive(n - 1) + n * shape_leaf(n);
}

/* has a frame whose size is computed at run time */
static NOINLINE unsigned
shape_variable(unsigned n)
{
    char *room = __builtin_alloca(n * 16 + 16);

    memset(room, (int)n, n * 16 + 16);
    sink += shape_leaf((unsigned)(unsigned char)room[n]);
    return sink;
}

/* rounds its stack pointer down */
static NOINLINE unsigned
shape_aligned(unsigned n)
{
    char room[64] __attribute__((aligned(64)));

    memset(room, (int)n, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory");
    return shape_leaf((unsigned)room[n % 64]) + shape_variable(n % 3);
}

static NOINLINE unsigned
shape_large(unsigned n)
{
    volatile char room[9000];

    room[n] = (char)n;
    room[8999 - n] = room[n];
    return shape_leaf((unsigned)room[8999 - n]);
}

static NOINLINE unsigned
shape_many_arguments(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                     unsigned g, unsigned h, unsigned i)
{
    return shape_leaf(a + b) + shape_leaf(c + d) * shape_leaf(e + f) + shape_leaf(g + h) * i;
}

static NOINLINE unsigned
shape_apply(Function function, unsigned n)
{
    return function(n) ^ n;
}

/* is only called by pointer */
static unsigned
shape_by_pointer(unsigned n)
{
    return sink + n * 7;
}

static NOINLINE unsigned
shape_indirect(unsigned n)
{
    return shape_apply(shape_by_pointer, n) + shape_apply(n % 2 ? shape_tail : shape_leaf, n);
}

static NOINLINE unsigned
shape_switch(unsigned n)
{
    switch (n % 6) {
    case 0:
        return shape_leaf(1);
    case 1:
        return n;
    case 2:
        return shape_leaf(n) + shape_tail(2);
    case 3:
        sink = n;
        return 9;
    case 4:
        return shape_recursive(2);
    default:
        return 0;
    }
}

static NOINLINE unsigned
shape_variadic(unsigned n, ...)
{
    va_list list;
    unsigned sum = 0;

    va_start(list, n);
    while (n-- > 0)
        sum += shape_leaf(va_arg(list, unsigned));
    va_end(list);
    return sum;
}

static NOINLINE unsigned
shape_variadic_5(unsigned n)
{
    return shape_variadic(5, n, 1U, 2U, 3U, 4U);
}

static NOINLINE double
shape_double(double a, double b)
{
    return a * b + sink;
}

static NOINLINE unsigned
shape_float(unsigned n)
{
    return (unsigned)(shape_double(n, 1.5) + shape_double(0.5, n));
}

/* can return before it sets up its frame; the code of that path comes last */
static NOINLINE unsigned
shape_early(unsigned n)
{
    if (__builtin_expect(n % 2 == 0, 0))
        return sink * 2 + n;
    shape_leaf(n);
    sink += shape_tail(n);
    return shape_leaf(sink) + sink;
}

unsigned
shape_for_asm(unsigned n)
{
    return shape_leaf(n) + 1;
}

static NOINLINE __attribute__((noreturn)) void
shape_give_up(int code)
{
    sink += shape_leaf(3);
    longjmp(back, code);
}

static int
shape_compare(const void *a, const void *b)
{
    const unsigned *one = a, *other = b;

    return (int)(shape_leaf(*one) % 7) - (int)(shape_leaf(*other) % 7);
}

static void
shape_handle(int number)
{
    sink += shape_shrink_wrapped((unsigned)number % 3);
}

static Function functions[] = {
    shape_leaf,    shape_tail,  shape_shrink_wrapped, shape_recursive,  shape_variable,
    shape_aligned, shape_large, shape_indirect,       shape_switch,     shape_variadic_5,
    shape_float,   shape_early, shape_asm_leaf,       shape_asm_framed, asm_plain,
    asm_pushes,    asm_by_rbx,  asm_expression,
};

/* calls functions of the C library, whose frames are large and many */
static NOINLINE unsigned
shape_library(unsigned n)
{
    char text[64], *end;
    unsigned *numbers = calloc(16, sizeof(*numbers));

    for (unsigned i = 0; i < 16; i++)
        numbers[i] = (i * 7 + n) % 16;
    qsort(numbers, 16, sizeof(*numbers), shape_compare);
    snprintf(text, sizeof(text), "%u %s %.3f", n, n % 2 ? "odd" : "even", n / 7.0);
    unsigned sum = numbers[n % 16] + (unsigned)strtod(strrchr(text, ' '), &end);
    char *copy = strdup(text);
    sum += (unsigned)strtoul(copy, &end, 10);
    free(copy);
    free(numbers);
    return sum;
}

static NOINLINE unsigned
shape_call_all(unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        sum += functions[i](n);
    return sum + shape_many_arguments(n, sum, 3, 4, 5, 6, 7, 8, n);
}

static NOINLINE void
shape_round(unsigned n)
{
    sink += shape_call_all(n % 8);
    sink += shape_library(n);
    sink += shape_objects(n);
}

int
main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    unsigned numbers[12] = { 5, 3, 9, 1, 8, 2, 7, 4, 6, 0, 11, 10 };

    signal(SIGUSR1, shape_handle);
    for (unsigned n = 0; n < 3; n++)
        sink += shape_call_all(n);
    qsort(numbers, 12, sizeof(numbers[0]), shape_compare);
    raise(SIGUSR1);
    if (setjmp(back) == 0)
        shape_give_up(1);
    sink += shape_call_all(3);
    sink += (unsigned)shape_throw(1);
    for (unsigned n = 0; n < rounds; n++)
        shape_round(4 + n); /* shape_call_all() has passed the smaller arguments */
    return 0;
}
