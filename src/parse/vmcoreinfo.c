/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/vmcoreinfo.h"

#include <string.h>

#include "uprof/scan.h"
#include "uprof/text.h"

/*
 * text = { key "=" value "\n" }
 * key  = "OSRELEASE" | "BUILD-ID" | "KERNELOFFSET" | WHAT "(" name ")" | others
 *
 * In printable ASCII.
 */

struct _UprofVmcoreinfo {
    char *text;
    size_t len;
    char *release;  /* clean */
    char *build_id; /* NULL: is not said */
};

/* clang-format off */
static const struct {
    const char *before; /* the name */
    const char *behind;
    unsigned base;
} kinds[UPROF_VMCOREINFO_N_KINDS] = {
    [UPROF_VMCOREINFO_KERNEL_OFFSET] = { "KERNELOFFSET", "",  16 },
    [UPROF_VMCOREINFO_SYMBOL]        = { "SYMBOL(",      ")", 16 },
    [UPROF_VMCOREINFO_NUMBER]        = { "NUMBER(",      ")", 10 },
    [UPROF_VMCOREINFO_SIZE]          = { "SIZE(",        ")", 10 },
    [UPROF_VMCOREINFO_OFFSET]        = { "OFFSET(",      ")", 10 },
    [UPROF_VMCOREINFO_LENGTH]        = { "LENGTH(",      ")", 10 },
};
/* clang-format on */

static UprofSlice
skip(UprofSlice slice, size_t len)
{
    uprof_slice_sub(slice, len, slice.len - len, &slice);
    return slice;
}

/* Whether @key is @before @name @behind */
static bool
is_key(UprofSlice key, const char *before, const char *name, const char *behind)
{
    if (!uprof_slice_starts(key, before))
        return false;
    key = skip(key, strlen(before));
    if (!uprof_slice_starts(key, name))
        return false;
    return uprof_slice_is(skip(key, strlen(name)), behind);
}

static bool
find_value(UprofSlice text, const char *before, const char *name, const char *behind,
           UprofSlice *value)
{
    UprofScan scan = { .name = "VMCOREINFO", .rest = text };
    UprofSlice line, key;

    while (uprof_scan_line(&scan, &line))
        if (uprof_slice_split(line, '=', &key, value) && is_key(key, before, name, behind))
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
            return uprof_scan_fail(&scan, error, "bytes that are no text");
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

    if (!find_value((UprofSlice){ info->text, info->len }, "OSRELEASE", "", "", &value) ||
        value.len == 0 || value.len > UPROF_VMCOREINFO_RELEASE_BYTES_MAX)
        return uprof_scan_fail(&scan, error, "no OSRELEASE");
    info->release = uprof_text_clean(value);
    return true;
}

/* What is none is not said: nothing is to fail for that. */
static void
take_build_id(UprofVmcoreinfo *info)
{
    UprofSlice value;

    if (!find_value((UprofSlice){ info->text, info->len }, "BUILD-ID", "", "", &value) ||
        value.len == 0 || value.len > 2 * UPROF_VMCOREINFO_BUILD_ID_BYTES_MAX || value.len % 2 != 0)
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

/* Some numbers are written with their base, and any may be negative. */
static bool
to_number(UprofSlice text, unsigned base, uint64_t *value)
{
    const bool is_negative = base == 10 && uprof_slice_starts(text, "-");
    const bool has_base = base == 10 && uprof_slice_starts(text, "0x");
    const UprofSlice digits = skip(text, is_negative ? 1 : has_base ? 2 : 0);
    const uint64_t max = is_negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;
    uint64_t found;

    if (!uprof_slice_to_uint(digits, has_base ? 16 : base, 0, max, &found))
        return false;
    *value = is_negative ? -found : found;
    return true;
}

bool
uprof_vmcoreinfo_find(const UprofVmcoreinfo *info, UprofVmcoreinfoKind kind, const char *name,
                      uint64_t *value)
{
    const UprofSlice text = { info->text, info->len };
    UprofSlice found;

    g_assert(kind < UPROF_VMCOREINFO_N_KINDS && !name == !kinds[kind].behind[0]);
    return find_value(text, kinds[kind].before, name ? name : "", kinds[kind].behind, &found) &&
           to_number(found, kinds[kind].base, value);
}
