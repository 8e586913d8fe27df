/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.h - a few samples of a guest, to find out how well it can be sampled
 */
#pragma once

#include "uprof/diagnosis.h"
#include "uprof/histogram.h"
#include "uprof/sampler.h"

/** UprofProbesSettings: how to take the samples; all pointers are borrowed */
typedef struct {
    UprofSampler *sampler;
    unsigned n_vcpus;
    uint64_t budget_ppm;                                     /* of a run: the probes keep to it */
    uint64_t max_pause_ns;                                   /* of @sampler, for messages */
    UprofHistogram *hold;                                    /* the holds are added */
    void (*take)(const UprofSnapshot *snapshot, void *data); /* gets each sample */
    void *data;
} UprofProbesSettings;

/**
 * uprof_probes_take:
 * @diagnosis: gets a finding if a try failed. A host that is so busy that no vCPU stops in time is
 *   a warning: runs on it lose samples, but go on.
 *
 * Returns: the number of tries that gave samples; -1 if the guest cannot be sampled now
 */
int uprof_probes_take(const UprofProbesSettings *settings, UprofDiagnosis *diagnosis);
