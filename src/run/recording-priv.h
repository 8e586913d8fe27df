/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recording-priv.h - the steps of a recording, for the run loop
 */
#pragma once

#include "uprof/recording.h"

/**
 * uprof_recording_open:
 * @domain: (transfer full): freed even if the call fails
 * @ring: borrowed; the sampler puts snapshots here
 *
 * Opens the outputs before the guest. So the guest is not touched if a file cannot be written.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofRecording *uprof_recording_open(UprofDomain *domain, const UprofRecordingSettings *settings,
                                     UprofGuardian *guardian, UprofRing *ring,
                                     UprofSessionFlags flags, GError **error);

/**
 * uprof_recording_start: starts to sample
 * @shared: the loop for all guests that are held one vCPU at a time
 */
void uprof_recording_start(UprofRecording *recording, UprofLoop *shared);

/**
 * uprof_recording_give_up: ends a recording whose sampler does not end: sets its error code, and
 * sends a notice
 *
 * The sampler's thread may still use the recording, which must therefore not be freed before that
 * thread ends.
 */
void uprof_recording_give_up(UprofRecording *recording);

/** uprof_recording_report_rate: sends a notice if the rate is lower than ever before in this run */
void uprof_recording_report_rate(UprofRecording *recording, const UprofSamplerCounts *counts);

/** uprof_recording_report_hindrance: sends a notice if somebody else keeps the guest stopped */
void uprof_recording_report_hindrance(UprofRecording *recording);

/**
 * uprof_recording_restart: replaces the process of the analysis, which has died
 *
 * Returns: false if the process was replaced before, or cannot be replaced
 */
bool uprof_recording_restart(UprofRecording *recording);

/**
 * uprof_recording_end: completes the run's facts in the worker, and sends a notice if sampling
 * ended early
 * @n_recordings: of the run; they share the CPU time of the process
 */
void uprof_recording_end(UprofRecording *recording, unsigned n_recordings);

/**
 * uprof_recording_check: sends a notice if there are no samples, if the guest was always idle, or
 * if the times of some samples were not kept
 *
 * Returns: false if there are no samples to save
 */
bool uprof_recording_check(UprofRecording *recording);

/** uprof_recording_save: writes the capture and the other files */
void uprof_recording_save(UprofRecording *recording);
