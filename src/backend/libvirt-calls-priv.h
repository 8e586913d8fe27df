/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt-calls-priv.h - libvirt's functions, out of libraries that are loaded before the first
 * connection
 *
 * libvirt needs some fifty other libraries. Commands that only read files start faster without
 * them, and the processes that parse what guests and tenants have written do not contain them.
 */
#pragma once

#include <glib.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>

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

#define UPROF_LIBVIRT_MEMBER(name) __typeof__(vir##name) *name;

/** UprofLibvirt: virConnectClose() is the member ConnectClose, and so on */
typedef struct {
    UPROF_LIBVIRT_CALLS(UPROF_LIBVIRT_MEMBER)
    UPROF_LIBVIRT_MEMBER(DomainQemuMonitorCommand) /* (nullable): libvirt may not know QEMU */
    virConnectAuthPtr *default_auth;               /* virConnectAuthPtrDefault */
} UprofLibvirt;

/** uprof_libvirt: all members are %NULL before uprof_libvirt_load() */
extern UprofLibvirt uprof_libvirt;

/**
 * uprof_libvirt_load: loads the libraries, unless this was done before; libvirt prints no errors
 * then
 *
 * Returns: false with %UPROF_ERROR_UNSUPPORTED if libvirt is not installed, or too old
 */
bool uprof_libvirt_load(GError **error);
