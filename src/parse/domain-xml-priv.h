/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain-xml-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_XML_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_XML_VALUE_BYTES_MAX = 16 * 1024, /* libvirt accepts domain names of 5000 characters */
    UPROF_XML_VCPUS_MAX = 65535,
    UPROF_DOMAIN_DISKS_MAX = 64, /* further ones are left out */
};
