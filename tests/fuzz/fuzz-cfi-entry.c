/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An unwind table. The bits of the first byte: bit 0, a 32-bit image; bit 1, a .debug_frame. The
 * other bits are unused, so that inputs of fuzz-cfi-table.c are valid here, too.
 */
#include "fuzz.h"

#include "../../src/parse/cfi-entry-priv.h"

enum { IS_32 = 1, IS_DEBUG = 2 };

static void
check_program(UprofBytes program, const UprofCfiEntry *entry)
{
    g_assert(program.all.data == entry->rest.all.data);
    g_assert(program.all.len <= entry->rest.all.len);
    g_assert(program.at >= entry->rest.at && program.at <= program.all.len);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    const UprofCfiSection section = {
        .arch = uprof_arch_of_elf(data[0] & IS_32 ? 3 : 62), /* EM_386, EM_X86_64 */
        .name = "file",
        .start = 0x8000,
        .bytes = { data + 1, size - 1 },
        .is_eh = !(data[0] & IS_DEBUG),
    };
    UprofBytes bytes = uprof_cfi_entry_first(&section);
    UprofCfiCie last = { 0 };
    bool has_last = false;

    while (uprof_bytes_left(&bytes) > 0) {
        g_autoptr(GError) error = NULL;
        const size_t at = bytes.at;
        UprofCfiEntry entry;
        UprofCfiCie cie;
        UprofCfiFde fde;
        const bool ok = uprof_cfi_entry_next(&section, &bytes, &entry, &error);

        check_answer(ok, error);
        if (!ok)
            break;
        g_assert(entry.at == at && bytes.at > at);
        g_assert(entry.rest.all.len == bytes.at && entry.rest.at <= bytes.at);
        g_assert(!(entry.is_end && entry.is_cie));
        if (uprof_cfi_entry_cie(&section, &entry, &cie)) {
            g_assert(entry.is_cie && cie.at == at);
            g_assert(cie.return_reg < section.arch->n_regs);
            check_program(cie.program, &entry);
            last = cie;
            has_last = true;
        }
        if (has_last && uprof_cfi_entry_fde(&section, &entry, &last, &fde)) {
            g_assert(!entry.is_cie && !entry.is_end);
            g_assert(section.arch->word_bytes == 8 || fde.start <= UINT32_MAX);
            check_program(fde.program, &entry);
        }
    }
}
