/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/run.h"

#include "uprof/clock.h"

#define TEXT(member) #member, UPROF_RUN_TEXT, G_STRUCT_OFFSET(UprofRun, member)
#define UINT(member) #member, UPROF_RUN_UINT, G_STRUCT_OFFSET(UprofRun, member)
#define BOOL(member) #member, UPROF_RUN_BOOL, G_STRUCT_OFFSET(UprofRun, member)

/* clang-format off */
const UprofRunField uprof_run_fields[] = {
    /* member                at end */
    { TEXT(program),         false },
    { TEXT(domain),          false },
    { TEXT(uuid),            false },
    { TEXT(driver),          false },
    { TEXT(type),            false },
    { TEXT(arch),            false },
    { TEXT(access),          false },
    { TEXT(why),             false },
    { TEXT(unwind),          false },
    { UINT(vcpus),           false },
    { UINT(started_utc_ns),  false },
    { UINT(rate_mhz),        false },
    { UINT(asked_ns),        false },
    { UINT(max_depth),       false },
    { BOOL(per_vcpu),        false },
    { BOOL(idle),            false },
    { BOOL(no_pause),        false },
    { TEXT(ended_by),        true  },
    { UINT(duration_ns),     true  },
    { UINT(divisor),         true  },
    { UINT(late),            true  },
    { UINT(busy),            true  },
    { UINT(skipped),         true  },
    { UINT(cpu_ns),          true  },
};
/* clang-format on */

const size_t uprof_run_n_fields = G_N_ELEMENTS(uprof_run_fields);

static void
free_image(gpointer data)
{
    UprofRunImage *image = data;

    g_free(image->label);
    g_free(image->path);
    g_free(image->build_id);
    g_free(image->digest);
    g_free(image);
}

UprofRun *
uprof_run_new(void)
{
    UprofRun *run = g_new0(UprofRun, 1);

    run->images = g_ptr_array_new_with_free_func(free_image);
    run->files = g_ptr_array_new_with_free_func(g_free);
    return run;
}

void
uprof_run_free(UprofRun *run)
{
    if (!run)
        return;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];

        if (field->kind == UPROF_RUN_TEXT)
            g_free(G_STRUCT_MEMBER(char *, run, field->offset));
    }
    g_ptr_array_unref(run->images);
    g_ptr_array_unref(run->files);
    g_free(run);
}

UprofRunImage *
uprof_run_add_image(UprofRun *run, const char *label, const char *path, const char *build_id,
                    const char *digest)
{
    UprofRunImage *image = g_new0(UprofRunImage, 1);

    image->label = g_strdup(label);
    image->path = g_strdup(path);
    image->build_id = g_strdup(build_id);
    image->digest = g_strdup(digest);
    g_ptr_array_add(run->images, image);
    return image;
}

uint64_t
uprof_run_got_mhz(const UprofRun *run)
{
    if (run->vcpus == 0 || run->duration_ns == 0)
        return 0;

    const unsigned __int128 samples = run->samples;
    const unsigned __int128 mhz = samples * 1000 * UPROF_NS_PER_S / run->duration_ns / run->vcpus;
    return MIN(mhz, UINT64_MAX);
}

uint64_t
uprof_permille(uint64_t part, uint64_t whole)
{
    /* wide: a capture may claim any weights */
    return whole > 0 ? (uint64_t)(((unsigned __int128)part * 1000 + whole / 2) / whole) : 0;
}
