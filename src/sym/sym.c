/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/sym.h"

#include "uprof/clock.h"
#include "uprof/path.h"
#include "uprof/text.h"

#include "code-sites-priv.h"
#include "demangle-priv.h"
#include "generated-code-priv.h"
#include "match-priv.h"
#include "module-file-priv.h"

#include <string.h>

enum {
    MEMORY_FILE_BYTES_MAX = 64 * 1024 * 1024, /* of a file in guest memory */
    CACHE_SLOTS = 16384,
    RULE_SLOTS = 8192,
    OWN_SYMBOL_BYTES_MAX = 64 * 1024, /* kernels do not store the sizes of their functions */
};

typedef struct {
    uint64_t pc;
    uint32_t epoch; /* 0: empty */
    UprofSymAnswer answer;
} CacheSlot;

/* A cached answer for the unwinders. They ask much more often than names are needed. */
typedef struct {
    uint64_t pc;
    uint32_t epoch; /* 0: empty */
    bool is_code;
    bool has_orc;
    UprofOrcRule orc;
    const UprofCfi *cfi;
    const UprofCfiRule *rule; /* (nullable): in @cfi */
} RuleSlot;

struct _UprofSym {
    const UprofArch *arch;
    UprofNames *names;    /* borrowed */
    char **debug_folders; /* the last one is @cache_folder, if there is one */
    char **sysroots;      /* absolute */
    char *cache_folder;   /* (nullable) */
    bool raw_names;
    UprofDemangler demangler;
    UprofSites *sites;
    bool is_coarse;    /* no more sites are added */
    GHashTable *named; /* UprofSymbol -> UprofName: names that are demangled and clean */
    UprofImage *images[UPROF_SYM_SOURCES_MAX];
    unsigned n_images;
    UprofImage *own[UPROF_SYM_N_OWN]; /* (nullable) */
    GPtrArray *modules;               /* of UprofImage; the first one has number 1 */
    GPtrArray *orcs[UPROF_SYM_N_OWN]; /* of UprofOrc, owned */
    UprofGenerated *generated;
    uint64_t bytes, bytes_max; /* of all files, and their limit */
    uint32_t epoch;            /* changes with the answers */
    uint32_t reset;            /* how often the guest was reset before */
    CacheSlot *cache;
    RuleSlot *rules;
};

/* Debian's folder, and the default of gdb */
static const char *const default_debug_folders[] = { "/usr/lib/debug", NULL };

UprofSym *
uprof_sym_new(const UprofArch *arch, UprofNames *names)
{
    UprofSym *sym = g_new0(UprofSym, 1);

    sym->arch = arch;
    sym->names = names;
    uprof_demangler_init(&sym->demangler);
    sym->debug_folders = g_strdupv((char **)default_debug_folders);
    sym->sysroots = g_new0(char *, 1);
    sym->named = g_hash_table_new(NULL, NULL);
    sym->sites = uprof_sites_new(names, &sym->demangler);
    sym->modules = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_image_free);
    for (unsigned i = 0; i < UPROF_SYM_N_OWN; i++)
        sym->orcs[i] = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_orc_free);
    sym->generated = uprof_generated_new();
    sym->bytes_max = (uint64_t)UPROF_SYM_BYTES_MAX_MIB * 1024 * 1024;
    sym->epoch = 1;
    sym->cache = g_new0(CacheSlot, CACHE_SLOTS);
    sym->rules = g_new0(RuleSlot, RULE_SLOTS);
    return sym;
}

void
uprof_sym_free(UprofSym *sym)
{
    if (!sym)
        return;
    for (unsigned i = 0; i < sym->n_images; i++)
        uprof_image_free(sym->images[i]);
    for (unsigned i = 0; i < UPROF_SYM_N_OWN; i++) {
        uprof_image_free(sym->own[i]);
        g_ptr_array_unref(sym->orcs[i]);
    }
    g_ptr_array_unref(sym->modules);
    g_strfreev(sym->debug_folders);
    g_strfreev(sym->sysroots);
    g_free(sym->cache_folder);
    g_hash_table_unref(sym->named);
    uprof_sites_free(sym->sites);
    uprof_generated_free(sym->generated);
    g_free(sym->cache);
    g_free(sym->rules);
    g_free(sym);
}

const UprofArch *
uprof_sym_arch(const UprofSym *sym)
{
    return sym->arch;
}

static char **
copy_sysroots(const char *const *sysroots)
{
    const guint n = sysroots ? g_strv_length((char **)sysroots) : 0;
    char **copies = g_new0(char *, n + 1);

    for (guint i = 0; i < n; i++)
        copies[i] = uprof_path_absolute(sysroots[i]);
    return copies;
}

/* @folders: (nullable). @last: (nullable): added at the end */
static char **
copy_folders(const char *const *folders, const char *last)
{
    const guint n = folders ? g_strv_length((char **)folders) : 0;
    char **copies = g_new0(char *, n + 2);

    for (guint i = 0; i < n; i++)
        copies[i] = g_strdup(folders[i]);
    copies[n] = g_strdup(last);
    return copies;
}

void
uprof_sym_configure(UprofSym *sym, const UprofSymConfig *config)
{
    g_assert(sym->n_images == 0);
    sym->raw_names = config->raw_names;
    if (config->bytes_max > 0)
        sym->bytes_max = config->bytes_max;
    uprof_sites_configure(sym->sites, config->lines, config->raw_names);
    const bool has_folders = config->debug_folders && config->debug_folders[0];
    g_strfreev(sym->debug_folders);
    sym->debug_folders = copy_folders(has_folders ? config->debug_folders : default_debug_folders,
                                      config->cache_folder);
    g_free(sym->cache_folder);
    sym->cache_folder = g_strdup(config->cache_folder);
    g_strfreev(sym->sysroots);
    sym->sysroots = copy_sysroots(config->sysroots);
}

void
uprof_sym_set_domain(UprofSym *sym, const char *uuid)
{
    g_autofree char *folder =
        sym->cache_folder ? uprof_path_of_domain_files(sym->cache_folder, uuid) : NULL;
    const guint n = g_strv_length(sym->debug_folders);

    if (!folder)
        return;
    /* before the cache, which is the last one */
    sym->debug_folders = g_renew(char *, sym->debug_folders, n + 2);
    sym->debug_folders[n + 1] = NULL;
    sym->debug_folders[n] = sym->debug_folders[n - 1];
    sym->debug_folders[n - 1] = g_steal_pointer(&folder);
}

bool
uprof_sym_has_line_names(const UprofSym *sym)
{
    return uprof_sites_have_lines(sym->sites);
}

static bool
add_file(UprofSym *sym, const char *path, const UprofSymOpener *opener, const uint64_t *base,
         bool required, GError **error)
{
    g_autofree char *name = uprof_text_quote(path);

    if (sym->n_images == UPROF_SYM_SOURCES_MAX) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "'%s' exceeds the limit of %d symbol files", name, UPROF_SYM_SOURCES_MAX);
        return false;
    }
    g_autoptr(UprofImage) image =
        uprof_image_load(path, sym->arch, (const char *const *)sym->debug_folders, opener,
                         sym->bytes_max - sym->bytes, error);
    if (!image)
        return false;
    if (uprof_symbol_table_count(image->table) == 0 && required) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' has no symbols (stripped?), and there is no debug file with them, such "
                    "as '%s.dbg'%s%s",
                    name, name, image->hint ? ": " : "", image->hint ? image->hint : "");
        return false;
    }
    if (base && !uprof_image_move(image, *base, error))
        return false;
    sym->bytes += uprof_image_bytes(image);
    image->label =
        sym->n_images == 0 ? g_strdup("[app]") : g_strdup_printf("[app%u]", sym->n_images + 1);
    sym->images[sym->n_images++] = g_steal_pointer(&image);
    sym->epoch++;
    return true;
}

bool
uprof_sym_add_file(UprofSym *sym, const char *path, bool required, GError **error)
{
    return add_file(sym, path, NULL, NULL, required, error);
}

bool
uprof_sym_add_file_at(UprofSym *sym, const char *path, const uint64_t *base, bool required,
                      GError **error)
{
    return add_file(sym, path, NULL, base, required, error);
}

bool
uprof_sym_add_file_by(UprofSym *sym, const char *path, const UprofSymOpener *opener, bool required,
                      GError **error)
{
    return add_file(sym, path, opener, NULL, required, error);
}

void
uprof_sym_set_own(UprofSym *sym, UprofSymOwn which, const GArray *symbols, GByteArray *names,
                  const GArray *ranges)
{
    static const char *const labels[UPROF_SYM_N_OWN] = { "[kernel]", "[modules]" };

    /* A new symbol may get the address of a freed one. */
    g_hash_table_remove_all(sym->named);
    g_clear_pointer(&sym->own[which], uprof_image_free);
    g_ptr_array_set_size(sym->orcs[which], 0);
    if (symbols)
        sym->own[which] =
            uprof_image_make(labels[which], symbols, names, ranges, OWN_SYMBOL_BYTES_MAX);
    for (unsigned i = 0; i < sym->n_images && which == UPROF_SYM_KERNEL; i++)
        uprof_image_follow(sym->images[i], sym->own[which]);
    sym->epoch++;
}

bool
uprof_sym_has_names(const UprofSym *sym)
{
    return sym->n_images > 0 || sym->own[UPROF_SYM_KERNEL];
}

/* The symbol address of module code: this bit, the module's number, and the offset in it. */
#define MODULE_BIT (UINT64_C(1) << 56)
#define MODULE_NUMBER(pc) ((pc) / UPROF_SYM_MODULE_BYTES_MAX & 0xffff)

uint64_t
uprof_sym_module_address(unsigned module, uint64_t offset)
{
    g_assert(module <= UPROF_SYM_MODULES_MAX && offset < UPROF_SYM_MODULE_BYTES_MAX);
    return MODULE_BIT + module * UPROF_SYM_MODULE_BYTES_MAX + offset;
}

unsigned
uprof_sym_module_of(uint64_t symbol_address)
{
    return symbol_address / MODULE_BIT == 1 ? MODULE_NUMBER(symbol_address) : 0;
}

/* Returns: (nullable): the module whose range of symbol addresses @pc is in */
static UprofImage *
find_module(const UprofSym *sym, uint64_t pc)
{
    const uint64_t number = MODULE_NUMBER(pc);

    return pc >> 56 == 1 && number > 0 && number <= sym->modules->len
               ? g_ptr_array_index(sym->modules, number - 1)
               : NULL;
}

static UprofModuleSearch
make_search(const UprofSym *sym, const char *path, const char *build_id)
{
    return (UprofModuleSearch){
        .arch = sym->arch,
        .path = path,
        .build_id = build_id,
        .debug_folders = (const char *const *)sym->debug_folders,
        .sysroots = (const char *const *)sym->sysroots,
        .cache_folder = sym->cache_folder,
        .given = sym->images,
        .n_given = sym->n_images,
        .room = sym->bytes_max - sym->bytes,
    };
}

unsigned
uprof_sym_add_module(UprofSym *sym, const char *name, const char *path, const char *build_id)
{
    const unsigned number = sym->modules->len + 1;
    const UprofModuleSearch search = make_search(sym, path, build_id);

    if (number > UPROF_SYM_MODULES_MAX)
        return 0;
    UprofImage *image = uprof_module_file_open(&search, name, uprof_sym_module_address(number, 0));
    sym->bytes += uprof_image_bytes(image);
    g_ptr_array_add(sym->modules, image);
    return number;
}

/* @image: (transfer full): of the same module. @bytes_before: of the image that it replaces */
static void
replace_module(UprofSym *sym, unsigned number, UprofImage *image, uint64_t bytes_before)
{
    sym->bytes += uprof_image_bytes(image) - bytes_before;
    /* A new symbol may get the address of a freed one. */
    g_hash_table_remove_all(sym->named);
    uprof_sites_move(sym->sites, g_ptr_array_index(sym->modules, number - 1), image);
    uprof_image_free(g_ptr_array_index(sym->modules, number - 1));
    g_ptr_array_index(sym->modules, number - 1) = image;
    sym->epoch++;
}

/* An image with DWARF stays. It may lack unwind rules. */
static void
reload_module(UprofSym *sym, unsigned number)
{
    UprofImage *before = g_ptr_array_index(sym->modules, number - 1);
    const UprofModuleSearch search = make_search(sym, before->guest_path, before->build_id);
    const uint64_t bytes = uprof_image_bytes(before);

    if (before->lines.len > 0) {
        if (before->cfi || !uprof_module_file_find_rules(&search, before))
            return;
        sym->bytes += uprof_image_bytes(before) - bytes;
        sym->epoch++;
        return;
    }
    UprofImage *image = uprof_module_file_reopen(&search, before);
    if (image)
        replace_module(sym, number, image, bytes);
}

void
uprof_sym_reload_modules(UprofSym *sym, const char *build_id)
{
    for (unsigned number = 1; number <= sym->modules->len; number++) {
        const UprofImage *module = g_ptr_array_index(sym->modules, number - 1);
        if (g_strcmp0(module->build_id, build_id) == 0)
            reload_module(sym, number);
    }
}

/* A debug file has names, but mostly no unwind tables. */
static bool
add_rules(UprofSym *sym, UprofImage *image, UprofMappedElf *mapped)
{
    const uint64_t before = uprof_image_bytes(image);

    if (image->cfi || mapped->elf.eh_frame.bytes.len > sym->bytes_max - sym->bytes ||
        !uprof_image_add_rules(image, mapped, image->label))
        return false;
    sym->bytes += uprof_image_bytes(image) - before;
    sym->epoch++;
    return true;
}

bool
uprof_sym_fill_module(UprofSym *sym, unsigned number, UprofMappedElf *mapped)
{
    g_assert(number > 0 && number <= sym->modules->len);
    UprofImage *before = g_ptr_array_index(sym->modules, number - 1);
    const uint64_t left = sym->bytes_max - sym->bytes + uprof_image_bytes(before);

    if (before->file->path)
        return add_rules(sym, before, mapped);
    UprofImage *image =
        uprof_image_from_memory(mapped, before->label, MIN(left, (uint64_t)MEMORY_FILE_BYTES_MAX));
    if (!image)
        return false;
    image->label = g_steal_pointer(&before->label);
    image->guest_path = g_steal_pointer(&before->guest_path);
    image->module_base = before->module_base;
    image->bias = before->module_base - image->first;
    image->match = UPROF_SYM_MATCHED;
    replace_module(sym, number, image, uprof_image_bytes(before));
    return true;
}

bool
uprof_sym_module(const UprofSym *sym, unsigned number, UprofSymModule *module)
{
    if (number == 0 || number > sym->modules->len)
        return false;
    const UprofImage *image = g_ptr_array_index(sym->modules, number - 1);
    *module = (UprofSymModule){
        .label = image->label,
        .build_id = image->build_id,
        .path = image->file->path,
        .guest_path = image->guest_path,
        .is_from_memory = image->is_from_memory,
        .n_symbols = uprof_symbol_table_count(image->table),
        .cfi = image->cfi,
    };
    return true;
}

bool
uprof_sym_add_generated(UprofSym *sym, unsigned process, bool is_jitdump, UprofSlice bytes,
                        uint64_t n_missing)
{
    return uprof_generated_add(sym->generated, process, is_jitdump, bytes, n_missing);
}

void
uprof_sym_forget_process(UprofSym *sym, unsigned process)
{
    uprof_generated_forget(sym->generated, process);
}

size_t
uprof_sym_count_generated(const UprofSym *sym, unsigned *n_processes)
{
    return uprof_generated_count(sym->generated, n_processes);
}

/*
 * @i: index in the order of search. A symbol address of a module has this module only. For other
 * addresses the files come first, and then the guest's own sources.
 *
 * Returns: (nullable): %NULL if there is no image at @i, or the image mismatches
 */
static UprofImage *
get_image(const UprofSym *sym, uint64_t pc, unsigned i)
{
    UprofImage *image = find_module(sym, pc);

    if (!image)
        image = i < sym->n_images ? sym->images[i] : sym->own[i - sym->n_images];
    return image && image->match != UPROF_SYM_MISMATCHED ? image : NULL;
}

static unsigned
count_images(const UprofSym *sym, uint64_t pc)
{
    return find_module(sym, pc) ? 1 : sym->n_images + UPROF_SYM_N_OWN;
}

unsigned
uprof_sym_n_sources(const UprofSym *sym)
{
    return sym->n_images;
}

void
uprof_sym_source(const UprofSym *sym, unsigned i, UprofSymSource *source)
{
    g_assert(i < sym->n_images);
    const UprofImage *image = sym->images[i];

    *source = (UprofSymSource){
        .label = image->label,
        .path = image->file->path,
        .debug_path = image->debug ? image->debug->path : NULL,
        .hint = image->hint,
        .lines_hint = image->lines_hint,
        .has_lines = uprof_image_has_lines(image),
        .base = image->first + image->bias,
        .is_moved = image->is_moved,
        .build_id = image->build_id,
        .digest = image->digest,
        .kind = image->is_elf ? "ELF" : "text",
        .machine = image->machine,
        .n_symbols = uprof_symbol_table_count(image->table),
        .cfi = image->cfi,
        .match = image->match,
        .mismatch = image->mismatch,
        .n_seen = image->n_seen,
    };
}

bool
uprof_sym_check(UprofSym *sym, UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t pc,
                uint32_t reset)
{
    bool any = false;

    for (unsigned i = 0; i < sym->n_images; i++) {
        UprofImage *image = sym->images[i];
        const UprofSymMatch before = image->match;
        if (reset != sym->reset)
            uprof_image_forget_match(image);
        any |= uprof_match_compare(image, mem, vcpu, regs, pc);
        if ((before == UPROF_SYM_MISMATCHED) != (image->match == UPROF_SYM_MISMATCHED))
            sym->epoch++;
    }
    sym->reset = reset;
    return any;
}

/* The file of a user may have names of a kernel, too. */
static bool
is_kernel_symbol(const UprofSym *sym, const UprofImage *image, const UprofSymbol *symbol)
{
    return image->is_own ||
           (sym->own[UPROF_SYM_KERNEL] && symbol->start + image->bias >= UPROF_UPPER_HALF);
}

/* Pictures color kernel functions by this suffix. */
static const UprofName *
name_kernel(UprofSym *sym, const UprofSymbol *symbol)
{
    g_autofree char *clean = uprof_text_clean(symbol->name);
    g_autofree char *text = g_strconcat(clean, "_[k]", NULL);

    return uprof_names_marker(sym->names, text);
}

static const UprofName *
name_symbol(UprofSym *sym, const UprofImage *image, const UprofSymbol *symbol)
{
    const UprofName *name = g_hash_table_lookup(sym->named, symbol);

    if (name)
        return name;
    const bool is_kernel = is_kernel_symbol(sym, image, symbol);
    g_autofree char *text =
        sym->raw_names || is_kernel ? NULL : uprof_demangle(&sym->demangler, symbol->name);
    const UprofSlice words = text ? (UprofSlice){ text, strlen(text) } : symbol->name;
    name = is_kernel ? name_kernel(sym, symbol) : uprof_names_intern(sym->names, words);
    uprof_image_claim_name(image, sym->names, name);
    g_hash_table_insert(sym->named, (gpointer)symbol, (gpointer)name);
    return name;
}

static const UprofName *
add_site(UprofSym *sym, UprofImage *image, uint64_t pc, const UprofName *function)
{
    return uprof_image_has_lines(image) && !sym->is_coarse
               ? uprof_sites_add(sym->sites, image, pc - image->bias, function)
               : NULL;
}

static UprofSymAnswer
name_gap(UprofSym *sym, UprofImage *image, uint64_t pc)
{
    const uint64_t base = image->module_base > 0
                              ? image->module_base
                              : g_array_index(image->ranges, UprofCodeRange, 0).start + image->bias;
    g_autofree char *label = uprof_image_bare_label(image);
    char text[64];

    g_snprintf(text, sizeof(text), "[%s+0x%" G_GINT64_MODIFIER "x]", label, pc - base);
    const UprofName *name = uprof_names_marker(sym->names, text);
    uprof_image_claim_name(image, sym->names, name);
    return (UprofSymAnswer){ .kind = UPROF_SYM_IN_IMAGE,
                             .name = name,
                             .site = add_site(sym, image, pc, name),
                             .image = image->label };
}

static UprofSymAnswer
answer_symbol(UprofSym *sym, UprofImage *image, const UprofSymbol *symbol, uint64_t pc)
{
    const UprofName *name = name_symbol(sym, image, symbol);

    return (UprofSymAnswer){
        .kind = UPROF_SYM_NAMED,
        .name = name,
        .site = add_site(sym, image, pc, name),
        .image = image->label,
        .start = symbol->start + image->bias,
        .size = symbol->size,
        .is_entry = uprof_image_is_entry(image, symbol, pc),
    };
}

static UprofSymAnswer
find_answer(UprofSym *sym, uint64_t pc)
{
    UprofImage *within = NULL;
    char text[64];

    for (unsigned i = 0; i < count_images(sym, pc); i++) {
        UprofImage *image = get_image(sym, pc, i);
        if (!image || !uprof_image_has_code(image, pc))
            continue;
        const UprofSymbol *symbol = uprof_image_find(image, pc);
        if (symbol)
            return answer_symbol(sym, image, symbol, pc);
        if (!within)
            within = image;
    }
    if (within)
        return name_gap(sym, within, pc);
    if (uprof_sym_has_names(sym))
        return (UprofSymAnswer){ .kind = UPROF_SYM_OUTSIDE,
                                 .name = uprof_names_marker(sym->names, "[unknown]") };
    g_snprintf(text, sizeof(text), "0x%" G_GINT64_MODIFIER "x", pc);
    return (UprofSymAnswer){ .kind = UPROF_SYM_OUTSIDE,
                             .name = uprof_names_marker(sym->names, text) };
}

static UprofSymAnswer
answer_generated(const UprofSym *sym, const UprofSymbol *symbol)
{
    const UprofName *name = uprof_names_intern(sym->names, symbol->name);

    uprof_name_add_module(name, NULL);
    return (UprofSymAnswer){
        .kind = UPROF_SYM_NAMED,
        .name = name,
        .start = symbol->start,
        .size = symbol->size,
    };
}

UprofSymAnswer
uprof_sym_find(UprofSym *sym, uint64_t pc, bool is_return)
{
    const uint64_t at = is_return && pc > 0 ? pc - 1 : pc;
    UprofSymbol symbol;

    /* not cached, because generated code changes all the time */
    if (uprof_generated_find(sym->generated, at, &symbol))
        return answer_generated(sym, &symbol);
    CacheSlot *slot = &sym->cache[(at ^ at >> 14) % CACHE_SLOTS];

    if (slot->pc != at || slot->epoch != sym->epoch)
        *slot = (CacheSlot){ at, sym->epoch, find_answer(sym, at) };
    return slot->answer;
}

uint64_t
uprof_sym_code_start(const UprofSym *sym, unsigned i)
{
    g_assert(i < sym->n_images);
    const UprofImage *image = sym->images[i];

    return image->ranges->len > 0
               ? g_array_index(image->ranges, UprofCodeRange, 0).start + image->bias
               : 0;
}

UprofSymAnswer
uprof_sym_find_in(UprofSym *sym, unsigned i, uint64_t pc)
{
    g_assert(i < sym->n_images);
    UprofImage *image = sym->images[i];
    const bool is_inside = uprof_image_has_code(image, pc);
    const UprofSymbol *symbol = is_inside ? uprof_image_find(image, pc) : NULL;

    if (symbol)
        return answer_symbol(sym, image, symbol, pc);
    if (is_inside)
        return name_gap(sym, image, pc);
    return (UprofSymAnswer){ .kind = UPROF_SYM_OUTSIDE,
                             .name = uprof_names_marker(sym->names, "[unknown]") };
}

bool
uprof_sym_is_unchecked(const UprofSym *sym)
{
    for (unsigned i = 0; i < sym->n_images; i++)
        if (sym->images[i]->match == UPROF_SYM_UNCHECKED)
            return true;
    return false;
}

bool
uprof_sym_function(UprofSym *sym, uint64_t pc, uint64_t *start, uint64_t *len, bool *is_entry)
{
    const UprofSymAnswer answer = uprof_sym_find(sym, pc, false);

    *is_entry = answer.is_entry;
    if (answer.kind == UPROF_SYM_NAMED && uprof_sym_is_process_address(pc)) {
        *start = answer.start;
        *len = answer.size;
        return true;
    }
    /* Compilers move cold code out of a function. The function jumps there and keeps its frame. */
    if (answer.kind == UPROF_SYM_NAMED && strstr(uprof_name_text(answer.name), ".cold"))
        return false;
    for (unsigned i = 0; i < count_images(sym, pc); i++) {
        UprofImage *image = get_image(sym, pc, i);
        if (!image || !uprof_image_has_code(image, pc))
            continue;
        /* The image that names the function has its best range. */
        if ((answer.kind != UPROF_SYM_NAMED || uprof_image_find(image, pc)) &&
            uprof_image_function(image, pc, start, len))
            return true;
    }
    return false;
}

/* Returns: (nullable): the first image with code at @pc and, if wanted, with its bytes or its lines
 */
static UprofImage *
find_code(const UprofSym *sym, uint64_t pc, bool wants_bytes, bool wants_lines)
{
    for (unsigned i = 0; i < count_images(sym, pc); i++) {
        UprofImage *image = get_image(sym, pc, i);
        if (image && uprof_image_has_code(image, pc) &&
            (!wants_lines || uprof_image_has_lines(image)) &&
            (!wants_bytes || uprof_image_code(image, pc).len > 0))
            return image;
    }
    return NULL;
}

void
uprof_sym_place(const UprofSym *sym, uint64_t pc, UprofSymPlace *place)
{
    const UprofImage *named = find_code(sym, pc, false, false);
    const UprofImage *image = find_code(sym, pc, true, false);

    *place = (UprofSymPlace){
        .link_address = uprof_sym_is_process_address(pc) ? uprof_generated_pc(pc) : pc,
        .word_bytes = sym->arch->word_bytes,
    };
    if (!named)
        return;
    image = image ? image : named;
    place->image = named->label;
    place->link_address = pc - image->bias;
    place->code = uprof_image_code(image, pc);
    place->word_bytes = uprof_image_word_bytes(image, sym->arch);
}

void
uprof_sym_lines(UprofSym *sym, const uint64_t *addresses, unsigned n, unsigned time_ms,
                const UprofName **lines)
{
    UprofImage *image = n > 0 ? find_code(sym, addresses[0], false, true) : NULL;

    memset(lines, 0, n * sizeof(lines[0]));
    if (image)
        uprof_sites_find_lines(sym->sites, image, addresses, MIN(n, (unsigned)UPROF_SYM_LINES_MAX),
                               time_ms * UPROF_NS_PER_MS, lines);
}

uint32_t
uprof_sym_epoch(const UprofSym *sym)
{
    return sym->epoch;
}

static bool
find_orc(const UprofSym *sym, uint64_t pc, UprofOrcRule *rule)
{
    for (unsigned which = 0; which < UPROF_SYM_N_OWN; which++)
        for (guint i = 0; i < sym->orcs[which]->len; i++)
            if (uprof_orc_find(g_ptr_array_index(sym->orcs[which], i), pc, rule))
                return true;
    return false;
}

static RuleSlot
fill_rule_slot(const UprofSym *sym, uint64_t pc)
{
    RuleSlot slot = { .pc = pc, .epoch = sym->epoch };

    slot.has_orc = find_orc(sym, pc, &slot.orc);
    slot.is_code = slot.has_orc && slot.orc.type != UPROF_ORC_UNDEFINED;
    for (unsigned i = 0; i < count_images(sym, pc) && !slot.rule; i++) {
        const UprofImage *image = get_image(sym, pc, i);
        if (!image)
            continue;
        slot.is_code |= uprof_image_has_code(image, pc);
        slot.cfi = image->cfi;
        slot.rule = image->cfi ? uprof_cfi_find(image->cfi, pc - image->bias) : NULL;
    }
    return slot;
}

static const RuleSlot *
get_rule_slot(UprofSym *sym, uint64_t pc)
{
    RuleSlot *slot = &sym->rules[(pc ^ pc >> 13) % RULE_SLOTS];

    if (slot->pc != pc || slot->epoch != sym->epoch)
        *slot = fill_rule_slot(sym, pc);
    return slot;
}

bool
uprof_sym_is_code(UprofSym *sym, uint64_t pc)
{
    return get_rule_slot(sym, pc)->is_code;
}

const UprofCfiRule *
uprof_sym_rule(UprofSym *sym, uint64_t pc, const UprofCfi **cfi)
{
    const RuleSlot *slot = get_rule_slot(sym, pc);

    if (slot->rule)
        *cfi = slot->cfi;
    return slot->rule;
}

void
uprof_sym_add_orc(UprofSym *sym, UprofSymOwn which, UprofOrc *orc)
{
    g_ptr_array_add(sym->orcs[which], orc);
    sym->epoch++;
}

bool
uprof_sym_orc(UprofSym *sym, uint64_t pc, UprofOrcRule *rule)
{
    /* Fast path: most guests are unikernels. */
    if (sym->orcs[UPROF_SYM_KERNEL]->len == 0)
        return false;
    const RuleSlot *slot = get_rule_slot(sym, pc);
    if (slot->has_orc)
        *rule = slot->orc;
    return slot->has_orc;
}

void
uprof_sym_coarsen(UprofSym *sym)
{
    sym->is_coarse = true;
    sym->epoch++;
}

void
uprof_sym_resolve(UprofSym *sym, unsigned time_ms)
{
    const uint64_t until_ns = uprof_clock_now_ns() + time_ms * UPROF_NS_PER_MS;

    for (unsigned i = 0; i < sym->n_images && !sym->is_coarse; i++)
        if (uprof_image_has_lines(sym->images[i]))
            uprof_sites_resolve(sym->sites, sym->images[i], until_ns);
    for (guint i = 0; i < sym->modules->len && !sym->is_coarse; i++) {
        UprofImage *module = g_ptr_array_index(sym->modules, i);
        if (uprof_image_has_lines(module))
            uprof_sites_resolve(sym->sites, module, until_ns);
    }
}

unsigned
uprof_sym_expand(const UprofSym *sym, const UprofName *name, const UprofName *const **frames)
{
    return uprof_sites_expand(sym->sites, name, frames);
}
