/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stored-profile-priv.h"

#include "uprof/error.h"
#include "uprof/gzip.h"
#include "uprof/sidecar.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "store-priv.h"

#include <string.h>

enum {
    TRIES = 50,
    TRY_US = 10 * 1000,
};

void
uprof_stored_free(UprofStored *stored)
{
    if (!stored)
        return;
    uprof_run_free(stored->run);
    g_clear_pointer(&stored->text, g_byte_array_unref);
    g_free(stored);
}

char *
uprof_stored_digest(const void *bytes, size_t len)
{
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, bytes, len);
}

static char *
build_path(const UprofStoreFolder *folder, const UprofStoreItem *item, const char *ending)
{
    return g_strconcat(folder->path, "/", item->stem, ending, NULL);
}

static bool
fail_data(GError **error, const char *path, const char *what)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' %s", path, what);
    return false;
}

/* ---- Facts ---- */

static UprofRun *
read_facts(const UprofStoreFolder *folder, const UprofStoreItem *item, const char *ending,
           GError **error)
{
    g_autofree char *path = build_path(folder, item, ending);
    g_autofree char *shown = g_strdup_printf("'%s'", path);
    g_autoptr(GByteArray) bytes =
        uprof_store_read(folder, item->stem, ending, UPROF_SIDECAR_BYTES_MAX, error);

    if (!bytes)
        return NULL;
    g_autoptr(UprofRun) run =
        uprof_sidecar_parse(shown, (UprofSlice){ bytes->data, bytes->len }, error);
    if (!run)
        return NULL;
    if (!run->uuid || !g_uuid_string_is_valid(run->uuid)) {
        fail_data(error, path, "does not name its domain: it has no UUID");
        return NULL;
    }
    g_autofree char *lower = g_ascii_strdown(run->uuid, -1);
    g_free(run->uuid);
    run->uuid = g_steal_pointer(&lower);
    if (!run->domain)
        run->domain = g_strdup(run->uuid);
    return g_steal_pointer(&run);
}

UprofRun *
uprof_stored_facts(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error)
{
    return read_facts(folder, item, UPROF_STORE_SIDECAR, error);
}

/* ---- Facts and stacks ---- */

static void
ignore_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
}

/* Unpacks stacks, and checks every line. */
static GByteArray *
unpack_stacks(const GByteArray *packed, const char *path, GError **error)
{
    const UprofSlice bytes = { packed->data, packed->len };

    if (!uprof_gzip_is(bytes)) {
        fail_data(error, path, "is not packed");
        return NULL;
    }
    g_autoptr(GByteArray) text = uprof_gzip_inflate(path, bytes, error);
    if (!text ||
        !uprof_folded_parse(path, (UprofSlice){ text->data, text->len }, ignore_stack, NULL, error))
        return NULL;
    return g_steal_pointer(&text);
}

/* Slices have no digest: nobody replaces their stacks. */
static bool
is_sidecar_of(const UprofRun *run, const char *digest)
{
    return run && (!run->profile_sha256 || strcmp(run->profile_sha256, digest) == 0);
}

/* Reads facts and packed stacks that belong together. @packed: (out): not set on failure */
static UprofRun *
read_pair(const UprofStoreFolder *folder, const UprofStoreItem *item, GByteArray **packed,
          GError **error)
{
    g_autofree char *path = build_path(folder, item, UPROF_STORE_PROFILE);

    for (unsigned i = 0; i < TRIES; i++) {
        g_autoptr(UprofRun) run = read_facts(folder, item, UPROF_STORE_SIDECAR, error);
        g_autoptr(GByteArray) bytes =
            run ? uprof_store_read(folder, item->stem, UPROF_STORE_PROFILE, UPROF_STORED_PACKED_MAX,
                                   error)
                : NULL;
        if (!bytes)
            return NULL;
        g_autofree char *digest = uprof_stored_digest(bytes->data, bytes->len);
        g_autoptr(UprofRun) pending =
            is_sidecar_of(run, digest) ? NULL : read_facts(folder, item, UPROF_STORE_PENDING, NULL);
        if (is_sidecar_of(run, digest) || is_sidecar_of(pending, digest)) {
            *packed = g_steal_pointer(&bytes);
            return is_sidecar_of(run, digest) ? g_steal_pointer(&run) : g_steal_pointer(&pending);
        }
        /* a writer may have replaced only one of the two files yet: try again */
        g_usleep(i < TRIES - 1 ? TRY_US : 0);
    }
    fail_data(error, path, "is damaged: its sidecar belongs to other stacks");
    return NULL;
}

UprofRun *
uprof_stored_facts_of_stacks(const UprofStoreFolder *folder, const UprofStoreItem *item,
                             GError **error)
{
    g_autoptr(GByteArray) packed = NULL;

    return read_pair(folder, item, &packed, error);
}

UprofStored *
uprof_stored_read(const UprofStoreFolder *folder, const UprofStoreItem *item, GError **error)
{
    g_autofree char *path = build_path(folder, item, UPROF_STORE_PROFILE);
    g_autoptr(UprofStored) stored = g_new0(UprofStored, 1);
    g_autoptr(GByteArray) packed = NULL;

    stored->run = read_pair(folder, item, &packed, error);
    if (!stored->run)
        return NULL;
    stored->text = unpack_stacks(packed, path, error);
    return stored->text ? g_steal_pointer(&stored) : NULL;
}

void
uprof_stored_walk(const UprofStored *stored, UprofFoldedVisit visit, void *data)
{
    const UprofSlice text = { stored->text->data, stored->text->len };
    const bool ok = uprof_folded_parse("", text, visit, data, NULL);

    g_assert(ok); /* uprof_stored_read() has parsed it */
}

/*
 * Compares the pending sidecar with the stacks.
 *
 * @is_new: (out): the two belong together
 *
 * Returns: false with the error if a file cannot be read now
 */
static bool
compare_pending(const UprofStoreFolder *folder, const UprofStoreItem *item, bool *is_new,
                GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(UprofRun) pending = read_facts(folder, item, UPROF_STORE_PENDING, &failure);
    g_autoptr(GByteArray) bytes = pending && item->has_profile
                                      ? uprof_store_read(folder, item->stem, UPROF_STORE_PROFILE,
                                                         UPROF_STORED_PACKED_MAX, &failure)
                                      : NULL;

    /* bad data does not come from the interrupted merge, which writes complete and small files */
    if (failure && !g_error_matches(failure, UPROF_ERROR, UPROF_ERROR_BAD_DATA)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    g_autofree char *digest = bytes ? uprof_stored_digest(bytes->data, bytes->len) : NULL;
    *is_new = digest && pending->profile_sha256 && strcmp(pending->profile_sha256, digest) == 0;
    return true;
}

bool
uprof_stored_recover(const UprofStoreFolder *folder, UprofStoreItem *item, GError **error)
{
    bool is_new;

    if (!item->has_pending)
        return true;
    if (!compare_pending(folder, item, &is_new, error))
        return false;
    if (is_new ? !uprof_store_rename(folder, item->stem, UPROF_STORE_PENDING, UPROF_STORE_SIDECAR,
                                     error)
               : !uprof_store_remove_one(folder, item->stem, UPROF_STORE_PENDING, error))
        return false;
    item->has_sidecar |= is_new;
    item->has_pending = false;
    return true;
}

/* ---- Merging ---- */

/* Joins lists such as "direct" and "direct+monitor"; each method is listed once, sorted. */
static char *
join_methods(const char *one, const char *other)
{
    g_autofree char *both = g_strjoin("+", one ? one : "", other ? other : "", NULL);
    g_auto(GStrv) words = g_strsplit(both, "+", -1);
    GString *text = g_string_new(NULL);
    const char *last = "";

    /* each pass appends the smallest method that is larger than the last one */
    for (;;) {
        const char *next = NULL;
        for (char **word = words; *word; word++)
            if (strcmp(*word, last) > 0 && (!next || strcmp(*word, next) < 0))
                next = *word;
        if (!next)
            break;
        g_string_append_printf(text, "%s%s", text->len > 0 ? "+" : "", next);
        last = next;
    }
    return g_string_free(text, text->len == 0);
}

static void
replace_text(char **text, char *with)
{
    g_free(*text);
    *text = with;
}

void
uprof_stored_merge(UprofRun *run, const UprofRun *other, bool is_first)
{
    g_autofree char *access = join_methods(run->access, other->access);
    g_autofree char *unwind = join_methods(run->unwind, other->unwind);
    g_autofree char *name = g_strdup(is_first ? other->domain : run->domain);

    uprof_run_merge(run, other, is_first);
    replace_text(&run->access, g_steal_pointer(&access));
    replace_text(&run->unwind, g_steal_pointer(&unwind));
    replace_text(&run->domain, g_steal_pointer(&name));
}

bool
uprof_stored_has_slice(const UprofRun *run, int64_t start_s)
{
    const uint32_t second = (uint32_t)(start_s - uprof_time_day_start(start_s));

    for (guint i = 0; i < run->slices->len; i++)
        if (g_array_index(run->slices, uint32_t, i) == second)
            return true;
    return false;
}
