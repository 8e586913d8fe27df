/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/orc-table-priv.h"
#include "uprof/orc-table.h"

#include <string.h>

#include "build-orc.h"
#include "uprof/error.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define TABLE UINT64_C(0xffffffff82400000)

/* clang-format off */

/* One entry for each row, and the expected rule. */
static const struct {
    const char *name;
    UprofOrcVersion version;
    uint16_t flags;
    bool is_known;
    UprofOrcType type;
    bool is_signal;
    UprofOrcReg sp_reg, bp_reg;
} entries[] = {
    /*                                   type, bp, sp */
    { "4.14-call",       UPROF_ORC_4_14, 0x015, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "4.14-regs",       UPROF_ORC_4_14, 0x105, true,  UPROF_ORC_REGS,      true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "4.14-partial",    UPROF_ORC_4_14, 0x205, true,  UPROF_ORC_PARTIAL,   true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "4.14-type-3",     UPROF_ORC_4_14, 0x305, false, 0, false, 0, 0 },
    { "4.14-undefined",  UPROF_ORC_4_14, 0x000, true,  UPROF_ORC_UNDEFINED, false, 0, 0 },
    { "4.14-end",        UPROF_ORC_4_14, 0x400, true,  UPROF_ORC_END,       false, 0, 0 },
    { "4.14-end-of-bp",  UPROF_ORC_4_14, 0x410, true,  UPROF_ORC_END,       false, 0, 0 },
    { "4.14-end-of-3",   UPROF_ORC_4_14, 0x700, true,  UPROF_ORC_END,       false, 0, 0 },
    { "4.14-no-end",     UPROF_ORC_4_14, 0x415, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "4.14-dx",         UPROF_ORC_4_14, 0x002, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_DX, UPROF_ORC_REG_SAME },
    { "4.14-di",         UPROF_ORC_4_14, 0x003, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_DI, UPROF_ORC_REG_SAME },
    { "4.14-bp",         UPROF_ORC_4_14, 0x014, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_BP, UPROF_ORC_REG_CFA },
    { "4.14-r10",        UPROF_ORC_4_14, 0x046, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_R10, UPROF_ORC_REG_BP },
    { "4.14-r13",        UPROF_ORC_4_14, 0x007, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_R13, UPROF_ORC_REG_SAME },
    { "4.14-at-bp",      UPROF_ORC_4_14, 0x048, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_BP_OFFSET, UPROF_ORC_REG_BP },
    { "4.14-at-sp",      UPROF_ORC_4_14, 0x009, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_SP_OFFSET, UPROF_ORC_REG_SAME },
    { "4.14-sp-by-cfa",  UPROF_ORC_4_14, 0x001, false, 0, false, 0, 0 },
    { "4.14-bp-by-sp",   UPROF_ORC_4_14, 0x055, false, 0, false, 0, 0 },
    { "4.14-bp-by-11",   UPROF_ORC_4_14, 0x0b5, false, 0, false, 0, 0 },
    { "5.12-at-sp",      UPROF_ORC_5_12, 0x009, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_SP, UPROF_ORC_REG_SAME },
    { "5.12-at-bp",      UPROF_ORC_5_12, 0x008, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_BP_OFFSET, UPROF_ORC_REG_SAME },
    { "5.12-end",        UPROF_ORC_5_12, 0x400, true,  UPROF_ORC_END,       false, 0, 0 },
    { "5.12-high-bits",  UPROF_ORC_5_12, 0xf815, true, UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "6.3-call",        UPROF_ORC_6_3,  0x015, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "6.3-regs",        UPROF_ORC_6_3,  0x505, true,  UPROF_ORC_REGS,      true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "6.3-regs-called", UPROF_ORC_6_3,  0x105, true,  UPROF_ORC_REGS,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "6.3-partial",     UPROF_ORC_6_3,  0x605, true,  UPROF_ORC_PARTIAL,   true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "6.3-undefined",   UPROF_ORC_6_3,  0x400, true,  UPROF_ORC_UNDEFINED, false, 0, 0 },
    { "6.3-end",         UPROF_ORC_6_3,  0x800, true,  UPROF_ORC_END,       false, 0, 0 },
    { "6.4-undefined",   UPROF_ORC_6_4,  0x000, true,  UPROF_ORC_UNDEFINED, false, 0, 0 },
    { "6.4-undefined-sp", UPROF_ORC_6_4, 0x0ff, true,  UPROF_ORC_UNDEFINED, false, 0, 0 },
    { "6.4-end",         UPROF_ORC_6_4,  0x100, true,  UPROF_ORC_END,       false, 0, 0 },
    { "6.4-call",        UPROF_ORC_6_4,  0x215, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "6.4-call-signal", UPROF_ORC_6_4,  0xa15, true,  UPROF_ORC_CALL,      true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "6.4-call-of-none", UPROF_ORC_6_4, 0x210, false, 0, false, 0, 0 },
    { "6.4-regs",        UPROF_ORC_6_4,  0xb05, true,  UPROF_ORC_REGS,      true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "6.4-partial",     UPROF_ORC_6_4,  0xc05, true,  UPROF_ORC_PARTIAL,   true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "6.4-type-5",      UPROF_ORC_6_4,  0x505, false, 0, false, 0, 0 },
    { "6.4-type-7",      UPROF_ORC_6_4,  0x705, false, 0, false, 0, 0 },
    { "6.4-at-sp",       UPROF_ORC_6_4,  0x209, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_SP, UPROF_ORC_REG_SAME },
    { "6.4-ax",          UPROF_ORC_6_4,  0x20a, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AX, UPROF_ORC_REG_SAME },
    { "6.4-reg-11",      UPROF_ORC_6_4,  0x20b, false, 0, false, 0, 0 },
    { "6.4-reg-15",      UPROF_ORC_6_4,  0x20f, false, 0, false, 0, 0 },
    { "6.4-bp-by-15",    UPROF_ORC_6_4,  0x2f5, false, 0, false, 0, 0 },
    { "7.1-call",        UPROF_ORC_7_1,  0x283, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_SP, UPROF_ORC_REG_CFA },
    { "7.1-ax",          UPROF_ORC_7_1,  0x201, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AX, UPROF_ORC_REG_SAME },
    { "7.1-dx",          UPROF_ORC_7_1,  0x202, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_DX, UPROF_ORC_REG_SAME },
    { "7.1-bp",          UPROF_ORC_7_1,  0x244, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_BP, UPROF_ORC_REG_BP },
    { "7.1-di",          UPROF_ORC_7_1,  0x205, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_DI, UPROF_ORC_REG_SAME },
    { "7.1-r10",         UPROF_ORC_7_1,  0x206, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_R10, UPROF_ORC_REG_SAME },
    { "7.1-r13",         UPROF_ORC_7_1,  0x207, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_R13, UPROF_ORC_REG_SAME },
    { "7.1-sp-by-cfa",   UPROF_ORC_7_1,  0x208, false, 0, false, 0, 0 },
    { "7.1-at-sp",       UPROF_ORC_7_1,  0x209, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_SP, UPROF_ORC_REG_SAME },
    { "7.1-at-bp",       UPROF_ORC_7_1,  0x20a, true,  UPROF_ORC_CALL,      false, UPROF_ORC_REG_AT_BP_OFFSET, UPROF_ORC_REG_SAME },
    { "7.1-regs",        UPROF_ORC_7_1,  0xb03, true,  UPROF_ORC_REGS,      true,  UPROF_ORC_REG_SP, UPROF_ORC_REG_SAME },
    { "7.1-bp-by-ax",    UPROF_ORC_7_1,  0x213, false, 0, false, 0, 0 },
};

#define HASH_6_3 "\xdb\x84\xae\xd4\x10\x3b\x31\xdd\x51\xe0\x17\xf8\xf7\x97\x83\xca\x98\x5c\x2c\x51"
#define HASH_6_4 "\xfe\x5d\x32\xbf\x58\x1b\xd6\x3b\x2c\xa9\xa5\xc6\x5b\xa5\xa6\x25\xea\xb3\xfe\x24"
#define HASH_AX  "\xed\xfa\x4d\x15\x55\x2f\xdd\x2e\x1d\x56\x67\x97\x28\x41\x63\x79\xf2\xfe\x45\x34"
#define HASH_7_1 "\x13\x7c\x36\xad\x76\x27\xc4\xdd\x55\x93\x21\x76\xbb\x0e\xcd\xbd\x50\x41\xfc\x82"

static const struct {
    const char *name;
    const char *header;
    size_t len;
    const char *release;
    UprofOrcVersion version;
} versions[] = {
    { "header-6.3",       HASH_6_3, 20, "6.4.0", UPROF_ORC_6_3 },
    { "header-6.4",       HASH_6_4, 20, "5.14.0", UPROF_ORC_6_4 },
    { "header-ax",        HASH_AX,  20, "6.12.99", UPROF_ORC_6_4 },
    { "header-7.1",       HASH_7_1, 20, "", UPROF_ORC_7_1 },
    { "header-unknown",   "abcdefghijklmnopqrst", 20, "6.4.0", UPROF_ORC_UNKNOWN },
    { "header-cut",       HASH_6_4, 19, "6.4.0", UPROF_ORC_UNKNOWN },
    { "header-long",      HASH_6_4 "", 21, "6.4.0", UPROF_ORC_UNKNOWN },
    { "4.13",             NULL, 0, "4.13.0-46-generic", UPROF_ORC_UNKNOWN },
    { "4.14",             NULL, 0, "4.14.0", UPROF_ORC_4_14 },
    { "5.11",             NULL, 0, "5.11.22-arch1", UPROF_ORC_4_14 },
    { "5.12",             NULL, 0, "5.12.0", UPROF_ORC_5_12 },
    { "6.1",              NULL, 0, "6.1.0-56-cloud-amd64", UPROF_ORC_5_12 },
    { "6.3",              NULL, 0, "6.3.9", UPROF_ORC_6_3 },
    { "6.4",              NULL, 0, "6.4.0-rc1", UPROF_ORC_6_4 },
    { "6.12",             NULL, 0, "6.12.117+deb12-cloud-amd64", UPROF_ORC_6_4 },
    { "7.0",              NULL, 0, "7.0.0", UPROF_ORC_6_4 },
    { "7.1",              NULL, 0, "7.1.0", UPROF_ORC_7_1 },
    { "7.10",             NULL, 0, "7.10.0", UPROF_ORC_7_1 },
    { "10.0",             NULL, 0, "10.0", UPROF_ORC_7_1 },
    { "no-patch",         NULL, 0, "6.4", UPROF_ORC_6_4 },
    { "rhel-9.4",         NULL, 0, "5.14.0-427.13.1.el9_4.x86_64", UPROF_ORC_5_12 },
    { "rhel-9-before",    NULL, 0, "5.14.0-516.el9.x86_64", UPROF_ORC_5_12 },
    { "rhel-9-from",      NULL, 0, "5.14.0-517.el9.x86_64", UPROF_ORC_6_4 },
    { "rhel-9.7",         NULL, 0, "5.14.0-611.11.1.el9_7.x86_64", UPROF_ORC_6_4 },
    { "debian-5.14",      NULL, 0, "5.14.0-999-amd64", UPROF_ORC_5_12 },
    { "rhel-no-build",    NULL, 0, "5.14.0-.el9", UPROF_ORC_5_12 },
    { "rhel-no-dash",     NULL, 0, "5.14.0.el9", UPROF_ORC_5_12 },
    { "rhel-huge",        NULL, 0, "5.14.0-99999999999999999999.el9", UPROF_ORC_5_12 },
    { "empty",            NULL, 0, "", UPROF_ORC_UNKNOWN },
    { "no-minor",         NULL, 0, "6", UPROF_ORC_UNKNOWN },
    { "no-digits",        NULL, 0, "6.x", UPROF_ORC_UNKNOWN },
    { "point",            NULL, 0, ".4", UPROF_ORC_UNKNOWN },
    { "huge",             NULL, 0, "99999999999999999999.1", UPROF_ORC_UNKNOWN },
    { "blank",            NULL, 0, " 6.4", UPROF_ORC_UNKNOWN },
};

/* One entry for each address; the offset of sp is the number of the entry. */
static const struct {
    const char *name;
    uint64_t ips_at;
    uint64_t pcs[6];
    unsigned n;
    const char *error; /* NULL: can be read */
} tables[] = {
    { "one",          TABLE, { TEXT }, 1, NULL },
    { "sorted",       TABLE, { TEXT, TEXT + 1, TEXT + 0x1000 }, 3, NULL },
    { "of-a-module",  TEXT + 0x20000000, { TEXT + 0x20000100, TEXT + 0x20000200 }, 2, NULL },
    { "twice",        TABLE, { TEXT, TEXT, TEXT + 4 }, 3, NULL },
    { "behind-table", TEXT, { TEXT + 0x7fff0000, TEXT + 0x7fff0001 }, 2, NULL },
    { "falling",      TABLE, { TEXT + 1, TEXT }, 2, "ORC table byte 8: addresses are not sorted" },
    { "falls-late",   TABLE, { TEXT, TEXT + 8, TEXT + 16, TEXT + 15 }, 4, "ORC table byte 16: addresses are not sorted" },
    { "around-zero",  4, { UINT64_MAX - 7, 8 }, 2, NULL },
    { "far",          0x80000000, { 0, 0xffffffff }, 2, NULL },
    { "too-far",      0x80000000, { 0, 0x100000000 }, 2, "ORC table byte 8: addresses are not sorted" },
};
/* clang-format on */

static UprofOrc *
parse(const OrcLine *lines, size_t n, uint64_t ips_at, UprofOrcVersion version, GError **error)
{
    g_autoptr(GByteArray) ips = g_byte_array_new(), raw = g_byte_array_new();

    build_orc(lines, n, ips_at, ips, raw);
    return uprof_orc_parse((UprofSlice){ ips->data, ips->len }, ips_at,
                           (UprofSlice){ raw->data, raw->len }, version, error);
}

static void
test_entry(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const OrcLine lines[] = { { TEXT, -8, 0x7fff, entries[i].flags }, { TEXT + 16, 0, 0, 0 } };
    const UprofOrcRule untouched = { .sp_offset = 42 };
    UprofOrcRule rule = untouched;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofOrc) orc = parse(lines, 2, TABLE, entries[i].version, &error);

    g_assert_no_error(error);
    g_assert_true(uprof_orc_find(orc, TEXT + 3, &rule) == entries[i].is_known);
    if (!entries[i].is_known) {
        g_assert_cmpmem(&rule, sizeof(rule), &untouched, sizeof(untouched));
        return;
    }
    const bool has_regs =
        entries[i].type != UPROF_ORC_UNDEFINED && entries[i].type != UPROF_ORC_END;
    g_assert_cmpint(rule.type, ==, entries[i].type);
    g_assert_true(rule.is_signal == entries[i].is_signal);
    g_assert_cmpint(rule.sp_reg, ==, entries[i].sp_reg);
    g_assert_cmpint(rule.bp_reg, ==, entries[i].bp_reg);
    g_assert_cmpint(rule.sp_offset, ==, has_regs ? -8 : 0);
    g_assert_cmpint(rule.bp_offset, ==, has_regs ? 0x7fff : 0);
}

static void
test_version(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice header = { versions[i].header, versions[i].len };

    g_assert_cmpint(uprof_orc_version(header, versions[i].release), ==, versions[i].version);
}

static void
test_table(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const unsigned n = tables[i].n;
    OrcLine lines[G_N_ELEMENTS(tables[i].pcs)];
    g_autoptr(GError) error = NULL;
    UprofOrcRule rule;

    for (unsigned k = 0; k < n; k++)
        lines[k] = (OrcLine){ tables[i].pcs[k], (int16_t)k, 0, 0x215 };
    g_autoptr(UprofOrc) orc = parse(lines, n, tables[i].ips_at, UPROF_ORC_6_4, &error);
    if (tables[i].error) {
        g_assert_null(orc);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_cmpstr(error->message, ==, tables[i].error);
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpuint(uprof_orc_n(orc), ==, n);
    g_assert_false(uprof_orc_find(orc, lines[0].pc - 1, &rule));
    g_assert_false(uprof_orc_find(orc, lines[n - 1].pc, &rule));
    g_assert_false(uprof_orc_find(orc, lines[n - 1].pc + 1, &rule));
    for (unsigned k = 0; k + 1 < n; k++) {
        if (lines[k].pc == lines[k + 1].pc)
            continue; /* the later one counts */
        g_assert_true(uprof_orc_find(orc, lines[k].pc, &rule));
        g_assert_cmpint(rule.sp_offset, ==, k);
        g_assert_true(uprof_orc_find(orc, lines[k + 1].pc - 1, &rule));
        g_assert_cmpint(rule.sp_offset, ==, k);
    }
}

/* Tables whose lengths do not match, empty tables, and a table that is too long. */
static void
test_lengths(void)
{
    static const struct {
        size_t ips, entries;
        const char *error;
    } lengths[] = {
        { 0, 0, "ORC table byte 0: 0 bytes of addresses do not match 0 bytes of entries" },
        { 4, 0, "*4 bytes of addresses do not match 0 *" },
        { 0, 6, "*0 bytes of addresses do not match 6 *" },
        { 8, 6, "*8 bytes of addresses do not match 6 *" },
        { 4, 12, "*4 bytes of addresses do not match 12 *" },
        { 7, 6, "*7 bytes of addresses do not match 6 *" },
        { 4, 11, "*4 bytes of addresses do not match 11 *" },
        { (UPROF_ORC_ENTRIES_MAX + 1) * (size_t)4, (UPROF_ORC_ENTRIES_MAX + 1) * (size_t)6,
          "*4194305 entries are too many" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        g_autofree uint8_t *ips = g_malloc0(lengths[i].ips);
        g_autofree uint8_t *raw = g_malloc0(lengths[i].entries);
        g_autoptr(GError) error = NULL;
        g_assert_null(uprof_orc_parse((UprofSlice){ ips, lengths[i].ips }, TABLE,
                                      (UprofSlice){ raw, lengths[i].entries }, UPROF_ORC_6_4,
                                      &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_true(g_pattern_match_simple(lengths[i].error, error->message));
    }
}

/* A module whose init code is freed, and a module that claims the complete address space. */
static void
test_limit(void)
{
    const OrcLine lines[] = { { TEXT, 8, 0, 0x215 },
                              { TEXT + 0x1000, 16, 0, 0x215 },
                              { TEXT + 0x9000, 24, 0, 0x215 },
                              { TEXT + 0xa000, 0, 0, 0 } };
    g_autoptr(UprofOrc) orc = parse(lines, G_N_ELEMENTS(lines), TABLE, UPROF_ORC_6_4, NULL);
    UprofOrcRule rule;

    g_assert_true(uprof_orc_find(orc, TEXT + 0x9000, &rule));
    uprof_orc_limit(orc, TEXT + 0x800, 0x2000);
    g_assert_false(uprof_orc_find(orc, TEXT + 0x7ff, &rule));
    g_assert_true(uprof_orc_find(orc, TEXT + 0x800, &rule));
    g_assert_cmpint(rule.sp_offset, ==, 8);
    g_assert_true(uprof_orc_find(orc, TEXT + 0x27ff, &rule));
    g_assert_cmpint(rule.sp_offset, ==, 16);
    g_assert_false(uprof_orc_find(orc, TEXT + 0x2800, &rule));
    g_assert_false(uprof_orc_find(orc, TEXT + 0x9000, &rule));
    uprof_orc_limit(orc, 0, UINT64_MAX);
    g_assert_false(uprof_orc_find(orc, TEXT - 1, &rule));
    g_assert_true(uprof_orc_find(orc, TEXT + 0x9fff, &rule));
    g_assert_false(uprof_orc_find(orc, TEXT + 0xa000, &rule));
    uprof_orc_limit(orc, TEXT, 0);
    g_assert_false(uprof_orc_find(orc, TEXT, &rule));
}

/* The binary search finds the same entry as a linear search. */
static void
test_many(void)
{
    enum { ROUNDS = 200, LINES_MAX = 300 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned n = (unsigned)g_test_rand_int_range(1, LINES_MAX);
        g_autofree OrcLine *lines = g_new(OrcLine, n);
        uint64_t pc = TEXT;

        for (unsigned i = 0; i < n; i++) {
            lines[i] = (OrcLine){ pc, (int16_t)i, 0, 0x215 };
            pc += (unsigned)g_test_rand_int_range(0, 8);
        }
        g_autoptr(UprofOrc) orc = parse(lines, n, TABLE, UPROF_ORC_6_4, NULL);
        for (uint64_t at = TEXT; at < pc; at++) {
            UprofOrcRule rule;
            unsigned last = 0;
            while (last + 1 < n && lines[last + 1].pc <= at)
                last++;
            const bool is_known = at < lines[n - 1].pc;
            g_assert_true(uprof_orc_find(orc, at, &rule) == is_known);
            if (is_known)
                g_assert_cmpint(rule.sp_offset, ==, last);
        }
    }
}

/* Truncated and changed tables are refused, or give answers. */
static void
test_bytes_changed(void)
{
    enum { LINES = 40 };
    OrcLine lines[LINES];
    g_autoptr(GByteArray) ips = g_byte_array_new(), raw = g_byte_array_new();
    unsigned n_refused = 0, n_taken = 0;

    for (unsigned i = 0; i < LINES; i++)
        lines[i] = (OrcLine){ TEXT + 16 * i, 8, -16, (uint16_t)(i * 0x111) };
    build_orc(lines, LINES, TABLE, ips, raw);
    for (unsigned at = 0; at < ips->len; at++) {
        ips->data[at] ^= 0xff;
        g_autoptr(UprofOrc) orc =
            uprof_orc_parse((UprofSlice){ ips->data, ips->len }, TABLE,
                            (UprofSlice){ raw->data, raw->len }, UPROF_ORC_7_1, NULL);
        ips->data[at] ^= 0xff;
        n_refused += orc == NULL;
        n_taken += orc != NULL;
        for (unsigned pc = 0; orc && pc < 16 * LINES; pc++) {
            UprofOrcRule rule;
            if (uprof_orc_find(orc, TEXT + pc, &rule))
                g_assert_cmpint(rule.type, <=, UPROF_ORC_PARTIAL);
        }
    }
    g_assert_cmpuint(n_refused, >, 100);
    g_assert_cmpuint(n_taken, >, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
        g_autofree char *path = g_strdup_printf("/orc/entry/%s", entries[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_entry);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *path = g_strdup_printf("/orc/version/%s", versions[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_version);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autofree char *path = g_strdup_printf("/orc/table/%s", tables[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_table);
    }
    g_test_add_func("/orc/lengths", test_lengths);
    g_test_add_func("/orc/limit", test_limit);
    g_test_add_func("/orc/many", test_many);
    g_test_add_func("/orc/bytes-changed", test_bytes_changed);
    return g_test_run();
}
