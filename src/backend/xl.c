/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The module for the domains of xl: their names, and the kernels in their configurations, by
 * libxenlight. Each call makes a connection of its own. So a restart of xenstored does no harm, and
 * processes that are forked later inherit no connection.
 */
#include "uprof/xl-module.h"

#include "uprof/error.h"
#include "uprof/text.h"

#include <libxl.h>
#include <libxl_utils.h>
#include <libxl_uuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES_MAX = 512 };

/* The first error that libxenlight logs. The return values of its functions give no reasons. */
typedef struct {
    xentoollog_logger base; /* the first member: libxenlight gives its address back */
    char first[LOG_BYTES_MAX];
} Log;

typedef struct {
    libxl_ctx *xl; /* (nullable) */
    Log log;
} Connection;

__attribute__((format(printf, 5, 0))) static void
keep_message(xentoollog_logger *logger, xentoollog_level level, int number, const char *context,
             const char *format, va_list arguments)
{
    Log *log = (Log *)logger;

    if (level >= XTL_ERROR && log->first[0] == '\0')
        vsnprintf(log->first, sizeof(log->first), format, arguments);
}

static void
drop_progress(xentoollog_logger *logger, const char *context, const char *what, int percent,
              unsigned long done, unsigned long total)
{
}

static void
drop_logger(xentoollog_logger *logger)
{
}

static void
clear_connection(Connection *connection)
{
    if (connection->xl)
        libxl_ctx_free(connection->xl);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Connection, clear_connection)

static char *
quote_log(const Connection *connection)
{
    return uprof_text_quote(connection->log.first[0] ? connection->log.first
                                                     : "libxenlight gave no reason");
}

/* The running Xen says its version even to a library of another version. */
static bool
fail_version(const Connection *connection, GError **error)
{
    const libxl_version_info *running =
        connection->xl ? libxl_get_version_info(connection->xl) : NULL;
    g_autofree char *why = quote_log(connection);
    g_autofree char *version =
        running ? g_strdup_printf("%d.%d", running->xen_version_major, running->xen_version_minor)
                : g_strdup("of an unknown version");

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "libxenlight of Xen " XL_VERSION " gets no answer from the running Xen %s: %s",
                version, why);
    return false;
}

static bool
connect_xl(Connection *connection, GError **error)
{
    *connection = (Connection){ .log.base = { keep_message, drop_progress, drop_logger } };
    return libxl_ctx_alloc(&connection->xl, LIBXL_VERSION, 0, &connection->log.base) == 0 ||
           fail_version(connection, error);
}

static void
format_uuid(const libxl_uuid *uuid, char text[UPROF_MARKER_UUID_BYTES])
{
    const uint8_t *bytes = libxl_uuid_bytearray_const(uuid);
    static const unsigned groups[] = { 4, 2, 2, 2, 6 };
    unsigned at = 0;

    for (unsigned group = 0; group < G_N_ELEMENTS(groups); group++) {
        if (group > 0)
            *text++ = '-';
        for (unsigned i = 0; i < groups[group]; i++, text += 2)
            snprintf(text, 3, "%02x", bytes[at++]);
    }
}

static UprofXlState
find_state(const libxl_dominfo *info)
{
    if (info->shutdown)
        return info->shutdown_reason == LIBXL_SHUTDOWN_REASON_CRASH ? UPROF_XL_CRASHED
                                                                    : UPROF_XL_SHUTDOWN;
    return info->paused ? UPROF_XL_PAUSED : UPROF_XL_RUNNING;
}

/* A domain without a name has just been made, or is just being destroyed. */
static void
add_domain(const Connection *connection, const libxl_dominfo *info, GArray *domains)
{
    UprofXlDomain domain = {
        .domid = (int)info->domid,
        .state = find_state(info),
        .n_vcpus = info->vcpu_online,
        .n_vcpus_max = info->vcpu_max_id + 1,
    };

    if (info->domid == 0 || info->dying)
        return;
    char *name = libxl_domid_to_name(connection->xl, info->domid);
    if (name && name[0]) {
        g_strlcpy(domain.name, name, sizeof(domain.name));
        format_uuid(&info->uuid, domain.uuid);
        g_array_append_val(domains, domain);
    }
    free(name);
}

static bool
xl_list(GArray *domains, GError **error)
{
    g_auto(Connection) connection = { 0 };
    int n = 0;

    if (!connect_xl(&connection, error))
        return false;
    libxl_dominfo *infos = libxl_list_domain(connection.xl, &n);
    if (!infos)
        return fail_version(&connection, error);
    for (int i = 0; i < n; i++)
        add_domain(&connection, &infos[i], domains);
    libxl_dominfo_list_free(infos, n);
    return true;
}

/* Is the domain still there? Its number may be another domain's by now. */
static bool
is_there(const Connection *connection, const UprofXlDomain *domain)
{
    char uuid[UPROF_MARKER_UUID_BYTES];
    libxl_dominfo info;

    libxl_dominfo_init(&info);
    bool is_same = libxl_domain_info(connection->xl, &info, (uint32_t)domain->domid) == 0;
    if (is_same) {
        format_uuid(&info.uuid, uuid);
        is_same = !info.dying && strcmp(uuid, domain->uuid) == 0;
    }
    libxl_dominfo_dispose(&info);
    return is_same;
}

/*
 * Reads the configuration with which the toolstack has made the domain.
 * libxl_retrieve_domain_configuration() would also ask the domain's device model, which may hang.
 *
 * @is_kept: (out): false if the toolstack keeps none, as for a domain that libvirt or another
 * program made
 *
 * Returns: false if there is none, or it cannot be read
 */
static bool
read_config(const Connection *connection, int domid, libxl_domain_config *config, bool *is_kept)
{
    uint8_t *bytes = NULL;
    int len = 0;

    *is_kept = true;
    if (libxl_userdata_retrieve(connection->xl, (uint32_t)domid, "libxl-json", &bytes, &len) != 0)
        return false;
    g_autofree char *json = bytes && len > 0 ? g_strndup((const char *)bytes, (gsize)len) : NULL;
    free(bytes);
    *is_kept = json != NULL;
    return json && libxl_domain_config_from_json(connection->xl, config, json) == 0;
}

static bool
xl_kernel(const UprofXlDomain *domain, char **kernel, GError **error)
{
    g_auto(Connection) connection = { 0 };
    libxl_domain_config config;
    bool is_kept;

    *kernel = NULL;
    if (!connect_xl(&connection, error))
        return false;
    libxl_domain_config_init(&config);
    const bool is_read = read_config(&connection, domain->domid, &config, &is_kept);
    if (is_read && config.b_info.kernel && config.b_info.kernel[0])
        *kernel = g_strdup(config.b_info.kernel);
    libxl_domain_config_dispose(&config);
    if (!is_there(&connection, domain)) {
        g_clear_pointer(kernel, g_free);
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain %d has ended while its configuration was read", domain->domid);
        return false;
    }
    if (is_read)
        return true;
    if (!is_kept) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "the toolstack keeps no configuration of domain %d", domain->domid);
        return false;
    }
    g_autofree char *why = quote_log(&connection);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "libxenlight cannot read the configuration of domain %d: %s", domain->domid, why);
    return false;
}

extern const UprofXlModule uprof_xl_module;
__attribute__((visibility("default"))) const UprofXlModule uprof_xl_module = {
    .abi = UPROF_XL_MODULE_ABI,
    .list = xl_list,
    .kernel = xl_kernel,
};
