/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record-domains.h - one profiling run: samples domains, then writes the files of each domain
 */
#pragma once

#include "uprof/recording.h"

/**
 * UprofRunObserver: functions that a run calls, so that the program can show what happens
 *
 * Each function may be %NULL, except @abort_run. The run calls all functions but @leave in the main
 * thread.
 * @recordings is of UprofRecording, in the order in which the domains joined the run.
 */
typedef struct {
    /* Called when the domain of @session is open and its sampling begins. */
    void (*started)(const UprofSession *session, void *data);
    /* Called about every 100 ms while domains are sampled. Returns: false ends the run */
    bool (*looped)(const GPtrArray *recordings, void *data);
    /* Returns: a borrowed descriptor to wait for; -1: none now */
    int (*input_fd)(void *data);
    /* Reads from that descriptor; required if @input_fd is set. Returns: false ends the run */
    bool (*input)(const GPtrArray *recordings, void *data);
    /* Called when a signal ends the run. @is_from_terminal: the terminal has sent it, to all
     * processes in the foreground */
    void (*signaled)(int number, bool is_from_terminal, void *data);
    /* Called at SIGUSR1. */
    void (*asked)(void *data);
    /* Called at an event of a domain, sampled or not. See UprofDomainEvent. */
    void (*on_domain_event)(const char *uuid, const char *what, void *data);
    /* Called before SIGTSTP stops the process. */
    void (*suspending)(void *data);
    /* Called when the process continues. */
    void (*resumed)(void *data);
    /* Called once, when the sampling of all domains is over. Files are written afterwards. */
    void (*sampled)(void *data);
    /* Called before the results of @recording are checked or written. */
    void (*ended)(const UprofRecording *recording, void *data);
    /* Called before files are written, if there are samples. Returns: NONE, or the code of an
     * error of the observer */
    UprofErrorCode (*saving)(const UprofRecording *recording, void *data);
    /* Called after the files of the domain are written. @run: borrowed */
    void (*saved)(const UprofRun *run, void *data);
    /* Called by a signal handler, at the second signal that ends the run. Does not return. */
    void (*abort_run)(void);
    /*
     * Ends the process with the exit status for @tally and @code, the results of the run. Called in
     * another thread, if the run has to end while the main thread waits for a daemon. %NULL: the
     * run waits.
     */
    void (*leave)(const UprofErrorTally *tally, UprofErrorCode code);
    void *data; /* borrowed; passed to all functions that take it */
} UprofRunObserver;

/** UprofRecordSettings: one run; all pointers are borrowed */
typedef struct {
    UprofSessionSettings session;
    const GPtrArray *words; /* of char: domains, for uprof_domid_find() */
    /* (nullable): borrowed: if the first word is no domain, the user meant this command */
    const char *command_meant;
    bool all;         /* samples all running domains, and domains that start later */
    bool wait;        /* waits until the domains of @words run */
    uint64_t wait_ns; /* the longest wait; 0: until a signal ends the run */
    /*
     * Samples a domain again when it starts again, when the duration of its sampling is over, and
     * after another run that waits for it. Only a signal or the observer ends the run.
     */
    bool rejoins;
    /* ends the sampling of a domain after so many samples of vCPUs that run; 0: no limit */
    unsigned samples;
    const GPtrArray *outputs; /* of UprofOutputRequest: files of each domain */
    const int *store;         /* (nullable): see UprofRecordingSettings */
    bool is_dry;              /* writes no files, because the user watches the samples */
    bool waits_for_lock;      /* waits up to a minute if another run samples the domain */
    bool recovers;            /* first resumes guests that dead runs left stopped */
    const UprofRunObserver *observer;
    const UprofAnalysisCall *calls; /* (nullable): what @observer calls in the workers */
    unsigned n_calls;
} UprofRecordSettings;

/**
 * uprof_record_domains:
 * @tally: (inout): adds one code for each domain
 *
 * Forks, so the caller must not have a connection or a second thread. Sends a notice for each
 * error.
 *
 * Returns: NONE, or the code of the run itself. LEFT_HELD is worse than every code in @tally.
 */
UprofErrorCode uprof_record_domains(const UprofRecordSettings *settings, UprofErrorTally *tally);
