/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sanitized-priv.h - is this a build with address sanitizer?
 *
 * Sanitizers map terabytes and make system calls of their own.
 */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif
