/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * host.h - libvirt: the connection and its domains
 *
 * Finds domains and reads their XML, with any driver of libvirt. Touches no guest. libvirt's
 * own error messages are silenced here, and its errors become errors of this program.
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/domain-xml.h"

typedef struct _UprofHost UprofHost;

typedef enum {
    UPROF_DOMAIN_RUNNING,
    UPROF_DOMAIN_PAUSED,
    UPROF_DOMAIN_CRASHED, /* its memory is still there */
    UPROF_DOMAIN_SHUTOFF,
    UPROF_DOMAIN_OTHER, /* suspended by the guest, in shutdown, ... */
} UprofDomainState;

/** UprofDomain: a domain as libvirt describes it; all pointers but @state_name are owned */
typedef struct {
    char *name; /* any bytes but '/' and newline: not safe to print */
    char uuid[UPROF_MARKER_UUID_BYTES];
    int id; /* of the running domain; -1: it does not run */
    UprofDomainState state;
    const char *state_name; /* in words; literal */
    char *uri;              /* of the connection, as libvirt calls it */
    char *driver;           /* "QEMU", "Xen", "TEST", ... */
    bool is_local;          /* the connection ends on this host */
    bool is_of_xl;          /* xl made it, and libvirt does not know it (domid.h) */
    char *kernel_problem;   /* (nullable): why the path of its kernel is not known */
    UprofDomainXml *xml;
    char *bad_xml; /* (nullable): why its XML cannot be read; @xml is almost empty then */
} UprofDomain;

void uprof_domain_free(UprofDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDomain, uprof_domain_free)

/** uprof_domain_has_memory: the domain runs, is paused or has crashed */
bool uprof_domain_has_memory(const UprofDomain *domain);

/**
 * uprof_host_open:
 * @uri: (nullable): %NULL: LIBVIRT_DEFAULT_URI; if that is not set, libvirt's own choice
 * @read_only: the connection is not used to change anything
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_DENIED if there is no
 *   connection or no permission
 */
UprofHost *uprof_host_open(const char *uri, bool read_only, GError **error);
void uprof_host_close(UprofHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofHost, uprof_host_close)

/** uprof_host_uri_is_local: a connection with this URI ends on this host */
bool uprof_host_uri_is_local(const char *uri);

/**
 * uprof_host_uri_hint:
 *
 * Returns: (transfer none): a hint for the message that the connection @uri lacks a domain; may be
 *   ""
 *
 * Without root, libvirt's default is the user's session, which rarely has the user's domains.
 */
const char *uprof_host_uri_hint(const char *uri);

/**
 * uprof_host_virsh: Returns: (transfer full): how to call virsh for this connection, for messages:
 *   with -c, unless @uri is virsh's own default
 */
char *uprof_host_virsh(const char *uri);

/** uprof_host_uri: Returns: (transfer none): the connection, as libvirt calls it; safe to print */
const char *uprof_host_uri(const UprofHost *host);

/** uprof_host_describe: Returns: (transfer full): libvirt's version and kind of connection */
char *uprof_host_describe(const UprofHost *host);

/**
 * uprof_host_list:
 *
 * Domains that end meanwhile are left out. If libvirt does not report the state or the XML of a
 * domain, the domain has @bad_xml. An unknown state is %UPROF_DOMAIN_OTHER.
 *
 * Returns: (transfer full) (nullable): all domains (UprofDomain), sorted by name; %NULL also if
 *   the connection is lost meanwhile
 */
GPtrArray *uprof_host_list(UprofHost *host, GError **error);

/**
 * uprof_host_names: as uprof_host_list(), but cheaper: only name, id and UUID are set
 *
 * Returns: (transfer full) (nullable): UprofDomain, sorted by name
 */
GPtrArray *uprof_host_names(UprofHost *host, GError **error);

/**
 * uprof_host_find:
 * @word: id, UUID or name, tried in this order, as virsh does
 *
 * A number that is the id of one domain and the name of another is refused.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND and the most similar
 *   name, or with %UPROF_ERROR_FAILED
 */
UprofDomain *uprof_host_find(UprofHost *host, const char *word, GError **error);

/**
 * uprof_host_running:
 *
 * Returns: (transfer full) (nullable): the ids (int) of all domains that run now; %NULL if libvirt
 *   fails
 */
GArray *uprof_host_running(UprofHost *host);

/** uprof_host_find_id: as uprof_host_find(), for the id of a running domain */
UprofDomain *uprof_host_find_id(UprofHost *host, int id, GError **error);

/** uprof_host_job: Returns: (nullable): the job that libvirt runs for @domain, in words; literal */
const char *uprof_host_job(UprofHost *host, const UprofDomain *domain);

/** UprofMetadataScope: a domain that runs and is persistent has both, and they may differ */
typedef enum {
    UPROF_METADATA_LIVE,   /* of the running domain */
    UPROF_METADATA_CONFIG, /* from its next start on */
} UprofMetadataScope;

/** uprof_host_has_metadata_scope: does @domain run (LIVE), or is it persistent (CONFIG)? */
bool
uprof_host_has_metadata_scope(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope);

/**
 * uprof_host_get_metadata:
 * @xml: (out) (transfer full): the element in virt-uprof's namespace, without its prefix; "" if
 *   there is none
 */
bool uprof_host_get_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope,
                             char **xml, GError **error);

/** uprof_host_set_metadata: @xml: the element, without its prefix; replaces the present one */
bool uprof_host_set_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataScope scope,
                             const char *xml, GError **error);
