/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-vcpu.h - reads registers from Xen's structures of a vCPU
 *
 * Xen returns the registers of a vCPU in one of two structures. A paravirtual guest gets the
 * structure of its own width, other guests always get the wide one. For these guests a second
 * record has the registers that the wide structure lacks. The structures are the same from Xen
 * 4.14 to 4.22 (xen/include/public: arch-x86/xen.h, foreign/reference.size, arch-x86/hvm/save.h).
 * The functions run in a hold, so they allocate only error messages.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/snapshot.h"

enum {
    UPROF_XEN_CONTEXT_BYTES = 5168,        /* struct vcpu_guest_context, x86_64 */
    UPROF_XEN_NARROW_CONTEXT_BYTES = 2800, /* the same, x86_32 */
    UPROF_XEN_HVM_CPU_BYTES = 1032,        /* struct hvm_hw_cpu */
};

/** UprofXenHvmCpu: registers of a PVH or HVM guest that vcpu_guest_context lacks */
typedef struct {
    uint64_t efer;         /* the MSR */
    uint64_t cr0, cr4;     /* mode of the vCPU when the record was read */
    uint64_t idt, gdt, tr; /* bases, linear addresses */
    uint16_t cs;           /* selector that @segments belong to */
    UprofX86Segments segments;
} UprofXenHvmCpu;

/**
 * uprof_xen_hvm_cpu_parse:
 * @record: struct hvm_hw_cpu, %UPROF_XEN_HVM_CPU_BYTES; newer versions of Xen may append to it
 * @cpu: (out): unchanged on failure
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool uprof_xen_hvm_cpu_parse(UprofSlice record, UprofXenHvmCpu *cpu, GError **error);

/**
 * uprof_xen_hvm_cpu_fits:
 * @cpu: a record that may be older than @regs
 * @regs: of the same vCPU
 *
 * Returns: false if the mode of the vCPU has changed since @cpu was read. Then @regs are wrong,
 *   because they depend on @cpu.
 */
bool uprof_xen_hvm_cpu_fits(const UprofXenHvmCpu *cpu, const UprofRegs *regs);

/**
 * uprof_xen_hvm_regs_parse:
 * @context: struct vcpu_guest_context of a PVH or HVM guest
 * @cpu: of the same vCPU; may be older than @context
 * @regs: (out): unchanged on failure
 * @cs: (out) (optional): selector of the code; if it differs from @cpu's, @cpu is too old
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool uprof_xen_hvm_regs_parse(UprofSlice context, const UprofXenHvmCpu *cpu, UprofRegs *regs,
                              uint16_t *cs, GError **error);

/**
 * uprof_xen_pv_regs_parse:
 * @context: struct vcpu_guest_context of a paravirtual guest, as wide as the guest
 * @word_bytes: width of the guest: 4 or 8
 * @regs: (out): unchanged on failure; the page-table root belongs to the current mode, and is a
 *   machine address
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool
uprof_xen_pv_regs_parse(UprofSlice context, unsigned word_bytes, UprofRegs *regs, GError **error);
