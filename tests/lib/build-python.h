/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-python.h - the memory of a process that runs Python, for tests
 *
 * Two threads run Python. The first one runs fib, which main calls without a call of the
 * interpreter in C. The module calls main by such a call.
 */
#pragma once

#include <stdint.h>

#include "../../src/runtime/python-layout-priv.h"

/* Offsets */
enum {
    PYTHON_RUNTIME = 0,
    PYTHON_VERSION = 0xf00, /* Py_Version */
    PYTHON_INTERPRETER = 0x1000,
    PYTHON_THREAD = 0x4000, /* the state of the first thread */
    PYTHON_OTHER_THREAD = 0x4400,
    PYTHON_FRAMES = 0x4800, /* of the first thread: the innermost comes first */
    PYTHON_FRAME_BYTES = 0x80,
    PYTHON_CODES = 0x5000,
    PYTHON_CODE_BYTES = 0x100,
    PYTHON_TEXTS = 0x5400,
    PYTHON_TEXT_BYTES = 0x80,
    PYTHON_LINES = 0x5c00,
    PYTHON_STACK = 0x6000, /* of the first thread */
    PYTHON_INNER_CALL =
        PYTHON_STACK + 0x100, /* a place in the frame of the interpreter's inner call */
    PYTHON_OUTER_CALL = PYTHON_STACK + 0x200,
    PYTHON_BYTES = 0x7000,
    PYTHON_N_FUNCTIONS = 3,
};

/**
 * build_python: fills @memory, which has %PYTHON_BYTES zeros
 * @version: 0x030b, 0x030c or 0x030d
 * @gva: guest-virtual address of @memory
 * @threads: thread pointers of both threads
 * @layout: (out)
 */
void build_python(uint8_t *memory, uint32_t version, uint64_t gva, const uint64_t *threads,
                  UprofPythonLayout *layout);
