/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "uprof/vmcoreinfo.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofVmcoreinfo) info = uprof_vmcoreinfo_parse((UprofSlice){ data, size }, &error);

    check_answer(info != NULL, error);
    if (!info)
        return;
    const char *build_id = uprof_vmcoreinfo_build_id(info);
    g_assert(size <= UPROF_VMCOREINFO_BYTES_MAX);
    g_assert(g_utf8_validate(uprof_vmcoreinfo_release(info), -1, NULL));
    g_assert(strlen(uprof_vmcoreinfo_release(info)) > 0);
    g_assert(!build_id || (strlen(build_id) % 2 == 0 && strlen(build_id) <= 40));
}
