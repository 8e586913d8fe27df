/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fake-xl.h - a toolstack with some domains, in place of libxenlight
 *
 * A test links this file instead of libxenlight. The file answers the calls of the module for
 * domains of xl with the structures of Xen's own headers, and counts what is still to be freed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { FAKE_XL_DOMAINS_MAX = 8 };

/** FakeXlDomain: all strings are borrowed */
typedef struct {
    uint32_t domid;
    uint8_t uuid[16];
    const char *name; /* (nullable): %NULL: the toolstack has none */
    bool paused, shutdown, crashed, dying;
    uint32_t n_online, max_vcpu_id;
    const char *kernel; /* (nullable): of its configuration */
    bool has_no_config; /* the toolstack keeps no configuration of it */
    int config_error;   /* of parsing its configuration; 0: none */
    bool ends;          /* while its configuration is read */
    bool is_replaced;   /* the same, and another domain gets its number */
} FakeXlDomain;

/** FakeXl: the toolstack */
typedef struct {
    int alloc_error;     /* of making a context; 0: none */
    bool refuses_list;   /* as Xen does if it is of another version */
    bool has_no_version; /* the running Xen does not say its version */
    const char *message; /* (nullable): borrowed: what is logged about each error */
    unsigned n_domains;
    FakeXlDomain domains[FAKE_XL_DOMAINS_MAX];
    int n_owned; /* contexts, lists and configurations that were not freed yet */
} FakeXl;

extern FakeXl fake_xl;
