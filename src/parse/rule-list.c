/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/rule-list.h"

#include "uprof/sorted.h"

#include <string.h>

enum {
    VERSION = 1,     /* of the format, and of what the rules mean */
    ID_BYTES = 128,  /* the longest build-id, in hex */
    RULE_RETURN = 1, /* flags of a rule */
    RULE_INTERRUPT = 2,
    RULE_JUMP = 4,
};

static const char magic[] = "virt-uprof rules\n";

/* Flags of an entry */
enum {
    IS_RETURN = 1,
    IS_WALKED_FAR = 2,
    IS_LONG = 4,
    HAS_JUMP = 8,
    HAS_OTHER_EXIT = 16,
    IS_ENTRY = 32,
    IS_ZERO_FP = 64,
    ALL_FLAGS = 127,
};

struct _UprofRuleList {
    GPtrArray *ids;    /* of char; owned */
    GHashTable *by_id; /* build-id -> its index + 1; owned */
    GArray *entries;   /* of UprofListedFacts, sorted; owned, as are their rules */
};

static void
clear_entry(gpointer data)
{
    g_free(((UprofListedFacts *)data)->rules);
}

void
uprof_rule_list_free(UprofRuleList *list)
{
    if (!list)
        return;
    g_ptr_array_unref(list->ids);
    g_hash_table_unref(list->by_id);
    g_array_unref(list->entries);
    g_free(list);
}

static int
compare_entries(gconstpointer a, gconstpointer b)
{
    const UprofListedFacts *one = a, *other = b;

    if (one->id != other->id)
        return UPROF_COMPARE(one->id, other->id);
    if (one->offset != other->offset)
        return UPROF_COMPARE(one->offset, other->offset);
    if (one->is_return != other->is_return)
        return UPROF_COMPARE(one->is_return, other->is_return);
    return UPROF_COMPARE(one->word_bytes, other->word_bytes);
}

/* ---- Reading ---- */

static bool
read_value(UprofBytes *bytes, UprofValue *value)
{
    *value = (UprofValue){ 0 };
    if (!uprof_bytes_u8(bytes, &value->base) || !uprof_bytes_u8(bytes, &value->n_loads) ||
        (value->base > UPROF_VALUE_ZERO && value->base != UPROF_VALUE_UNKNOWN) ||
        value->n_loads > UPROF_VALUE_LOADS_MAX)
        return false;
    for (unsigned i = 0; i <= value->n_loads; i++) {
        uint32_t offset;
        if (!uprof_bytes_u32(bytes, &offset))
            return false;
        value->offset[i] = (int32_t)offset;
    }
    return true;
}

static bool
read_rule(UprofBytes *bytes, UprofCodeRule *rule)
{
    uint8_t flags;

    if (!read_value(bytes, &rule->slot))
        return false;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++)
        if (!read_value(bytes, &rule->saved[i]))
            return false;
    if (!uprof_bytes_u16(bytes, &rule->n_popped) || !uprof_bytes_u8(bytes, &flags) ||
        flags > (RULE_RETURN | RULE_INTERRUPT | RULE_JUMP))
        return false;
    rule->is_return = flags & RULE_RETURN;
    rule->is_interrupt = flags & RULE_INTERRUPT;
    rule->is_jump = flags & RULE_JUMP;
    return true;
}

static bool
read_facts(UprofBytes *bytes, UprofListedFacts *facts)
{
    uint16_t flags;

    if (!uprof_bytes_u32(bytes, &facts->id) || !uprof_bytes_u64(bytes, &facts->offset) ||
        !uprof_bytes_u8(bytes, &facts->word_bytes) || !uprof_bytes_u8(bytes, &facts->role) ||
        !uprof_bytes_u8(bytes, &facts->age) || !uprof_bytes_u16(bytes, &flags) ||
        !read_value(bytes, &facts->jump_sp) || !uprof_bytes_u8(bytes, &facts->n_rules) ||
        (facts->word_bytes != 4 && facts->word_bytes != 8) || facts->role > UPROF_ROLE_SIGNAL ||
        flags > ALL_FLAGS || facts->n_rules > UPROF_CODE_RULES_MAX)
        return false;
    facts->is_return = flags & IS_RETURN;
    facts->is_walked_far = flags & IS_WALKED_FAR;
    facts->is_long = flags & IS_LONG;
    facts->has_jump = flags & HAS_JUMP;
    facts->has_other_exit = flags & HAS_OTHER_EXIT;
    facts->is_entry = flags & IS_ENTRY;
    facts->is_zero_fp = flags & IS_ZERO_FP;
    return true;
}

static bool
read_entry(UprofRuleList *list, UprofBytes *bytes, GError **error)
{
    UprofListedFacts facts = { 0 };

    if (!read_facts(bytes, &facts) || facts.id >= list->ids->len)
        return uprof_bytes_fail(bytes, error, "no address of a file");
    facts.rules = facts.n_rules > 0 ? g_new0(UprofCodeRule, facts.n_rules) : NULL;
    g_array_append_val(list->entries, facts);
    for (unsigned i = 0; i < facts.n_rules; i++)
        if (!read_rule(bytes, &facts.rules[i]))
            return uprof_bytes_fail(bytes, error, "no rule");
    return true;
}

static bool
is_build_id(UprofSlice id)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < id.len; i++)
        if (!memchr(digits, ((const char *)id.data)[i], strlen(digits)))
            return false;
    return id.len > 0 && id.len <= ID_BYTES;
}

static bool
read_ids(UprofRuleList *list, UprofBytes *bytes, GError **error)
{
    uint32_t n;

    if (!uprof_bytes_u32(bytes, &n) || n > UPROF_RULE_LIST_IDS_MAX)
        return uprof_bytes_fail(bytes, error, "no build-ids");
    for (uint32_t i = 0; i < n; i++) {
        UprofSlice id;
        uint8_t len;
        if (!uprof_bytes_u8(bytes, &len) || !uprof_bytes_take(bytes, len, &id) || !is_build_id(id))
            return uprof_bytes_fail(bytes, error, "no build-id");
        char *copy = g_strndup(id.data, id.len);
        g_ptr_array_add(list->ids, copy);
        g_hash_table_insert(list->by_id, copy, GUINT_TO_POINTER(i + 1));
    }
    return true;
}

UprofRuleList *
uprof_rule_list_parse(const char *name, UprofSlice all, GError **error)
{
    g_autoptr(UprofRuleList) list = g_new0(UprofRuleList, 1);
    UprofBytes bytes = { .name = name, .all = all };
    UprofSlice start;
    uint32_t version;

    list->ids = g_ptr_array_new_with_free_func(g_free);
    list->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    list->entries = g_array_new(FALSE, FALSE, sizeof(UprofListedFacts));
    g_array_set_clear_func(list->entries, clear_entry);
    if (all.len > UPROF_RULE_LIST_BYTES_MAX || !uprof_bytes_take(&bytes, strlen(magic), &start) ||
        memcmp(start.data, magic, start.len) != 0 || !uprof_bytes_u32(&bytes, &version) ||
        version != VERSION) {
        uprof_bytes_fail(&bytes, error, "no list of rules of this version");
        return NULL;
    }
    if (!read_ids(list, &bytes, error))
        return NULL;
    while (uprof_bytes_left(&bytes) > 0)
        if (!read_entry(list, &bytes, error))
            return NULL;
    g_array_sort(list->entries, compare_entries);
    return g_steal_pointer(&list);
}

unsigned
uprof_rule_list_n(const UprofRuleList *list)
{
    return list->entries->len;
}

const UprofListedFacts *
uprof_rule_list_at(const UprofRuleList *list, unsigned i)
{
    return &g_array_index(list->entries, UprofListedFacts, i);
}

const char *
uprof_rule_list_id(const UprofRuleList *list, unsigned i)
{
    return g_ptr_array_index(list->ids, i);
}

const UprofListedFacts *
uprof_rule_list_find(const UprofRuleList *list, const char *build_id, uint64_t offset,
                     bool is_return, uint8_t word_bytes)
{
    const unsigned id = GPOINTER_TO_UINT(g_hash_table_lookup(list->by_id, build_id));
    const UprofListedFacts wanted = {
        .id = id - 1, .offset = offset, .word_bytes = word_bytes, .is_return = is_return
    };
    guint i;

    return id > 0 && g_array_binary_search(list->entries, &wanted, compare_entries, &i)
               ? &g_array_index(list->entries, UprofListedFacts, i)
               : NULL;
}

/* ---- Writing ---- */

static void
put_number(GByteArray *bytes, uint64_t number, unsigned len)
{
    number = GUINT64_TO_LE(number);
    g_byte_array_append(bytes, (const guint8 *)&number, len);
}

static void
put_value(GByteArray *bytes, const UprofValue *value)
{
    put_number(bytes, value->base, 1);
    put_number(bytes, value->n_loads, 1);
    for (unsigned i = 0; i <= value->n_loads; i++)
        put_number(bytes, (uint32_t)value->offset[i], sizeof(uint32_t));
}

static void
put_rule(GByteArray *bytes, const UprofCodeRule *rule)
{
    put_value(bytes, &rule->slot);
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++)
        put_value(bytes, &rule->saved[i]);
    put_number(bytes, rule->n_popped, sizeof(rule->n_popped));
    put_number(bytes,
               (rule->is_return ? RULE_RETURN : 0u) | (rule->is_interrupt ? RULE_INTERRUPT : 0u) |
                   (rule->is_jump ? RULE_JUMP : 0u),
               1);
}

static unsigned
join_flags(const UprofListedFacts *facts)
{
    return (facts->is_return ? IS_RETURN : 0u) | (facts->is_walked_far ? IS_WALKED_FAR : 0u) |
           (facts->is_long ? IS_LONG : 0u) | (facts->has_jump ? HAS_JUMP : 0u) |
           (facts->has_other_exit ? HAS_OTHER_EXIT : 0u) | (facts->is_entry ? IS_ENTRY : 0u) |
           (facts->is_zero_fp ? IS_ZERO_FP : 0u);
}

GByteArray *
uprof_rule_list_begin(const GPtrArray *build_ids)
{
    GByteArray *bytes = g_byte_array_new();

    g_assert(build_ids->len <= UPROF_RULE_LIST_IDS_MAX);
    g_byte_array_append(bytes, (const guint8 *)magic, (guint)strlen(magic));
    put_number(bytes, VERSION, sizeof(uint32_t));
    put_number(bytes, build_ids->len, sizeof(uint32_t));
    for (guint i = 0; i < build_ids->len; i++) {
        const char *id = g_ptr_array_index(build_ids, i);
        const size_t len = strlen(id);
        g_assert(len <= ID_BYTES);
        put_number(bytes, len, 1);
        g_byte_array_append(bytes, (const guint8 *)id, (guint)len);
    }
    return bytes;
}

bool
uprof_rule_list_append(GByteArray *bytes, const UprofListedFacts *facts)
{
    const guint before = bytes->len;

    put_number(bytes, facts->id, sizeof(facts->id));
    put_number(bytes, facts->offset, sizeof(facts->offset));
    put_number(bytes, facts->word_bytes, 1);
    put_number(bytes, facts->role, 1);
    put_number(bytes, facts->age, 1);
    put_number(bytes, join_flags(facts), sizeof(uint16_t));
    put_value(bytes, &facts->jump_sp);
    put_number(bytes, facts->n_rules, 1);
    for (unsigned i = 0; i < facts->n_rules; i++)
        put_rule(bytes, &facts->rules[i]);
    if (bytes->len <= UPROF_RULE_LIST_BYTES_MAX)
        return true;
    g_byte_array_set_size(bytes, before);
    return false;
}
