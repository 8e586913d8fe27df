/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * python-names-priv.h - names of Python's functions, out of the memory of their process
 *
 * A function's code object (CPython, Include/cpython/code.h) has its qualified name, its file, and
 * a table of lines (Objects/locations.md). These objects do not change. The memory of an object
 * that is gone may be used again, so a remembered name also depends on where the object's texts
 * are.
 */
#pragma once

#include "python-layout-priv.h"
#include "uprof/intern.h"
#include "uprof/space.h"

typedef struct _UprofPythonNames UprofPythonNames;

/** uprof_python_names_new: both are borrowed */
UprofPythonNames *uprof_python_names_new(UprofSpace *space, UprofNames *names);
void uprof_python_names_free(UprofPythonNames *python);

/**
 * uprof_python_names_find:
 * @process: id of the process that ran
 * @code: guest-virtual address of a code object
 * @instruction: guest-virtual address of the instruction that runs, or of the call
 * @with_line: the line is a part of the name
 *
 * Returns: (nullable): the function and its file, such as "Shop.total (shop.py)" or "Shop.total
 *   (shop.py:12)"; %NULL if there is no code object
 */
const UprofName *
uprof_python_names_find(UprofPythonNames *python, const UprofPythonLayout *layout, uint32_t process,
                        uint64_t code, uint64_t instruction, bool with_line);

/**
 * uprof_python_line_find:
 * @table: the table of lines; any bytes
 * @first: line where the function begins
 * @offset: of an instruction, in bytes from the first one
 *
 * Returns: the line; 0 if it is not known
 */
unsigned uprof_python_line_find(UprofSlice table, unsigned first, uint64_t offset);
