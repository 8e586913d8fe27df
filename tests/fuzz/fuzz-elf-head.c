/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/elf-head.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    UprofElfHead head;

    if (!uprof_elf_head_parse((UprofSlice){ data, size }, &head))
        return;
    g_assert(head.n_loads > 0 && head.n_loads <= UPROF_ELF_HEAD_LOADS_MAX);
    g_assert(head.build_id_len <= UPROF_ELF_HEAD_BUILD_ID_BYTES_MAX);
    g_assert(head.first_page == head.loads[0].address);
    for (unsigned i = 0; i < head.n_loads; i++)
        g_assert(head.loads[i].offset % 4096 == 0 && head.loads[i].address % 4096 == 0);
}
