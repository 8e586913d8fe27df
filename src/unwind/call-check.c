/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/call-check.h"

#include "call-insn-priv.h"
#include "code-cache-priv.h"

#include <string.h>

/*
 * Is @target a thunk of a Linux kernel, which may jump anywhere? Thunks replace indirect calls
 * where processors must not speculate, and calls that are patched at run time (Linux,
 * arch/x86/lib/retpoline.S and arch/x86/include/asm/static_call.h).
 */
static bool
is_thunk(const UprofUnwindContext *context, uint64_t target)
{
    const char *name = uprof_name_text(
        uprof_sym_find(context->sym, uprof_unwind_symbol_address(context, target), false).name);

    return g_str_has_prefix(name, "__x86_indirect_") || g_str_has_prefix(name, "__SCT__");
}

enum {
    JUMPS_MAX = 3,               /* in a chain from function to function */
    FUNCTIONS_MAX = 64,          /* searched for one call */
    NEAREST = 8,                 /* targets of a function's jumps that are searched, too */
    BODY_BYTES_MAX = 16 * 1024,  /* of a function; the kernel's x64_sys_call() has 6 KiB */
    STACK_BYTES_MAX = 64 * 1024, /* of all functions, for the calls of one stack */
    THUNKS_MAX = 32,             /* jumps of a function that are compared with thunks */
};

/* A search for jumps from a function that was called to the function that runs. */
typedef struct {
    const UprofUnwindContext *context;
    uint64_t start, len;               /* of the function that runs */
    uint64_t functions[FUNCTIONS_MAX]; /* to search, in this order */
    uint8_t n_jumps[FUNCTIONS_MAX];    /* how many jumps lead to each */
    unsigned n_functions;
} Search;

/* Does the jump lead into the function that runs? A short jump must lead to its start. */
static bool
reaches_function(const Search *search, const UprofJump *jump)
{
    return jump->is_short ? jump->target == search->start
                          : jump->target - search->start < search->len;
}

/* Returns: length of the function that begins at @pc; 0 if there is none, or it cannot be read */
static size_t
read_body(const UprofUnwindContext *context, uint64_t pc, uint8_t *code)
{
    const uint64_t symbol_address = uprof_unwind_symbol_address(context, pc);
    uint64_t start, len;
    bool is_entry;

    if (!uprof_sym_function(context->sym, symbol_address, &start, &len, &is_entry) ||
        start != symbol_address)
        return 0;
    len = MIN(len, (uint64_t)BODY_BYTES_MAX);
    memset(code + len, 0, UPROF_JUMP_BYTES_MAX);
    return uprof_unwind_read_code(context, pc, code, len) ? len : 0;
}

/* Inserts @target into the @n targets nearest to @start. Returns: how many there are now */
static unsigned
insert_near(uint64_t *targets, unsigned n, uint64_t target, uint64_t start)
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

/* Does the function jump to a thunk? */
static bool
jumps_to_thunk(const UprofUnwindContext *context, const uint8_t *code, size_t len, uint64_t pc)
{
    const UprofCallInsns *insns = uprof_call_insns(context);
    unsigned n = 0;
    UprofJump jump;

    for (size_t at = 0; at < len && n < THUNKS_MAX; at += insns->insn_align)
        if (insns->read_jump(code + at, pc + at, &jump) && !jump.is_short &&
            jump.target - pc >= len) {
            n++;
            if (is_thunk(context, jump.target))
                return true;
        }
    return false;
}

/*
 * Searches function @i for a jump to the function that runs. If there is no such jump, adds the
 * functions to which function @i jumps.
 */
static bool
search_function(Search *search, unsigned i, const uint8_t *code, size_t len)
{
    const UprofCallInsns *insns = uprof_call_insns(search->context);
    const uint64_t pc = search->functions[i];
    uint64_t near[NEAREST];
    unsigned n = 0;
    UprofJump jump;

    for (size_t at = 0; at < len; at += insns->insn_align) {
        if (!insns->read_jump(code + at, pc + at, &jump) || jump.target - pc < len)
            continue;
        if (reaches_function(search, &jump))
            return true;
        if (search->n_jumps[i] + 1 < JUMPS_MAX)
            n = insert_near(near, n, jump.target, search->start);
    }
    for (unsigned k = 0; k < n && search->n_functions < FUNCTIONS_MAX; k++) {
        search->functions[search->n_functions] = near[k];
        search->n_jumps[search->n_functions++] = search->n_jumps[i] + 1;
    }
    return false;
}

typedef enum {
    NOT_REACHED,
    REACHED,
    TOO_COSTLY, /* the search was not finished */
    NOT_KNOWN,  /* one of the two functions has no symbol */
} Reach;

/*
 * Does the function at @target jump to the function that runs, directly or through other functions?
 * The compiler can also move a part of a function elsewhere. The function jumps to this part, so
 * the code that runs may be such a part. A function with hundreds of jumps, such as the dispatcher
 * of system calls, mostly jumps to a function nearby.
 * @n_left: (inout): bytes of code that may be searched
 */
static Reach
search_jumps(const UprofUnwindContext *context, uint64_t target, uint64_t start, uint64_t len,
             size_t *n_left)
{
    Search search = {
        .context = context,
        .start = start,
        .len = len,
        .functions = { target },
        .n_functions = 1,
    };
    uint8_t code[BODY_BYTES_MAX + UPROF_JUMP_BYTES_MAX];

    for (unsigned i = 0; i < search.n_functions; i++) {
        const size_t n = read_body(context, search.functions[i], code);
        if (n > *n_left || uprof_mem_is_spent(context->mem))
            return TOO_COSTLY;
        *n_left -= n;
        if (search_function(&search, i, code, n) ||
            (i == 0 && jumps_to_thunk(context, code, n, search.functions[i])))
            return REACHED;
    }
    return NOT_REACHED;
}

static bool
has_name(const UprofUnwindContext *context, uint64_t target)
{
    const uint64_t address = uprof_unwind_symbol_address(context, target);

    return uprof_sym_find(context->sym, address, false).kind == UPROF_SYM_NAMED;
}

/*
 * @to: (out): where the stub at @target jumps to now
 *
 * Returns: false if there is no stub, or its pointer cannot be read
 */
static bool
follow_stub(const UprofUnwindContext *context, uint64_t target, uint64_t *to)
{
    uint64_t pointer;

    if (!uprof_call_insns(context)->find_stub_pointer(context, target, &pointer) ||
        !uprof_unwind_read_code(context, pointer, to, sizeof(*to)))
        return false;
    *to = GUINT64_FROM_LE(*to);
    return true;
}

/*
 * @callee: the next inner frame's function
 * @distance: from the callee's symbol address to its guest-virtual address
 */
static Reach
follow_call(const UprofUnwindContext *context, uint64_t target, const UprofSymAnswer *callee,
            uint64_t distance, size_t *n_left)
{
    const uint64_t start = callee->start + distance;
    uint64_t to;

    if (callee->start != 0 && (target == start || is_thunk(context, target)))
        return REACHED;
    if (follow_stub(context, target, &to))
        target = to;
    if (callee->start != 0 && target == start)
        return REACHED;
    /* Functions of Node.js that call generated code jump to it by a register. */
    if (callee->start == 0 || uprof_sym_is_process_address(callee->start) ||
        !has_name(context, target))
        return NOT_KNOWN;
    return search_jumps(context, target, start, callee->size, n_left);
}

/* The first function of a thread in Go is not called: its address is put on the stack before. */
static bool
is_put_there(const UprofUnwindContext *context, const UprofFrame *frame)
{
    const UprofCfi *cfi;
    const UprofCfiRule *rule = uprof_sym_rule(context->sym, frame->symbol_address - 1, &cfi);

    return rule && rule->flags & UPROF_CFI_END;
}

static UprofCachedCall
check_call(const UprofUnwindContext *context, const UprofFrame *frame, const UprofSymAnswer *callee,
           uint64_t distance, size_t *n_left)
{
    const bool is_first = *n_left == STACK_BYTES_MAX;
    uint64_t target;
    const UprofCall call = uprof_call_before(context, frame->pc, &target);
    Reach reach = call == UPROF_CALL_INDIRECT ? REACHED : NOT_REACHED;

    if (call == UPROF_CALL_DIRECT)
        reach = follow_call(context, target, callee, distance, n_left);
    /* A search that alone exceeds the limit does so each time, so this result is cached, too. */
    const bool is_final = reach != TOO_COSTLY || (is_first && !uprof_mem_is_spent(context->mem));
    return (UprofCachedCall){
        .pc = is_final ? frame->symbol_address : 0,
        .callee = callee->start,
        .is_checked = call != UPROF_CALL_UNREADABLE && reach != TOO_COSTLY && reach != NOT_KNOWN &&
                      !(call == UPROF_CALL_NONE && is_put_there(context, frame)),
        .is_agreed = reach == REACHED,
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
        /* @callee.start is 0 if the function has no name */
        const UprofSymAnswer callee =
            uprof_sym_find(context->sym, inner->symbol_address, inner->is_return);
        UprofCachedCall own = { 0 },
                        *call = uprof_cache_call(context, frame->symbol_address, callee.start);
        if (!call)
            call = &own;
        if (call->pc != frame->symbol_address || call->callee != callee.start)
            *call = check_call(context, frame, &callee, inner->pc - inner->symbol_address, &n_left);
        *n_checked += call->is_checked;
        *n_agreed += call->is_agreed;
    }
}
