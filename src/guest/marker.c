/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marker-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/owner-check.h"
#include "uprof/process-stat.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUND_LOCK "collect.lock"
#define WAIT_ENDING ".wait"

enum {
    MARKER_VERSION = 1,
    BOOT_ID_BYTES = 37,
    FILE_BYTES = 8192,
};

/* The file, as profiler and guardian map it. Both are the same program, so no format is needed. */
typedef struct {
    uint32_t version;  /* stored last: all other members are complete then */
    int32_t held;      /* UprofHeld; atomic */
    uint64_t since_ns; /* monotonic time of the last UPROF_HELD_ASKED; atomic */
    char boot_id[BOOT_ID_BYTES];
    UprofMarkerInfo info;
    uint64_t ran_cpu_ns; /* see uprof_marker_set_ran(); 0: not known */
    uint64_t ran_at_ns;
} Page;

G_STATIC_ASSERT(sizeof(Page) <= FILE_BYTES);

struct _UprofMarker {
    int fd;
    Page *page;
};

static void
read_boot_id(char boot_id[BOOT_ID_BYTES])
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &text, NULL, NULL))
        text = g_strdup("unknown");
    g_strlcpy(boot_id, g_strstrip(text), BOOT_ID_BYTES);
}

const char *
uprof_marker_folder(void)
{
    static gsize folder;

    if (g_once_init_enter(&folder)) {
        char *path = geteuid() == 0
                         ? g_strdup("/run/virt-uprof")
                         : g_build_filename(g_get_user_runtime_dir(), "virt-uprof", NULL);
        g_once_init_leave(&folder, (gsize)path);
    }
    return (const char *)folder;
}

/* The folder must belong to this user alone and be no link. */
static int
open_folder(GError **error)
{
    const char *path = uprof_marker_folder();
    struct stat info;

    g_autofree char *parent = g_path_get_dirname(path);
    if (g_mkdir_with_parents(parent, 0700) < 0 || (mkdir(path, 0700) < 0 && errno != EEXIST)) {
        uprof_error_fail_errno(error, "cannot make '%s'", path);
        return -1;
    }
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        uprof_error_fail_errno(error, "cannot open '%s'", path);
        return -1;
    }
    if (fstat(fd, &info) < 0 || !uprof_owner_is_safe(&info, UPROF_OWNER_USER, geteuid())) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                    "'%s' belongs to somebody else or may be written by others; remove it", path);
        close(fd);
        return -1;
    }
    return fd;
}

bool
uprof_marker_make_folder(GError **error)
{
    const int fd = open_folder(error);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

UprofMarker *
uprof_marker_adopt(int fd, GError **error)
{
    void *page = MAP_FAILED;
    struct stat info;

    /* the size is checked, because access behind the end of the file would fault */
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
        (info.st_size >= FILE_BYTES || ftruncate(fd, FILE_BYTES) == 0))
        page = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        uprof_error_fail_errno(error, "cannot map a marker in '%s'", uprof_marker_folder());
        close(fd);
        return NULL;
    }
    UprofMarker *marker = g_new0(UprofMarker, 1);
    marker->fd = fd;
    marker->page = page;
    return marker;
}

UprofMarker *
uprof_marker_open(const char *uuid, bool *taken, GError **error)
{
    *taken = false;
    if (!g_uuid_string_is_valid(uuid)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%.40s' is no UUID", uuid);
        return NULL;
    }
    const int folder = open_folder(error);
    if (folder < 0)
        return NULL;
    const int fd = openat(folder, uuid, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const int code = errno;
    close(folder);
    if (fd < 0) {
        errno = code;
        uprof_error_fail_errno(error, "cannot open marker '%s'", uuid);
        return NULL;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        *taken = errno == EWOULDBLOCK;
        if (!*taken)
            uprof_error_fail_errno(error, "cannot lock marker '%s'", uuid);
        close(fd);
        return NULL;
    }
    return uprof_marker_adopt(fd, error);
}

int
uprof_marker_lock_round(bool *taken, GError **error)
{
    *taken = false;
    const int folder = open_folder(error);
    if (folder < 0)
        return -1;
    const int fd = openat(folder, ROUND_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const int code = errno;
    close(folder);
    if (fd < 0) {
        errno = code;
        uprof_error_fail_errno(error, "cannot open '%s'", ROUND_LOCK);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    *taken = errno == EWOULDBLOCK;
    if (!*taken)
        uprof_error_fail_errno(error, "cannot lock '%s'", ROUND_LOCK);
    close(fd);
    return -1;
}

void
uprof_marker_close(UprofMarker *marker)
{
    if (!marker)
        return;
    munmap(marker->page, FILE_BYTES);
    close(marker->fd);
    g_free(marker);
}

int
uprof_marker_fd(const UprofMarker *marker)
{
    return marker->fd;
}

void
uprof_marker_set_info(UprofMarker *marker, const UprofMarkerInfo *info)
{
    Page *page = marker->page;

    g_atomic_int_set((gint *)&page->version, 0);
    page->held = UPROF_HELD_NOT;
    page->since_ns = 0;
    read_boot_id(page->boot_id);
    page->info = *info;
    page->ran_cpu_ns = 0;
    g_atomic_int_set((gint *)&page->version, MARKER_VERSION);
}

bool
uprof_marker_get_info(const UprofMarker *marker, UprofMarkerInfo *info)
{
    const Page *page = marker->page;
    char boot_id[BOOT_ID_BYTES];

    if (g_atomic_int_get((gint *)&page->version) != MARKER_VERSION)
        return false;
    read_boot_id(boot_id);
    if (strncmp(boot_id, page->boot_id, sizeof(boot_id)) != 0)
        return false;
    *info = page->info;
    info->uuid[sizeof(info->uuid) - 1] = '\0';
    info->uri[sizeof(info->uri) - 1] = '\0';
    info->name[sizeof(info->name) - 1] = '\0';
    info->access[sizeof(info->access) - 1] = '\0';
    return true;
}

void
uprof_marker_ask(UprofMarker *marker, uint64_t now_ns)
{
    if (!marker)
        return;
    __atomic_store_n(&marker->page->since_ns, now_ns, __ATOMIC_RELAXED);
    g_atomic_int_set(&marker->page->held, UPROF_HELD_ASKED);
}

void
uprof_marker_set_held(UprofMarker *marker, UprofHeld held)
{
    if (!marker)
        return;
    if (held == UPROF_HELD_ASKED)
        __atomic_store_n(&marker->page->since_ns, uprof_clock_now_ns(), __ATOMIC_RELAXED);
    g_atomic_int_set(&marker->page->held, (gint)held);
}

UprofHeld
uprof_marker_held(const UprofMarker *marker, uint64_t *since_ns)
{
    const gint held = g_atomic_int_get(&marker->page->held);

    if (since_ns)
        *since_ns = __atomic_load_n(&marker->page->since_ns, __ATOMIC_RELAXED);
    return held >= UPROF_HELD_NOT && held <= UPROF_HELD_LEFT ? (UprofHeld)held : UPROF_HELD_YES;
}

void
uprof_marker_set_ran(UprofMarker *marker, uint64_t cpu_ns, uint64_t at_ns)
{
    if (!marker)
        return;
    __atomic_store_n(&marker->page->ran_at_ns, at_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&marker->page->ran_cpu_ns, cpu_ns, __ATOMIC_RELAXED);
}

uint64_t
uprof_marker_ran(const UprofMarker *marker, uint64_t *at_ns)
{
    *at_ns = __atomic_load_n(&marker->page->ran_at_ns, __ATOMIC_RELAXED);
    return __atomic_load_n(&marker->page->ran_cpu_ns, __ATOMIC_RELAXED);
}

/* Without a lock: the content may be of an earlier run, or may change. */
static bool
read_page(const char *uuid, Page *page)
{
    g_autofree char *path = g_build_filename(uprof_marker_folder(), uuid, NULL);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return false;
    const bool ok = pread(fd, page, sizeof(*page), 0) == sizeof(*page);
    close(fd);
    return ok;
}

bool
uprof_marker_is_flagged(const char *uuid)
{
    Page page;

    return read_page(uuid, &page) && page.held != UPROF_HELD_NOT;
}

pid_t
uprof_marker_owner(const char *uuid)
{
    Page page;

    if (!read_page(uuid, &page) || page.version != MARKER_VERSION ||
        uprof_process_stat_start(page.info.pid) != page.info.start)
        return 0;
    return page.info.pid;
}

bool
uprof_marker_owner_yields(const char *uuid)
{
    Page page;

    return uprof_marker_owner(uuid) > 0 && read_page(uuid, &page) && page.info.yields;
}

/* Returns: a file beside the marker, which runs that wait have locked together; -1 if there is none
 */
static int
open_wait_file(const char *uuid, int flags)
{
    g_autofree char *name = g_strconcat(uuid, WAIT_ENDING, NULL);
    const int folder = open_folder(NULL);
    const int fd =
        folder >= 0 ? openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600) : -1;

    if (folder >= 0)
        close(folder);
    return fd;
}

int
uprof_marker_await(const char *uuid)
{
    const int fd = open_wait_file(uuid, O_CREAT);
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return fd;
    close(fd);
    return -1;
}

bool
uprof_marker_is_awaited(const char *uuid)
{
    const int fd = open_wait_file(uuid, 0);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fd < 0)
        return false;
    /* takes no lock, so that two runs that ask do not see each other */
    const bool is_awaited = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return is_awaited;
}

GPtrArray *
uprof_marker_list(void)
{
    GPtrArray *uuids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(uprof_marker_folder(), 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir)))
        if (g_uuid_string_is_valid(name))
            g_ptr_array_add(uuids, g_strdup(name));
    return uuids;
}
