/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/rule-list.h"

#include <string.h>

#include "uprof/error.h"

enum { HEAD = 17 + 4 + 4, ENTRY_AT = HEAD + 1 + 8 + 1 + 4 };

static const char *const ids[] = { "0123abcd", "beef" };

static const UprofCodeRule rules[] = {
    { .slot = { .base = 7, .offset = { 24 } },
      .saved = { { .base = 6, .n_loads = 1, .offset = { -16, 8 } },
                 { .base = UPROF_VALUE_UNKNOWN },
                 { .base = UPROF_VALUE_ZERO } },
      .n_popped = 16,
      .is_return = true },
    { .slot = { .base = UPROF_VALUE_OTHER_SP, .n_loads = 3, .offset = { 1, 2, INT32_MIN, 4 } },
      .is_interrupt = true,
      .is_jump = true },
};

static const UprofListedFacts facts[] = {
    { .id = 1,
      .offset = 0x1000,
      .word_bytes = 8,
      .role = UPROF_ROLE_NORMAL,
      .age = 3,
      .is_return = true,
      .is_long = true,
      .is_zero_fp = true,
      .jump_sp = { .base = 7, .offset = { -8 } },
      .n_rules = 2,
      .rules = (UprofCodeRule *)rules },
    { .id = 0,
      .offset = 0x20,
      .word_bytes = 4,
      .role = UPROF_ROLE_SIGNAL,
      .is_walked_far = true,
      .has_jump = true,
      .has_other_exit = true,
      .is_entry = true },
};

static GByteArray *
build_list(void)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
        g_ptr_array_add(all, (gpointer)ids[i]);
    GByteArray *bytes = uprof_rule_list_begin(all);
    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++)
        g_assert_true(uprof_rule_list_append(bytes, &facts[i]));
    return bytes;
}

static UprofRuleList *
parse_list(const GByteArray *bytes, guint len)
{
    return uprof_rule_list_parse("rules", (UprofSlice){ bytes->data, len }, NULL);
}

static void
check_same(const UprofListedFacts *found, const UprofListedFacts *wanted)
{
    UprofListedFacts same = *wanted;

    g_assert_nonnull(found);
    same.rules = found->rules;
    g_assert_cmpmem(found, sizeof(same), &same, sizeof(same));
    for (unsigned i = 0; i < wanted->n_rules; i++)
        g_assert_cmpmem(&found->rules[i], sizeof(rules[0]), &wanted->rules[i], sizeof(rules[0]));
}

static void
test_round_trip(void)
{
    g_autoptr(GByteArray) bytes = build_list();
    g_autoptr(UprofRuleList) list = parse_list(bytes, bytes->len);

    g_assert_nonnull(list);
    g_assert_cmpuint(uprof_rule_list_n(list), ==, G_N_ELEMENTS(facts));
    check_same(uprof_rule_list_find(list, "beef", 0x1000, true, 8), &facts[0]);
    check_same(uprof_rule_list_find(list, "0123abcd", 0x20, false, 4), &facts[1]);
    g_assert_cmpstr(uprof_rule_list_id(list, 1), ==, "beef");
    g_assert_null(uprof_rule_list_find(list, "beef", 0x1000, false, 8));
    g_assert_null(uprof_rule_list_find(list, "beef", 0x1000, true, 4));
    g_assert_null(uprof_rule_list_find(list, "beef", 0x1001, true, 8));
    g_assert_null(uprof_rule_list_find(list, "0123abcd", 0x1000, true, 8));
    g_assert_null(uprof_rule_list_find(list, "0123", 0x20, false, 4));
}

static void
test_empty(void)
{
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    g_autoptr(GByteArray) bytes = uprof_rule_list_begin(none);
    g_autoptr(UprofRuleList) list = parse_list(bytes, bytes->len);

    g_assert_nonnull(list);
    g_assert_cmpuint(uprof_rule_list_n(list), ==, 0);
    g_assert_null(uprof_rule_list_find(list, "beef", 0, false, 8));
}

static void
test_limit(void)
{
    g_autoptr(GByteArray) bytes = build_list();

    while (uprof_rule_list_append(bytes, &facts[0]))
        g_assert_cmpuint(bytes->len, <=, UPROF_RULE_LIST_BYTES_MAX);
    g_assert_cmpuint(bytes->len, >, UPROF_RULE_LIST_BYTES_MAX - 1024);
    g_autoptr(UprofRuleList) list = parse_list(bytes, bytes->len);
    g_assert_nonnull(list);
    g_byte_array_set_size(bytes, UPROF_RULE_LIST_BYTES_MAX + 1);
    g_assert_null(parse_list(bytes, bytes->len));
}

static void
check_bad(guint at, uint8_t byte, const char *message)
{
    g_autoptr(GByteArray) bytes = build_list();
    g_autoptr(GError) error = NULL;

    bytes->data[at] = byte;
    g_assert_null(uprof_rule_list_parse("rules", (UprofSlice){ bytes->data, bytes->len }, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_nonnull(strstr(error->message, message));
}

static void
test_malformed(void)
{
    check_bad(0, 'V', "no list of rules of this version");
    check_bad(17, 2, "no list of rules of this version");
    check_bad(HEAD - 1, 1, "no build-ids"); /* too many */
    check_bad(HEAD, 0, "no build-id");
    check_bad(HEAD + 1, 'G', "no build-id");
    check_bad(ENTRY_AT, 2, "no address of a file");                      /* its build-id */
    check_bad(ENTRY_AT + 12, 5, "no address of a file");                 /* bytes of a word */
    check_bad(ENTRY_AT + 13, 3, "no address of a file");                 /* role */
    check_bad(ENTRY_AT + 15, 128, "no address of a file");               /* flags */
    check_bad(ENTRY_AT + 17, 19, "no address of a file");                /* base of a value */
    check_bad(ENTRY_AT + 18, 4, "no address of a file");                 /* its loads */
    check_bad(ENTRY_AT + 23, 13, "no address of a file");                /* rules */
    check_bad(ENTRY_AT + 24 + 6 + 10 + 2 * 6 + 3 * 6 + 2, 8, "no rule"); /* its flags */
}

/* A list that is cut between two entries is a list. */
static void
test_cut_and_changed(void)
{
    g_autoptr(GByteArray) bytes = build_list();

    for (guint len = 0; len < bytes->len; len++)
        uprof_rule_list_free(parse_list(bytes, len));
    for (guint at = 0; at < bytes->len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes->data[at] ^= (guint8)(1 << bit);
            uprof_rule_list_free(parse_list(bytes, bytes->len));
            bytes->data[at] ^= (guint8)(1 << bit);
        }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rule-list/round-trip", test_round_trip);
    g_test_add_func("/rule-list/empty", test_empty);
    g_test_add_func("/rule-list/limit", test_limit);
    g_test_add_func("/rule-list/malformed", test_malformed);
    g_test_add_func("/rule-list/cut-and-changed", test_cut_and_changed);
    return g_test_run();
}
