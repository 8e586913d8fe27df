/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arch-table-priv.h"

#include "uprof/linux-arch.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *name; /* as in UprofArch */
    const UprofLinuxArch *row;
} archs[] = {
    { "x86_64",  &uprof_linux_arch_x86_64 },
    /* The processor may still support 64-bit mode; is_kernel_mode() decides. */
    { "i686",    &uprof_linux_arch_x86_64 },
    { "aarch64", &uprof_linux_arch_aarch64 },
};
/* clang-format on */

const UprofLinuxArch *
uprof_linux_arch_find(const UprofArch *arch)
{
    for (size_t i = 0; i < G_N_ELEMENTS(archs); i++)
        if (strcmp(archs[i].name, arch->name) == 0)
            return archs[i].row;
    return NULL;
}
