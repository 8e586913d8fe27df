/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-role-priv.h"

#include <string.h>

enum {
    ROOT_INSNS_MAX = 4,
    CLI = 0xfa,
    HLT = 0xf4,
    /* numbers of system calls (Linux, arch/x86/entry/syscalls) */
    EXIT_64 = 60,
    EXIT_GROUP_64 = 231,
    EXIT_32 = 1,
    EXIT_GROUP_32 = 252,
    PLACE_BYTES_MAX = 16,
};

static bool
has_bytes(UprofCodeText *text, uint64_t pc, const char *bytes, size_t len)
{
    char code[PLACE_BYTES_MAX];

    return uprof_code_text_read(text, pc, code, len) && memcmp(code, bytes, len) == 0;
}

/* rt_sigreturn(): the frame above is one of the Linux kernel (arch/x86/kernel/signal.c). */
static bool
is_sigreturn(UprofCodeText *text, uint64_t pc)
{
    return has_bytes(text, pc, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9) ||
           has_bytes(text, pc, "\xb8\x0f\0\0\0\x0f\x05", 7);
}

/*
 * __start_context of the GNU C library, to which makecontext() makes the function return. It takes
 * the next context from the stack (sysdeps/unix/sysv/linux/x86_64/__start_context.S).
 */
static bool
starts_context(UprofCodeText *text, uint64_t pc)
{
    if (has_bytes(text, pc, "\xf3\x0f\x1e\xfa", 4))
        pc += 4;
    return has_bytes(text, pc, "\x48\x89\xdc\x48\x8b\x3c\x24", 7);
}

/*
 * goexit() of Go: it is NOP, CALL, NOP, and goroutines return behind the first NOP
 * (runtime/asm_amd64.s).
 */
static bool
ends_goroutine(UprofCodeText *text, uint64_t pc)
{
    uint8_t code[12];

    if (pc < 6 || !uprof_code_text_read(text, pc - 6, code, sizeof(code)))
        return false;
    return code[5] == 0x90 && code[6] == 0xe8 && code[11] == 0x90 && code[1] != 0xe8 &&
           code[4] == 0xcc;
}

/*
 * The dynamic linker of the GNU C library, where a program begins: it jumps to the program with the
 * same stack (sysdeps/x86_64/dl-machine.h, _dl_start_user).
 */
static bool
starts_program(UprofCodeText *text, uint64_t pc)
{
    return pc > 8 && has_bytes(text, pc - 8, "\x48\x89\xe7\xe8", 4) &&
           has_bytes(text, pc, "\x49\x89\xc4", 3);
}

static bool
is_exit(int64_t number, unsigned word_bytes)
{
    return word_bytes == 8 ? number == EXIT_64 || number == EXIT_GROUP_64
                           : number == EXIT_32 || number == EXIT_GROUP_32;
}

/* Does the code end the thread, or the processor's work? */
static bool
ends_thread(UprofCodeText *text, uint64_t pc)
{
    int64_t number = 0;
    UprofX86Insn insn;

    for (unsigned i = 0; i < ROOT_INSNS_MAX; i++, pc += insn.len) {
        if (!uprof_code_text_insn(text, pc, &insn))
            return false;
        if (insn.kind == UPROF_X86_HALT)
            return true;
        if (insn.kind == UPROF_X86_SYSCALL)
            return is_exit(number, uprof_code_text_word_bytes(text));
        if (insn.kind == UPROF_X86_SET && insn.to == UPROF_X86_RAX)
            number = insn.value;
        if (insn.kind >= UPROF_X86_PUSH && insn.kind <= UPROF_X86_STOP)
            return false;
    }
    return false;
}

/* A kernel also halts to wait, so HLT must come right behind the call. */
static bool
halts_kernel(UprofCodeText *text, uint64_t pc)
{
    uint8_t code;

    if (!uprof_code_text_read(text, pc, &code, sizeof(code)))
        return false;
    if (code == CLI && !uprof_code_text_read(text, pc + 1, &code, sizeof(code)))
        return false;
    return code == HLT;
}

UprofCodeRole
uprof_code_find_role(UprofCodeText *text, uint64_t pc, bool is_return, bool is_kernel)
{
    uint64_t target;

    if (is_sigreturn(text, pc))
        return UPROF_ROLE_SIGNAL;
    if (!is_return)
        return UPROF_ROLE_NORMAL;
    if (starts_context(text, pc) || ends_goroutine(text, pc) || starts_program(text, pc))
        return UPROF_ROLE_ROOT;
    if (uprof_code_text_call(text, pc, &target) < UPROF_CALL_DIRECT)
        return UPROF_ROLE_NORMAL;
    return (is_kernel ? halts_kernel(text, pc) : ends_thread(text, pc)) ? UPROF_ROLE_ROOT
                                                                        : UPROF_ROLE_NORMAL;
}

bool
uprof_code_is_return(UprofCodeText *text, uint64_t pc)
{
    uint64_t target;

    if (!uprof_code_text_is_code(text, pc - 1))
        return false;
    return uprof_code_text_call(text, pc, &target) >= UPROF_CALL_DIRECT || is_sigreturn(text, pc) ||
           starts_context(text, pc) || ends_goroutine(text, pc);
}
