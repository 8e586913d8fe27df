/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks the effect of each instruction of a table. Compares the lengths of all instructions
 * of the programs that are arguments with the lengths that objdump prints.
 */
#include <stdlib.h>
#include <string.h>

#include "uprof/x86-insn.h"

enum { INSNS_MIN = 50000 };

/* clang-format off */
enum {
    AX = UPROF_X86_RAX, DX = UPROF_X86_RDX, CX = UPROF_X86_RCX, BX = UPROF_X86_RBX,
    SI = UPROF_X86_RSI, DI = UPROF_X86_RDI, FP = UPROF_X86_RBP, SP = UPROF_X86_RSP,
    R11 = 11, R12, R13, NONE = UPROF_X86_REG_NONE,
};

#define BIT(reg) (1u << (reg))

static const struct {
    const char *name;
    const char *code;
    size_t len;
    unsigned word_bytes;
    UprofX86Kind kind;
    uint8_t to, from;
    int64_t value;
    unsigned writes;
} cases[] = {
#define CODE(text) text, sizeof(text) - 1
    { "push-rbp",         CODE("\x55"),                 8, UPROF_X86_PUSH, NONE, FP, 0, 0 },
    { "push-r13",         CODE("\x41\x55"),             8, UPROF_X86_PUSH, NONE, R13, 0, 0 },
    { "push-imm8",        CODE("\x6a\x55"),             8, UPROF_X86_PUSH, NONE, NONE, 0, 0 },
    { "push-memory",      CODE("\xff\x72\xf8"),         8, UPROF_X86_PUSH, NONE, NONE, 0, 0 },
    { "pushf",            CODE("\x9c"),                 8, UPROF_X86_PUSH, NONE, NONE, 0, 0 },
    { "push-16-bit",      CODE("\x66\x50"),             8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) },
    { "push-32",          CODE("\x55"),                 4, UPROF_X86_PUSH, NONE, FP, 0, 0 },
    { "push-es-32",       CODE("\x06"),                 4, UPROF_X86_PUSH, NONE, NONE, 0, 0 },
    { "pop-rbp",          CODE("\x5d"),                 8, UPROF_X86_POP, FP, NONE, 0, 0 },
    { "pop-rsp",          CODE("\x5c"),                 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) },
    { "pop-r12",          CODE("\x41\x5c"),             8, UPROF_X86_POP, R12, NONE, 0, 0 },
    { "popf",             CODE("\x9d"),                 8, UPROF_X86_POP, NONE, NONE, 0, 0 },
    { "leave",            CODE("\xc9"),                 8, UPROF_X86_LEAVE, NONE, NONE, 0, 0 },
    { "ret",              CODE("\xc3"),                 8, UPROF_X86_RETURN, NONE, NONE, 0, 0 },
    { "ret-bytes",        CODE("\xc2\x08\x00"),         8, UPROF_X86_RETURN, NONE, NONE, 8, 0 },
    { "rep-ret",          CODE("\xf3\xc3"),             8, UPROF_X86_RETURN, NONE, NONE, 0, 0 },
    { "ud2",              CODE("\x0f\x0b"),             8, UPROF_X86_STOP, NONE, NONE, 0, 0 },
    { "int3",             CODE("\xcc"),                 8, UPROF_X86_STOP, NONE, NONE, 0, 0 },
    { "iretq",            CODE("\x48\xcf"),             8, UPROF_X86_IRET, NONE, NONE, 0, 0 },
    { "iretd-32",         CODE("\xcf"),                 4, UPROF_X86_IRET, NONE, NONE, 0, 0 },
    { "iretd-in-64",      CODE("\xcf"),                 8, UPROF_X86_STOP, NONE, NONE, 0, 0 },
    { "iretw-32",         CODE("\x66\xcf"),             4, UPROF_X86_STOP, NONE, NONE, 0, BIT(SP) },
    { "hlt",              CODE("\xf4"),                 8, UPROF_X86_HALT, NONE, NONE, 0, 0 },
    { "mov-rbp-rsp",      CODE("\x48\x89\xe5"),         8, UPROF_X86_ADD, FP, SP, 0, 0 },
    { "mov-rbp-rsp-load", CODE("\x48\x8b\xec"),         8, UPROF_X86_ADD, FP, SP, 0, 0 },
    { "mov-ebp-esp",      CODE("\x89\xe5"),             8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "mov-ebp-esp-32",   CODE("\x89\xe5"),             4, UPROF_X86_ADD, FP, SP, 0, 0 },
    { "mov-rsp-rbp",      CODE("\x48\x89\xec"),         8, UPROF_X86_ADD, SP, FP, 0, 0 },
    { "mov-rsp-rax",      CODE("\x48\x89\xc4"),         8, UPROF_X86_ADD, SP, AX, 0, 0 },
    { "mov-r13-rdi",      CODE("\x49\x89\xfd"),         8, UPROF_X86_ADD, R13, DI, 0, 0 },
    { "mov-bpl-al",       CODE("\x40\x88\xc5"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "mov-rbp-memory",   CODE("\x48\x8b\x2f"),         8, UPROF_X86_LOAD, FP, DI, 0, 0 },
    { "mov-ebp-memory",   CODE("\x8b\x2f"),             8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "mov-rbp-fs",       CODE("\x64\x48\x8b\x2f"),     8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "mov-rax-index",    CODE("\x48\x8b\x04\x0f"),     8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(AX) },
    { "mov-rax-rip",      CODE("\x48\x8b\x05\0\0\0\0"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(AX) },
    { "mov-memory-rbp",   CODE("\x48\x89\x2f"),         8, UPROF_X86_STORE, DI, FP, 0, 0 },
    { "mov-memory-ebp",   CODE("\x89\x6f\x08"),         8, UPROF_X86_STORE, DI, NONE, 8, 0 },
    { "mov-memory-a32",   CODE("\x67\x48\x89\x2f"),     8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "save-rbp",         CODE("\x48\x89\x6c\x24\x10"), 8, UPROF_X86_STORE, SP, FP, 16, 0 },
    { "store-imm",        CODE("\x48\xc7\x04\x24\1\0\0\0"), 8, UPROF_X86_STORE, SP, NONE, 0, 0 },
    { "store-vector",     CODE("\x0f\x29\x44\x24\x20"), 8, UPROF_X86_STORE, SP, NONE, 32, 0 },
    { "add-memory",       CODE("\x48\x01\x44\x24\x08"), 8, UPROF_X86_STORE, SP, NONE, 8, 0 },
    { "mov-ebp-imm",      CODE("\xbd\1\0\0\0"),         8, UPROF_X86_SET, FP, NONE, 1, 0 },
    { "mov-rax-minus",    CODE("\x48\xc7\xc0\xff\xff\xff\xff"), 8, UPROF_X86_SET, AX, NONE, -1, 0 },
    { "mov-rax-imm64",    CODE("\x48\xb8\1\2\3\4\5\6\7\x8"), 8, UPROF_X86_SET, AX, NONE, 0x807060504030201, 0 },
    { "sub-rsp-imm8",     CODE("\x48\x83\xec\x18"),     8, UPROF_X86_ADD, SP, SP, -24, 0 },
    { "sub-rsp-imm32",    CODE("\x48\x81\xec\0\1\0\0"), 8, UPROF_X86_ADD, SP, SP, -256, 0 },
    { "add-rsp-imm8",     CODE("\x48\x83\xc4\x18"),     8, UPROF_X86_ADD, SP, SP, 24, 0 },
    { "add-rsp-minus",    CODE("\x48\x83\xc4\x80"),     8, UPROF_X86_ADD, SP, SP, -128, 0 },
    { "sub-esp-imm8-32",  CODE("\x83\xec\x18"),         4, UPROF_X86_ADD, SP, SP, -24, 0 },
    { "sub-esp-imm8",     CODE("\x83\xec\x18"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) },
    { "and-rsp",          CODE("\x48\x83\xe4\xf0"),     8, UPROF_X86_ALIGN_SP, SP, NONE, 0, 0 },
    { "cmp-rsp-imm",      CODE("\x48\x83\xfc\x00"),     8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "cmp-rsp-r11",      CODE("\x4c\x39\xdc"),         8, UPROF_X86_COMPARE_SP, NONE, R11, 0, 0 },
    { "sub-rsp-rax",      CODE("\x48\x29\xc4"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) },
    { "add-rbp-rax",      CODE("\x48\x01\xc5"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "lea-rsp-rsp",      CODE("\x48\x8d\x64\x24\x08"), 8, UPROF_X86_ADD, SP, SP, 8, 0 },
    { "lea-rsp-rbp",      CODE("\x48\x8d\x65\xf0"),     8, UPROF_X86_ADD, SP, FP, -16, 0 },
    { "lea-rbp-rsp",      CODE("\x48\x8d\x6c\x24\x10"), 8, UPROF_X86_ADD, FP, SP, 16, 0 },
    { "lea-rbp-rip",      CODE("\x48\x8d\x2d\0\0\0\0"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "lea-rsp-index",    CODE("\x48\x8d\x64\x04\x08"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) },
    { "lea-only-index",   CODE("\x48\x8d\x04\x0d\x08\0\0\0"), 8, UPROF_X86_ADD, AX, CX, 8, 0 },
    { "lea-scaled",       CODE("\x48\x8d\x04\xcd\x08\0\0\0"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(AX) },
    { "call",             CODE("\xe8\xff\xff\xff\xff"), 8, UPROF_X86_CALL, NONE, NONE, -1, 0 },
    { "call-memory",      CODE("\xff\x15\0\0\0\0"),     8, UPROF_X86_CALL_ANY, NONE, NONE, 0, 0 },
    { "call-r11",         CODE("\x41\xff\xd3"),         8, UPROF_X86_CALL_ANY, NONE, NONE, 0, 0 },
    { "jmp",              CODE("\xe9\x10\0\0\0"),       8, UPROF_X86_JUMP, NONE, NONE, 16, 0 },
    { "jmp-short",        CODE("\xeb\xfe"),             8, UPROF_X86_JUMP, NONE, NONE, -2, 0 },
    { "jmp-rax",          CODE("\xff\xe0"),             8, UPROF_X86_JUMP_ANY, NONE, NONE, 0, 0 },
    { "jmp-word",         CODE("\xff\x60\x08"),         8, UPROF_X86_JUMP_ANY, NONE, NONE, 0, 0 },
    { "jmp-fixed",        CODE("\xff\x25\1\0\0\0"),     8, UPROF_X86_JUMP_FIXED, NONE, NONE, 0, 0 },
    { "jmp-fixed-32",     CODE("\xff\x25\1\0\0\0"),     4, UPROF_X86_JUMP_FIXED, NONE, NONE, 0, 0 },
    { "jmp-table",        CODE("\xff\x24\xc5\1\0\0\0"), 8, UPROF_X86_JUMP_TABLE, NONE, NONE, 0, 0 },
    { "notrack-jmp",      CODE("\x3e\xff\xe0"),         8, UPROF_X86_JUMP_ANY, NONE, NONE, 0, 0 },
    { "je",               CODE("\x74\x80"),             8, UPROF_X86_BRANCH, NONE, NONE, -128, 0 },
    { "je-far",           CODE("\x0f\x84\0\1\0\0"),     8, UPROF_X86_BRANCH, NONE, NONE, 256, 0 },
    { "loop",             CODE("\xe2\x02"),             8, UPROF_X86_BRANCH, NONE, NONE, 2, BIT(CX) },
    { "endbr64",          CODE("\xf3\x0f\x1e\xfa"),     8, UPROF_X86_MARK, NONE, NONE, 0, 0 },
    { "nop-long",         CODE("\x0f\x1f\x44\0\0"),     8, UPROF_X86_NOP, NONE, NONE, 0, 0 },
    { "nop-by-lea-32",    CODE("\x8d\xb4\x26\0\0\0\0"), 4, UPROF_X86_NOP, NONE, NONE, 0, 0 },
    { "nop-of-register",  CODE("\x0f\x1f\xc5"),         8, UPROF_X86_NOP, NONE, NONE, 0, 0 },
    { "test-imm",         CODE("\xf7\xc5\1\0\0\0"),     8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "not-ebp",          CODE("\xf7\xd5"),             8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "cmov-ebp",         CODE("\x0f\x44\xe8"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "xchg-rsp-rax",     CODE("\x48\x94"),             8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) | BIT(AX) },
    { "movaps-xmm5",      CODE("\x0f\x28\x28"),         8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "xor-ebp",          CODE("\x31\xed"),             8, UPROF_X86_SET, FP, NONE, 0, 0 },
    { "xor-rbp",          CODE("\x48\x33\xed"),         8, UPROF_X86_SET, FP, NONE, 0, 0 },
    { "xor-bp",           CODE("\x66\x31\xed"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "sub-rbx-rbx",      CODE("\x48\x29\xdb"),         8, UPROF_X86_SET, BX, NONE, 0, 0 },
    { "sete-bpl",         CODE("\x40\x0f\x94\xc5"),     8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "sete-ch",          CODE("\x0f\x94\xc5"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(CX) },
    { "rep-movs",         CODE("\xf3\x48\xa5"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(CX) | BIT(SI) | BIT(DI) },
    { "rdrand-rbp",       CODE("\x48\x0f\xc7\xf5"),     8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "pextrd-ebp",       CODE("\x66\x0f\x3a\x16\xc5\x01"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "shlx-ebp",         CODE("\xc4\xe2\x79\xf7\xef"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "blsr-ebp",         CODE("\xc4\xe2\x50\xf3\xcf"), 8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "vmovd-ebp",        CODE("\xc5\xf9\x7e\xc5"),     8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "vzeroupper",       CODE("\xc5\xf8\x77"),         8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "vpalignr",         CODE("\xc4\xe3\x75\x0f\xc2\x08"), 8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "evex-load",        CODE("\x62\xf1\xfe\x28\x6f\x06"), 8, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "syscall",          CODE("\x0f\x05"),             8, UPROF_X86_SYSCALL, NONE, NONE, 0, BIT(AX) | BIT(CX) | BIT(R11) },
    { "syscall-32",       CODE("\x0f\x05"),             4, UPROF_X86_SYSCALL, NONE, NONE, 0, BIT(AX) | BIT(CX) },
    { "int-80-32",        CODE("\xcd\x80"),             4, UPROF_X86_SYSCALL, NONE, NONE, 0, BIT(AX) },
    { "les-32",           CODE("\xc4\x06"),             4, UPROF_X86_OTHER, NONE, NONE, 0, BIT(AX) },
    { "inc-ebp-32",       CODE("\x45"),                 4, UPROF_X86_OTHER, NONE, NONE, 0, BIT(FP) },
    { "pusha-32",         CODE("\x60"),                 4, UPROF_X86_ADD, SP, SP, -32, 0 },
    { "moffs-32",         CODE("\xa1\1\2\3\4"),         4, UPROF_X86_OTHER, NONE, NONE, 0, BIT(AX) },
    { "16-bit-address-32", CODE("\x67\x89\x07"),         4, UPROF_X86_OTHER, NONE, NONE, 0, 0 },
    { "enter",            CODE("\xc8\x10\0\0"),         8, UPROF_X86_OTHER, NONE, NONE, 0, BIT(SP) | BIT(FP) },
#undef CODE
};

/* Bytes that are not an instruction, or only the beginning of one. */
static const struct {
    const char *name;
    const char *code;
    size_t len;
    unsigned word_bytes;
} bad[] = {
#define CODE(text) text, sizeof(text) - 1
    { "nothing",      CODE(""),                                 8 },
    { "prefix-only",  CODE("\x66"),                             8 },
    { "rex-only",     CODE("\x48"),                             8 },
    { "no-modrm",     CODE("\x48\x89"),                         8 },
    { "no-sib",       CODE("\x48\x8b\x44"),                     8 },
    { "no-immediate", CODE("\xe8\0\0\0"),                       8 },
    { "no-vex",       CODE("\xc5"),                             8 },
    { "no-evex",      CODE("\x62\xf1\xfe\x28"),                 8 },
    { "too-long",     CODE("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90"), 8 },
    { "push-es",      CODE("\x06"),                             8 },
    { "far-call",     CODE("\x9a\0\0\0\0\0\0"),                 8 },
    { "undefined",    CODE("\x0f\x04"),                         8 },
#undef CODE
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofX86Insn insn;

    g_assert_true(
        uprof_x86_insn((UprofSlice){ cases[i].code, cases[i].len }, cases[i].word_bytes, &insn));
    g_assert_cmpuint(insn.len, ==, cases[i].len);
    g_assert_cmpint(insn.kind, ==, cases[i].kind);
    g_assert_cmpuint(insn.to, ==, cases[i].to);
    g_assert_cmpuint(insn.from, ==, cases[i].from);
    g_assert_cmpint(insn.value, ==, cases[i].value);
    g_assert_cmphex(insn.writes, ==, cases[i].writes);
    g_assert_cmpint(insn.is_unequal, ==, false);
}

static void
test_bad(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofX86Insn insn;

    g_assert_false(
        uprof_x86_insn((UprofSlice){ bad[i].code, bad[i].len }, bad[i].word_bytes, &insn));
}

/* Uses of the stack pointer that the kind does not describe */
static void
test_sp_uses(void)
{
    static const struct {
        const char *code;
        size_t len;
        unsigned word_bytes;
        bool may_keep_sp, is_new_sp;
    } uses[] = {
#define CODE(text) text, sizeof(text) - 1
        { CODE("\x48\x8b\x25\0\1\0\0"), 8, false, true },         /* mov 0x100(%rip),%rsp */
        { CODE("\x48\x8d\x25\0\1\0\0"), 8, false, true },         /* lea 0x100(%rip),%rsp */
        { CODE("\x65\x48\x8b\x24\x25\0\1\0\0"), 8, false, true }, /* mov %gs:0x100,%rsp */
        { CODE("\x8b\x25\0\1\0\0"), 4, false, true },             /* mov 0x100,%esp */
        { CODE("\x48\x8b\x64\x05\0"), 8, false, false },          /* mov (%rbp,%rax),%rsp */
        { CODE("\xbc\0\1\0\0"), 8, false, false },                /* mov $0x100,%esp: SET */
        { CODE("\x48\x89\xc4"), 8, false, false },                /* mov %rax,%rsp: ADD */
        { CODE("\x48\x89\x25\0\1\0\0"), 8, true, false },         /* mov %rsp,0x100(%rip) */
        { CODE("\x65\x48\x89\x24\x25\0\1\0\0"), 8, true, false }, /* mov %rsp,%gs:0x100 */
        { CODE("\x89\x27"), 8, true, false },                     /* mov %esp,(%rdi) */
        { CODE("\x48\x01\xe0"), 8, true, false },                 /* add %rsp,%rax */
        { CODE("\x48\x29\xc4"), 8, true, false },                 /* sub %rax,%rsp */
        { CODE("\x48\x94"), 8, true, false },                     /* xchg %rax,%rsp */
        { CODE("\x48\x8d\x44\x04\x08"), 8, true, false },         /* lea 8(%rsp,%rax),%rax */
        { CODE("\x48\x8d\x44\x24\x08"), 8, false, false },        /* lea 8(%rsp),%rax: ADD */
        { CODE("\x89\xe5"), 8, true, false },                     /* mov %esp,%ebp */
        { CODE("\x5c"), 8, false, false },                        /* pop %rsp */
        { CODE("\x50"), 8, false, false },
        { CODE("\xc3"), 8, false, false },
#undef CODE
    };

    for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
        UprofX86Insn insn;
        g_test_message("case %zu", i);
        g_assert_true(
            uprof_x86_insn((UprofSlice){ uses[i].code, uses[i].len }, uses[i].word_bytes, &insn));
        g_assert_cmpint(insn.may_keep_sp, ==, uses[i].may_keep_sp);
        g_assert_cmpint(insn.is_new_sp, ==, uses[i].is_new_sp);
    }
}

/* Parses a line of "objdump -dw": address, bytes, words. Returns: number of bytes, or 0 */
static size_t
parse_line(const char *line, uint8_t *code, size_t max, const char **words)
{
    const char *at = strchr(line, ':');
    size_t len = 0;

    if (line[0] != ' ' || !at || at[1] != '\t')
        return 0;
    for (at += 2; g_ascii_isxdigit(at[0]) && g_ascii_isxdigit(at[1]) && len < max; at += 3)
        code[len++] = (uint8_t)(g_ascii_xdigit_value(at[0]) << 4 | g_ascii_xdigit_value(at[1]));
    while (*at == ' ' || *at == '\t')
        at++;
    *words = at;
    return len;
}

static void
test_objdump(gconstpointer data)
{
    const char *arguments[] = { "objdump", "-dw", data, NULL };
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    size_t n = 0, n_wrong = 0;

    g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &text, NULL, NULL,
                 &error);
    g_assert_no_error(error);
    for (char *line = text, *next; *line; line = next) {
        uint8_t code[UPROF_X86_INSN_BYTES_MAX];
        const char *words;
        UprofX86Insn insn;

        next = strchr(line, '\n');
        g_assert_nonnull(next);
        *next++ = '\0';
        const size_t len = parse_line(line, code, sizeof(code), &words);
        /* objdump joins FWAIT with the next instruction, and prints a REX byte as an instruction */
        if (len == 0 || strstr(words, "(bad)") || g_str_has_prefix(words, "fwait") ||
            g_str_has_prefix(words, "rex"))
            continue;
        n++;
        if (uprof_x86_insn((UprofSlice){ code, len }, 8, &insn) && insn.len == len)
            continue;
        if (n_wrong++ < 20)
            g_test_message("%s", line);
    }
    g_test_message("%zu instructions, %zu wrong", n, n_wrong);
    g_assert_cmpuint(n, >, INSNS_MIN);
    g_assert_cmpuint(n_wrong, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/x86-insn/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/x86-insn/sp-uses", test_sp_uses);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *path = g_strdup_printf("/x86-insn/bad/%s", bad[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_bad);
    }
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *path = g_strdup_printf("/x86-insn/objdump/%s", name);
        g_test_add_data_func(path, argv[i], test_objdump);
    }
    return g_test_run();
}
