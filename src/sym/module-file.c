/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file of this host is used if it has the module's build-id. The guest's own path is opened in
 * sysroots, and on this host itself if it is a path of a package: many guests run the host's
 * distribution.
 */
#include "module-file-priv.h"

#include "uprof/path.h"

#include "sysroot-priv.h"

#include <string.h>
#include <unistd.h>

/* Fedora and others link programs here by their build-ids. */
static const char programs_folder[] = "/usr/lib";

/* Returns: (transfer full) (nullable): %NULL if the file has another build-id */
static UprofImage *
load_file(const char *path, const UprofModuleSearch *search, const UprofSymOpener *opener)
{
    g_autoptr(UprofImage) image =
        uprof_image_load(path, search->arch, search->debug_folders, opener, search->room, NULL);

    if (!image || g_strcmp0(image->build_id, search->build_id) != 0)
        return NULL;
    return g_steal_pointer(&image);
}

static UprofImage *
try_file(const char *path, const UprofModuleSearch *search)
{
    return load_file(path, search, NULL);
}

static UprofImage *
try_folder(const char *folder, const UprofModuleSearch *search)
{
    static const char *const suffixes[] = { "", ".debug" };
    const char *id = search->build_id;

    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *path =
            g_strdup_printf("%s/.build-id/%.2s/%s%s", folder, id, id + 2, suffixes[i]);
        UprofImage *image = try_file(path, search);
        if (image)
            return image;
    }
    return NULL;
}

/*
 * Tries the guest's own path, then Fedora's links by build-id: of programs, and of debug files.
 * Because the guest chooses the path, only the first page of a file with another build-id is
 * read.
 */
static UprofImage *
try_sysroot(const char *folder, const UprofModuleSearch *search)
{
    const char *id = search->build_id;
    g_autofree char *debug_folder = g_build_filename(folder, "usr/lib/debug", NULL);
    g_autofree char *by_path = search->path ? g_build_filename(folder, search->path, NULL) : NULL;
    g_autofree char *by_id = g_strdup_printf("%s/usr/lib/.build-id/%.2s/%s", folder, id, id + 2);
    g_autofree char *debug =
        g_strdup_printf("%s/.build-id/%.2s/%s.debug", debug_folder, id, id + 2);
    const UprofSymOpener opener = { uprof_sysroot_open, (void *)folder, debug_folder };
    UprofImage *image = NULL;

    if (by_path && uprof_sysroot_has_build(folder, by_path, id))
        image = load_file(by_path, search, &opener);
    if (!image && uprof_sysroot_has_build(folder, by_id, id))
        image = load_file(by_id, search, &opener);
    return image ? image : load_file(debug, search, &opener);
}

/*
 * A user with a sysroot has said where the guest's files are. The guest chooses the path, so only
 * the first page of a file with another build-id is read.
 */
static UprofImage *
try_host(const UprofModuleSearch *search)
{
    static char root[] = "/";
    const UprofSymOpener opener = { uprof_sysroot_open, root, "/usr/lib/debug" };

    if (search->sysroots[0] || !search->path || !uprof_path_is_of_system(search->path) ||
        !uprof_sysroot_has_build(root, search->path, search->build_id))
        return NULL;
    return load_file(search->path, search, &opener);
}

static UprofImage *
find_file(const UprofModuleSearch *search)
{
    UprofImage *image = NULL;

    if (!search->build_id || strlen(search->build_id) <= 2)
        return NULL;
    for (unsigned i = 0; i < search->n_given && !image; i++)
        if (g_strcmp0(search->given[i]->build_id, search->build_id) == 0)
            image = try_file(search->given[i]->file->path, search);
    for (unsigned i = 0; search->sysroots[i] && !image; i++)
        image = try_sysroot(search->sysroots[i], search);
    for (unsigned i = 0; search->debug_folders[i] && !image; i++)
        if (g_strcmp0(search->debug_folders[i], search->cache_folder) != 0)
            image = try_folder(search->debug_folders[i], search);
    if (!image)
        image = try_folder(programs_folder, search);
    if (!image)
        image = try_host(search);
    return image || !search->cache_folder ? image : try_folder(search->cache_folder, search);
}

/* Returns: (transfer full): a label, such as "[libc.so.6]" */
static char *
make_label(const char *name)
{
    g_autofree char *clean = g_strndup(name, UPROF_MODULE_FILE_LABEL_BYTES_MAX);

    g_strcanon(clean, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.-", '_');
    /* Files of the user and the kernel's own symbols have these labels already. */
    if (strcmp(clean, "kernel") == 0 || strcmp(clean, "modules") == 0 ||
        (g_str_has_prefix(clean, "app") && strspn(clean + 3, G_CSET_DIGITS) == strlen(clean + 3)))
        return g_strdup_printf("[%s_]", clean);
    return g_strdup_printf("[%s]", clean);
}

/* Without its file, every address of a module may be code. */
static UprofImage *
make_bare(const UprofModuleSearch *search, const char *label)
{
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(UprofSymCode));
    const UprofSymCode all = { 0, UPROF_SYM_MODULE_BYTES_MAX };

    g_array_append_val(ranges, all);
    UprofImage *image = uprof_image_make(label, symbols, g_byte_array_new(), ranges, 1);
    image->build_id = g_strdup(search->build_id);
    return image;
}

/* Makes @image the image of a module. Returns: false if it does not fit there */
static bool
set_module_base(UprofImage *image, const char *label, const char *path, uint64_t base)
{
    if (!uprof_image_move(image, base, NULL))
        return false;
    g_free(image->label);
    image->label = g_strdup(label);
    image->guest_path = g_strdup(path);
    image->match = UPROF_SYM_MATCHED;
    image->module_base = base;
    return true;
}

UprofImage *
uprof_module_file_open(const UprofModuleSearch *search, const char *name, uint64_t base)
{
    g_autofree char *label = make_label(name);
    g_autoptr(UprofImage) image = find_file(search);

    if (image && set_module_base(image, label, search->path, base))
        return g_steal_pointer(&image);
    g_clear_pointer(&image, uprof_image_free);
    image = make_bare(search, label);
    image->bias = base;
    image->guest_path = g_strdup(search->path);
    image->match = UPROF_SYM_MATCHED;
    image->module_base = base;
    return g_steal_pointer(&image);
}

UprofImage *
uprof_module_file_reopen(const UprofModuleSearch *search, UprofImage *before)
{
    g_autoptr(UprofImage) image = find_file(search);

    if (!image ||
        (before->file->path &&
         uprof_symbol_table_count(image->table) <= uprof_symbol_table_count(before->table)) ||
        !set_module_base(image, before->label, before->guest_path, before->module_base))
        return NULL;
    /* a debug file has no rules, but the guest's memory may have given some */
    if (before->cfi && !image->cfi && !uprof_image_take_rules(image, before))
        return NULL;
    return g_steal_pointer(&image);
}

bool
uprof_module_file_find_rules(const UprofModuleSearch *search, UprofImage *image)
{
    g_autoptr(UprofImage) other = find_file(search);

    return other && uprof_image_take_rules(image, other);
}
