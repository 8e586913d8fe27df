/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libvirt-calls-priv.h"

#include "uprof/error.h"
#include "uprof/text.h"

#include <dlfcn.h>
#include <string.h>

UprofLibvirt uprof_libvirt;

#define CALL_ROW(name) { "vir" #name, G_STRUCT_OFFSET(UprofLibvirt, name) },

/* clang-format off */
static const struct {
    const char *name;
    size_t member;
} calls[] = {
    UPROF_LIBVIRT_CALLS(CALL_ROW)
    { "virConnectAuthPtrDefault", G_STRUCT_OFFSET(UprofLibvirt, default_auth) },
};
/* clang-format on */

static void
ignore_error(void *data, virErrorPtr error)
{
}

/* The symbols of the libraries become global, so that a preloaded library can stand before them. */
static bool
open_libraries(GError **error)
{
    dlopen("libvirt-qemu.so.0", RTLD_LAZY | RTLD_GLOBAL);
    if (dlopen("libvirt.so.0", RTLD_LAZY | RTLD_GLOBAL))
        return true;
    g_autofree char *why = uprof_text_quote(dlerror());
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "libvirt cannot be loaded: %s; install the package libvirt0", why);
    return false;
}

static bool
find_symbols(UprofLibvirt *libvirt, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        void *symbol = dlsym(RTLD_DEFAULT, calls[i].name);
        if (!symbol) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                        "libvirt has no function '%s': it must be 7.0 or newer", calls[i].name);
            return false;
        }
        memcpy((char *)libvirt + calls[i].member, &symbol, sizeof(symbol));
    }
    void *call = dlsym(RTLD_DEFAULT, "virDomainQemuMonitorCommand");
    memcpy(&libvirt->DomainQemuMonitorCommand, &call, sizeof(call));
    return true;
}

bool
uprof_libvirt_load(GError **error)
{
    static GMutex lock;
    static bool is_loaded;
    UprofLibvirt found;

    g_mutex_lock(&lock);
    if (!is_loaded && open_libraries(error) && find_symbols(&found, error)) {
        uprof_libvirt = found;
        uprof_libvirt.SetErrorFunc(NULL, ignore_error);
        is_loaded = true;
    }
    const bool ok = is_loaded;
    g_mutex_unlock(&lock);
    return ok;
}
