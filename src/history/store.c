/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The store opens each file relative to the descriptor of its folder, and opens folders without
 * following links. File names consist of parts that were checked.
 */
#include "store-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"
#include "uprof/sorted.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    STAMP_DAY_LEN = 8,                /* 20261120 */
    FAILURES_BYTES_MAX = 1024 * 1024, /* of a day */
    SECONDS_TRIED = 4096,
    FOLDER_TRIES = 100,
    FOLDERS_MAX = 1024 * 1024,
};

/* The files of an item, in the order of removal: the commit mark comes first. */
static const struct {
    const char *ending;
    size_t has; /* member of UprofStoreItem */
} kinds[] = {
    { UPROF_STORE_SIDECAR, G_STRUCT_OFFSET(UprofStoreItem, has_sidecar) },
    { UPROF_STORE_PENDING, G_STRUCT_OFFSET(UprofStoreItem, has_pending) },
    { UPROF_STORE_PROFILE, G_STRUCT_OFFSET(UprofStoreItem, has_profile) },
    { UPROF_STORE_FUNCTIONS, G_STRUCT_OFFSET(UprofStoreItem, has_functions) },
    { UPROF_STORE_FAILURES, G_STRUCT_OFFSET(UprofStoreItem, has_failures) },
};

struct _UprofStore {
    char *path;
    int fd;
    int data; /* descriptor of the folder data; -1: the folder does not exist yet */
};

static bool
fail_errno(GError **error, const char *what, const char *path)
{
    const int code = errno;
    g_autofree char *shown = uprof_text_quote(path);

    errno = code;
    return uprof_error_fail_errno(error, "cannot %s '%s'", what, shown);
}

/* ---- Names ---- */

char *
uprof_store_safe_name(const char *name, const char *uuid)
{
    return uprof_text_file_name(name, uuid);
}

bool
uprof_store_uuid_digits(const char *uuid, char mark[UPROF_STORE_UUID_BYTES])
{
    size_t n = 0;

    if (!uuid || !g_uuid_string_is_valid(uuid))
        return false;
    for (const char *at = uuid; *at; at++)
        if (*at != '-')
            mark[n++] = g_ascii_tolower(*at);
    mark[n] = '\0';
    return true;
}

char *
uprof_store_stem(const char *name, int64_t start_s, bool is_day, const char *mark)
{
    g_autofree char *stamp =
        uprof_clock_format_utc((uint64_t)MAX(start_s, 0) * UPROF_NS_PER_S, TRUE);

    if (is_day)
        stamp[STAMP_DAY_LEN] = '\0';
    return g_strconcat(name, "-", stamp, mark && mark[0] ? "~" : "", mark, NULL);
}

/*
 *   stem = NAME "-" stamp [ "~" mark ]
 *
 * @len: length of the stem in @text
 *
 * Returns: false if @text is not a name of the store
 */
static bool
read_stem(const char *name, const char *text, size_t len, UprofStoreItem *item)
{
    const size_t name_len = strlen(name);

    if (len < name_len + 1 + STAMP_DAY_LEN || memcmp(text, name, name_len) != 0 ||
        text[name_len] != '-')
        return false;
    const char *stamp = text + name_len + 1;
    size_t stamp_len = len - name_len - 1;
    const char *mark = memchr(stamp, '~', stamp_len);
    if (mark) {
        const size_t mark_len = stamp_len - (size_t)(mark - stamp) - 1;
        stamp_len = (size_t)(mark - stamp);
        if (mark_len != UPROF_STORE_UUID_BYTES - 1 ||
            strspn(mark + 1, "0123456789abcdef") < mark_len)
            return false;
        memcpy(item->uuid_digits, mark + 1, mark_len);
    }
    item->is_day = stamp_len == STAMP_DAY_LEN;
    return uprof_time_parse_stamp((UprofSlice){ stamp, stamp_len }, &item->start_s);
}

static bool
is_temporary(const char *name)
{
    static const char beginning[] = ".virt-uprof-";
    enum { DIGITS = 8 };
    const size_t len = strlen(beginning);

    return g_str_has_prefix(name, beginning) && strspn(name + len, "0123456789abcdef") == DIGITS &&
           strcmp(name + len + DIGITS, ".tmp") == 0;
}

/* Can uprof_store_safe_name() return this name? */
static bool
is_folder_name(const char *name)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.-%~";
    const size_t len = strlen(name);

    return len > 0 && len <= 112 && name[0] != '.' && name[0] != '-' && strspn(name, plain) == len;
}

/* ---- Folders ---- */

static int
open_folder(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Returns: a descriptor, or -1 with errno set */
static int
make_folder(int parent, const char *name)
{
    for (unsigned i = 0; i < FOLDER_TRIES; i++) {
        if (mkdirat(parent, name, 0750) == 0)
            fsync(parent);
        else if (errno != EEXIST)
            return -1;
        const int fd = open_folder(parent, name);
        if (fd >= 0 || errno != ENOENT)
            return fd;
        /* another process has removed the empty folder: see uprof_store_remove_if_empty() */
    }
    return -1;
}

static bool
check_owner(int fd, const char *path, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return fail_errno(error, "look at", path);
    if (uprof_owner_is_safe(&info, UPROF_OWNER_FOR_ROOT, geteuid()))
        return true;
    g_autofree char *shown = uprof_text_quote(path);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                "'%s' belongs to somebody else or may be written by others: "
                "nothing of root's is safe there",
                shown);
    return false;
}

/*
 * @what: the attempted action, for messages. Returns: @fd; -1 with the error if @fd is -1, or
 * the folder is not safe
 */
static int
check_folder(int fd, const char *what, const char *path, GError **error)
{
    if (fd < 0) {
        fail_errno(error, what, path);
        return -1;
    }
    if (check_owner(fd, path, error))
        return fd;
    close(fd);
    return -1;
}

bool
uprof_store_exists(const char *folder)
{
    struct stat info;

    return lstat(folder, &info) == 0;
}

static bool
open_data(UprofStore *store, bool may_create, GError **error)
{
    g_autofree char *path = g_build_filename(store->path, "data", NULL);
    const int fd = may_create ? make_folder(store->fd, "data") : open_folder(store->fd, "data");

    if (fd < 0 && !may_create && errno == ENOENT)
        return true; /* the folder does not exist yet */
    store->data = check_folder(fd, "open", path, error);
    return store->data >= 0;
}

UprofStore *
uprof_store_open(const char *folder, bool may_create, GError **error)
{
    if (may_create) {
        umask(027);
        if (mkdir(folder, 0750) < 0 && errno != EEXIST) {
            fail_errno(error, "make", folder);
            return NULL;
        }
    }
    const int fd = open_folder(AT_FDCWD, folder);
    if (fd < 0 && errno == ENOENT) {
        g_autofree char *shown = uprof_text_quote(folder);
        g_set_error(
            error, UPROF_ERROR, UPROF_ERROR_NO_FILE,
            "nothing has been collected yet: there is no '%s'; see: virt-uprof help enable, "
            "virt-uprof help collect",
            shown);
        return NULL;
    }
    if (fd < 0) {
        fail_errno(error, "open", folder);
        return NULL;
    }
    UprofStore *store = g_new0(UprofStore, 1);
    store->path = g_strdup(folder);
    store->fd = fd;
    store->data = -1;
    if (check_owner(fd, folder, error) && open_data(store, may_create, error))
        return store;
    uprof_store_close(store);
    return NULL;
}

void
uprof_store_close(UprofStore *store)
{
    if (!store)
        return;
    if (store->data >= 0)
        close(store->data);
    close(store->fd);
    g_free(store->path);
    g_free(store);
}

bool
uprof_store_lock(UprofStore *store, bool *taken, GError **error)
{
    *taken = false;
    if (flock(store->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    *taken = errno == EWOULDBLOCK;
    return *taken ? false : fail_errno(error, "lock", store->path);
}

const char *
uprof_store_path(const UprofStore *store)
{
    return store->path;
}

int
uprof_store_folder(const UprofStore *store)
{
    return store->fd;
}

int
uprof_store_open_push(UprofStore *store, bool may_create, GError **error)
{
    g_autofree char *path = g_build_filename(store->path, UPROF_STORE_PUSH, NULL);
    const int fd = may_create ? make_folder(store->fd, UPROF_STORE_PUSH)
                              : open_folder(store->fd, UPROF_STORE_PUSH);

    if (fd < 0 && !may_create && errno == ENOENT)
        return -1; /* the folder does not exist yet */
    return check_folder(fd, "open", path, error);
}

int
uprof_store_data(const UprofStore *store)
{
    return store->data;
}

bool
uprof_store_has_room(UprofStore *store, uint64_t min_free_megabytes, GError **error)
{
    struct statvfs info;

    if (fstatvfs(store->fd, &info) < 0)
        return fail_errno(error, "look at", store->path);
    const uint64_t free_megabytes = (uint64_t)info.f_bavail * info.f_frsize >> 20;
    if (free_megabytes >= min_free_megabytes)
        return true;
    g_autofree char *shown = uprof_text_quote(store->path);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "the disk of '%s' has %" G_GUINT64_FORMAT
                " MB free, less than the %" G_GUINT64_FORMAT
                " MB that must stay free (minFreeMegabytes); make room, or keep less and run: "
                "virt-uprof prune",
                shown, free_megabytes, min_free_megabytes);
    return false;
}

/* ---- The content of a folder ---- */

static void
clear_item(gpointer data)
{
    g_free(((UprofStoreItem *)data)->stem);
}

void
uprof_store_folder_close(UprofStoreFolder *folder)
{
    if (!folder)
        return;
    if (folder->fd >= 0)
        close(folder->fd);
    g_free(folder->name);
    g_free(folder->path);
    g_array_unref(folder->items);
    g_ptr_array_unref(folder->temporaries);
    g_free(folder);
}

static int
compare_items(const void *a, const void *b)
{
    const UprofStoreItem *one = a, *other = b;

    if (one->start_s != other->start_s)
        return UPROF_COMPARE(one->start_s, other->start_s);
    if (one->is_day != other->is_day)
        return one->is_day ? -1 : 1;
    return strcmp(one->stem, other->stem);
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Calls @visit with each name in a folder, in any order. */
static void
read_folder(int fd, void (*visit)(const char *name, void *data), void *data)
{
    const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    while ((entry = readdir(dir)))
        visit(entry->d_name, data);
    closedir(dir);
}

typedef struct {
    UprofStoreFolder *folder;
    GHashTable *by_stem; /* index of the item, plus 1 */
} Listing;

static UprofStoreItem *
find_or_add(Listing *listing, const char *stem, const UprofStoreItem *read)
{
    GArray *items = listing->folder->items;
    const guint known = GPOINTER_TO_UINT(g_hash_table_lookup(listing->by_stem, stem));

    if (known > 0)
        return &g_array_index(items, UprofStoreItem, known - 1);
    UprofStoreItem item = *read;
    item.stem = g_strdup(stem);
    g_array_append_val(items, item);
    g_hash_table_insert(listing->by_stem, item.stem, GUINT_TO_POINTER(items->len));
    return &g_array_index(items, UprofStoreItem, items->len - 1);
}

static void
count_file(UprofStoreItem *item, const struct stat *info)
{
    const int64_t changed_ns =
        (int64_t)info->st_mtim.tv_sec * (int64_t)UPROF_NS_PER_S + info->st_mtim.tv_nsec;

    item->changed_ns = MAX(item->changed_ns, changed_ns);
    item->bytes += (uint64_t)info->st_size;
    item->bytes_used += (uint64_t)info->st_blocks * 512;
}

static void
list_file(const char *name, void *data)
{
    Listing *listing = data;
    UprofStoreItem read = { 0 };
    struct stat info;
    size_t kind = 0;

    if (is_temporary(name)) {
        g_ptr_array_add(listing->folder->temporaries, g_strdup(name));
        return;
    }
    while (kind < G_N_ELEMENTS(kinds) && !g_str_has_suffix(name, kinds[kind].ending))
        kind++;
    if (kind == G_N_ELEMENTS(kinds))
        return;
    g_autofree char *stem = g_strndup(name, strlen(name) - strlen(kinds[kind].ending));
    if (!read_stem(listing->folder->name, stem, strlen(stem), &read) ||
        fstatat(listing->folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(info.st_mode))
        return;
    UprofStoreItem *item = find_or_add(listing, stem, &read);
    G_STRUCT_MEMBER(bool, item, kinds[kind].has) = true;
    count_file(item, &info);
    if (strcmp(kinds[kind].ending, UPROF_STORE_FAILURES) == 0)
        item->failed_s = info.st_mtime;
}

static UprofStoreFolder *
list_folder(const char *name, char *path, int parent, int fd, void (*visit)(const char *, void *),
            GError **error)
{
    g_autoptr(UprofStoreFolder) folder = g_new0(UprofStoreFolder, 1);

    folder->name = g_strdup(name);
    folder->path = path;
    folder->parent = parent;
    folder->items = g_array_new(FALSE, FALSE, sizeof(UprofStoreItem));
    g_array_set_clear_func(folder->items, clear_item);
    folder->temporaries = g_ptr_array_new_with_free_func(g_free);
    folder->fd = check_folder(fd, "open", path, error);
    if (folder->fd < 0)
        return NULL;
    g_autoptr(GHashTable) by_stem = g_hash_table_new(g_str_hash, g_str_equal);
    Listing listing = { folder, by_stem };
    read_folder(folder->fd, visit, &listing);
    if (folder->items->len > 0)
        qsort(folder->items->data, folder->items->len, sizeof(UprofStoreItem), compare_items);
    return g_steal_pointer(&folder);
}

UprofStoreFolder *
uprof_store_folder_open(UprofStore *store, const char *name, GError **error)
{
    char *path = g_build_filename(store->path, "data", name, NULL);

    errno = ENOENT;
    return list_folder(name, path, store->data,
                       store->data >= 0 ? open_folder(store->data, name) : -1, list_file, error);
}

static void
list_summary(const char *name, void *data)
{
    Listing *listing = data;
    UprofStoreItem item = { .is_day = true, .has_profile = true };
    struct stat info;

    if (is_temporary(name))
        g_ptr_array_add(listing->folder->temporaries, g_strdup(name));
    if (!g_str_has_suffix(name, UPROF_STORE_SUMMARY) ||
        !uprof_time_parse_date((UprofSlice){ name, strlen(name) - strlen(UPROF_STORE_SUMMARY) },
                               &item.start_s) ||
        fstatat(listing->folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(info.st_mode))
        return;
    item.stem = g_strndup(name, strlen(name) - strlen(UPROF_STORE_SUMMARY));
    count_file(&item, &info);
    g_array_append_val(listing->folder->items, item);
}

UprofStoreFolder *
uprof_store_summaries(UprofStore *store, bool may_create, GError **error)
{
    char *path = g_build_filename(store->path, "summary", NULL);
    const int fd =
        may_create ? make_folder(store->fd, "summary") : open_folder(store->fd, "summary");

    return list_folder("summary", path, store->fd, fd, list_summary, error);
}

typedef struct {
    int data;
    GPtrArray *names;
} FolderListing;

static void
add_folder_name(const char *name, void *data)
{
    FolderListing *listing = data;
    struct stat info;

    if (is_folder_name(name) && listing->names->len < FOLDERS_MAX &&
        fstatat(listing->data, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
        g_ptr_array_add(listing->names, g_strdup(name));
}

GPtrArray *
uprof_store_folders(UprofStore *store)
{
    FolderListing listing = { store->data, g_ptr_array_new_with_free_func(g_free) };

    if (store->data >= 0)
        read_folder(store->data, add_folder_name, &listing);
    g_ptr_array_sort(listing.names, compare_texts);
    return listing.names;
}

/* ---- Files ---- */

static bool
read_to_end(int fd, size_t bytes_max, const char *path, GByteArray *bytes, GError **error)
{
    if (!uprof_read_all(fd, bytes_max + 1, bytes))
        return fail_errno(error, "read", path);
    if (bytes->len <= bytes_max)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is too large", path);
    return false;
}

static int
open_file(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    g_autofree char *name = g_strconcat(stem, ending, NULL);

    return uprof_regular_file_open_in(folder->fd, folder->path, name);
}

static bool
has_file(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    g_autofree char *name = g_strconcat(stem, ending, NULL);
    struct stat info;

    return fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
write_file(const UprofStoreFolder *folder, const char *stem, const char *ending, UprofSlice bytes,
           GError **error)
{
    g_autoptr(UprofFile) file = uprof_store_new_file(folder, stem, ending, error);

    return file && uprof_file_write(file, bytes.data, bytes.len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error);
}

static bool
rename_file(const UprofStoreFolder *folder, const char *stem, const char *from, const char *to,
            GError **error)
{
    g_autofree char *old = g_strconcat(stem, from, NULL);
    g_autofree char *new = g_strconcat(stem, to, NULL);

    if (renameat(folder->fd, old, folder->fd, new) == 0) {
        fsync(folder->fd);
        return true;
    }
    g_autofree char *path = g_build_filename(folder->path, old, NULL);
    return fail_errno(error, "rename", path);
}

static bool
remove_file(const UprofStoreFolder *folder, const char *stem, const char *ending, GError **error)
{
    g_autofree char *name = g_strconcat(stem, ending, NULL);

    if (unlinkat(folder->fd, name, 0) == 0 || errno == ENOENT)
        return true;
    g_autofree char *path = g_build_filename(folder->path, name, NULL);
    return fail_errno(error, "remove", path);
}

static const UprofStoreAccess own_access = {
    open_file, has_file, write_file, rename_file, remove_file,
};

/* Set once, before the first folder is used. */
static const UprofStoreAccess *access_to_files = &own_access;

void
uprof_store_set_access(const UprofStoreAccess *access)
{
    access_to_files = access;
}

UprofFile *
uprof_store_new_file(const UprofStoreFolder *folder, const char *stem, const char *ending,
                     GError **error)
{
    g_autofree char *path = g_strconcat(folder->path, "/", stem, ending, NULL);

    return uprof_file_open_own(folder->parent, path, error);
}

int
uprof_store_open_file(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    return access_to_files->open(folder, stem, ending);
}

GByteArray *
uprof_store_read(const UprofStoreFolder *folder, const char *stem, const char *ending,
                 size_t bytes_max, GError **error)
{
    g_autofree char *path = g_strconcat(folder->path, "/", stem, ending, NULL);
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const int fd = uprof_store_open_file(folder, stem, ending);
    const bool ok =
        fd >= 0 ? read_to_end(fd, bytes_max, path, bytes, error) : fail_errno(error, "read", path);

    if (fd >= 0)
        close(fd);
    return ok ? g_steal_pointer(&bytes) : NULL;
}

bool
uprof_store_has(const UprofStoreFolder *folder, const char *stem, const char *ending)
{
    return access_to_files->has(folder, stem, ending);
}

bool
uprof_store_write(const UprofStoreFolder *folder, const char *stem, const char *ending,
                  UprofSlice bytes, GError **error)
{
    return access_to_files->write(folder, stem, ending, bytes, error);
}

bool
uprof_store_rename(const UprofStoreFolder *folder, const char *stem, const char *from,
                   const char *to, GError **error)
{
    return access_to_files->rename(folder, stem, from, to, error);
}

bool
uprof_store_remove_one(const UprofStoreFolder *folder, const char *stem, const char *ending,
                       GError **error)
{
    return access_to_files->remove_one(folder, stem, ending, error);
}

bool
uprof_store_remove(const UprofStoreFolder *folder, const char *stem, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (!uprof_store_remove_one(folder, stem, kinds[i].ending, error))
            return false;
    return true;
}

bool
uprof_store_may_have(const UprofStoreFolder *folder, const char *stem, const char *ending,
                     int64_t *day_s)
{
    UprofStoreItem item = { 0 };
    size_t kind = 0;

    while (kind < G_N_ELEMENTS(kinds) && strcmp(ending, kinds[kind].ending) != 0)
        kind++;
    if (kind == G_N_ELEMENTS(kinds) || !read_stem(folder->name, stem, strlen(stem), &item))
        return false;
    *day_s = item.is_day ? item.start_s : -1;
    return true;
}

void
uprof_store_remove_if_empty(UprofStore *store, const UprofStoreFolder *folder)
{
    fsync(folder->fd);
    if (unlinkat(store->data, folder->name, AT_REMOVEDIR) == 0)
        fsync(store->data);
}

/* ---- For collect ---- */

static bool
is_taken(int folder, const char *stem)
{
    struct stat info;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *name = g_strconcat(stem, kinds[i].ending, NULL);
        if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

char *
uprof_store_slice_base(UprofStore *store, const char *name, const char *uuid, int64_t start_s,
                       GHashTable *counted, GError **error)
{
    g_autofree char *safe = uprof_store_safe_name(name, uuid);
    g_autofree char *path = g_build_filename(store->path, "data", safe, NULL);
    const int folder = check_folder(make_folder(store->data, safe), "make", path, error);

    if (folder < 0)
        return NULL;
    for (int64_t at_s = start_s; at_s < start_s + SECONDS_TRIED; at_s++) {
        g_autofree char *stem = uprof_store_stem(safe, at_s, false, NULL);
        if (is_taken(folder, stem) || (counted && g_hash_table_contains(counted, &at_s)))
            continue;
        close(folder);
        return g_build_filename(path, stem, NULL);
    }
    close(folder);
    errno = EEXIST;
    fail_errno(error, "find a free name in", path);
    return NULL;
}

int64_t
uprof_store_last_attempt(UprofStore *store, const char *name, const char *uuid, int64_t now_s)
{
    g_autofree char *safe = uprof_store_safe_name(name, uuid);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, safe, NULL);
    int64_t last_s = 0;

    for (guint i = 0; folder && i < folder->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(folder, i);
        if (!item->is_day && item->start_s <= now_s && uprof_store_item_is_complete(item))
            last_s = MAX(last_s, item->start_s);
        if (item->failed_s <= now_s)
            last_s = MAX(last_s, item->failed_s);
    }
    return last_s;
}

/*
 * Opens the file of failures. `prune` removes empty folders: if the folder is removed before the
 * file is made, this tries again.
 */
static int
open_failures(UprofStore *store, const char *safe, const char *file, GError **error)
{
    g_autofree char *where = g_build_filename(store->path, "data", safe, NULL);
    g_autofree char *path = g_build_filename(where, file, NULL);
    const int flags =
        O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    for (unsigned i = 0; i < FOLDER_TRIES; i++) {
        const int folder = check_folder(make_folder(store->data, safe), "make", where, error);
        if (folder < 0)
            return -1;
        const int fd = openat(folder, file, flags, 0640);
        const int code = errno;
        close(folder);
        if (fd >= 0)
            return fd;
        errno = code;
        if (code != ENOENT)
            break;
    }
    fail_errno(error, "write", path);
    return -1;
}

bool
uprof_store_note_failure(UprofStore *store, const char *name, const char *uuid, int64_t at_s,
                         const char *reason, GError **error)
{
    g_autofree char *safe = uprof_store_safe_name(name, uuid);
    g_autofree char *stem = uprof_store_stem(safe, at_s, true, NULL);
    g_autofree char *file = g_strconcat(stem, UPROF_STORE_FAILURES, NULL);
    g_autofree char *path = g_build_filename(store->path, "data", safe, file, NULL);
    g_autofree char *when = uprof_clock_format_utc((uint64_t)MAX(at_s, 0) * UPROF_NS_PER_S, FALSE);
    g_autofree char *shown = uprof_text_quote(reason);
    g_autofree char *line =
        g_strdup_printf("%s %s %s\n", when, g_uuid_string_is_valid(uuid) ? uuid : "-", shown);
    const int fd = open_failures(store, safe, file, error);
    struct stat info;

    if (fd < 0)
        return false;
    bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    /* a single call writes a complete line or none, unless the disk is full */
    ok = ok && (info.st_size > FAILURES_BYTES_MAX ||
                write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    if (!ok)
        fail_errno(error, "write", path);
    close(fd);
    return ok;
}

/* ---- Leftovers ---- */

typedef struct {
    int64_t before_s;
    bool dry_run;
    UprofStoreVisit visit; /* (nullable) */
    void *data;
} Leftovers;

static void
remove_leftover(const Leftovers *leftovers, int folder, const char *shown_folder, const char *name)
{
    g_autofree char *path = g_build_filename(shown_folder, name, NULL);
    struct stat info;

    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode) ||
        info.st_mtime >= leftovers->before_s)
        return;
    if (leftovers->visit)
        leftovers->visit(path, leftovers->data);
    if (!leftovers->dry_run)
        unlinkat(folder, name, 0);
}

static void
remove_file_of(const Leftovers *leftovers, int folder, const char *shown_folder,
               const UprofStoreItem *item, const char *ending)
{
    g_autofree char *name = g_strconcat(item->stem, ending, NULL);

    remove_leftover(leftovers, folder, shown_folder, name);
}

static void
remove_leftovers_in(const Leftovers *leftovers, const UprofStoreFolder *folder)
{
    g_autofree char *shown = g_build_filename("data", folder->name, NULL);

    for (guint i = 0; i < folder->temporaries->len; i++)
        remove_leftover(leftovers, folder->fd, shown, g_ptr_array_index(folder->temporaries, i));
    for (guint i = 0; i < folder->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(folder, i);
        if (item->has_sidecar)
            continue;
        if (item->has_profile)
            remove_file_of(leftovers, folder->fd, shown, item, UPROF_STORE_PROFILE);
        if (item->has_functions)
            remove_file_of(leftovers, folder->fd, shown, item, UPROF_STORE_FUNCTIONS);
    }
}

void
uprof_store_remove_leftovers(UprofStore *store, int64_t now_s, bool dry_run, UprofStoreVisit visit,
                             void *data)
{
    const Leftovers leftovers = { now_s - UPROF_DAY_S, dry_run, visit, data };
    g_autoptr(GPtrArray) names = uprof_store_folders(store);

    for (guint i = 0; i < names->len; i++) {
        g_autoptr(UprofStoreFolder) folder =
            uprof_store_folder_open(store, g_ptr_array_index(names, i), NULL);
        if (folder)
            remove_leftovers_in(&leftovers, folder);
    }
    g_autoptr(UprofStoreFolder) summaries = uprof_store_summaries(store, false, NULL);
    for (guint i = 0; summaries && i < summaries->temporaries->len; i++)
        remove_leftover(&leftovers, summaries->fd, "summary",
                        g_ptr_array_index(summaries->temporaries, i));
}
