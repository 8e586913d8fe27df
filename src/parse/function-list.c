/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "function-list-priv.h"

static bool
split_line(UprofSlice line, UprofFunctionLine *function)
{
    UprofSlice rest, number;
    uint64_t value;

    if (!uprof_slice_split(line, '\t', &function->name, &rest) ||
        !uprof_slice_split(rest, '\t', &function->module, &rest) ||
        !uprof_slice_split(rest, '\t', &function->file, &number) ||
        !uprof_slice_to_uint(number, 10, 0, UINT32_MAX, &value))
        return false;
    function->line = (uint32_t)value;
    return function->name.len > 0;
}

bool
uprof_function_list_parse(const char *name, UprofSlice text, UprofFunctionVisit visit, void *data,
                          GError **error)
{
    UprofScan scan = { .name = name, .rest = text };
    UprofFunctionLine function;
    UprofSlice line;

    if (text.len > (size_t)UPROF_FUNCTION_LIST_BYTES_MAX_MIB << 20)
        return uprof_scan_fail(&scan, error, "more than %d MiB are too many",
                               UPROF_FUNCTION_LIST_BYTES_MAX_MIB);
    while (uprof_scan_line(&scan, &line)) {
        if (!split_line(line, &function))
            return uprof_scan_fail(&scan, error,
                                   "no function: its name, module, file and line with tabs "
                                   "between them");
        visit(&function, data);
    }
    return true;
}
