/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel keeps generated code in lists, from which /proc/kallsyms takes its names:
 * `bpf_kallsyms` of struct bpf_ksym (Linux, kernel/bpf/core.c), `ftrace_ops_trampoline_list` of
 * struct ftrace_ops (kernel/trace/ftrace.c), and the pages of two struct kprobe_insn_cache
 * (kernel/kprobes.c).
 */
#include "kernel-generated-priv.h"

#include "uprof/fnv.h"
#include "uprof/kallsyms.h"
#include "uprof/sorted.h"

#include <string.h>

enum {
    NODES_MAX = 4096, /* of one list */
    NODE_BYTES_MAX = 1024,
    CODE_BYTES_MAX = 4 * 1024 * 1024, /* of one node */
};

typedef struct {
    const UprofLinuxGeneratedOffsets *offsets;
    const UprofKernelMemory *memory;
    UprofLinuxModules *found;
    guint n_before; /* pieces of the modules' code, sorted */
} Reader;

/* Adds what one node of a list describes. @node: address of its link */
typedef void (*AddNode)(Reader *reader, uint64_t node);

/* Is any of this memory code of a module? */
static bool
is_in_module(const Reader *reader, uint64_t start, uint64_t end)
{
    const UprofSymCode *code = (const UprofSymCode *)(void *)reader->found->code->data;
    const size_t n =
        reader->n_before == 0
            ? 0
            : uprof_sorted_count_below(&code->start, reader->n_before, sizeof(*code), end);

    return n > 0 && code[n - 1].end > start;
}

static void
add_code(Reader *reader, uint64_t start, uint64_t len, const char *name)
{
    UprofLinuxModules *found = reader->found;
    const size_t name_len = strlen(name);
    const UprofSymCode code = { .start = start, .end = start + len };
    const UprofLinuxModuleSymbol symbol = {
        .start = start,
        .size = len,
        .name = found->names->len,
        .binding = UPROF_BINDING_LOCAL,
    };

    if (start < UPROF_UPPER_HALF || len == 0 || len > CODE_BYTES_MAX || start > UINT64_MAX - len ||
        name_len == 0 || is_in_module(reader, start, start + len) ||
        found->names->len + name_len + 1 > UPROF_KALLSYMS_BYTES_MAX)
        return;
    g_byte_array_append(found->names, (const guint8 *)name, (guint)name_len + 1);
    g_array_append_val(found->symbols, symbol);
    g_array_append_val(found->code, code);
}

/* A program, one of its functions, a trampoline, or a dispatcher. */
static void
add_bpf(Reader *reader, uint64_t node)
{
    const UprofLinuxGeneratedOffsets *offsets = reader->offsets;
    const uint64_t name_end = offsets->bpf_name + offsets->bpf_name_bytes;
    const uint64_t len = MAX(name_end, MAX(offsets->bpf_start, offsets->bpf_end) + 8);
    uint8_t bytes[NODE_BYTES_MAX + 1];

    if (len > NODE_BYTES_MAX ||
        !uprof_kernel_read_always(reader->memory, node - offsets->bpf_node, bytes, len))
        return;
    const uint64_t start = uprof_read_le64(bytes + offsets->bpf_start);
    const uint64_t end = uprof_read_le64(bytes + offsets->bpf_end);
    bytes[name_end] = '\0';
    if (end > start)
        add_code(reader, start, end - start, (const char *)bytes + offsets->bpf_name);
}

static void
add_ftrace(Reader *reader, uint64_t node)
{
    const UprofLinuxGeneratedOffsets *offsets = reader->offsets;
    const uint64_t ops = node - offsets->ops_node;
    uint64_t start, len;

    if (uprof_kernel_read_word_always(reader->memory, ops + offsets->ops_code, &start) &&
        uprof_kernel_read_word_always(reader->memory, ops + offsets->ops_len, &len))
        add_code(reader, start, len, "ftrace_trampoline");
}

static void
add_page(Reader *reader, uint64_t node, const char *name)
{
    const UprofLinuxGeneratedOffsets *offsets = reader->offsets;
    uint64_t start;

    if (uprof_kernel_read_word_always(reader->memory,
                                      node - offsets->page_node + offsets->page_code, &start))
        add_code(reader, start, UPROF_PAGE_BYTES, name);
}

static void
add_kprobe(Reader *reader, uint64_t node)
{
    add_page(reader, node, "kprobe_insn_page");
}

static void
add_optimized_kprobe(Reader *reader, uint64_t node)
{
    add_page(reader, node, "kprobe_optinsn_page");
}

/* @head: address of a list's head; 0: there is no such list */
static void
read_list(Reader *reader, uint64_t head, AddNode add)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    uint64_t node = head;

    /* The guest may have made the list a circle that does not contain its head. */
    for (unsigned i = 0; head != 0 && i < NODES_MAX; i++) {
        if (!uprof_kernel_read_word_always(reader->memory, node, &node) || node == head ||
            node == 0 || !g_hash_table_add(seen, g_memdup2(&node, sizeof(node))))
            return;
        add(reader, node);
    }
}

static uint64_t
find_pages(uint64_t cache, const UprofLinuxGeneratedOffsets *offsets)
{
    return cache == 0 ? 0 : cache + offsets->cache_pages;
}

void
uprof_linux_generated_read(const UprofLinuxGeneratedOffsets *offsets,
                           const UprofLinuxSymbols *symbols, const UprofKernelMemory *memory,
                           UprofLinuxModules *modules)
{
    Reader reader = { .offsets = offsets, .memory = memory, .found = modules };

    uprof_linux_modules_sort(modules);
    reader.n_before = modules->code->len;
    if (offsets->has_bpf)
        read_list(&reader, symbols->bpf_list, add_bpf);
    if (offsets->has_ftrace)
        read_list(&reader, symbols->ftrace_list, add_ftrace);
    if (offsets->has_kprobes) {
        read_list(&reader, find_pages(symbols->kprobes, offsets), add_kprobe);
        read_list(&reader, find_pages(symbols->optimized_kprobes, offsets), add_optimized_kprobe);
    }
    uprof_linux_modules_sort(modules);
}

uint64_t
uprof_linux_generated_digest(const UprofLinuxGeneratedOffsets *offsets,
                             const UprofLinuxSymbols *symbols, const UprofKernelMemory *memory)
{
    uint64_t newest[2] = { 0 };

    /* a new program may get the structure of one that was unloaded, but seldom its code, too */
    if (!offsets->has_bpf || symbols->bpf_list == 0 ||
        !uprof_kernel_read_word_always(memory, symbols->bpf_list, &newest[0]) ||
        newest[0] == symbols->bpf_list ||
        !uprof_kernel_read_word_always(memory, newest[0] - offsets->bpf_node + offsets->bpf_start,
                                       &newest[1]))
        return 0;
    return uprof_fnv64_add(UPROF_FNV64_START, newest, sizeof(newest));
}
