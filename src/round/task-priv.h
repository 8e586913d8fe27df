/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-priv.h - the steps of a round that talk to libvirt
 *
 * Each task runs in a helper process (helper-priv.h) and writes texts as its answer. The exit
 * status of the process is a UprofErrorCode.
 */
#pragma once

#include "turn-order-priv.h"

/**
 * uprof_task_recover: resumes guests that dead runs left stopped
 * @data: const UprofNotices; gets a notice for each such guest
 */
int uprof_task_recover(int fd, void *data);

/** UprofHostScan: a connection whose domains are listed; all pointers are borrowed */
typedef struct {
    const UprofSettings *run; /* before metadata is applied */
    const UprofConfig *config;
    const GPtrArray *words; /* of char: domains; empty: those that metadata or @config enables */
    const char *uri;        /* (nullable): %NULL: libvirt's default */
} UprofHostScan;

/** uprof_task_scan: answers with the domains of one connection; @data: UprofHostScan */
int uprof_task_scan(int fd, void *data);

/** UprofHostScanResult: the result of the scans of all connections; all members are owned */
typedef struct {
    GPtrArray *candidates; /* of UprofCandidate: domains to sample */
    GPtrArray *warnings;   /* of char: parts of metadata that are ignored, and that domains of xl
                              cannot be listed */
    GPtrArray *unreadable; /* of char: domains whose metadata cannot be read */
    GPtrArray *missing;    /* of char: domains of @words that do not exist */
    GPtrArray *errors;     /* of char: why a connection failed */
} UprofHostScanResult;

void uprof_host_scan_result_init(UprofHostScanResult *result);
void uprof_host_scan_result_clear(UprofHostScanResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofHostScanResult, uprof_host_scan_result_clear)

/**
 * uprof_task_read_scan: adds the domains of one connection to @result
 * @texts: answer of uprof_task_scan()
 * @uri: (nullable): the connection
 */
void uprof_task_read_scan(const GPtrArray *texts, const char *uri, UprofHostScanResult *result);

/** UprofRoundTask: one domain to sample; all pointers are borrowed */
typedef struct {
    const UprofSessionSettings *session;
    const UprofCandidate *candidate;
    bool is_named;    /* the user named the domain, so it need not be enabled */
    int store;        /* see uprof_store_data() */
    const char *base; /* path of the new slice, without an ending */
} UprofRoundTask;

/** uprof_task_sample: samples one domain, and writes its slice; @data: UprofRoundTask */
int uprof_task_sample(int fd, void *data);

void uprof_task_result_clear(UprofTaskResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTaskResult, uprof_task_result_clear)

/**
 * uprof_task_read_sample:
 * @texts: answer of uprof_task_sample()
 * @result: (out): members that @texts does not have are 0
 */
void uprof_task_read_sample(const GPtrArray *texts, UprofTaskResult *result);
