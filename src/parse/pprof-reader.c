/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/pprof-reader.h"

#include "uprof/sorted.h"

#include <stdlib.h>
#include <string.h>

enum {
    BYTES_MAX_MIB = 256,
};

/* Wire types, and the fields of each message of profile.proto. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, FIELD_SHIFT = 3, WIRE_MASK = 7 };
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_FIELDS = 15, /* the highest field number */
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_STR = 2,
    LOCATION_ID = 1,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
};

enum {
    VALUES_MAX = 64, /* of a sample */
    LABELS_MAX = 2,  /* that become frames */
    HEX_LEN = 20,
    CHECKED_BYTES = 1024, /* by uprof_pprof_is() */
    CHECKED_FIELDS = 3,

    /*
     * A sample names a location in one byte, and a location can have many lines. So that the time
     * grows only with the size of the file, all samples together may have this many frames for each
     * byte of the file. A profile of deeply inlined code has five.
     */
    FRAMES_PER_BYTE_MAX = 64,
};

/* One field of a message: a number, or bytes. */
typedef struct {
    unsigned number;
    unsigned wire;
    uint64_t value;
    UprofSlice bytes;
} Field;

typedef struct {
    uint64_t id;
    uint64_t name; /* in the string table */
} Function;

typedef struct {
    uint64_t id;
    uint64_t address;
    guint first_line; /* in Pprof.lines, innermost first */
    guint n_lines;
} Location;

typedef struct {
    uint64_t type, unit; /* in the string table */
} ValueType;

typedef struct {
    UprofBytes bytes;
    GArray *strings;   /* of UprofSlice */
    GArray *types;     /* of ValueType */
    GArray *functions; /* of Function, by id */
    GArray *locations; /* of Location, by id */
    GArray *lines;     /* of uint64_t: ids of functions */
    GArray *samples;   /* of UprofSlice */
    GStringChunk *addresses;
    UprofPprofFacts facts;
    ValueType period_type;
    unsigned value_index; /* value of a sample that counts */
    uint64_t divisor;     /* of this value */
    uint64_t n_pushed;    /* frames of all samples so far */
    bool has_too_many;    /* of these, for the size of the file */
} Pprof;

static UprofBytes
open_message(const Pprof *pprof, UprofSlice slice)
{
    return (UprofBytes){ .name = pprof->bytes.name, .all = slice };
}

/* Returns: false at the end, and at a malformed field, which stays in @bytes */
static bool
take_next_field(UprofBytes *bytes, Field *field)
{
    UprofBytes at = *bytes;
    uint64_t key, len;
    uint32_t fixed;

    if (uprof_bytes_left(&at) == 0 || !uprof_bytes_uleb(&at, &key) || key >> FIELD_SHIFT == 0 ||
        key >> FIELD_SHIFT > G_MAXUINT16)
        return false;
    *field = (Field){ .number = (unsigned)(key >> FIELD_SHIFT), .wire = key & WIRE_MASK };
    switch (field->wire) {
    case VARINT:
        if (!uprof_bytes_uleb(&at, &field->value))
            return false;
        break;
    case FIXED64:
        if (!uprof_bytes_u64(&at, &field->value))
            return false;
        break;
    case FIXED32:
        if (!uprof_bytes_u32(&at, &fixed))
            return false;
        field->value = fixed;
        break;
    case LENGTH:
        if (!uprof_bytes_uleb(&at, &len) || !uprof_bytes_take(&at, len, &field->bytes))
            return false;
        break;
    default:
        return false;
    }
    *bytes = at;
    return true;
}

/* ---- The tables ---- */

static bool
take_type(const Pprof *pprof, UprofSlice slice, ValueType *type)
{
    UprofBytes bytes = open_message(pprof, slice);
    Field field;

    *type = (ValueType){ 0 };
    while (take_next_field(&bytes, &field)) {
        if (field.number == TYPE_TYPE)
            type->type = field.value;
        else if (field.number == TYPE_UNIT)
            type->unit = field.value;
    }
    return uprof_bytes_left(&bytes) == 0;
}

static bool
take_function(Pprof *pprof, UprofSlice slice)
{
    UprofBytes bytes = open_message(pprof, slice);
    Function function = { 0 };
    uint64_t system_name = 0;
    Field field;

    while (take_next_field(&bytes, &field)) {
        if (field.number == FUNCTION_ID)
            function.id = field.value;
        else if (field.number == FUNCTION_NAME)
            function.name = field.value;
        else if (field.number == FUNCTION_SYSTEM_NAME)
            system_name = field.value;
    }
    if (function.name == 0)
        function.name = system_name;
    g_array_append_val(pprof->functions, function);
    return uprof_bytes_left(&bytes) == 0;
}

static bool
take_line(Pprof *pprof, UprofSlice slice)
{
    UprofBytes bytes = open_message(pprof, slice);
    uint64_t function = 0;
    Field field;

    while (take_next_field(&bytes, &field))
        if (field.number == LINE_FUNCTION)
            function = field.value;
    g_array_append_val(pprof->lines, function);
    return uprof_bytes_left(&bytes) == 0;
}

static bool
take_location(Pprof *pprof, UprofSlice slice)
{
    UprofBytes bytes = open_message(pprof, slice);
    Location location = { .first_line = pprof->lines->len };
    Field field;
    bool ok = true;

    while (ok && take_next_field(&bytes, &field)) {
        if (field.number == LOCATION_ID)
            location.id = field.value;
        else if (field.number == LOCATION_ADDRESS)
            location.address = field.value;
        else if (field.number == LOCATION_LINE && field.wire == LENGTH)
            ok = take_line(pprof, field.bytes);
    }
    location.n_lines = pprof->lines->len - location.first_line;
    g_array_append_val(pprof->locations, location);
    return ok && uprof_bytes_left(&bytes) == 0 && location.n_lines <= UPROF_FOLDED_FRAMES_MAX;
}

static bool
take_number(Pprof *pprof, const Field *field)
{
    switch (field->number) {
    case PROFILE_TIME:
        pprof->facts.time_ns = field->value;
        break;
    case PROFILE_DURATION:
        pprof->facts.duration_ns = field->value;
        break;
    case PROFILE_PERIOD:
        pprof->facts.period_ns = field->value;
        break;
    default:
        break;
    }
    return true;
}

static bool
take_field(Pprof *pprof, const Field *field)
{
    ValueType type;

    if (field->wire != LENGTH)
        return take_number(pprof, field);
    switch (field->number) {
    case PROFILE_SAMPLE_TYPE:
        if (!take_type(pprof, field->bytes, &type) || pprof->types->len >= VALUES_MAX)
            return false;
        g_array_append_val(pprof->types, type);
        return true;
    case PROFILE_PERIOD_TYPE:
        return take_type(pprof, field->bytes, &pprof->period_type);
    case PROFILE_SAMPLE:
        g_array_append_val(pprof->samples, field->bytes);
        return true;
    case PROFILE_LOCATION:
        return take_location(pprof, field->bytes);
    case PROFILE_FUNCTION:
        return take_function(pprof, field->bytes);
    case PROFILE_STRING:
        g_array_append_val(pprof->strings, field->bytes);
        return true;
    default:
        return true;
    }
}

/* Returns: (nullable): the row of @table that has @id */
static const void *
find_row(const GArray *table, uint64_t id)
{
    return table->len == 0 ? NULL
                           : bsearch(&id, table->data, table->len,
                                     g_array_get_element_size((GArray *)table), uprof_compare_u64);
}

static UprofSlice
find_string(const Pprof *pprof, uint64_t index)
{
    const UprofSlice none = { NULL, 0 };

    return index < pprof->strings->len ? g_array_index(pprof->strings, UprofSlice, index) : none;
}

/* Chooses the value of a sample that counts, and its divisor. */
static void
choose_value(Pprof *pprof)
{
    const GArray *types = pprof->types;
    int counts = -1, samples = -1;

    for (guint i = types->len; i-- > 0;) {
        const ValueType *type = &g_array_index(types, ValueType, i);
        if (!uprof_slice_is(find_string(pprof, type->unit), "count"))
            continue;
        counts = (int)i;
        if (uprof_slice_is(find_string(pprof, type->type), "samples"))
            samples = (int)i;
    }
    pprof->divisor = 1;
    pprof->value_index = samples >= 0  ? (unsigned)samples
                         : counts >= 0 ? (unsigned)counts
                                       : MAX(types->len, 1) - 1;
    if (counts >= 0 || types->len == 0)
        return;
    const ValueType *type = &g_array_index(types, ValueType, types->len - 1);
    const UprofSlice unit = find_string(pprof, type->unit);
    if (uprof_slice_is(unit, "nanoseconds") && type->unit == pprof->period_type.unit)
        pprof->divisor = MAX(pprof->facts.period_ns, 1);
}

static bool
read_tables(Pprof *pprof, GError **error)
{
    Field field;

    while (take_next_field(&pprof->bytes, &field))
        if (!take_field(pprof, &field))
            return uprof_bytes_fail(&pprof->bytes, error, "field %u is damaged", field.number);
    if (uprof_bytes_left(&pprof->bytes) > 0)
        return uprof_bytes_fail(&pprof->bytes, error, "not a field of a pprof profile");
    if (pprof->strings->len == 0 || g_array_index(pprof->strings, UprofSlice, 0).len > 0)
        return uprof_bytes_fail(&pprof->bytes, error, "no string table of a pprof profile");
    g_array_sort(pprof->functions, uprof_compare_u64);
    g_array_sort(pprof->locations, uprof_compare_u64);
    choose_value(pprof);
    return true;
}

/* ---- Samples ---- */

typedef struct {
    UprofSlice *frames; /* innermost first */
    unsigned n;
    bool is_cut;
    UprofSlice labels[LABELS_MAX];
    uint64_t values[VALUES_MAX];
    unsigned n_values;
} Sample;

/* In a stack that is too deep, each frame replaces the frame before, so that the root stays. */
static void
push_frame(Sample *sample, UprofSlice frame)
{
    if (sample->n == UPROF_FOLDED_FRAMES_MAX - LABELS_MAX) {
        sample->is_cut = true;
        sample->n--;
    }
    sample->frames[sample->n++] = frame;
}

static bool
push_location(Pprof *pprof, Sample *sample, uint64_t id)
{
    const Location *location = find_row(pprof->locations, id);
    char text[HEX_LEN];

    if (!location)
        return false;
    pprof->n_pushed += location->n_lines + 1;
    pprof->has_too_many = pprof->n_pushed / FRAMES_PER_BYTE_MAX > pprof->bytes.all.len;
    if (pprof->has_too_many)
        return false;
    for (guint i = 0; i < location->n_lines; i++) {
        const uint64_t function_id =
            g_array_index(pprof->lines, uint64_t, location->first_line + i);
        const Function *function = find_row(pprof->functions, function_id);
        if (!function || function->name >= pprof->strings->len)
            return false;
        push_frame(sample, find_string(pprof, function->name));
    }
    if (location->n_lines > 0)
        return true;
    g_snprintf(text, sizeof(text), "0x%" G_GINT64_MODIFIER "x", location->address);
    const char *kept = g_string_chunk_insert_const(pprof->addresses, text);
    push_frame(sample, (UprofSlice){ kept, strlen(kept) });
    return true;
}

static bool
take_label(const Pprof *pprof, Sample *sample, UprofSlice slice)
{
    static const char *const keys[LABELS_MAX] = { "domain", "vcpu" };
    UprofBytes bytes = open_message(pprof, slice);
    uint64_t key = 0, text = 0;
    Field field;

    while (take_next_field(&bytes, &field)) {
        if (field.number == LABEL_KEY)
            key = field.value;
        else if (field.number == LABEL_STR)
            text = field.value;
    }
    for (unsigned i = 0; i < LABELS_MAX; i++)
        if (text > 0 && uprof_slice_is(find_string(pprof, key), keys[i]))
            sample->labels[i] = find_string(pprof, text);
    return uprof_bytes_left(&bytes) == 0;
}

static bool
take_sample_number(Pprof *pprof, Sample *sample, unsigned number, uint64_t value)
{
    if (number == SAMPLE_LOCATION)
        return push_location(pprof, sample, value);
    if (number == SAMPLE_VALUE && sample->n_values < VALUES_MAX)
        sample->values[sample->n_values++] = value;
    return true;
}

/* Repeated numbers are fields of their own, or packed into one field. */
static bool
take_sample_field(Pprof *pprof, Sample *sample, const Field *field)
{
    UprofBytes packed = open_message(pprof, field->bytes);
    uint64_t value;

    if (field->wire != LENGTH)
        return take_sample_number(pprof, sample, field->number, field->value);
    if (field->number == SAMPLE_LABEL)
        return take_label(pprof, sample, field->bytes);
    if (field->number != SAMPLE_LOCATION && field->number != SAMPLE_VALUE)
        return true;
    while (uprof_bytes_uleb(&packed, &value))
        if (!take_sample_number(pprof, sample, field->number, value))
            return false;
    return uprof_bytes_left(&packed) == 0;
}

static bool
read_sample(Pprof *pprof, UprofSlice slice, Sample *sample)
{
    UprofBytes bytes = open_message(pprof, slice);
    Field field;

    sample->n = sample->n_values = 0;
    sample->is_cut = false;
    memset(sample->labels, 0, sizeof(sample->labels));
    while (take_next_field(&bytes, &field))
        if (!take_sample_field(pprof, sample, &field))
            return false;
    return uprof_bytes_left(&bytes) == 0 && sample->n_values == MAX(pprof->types->len, 1);
}

/* Returns: 0 for the negative values of a profile of differences */
static uint64_t
get_weight(const Pprof *pprof, const Sample *sample)
{
    const uint64_t value = sample->values[pprof->value_index];

    return value > G_MAXINT64 ? 0 : (value + pprof->divisor / 2) / pprof->divisor;
}

static void
visit_sample(const Pprof *pprof, const Sample *sample, UprofSlice *frames, UprofFoldedVisit visit,
             void *data)
{
    unsigned n = 0;

    for (unsigned i = 0; i < LABELS_MAX; i++)
        if (sample->labels[i].len > 0)
            frames[n++] = sample->labels[i];
    for (unsigned i = sample->n; i-- > 0;)
        frames[n++] = sample->frames[i];
    if (n > 0 && get_weight(pprof, sample) > 0)
        visit(frames, n, sample->is_cut, get_weight(pprof, sample), data);
}

static bool
fail_sample(const Pprof *pprof, guint i, GError **error)
{
    if (pprof->has_too_many)
        return uprof_bytes_fail(&pprof->bytes, error,
                                "the stacks have more than %d frames for each byte of the file",
                                FRAMES_PER_BYTE_MAX);
    return uprof_bytes_fail(&pprof->bytes, error, "sample %u is damaged", i);
}

/* Reads all samples twice, so that no stack is visited if any sample is damaged. */
static bool
read_samples(Pprof *pprof, UprofFoldedVisit visit, void *data, GError **error)
{
    g_autofree UprofSlice *read = g_new(UprofSlice, UPROF_FOLDED_FRAMES_MAX);
    g_autofree UprofSlice *visited = g_new(UprofSlice, UPROF_FOLDED_FRAMES_MAX);
    g_autofree Sample *sample = g_new0(Sample, 1);
    uint64_t sum = 0;

    sample->frames = read;
    for (guint i = 0; i < pprof->samples->len; i++)
        if (!read_sample(pprof, g_array_index(pprof->samples, UprofSlice, i), sample) ||
            __builtin_add_overflow(sum, get_weight(pprof, sample), &sum))
            return fail_sample(pprof, i, error);
    if (sum > UPROF_FOLDED_WEIGHT_MAX)
        return uprof_bytes_fail(&pprof->bytes, error, "the numbers of samples are too large");
    pprof->n_pushed = 0;
    for (guint i = 0; i < pprof->samples->len; i++) {
        if (!read_sample(pprof, g_array_index(pprof->samples, UprofSlice, i), sample))
            return fail_sample(pprof, i, error);
        visit_sample(pprof, sample, visited, visit, data);
    }
    return true;
}

bool
uprof_pprof_is(UprofSlice bytes)
{
    /* keys of fields 1 to 14: writers begin with one of them, a folded stack with another byte */
    static const char keys[] = "\x0a\x12\x1a\x22\x2a\x32\x38\x40\x48\x50\x5a\x60\x6a\x70";
    const unsigned char *at = bytes.data;

    UprofBytes fields = { .name = "", .all = bytes };
    Field field;

    if (bytes.len == 0 || !memchr(keys, at[0], strlen(keys)))
        return false;
    for (unsigned i = 0; i < CHECKED_FIELDS && uprof_bytes_left(&fields) > 0; i++) {
        if (!take_next_field(&fields, &field) || field.number > PROFILE_FIELDS)
            return false;
        if (field.wire == LENGTH)
            break; /* text does not look like this by chance; the next field may be cut */
    }
    for (size_t i = 0; i < MIN(bytes.len, CHECKED_BYTES); i++)
        if (at[i] < '\t')
            return true;
    return false;
}

bool
uprof_pprof_parse(const char *name, UprofSlice bytes, UprofPprofFacts *facts,
                  UprofFoldedVisit visit, void *data, GError **error)
{
    Pprof pprof = {
        .bytes = { .name = name, .all = bytes },
        .strings = g_array_new(FALSE, FALSE, sizeof(UprofSlice)),
        .types = g_array_new(FALSE, FALSE, sizeof(ValueType)),
        .functions = g_array_new(FALSE, FALSE, sizeof(Function)),
        .locations = g_array_new(FALSE, FALSE, sizeof(Location)),
        .lines = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .samples = g_array_new(FALSE, FALSE, sizeof(UprofSlice)),
        .addresses = g_string_chunk_new(4096),
    };

    bool ok = bytes.len <= (size_t)BYTES_MAX_MIB << 20 ||
              uprof_bytes_fail(&pprof.bytes, error, "more than %d MiB are too many", BYTES_MAX_MIB);
    ok = ok && read_tables(&pprof, error);
    ok = ok && read_samples(&pprof, visit, data, error);
    if (ok)
        *facts = pprof.facts;
    g_array_unref(pprof.strings);
    g_array_unref(pprof.types);
    g_array_unref(pprof.functions);
    g_array_unref(pprof.locations);
    g_array_unref(pprof.lines);
    g_array_unref(pprof.samples);
    g_string_chunk_free(pprof.addresses);
    return ok;
}
