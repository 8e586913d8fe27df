/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cache-priv.h"
#include "unwind-priv.h"

#include <string.h>

/*
 * What calls go through in a Linux kernel that could lead anywhere: those by a register
 * where processors must not guess, and those that are patched (Linux, arch/x86/lib/retpoline.S
 * and arch/x86/include/asm/static_call.h).
 */
static bool
is_thunk(const UprofUnwindContext *context, uint64_t target)
{
    const char *name = uprof_name_text(
        uprof_sym_find(context->sym, uprof_unwind_place(context, target), false).name);

    return g_str_has_prefix(name, "__x86_indirect_") || g_str_has_prefix(name, "__SCT__");
}

enum {
    JUMPS_MAX = 3,               /* from a function to the next, one after the other */
    FUNCTIONS_MAX = 64,          /* that are looked through for one call */
    NEAREST = 8,                 /* of those that a function jumps to */
    BODY_BYTES_MAX = 16 * 1024,  /* of each; the kernel's x64_sys_call() has 6 KiB */
    STACK_BYTES_MAX = 64 * 1024, /* of all, for the calls of one stack */
    THUNKS_MAX = 32,             /* jumps that may be to one */
    JUMP_BYTES_MAX = 6,
};

/* A jump that may leave a function; @is_short: not far */
typedef struct {
    uint64_t target;
    bool is_short;
} Jump;

/**
 * Search: for a way from a function that was called to the one that runs
 * @start, @len: of that
 * @functions: that it may go through, @n_functions; those that it has been looked for in first
 * @n_jumps: how many lead to each
 */
typedef struct {
    const UprofUnwindContext *context;
    uint64_t start, len;
    uint64_t functions[FUNCTIONS_MAX];
    uint8_t n_jumps[FUNCTIONS_MAX];
    unsigned n_functions;
} Search;

/*
 * JMP and Jcc, with their distances as 8 and 32 bits (Intel SDM, volume 2). Looked for at every
 * byte: what is none leads nowhere.
 * @code: %JUMP_BYTES_MAX bytes
 */
static bool
read_jump(const uint8_t *code, uint64_t pc, Jump *jump)
{
    const unsigned skip = code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 1;
    uint32_t raw;

    jump->is_short = code[0] == 0xeb || (code[0] & 0xf0) == 0x70;
    if (jump->is_short) {
        jump->target = pc + 2 + (uint64_t)(int64_t)(int8_t)code[1];
        return true;
    }
    memcpy(&raw, code + skip, sizeof(raw));
    jump->target = pc + skip + sizeof(raw) + (uint64_t)(int64_t)(int32_t)GUINT32_FROM_LE(raw);
    return code[0] == 0xe9 || skip == 2;
}

/* Short ones lead to a function's beginning, or they are none. */
static bool
is_found(const Search *search, const Jump *jump)
{
    return jump->is_short ? jump->target == search->start
                          : jump->target - search->start < search->len;
}

/* Returns: how many bytes of the function that begins at @pc there are; 0: none begins there */
static size_t
read_body(const UprofUnwindContext *context, uint64_t pc, uint8_t *code)
{
    const uint64_t place = uprof_unwind_place(context, pc);
    uint64_t start, len;
    bool is_entry;

    if (!uprof_sym_function(context->sym, place, &start, &len, &is_entry) || start != place)
        return 0;
    len = MIN(len, (uint64_t)BODY_BYTES_MAX);
    memset(code + len, 0, JUMP_BYTES_MAX);
    return uprof_unwind_read_code(context, pc, code, len) ? len : 0;
}

/* Keeps @n targets, the nearest to @start first. Returns: how many there are now */
static unsigned
keep_near(uint64_t *targets, unsigned n, uint64_t target, uint64_t start)
{
    const uint64_t distance = MIN(target - start, start - target);
    unsigned at = n;

    while (at > 0 && MIN(targets[at - 1] - start, start - targets[at - 1]) > distance)
        at--;
    if (at == NEAREST || (at > 0 && targets[at - 1] == target))
        return n;
    memmove(&targets[at + 1], &targets[at], (MIN(n, NEAREST - 1u) - at) * sizeof(*targets));
    targets[at] = target;
    return MIN(n + 1, (unsigned)NEAREST);
}

/* Whether one of the function's jumps is to where anything may be behind. */
static bool
has_thunk(const UprofUnwindContext *context, const uint8_t *code, size_t len, uint64_t pc)
{
    unsigned n = 0;
    Jump jump;

    for (size_t at = 0; at < len && n < THUNKS_MAX; at++)
        if (read_jump(code + at, pc + at, &jump) && !jump.is_short && jump.target - pc >= len) {
            n++;
            if (is_thunk(context, jump.target))
                return true;
        }
    return false;
}

/* Looks through function @i for a jump to what runs, and adds those that it jumps to. */
static bool
look_through(Search *search, unsigned i, const uint8_t *code, size_t len)
{
    const uint64_t pc = search->functions[i];
    uint64_t near[NEAREST];
    unsigned n = 0;
    Jump jump;

    for (size_t at = 0; at < len; at++) {
        if (!read_jump(code + at, pc + at, &jump) || jump.target - pc < len)
            continue;
        if (is_found(search, &jump))
            return true;
        if (search->n_jumps[i] + 1 < JUMPS_MAX)
            n = keep_near(near, n, jump.target, search->start);
    }
    for (unsigned k = 0; k < n && search->n_functions < FUNCTIONS_MAX; k++) {
        search->functions[search->n_functions] = near[k];
        search->n_jumps[search->n_functions++] = search->n_jumps[i] + 1;
    }
    return false;
}

typedef enum { NO, YES, TOO_MUCH } Led;

/*
 * Whether a function that was called ended in a jump to the one that runs, or to another that
 * did; or has a part elsewhere that runs, to which it jumps as well. Where it jumps to hundreds,
 * as what tells system calls from each other does, the one that leads on is mostly a neighbor.
 * @n_left: (inout): bytes of code that may be looked through
 */
static Led
is_led_to(const UprofUnwindContext *context, uint64_t target, uint64_t start, uint64_t len,
          size_t *n_left)
{
    Search search = { context, start, len, { target }, { 0 }, 1 };
    uint8_t code[BODY_BYTES_MAX + JUMP_BYTES_MAX];

    for (unsigned i = 0; i < search.n_functions; i++) {
        const size_t n = read_body(context, search.functions[i], code);
        if (n > *n_left || uprof_mem_is_spent(context->mem))
            return TOO_MUCH;
        *n_left -= n;
        if (look_through(&search, i, code, n) ||
            (i == 0 && has_thunk(context, code, n, search.functions[i])))
            return YES;
    }
    return NO;
}

/*
 * @callee: of the function that was called; @distance: from its place to where it is;
 * without a name any may be
 */
static UprofCachedCall
check_call(const UprofUnwindContext *context, const UprofFrame *frame, const UprofSymAnswer *callee,
           uint64_t distance, size_t *n_left)
{
    const uint64_t start = callee->start + distance;
    const bool is_first = *n_left == STACK_BYTES_MAX;
    uint64_t target;
    const UprofCall call = uprof_x86_64_call_before(context, frame->pc, &target);
    Led led = call == UPROF_CALL_INDIRECT ? YES : NO;

    if (call == UPROF_CALL_DIRECT)
        led = callee->start == 0 || target == start || is_thunk(context, target)
                  ? YES
                  : is_led_to(context, target, start, callee->size, n_left);
    /* what takes too much by itself would do so each time */
    const bool is_known = led != TOO_MUCH || (is_first && !uprof_mem_is_spent(context->mem));
    return (UprofCachedCall){
        .pc = is_known ? frame->place : 0,
        .callee = callee->start,
        .is_checked = call != UPROF_CALL_UNREADABLE && led != TOO_MUCH,
        .is_agreed = led == YES,
    };
}

void
uprof_unwind_check_calls(const UprofUnwindContext *context, const UprofStack *stack,
                         unsigned *n_checked, unsigned *n_agreed)
{
    size_t n_left = STACK_BYTES_MAX;

    *n_checked = *n_agreed = 0;
    for (unsigned i = 1; i < stack->n; i++) {
        const UprofFrame *frame = &stack->frames[i], *inner = &stack->frames[i - 1];
        if (!frame->is_return)
            continue;
        /* 0 if it has no name */
        const UprofSymAnswer callee = uprof_sym_find(context->sym, inner->place, inner->is_return);
        UprofCachedCall own = { 0 }, *call = uprof_cache_call(context, frame->place, callee.start);
        if (!call)
            call = &own;
        if (call->pc != frame->place || call->callee != callee.start)
            *call = check_call(context, frame, &callee, inner->pc - inner->place, &n_left);
        *n_checked += call->is_checked;
        *n_agreed += call->is_agreed;
    }
}
