/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is loaded into a running Linux kernel (Linux, include/linux/module.h and
 * kernel/module/kallsyms.c): a list, and of each module its symbols as an ELF file has
 * them, by the addresses that they came to lie at.
 */
#include "linux-priv.h"

#include <elf.h>
#include <string.h>

#define OFFSET(member) G_STRUCT_OFFSET(UprofLinuxModuleOffsets, member)

enum {
    MODULES_MAX = 4096,
    SYMBOLS_MAX = 256 * 1024, /* of one */
    ALL_SYMBOLS_MAX = 1000 * 1000,
    NAMES_BYTES_MAX = 16 * 1024 * 1024, /* of one */
    NAME_BYTES_MAX = 512,
    CODE_BYTES_MAX = 64 * 1024 * 1024,
    BYTES_MAX = 128 * 1024 * 1024, /* of symbols, names and rules of all */
    LIVE = 0,                      /* MODULE_STATE_LIVE */
};

/* What is being read, and what was found. @left: bytes that may yet be read */
typedef struct {
    const UprofLinuxModuleOffsets *offsets;
    UprofMem *mem;
    unsigned vcpu;
    const UprofRegs *regs;
    UprofLinuxModules *found;
    size_t left;
} Reader;

bool
uprof_linux_module_offsets_find(const UprofBtf *btf, UprofLinuxModuleOffsets *offsets)
{
    static const struct {
        const char *type, *member;
        size_t offset;
    } needed[] = {
        { "module", "list", OFFSET(list) },
        { "module", "state", OFFSET(state) },
        { "module", "kallsyms", OFFSET(kallsyms) },
        { "mod_kallsyms", "symtab", OFFSET(symbols) },
        { "mod_kallsyms", "num_symtab", OFFSET(n_symbols) },
        { "mod_kallsyms", "strtab", OFFSET(names) },
    };
    uint64_t part, base, len;

    *offsets = (UprofLinuxModuleOffsets){ 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(needed); i++)
        if (!uprof_btf_member(btf, needed[i].type, needed[i].member,
                              G_STRUCT_MEMBER_P(offsets, needed[i].offset)))
            return false;
    /* a kernel may be built without */
    offsets->has_orcs = uprof_btf_member(btf, "module", "arch.num_orcs", &offsets->n_orcs) &&
                        uprof_btf_member(btf, "module", "arch.orc_unwind_ip", &offsets->orc_ips) &&
                        uprof_btf_member(btf, "module", "arch.orc_unwind", &offsets->orcs);
    /* until 6.3 all of a module was one piece, code first */
    if (uprof_btf_member(btf, "module", "core_layout.base", &offsets->code))
        return uprof_btf_member(btf, "module", "core_layout.text_size", &offsets->code_len);
    /* since then it has several, and that with code is the first (MOD_TEXT) */
    if (!uprof_btf_member(btf, "module", "mem", &part) ||
        !uprof_btf_member(btf, "module_memory", "base", &base) ||
        !uprof_btf_member(btf, "module_memory", "size", &len))
        return false;
    offsets->code = part + base;
    offsets->code_len = part + len;
    return true;
}

static bool
read_word(const Reader *reader, uint64_t gva, uint64_t *word)
{
    if (!uprof_mem_read_always(reader->mem, reader->vcpu, reader->regs, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

static bool
read_number(const Reader *reader, uint64_t gva, uint32_t *number)
{
    if (!uprof_mem_read_always(reader->mem, reader->vcpu, reader->regs, gva, number,
                               sizeof(*number)))
        return false;
    *number = GUINT32_FROM_LE(*number);
    return true;
}

/*
 * Returns: (transfer full) (nullable): @len bytes from @gva on, and zeros where nothing is
 * mapped; %NULL if there were too many already
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
    uprof_mem_read_bulk(reader->mem, reader->vcpu, reader->regs, gva - before, bytes, pages);
    memmove(bytes, bytes + before, len);
    bytes[len] = '\0';
    return g_steal_pointer(&bytes);
}

/* Where a name that may begin at @last ends. */
static size_t
count_names(const Elf64_Sym *symbols, size_t n)
{
    size_t last = 0;

    for (size_t i = 0; i < n; i++)
        last = MAX(last, (size_t)GUINT32_FROM_LE(symbols[i].st_name));
    return MIN(last + NAME_BYTES_MAX, (size_t)NAMES_BYTES_MAX);
}

static UprofBinding
find_binding(const Elf64_Sym *symbol)
{
    switch (ELF64_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
        return UPROF_BINDING_GLOBAL;
    case STB_WEAK:
        return UPROF_BINDING_WEAK;
    default:
        return UPROF_BINDING_LOCAL;
    }
}

/* @names_at: where they begin among all names. A name's bytes are known when all are there. */
static void
add_symbol(const Reader *reader, const Elf64_Sym *symbol, UprofSlice names, size_t names_at,
           const UprofSymCode *code)
{
    const uint64_t start = GUINT64_FROM_LE(symbol->st_value);
    const size_t at = GUINT32_FROM_LE(symbol->st_name);
    const UprofLinuxModuleSymbol found = {
        .start = start,
        .size = GUINT64_FROM_LE(symbol->st_size),
        .name = names_at + at,
        .binding = find_binding(symbol),
    };

    if (at < names.len && ((const char *)names.data)[at] != '\0' && start >= code->start &&
        start < code->end && reader->found->symbols->len < ALL_SYMBOLS_MAX)
        g_array_append_val(reader->found->symbols, found);
}

static void
read_symbols(Reader *reader, uint64_t module, const UprofSymCode *code)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    GByteArray *all = reader->found->names;
    uint64_t table, symbols_at, names_at;
    uint32_t n;

    if (!read_word(reader, module + offsets->kallsyms, &table) ||
        !read_word(reader, table + offsets->symbols, &symbols_at) ||
        !read_number(reader, table + offsets->n_symbols, &n) ||
        !read_word(reader, table + offsets->names, &names_at) || n == 0 || n > SYMBOLS_MAX)
        return;
    g_autofree Elf64_Sym *symbols = (void *)read_bytes(reader, symbols_at, n * sizeof(symbols[0]));
    const size_t len = symbols ? count_names(symbols, n) : 0;
    const size_t before = all->len;
    g_autofree uint8_t *names = len > 0 ? read_bytes(reader, names_at, len) : NULL;
    if (!names || before + len + 1 > UPROF_KALLSYMS_BYTES_MAX)
        return;
    g_byte_array_append(all, names, (guint)len + 1);
    for (uint32_t i = 0; i < n; i++)
        add_symbol(reader, &symbols[i], (UprofSlice){ names, len }, before, code);
}

static void
read_rules(Reader *reader, uint64_t module, const UprofSymCode *code, UprofOrcVersion version)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    uint64_t ips_at, orcs_at;
    uint32_t n;

    if (!offsets->has_orcs || version == UPROF_ORC_UNKNOWN ||
        !read_number(reader, module + offsets->n_orcs, &n) || n == 0 || n > SYMBOLS_MAX ||
        !read_word(reader, module + offsets->orc_ips, &ips_at) ||
        !read_word(reader, module + offsets->orcs, &orcs_at))
        return;
    const size_t ips_len = (size_t)n * UPROF_ORC_IP_BYTES;
    const size_t orcs_len = (size_t)n * UPROF_ORC_ENTRY_BYTES;
    g_autofree uint8_t *ips = read_bytes(reader, ips_at, ips_len);
    g_autofree uint8_t *orcs = read_bytes(reader, orcs_at, orcs_len);
    if (!ips || !orcs)
        return;
    UprofOrc *orc = uprof_orc_parse((UprofSlice){ ips, ips_len }, ips_at,
                                    (UprofSlice){ orcs, orcs_len }, version, NULL);
    if (!orc)
        return;
    uprof_orc_limit(orc, code->start, code->end - code->start);
    g_ptr_array_add(reader->found->orcs, orc);
}

/* Returns: whether there is one */
static bool
read_module(Reader *reader, uint64_t module, UprofOrcVersion version)
{
    const UprofLinuxModuleOffsets *offsets = reader->offsets;
    UprofSymCode code;
    uint32_t state, len;

    if (!read_number(reader, module + offsets->state, &state))
        return false;
    if (state != LIVE || !read_word(reader, module + offsets->code, &code.start) ||
        !read_number(reader, module + offsets->code_len, &len) || len == 0 ||
        len > CODE_BYTES_MAX || code.start >> 63 == 0 || code.start > UINT64_MAX - len)
        return true;
    code.end = code.start + len;
    g_array_append_val(reader->found->code, code);
    read_symbols(reader, module, &code);
    read_rules(reader, module, &code, version);
    return true;
}

static int
compare_code(gconstpointer a, gconstpointer b)
{
    const UprofSymCode *one = a, *other = b;

    return one->start < other->start ? -1 : one->start > other->start;
}

/* Modules lie apart; what says that it lies in another is a lie. */
static void
sort_code(GArray *code)
{
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
                         UprofOrcVersion version, UprofMem *mem, unsigned vcpu,
                         const UprofRegs *regs)
{
    UprofLinuxModules *modules = g_new0(UprofLinuxModules, 1);
    Reader reader = { offsets, mem, vcpu, regs, modules, BYTES_MAX };
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    uint64_t node;

    modules->symbols = g_array_new(FALSE, FALSE, sizeof(UprofLinuxModuleSymbol));
    modules->names = g_byte_array_new();
    modules->code = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));
    modules->orcs = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_orc_free);
    if (!read_word(&reader, head, &node))
        return modules;
    /* the list may come back to where it was */
    while (node != head && modules->n < MODULES_MAX &&
           g_hash_table_add(seen, g_memdup2(&node, sizeof(node))) &&
           read_module(&reader, node - offsets->list, version)) {
        modules->n++;
        if (!read_word(&reader, node, &node))
            break;
    }
    sort_code(modules->code);
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
