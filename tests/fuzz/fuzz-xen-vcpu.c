/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/xen-vcpu.h"

static void
check_regs(bool ok, const UprofRegs *regs, const GError *error)
{
    check_answer(ok, error);
    if (!ok)
        return;
    g_assert(regs->word_bytes == 8 || regs->word_bytes == 4 || regs->word_bytes == 2);
    g_assert(regs->privilege <= 3);
    if (regs->word_bytes == 8)
        return;
    g_assert(regs->pc <= UINT32_MAX && regs->sp <= UINT32_MAX && regs->fp <= UINT32_MAX);
}

static void
parse_pv(UprofSlice bytes, unsigned word_bytes)
{
    UprofRegs regs;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_xen_pv_regs_parse(bytes, word_bytes, &regs, &error);
    check_regs(ok, &regs, error);
}

/* Parses a record and the context that follows it. */
static void
parse_hvm(UprofSlice bytes)
{
    const size_t len = MIN(bytes.len, (size_t)UPROF_XEN_HVM_CPU_BYTES);
    UprofSlice record, rest;
    UprofXenHvmCpu cpu = { 0 };
    UprofRegs regs;
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) regs_error = NULL;

    g_assert(uprof_slice_sub(bytes, 0, len, &record));
    g_assert(uprof_slice_sub(bytes, len, bytes.len - len, &rest));
    const bool has_cpu = uprof_xen_hvm_cpu_parse(record, &cpu, &error);
    check_answer(has_cpu, error);
    const bool ok = uprof_xen_hvm_regs_parse(rest, &cpu, &regs, NULL, &regs_error);
    check_regs(ok, &regs, regs_error);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice bytes = { data, size };

    parse_pv(bytes, 8);
    parse_pv(bytes, 4);
    parse_hvm(bytes);
}
