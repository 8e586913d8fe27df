/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store-folder.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/folded-reader.h"
#include "uprof/output.h"

static void
note_warning(UprofNoticeKind kind, const char *text, void *data)
{
    if (kind == UPROF_NOTICE_WARNING)
        g_string_append_printf(data, "%s\n", text);
}

void
store_folder_init(StoreFolder *folder)
{
    g_autoptr(GError) error = NULL;

    folder->top = g_dir_make_tmp("uprof-store-XXXXXX", NULL);
    folder->store = uprof_store_open(folder->top, true, &error);
    g_assert_no_error(error);
    folder->warnings = g_string_new(NULL);
    folder->notices = (UprofNotices){ note_warning, folder->warnings };
}

static int
remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    return remove(path);
}

void
store_folder_clear(StoreFolder *folder)
{
    uprof_store_close(folder->store);
    g_assert_cmpint(nftw(folder->top, remove_entry, 16, FTW_DEPTH | FTW_PHYS), ==, 0);
    g_string_free(folder->warnings, TRUE);
    g_free(folder->top);
}

/* The data of add_stack(). */
typedef struct {
    UprofProfile *profile;
    UprofRun *run;
} Adding;

static void
add_stack(const UprofSlice *slices, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Adding *adding = data;
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX];

    for (unsigned i = 1; i < n; i++)
        frames[i - 1] = uprof_names_read_back(uprof_profile_names(adding->profile), slices[i]);
    uprof_profile_add(adding->profile, frames, n - 1, count);
    adding->run->samples += count;
    adding->run->running += count;
    adding->run->complete += count;
}

static void
write_output(const char *base, const char *ending, const UprofFormat *format, const Adding *adding)
{
    g_autofree char *path = g_strconcat(base, ending, NULL);
    GString *text = uprof_output_render(format, adding->profile, adding->run);

    g_assert_true(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    g_string_free(text, TRUE);
}

void
store_folder_put_slice(StoreFolder *folder, const char *name, const char *uuid, int64_t start_s,
                       const char *stacks)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofProfile) profile = uprof_profile_new(
        names, uprof_names_intern(names, (UprofSlice){ name, strlen(name) }), false);
    g_autofree char *base =
        uprof_store_slice_base(folder->store, name, uuid, start_s, NULL, &error);
    Adding adding = { profile, run };

    g_assert_no_error(error);
    run->domain = g_strdup(name);
    run->uuid = g_strdup(uuid);
    run->started_utc_ns = (uint64_t)start_s * UPROF_NS_PER_S;
    run->duration_ns = 10 * UPROF_NS_PER_S;
    uprof_folded_parse("slice", (UprofSlice){ stacks, strlen(stacks) }, add_stack, &adding, &error);
    g_assert_no_error(error);
    write_output(base, UPROF_STORE_PROFILE, &uprof_format_folded_gz, &adding);
    write_output(base, UPROF_STORE_SIDECAR, &uprof_format_meta, &adding);
}

void
store_folder_put(StoreFolder *folder, const char *path, const char *text)
{
    g_autofree char *full = g_build_filename(folder->top, path, NULL);

    g_assert_true(g_file_set_contents(full, text, -1, NULL));
}

bool
store_folder_has(const StoreFolder *folder, const char *path)
{
    g_autofree char *full = g_build_filename(folder->top, path, NULL);

    return g_file_test(full, G_FILE_TEST_IS_REGULAR);
}
