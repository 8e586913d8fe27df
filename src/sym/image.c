/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "image-priv.h"

#include "uprof/nm.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROOF_PIECES = 8,
    PROOF_PIECE_BYTES = 256,
    PROOF_AGREE = 6,
    TEXT_TAIL_BYTES = 4096, /* how far the last symbol of a table that is text may reach */
    NEST_MAX = 64,          /* symbols before an address that may reach over it */
};

void
uprof_image_free(UprofImage *image)
{
    if (!image)
        return;
    if (image->bytes)
        munmap(image->bytes, image->len);
    g_clear_pointer(&image->symbols, g_array_unref);
    g_clear_pointer(&image->ranges, g_array_unref);
    g_free(image->label);
    g_free(image->path);
    g_free(image->build_id);
    g_free(image->digest);
    g_free(image);
}

/* A copy: a mapping of the file itself would fault when somebody truncates it. */
static bool
read_file(UprofImage *image, int fd, const char *name, GError **error)
{
    struct stat info;
    size_t done = 0;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is not a regular file", name);
        return false;
    }
    if (info.st_size <= 0 || info.st_size / 1048576 >= UPROF_SYM_FILE_BYTES_MAX_MIB) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is %s: symbol files have up to %d MiB", name,
                    info.st_size <= 0 ? "empty" : "too large", UPROF_SYM_FILE_BYTES_MAX_MIB);
        return false;
    }
    const size_t len = (size_t)info.st_size;
    void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no memory for '%s'", name);
        return false;
    }
    image->bytes = bytes;
    image->len = len;
    while (done < len) {
        const ssize_t n = read(fd, image->bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read '%s': %s", name,
                        n < 0 ? g_strerror(errno) : "it was cut meanwhile");
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool
open_file(UprofImage *image, const char *path, const char *name, GError **error)
{
    /* not to block on a pipe of that name */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        g_set_error(error, UPROF_ERROR, errno == EACCES ? UPROF_ERROR_DENIED : UPROF_ERROR_FAILED,
                    "cannot open symbol file '%s': %s", name, g_strerror(errno));
        return false;
    }
    const bool ok = read_file(image, fd, name, error);
    close(fd);
    return ok;
}

static char *
format_hex(UprofSlice bytes)
{
    const uint8_t *data = bytes.data;
    GString *hex = g_string_new(NULL);

    for (size_t i = 0; i < bytes.len; i++)
        g_string_append_printf(hex, "%02x", data[i]);
    return g_string_free(hex, FALSE);
}

/* ELF machines (System V gABI, e_machine): EM_386 and EM_X86_64 */
static bool
is_x86(uint16_t machine)
{
    return machine == 3 || machine == 62;
}

static bool
load_elf(UprofImage *image, const UprofArch *arch, const char *name, GError **error)
{
    g_auto(UprofElfImage) elf = { 0 };

    if (!uprof_elf_parse((UprofSlice){ image->bytes, image->len }, name, &elf, error))
        return false;
    /* 32-bit code on a 64-bit guest is an i386 image */
    if (elf.machine != arch->elf_machine && !(is_x86(elf.machine) && is_x86(arch->elf_machine))) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is an image of another architecture (ELF machine %u) than the guest's %s",
                    name, elf.machine, arch->name);
        return false;
    }
    image->is_elf = true;
    image->machine = elf.machine;
    image->entry = elf.entry;
    if (elf.build_id.len > 0)
        image->build_id = format_hex(elf.build_id);
    for (guint i = 0; i < elf.text->len; i++) {
        const UprofElfRange *text = &g_array_index(elf.text, UprofElfRange, i);
        const UprofImageRange range = { text->start, text->start + text->len, text->bytes };
        g_array_append_val(image->ranges, range);
    }
    image->symbols = uprof_table_symbols(elf.symbols, image->ranges);
    return true;
}

static bool
load_text(UprofImage *image, const char *name, GError **error)
{
    g_autoptr(GArray) symbols = NULL;
    UprofImageRange range = { UINT64_MAX, 0, { NULL, 0 } };

    if (!uprof_nm_parse((UprofSlice){ image->bytes, image->len }, name, &symbols, error))
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
    if (range.start < range.end)
        g_array_append_val(image->ranges, range);
    image->symbols = uprof_table_symbols(symbols, image->ranges);
    return true;
}

UprofImage *
uprof_image_load(const char *path, const UprofArch *arch, GError **error)
{
    g_autoptr(UprofImage) image = g_new0(UprofImage, 1);
    g_autofree char *name = uprof_text_quote(path);

    /* as it can be found again from another folder, by whoever replays a capture */
    image->path = g_canonicalize_filename(path, NULL);
    image->ranges = g_array_new(FALSE, FALSE, sizeof(UprofImageRange));
    if (!open_file(image, path, name, error))
        return NULL;

    const UprofSlice bytes = { image->bytes, image->len };
    if (uprof_elf_is(bytes)) {
        if (!load_elf(image, arch, name, error))
            return NULL;
    } else if (uprof_nm_is(bytes)) {
        if (!load_text(image, name, error))
            return NULL;
    } else {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is neither an ELF file nor text as nm, System.map or kallsyms write it",
                    name);
        return NULL;
    }
    image->digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, image->bytes, image->len);
    return g_steal_pointer(&image);
}

bool
uprof_image_has_code(const UprofImage *image, uint64_t pc)
{
    for (guint i = 0; i < image->ranges->len; i++) {
        const UprofImageRange *range = &g_array_index(image->ranges, UprofImageRange, i);
        if (pc >= range->start && pc < range->end)
            return true;
    }
    return false;
}

const UprofSymbol *
uprof_image_find(const UprofImage *image, uint64_t pc)
{
    const UprofSymbol *symbols = (const UprofSymbol *)(void *)image->symbols->data;
    size_t low = 0, high = image->symbols->len;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (symbols[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    /* the nearest symbol before that reaches as far; one may be nested in another */
    for (unsigned i = 0; low > 0 && i < NEST_MAX; i++) {
        const UprofSymbol *symbol = &symbols[--low];
        if (pc - symbol->start < symbol->size)
            return symbol;
    }
    return NULL;
}

void
uprof_image_compare(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs)
{
    unsigned n_read = 0, n_equal = 0;
    uint64_t total = 0;

    for (guint i = 0; i < image->ranges->len; i++)
        total += g_array_index(image->ranges, UprofImageRange, i).bytes.len;
    for (unsigned piece = 0; piece < PROOF_PIECES; piece++) {
        uint8_t guest[PROOF_PIECE_BYTES];
        uint64_t skip = total / PROOF_PIECES * piece;
        for (guint i = 0; i < image->ranges->len; i++) {
            const UprofImageRange *range = &g_array_index(image->ranges, UprofImageRange, i);
            if (skip >= range->bytes.len) {
                skip -= range->bytes.len;
                continue;
            }
            const size_t len = MIN((size_t)PROOF_PIECE_BYTES, range->bytes.len - skip);
            if (uprof_mem_read(mem, vcpu, regs, range->start + skip, guest, len)) {
                n_read++;
                n_equal += memcmp(guest, (const uint8_t *)range->bytes.data + skip, len) == 0;
            }
            break;
        }
    }
    if (n_read > 0)
        image->match = n_equal * PROOF_PIECES >= n_read * PROOF_AGREE ? UPROF_SYM_MATCHED
                                                                      : UPROF_SYM_MISMATCHED;
}
