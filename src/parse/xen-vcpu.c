/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/xen-vcpu.h"

#include <string.h>

/*
 * context  = 512 bytes of FPU, flags, user registers, traps, ..., control registers, ...
 * hvm cpu  = 512 bytes of FPU, registers, segments, ..., MSRs, ...
 *
 * The fields have fixed offsets and are little-endian. Only the fields of the tables below are
 * read.
 */

/* Bits of the context's flags (arch-x86/xen.h) */
#define IN_KERNEL UINT64_C(0x4)

/* Attributes of a segment in hvm_hw_cpu: AMD's, without the limit's bits (arch-x86/hvm/save.h) */
#define ATTRIBUTE_LONG 0x200u
#define ATTRIBUTE_BIG 0x400u

/* Selector of 32-bit user code of a 64-bit paravirtual guest (arch-x86/xen-x86_64.h) */
#define FLAT_USER_CS32 0xe023u

#define FRAME_MASK UINT64_C(0x000ffffffffff000)

/* The fields of a wide or narrow context that are read */
typedef struct {
    uint64_t flags;
    uint64_t reg[UPROF_X86_N_REGS];
    uint64_t rflags;
    uint64_t cs;
    uint64_t control[5]; /* CR0 to CR4; CR1 is the page-table root of user mode */
    uint64_t entry;      /* entry point for events; wide contexts only */
} Context;

typedef struct {
    uint16_t at;
    uint8_t len;
    size_t offset; /* in the struct that gets the value */
} Field;

#define AT(type, member) G_STRUCT_OFFSET(type, member)
#define REG(number) (AT(Context, reg) + (number) * sizeof(uint64_t))
#define CONTROL(number) (AT(Context, control) + (number) * sizeof(uint64_t))

/* clang-format off */
static const Field wide_fields[] = {
    { 512,  8, AT(Context, flags)       },
    { 520,  8, REG(UPROF_X86_R15)       },
    { 528,  8, REG(UPROF_X86_R8 + 6)    },
    { 536,  8, REG(UPROF_X86_R8 + 5)    },
    { 544,  8, REG(UPROF_X86_R8 + 4)    },
    { 552,  8, REG(UPROF_X86_RBP)       },
    { 560,  8, REG(UPROF_X86_RBX)       },
    { 568,  8, REG(UPROF_X86_R8 + 3)    },
    { 576,  8, REG(UPROF_X86_R8 + 2)    },
    { 584,  8, REG(UPROF_X86_R8 + 1)    },
    { 592,  8, REG(UPROF_X86_R8)        },
    { 600,  8, REG(UPROF_X86_RAX)       },
    { 608,  8, REG(UPROF_X86_RCX)       },
    { 616,  8, REG(UPROF_X86_RDX)       },
    { 624,  8, REG(UPROF_X86_RSI)       },
    { 632,  8, REG(UPROF_X86_RDI)       },
    { 648,  8, REG(UPROF_X86_RIP)       },
    { 656,  2, AT(Context, cs)          },
    { 664,  8, AT(Context, rflags)      },
    { 672,  8, REG(UPROF_X86_RSP)       },
    { 4984, 8, CONTROL(0)               },
    { 4992, 8, CONTROL(1)               },
    { 5008, 8, CONTROL(3)               },
    { 5016, 8, CONTROL(4)               },
    { 5112, 8, AT(Context, entry)       },
};

static const Field narrow_fields[] = {
    { 512,  4, AT(Context, flags)       },
    { 516,  4, REG(UPROF_X86_RBX)       },
    { 520,  4, REG(UPROF_X86_RCX)       },
    { 524,  4, REG(UPROF_X86_RDX)       },
    { 528,  4, REG(UPROF_X86_RSI)       },
    { 532,  4, REG(UPROF_X86_RDI)       },
    { 536,  4, REG(UPROF_X86_RBP)       },
    { 540,  4, REG(UPROF_X86_RAX)       },
    { 548,  4, REG(UPROF_X86_RIP)       },
    { 552,  2, AT(Context, cs)          },
    { 556,  4, AT(Context, rflags)      },
    { 560,  4, REG(UPROF_X86_RSP)       },
    { 2716, 4, CONTROL(0)               },
    { 2728, 4, CONTROL(3)               },
    { 2732, 4, CONTROL(4)               },
};

/* The fields of hvm_hw_cpu that are read */
typedef struct {
    uint64_t cr0, cr4, cs, cs_base, cs_attributes, ss_base, ss_attributes, tr, idt, gdt, efer;
} HvmCpu;

static const Field hvm_fields[] = {
    { 656,  8, AT(HvmCpu, cr0)           },
    { 680,  8, AT(HvmCpu, cr4)           },
    { 736,  4, AT(HvmCpu, cs)            },
    { 808,  8, AT(HvmCpu, cs_base)       },
    { 848,  8, AT(HvmCpu, ss_base)       },
    { 856,  8, AT(HvmCpu, tr)            },
    { 872,  8, AT(HvmCpu, idt)           },
    { 880,  8, AT(HvmCpu, gdt)           },
    { 888,  4, AT(HvmCpu, cs_attributes) },
    { 908,  4, AT(HvmCpu, ss_attributes) },
    { 992,  8, AT(HvmCpu, efer)          },
};
/* clang-format on */

static bool
fail_short(const char *name, size_t len, GError **error)
{
    UprofBytes bytes = { .name = name };

    return uprof_bytes_fail(&bytes, error, "%zu bytes are too few", len);
}

static uint64_t
read_number(const uint8_t *bytes, unsigned len)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (len) {
    case 2:
        memcpy(&two, bytes, sizeof(two));
        return GUINT16_FROM_LE(two);
    case 4:
        memcpy(&four, bytes, sizeof(four));
        return GUINT32_FROM_LE(four);
    default:
        memcpy(&eight, bytes, sizeof(eight));
        return GUINT64_FROM_LE(eight);
    }
}

/*
 * Reads @fields into a struct of 64-bit numbers. Runs while the guest is held, so it is short.
 * Returns: false if a field lies outside @slice
 */
static bool
read_fields(UprofSlice slice, const Field *fields, size_t n, void *into)
{
    for (size_t i = 0; i < n; i++) {
        if ((size_t)fields[i].at + fields[i].len > slice.len)
            return false;
        const uint64_t number =
            read_number((const uint8_t *)slice.data + fields[i].at, fields[i].len);
        memcpy(G_STRUCT_MEMBER_P(into, fields[i].offset), &number, sizeof(number));
    }
    return true;
}

bool
uprof_xen_hvm_cpu_parse(UprofSlice record, UprofXenHvmCpu *cpu, GError **error)
{
    HvmCpu found;

    if (record.len < UPROF_XEN_HVM_CPU_BYTES ||
        !read_fields(record, hvm_fields, G_N_ELEMENTS(hvm_fields), &found))
        return fail_short("hvm_hw_cpu", record.len, error);

    *cpu = (UprofXenHvmCpu){
        .efer = found.efer,
        .cr0 = found.cr0,
        .cr4 = found.cr4,
        .idt = found.idt,
        .gdt = found.gdt,
        .tr = found.tr,
        .cs = (uint16_t)found.cs,
        .segments = {
            .cs_base = found.cs_base,
            .ss_base = found.ss_base,
            .cs_long = found.cs_attributes & ATTRIBUTE_LONG,
            .cs_big = found.cs_attributes & ATTRIBUTE_BIG,
            .ss_big = found.ss_attributes & ATTRIBUTE_BIG,
        },
    };
    return true;
}

static bool
read_context(UprofSlice slice, unsigned word_bytes, Context *context, GError **error)
{
    UprofBytes bytes = { .name = "vcpu_guest_context" };
    const bool is_wide = word_bytes == 8;
    const size_t len = is_wide ? UPROF_XEN_CONTEXT_BYTES : UPROF_XEN_NARROW_CONTEXT_BYTES;

    *context = (Context){ 0 };
    if (slice.len != len)
        return uprof_bytes_fail(&bytes, error, "%zu bytes, not %zu", slice.len, len);
    if (!(is_wide ? read_fields(slice, wide_fields, G_N_ELEMENTS(wide_fields), context)
                  : read_fields(slice, narrow_fields, G_N_ELEMENTS(narrow_fields), context)))
        return fail_short(bytes.name, slice.len, error);
    return true;
}

/* Fills the registers that all types of guests share. */
static void
fill_common_regs(const Context *context, UprofRegs *regs)
{
    *regs = (UprofRegs){ .flags = context->rflags };
    for (unsigned i = 0; i < UPROF_X86_N_REGS; i++)
        regs->reg[i] = context->reg[i];
    regs->sys[UPROF_X86_CR0] = context->control[0];
    regs->sys[UPROF_X86_CR3] = context->control[3];
    regs->sys[UPROF_X86_CR4] = context->control[4];
}

bool
uprof_xen_hvm_cpu_fits(const UprofXenHvmCpu *cpu, const UprofRegs *regs)
{
    const uint64_t cr0 = cpu->cr0 ^ regs->sys[UPROF_X86_CR0];
    const uint64_t cr4 = cpu->cr4 ^ regs->sys[UPROF_X86_CR4];

    return !(cr0 & (UPROF_X86_CR0_PE | UPROF_X86_CR0_PG)) &&
           !(cr4 & (UPROF_X86_CR4_PAE | UPROF_X86_CR4_LA57));
}

bool
uprof_xen_hvm_regs_parse(UprofSlice slice, const UprofXenHvmCpu *cpu, UprofRegs *regs, uint16_t *cs,
                         GError **error)
{
    Context context;
    UprofRegs found;

    if (!read_context(slice, 8, &context, error))
        return false;
    fill_common_regs(&context, &found);
    found.sys[UPROF_X86_EFER] = cpu->efer;
    found.sys[UPROF_X86_IDT] = cpu->idt;
    found.sys[UPROF_X86_GDT] = cpu->gdt;
    found.sys[UPROF_X86_TR] = cpu->tr;
    /* in real mode the low bits of a selector are part of an address */
    if (found.sys[UPROF_X86_CR0] & UPROF_X86_CR0_PE)
        found.privilege = context.cs & 3;
    uprof_x86_finish_regs(&found, &cpu->segments);
    *regs = found;
    if (cs)
        *cs = (uint16_t)context.cs;
    return true;
}

/* CR3 of a 32-bit guest has the frame number rotated, so that the number fits into 32 bits. */
static uint64_t
unpack_root(uint64_t cr3)
{
    const uint32_t value = (uint32_t)cr3;

    return (uint64_t)(value >> 12 | value << 20) << 12;
}

bool
uprof_xen_pv_regs_parse(UprofSlice slice, unsigned word_bytes, UprofRegs *regs, GError **error)
{
    Context context;
    UprofRegs found;

    if (!read_context(slice, word_bytes, &context, error))
        return false;
    fill_common_regs(&context, &found);
    const bool in_kernel = context.flags & IN_KERNEL;
    const bool is_wide = word_bytes == 8;
    /* the context has no segment descriptors: assume flat segments, which guests use */
    const UprofX86Segments flat = {
        .cs_long = is_wide && context.cs != FLAT_USER_CS32,
        .cs_big = true,
        .ss_big = true,
    };

    found.privilege = in_kernel ? 0 : 3;
    found.sys[UPROF_X86_XEN_PV] = word_bytes * 8;
    found.sys[UPROF_X86_EFER] = UPROF_X86_EFER_NXE | (is_wide ? UPROF_X86_EFER_LMA : 0);
    found.sys[UPROF_X86_XEN_ENTRY] = context.entry;
    if (!is_wide)
        found.sys[UPROF_X86_CR3] = unpack_root(context.control[3]);
    found.sys[UPROF_X86_XEN_ROOT] = found.sys[UPROF_X86_CR3];
    if (is_wide && !in_kernel && context.control[1] != 0)
        found.sys[UPROF_X86_CR3] = context.control[1] & FRAME_MASK;
    uprof_x86_finish_regs(&found, &flat);
    *regs = found;
    return true;
}
