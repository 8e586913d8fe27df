/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages from a process that reads the store and that a hostile stored profile controls. The
 * target prunes a store, and sends messages of the input in place of each process. A message begins
 * with a byte, the UprofStoreMessage. A request for a file continues with a byte, the folder, and
 * three texts that end with NUL: stem, ending, new ending. Every other message continues with a
 * byte, the length of its content, and the content. A first byte that is no UprofStoreMessage ends
 * the process. The next byte is then the exit status; 255 stands for a process that died.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "store-folder.h"
#include "uprof/confined-job.h"
#include "uprof/counted-slices.h"
#include "uprof/prune-store.h"
#include "uprof/time-text.h"
#include "../../src/history/store-message-priv.h"

#define OLD_SLICE "data/web-1/web-1-20261118T091500Z"
#define NEW_SLICE "data/web-1/web-1-20261120T091500Z"
#define OTHER_SLICE "data/db/db-20261120T091500Z"

enum {
    MESSAGES_MAX = 64,
    DIED = 255,
    PRUNE_DAYS = 30,
};

/* Each input makes a store, and prunes it twice. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 200,
        .us_per_kib = 50 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 4096,
        .n_mutations = 60,
    };
}

/* The part of the input that no process has sent yet. */
static struct {
    UprofSlice rest;
    const char *top; /* folder of the store */
    unsigned n_messages;
} input;

/* ---- Messages ---- */

static bool
take_byte(uint8_t *byte)
{
    UprofSlice one;

    if (!uprof_slice_sub(input.rest, 0, 1, &one))
        return false;
    *byte = *(const uint8_t *)one.data;
    return uprof_slice_sub(input.rest, 1, input.rest.len - 1, &input.rest);
}

/* A text that is too long fills the whole field, so the program gets a field without NUL. */
static void
take_text(char *text, size_t size)
{
    uint8_t byte;

    for (size_t i = 0; take_byte(&byte) && byte != '\0'; i++)
        if (i < size)
            text[i] = (char)byte;
}

static size_t
take_file_ask(uint8_t *content)
{
    UprofStoreFileAsk ask = { 0 };
    uint8_t folder = 0;

    take_byte(&folder);
    ask.folder = folder;
    take_text(ask.stem, sizeof(ask.stem));
    take_text(ask.ending, sizeof(ask.ending));
    take_text(ask.to, sizeof(ask.to));
    memcpy(content, &ask, sizeof(ask));
    return sizeof(ask);
}

static size_t
take_content(uint8_t *content)
{
    uint8_t wanted = 0;
    size_t len = 0;

    take_byte(&wanted);
    while (len < wanted && take_byte(&content[len]))
        len++;
    return len;
}

/* Returns: false if the process ends */
static bool
take_message(UprofMessage *message, uint8_t *content)
{
    uint8_t type;

    if (input.n_messages++ >= MESSAGES_MAX || !take_byte(&type) || type > UPROF_STORE_TELL_REPLY)
        return false;
    message->type = type;
    message->len = type < UPROF_STORE_ASK_COMMIT || type == UPROF_STORE_ASK_RENAME ||
                           type == UPROF_STORE_ASK_REMOVE
                       ? take_file_ask(content)
                       : take_content(content);
    return true;
}

/* ---- Answers ---- */

/* A process may read files of the store, but write neither profiles nor sidecars. */
static void
check_descriptor(int fd)
{
    g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *path = g_file_read_link(link, NULL);
    g_autofree char *data = g_build_filename(input.top, "data", NULL);

    if (!g_str_has_prefix(path, data) || strstr(path, "secret"))
        g_error("a process gets '%s'", path);
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return;
    g_assert(!g_str_has_suffix(path, UPROF_STORE_SIDECAR) &&
             !g_str_has_suffix(path, UPROF_STORE_PROFILE));
    g_assert(write(fd, "new", 3) == 3);
}

static void
read_answers(int channel)
{
    uint8_t bytes[16 * 1024];
    UprofMessage answer;

    while (uprof_channel_receive(channel, &answer, bytes, sizeof(bytes))) {
        for (unsigned i = 0; i < answer.n_fds; i++)
            check_descriptor(answer.fds[i]);
        uprof_message_close(&answer);
    }
}

/* ---- Processes ---- */

UprofSpawner *
uprof_spawner_start(const UprofSpawnPlan *plan, GError **error)
{
    static int spawner;

    return (UprofSpawner *)(void *)&spawner;
}

void
uprof_spawner_end(UprofSpawner *spawner)
{
}

int
uprof_confined_job_run(UprofSpawner *spawner, const UprofConfinedJob *job, GError **error)
{
    _Alignas(16) uint8_t content[sizeof(UprofStoreFileAsk)];
    g_autofree char *last_file = NULL;
    UprofMessage message = { 0 };
    uint8_t status = 0;
    bool ok = true;
    int ends[2];

    g_assert(uprof_channel_new(ends, NULL) && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (ok && take_message(&message, content)) {
        ok = job->answer(ends[0], &message, (UprofSlice){ content, message.len }, &last_file,
                         job->data);
        read_answers(ends[1]);
    }
    close(ends[0]);
    close(ends[1]);
    take_byte(&status);
    if (ok && status != DIED)
        return status;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "the process has died");
    return -1;
}

/* ---- The store ---- */

static void
put_item(StoreFolder *folder, const char *path, bool is_complete)
{
    g_autofree char *profile = g_strconcat(path, UPROF_STORE_PROFILE, NULL);
    g_autofree char *sidecar = g_strconcat(path, UPROF_STORE_SIDECAR, NULL);

    store_folder_put(folder, profile, "old");
    if (is_complete)
        store_folder_put(folder, sidecar, "old");
}

static void
fill_store(StoreFolder *folder)
{
    static const char *const folders[] = { "data", "data/web-1", "data/db" };

    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(folder->top, folders[i], NULL);
        g_assert(g_mkdir_with_parents(path, 0750) == 0);
    }
    put_item(folder, OLD_SLICE, true);
    put_item(folder, NEW_SLICE, true);
    put_item(folder, OTHER_SLICE, true);
    put_item(folder, "data/web-1/web-1-20261119", true);
    put_item(folder, "data/db/db-20261118", false);
    store_folder_put(folder, "data/db/db-20261118.pending", "old");
    store_folder_put(folder, "data/web-1/secret", "old");
    store_folder_put(folder, "secret", "old");
}

/* No process may change slices, and the program deletes only old slices. */
static void
check_kept(const StoreFolder *folder)
{
    static const char *const kept[] = {
        NEW_SLICE UPROF_STORE_PROFILE,
        NEW_SLICE UPROF_STORE_SIDECAR,
        OTHER_SLICE UPROF_STORE_PROFILE,
        OTHER_SLICE UPROF_STORE_SIDECAR,
        "data/web-1/secret",
        "secret",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        g_autofree char *path = g_build_filename(folder->top, kept[i], NULL);
        g_autofree char *text = NULL;
        if (!g_file_get_contents(path, &text, NULL, NULL) || strcmp(text, "old") != 0)
            g_error("a process has changed '%s'", path);
    }
}

static void
check_plain(const char *text)
{
    g_assert(g_utf8_validate(text, -1, NULL));
    for (const char *c = text; *c; c++)
        g_assert(((uint8_t)*c >= ' ' && *c != 0x7f) || *c == '\n');
}

static void
check_change(const char *text, void *data)
{
    check_plain(text);
    g_assert(!strchr(text, '\n'));
}

static void
prune(StoreFolder *folder, bool dry_run)
{
    const UprofPruneSettings settings = {
        .slice_days = 1,
        .merged_days = PRUNE_DAYS,
        .dry_run = dry_run,
        .notices = &folder->notices,
        .show_change = check_change,
    };
    UprofPruneResult result;

    uprof_prune_store(folder->store, &settings, FRIDAY_S + UPROF_DAY_S / 2, &result);
    g_assert(result.code >= UPROF_ERROR_NONE && result.code <= UPROF_ERROR_EMPTY);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    StoreFolder folder;

    g_setenv("TMPDIR", "/dev/shm", false);
    store_folder_init(&folder);
    fill_store(&folder);
    input.rest = (UprofSlice){ data, size };
    input.top = folder.top;
    input.n_messages = 0;
    prune(&folder, true);
    prune(&folder, false);
    GHashTable *counted =
        uprof_counted_slices(folder.store, "web-1", WEB_UUID, FRIDAY_S - UPROF_DAY_S, NULL);
    g_clear_pointer(&counted, g_hash_table_unref);
    check_kept(&folder);
    check_plain(folder.warnings->str);
    store_folder_clear(&folder);
}
