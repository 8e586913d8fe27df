/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "file-rules-priv.h"

#include "protocol-priv.h"
#include "uprof/path.h"
#include "uprof/symbol-cache.h"
#include "uprof/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Debian's debug files; Fedora's links to programs by build-id. See sym/module-file.c. */
static const char *const system_folders[] = { "/usr/lib/debug", "/usr/lib/.build-id" };

struct _UprofFileRules {
    GPtrArray *inputs;   /* of char: paths as the user wrote them */
    GPtrArray *symbols;  /* of char: absolute paths */
    GPtrArray *folders;  /* of char: absolute paths of debug folders */
    GPtrArray *sysroots; /* of char: absolute paths */
    GPtrArray *strict;   /* of char: folders of the configuration, as it writes them */
    char *cache;         /* the symbol cache, one of @folders */
    char *domains;       /* the folder of all domains' files in the cache */
    char *domain;        /* (nullable): the folder of the only domain whose files may be read */
    bool takes_recorded;
};

UprofFileRules *
uprof_file_rules_new(void)
{
    UprofFileRules *rules = g_new0(UprofFileRules, 1);

    rules->inputs = g_ptr_array_new_with_free_func(g_free);
    rules->symbols = g_ptr_array_new_with_free_func(g_free);
    rules->folders = g_ptr_array_new_with_free_func(g_free);
    rules->sysroots = g_ptr_array_new_with_free_func(g_free);
    rules->strict = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < G_N_ELEMENTS(system_folders); i++)
        g_ptr_array_add(rules->folders, g_strdup(system_folders[i]));
    rules->cache = uprof_symbol_cache_folder();
    rules->domains = g_build_filename(rules->cache, "domains", NULL);
    g_ptr_array_add(rules->folders, g_strdup(rules->cache));
    return rules;
}

void
uprof_file_rules_free(UprofFileRules *rules)
{
    if (!rules)
        return;
    g_ptr_array_unref(rules->inputs);
    g_ptr_array_unref(rules->symbols);
    g_ptr_array_unref(rules->folders);
    g_ptr_array_unref(rules->sysroots);
    g_ptr_array_unref(rules->strict);
    g_free(rules->cache);
    g_free(rules->domains);
    g_free(rules->domain);
    g_free(rules);
}

void
uprof_file_rules_add_input(UprofFileRules *rules, const char *path)
{
    g_ptr_array_add(rules->inputs, g_strdup(path));
}

void
uprof_file_rules_add_symbols(UprofFileRules *rules, const char *path)
{
    g_ptr_array_add(rules->symbols, uprof_path_absolute(path));
}

static void
add_folders(GPtrArray *to, const char *const *folders)
{
    for (guint i = 0; folders && folders[i]; i++)
        g_ptr_array_add(to, uprof_path_absolute(folders[i]));
}

void
uprof_file_rules_add_settings(UprofFileRules *rules, const UprofSymbolSettings *settings)
{
    for (guint i = 0; i < settings->files->len; i++) {
        const UprofSymbolFile *file = g_ptr_array_index(settings->files, i);
        uprof_file_rules_add_symbols(rules, file->path);
    }
    add_folders(rules->folders, settings->config.debug_folders);
    add_folders(rules->sysroots, settings->config.sysroots);
}

void
uprof_file_rules_add_folder(UprofFileRules *rules, const char *folder)
{
    g_ptr_array_add(rules->strict, g_strdup(folder));
}

void
uprof_file_rules_set_domain(UprofFileRules *rules, const char *uuid)
{
    g_free(rules->domain);
    rules->domain = uprof_path_of_domain_files(rules->cache, uuid);
    if (!rules->domain)
        rules->domain = g_build_filename(rules->domains, "none", NULL);
}

void
uprof_file_rules_allow_recorded(UprofFileRules *rules)
{
    rules->takes_recorded = true;
}

/* ---- Answers ---- */

static bool
has_path(const GPtrArray *paths, const char *path)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)paths, path, g_str_equal, NULL);
}

static bool
is_in(const char *folder, const char *path)
{
    const size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 &&
           (path[len] == '/' || (len > 0 && folder[len - 1] == '/'));
}

static bool
is_below(const GPtrArray *folders, const char *path)
{
    for (guint i = 0; i < folders->len; i++)
        if (is_in(g_ptr_array_index(folders, i), path))
            return true;
    return false;
}

/* Is @folder the folder of a symbol file, or `.debug` in it? */
static bool
is_beside_symbols(const UprofFileRules *rules, const char *folder)
{
    for (guint i = 0; i < rules->symbols->len; i++) {
        g_autofree char *beside = g_path_get_dirname(g_ptr_array_index(rules->symbols, i));
        g_autofree char *below = g_build_filename(beside, ".debug", NULL);
        if (strcmp(folder, beside) == 0 || strcmp(folder, below) == 0)
            return true;
    }
    return false;
}

static int
open_beside(const char *folder, const char *path)
{
    g_autofree char *name = g_path_get_basename(path);

    return geteuid() == 0 ? uprof_regular_file_open_below(folder, name, UPROF_FILE_NO_LINKS)
                          : uprof_regular_file_open(path);
}

/* Does the text begin with an address, as in "ffffffff81000000 T _text"? */
static bool
is_symbol_list(const char *head, size_t len)
{
    size_t digits = 0;

    while (digits < len && isxdigit((unsigned char)head[digits]))
        digits++;
    return digits >= 8 && digits < len && isspace((unsigned char)head[digits]);
}

/* Does the file begin as ELF, a compressed file, a kernel to boot, or the output of nm? */
static bool
begins_as_symbols(int fd)
{
    static const char *const magics[] = { "\x7f"
                                          "ELF",
                                          "MZ", "\x1f\x8b",
                                          "\xfd"
                                          "7zXZ",
                                          "\x28\xb5\x2f\xfd" };
    char head[64];
    const ssize_t n = pread(fd, head, sizeof(head), 0);

    if (n <= 0)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(magics); i++)
        if ((size_t)n >= strlen(magics[i]) && memcmp(head, magics[i], strlen(magics[i])) == 0)
            return true;
    return is_symbol_list(head, (size_t)n);
}

/*
 * Accepts only a file that begins like symbols. The owner of the folder of a symbol file can put
 * any other file there, or a link to any file.
 *
 * @fd: closed if it is not accepted; or -1 with errno. Returns: @fd, or -1 with errno
 */
static int
need_symbols(int fd)
{
    if (fd < 0 || begins_as_symbols(fd))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

/* Files that were copied out of the disks of other domains are theirs. */
static bool
is_of_other_domain(const UprofFileRules *rules, const char *path)
{
    return rules->domain && is_in(rules->domains, path) && !is_in(rules->domain, path);
}

static int
open_regular(const UprofFileRules *rules, const char *path)
{
    g_autofree char *absolute = uprof_path_absolute(path);
    g_autofree char *folder = g_path_get_dirname(absolute);

    if (has_path(rules->inputs, path) || has_path(rules->symbols, absolute) ||
        (is_below(rules->folders, absolute) && !is_of_other_domain(rules, absolute)))
        return uprof_regular_file_open(absolute);
    if (rules->takes_recorded)
        return need_symbols(uprof_regular_file_open(absolute));
    if (is_beside_symbols(rules, folder))
        return need_symbols(open_beside(folder, absolute));
    errno = ENOENT;
    return -1;
}

static int
open_below(const UprofFileRules *rules, const char *folder, const char *rest, UprofFileLinks links)
{
    g_autofree char *on_host = g_strconcat("/", rest, NULL);

    if (strcmp(folder, "/") == 0 && uprof_path_is_of_system(on_host))
        return need_symbols(uprof_regular_file_open_below("/", rest, UPROF_FILE_AS_IN_ROOT));
    if (has_path(rules->sysroots, folder))
        return uprof_regular_file_open_below(folder, rest, UPROF_FILE_AS_IN_ROOT);
    if (links == UPROF_FILE_NO_LINKS && has_path(rules->strict, folder))
        return uprof_regular_file_open_below(folder, rest, UPROF_FILE_NO_LINKS);
    errno = ENOENT;
    return -1;
}

static int
open_by_rules(const UprofFileRules *rules, const UprofFileAsk *ask, const char *folder,
              const char *path)
{
    switch (ask->kind) {
    case UPROF_FILE_INPUT:
        if (has_path(rules->inputs, path))
            return uprof_regular_file_open_input(path);
        break;
    case UPROF_FILE_REGULAR:
        return open_regular(rules, path);
    case UPROF_FILE_BELOW:
        return open_below(rules, folder, path, ask->links);
    }
    errno = ENOENT;
    return -1;
}

/* In the symbol cache, an empty file says that no server has it. Returns: as open_by_rules() */
static int
open_known(const UprofFileRules *rules, const UprofFileAsk *ask, const char *folder,
           const char *path)
{
    const int fd = open_by_rules(rules, ask, folder, path);
    struct stat info;

    if (fd < 0 || !is_in(rules->cache, path) || fstat(fd, &info) != 0 || info.st_size > 0)
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

int
uprof_file_rules_answer(const UprofFileRules *rules, UprofFetcher *fetcher, UprofSlice ask,
                        int *reason)
{
    UprofFileAsk head;
    const char *folder, *path, *end;

    *reason = EINVAL;
    if (ask.len < sizeof(head))
        return -1;
    memcpy(&head, ask.data, sizeof(head));
    folder = (const char *)ask.data + sizeof(head);
    end = (const char *)ask.data + ask.len;
    path = memchr(folder, '\0', (size_t)(end - folder));
    if (!path || !memchr(path + 1, '\0', (size_t)(end - path - 1)))
        return -1;
    int fd = open_known(rules, &head, folder, path + 1);
    *reason = fd < 0 ? errno : 0;
    if (*reason == ENOENT && fetcher && uprof_fetcher_want(fetcher, path + 1)) {
        fd = open_known(rules, &head, folder, path + 1);
        *reason = fd < 0 ? errno : 0;
    }
    return fd;
}

bool
uprof_file_rules_serve(const UprofFileRules *rules, UprofFetcher *fetcher, int channel,
                       UprofSlice ask, char **last_file)
{
    UprofFileAnswer answer;
    const UprofSlice part = { &answer, sizeof(answer) };
    const int fd = uprof_file_rules_answer(rules, fetcher, ask, &answer.reason);
    const bool ok = uprof_channel_send(channel, 0, &part, 1, &fd, fd >= 0);

    if (fd < 0)
        return ok;
    close(fd);
    const char *path = (const char *)ask.data + sizeof(UprofFileAsk);
    path += strlen(path) + 1; /* behind the folder */
    g_free(*last_file);
    *last_file = uprof_text_quote(path);
    return ok;
}
