/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-image-priv.h"

#include <sys/mman.h>

/* Neighboring pages with the same access rights. */
typedef struct {
    uint64_t start, end;
    bool executable, writable;
} Piece;

static bool
is_in_range(const UprofLinuxArch *arch, uint64_t gva)
{
    return gva >= arch->image_start && gva < arch->image_end;
}

static bool
is_mapped(const UprofLinuxArch *arch, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
          uint64_t gva)
{
    UprofMapping mapping;

    return is_in_range(arch, gva) && uprof_mem_find(mem, vcpu, regs, gva, &mapping);
}

static void
add_page(UprofLinuxImage *image, uint64_t gva, uint64_t len, const UprofMapping *mapping)
{
    Piece *last = image->pieces->len > 0
                      ? &g_array_index(image->pieces, Piece, image->pieces->len - 1)
                      : NULL;
    const Piece page = { gva, gva + len, mapping->executable, mapping->writable };

    if (last && last->end == gva && last->executable == page.executable &&
        last->writable == page.writable)
        last->end = page.end;
    else
        g_array_append_val(image->pieces, page);
}

/* The image begins at the lowest step of a mapped row, and ends before a long unmapped piece. */
static void
find_extent(UprofLinuxImage *image, const UprofLinuxArch *arch, UprofMem *mem, unsigned vcpu,
            uint64_t anchor)
{
    const uint64_t step = arch->image_step_bytes;
    const UprofRegs *regs = &image->regs;
    uint64_t gva = anchor - anchor % step;
    UprofMapping mapping;

    while (gva - arch->image_start >= step && anchor - gva < UPROF_LINUX_IMAGE_BYTES_MAX - step &&
           is_mapped(arch, mem, vcpu, regs, gva - step + arch->image_head_bytes))
        gva -= step;
    image->base = image->end = gva;
    while (is_in_range(arch, gva) && gva - image->base < UPROF_LINUX_IMAGE_BYTES_MAX &&
           gva - image->end <= arch->image_hole_bytes_max) {
        uint64_t len = UPROF_PAGE_BYTES;
        if (uprof_mem_find(mem, vcpu, regs, gva, &mapping)) {
            len = MIN(mapping.left, image->base + UPROF_LINUX_IMAGE_BYTES_MAX - gva);
            add_page(image, gva, len, &mapping);
            image->end = gva + len;
        }
        gva += len;
    }
}

static void
copy_pieces(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu, bool only_constants)
{
    for (guint i = 0; i < image->pieces->len; i++) {
        const Piece *piece = &g_array_index(image->pieces, Piece, i);
        const bool is_constant = !piece->executable && !piece->writable;
        if (is_constant == only_constants)
            uprof_mem_read_bulk(mem, vcpu, &image->regs, piece->start,
                                image->bytes + (piece->start - image->base),
                                piece->end - piece->start);
    }
}

static void
list_code(UprofLinuxImage *image)
{
    image->code = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));
    for (guint i = 0; i < image->pieces->len; i++) {
        const Piece *piece = &g_array_index(image->pieces, Piece, i);
        const UprofSymCode code = { piece->start, piece->end };
        if (piece->executable)
            g_array_append_val(image->code, code);
    }
}

UprofLinuxImage *
uprof_linux_image_find(const UprofLinuxArch *arch, UprofMem *mem, unsigned vcpu,
                       const UprofRegs *regs)
{
    uint64_t anchor;

    if (regs->word_bytes == 0 || !arch->is_kernel_mode(regs) ||
        !arch->find_anchor(mem, vcpu, regs, &anchor))
        return NULL;
    g_autoptr(UprofLinuxImage) image = g_new0(UprofLinuxImage, 1);
    image->regs = *regs;
    image->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    arch->use_kernel_root(mem, vcpu, &image->regs, anchor);
    find_extent(image, arch, mem, vcpu, anchor);
    list_code(image);
    if (image->end == image->base)
        return NULL;
    /* Unmapped pieces of megabytes cost nothing: the host allocates pages on first write. */
    void *bytes = mmap(NULL, image->end - image->base, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    image->bytes = bytes;
    copy_pieces(image, mem, vcpu, true);
    return g_steal_pointer(&image);
}

void
uprof_linux_image_copy_rest(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu)
{
    copy_pieces(image, mem, vcpu, false);
}

void
uprof_linux_image_copy(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu, uint64_t start,
                       uint64_t end)
{
    const uint64_t first = start - start % UPROF_PAGE_BYTES;

    if (first < image->base || end <= start || end > image->end)
        return;
    const uint64_t len = (end - first + UPROF_PAGE_BYTES - 1) / UPROF_PAGE_BYTES * UPROF_PAGE_BYTES;
    uprof_mem_read_bulk(mem, vcpu, &image->regs, first, image->bytes + (first - image->base), len);
}

UprofSlice
uprof_linux_image_slice(const UprofLinuxImage *image)
{
    return (UprofSlice){ image->bytes, image->end - image->base };
}

bool
uprof_linux_image_part(const UprofLinuxImage *image, uint64_t start, uint64_t end, UprofSlice *part)
{
    if (start < image->base || end < start || end > image->end)
        return false;
    *part = (UprofSlice){ image->bytes + (start - image->base), end - start };
    return true;
}

void
uprof_linux_image_free(UprofLinuxImage *image)
{
    if (!image)
        return;
    if (image->bytes)
        munmap(image->bytes, image->end - image->base);
    g_array_unref(image->pieces);
    g_clear_pointer(&image->code, g_array_unref);
    g_free(image);
}
