/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/qmp-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/qmp.h"

static void
parse_status(UprofSlice reply)
{
    UprofQmpStatus status = { .running = false };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qmp_parse_status(reply, &status, &error);

    check_answer(ok, error);
    g_assert(memchr(status.status, '\0', sizeof(status.status)));
    g_assert(g_utf8_validate(status.status, -1, NULL));
}

static void
parse_cpus(UprofSlice reply)
{
    g_autoptr(GArray) cpus = NULL;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qmp_parse_cpus(reply, &cpus, &error);

    check_answer(ok, error);
    g_assert(ok == (cpus != NULL));
    g_assert(!cpus || cpus->len <= UPROF_QMP_CPUS_MAX);
    for (unsigned i = 0; cpus && i < cpus->len; i++) {
        const UprofQmpCpu *cpu = &g_array_index(cpus, UprofQmpCpu, i);

        g_assert(cpu->thread >= 0);
        g_assert(i == 0 || cpu->index > cpu[-1].index);
    }
}

static void
parse_translation(UprofSlice reply)
{
    bool is_mapped = false;
    uint64_t gpa = 0;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qmp_parse_translation(reply, &is_mapped, &gpa, &error);

    check_answer(ok, error);
    g_assert(is_mapped || gpa == 0);
    g_assert(ok || !is_mapped);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice reply = { data, size };

    parse_status(reply);
    parse_cpus(reply);
    parse_translation(reply);
}
