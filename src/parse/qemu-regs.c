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

typedef struct {
    uint64_t reg[UPROF_X86_N_REGS];
    uint64_t flags;
    uint64_t privilege, smm, halted;
    uint64_t cs_base, cs_flags, ss_base, ss_flags;
    uint64_t sys[UPROF_SYS_MAX];
} X86Dump;

enum { FORM_64 = 1, FORM_32 = 2, FORM_ANY = FORM_64 | FORM_32 };

typedef struct {
    const char *name;
    unsigned word; /* index of the word behind "=" */
    unsigned form;
    uint64_t max;
    size_t offset;
} Field;

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
read_field(const Field *field, UprofSlice behind, X86Dump *dump)
{
    UprofSlice word = { NULL, 0 };

    for (unsigned i = 0; i <= field->word; i++)
        if (!uprof_scan_word(&behind, &word))
            return false;
    return uprof_slice_to_uint(word, 16, 0, field->max, G_STRUCT_MEMBER_P(dump, field->offset));
}

static bool
read_line(const UprofScan *scan, UprofSlice line, X86Dump *dump, bool *seen, GError **error)
{
    UprofSlice name;

    while (take_name(&line, &name)) {
        for (size_t i = 0; i < G_N_ELEMENTS(x86_fields); i++) {
            const Field *field = &x86_fields[i];

            if (seen[i] || !uprof_slice_is(name, field->name))
                continue;
            if (!read_field(field, line, dump))
                return uprof_scan_fail(scan, error, "bad value of '%s'", field->name);
            seen[i] = true;
        }
    }
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
    UprofScan scan = { .name = "info registers", .rest = block };
    X86Dump dump = { 0 };
    bool seen[G_N_ELEMENTS(x86_fields)] = { false };
    UprofSlice line;

    while (uprof_scan_line(&scan, &line))
        if (!read_line(&scan, line, &dump, seen, error))
            return false;

    const unsigned form = seen[0] ? FORM_64 : FORM_32;
    for (size_t i = 0; i < G_N_ELEMENTS(x86_fields); i++)
        if ((x86_fields[i].form & form) && !seen[i])
            return uprof_scan_fail(&scan, error, "no '%s' up to here", x86_fields[i].name);

    UprofRegs found;
    fill_regs(&dump, &found);
    if (form == FORM_32 && found.word_bytes == 8)
        return uprof_scan_fail(&scan, error, "'EIP' of a CPU that runs 64-bit code");
    *regs = found;
    return true;
}

/* clang-format off */
static const struct {
    const char *arch;
    bool (*parse)(UprofSlice block, UprofRegs *regs, GError **error);
} parsers[] = {
    { "x86_64", parse_x86 },
    { "i686",   parse_x86 },
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
