/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xen-loader-priv.h"

#include "uprof/owner-check.h"
#include "uprof/text.h"

#include <gmodule.h>
#include <sys/stat.h>
#include <unistd.h>

#define XEN_MODULE UPROF_MODULE_FOLDER "/xen.so"
#define XEN_PACKAGE "install the package virt-uprof-xen"

/* A user who can write to the module could run code as root. */
static bool
check_owner(const char *path, GError **error)
{
    struct stat info;

    if (stat(path, &info) < 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "the module for Xen domains is missing (%s): " XEN_PACKAGE, path);
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

static const UprofXenModule *
load_module(GError **error)
{
    gpointer symbol = NULL;

    if (!check_owner(UPROF_MODULE_FOLDER, error) || !check_owner(XEN_MODULE, error))
        return NULL;
    GModule *module = g_module_open(XEN_MODULE, G_MODULE_BIND_LOCAL);
    if (!module) {
        g_autofree char *why = uprof_text_quote(g_module_error());
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "the module for Xen domains cannot be loaded: %s; " XEN_PACKAGE
                    " and its dependencies",
                    why);
        return NULL;
    }
    g_module_make_resident(module);
    const bool has_symbol = g_module_symbol(module, UPROF_XEN_MODULE_SYMBOL, &symbol) && symbol;
    const UprofXenModule *xen = symbol;
    if (!has_symbol || xen->abi != UPROF_XEN_MODULE_ABI) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "'%s' is of another version of this program: " XEN_PACKAGE
                    " of the same version",
                    XEN_MODULE);
        return NULL;
    }
    return xen;
}

const UprofXenModule *
uprof_xen_loader_load(GError **error)
{
    static GMutex lock; /* the guardian calls from several threads */
    static const UprofXenModule *loaded;

    g_mutex_lock(&lock);
    if (!loaded)
        loaded = load_module(error);
    const UprofXenModule *xen = loaded;
    g_mutex_unlock(&lock);
    return xen;
}
