/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "../../src/parse/json-text-priv.h"
#include "uprof/json-object.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonParser) parser =
        uprof_json_load("fuzz", (UprofSlice){ data, size }, 1024 * 1024, &error);

    check_answer(parser != NULL, error);
    g_assert(parser || !uprof_json_is_object((UprofSlice){ data, size }));
    if (parser)
        uprof_json_member(json_parser_get_root(parser), "a", G_TYPE_INT64);
}
