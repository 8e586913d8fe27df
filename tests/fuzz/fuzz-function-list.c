/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "uprof/function-list.h"

#include <string.h>

static void
check_part(UprofSlice part, const UprofSlice *text)
{
    g_assert(is_part(part, *text));
    g_assert(part.len == 0 ||
             (!memchr(part.data, '\t', part.len) && !memchr(part.data, '\n', part.len)));
}

static void
check_function(const UprofFunctionLine *function, void *data)
{
    g_assert(function->name.len > 0);
    check_part(function->name, data);
    check_part(function->module, data);
    check_part(function->file, data);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    UprofSlice text = { data, size };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_function_list_parse("file", text, check_function, &text, &error);

    check_answer(ok, error);
}
