/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory-files-priv.h"

#include "uprof/build-id.h"
#include "uprof/clock.h"
#include "uprof/mapped-elf.h"

#include <string.h>

/* if the budget ended before the file was read */
#define SPENT_APART_NS UPROF_NS_PER_S
#define SPENT_LAST_APART_NS (8 * UPROF_NS_PER_S)
#define FIRST_APART_NS (4 * UPROF_NS_PER_S)
#define LAST_APART_NS (256 * UPROF_NS_PER_S)

/* The state of a module's file. */
typedef struct {
    uint64_t next_ns; /* when to read it; %UINT64_MAX: never again */
    uint64_t apart_ns;
    uint64_t n_here; /* pages that were read the last time */
} File;

struct _UprofMemoryFiles {
    UprofFilePages *pages; /* borrowed */
    UprofSym *sym;         /* borrowed */
    GArray *files;         /* of File, by number of the module; owned */
};

/* The data of a UprofMappedReader. */
typedef struct {
    UprofFilePages *pages;
    const UprofFilePlace *place;
} Source;

UprofMemoryFiles *
uprof_memory_files_new(UprofFilePages *pages, UprofSym *sym)
{
    UprofMemoryFiles *files = g_new0(UprofMemoryFiles, 1);

    files->pages = pages;
    files->sym = sym;
    files->files = g_array_new(FALSE, TRUE, sizeof(File));
    return files;
}

void
uprof_memory_files_free(UprofMemoryFiles *files)
{
    if (!files)
        return;
    g_array_unref(files->files);
    g_free(files);
}

bool
uprof_memory_files_is_due(const UprofMemoryFiles *files, unsigned module, uint64_t now_ns)
{
    return module >= files->files->len ||
           now_ns >= g_array_index(files->files, File, module).next_ns;
}

static void
read_source(void *data, uint64_t first, unsigned n, uint8_t *bytes, bool *is_here)
{
    const Source *source = data;

    uprof_file_pages_read(source->pages, source->place, first, n, bytes, is_here);
}

/* The kernel may have given the struct address_space to another file since the module was found. */
static bool
is_same_build(const UprofSymModule *module, const UprofMappedElf *mapped)
{
    g_autofree char *build_id =
        mapped->elf.build_id.len > 0 ? uprof_build_id_hex(mapped->elf.build_id) : NULL;

    return g_strcmp0(module->build_id, build_id) == 0;
}

static void
schedule_next(const UprofMemoryFiles *files, File *file, const UprofMappedElf *mapped,
              uint64_t now_ns)
{
    /* Without a build-id, nothing shows later that it is still the same file. */
    if (mapped->n_here > 0 && (mapped->n_missing == 0 || mapped->elf.build_id.len == 0)) {
        file->next_ns = UINT64_MAX;
        return;
    }
    /* The next attempt reads all wanted pages, so it waits until the budget has so many. */
    if (uprof_file_pages_is_spent(files->pages)) {
        const uint64_t wait_ns =
            (mapped->n_here + mapped->n_missing) * UPROF_NS_PER_S / UPROF_FILE_PAGES_PER_SECOND;
        file->next_ns = now_ns + CLAMP(wait_ns, SPENT_APART_NS, SPENT_LAST_APART_NS);
        return;
    }
    file->apart_ns = file->apart_ns == 0 ? FIRST_APART_NS : MIN(file->apart_ns * 2, LAST_APART_NS);
    file->next_ns = now_ns + file->apart_ns;
}

void
uprof_memory_files_read(UprofMemoryFiles *files, unsigned module, const UprofFilePlace *place,
                        uint64_t now_ns)
{
    g_auto(UprofMappedElf) mapped = { 0 };
    Source source = { files->pages, place };
    const UprofMappedReader reader = { read_source, &source };
    UprofSymModule known;

    if (module >= files->files->len)
        g_array_set_size(files->files, module + 1);
    File *file = &g_array_index(files->files, File, module);
    if (!uprof_sym_module(files->sym, module, &known) || (known.path && known.cfi)) {
        file->next_ns = UINT64_MAX;
        return;
    }
    /* Nothing is known if the budget is used up: the next sample tries again. */
    if (uprof_file_pages_is_spent(files->pages))
        return;
    if (uprof_mapped_elf_read(&reader, &mapped) && is_same_build(&known, &mapped) &&
        mapped.n_here > file->n_here && uprof_sym_fill_module(files->sym, module, &mapped))
        file->n_here = mapped.n_here;
    schedule_next(files, file, &mapped, now_ns);
}

bool
uprof_memory_files_find_object(const UprofMemoryFiles *files, const UprofFilePlace *place,
                               const char *name, uint64_t *offset)
{
    Source source = { files->pages, place };
    const UprofMappedReader reader = { read_source, &source };

    return !uprof_file_pages_is_spent(files->pages) &&
           uprof_mapped_elf_find_object(&reader, name, offset);
}
