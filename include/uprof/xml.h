/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xml.h - domain XML, with libxml2 behind one door
 *
 * No network, no entities, no DOCTYPE, a size limit, no words on stderr.
 */
#pragma once

#include "uprof/profile-xml.h"

enum {
    UPROF_XML_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_XML_VALUE_BYTES_MAX = 16 * 1024, /* libvirt takes domain names of 5000 characters */
    UPROF_XML_VCPUS_MAX = 65535,
};

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
