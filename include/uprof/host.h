/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * host.h - libvirt: the connection and its domains
 *
 * Finds domains and reads their XML on any driver; touches no guest. libvirt's
 * own error printing is silenced here and its errors become ours.
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/xml.h"

typedef struct _UprofHost UprofHost;

typedef enum {
    UPROF_DOMAIN_RUNNING,
    UPROF_DOMAIN_PAUSED,
    UPROF_DOMAIN_SHUTOFF,
    UPROF_DOMAIN_OTHER, /* crashed, suspended by the guest, in shutdown, ... */
} UprofDomainState;

/**
 * UprofDomain:
 * @name: as libvirt has it: any bytes but '/' and newline; clean it before showing it
 * @id: of the running domain, -1 if it does not run
 * @state_name: in words
 * @uri: of the connection it was found on, as libvirt calls it
 * @driver: "QEMU", "Xen", "TEST", ...
 * @is_local: the connection leads to this very host
 * @bad_xml: (nullable): why its XML could not be read; @xml holds next to nothing then
 */
typedef struct {
    char *name;
    char uuid[UPROF_MARKER_UUID_BYTES];
    int id;
    UprofDomainState state;
    const char *state_name;
    char *uri;
    char *driver;
    bool is_local;
    UprofDomainXml *xml;
    char *bad_xml;
} UprofDomain;

void uprof_domain_free(UprofDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofDomain, uprof_domain_free)

/** uprof_host_init: silences libvirt. Before the first connection */
void uprof_host_init(void);

/**
 * uprof_host_open:
 * @uri: (nullable): %NULL: LIBVIRT_DEFAULT_URI, else libvirt's own choice
 * @read_only: for what looks and does not touch
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_DENIED: no
 *   connection or no permission
 */
UprofHost *uprof_host_open(const char *uri, bool read_only, GError **error);
void uprof_host_close(UprofHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofHost, uprof_host_close)

/** uprof_host_uri_is_local: Returns: whether a connection of this URI ends on this host */
bool uprof_host_uri_is_local(const char *uri);

/** uprof_host_uri: Returns: (transfer none): the connection, as libvirt calls it; clean */
const char *uprof_host_uri(const UprofHost *host);

/** uprof_host_describe: Returns: (transfer full): libvirt's version and kind of connection */
char *uprof_host_describe(const UprofHost *host);

/**
 * uprof_host_list:
 *
 * Domains that vanish meanwhile are left out. One of which libvirt cannot tell state or XML
 * is there, with @bad_xml; its state is %UPROF_DOMAIN_OTHER if that is what is not known.
 *
 * Returns: (transfer full) (nullable): every domain, UprofDomain, sorted by name; %NULL also if
 *   the connection is lost meanwhile
 */
GPtrArray *uprof_host_list(UprofHost *host, GError **error);

/**
 * uprof_host_names: the same at less cost: of each domain only name, id and UUID are there
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
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_NOT_FOUND and a
 *   guess at what was meant, or %UPROF_ERROR_FAILED
 */
UprofDomain *uprof_host_find(UprofHost *host, const char *word, GError **error);

/**
 * uprof_host_running:
 *
 * Returns: (transfer full) (nullable): ids (int) of the domains that are active
 *   now; %NULL if they cannot be asked for
 */
GArray *uprof_host_running(UprofHost *host);

/** uprof_host_find_id: Returns: (transfer full) (nullable): as uprof_host_find(), of a running domain */
UprofDomain *uprof_host_find_id(UprofHost *host, int id, GError **error);

/** uprof_host_job: Returns: (nullable): what libvirt does with it now ("migration"), %NULL: nothing */
const char *uprof_host_job(UprofHost *host, const UprofDomain *domain);

/** UprofMetadataPlace: a running domain that is persistent has two; they may differ */
typedef enum {
    UPROF_METADATA_LIVE,   /* holds now */
    UPROF_METADATA_CONFIG, /* holds from its next start on */
} UprofMetadataPlace;

/** uprof_host_has_metadata_place: Returns: whether there is such a place for @domain */
bool
uprof_host_has_metadata_place(UprofHost *host, const UprofDomain *domain, UprofMetadataPlace place);

/**
 * uprof_host_get_metadata:
 * @xml: (out) (transfer full): the element in our namespace, bare; "" if there is none
 */
bool uprof_host_get_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataPlace place,
                             char **xml, GError **error);

/** uprof_host_set_metadata: @xml: the element, bare, in place of what is there */
bool uprof_host_set_metadata(UprofHost *host, const UprofDomain *domain, UprofMetadataPlace place,
                             const char *xml, GError **error);
