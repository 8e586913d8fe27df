/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel keeps its modules in a list. Each module has the symbols of its ELF file, already
 * relocated (Linux, include/linux/module.h and kernel/module/kallsyms.c).
 */
#include "kernel-modules-priv.h"

#include "uprof/fnv.h"
#include "uprof/kallsyms.h"
#include "uprof/sorted.h"

#include <elf.h>
#include <string.h>

enum {
    MODULES_MAX = 4096,
    SYMBOLS_MAX = 256 * 1024, /* of one module */
    ALL_SYMBOLS_MAX = 1000 * 1000,
    NAMES_BYTES_MAX = 16 * 1024 * 1024, /* of one module */
    NAME_BYTES_MAX = 512,
    CODE_BYTES_MAX = 64 * 1024 * 1024,
    BYTES_MAX = 128 * 1024 * 1024, /* of symbols, names and unwind tables of all modules */
    LIVE = 0,                      /* MODULE_STATE_LIVE */
    COMING = 1,                    /* MODULE_STATE_COMING: its init code runs */
    PARTS_MAX = 2,                 /* of the code of a module */

    DIGEST_MODULES_MAX = 256,
    DIGEST_MODULE_BYTES = 72, /* of a module: its list node, and the name behind it */
};

typedef struct {
    const UprofLinuxModuleOffsets *offsets;
    const UprofKernelMemory *memory;
    UprofLinuxModules *found;
    size_t left; /* bytes that may still be read */
} Reader;

/*
 * Returns: (transfer full) (nullable): @len bytes from @gva on, with zeros where nothing is
 * mapped, and a zero behind them; %NULL beyond the limit
 */
static uint8_t *
read_bytes(Reader *reader, uint64_t gva, size_t len)
{
    const size_t before = gva % UPROF_PAGE_BYTES;
    const size_t pages =
        (before + len + UPROF_PAGE_BYTES - 1) / UPROF_PAGE_BYTES * UPROF_PAGE_BYTES;

    if (pages > reader->left)
        return NULL;
    reader->left -= pages;
    g_autofree uint8_t *bytes = g_malloc0(pages + 1);
    uprof_mem_read_bulk(reader->memory->mem, reader->memory->vcpu, reader->memory->regs,
                        gva - before, bytes, pages);
    memmove(bytes, bytes + before, len);
    bytes[len] = '\0';
    return g_steal_pointer(&bytes);
}

/*
 * A hostile symbol may say that its name is far away. So memory for the names is taken only if the
 * last one is mapped.
 *
 * Returns: length of the string table, in bytes; 0 if its end is not mapped
 */
static size_t
measure_names(const Reader *reader, uint64_t names_at, const Elf64_Sym *symbols, size_t n)
{
    size_t last = 0;
    char first;

    for (size_t i = 0; i < n; i++)
        last = MAX(last, (size_t)GUINT32_FROM_LE(symbols[i].st_name));
    last = MIN(last, (size_t)NAMES_BYTES_MAX - NAME_BYTES_MAX);
    return uprof_kernel_read_always(reader->memory, names_at + last, &first, 1)
               ? last + NAME_BYTES_MAX
               : 0;
}

/* The code of a module: what stays, and while the module is loaded also its init code. */
typedef struct {
    UprofSymCode parts[PARTS_MAX];
    unsigned n;
} Code;

static bool
is_in_code(const Code *code, uint64_t address)
{
    for (unsigned i = 0; i < code->n; i++)
        if (address >= code->parts[i].start && address < code->parts[i].end)
            return true;
    return false;
}

/* @names_at: offset of @names among the names of all modules */
static void
add_symbol(const Reader *reader, const Elf64_Sym *symbol, UprofSlice names, size_t names_at,
           const Code *code)
{
    const uint64_t start = GUINT64_FROM_LE(symbol->st_value);
    const size_t at = GUINT32_FROM_LE(symbol->st_name);
    const UprofLinuxModuleSymbol found = {
        .start = start,
        .size = GUINT64_FROM_LE(symbol->st_size),
        .name = names_at + at,
        .binding = uprof_elf_binding(symbol->st_info),
    };

    if (at < names.len && ((const char *)names.data)[at] != '\0' && is_in_code(code, start) &&
        reader->found->symbols->len < ALL_SYMBOLS_MAX)
        g_array_append_val(reader->found->symbols, found);
}

static void
read_symbols(Reader *reader, uint64_t module, const Code *code)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    GByteArray *all = reader->found->names;
    uint64_t table, symbols_at, names_at;
    uint32_t n;

    if (!uprof_kernel_read_word_always(reader->memory, module + offsets->kallsyms, &table) ||
        !uprof_kernel_read_word_always(reader->memory, table + offsets->symbols, &symbols_at) ||
        !uprof_kernel_read_u32_always(reader->memory, table + offsets->n_symbols, &n) ||
        !uprof_kernel_read_word_always(reader->memory, table + offsets->names, &names_at) ||
        n == 0 || n > SYMBOLS_MAX)
        return;
    g_autofree Elf64_Sym *symbols = (void *)read_bytes(reader, symbols_at, n * sizeof(symbols[0]));
    const size_t len = symbols ? measure_names(reader, names_at, symbols, n) : 0;
    const size_t before = all->len;
    g_autofree uint8_t *names = len > 0 ? read_bytes(reader, names_at, len) : NULL;
    if (!names || before + len + 1 > UPROF_KALLSYMS_BYTES_MAX)
        return;
    g_byte_array_append(all, names, (guint)len + 1);
    for (uint32_t i = 0; i < n; i++)
        add_symbol(reader, &symbols[i], (UprofSlice){ names, len }, before, code);
}

static void
read_orc(Reader *reader, uint64_t module, const Code *code, UprofOrcVersion version)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    uint64_t ips_at, orcs_at;
    uint32_t n;

    if (!offsets->has_orcs || version == UPROF_ORC_UNKNOWN ||
        !uprof_kernel_read_u32_always(reader->memory, module + offsets->n_orcs, &n) || n == 0 ||
        n > SYMBOLS_MAX ||
        !uprof_kernel_read_word_always(reader->memory, module + offsets->orc_ips, &ips_at) ||
        !uprof_kernel_read_word_always(reader->memory, module + offsets->orcs, &orcs_at))
        return;
    const size_t ips_len = (size_t)n * UPROF_ORC_IP_BYTES;
    const size_t orcs_len = (size_t)n * UPROF_ORC_ENTRY_BYTES;
    g_autofree uint8_t *ips = read_bytes(reader, ips_at, ips_len);
    g_autofree uint8_t *orcs = read_bytes(reader, orcs_at, orcs_len);
    if (!ips || !orcs)
        return;
    for (unsigned i = 0; i < code->n; i++) {
        const UprofSymCode *part = &code->parts[i];
        UprofOrc *orc = uprof_orc_parse((UprofSlice){ ips, ips_len }, ips_at,
                                        (UprofSlice){ orcs, orcs_len }, version, NULL);
        if (!orc)
            return;
        uprof_orc_limit(orc, part->start, part->end - part->start);
        g_ptr_array_add(reader->found->orcs, orc);
    }
}

/* @at, @len_at: offsets of the address and of the length of a part of the code */
static void
add_part(Reader *reader, uint64_t module, uint64_t at, uint64_t len_at, Code *code)
{
    UprofSymCode part;
    uint32_t len;

    if (!uprof_kernel_read_word_always(reader->memory, module + at, &part.start) ||
        !uprof_kernel_read_u32_always(reader->memory, module + len_at, &len) || len == 0 ||
        len > CODE_BYTES_MAX || part.start < UPROF_UPPER_HALF || part.start > UINT64_MAX - len)
        return;
    part.end = part.start + len;
    code->parts[code->n++] = part;
    g_array_append_val(reader->found->code, part);
}

/* Returns: false if nothing is at @module */
static bool
read_module(Reader *reader, uint64_t module, UprofOrcVersion version)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    Code code = { .n = 0 };
    uint32_t state;

    if (!uprof_kernel_read_u32_always(reader->memory, module + offsets->state, &state))
        return false;
    if (state != LIVE && state != COMING)
        return true;
    add_part(reader, module, offsets->code, offsets->code_len, &code);
    if (state == COMING && offsets->init_len != 0)
        add_part(reader, module, offsets->init, offsets->init_len, &code);
    reader->found->n_coming += state == COMING;
    if (code.n == 0)
        return true;
    read_symbols(reader, module, &code);
    read_orc(reader, module, &code, version);
    return true;
}

static int
compare_code(gconstpointer a, gconstpointer b)
{
    const UprofSymCode *one = a, *other = b;

    return UPROF_COMPARE(one->start, other->start);
}

void
uprof_linux_modules_sort(UprofLinuxModules *modules)
{
    GArray *code = modules->code;

    g_array_sort(code, compare_code);
    for (guint i = 1; i < code->len;) {
        const UprofSymCode *before = &g_array_index(code, UprofSymCode, i - 1);
        if (g_array_index(code, UprofSymCode, i).start < before->end)
            g_array_remove_index(code, i);
        else
            i++;
    }
}

UprofLinuxModules *
uprof_linux_modules_read(const UprofLinuxModuleOffsets *offsets, uint64_t head,
                         UprofOrcVersion version, const UprofKernelMemory *memory)
{
    UprofLinuxModules *modules = g_new0(UprofLinuxModules, 1);
    Reader reader = { offsets, memory, modules, BYTES_MAX };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    uint64_t node;

    modules->symbols = g_array_new(FALSE, FALSE, sizeof(UprofLinuxModuleSymbol));
    modules->names = g_byte_array_new();
    modules->code = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));
    modules->orcs = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_orc_free);
    if (!uprof_kernel_read_word_always(memory, head, &node))
        return modules;
    /* The guest may have made the list a circle that does not contain its head. */
    while (node != head && modules->n < MODULES_MAX &&
           g_hash_table_add(seen, g_memdup2(&node, sizeof(node))) &&
           read_module(&reader, node - offsets->list, version)) {
        modules->n++;
        if (!uprof_kernel_read_word_always(memory, node, &node))
            break;
    }
    return modules;
}

void
uprof_linux_modules_free(UprofLinuxModules *modules)
{
    if (!modules)
        return;
    g_array_unref(modules->symbols);
    g_clear_pointer(&modules->names, g_byte_array_unref);
    g_array_unref(modules->code);
    g_ptr_array_unref(modules->orcs);
    g_free(modules);
}

bool
uprof_linux_modules_digest(const UprofKernelMemory *memory, uint64_t head, uint64_t *digest)
{
    uint8_t newest[DIGEST_MODULE_BYTES];
    uint64_t node = head;

    *digest = UPROF_FNV64_START;
    for (unsigned i = 0; i < DIGEST_MODULES_MAX && (i == 0 || node != head); i++) {
        if (!uprof_kernel_read_word_always(memory, node, &node))
            return i > 0;
        *digest = uprof_fnv64_add(*digest, &node, sizeof(node));
        if (i == 0 && node != head &&
            uprof_kernel_read_always(memory, node, newest, sizeof(newest)))
            *digest = uprof_fnv64_add(*digest, newest, sizeof(newest));
    }
    return true;
}
