/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top-round-priv.h"

#include "uprof/processes.h"
#include "uprof/row-list.h"

#include "hot-rows-priv.h"
#include "top-picture-priv.h"

#include <string.h>

/* The first part of a round; lists of rows follow (row-list.h). */
typedef struct {
    uint64_t n_samples; /* of this round */
} Round;

/* Returns: (transfer full): of UprofProfileRow: the functions, without the frames of vCPUs */
static GArray *
list_functions(const UprofProfile *profile)
{
    GArray *rows = uprof_profile_rows(profile, NULL);
    uint32_t vcpu;

    for (guint i = rows->len; i-- > 0;)
        if (uprof_profile_level_is_vcpu(g_array_index(rows, UprofProfileRow, i).name, &vcpu))
            g_array_remove_index(rows, i);
    return rows;
}

void
uprof_top_round_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    g_autoptr(UprofProfile) profile = uprof_pipeline_take_profile(analysis->pipeline);
    g_autoptr(GArray) functions = list_functions(profile);
    g_autoptr(GArray) vcpus = uprof_processes_find(profile, UPROF_BY_VCPU);
    const Round round = { uprof_profile_total(profile) };

    uprof_top_picture_note(profile);
    g_byte_array_append(reply, (const guint8 *)&round, sizeof(round));
    uprof_row_list_pack(functions, reply);
    uprof_row_list_pack(vcpus, reply);
    if (!*uprof_linux_links(analysis->pipeline->kernel))
        return;
    g_autoptr(GArray) processes = uprof_processes_find(profile, UPROF_BY_PROCESS);
    uprof_row_list_pack(processes, reply);
    if (!analysis->run->cgroups)
        return;
    g_autoptr(GArray) cgroups = uprof_processes_find(profile, UPROF_BY_CGROUP);
    uprof_row_list_pack(cgroups, reply);
}

uint64_t
uprof_top_round_add(const GByteArray *round, UprofHotRows *rows, unsigned domain)
{
    Round head;

    if (round->len < sizeof(head))
        return 0;
    memcpy(&head, round->data, sizeof(head));
    UprofBytes bytes = {
        .name = "round",
        .all = { round->data + sizeof(head), round->len - sizeof(head) },
    };
    for (UprofRowsBy level = UPROF_BY_FUNCTION; level <= UPROF_BY_CGROUP; level++) {
        g_autoptr(GArray) list = uprof_row_list_unpack(&bytes, uprof_hot_rows_names(rows));
        uprof_hot_rows_add(rows, domain, level, list);
    }
    return head.n_samples;
}
