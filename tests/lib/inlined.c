/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inlined.c - inlined functions with labels at known lines; the code never runs
 *
 * Each label is a symbol, so that tests can find its address.
 */
#define INLINE static inline __attribute__((always_inline))
#define HERE(label) __asm__ volatile(".globl " #label "\n" #label ": nop")

int sink;

/* clang-format off */
#line 100 "/some/folder/inner.h"
INLINE void
inner(int x)
{
    HERE(at_inner);
    sink += x;
}

#line 200 "/some/folder/middle.c"
INLINE void
middle(int x)
{
    HERE(at_middle);
    inner(x + 1);
}

#line 300 "outer.c"
void outer(int x);
__attribute__((noinline)) void
outer(int x)
{
    HERE(at_outer);
    {
        int y = x * sink;
        middle(y);
    }
    sink--;
}

#line 400 "outer.c"
int
main(void)
{
    outer(1);
    return 0;
}
