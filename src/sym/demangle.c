/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "demangle-priv.h"

#include "uprof/clock.h"
#include "uprof/time-limit.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS = DMGL_PARAMS | DMGL_ANSI, /* the limit of recursion is on by default */

    /*
     * A mangled name may refer back to a part of itself in a few bytes. Each reference can
     * double the length of the demangled name. Printed text is cut off, but libiberty also
     * walks parts that it does not print, so the number of references is limited.
     */
    PACK_MENTIONS_MAX = 24, /* C++: libiberty searches packs before it prints them */
    PACKS_MAX = 8,
    D_MENTIONS_MAX = 24, /* D: libiberty returns the complete name */
    D_BYTES_MAX = 1024,

    /*
     * For each C++ name: libiberty reads the type of a conversion twice. Each conversion inside
     * another doubles the time, and takes only 15 bytes. A name in use takes some microseconds.
     */
    NAME_MS_MAX = 10,
};

typedef struct {
    jmp_buf full;
    size_t len;
    char text[UPROF_DEMANGLE_BYTES_MAX + 1];
} Output;

/*
 * libiberty calls this with each piece of the name and cannot be told to stop. Once the output
 * is full, a jump leaves libiberty. The functions that it skips own no memory (their arrays are
 * on the stack; one small block of Rust's punycode is lost).
 */
static void
append_piece(const char *piece, size_t len, void *data)
{
    Output *output = data;
    const size_t n = MIN(len, UPROF_DEMANGLE_BYTES_MAX - output->len);

    if (n == 0 && len == 0)
        return; /* @piece may be NULL */
    memcpy(output->text + output->len, piece, n);
    output->len += n;
    if (n < len)
        longjmp(output->full, 1);
}

typedef int (*Demangler)(const char *name, int options, demangle_callbackref append, void *data);

/* Returns: false if @name is not of that language */
static bool
run_demangler(Demangler demangler, const char *name, Output *output)
{
    output->len = 0;
    return setjmp(output->full) != 0 || demangler(name, OPTIONS, append_piece, output) != 0;
}

static unsigned
count_substrings(const char *name, const char *what)
{
    unsigned n = 0;

    for (const char *at = strstr(name, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* References to parts: S_, S0_ and so on. An identifier may look like one, too. */
static unsigned
count_mentions(const char *name)
{
    unsigned n = 0;

    for (const char *at = strchr(name, 'S'); at; at = strchr(at + 1, 'S'))
        n += at[1] == '_' || g_ascii_isdigit(at[1]) || g_ascii_isupper(at[1]);
    return n;
}

static bool
is_costly(const char *name)
{
    const unsigned n_packs =
        count_substrings(name, "Dp") + count_substrings(name, "sp") + count_substrings(name, "sZ");

    return n_packs > PACKS_MAX || (n_packs > 0 && count_mentions(name) > PACK_MENTIONS_MAX);
}

/* A C++ name, and whether libiberty accepts it. */
typedef struct {
    const char *name;
    Output *output;
    bool is_known;
} CxxWork;

/* libiberty's demangler of C++ allocates nothing but arrays on the stack. */
static void
demangle_cxx(void *data)
{
    CxxWork *work = data;

    work->is_known = run_demangler(cplus_demangle_v3_callback, work->name, work->output);
}

static bool
demangle_cxx_in_time(UprofDemangler *demangler, const char *name, Output *output)
{
    CxxWork work = { .name = name, .output = output };
    const uint64_t began_ns = uprof_clock_thread_ns();
    const uint64_t most_ns = MIN(NAME_MS_MAX * UPROF_NS_PER_MS, demangler->left_ns);

    const bool is_done = uprof_time_limit_run(most_ns, demangle_cxx, &work);
    demangler->left_ns -= MIN(uprof_clock_thread_ns() - began_ns, demangler->left_ns);
    return is_done && work.is_known;
}

static char *
demangle_cxx_or_rust(UprofDemangler *demangler, const char *name)
{
    g_autofree Output *output = g_new(Output, 1);

    /* A legacy name of Rust is also a C++ name with a hash at its end. */
    if (!run_demangler(rust_demangle_callback, name, output) &&
        (is_costly(name) || !demangle_cxx_in_time(demangler, name, output)))
        return NULL;
    return g_strndup(output->text, output->len);
}

static char *
demangle_d(const char *name)
{
    if (strlen(name) > D_BYTES_MAX || count_substrings(name, "Q") > D_MENTIONS_MAX)
        return NULL;
    char *found = dlang_demangle(name, OPTIONS);
    char *text = found ? g_strndup(found, UPROF_DEMANGLE_BYTES_MAX) : NULL;
    free(found);
    return text;
}

/* "$2b" stands for the character with that number. */
static void
append_ocaml(GString *text, const char *from, const char *end)
{
    for (const char *at = from; at < end; at++) {
        if (*at == '$' && end - at > 2 && g_ascii_isxdigit(at[1]) && g_ascii_isxdigit(at[2])) {
            g_string_append_c(
                text, (gchar)(g_ascii_xdigit_value(at[1]) << 4 | g_ascii_xdigit_value(at[2])));
            at += 2;
        } else {
            g_string_append_c(text, *at);
        }
    }
}

/* Returns: where the compiler's suffix begins, such as "_123"; @end without a suffix */
static const char *
find_stamp(const char *name, const char *end)
{
    const char *at = end;

    while (at > name && g_ascii_isdigit(at[-1]))
        at--;
    return at < end && at - 1 > name && at[-1] == '_' ? at - 1 : end;
}

/*
 * symbol = "caml" module { ("__" | ".") module } ("__" | ".") name [ "_" digits ]
 *
 * Modules begin with a capital letter (OCaml, asmcomp/compilenv.ml: make_symbol;
 * "." instead of "__" before the name since 5.1).
 */
static char *
demangle_ocaml(const char *name)
{
    const char *at = name + strlen("caml"), *end = name + strlen(name);
    GString *text = g_string_new(NULL);

    while (g_ascii_isupper(*at)) {
        const char *bars = strstr(at, "__"), *point = strchr(at, '.');
        const bool is_point = point && (!bars || point < bars);
        const char *part_end = is_point ? point : bars;
        if (!part_end || part_end == end)
            break;
        append_ocaml(text, at, part_end);
        g_string_append_c(text, '.');
        at = part_end + (is_point ? 1 : 2);
    }
    if (text->len == 0 || at == end) {
        g_string_free(text, TRUE);
        return NULL;
    }
    append_ocaml(text, at, find_stamp(at, end));
    return g_string_free(text, FALSE);
}

void
uprof_demangler_init(UprofDemangler *demangler)
{
    demangler->left_ns = UPROF_DEMANGLE_TOTAL_MS * UPROF_NS_PER_MS;
}

char *
uprof_demangle(UprofDemangler *demangler, UprofSlice raw)
{
    if (raw.len < 2 || raw.len > UPROF_DEMANGLE_BYTES_MAX || memchr(raw.data, '\0', raw.len))
        return NULL;
    g_autofree char *name = g_strndup(raw.data, raw.len);
    if (g_str_has_prefix(name, "caml") && g_ascii_isupper(name[4]))
        return demangle_ocaml(name);
    if (g_str_has_prefix(name, "_Z") || g_str_has_prefix(name, "_R"))
        return demangle_cxx_or_rust(demangler, name);
    if (g_str_has_prefix(name, "_D"))
        return demangle_d(name);
    return NULL;
}
