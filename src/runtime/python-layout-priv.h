/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * python-layout-priv.h - where CPython 3.11 to 3.15 keeps its threads, frames and functions
 *
 * From 3.13 on, the first member of _PyRuntime describes the layout (struct _Py_DebugOffsets:
 * CPython, Include/internal/pycore_runtime.h and pycore_debug_offsets.h). 3.11 and 3.12 have one
 * layout each (Include/internal/pycore_frame.h, pycore_interp.h, cpython/pystate.h and
 * cpython/code.h).
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_PYTHON_OFFSETS_BYTES = 888, /* of the longest struct _Py_DebugOffsets */
    UPROF_PYTHON_FRAME_BYTES_MAX = 128,
    UPROF_PYTHON_CODE_BYTES_MAX = 512,
};

/** UprofPythonLayout: offsets in bytes */
typedef struct {
    uint16_t version; /* 0x030b is 3.11 */

    /* _PyRuntime, struct PyInterpreterState and struct PyThreadState */
    uint32_t first_interpreter, next_interpreter, first_thread;
    uint32_t next_thread, thread_id;
    /* PyThreadState: pointer to the frame that runs; up to 3.12, pointer to a _PyCFrame */
    uint32_t thread_frame;
    /* _PyCFrame: pointers to the frame that runs, and to the _PyCFrame of an outer call of the
     * interpreter; only if @has_c_frames */
    bool has_c_frames;
    uint32_t c_frame_frame, c_frame_previous;

    /* _PyInterpreterFrame, of which @frame_bytes are needed */
    uint32_t frame_bytes, frame_code, frame_previous, frame_instruction, frame_owner;
    /* 3.11: the frame with which a call of the interpreter began; 0 if the layout has no such mark
     */
    uint32_t frame_is_entry;

    /* PyCodeObject, of which @code_bytes are needed */
    uint32_t code_bytes, code_first_line, code_file, code_name, code_lines, code_start;

    /* str: length in code points; state; the characters, if all are ASCII or if not */
    uint32_t text_length, text_state, text_ascii, text_compact;
    /* the first bit of the kind in the state; "compact" and "ascii" are the third and fourth bit
     * behind it */
    uint8_t kind_bit;
    /* bytes */
    uint32_t bytes_length, bytes_data;
} UprofPythonLayout;

/** The values of _PyInterpreterFrame.owner that are functions of Python: below this number */
enum { UPROF_PYTHON_OWNERS = 3 };

/**
 * uprof_python_layout_find:
 * @version: PY_VERSION_HEX of the program; 0 if it is not known
 * @offsets: the first bytes of _PyRuntime; any bytes
 * @layout: (out)
 *
 * Returns: false if the version has no known layout, or @offsets contradict themselves
 */
bool uprof_python_layout_find(uint32_t version, UprofSlice offsets, UprofPythonLayout *layout);
