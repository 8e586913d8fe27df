/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/probes.h"

#include "sampling.h"
#include "uprof/clock.h"

enum { TRIES = 16 };

/* clang-format off */
static const struct {
    const char *name;
    gint first, last; /* the holds with @answer; 0: none */
    UprofAnswer answer;
    int n_probes;
    UprofErrorCode code;
    const char *finding; /* (nullable): a pattern */
} cases[] = {
    { "well",        0, 0,     UPROF_OK,     TRIES,     UPROF_ERROR_NONE,      NULL },
    /* A busy host is no reason to end the diagnosis. */
    { "busy-host",   1, 3,     UPROF_STUCK,  TRIES - 3, UPROF_ERROR_NONE,
      "in 3 of 16 tries no vCPU stopped within 50 ms: this host is busy (load *.* on * CPUs), and runs will lose samples; try a longer --max-pause" },
    { "never-stops", 1, TRIES, UPROF_STUCK,  0,         UPROF_ERROR_NONE,      "in 16 of 16 tries no vCPU stopped *" },
    { "migrates",    2, TRIES, UPROF_BUSY,   -1,        UPROF_ERROR_NOT_FOUND, "somebody else stops, migrates *" },
    { "ends",        2, TRIES, UPROF_GONE,   -1,        UPROF_ERROR_NOT_FOUND, "the domain has just ended" },
    { "fails",       1, TRIES, UPROF_FAILED, -1,        UPROF_ERROR_FAILED,    "*" },
};
/* clang-format on */

static void
count_probe(const UprofSnapshot *snapshot, void *data)
{
    ++*(unsigned *)data;
}

static void
test_probes(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Sampling) sampling;
    g_auto(UprofDiagnosis) diagnosis = { 0 };
    UprofHistogram hold = { 0 };
    unsigned n_taken = 0;

    sampling_init(&sampling, 2, UPROF_GRAIN_GUEST);
    if (cases[i].first > 0)
        memory_guest_rule(sampling.guest, MEMORY_HOLD, cases[i].first, cases[i].last,
                          cases[i].answer);
    g_autoptr(UprofSampler) sampler =
        uprof_sampler_new(&sampling.guest->base, &sampling.settings, NULL);
    const UprofProbesSettings probes = {
        .sampler = sampler,
        .n_vcpus = 2,
        .budget_ppm = 1000000,
        .max_pause_ns = 50 * UPROF_NS_PER_MS,
        .hold = &hold,
        .take = count_probe,
        .data = &n_taken,
    };
    uprof_diagnosis_init(&diagnosis, "");
    g_assert_cmpint(uprof_probes_take(&probes, &diagnosis), ==, cases[i].n_probes);
    g_assert_cmpint(diagnosis.code, ==, cases[i].code);
    if (cases[i].n_probes >= 0) {
        g_assert_cmpint((int)hold.count, ==, cases[i].n_probes);
        g_assert_cmpint((int)n_taken, ==, 2 * cases[i].n_probes);
    }
    g_assert_cmpuint(diagnosis.findings->len, ==, cases[i].finding ? 1 : 0);
    if (!cases[i].finding)
        return;
    const UprofFinding *finding = &g_array_index(diagnosis.findings, UprofFinding, 0);
    g_assert_true(g_pattern_match_simple(cases[i].finding, finding->text));
    g_assert_cmpint(finding->level, ==,
                    cases[i].n_probes < 0 ? UPROF_LEVEL_FAIL : UPROF_LEVEL_WARN);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/probes/", cases[i].name, NULL);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_probes);
    }
    return g_test_run();
}
