/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of a process that runs Python. The first byte, modulo 3, says which version. Changes
 * of 11 bytes follow: 16 bits, the offset of a word; a byte, 0 to replace the word by a value, 1 to
 * make it an address of this memory; and a value of 64 bits. Two samples are taken: the first one
 * finds the process and its threads, the second one has a copy of the memory.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "python-guest.h"
#include "uprof/regular-file.h"
#include "uprof/runtimes.h"

enum { N_VERSIONS = 3, CHANGE_BYTES = 11, CHANGES_MAX = 64, SPANS_MAX = 16 * 1024 };

/* Each version's guest is made once. */
typedef struct {
    PythonGuest *python;
    uint8_t *before; /* of Python's memory */
} Known;

/* The first input of a version also makes the guest. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 300,
        .us_per_kib = 5 * 1000,
        .base_kib = 16 * 1024,
        .bytes_per_byte = 1024,
        .n_mutations = 100,
    };
}

/* No file of this host is opened. */
static int
refuse_file(const UprofFileRequest *request, void *data)
{
    errno = ENOENT;
    return -1;
}

static uint8_t *
get_memory(const Known *known)
{
    return known->python->guest->memory->ram + known->python->memory;
}

static Known *
get_known(unsigned version)
{
    static Known known[N_VERSIONS];
    Known *one = &known[version];

    if (!one->python) {
        uprof_regular_file_delegate(refuse_file, NULL);
        one->python = python_guest_new(0x030b + version);
        one->before = g_memdup2(get_memory(one), PYTHON_BYTES);
    }
    memcpy(get_memory(one), one->before, PYTHON_BYTES);
    return one;
}

static uint64_t
read_number(const uint8_t *data, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++)
        number |= (uint64_t)data[i] << 8 * i;
    return number;
}

static void
change_words(const Known *known, UprofSlice changes)
{
    const size_t n = MIN(changes.len / CHANGE_BYTES, (size_t)CHANGES_MAX);

    for (size_t i = 0; i < n; i++) {
        const uint8_t *change = (const uint8_t *)changes.data + i * CHANGE_BYTES;
        const uint64_t offset = read_number(change, 2) % (PYTHON_BYTES - 7);
        const uint64_t value = read_number(change + 3, 8);
        linux_guest_put(known->python->guest, known->python->memory + offset,
                        change[2] & 1 ? PYTHON_GVA + value % PYTHON_BYTES : value);
    }
}

static void
check_frames(UprofRuntimes *runtimes, bool with_lines)
{
    static UprofPythonFrame frames[UPROF_PYTHON_FRAMES_MAX];
    bool is_cut;
    const unsigned n =
        uprof_runtimes_find_python(runtimes, PYTHON_CODE, with_lines, frames, &is_cut);

    g_assert(n <= UPROF_PYTHON_FRAMES_MAX);
    for (unsigned i = 0; i < n; i++)
        g_assert(!frames[i].name || g_utf8_validate(uprof_name_text(frames[i].name), -1, NULL));
}

static void
take_sample(const Known *known, UprofSpace *space, UprofRuntimes *runtimes)
{
    LinuxView *view = known->python->view;
    const gint before = known->python->guest->memory->tally->spans;
    UprofChain chain;
    uint32_t slot;

    python_guest_begin(known->python, true);
    uprof_mem_begin_sample(view->mem, view->snapshot->time_ns, view->reset);
    uprof_space_begin(space, view->mem, view->snapshot);
    uprof_runtimes_begin(runtimes, view->snapshot);
    check_frames(runtimes, false);
    check_frames(runtimes, true);
    while (uprof_runtimes_take_chain(runtimes, &slot, &chain))
        g_assert(slot < UPROF_CHAIN_SLOTS && uprof_chain_is_sound(&chain));
    g_assert(known->python->guest->memory->tally->spans - before <= SPANS_MAX);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < 1)
        return;
    const Known *known = get_known(data[0] % N_VERSIONS);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) sym = uprof_sym_new(known->python->guest->memory->base.arch, names);
    g_autoptr(UprofSpace) space = uprof_space_new(known->python->view->kernel, sym);
    g_autoptr(UprofRuntimes) runtimes = uprof_runtimes_new(space, sym, names);

    change_words(known, (UprofSlice){ data + 1, size - 1 });
    take_sample(known, space, runtimes);
    take_sample(known, space, runtimes);
}
