/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest that runs a program, and the program's symbol file. The target compares the guest's code
 * with the file, unwinds stacks by the file's unwind tables, names the frames, and checks calls.
 * The bits of the first byte: bit 0, 32-bit code; bit 1, kernel mode, and names with lines; bit 2,
 * only frame pointers are used; bit 3, the guest has no code; bit 4, its code consists of calls.
 * Six numbers of 16 bits follow: program counter, relative to the start of the code in the file;
 * stack pointer and frame pointer, relative to the start of the stack; the offset of a byte of the
 * guest's code, and a value to XOR into this byte; length of the file. Then come the file and the
 * stack.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "memory-file.h"
#include "memory-guest.h"
#include "uprof/call-check.h"
#include "uprof/regular-file.h"
#include "uprof/unwind.h"

enum {
    IS_32 = 1,
    IS_KERNEL = 2,
    BY_FP = 4,
    HAS_NO_CODE = 8,
    HAS_CALLS = 16,
    HEADER = 13,
    CODE = 0x1000, /* a file that is linked to other addresses does not match the guest */
    CODE_LEN = 0x4000,
    STACK = 0x10000,
    STACK_LEN = 0x1000,
    RAM_LEN = 0x20000,
    FILE_HEADER = 64, /* symbol-elf.c puts code behind the header */
    CALL_STEP = 16,
    DEPTH = 32,
    SAMPLES = 3,
    RESOLVE_MS = 100,
};

/* Each input makes its own UprofSym with caches. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 20 * 1000,
        .base_kib = 8 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 100,
    };
}

static UprofSlice file;

static int
open_stub(const UprofFileRequest *request, void *data)
{
    if (strcmp(request->path, "/app") == 0)
        return memory_file_open(file);
    errno = ENOENT;
    return -1;
}

static uint16_t
read_number(const uint8_t *data)
{
    return (uint16_t)(data[0] | data[1] << 8);
}

static void
put_calls(MemoryGuest *guest)
{
    for (uint32_t at = 0; at < CODE_LEN; at += CALL_STEP) {
        const uint32_t target = at * 4 % CODE_LEN;
        const uint32_t distance = GUINT32_TO_LE(target - (at + 5));
        guest->ram[CODE + at] = 0xe8;
        memcpy(guest->ram + CODE + at + 1, &distance, sizeof(distance));
    }
}

/* Fills the guest's memory with code of the file, from @offset on. */
static void
put_code(MemoryGuest *guest, const uint8_t *data, size_t offset)
{
    const uint16_t at = read_number(data + 7);

    memset(guest->ram, 0, RAM_LEN);
    if (data[0] & HAS_CALLS)
        put_calls(guest);
    else if (!(data[0] & HAS_NO_CODE) && offset < file.len)
        memory_guest_put(guest, CODE, (const uint8_t *)file.data + offset,
                         MIN(file.len - offset, (size_t)CODE_LEN));
    if (at < CODE_LEN)
        guest->ram[CODE + at] ^= data[9];
}

static void
check_frame(const UprofName *name)
{
    const char *text = uprof_name_text(name);

    g_assert(text[0] != '\0' && g_utf8_validate(text, -1, NULL));
    for (const char *c = text; *c; c++)
        g_assert((uint8_t)*c >= ' ' && *c != 0x7f && *c != ';');
}

static void
check_names(UprofSym *sym, const UprofStack *stack)
{
    const UprofName *names[DEPTH];
    const UprofName *const *functions;

    for (unsigned i = 0; i < stack->n; i++)
        names[i] = uprof_sym_find(sym, stack->frames[i].pc, stack->frames[i].is_return).name;
    uprof_sym_resolve(sym, RESOLVE_MS);
    for (unsigned i = 0; i < stack->n; i++) {
        const unsigned n = uprof_sym_expand(sym, names[i], &functions);
        for (unsigned j = 0; j < n; j++)
            check_frame(functions[j]);
        if (n == 0)
            check_frame(names[i]);
    }
}

static void
take_sample(const UprofUnwindContext *context, const UprofRegs *regs)
{
    static UprofStack stack;
    unsigned n_checked, n_agreed;

    uprof_sym_check(context->sym, context->mem, 0, regs, regs->pc, 0);
    uprof_unwind(context, &stack);
    g_assert(stack.n >= 1 && stack.n <= DEPTH && stack.end < UPROF_N_ENDS);
    uprof_unwind_check_calls(context, &stack, &n_checked, &n_agreed);
    g_assert(n_agreed <= n_checked && n_checked < stack.n);
    check_names(context->sym, &stack);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static MemoryGuest *guest;
    static UprofSnapshot snapshot;
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };

    if (size < HEADER)
        return;
    if (!guest)
        guest = memory_guest_open(&plan);
    file = (UprofSlice){ data + HEADER, MIN(read_number(data + 11), size - HEADER) };
    put_code(guest, data, FILE_HEADER);
    uprof_regular_file_delegate(open_stub, NULL);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(guest->base.arch, names);
    uprof_sym_configure(sym, &(UprofSymConfig){ .lines = data[0] & IS_KERNEL });
    if (!uprof_sym_add_file(sym, "/app", true, NULL))
        return;

    const size_t stack_len = MIN(size - HEADER - file.len, (size_t)STACK_LEN);
    uprof_snapshot_clear(&snapshot);
    memcpy(snapshot.bytes, data + HEADER + file.len, stack_len);
    snapshot.n_windows = 1;
    snapshot.windows[0] = (UprofWindow){ .gva = STACK, .len = (uint32_t)stack_len };
    snapshot.regs = (UprofRegs){ .pc = uprof_sym_code_start(sym, 0) + read_number(data + 1),
                                 .sp = STACK + read_number(data + 3),
                                 .fp = STACK + read_number(data + 5),
                                 .word_bytes = data[0] & IS_32 ? 4 : 8,
                                 .privilege = data[0] & IS_KERNEL ? 0 : 3 };
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_WORKER);
    const UprofUnwindContext context = {
        .snapshot = &snapshot,
        .mem = mem,
        .sym = sym,
        .method = data[0] & BY_FP ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO,
        .max_depth = DEPTH,
    };
    for (unsigned i = 0; i < SAMPLES; i++) {
        uprof_mem_begin_sample(mem, 0, i);
        take_sample(&context, &snapshot.regs);
        put_code(guest, data, i); /* the guest changes its code */
        uprof_mem_forget(mem);
    }
}
