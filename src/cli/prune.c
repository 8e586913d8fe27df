/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prune: closes days, deletes what is old, and writes summaries of days. In this
 * order, so that nothing goes before it is merged and checked, and the disk does
 * not fill where a summary cannot be made; what was interrupted is done by the
 * next run.
 */
#include "commands-priv.h"

#include "digest-priv.h"
#include "exit-priv.h"
#include "merge-priv.h"
#include "moment-priv.h"
#include "terminal-priv.h"
#include "uprof/config.h"
#include "uprof/error.h"
#include "uprof/file.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

enum {
    SUMMARY_BYTES_MAX = 64 * 1024 * 1024,
    SUMMARY_BLOCK = 4096, /* what it may take on the disk beyond its bytes */
};

/**
 * Pruning:
 * @today_s: 00:00 UTC
 * @n_days: closed, or added to; @n_slices: so many were merged; @n_removed: profiles
 * @newest: of UprofStoreItem: newest day of its domain, which stays whatever its age
 */
typedef struct {
    UprofStore *store;
    const UprofConfig *config;
    int64_t today_s;
    bool dry_run;
    bool verbose;
    GHashTable *changed; /* of UprofStoreFolder: something was removed */
    GHashTable *newest;
    int code;
    unsigned n_days, n_slices, n_summaries, n_removed;
    uint64_t bytes_kept;
} Pruning;

static void
note_error(Pruning *pruning, const GError *error)
{
    pruning->code = uprof_exit_worse(pruning->code, uprof_say_error(error));
}

/* What is done, or with --dry-run what would be. */
static void tell(const Pruning *pruning, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
tell(const Pruning *pruning, const char *format, ...)
{
    va_list arguments;

    if (!pruning->dry_run && !pruning->verbose)
        return;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (pruning->dry_run)
        printf("%s\n", text);
    else
        uprof_say("%s", text);
}

/* ---- Days ---- */

static void
see_closed(const UprofStoreFolder *folder, const char *day, unsigned n, void *data)
{
    Pruning *pruning = data;

    pruning->n_days++;
    pruning->n_slices += n;
    tell(pruning, "merge data/%s: %u profiles of %s", folder->name, n, day);
}

static void
close_days(Pruning *pruning)
{
    g_autoptr(GPtrArray) names = uprof_store_folders(pruning->store);

    for (guint i = 0; i < names->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofStoreFolder) folder =
            uprof_store_folder_open(pruning->store, g_ptr_array_index(names, i), &error);
        if (!folder) {
            note_error(pruning, error);
            continue;
        }
        const int code =
            uprof_merge_folder(folder, pruning->today_s, pruning->dry_run, see_closed, pruning);
        pruning->code = uprof_exit_worse(pruning->code, code);
    }
}

/* ---- Summaries ---- */

static int64_t
age_limit(const Pruning *pruning, uint64_t days)
{
    return pruning->today_s - (int64_t)days * UPROF_STORE_DAY_S;
}

/* A day goes after its slices, or it would be made of them again. */
static int64_t
oldest_day(const Pruning *pruning)
{
    const UprofConfig *config = pruning->config;

    return age_limit(pruning, MAX(config->slice_days, config->merged_days));
}

static int
compare_moments(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? -1 : one > other;
}

/* Returns: (transfer full): of int64_t: days whose summary is missing, or older than they are */
static GArray *
find_due(const Pruning *pruning, const UprofStock *stock, const UprofStoreFolder *summaries)
{
    const GPtrArray *folders = uprof_stock_folders(stock);
    g_autoptr(GHashTable) written = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_int64_hash, g_int64_equal);
    GArray *due = g_array_new(FALSE, FALSE, sizeof(int64_t));

    for (guint i = 0; i < summaries->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(summaries, i);
        g_hash_table_insert(written, &item->start_s, item);
    }
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            UprofStoreItem *item = uprof_store_item(folder, j);
            const UprofStoreItem *summary = g_hash_table_lookup(written, &item->start_s);
            if (!item->is_day || item->start_s >= pruning->today_s ||
                item->start_s < oldest_day(pruning) ||
                !(uprof_store_item_is_whole(item) || item->has_failures) ||
                (summary && summary->changed_ns > item->changed_ns) ||
                !g_hash_table_add(seen, &item->start_s))
                continue;
            g_array_append_val(due, item->start_s);
        }
    }
    if (due->len > 0)
        qsort(due->data, due->len, sizeof(int64_t), compare_moments);
    return due;
}

/* Returns: whether the file says the same already */
static bool
is_written(const UprofStoreFolder *summaries, const char *day, const GString *text)
{
    g_autoptr(GByteArray) bytes =
        uprof_store_read(summaries, day, UPROF_STORE_SUMMARY, SUMMARY_BYTES_MAX, NULL);

    return bytes && bytes->len == text->len && memcmp(bytes->data, text->str, text->len) == 0;
}

static bool
write_summary(const UprofStoreFolder *summaries, const char *day, const GString *text,
              GError **error)
{
    g_autofree char *path = g_strconcat(summaries->path, "/", day, UPROF_STORE_SUMMARY, NULL);
    g_autoptr(UprofFile) file = uprof_file_open_own(path, error);

    return file && uprof_file_write(file, text->str, text->len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error);
}

static void
summarize_day(Pruning *pruning, const UprofStock *stock, const UprofStoreFolder *summaries,
              int64_t day_s)
{
    g_autofree char *day = uprof_store_format_day(day_s);
    g_autoptr(GError) error = NULL;
    GString *text = uprof_digest_render(stock, day_s, true, &pruning->code);

    if (!text)
        return;
    if (!is_written(summaries, day, text)) {
        tell(pruning, "write summary/%s.txt", day);
        pruning->n_summaries++;
        pruning->bytes_kept += text->len + SUMMARY_BLOCK;
        if (!write_summary(summaries, day, text, &error))
            note_error(pruning, error);
    }
    g_string_free(text, TRUE);
}

static void
summarize(Pruning *pruning, const UprofStock *stock)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreFolder) summaries =
        pruning->dry_run ? NULL : uprof_store_summaries(pruning->store, true, &error);

    if (error)
        note_error(pruning, error);
    if (!summaries)
        return;
    g_autoptr(GArray) due = find_due(pruning, stock, summaries);
    for (guint i = 0; i < due->len; i++)
        summarize_day(pruning, stock, summaries, g_array_index(due, int64_t, i));
}

/* ---- What goes ---- */

/**
 * Kept: a profile that may go if there is too little room
 * @key_s: what is least goes first
 */
typedef struct {
    const UprofStoreFolder *folder;
    const UprofStoreItem *item;
    int64_t key_s;
} Kept;

/* One day of a folder: what may be deleted of it. */
typedef struct {
    const UprofStoreFolder *folder;
    int64_t day_s;
    guint first, end;
    GPtrArray *closed; /* of UprofRun: days that are there and undamaged */
    bool keeps_slices;
} DayOf;

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

static void
remove_item(Pruning *pruning, const UprofStoreFolder *folder, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;

    tell(pruning, "remove data/%s/%s", folder->name, item->stem);
    if (!pruning->dry_run && !uprof_store_remove(folder, item->stem, &error)) {
        pruning->bytes_kept += item->bytes_used;
        note_error(pruning, error);
        return;
    }
    g_hash_table_add(pruning->changed, (gpointer)folder);
    pruning->n_removed++;
}

/* Merged into a day that is there and can be read; with --dry-run, as good as merged. */
static bool
is_merged(const Pruning *pruning, const DayOf *day, const UprofStoreItem *slice)
{
    for (guint i = 0; i < day->closed->len; i++)
        if (uprof_stored_has_slice(g_ptr_array_index(day->closed, i), slice->start_s))
            return true;
    return pruning->dry_run && day->day_s < pruning->today_s;
}

static bool
is_damaged(const UprofStoreFolder *folder, const UprofStoreItem *slice)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(folder, slice, &error);

    return !stored && g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

static void
read_closed(DayOf *day)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day || !uprof_store_item_is_whole(item))
            continue;
        g_autoptr(UprofStored) stored = uprof_stored_read(day->folder, item, NULL);
        if (stored)
            g_ptr_array_add(day->closed, g_steal_pointer(&stored->run));
    }
}

static void
keep(Pruning *pruning, GArray *kept, const DayOf *day, const UprofStoreItem *item, bool may_go)
{
    const Kept one = { day->folder, item,
                       item->is_day ? day->day_s + UPROF_STORE_DAY_S : item->start_s };

    pruning->bytes_kept += item->bytes_used;
    if (may_go)
        g_array_append_val(kept, one);
}

static void
expire_slice(Pruning *pruning, GArray *kept, DayOf *day, const UprofStoreItem *item)
{
    const bool is_old = day->day_s < age_limit(pruning, pruning->config->slice_days);
    const bool may_go = is_merged(pruning, day, item);

    if (is_old && uprof_store_item_is_whole(item) && (may_go || is_damaged(day->folder, item))) {
        remove_item(pruning, day->folder, item);
        return;
    }
    day->keeps_slices = true;
    keep(pruning, kept, day, item, may_go);
}

static void
expire_day(Pruning *pruning, GArray *kept, DayOf *day)
{
    day->closed = g_ptr_array_new_with_free_func(free_run);
    read_closed(day);
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day)
            expire_slice(pruning, kept, day, item);
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day)
            continue;
        const bool is_newest = g_hash_table_contains(pruning->newest, item);
        if (day->day_s < oldest_day(pruning) && !day->keeps_slices && !is_newest)
            remove_item(pruning, day->folder, item);
        else
            keep(pruning, kept, day, item, !is_newest);
    }
    g_ptr_array_unref(day->closed);
}

static void
expire_folder(Pruning *pruning, GArray *kept, const UprofStoreFolder *folder)
{
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_store_day_of(uprof_store_item(folder, i)->start_s);
        DayOf day = { .folder = folder, .day_s = day_s, .first = i };
        while (i < folder->items->len &&
               uprof_store_item(folder, i)->start_s < day_s + UPROF_STORE_DAY_S)
            i++;
        day.end = i;
        expire_day(pruning, kept, &day);
    }
}

static void
free_items(gpointer data)
{
    g_ptr_array_unref(data);
}

/*
 * Remembers the newest profiles of its domain, wherever they stand: a domain that was called
 * otherwise has several of one day. @newest: of each UUID, UprofStoreItem of one day; @items:
 * what stays
 */
static void
see_newest(GHashTable *newest, GHashTable *items, const UprofStoreFolder *folder,
           UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, &error);
    GPtrArray *others = run ? g_hash_table_lookup(newest, run->uuid) : NULL;
    const int64_t day_s = uprof_store_day_of(item->start_s);

    if (!run) {
        /* that it cannot be read now does not make it old */
        if (!g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA))
            g_hash_table_add(items, item);
        return;
    }
    const UprofStoreItem *other = others ? g_ptr_array_index(others, 0) : NULL;
    if (other && day_s < uprof_store_day_of(other->start_s))
        return;
    if (!other || day_s > uprof_store_day_of(other->start_s)) {
        others = g_ptr_array_new();
        g_hash_table_replace(newest, g_strdup(run->uuid), others);
    }
    g_ptr_array_add(others, item);
}

/*
 * A domain may have been off for longer than days are kept, and a clock that is
 * wrong makes everything old: what was last known of it stays.
 *
 * Returns: (transfer full): of UprofStoreItem
 */
static GHashTable *
find_newest(const Pruning *pruning, const GPtrArray *folders)
{
    g_autoptr(GHashTable) newest =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_items);
    GHashTable *items = g_hash_table_new(NULL, NULL);
    GHashTableIter at;
    gpointer found;

    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            UprofStoreItem *one = uprof_store_item(folder, j);
            /* a slice that is not merged yet would be, and its day the newest */
            const bool would_be = pruning->dry_run && one->start_s < pruning->today_s;
            if (uprof_store_item_is_whole(one) && (one->is_day || would_be))
                see_newest(newest, items, folder, one);
        }
    }
    g_hash_table_iter_init(&at, newest);
    while (g_hash_table_iter_next(&at, NULL, &found))
        for (guint i = 0; i < ((GPtrArray *)found)->len; i++)
            g_hash_table_add(items, g_ptr_array_index((GPtrArray *)found, i));
    return items;
}

static void
expire_summaries(Pruning *pruning)
{
    g_autoptr(UprofStoreFolder) summaries = uprof_store_summaries(pruning->store, false, NULL);

    for (guint i = 0; summaries && i < summaries->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(summaries, i);
        g_autoptr(GError) error = NULL;
        if (item->start_s >= oldest_day(pruning)) {
            pruning->bytes_kept += item->bytes_used;
            continue;
        }
        tell(pruning, "remove summary/%s.txt", item->stem);
        if (!pruning->dry_run &&
            !uprof_store_remove_one(summaries, item->stem, UPROF_STORE_SUMMARY, &error))
            note_error(pruning, error);
    }
}

static int
compare_kept(const void *a, const void *b)
{
    const Kept *one = a, *other = b;

    if (one->key_s != other->key_s)
        return one->key_s < other->key_s ? -1 : 1;
    const int names = strcmp(one->folder->name, other->folder->name);
    return names != 0 ? names : strcmp(one->item->stem, other->item->stem);
}

static bool
has_too_much(const Pruning *pruning)
{
    const uint64_t max_megabytes = pruning->config->max_megabytes;

    return max_megabytes > 0 && pruning->bytes_kept > max_megabytes << 20;
}

/* What takes more room than it may goes, the oldest first. */
static void
make_room(Pruning *pruning, GArray *kept)
{
    if (kept->len > 0)
        qsort(kept->data, kept->len, sizeof(Kept), compare_kept);
    for (guint i = 0; i < kept->len && has_too_much(pruning); i++) {
        const Kept *one = &g_array_index(kept, Kept, i);
        pruning->bytes_kept -= one->item->bytes_used;
        remove_item(pruning, one->folder, one->item);
    }
}

static void
expire(Pruning *pruning, const UprofStock *stock)
{
    const GPtrArray *folders = uprof_stock_folders(stock);
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(Kept));
    g_autoptr(GHashTable) newest = find_newest(pruning, folders);
    g_autoptr(GHashTable) changed = g_hash_table_new(NULL, NULL);

    pruning->newest = newest;
    pruning->changed = changed;
    pruning->bytes_kept = 0;
    for (guint i = 0; i < folders->len; i++)
        expire_folder(pruning, kept, g_ptr_array_index(folders, i));
    expire_summaries(pruning);
    make_room(pruning, kept);
    /* another's folder may be empty since collect has just made it */
    for (guint i = 0; i < folders->len && !pruning->dry_run; i++)
        if (g_hash_table_contains(pruning->changed, g_ptr_array_index(folders, i)))
            uprof_store_settle(pruning->store, g_ptr_array_index(folders, i));
}

/* ---- The command ---- */

static void
see_swept(const char *path, void *data)
{
    tell(data, "remove %s", path);
}

static void
prune(Pruning *pruning, int64_t now_s)
{
    close_days(pruning);
    UprofStock *before = uprof_stock_new(pruning->store, &pruning->code);
    expire(pruning, before);
    uprof_stock_free(before);
    uprof_store_sweep(pruning->store, now_s, pruning->dry_run, see_swept, pruning);
    g_autoptr(UprofStock) after = uprof_stock_new(pruning->store, &pruning->code);
    summarize(pruning, after);
    /* summaries take room, too */
    if (pruning->n_summaries > 0 && has_too_much(pruning))
        expire(pruning, after);
    if (has_too_much(pruning))
        uprof_say("virt-uprof: '%s' keeps %" G_GUINT64_FORMAT
                  " MB, more than maxMegabytes: the newest day of each domain, summaries, and "
                  "what is not merged yet, stay",
                  uprof_store_path(pruning->store), pruning->bytes_kept >> 20);
}

static void
say_end(const Pruning *pruning)
{
    g_autofree char *shown = uprof_text_quote(uprof_store_path(pruning->store));
    const uint64_t tenths = pruning->bytes_kept * 10 >> 20;

    uprof_say("%s: %s%u profiles merged into %u days, %u summaries written, %u profiles removed, "
              "%" G_GUINT64_FORMAT ".%u MB kept",
              shown, pruning->dry_run ? "would be done: " : "", pruning->n_slices, pruning->n_days,
              pruning->n_summaries, pruning->n_removed, tenths / 10, (unsigned)(tenths % 10));
}

int
uprof_prune_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);
    const int64_t now_s = uprof_moment_now();
    bool taken = false;

    if (!config)
        return uprof_say_error(error);
    const char *path = options->store ? options->store : config->store;
    g_autofree char *shown = uprof_text_quote(path);
    if (!uprof_store_exists(path)) {
        if (!options->quiet)
            uprof_say("virt-uprof: nothing was collected yet: there is no '%s'", shown);
        return UPROF_EXIT_OK;
    }
    g_autoptr(UprofStore) store = uprof_store_open(path, !options->dry_run, &error);
    if (!store)
        return uprof_say_error(error);
    if (!uprof_store_lock(store, &taken, &error)) {
        if (!taken)
            return uprof_say_error(error);
        if (!options->quiet)
            uprof_say("virt-uprof: another 'virt-uprof prune' is at work in '%s'", shown);
        return UPROF_EXIT_LOCKED;
    }
    Pruning pruning = {
        .store = store,
        .config = config,
        .today_s = uprof_store_day_of(now_s),
        .dry_run = options->dry_run,
        .verbose = options->verbose,
    };
    prune(&pruning, now_s);
    if (!options->quiet)
        say_end(&pruning);
    if (options->dry_run && fflush(stdout) != 0)
        pruning.code = uprof_exit_worse(pruning.code, UPROF_EXIT_FAILED);
    return pruning.code;
}

/* ---- summary ---- */

int
uprof_summary_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, &error);
    const int64_t now_s = uprof_moment_now();
    int64_t day_s = uprof_store_day_of(now_s) - UPROF_STORE_DAY_S;
    int code = UPROF_EXIT_OK;

    if (!config)
        return uprof_say_error(error);
    if (options->words->len > 0 &&
        !uprof_moment_parse_day(g_ptr_array_index(options->words, 0), now_s, &day_s)) {
        g_autofree char *word = uprof_text_quote(g_ptr_array_index(options->words, 0));
        uprof_say("virt-uprof: '%s' is not %s; try: virt-uprof --help", word,
                  UPROF_MOMENT_DAY_FORM);
        return UPROF_EXIT_USAGE;
    }
    g_autoptr(UprofStore) store =
        uprof_store_open(options->store ? options->store : config->store, false, &error);
    if (!store)
        return uprof_say_error(error);
    g_autoptr(UprofStock) stock = uprof_stock_new(store, &code);
    GString *text = uprof_digest_render(stock, day_s, day_s < uprof_store_day_of(now_s), &code);
    if (text)
        return uprof_exit_worse(code, uprof_terminal_print(text));
    g_autofree char *day = uprof_store_format_day(day_s);
    uprof_say("virt-uprof: nothing was collected on %s", day);
    return uprof_exit_worse(code, UPROF_EXIT_USELESS);
}
