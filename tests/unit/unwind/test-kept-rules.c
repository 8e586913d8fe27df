/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/unwind/kept-rules-priv.h"

#include "uprof/arch.h"

enum { OFFSET = 0x1000 };

#define MINUTE_NS UINT64_C(60000000000)

/* A run of the guest, with one file */
typedef struct {
    UprofNames *names;
    UprofSym *sym;
    UprofCodeMemo *memo;
    UprofKeptRules *kept; /* (nullable) */
    uint64_t file;        /* the key of its first byte */
} Run;

static void
clear_run(Run *run)
{
    uprof_code_memo_free(run->memo);
    uprof_kept_rules_free(run->kept);
    uprof_sym_free(run->sym);
    uprof_names_free(run->names);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, clear_run)

/* @list: (nullable): that an earlier run has left. @n_before: files that this run has met before */
static void
begin_run(Run *run, const GByteArray *list, const char *build_id, unsigned n_before)
{
    run->names = uprof_names_new();
    run->sym = uprof_sym_new(uprof_arch_find("x86_64"), run->names);
    run->memo = uprof_code_memo_new();
    for (unsigned i = 0; i < n_before; i++)
        uprof_sym_add_module(run->sym, "other", NULL, "0123456789abcdef");
    const unsigned number = uprof_sym_add_module(run->sym, "lib.so", NULL, build_id);
    run->file = uprof_sym_module_address(number, 0);
    if (!list)
        return;
    UprofRuleList *parsed =
        uprof_rule_list_parse("rules", (UprofSlice){ list->data, list->len }, NULL);
    g_assert_nonnull(parsed);
    run->kept = uprof_kept_rules_new(parsed, run->sym);
}

static UprofCodeFacts *
get_facts(Run *run, uint64_t offset, uint64_t now_ns)
{
    const UprofCodeKey key = { .number = run->file + offset, .is_return = true, .word_bytes = 8 };
    UprofCodeFacts *facts = uprof_code_memo_facts(run->memo, &key, now_ns, true);

    if (facts->is_new)
        uprof_kept_rules_fill(run->kept, facts);
    return facts;
}

/* As if the code had been followed */
static void
learn_facts(Run *run)
{
    const UprofCodeRule rule = { .slot = { .base = 7, .offset = { 24 } }, .is_return = true };
    UprofCodeFacts *facts = get_facts(run, OFFSET, 1);

    g_assert_true(facts->is_new);
    facts->is_new = false;
    facts->is_zero_fp = true;
    uprof_code_facts_add(facts, &rule);
}

static GByteArray *
end_run(const Run *run)
{
    return uprof_kept_rules_pack(run->memo, run->kept, run->sym);
}

/* @is_met: the run meets the file */
static GByteArray *
run_once(const GByteArray *list, bool is_met)
{
    g_auto(Run) run = { 0 };

    begin_run(&run, list, "beefbeefbeefbeef", 0);
    if (!list)
        learn_facts(&run);
    else if (is_met)
        get_facts(&run, OFFSET, 1);
    return end_run(&run);
}

static void
test_next_run(void)
{
    g_autoptr(GByteArray) list = run_once(NULL, true);
    g_auto(Run) run = { 0 };

    /* the file has another number now */
    begin_run(&run, list, "beefbeefbeefbeef", 2);
    const UprofCodeFacts *facts = get_facts(&run, OFFSET, 1);
    g_assert_false(facts->is_new);
    g_assert_true(facts->is_zero_fp);
    g_assert_cmpuint(facts->n_rules, ==, 1);
    g_assert_cmpint(facts->rules[0].slot.offset[0], ==, 24);
    g_assert_true(get_facts(&run, OFFSET + 1, 1)->is_new);
}

/* After a minute the code is followed again. */
static void
test_once(void)
{
    g_autoptr(GByteArray) list = run_once(NULL, true);
    g_auto(Run) run = { 0 };

    begin_run(&run, list, "beefbeefbeefbeef", 0);
    g_assert_false(get_facts(&run, OFFSET, 1)->is_new);
    g_assert_false(get_facts(&run, OFFSET, MINUTE_NS)->is_new);
    g_assert_true(get_facts(&run, OFFSET, MINUTE_NS + 2)->is_new);
}

static void
test_other_code(void)
{
    g_autoptr(GByteArray) list = run_once(NULL, true);
    g_auto(Run) other = { 0 }, unknown = { 0 };

    begin_run(&other, list, "00000000beefbeef", 0);
    g_assert_true(get_facts(&other, OFFSET, 1)->is_new);
    begin_run(&unknown, list, NULL, 0);
    g_assert_true(get_facts(&unknown, OFFSET, 1)->is_new);
}

/* Facts are kept for some runs, but not for ever, whether the runs meet the file or not. */
static void
check_age(bool is_met)
{
    g_autoptr(GByteArray) list = run_once(NULL, true);
    unsigned n = 0;

    for (; list; n++) {
        GByteArray *next = run_once(list, is_met);
        g_byte_array_unref(list);
        list = next;
        g_assert_cmpuint(n, <, 100);
    }
    g_assert_cmpuint(n, >, 10);
}

static void
test_age(void)
{
    check_age(true);
    check_age(false);
}

/* Without facts, and without a build-id, nothing is kept. */
static void
test_nothing(void)
{
    g_auto(Run) run = { 0 };

    begin_run(&run, NULL, NULL, 0);
    learn_facts(&run);
    g_assert_null(end_run(&run));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kept-rules/next-run", test_next_run);
    g_test_add_func("/kept-rules/once", test_once);
    g_test_add_func("/kept-rules/other-code", test_other_code);
    g_test_add_func("/kept-rules/age", test_age);
    g_test_add_func("/kept-rules/nothing", test_nothing);
    return g_test_run();
}
