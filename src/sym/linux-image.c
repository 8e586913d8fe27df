/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "linux-priv.h"

#include <string.h>
#include <sys/mman.h>

/*
 * Where x86_64 Linux has its kernel: at the top, in one gigabyte, before its modules
 * (Linux, Documentation/arch/x86/x86_64/mm.rst). KASLR moves it in steps of 2 MiB.
 */
#define KERNEL_START UINT64_C(0xffffffff80000000)
#define KERNEL_END UINT64_C(0xffffffffc0000000)

enum {
    STEP_BYTES = 2 * 1024 * 1024,
    HOLE_BYTES_MAX = 8 * 1024 * 1024, /* what was used at boot only is unmapped; 5.3 MiB seen */
};

/* Page-table isolation: this bit tells a process's own tables from the kernel's, beside them. */
#define USER_ROOT_BIT UINT64_C(0x1000)
#define ROOT_LOW_BITS UINT64_C(0x1fff) /* and the address-space number below it */

typedef struct {
    uint64_t start, end;
    bool executable, writable;
} Piece;

static bool
is_kernel(uint64_t address)
{
    return address >= KERNEL_START && address < KERNEL_END;
}

/* An interrupt gate (Intel SDM, volume 3, 6.14.1): three parts of its handler's address. */
static bool
read_gate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t *handler)
{
    uint8_t gate[16];
    uint16_t low, middle;
    uint32_t high;

    if (!uprof_mem_read(mem, vcpu, regs, regs->sys[UPROF_X86_IDT], gate, sizeof(gate)))
        return false;
    memcpy(&low, gate, sizeof(low));
    memcpy(&middle, gate + 6, sizeof(middle));
    memcpy(&high, gate + 8, sizeof(high));
    *handler = GUINT16_FROM_LE(low) | (uint64_t)GUINT16_FROM_LE(middle) << 16 |
               (uint64_t)GUINT32_FROM_LE(high) << 32;
    return true;
}

/* An address in the kernel: what runs, or what an interrupt would run. */
static bool
find_anchor(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t *anchor)
{
    *anchor = regs->pc;
    if (regs->privilege == 0 && is_kernel(regs->pc))
        return true;
    *anchor = regs->sys[UPROF_X86_XEN_ENTRY];
    return (regs->sys[UPROF_X86_XEN_PV] != 0 || read_gate(mem, vcpu, regs, anchor)) &&
           is_kernel(*anchor);
}

static bool
is_mapped(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva)
{
    UprofMapping mapping;

    return is_kernel(gva) && uprof_mem_find(mem, vcpu, regs, gva, &mapping);
}

/* A process's own tables map of the kernel only where it is entered. */
static void
take_kernel_root(UprofMem *mem, unsigned vcpu, UprofRegs *regs, uint64_t anchor)
{
    const uint64_t root = regs->sys[UPROF_X86_CR3];

    if (regs->sys[UPROF_X86_XEN_PV] != 0 && regs->sys[UPROF_X86_XEN_ROOT] != 0) {
        regs->sys[UPROF_X86_CR3] = regs->sys[UPROF_X86_XEN_ROOT];
        return;
    }
    if (is_mapped(mem, vcpu, regs, anchor - STEP_BYTES) ||
        is_mapped(mem, vcpu, regs, anchor + STEP_BYTES) || !(root & USER_ROOT_BIT))
        return;
    regs->sys[UPROF_X86_CR3] = root & ~ROOT_LOW_BITS;
    if (!is_mapped(mem, vcpu, regs, anchor))
        regs->sys[UPROF_X86_CR3] = root;
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

static void
find_extent(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu, uint64_t anchor)
{
    const UprofRegs *regs = &image->regs;
    uint64_t gva = anchor - anchor % STEP_BYTES;
    UprofMapping mapping;

    while (gva - KERNEL_START >= STEP_BYTES &&
           anchor - gva < UPROF_LINUX_IMAGE_BYTES_MAX - STEP_BYTES &&
           is_mapped(mem, vcpu, regs, gva - STEP_BYTES))
        gva -= STEP_BYTES;
    image->base = image->end = gva;
    while (is_kernel(gva) && gva - image->base < UPROF_LINUX_IMAGE_BYTES_MAX &&
           gva - image->end <= HOLE_BYTES_MAX) {
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
note_code(UprofLinuxImage *image)
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
uprof_linux_image_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs)
{
    uint64_t anchor;

    if (regs->word_bytes == 0 || !(regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_LMA) ||
        !find_anchor(mem, vcpu, regs, &anchor))
        return NULL;
    g_autoptr(UprofLinuxImage) image = g_new0(UprofLinuxImage, 1);
    image->regs = *regs;
    image->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    take_kernel_root(mem, vcpu, &image->regs, anchor);
    find_extent(image, mem, vcpu, anchor);
    note_code(image);
    if (image->end == image->base)
        return NULL;
    /* pages that nobody writes to cost nothing; there are holes of megabytes */
    void *bytes = mmap(NULL, image->end - image->base, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    image->bytes = bytes;
    copy_pieces(image, mem, vcpu, true);
    return g_steal_pointer(&image);
}

void
uprof_linux_image_copy_all(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu)
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
