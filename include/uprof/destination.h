/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * destination.h - an engine that gets stored profiles, as the configuration describes it
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofDestinationType: the interface of the engine */
typedef enum {
    UPROF_DESTINATION_PYROSCOPE, /* Grafana Pyroscope: push.v1.PusherService/Push */
    UPROF_DESTINATION_PARCA,     /* Parca: api/profiles/writeraw */
} UprofDestinationType;

/** UprofLabel: a label of all profiles; both are owned */
typedef struct {
    char *name, *value;
} UprofLabel;

/** uprof_labels_new: Returns: (transfer full): an empty list of UprofLabel, which owns its labels
 */
GPtrArray *uprof_labels_new(void);

/** uprof_labels_add: adds a label; @name, @value: copied */
void uprof_labels_add(GPtrArray *labels, const char *name, const char *value);

/** uprof_labels_has: does the list have a label of this name? */
bool uprof_labels_has(const GPtrArray *labels, const char *name);

/** UprofDestination: all members are owned; strings may be %NULL unless a comment says otherwise */
typedef struct {
    gatomicrefcount references;
    char *name; /* not %NULL: safe to print: as configured, or the URL */
    char *file; /* not %NULL: letters, digits, '_', '.' and '-': for a file of the store */
    UprofDestinationType type;
    char *url;    /* not %NULL: http or https, without a '/' at its end */
    char *tenant; /* for X-Scope-OrgID, or for Parca's tenant */
    /* (element-type utf8): patterns, as in UprofConfig; empty: all domains */
    GPtrArray *domains;
    char *user;                        /* for basic authentication, with @password_file */
    char *token_file, *password_file;  /* absolute paths */
    char *ca_file;                     /* absolute path; %NULL: the host's certificates */
    char *certificate_file, *key_file; /* absolute paths; both or none: of this client */
    uint64_t max_age_ns;               /* older profiles are not sent */
    uint64_t bytes_per_s;              /* of requests; 0: no limit */
    bool per_vcpu;                     /* samples have the vCPU as a label */
    GPtrArray *labels;                 /* of UprofLabel */
    /* (element-type utf8): names of labels that a domain's metadata may set */
    GPtrArray *metadata_labels;
} UprofDestination;

/**
 * uprof_destination_of_url: a destination that the configuration does not name
 * @url: with "pyroscope+" or "parca+" in front of it; without, the engine is Pyroscope
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_USAGE. Its name is made from the
 * URL.
 */
UprofDestination *uprof_destination_of_url(const char *url, GError **error);

/** uprof_destination_ref: Returns: @destination, with one more reference */
UprofDestination *uprof_destination_ref(UprofDestination *destination);

/** uprof_destination_free: drops a reference; @destination: (nullable) */
void uprof_destination_free(UprofDestination *destination);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDestination, uprof_destination_free)

/** uprof_destination_type_name: Returns: "pyroscope" or "parca" */
const char *uprof_destination_type_name(const UprofDestination *destination);

/** uprof_destination_has_domain: does the destination get the domain called @name, any bytes? */
bool uprof_destination_has_domain(const UprofDestination *destination, const char *name);
