/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-memory-priv.h"

#include "uprof/copies.h"

#include <string.h>

bool
uprof_kernel_read(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len)
{
    return uprof_copies_read(memory->copies, gva, into, len) ||
           (!memory->is_copy &&
            uprof_mem_read(memory->mem, memory->vcpu, memory->regs, gva, into, len));
}

bool
uprof_kernel_read_word(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word)
{
    if (!uprof_kernel_read(memory, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

bool
uprof_kernel_read_always(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len)
{
    return uprof_copies_read(memory->copies, gva, into, len) ||
           (!memory->is_copy &&
            uprof_mem_read_always(memory->mem, memory->vcpu, memory->regs, gva, into, len));
}

bool
uprof_kernel_read_word_always(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word)
{
    if (!uprof_kernel_read_always(memory, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

bool
uprof_kernel_read_u32_always(const UprofKernelMemory *memory, uint64_t gva, uint32_t *number)
{
    if (!uprof_kernel_read_always(memory, gva, number, sizeof(*number)))
        return false;
    *number = GUINT32_FROM_LE(*number);
    return true;
}

bool
uprof_kernel_read_pieces(const UprofKernelMemory *memory, UprofMemPiece *pieces, unsigned n)
{
    bool has_all = true;

    uprof_mem_read_pieces(memory->mem, memory->vcpu, memory->regs, pieces, n);
    for (unsigned i = 0; i < n; i++)
        has_all = has_all && !pieces[i].is_missing;
    return has_all;
}

void
uprof_kernel_begin_pieces(const UprofKernelMemory *memory, UprofMemPiece *pieces, unsigned n)
{
    uprof_mem_begin_pieces(memory->mem, memory->vcpu, memory->regs, pieces, n);
}

void
uprof_kernel_end_pieces(const UprofKernelMemory *memory)
{
    uprof_mem_end_pieces(memory->mem);
}

bool
uprof_kernel_read_now(const UprofKernelMemory *memory, uint64_t gva, void *into, size_t len)
{
    UprofMemPiece piece = { .gva = gva, .into = into, .len = (uint32_t)len };

    return uprof_kernel_read_pieces(memory, &piece, 1);
}

bool
uprof_kernel_read_word_now(const UprofKernelMemory *memory, uint64_t gva, uint64_t *word)
{
    if (!uprof_kernel_read_now(memory, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

bool
uprof_kernel_read_name(const UprofKernelMemory *memory, uint64_t gva, char *name)
{
    /* byte by byte: a short name may end right before an unmapped page */
    for (unsigned i = 0; i < UPROF_KERNEL_NAME_BYTES; i++) {
        if (!uprof_kernel_read(memory, gva + i, &name[i], 1))
            return false;
        if (name[i] == '\0')
            return i > 0 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    }
    return false;
}
