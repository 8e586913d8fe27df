/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks the text of each instruction of a table, and compares the instructions of the programs
 * that are arguments with the text that objdump prints.
 */
#include <string.h>

#include "uprof/x86-text.h"

#include <glib.h>

enum { INSNS_MIN = 50000, INSN_BYTES_MAX = 15 };

#define ADDRESS UINT64_C(0x401000)

/* clang-format off */
static const struct {
    const char *code;
    size_t len;
    unsigned word_bytes;
    const char *text;
    uint64_t target; /* 0: none */
} cases[] = {
#define CODE(text) text, sizeof(text) - 1
    { CODE("\x55"),                         8, "push   %rbp", 0 },
    { CODE("\x55"),                         4, "push   %ebp", 0 },
    { CODE("\x48\x89\xe5"),                 8, "mov    %rsp,%rbp", 0 },
    { CODE("\x8b\x05\x10\x00\x00\x00"),     8, "mov    0x10(%rip),%eax", 0 },
    { CODE("\x48\x83\xe4\xf0"),             8, "and    $0xfffffffffffffff0,%rsp", 0 },
    { CODE("\x48\x8d\x44\x80\x01"),         8, "lea    0x1(%rax,%rax,4),%rax", 0 },
    { CODE("\xc7\x00\x05\x00\x00\x00"),     8, "movl   $0x5,(%rax)", 0 },
    { CODE("\x0f\xb6\x03"),                 8, "movzbl (%rbx),%eax", 0 },
    { CODE("\x48\x63\xc2"),                 8, "movslq %edx,%rax", 0 },
    { CODE("\x48\x98"),                     8, "cltq", 0 },
    { CODE("\x0f\x94\xc0"),                 8, "sete   %al", 0 },
    { CODE("\x0f\x4f\xc1"),                 8, "cmovg  %ecx,%eax", 0 },
    { CODE("\x75\xfe"),                     8, "jne    401000", ADDRESS },
    { CODE("\x0f\x87\x00\x01\x00\x00"),     8, "ja     401106", ADDRESS + 0x106 },
    { CODE("\xe8\xfb\xef\xff\xff"),         8, "call   400000", 0x400000 },
    { CODE("\xff\xd0"),                     8, "call   *%rax", 0 },
    { CODE("\xff\x25\x00\x10\x00\x00"),     8, "jmp    *0x1000(%rip)", 0 },
    { CODE("\x48\xb8\x01\0\0\0\0\0\0\0"),   8, "movabs $0x1,%rax", 0 },
    { CODE("\xf0\x0f\xb1\x17"),             8, "lock cmpxchg %edx,(%rdi)", 0 },
    { CODE("\x66\x0f\x1f\x44\x00\x00"),     8, "nopw   (%rax,%rax,1)", 0 },
    { CODE("\xc3"),                         8, "ret", 0 },
    { CODE("\x0f\x0b"),                     8, "ud2", 0 },
};

static const struct {
    const char *code;
    size_t len;
    unsigned word_bytes;
} bad[] = {
    { CODE(""),                 8 },
    { CODE("\xe8\x00\x00\x00"), 8 }, /* cut */
    { CODE("\x48"),             8 },
    { CODE("\x06"),             8 },
    { CODE("\x0f\x04"),         4 },
    { CODE("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90"), 8 },
#undef CODE
};
/* clang-format on */

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        UprofX86Text text;

        g_assert_true(uprof_x86_text((UprofSlice){ cases[i].code, cases[i].len }, ADDRESS,
                                     cases[i].word_bytes, &text));
        g_assert_cmpstr(text.text, ==, cases[i].text);
        g_assert_cmpuint(text.len, ==, cases[i].len);
        g_assert_cmpint(text.has_target, ==, cases[i].target > 0);
        g_assert_cmphex(text.target, ==, cases[i].target);
    }
}

static void
test_bad(void)
{
    UprofX86Text text = { .len = 99 };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(uprof_x86_text((UprofSlice){ bad[i].code, bad[i].len }, ADDRESS,
                                      bad[i].word_bytes, &text));
    g_assert_cmpuint(text.len, ==, 99);
}

/* A target behind the end of the address space wraps, as the processor does. */
static void
test_wrap(void)
{
    UprofX86Text text;

    g_assert_true(uprof_x86_text((UprofSlice){ "\xeb\x10", 2 }, UINT64_MAX - 7, 8, &text));
    g_assert_cmphex(text.target, ==, 0xa);
}

/* Each pattern of four bytes with a prefix gives text of one line, which says something. */
static void
test_all_patterns(void)
{
    for (unsigned i = 0; i < 1 << 16; i++) {
        const uint8_t code[INSN_BYTES_MAX] = { i & 0xff, i >> 8, 0x84, 0xff, 0x81, 0xfe };
        UprofX86Text text;

        if (!uprof_x86_text((UprofSlice){ code, sizeof(code) }, ADDRESS, i % 2 ? 8 : 4, &text))
            continue;
        g_assert_cmpuint(text.len, <=, sizeof(code));
        g_assert_true(g_ascii_isalpha(text.text[0]));
        for (const char *at = text.text; *at; at++)
            g_assert_true(g_ascii_isprint(*at));
    }
}

/* Parses a line of "objdump -dw". Returns: number of bytes, or 0 */
static size_t
parse_line(const char *line, uint64_t *address, uint8_t *code, size_t max, const char **words)
{
    const char *at = strchr(line, ':');
    size_t len = 0;

    if (line[0] != ' ' || !at || at[1] != '\t')
        return 0;
    *address = g_ascii_strtoull(line, NULL, 16);
    for (at += 2; g_ascii_isxdigit(at[0]) && g_ascii_isxdigit(at[1]) && len < max; at += 3)
        code[len++] = (uint8_t)(g_ascii_xdigit_value(at[0]) << 4 | g_ascii_xdigit_value(at[1]));
    while (*at == ' ' || *at == '\t')
        at++;
    *words = at;
    return len;
}

/*
 * objdump adds names of addresses, a displacement of 0 that the code has, prefixes of instructions
 * that do nothing, and operands of strings.
 *
 * Returns: (transfer full): @text without these
 */
static char *
normalize_text(const char *text)
{
    g_auto(GStrv) parts = g_strsplit_set(text, "<#", 2);
    g_auto(GStrv) zeros = g_strsplit(parts[0], " 0x0(", 2);
    g_autofree char *joined = g_strjoinv(" (", zeros);
    g_auto(GStrv) inner = g_strsplit(joined, ",0x0(", 2);

    return g_strchomp(g_strjoinv(",(", inner));
}

static bool
is_compared(const char *words)
{
    static const char *const others[] = { "(bad)",  "fwait",        "rex",  "nop",   "data16",
                                          "cs nop", "xchg %ax,%ax", "rep ", "repz ", "repnz " };

    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strncmp(words, others[i], strlen(others[i])) == 0)
            return false;
    return !strstr(words, "(bad)") && !strstr(words, "xchg   %ax,%ax");
}

static bool
is_same_text(const char *words, const char *text)
{
    g_autofree char *theirs = normalize_text(words);
    g_autofree char *ours = normalize_text(text);

    return strcmp(theirs, ours) == 0;
}

static void
test_objdump(gconstpointer data)
{
    const char *arguments[] = { "objdump", "-dw", data, NULL };
    g_autofree char *output = NULL;
    g_autoptr(GError) error = NULL;
    size_t n = 0, n_other = 0;

    g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output, NULL,
                 NULL, &error);
    g_assert_no_error(error);
    /* not g_strsplit(): with a sanitizer, each strstr() measures all that is left of the output */
    g_auto(GStrv) lines = g_strsplit_set(output, "\n", -1);
    for (char **line = lines; *line; line++) {
        uint8_t code[INSN_BYTES_MAX];
        const char *words;
        uint64_t address;
        UprofX86Text text;

        const size_t len = parse_line(*line, &address, code, sizeof(code), &words);
        if (len == 0 || !is_compared(words))
            continue;
        n++;
        g_assert_true(uprof_x86_text((UprofSlice){ code, len }, address, 8, &text));
        if (is_same_text(words, text.text))
            continue;
        if (n_other++ < 20)
            g_test_message("%s: %s", *line, text.text);
    }
    g_test_message("%zu instructions, %zu with another text", n, n_other);
    g_assert_cmpuint(n, >, INSNS_MIN);
    /* one of a hundred may differ: most of these are AVX-512 */
    g_assert_cmpuint(n_other * 100, <, n);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/x86-text/cases", test_cases);
    g_test_add_func("/x86-text/bad", test_bad);
    g_test_add_func("/x86-text/wrap", test_wrap);
    g_test_add_func("/x86-text/all-patterns", test_all_patterns);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *path = g_strdup_printf("/x86-text/objdump/%s", name);
        g_test_add_data_func(path, argv[i], test_objdump);
    }
    return g_test_run();
}
