/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture-command-priv.h"

#include "exit-priv.h"
#include "load-options-priv.h"

#define ENDING ".capture"

bool
uprof_capture_command_accepts(const UprofOptions *options)
{
    for (guint i = 0; i < options->words->len; i++) {
        const char *word = g_ptr_array_index(options->words, i);
        if (!g_str_has_suffix(word, ENDING) || !g_file_test(word, G_FILE_TEST_EXISTS))
            return false;
    }
    return options->words->len > 0;
}

static UprofErrorCode
show_capture(const char *path, const UprofLoadOptions *load_options, UprofCaptureWork work)
{
    UprofReplaySettings settings = load_options->settings.replay;
    UprofErrorCode code = UPROF_ERROR_NONE;

    settings.wants_tasks = true;
    g_autoptr(UprofCaptureReplay) replay = uprof_capture_replay_new(path, &settings, &code);
    return replay ? uprof_error_merge(code,
                                      work(replay, load_options->options, &load_options->notices))
                  : code;
}

UprofErrorCode
uprof_capture_command_show(const UprofReadCommand *command, UprofCaptureWork work)
{
    const GPtrArray *paths = command->options->words;
    UprofErrorTally tally = { 0 };
    UprofLoadOptions load_options;

    if (command->options->pauses) {
        uprof_say("virt-uprof: --pause holds a guest: leave it out for a capture");
        return UPROF_ERROR_USAGE;
    }
    uprof_load_options_init(&load_options, command->options);
    for (guint i = 0; i < paths->len; i++)
        uprof_error_count(&tally, show_capture(g_ptr_array_index(paths, i), &load_options, work));
    return uprof_error_of_tally(&tally);
}
