/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that are mapped in part. The first 8 bytes say which of the first 64 pages are missing; the
 * file follows. Pages are as in the file, but the last one is filled up with zeros.
 */
#include "../../src/parse/mapped-elf-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/cfi-table.h"
#include "uprof/mapped-elf.h"

enum { PAGE = 4096, MASK_BYTES = 8 };

typedef struct {
    uint64_t missing;
    UprofSlice file;
    uint64_t n_read;
} Source;

/* A file of one page may name tables of several megabytes. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 5 * 1000,
        .base_kib = 80 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 200,
    };
}

static void
read_pages(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here)
{
    Source *source = data;

    source->n_read += n;
    memset(bytes, 0, (size_t)n * PAGE);
    for (unsigned i = 0; i < n; i++) {
        const uint64_t page = first + i;
        const uint64_t at = page * PAGE;
        is_here[i] = page < (source->file.len + PAGE - 1) / PAGE &&
                     !(page < 64 && source->missing >> page & 1);
        if (is_here[i])
            memcpy(bytes + (size_t)i * PAGE, (const uint8_t *)source->file.data + at,
                   MIN(source->file.len - at, (size_t)PAGE));
    }
}

static void
check_symbols(const UprofMappedElf *mapped)
{
    for (guint i = 0; i < mapped->elf.symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(mapped->elf.symbols, UprofSymbol, i);
        bool is_inside = false;
        g_assert(symbol->code && symbol->name.len > 0);
        for (guint k = 0; k < mapped->parts->len && !is_inside; k++) {
            const GByteArray *part = g_ptr_array_index(mapped->parts, k);
            is_inside = is_part(symbol->name, (UprofSlice){ part->data, part->len });
        }
        g_assert(is_inside);
    }
}

static void
check_text(const UprofMappedElf *mapped)
{
    uint64_t end = 0;

    for (guint i = 0; i < mapped->elf.text->len; i++) {
        const UprofElfRange *text = &g_array_index(mapped->elf.text, UprofElfRange, i);
        g_assert(text->start >= end && text->len > 0 && text->bytes.len == 0);
        end = text->start + text->len;
        g_assert(end > text->start);
    }
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_auto(UprofMappedElf) mapped = { 0 };
    Source source = { 0 };

    if (size < MASK_BYTES)
        return;
    memcpy(&source.missing, data, MASK_BYTES);
    source.missing = GUINT64_FROM_LE(source.missing);
    source.file = (UprofSlice){ data + MASK_BYTES, size - MASK_BYTES };
    const UprofMappedReader reader = { read_pages, &source };
    uint64_t offset;
    uprof_mapped_elf_find_object(&reader, "_PyRuntime", &offset);
    g_assert(source.n_read <= UPROF_MAPPED_ELF_BYTES_MAX / PAGE);
    source.n_read = 0;
    const bool is_known = uprof_mapped_elf_read(&reader, &mapped);
    g_assert(source.n_read <= UPROF_MAPPED_ELF_BYTES_MAX / PAGE);
    if (!is_known)
        return;
    g_assert(mapped.n_here + mapped.n_missing == source.n_read);
    g_assert(mapped.elf.symbols->len <= 2 * UPROF_MAPPED_ELF_SYMBOLS_MAX);
    check_symbols(&mapped);
    check_text(&mapped);
    for (guint i = 0; i < mapped.frames->len; i++)
        g_assert(g_array_index(mapped.frames, uint64_t, i) < mapped.elf.eh_frame.bytes.len);
    uprof_cfi_free(uprof_cfi_compile_listed(&mapped.elf, mapped.frames, "file", NULL));
}
