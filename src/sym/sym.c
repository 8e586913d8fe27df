/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "image-priv.h"

#include "uprof/text.h"

#include <string.h>
#include <unistd.h>

enum { CACHE_SLOTS = 16384 };

typedef struct {
    uint64_t pc;
    uint32_t epoch; /* 0: empty */
    UprofSymAnswer answer;
} CacheSlot;

struct _UprofSym {
    const UprofArch *arch;
    UprofNames *names; /* borrowed */
    UprofImage *images[UPROF_SYM_SOURCES_MAX];
    unsigned n_images;
    uint32_t epoch; /* changes with what the images say */
    CacheSlot *cache;
};

UprofSym *
uprof_sym_new(const UprofArch *arch, UprofNames *names)
{
    UprofSym *sym = g_new0(UprofSym, 1);

    sym->arch = arch;
    sym->names = names;
    sym->epoch = 1;
    sym->cache = g_new0(CacheSlot, CACHE_SLOTS);
    return sym;
}

void
uprof_sym_free(UprofSym *sym)
{
    if (!sym)
        return;
    for (unsigned i = 0; i < sym->n_images; i++)
        uprof_image_free(sym->images[i]);
    g_free(sym->cache);
    g_free(sym);
}

bool
uprof_sym_add_file(UprofSym *sym, const char *path, bool required, GError **error)
{
    g_autofree char *name = uprof_text_quote(path);

    if (sym->n_images == UPROF_SYM_SOURCES_MAX) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "'%s' is one symbol file too many: there can be %d", name,
                    UPROF_SYM_SOURCES_MAX);
        return false;
    }
    g_autoptr(UprofImage) image = uprof_image_load(path, sym->arch, error);
    if (!image)
        return false;
    if (image->symbols->len == 0) {
        g_autofree char *debug = g_strconcat(path, ".dbg", NULL);
        g_autoptr(UprofImage) other =
            access(debug, R_OK) == 0 ? uprof_image_load(debug, sym->arch, NULL) : NULL;
        if (other && other->symbols->len > 0) {
            uprof_image_free(image);
            image = g_steal_pointer(&other);
        }
    }
    if (image->symbols->len == 0 && required) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' has no symbols (stripped?) and there is no '%s.dbg' with them", name,
                    name);
        return false;
    }
    image->label =
        sym->n_images == 0 ? g_strdup("[app]") : g_strdup_printf("[app%u]", sym->n_images + 1);
    sym->images[sym->n_images++] = g_steal_pointer(&image);
    sym->epoch++;
    return true;
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
        .path = image->path,
        .build_id = image->build_id,
        .digest = image->digest,
        .kind = image->is_elf ? "ELF" : "text",
        .machine = image->machine,
        .n_symbols = image->symbols->len,
        .match = image->match,
    };
}

bool
uprof_sym_check(UprofSym *sym, UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t pc)
{
    bool decided = false;

    for (unsigned i = 0; i < sym->n_images; i++) {
        UprofImage *image = sym->images[i];
        if (!image->is_elf || image->match != UPROF_SYM_UNCHECKED ||
            !uprof_image_has_code(image, pc))
            continue;
        uprof_image_compare(image, mem, vcpu, regs);
        if (image->match != UPROF_SYM_UNCHECKED)
            decided = true;
        if (image->match == UPROF_SYM_MISMATCHED)
            sym->epoch++;
    }
    return decided;
}

static UprofSymAnswer
look_up(const UprofSym *sym, uint64_t pc)
{
    const UprofImage *within = NULL;
    char text[64];

    for (unsigned i = 0; i < sym->n_images; i++) {
        const UprofImage *image = sym->images[i];
        if (image->match == UPROF_SYM_MISMATCHED || !uprof_image_has_code(image, pc))
            continue;
        const UprofSymbol *symbol = uprof_image_find(image, pc);
        if (symbol)
            return (UprofSymAnswer){
                .kind = UPROF_SYM_NAMED,
                .name = uprof_names_intern(sym->names, symbol->name),
                .image = image->label,
                .start = symbol->start,
                .is_entry = image->entry != 0 && image->entry - symbol->start < symbol->size,
            };
        if (!within)
            within = image;
    }
    if (within) {
        const uint64_t base = g_array_index(within->ranges, UprofImageRange, 0).start;
        g_autofree char *label = g_strndup(within->label + 1, strlen(within->label) - 2);
        g_snprintf(text, sizeof(text), "[%s+0x%" G_GINT64_MODIFIER "x]", label, pc - base);
        return (UprofSymAnswer){ .kind = UPROF_SYM_IN_IMAGE,
                                 .name = uprof_names_marker(sym->names, text),
                                 .image = within->label };
    }
    if (sym->n_images > 0)
        return (UprofSymAnswer){ .kind = UPROF_SYM_OUTSIDE,
                                 .name = uprof_names_marker(sym->names, "[unknown]") };
    g_snprintf(text, sizeof(text), "0x%" G_GINT64_MODIFIER "x", pc);
    return (UprofSymAnswer){ .kind = UPROF_SYM_OUTSIDE,
                             .name = uprof_names_marker(sym->names, text) };
}

UprofSymAnswer
uprof_sym_find(UprofSym *sym, uint64_t pc, bool is_return)
{
    const uint64_t at = is_return && pc > 0 ? pc - 1 : pc;
    CacheSlot *slot = &sym->cache[(at ^ at >> 14) % CACHE_SLOTS];

    if (slot->pc != at || slot->epoch != sym->epoch)
        *slot = (CacheSlot){ at, sym->epoch, look_up(sym, at) };
    return slot->answer;
}

bool
uprof_sym_is_code(const UprofSym *sym, uint64_t pc)
{
    for (unsigned i = 0; i < sym->n_images; i++)
        if (sym->images[i]->match != UPROF_SYM_MISMATCHED &&
            uprof_image_has_code(sym->images[i], pc))
            return true;
    return false;
}
