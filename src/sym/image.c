/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "debug-priv.h"
#include "targets-priv.h"

#include "uprof/nm.h"
#include "uprof/text.h"
#include "uprof/unpack.h"

#include <string.h>

enum {
    PAGE_BYTES = 4096,
    DEBUG_DATA_BYTES_MAX = 128 * 1024 * 1024,
    TEXT_TAIL_BYTES = 4096, /* how far the last symbol of a table that is text may reach */
    /* and the others: between kernel and modules lies nothing for a gigabyte */
    TEXT_SYMBOL_BYTES_MAX = 1024 * 1024,
};

void
uprof_image_free(UprofImage *image)
{
    if (!image)
        return;
    uprof_cfi_free(image->cfi);
    uprof_table_free(image->table);
    uprof_copy_free(image->copy);
    uprof_copy_free(image->debug);
    g_ptr_array_unref(image->unpacked);
    g_array_unref(image->ranges);
    g_free(image->label);
    g_free(image->hint);
    g_free(image->lines_hint);
    g_free(image->mismatch);
    g_free(image->build_id);
    g_free(image->digest);
    g_free(image);
}

uint64_t
uprof_image_bytes(const UprofImage *image)
{
    uint64_t bytes = image->copy->len + (image->debug ? image->debug->len : 0);

    for (guint i = 0; i < image->unpacked->len; i++)
        bytes += ((const GByteArray *)g_ptr_array_index(image->unpacked, i))->len;
    return bytes;
}

char *
uprof_sym_hex(UprofSlice bytes)
{
    const uint8_t *data = bytes.data;
    GString *hex = g_string_new(NULL);

    for (size_t i = 0; i < bytes.len; i++)
        g_string_append_printf(hex, "%02x", data[i]);
    return g_string_free(hex, FALSE);
}

/* ELF machines (System V gABI, e_machine): EM_386 and EM_X86_64 */
enum { X86_32 = 3, X86_64 = 62 };

static bool
is_x86(uint16_t machine)
{
    return machine == X86_32 || machine == X86_64;
}

static void
add_ranges(UprofImage *image, const UprofElfImage *elf)
{
    for (guint i = 0; i < elf->text->len; i++) {
        const UprofElfRange *text = &g_array_index(elf->text, UprofElfRange, i);
        const UprofImageRange range = { text->start, text->start + text->len, text->bytes };
        g_array_append_val(image->ranges, range);
    }
}

/* The symbols in .gnu_debugdata, which are those that .dynsym lacks. */
static void
add_debug_data(UprofImage *image, const UprofElfImage *elf, const char *name, GArray *symbols)
{
    g_auto(UprofElfImage) inner = { 0 };

    if (elf->debug_data.len == 0)
        return;
    g_autoptr(GByteArray) bytes =
        uprof_unpack_xz(elf->debug_data, name, DEBUG_DATA_BYTES_MAX, NULL);
    if (!bytes || !uprof_elf_parse((UprofSlice){ bytes->data, bytes->len }, name, &inner, NULL) ||
        inner.machine != elf->machine)
        return;
    g_array_append_vals(symbols, inner.symbols->data, inner.symbols->len);
    g_ptr_array_add(image->unpacked, g_steal_pointer(&bytes));
}

/* An image without sections knows its code by segments, which have more in them than code. */
static bool
knows_code_better(const UprofElfImage *debug, const UprofElfImage *elf)
{
    if (elf->has_sections || !debug->has_sections)
        return false;
    for (guint i = 0; i < debug->text->len; i++) {
        const UprofElfRange *text = &g_array_index(debug->text, UprofElfRange, i);
        if (text->bytes.len < text->len)
            return false;
    }
    return true;
}

/* What each of the two has, as one image; .eh_frame goes before .debug_frame in it. */
static void
compile_cfi(UprofImage *image, UprofElfImage *elf, UprofElfImage *debug, const char *name)
{
    UprofElfImage both = *elf;

    if (debug && knows_code_better(debug, elf))
        both.text = debug->text;
    if (debug && both.eh_frame.bytes.len == 0)
        both.eh_frame = debug->eh_frame;
    if (debug && both.debug_frame.bytes.len == 0)
        both.debug_frame = debug->debug_frame;
    add_ranges(image, &both);
    /* a file with bad ones still has names: stacks are unwound as if it had none */
    image->cfi = uprof_cfi_compile(&both, name, NULL);
    if (image->cfi && uprof_cfi_summary(image->cfi).n_rows == 0)
        g_clear_pointer(&image->cfi, uprof_cfi_free);
    /* these have parts of it */
    if (elf->unpacked)
        g_ptr_array_add(image->unpacked, g_steal_pointer(&elf->unpacked));
    if (debug && debug->unpacked)
        g_ptr_array_add(image->unpacked, g_steal_pointer(&debug->unpacked));
}

/* Another build has another build-id: its file need not be read again to know it. */
static void
digest_elf(UprofImage *image, const UprofDebug *debug)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

    g_checksum_update(sum, image->copy->bytes, (gssize)image->copy->len);
    if (debug && debug->elf.build_id.len > 0)
        g_checksum_update(sum, debug->elf.build_id.data, (gssize)debug->elf.build_id.len);
    else if (debug)
        g_checksum_update(sum, debug->copy->bytes, (gssize)debug->copy->len);
    image->digest = g_strdup(g_checksum_get_string(sum));
}

static bool
load_elf(UprofImage *image, const UprofArch *arch, const char *name,
         const char *const *debug_folders, const UprofSymOpener *opener, GError **error)
{
    g_auto(UprofElfImage) elf = { 0 };
    g_autoptr(UprofDebug) debug = NULL;

    if (!uprof_elf_parse(uprof_copy_slice(image->copy), name, &elf, error))
        return false;
    /* 32-bit code on a 64-bit guest is an i386 image */
    if (elf.machine != arch->elf_machine && !(is_x86(elf.machine) && is_x86(arch->elf_machine))) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is an image of another architecture (ELF machine %u) than the guest's %s",
                    name, elf.machine, arch->name);
        return false;
    }
    /* one that says which lines it is of was not stripped */
    if (!elf.has_lines)
        debug = uprof_debug_find(image->copy, &elf, debug_folders, opener, &image->hint);
    image->is_elf = true;
    image->machine = elf.machine;
    image->entry = elf.entry;
    image->first = elf.first_page;
    image->big_endian = elf.big_endian;
    image->build_id_at = elf.build_id_at;
    if (elf.build_id.len > 0)
        image->build_id = uprof_sym_hex(elf.build_id);
    compile_cfi(image, &elf, debug ? &debug->elf : NULL, name);
    add_debug_data(image, &elf, name, elf.symbols);
    if (debug)
        g_array_append_vals(elf.symbols, debug->elf.symbols->data, debug->elf.symbols->len);
    image->table = uprof_table_new(elf.symbols, image->ranges, UINT64_MAX);
    digest_elf(image, debug);
    if (elf.has_lines)
        image->lines = elf.file;
    else if (debug && debug->elf.has_lines)
        image->lines = debug->elf.file;
    if (debug)
        image->debug = g_steal_pointer(&debug->copy);
    return true;
}

static bool
load_text(UprofImage *image, const UprofArch *arch, const char *name, GError **error)
{
    g_autoptr(GArray) symbols = NULL;
    UprofImageRange range = { UINT64_MAX, 0, { NULL, 0 } };

    if (!uprof_nm_parse(uprof_copy_slice(image->copy), name, &symbols, error))
        return false;
    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        if (!symbol->code)
            continue;
        const uint64_t tail = MAX(symbol->size, (uint64_t)TEXT_TAIL_BYTES);
        range.start = MIN(range.start, symbol->start);
        range.end =
            MAX(range.end, symbol->start > UINT64_MAX - tail ? UINT64_MAX : symbol->start + tail);
    }
    if (range.start >= range.end) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' names no code; if it is what Debian has as /boot/System.map, the real "
                    "one is in the package linux-image-VERSION-dbg",
                    name);
        return false;
    }
    g_array_append_val(image->ranges, range);
    image->first = range.start;
    image->has_calls = is_x86(arch->elf_machine);
    image->table = uprof_table_new(symbols, image->ranges, TEXT_SYMBOL_BYTES_MAX);
    image->digest =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, image->copy->bytes, image->copy->len);
    return true;
}

bool
uprof_image_move(UprofImage *image, uint64_t base, GError **error)
{
    g_autofree char *name = uprof_text_quote(image->copy->path);

    if (image->is_elf && base % PAGE_BYTES != 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' cannot be at %" G_GINT64_MODIFIER
                    "x, which is not the beginning of a page",
                    name, base);
        return false;
    }
    image->bias = base - image->first;
    image->is_moved = true;
    return true;
}

/* Returns: (nullable) */
static const UprofSymbol *
find_by_name(const UprofImage *image, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < uprof_table_count(image->table); i++) {
        const UprofSymbol *symbol = uprof_table_get(image->table, i);
        if (symbol->name.len == len && memcmp(symbol->name.data, name, len) == 0)
            return symbol;
    }
    return NULL;
}

void
uprof_image_follow(UprofImage *image, const UprofImage *own)
{
    /* every kernel has these; where one has another name, too, a table may have that */
    static const char *const landmarks[] = { "schedule", "vfs_read", "do_exit", "kfree", "panic" };

    if (image->is_moved)
        return;
    const uint64_t before = image->bias;
    unsigned n_agreed = 0, n_both = 0;
    image->bias = 0;
    for (size_t i = 0; own && i < G_N_ELEMENTS(landmarks); i++) {
        const UprofSymbol *here = find_by_name(own, landmarks[i]);
        const UprofSymbol *linked = here ? find_by_name(image, landmarks[i]) : NULL;
        if (!linked || linked->start >> 63 == 0)
            continue;
        if (n_both++ == 0)
            image->bias = here->start - linked->start;
        n_agreed += here->start - linked->start == image->bias;
    }
    /* those of another build have not all moved alike */
    const bool is_following = n_both > 0 && n_agreed == n_both;
    if (!is_following)
        image->bias = 0;
    if (image->bias != before)
        uprof_image_recheck(image);
}

UprofImage *
uprof_image_load(const char *path, const UprofArch *arch, const char *const *debug_folders,
                 const UprofSymOpener *opener, GError **error)
{
    g_autoptr(UprofImage) image = g_new0(UprofImage, 1);
    g_autofree char *name = uprof_text_quote(path);

    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofImageRange));
    image->unpacked = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    image->copy = uprof_copy_read(path, name, opener, error);
    if (!image->copy)
        return NULL;

    const UprofSlice bytes = uprof_copy_slice(image->copy);
    if (uprof_elf_is(bytes)) {
        if (!load_elf(image, arch, name, debug_folders, opener, error))
            return NULL;
    } else if (uprof_nm_is(bytes)) {
        if (!load_text(image, arch, name, error))
            return NULL;
    } else {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is neither an ELF file nor text as nm, System.map or kallsyms write it",
                    name);
        return NULL;
    }
    return g_steal_pointer(&image);
}

UprofImage *
uprof_image_make(const char *label, const GArray *symbols, GByteArray *names, const GArray *ranges,
                 uint64_t unsized_max)
{
    UprofImage *image = g_new0(UprofImage, 1);

    image->label = g_strdup(label);
    image->copy = g_new0(UprofCopy, 1);
    image->unpacked = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    g_ptr_array_add(image->unpacked, names);
    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofImageRange));
    for (guint i = 0; i < ranges->len; i++) {
        const UprofSymCode *code = &g_array_index(ranges, UprofSymCode, i);
        const UprofImageRange range = { .start = code->start, .end = code->end };
        g_array_append_val(image->ranges, range);
    }
    image->table = uprof_table_new(symbols, image->ranges, unsized_max);
    image->match = UPROF_SYM_MATCHED;
    image->is_own = true;
    return image;
}

bool
uprof_image_has_code(const UprofImage *image, uint64_t pc)
{
    return uprof_range_find(image->ranges, pc - image->bias) != NULL;
}

const UprofSymbol *
uprof_image_find(const UprofImage *image, uint64_t pc)
{
    return uprof_table_find(image->table, pc - image->bias);
}

static const GArray *
find_targets(UprofImage *image)
{
    if (!image->targets)
        image->targets = uprof_targets_find(image->ranges, image->machine == X86_64 ? 8 : 4);
    return image->targets;
}

/* A symbol of which no file says how long it is may stand before functions that have none. */
static void
find_extent(UprofImage *image, const UprofSymbol *symbol, uint64_t address, uint64_t *start,
            uint64_t *end)
{
    *start = symbol->start;
    *end = symbol->start + symbol->size;
    if (image->is_elf && is_x86(image->machine) && uprof_table_is_guess(image->table, symbol))
        uprof_targets_narrow(find_targets(image), address, start, end);
}

bool
uprof_image_is_entry(UprofImage *image, const UprofSymbol *symbol, uint64_t pc)
{
    uint64_t start, end;

    if (image->entry == 0 || image->entry - symbol->start >= symbol->size)
        return false;
    find_extent(image, symbol, image->entry, &start, &end);
    return pc - image->bias >= start && pc - image->bias < end;
}

bool
uprof_image_function(UprofImage *image, uint64_t pc, uint64_t *start, uint64_t *len)
{
    const uint64_t address = pc - image->bias;
    const UprofSymbol *symbol = uprof_image_find(image, pc);
    uint64_t first, end;

    if (symbol)
        find_extent(image, symbol, address, &first, &end);
    /* what its symbols do not cover is no function, or one that cannot be told from others */
    else if (!image->is_elf || !is_x86(image->machine) || uprof_table_count(image->table) > 0 ||
             !uprof_targets_around(find_targets(image), image->ranges, address, &first, &end))
        return false;
    *start = first + image->bias;
    *len = end - first;
    return true;
}
