/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mute-libvirt.c - to be preloaded: libvirt does not say what one domain is
 *
 * UPROF_TEST_MUTE: the domain's name. UPROF_TEST_MUTE_HOW: "state" or "xml", what is refused;
 * "gone": all, as of a domain that has ended; "lost": all, as of a daemon that has; "job":
 * nothing, but it is at work on the domain.
 */
#include <dlfcn.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether the last error is ours. */
static bool is_refused;

static bool
is_how(const char *how)
{
    const char *asked = getenv("UPROF_TEST_MUTE_HOW");

    return asked && strcmp(asked, how) == 0;
}

static bool
refuse(virDomainPtr domain, const char *how)
{
    const char *name = getenv("UPROF_TEST_MUTE");

    is_refused = name && strcmp(virDomainGetName(domain), name) == 0 &&
                 (is_how(how) || is_how("gone") || is_how("lost"));
    return is_refused;
}

virErrorPtr
virGetLastError(void)
{
    static char words[] = "muted \033[31mby a test";
    static virError error;
    virErrorPtr (*real)(void);

    error = (virError){
        .code = is_how("gone") ? VIR_ERR_NO_DOMAIN : VIR_ERR_INTERNAL_ERROR,
        .domain = VIR_FROM_TEST,
        .message = words,
        .level = VIR_ERR_ERROR,
    };
    *(void **)&real = dlsym(RTLD_NEXT, "virGetLastError");
    return is_refused ? &error : real();
}

int
virDomainGetState(virDomainPtr domain, int *state, int *reason, unsigned flags)
{
    int (*real)(virDomainPtr, int *, int *, unsigned);

    *(void **)&real = dlsym(RTLD_NEXT, "virDomainGetState");
    return refuse(domain, "state") ? -1 : real(domain, state, reason, flags);
}

char *
virDomainGetXMLDesc(virDomainPtr domain, unsigned flags)
{
    char *(*real)(virDomainPtr, unsigned);

    *(void **)&real = dlsym(RTLD_NEXT, "virDomainGetXMLDesc");
    return refuse(domain, "xml") ? NULL : real(domain, flags);
}

int
virDomainGetJobInfo(virDomainPtr domain, virDomainJobInfoPtr info)
{
    const char *name = getenv("UPROF_TEST_MUTE");
    int (*real)(virDomainPtr, virDomainJobInfoPtr);

    if (is_how("job") && name && strcmp(virDomainGetName(domain), name) == 0) {
        *info = (virDomainJobInfo){ .type = VIR_DOMAIN_JOB_UNBOUNDED };
        return 0;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "virDomainGetJobInfo");
    return real(domain, info);
}

int
virConnectIsAlive(virConnectPtr connection)
{
    int (*real)(virConnectPtr);

    *(void **)&real = dlsym(RTLD_NEXT, "virConnectIsAlive");
    return is_how("lost") ? 0 : real(connection);
}
