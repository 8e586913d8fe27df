/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt-calls-priv.h - libvirt's functions, out of libraries that are loaded before the first connection
 *
 * libvirt needs some fifty other libraries. Commands that only read files start faster without them, and the
 * processes that parse what guests and tenants have written do not contain them.
 */
#pragma once

#include <glib.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>

#ifdef WITH_QEMU
#include <libvirt/libvirt-qemu.h>
#endif

/* The functions that this program calls, without their prefix "vir". */
#define UPROF_LIBVIRT_CALLS(CALL)                                                                  \
    CALL(ConnectClose)                                                                             \
    CALL(ConnectDomainEventDeregisterAny)                                                          \
    CALL(ConnectDomainEventRegisterAny)                                                            \
    CALL(ConnectGetLibVersion)                                                                     \
    CALL(ConnectGetType)                                                                           \
    CALL(ConnectGetURI)                                                                            \
    CALL(ConnectIsAlive)                                                                           \
    CALL(ConnectListAllDomains)                                                                    \
    CALL(ConnectListDomains)                                                                       \
    CALL(ConnectNumOfDomains)                                                                      \
    CALL(ConnectOpenAuth)                                                                          \
    CALL(ConnectSetKeepAlive)                                                                      \
    CALL(DomainFree)                                                                               \
    CALL(DomainGetConnect)                                                                         \
    CALL(DomainGetID)                                                                              \
    CALL(DomainGetInfo)                                                                            \
    CALL(DomainGetJobInfo)                                                                         \
    CALL(DomainGetMetadata)                                                                        \
    CALL(DomainGetName)                                                                            \
    CALL(DomainGetSecurityLabelList)                                                               \
    CALL(DomainGetState)                                                                           \
    CALL(DomainGetUUIDString)                                                                      \
    CALL(DomainGetXMLDesc)                                                                         \
    CALL(DomainIsActive)                                                                           \
    CALL(DomainIsPersistent)                                                                       \
    CALL(DomainLookupByID)                                                                         \
    CALL(DomainLookupByName)                                                                       \
    CALL(DomainLookupByUUIDString)                                                                 \
    CALL(DomainMemoryPeek)                                                                         \
    CALL(DomainRef)                                                                                \
    CALL(DomainResume)                                                                             \
    CALL(DomainSetMetadata)                                                                        \
    CALL(DomainSuspend)                                                                            \
    CALL(EventAddTimeout)                                                                          \
    CALL(EventRegisterDefaultImpl)                                                                 \
    CALL(EventRemoveTimeout)                                                                       \
    CALL(EventRunDefaultImpl)                                                                      \
    CALL(EventUpdateTimeout)                                                                       \
    CALL(GetLastError)                                                                             \
    CALL(SetErrorFunc)

#ifdef WITH_QEMU
#define UPROF_LIBVIRT_QEMU_CALLS(CALL) CALL(DomainQemuMonitorCommand)
#else
#define UPROF_LIBVIRT_QEMU_CALLS(CALL)
#endif

#define UPROF_LIBVIRT_MEMBER(name) __typeof__(vir##name) *name;

/** UprofLibvirt: virConnectClose() is the member ConnectClose, and so on */
typedef struct {
    UPROF_LIBVIRT_CALLS(UPROF_LIBVIRT_MEMBER)
    UPROF_LIBVIRT_QEMU_CALLS(UPROF_LIBVIRT_MEMBER)
    virConnectAuthPtr *default_auth; /* virConnectAuthPtrDefault */
} UprofLibvirt;

/** uprof_libvirt: all members are %NULL before uprof_libvirt_load() */
extern UprofLibvirt uprof_libvirt;

/**
 * uprof_libvirt_load: loads the libraries, unless this was done before; libvirt prints no errors then
 *
 * Returns: false with %UPROF_ERROR_UNSUPPORTED if libvirt is not installed, or too old
 */
bool uprof_libvirt_load(GError **error);
