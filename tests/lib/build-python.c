/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "build-python.h"

#include <string.h>

/* The words of struct _Py_DebugOffsets of CPython 3.13.0 on x86_64 that virt-uprof reads */
static const struct {
    uint16_t at;
    uint64_t word;
} offsets_3_13[] = {
    { 0, 0x7970677562656478 },
    { 8, 0x30d00f0 },
    { 40, 0x278 },
    { 48, 0x2f998 },
    { 64, 0x1c60 },
    { 72, 0x1cb0 },
    { 152, 0x130 },
    { 168, 0x8 },
    { 184, 0x48 },
    { 192, 0x98 },
    { 224, 0x50 },
    { 232, 0x8 },
    { 240, 0 },
    { 248, 0x38 },
    { 264, 0x46 },
    { 272, 0xd0 },
    { 280, 0x70 },
    { 288, 0x78 },
    { 296, 0x80 },
    { 304, 0x88 },
    { 312, 0x44 },
    { 344, 0xc8 },
    { 520, 0x10 },
    { 528, 0x20 },
    { 536, 0x40 },
    { 544, 0x20 },
    { 552, 0x10 },
    { 560, 0x28 },
};

typedef struct {
    uint8_t *memory;
    uint64_t gva;
    const UprofPythonLayout *layout;
} Build;

static void
put_word(uint8_t *memory, uint64_t at, uint64_t word)
{
    word = GUINT64_TO_LE(word);
    memcpy(memory + at, &word, sizeof(word));
}

static void
put_text(const Build *build, unsigned number, const char *text)
{
    enum { COMPACT_ASCII_OF_1 = 1 | 8 | 16 };
    const uint64_t at = PYTHON_TEXTS + number * PYTHON_TEXT_BYTES;

    put_word(build->memory, at + build->layout->text_length, strlen(text));
    put_word(build->memory, at + build->layout->text_state,
             (uint64_t)COMPACT_ASCII_OF_1 << build->layout->kind_bit);
    memcpy(build->memory + at + build->layout->text_ascii, text, strlen(text));
}

static void
put_code(const Build *build, unsigned number, const char *name)
{
    static const uint8_t lines[] = { 0xd2, 0x01, 0x02, 0xda, 0x01, 0x02 };
    const UprofPythonLayout *layout = build->layout;
    const uint64_t at = PYTHON_CODES + number * PYTHON_CODE_BYTES;
    const uint32_t first = GUINT32_TO_LE(10 * (number + 1));

    put_text(build, number, name);
    put_word(build->memory, at + layout->code_name,
             build->gva + PYTHON_TEXTS + number * PYTHON_TEXT_BYTES);
    put_word(build->memory, at + layout->code_file,
             build->gva + PYTHON_TEXTS + PYTHON_N_FUNCTIONS * PYTHON_TEXT_BYTES);
    put_word(build->memory, at + layout->code_lines, build->gva + PYTHON_LINES);
    memcpy(build->memory + at + layout->code_first_line, &first, sizeof(first));
    put_word(build->memory, PYTHON_LINES + layout->bytes_length, sizeof(lines));
    memcpy(build->memory + PYTHON_LINES + layout->bytes_data, lines, sizeof(lines));
}

/* @function: number of the code; @previous: offset of the caller's frame, or 0 */
static void
put_frame(const Build *build, unsigned function, uint64_t previous, bool is_entry)
{
    const UprofPythonLayout *layout = build->layout;
    const uint64_t at = PYTHON_FRAMES + function * PYTHON_FRAME_BYTES;
    const uint64_t code = build->gva + PYTHON_CODES + function * PYTHON_CODE_BYTES;

    put_word(build->memory, at + layout->frame_code, code);
    put_word(build->memory, at + layout->frame_previous, previous ? build->gva + previous : 0);
    put_word(build->memory, at + layout->frame_instruction, code + layout->code_start);
    if (layout->frame_is_entry != 0)
        build->memory[at + layout->frame_is_entry] = is_entry;
}

/* A call of the interpreter, up to 3.11: a _PyCFrame */
static void
put_c_frame(const Build *build, uint64_t at, uint64_t frame, uint64_t previous)
{
    put_word(build->memory, at + build->layout->c_frame_frame, build->gva + frame);
    put_word(build->memory, at + build->layout->c_frame_previous, build->gva + previous);
}

/* The same since 3.12: a frame that is no function */
static void
put_shim(const Build *build, uint64_t at, uint64_t previous)
{
    build->memory[at + build->layout->frame_owner] = UPROF_PYTHON_OWNERS;
    put_word(build->memory, at + build->layout->frame_previous,
             previous ? build->gva + previous : 0);
}

static void
put_frames(const Build *build)
{
    enum {
        FIB = PYTHON_FRAMES,
        MAIN = FIB + PYTHON_FRAME_BYTES,
        MODULE = MAIN + PYTHON_FRAME_BYTES
    };
    const UprofPythonLayout *layout = build->layout;

    put_frame(build, 0, MAIN, false);
    if (layout->frame_is_entry != 0) {
        put_frame(build, 1, MODULE, true);
        put_frame(build, 2, 0, true);
        put_c_frame(build, PYTHON_INNER_CALL, FIB, PYTHON_OUTER_CALL);
        put_c_frame(build, PYTHON_OUTER_CALL, MODULE, PYTHON_THREAD + 0x200);
        put_word(build->memory, PYTHON_THREAD + layout->thread_frame,
                 build->gva + PYTHON_INNER_CALL);
        return;
    }
    put_frame(build, 1, PYTHON_INNER_CALL, false);
    put_shim(build, PYTHON_INNER_CALL, MODULE);
    put_frame(build, 2, PYTHON_OUTER_CALL, false);
    put_shim(build, PYTHON_OUTER_CALL, 0);
    if (layout->has_c_frames) {
        put_c_frame(build, PYTHON_STACK + 0x80, FIB, PYTHON_THREAD + 0x200);
        put_word(build->memory, PYTHON_THREAD + layout->thread_frame,
                 build->gva + PYTHON_STACK + 0x80);
    } else {
        put_word(build->memory, PYTHON_THREAD + layout->thread_frame, build->gva + FIB);
    }
}

void
build_python(uint8_t *memory, uint32_t version, uint64_t gva, const uint64_t *threads,
             UprofPythonLayout *layout)
{
    static const char *const names[PYTHON_N_FUNCTIONS] = { "fib", "main", "<module>" };
    const Build build = { memory, gva, layout };

    put_word(memory, PYTHON_VERSION, (uint64_t)version << 16);
    for (size_t i = 0; version == 0x030d && i < G_N_ELEMENTS(offsets_3_13); i++)
        put_word(memory, offsets_3_13[i].at, offsets_3_13[i].word);
    const bool is_known = uprof_python_layout_find(
        version << 16, (UprofSlice){ memory, UPROF_PYTHON_OFFSETS_BYTES }, layout);
    g_assert_true(is_known);
    put_word(memory, PYTHON_RUNTIME + layout->first_interpreter, gva + PYTHON_INTERPRETER);
    put_word(memory, PYTHON_INTERPRETER + layout->first_thread, gva + PYTHON_OTHER_THREAD);
    put_word(memory, PYTHON_OTHER_THREAD + layout->next_thread, gva + PYTHON_THREAD);
    put_word(memory, PYTHON_THREAD + layout->thread_id, threads[0]);
    put_word(memory, PYTHON_OTHER_THREAD + layout->thread_id, threads[1]);
    put_text(&build, PYTHON_N_FUNCTIONS, "/srv/app.py");
    for (unsigned i = 0; i < PYTHON_N_FUNCTIONS; i++)
        put_code(&build, i, names[i]);
    put_frames(&build);
}
