/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * python-guest.h - a Linux guest whose process runs Python (build-python.h), for tests
 *
 * The interpreter's code is in a library; its variables are the memory of build_python(). The file
 * of the library has the name "libpython3.so".
 */
#pragma once

#include "build-mapped.h"
#include "build-python.h"
#include "linux-guest.h"

#define PYTHON_GVA (LINUX_LIBRARY + MAPPED_RUNTIME) /* of build_python()'s memory */
#define PYTHON_CODE (LINUX_LIBRARY + MAPPED_OPEN)   /* of the interpreter */

/* Thread pointers of both threads; the first one runs. */
#define PYTHON_POINTER UINT64_C(0x7f3000000740)
#define PYTHON_OTHER_POINTER UINT64_C(0x7f3001000740)

typedef struct {
    LinuxGuest *guest;
    LinuxView *view;
    UprofPythonLayout layout;
    uint64_t memory;   /* guest-physical address of build_python()'s memory */
    bool keeps_memory; /* samples may use remembered memory */
} PythonGuest;

/** python_guest_new: @version: as for build_python() */
PythonGuest *python_guest_new(uint32_t version);
void python_guest_free(PythonGuest *python);

/** python_guest_begin: begins a snapshot, with a copy of Python's memory if @has_copy */
void python_guest_begin(PythonGuest *python, bool has_copy);
