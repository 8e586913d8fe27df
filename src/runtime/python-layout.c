/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-layout-priv.h"

#include <string.h>

enum {
    OBJECT_BYTES = 16,             /* of PyObject with the GIL */
    STRUCT_BYTES_MAX = 512 * 1024, /* of the interpreter's state */
    THREAD_BYTES_MAX = 32 * 1024,  /* of a thread's state */
    VERSION_SHIFT = 16,            /* of PY_VERSION_HEX, to the minor version */
    /* PyASCIIObject.state: the kind comes behind "interned", which is a byte in 3.14 without the
       GIL */
    KIND_BIT = 2,
    KIND_BIT_FREE_3_14 = 8,
};

static const UprofPythonLayout layouts[] = {
    {
        .version = 0x030b,
        .first_interpreter = 40,
        .next_interpreter = 0,
        .first_thread = 16,
        .next_thread = 8,
        .thread_id = 152,
        .thread_frame = 56,
        .has_c_frames = true,
        .c_frame_frame = 8,
        .c_frame_previous = 16,
        .frame_bytes = 72,
        .frame_code = 32,
        .frame_previous = 48,
        .frame_instruction = 56,
        .frame_owner = 69,
        .frame_is_entry = 68,
        .code_bytes = 144,
        .code_first_line = 72,
        .code_file = 112,
        .code_name = 128,
        .code_lines = 136,
        .code_start = 184,
        .text_length = OBJECT_BYTES,
        .text_state = 32,
        .text_ascii = 48,
        .text_compact = 72,
        .kind_bit = KIND_BIT,
        .bytes_length = OBJECT_BYTES,
        .bytes_data = 32,
    },
    {
        .version = 0x030c,
        .first_interpreter = 40,
        .next_interpreter = 0,
        .first_thread = 72,
        .next_thread = 8,
        .thread_id = 136,
        .thread_frame = 56,
        .has_c_frames = true,
        .c_frame_frame = 0,
        .c_frame_previous = 8,
        .frame_bytes = 72,
        .frame_code = 0,
        .frame_previous = 8,
        .frame_instruction = 56,
        .frame_owner = 70,
        .code_bytes = 144,
        .code_first_line = 68,
        .code_file = 112,
        .code_name = 128,
        .code_lines = 136,
        .code_start = 192,
        .text_length = OBJECT_BYTES,
        .text_state = 32,
        .text_ascii = 40,
        .text_compact = 56,
        .kind_bit = KIND_BIT,
        .bytes_length = OBJECT_BYTES,
        .bytes_data = 32,
    },
};

/* Offsets of members in struct _Py_DebugOffsets, all of them words */
typedef struct {
    uint16_t version;
    uint16_t bytes; /* of the struct; the list of interpreters follows it */
    uint16_t interpreter_bytes, next_interpreter, first_thread;
    uint16_t thread_bytes, next_thread, thread_frame, thread_id;
    uint16_t frame_bytes, frame_previous, frame_code, frame_instruction, frame_owner;
    uint16_t code_bytes, code_file, code_qualified_name, code_lines, code_first_line, code_start;
    uint16_t bytes_length, bytes_data;
    uint16_t text_state, text_length, text_ascii_bytes;
} Offsets;

static const Offsets all_offsets[] = {
    { 0x030d, 584, 48,  64,  72,  152, 168, 184, 192, 224, 232, 240, 248,
      264,    272, 280, 296, 304, 312, 344, 520, 528, 544, 552, 560 },
    { 0x030e, 760, 48,  64,  72,  176, 192, 208, 216, 248, 256, 264, 272,
      288,    312, 320, 336, 344, 352, 384, 600, 608, 624, 632, 640 },
    { 0x030f, 888, 48,  64,  72,  176, 192, 208, 240, 312, 320, 328, 336,
      352,    376, 384, 400, 408, 416, 448, 696, 704, 720, 728, 736 },
};

enum { COOKIE_AT = 0, VERSION_AT = 8, IS_FREE_AT = 16, INTERPRETERS_AT = 40 };
static const char cookie[] = "xdebugpy";

static uint64_t
get_word(UprofSlice offsets, size_t at)
{
    return uprof_read_le64((const uint8_t *)offsets.data + at);
}

static const Offsets *
find_offsets(UprofSlice offsets)
{
    if (offsets.len < INTERPRETERS_AT + sizeof(uint64_t) ||
        memcmp(offsets.data, cookie, strlen(cookie)) != 0)
        return NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(all_offsets); i++)
        if (all_offsets[i].version == get_word(offsets, VERSION_AT) >> VERSION_SHIFT &&
            offsets.len >= all_offsets[i].bytes)
            return &all_offsets[i];
    return NULL;
}

/* Reads an offset in a struct of @bytes, of a member of @len. Returns: false if it lies outside */
static bool
read_offset(UprofSlice offsets, size_t at, uint64_t bytes, uint64_t len, uint32_t *offset)
{
    const uint64_t word = get_word(offsets, at);

    if (bytes > STRUCT_BYTES_MAX || word > bytes || len > bytes - word)
        return false;
    *offset = (uint32_t)word;
    return true;
}

static bool
read_threads(UprofSlice offsets, const Offsets *at, UprofPythonLayout *layout)
{
    const uint64_t interpreter = get_word(offsets, at->interpreter_bytes);
    const uint64_t thread = MIN(get_word(offsets, at->thread_bytes), (uint64_t)THREAD_BYTES_MAX);

    return read_offset(offsets, INTERPRETERS_AT, STRUCT_BYTES_MAX, 8, &layout->first_interpreter) &&
           read_offset(offsets, at->next_interpreter, interpreter, 8, &layout->next_interpreter) &&
           read_offset(offsets, at->first_thread, interpreter, 8, &layout->first_thread) &&
           read_offset(offsets, at->next_thread, thread, 8, &layout->next_thread) &&
           read_offset(offsets, at->thread_frame, thread, 8, &layout->thread_frame) &&
           read_offset(offsets, at->thread_id, thread, 8, &layout->thread_id);
}

static bool
read_frames(UprofSlice offsets, const Offsets *at, UprofPythonLayout *layout)
{
    const uint64_t bytes = get_word(offsets, at->frame_bytes);

    layout->frame_bytes = (uint32_t)MIN(bytes, (uint64_t)UPROF_PYTHON_FRAME_BYTES_MAX);
    return read_offset(offsets, at->frame_code, layout->frame_bytes, 8, &layout->frame_code) &&
           read_offset(offsets, at->frame_previous, layout->frame_bytes, 8,
                       &layout->frame_previous) &&
           read_offset(offsets, at->frame_instruction, layout->frame_bytes, 8,
                       &layout->frame_instruction) &&
           read_offset(offsets, at->frame_owner, layout->frame_bytes, 1, &layout->frame_owner);
}

static bool
read_code(UprofSlice offsets, const Offsets *at, UprofPythonLayout *layout)
{
    const uint64_t bytes = get_word(offsets, at->code_bytes);

    layout->code_bytes = (uint32_t)MIN(bytes, (uint64_t)UPROF_PYTHON_CODE_BYTES_MAX);
    return read_offset(offsets, at->code_file, layout->code_bytes, 8, &layout->code_file) &&
           read_offset(offsets, at->code_qualified_name, layout->code_bytes, 8,
                       &layout->code_name) &&
           read_offset(offsets, at->code_lines, layout->code_bytes, 8, &layout->code_lines) &&
           read_offset(offsets, at->code_first_line, layout->code_bytes, 4,
                       &layout->code_first_line) &&
           read_offset(offsets, at->code_start, STRUCT_BYTES_MAX, 1, &layout->code_start);
}

static bool
read_objects(UprofSlice offsets, const Offsets *at, UprofPythonLayout *layout)
{
    enum { OBJECT_BYTES_MAX = 256 };

    /* Text that is not ASCII has two words more in front of it (PyCompactUnicodeObject). */
    if (!read_offset(offsets, at->text_length, OBJECT_BYTES_MAX, 8, &layout->text_length) ||
        !read_offset(offsets, at->text_state, OBJECT_BYTES_MAX, 4, &layout->text_state) ||
        !read_offset(offsets, at->text_ascii_bytes, OBJECT_BYTES_MAX, 0, &layout->text_ascii) ||
        !read_offset(offsets, at->bytes_length, OBJECT_BYTES_MAX, 8, &layout->bytes_length) ||
        !read_offset(offsets, at->bytes_data, OBJECT_BYTES_MAX, 0, &layout->bytes_data))
        return false;
    layout->text_compact = layout->text_ascii + 2 * sizeof(uint64_t);
    layout->kind_bit =
        get_word(offsets, IS_FREE_AT) != 0 && at->version >= 0x030e ? KIND_BIT_FREE_3_14 : KIND_BIT;
    return true;
}

bool
uprof_python_layout_find(uint32_t version, UprofSlice offsets, UprofPythonLayout *layout)
{
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++)
        if (layouts[i].version == version >> VERSION_SHIFT) {
            *layout = layouts[i];
            return true;
        }
    const Offsets *at = find_offsets(offsets);
    UprofPythonLayout found = { .version = at ? at->version : 0 };
    if (!at || !read_threads(offsets, at, &found) || !read_frames(offsets, at, &found) ||
        !read_code(offsets, at, &found) || !read_objects(offsets, at, &found))
        return false;
    *layout = found;
    return true;
}
