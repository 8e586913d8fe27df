/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "paging-priv.h"

static const UprofPaging *const rows[UPROF_N_FAMILIES] = {
    [UPROF_FAMILY_X86] = &uprof_paging_x86,
    [UPROF_FAMILY_ARM] = &uprof_paging_aarch64,
};

const UprofPaging *
uprof_paging_find(const UprofArch *arch)
{
    return rows[arch->family];
}

const char *
uprof_paging_name(const UprofArch *arch, const UprofRegs *regs)
{
    return uprof_paging_find(arch)->name(regs);
}

void
uprof_paging_use_process(const UprofArch *arch, UprofRegs *regs, uint64_t root)
{
    uprof_paging_find(arch)->use_process(regs, root);
}
