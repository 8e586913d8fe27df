/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * metadata-change.h - changes what a domain's metadata says about periodic runs
 *
 * Elements and attributes that others added stay.
 */
#pragma once

#include "uprof/host.h"
#include "uprof/settings.h"

/** UprofMetadataChange: all pointers are borrowed */
typedef struct {
    const char *enabled;           /* "yes" or "no"; %NULL leaves the attribute as it is */
    const UprofSettings *settings; /* its members that are given are written */
    const GPtrArray *symbols;      /* of UprofSymbolFile; empty: the symbols stay */
} UprofMetadataChange;

/** uprof_metadata_change_is_empty: changes nothing but @enabled */
bool uprof_metadata_change_is_empty(const UprofMetadataChange *change);

/**
 * uprof_metadata_change_write: writes the metadata of the running domain and of its definition
 * @config: limits what metadata may ask for
 *
 * The result is checked as a round would, before anything is written.
 */
bool uprof_metadata_change_write(const UprofMetadataChange *change, UprofHost *host,
                                 const UprofDomain *domain, UprofConfig *config, GError **error);
