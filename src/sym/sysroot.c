/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The guest chooses the files that are opened. Somebody else chose their content. Neither is
 * trusted.
 */
#include "sysroot-priv.h"

#include "uprof/build-id.h"
#include "uprof/elf-head.h"
#include "uprof/error.h"
#include "uprof/regular-file.h"
#include "uprof/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

/* Returns: (nullable): the part of @path behind "@folder/" */
static const char *
strip_folder(const char *folder, const char *path)
{
    size_t len = strlen(folder);

    while (len > 0 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

int
uprof_sysroot_open(const char *path, void *folder, GError **error)
{
    const char *rest = strip_folder(folder, path);
    g_autofree char *shown = uprof_text_quote(path);

    errno = ENOENT;
    const int fd = rest ? uprof_regular_file_open_below(folder, rest, UPROF_FILE_AS_IN_ROOT) : -1;
    if (fd < 0)
        g_set_error(error, UPROF_ERROR,
                    uprof_regular_file_is_missing(errno) ? UPROF_ERROR_NO_FILE : UPROF_ERROR_FAILED,
                    "cannot open '%s': %s", shown, uprof_regular_file_reason(errno));
    return fd;
}

bool
uprof_sysroot_has_build(const char *folder, const char *path, const char *build_id)
{
    const int fd = uprof_sysroot_open(path, (void *)folder, NULL);
    uint8_t page[PAGE_BYTES] = { 0 };
    UprofElfHead head;

    if (fd < 0)
        return false;
    const ssize_t n = pread(fd, page, sizeof(page), 0);
    close(fd);
    if (n <= 0 || !uprof_elf_head_parse((UprofSlice){ page, sizeof(page) }, &head))
        return false;
    g_autofree char *id = uprof_build_id_hex((UprofSlice){ head.build_id, head.build_id_len });
    return strcmp(id, build_id) == 0;
}
