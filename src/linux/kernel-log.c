/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The symbol `prb` is a pointer to the kernel's struct printk_ringbuffer. Early in the boot, the
 * kernel may change it to a larger ring.
 */
#include "uprof/kernel-log.h"

#include "uprof/error.h"

#include "kernel-priv.h"

struct _UprofKernelLog {
    uint8_t *descs, *descs_after, *infos,
        *text;       /* copies of the rings, with bytes around them; owned */
    GArray *records; /* of UprofPrintkRecord; owned */
};

void
uprof_kernel_log_free(UprofKernelLog *log)
{
    if (!log)
        return;
    g_free(log->descs);
    g_free(log->descs_after);
    g_free(log->infos);
    g_free(log->text);
    g_clear_pointer(&log->records, g_array_unref);
    g_free(log);
}

const GArray *
uprof_kernel_log_records(const UprofKernelLog *log)
{
    return log->records;
}

static bool
is_mapped(const UprofKernelMemory *memory, uint64_t gva)
{
    uint64_t gpa, left;

    return uprof_mem_translate(memory->mem, memory->vcpu, memory->regs, gva, &gpa, &left, NULL);
}

/*
 * The kernel says how long the range is, so both of its ends must be mapped before memory is
 * allocated for it.
 *
 * Returns: (transfer full) (nullable): complete pages
 */
static uint8_t *
read_range(const UprofKernelMemory *memory, uint64_t gva, uint64_t len, UprofSlice *range)
{
    const uint64_t first = gva & ~(uint64_t)(UPROF_PAGE_BYTES - 1);
    const uint64_t pages = (gva - first + len + UPROF_PAGE_BYTES - 1) / UPROF_PAGE_BYTES;

    if (gva > UINT64_MAX - len - UPROF_PAGE_BYTES || !is_mapped(memory, gva) ||
        !is_mapped(memory, gva + len - 1))
        return NULL;
    g_autofree uint8_t *bytes = g_malloc(pages * UPROF_PAGE_BYTES);
    if (uprof_mem_read_bulk(memory->mem, memory->vcpu, memory->regs, first, bytes,
                            pages * UPROF_PAGE_BYTES) != pages * UPROF_PAGE_BYTES)
        return NULL;
    *range = (UprofSlice){ bytes + (gva - first), len };
    return g_steal_pointer(&bytes);
}

/* Where the rings are in the guest. */
typedef struct {
    uint64_t ring; /* struct printk_ringbuffer */
    uint64_t descs, infos, text;
} RingAddresses;

static bool
read_addresses(const UprofKernelMemory *memory, uint64_t pointer,
               const UprofLinuxLogOffsets *offsets, RingAddresses *addresses, UprofPrintkRing *ring)
{
    uint32_t count_bits, size_bits;

    if (!uprof_kernel_read_word_always(memory, pointer, &addresses->ring) ||
        !uprof_kernel_read_u32_always(memory, addresses->ring + offsets->count_bits, &count_bits) ||
        !uprof_kernel_read_u32_always(memory, addresses->ring + offsets->size_bits, &size_bits) ||
        !uprof_kernel_read_word_always(memory, addresses->ring + offsets->descs,
                                       &addresses->descs) ||
        !uprof_kernel_read_word_always(memory, addresses->ring + offsets->infos,
                                       &addresses->infos) ||
        !uprof_kernel_read_word_always(memory, addresses->ring + offsets->text, &addresses->text))
        return false;
    ring->count_bits = count_bits;
    ring->size_bits = size_bits;
    return count_bits <= UPROF_PRINTK_COUNT_BITS_MAX && size_bits <= UPROF_PRINTK_SIZE_BITS_MAX;
}

/* The ids grow while the rings are copied, so they are read first and never out of remembered
 * pages. */
static bool
read_ids(const UprofKernelMemory *memory, const UprofLinuxLogOffsets *offsets,
         const RingAddresses *addresses, UprofPrintkRing *ring)
{
    uprof_mem_drop_page(memory->mem, memory->vcpu, memory->regs, addresses->ring + offsets->tail);
    uprof_mem_drop_page(memory->mem, memory->vcpu, memory->regs, addresses->ring + offsets->head);
    return uprof_kernel_read_word_always(memory, addresses->ring + offsets->tail, &ring->tail) &&
           uprof_kernel_read_word_always(memory, addresses->ring + offsets->head, &ring->head);
}

/* The descriptors are read before and after all else: those that changed are of other records. */
static bool
copy_rings(UprofKernelLog *log, const UprofKernelMemory *memory, const RingAddresses *addresses,
           UprofPrintkRing *ring)
{
    const UprofPrintkLayout *layout = ring->layout;
    const uint64_t count = UINT64_C(1) << ring->count_bits;

    return (log->descs =
                read_range(memory, addresses->descs, count * layout->desc_bytes, &ring->descs)) &&
           (log->infos =
                read_range(memory, addresses->infos, count * layout->info_bytes, &ring->infos)) &&
           (log->text =
                read_range(memory, addresses->text, UINT64_C(1) << ring->size_bits, &ring->text)) &&
           (log->descs_after = read_range(memory, addresses->descs, count * layout->desc_bytes,
                                          &ring->descs_after));
}

UprofKernelLog *
uprof_kernel_log_read(const UprofLinux *kernel, UprofMem *mem, GError **error)
{
    const UprofKernelMemory memory = uprof_linux_memory(kernel, mem);
    const UprofLinuxLogOffsets *offsets = uprof_linux_log_offsets(kernel);
    const uint64_t pointer = uprof_linux_symbols(kernel)->log;
    g_autoptr(UprofKernelLog) log = g_new0(UprofKernelLog, 1);
    RingAddresses addresses;

    if (!offsets || pointer == 0) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                            pointer == 0
                                ? "the kernel has no log of the kind that Linux has from 5.10"
                                : "the kernel's type information (BTF) does not describe its log");
        return NULL;
    }
    UprofPrintkRing ring = { .layout = &offsets->layout };
    if (!read_addresses(&memory, pointer, offsets, &addresses, &ring) ||
        !read_ids(&memory, offsets, &addresses, &ring) ||
        !copy_rings(log, &memory, &addresses, &ring)) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                            "the kernel's log is not where the kernel says that it is");
        return NULL;
    }
    log->records = uprof_printk_ring_list(&ring, error);
    return log->records ? g_steal_pointer(&log) : NULL;
}
