/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/qemu-regs.h"

#include "qemu-regs-priv.h"

#include <string.h>

#include "uprof/error.h"
#include "uprof/scan.h"

/*
 * block   = { line }
 * line    = { anything | name { " " } "=" { " " } word { " " word } }
 * name    = the word before "=": "RAX", "R8 ", "CPL"
 * segment = "CS =" selector " " base " " limit " " flags ...
 * table   = "GDT=" { " " } base " " limit
 *
 * QEMU prints the 64-bit form if the CPU runs 64-bit code, else the 32-bit form. If a name
 * occurs twice, the first counts. Unknown lines and names are skipped, because newer versions
 * of QEMU print more.
 */

enum { FORM_64 = 1, FORM_32 = 2, FORM_ANY = FORM_64 | FORM_32 };

/* A value that QEMU prints. */
typedef struct {
    const char *name;
    unsigned word; /* index of the word behind "=" */
    unsigned form;
    uint64_t max;
    size_t offset; /* of its member in the dump, whose members are all uint64_t */
} Field;

/* The fields of an architecture. */
typedef struct {
    const Field *fields;
    size_t n;
} FieldTable;

enum { FIELDS_MAX = 48 };

typedef struct {
    uint64_t reg[UPROF_X86_N_REGS];
    uint64_t flags;
    uint64_t privilege, smm, halted;
    uint64_t cs_base, cs_flags, ss_base, ss_flags;
    uint64_t sys[UPROF_SYS_MAX];
} X86Dump;

#define AT(member) G_STRUCT_OFFSET(X86Dump, member)
#define REG(number) (AT(reg) + (number) * sizeof(uint64_t))
#define SYS(index) (AT(sys) + (index) * sizeof(uint64_t))

/* clang-format off */
static const Field x86_fields[] = {
    { "RIP",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RIP)      }, /* the rows of RIP and EIP ... */
    { "EIP",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RIP)      }, /* ... tell the form */
    { "RAX",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RAX)      },
    { "RDX",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RDX)      },
    { "RCX",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RCX)      },
    { "RBX",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RBX)      },
    { "RSI",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RSI)      },
    { "RDI",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RDI)      },
    { "RBP",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RBP)      },
    { "RSP",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_RSP)      },
    { "R8",   0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8)       },
    { "R9",   0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 1)   },
    { "R10",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 2)   },
    { "R11",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 3)   },
    { "R12",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 4)   },
    { "R13",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 5)   },
    { "R14",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R8 + 6)   },
    { "R15",  0, FORM_64,  UINT64_MAX, REG(UPROF_X86_R15)      },
    { "RFL",  0, FORM_64,  UINT64_MAX, AT(flags)               },
    { "EAX",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RAX)      },
    { "EDX",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RDX)      },
    { "ECX",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RCX)      },
    { "EBX",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RBX)      },
    { "ESI",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RSI)      },
    { "EDI",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RDI)      },
    { "EBP",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RBP)      },
    { "ESP",  0, FORM_32,  UINT32_MAX, REG(UPROF_X86_RSP)      },
    { "EFL",  0, FORM_32,  UINT32_MAX, AT(flags)               },
    { "CPL",  0, FORM_ANY, 3,          AT(privilege)           },
    { "SMM",  0, FORM_ANY, 1,          AT(smm)                 },
    { "HLT",  0, FORM_ANY, 1,          AT(halted)              },
    { "CS",   1, FORM_ANY, UINT64_MAX, AT(cs_base)             },
    { "CS",   3, FORM_ANY, UINT32_MAX, AT(cs_flags)            },
    { "SS",   1, FORM_ANY, UINT64_MAX, AT(ss_base)             },
    { "SS",   3, FORM_ANY, UINT32_MAX, AT(ss_flags)            },
    { "TR",   1, FORM_ANY, UINT64_MAX, SYS(UPROF_X86_TR)       },
    { "GDT",  0, FORM_ANY, UINT64_MAX, SYS(UPROF_X86_GDT)      },
    { "IDT",  0, FORM_ANY, UINT64_MAX, SYS(UPROF_X86_IDT)      },
    { "CR0",  0, FORM_ANY, UINT32_MAX, SYS(UPROF_X86_CR0)      },
    { "CR3",  0, FORM_ANY, UINT64_MAX, SYS(UPROF_X86_CR3)      },
    { "CR4",  0, FORM_ANY, UINT32_MAX, SYS(UPROF_X86_CR4)      },
    { "EFER", 0, FORM_ANY, UINT64_MAX, SYS(UPROF_X86_EFER)     },
};
/* clang-format on */

/* Bits of a segment's flags as QEMU prints them (Intel SDM, volume 3, 3.4.5) */
#define SEGMENT_LONG UINT64_C(0x200000)
#define SEGMENT_BIG UINT64_C(0x400000)

static bool
is_heading(UprofSlice line, uint64_t *cpu)
{
    UprofSlice number;

    return uprof_slice_starts(line, "CPU#") && uprof_slice_sub(line, 4, line.len - 4, &number) &&
           uprof_slice_to_uint(uprof_slice_trim(number), 10, 0, UINT32_MAX, cpu);
}

static size_t
count_read_bytes(UprofSlice text, UprofSlice rest)
{
    return text.len - rest.len;
}

bool
uprof_qemu_regs_find(UprofSlice text, unsigned cpu, UprofSlice *block)
{
    UprofScan scan = { .rest = text };
    bool has_headings = false, is_found = false;
    size_t start = 0, end = text.len, line_start = 0;
    UprofSlice line;
    uint64_t heading;

    if (text.len > UPROF_QEMU_REGS_BYTES_MAX)
        return false;

    for (; uprof_scan_line(&scan, &line); line_start = count_read_bytes(text, scan.rest)) {
        if (!is_heading(line, &heading))
            continue;
        has_headings = true;
        if (is_found) {
            end = line_start;
            break;
        }
        if (heading == cpu) {
            is_found = true;
            start = count_read_bytes(text, scan.rest);
        }
    }
    if (!is_found && (has_headings || cpu != 0 || text.len == 0))
        return false;
    return uprof_slice_sub(text, start, end - start, block);
}

/* @line: (inout): moves behind the next "=". @name: (out): the word before it */
static bool
take_name(UprofSlice *line, UprofSlice *name)
{
    UprofSlice before, word;

    if (!uprof_slice_split(*line, '=', &before, line))
        return false;

    *name = (UprofSlice){ NULL, 0 };
    while (uprof_scan_word(&before, &word))
        *name = word;
    return true;
}

static bool
read_field(const Field *field, UprofSlice behind, void *dump)
{
    UprofSlice word = { NULL, 0 };

    for (unsigned i = 0; i <= field->word; i++)
        if (!uprof_scan_word(&behind, &word))
            return false;
    return uprof_slice_to_uint(word, 16, 0, field->max, G_STRUCT_MEMBER_P(dump, field->offset));
}

static bool
read_line(const UprofScan *scan, UprofSlice line, const FieldTable *table, void *dump, bool *seen,
          GError **error)
{
    UprofSlice name;

    while (take_name(&line, &name)) {
        for (size_t i = 0; i < table->n; i++) {
            const Field *field = &table->fields[i];

            if (seen[i] || !uprof_slice_is(name, field->name))
                continue;
            if (!read_field(field, line, dump))
                return uprof_scan_fail(scan, error, "bad value of '%s'", field->name);
            seen[i] = true;
        }
    }
    return true;
}

/*
 * @dump: (out): what @table describes
 * @form: (out): the 64-bit form, if the block has the first field of @table; else the 32-bit form
 *
 * Returns: false if a field of this form is missing or malformed
 */
static bool
read_dump(UprofSlice block, const FieldTable *table, void *dump, unsigned *form, GError **error)
{
    UprofScan scan = { .name = "info registers", .rest = block };
    bool seen[FIELDS_MAX] = { false };
    UprofSlice line;

    g_assert(table->n <= FIELDS_MAX);
    while (uprof_scan_line(&scan, &line))
        if (!read_line(&scan, line, table, dump, seen, error))
            return false;
    *form = seen[0] ? FORM_64 : FORM_32;
    for (size_t i = 0; i < table->n; i++)
        if ((table->fields[i].form & *form) && !seen[i])
            return uprof_scan_fail(&scan, error, "no '%s' up to here", table->fields[i].name);
    return true;
}

static void
fill_regs(const X86Dump *dump, UprofRegs *regs)
{
    const UprofX86Segments segments = {
        .cs_base = dump->cs_base,
        .ss_base = dump->ss_base,
        .cs_long = dump->cs_flags & SEGMENT_LONG,
        .cs_big = dump->cs_flags & SEGMENT_BIG,
        .ss_big = dump->ss_flags & SEGMENT_BIG,
    };

    *regs = (UprofRegs){
        .flags = dump->flags,
        .privilege = dump->privilege,
        .halted = dump->halted,
        .smm = dump->smm,
    };
    memcpy(regs->reg, dump->reg, sizeof(dump->reg));
    memcpy(regs->sys, dump->sys, sizeof(dump->sys));
    uprof_x86_finish_regs(regs, &segments);
}

static bool
parse_x86(UprofSlice block, UprofRegs *regs, GError **error)
{
    const FieldTable table = { x86_fields, G_N_ELEMENTS(x86_fields) };
    const UprofScan scan = { .name = "info registers", .rest = block };
    X86Dump dump = { 0 };
    unsigned form;

    if (!read_dump(block, &table, &dump, &form, error))
        return false;
    UprofRegs found;
    fill_regs(&dump, &found);
    if (form == FORM_32 && found.word_bytes == 8)
        return uprof_scan_fail(&scan, error, "'EIP' of a CPU that runs 64-bit code");
    *regs = found;
    return true;
}

typedef struct {
    uint64_t reg[UPROF_ARM_N_REGS];
    uint64_t pstate;
} ArmDump;

#define ARM_REG(number) (G_STRUCT_OFFSET(ArmDump, reg) + (number) * sizeof(uint64_t))
#define ARM_X(name, number)                                                                        \
    {                                                                                              \
        name, 0, FORM_64, UINT64_MAX, ARM_REG(UPROF_ARM_X0 + (number))                             \
    }

/* clang-format off */
static const Field arm_fields[] = {
    { "PC", 0, FORM_64, UINT64_MAX, ARM_REG(UPROF_ARM_PC) }, /* code of 32 bits has R15 instead */
    { "SP", 0, FORM_64, UINT64_MAX, ARM_REG(UPROF_ARM_SP) },
    ARM_X("X00", 0),  ARM_X("X01", 1),  ARM_X("X02", 2),  ARM_X("X03", 3),
    ARM_X("X04", 4),  ARM_X("X05", 5),  ARM_X("X06", 6),  ARM_X("X07", 7),
    ARM_X("X08", 8),  ARM_X("X09", 9),  ARM_X("X10", 10), ARM_X("X11", 11),
    ARM_X("X12", 12), ARM_X("X13", 13), ARM_X("X14", 14), ARM_X("X15", 15),
    ARM_X("X16", 16), ARM_X("X17", 17), ARM_X("X18", 18), ARM_X("X19", 19),
    ARM_X("X20", 20), ARM_X("X21", 21), ARM_X("X22", 22), ARM_X("X23", 23),
    ARM_X("X24", 24), ARM_X("X25", 25), ARM_X("X26", 26), ARM_X("X27", 27),
    ARM_X("X28", 28), ARM_X("X29", 29), ARM_X("X30", 30),
    { "PSTATE", 0, FORM_64, UINT64_MAX, G_STRUCT_OFFSET(ArmDump, pstate) },
    { "R13", 0, FORM_32, UINT32_MAX, ARM_REG(UPROF_ARM_SP) },
    { "R15", 0, FORM_32, UINT32_MAX, ARM_REG(UPROF_ARM_PC) },
    { "PSR", 0, FORM_32, UINT32_MAX, G_STRUCT_OFFSET(ArmDump, pstate) },
};
/* clang-format on */

/* QEMU prints no system registers. */
static bool
parse_aarch64(UprofSlice block, UprofRegs *regs, GError **error)
{
    const FieldTable table = { arm_fields, G_N_ELEMENTS(arm_fields) };
    ArmDump dump = { 0 };
    unsigned form;

    if (!read_dump(block, &table, &dump, &form, error))
        return false;
    *regs = (UprofRegs){ .flags = dump.pstate };
    memcpy(regs->reg, dump.reg, sizeof(dump.reg));
    if (form == FORM_32)
        regs->flags |= UPROF_ARM_PSTATE_AARCH32;
    uprof_aarch64_finish_regs(regs);
    return true;
}

/* clang-format off */
static const struct {
    const char *arch;
    bool (*parse)(UprofSlice block, UprofRegs *regs, GError **error);
} parsers[] = {
    { "x86_64",  parse_x86     },
    { "i686",    parse_x86     },
    { "aarch64", parse_aarch64 },
};
/* clang-format on */

bool
uprof_qemu_regs_parse(UprofSlice block, const UprofArch *arch, UprofRegs *regs, GError **error)
{
    const UprofScan scan = { .name = "info registers" };

    if (block.len > UPROF_QEMU_REGS_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "%zu bytes are too many", block.len);

    for (size_t i = 0; i < G_N_ELEMENTS(parsers); i++)
        if (strcmp(parsers[i].arch, arch->name) == 0)
            return parsers[i].parse(block, regs, error);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "QEMU's registers of architecture '%s' are not known", arch->name);
    return false;
}
