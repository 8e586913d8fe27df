/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top-picture-priv.h"

#include "uprof/capture-reader.h"
#include "uprof/clock.h"
#include "uprof/output-request.h"

/* ---- In a worker ---- */

/* All stacks of the worker's domain; owned, for as long as the process lives. */
static UprofProfile *seen;

/* Keeps a stack without its vCPU. The profile has the root already. */
static void
keep_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    uint32_t vcpu;
    const unsigned first = n > 1 && uprof_profile_level_is_vcpu(frames[1], &vcpu) ? 2 : 1;

    (void)data;
    uprof_profile_add(seen, frames + first, n - first, weight);
}

void
uprof_top_picture_note(const UprofProfile *profile)
{
    if (!seen)
        seen = uprof_profile_new(uprof_profile_names(profile), uprof_profile_root(profile), true);
    uprof_profile_walk(profile, keep_stack, NULL);
}

void
uprof_top_picture_draw(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    UprofRun *run = analysis->run;

    if (!seen || uprof_profile_total(seen) == 0)
        return;
    uprof_capture_parse_run(argument, run, NULL);
    uprof_pipeline_note_facts(analysis->pipeline);
    GString *picture = uprof_output_render(&uprof_format_svg, seen, run);
    g_byte_array_append(reply, (const guint8 *)picture->str, (guint)picture->len);
    g_string_free(picture, TRUE);
}

/* ---- In the program ---- */

/* Returns: (transfer full): a name as `record` gives to its pictures */
static char *
make_path(const UprofDomain *domain)
{
    const UprofOutputRequest request = {
        .path = (char *)"%d-%t.svg",
        .format = &uprof_format_svg,
        .is_unused_name = true,
    };
    g_autofree char *time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE);

    return uprof_output_request_path(&request, domain->name, domain->uuid, time);
}

static bool
write_picture(const char *path, const GByteArray *picture, GError **error)
{
    g_autoptr(UprofFile) file = uprof_file_open(path, false, error);

    return file && uprof_file_write(file, picture->data, picture->len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error);
}

char *
uprof_top_picture_save(UprofSession *session, unsigned call, GError **error)
{
    g_autoptr(GByteArray) facts = g_byte_array_new();
    g_autoptr(GByteArray) picture = NULL;
    g_autofree char *path = make_path(session->domain);
    UprofSamplerCounts counts;

    uprof_session_note_counts(session, &counts);
    uprof_capture_format_run(session->run, UPROF_RUN_AT_END, facts);
    if (!uprof_worker_call(session->worker, call, (UprofSlice){ facts->data, facts->len }, &picture,
                           error))
        return NULL;
    if (picture->len == 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_EMPTY,
                    "%s: a picture needs samples, and there are none yet", session->shown);
        return NULL;
    }
    return write_picture(path, picture, error) ? g_steal_pointer(&path) : NULL;
}
