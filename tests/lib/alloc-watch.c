/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "alloc-watch.h"

#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif

static bool (*is_forbidden)(void);
static int count;

static void
look(void)
{
    if (is_forbidden && is_forbidden())
        __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}

#ifdef HAS_ASAN

/* the sanitizer replaces malloc() and offers hooks (sanitizer/allocator_interface.h) */
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                              void (*free_hook)(const volatile void *));

static void
see_malloc(const volatile void *bytes, size_t len)
{
    look();
}

static void
see_free(const volatile void *bytes)
{
}

static void
install(void)
{
    __sanitizer_install_malloc_and_free_hooks(see_malloc, see_free);
}

#else

/* glibc's own names; the program's malloc() takes precedence over the library's */
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *bytes, size_t len);
void *__libc_memalign(size_t alignment, size_t len);

void *
malloc(size_t len)
{
    look();
    return __libc_malloc(len);
}

void *
calloc(size_t n, size_t len)
{
    look();
    return __libc_calloc(n, len);
}

void *
realloc(void *bytes, size_t len)
{
    look();
    return __libc_realloc(bytes, len);
}

void *
aligned_alloc(size_t alignment, size_t len)
{
    look();
    return __libc_memalign(alignment, len);
}

static void
install(void)
{
}

#endif

void
alloc_watch_start(bool (*asked)(void))
{
    static bool is_installed;

    if (!is_installed)
        install();
    is_installed = true;
    __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
    is_forbidden = asked;
}

int
alloc_watch_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_RELAXED);
}
