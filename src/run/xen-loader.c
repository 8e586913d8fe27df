/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xen-loader-priv.h"

#include "uprof/owner-check.h"
#include "uprof/text.h"

#include <gmodule.h>
#include <sys/stat.h>
#include <unistd.h>

#define XEN_PACKAGE "install the package virt-uprof-xen"

/* A module, and what its messages say. */
typedef struct {
    const char *path;
    const char *what; /* "the module ..." */
    const char *symbol;
    uint32_t abi;
    const char *if_not_loaded; /* what to do */
} Module;

static const Module xen_module = {
    .path = UPROF_MODULE_FOLDER "/xen.so",
    .what = "the module for Xen domains",
    .symbol = UPROF_XEN_MODULE_SYMBOL,
    .abi = UPROF_XEN_MODULE_ABI,
    .if_not_loaded = XEN_PACKAGE " and its dependencies",
};

static const Module xl_module = {
    .path = UPROF_MODULE_FOLDER "/xl.so",
    .what = "the module for domains of xl",
    .symbol = UPROF_XL_MODULE_SYMBOL,
    .abi = UPROF_XL_MODULE_ABI,
    .if_not_loaded =
        "it needs the libxenlight of the Xen version with which it was built; without it, name "
        "domains by --domid",
};

/* A user who can write to the module could run code as root. */
static bool
check_owner(const Module *module, const char *path, GError **error)
{
    struct stat info;

    if (stat(path, &info) < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "%s is missing (%s): " XEN_PACKAGE,
                    module->what, path);
        return false;
    }
    if (uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "'%s' is not used, because users other than root may write it; run: chown root and "
                "chmod go-w on it",
                path);
    return false;
}

/* Returns: (nullable): what the module exports; in both modules it begins with the ABI number */
static const void *
load_module(const Module *module, GError **error)
{
    gpointer symbol = NULL;

    if (!check_owner(module, UPROF_MODULE_FOLDER, error) ||
        !check_owner(module, module->path, error))
        return NULL;
    GModule *loaded = g_module_open(module->path, G_MODULE_BIND_LOCAL);
    if (!loaded) {
        g_autofree char *why = uprof_text_quote(g_module_error());
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "%s cannot be loaded: %s; %s",
                    module->what, why, module->if_not_loaded);
        return NULL;
    }
    g_module_make_resident(loaded);
    const bool has_symbol = g_module_symbol(loaded, module->symbol, &symbol) && symbol;
    if (!has_symbol || *(const uint32_t *)symbol != module->abi) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "'%s' is of another version of this program: " XEN_PACKAGE
                    " of the same version",
                    module->path);
        return NULL;
    }
    return symbol;
}

/* @loaded: (inout) (nullable): the result of an earlier call that succeeded */
static const void *
load_once(const Module *module, const void **loaded, GError **error)
{
    static GMutex lock; /* the guardian calls from several threads */

    g_mutex_lock(&lock);
    if (!*loaded)
        *loaded = load_module(module, error);
    const void *symbol = *loaded;
    g_mutex_unlock(&lock);
    return symbol;
}

const UprofXenModule *
uprof_xen_loader_load(GError **error)
{
    static const void *loaded;

    return load_once(&xen_module, &loaded, error);
}

const UprofXlModule *
uprof_xen_loader_load_xl(GError **error)
{
    static const void *loaded;

    return load_once(&xl_module, &loaded, error);
}
