/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "credentials-priv.h"

#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"
#include "uprof/text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_BYTES_MAX = 16 * 1024 };

static bool
fail_file(GError **error, UprofErrorCode code, const char *path, const char *why)
{
    g_autofree char *shown = uprof_text_quote(path);

    g_set_error(error, UPROF_ERROR, (gint)code, "'%s' %s", shown, why);
    return false;
}

static bool
check_file(int fd, const char *path, bool is_secret, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return fail_file(error, UPROF_ERROR_FAILED, path, g_strerror(errno));
    if (!uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
        return fail_file(error, UPROF_ERROR_DENIED, path,
                         "belongs to somebody else, or may be written by others");
    if (is_secret && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail_file(error, UPROF_ERROR_DENIED, path,
                         "may be read by others; run: chmod 600 on it");
    return true;
}

int
uprof_credentials_open(const char *path, bool is_secret, GError **error)
{
    const int fd = uprof_regular_file_open(path);

    if (fd < 0) {
        g_autofree char *why =
            g_strdup_printf("cannot be opened: %s", uprof_regular_file_reason(errno));
        fail_file(error, UPROF_ERROR_FAILED, path, why);
        return -1;
    }
    if (check_file(fd, path, is_secret, error))
        return fd;
    close(fd);
    return -1;
}

/* Returns: (transfer full) (nullable): the content of the file, without a line break at its end */
static char *
read_secret(const char *path, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const int fd = uprof_credentials_open(path, true, error);

    if (fd < 0)
        return NULL;
    const bool ok = uprof_read_all(fd, SECRET_BYTES_MAX + 1, bytes);
    const int reason = errno;
    close(fd);
    if (!ok || bytes->len > SECRET_BYTES_MAX) {
        fail_file(error, UPROF_ERROR_FAILED, path, ok ? "is too long" : g_strerror(reason));
        return NULL;
    }
    while (bytes->len > 0 && strchr("\r\n", bytes->data[bytes->len - 1]))
        g_byte_array_set_size(bytes, bytes->len - 1);
    for (guint i = 0; i < bytes->len; i++)
        if (bytes->data[i] < ' ' || bytes->data[i] == 0x7f) {
            fail_file(error, UPROF_ERROR_BAD_DATA, path,
                      "has a line break or another control character in its middle");
            return NULL;
        }
    if (bytes->len == 0) {
        fail_file(error, UPROF_ERROR_BAD_DATA, path, "is empty");
        return NULL;
    }
    return g_strndup((const char *)bytes->data, bytes->len);
}

/* Returns: (transfer full) (nullable): the line of the header; %NULL without an error: none */
static char *
make_authorization(const UprofDestination *destination, GError **error)
{
    const char *path =
        destination->token_file ? destination->token_file : destination->password_file;
    g_autofree char *secret = path ? read_secret(path, error) : NULL;

    if (!secret)
        return NULL;
    if (destination->token_file)
        return g_strconcat("Authorization: Bearer ", secret, NULL);
    g_autofree char *both = g_strconcat(destination->user, ":", secret, NULL);
    g_autofree char *encoded = g_base64_encode((const guchar *)both, strlen(both));
    return g_strconcat("Authorization: Basic ", encoded, NULL);
}

GPtrArray *
uprof_credentials_header(const UprofDestination *destination, GError **error)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) failure = NULL;
    char *authorization = make_authorization(destination, &failure);

    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    if (authorization)
        g_ptr_array_add(lines, authorization);
    g_ptr_array_add(lines, g_strdup("Content-Type: application/json"));
    g_ptr_array_add(lines, g_strdup("User-Agent: virt-uprof"));
    g_ptr_array_add(lines, g_strdup("Expect:")); /* libcurl must not wait for "100 Continue" */
    if (destination->tenant && destination->type == UPROF_DESTINATION_PYROSCOPE)
        g_ptr_array_add(lines, g_strconcat("X-Scope-OrgID: ", destination->tenant, NULL));
    return g_steal_pointer(&lines);
}
