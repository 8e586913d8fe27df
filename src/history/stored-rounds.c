/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/stored-rounds.h"

#include "catalog-priv.h"
#include "store-process-priv.h"
#include "stored-functions-priv.h"
#include "uprof/sorted.h"
#include "uprof/text.h"

#include <string.h>

enum { ROUND_MS = 60 * 1000 }; /* for reading a round */

struct _UprofStoredRounds {
    const UprofCatalog *catalog; /* borrowed */
    GArray *list;                /* of UprofStoredRound */
    GArray *places;              /* of Place, by index in @list */
    UprofStoreProcess *process;  /* (nullable) */
    UprofStoreWork work;
    const UprofRoundWork *of_caller; /* borrowed */
};

/* Where a round is. Both are borrowed from the catalog. */
typedef struct {
    const UprofStoreFolder *folder;
    const UprofStoreItem *item;
} Place;

/* ---- The list ---- */

static int
compare_places(const void *a, const void *b)
{
    const Place *one = a, *other = b;

    if (one->item->start_s != other->item->start_s)
        return UPROF_COMPARE(one->item->start_s, other->item->start_s);
    return strcmp(one->item->stem, other->item->stem);
}

static void
add_folder(GArray *places, const UprofStoreFolder *folder)
{
    for (guint i = 0; i < folder->items->len; i++) {
        const Place place = { folder, uprof_store_item(folder, i) };
        if (!place.item->is_day && uprof_store_item_is_complete(place.item))
            g_array_append_val(places, place);
    }
}

UprofStoredRounds *
uprof_stored_rounds_new(const UprofCatalog *catalog)
{
    UprofStoredRounds *rounds = g_new0(UprofStoredRounds, 1);
    const GPtrArray *folders = uprof_catalog_folders(catalog);

    rounds->catalog = catalog;
    rounds->list = g_array_new(FALSE, FALSE, sizeof(UprofStoredRound));
    rounds->places = g_array_new(FALSE, FALSE, sizeof(Place));
    for (guint i = 0; i < folders->len; i++)
        add_folder(rounds->places, g_ptr_array_index(folders, i));
    g_array_sort(rounds->places, compare_places);
    for (guint i = 0; i < rounds->places->len; i++) {
        const Place *place = &g_array_index(rounds->places, Place, i);
        const UprofStoredRound round = { place->item->stem, place->folder->name,
                                         place->item->start_s };
        g_array_append_val(rounds->list, round);
    }
    return rounds;
}

void
uprof_stored_rounds_free(UprofStoredRounds *rounds)
{
    if (!rounds)
        return;
    uprof_store_process_end(rounds->process);
    g_array_unref(rounds->list);
    g_array_unref(rounds->places);
    g_free(rounds);
}

const GArray *
uprof_stored_rounds_list(const UprofStoredRounds *rounds)
{
    return rounds->list;
}

/* See uprof_text_file_name(), which makes the names of folders. A cut name has a "~". */
char *
uprof_stored_rounds_folder_name(const UprofStoredRound *round)
{
    g_autoptr(GBytes) bytes =
        strchr(round->folder, '~') ? NULL : g_uri_unescape_bytes(round->folder, -1, NULL, NULL);
    gsize len = 0;
    const char *raw = bytes ? g_bytes_get_data(bytes, &len) : NULL;

    return len > 0 ? g_strndup(raw, len) : NULL;
}

char *
uprof_stored_rounds_name(const UprofStoredRound *round, const UprofRun *run)
{
    const char *known = run->domain ? run->domain : "";
    g_autofree char *name = uprof_stored_rounds_folder_name(round);
    g_autofree char *shown = uprof_text_quote(name ? name : "");

    return name && strcmp(shown, known) == 0 ? g_steal_pointer(&name) : g_strdup(known);
}

/* ---- In a process ---- */

/* The beginning of the reply; the content follows, or the text of an error. */
typedef struct {
    uint32_t state; /* UprofRoundState */
} ReplyHead;

static UprofRoundState
fail_reply(GByteArray *reply, const GError *error)
{
    g_byte_array_append(reply, (const guint8 *)error->message, (guint)strlen(error->message));
    if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NO_FILE))
        return UPROF_ROUND_GONE;
    return g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA) ? UPROF_ROUND_DAMAGED
                                                                     : UPROF_ROUND_FAILED;
}

static UprofErrorCode
load_round(UprofLoad *load, const UprofStored *stored)
{
    const UprofSlice text = { stored->text->data, stored->text->len };
    const UprofErrorCode code =
        uprof_load_add_text(load, text, stored->run->domain, stored->run, uprof_stored_merge);

    if (code == UPROF_ERROR_NONE)
        uprof_load_finish(load);
    return code;
}

static UprofRoundState
use_round(const UprofStoredRounds *rounds, guint i, const UprofStored *stored, GByteArray *reply)
{
    const Place *place = &g_array_index(rounds->places, Place, i);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofLoadSettings settings = {
        .replay.symbols = &symbols,
        .has_modules = true,
        .drop_idle = true,
    };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, &settings);
    const UprofRoundWork *work = rounds->of_caller;

    if (!uprof_stored_functions_add(place->folder, place->item, names, &error))
        return fail_reply(reply, error);
    if (load_round(load, stored) != UPROF_ERROR_NONE || uprof_profile_total(load->profile) == 0)
        return UPROF_ROUND_UNWANTED;
    work->use(&g_array_index(rounds->list, UprofStoredRound, i), load->profile, load->run, reply,
              work->data);
    return UPROF_ROUND_READ;
}

static UprofRoundState
read_round(const UprofStoredRounds *rounds, guint i, GByteArray *reply)
{
    const Place *place = &g_array_index(rounds->places, Place, i);
    const UprofRoundWork *work = rounds->of_caller;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) facts = uprof_stored_facts(place->folder, place->item, &error);

    if (!facts)
        return fail_reply(reply, error);
    if (!work->wants(&g_array_index(rounds->list, UprofStoredRound, i), facts, work->data))
        return UPROF_ROUND_UNWANTED;
    g_autoptr(UprofStored) stored = uprof_stored_read(place->folder, place->item, &error);
    return stored ? use_round(rounds, i, stored, reply) : fail_reply(reply, error);
}

static void
work_on_round(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    ReplyHead head = { 0 };

    g_byte_array_append(reply, (const guint8 *)&head, sizeof(head));
    head.state = read_round(data, job, reply);
    memcpy(reply->data, &head, sizeof(head));
}

/* ---- In the program ---- */

bool
uprof_stored_rounds_start(UprofStoredRounds *rounds, const UprofRoundWork *work, GError **error)
{
    g_clear_pointer(&rounds->process, uprof_store_process_end);
    rounds->of_caller = work;
    rounds->work = (UprofStoreWork){
        .folders = uprof_catalog_folders(rounds->catalog),
        .work = work_on_round,
        .data = rounds,
    };
    rounds->process = uprof_store_process_start(&rounds->work, error);
    return rounds->process != NULL;
}

static UprofRoundState
fail_round(GError **error, UprofRoundState state, const GByteArray *content)
{
    const UprofErrorCode code =
        state == UPROF_ROUND_DAMAGED ? UPROF_ERROR_BAD_DATA : UPROF_ERROR_FAILED;
    g_autofree char *why = uprof_text_quote_slice((UprofSlice){ content->data, content->len });

    g_set_error(error, UPROF_ERROR, (gint)code, "%s", why);
    return state;
}

UprofRoundState
uprof_stored_rounds_read(UprofStoredRounds *rounds, guint i, GByteArray *content, GError **error)
{
    const UprofStoreReaction reaction = { .time_ms = ROUND_MS };
    g_autoptr(GByteArray) reply = uprof_store_process_run(rounds->process, i, &reaction, error);
    ReplyHead head;

    if (!reply)
        return UPROF_ROUND_FAILED;
    if (reply->len < sizeof(head)) {
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                            "the process that reads the files has sent a malformed reply");
        return UPROF_ROUND_FAILED;
    }
    memcpy(&head, reply->data, sizeof(head));
    g_byte_array_append(content, reply->data + sizeof(head), reply->len - sizeof(head));
    if (head.state == UPROF_ROUND_READ || head.state == UPROF_ROUND_UNWANTED ||
        head.state == UPROF_ROUND_GONE)
        return (UprofRoundState)head.state;
    return fail_round(error,
                      head.state == UPROF_ROUND_DAMAGED ? UPROF_ROUND_DAMAGED : UPROF_ROUND_FAILED,
                      content);
}
