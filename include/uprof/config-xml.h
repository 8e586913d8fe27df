/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config-xml.h - reads the configuration file
 *
 * Grammar: the root element is <virt-uprof>. It has at most one of each of these children,
 * with these attributes:
 *   profile (rate duration budget)
 *   collect (connect domains chance longest)
 *   limits (rate duration budget)
 *   symbols (path maxMegabytes)
 *   metrics (directory)
 *   store (directory sliceDays mergedDays maxMegabytes minFreeMegabytes)
 * and any number of these:
 *   destination (name type url tenant domains user tokenFile passwordFile caFile certificateFile
 *                keyFile maxAge kilobytesPerSecond perVcpu metadataLabels)
 * A destination has any number of children <label name value/>.
 *
 * An administrator writes the file. The parser refuses unknown parts, so that mistakes do not go
 * unnoticed.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_CONFIG_BYTES_MAX = 1024 * 1024,
    UPROF_CONFIG_LABELS_MAX = 20, /* of a destination */
};

/** UprofLabelXml: a label of a destination: its attributes, owned; %NULL if the file lacks one */
typedef struct {
    char *name, *value;
} UprofLabelXml;

/** UprofDestinationXml: an element <destination>, as UprofConfigXml */
typedef struct {
    char *name, *type, *url, *tenant, *domains, *user, *token_file, *password_file;
    char *ca_file, *certificate_file, *key_file, *max_age, *kilobytes_per_s, *per_vcpu,
        *metadata_labels;
    GPtrArray *labels; /* of UprofLabelXml, owned */
    long line;         /* of the file, from 1 */
} UprofDestinationXml;

/**
 * UprofConfigXml: the attributes as text, owned
 *
 * An attribute that the file does not have is %NULL. settings/config.c gives the values
 * their meaning.
 */
typedef struct {
    char *profile_rate, *profile_duration, *profile_budget;
    char *connect, *domains, *chance, *longest;
    char *limits_rate, *limits_duration, *limits_budget;
    char *symbols_path, *symbols_megabytes;
    char *directory, *slice_days, *merged_days, *max_megabytes, *min_free_megabytes;
    char *metrics_folder;
    GPtrArray *destinations; /* of UprofDestinationXml, owned */
} UprofConfigXml;

/**
 * uprof_config_xml_parse:
 * @text: contents of the file
 *
 * Returns: (transfer full) (nullable): free with
 *   uprof_config_xml_free(); %NULL with %UPROF_ERROR_BAD_DATA, "line N: ..."
 */
UprofConfigXml *uprof_config_xml_parse(UprofSlice text, GError **error);
void uprof_config_xml_free(UprofConfigXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofConfigXml, uprof_config_xml_free)
