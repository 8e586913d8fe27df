/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config-xml.h - the configuration file, as it stands there
 *
 * Grammar: <virt-uprof>, in it each of these at most once, with these attributes:
 * profile (rate duration budget), collect (connect domains chance longest),
 * limits (rate duration budget), symbols (path), store (directory sliceDays
 * mergedDays maxMegabytes minFreeMegabytes). The file is an administrator's own:
 * a part that is not known is a mistake of theirs, and refused.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_CONFIG_BYTES_MAX = 1024 * 1024,
    UPROF_CONFIG_VALUE_BYTES_MAX = 64 * 1024,
};

/**
 * UprofConfigXml: the attributes, as text
 *
 * Each is %NULL where the file does not say; what they mean is the business of
 * settings/config.c.
 */
typedef struct {
    char *profile_rate, *profile_duration, *profile_budget;
    char *connect, *domains, *chance, *longest;
    char *limits_rate, *limits_duration, *limits_budget;
    char *symbols_path;
    char *directory, *slice_days, *merged_days, *max_megabytes, *min_free_megabytes;
} UprofConfigXml;

/**
 * uprof_config_xml_parse:
 * @text: the file
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA, "line N: ..."
 */
UprofConfigXml *uprof_config_xml_parse(UprofSlice text, GError **error);
void uprof_config_xml_free(UprofConfigXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofConfigXml, uprof_config_xml_free)
