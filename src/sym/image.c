/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "image-priv.h"

#include "call-targets-priv.h"
#include "debug-file-priv.h"
#include "local-labels-priv.h"

#include "uprof/build-id.h"
#include "uprof/error.h"
#include "uprof/nm.h"
#include "uprof/text.h"
#include "uprof/unpack.h"

#include <string.h>

enum {
    PAGE_BYTES = 4096,
    DEBUG_DATA_BYTES_MAX = 128 * 1024 * 1024,
    TEXT_TAIL_BYTES = 4096, /* longest last symbol of a table that is text */
    /* longest other symbol: the gap between kernel and modules has up to a gigabyte */
    TEXT_SYMBOL_BYTES_MAX = 1024 * 1024,
};

void
uprof_image_free(UprofImage *image)
{
    if (!image)
        return;
    uprof_cfi_free(image->cfi);
    uprof_go_lines_free(image->go_lines);
    uprof_symbol_table_free(image->table);
    g_clear_pointer(&image->targets, g_array_unref);
    uprof_file_bytes_free(image->file);
    uprof_file_bytes_free(image->debug);
    g_ptr_array_unref(image->unpacked);
    g_array_unref(image->ranges);
    g_free(image->label);
    g_free(image->hint);
    g_free(image->lines_hint);
    g_free(image->mismatch);
    g_free(image->build_id);
    g_free(image->digest);
    g_free(image->guest_path);
    g_free(image);
}

uint64_t
uprof_image_bytes(const UprofImage *image)
{
    uint64_t bytes = image->file->n_used + (image->debug ? image->debug->n_used : 0);

    for (guint i = 0; i < image->unpacked->len; i++)
        bytes += ((const GByteArray *)g_ptr_array_index(image->unpacked, i))->len;
    if (image->cfi)
        bytes += uprof_cfi_summary(image->cfi).n_bytes;
    return bytes + uprof_symbol_table_bytes(image->table);
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
        const UprofCodeRange range = { text->start, text->start + text->len, text->bytes };
        g_array_append_val(image->ranges, range);
    }
}

/* .gnu_debugdata has the symbols that .dynsym lacks. */
static void
add_debug_data(UprofImage *image, const UprofElfImage *elf, const char *name, uint64_t room,
               GArray *symbols)
{
    g_auto(UprofElfImage) inner = { 0 };

    if (elf->debug_data.len == 0)
        return;
    g_autoptr(GByteArray) bytes =
        uprof_unpack_xz(elf->debug_data, name, MIN(room, (uint64_t)DEBUG_DATA_BYTES_MAX), NULL);
    if (!bytes || !uprof_elf_parse((UprofSlice){ bytes->data, bytes->len }, name, &inner, NULL) ||
        inner.machine != elf->machine)
        return;
    g_array_append_vals(symbols, inner.symbols->data, inner.symbols->len);
    g_ptr_array_add(image->unpacked, g_steal_pointer(&bytes));
}

/* Without sections only segments show an image's code, and segments contain more than code. */
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

/* Combines the unwind tables of both files; .eh_frame goes before .debug_frame. */
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
    /* A file with malformed unwind tables still gives names. */
    image->cfi = uprof_cfi_compile(&both, name, NULL);
    if (image->cfi && uprof_cfi_summary(image->cfi).n_rows == 0)
        g_clear_pointer(&image->cfi, uprof_cfi_free);
    /* The compiled tables point into the unpacked bytes. */
    if (elf->unpacked)
        g_ptr_array_add(image->unpacked, g_steal_pointer(&elf->unpacked));
    if (debug && debug->unpacked)
        g_ptr_array_add(image->unpacked, g_steal_pointer(&debug->unpacked));
}

/* The build-id stands for the debug file, so that the file is not read a second time. */
static void
digest_elf(UprofImage *image, const UprofDebugFile *debug)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

    g_checksum_update(sum, image->file->bytes, (gssize)image->file->len);
    if (debug && debug->elf.build_id.len > 0)
        g_checksum_update(sum, debug->elf.build_id.data, (gssize)debug->elf.build_id.len);
    else if (debug)
        g_checksum_update(sum, debug->file->bytes, (gssize)debug->file->len);
    image->digest = g_strdup(g_checksum_get_string(sum));
}

/* Returns: 8 for 64-bit code, 4 for 32-bit code, 0 if the code cannot be read */
static unsigned
find_code_bytes(const UprofImage *image)
{
    return image->machine == X86_64 ? 8 : image->machine == X86_32 ? 4 : 0;
}

static void
store_entries(UprofImage *image, const UprofElfImage *elf)
{
    image->entries[0] = elf->entry;
    image->entries[1] = elf->xen_entry;
    image->entries[2] = elf->pvh_entry;
}

static bool
load_elf(UprofImage *image, const UprofArch *arch, const char *name,
         const char *const *debug_folders, const UprofSymOpener *opener, uint64_t room,
         GError **error)
{
    g_auto(UprofElfImage) elf = { 0 };
    g_autoptr(UprofDebugFile) debug = NULL;

    if (!uprof_file_bytes_parse_elf(image->file, name, room, &elf, error))
        return false;
    /* A 64-bit guest may run a 32-bit image. */
    if (elf.machine != arch->elf_machine && !(is_x86(elf.machine) && is_x86(arch->elf_machine))) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is an image of another architecture (ELF machine %u) than the guest's %s",
                    name, elf.machine, arch->name);
        return false;
    }
    /* An image with lines was not stripped. */
    if (!elf.has_lines)
        debug = uprof_debug_file_find(
            image->file, &elf, debug_folders, opener,
            room - image->file->n_used - elf.symbols->len * UPROF_SYMBOL_TABLE_BYTES, &image->hint);
    image->is_elf = true;
    image->machine = elf.machine;
    store_entries(image, &elf);
    image->first = elf.first_page;
    image->big_endian = elf.big_endian;
    image->build_id_at = elf.build_id_at;
    if (elf.build_id.len > 0)
        image->build_id = uprof_build_id_hex(elf.build_id);
    compile_cfi(image, &elf, debug ? &debug->elf : NULL, name);
    add_debug_data(image, &elf, name, room - image->file->n_used, elf.symbols);
    if (debug)
        g_array_append_vals(elf.symbols, debug->elf.symbols->data, debug->elf.symbols->len);
    uprof_local_labels_drop(elf.symbols, image->ranges, find_code_bytes(image), &image->targets);
    image->table = uprof_symbol_table_new(elf.symbols, image->ranges, UINT64_MAX);
    digest_elf(image, debug);
    if (elf.has_lines)
        image->lines = elf.file;
    else if (debug && debug->elf.has_lines)
        image->lines = debug->elf.file;
    image->go_lines = g_steal_pointer(&elf.go_lines);
    if (debug)
        image->debug = g_steal_pointer(&debug->file);
    return true;
}

static uint64_t
count_lines(UprofSlice text)
{
    const char *at = text.data, *end = at + text.len;
    uint64_t n = 1;

    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        n++;
    return n;
}

static bool
load_text(UprofImage *image, const UprofArch *arch, const char *name, uint64_t room, GError **error)
{
    g_autoptr(GArray) symbols = NULL;
    UprofCodeRange range = { UINT64_MAX, 0, { NULL, 0 } };
    const uint64_t n_lines = count_lines(uprof_file_bytes_slice(image->file));

    if (image->file->n_used + MIN(n_lines, UPROF_SYMBOLS_MAX) * UPROF_SYMBOL_TABLE_BYTES > room) {
        uprof_file_bytes_fail_room(name, room, error);
        return false;
    }
    if (!uprof_nm_parse(uprof_file_bytes_slice(image->file), name, &symbols, error))
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
                    "'%s' names no code; Debian's /boot/System.map is a stub, the package "
                    "linux-image-VERSION-dbg has the complete map",
                    name);
        return false;
    }
    g_array_append_val(image->ranges, range);
    image->first = range.start;
    image->has_calls = is_x86(arch->elf_machine);
    image->table = uprof_symbol_table_new(symbols, image->ranges, TEXT_SYMBOL_BYTES_MAX);
    image->digest =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, image->file->bytes, image->file->len);
    return true;
}

void
uprof_image_forget_match(UprofImage *image)
{
    image->match = UPROF_SYM_UNCHECKED;
    g_clear_pointer(&image->mismatch, g_free);
    image->n_seen = image->next_compare = 0;
    image->n_calls = image->n_calls_agreed = 0;
    image->is_elsewhere = false;
}

bool
uprof_image_move(UprofImage *image, uint64_t base, GError **error)
{
    g_autofree char *name = uprof_text_quote(image->file->path);

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

/* Returns: (nullable): the first symbol of that name */
static const UprofSymbol *
find_by_name(const UprofImage *image, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < uprof_symbol_table_count(image->table); i++) {
        const UprofSymbol *symbol = uprof_symbol_table_get(image->table, i);
        if (symbol->name.len == len && memcmp(symbol->name.data, name, len) == 0)
            return symbol;
    }
    return NULL;
}

void
uprof_image_follow(UprofImage *image, const UprofImage *own)
{
    /* Functions of every kernel. A table may list another name of the same function instead. */
    static const char *const landmarks[] = { "schedule", "vfs_read", "do_exit", "kfree", "panic" };

    if (image->is_moved)
        return;
    const uint64_t before = image->bias;
    unsigned n_agreed = 0, n_both = 0;
    image->bias = 0;
    for (size_t i = 0; own && i < G_N_ELEMENTS(landmarks); i++) {
        const UprofSymbol *here = find_by_name(own, landmarks[i]);
        const UprofSymbol *linked = here ? find_by_name(image, landmarks[i]) : NULL;
        if (!linked || linked->start < UPROF_UPPER_HALF)
            continue;
        if (n_both++ == 0)
            image->bias = here->start - linked->start;
        n_agreed += here->start - linked->start == image->bias;
    }
    /* Functions of another build have not all moved by the same distance. */
    const bool is_following = n_both > 0 && n_agreed == n_both;
    if (!is_following)
        image->bias = 0;
    if (image->bias != before)
        uprof_image_forget_match(image);
}

UprofImage *
uprof_image_load(const char *path, const UprofArch *arch, const char *const *debug_folders,
                 const UprofSymOpener *opener, uint64_t room, GError **error)
{
    g_autoptr(UprofImage) image = g_new0(UprofImage, 1);
    g_autofree char *name = uprof_text_quote(path);

    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));
    image->unpacked = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    image->file = uprof_file_bytes_read(path, name, opener, room, error);
    if (!image->file)
        return NULL;

    const UprofSlice bytes = uprof_file_bytes_slice(image->file);
    if (uprof_elf_is(bytes)) {
        if (!load_elf(image, arch, name, debug_folders, opener, room, error))
            return NULL;
    } else if (uprof_nm_is(bytes)) {
        if (!load_text(image, arch, name, room, error))
            return NULL;
    } else {
        uprof_file_bytes_fail_kind(name, error);
        return NULL;
    }
    if (uprof_image_bytes(image) > room) {
        uprof_file_bytes_fail_room(name, room, error);
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
    image->file = g_new0(UprofFileBytes, 1);
    image->unpacked = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    g_ptr_array_add(image->unpacked, names);
    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));
    for (guint i = 0; i < ranges->len; i++) {
        const UprofSymCode *code = &g_array_index(ranges, UprofSymCode, i);
        const UprofCodeRange range = { .start = code->start, .end = code->end };
        g_array_append_val(image->ranges, range);
    }
    image->table = uprof_symbol_table_new(symbols, image->ranges, unsized_max);
    image->match = UPROF_SYM_MATCHED;
    image->is_own = true;
    return image;
}

/* Moves the parts, which symbols and unwind rules point into. */
static void
take_parts(UprofImage *image, UprofMappedElf *mapped)
{
    for (guint i = 0; i < mapped->parts->len; i++)
        g_ptr_array_add(image->unpacked, g_byte_array_ref(g_ptr_array_index(mapped->parts, i)));
}

static void
compile_listed(UprofImage *image, UprofMappedElf *mapped, const char *name)
{
    image->cfi = uprof_cfi_compile_listed(&mapped->elf, mapped->frames, name, NULL);
    if (image->cfi && uprof_cfi_summary(image->cfi).n_rows == 0)
        g_clear_pointer(&image->cfi, uprof_cfi_free);
}

bool
uprof_image_take_rules(UprofImage *image, UprofImage *from)
{
    const bool is_file = from->file->path != NULL;

    if (image->cfi || !from->cfi || !image->is_elf || from->machine != image->machine ||
        from->first != image->first || from->debug || (is_file && image->debug))
        return false;
    image->cfi = g_steal_pointer(&from->cfi);
    for (guint i = 0; i < from->unpacked->len; i++)
        g_ptr_array_add(image->unpacked, g_byte_array_ref(g_ptr_array_index(from->unpacked, i)));
    if (is_file) {
        image->debug = from->file;
        from->file = g_new0(UprofFileBytes, 1);
    }
    return true;
}

bool
uprof_image_add_rules(UprofImage *image, UprofMappedElf *mapped, const char *name)
{
    g_assert(!image->cfi);
    if (!image->is_elf || mapped->elf.machine != image->machine ||
        mapped->elf.first_page != image->first)
        return false;
    compile_listed(image, mapped, name);
    if (image->cfi)
        take_parts(image, mapped);
    return image->cfi != NULL;
}

UprofImage *
uprof_image_from_memory(UprofMappedElf *mapped, const char *name, uint64_t room)
{
    g_autoptr(UprofImage) image = g_new0(UprofImage, 1);
    UprofElfImage *elf = &mapped->elf;

    image->file = g_new0(UprofFileBytes, 1);
    image->unpacked = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));
    add_ranges(image, elf);
    take_parts(image, mapped);
    compile_listed(image, mapped, name);
    add_debug_data(image, elf, name, room, elf->symbols);
    /* Exported functions alone have others between them, which a guessed size would cover. */
    image->table = uprof_symbol_table_new(elf->symbols, image->ranges,
                                          mapped->has_all_symbols ? UINT64_MAX : 1);
    image->machine = elf->machine;
    store_entries(image, elf);
    image->first = elf->first_page;
    image->is_from_memory = true;
    image->go_lines = g_steal_pointer(&elf->go_lines);
    if (elf->build_id.len > 0)
        image->build_id = uprof_build_id_hex(elf->build_id);
    if (image->ranges->len == 0 || uprof_image_bytes(image) > room)
        return NULL;
    return g_steal_pointer(&image);
}

bool
uprof_image_has_lines(const UprofImage *image)
{
    return image->lines.len > 0 || image->go_lines;
}

bool
uprof_image_has_code(const UprofImage *image, uint64_t pc)
{
    return uprof_code_range_find(image->ranges, pc - image->bias) != NULL;
}

UprofSlice
uprof_image_code(const UprofImage *image, uint64_t pc)
{
    const uint64_t address = pc - image->bias;
    const UprofCodeRange *range = uprof_code_range_find(image->ranges, address);

    if (!range || address - range->start >= range->bytes.len)
        return (UprofSlice){ 0 };
    const uint64_t offset = address - range->start;
    return (UprofSlice){ (const char *)range->bytes.data + offset, range->bytes.len - offset };
}

unsigned
uprof_image_word_bytes(const UprofImage *image, const UprofArch *arch)
{
    return image->machine == X86_32 ? 4 : image->machine == X86_64 ? 8 : arch->word_bytes;
}

char *
uprof_image_bare_label(const UprofImage *image)
{
    return g_strndup(image->label + 1, strlen(image->label) - 2);
}

void
uprof_image_claim_name(const UprofImage *image, UprofNames *names, const UprofName *name)
{
    if (image->module_base == 0 || strcmp(uprof_name_text(name), "[unknown]") == 0) {
        uprof_name_add_module(name, NULL);
        return;
    }
    g_autofree char *label = uprof_image_bare_label(image);
    const UprofName *module = uprof_names_marker(names, label);
    /* if there are too many names, the module is "[unknown]" */
    uprof_name_add_module(name, uprof_name_text(module)[0] == '[' ? NULL : module);
}

const UprofSymbol *
uprof_image_find(const UprofImage *image, uint64_t pc)
{
    return uprof_symbol_table_find(image->table, pc - image->bias);
}

static const GArray *
get_targets(UprofImage *image)
{
    if (!image->targets)
        image->targets = uprof_call_targets_find(image->ranges, image->machine == X86_64 ? 8 : 4);
    return image->targets;
}

/* A symbol without a size may lie before functions without symbols. */
static void
find_extent(UprofImage *image, const UprofSymbol *symbol, uint64_t address, uint64_t *start,
            uint64_t *end)
{
    *start = symbol->start;
    *end = symbol->start + symbol->size;
    if (image->is_elf && is_x86(image->machine) &&
        uprof_symbol_table_is_guess(image->table, symbol))
        uprof_call_targets_narrow(get_targets(image), address, start, end);
}

bool
uprof_image_is_entry(UprofImage *image, const UprofSymbol *symbol, uint64_t pc)
{
    for (unsigned i = 0; i < UPROF_IMAGE_ENTRIES; i++) {
        const uint64_t entry = image->entries[i];
        uint64_t start, end;
        if (entry == 0 || entry - symbol->start >= symbol->size)
            continue;
        find_extent(image, symbol, entry, &start, &end);
        if (pc - image->bias >= start && pc - image->bias < end)
            return true;
    }
    return false;
}

bool
uprof_image_function(UprofImage *image, uint64_t pc, uint64_t *start, uint64_t *len)
{
    const uint64_t address = pc - image->bias;
    const UprofSymbol *symbol = uprof_image_find(image, pc);
    uint64_t first, end;

    if (symbol)
        find_extent(image, symbol, address, &first, &end);
    /* In an image with symbols, code that no symbol covers is not treated as a function. */
    else if (!image->is_elf || !is_x86(image->machine) ||
             uprof_symbol_table_count(image->table) > 0 ||
             !uprof_call_targets_around(get_targets(image), image->ranges, address, &first, &end))
        return false;
    *start = first + image->bias;
    *len = end - first;
    return true;
}
