/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake-xl.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libxl.h>
#include <libxl_utils.h>
#include <libxl_uuid.h>

FakeXl fake_xl;

struct libxl__ctx {
    xentoollog_logger *logger;
};

__attribute__((format(printf, 3, 4))) static void
log_message(libxl_ctx *ctx, xentoollog_level level, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    ctx->logger->vmessage(ctx->logger, level, -1, "libxl", format, arguments);
    va_end(arguments);
}

static void
log_error(libxl_ctx *ctx)
{
    log_message(ctx, XTL_DEBUG, "%s", "noise");
    if (fake_xl.message)
        log_message(ctx, XTL_ERROR, "%s", fake_xl.message);
    log_message(ctx, XTL_ERROR, "%s", "a later error");
}

int
libxl_ctx_alloc(libxl_ctx **ctx, int version, unsigned flags, xentoollog_logger *logger)
{
    *ctx = calloc(1, sizeof(**ctx));
    (*ctx)->logger = logger;
    if (fake_xl.alloc_error == 0) {
        fake_xl.n_owned++;
        return 0;
    }
    log_error(*ctx);
    free(*ctx);
    *ctx = NULL;
    return fake_xl.alloc_error;
}

int
libxl_ctx_free(libxl_ctx *ctx)
{
    fake_xl.n_owned--;
    free(ctx);
    return 0;
}

const libxl_version_info *
libxl_get_version_info(libxl_ctx *ctx)
{
    static libxl_version_info info = { .xen_version_major = 4, .xen_version_minor = 99 };

    return fake_xl.has_no_version ? NULL : &info;
}

const uint8_t *
libxl_uuid_bytearray_const(const libxl_uuid *uuid)
{
    return uuid->uuid;
}

static void
fill_info(const FakeXlDomain *domain, libxl_dominfo *info)
{
    info->domid = domain->domid;
    memcpy(info->uuid.uuid, domain->uuid, sizeof(domain->uuid));
    info->paused = domain->paused;
    info->running = !domain->paused;
    info->shutdown = domain->shutdown || domain->crashed;
    info->shutdown_reason =
        domain->crashed ? LIBXL_SHUTDOWN_REASON_CRASH : LIBXL_SHUTDOWN_REASON_POWEROFF;
    info->dying = domain->dying;
    info->vcpu_online = domain->n_online;
    info->vcpu_max_id = domain->max_vcpu_id;
}

libxl_dominfo *
libxl_list_domain(libxl_ctx *ctx, int *n)
{
    if (fake_xl.refuses_list) {
        log_error(ctx);
        return NULL;
    }
    libxl_dominfo *infos = calloc(fake_xl.n_domains + 1, sizeof(*infos));
    for (unsigned i = 0; i < fake_xl.n_domains; i++)
        fill_info(&fake_xl.domains[i], &infos[i]);
    *n = (int)fake_xl.n_domains;
    fake_xl.n_owned++;
    return infos;
}

void
libxl_dominfo_list_free(libxl_dominfo *list, int n)
{
    fake_xl.n_owned--;
    free(list);
}

static FakeXlDomain *
find_domain(uint32_t domid)
{
    for (unsigned i = 0; i < fake_xl.n_domains; i++)
        if (fake_xl.domains[i].domid == domid)
            return &fake_xl.domains[i];
    return NULL;
}

char *
libxl_domid_to_name(libxl_ctx *ctx, uint32_t domid)
{
    const FakeXlDomain *domain = find_domain(domid);

    return domain && domain->name ? strdup(domain->name) : NULL;
}

void
libxl_dominfo_init(libxl_dominfo *info)
{
    memset(info, 0, sizeof(*info));
    fake_xl.n_owned++;
}

void
libxl_dominfo_dispose(libxl_dominfo *info)
{
    fake_xl.n_owned--;
}

int
libxl_domain_info(libxl_ctx *ctx, libxl_dominfo *info, uint32_t domid)
{
    const FakeXlDomain *domain = find_domain(domid);

    if (!domain)
        return ERROR_DOMAIN_NOTFOUND;
    fill_info(domain, info);
    return 0;
}

void
libxl_domain_config_init(libxl_domain_config *config)
{
    memset(config, 0, sizeof(*config));
    fake_xl.n_owned++;
}

void
libxl_domain_config_dispose(libxl_domain_config *config)
{
    free(config->b_info.kernel);
    fake_xl.n_owned--;
}

/* The text stands for the configuration in JSON: "error", or the path of the kernel. */
int
libxl_userdata_retrieve(libxl_ctx *ctx, uint32_t domid, const char *userid, uint8_t **bytes,
                        int *len)
{
    FakeXlDomain *domain = find_domain(domid);

    *bytes = NULL;
    *len = 0;
    if (!domain || strcmp(userid, "libxl-json") != 0)
        return ERROR_DOMAIN_NOTFOUND;
    const char *text = domain->config_error != 0 ? "error" : domain->kernel ? domain->kernel : "";
    if (!domain->has_no_config) {
        *len = (int)strlen(text) + 1;
        *bytes = malloc((size_t)*len);
        memcpy(*bytes, text, (size_t)*len);
    }
    if (domain->is_replaced)
        domain->uuid[0] ^= 0xff;
    if (domain->ends)
        domain->dying = true;
    return 0;
}

int
libxl_domain_config_from_json(libxl_ctx *ctx, libxl_domain_config *config, const char *text)
{
    if (strcmp(text, "error") == 0) {
        log_error(ctx);
        return ERROR_FAIL;
    }
    if (text[0])
        config->b_info.kernel = strdup(text);
    return 0;
}
