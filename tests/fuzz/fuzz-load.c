/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two profiles that a user gives to report and diff: each is folded stacks, pprof or a capture, and
 * may be packed. The bits of the first byte: bit 0, --include filters stacks; bit 1, --exclude
 * filters stacks; bit 2, idle vCPUs are dropped; bit 3, both profiles are merged. Then come the
 * length of the first profile, in 16 bits, and both profiles.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "check-outputs.h"
#include "memory-file.h"
#include "uprof/load.h"
#include "uprof/regular-file.h"
#include "uprof/tree.h"

enum { INCLUDES = 1, EXCLUDES = 2, DROPS_IDLE = 4, IS_ONE = 8, HEADER = 3 };

/* All tables are made of each profile. A packed profile may unpack to a thousand times its size. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 300,
        .us_per_kib = 400 * 1000,
        .base_kib = 16 * 1024,
        .bytes_per_byte = 128 * 1024,
        .n_mutations = 60,
    };
}

static const char *const paths[] = { "/a", "/b" };
static UprofSlice files[G_N_ELEMENTS(paths)];

static int
open_stub(const UprofFileRequest *request, void *data)
{
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
        if (strcmp(request->path, paths[i]) == 0)
            return memory_file_open(files[i]);
    errno = ENOENT;
    return -1;
}

static void
check_notice(UprofNoticeKind kind, const char *text, void *data)
{
    g_assert(g_utf8_validate(text, -1, NULL) && !strpbrk(text, "\x1b\n"));
}

static void
add_file(UprofLoad *load, const char *path)
{
    const UprofErrorCode code = uprof_load_add_file(load, path);

    g_assert(code >= UPROF_ERROR_NONE && code <= UPROF_ERROR_EMPTY);
    g_assert(code != UPROF_ERROR_NONE || load->n_files > 0);
}

static void
check_load(UprofLoad *load)
{
    g_assert(uprof_load_finish(load));
    g_assert(load->run->running <= load->run->samples);
    check_outputs(load->profile, load->run, CHECK_TABLES);
}

/* Compares as `diff` does. Only in the old profile the root counts as an ordinary frame. */
static void
compare(const UprofLoad *old, const UprofLoad *new)
{
    const UprofName *root = uprof_profile_root(new->profile);
    g_autoptr(UprofTree) rootless = uprof_tree_new_rootless(old->profile);
    g_autoptr(UprofTree) tree = uprof_tree_new(new->profile);
    g_autoptr(UprofTree) both = uprof_tree_compare(rootless, tree);
    const UprofTableStyle style = { .rows = 10, .width = 80 };

    if (root)
        uprof_tree_has_callee(rootless, root);
    g_string_free(uprof_svg_compare(both, old->run, new->run, NULL, NULL), TRUE);
    g_string_free(uprof_table_render_changes(both, &style, true), TRUE);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEADER)
        return;
    g_autoptr(GRegex) include = g_regex_new("m|\\[", 0, 0, NULL);
    g_autoptr(GRegex) exclude = g_regex_new("^a", 0, 0, NULL);
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofNotices notices = { check_notice, NULL };
    const UprofLoadSettings settings = {
        .replay.symbols = &symbols,
        .replay.notices = &notices,
        .include = data[0] & INCLUDES ? include : NULL,
        .exclude = data[0] & EXCLUDES ? exclude : NULL,
        .drop_idle = data[0] & DROPS_IDLE,
        .notices = &notices,
    };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) old = uprof_load_new(names, &settings);
    g_autoptr(UprofLoad) new = uprof_load_new(names, &settings);

    const size_t first = MIN((size_t)(data[1] | data[2] << 8), size - HEADER);
    files[0] = (UprofSlice){ data + HEADER, first };
    files[1] = (UprofSlice){ data + HEADER + first, size - HEADER - first };
    uprof_regular_file_delegate(open_stub, NULL);
    add_file(old, paths[0]);
    add_file(data[0] & IS_ONE ? old : new, paths[1]);
    check_load(old);
    check_load(new);
    compare(old, new);
}
