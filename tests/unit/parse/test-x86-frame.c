/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/x86-frame.h"

#define PUSH "\x55"            /* push %rbp */
#define MOV "\x48\x89\xe5"     /* mov %rsp,%rbp */
#define SUB "\x48\x83\xec\x18" /* sub $24,%rsp */
#define ADD "\x48\x83\xc4\x18"
#define NOP "\x90"
#define CALL "\xe8\0\1\0\0"
#define PUSH_RBX "\x53"
#define POP_RBX "\x5b"
#define BELOW_24 "\x48\x8d\x65\xe8" /* lea -24(%rbp),%rsp */
#define AND "\x48\x83\xe4\xe0"
#define LOSE_FP "\x48\x89\xfd" /* mov %rdi,%rbp */
#define POP_FP "\x5d"
#define LEAVE "\xc9"
#define RET "\xc3"

typedef struct {
    const char *name;
    const char *code;
    size_t len;
    size_t at;
    bool is_known;
    UprofX86Frame frame;
    unsigned word_bytes; /* 0: 8 */
} Case;

#define CODE(text) text, sizeof(text) - 1
#define SP_AT(cfa)                                                                                 \
    true,                                                                                          \
    {                                                                                              \
        false, false, cfa, UPROF_X86_FP_KEPT, 0                                                    \
    }
#define SAVED(by_fp, cfa, saved)                                                                   \
    true,                                                                                          \
    {                                                                                              \
        false, by_fp, cfa, UPROF_X86_FP_SAVED, saved                                               \
    }

/* clang-format off */
static const Case cases[] = {
    { "first",             CODE(PUSH MOV NOP LEAVE RET),        0, SP_AT(8) },
    { "behind-push",       CODE(PUSH MOV NOP LEAVE RET),        1, true, { false, false, 16, UPROF_X86_FP_KEPT, 16 } },
    { "body",              CODE(PUSH MOV NOP LEAVE RET),        4, SAVED(true, 16, 16) },
    { "leave",             CODE(PUSH MOV NOP LEAVE RET),        5, SAVED(true, 16, 16) },
    { "ret",               CODE(PUSH MOV NOP LEAVE RET),        6, SP_AT(8) },
    { "within-mov",        CODE(PUSH MOV NOP LEAVE RET),        3, true, { false, false, 16, UPROF_X86_FP_KEPT, 16 } },
    { "frameless",         CODE(NOP NOP RET),                   1, SP_AT(8) },
    { "pushes",            CODE(PUSH_RBX SUB CALL ADD POP_RBX RET), 5, SP_AT(40) },
    { "return-address",    CODE(PUSH_RBX SUB CALL ADD POP_RBX RET), 9, SP_AT(40) },
    { "behind-add",        CODE(PUSH_RBX SUB CALL ADD POP_RBX RET), 14, SP_AT(16) },
    { "behind-pop",        CODE(PUSH_RBX SUB CALL ADD POP_RBX RET), 15, SP_AT(8) },
    { "fp-for-others",     CODE(PUSH LOSE_FP NOP POP_FP RET),   4, SAVED(false, 16, 16) },
    { "fp-is-back",        CODE(PUSH LOSE_FP NOP POP_FP RET),   6, SP_AT(8) },
    { "fp-is-gone",        CODE(LOSE_FP NOP RET),               3, true, { false, false, 8, UPROF_X86_FP_GONE, 0 } },
    { "fp-stored",         CODE(SUB "\x48\x89\x6c\x24\x10" LOSE_FP NOP RET), 12, SAVED(false, 32, 16) },
    { "aligned-with-fp",   CODE(PUSH MOV AND NOP BELOW_24 LEAVE RET), 8, SAVED(true, 16, 16) },
    { "aligned-without",   CODE(AND NOP RET),                   4, false, { 0 } },
    { "sp-from-fp",        CODE(PUSH MOV AND BELOW_24 POP_RBX RET), 13, SAVED(true, 16, 16) },
    /* test; je 1f; push; mov; leave; ret; 1: nop; ret */
    { "other-way",         CODE("\x74\x06" PUSH MOV LEAVE RET NOP RET), 8, SP_AT(8) },
    /* push; jmp 2f; 1: nop; ret's way; 2: je 1b; pop; ret */
    { "loop-below",        CODE(PUSH_RBX "\xeb\x02" NOP NOP "\x74\xfc" POP_RBX RET), 3, SP_AT(16) },
    { "behind-the-jump",   CODE(PUSH_RBX "\xeb\x02" NOP NOP "\x74\xfc" POP_RBX RET), 5, SP_AT(16) },
    /* only a jump table leads to the code behind the ret */
    { "table",             CODE(SUB "\xff\xe0" ADD RET NOP ADD RET), 11, SP_AT(32) },
    { "no-way",            CODE(NOP RET NOP RET),               2, false, { 0 } },
    { "behind-garbage",    CODE(NOP "\x06" NOP),                2, false, { 0 } },
    { "pops-too-much",     CODE(POP_RBX NOP),                   1, false, { 0 } },
    { "outside",           CODE(NOP),                           1, false, { 0 } },
    { "empty",             CODE(""),                            0, false, { 0 } },
    { "jumps-far",         CODE("\x0f\x84\xff\xff\xff\x7f" NOP), 6, SP_AT(8) },
    { "jumps-far-back",    CODE("\x0f\x84\0\0\0\x80" NOP),      6, SP_AT(8) },
    { "huge-frame",        CODE("\x48\x81\xec\0\0\0\x70" NOP),  7, false, { 0 } },
    { "root",              CODE("\x31\xed" CALL NOP),           7, true, { true, false, 8, UPROF_X86_FP_GONE, 0 } },
    { "zero-for-others",   CODE(PUSH "\x31\xed" NOP POP_FP RET), 3, SAVED(false, 16, 16) },
    /* 1: sub; jne 1b: an unknown number of times */
    { "stack-in-a-loop",   CODE(SUB "\x75\xfa" NOP RET),        6, false, { 0 } },
    { "loop-with-fp",      CODE(PUSH MOV SUB "\x75\xfa" NOP LEAVE RET), 10, SAVED(true, 16, 16) },
    { "saved-on-one-way",  CODE("\x74\x01" PUSH NOP),           3, false, { 0 } },
    { "set-of-bpl",        CODE(PUSH "\x40\x0f\x94\xc5" NOP),   5, SAVED(false, 16, 16) },
    { "32-body",           CODE("\x55\x89\xe5\x83\xec\x18\xc9\xc3"), 6, SAVED(true, 8, 8), 4 },
    { "32-behind-push",    CODE("\x55\x89\xe5\x83\xec\x18\xc9\xc3"), 1, true, { false, false, 8, UPROF_X86_FP_KEPT, 8 }, 4 },
    { "32-call-next",      CODE("\xe8\0\0\0\0\x5b\xc3"),        5, SP_AT(8), 4 },
    { "16-bit",            CODE(NOP),                           0, false, { 0 }, 2 },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const Case *test = data;
    UprofX86Frame frame;

    g_autoptr(UprofX86Frames) frames = uprof_x86_frames_new(
        (UprofSlice){ test->code, test->len }, test->word_bytes ? test->word_bytes : 8);
    const bool is_known = uprof_x86_frames_find(frames, test->at, &frame);
    g_assert_cmpint(is_known, ==, test->is_known);
    if (!is_known)
        return;
    g_assert_cmpint(frame.by_fp, ==, test->frame.by_fp);
    g_assert_cmpint(frame.cfa, ==, test->frame.cfa);
    g_assert_cmpint(frame.fp, ==, test->frame.fp);
    if (frame.fp == UPROF_X86_FP_SAVED)
        g_assert_cmpint(frame.saved, ==, test->frame.saved);
}

/* Random bytes, more than the analysis reads. */
static void
test_random(void)
{
    enum { LEN = UPROF_X86_FRAME_BYTES_MAX + 100 };
    g_autofree uint8_t *code = g_malloc(LEN);
    unsigned n_known = 0;

    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = 0; i < LEN; i++)
            code[i] = g_test_rand_int_range(0, 3) ? 0x74 : (uint8_t)g_test_rand_int();
        g_autoptr(UprofX86Frames) frames =
            uprof_x86_frames_new((UprofSlice){ code, LEN }, round % 2 ? 8 : 4);
        for (unsigned i = 0; i < 10; i++) {
            UprofX86Frame frame;
            const size_t at = (size_t)g_test_rand_int_range(0, i < 5 ? 64 : LEN + 10);
            if (!uprof_x86_frames_find(frames, at, &frame))
                continue;
            g_assert_true(frame.is_root || frame.cfa > 0);
            g_assert_cmpint(frame.saved, >=, 0);
            n_known++;
        }
    }
    g_assert_cmpuint(n_known, >, 0);
}

/* Code behind the last stored row is unknown; the last row does not continue. */
static void
test_many_changes(void)
{
    enum { LEN = 8000 };
    uint8_t code[LEN];
    UprofX86Frame frame;
    size_t n_known = 0;

    for (unsigned i = 0; i < LEN; i += 2)
        memcpy(code + i, PUSH_RBX POP_RBX, 2);
    g_autoptr(UprofX86Frames) frames = uprof_x86_frames_new((UprofSlice){ code, LEN }, 8);
    while (uprof_x86_frames_find(frames, n_known, &frame)) {
        g_assert_cmpint(frame.cfa, ==, n_known % 2 ? 16 : 8);
        n_known++;
    }
    g_assert_cmpuint(n_known, >, 2000);
    for (size_t at = n_known; at < LEN; at++)
        g_assert_false(uprof_x86_frames_find(frames, at, &frame));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/x86-frame/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/x86-frame/random", test_random);
    g_test_add_func("/x86-frame/many-changes", test_many_changes);
    return g_test_run();
}
