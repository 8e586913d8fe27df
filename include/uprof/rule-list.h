/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rule-list.h - what following the code of files has found, kept from run to run
 *
 *   list = "virt-uprof rules\n", u32 version, u32 n, n * id, entries
 *   id = u8 len, a build-id in hex
 *   entry = u32 id, u64 offset, u8 word bytes, u8 role, u8 age, u16 flags, value of the jump,
 *           u8 n, n * rule
 *   rule = value of the slot, values of the saved registers, u16 bytes popped, u8 flags
 *   value = u8 base, u8 n, (n + 1) * s32
 *
 * All numbers are little-endian. A process that a guest has taken over may have written any bytes.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/code-rule.h"

enum {
    UPROF_RULE_LIST_BYTES_MAX = 2 * 1024 * 1024,
    UPROF_RULE_LIST_IDS_MAX = 1024,
};

/** UprofListedFacts: facts about frames at one address of a file */
typedef struct {
    uint32_t id;     /* index of the file's build-id */
    uint64_t offset; /* of the address from the file's first page */
    uint8_t word_bytes;
    uint8_t role; /* UprofCodeRole */
    uint8_t age;  /* how many runs have used them before */
    bool is_return;
    bool is_walked_far, is_long, has_jump, has_other_exit, is_entry, is_zero_fp;
    UprofValue jump_sp;
    uint8_t n_rules;
    UprofCodeRule *rules; /* borrowed from the list */
} UprofListedFacts;

typedef struct _UprofRuleList UprofRuleList;

/**
 * uprof_rule_list_parse:
 * @name: of the bytes, for messages
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA
 */
UprofRuleList *uprof_rule_list_parse(const char *name, UprofSlice bytes, GError **error);
void uprof_rule_list_free(UprofRuleList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRuleList, uprof_rule_list_free)

/** uprof_rule_list_n: Returns: number of entries */
unsigned uprof_rule_list_n(const UprofRuleList *list);

/** uprof_rule_list_at: @i: less than uprof_rule_list_n(). Returns: borrowed */
const UprofListedFacts *uprof_rule_list_at(const UprofRuleList *list, unsigned i);

/** uprof_rule_list_id: @i: index of a build-id. Returns: in hex; borrowed */
const char *uprof_rule_list_id(const UprofRuleList *list, unsigned i);

/**
 * uprof_rule_list_find:
 * @build_id: in hex
 *
 * Returns: (nullable): the facts about this address; borrowed
 */
const UprofListedFacts *uprof_rule_list_find(const UprofRuleList *list, const char *build_id,
                                             uint64_t offset, bool is_return, uint8_t word_bytes);

/** uprof_rule_list_begin: Returns: (transfer full): a list with these build-ids, up to
 * %UPROF_RULE_LIST_IDS_MAX, and no entry */
GByteArray *uprof_rule_list_begin(const GPtrArray *build_ids);

/**
 * uprof_rule_list_append: adds an entry
 *
 * Returns: false, with nothing changed, if the list would have more than %UPROF_RULE_LIST_BYTES_MAX
 *   bytes
 */
bool uprof_rule_list_append(GByteArray *bytes, const UprofListedFacts *facts);
