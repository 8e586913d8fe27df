/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <zlib.h>

#include "uprof/output.h"

#define ID "0a0b0c0d"

enum { GZIP_WINDOW = 15 + 16, BYTES_MAX = 4096 };

/* Fields of google/pprof, proto/profile.proto */
enum { MAPPING = 3, LOCATION = 4, FUNCTION = 5, STRINGS = 6 };
enum { ID_FIELD = 1, LOCATION_MAPPING = 2, MAPPING_FILE = 5, MAPPING_BUILD_ID = 6 };
enum { LOCATION_LINE = 4, LINE_NUMBER = 2, FUNCTION_FILE = 4, FUNCTION_LINE = 5 };

typedef struct {
    const uint8_t *at, *end;
} Message;

static uint64_t
read_varint(Message *message)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        g_assert_true(message->at < message->end && shift < 64);
        value |= (uint64_t)(*message->at & 0x7f) << shift;
        if (!(*message->at++ & 0x80))
            return value;
    }
}

/* @value, @part: (out): of the next field: its number, or its bytes. Returns: 0 at the end */
static unsigned
next_field(Message *message, uint64_t *value, Message *part)
{
    if (message->at == message->end)
        return 0;
    const uint64_t tag = read_varint(message);
    *value = read_varint(message);
    if ((tag & 7) == 2) {
        g_assert_cmpuint(*value, <=, (uint64_t)(message->end - message->at));
        *part = (Message){ message->at, message->at + *value };
        message->at += *value;
    }
    return (unsigned)(tag >> 3);
}

/* Returns: a number of a message; 0 if it lacks the field */
static uint64_t
find_number(Message message, unsigned field)
{
    Message part;
    uint64_t value;

    for (unsigned found; (found = next_field(&message, &value, &part)) != 0;)
        if (found == field)
            return value;
    return 0;
}

/* @n: of the messages of this kind, from 0. Returns: the message */
static Message
find_message(Message message, unsigned field, uint64_t n)
{
    Message part;
    uint64_t value;

    for (unsigned found; (found = next_field(&message, &value, &part)) != 0;)
        if (found == field && n-- == 0)
            return part;
    g_assert_not_reached();
}

static void
assert_string(Message profile, uint64_t index, const char *text)
{
    const Message found = find_message(profile, STRINGS, index);

    g_assert_cmpuint((size_t)(found.end - found.at), ==, strlen(text));
    g_assert_cmpint(memcmp(found.at, text, strlen(text)), ==, 0);
}

static Message
unpack(const GString *packed, uint8_t *bytes)
{
    z_stream stream = { .next_in = (uint8_t *)packed->str,
                        .avail_in = (unsigned)packed->len,
                        .next_out = bytes,
                        .avail_out = BYTES_MAX };

    g_assert_cmpint(inflateInit2(&stream, GZIP_WINDOW), ==, Z_OK);
    g_assert_cmpint(inflate(&stream, Z_FINISH), ==, Z_STREAM_END);
    const Message message = { bytes, bytes + stream.total_out };
    inflateEnd(&stream);
    return message;
}

/* A function of a module has the module's mapping, with its build-id if that is known. */
static void
test_modules(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);
    const UprofName *frames[] = { uprof_names_marker(names, "main"),
                                  uprof_names_marker(names, "malloc"),
                                  uprof_names_marker(names, "other") };
    uint8_t bytes[BYTES_MAX];

    run->domain = g_strdup("vm");
    uprof_run_add_image(run, "[libc.so.6]", NULL, ID, NULL)->is_module = true;
    uprof_name_add_module(frames[1], uprof_names_marker(names, "libc.so.6"));
    uprof_name_add_module(frames[2], uprof_names_marker(names, "libx.so"));
    uprof_profile_add(profile, frames, G_N_ELEMENTS(frames), 1);
    GString *packed = uprof_output_render(&uprof_format_pprof, profile, run);
    const Message message = unpack(packed, bytes);

    /* the locations are in the order of a stack: the leaf first */
    static const struct {
        const char *module, *build_id;
    } expected[] = { { "libx.so", "" }, { "libc.so.6", ID }, { "[app]", "" } };
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        const uint64_t id = find_number(find_message(message, LOCATION, i), LOCATION_MAPPING);
        for (unsigned n = 0;; n++) {
            const Message mapping = find_message(message, MAPPING, n);
            if (find_number(mapping, ID_FIELD) != id)
                continue;
            assert_string(message, find_number(mapping, MAPPING_FILE), expected[i].module);
            assert_string(message, find_number(mapping, MAPPING_BUILD_ID), expected[i].build_id);
            break;
        }
    }
    g_string_free(packed, TRUE);
}

/* The numbers of lines are those where the functions begin. */
static void
test_sources(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);
    const UprofName *frames[] = { uprof_names_marker(names, "main"),
                                  uprof_names_marker(names, "work") };
    uint8_t bytes[BYTES_MAX];

    run->domain = g_strdup("vm");
    uprof_name_add_source(frames[1],
                          (UprofNameSource){ uprof_names_marker(names, "/src/work.c"), 120 });
    uprof_profile_add(profile, frames, G_N_ELEMENTS(frames), 1);
    GString *packed = uprof_output_render(&uprof_format_pprof, profile, run);
    const Message message = unpack(packed, bytes);

    static const struct {
        const char *file;
        unsigned line;
    } expected[] = { { "/src/work.c", 120 }, { "", 0 } };
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        const Message function = find_message(message, FUNCTION, i);
        const Message line = find_message(find_message(message, LOCATION, i), LOCATION_LINE, 0);
        assert_string(message, find_number(function, FUNCTION_FILE), expected[i].file);
        g_assert_cmpuint(find_number(function, FUNCTION_LINE), ==, expected[i].line);
        g_assert_cmpuint(find_number(line, LINE_NUMBER), ==, expected[i].line);
    }
    g_string_free(packed, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pprof/modules", test_modules);
    g_test_add_func("/pprof/sources", test_sources);
    return g_test_run();
}
