/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files of a store: a catalog, the merge of days, a query and the summary of a day. Each record
 * is a byte, 16 bits of length, and the content of a file. Bits 0 to 3 of the byte are the number
 * of the file. The target packs a profile with gzip unless bit 6 is set. In other files, '@' stands
 * for the digest of the last packed profile.
 */
#include "fuzz.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store-folder.h"
#include "uprof/day-summary.h"
#include "uprof/output.h"
#include "uprof/query.h"
#include "uprof/time-text.h"
#include "../../src/history/catalog-priv.h"
#include "../../src/history/merge-days-priv.h"
#include "../../src/output/deflate-priv.h"

enum { RECORD_HEADER = 3, RECORDS_MAX = 24, FILE_MASK = 15, IS_RAW = 64, PER_FOLDER = 16 };

/* Files are written and synced, and profiles are read several times. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 300,
        .us_per_kib = 50 * 1000,
        .base_kib = 16 * 1024,
        .bytes_per_byte = 8192,
        .n_mutations = 40,
    };
}

static const char *const paths[] = {
    "data/web-1/web-1-20261120T091500Z.folded.gz",
    "data/web-1/web-1-20261120T091500Z.meta.json",
    "data/web-1/web-1-20261120T092500Z.folded.gz",
    "data/web-1/web-1-20261120T092500Z.meta.json",
    "data/web-1/web-1-20261120.folded.gz",
    "data/web-1/web-1-20261120.meta.json",
    "data/web-1/web-1-20261120.pending",
    "data/web-1/web-1-20261120.failures",
    "data/web-1/web-1-20261121T000000Z.folded.gz",
    "data/web-1/web-1-20261121T000000Z.meta.json",
    "data/web-1/web-1-20261120~4dea22b31d52d8f32516782e98ab3fa0.folded.gz",
    "data/web-1/web-1-20261120~4dea22b31d52d8f32516782e98ab3fa0.meta.json",
    "data/db/db-20261119.folded.gz",
    "data/db/db-20261119.meta.json",
    "data/db/db-20261120T091500Z.failures",
    "summary/2026-11-20.txt",
};
G_STATIC_ASSERT(G_N_ELEMENTS(paths) == FILE_MASK + 1);

/* Replaces GLib's function: a reader sleeps until both files of a pair exist, in vain here. */
void
g_usleep(gulong microseconds)
{
}

/* ---- Files ---- */

static char *
pack_text(UprofSlice text, gsize *len)
{
    GString *packed = g_string_new(NULL);
    UprofSink sink = { .text = packed };
    UprofDeflate *deflate = uprof_deflate_new(&sink);

    g_autoptr(GString) copy = g_string_new_len(text.data, (gssize)text.len);
    uprof_deflate_write(deflate, copy);
    uprof_deflate_finish(deflate);
    *len = packed->len;
    return g_string_free(packed, FALSE);
}

/* Replaces each '@', up to four, by @digest, the digest of the last packed profile. */
static char *
put_digest(UprofSlice text, const char *digest, gsize *len)
{
    GString *filled = g_string_new_len(text.data, (gssize)text.len);

    if (digest)
        g_string_replace(filled, "@", digest, 4);
    *len = filled->len;
    return g_string_free(filled, FALSE);
}

static void
put_file(const StoreFolder *folder, uint8_t head, UprofSlice content, char **digest)
{
    const char *path = paths[head & FILE_MASK];
    const bool is_packed = g_str_has_suffix(path, UPROF_STORE_PROFILE) && !(head & IS_RAW);
    g_autofree char *full = g_build_filename(folder->top, path, NULL);
    g_autofree char *above = g_path_get_dirname(full);
    gsize len;
    g_autofree char *bytes =
        is_packed ? pack_text(content, &len) : put_digest(content, *digest, &len);

    if (is_packed) {
        g_free(*digest);
        *digest = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)bytes, len);
    }
    g_assert(g_mkdir_with_parents(above, 0750) == 0);
    g_assert(
        g_file_set_contents_full(full, bytes, (gssize)len, G_FILE_SET_CONTENTS_NONE, 0640, NULL));
}

static void
put_files(const StoreFolder *folder, const uint8_t *data, size_t size)
{
    g_autofree char *digest = NULL;

    for (unsigned i = 0; i < RECORDS_MAX && size >= RECORD_HEADER; i++) {
        const size_t wanted = (size_t)(data[1] | data[2] << 8);
        const size_t len = MIN(wanted, size - RECORD_HEADER);
        put_file(folder, data[0], (UprofSlice){ data + RECORD_HEADER, len }, &digest);
        data += RECORD_HEADER + len;
        size -= RECORD_HEADER + len;
    }
}

/* ---- Reading ---- */

static void
check_text(const char *text)
{
    g_assert(g_utf8_validate(text, -1, NULL));
    for (const char *c = text; *c; c++)
        g_assert(((uint8_t)*c >= ' ' && *c != 0x7f) || *c == '\n');
}

static void
show_day(int64_t day_s, unsigned n_slices)
{
    g_assert(n_slices > 0 && day_s % UPROF_DAY_S == 0);
}

/* The merge is repeated: the second one finds nothing to do. */
static void
merge_days(StoreFolder *folder, const char *name)
{
    const UprofMergeSettings settings = {
        .today_s = FRIDAY_S + UPROF_DAY_S,
        .notices = &folder->notices,
        .show_day = show_day,
    };

    for (unsigned i = 0; i < 2; i++) {
        g_autoptr(UprofStoreFolder) opened = uprof_store_folder_open(folder->store, name, NULL);
        if (opened)
            uprof_merge_days(opened, &settings);
    }
}

static void
render_summaries(StoreFolder *folder, const UprofCatalog *catalog)
{
    UprofErrorCode code = UPROF_ERROR_NONE;

    for (int64_t day = 0; day < 2; day++) {
        GString *text = uprof_day_summary_render(catalog, FRIDAY_S + day * UPROF_DAY_S, day == 0,
                                                 &folder->notices, &code);
        if (!text)
            continue;
        check_text(text->str);
        g_string_free(text, TRUE);
    }
}

static void
load_domain(StoreFolder *folder, const UprofCatalog *catalog, const char *domain)
{
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofLoadSettings settings = { .replay.symbols = &symbols, .notices = &folder->notices };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, &settings);
    const UprofQuery query = { .catalog = catalog,
                               .domain = domain,
                               .since_s = FRIDAY_S - UPROF_DAY_S,
                               .until_s = INT64_MAX };

    uprof_query_load(&query, load);
    uprof_load_finish(load);
    GString *text = uprof_output_render(&uprof_format_folded, load->profile, load->run);
    check_text(text->str);
    g_string_free(text, TRUE);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    StoreFolder folder;

    g_setenv("TMPDIR", "/dev/shm", false);
    store_folder_init(&folder);
    put_files(&folder, data, size);
    merge_days(&folder, "web-1");
    merge_days(&folder, "db");
    uprof_store_last_attempt(folder.store, "web-1", WEB_UUID, FRIDAY_S + UPROF_DAY_S);
    g_autoptr(UprofCatalog) catalog = uprof_catalog_new(folder.store, &folder.notices, &code);
    load_domain(&folder, catalog, "web-1");
    load_domain(&folder, catalog, WEB_UUID);
    render_summaries(&folder, catalog);
    g_clear_pointer(&catalog, uprof_catalog_free);
    check_text(folder.warnings->str);
    store_folder_clear(&folder);
}
