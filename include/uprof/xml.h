/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xml.h - domain XML and our metadata, with libxml2 behind one door
 *
 * No network, no entities, no DOCTYPE, a size limit, no words on stderr.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_METADATA_NAMESPACE "https://virt-uprof.org/xmlns/domain/1.0"

enum {
    UPROF_XML_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_METADATA_BYTES_MAX = 64 * 1024,
    UPROF_METADATA_SYMBOLS_MAX = 64,
    UPROF_XML_VALUE_BYTES_MAX = 16 * 1024, /* libvirt takes domain names of 5000 characters */
    UPROF_XML_VCPUS_MAX = 65535,
};

/**
 * UprofMetadata: the element <uprof:profile>, as it stands there
 * @present: there is one, and its namespace is ours
 * @enabled, @rate, @duration, @budget: (nullable): its attributes, and
 * @unwind: (nullable): <uprof:unwind>'s attribute method, as text; what they
 *   mean is the business of settings/metadata.c
 * @symbols: of char, owned: attributes file of <uprof:symbols>
 * @unknown: (nullable): the first part that is not known, "@ATTRIBUTE",
 *   "ELEMENT" or, inside one of those two, "ELEMENT/@ATTRIBUTE"; not clean
 */
typedef struct {
    bool present;
    char *enabled;
    char *rate;
    char *duration;
    char *budget;
    char *unwind;
    GPtrArray *symbols;
    char *unknown;
} UprofMetadata;

/**
 * UprofDomainXml: what a run needs to know of a domain
 * @type: "kvm", "qemu", "xen", "test", ...
 * @arch: of /domain/os/type; (nullable) where the driver does not say
 * @machine, @kernel, @security: (nullable); @security is launchSecurity/@type
 * @vcpus: current, at least 1; @vcpus_max: the most it may have
 * @shared_memory: its memory can be mapped by others (memoryBacking, access shared)
 */
typedef struct {
    char *type;
    char *name;
    char *uuid;
    char *arch;
    char *machine;
    char *kernel;
    char *security;
    unsigned vcpus;
    unsigned vcpus_max;
    bool shared_memory;
    UprofMetadata metadata;
} UprofDomainXml;

/**
 * uprof_domain_xml_parse:
 * @text: as virDomainGetXMLDesc() gives it
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA
 */
UprofDomainXml *uprof_domain_xml_parse(UprofSlice text, GError **error);
void uprof_domain_xml_free(UprofDomainXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDomainXml, uprof_domain_xml_free)
