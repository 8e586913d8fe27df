/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The compiler reads every CIE once, then the range of every FDE. It sorts the FDEs and then
 * runs their programs in order of addresses, which gives the rows. An FDE whose CIE was not
 * found while walking the entries is dropped, so no byte is run twice.
 */
#include "cfi-table-priv.h"

#include "cfi-entry-priv.h"

#include <elf.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/sorted.h"

enum {
    PAGE_BITS = 12,
    PAGE_MASK = (1 << PAGE_BITS) - 1,
    SLOTS = 1 << 17, /* of a hash table of 16-bit numbers, so at most half full */
    PROBES_MAX = 64, /* beyond, an item counts as new, so that no input makes the search slow */
};
#define REGION_GAP_BYTES (UINT64_C(16) << 20)

/* DWARF 5, table 7.29, and extensions of GNU, MIPS and ARM */
enum {
    CFA_ADVANCE_LOC = 0x40, /* in the high bits, with an operand in the low ones */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,

    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_MIPS_ADVANCE_LOC8 = 0x1d,
    CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

typedef struct {
    uint64_t base;       /* link address of the first page */
    uint32_t first_page; /* index in @pages */
    uint32_t n_pages;
} Region;

/* A row is a range of code that has one rule. */
struct _UprofCfi {
    const UprofArch *arch;
    unsigned n_regions;
    Region regions[UPROF_CFI_REGIONS_MAX];
    GArray *pages; /* of uint32_t: first row of each page; one more element ends each region */
    GArray *low;   /* of uint16_t, by row: low bits of its address */
    GArray *rule;  /* of uint16_t, by row: number of its rule; 0: no rule */
    GArray *rules; /* of UprofCfiRule */
    GArray *saved; /* of UprofCfiSaved */
    GArray *expressions; /* of UprofSlice, borrowed from the image */
    size_t n_fdes, n_dead, n_dropped;
};

typedef struct {
    uint8_t how;
    int32_t value;
} Value;

typedef struct {
    Value cfa;
    uint8_t cfa_reg;
    Value regs[UPROF_REGS_MAX];
} State;

typedef struct {
    UprofCfiCie entry;
    State state; /* at the start of each function */
} Cie;

typedef struct {
    uint64_t start, end;
    uint32_t cie; /* index in @cies */
    uint32_t program_len;
    size_t program_at; /* offset in the section */
} Fde;

typedef struct {
    uint64_t pc;
    uint16_t rule;
} Row;

typedef struct {
    const UprofElfImage *image;
    const GArray *listed; /* (nullable): of uint64_t: offsets of the only entries of .eh_frame */
    const char *name;
    UprofCfi *cfi;
    uint16_t *rule_slots, *expression_slots; /* hash tables of numbers; 0: empty */

    /* the section that is being read */
    UprofCfiSection section;
    GArray *cies, *fdes;
    GArray *rows;
    State states[UPROF_CFI_STATES_MAX]; /* stack of DW_CFA_remember_state */
} Compiler;

typedef struct {
    Compiler *compiler;
    const Cie *cie;
    UprofBytes code;
    uint64_t pc, end;
    uint64_t first_pc; /* another entry describes the code before this address */
    bool is_function;  /* the program of an FDE, which has addresses and an initial state */
    bool is_new;       /* the state has changed since the last row */
    unsigned n_states;
    State state;
} Machine;

static void
clear_compiler(Compiler *compiler)
{
    uprof_cfi_free(compiler->cfi);
    g_free(compiler->rule_slots);
    g_free(compiler->expression_slots);
    g_clear_pointer(&compiler->cies, g_array_unref);
    g_clear_pointer(&compiler->fdes, g_array_unref);
    g_clear_pointer(&compiler->rows, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Compiler, clear_compiler)

void
uprof_cfi_free(UprofCfi *cfi)
{
    if (!cfi)
        return;
    g_array_unref(cfi->pages);
    g_array_unref(cfi->low);
    g_array_unref(cfi->rule);
    g_array_unref(cfi->rules);
    g_array_unref(cfi->saved);
    g_array_unref(cfi->expressions);
    g_free(cfi);
}

/* ---- Rules and expressions: equal ones are stored once ---- */

static uint64_t
hash_bytes(const void *data, size_t len)
{
    const uint8_t *bytes = data;
    uint64_t hash = len, word;

    for (size_t i = 0; i < len; i += sizeof(word)) {
        word = 0;
        memcpy(&word, bytes + i, MIN(sizeof(word), len - i));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static bool
is_same_rule(const UprofCfi *cfi, unsigned number, const UprofCfiRule *rule,
             const UprofCfiSaved *saved)
{
    const UprofCfiRule *known = &g_array_index(cfi->rules, UprofCfiRule, number);

    if (known->cfa_how != rule->cfa_how || known->cfa_reg != rule->cfa_reg ||
        known->flags != rule->flags || known->n_saved != rule->n_saved ||
        known->cfa_value != rule->cfa_value)
        return false;
    return rule->n_saved == 0 ||
           memcmp(uprof_cfi_saved(cfi, known), saved, rule->n_saved * sizeof(*saved)) == 0;
}

/*
 * @saved: with zeros in the padding between its members, because memcmp() compares them
 * Returns: number of the rule; 0 if there are too many rules
 */
static uint16_t
intern_rule(Compiler *compiler, const UprofCfiRule *rule, const UprofCfiSaved *saved)
{
    UprofCfi *cfi = compiler->cfi;
    uint64_t at = hash_bytes(saved, rule->n_saved * sizeof(*saved));
    uint16_t *slot = NULL;

    at ^= hash_bytes(&rule->cfa_value, sizeof(rule->cfa_value)) * 31 + rule->cfa_reg;
    for (unsigned i = 0; i < PROBES_MAX; i++) {
        slot = &compiler->rule_slots[(at + i) % SLOTS];
        if (*slot == 0)
            break;
        if (is_same_rule(cfi, *slot, rule, saved))
            return *slot;
    }
    if (cfi->rules->len > UPROF_CFI_RULES_MAX)
        return 0;

    UprofCfiRule added = *rule;
    added.first_saved = cfi->saved->len;
    if (*slot == 0)
        *slot = (uint16_t)cfi->rules->len;
    g_array_append_val(cfi->rules, added);
    g_array_append_vals(cfi->saved, saved, rule->n_saved);
    return (uint16_t)(cfi->rules->len - 1);
}

/* @number: (out): number of the expression. Returns: false if there are too many */
static bool
intern_expression(Compiler *compiler, UprofSlice expression, int32_t *number)
{
    GArray *all = compiler->cfi->expressions;
    const uint64_t at = hash_bytes(expression.data, expression.len);
    uint16_t *slot = NULL;

    for (unsigned i = 0; i < PROBES_MAX; i++) {
        slot = &compiler->expression_slots[(at + i) % SLOTS];
        if (*slot == 0)
            break;
        const UprofSlice *known = &g_array_index(all, UprofSlice, *slot - 1);
        if (known->len == expression.len && memcmp(known->data, expression.data, known->len) == 0) {
            *number = *slot - 1;
            return true;
        }
    }
    if (all->len == UPROF_CFI_EXPRESSIONS_MAX)
        return false;
    *number = (int32_t)all->len;
    g_array_append_val(all, expression);
    if (*slot == 0)
        *slot = (uint16_t)all->len;
    return true;
}

static void
add_saved(UprofCfiSaved *saved, unsigned *n, unsigned reg, Value value)
{
    UprofCfiSaved *one = &saved[(*n)++];

    memset(one, 0, sizeof(*one));
    one->reg = (uint8_t)reg;
    one->how = value.how;
    one->value = value.value;
}

/* Returns: the value of UprofCfiRule.reach */
static uint32_t
find_reach(const UprofArch *arch, const UprofCfiRule *rule, const UprofCfiSaved *saved)
{
    const int32_t word = arch->word_bytes;
    uint32_t reach = 0;

    if (rule->flags != 0 || saved[rule->n_saved - 1].reg != arch->pc ||
        rule->cfa_how != UPROF_CFI_OFFSET ||
        (rule->cfa_reg != arch->sp && rule->cfa_reg != arch->fp))
        return 0;
    for (unsigned i = 0; i < rule->n_saved; i++) {
        if (saved[i].how != UPROF_CFI_AT_OFFSET || saved[i].reg == arch->sp ||
            saved[i].value > -word || saved[i].value % word != 0 ||
            saved[i].value < -UPROF_CFI_REACH_BYTES_MAX)
            return 0;
        reach = MAX(reach, (uint32_t)-saved[i].value);
    }
    return reach;
}

/* Returns: number of the rule; 0 if @state has no rule for the caller */
static uint16_t
make_rule(Compiler *compiler, const UprofCfiCie *cie, const State *state)
{
    const UprofArch *arch = compiler->cfi->arch;
    UprofCfiSaved saved[UPROF_REGS_MAX];
    UprofCfiRule rule = { .flags = cie->is_signal ? UPROF_CFI_SIGNAL : 0 };
    Value back = state->regs[cie->return_reg];
    unsigned n = 0;

    if (back.how == UPROF_CFI_UNDEFINED) {
        rule.flags |= UPROF_CFI_END;
        return intern_rule(compiler, &rule, NULL);
    }
    if (state->cfa.how == UPROF_CFI_SAME)
        return 0;
    if (back.how == UPROF_CFI_SAME) {
        if (cie->return_reg == arch->pc)
            return 0; /* the frame would be its own caller */
        back = (Value){ UPROF_CFI_REGISTER, cie->return_reg };
    }
    for (unsigned reg = 0; reg < arch->n_regs; reg++) {
        if (reg == arch->pc)
            add_saved(saved, &n, reg, back);
        else if (state->regs[reg].how != UPROF_CFI_SAME)
            add_saved(saved, &n, reg, state->regs[reg]);
    }
    rule.cfa_how = state->cfa.how;
    rule.cfa_reg = state->cfa_reg;
    rule.cfa_value = state->cfa.value;
    rule.n_saved = (uint8_t)n;
    rule.reach = find_reach(arch, &rule, saved);
    return intern_rule(compiler, &rule, saved);
}

/* Appends a row, unless it repeats the rule of the row before. Addresses do not fall. */
static void
push_row(GArray *rows, uint64_t pc, uint16_t rule)
{
    if (rows->len > 0 && g_array_index(rows, Row, rows->len - 1).pc == pc)
        g_array_set_size(rows, rows->len - 1);
    const uint16_t before = rows->len > 0 ? g_array_index(rows, Row, rows->len - 1).rule : 0;
    const Row row = { pc, rows->len < UPROF_CFI_ROWS_MAX ? rule : 0 };
    if (row.rule == before)
        return;
    g_array_append_val(rows, row);
}

/* ---- Programs ---- */

static void
emit_row(Machine *machine, uint64_t end)
{
    GArray *rows = machine->compiler->rows;
    const uint64_t pc = MAX(machine->pc, machine->first_pc);

    if (pc >= end || !machine->is_new)
        return;
    push_row(rows, pc, make_rule(machine->compiler, &machine->cie->entry, &machine->state));
    machine->is_new = false;
}

static bool
go_to(Machine *machine, uint64_t pc)
{
    if (!machine->is_function || pc < machine->pc)
        return false;
    if (pc > machine->pc)
        emit_row(machine, MIN(pc, machine->end));
    machine->pc = pc;
    return true;
}

static bool
advance_pc(Machine *machine, uint64_t n)
{
    uint64_t bytes, pc;

    if (__builtin_mul_overflow(n, machine->cie->entry.code_align, &bytes) ||
        __builtin_add_overflow(machine->pc, bytes, &pc))
        return false;
    return go_to(machine, pc);
}

/* Returns: false if the product is larger than any frame */
static bool
scale_offset(int64_t n, int64_t align, int32_t *value)
{
    int64_t bytes;

    if (__builtin_mul_overflow(n, align, &bytes) || bytes < INT32_MIN || bytes > INT32_MAX)
        return false;
    *value = (int32_t)bytes;
    return true;
}

static bool
read_offset(Machine *machine, bool is_signed, int64_t align, int32_t *value)
{
    uint64_t number;
    int64_t signed_number;

    if (is_signed)
        return uprof_bytes_sleb(&machine->code, &signed_number) &&
               scale_offset(signed_number, align, value);
    return uprof_bytes_uleb(&machine->code, &number) && number <= INT64_MAX &&
           scale_offset((int64_t)number, align, value);
}

/* Ignores registers that have no number in UprofArch, such as vector registers and flags. */
static void
set_reg(Machine *machine, uint64_t dwarf, Value value)
{
    unsigned reg;

    if (!uprof_arch_dwarf_reg(machine->compiler->cfi->arch, dwarf, &reg))
        return;
    machine->state.regs[reg] = value;
    machine->is_new = true;
}

static bool
save_at(Machine *machine, uint64_t dwarf, UprofCfiHow how, bool is_signed, int64_t align)
{
    Value value = { .how = how };

    if (!read_offset(machine, is_signed, align, &value.value))
        return false;
    set_reg(machine, dwarf, value);
    return true;
}

static bool
save_in_register(Machine *machine, uint64_t dwarf)
{
    uint64_t dwarf_from;
    unsigned from;

    if (!uprof_bytes_uleb(&machine->code, &dwarf_from))
        return false;
    if (uprof_arch_dwarf_reg(machine->compiler->cfi->arch, dwarf_from, &from))
        set_reg(machine, dwarf, (Value){ UPROF_CFI_REGISTER, (int32_t)from });
    else
        set_reg(machine, dwarf, (Value){ UPROF_CFI_UNDEFINED, 0 });
    return true;
}

static bool
read_expression(Machine *machine, int32_t *number)
{
    UprofSlice expression;
    uint64_t len;

    return uprof_bytes_uleb(&machine->code, &len) &&
           uprof_bytes_take(&machine->code, len, &expression) &&
           intern_expression(machine->compiler, expression, number);
}

static bool
save_by_expression(Machine *machine, uint64_t dwarf, UprofCfiHow how)
{
    Value value = { .how = how };

    if (!read_expression(machine, &value.value))
        return false;
    set_reg(machine, dwarf, value);
    return true;
}

static bool
restore_reg(Machine *machine, uint64_t dwarf)
{
    unsigned reg;

    if (!machine->is_function)
        return false;
    if (uprof_arch_dwarf_reg(machine->compiler->cfi->arch, dwarf, &reg))
        set_reg(machine, dwarf, machine->cie->state.regs[reg]);
    return true;
}

/* The CFA can count from any register that UprofArch has a number for. */
static bool
set_cfa_reg(Machine *machine)
{
    uint64_t dwarf;
    unsigned reg;

    if (!uprof_bytes_uleb(&machine->code, &dwarf) ||
        !uprof_arch_dwarf_reg(machine->compiler->cfi->arch, dwarf, &reg))
        return false;
    machine->state.cfa_reg = (uint8_t)reg;
    machine->is_new = true;
    return true;
}

static bool
set_cfa_offset(Machine *machine, bool is_signed, int64_t align)
{
    machine->is_new = true;
    return read_offset(machine, is_signed, align, &machine->state.cfa.value);
}

static bool
define_cfa(Machine *machine, uint8_t opcode)
{
    Value *cfa = &machine->state.cfa;
    const int64_t align = machine->cie->entry.data_align;

    if (opcode == CFA_DEF_CFA || opcode == CFA_DEF_CFA_SF) {
        cfa->how = UPROF_CFI_OFFSET;
        return set_cfa_reg(machine) && set_cfa_offset(machine, opcode == CFA_DEF_CFA_SF,
                                                      opcode == CFA_DEF_CFA_SF ? align : 1);
    }
    if (opcode == CFA_DEF_CFA_EXPRESSION) {
        cfa->how = UPROF_CFI_EXPRESSION;
        machine->state.cfa_reg = 0;
        machine->is_new = true;
        return read_expression(machine, &cfa->value);
    }
    /* the other opcodes change one half of a CFA that is already defined */
    if (cfa->how != UPROF_CFI_OFFSET)
        return false;
    if (opcode == CFA_DEF_CFA_REGISTER)
        return set_cfa_reg(machine);
    return set_cfa_offset(machine, opcode == CFA_DEF_CFA_OFFSET_SF,
                          opcode == CFA_DEF_CFA_OFFSET_SF ? align : 1);
}

static bool
push_state(Machine *machine)
{
    if (machine->n_states == UPROF_CFI_STATES_MAX)
        return false;
    machine->compiler->states[machine->n_states++] = machine->state;
    return true;
}

static bool
pop_state(Machine *machine)
{
    if (machine->n_states == 0)
        return false;
    machine->state = machine->compiler->states[--machine->n_states];
    machine->is_new = true;
    return true;
}

static bool
run_register_opcode(Machine *machine, uint8_t opcode)
{
    const int64_t align = machine->cie->entry.data_align;
    uint64_t dwarf;

    if (!uprof_bytes_uleb(&machine->code, &dwarf))
        return false;
    switch (opcode) {
    case CFA_OFFSET_EXTENDED:
        return save_at(machine, dwarf, UPROF_CFI_AT_OFFSET, false, align);
    case CFA_OFFSET_EXTENDED_SF:
        return save_at(machine, dwarf, UPROF_CFI_AT_OFFSET, true, align);
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        return align != INT64_MIN && save_at(machine, dwarf, UPROF_CFI_AT_OFFSET, false, -align);
    case CFA_VAL_OFFSET:
        return save_at(machine, dwarf, UPROF_CFI_OFFSET, false, align);
    case CFA_VAL_OFFSET_SF:
        return save_at(machine, dwarf, UPROF_CFI_OFFSET, true, align);
    case CFA_EXPRESSION:
        return save_by_expression(machine, dwarf, UPROF_CFI_AT_EXPRESSION);
    case CFA_VAL_EXPRESSION:
        return save_by_expression(machine, dwarf, UPROF_CFI_EXPRESSION);
    case CFA_REGISTER:
        return save_in_register(machine, dwarf);
    case CFA_RESTORE_EXTENDED:
        return restore_reg(machine, dwarf);
    case CFA_UNDEFINED:
        set_reg(machine, dwarf, (Value){ UPROF_CFI_UNDEFINED, 0 });
        return true;
    case CFA_SAME_VALUE:
        set_reg(machine, dwarf, (Value){ UPROF_CFI_SAME, 0 });
        return true;
    default:
        return false;
    }
}

static bool
run_address_opcode(Machine *machine, uint8_t opcode)
{
    uint64_t number;

    switch (opcode) {
    case CFA_SET_LOC:
        return uprof_cfi_entry_address(&machine->compiler->section, &machine->code,
                                       machine->cie->entry.encoding, &number) &&
               go_to(machine, number);
    case CFA_ADVANCE_LOC1:
        return uprof_cfi_entry_unsigned(&machine->code, 1, &number) && advance_pc(machine, number);
    case CFA_ADVANCE_LOC2:
        return uprof_cfi_entry_unsigned(&machine->code, 2, &number) && advance_pc(machine, number);
    case CFA_ADVANCE_LOC4:
        return uprof_cfi_entry_unsigned(&machine->code, 4, &number) && advance_pc(machine, number);
    default:
        return uprof_cfi_entry_unsigned(&machine->code, 8, &number) && advance_pc(machine, number);
    }
}

static bool
run_opcode(Machine *machine, uint8_t opcode)
{
    const uint8_t low = opcode & 0x3f;
    uint64_t ignored;

    switch (opcode & 0xc0) {
    case CFA_ADVANCE_LOC:
        return advance_pc(machine, low);
    case CFA_OFFSET:
        return save_at(machine, low, UPROF_CFI_AT_OFFSET, false, machine->cie->entry.data_align);
    case CFA_RESTORE:
        return restore_reg(machine, low);
    default:
        break;
    }
    switch (opcode) {
    case CFA_NOP:
    /* the key of a signed return address does not matter: the unwinder strips any signature */
    case CFA_AARCH64_NEGATE_RA_STATE:
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
        return true;
    case CFA_GNU_ARGS_SIZE:
        return uprof_bytes_uleb(&machine->code, &ignored);
    case CFA_SET_LOC:
    case CFA_ADVANCE_LOC1:
    case CFA_ADVANCE_LOC2:
    case CFA_ADVANCE_LOC4:
    case CFA_MIPS_ADVANCE_LOC8:
        return run_address_opcode(machine, opcode);
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION:
        return define_cfa(machine, opcode);
    case CFA_REMEMBER_STATE:
        return push_state(machine);
    case CFA_RESTORE_STATE:
        return pop_state(machine);
    default:
        return run_register_opcode(machine, opcode);
    }
}

/* Returns: false if the program is malformed */
static bool
run_program(Machine *machine)
{
    uint8_t opcode;

    if (uprof_bytes_left(&machine->code) > UPROF_CFI_PROGRAM_BYTES_MAX)
        return false;
    while (uprof_bytes_u8(&machine->code, &opcode))
        if (!run_opcode(machine, opcode))
            return false;
    return true;
}

/* Drops CIEs with unknown features; read_fde() then drops the FDEs that refer to them. */
static bool
add_cie(Compiler *compiler, const UprofCfiEntry *entry, GError **error)
{
    const UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);
    Cie cie = { 0 };

    if (!uprof_cfi_entry_cie(&compiler->section, entry, &cie.entry))
        return true;
    Machine machine = { .compiler = compiler, .cie = &cie, .code = cie.entry.program };
    if (!run_program(&machine))
        return true;
    cie.state = machine.state;
    if (compiler->cies->len == UPROF_CFI_CIES_MAX)
        return uprof_bytes_fail(&bytes, error, "more than %d CIEs", UPROF_CFI_CIES_MAX);
    g_array_append_val(compiler->cies, cie);
    return true;
}

static bool
read_cies(Compiler *compiler, GError **error)
{
    UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);
    UprofCfiEntry entry;

    while (uprof_bytes_left(&bytes) > 0)
        if (!uprof_cfi_entry_next(&compiler->section, &bytes, &entry, error) ||
            !add_cie(compiler, &entry, error))
            return false;
    return true;
}

/* CIEs are sorted by their offset, because they were read in this order. */
static const Cie *
find_cie(const Compiler *compiler, uint64_t at)
{
    const Cie *cies = (const Cie *)(void *)compiler->cies->data;
    const size_t n =
        cies ? uprof_sorted_count_up_to(&cies->entry.at, compiler->cies->len, sizeof(*cies), at)
             : 0;

    return n > 0 && cies[n - 1].entry.at == at ? &cies[n - 1] : NULL;
}

/* Returns: (nullable): the range of code that contains @pc */
static const UprofElfRange *
find_text(const Compiler *compiler, uint64_t pc)
{
    const GArray *text = compiler->image->text;
    const UprofElfRange *ranges = (const UprofElfRange *)(void *)text->data;
    const size_t n =
        ranges ? uprof_sorted_count_up_to(&ranges->start, text->len, sizeof(*ranges), pc) : 0;

    return n > 0 && pc - ranges[n - 1].start < ranges[n - 1].len ? &ranges[n - 1] : NULL;
}

typedef enum { FDE_TAKEN, FDE_DEAD, FDE_DROPPED } FdeAnswer;

static FdeAnswer
read_fde(Compiler *compiler, const UprofCfiEntry *entry, Fde *fde)
{
    const Cie *cie = find_cie(compiler, entry->cie_at);
    UprofCfiFde found;

    if (!cie || !uprof_cfi_entry_fde(&compiler->section, entry, &cie->entry, &found) ||
        uprof_bytes_left(&found.program) > UPROF_CFI_PROGRAM_BYTES_MAX)
        return FDE_DROPPED;
    const UprofElfRange *text = find_text(compiler, found.start);
    if (!text || found.len == 0)
        return FDE_DEAD;
    *fde = (Fde){
        .start = found.start,
        .end = found.start + MIN(found.len, text->len - (found.start - text->start)),
        .cie = (uint32_t)(cie - &g_array_index(compiler->cies, Cie, 0)),
        .program_at = found.program.at,
        .program_len = (uint32_t)uprof_bytes_left(&found.program),
    };
    return FDE_TAKEN;
}

static bool
add_fde(Compiler *compiler, const UprofCfiEntry *entry, GError **error)
{
    const UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);
    Fde fde;

    if (entry->is_cie || uprof_bytes_left(&entry->rest) == 0)
        return true;
    switch (read_fde(compiler, entry, &fde)) {
    case FDE_DEAD:
        compiler->cfi->n_dead++;
        return true;
    case FDE_DROPPED:
        compiler->cfi->n_dropped++;
        return true;
    case FDE_TAKEN:
        break;
    }
    if (compiler->fdes->len == UPROF_CFI_FDES_MAX)
        return uprof_bytes_fail(&bytes, error, "more than %d FDEs", UPROF_CFI_FDES_MAX);
    g_array_append_val(compiler->fdes, fde);
    return true;
}

static bool
read_fdes(Compiler *compiler, GError **error)
{
    UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);
    UprofCfiEntry entry;

    while (uprof_bytes_left(&bytes) > 0)
        if (!uprof_cfi_entry_next(&compiler->section, &bytes, &entry, error) ||
            !add_fde(compiler, &entry, error))
            return false;
    return true;
}

/*
 * @left: (inout): bytes of entries that may still be read. Hostile offsets may lead into other
 * entries, so that bytes would be read many times.
 *
 * Returns: false if no entry can be at @at
 */
static bool
read_entry_at(const Compiler *compiler, uint64_t at, uint64_t *left, UprofCfiEntry *entry)
{
    UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);

    if (!uprof_bytes_seek(&bytes, at) ||
        !uprof_cfi_entry_next(&compiler->section, &bytes, entry, NULL) || bytes.at - at > *left)
        return false;
    *left -= bytes.at - at;
    return true;
}

static int
compare_offsets(gconstpointer a, gconstpointer b)
{
    return UPROF_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Returns: (transfer full): of uint64_t, sorted: offsets of the CIEs of the listed entries */
static GArray *
list_cies(const Compiler *compiler)
{
    GArray *cies = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    uint64_t left = 2 * compiler->section.bytes.len;
    UprofCfiEntry entry;
    guint n = 0;

    for (guint i = 0; i < compiler->listed->len; i++)
        if (read_entry_at(compiler, g_array_index(compiler->listed, uint64_t, i), &left, &entry) &&
            !entry.is_cie)
            g_array_append_val(cies, entry.cie_at);
    g_array_sort(cies, compare_offsets);
    for (guint i = 0; i < cies->len; i++) {
        const uint64_t at = g_array_index(cies, uint64_t, i);
        if (n == 0 || g_array_index(cies, uint64_t, n - 1) != at)
            g_array_index(cies, uint64_t, n++) = at;
    }
    g_array_set_size(cies, n);
    return cies;
}

/* Reads the listed entries, and skips the bytes between them. */
static bool
read_listed(Compiler *compiler, GError **error)
{
    g_autoptr(GArray) cies = list_cies(compiler);
    uint64_t left = 3 * compiler->section.bytes.len;
    UprofCfiEntry entry;

    for (guint i = 0; i < cies->len; i++)
        if (read_entry_at(compiler, g_array_index(cies, uint64_t, i), &left, &entry) &&
            !add_cie(compiler, &entry, error))
            return false;
    for (guint i = 0; i < compiler->listed->len; i++)
        if (read_entry_at(compiler, g_array_index(compiler->listed, uint64_t, i), &left, &entry) &&
            !add_fde(compiler, &entry, error))
            return false;
    return true;
}

static bool
read_entries(Compiler *compiler, GError **error)
{
    if (compiler->listed && compiler->section.is_eh)
        return read_listed(compiler, error);
    return read_cies(compiler, error) && read_fdes(compiler, error);
}

static int
compare_fdes(gconstpointer a, gconstpointer b)
{
    const Fde *one = a, *other = b;

    if (one->start != other->start)
        return UPROF_COMPARE(one->start, other->start);
    return UPROF_COMPARE(one->program_at, other->program_at);
}

/* @first_pc: another FDE describes the code before. A malformed program leaves a hole. */
static void
run_fde(Compiler *compiler, const Fde *fde, uint64_t first_pc)
{
    const Cie *cie = &g_array_index(compiler->cies, Cie, fde->cie);
    const guint n_rows = compiler->rows->len;
    Machine machine = {
        .compiler = compiler,
        .cie = cie,
        .code = uprof_cfi_entry_first(&compiler->section),
        .pc = fde->start,
        .end = fde->end,
        .first_pc = first_pc,
        .is_function = true,
        .is_new = true,
        .state = cie->state,
    };

    machine.code.at = fde->program_at;
    machine.code.all.len = fde->program_at + fde->program_len;
    const Row before = n_rows > 0 ? g_array_index(compiler->rows, Row, n_rows - 1) : (Row){ 0 };
    if (run_program(&machine)) {
        emit_row(&machine, fde->end);
        compiler->cfi->n_fdes++;
    } else {
        /* the first row of the FDE may have replaced the last row of the FDE before */
        g_array_set_size(compiler->rows, n_rows);
        if (n_rows > 0)
            g_array_index(compiler->rows, Row, n_rows - 1) = before;
        compiler->cfi->n_dropped++;
    }
    push_row(compiler->rows, fde->end, 0);
}

static bool
read_section(Compiler *compiler, const UprofElfRange *section, bool is_eh, GError **error)
{
    uint64_t end = 0;

    compiler->section = (UprofCfiSection){ .arch = compiler->cfi->arch,
                                           .name = compiler->name,
                                           .start = section->start,
                                           .bytes = section->bytes,
                                           .is_eh = is_eh };
    const UprofBytes bytes = uprof_cfi_entry_first(&compiler->section);
    if (section->bytes.len > UPROF_CFI_SECTION_BYTES_MAX)
        return uprof_bytes_fail(&bytes, error, "%zu bytes of unwind tables are too many",
                                section->bytes.len);
    g_array_set_size(compiler->cies, 0);
    g_array_set_size(compiler->fdes, 0);
    if (!read_entries(compiler, error))
        return false;

    g_array_sort(compiler->fdes, compare_fdes);
    for (guint i = 0; i < compiler->fdes->len; i++) {
        const Fde *fde = &g_array_index(compiler->fdes, Fde, i);
        if (fde->end <= end)
            continue;
        run_fde(compiler, fde, MAX(fde->start, end));
        end = fde->end;
    }
    return true;
}

/*
 * Behind its return address, the handler of a signal finds the registers of the code that was
 * interrupted (Linux, arch/x86/include/uapi/asm/ucontext.h and sigcontext.h).
 * @cfa: from the stack pointer
 */
static uint16_t
make_signal_rule(Compiler *compiler, int32_t cfa)
{
    static const UprofCfiSaved saved[] = {
        { UPROF_X86_RBX, UPROF_CFI_AT_OFFSET, 128 },
        { UPROF_X86_RBP, UPROF_CFI_AT_OFFSET, 120 },
        { UPROF_X86_RSP, UPROF_CFI_AT_OFFSET, 160 },
        { 12, UPROF_CFI_AT_OFFSET, 72 },
        { 13, UPROF_CFI_AT_OFFSET, 80 },
        { 14, UPROF_CFI_AT_OFFSET, 88 },
        { 15, UPROF_CFI_AT_OFFSET, 96 },
        { UPROF_X86_RIP, UPROF_CFI_AT_OFFSET, 168 },
    };
    const UprofCfiRule rule = { .cfa_how = UPROF_CFI_OFFSET,
                                .cfa_reg = UPROF_X86_RSP,
                                .cfa_value = cfa,
                                .n_saved = G_N_ELEMENTS(saved),
                                .flags = UPROF_CFI_SIGNAL | UPROF_CFI_GO };

    return intern_rule(compiler, &rule, saved);
}

/* Returns: number of the rule; 0 if there is none */
static uint16_t
make_size_rule(Compiler *compiler, const UprofFrameSize *size)
{
    const UprofArch *arch = compiler->cfi->arch;
    const int32_t word = arch->word_bytes, bytes = (int32_t)size->bytes;
    UprofCfiRule rule = { .cfa_how = UPROF_CFI_OFFSET, .cfa_reg = arch->sp };
    UprofCfiSaved saved[2];
    unsigned n = 0;

    if (size->kind == UPROF_FRAME_NONE)
        return 0;
    if (size->kind == UPROF_FRAME_SIGNAL)
        return make_signal_rule(compiler, bytes + word);
    if (size->kind != UPROF_FRAME_CALLED) {
        rule = (UprofCfiRule){ .flags = size->kind == UPROF_FRAME_ROOT ? UPROF_CFI_END
                                                                       : UPROF_CFI_SWITCHED };
        return intern_rule(compiler, &rule, NULL);
    }
    /* A frame has the caller's frame pointer in its highest word, right below the return address.
     */
    if (bytes >= word)
        add_saved(saved, &n, arch->fp, (Value){ UPROF_CFI_AT_OFFSET, -2 * word });
    add_saved(saved, &n, arch->pc, (Value){ UPROF_CFI_AT_OFFSET, -word });
    rule.cfa_value = bytes + word;
    rule.n_saved = (uint8_t)n;
    rule.reach = find_reach(arch, &rule, saved);
    return intern_rule(compiler, &rule, saved);
}

/* The sizes of frames of a Go program. On x86 a call pushes the return address. */
static void
add_frame_sizes(Compiler *compiler)
{
    const GArray *frames = compiler->image->frames;

    if (compiler->cfi->arch->elf_machine != EM_X86_64)
        return;
    for (guint i = 0; frames && i < frames->len; i++) {
        const UprofFrameSize *size = &g_array_index(frames, UprofFrameSize, i);
        push_row(compiler->rows, size->pc, make_size_rule(compiler, size));
    }
}

/* Merges the rows of two sources. The second source counts where the first has no rule. */
static GArray *
merge_rows(const GArray *first, const GArray *second)
{
    GArray *merged = g_array_sized_new(FALSE, FALSE, sizeof(Row), first->len + second->len);
    uint16_t rule = 0, other_rule = 0;
    guint i = 0, j = 0;

    while (i < first->len || j < second->len) {
        const uint64_t next = i < first->len ? g_array_index(first, Row, i).pc : UINT64_MAX;
        const uint64_t other_next = j < second->len ? g_array_index(second, Row, j).pc : UINT64_MAX;
        const uint64_t pc = MIN(next, other_next);

        if (i < first->len && next == pc)
            rule = g_array_index(first, Row, i++).rule;
        if (j < second->len && other_next == pc)
            other_rule = g_array_index(second, Row, j++).rule;
        push_row(merged, pc, rule ? rule : other_rule);
    }
    return merged;
}

/* Returns: (transfer full): the rows so far; the next source begins without rows */
static GArray *
take_rows(Compiler *compiler)
{
    GArray *rows = compiler->rows;

    compiler->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    return rows;
}

/* ---- The table ---- */

/* Extends the last region to @n_pages pages. @row: the first row of each new page */
static bool
add_pages(UprofCfi *cfi, uint32_t n_pages, uint32_t row)
{
    Region *region = &cfi->regions[cfi->n_regions - 1];

    if ((uint64_t)region->first_page + n_pages > UPROF_CFI_PAGES_MAX)
        return false;
    while (cfi->pages->len < region->first_page + n_pages)
        g_array_append_val(cfi->pages, row);
    region->n_pages = n_pages;
    return true;
}

static bool
start_region(UprofCfi *cfi, uint64_t pc, uint32_t row)
{
    if (cfi->n_regions == UPROF_CFI_REGIONS_MAX)
        return false;
    if (cfi->n_regions > 0)
        g_array_append_val(cfi->pages, row);
    cfi->regions[cfi->n_regions++] = (Region){ pc & ~(uint64_t)PAGE_MASK, cfi->pages->len, 0 };
    return true;
}

/* Splits each address into a page and low bits. Returns: false if the code is spread too far */
static bool
store_rows(UprofCfi *cfi, const GArray *rows)
{
    for (uint32_t i = 0; i < rows->len; i++) {
        const Row *row = &g_array_index(rows, Row, i);
        const uint16_t low = row->pc & PAGE_MASK;

        if ((i == 0 || (row[-1].rule == 0 && row->pc - row[-1].pc > REGION_GAP_BYTES)) &&
            !start_region(cfi, row->pc, i))
            return false;
        const uint64_t page = (row->pc - cfi->regions[cfi->n_regions - 1].base) >> PAGE_BITS;
        if (page >= UPROF_CFI_PAGES_MAX || !add_pages(cfi, (uint32_t)page + 1, i))
            return false;
        g_array_append_val(cfi->low, low);
        g_array_append_val(cfi->rule, row->rule);
    }
    g_array_append_val(cfi->pages, rows->len);
    return true;
}

static UprofCfi *
new_table(const UprofArch *arch)
{
    const UprofCfiRule none = { 0 };
    UprofCfi *cfi = g_new0(UprofCfi, 1);

    cfi->arch = arch;
    cfi->pages = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    cfi->low = g_array_new(FALSE, FALSE, sizeof(uint16_t));
    cfi->rule = g_array_new(FALSE, FALSE, sizeof(uint16_t));
    cfi->rules = g_array_new(FALSE, FALSE, sizeof(UprofCfiRule));
    cfi->saved = g_array_new(FALSE, FALSE, sizeof(UprofCfiSaved));
    cfi->expressions = g_array_new(FALSE, FALSE, sizeof(UprofSlice));
    g_array_append_val(cfi->rules, none);
    return cfi;
}

UprofCfi *
uprof_cfi_compile(const UprofElfImage *image, const char *name, GError **error)
{
    return uprof_cfi_compile_listed(image, NULL, name, error);
}

UprofCfi *
uprof_cfi_compile_listed(const UprofElfImage *image, const GArray *listed, const char *name,
                         GError **error)
{
    const UprofArch *arch = uprof_arch_of_elf(image->machine);
    g_auto(Compiler) compiler = { .image = image, .listed = listed, .name = name };

    if (!arch || arch->word_bytes != image->word_bytes || arch->big_endian != image->big_endian) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "%s: unwind tables of this machine are not supported (ELF machine %u)", name,
                    image->machine);
        return NULL;
    }
    compiler.cfi = new_table(arch);
    compiler.rule_slots = g_new0(uint16_t, SLOTS);
    compiler.expression_slots = g_new0(uint16_t, SLOTS);
    compiler.cies = g_array_new(FALSE, FALSE, sizeof(Cie));
    compiler.fdes = g_array_new(FALSE, FALSE, sizeof(Fde));
    compiler.rows = g_array_new(FALSE, FALSE, sizeof(Row));
    if (!read_section(&compiler, &image->eh_frame, true, error))
        return NULL;
    g_autoptr(GArray) eh_rows = take_rows(&compiler);
    add_frame_sizes(&compiler);
    g_autoptr(GArray) size_rows = take_rows(&compiler);
    if (!read_section(&compiler, &image->debug_frame, false, error))
        return NULL;
    g_autoptr(GArray) first_rows = merge_rows(eh_rows, size_rows);
    g_autoptr(GArray) rows = merge_rows(first_rows, compiler.rows);
    if (!store_rows(compiler.cfi, rows)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "%s: unwind tables of more than %u GiB of code", name,
                    UPROF_CFI_PAGES_MAX >> (30 - PAGE_BITS));
        return NULL;
    }
    return g_steal_pointer(&compiler.cfi);
}

const UprofArch *
uprof_cfi_arch(const UprofCfi *cfi)
{
    return cfi->arch;
}

UprofCfiSummary
uprof_cfi_summary(const UprofCfi *cfi)
{
    return (UprofCfiSummary){
        .n_fdes = cfi->n_fdes,
        .n_dead = cfi->n_dead,
        .n_dropped = cfi->n_dropped,
        .n_rows = cfi->rule->len,
        .n_rules = cfi->rules->len - 1,
        .n_expressions = cfi->expressions->len,
        .n_bytes = sizeof(*cfi) + cfi->pages->len * sizeof(uint32_t) +
                   cfi->rule->len * 2 * sizeof(uint16_t) + cfi->rules->len * sizeof(UprofCfiRule) +
                   cfi->saved->len * sizeof(UprofCfiSaved) +
                   cfi->expressions->len * sizeof(UprofSlice),
    };
}

static const UprofCfiRule *
get_rule(const UprofCfi *cfi, size_t row)
{
    const uint16_t number = g_array_index(cfi->rule, uint16_t, row);

    return number > 0 ? &g_array_index(cfi->rules, UprofCfiRule, number) : NULL;
}

const UprofCfiRule *
uprof_cfi_find(const UprofCfi *cfi, uint64_t pc)
{
    const uint16_t *lows = (const uint16_t *)(const void *)cfi->low->data;
    const uint32_t *pages = (const uint32_t *)(const void *)cfi->pages->data;
    const uint16_t low = pc & PAGE_MASK;
    unsigned i = cfi->n_regions;

    while (i > 0 && pc < cfi->regions[i - 1].base)
        i--;
    if (i == 0)
        return NULL;
    const Region *region = &cfi->regions[i - 1];
    const uint64_t page = (pc - region->base) >> PAGE_BITS;
    if (page >= region->n_pages)
        return NULL;

    /* find the last row that begins at pc or before; it may belong to an earlier page */
    uint32_t row = pages[region->first_page + page];
    uint32_t n = pages[region->first_page + page + 1] - row;
    /* the steps do not depend on the comparisons, so the processor predicts all branches */
    while (n > 1) {
        const uint32_t half = n / 2;

        row = lows[row + half - 1] <= low ? row + half : row;
        n -= half;
    }
    row += n == 1 && lows[row] <= low;
    return row > 0 ? get_rule(cfi, row - 1) : NULL;
}

const UprofCfiSaved *
uprof_cfi_saved(const UprofCfi *cfi, const UprofCfiRule *rule)
{
    return rule->n_saved > 0 ? &g_array_index(cfi->saved, UprofCfiSaved, rule->first_saved) : NULL;
}

UprofSlice
uprof_cfi_expression(const UprofCfi *cfi, int32_t value)
{
    g_assert(value >= 0 && (guint)value < cfi->expressions->len);
    return g_array_index(cfi->expressions, UprofSlice, value);
}

bool
uprof_cfi_row(const UprofCfi *cfi, size_t i, uint64_t *pc, const UprofCfiRule **rule)
{
    const uint32_t *pages = (const uint32_t *)(const void *)cfi->pages->data;

    if (i >= cfi->rule->len)
        return false;
    unsigned r = cfi->n_regions - 1;
    while (r > 0 && pages[cfi->regions[r].first_page] > i)
        r--;
    const Region *region = &cfi->regions[r];
    uint32_t low = 0, high = region->n_pages;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (pages[region->first_page + middle] <= i)
            low = middle;
        else
            high = middle;
    }
    *pc = region->base + ((uint64_t)low << PAGE_BITS) + g_array_index(cfi->low, uint16_t, i);
    *rule = get_rule(cfi, i);
    return true;
}
