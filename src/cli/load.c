/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "load-priv.h"

#include "capture-priv.h"
#include "exit-priv.h"
#include "filter-priv.h"
#include "summary-priv.h"
#include "uprof/capture.h"
#include "uprof/clock.h"
#include "uprof/folded.h"
#include "uprof/gzip.h"
#include "uprof/pprof.h"
#include "uprof/sidecar.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024, MAGIC_LEN = 8, LOOK_LEN = 4096 };

UprofLoad *
uprof_load_new(UprofNames *names, bool keeps_times)
{
    UprofLoad *load = g_new0(UprofLoad, 1);

    load->names = names;
    load->keeps_times = keeps_times;
    load->profile = uprof_profile_new(names, NULL, false);
    load->run = uprof_run_new();
    return load;
}

void
uprof_load_free(UprofLoad *load)
{
    if (!load)
        return;
    uprof_naming_free(load->naming);
    uprof_profile_free(load->profile);
    uprof_run_free(load->run);
    g_free(load);
}

/* ---- Files ---- */

static bool
fail(GError **error, const char *shown, const char *why)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' %s", shown, why);
    return false;
}

static bool
fail_errno(GError **error, const char *shown)
{
    const int code = errno;

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read '%s': %s", shown,
                g_strerror(code));
    return false;
}

static bool
read_all(int fd, const char *shown, GByteArray *bytes, GError **error)
{
    g_autofree guint8 *chunk = g_malloc(CHUNK);
    ssize_t n;

    while ((n = read(fd, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(error, shown);
        if (bytes->len + (size_t)n > (size_t)UPROF_FOLDED_BYTES_MAX_MIB << 20)
            return fail(error, shown, "is larger than any profile");
        g_byte_array_append(bytes, chunk, (guint)n);
        /* what is mapped, and may be larger, is not read here */
        if (bytes->len >= MAGIC_LEN && memcmp(bytes->data, UPROF_CAPTURE_MAGIC, MAGIC_LEN) == 0)
            return true;
    }
    return true;
}

/* Returns: (transfer full) (nullable): what is in the file; of a capture the beginning */
static GByteArray *
read_file(const char *path, const char *shown, GError **error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    if (fd < 0) {
        fail_errno(error, shown);
        return NULL;
    }
    const bool ok = read_all(fd, shown, bytes, error);
    if (!is_stdin)
        close(fd);
    return ok ? g_steal_pointer(&bytes) : NULL;
}

/* ---- What we and others write, and cannot read back ---- */

/* clang-format off */
static const struct {
    const char *beginning;
    const char *what;
} strangers[] = {
    { "<?xml",    "is a picture or another XML file; report reads captures, folded stacks and pprof" },
    { "<svg",     "is a picture; report reads captures, folded stacks and pprof" },
    { "{",        "is JSON (speedscope, or a sidecar); report reads captures, folded stacks and pprof" },
    { "vm:",      "is text of 'perf script'; report reads captures, folded stacks and pprof" },
    { "PERFILE2", "is perf's data; fold it first: perf script | stackcollapse-perf.pl" },
    { "\x7f" "ELF", "is a program; symbols are given with -s" },
};
/* clang-format on */

/* Of what is no folded stacks: says what it is, if that is known. */
static const char *
recognize(UprofSlice bytes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(strangers); i++) {
        const size_t len = strlen(strangers[i].beginning);
        if (bytes.len >= len && memcmp(bytes.data, strangers[i].beginning, len) == 0)
            return strangers[i].what;
    }
    return memchr(bytes.data, '\0', MIN(bytes.len, LOOK_LEN))
               ? "is nothing that report reads: captures, folded stacks, pprof"
               : NULL;
}

/* ---- Folded stacks and pprof ---- */

/* Text of one letter per name has room for a hundred times the memory that it takes itself. */
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
                "'%s' is too much: there is room for %d million different frames of all stacks; "
                "fewer files, or shallower stacks?",
                shown, UPROF_LOAD_FRAMES_MAX / (1000 * 1000));
    return false;
}

/* @root: (nullable): in place of what the stacks begin with */
typedef struct {
    UprofLoad *load;
    UprofRun *run;
    const UprofName *root;
} Adding;

static const UprofName *
read_frame(UprofLoad *load, UprofSlice raw)
{
    const UprofName *frame = uprof_names_read_back(load->names, raw);

    return load->naming ? uprof_naming_frame(load->naming, frame) : frame;
}

static void
add_slices(const UprofSlice *slices, unsigned n_slices, bool is_cut, uint64_t count, void *data)
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
    uprof_profile_add(adding->load->profile, frames, n, count);
    uprof_filter_count(adding->run, frames, n, count);
}

/* Names of functions may begin as other formats do: stacks are what can be read as such. */
static bool
load_text(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    Adding adding = { load, run };

    if (bytes.len == 0)
        return fail(error, shown, "is empty");
    if (uprof_folded_parse(shown, bytes, add_slices, &adding, error))
        return true;
    const char *what = run->samples == 0 ? recognize(bytes) : NULL;
    if (!what)
        return false;
    g_clear_error(error);
    return fail(error, shown, what);
}

static bool
load_pprof(UprofLoad *load, UprofRun *run, UprofSlice bytes, const char *shown, GError **error)
{
    Adding adding = { load, run };
    UprofPprofFacts facts;

    if (!uprof_pprof_parse(shown, bytes, &facts, add_slices, &adding, error))
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

static bool
wants_naming(const UprofOptions *options)
{
    /* the last ones of these are NULL */
    return options && (options->symbols->len > 0 || options->debug_folders->len > 1 ||
                       options->sysroots->len > 1);
}

/* What comes next is one profile; @facts: (nullable) */
static bool
begin_naming(UprofLoad *load, const UprofOptions *options, const UprofRun *facts, GError **error)
{
    if (!wants_naming(options))
        return true;
    if (!load->naming)
        load->naming = uprof_naming_new(options, load->names, facts ? facts->arch : NULL, error);
    if (load->naming)
        uprof_naming_begin(load->naming, facts);
    return load->naming != NULL;
}

/* ---- Captures ---- */

static void
copy_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    UprofLoad *load = data;
    const UprofName *copies[UPROF_PROFILE_DEPTH_MAX];

    if (is_full(load))
        return;
    for (unsigned i = 0; i < n; i++)
        copies[i] = uprof_names_marker(load->names, uprof_name_text(frames[i]));
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
    for (unsigned i = 0; i < n; i++)
        copies[i] = uprof_names_marker(load->names, uprof_name_text(frames[i]));
    uprof_profile_add_tick(load->profile, copies, n, tick, false);
}

static int
load_capture(UprofLoad *load, const char *path, const char *shown, const UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    int code;
    g_autoptr(UprofCaptureRead) read = uprof_capture_read(path, options, load->keeps_times, &code);

    if (!read)
        return code;
    uprof_profile_walk(read->pipeline->profile, copy_stack, load);
    if (load->keeps_times) {
        uprof_profile_keep_times(load->profile);
        uprof_profile_walk_ticks(read->pipeline->profile, UPROF_PROFILE_ALL_VCPUS, copy_tick, load);
        uprof_profile_add_untimed(load->profile, uprof_profile_n_untimed(read->pipeline->profile));
    }
    uprof_run_merge(load->run, read->run, load->n_files++ == 0);
    load->is_cut |= !uprof_replay_is_whole(read->guest);
    if (code == UPROF_EXIT_OK && !check_room(load, shown, &error))
        code = uprof_say_error(error);
    return code;
}

/* Of NAME.folded the facts are in NAME.meta.json. Returns: (transfer full) (nullable): them */
static UprofRun *
read_sidecar(const char *path)
{
    static const char *const endings[] = { ".folded", ".folded.gz" };

    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        if (!g_str_has_suffix(path, endings[i]))
            continue;
        g_autofree char *stem = g_strndup(path, strlen(path) - strlen(endings[i]));
        g_autofree char *sidecar = g_strconcat(stem, ".meta.json", NULL);
        g_autoptr(GByteArray) bytes =
            g_file_test(sidecar, G_FILE_TEST_IS_REGULAR) ? read_file(sidecar, sidecar, NULL) : NULL;
        return bytes ? uprof_sidecar_parse(sidecar, (UprofSlice){ bytes->data, bytes->len }, NULL)
                     : NULL;
    }
    return NULL;
}

static int
add(UprofLoad *load, const char *path, const UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *shown = uprof_text_quote(path);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GByteArray) bytes = read_file(path, shown, &error);

    if (!bytes)
        return uprof_say_error(error);
    if (bytes->len >= MAGIC_LEN && memcmp(bytes->data, UPROF_CAPTURE_MAGIC, MAGIC_LEN) == 0) {
        /* it is read from both ends */
        if (strcmp(path, "-") != 0 && g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return load_capture(load, path, shown, options);
        fail(&error, shown, "is a capture in a pipe; give it as a file");
        return uprof_say_error(error);
    }
    if (load->run->samples > INT64_MAX - UPROF_FOLDED_WEIGHT_MAX) {
        fail(&error, shown, "is one too many: their counts are too large together");
        return uprof_say_error(error);
    }
    g_autoptr(UprofRun) facts = wants_naming(options) ? read_sidecar(path) : NULL;
    if (!begin_naming(load, options, facts, &error))
        return uprof_say_error(error);
    const bool ok = load_bytes(load, run, (UprofSlice){ bytes->data, bytes->len }, shown, &error) &&
                    check_room(load, shown, &error);
    if (ok || run->samples > 0)
        uprof_run_merge(load->run, run, load->n_files++ == 0);
    return ok ? UPROF_EXIT_OK : uprof_say_error(error);
}

int
uprof_load_add(UprofLoad *load, const char *path, const UprofOptions *options)
{
    const int code = add(load, path, options);

    load->is_partial |= code != UPROF_EXIT_OK;
    return code;
}

int
uprof_load_add_stored(UprofLoad *load, const UprofStored *stored, const char *name,
                      const UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) counts = uprof_run_new(); /* the sidecar has them, of idle vCPUs too */
    g_autofree char *shown = uprof_text_quote(name);
    Adding adding = { load, counts,
                      uprof_names_intern(load->names, (UprofSlice){ name, strlen(name) }) };

    if (!begin_naming(load, options, stored->run, &error)) {
        load->is_partial = true;
        return uprof_say_error(error);
    }
    uprof_stored_walk(stored, add_slices, &adding);
    uprof_stored_merge(load->run, stored->run, load->n_files++ == 0);
    load->n_profiles += MAX(stored->run->slices->len, 1);
    if (check_room(load, shown, &error))
        return UPROF_EXIT_OK;
    load->is_partial = true;
    return uprof_say_error(error);
}

bool
uprof_load_may_write(const UprofLoad *load, const char *path)
{
    const bool is_stream = strcmp(path, "-") == 0 || (g_file_test(path, G_FILE_TEST_EXISTS) &&
                                                      !g_file_test(path, G_FILE_TEST_IS_REGULAR));
    g_autofree char *shown = uprof_text_quote(path);

    if (is_stream)
        return true;
    if (load->is_partial) {
        uprof_say("virt-uprof: '%s' is not written: not all of the input could be read", shown);
        return false;
    }
    if (load->is_cut && g_file_test(path, G_FILE_TEST_EXISTS)) {
        uprof_say("virt-uprof: '%s' exists, and is not replaced by what was cut off; give another "
                  "name",
                  shown);
        return false;
    }
    return true;
}

static void
apply_filter(UprofLoad *load, const UprofOptions *options, bool drop_idle)
{
    const UprofFilter filter = { options->include, options->exclude, drop_idle };

    if (uprof_filter_is_empty(&filter))
        return;
    UprofProfile *passed = uprof_filter_apply(&filter, load->profile, load->run);
    uprof_profile_free(load->profile);
    load->profile = passed;
}

int
uprof_load_finish(UprofLoad *load, const UprofOptions *options, bool drop_idle)
{
    UprofRun *run = load->run;

    if (load->naming) {
        load->profile = uprof_naming_end(load->naming, load->profile);
        if (uprof_naming_is_refused(load->naming))
            return UPROF_EXIT_FAILED;
    }
    const UprofName *name =
        run->domain
            ? uprof_names_intern(load->names, (UprofSlice){ run->domain, strlen(run->domain) })
            : NULL;

    uprof_profile_settle(load->profile, name);
    const UprofName *root = uprof_profile_root(load->profile);
    if (!run->domain && root)
        run->domain = g_strdup(uprof_name_text(root));
    apply_filter(load, options, drop_idle);
    g_autofree char *shown = uprof_text_quote(run->domain);
    uprof_summary_say_untimed(load->profile, shown);
    return UPROF_EXIT_OK;
}
