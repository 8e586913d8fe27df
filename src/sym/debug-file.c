/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A debug file has the symbols, unwind tables and lines that an image lacks. The search tries
 * IMAGE.dbg, which Unikraft's build leaves, the file that .gnu_debuglink names, and the build-id
 * under the debug folders (gdb, "Separate Debug Files"). The last folder may be the symbol cache:
 * the program then asks the servers for a file that is missing there (file-rules.c).
 */
#include "debug-file-priv.h"
#include "uprof/build-id.h"
#include "uprof/error.h"
#include "uprof/text.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    const UprofFileBytes *file; /* of the image; borrowed */
    const UprofElfImage *image;
    const char *const *folders;
    const UprofSymOpener *opener; /* (nullable): for files beside the image */
    uint64_t room;                /* bytes of memory that are left for symbols */
    UprofDebugFile *found;        /* (nullable) */
    char *hint;                   /* (nullable): why a file is not used */
} Search;

void
uprof_debug_file_free(UprofDebugFile *debug)
{
    if (!debug)
        return;
    uprof_elf_clear(&debug->elf);
    uprof_file_bytes_free(debug->file);
    g_free(debug);
}

static bool
have_same_bytes(const UprofElfRange *one, const UprofElfRange *other, uint64_t start, uint64_t end)
{
    UprofSlice a, b;

    end = MIN(end, MIN(one->start + one->bytes.len, other->start + other->bytes.len));
    if (start >= end)
        return true;
    return uprof_slice_sub(one->bytes, start - one->start, end - start, &a) &&
           uprof_slice_sub(other->bytes, start - other->start, end - start, &b) &&
           memcmp(a.data, b.data, a.len) == 0;
}

static uint64_t
count_code(const UprofElfImage *image, bool with_bytes)
{
    uint64_t all = 0;

    for (guint i = 0; i < image->text->len; i++) {
        const UprofElfRange *range = &g_array_index(image->text, UprofElfRange, i);
        all += with_bytes ? range->bytes.len : range->len;
    }
    return all;
}

/*
 * Compares files without build-ids. Half of the debug file's code must be in the image, with the
 * same bytes, because the image may lack sections. If the debug file lacks the bytes, both files
 * must have code at the same addresses.
 */
static bool
has_same_code(const UprofElfImage *image, const UprofElfImage *debug)
{
    const uint64_t all = count_code(debug, false);
    uint64_t common = 0;
    guint i = 0, j = 0;

    while (i < image->text->len && j < debug->text->len) {
        const UprofElfRange *one = &g_array_index(image->text, UprofElfRange, i);
        const UprofElfRange *other = &g_array_index(debug->text, UprofElfRange, j);
        const uint64_t start = MAX(one->start, other->start);
        const uint64_t end = MIN(one->start + one->len, other->start + other->len);
        if (start < end && !have_same_bytes(one, other, start, end))
            return false;
        common += start < end ? end - start : 0;
        if (one->start + one->len == end)
            i++;
        else
            j++;
    }
    if (count_code(debug, true) == 0)
        return common > 0 && common == all && common == count_code(image, false);
    return common > 0 && common >= all / 2;
}

static bool
is_same_slice(UprofSlice one, UprofSlice other)
{
    return one.len == other.len && memcmp(one.data, other.data, one.len) == 0;
}

/* Returns: (nullable): why @debug is of another build; a CRC that agrees proves the same build */
static const char *
find_difference(const Search *search, const UprofElfImage *debug, bool has_crc)
{
    const UprofElfImage *image = search->image;

    if (debug->machine != image->machine || debug->word_bytes != image->word_bytes ||
        debug->big_endian != image->big_endian)
        return "it is of another architecture";
    if (image->build_id.len > 0 && debug->build_id.len > 0)
        return is_same_slice(image->build_id, debug->build_id) ? NULL : "its build-id differs";
    return has_crc || has_same_code(image, debug) ? NULL : "its code differs";
}

static void
note_refusal(Search *search, const char *name, const char *why)
{
    if (!search->hint)
        search->hint = g_strdup_printf("'%s' is not its debug file: %s", name, why);
}

/* @wants_crc: .gnu_debuglink names the file and its CRC. Returns: true if the file is used */
static bool
try_file(Search *search, const char *path, const UprofSymOpener *opener, bool wants_crc)
{
    g_autofree char *name = uprof_text_quote(path);
    g_autoptr(UprofDebugFile) debug = g_new0(UprofDebugFile, 1);
    g_autoptr(GError) error = NULL;

    debug->file = uprof_file_bytes_read(path, name, opener, search->room, &error);
    /* Most images have no debug file. */
    if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NO_FILE))
        return false;
    if (!debug->file ||
        !uprof_file_bytes_parse_elf(debug->file, name, search->room, &debug->elf, &error)) {
        note_refusal(search, name, error->message);
        return false;
    }
    /* A link may name the image itself. */
    if (strcmp(debug->file->path, search->file->path) == 0)
        return false;
    const bool has_crc =
        wants_crc && uprof_elf_debug_link_crc(uprof_file_bytes_slice(debug->file)) ==
                         search->image->debug_link_crc;
    const char *difference = wants_crc && !has_crc && search->image->build_id.len == 0
                                 ? "its checksum differs"
                                 : find_difference(search, &debug->elf, has_crc);
    if (difference) {
        note_refusal(search, name, difference);
        return false;
    }
    search->found = g_steal_pointer(&debug);
    return true;
}

static bool
try_sibling(Search *search)
{
    g_autofree char *path = g_strconcat(search->file->path, ".dbg", NULL);

    return try_file(search, path, search->opener, false);
}

static bool
try_link(Search *search)
{
    const UprofSlice link = search->image->debug_link;
    g_autofree char *folder = g_path_get_dirname(search->file->path);
    g_autofree char *name = g_strndup(link.data, link.len);

    /* The link must be a plain file name. */
    if (link.len == 0 || strchr(name, '/'))
        return false;
    g_autofree char *beside = g_build_filename(folder, name, NULL);
    g_autofree char *below = g_build_filename(folder, ".debug", name, NULL);
    if (try_file(search, beside, search->opener, true) ||
        try_file(search, below, search->opener, true))
        return true;
    for (unsigned i = 0; search->folders[i]; i++) {
        g_autofree char *path = g_build_filename(search->folders[i], folder, name, NULL);
        if (try_file(search, path, NULL, true))
            return true;
    }
    return false;
}

static bool
try_build_id(Search *search)
{
    const UprofSlice id = search->image->build_id;

    if (id.len < 2)
        return false;
    g_autofree char *hex = uprof_build_id_hex(id);
    g_autofree char *part = g_strdup_printf(".build-id/%.2s/%s.debug", hex, hex + 2);
    for (unsigned i = 0; search->folders[i]; i++) {
        g_autofree char *path = g_build_filename(search->folders[i], part, NULL);
        if (try_file(search, path, NULL, false))
            return true;
    }
    if (!search->opener || !search->opener->debug_folder)
        return false;
    g_autofree char *path = g_build_filename(search->opener->debug_folder, part, NULL);
    return try_file(search, path, search->opener, false);
}

UprofDebugFile *
uprof_debug_file_find(const UprofFileBytes *file, const UprofElfImage *image,
                      const char *const *folders, const UprofSymOpener *opener, uint64_t room,
                      char **hint)
{
    Search search = {
        .file = file,
        .image = image,
        .folders = folders,
        .opener = opener,
        .room = room,
    };

    if (try_sibling(&search) || try_link(&search) || try_build_id(&search))
        g_clear_pointer(&search.hint, g_free);
    *hint = search.hint;
    return search.found;
}
