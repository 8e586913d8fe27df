/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kept-rules-priv.h"

enum { AGE_MAX = 50 };

struct _UprofKeptRules {
    UprofRuleList *list; /* owned */
    UprofSym *sym;       /* borrowed */
    bool *is_used;       /* by entry of the list; owned */
};

UprofKeptRules *
uprof_kept_rules_new(UprofRuleList *list, UprofSym *sym)
{
    UprofKeptRules *kept = g_new0(UprofKeptRules, 1);

    kept->list = list;
    kept->sym = sym;
    kept->is_used = g_new0(bool, uprof_rule_list_n(list));
    return kept;
}

void
uprof_kept_rules_free(UprofKeptRules *kept)
{
    if (!kept)
        return;
    uprof_rule_list_free(kept->list);
    g_free(kept->is_used);
    g_free(kept);
}

/* Returns: (nullable): the build-id of the file that a key is in; borrowed */
static const char *
find_build_id(const UprofSym *sym, const UprofCodeKey *key, uint64_t *offset)
{
    const unsigned number = uprof_sym_module_of(key->number);
    UprofSymModule module;

    if (number == 0 || !uprof_sym_module(sym, number, &module))
        return NULL;
    *offset = key->number - uprof_sym_module_address(number, 0);
    return module.build_id;
}

/* ---- Use ---- */

static void
copy_facts(UprofCodeFacts *facts, const UprofListedFacts *listed)
{
    facts->is_new = false;
    facts->age = listed->age;
    facts->role = (UprofCodeRole)listed->role;
    facts->is_walked_far = listed->is_walked_far;
    facts->is_long = listed->is_long;
    facts->has_jump = listed->has_jump;
    facts->has_other_exit = listed->has_other_exit;
    facts->is_entry = listed->is_entry;
    facts->is_zero_fp = listed->is_zero_fp;
    facts->jump_sp = listed->jump_sp;
    for (unsigned i = 0; i < listed->n_rules; i++)
        uprof_code_facts_add(facts, &listed->rules[i]);
}

void
uprof_kept_rules_fill(UprofKeptRules *kept, UprofCodeFacts *facts)
{
    uint64_t offset;
    const char *id = kept ? find_build_id(kept->sym, &facts->key, &offset) : NULL;
    const UprofListedFacts *listed =
        id ? uprof_rule_list_find(kept->list, id, offset, facts->key.is_return,
                                  facts->key.word_bytes)
           : NULL;

    if (!listed || listed->age > AGE_MAX)
        return;
    bool *is_used = &kept->is_used[listed - uprof_rule_list_at(kept->list, 0)];
    if (!*is_used)
        copy_facts(facts, listed);
    *is_used = true;
}

/* ---- The next list ---- */

typedef struct {
    const UprofSym *sym;
    GPtrArray *ids;    /* of char; borrowed */
    GHashTable *by_id; /* build-id -> its index + 1 */
    GByteArray *bytes; /* (nullable): the list, once the build-ids are known */
    bool has_entries;
} Packing;

/* Returns: index of the build-id + 1; 0 if there are too many */
static unsigned
add_id(Packing *packing, const char *id)
{
    const unsigned known = GPOINTER_TO_UINT(g_hash_table_lookup(packing->by_id, id));

    if (known > 0 || packing->bytes || packing->ids->len >= UPROF_RULE_LIST_IDS_MAX)
        return known;
    g_ptr_array_add(packing->ids, (gpointer)id);
    g_hash_table_insert(packing->by_id, (gpointer)id, GUINT_TO_POINTER(packing->ids->len));
    return packing->ids->len;
}

static void
pack_facts(const UprofCodeFacts *facts, void *data)
{
    Packing *packing = data;
    uint64_t offset;
    const char *id = find_build_id(packing->sym, &facts->key, &offset);

    if (!id || facts->is_new || (facts->n_rules == 0 && facts->role == UPROF_ROLE_NORMAL))
        return;
    const unsigned number = add_id(packing, id);
    if (number == 0 || !packing->bytes)
        return;
    const UprofListedFacts listed = {
        .id = number - 1,
        .offset = offset,
        .word_bytes = facts->key.word_bytes,
        .role = (uint8_t)facts->role,
        .age = (uint8_t)(facts->age + 1),
        .is_return = facts->key.is_return,
        .is_walked_far = facts->is_walked_far,
        .is_long = facts->is_long,
        .has_jump = facts->has_jump,
        .has_other_exit = facts->has_other_exit,
        .is_entry = facts->is_entry,
        .is_zero_fp = facts->is_zero_fp,
        .jump_sp = facts->jump_sp,
        .n_rules = facts->n_rules,
        .rules = facts->rules,
    };
    packing->has_entries |= uprof_rule_list_append(packing->bytes, &listed);
}

/* Files that this run has not met may be met by the next one. */
static void
pack_old(Packing *packing, const UprofRuleList *old)
{
    const UprofSlice bytes = { packing->bytes->data, packing->bytes->len };
    g_autoptr(UprofRuleList) next = uprof_rule_list_parse("rules", bytes, NULL);

    for (unsigned i = 0; next && i < uprof_rule_list_n(old); i++) {
        UprofListedFacts listed = *uprof_rule_list_at(old, i);
        const char *id = uprof_rule_list_id(old, listed.id);
        const unsigned number = add_id(packing, id);
        if (number == 0 || listed.age >= AGE_MAX ||
            uprof_rule_list_find(next, id, listed.offset, listed.is_return, listed.word_bytes))
            continue;
        listed.id = number - 1;
        listed.age++;
        packing->has_entries |= uprof_rule_list_append(packing->bytes, &listed);
    }
}

GByteArray *
uprof_kept_rules_pack(const UprofCodeMemo *memo, const UprofKeptRules *kept, const UprofSym *sym)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    g_autoptr(GHashTable) by_id = g_hash_table_new(g_str_hash, g_str_equal);
    Packing packing = { .sym = sym, .ids = ids, .by_id = by_id };

    if (memo)
        uprof_code_memo_visit(memo, pack_facts, &packing);
    for (unsigned i = 0; kept && i < uprof_rule_list_n(kept->list); i++)
        add_id(&packing, uprof_rule_list_id(kept->list, uprof_rule_list_at(kept->list, i)->id));
    packing.bytes = uprof_rule_list_begin(ids);
    if (memo)
        uprof_code_memo_visit(memo, pack_facts, &packing);
    if (kept)
        pack_old(&packing, kept->list);
    if (!packing.has_entries)
        g_clear_pointer(&packing.bytes, g_byte_array_unref);
    return packing.bytes;
}
