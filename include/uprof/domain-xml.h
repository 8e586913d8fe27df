/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain-xml.h - reads the facts that a run needs from the XML of a domain
 *
 * parse/xml-tree-priv.h has the limits of the parser.
 */
#pragma once

#include "uprof/profile-xml.h"

/** UprofDomainDisk: a disk that is a file or a block device of the host; all strings are owned */
typedef struct {
    char *format; /* such as "qcow2" */
    char *path;
} UprofDomainDisk;

/** UprofDomainXml: all strings are owned */
typedef struct {
    char *type; /* "kvm", "qemu", "xen", "test", ... */
    char *name;
    char *uuid;
    char *arch;             /* /domain/os/type/@arch; (nullable): some drivers do not write it */
    char *machine;          /* /domain/os/type/@machine; (nullable) */
    char *kernel;           /* /domain/os/kernel; (nullable) */
    char *security;         /* /domain/launchSecurity/@type; (nullable) */
    unsigned vcpus;         /* plugged vCPUs, at least 1 */
    unsigned vcpus_max;     /* plugged vCPUs and those that can be plugged */
    bool shared_memory;     /* memoryBacking has access mode 'shared': other processes can map it */
    bool has_panic;         /* a device by which the guest tells that it has crashed */
    GPtrArray *disks;       /* of UprofDomainDisk, in the order of the XML, up to 64; owned */
    UprofMetadata metadata; /* owned */
} UprofDomainXml;

/**
 * uprof_domain_xml_parse:
 * @text: UTF-8, as virDomainGetXMLDesc() returns it
 *
 * Returns: (transfer full) (nullable): free with uprof_domain_xml_free();
 *   %NULL with %UPROF_ERROR_BAD_DATA
 */
UprofDomainXml *uprof_domain_xml_parse(UprofSlice text, GError **error);
void uprof_domain_xml_free(UprofDomainXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDomainXml, uprof_domain_xml_free)
