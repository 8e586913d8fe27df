/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/number-text.h"

#include "uprof/clock.h"

/* Uses integers only, because printf() of floating point numbers depends on the locale. */
static char *
format_tenths(uint64_t tenths)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT ".%u", tenths / 10, (unsigned)(tenths % 10));
}

char *
uprof_format_hz(uint64_t mhz)
{
    if (mhz % 1000 == 0)
        return g_strdup_printf("%" G_GUINT64_FORMAT, mhz / 1000);
    if (mhz % 100 != 0 && mhz < 100000)
        return g_strdup_printf("%" G_GUINT64_FORMAT ".%02u", mhz / 1000,
                               (unsigned)(mhz % 1000 / 10));
    return format_tenths((mhz + 50) / 100);
}

char *
uprof_format_ns(uint64_t ns)
{
    if (ns < UPROF_NS_PER_MS)
        return g_strdup_printf("%" G_GUINT64_FORMAT " us", (ns + 500) / UPROF_NS_PER_US);
    if (ns < UPROF_NS_PER_S) {
        g_autofree char *ms = format_tenths((ns + 50000) / 100000);
        return ns % UPROF_NS_PER_MS == 0
                   ? g_strdup_printf("%" G_GUINT64_FORMAT " ms", ns / UPROF_NS_PER_MS)
                   : g_strdup_printf("%s ms", ms);
    }
    g_autofree char *s = format_tenths(ns / 100000000);
    return ns % UPROF_NS_PER_S == 0
               ? g_strdup_printf("%" G_GUINT64_FORMAT " s", ns / UPROF_NS_PER_S)
               : g_strdup_printf("%s s", s);
}

char *
uprof_format_percent(uint64_t part, uint64_t whole)
{
    return format_tenths(uprof_permille(part, whole));
}

char *
uprof_format_bytes(uint64_t bytes)
{
    enum { KILOBYTE = 1000, MEGABYTE = 1000 * 1000 };
    const bool is_large = bytes >= MEGABYTE;
    const uint64_t tenths = bytes * 10 / (is_large ? MEGABYTE : KILOBYTE);

    return g_strdup_printf("%" G_GUINT64_FORMAT ".%u %s", tenths / 10, (unsigned)(tenths % 10),
                           is_large ? "MB" : "kB");
}

char *
uprof_format_budget(uint64_t ppm)
{
    /* 1 percent is 10000 ppm, so ppm / 10 are thousandths of a percent. */
    return uprof_format_hz(ppm / 10);
}

static void
append_share(GString *text, const char *what, uint64_t part, uint64_t total)
{
    g_autofree char *percent = uprof_format_percent(part, total);

    if (part > 0)
        g_string_append_printf(text, "%s%s %% by %s", text->len > 0 ? ", " : "", percent, what);
}

char *
uprof_format_quality(const UprofRun *run)
{
    const uint64_t callers = run->by_orc + run->by_cfi + run->by_code + run->by_fp;
    GString *text = g_string_new(NULL);

    append_share(text, "the kernel's tables", run->by_orc, callers);
    append_share(text, "unwind tables", run->by_cfi, callers);
    append_share(text, "machine code", run->by_code, callers);
    append_share(text, "frame pointers", run->by_fp, callers);
    if (callers == 0)
        g_string_append(text, "none");
    if (run->calls_checked > 0) {
        g_autofree char *agreed = uprof_format_percent(run->calls_agreed, run->calls_checked);
        g_string_append_printf(text, "; %s %% of calls agree", agreed);
    }
    return g_string_free(text, FALSE);
}
