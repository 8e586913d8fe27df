/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mute-libvirt.c - a library to preload: libvirt's calls for one domain fail
 *
 * UPROF_TEST_MUTE: the name of the domain
 * UPROF_TEST_MUTE_HOW: which calls fail, and how:
 *     state  the state of the domain is refused
 *     xml    the XML of the domain is refused
 *     gone   both are refused, as if the domain had ended
 *     lost   both are refused, as if the daemon had ended
 *     job    no call fails, but the domain has a job
 *     memory reads of its memory are refused
 */
#include <dlfcn.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The last error is from this library, not from libvirt. */
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

int
virDomainMemoryPeek(virDomainPtr domain, unsigned long long start, size_t size, void *buffer,
                    unsigned flags)
{
    int (*real)(virDomainPtr, unsigned long long, size_t, void *, unsigned);

    if (refuse(domain, "memory"))
        return -1;
    *(void **)&real = dlsym(RTLD_NEXT, "virDomainMemoryPeek");
    return real(domain, start, size, buffer, flags);
}
