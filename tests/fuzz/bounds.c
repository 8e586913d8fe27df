/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bounds.c - calls a fuzz target, and aborts if one input uses too much time or memory
 *
 * Time is processor time, which does not depend on the load of the machine. Memory is all that the
 * program has allocated and not freed. Both are checked while the target runs. So an endless loop
 * ends, and the backtrace shows its place.
 */
#include "fuzz.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../src/base/sanitized-priv.h"

enum {
    US_PER_S = 1000 * 1000,
    US_PER_MS = 1000,
    SLOWER = 10, /* a sanitized build may take so many times as long */
};

/* Most parsers need less than 1 ms and 100 KiB for an input of 1 KiB. An UprofSym caches 2 MiB. */
__attribute__((weak)) FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 100,
        .us_per_kib = 5 * 1000,
        .base_kib = 4 * 1024,
        .bytes_per_byte = 256,
    };
}

/* Memory that the present input has allocated, also in threads of the target. */
static struct {
    bool is_on;
    size_t input_bytes;
    long live;
    long peak;
    long most; /* bytes */
} memory;

static FuzzWorst worst;

static uint64_t
most_time_us(size_t size)
{
    const FuzzBounds bounds = fuzz_bounds();
    const uint64_t us =
        (uint64_t)bounds.base_ms * US_PER_MS + (uint64_t)size * bounds.us_per_kib / 1024;

    return IS_SANITIZED ? us * SLOWER : us;
}

static uint64_t
get_time_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * US_PER_S +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Allocates nothing, because a signal handler and malloc() call this function. */
static void
report_excess(const char *what, uint64_t most, const char *unit)
{
    char text[200];

    memory.is_on = false;
    const int len =
        snprintf(text, sizeof(text), "fuzz: an input of %zu bytes uses more than %lu %s of %s\n",
                 memory.input_bytes, (unsigned long)most, unit, what);
    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        _exit(1);
    abort();
}

/* ---- Memory ---- */

static void
count_memory(long bytes)
{
    if (!memory.is_on)
        return;
    const long live = __atomic_add_fetch(&memory.live, bytes, __ATOMIC_RELAXED);
    if (live > memory.peak)
        memory.peak = live;
    if (live > memory.most)
        report_excess("memory", (uint64_t)memory.most / 1024, "KiB");
}

#if IS_SANITIZED

/* The sanitizer replaces malloc() and offers hooks (sanitizer/allocator_interface.h). */
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                              void (*free_hook)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *bytes);

static void
see_malloc(const volatile void *bytes, size_t len)
{
    count_memory((long)len);
}

static void
see_free(const volatile void *bytes)
{
    if (bytes && memory.is_on)
        count_memory(-(long)__sanitizer_get_allocated_size(bytes));
}

static void
watch_memory(void)
{
    static bool is_installed;

    if (!is_installed)
        g_assert(__sanitizer_install_malloc_and_free_hooks(see_malloc, see_free) > 0);
    is_installed = true;
}

#else

/* glibc's own names; the program's functions take precedence over the library's. */
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *bytes, size_t len);
void *__libc_memalign(size_t alignment, size_t len);
void __libc_free(void *bytes);

/* Counts malloc_usable_size(), because free() has no other size to subtract. */
static void *
count_block(void *bytes)
{
    if (bytes)
        count_memory((long)malloc_usable_size(bytes));
    return bytes;
}

void *
malloc(size_t len)
{
    return count_block(__libc_malloc(len));
}

void *
calloc(size_t n, size_t len)
{
    return count_block(__libc_calloc(n, len));
}

void *
realloc(void *bytes, size_t len)
{
    const long before = bytes ? (long)malloc_usable_size(bytes) : 0;
    void *moved = __libc_realloc(bytes, len);

    if (moved || len == 0)
        count_memory(-before);
    return count_block(moved);
}

void *
memalign(size_t alignment, size_t len)
{
    return count_block(__libc_memalign(alignment, len));
}

void *
aligned_alloc(size_t alignment, size_t len)
{
    return memalign(alignment, len);
}

int
posix_memalign(void **bytes, size_t alignment, size_t len)
{
    *bytes = memalign(alignment, len);
    return *bytes ? 0 : ENOMEM;
}

void
free(void *bytes)
{
    if (bytes)
        count_memory(-(long)malloc_usable_size(bytes));
    __libc_free(bytes);
}

static void
watch_memory(void)
{
}

#endif

/* ---- Time ---- */

static void
end_time(int number)
{
    report_excess("processor time", most_time_us(memory.input_bytes) / US_PER_MS, "ms");
}

/* @us: 0 stops the timer. The timer counts processor time of all threads. */
static void
set_timer(uint64_t us)
{
    const struct itimerval when = {
        .it_value = { .tv_sec = (time_t)(us / US_PER_S), .tv_usec = (suseconds_t)(us % US_PER_S) },
    };

    g_assert(setitimer(ITIMER_PROF, &when, NULL) == 0);
}

static void
watch_time(void)
{
    const struct sigaction action = { .sa_handler = end_time };

    g_assert(sigaction(SIGPROF, &action, NULL) == 0);
}

/* ---- Inputs ---- */

static void
note_worst(uint64_t time_us)
{
    worst.time_us = MAX(worst.time_us, time_us);
    worst.memory_bytes = MAX(worst.memory_bytes, (uint64_t)memory.peak);
}

FuzzWorst
fuzz_worst(void)
{
    return worst;
}

static long
most_memory(size_t size)
{
    const FuzzBounds bounds = fuzz_bounds();

    return (long)bounds.base_kib * 1024 + (long)(size * bounds.bytes_per_byte);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* by default, a GLib function with a wrong argument only logs this as critical */
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
    watch_memory();
    watch_time();
    memory.input_bytes = size;
    memory.live = memory.peak = 0;
    memory.most = most_memory(size);
    const uint64_t began_us = get_time_us();
    set_timer(most_time_us(size));
    memory.is_on = true;
    fuzz_input(data, size);
    memory.is_on = false;
    set_timer(0);
    note_worst(get_time_us() - began_us);
    return 0;
}
