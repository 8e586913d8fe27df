/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/pprof-reader.h"

#include <string.h>

#include "uprof/error.h"

/* Messages, built field by field. */
static void
put_varint(GByteArray *out, uint64_t value)
{
    do {
        const guint8 byte = (guint8)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        g_byte_array_append(out, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void
put_number(GByteArray *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void
put_bytes(GByteArray *out, unsigned field, const void *bytes, size_t len)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, len);
    g_byte_array_append(out, bytes, (guint)len);
}

static void
put_message(GByteArray *out, unsigned field, GByteArray *message)
{
    put_bytes(out, field, message->data, message->len);
    g_byte_array_set_size(message, 0);
}

static const char *const strings[] = {
    "",        "samples", "count", "cpu",  "nanoseconds", "main",  "work",
    "inlined", "domain",  "web-1", "vcpu", "vcpu0",       "space", "bytes",
};

static guint
find(const char *text)
{
    for (guint i = 0; i < G_N_ELEMENTS(strings); i++)
        if (strcmp(strings[i], text) == 0)
            return i;
    g_assert_not_reached();
}

static void
put_type(GByteArray *out, unsigned field, const char *type, const char *unit)
{
    g_autoptr(GByteArray) message = g_byte_array_new();

    put_number(message, 1, find(type));
    put_number(message, 2, find(unit));
    put_message(out, field, message);
}

static void
put_function(GByteArray *out, uint64_t id, const char *name)
{
    g_autoptr(GByteArray) message = g_byte_array_new();

    put_number(message, 1, id);
    put_number(message, 2, find(name));
    put_message(out, 5, message);
}

/* @one, @other: ids of functions, innermost first; 0: no more */
static void
put_location(GByteArray *out, uint64_t id, uint64_t address, uint64_t one, uint64_t other)
{
    const uint64_t functions[] = { one, other };
    g_autoptr(GByteArray) message = g_byte_array_new();
    g_autoptr(GByteArray) line = g_byte_array_new();

    put_number(message, 1, id);
    put_number(message, 3, address);
    for (unsigned i = 0; i < G_N_ELEMENTS(functions) && functions[i] > 0; i++) {
        put_number(line, 1, functions[i]);
        put_number(line, 2, 12);
        put_message(message, 4, line);
    }
    put_message(out, 4, message);
}

static void
put_label(GByteArray *message, const char *key, const char *text)
{
    g_autoptr(GByteArray) label = g_byte_array_new();

    put_number(label, 1, find(key));
    put_number(label, 2, find(text));
    put_message(message, 3, label);
}

typedef struct {
    const char *name;
    const char *types[2][2];
    bool has_labels, is_packed;
    uint64_t locations[3]; /* innermost first; 0: no more */
    int64_t values[2];
    uint64_t period;
    const char *seen;
    const char *error;
} Case;

/* clang-format off */
static const Case cases[] = {
    { "plain", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, false, { 2, 1 }, { 7, 70 }, 10, "main;work=7 ", NULL },
    { "packed", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 2, 1 }, { 7, 70 }, 10, "main;work=7 ", NULL },
    { "labels", { { "samples", "count" }, { "cpu", "nanoseconds" } }, true, true, { 1 }, { 7, 70 }, 10, "web-1;vcpu0;main=7 ", NULL },
    { "inlined", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 3, 1 }, { 1, 10 }, 10, "main;work;inlined=1 ", NULL },
    { "no-line", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 4, 1 }, { 1, 10 }, 10, "main;0xffffffff81000000=1 ", NULL },
    { "count-of-another-name", { { "space", "bytes" }, { "space", "count" } }, false, true, { 1 }, { 4096, 3 }, 0, "main=3 ", NULL },
    { "time-in-periods", { { "space", "bytes" }, { "cpu", "nanoseconds" } }, false, true, { 1 }, { 4096, 94 }, 10, "main=9 ", NULL },
    { "bytes", { { "cpu", "nanoseconds" }, { "space", "bytes" } }, false, true, { 1 }, { 5, 4096 }, 0, "main=4096 ", NULL },
    { "negative", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 1 }, { -7, -70 }, 10, "", NULL },
    { "nothing", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 1 }, { 0, 0 }, 10, "", NULL },
    { "unknown-location", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 9 }, { 1, 10 }, 10, "", "file byte *: sample 0 is damaged" },
    { "unknown-function", { { "samples", "count" }, { "cpu", "nanoseconds" } }, false, true, { 5 }, { 1, 10 }, 10, "", "file byte *: sample 0 is damaged" },
};
/* clang-format on */

static void
put_sample(GByteArray *out, const Case *row)
{
    g_autoptr(GByteArray) message = g_byte_array_new();
    g_autoptr(GByteArray) packed = g_byte_array_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(row->locations) && row->locations[i] > 0; i++) {
        if (row->is_packed)
            put_varint(packed, row->locations[i]);
        else
            put_number(message, 1, row->locations[i]);
    }
    if (row->is_packed)
        put_message(message, 1, packed);
    for (unsigned i = 0; i < G_N_ELEMENTS(row->values); i++)
        put_number(message, 2, (uint64_t)row->values[i]);
    if (row->has_labels) {
        put_label(message, "vcpu", "vcpu0");
        put_label(message, "domain", "web-1");
    }
    put_message(out, 2, message);
}

static GByteArray *
make_profile(const Case *row)
{
    GByteArray *out = g_byte_array_new();

    for (unsigned i = 0; i < G_N_ELEMENTS(row->types); i++)
        put_type(out, 1, row->types[i][0], row->types[i][1]);
    put_sample(out, row);
    put_location(out, 5, 1, 77, 0);
    put_location(out, 4, UINT64_C(0xffffffff81000000), 0, 0);
    put_location(out, 3, 3, 3, 2);
    put_location(out, 2, 2, 2, 0);
    put_location(out, 1, 1, 1, 0);
    put_function(out, 1, "main");
    put_function(out, 2, "work");
    put_function(out, 3, "inlined");
    put_number(out, 9, 1234);
    put_number(out, 10, 5678);
    put_type(out, 11, "cpu", "nanoseconds");
    put_number(out, 12, row->period);
    for (guint i = 0; i < G_N_ELEMENTS(strings); i++)
        put_bytes(out, 6, strings[i], strlen(strings[i]));
    return out;
}

static void
see(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    GString *seen = data;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(seen, "%s%.*s", i > 0 ? ";" : "", (int)frames[i].len,
                               (const char *)frames[i].data);
    g_string_append_printf(seen, "=%" G_GUINT64_FORMAT "%s ", count, is_cut ? " cut" : "");
}

static void
test_case(gconstpointer data)
{
    const Case *row = &cases[GPOINTER_TO_SIZE(data)];
    g_autoptr(GByteArray) profile = make_profile(row);
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const UprofSlice bytes = { profile->data, profile->len };
    UprofPprofFacts facts = { 0 };

    g_assert_true(uprof_pprof_is(bytes));
    const bool ok = uprof_pprof_parse("file", bytes, &facts, see, seen, &error);

    g_assert_cmpstr(seen->str, ==, row->seen);
    g_assert_true(ok == !row->error);
    if (row->error) {
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_true(g_pattern_match_simple(row->error, error->message));
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpuint(facts.time_ns, ==, 1234);
    g_assert_cmpuint(facts.duration_ns, ==, 5678);
    g_assert_cmpuint(facts.period_ns, ==, row->period);
}

/* A truncated profile is refused, or has fewer samples. */
static void
test_cut(void)
{
    g_autoptr(GByteArray) profile = make_profile(&cases[0]);

    for (guint len = 0; len < profile->len; len++) {
        g_autoptr(GString) seen = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        UprofPprofFacts facts;
        if (!uprof_pprof_parse("file", (UprofSlice){ profile->data, len }, &facts, see, seen,
                               &error))
            g_assert_cmpstr(seen->str, ==, "");
        else
            g_assert_cmpstr(seen->str, ==, cases[0].seen);
    }
}

/* 100 KB that stand for 100 million frames: 100,000 times a location with 1000 lines */
static void
test_frames_of_few_bytes(void)
{
    enum { LINES = 1000, TIMES = 100 * 1000 };
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_autoptr(GByteArray) message = g_byte_array_new();
    g_autoptr(GByteArray) part = g_byte_array_new();
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    UprofPprofFacts facts;

    put_type(out, 1, "samples", "count");
    for (unsigned i = 0; i < TIMES; i++)
        put_varint(part, 1);
    put_message(message, 1, part);
    put_number(message, 2, 1);
    put_message(out, 2, message);
    put_number(message, 1, 1);
    for (unsigned i = 0; i < LINES; i++) {
        put_number(part, 1, 1);
        put_message(message, 4, part);
    }
    put_message(out, 4, message);
    put_function(out, 1, "main");
    for (guint i = 0; i < G_N_ELEMENTS(strings); i++)
        put_bytes(out, 6, strings[i], strlen(strings[i]));
    g_assert_false(
        uprof_pprof_parse("file", (UprofSlice){ out->data, out->len }, &facts, see, seen, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_nonnull(strstr(error->message, "more than 64 frames for each byte"));
    g_assert_cmpstr(seen->str, ==, "");
}

static void
test_is(void)
{
    g_assert_false(uprof_pprof_is((UprofSlice){ NULL, 0 }));
    g_assert_false(uprof_pprof_is((UprofSlice){ "main;work 5\n", 12 }));
    g_assert_false(uprof_pprof_is((UprofSlice){ "\nmain;work 5\n", 13 }));
    g_assert_false(uprof_pprof_is((UprofSlice){ "2main;work 5\n", 13 }));
    g_assert_true(uprof_pprof_is((UprofSlice){ "\x0a\x04\x08\x01\x10\x02", 6 }));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/pprof/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/pprof/cut", test_cut);
    g_test_add_func("/pprof/frames-of-few-bytes", test_frames_of_few_bytes);
    g_test_add_func("/pprof/is", test_is);
    return g_test_run();
}
