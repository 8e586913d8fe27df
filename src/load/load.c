/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/load.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/filter.h"
#include "uprof/folded-reader.h"
#include "uprof/gzip.h"
#include "uprof/pprof-reader.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"
#include "uprof/sidecar.h"
#include "uprof/text.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096 };

UprofLoad *
uprof_load_new(UprofNames *names, const UprofLoadSettings *settings)
{
    UprofLoad *load = g_new0(UprofLoad, 1);

    load->settings = settings;
    load->names = names;
    load->profile = uprof_profile_new(names, NULL, false);
    load->run = uprof_run_new();
    return load;
}

void
uprof_load_free(UprofLoad *load)
{
    if (!load)
        return;
    uprof_symbolizer_free(load->symbolizer);
    uprof_hot_places_free(load->places);
    uprof_annotation_free(load->annotation);
    uprof_profile_free(load->profile);
    uprof_run_free(load->run);
    g_free(load);
}

/* ---- Files ---- */

static bool
fail_data(GError **error, const char *shown, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' %s", shown, why);
    return false;
}

static bool
is_capture(const GByteArray *bytes)
{
    return uprof_capture_replay_accepts((UprofSlice){ bytes->data, bytes->len });
}

static bool
read_to_end(int fd, const char *shown, GByteArray *bytes, GError **error)
{
    const size_t len_max = (size_t)UPROF_FOLDED_BYTES_MAX_MIB << 20;

    /* reads only the beginning of a capture: the replay reads it again, and it can be larger */
    bool ok = uprof_read_all(fd, HEAD_BYTES, bytes);
    if (ok && !is_capture(bytes))
        ok = uprof_read_all(fd, len_max + 1, bytes);
    if (!ok)
        return uprof_error_fail_errno(error, "cannot read '%s'", shown);
    return bytes->len <= len_max || fail_data(error, shown, "is larger than any profile");
}

/* Returns: (transfer full) (nullable): all that can be read from @fd; of a capture its beginning */
static GByteArray *
read_open_file(int fd, const char *shown, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    return read_to_end(fd, shown, bytes, error) ? g_steal_pointer(&bytes) : NULL;
}

static void
fail_open(const char *shown, GError **error)
{
    if (errno == EINVAL)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is neither a regular file nor a pipe of this user", shown);
    else if (errno == ETIMEDOUT)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "nobody writes into the pipe '%s'",
                    shown);
    else if (errno == ENOENT && !strpbrk(shown, "./@"))
        /* a word that looks like no file may be a domain */
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE,
                    "cannot read '%s': %s; for stored profiles of a domain: report --since today "
                    "DOMAIN, or diff DOMAIN@yesterday DOMAIN@today",
                    shown, g_strerror(errno));
    else
        uprof_error_fail_errno(error, "cannot read '%s'", shown);
}

/*
 * @is_regular: (out): not a pipe
 *
 * Returns: (transfer full) (nullable): the content of the file; of a capture only its beginning
 */
static GByteArray *
read_file(const char *path, const char *shown, bool *is_regular, GError **error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : uprof_regular_file_open_input(path);
    struct stat info;

    if (fd < 0) {
        fail_open(shown, error);
        return NULL;
    }
    *is_regular = !is_stdin && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    GByteArray *bytes = read_open_file(fd, shown, error);
    if (!is_stdin)
        close(fd);
    return bytes;
}

/* ---- Formats that are written, but not read ---- */

/* clang-format off */
static const struct {
    const char *beginning;
    const char *problem;
} foreign_formats[] = {
    { "<?xml",    "is a picture or another XML file; profiles are read from captures, folded stacks and pprof; -o NAME.folded writes such a profile" },
    { "<svg",     "is a picture; profiles are read from captures, folded stacks and pprof; -o NAME.folded writes such a profile" },
    { "{",        "is JSON (speedscope, or the .meta.json of a run); profiles are read from captures, folded stacks and pprof" },
    { "vm:",      "is text of 'perf script'; profiles are read from captures, folded stacks and pprof" },
    { "PERFILE2", "is perf's data; fold it first: perf script | stackcollapse-perf.pl" },
    { "\x7f" "ELF", "is a program; symbols are given with -s" },
};
/* clang-format on */

/* Returns: (nullable): why a file that has no folded stacks cannot be read; literal */
static const char *
recognize_format(UprofSlice bytes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(foreign_formats); i++) {
        const size_t len = strlen(foreign_formats[i].beginning);
        if (bytes.len >= len && memcmp(bytes.data, foreign_formats[i].beginning, len) == 0)
            return foreign_formats[i].problem;
    }
    return memchr(bytes.data, '\0', MIN(bytes.len, HEAD_BYTES))
               ? "is binary data of an unknown format; profiles are read from captures, folded "
                 "stacks and "
                 "pprof"
               : NULL;
}

/* ---- Folded stacks and pprof ---- */

/* Frames need up to a hundred times the memory of their text, if their names are short. */
static bool
is_full(const UprofLoad *load)
{
    return uprof_profile_n_frames(load->profile) >= UPROF_LOAD_FRAMES_MAX;
}

static bool
check_room(const UprofLoad *load, const char *shown, GError **error)
{
    if (!is_full(load))
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "'%s' cannot be added: all stacks together would have more than %d million "
                "different frames; give fewer files, or shallower stacks",
                shown, UPROF_LOAD_FRAMES_MAX / (1000 * 1000));
    return false;
}

/* Adds the stacks of one file to the profile. */
typedef struct {
    UprofLoad *load;       /* borrowed */
    UprofRun *run;         /* borrowed; counts the samples */
    const UprofName *root; /* (nullable): replaces the first frame of each stack */
} Adding;

static const UprofName *
read_frame(UprofLoad *load, UprofSlice raw)
{
    const UprofName *frame = uprof_names_read_back(load->names, raw);

    /* text does not say whether a name is of a function, and of which module */
    if (!load->settings->has_modules && uprof_name_text(frame)[0] != '[')
        uprof_name_add_module(frame, NULL);
    return load->symbolizer ? uprof_symbolizer_name_frame(load->symbolizer, frame) : frame;
}

static void
add_stack(const UprofSlice *slices, unsigned n_slices, bool is_cut, uint64_t count, void *data)
{
    Adding *adding = data;
    UprofNames *names = adding->load->names;
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX + 1];
    unsigned n = 0;

    if (is_full(adding->load))
        return;

    for (unsigned i = 0; i < n_slices; i++) {
        frames[n++] = i == 0 && n_slices > 1 && adding->root ? adding->root
                                                             : read_frame(adding->load, slices[i]);
        if (i == 0 && is_cut)
            frames[n++] = uprof_names_marker(names, "[truncated]");
    }
    if (adding->load->places)
        uprof_symbolizer_annotate(adding->load->symbolizer,
                                  uprof_names_read_back(names, slices[n_slices - 1]),
                                  adding->load->places, count);
    uprof_profile_add(adding->load->profile, frames, n, count);
    uprof_filter_count(adding->run, frames, n, count);
}

/*
 * Tries folded stacks first, because a function may have a name that begins like another format.
 */
static bool
load_text(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    Adding adding = { load, run };

    if (bytes.len == 0)
        return fail_data(error, shown, "is empty, as if nothing ran");
    if (uprof_folded_parse(shown, bytes, add_stack, &adding, error))
        return true;
    const char *problem = run->samples == 0 ? recognize_format(bytes) : NULL;
    if (!problem)
        return false;
    g_clear_error(error);
    return fail_data(error, shown, problem);
}

static bool
load_pprof(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    Adding adding = { load, run };
    UprofPprofFacts facts;

    if (!uprof_pprof_parse(shown, bytes, &facts, add_stack, &adding, error))
        return false;
    run->started_utc_ns = facts.time_ns;
    run->duration_ns = facts.duration_ns;
    if (facts.period_ns > 0)
        run->rate_mhz = (1000 * UPROF_NS_PER_S + facts.period_ns / 2) / facts.period_ns;
    return true;
}

static bool
load_plain(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    return uprof_pprof_is(bytes) ? load_pprof(load, run, bytes, shown, error)
                                 : load_text(load, run, bytes, shown, error);
}

static bool
load_bytes(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    if (!uprof_gzip_is(bytes))
        return load_plain(load, run, bytes, shown, error);
    g_autoptr(GByteArray) inflated = uprof_gzip_inflate(shown, bytes, error);
    return inflated &&
           load_plain(load, run, (UprofSlice){ inflated->data, inflated->len }, shown, error);
}

/* ---- Symbols ---- */

static bool
has_symbols(const UprofLoad *load)
{
    const UprofSymbolSettings *symbols = load->settings->replay.symbols;

    return symbols && uprof_symbol_settings_has_any(symbols);
}

/* Prepares the symbolizer for one more profile. @facts: (nullable): of the sidecar */
static bool
begin_symbolizer(UprofLoad *load, const UprofRun *facts, GError **error)
{
    if (!has_symbols(load))
        return true;
    if (!load->symbolizer)
        load->symbolizer = uprof_symbolizer_new(load->settings->replay.symbols, load->names,
                                                facts ? facts->arch : NULL, error);
    if (load->symbolizer)
        uprof_symbolizer_begin_profile(load->symbolizer, facts);
    if (load->symbolizer && !load->places && load->settings->replay.annotate)
        load->places = uprof_hot_places_new(load->settings->replay.annotate, NULL);
    return load->symbolizer != NULL;
}

/* ---- Captures ---- */

static void
copy_frames(UprofLoad *load, const UprofName *const *frames, unsigned n, const UprofName **copies)
{
    for (unsigned i = 0; i < n; i++)
        copies[i] = uprof_names_copy(load->names, frames[i]);
}

static void
copy_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    UprofLoad *load = data;
    const UprofName *copies[UPROF_PROFILE_DEPTH_MAX];

    if (is_full(load))
        return;
    copy_frames(load, frames, n, copies);
    uprof_profile_add(load->profile, copies, n, weight);
}

static void
copy_tick(const UprofName *const *frames, unsigned n, UprofTick tick, void *data)
{
    UprofLoad *load = data;
    const UprofName *copies[UPROF_PROFILE_DEPTH_MAX];

    if (is_full(load)) {
        uprof_profile_add_untimed(load->profile, tick.count);
        return;
    }
    copy_frames(load, frames, n, copies);
    uprof_profile_add_tick(load->profile, copies, n, tick, false);
}

/* Copies stacks and times; each profile owns its names. */
static void
copy_profile(UprofLoad *load, const UprofProfile *profile)
{
    uprof_profile_walk(profile, copy_stack, load);
    if (!load->settings->replay.keeps_times)
        return;
    uprof_profile_keep_times(load->profile);
    uprof_profile_walk_ticks(profile, UPROF_PROFILE_ALL_VCPUS, copy_tick, load);
    uprof_profile_add_untimed(load->profile, uprof_profile_n_untimed(profile));
}

static UprofErrorCode
load_capture(UprofLoad *load, const char *path, const char *shown)
{
    g_autoptr(GError) error = NULL;
    UprofErrorCode code;
    g_autoptr(UprofCaptureReplay) replay =
        uprof_capture_replay_new(path, &load->settings->replay, &code);

    if (!replay)
        return code;
    copy_profile(load, replay->pipeline->profile);
    g_clear_pointer(&load->annotation, uprof_annotation_free);
    if (replay->places)
        load->annotation = uprof_hot_places_annotate(replay->places, replay->pipeline->sym);
    uprof_run_merge(load->run, replay->run, load->n_files++ == 0);
    load->is_cut |= !uprof_capture_replay_is_complete(replay);
    if (code == UPROF_ERROR_NONE && !check_room(load, shown, &error))
        code = uprof_notice_error(load->settings->notices, error);
    return code;
}

/* ---- Files ---- */

char *
uprof_load_sidecar_path(const char *path)
{
    static const char *const endings[] = { ".folded", ".folded.gz" };

    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        if (!g_str_has_suffix(path, endings[i]))
            continue;
        g_autofree char *stem = g_strndup(path, strlen(path) - strlen(endings[i]));
        return g_strconcat(stem, ".meta.json", NULL);
    }
    return NULL;
}

/* Returns: (transfer full) (nullable): the facts in the sidecar of the profile */
static UprofRun *
read_sidecar(const char *path)
{
    g_autofree char *sidecar = uprof_load_sidecar_path(path);
    const int fd = sidecar ? uprof_regular_file_open(sidecar) : -1;

    if (fd < 0)
        return NULL;
    g_autoptr(GByteArray) bytes = read_open_file(fd, sidecar, NULL);
    close(fd);
    return bytes ? uprof_sidecar_parse(sidecar, (UprofSlice){ bytes->data, bytes->len }, NULL)
                 : NULL;
}

/* Reads folded stacks or pprof. The stacks before an error count. */
static bool
load_stacks(UprofLoad *load, UprofSlice bytes, const char *path, const char *shown, GError **error)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofRun) facts = has_symbols(load) ? read_sidecar(path) : NULL;

    if (load->run->samples > INT64_MAX - UPROF_FOLDED_WEIGHT_MAX)
        return fail_data(error, shown, "cannot be added: the sum of all counts would overflow");
    if (!begin_symbolizer(load, facts, error))
        return false;
    const bool ok = load_bytes(load, run, bytes, shown, error) && check_room(load, shown, error);
    if (ok || run->samples > 0)
        uprof_run_merge(load->run, run, load->n_files++ == 0);
    if (load->symbolizer)
        uprof_symbolizer_begin_profile(load->symbolizer, NULL); /* @facts end here */
    return ok;
}

static UprofErrorCode
load_file(UprofLoad *load, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *shown = uprof_text_quote(path);
    bool is_regular = false;
    g_autoptr(GByteArray) bytes = read_file(path, shown, &is_regular, &error);

    if (bytes && is_capture(bytes) && is_regular)
        return load_capture(load, path, shown);
    if (bytes && is_capture(bytes))
        /* a replay reads the end of a capture before its middle */
        fail_data(&error, shown, "is a capture in a pipe; give it as a file");
    else if (bytes)
        load_stacks(load, (UprofSlice){ bytes->data, bytes->len }, path, shown, &error);
    return error ? uprof_notice_error(load->settings->notices, error) : UPROF_ERROR_NONE;
}

UprofErrorCode
uprof_load_add_file(UprofLoad *load, const char *path)
{
    const UprofErrorCode code = load_file(load, path);

    load->is_partial |= code != UPROF_ERROR_NONE;
    return code;
}

static bool
add_text(UprofLoad *load, UprofSlice text, const char *root, const UprofRun *facts,
         UprofLoadMerge merge, GError **error)
{
    g_autoptr(UprofRun) counts = uprof_run_new(); /* unused: see @facts */
    g_autofree char *shown = uprof_text_quote(root);
    Adding adding = { load, counts,
                      uprof_names_intern(load->names, (UprofSlice){ root, strlen(root) }) };

    if (!begin_symbolizer(load, facts, error) ||
        !uprof_folded_parse(shown, text, add_stack, &adding, error))
        return false;
    merge(load->run, facts, load->n_files++ == 0);
    if (load->symbolizer)
        uprof_symbolizer_begin_profile(load->symbolizer, NULL); /* @facts end here */
    return check_room(load, shown, error);
}

UprofErrorCode
uprof_load_add_text(UprofLoad *load, UprofSlice text, const char *root, const UprofRun *facts,
                    UprofLoadMerge merge)
{
    g_autoptr(GError) error = NULL;

    if (add_text(load, text, root, facts, merge, &error))
        return UPROF_ERROR_NONE;
    load->is_partial = true;
    return uprof_notice_error(load->settings->notices, error);
}

/* ---- The end ---- */

void
uprof_load_target_init(UprofLoadTarget *target, const char *path)
{
    const bool exists = g_file_test(path, G_FILE_TEST_EXISTS);

    *target = (UprofLoadTarget){
        .path = path,
        .exists = exists,
        .is_stream =
            strcmp(path, "-") == 0 || (exists && !g_file_test(path, G_FILE_TEST_IS_REGULAR)),
    };
}

bool
uprof_load_check_output(const UprofLoad *load, const UprofLoadTarget *target, GError **error)
{
    g_autofree char *shown = uprof_text_quote(target->path);

    if (target->is_stream)
        return true;
    if (load->is_partial) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "'%s' is not written: not all of the input could be read", shown);
        return false;
    }
    if (load->is_cut && target->exists) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "'%s' exists, and is not replaced because the capture is cut off; give another "
                    "name",
                    shown);
        return false;
    }
    return true;
}

static void
apply_filter(UprofLoad *load)
{
    const UprofLoadSettings *settings = load->settings;
    const UprofFilter filter = { settings->include, settings->exclude, settings->drop_idle };

    if (uprof_filter_is_empty(&filter))
        return;
    UprofProfile *passed = uprof_filter_apply(&filter, load->profile, load->run);
    uprof_profile_free(load->profile);
    load->profile = passed;
}

/* Sets the root: the domain of the facts, or else the frame that all stacks begin with. */
static void
settle_root(UprofLoad *load)
{
    UprofRun *run = load->run;
    const UprofName *name =
        run->domain
            ? uprof_names_intern(load->names, (UprofSlice){ run->domain, strlen(run->domain) })
            : NULL;

    uprof_profile_settle(load->profile, name);
    const UprofName *root = uprof_profile_root(load->profile);
    if (!run->domain && root)
        run->domain = g_strdup(uprof_name_text(root));
}

static void
finish_annotation(UprofLoad *load)
{
    uint64_t halted;

    g_array_unref(uprof_profile_rows(load->profile, &halted));
    if (!load->annotation && load->places)
        load->annotation =
            uprof_hot_places_annotate(load->places, uprof_symbolizer_sym(load->symbolizer));
    if (load->annotation)
        load->annotation->all = uprof_profile_total(load->profile) - halted;
}

bool
uprof_load_finish(UprofLoad *load)
{
    if (load->symbolizer) {
        load->profile =
            uprof_symbolizer_end(load->symbolizer, load->profile, load->settings->notices);
        if (uprof_symbolizer_is_refused(load->symbolizer))
            return false;
    }
    settle_root(load);
    apply_filter(load);
    if (load->settings->replay.annotate)
        finish_annotation(load);
    return true;
}
