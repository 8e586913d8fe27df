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

enum {
    SECRET_BYTES_MAX = 16 * 1024,
    STACK_BYTES = 32 * 1024, /* of the stack, which may have a part of a secret */
};

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
                         "may be read by others; take that right away: chmod 600");
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

static void G_GNUC_NO_INLINE
wipe_stack(void)
{
    uint8_t below[STACK_BYTES];

    explicit_bzero(below, sizeof(below));
}

/*
 * Functions of libc copy texts by way of vector registers, which the dynamic linker may save on the
 * stack much later. The same functions with another text leave that text in the registers.
 */
static void
wipe_registers(void)
{
    g_autofree char *text = g_strnfill(SECRET_BYTES_MAX, ' ');

    g_free(g_strconcat(text, text, NULL));
    g_free(g_strconcat("                                ", "", NULL));
}

void
uprof_credentials_wipe(char *secret)
{
    if (!secret)
        return;
    explicit_bzero(secret, strlen(secret));
    g_free(secret);
    wipe_registers();
    wipe_stack();
}

/* Checks the content of a file, and cuts the line break at its end. */
static bool
check_secret(char *secret, size_t len, const char *path, GError **error)
{
    if (strlen(secret) != len || len > SECRET_BYTES_MAX)
        return fail_file(error, UPROF_ERROR_BAD_DATA, path,
                         len > SECRET_BYTES_MAX ? "is too long" : "has a NUL byte");
    while (len > 0 && strchr("\r\n", secret[len - 1]))
        secret[--len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)secret[i] < ' ' || secret[i] == 0x7f)
            return fail_file(error, UPROF_ERROR_BAD_DATA, path,
                             "has a line break or another control character in its middle");
    return len > 0 || fail_file(error, UPROF_ERROR_BAD_DATA, path, "is empty");
}

/* Returns: (transfer full) (nullable): the content of the file, without a line break at its end */
static char *
read_secret(const char *path, GError **error)
{
    g_auto(UprofSecret) secret = g_malloc0(SECRET_BYTES_MAX + 2);
    const int fd = uprof_credentials_open(path, true, error);

    if (fd < 0)
        return NULL;
    const ssize_t n = uprof_read_at(fd, 0, secret, SECRET_BYTES_MAX + 1);
    const int reason = errno;
    close(fd);
    if (n < 0)
        fail_file(error, UPROF_ERROR_FAILED, path, g_strerror(reason));
    return n >= 0 && check_secret(secret, (size_t)n, path, error) ? g_steal_pointer(&secret) : NULL;
}

/* Returns: (transfer full) (nullable): the line of the header; %NULL without an error: none */
static char *
make_authorization(const UprofDestination *destination, GError **error)
{
    const char *path =
        destination->token_file ? destination->token_file : destination->password_file;
    g_auto(UprofSecret) secret = path ? read_secret(path, error) : NULL;

    if (!secret)
        return NULL;
    if (destination->token_file)
        return g_strconcat("Authorization: Bearer ", secret, NULL);
    g_auto(UprofSecret) both = g_strconcat(destination->user, ":", secret, NULL);
    g_auto(UprofSecret) encoded = g_base64_encode((const guchar *)both, strlen(both));
    return g_strconcat("Authorization: Basic ", encoded, NULL);
}

static void
free_line(gpointer line)
{
    uprof_credentials_wipe(line);
}

GPtrArray *
uprof_credentials_header(const UprofDestination *destination, GError **error)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(free_line);
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
