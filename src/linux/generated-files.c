/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "generated-files-priv.h"

#include "uprof/clock.h"

#include <string.h>

enum {
    DESCRIPTORS_MAX = 256, /* that are searched */
    NAME_BYTES = 24,       /* "perf-4194304.map", "jit-4194304.dump" */
    BATCH = 16,            /* pages that are read together */
    PAGES_MAX = 256,       /* that are read at once */
};
#define FILE_BYTES_MAX (UINT64_C(64) << 20)

/* A process without such a file is searched less and less often. */
#define FIRST_APART_NS UPROF_NS_PER_S
#define LAST_APART_NS (256 * UPROF_NS_PER_S)
/* Searches of all processes together, because each one reads hundreds of words. */
#define SEARCHES_APART_NS (100 * UPROF_NS_PER_MS)
/* New lines are read at once if code has no name, but not for every sample. */
#define URGENT_APART_NS (100 * UPROF_NS_PER_MS)
#define USUAL_APART_NS UPROF_NS_PER_S

/* A process that writes both files writes the same names to both: the perf map is preferred. */
typedef enum { KIND_OTHER, KIND_JITDUMP, KIND_PERF_MAP } Kind;

struct _UprofGeneratedFiles {
    UprofFilePages *pages;    /* borrowed */
    const UprofLinux *kernel; /* borrowed */
    UprofSym *sym;            /* borrowed */
    uint64_t searched_ns;     /* time of the last search; 0 before the first */
};

UprofGeneratedFiles *
uprof_generated_files_new(UprofFilePages *pages, const UprofLinux *kernel, UprofSym *sym)
{
    UprofGeneratedFiles *files = g_new0(UprofGeneratedFiles, 1);

    files->pages = pages;
    files->kernel = kernel;
    files->sym = sym;
    return files;
}

void
uprof_generated_files_free(UprofGeneratedFiles *files)
{
    g_free(files);
}

/* ---- The search ---- */

/* Byte by byte: a short name may end right before an unmapped page. */
static bool
read_name(const UprofKernelMemory *memory, uint64_t gva, char *name)
{
    for (unsigned i = 0; i < NAME_BYTES; i++) {
        if (!uprof_kernel_read_always(memory, gva + i, &name[i], 1))
            return false;
        if (name[i] == '\0')
            return true;
    }
    return false;
}

/* Is @name START, a number, END? */
static bool
is_numbered(const char *name, const char *start, const char *end)
{
    const char *number = name + strlen(start);

    if (!g_str_has_prefix(name, start) || !g_ascii_isdigit(*number))
        return false;
    return strcmp(number + strspn(number, "0123456789"), end) == 0;
}

static Kind
find_kind(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory, uint64_t file)
{
    char name[NAME_BYTES];
    uint64_t entry, text;

    if (!uprof_kernel_read_word_always(memory, file + offsets->file_dentry, &entry) ||
        !uprof_kernel_read_word_always(memory, entry + offsets->dentry_name, &text) ||
        !read_name(memory, text, name))
        return KIND_OTHER;
    if (is_numbered(name, "perf-", ".map"))
        return KIND_PERF_MAP;
    return is_numbered(name, "jit-", ".dump") ? KIND_JITDUMP : KIND_OTHER;
}

/* The open files of a task. */
typedef struct {
    uint64_t list; /* address of pointers to its struct file, by descriptor */
    uint32_t n;
} Descriptors;

static bool
read_descriptors(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory, uint64_t task,
                 Descriptors *descriptors)
{
    uint64_t open_files, table;

    return uprof_kernel_read_word_always(memory, task + offsets->task_files, &open_files) &&
           uprof_kernel_read_word_always(memory, open_files + offsets->files_table, &table) &&
           uprof_kernel_read_u32_always(memory, table + offsets->table_max, &descriptors->n) &&
           uprof_kernel_read_word_always(memory, table + offsets->table_files, &descriptors->list);
}

/* Returns: address of a struct file; 0 if the descriptor is not open, or cannot be read */
static uint64_t
read_descriptor(const UprofKernelMemory *memory, const Descriptors *descriptors, unsigned i)
{
    uint64_t opened;

    return i < descriptors->n && uprof_kernel_read_word_always(
                                     memory, descriptors->list + i * sizeof(opened), &opened)
               ? opened
               : 0;
}

/* A file that is found again is read on. */
static void
note_file(const UprofLinuxOffsets *offsets, const UprofKernelMemory *memory, uint64_t opened,
          UprofGeneratedFile *file)
{
    uint64_t mapping;

    if (!uprof_kernel_read_word_always(memory, opened + offsets->file_mapping, &mapping))
        return;
    if (mapping != file->mapping)
        file->n_read = file->n_missing = 0;
    file->mapping = mapping;
    file->opened = opened;
}

static void
find_file(const UprofGeneratedFiles *files, const UprofKernelMemory *memory, uint64_t task,
          UprofGeneratedFile *file)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(files->kernel);
    Descriptors descriptors;
    uint64_t best_opened = 0;
    Kind best = KIND_OTHER;

    if (!read_descriptors(offsets, memory, task, &descriptors))
        return;
    for (unsigned i = 0; i < MIN(descriptors.n, (uint32_t)DESCRIPTORS_MAX) && best != KIND_PERF_MAP;
         i++) {
        const uint64_t opened = read_descriptor(memory, &descriptors, i);
        const Kind kind = opened != 0 ? find_kind(offsets, memory, opened) : KIND_OTHER;
        if (kind <= best)
            continue;
        best = kind;
        best_opened = opened;
        file->descriptor = i;
        file->is_jitdump = kind == KIND_JITDUMP;
    }
    if (best != KIND_OTHER)
        note_file(offsets, memory, best_opened, file);
}

/* The kernel may use the structures of a closed file for another one. */
static bool
is_still_open(const UprofGeneratedFiles *files, const UprofKernelMemory *memory, uint64_t task,
              const UprofGeneratedFile *file)
{
    Descriptors descriptors;

    return file->opened != 0 &&
           read_descriptors(uprof_linux_offsets(files->kernel), memory, task, &descriptors) &&
           read_descriptor(memory, &descriptors, file->descriptor) == file->opened;
}

static void
search_file(UprofGeneratedFiles *files, const UprofKernelMemory *memory, uint64_t task,
            unsigned process, UprofGeneratedFile *file, uint64_t now_ns)
{
    const uint64_t before = file->mapping;

    if (now_ns < file->next_ns ||
        (files->searched_ns != 0 && now_ns - files->searched_ns < SEARCHES_APART_NS))
        return;
    files->searched_ns = now_ns;
    find_file(files, memory, task, file);
    if (before != 0 && file->mapping != before)
        uprof_sym_forget_process(files->sym, process);
    file->apart_ns = file->apart_ns == 0 ? FIRST_APART_NS : MIN(file->apart_ns * 2, LAST_APART_NS);
    file->next_ns = now_ns + file->apart_ns;
}

/* ---- The file ---- */

/* Adds the bytes from @file->n_read to @end, which is in this page. Returns: false if there is no
 * room */
static bool
add_page(UprofGeneratedFiles *files, unsigned process, UprofGeneratedFile *file,
         const uint8_t *page, uint64_t end)
{
    const UprofSlice bytes = { page + file->n_read % UPROF_PAGE_BYTES, end - file->n_read };

    if (!uprof_sym_add_generated(files->sym, process, file->is_jitdump, bytes, file->n_missing))
        return false;
    file->n_missing = 0;
    file->n_read = end;
    return true;
}

/* Skips pages that are not in memory. Returns: false if there is no room for the names */
static bool
add_pages(UprofGeneratedFiles *files, unsigned process, UprofGeneratedFile *file, uint64_t size,
          const uint8_t *bytes, const bool *is_here)
{
    const uint64_t first = file->n_read / UPROF_PAGE_BYTES;

    for (unsigned i = 0; i < BATCH && file->n_read < size; i++) {
        const uint64_t end = MIN(size, (first + i + 1) * UPROF_PAGE_BYTES);
        if (is_here[i]) {
            if (!add_page(files, process, file, bytes + (size_t)i * UPROF_PAGE_BYTES, end))
                return false;
            continue;
        }
        file->n_missing += end - file->n_read;
        file->n_read = end;
    }
    return true;
}

static bool
read_size(const UprofGeneratedFiles *files, const UprofKernelMemory *memory, uint64_t mapping,
          uint64_t *size)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(files->kernel);
    uint64_t inode;

    return uprof_kernel_read_word_always(memory, mapping + offsets->mapping_inode, &inode) &&
           uprof_kernel_read_word_always(memory, inode + offsets->inode_size, size);
}

static void
read_file(UprofGeneratedFiles *files, const UprofKernelMemory *memory, unsigned process,
          UprofGeneratedFile *file)
{
    const UprofFilePlace place = { .mapping = file->mapping };
    bool is_here[BATCH];
    uint64_t size;

    if (!read_size(files, memory, file->mapping, &size))
        return;
    size = MIN(size, FILE_BYTES_MAX);
    if (file->n_read >= size)
        return;
    g_autofree uint8_t *bytes = g_malloc((size_t)BATCH * UPROF_PAGE_BYTES);
    for (unsigned done = 0; done < PAGES_MAX && file->n_read < size; done += BATCH) {
        /* a page that may not be read would seem to be missing */
        if (uprof_file_pages_left(files->pages) < BATCH)
            return;
        uprof_file_pages_read(files->pages, &place, file->n_read / UPROF_PAGE_BYTES, BATCH, bytes,
                              is_here);
        if (!add_pages(files, process, file, size, bytes, is_here))
            return;
    }
}

void
uprof_generated_files_update(UprofGeneratedFiles *files, const UprofKernelMemory *memory,
                             uint64_t task, unsigned process, UprofGeneratedFile *file,
                             bool is_named, uint64_t now_ns)
{
    const UprofLinuxOffsets *offsets = uprof_linux_offsets(files->kernel);

    if (!offsets || !offsets->has_open_files)
        return;
    if (file->opened == 0)
        search_file(files, memory, task, process, file, now_ns);
    if (file->opened == 0 ||
        (file->was_read && now_ns - file->read_ns < (is_named ? USUAL_APART_NS : URGENT_APART_NS)))
        return;
    file->was_read = true;
    file->read_ns = now_ns;
    if (is_still_open(files, memory, task, file))
        read_file(files, memory, process, file);
    else
        file->opened = 0;
}
