/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "begin-priv.h"

#include <string.h>

/* The first part of the message. Texts follow, each with a NUL. An empty text stands for %NULL. */
typedef struct {
    UprofBeginState state;
    guint n_symbols, n_folders, n_names, n_outputs;
    bool waits;
} Head;

void
uprof_begin_clear(UprofBegin *begin)
{
    g_clear_pointer(&begin->metadata_symbols, g_ptr_array_unref);
    g_clear_pointer(&begin->metadata_folders, g_ptr_array_unref);
    g_clear_pointer(&begin->file_names, g_ptr_array_unref);
    g_clear_pointer(&begin->outputs, g_array_unref);
}

static void
put_text(GByteArray *message, const char *text)
{
    g_byte_array_append(message, (const guint8 *)(text ? text : ""),
                        (guint)strlen(text ? text : "") + 1);
}

static void
put_texts(GByteArray *message, const GPtrArray *texts)
{
    for (guint i = 0; i < texts->len; i++)
        put_text(message, g_ptr_array_index(texts, i));
}

GByteArray *
uprof_begin_pack(const UprofBegin *begin)
{
    GByteArray *message = g_byte_array_new();
    const Head head = {
        .state = begin->state,
        .n_symbols = begin->metadata_symbols->len,
        .n_folders = begin->metadata_folders->len,
        .n_names = begin->file_names->len,
        .n_outputs = begin->outputs->len,
        .waits = begin->waits,
    };

    g_byte_array_append(message, (const guint8 *)&head, sizeof(head));
    put_text(message, begin->shown);
    put_text(message, begin->run_text);
    put_text(message, begin->kernel);
    put_text(message, begin->kernel_hint);
    put_texts(message, begin->metadata_symbols);
    put_texts(message, begin->metadata_folders);
    put_texts(message, begin->file_names);
    for (guint i = 0; i < begin->outputs->len; i++) {
        const UprofBeginOutput *output = &g_array_index(begin->outputs, UprofBeginOutput, i);
        put_text(message, output->format);
        put_text(message, output->shown);
        put_text(message, output->is_stdout ? "-" : "");
        put_text(message, output->is_waits ? "waits" : "");
    }
    return message;
}

void
uprof_begin_set_state(GByteArray *message, const UprofBeginState *state)
{
    memcpy(message->data + G_STRUCT_OFFSET(Head, state), state, sizeof(*state));
}

/* @at: (inout): moves behind the text */
static const char *
take_text(const char **at)
{
    const char *text = *at;

    *at += strlen(text) + 1;
    return text;
}

static const char *
take_nullable(const char **at)
{
    const char *text = take_text(at);

    return *text ? text : NULL;
}

static GPtrArray *
take_texts(const char **at, guint n)
{
    GPtrArray *texts = g_ptr_array_new();

    for (guint i = 0; i < n; i++)
        g_ptr_array_add(texts, (char *)take_text(at));
    return texts;
}

void
uprof_begin_unpack(UprofBegin *begin, UprofSlice message)
{
    const char *at = (const char *)message.data + sizeof(Head);
    Head head;

    memcpy(&head, message.data, sizeof(head));
    begin->state = head.state;
    begin->waits = head.waits;
    begin->shown = take_text(&at);
    begin->run_text = take_text(&at);
    begin->kernel = take_nullable(&at);
    begin->kernel_hint = take_nullable(&at);
    begin->metadata_symbols = take_texts(&at, head.n_symbols);
    begin->metadata_folders = take_texts(&at, head.n_folders);
    begin->file_names = take_texts(&at, head.n_names);
    begin->outputs = g_array_new(FALSE, FALSE, sizeof(UprofBeginOutput));
    for (guint i = 0; i < head.n_outputs; i++) {
        UprofBeginOutput output;
        output.format = take_text(&at);
        output.shown = take_text(&at);
        output.is_stdout = *take_text(&at) != '\0';
        output.is_waits = *take_text(&at) != '\0';
        g_array_append_val(begin->outputs, output);
    }
}
