/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * metadata-view.h - how periodic runs sample a domain, and which source says so
 */
#pragma once

#include "uprof/host.h"
#include "uprof/settings.h"

/** UprofMetadataView: a domain whose metadata is read; all pointers are borrowed */
typedef struct {
    UprofHost *host;
    const UprofDomain *domain;
    UprofConfig *config; /* its limits and defaults apply */
} UprofMetadataView;

/**
 * uprof_metadata_view_append: appends the settings and their sources, a line for each
 *
 * If the running domain has other metadata than its definition, both are described.
 *
 * Returns: false with the error of libvirt; nothing is appended then
 */
bool uprof_metadata_view_append(GString *out, const UprofMetadataView *view, GError **error);

/**
 * uprof_metadata_view_settings:
 * @settings: (out): those that the next round uses; the caller must clear them, also after an error
 *
 * Returns: false with an error if the metadata cannot be read, or is malformed
 */
bool uprof_metadata_view_settings(const UprofMetadataView *view, UprofSettings *settings,
                                  GError **error);
