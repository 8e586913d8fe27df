/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/vmcoreinfo.h"

#include <string.h>

#include "uprof/scan.h"
#include "uprof/text.h"

enum {
    RELEASE_BYTES_MAX = 64, /* as in struct new_utsname */
    BUILD_ID_BYTES_MAX = 20,
};

/*
 * text = { key "=" value "\n" }
 * key  = "OSRELEASE" | "BUILD-ID" | others
 *
 * All bytes are printable ASCII.
 */

struct _UprofVmcoreinfo {
    char *text;
    size_t len;
    char *release;  /* without control characters */
    char *build_id; /* NULL: the text has none */
};

/* @value: (out): of the first line that has @key */
static bool
find_value(UprofSlice text, const char *key, UprofSlice *value)
{
    UprofScan scan = { .name = "VMCOREINFO", .rest = text };
    UprofSlice line, its_key;

    while (uprof_scan_line(&scan, &line))
        if (uprof_slice_split(line, '=', &its_key, value) && uprof_slice_is(its_key, key))
            return true;
    return false;
}

static bool
is_printable(UprofSlice line)
{
    const char *bytes = line.data;

    for (size_t i = 0; i < line.len; i++)
        if (!g_ascii_isprint(bytes[i]))
            return false;
    return true;
}

static bool
check_lines(UprofSlice text, GError **error)
{
    UprofScan scan = { .name = "VMCOREINFO", .rest = text };
    UprofSlice line, key, value;

    while (uprof_scan_line(&scan, &line)) {
        if (!is_printable(line))
            return uprof_scan_fail(&scan, error, "bytes that are not text");
        if (!uprof_slice_split(line, '=', &key, &value) || key.len == 0)
            return uprof_scan_fail(&scan, error, "no KEY=VALUE");
    }
    return true;
}

static bool
take_release(UprofVmcoreinfo *info, GError **error)
{
    const UprofScan scan = { .name = "VMCOREINFO" };
    UprofSlice value;

    if (!find_value((UprofSlice){ info->text, info->len }, "OSRELEASE", &value) || value.len == 0 ||
        value.len > RELEASE_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "no OSRELEASE");
    info->release = uprof_text_clean(value);
    return true;
}

/* Ignores a bad build-id, because a kernel without one is usable too. */
static void
take_build_id(UprofVmcoreinfo *info)
{
    UprofSlice value;

    if (!find_value((UprofSlice){ info->text, info->len }, "BUILD-ID", &value) || value.len == 0 ||
        value.len > 2 * BUILD_ID_BYTES_MAX || value.len % 2 != 0)
        return;
    const char *digits = value.data;
    for (size_t i = 0; i < value.len; i++)
        if (!g_ascii_isxdigit(digits[i]))
            return;
    info->build_id = g_ascii_strdown(digits, (gssize)value.len);
}

UprofVmcoreinfo *
uprof_vmcoreinfo_parse(UprofSlice text, GError **error)
{
    const UprofScan scan = { .name = "VMCOREINFO" };
    g_autoptr(UprofVmcoreinfo) info = NULL;

    if (text.len > UPROF_VMCOREINFO_BYTES_MAX) {
        uprof_scan_fail(&scan, error, "%zu bytes are too many", text.len);
        return NULL;
    }
    while (text.len > 0 && ((const char *)text.data)[text.len - 1] == '\0')
        text.len--;
    info = g_new0(UprofVmcoreinfo, 1);
    info->text = g_memdup2(text.data, text.len);
    info->len = text.len;
    if (!check_lines((UprofSlice){ info->text, info->len }, error) || !take_release(info, error))
        return NULL;
    take_build_id(info);
    return g_steal_pointer(&info);
}

void
uprof_vmcoreinfo_free(UprofVmcoreinfo *info)
{
    if (!info)
        return;
    g_free(info->text);
    g_free(info->release);
    g_free(info->build_id);
    g_free(info);
}

const char *
uprof_vmcoreinfo_release(const UprofVmcoreinfo *info)
{
    return info->release;
}

const char *
uprof_vmcoreinfo_build_id(const UprofVmcoreinfo *info)
{
    return info->build_id;
}
