/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol-search-priv.h"

#include <string.h>

#include "uprof/bytes.h"

enum {
    BTF_ALIGN = 4,
    BTF_HEAD_BYTES = 24,
    BTF_MAGIC = 0xeb9f,
    BTF_BYTES_MIN = 64 * 1024, /* types of a kernel take megabytes */
    /* of struct btf_header (Linux, include/uapi/linux/btf.h) */
    BTF_VERSION = 2,
    BTF_HEAD_LEN = 4,
    BTF_TYPES = 8,
    BTF_TYPES_LEN = 12,
    BTF_STRINGS = 16,
    BTF_STRINGS_LEN = 20,
};

/* The banner is "Linux version 6.1.0-18-arm64 ..."; patterns for printing have no number there. */
static uint64_t
find_banner(UprofSlice image)
{
    static const char start[] = "Linux version ";
    const size_t len = sizeof(start) - 1;
    const uint8_t *bytes = image.data, *end = bytes + image.len;

    for (const uint8_t *at = bytes; (at = memmem(at, (size_t)(end - at), start, len)); at += len)
        if ((size_t)(end - at) > len && g_ascii_isdigit(at[len]))
            return (uint64_t)(at - bytes);
    return 0;
}

/* Returns: the length of the types whose header is at @at; 0 if there is none */
static uint64_t
measure_btf(UprofSlice image, size_t at)
{
    const uint8_t *head = (const uint8_t *)image.data + at;

    if (image.len - at < BTF_HEAD_BYTES || uprof_read_le16(head) != BTF_MAGIC ||
        head[BTF_VERSION] != 1 || uprof_read_le32(head + BTF_HEAD_LEN) != BTF_HEAD_BYTES ||
        uprof_read_le32(head + BTF_TYPES) != 0)
        return 0;
    const uint64_t types = uprof_read_le32(head + BTF_TYPES_LEN);
    const uint64_t len = BTF_HEAD_BYTES + types + uprof_read_le32(head + BTF_STRINGS_LEN);
    return uprof_read_le32(head + BTF_STRINGS) == types && len >= BTF_BYTES_MIN &&
                   len <= image.len - at
               ? len
               : 0;
}

static void
find_btf(UprofSlice image, uint64_t base, UprofLinuxSymbols *symbols)
{
    for (size_t at = 0; at + BTF_HEAD_BYTES <= image.len; at += BTF_ALIGN) {
        const uint64_t len = measure_btf(image, at);
        if (len == 0)
            continue;
        symbols->btf_start = base + at;
        symbols->btf_end = base + at + len;
        return;
    }
}

void
uprof_linux_symbols_search(const UprofLinuxArch *arch, UprofSlice image, uint64_t base,
                           const UprofKernelMemory *memory, UprofLinuxSymbols *symbols)
{
    if (symbols->text == 0 && symbols->first_code > arch->image_head_bytes)
        symbols->text = symbols->first_code - arch->image_head_bytes;
    if (symbols->banner == 0) {
        const uint64_t at = find_banner(image);
        symbols->banner = at != 0 ? base + at : 0;
    }
    if (symbols->btf_start == 0)
        find_btf(image, base, symbols);
    if (symbols->cpu_areas == 0 && symbols->idle_task_code != 0 && arch->read_cpu_areas)
        arch->read_cpu_areas(memory->mem, memory->vcpu, memory->regs, symbols->idle_task_code,
                             &symbols->cpu_areas, &symbols->run_queues);
}
