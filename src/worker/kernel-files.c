/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/kernel-files.h"

#include "file-rules-priv.h"
#include "protocol-priv.h"
#include "remote-priv.h"
#include "uprof/confined-job.h"
#include "uprof/sym.h"
#include "uprof/text.h"

#include <string.h>
#include <unistd.h>

enum {
    MEMORY_MAX_MIB = 2048,
    CPU_MAX_S = 60,
    TEXT_BYTES_MAX = 8 * 1024,
};

struct _UprofKernelFiles {
    UprofSpawner *spawner;
};

/* The beginning of UPROF_TELL_REPLY. A path or the text of an error follows. */
typedef struct {
    uint32_t has_symbols; /* 0 or 1 */
} Found;

/* ---- In the process ---- */

static void
tell_found(int channel, const UprofSym *sym, const GError *error)
{
    const Found found = { .has_symbols = error ? 0 : 1 };
    UprofSymSource source = { 0 };

    if (!error)
        uprof_sym_source(sym, 0, &source);
    const char *text = error ? error->message : source.path;
    const UprofSlice parts[] = {
        { &found, sizeof(found) },
        { text, MIN(strlen(text), (size_t)TEXT_BYTES_MAX) },
    };
    uprof_remote_tell(channel, UPROF_TELL_REPLY, parts, G_N_ELEMENTS(parts));
}

/* The first message: the name of the architecture, NUL, the path, NUL. */
static int
read_kernel(const int *fds, unsigned n_fds, void *data)
{
    char text[TEXT_BYTES_MAX];
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GError) error = NULL;
    UprofMessage message;

    g_assert(n_fds == 1);
    if (!uprof_channel_receive(fds[0], &message, text, sizeof(text)))
        return 1;
    uprof_remote_open_files(fds[0]);
    g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find(text), names);
    uprof_sym_add_file(sym, text + strlen(text) + 1, true, &error);
    tell_found(fds[0], sym, error);
    return 0;
}

/* ---- In the program ---- */

/* The search for the symbols of one kernel. */
typedef struct {
    UprofFileRules *rules;
    char *path;    /* (nullable): owned: of the file with symbols */
    GError *error; /* (nullable): owned: why no symbols were found */
} Search;

static bool
take_found(Search *search, UprofSlice content)
{
    Found found;

    if (content.len < sizeof(found) || search->path || search->error)
        return false;
    memcpy(&found, content.data, sizeof(found));
    char *text = uprof_text_quote_slice(
        (UprofSlice){ (const char *)content.data + sizeof(found), content.len - sizeof(found) });
    if (found.has_symbols) {
        search->path = text;
        return true;
    }
    search->error = g_error_new(UPROF_ERROR, UPROF_ERROR_FAILED, "%s", text);
    g_free(text);
    return true;
}

static bool
answer_message(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
               void *data)
{
    Search *search = data;

    if (message->type == UPROF_ASK_FILE)
        return uprof_file_rules_serve(search->rules, NULL, channel, content, last_file);
    return message->type == UPROF_TELL_REPLY && take_found(search, content);
}

UprofKernelFiles *
uprof_kernel_files_new(GError **error)
{
    const UprofSpawnPlan plan = {
        .work = read_kernel,
        .limits = { .memory_max = (uint64_t)MEMORY_MAX_MIB << 20, .cpu_s = CPU_MAX_S },
    };
    UprofSpawner *spawner = uprof_spawner_start(&plan, error);

    if (!spawner)
        return NULL;
    UprofKernelFiles *files = g_new(UprofKernelFiles, 1);
    files->spawner = spawner;
    return files;
}

void
uprof_kernel_files_free(UprofKernelFiles *files)
{
    if (!files)
        return;
    uprof_spawner_end(files->spawner);
    g_free(files);
}

static GByteArray *
pack_request(const UprofArch *arch, const char *path)
{
    GByteArray *request = g_byte_array_new();

    g_byte_array_append(request, (const guint8 *)arch->name, (guint)strlen(arch->name) + 1);
    g_byte_array_append(request, (const guint8 *)path, (guint)strlen(path) + 1);
    return request;
}

static bool
run_search(UprofKernelFiles *files, Search *search, const UprofArch *arch, const char *path,
           GError **error)
{
    g_autoptr(GByteArray) request = pack_request(arch, path);
    const UprofConfinedJob job = {
        .begin = { request->data, request->len },
        .answer = answer_message,
        .data = search,
    };

    if (request->len > TEXT_BYTES_MAX) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "the path of the kernel is too long");
        return false;
    }
    return uprof_confined_job_run(files->spawner, &job, error) >= 0;
}

char *
uprof_kernel_files_find(UprofKernelFiles *files, const UprofArch *arch, const char *path,
                        GError **error)
{
    g_autoptr(UprofFileRules) rules = uprof_file_rules_new();
    Search search = { .rules = rules };
    g_autoptr(GError) failure = NULL;

    uprof_file_rules_add_symbols(rules, path);
    if (!run_search(files, &search, arch, path, &failure)) {
        g_clear_pointer(&search.path, g_free);
        g_clear_error(&search.error);
        g_autofree char *shown = uprof_text_quote(path);
        g_propagate_prefixed_error(error, g_steal_pointer(&failure), "'%s': ", shown);
    } else if (search.error) {
        g_propagate_error(error, search.error);
    } else if (!search.path) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "the process that reads the file has not replied");
    }
    return search.path;
}
