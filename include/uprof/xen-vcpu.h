/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-vcpu.h - what Xen tells of a vCPU, as registers
 *
 * Xen gives the registers of a vCPU in one of two structures, by the width of
 * the guest if it is paravirtual, and always in the wide one if it is not; for
 * such a guest a second record says what the first leaves out. All are the same
 * from Xen 4.14 to 4.22 (xen/include/public: arch-x86/xen.h, foreign/reference.size,
 * arch-x86/hvm/save.h). Allocates nothing but error messages, so that it may be
 * used in a hold.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/snapshot.h"

enum {
    UPROF_XEN_CONTEXT_BYTES = 5168,        /* struct vcpu_guest_context, x86_64 */
    UPROF_XEN_NARROW_CONTEXT_BYTES = 2800, /* the same, x86_32 */
    UPROF_XEN_HVM_CPU_BYTES = 1032,        /* struct hvm_hw_cpu */
};

/**
 * UprofXenHvmCpu: what the registers of a PVH or HVM guest do not say
 * @efer: the MSR
 * @cr0, @cr4: which mode it was in then; the registers have their own
 * @idt, @gdt, @tr: bases, linear addresses
 * @cs: selector that @segments were read with
 * @segments: what decides which code runs, and where
 */
typedef struct {
    uint64_t efer;
    uint64_t cr0, cr4;
    uint64_t idt, gdt, tr;
    uint16_t cs;
    UprofX86Segments segments;
} UprofXenHvmCpu;

/**
 * uprof_xen_hvm_cpu_parse:
 * @record: struct hvm_hw_cpu; newer versions of Xen may append to it
 * @cpu: (out): untouched on failure
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool uprof_xen_hvm_cpu_parse(UprofSlice record, UprofXenHvmCpu *cpu, GError **error);

/**
 * uprof_xen_hvm_cpu_fits:
 * @cpu: of some earlier moment
 * @regs: of the same vCPU
 *
 * Returns: whether it was in the same mode then; else @regs, which are read by @cpu,
 *   are wrong
 */
bool uprof_xen_hvm_cpu_fits(const UprofXenHvmCpu *cpu, const UprofRegs *regs);

/**
 * uprof_xen_hvm_regs_parse:
 * @context: struct vcpu_guest_context of a PVH or HVM guest
 * @cpu: of the same vCPU, from some earlier moment
 * @regs: (out): untouched on failure
 * @cs: (out) (optional): selector of the code; @cpu's segments are right for its own only
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool uprof_xen_hvm_regs_parse(UprofSlice context, const UprofXenHvmCpu *cpu, UprofRegs *regs,
                              uint16_t *cs, GError **error);

/**
 * uprof_xen_pv_regs_parse:
 * @context: struct vcpu_guest_context of a paravirtual guest, as wide as the guest
 * @word_bytes: width of the guest: 4 or 8
 * @regs: (out): untouched on failure; its page-table root is that of the mode it
 *   is in, and a machine address
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA
 */
bool
uprof_xen_pv_regs_parse(UprofSlice context, unsigned word_bytes, UprofRegs *regs, GError **error);
