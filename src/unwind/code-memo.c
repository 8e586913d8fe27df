/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-memo-priv.h"

#include <string.h>

enum {
    FACTS = 16 * 1024,
    REACHES = 4096,
    GROUP = 64, /* slots that are allocated together */
    WAYS = 4,   /* slots in which a result may be; they are of one group */
};

#define FILE_KEEP_NS UINT64_C(60000000000)
#define OTHER_KEEP_NS UINT64_C(5000000000)

typedef struct {
    UprofCodeKey key;
    uint64_t until_ns;
    uint64_t used; /* number of the last use */
    UprofCodeReach reach;
} Reach;

struct _UprofCodeMemo {
    UprofCodeFacts *facts[FACTS / GROUP]; /* owned, (nullable) */
    Reach *reaches[REACHES];              /* owned, (nullable) */
    Reach *last;                          /* (nullable): borrowed */
    uint64_t n_uses;
};

UprofCodeMemo *
uprof_code_memo_new(void)
{
    return g_new0(UprofCodeMemo, 1);
}

void
uprof_code_memo_visit(const UprofCodeMemo *memo,
                      void (*visit)(const UprofCodeFacts *facts, void *data), void *data)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(memo->facts); i++)
        for (unsigned k = 0; memo->facts[i] && k < GROUP; k++)
            visit(&memo->facts[i][k], data);
}

void
uprof_code_memo_forget(UprofCodeMemo *memo)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(memo->facts); i++) {
        for (unsigned k = 0; memo->facts[i] && k < GROUP; k++)
            g_free(memo->facts[i][k].rules);
        g_clear_pointer(&memo->facts[i], g_free);
    }
    for (unsigned i = 0; i < REACHES; i++)
        g_clear_pointer(&memo->reaches[i], g_free);
    memo->last = NULL;
}

void
uprof_code_memo_free(UprofCodeMemo *memo)
{
    if (!memo)
        return;
    uprof_code_memo_forget(memo);
    g_free(memo);
}

static size_t
hash_key(const UprofCodeKey *key)
{
    uint64_t hash = key->number * UINT64_C(0x9e3779b97f4a7c15);

    hash ^= key->start * UINT64_C(0xd6e8feb86659fd93);
    hash += key->is_deep;
    return (size_t)((hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static bool
is_same_key(const UprofCodeKey *one, const UprofCodeKey *other)
{
    return one->number == other->number && one->start == other->start &&
           one->is_return == other->is_return && one->is_deep == other->is_deep &&
           one->word_bytes == other->word_bytes;
}

/* A replay of other snapshots may have set the clock back. */
static bool
is_valid_until(uint64_t until_ns, uint64_t now_ns)
{
    return now_ns < until_ns && until_ns - now_ns <= FILE_KEEP_NS;
}

static uint64_t
find_end(uint64_t now_ns, bool is_file)
{
    return now_ns + (is_file ? FILE_KEEP_NS : OTHER_KEEP_NS);
}

void
uprof_code_facts_clear(UprofCodeFacts *facts)
{
    const UprofCodeFacts fresh = {
        .key = facts->key, .until_ns = facts->until_ns, .used = facts->used, .is_new = true
    };

    g_free(facts->rules);
    *facts = fresh;
}

/*
 * Returns: the slot of the key's facts; else that of the facts that were not used for longest.
 * Frames of one stack that took turns in one slot would need a walk in each sample.
 */
static UprofCodeFacts *
find_facts(UprofCodeMemo *memo, const UprofCodeKey *key)
{
    const size_t slot = hash_key(key) % (FACTS / WAYS) * WAYS;

    if (!memo->facts[slot / GROUP])
        memo->facts[slot / GROUP] = g_new0(UprofCodeFacts, GROUP);
    UprofCodeFacts *set = &memo->facts[slot / GROUP][slot % GROUP], *oldest = set;
    for (unsigned i = 0; i < WAYS; i++) {
        if (is_same_key(&set[i].key, key))
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    return oldest;
}

UprofCodeFacts *
uprof_code_memo_facts(UprofCodeMemo *memo, const UprofCodeKey *key, uint64_t now_ns, bool is_file)
{
    UprofCodeFacts *facts = find_facts(memo, key);

    if (!is_same_key(&facts->key, key) || !is_valid_until(facts->until_ns, now_ns)) {
        facts->key = *key;
        facts->until_ns = find_end(now_ns, is_file);
        uprof_code_facts_clear(facts);
    }
    facts->used = ++memo->n_uses;
    return facts;
}

void
uprof_code_facts_add(UprofCodeFacts *facts, const UprofCodeRule *rule)
{
    for (unsigned i = 0; i < facts->n_rules; i++)
        if (uprof_value_is_same(&facts->rules[i].slot, &rule->slot) &&
            facts->rules[i].is_interrupt == rule->is_interrupt)
            return;
    if (facts->n_rules == UPROF_CODE_RULES_MAX)
        facts->n_rules--;
    else
        facts->rules = g_renew(UprofCodeRule, facts->rules, facts->n_rules + 1u);
    facts->rules[facts->n_rules++] = *rule;
}

/* Returns: the slot of the key's result; else an empty slot, or that which was not used for longest
 */
static Reach **
find_reach(UprofCodeMemo *memo, const UprofCodeKey *key)
{
    Reach **set = &memo->reaches[hash_key(key) % (REACHES / WAYS) * WAYS], **oldest = set;

    for (unsigned i = 0; i < WAYS; i++) {
        if (!set[i] || is_same_key(&set[i]->key, key))
            return &set[i];
        if (set[i]->used < (*oldest)->used)
            oldest = &set[i];
    }
    return oldest;
}

UprofCodeReach *
uprof_code_memo_reach(UprofCodeMemo *memo, const UprofCodeKey *key, uint64_t now_ns, bool is_file,
                      bool *is_known)
{
    Reach **slot = find_reach(memo, key);

    if (!*slot)
        *slot = g_new0(Reach, 1);
    memo->last = *slot;
    (*slot)->used = ++memo->n_uses;
    *is_known = is_same_key(&(*slot)->key, key) && is_valid_until((*slot)->until_ns, now_ns);
    if (!*is_known) {
        (*slot)->key = *key;
        (*slot)->until_ns = find_end(now_ns, is_file);
    }
    return &(*slot)->reach;
}

void
uprof_code_memo_drop_reach(UprofCodeMemo *memo)
{
    memo->last->until_ns = 0;
}
