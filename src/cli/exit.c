/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exit.c - exit codes, and lines on stderr
 */
#include "exit-priv.h"

#include "uprof/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const struct {
    UprofErrorCode error;
    int code;
} codes[] = {
    { UPROF_ERROR_NONE,        UPROF_EXIT_OK },
    { UPROF_ERROR_FAILED,      UPROF_EXIT_FAILED },
    { UPROF_ERROR_NOT_FOUND,   UPROF_EXIT_DOMAIN },
    { UPROF_ERROR_DENIED,      UPROF_EXIT_DENIED },
    { UPROF_ERROR_UNSUPPORTED, UPROF_EXIT_USELESS },
    { UPROF_ERROR_BAD_DATA,    UPROF_EXIT_FAILED },
    { UPROF_ERROR_LEFT_HELD,   UPROF_EXIT_LEFT_HELD },
    { UPROF_ERROR_NO_FILE,     UPROF_EXIT_FAILED },
    { UPROF_ERROR_LOCKED,      UPROF_EXIT_LOCKED },
    { UPROF_ERROR_EMPTY,       UPROF_EXIT_USELESS },
    { UPROF_ERROR_USAGE,       UPROF_EXIT_USAGE },
    { UPROF_ERROR_SOME_FAILED, UPROF_EXIT_SOME_FAILED },
};

static const struct {
    int code;
    const char *text;
} texts[] = {
    { UPROF_EXIT_OK,          "success, also if Ctrl-C ended a run that has data" },
    { UPROF_EXIT_FAILED,      "failure: input, output, memory, or a bug" },
    { UPROF_EXIT_USAGE,       "wrong usage" },
    { UPROF_EXIT_DOMAIN,      "the domain is missing or does not run" },
    { UPROF_EXIT_DENIED,      "no connection or no permission" },
    { UPROF_EXIT_USELESS,     "the domain cannot be sampled, or no usable samples or stacks" },
    { UPROF_EXIT_SOME_FAILED, "some of several domains, or captures of ps, dump and dmesg, failed" },
    { UPROF_EXIT_LEFT_HELD,   "a guest may have been left stopped" },
    { UPROF_EXIT_LOCKED,      "another run has the lock" },
};
/* clang-format on */

static size_t progress_len; /* the length of the progress line on the terminal; 0: none */
static GPtrArray *diverted; /* (nullable): borrowed: gets the lines instead of stderr */

int
uprof_exit_of_code(UprofErrorCode code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++)
        if (codes[i].error == code)
            return codes[i].code;
    return UPROF_EXIT_FAILED;
}

int
uprof_exit_code(const GError *error)
{
    return uprof_exit_of_code(uprof_error_code_of(error));
}

int
uprof_exit_worse(int one, int other)
{
    if (one == UPROF_EXIT_LEFT_HELD || other == UPROF_EXIT_LEFT_HELD)
        return UPROF_EXIT_LEFT_HELD;
    return one != UPROF_EXIT_OK ? one : other;
}

int
uprof_exit_of_tally(const UprofErrorTally *tally)
{
    return uprof_exit_of_code(uprof_error_of_tally(tally));
}

int
uprof_exit_of_run(const UprofErrorTally *tally, UprofErrorCode code)
{
    return uprof_exit_worse(uprof_exit_of_tally(tally), uprof_exit_of_code(code));
}

void
uprof_exit_leave(const UprofErrorTally *tally, UprofErrorCode code)
{
    _exit(uprof_exit_of_run(tally, code));
}

const char *
uprof_exit_text(int code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        if (texts[i].code == code)
            return texts[i].text;
    return NULL;
}

void
uprof_say_progress(const char *text)
{
    const size_t len = strlen(text);

    if (progress_len > 0 || len > 0)
        fprintf(stderr, "\r%s%*s%s", text, (int)(progress_len > len ? progress_len - len : 0), "",
                len == 0 ? "\r" : "");
    progress_len = len;
    fflush(stderr);
}

void
uprof_say(const char *format, ...)
{
    va_list arguments;

    uprof_say_progress("");
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (diverted)
        g_ptr_array_add(diverted, g_steal_pointer(&text));
    else
        fprintf(stderr, "%s\n", text);
}

void
uprof_say_lines(GPtrArray *lines)
{
    for (guint i = 0; i < lines->len; i++)
        uprof_say("%s", (const char *)g_ptr_array_index(lines, i));
    g_ptr_array_unref(lines);
}

UprofErrorCode
uprof_say_error(const GError *error)
{
    uprof_say("virt-uprof: %s", error->message);
    return uprof_error_code_of(error);
}

int
uprof_exit_say_error(const GError *error)
{
    return uprof_exit_of_code(uprof_say_error(error));
}

void
uprof_say_divert(GPtrArray *lines)
{
    diverted = lines;
}
