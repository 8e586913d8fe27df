/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol-cache-priv.h"

#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/path.h"
#include "uprof/sorted.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PREFIX_DIGITS = 2, /* of the build-id: the name of a folder */
    DIGITS_MIN = 16,
    DIGITS_MAX = 128,
    ASKED_S = 24 * 3600,   /* how long a server that lacks a file is not asked again */
    LEFT_BEHIND_S = 3600,  /* the age from which a temporary file belongs to a run that died */
    EMPTY_MAX = 10 * 1000, /* empty files in the cache */
};

static const char by_id[] = ".build-id";
static const char debug_suffix[] = ".debug";
static const char temporary_start[] = ".fetching-";

char *
uprof_symbol_cache_folder(void)
{
    const char *given = g_getenv("VIRT_UPROF_CACHE");

    if (given && given[0])
        return uprof_path_absolute(given);
    return geteuid() == 0 ? g_strdup("/var/cache/virt-uprof")
                          : g_build_filename(g_get_user_cache_dir(), "virt-uprof", NULL);
}

bool
uprof_symbol_cache_has_servers(void)
{
    const char *urls = g_getenv("DEBUGINFOD_URLS");

    return urls && urls[strspn(urls, " ")];
}

const char *
uprof_symbol_cache_used(void)
{
    static char *folder;
    static bool is_known;

    if (!is_known) {
        folder = uprof_symbol_cache_folder();
        if (!uprof_symbol_cache_has_servers() && !g_file_test(folder, G_FILE_TEST_IS_DIR))
            g_clear_pointer(&folder, g_free);
    }
    is_known = true;
    return folder;
}

static char *
path_of(const char *folder, const UprofCachedFile *file)
{
    return g_strdup_printf("%s/%s/%.2s/%s%s", folder, by_id, file->build_id,
                           file->build_id + PREFIX_DIGITS, file->is_debug ? debug_suffix : "");
}

bool
uprof_symbol_cache_parse(const char *folder, const char *path, UprofCachedFile *file)
{
    static const char digits[] = "0123456789abcdef";
    g_autofree char *start = g_strdup_printf("%s/%s/", folder, by_id);

    if (!g_str_has_prefix(path, start))
        return false;
    const char *prefix = path + strlen(start);
    if (strspn(prefix, digits) != PREFIX_DIGITS || prefix[PREFIX_DIGITS] != '/')
        return false;
    const char *rest = prefix + PREFIX_DIGITS + 1;
    const size_t n = strspn(rest, digits);
    const bool is_debug = strcmp(rest + n, debug_suffix) == 0;
    if (n + PREFIX_DIGITS < DIGITS_MIN || n + PREFIX_DIGITS > DIGITS_MAX || n % 2 != 0 ||
        (rest[n] != '\0' && !is_debug))
        return false;
    file->build_id = g_strdup_printf("%.2s%.*s", prefix, (int)n, rest);
    file->is_debug = is_debug;
    return true;
}

void
uprof_cached_file_clear(UprofCachedFile *file)
{
    g_clear_pointer(&file->build_id, g_free);
}

bool
uprof_symbol_cache_make(const char *folder, GError **error)
{
    g_autofree char *shown = uprof_text_quote(folder);
    struct stat info;

    if (g_mkdir_with_parents(folder, 0755) != 0 || lstat(folder, &info) != 0)
        return uprof_error_fail_errno(error, "cannot make '%s'", shown);
    if (S_ISDIR(info.st_mode) && uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "'%s' is not used for fetched symbol files, because other users may write to it",
                shown);
    return false;
}

bool
uprof_symbol_cache_is_asked(const char *folder, const UprofCachedFile *file)
{
    g_autofree char *path = path_of(folder, file);
    struct stat info;

    return lstat(path, &info) == 0 && (info.st_size > 0 || time(NULL) - info.st_mtime < ASKED_S);
}

int
uprof_symbol_cache_begin(const char *folder, char **temporary, GError **error)
{
    g_autofree char *path = g_strdup_printf("%s/%sXXXXXX", folder, temporary_start);
    const int fd = g_mkstemp_full(path, O_RDWR | O_CLOEXEC, 0644);

    if (fd < 0) {
        uprof_error_fail_errno(error, "cannot write to '%s'", folder);
        return -1;
    }
    *temporary = g_steal_pointer(&path);
    return fd;
}

bool
uprof_symbol_cache_commit(const char *folder, const char *temporary, const UprofCachedFile *file,
                          GError **error)
{
    g_autofree char *path = path_of(folder, file);
    g_autofree char *parent = g_path_get_dirname(path);

    if (g_mkdir_with_parents(parent, 0755) == 0 && rename(temporary, path) == 0)
        return true;
    uprof_error_fail_errno(error, "cannot write to '%s'", folder);
    unlink(temporary);
    return false;
}

/* ---- The limit of the size ---- */

typedef struct {
    char *path;     /* owned */
    uint64_t bytes; /* on the disk */
    bool is_empty;
    time_t written;
} Entry;

static void
clear_entry(gpointer data)
{
    g_free(((Entry *)data)->path);
}

static gint
compare_age(gconstpointer a, gconstpointer b)
{
    const Entry *one = a, *other = b;

    return UPROF_COMPARE(one->written, other->written);
}

static void
add_files(GArray *entries, const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        Entry entry = { .path = g_build_filename(folder, name, NULL) };
        struct stat info;
        if (lstat(entry.path, &info) != 0 || !S_ISREG(info.st_mode)) {
            g_free(entry.path);
            continue;
        }
        entry.bytes = (uint64_t)info.st_blocks * 512;
        entry.is_empty = info.st_size == 0;
        entry.written = info.st_mtime;
        g_array_append_val(entries, entry);
    }
}

static GArray *
list_files(const char *folder)
{
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(Entry));
    g_autofree char *ids = g_build_filename(folder, by_id, NULL);
    g_autoptr(GDir) dir = g_dir_open(ids, 0, NULL);
    const char *name;

    g_array_set_clear_func(entries, clear_entry);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(ids, name, NULL);
        add_files(entries, path);
    }
    g_array_sort(entries, compare_age);
    return entries;
}

static void
remove_left_behind(const char *folder)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(Entry));

    g_array_set_clear_func(entries, clear_entry);
    add_files(entries, folder);
    for (guint i = 0; i < entries->len; i++) {
        const Entry *entry = &g_array_index(entries, Entry, i);
        const char *name = strrchr(entry->path, '/') + 1;
        if (g_str_has_prefix(name, temporary_start) && time(NULL) - entry->written > LEFT_BEHIND_S)
            unlink(entry->path);
    }
}

/* The number of files with content is bounded by the size of all. */
static void
remove_empty(const GArray *entries)
{
    guint n = 0;

    for (guint i = 0; i < entries->len; i++)
        n += g_array_index(entries, Entry, i).is_empty;
    for (guint i = 0; i < entries->len; i++) {
        const Entry *entry = &g_array_index(entries, Entry, i);
        const bool is_expired = time(NULL) - entry->written >= ASKED_S;
        if (entry->is_empty && (is_expired || n > EMPTY_MAX) && unlink(entry->path) == 0)
            n--;
    }
}

void
uprof_symbol_cache_shrink(const char *folder, uint64_t bytes_max)
{
    g_autoptr(GArray) entries = list_files(folder);
    uint64_t bytes = 0;

    remove_left_behind(folder);
    remove_empty(entries);
    for (guint i = 0; i < entries->len; i++)
        bytes += g_array_index(entries, Entry, i).bytes;
    for (guint i = 0; i < entries->len && bytes > bytes_max; i++) {
        const Entry *entry = &g_array_index(entries, Entry, i);
        if (!entry->is_empty && unlink(entry->path) == 0)
            bytes -= entry->bytes;
    }
}
