/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "python-guest.h"

#include <string.h>

enum { PAGE = 4096, TIME_APART_NS = 200 * 1000 * 1000 };

static void
cache_library(LinuxGuest *guest)
{
    g_autoptr(GByteArray) file = build_mapped(0xcd);
    const uint64_t gpa = linux_guest_alloc(guest, file->len, PAGE);
    const uint64_t entry = linux_guest_get(guest, guest->files[1] + FILE_ENTRY) - LINUX_DIRECT;

    memory_guest_put(guest->memory, gpa, file->data, file->len);
    for (unsigned i = 0; i < MAPPED_N_PAGES; i++)
        linux_guest_cache(guest, 1, i, gpa + (uint64_t)i * PAGE);
    linux_guest_put_text(guest, entry + ENTRY_CHARS, "libpython3.so");
}

PythonGuest *
python_guest_new(uint32_t version)
{
    static const LinuxArea areas[] = {
        { LINUX_LIBRARY + 0x3000, LINUX_LIBRARY + 0x5000, 3, 2, true },
    };
    static const uint64_t threads[] = { PYTHON_POINTER, PYTHON_OTHER_POINTER };
    const LinuxPlan plan = { .areas = areas,
                             .n_areas = G_N_ELEMENTS(areas),
                             .more_bytes = MAPPED_BYTES + PYTHON_BYTES + 16 * PAGE };
    PythonGuest *python = g_new0(PythonGuest, 1);
    LinuxGuest *guest = linux_guest_new(&plan);

    python->guest = guest;
    cache_library(guest);
    python->memory = linux_guest_alloc(guest, PYTHON_BYTES, PAGE);
    build_python(guest->memory->ram + python->memory, version, PYTHON_GVA, threads,
                 &python->layout);
    for (uint64_t at = 0; at < PYTHON_BYTES; at += PAGE)
        linux_guest_map(guest, guest->process_root, PYTHON_GVA + at, python->memory + at,
                        LINUX_USER);
    linux_guest_put(guest, guest->task + TASK_THREAD, PYTHON_POINTER);
    python->view = linux_view_new(guest);
    linux_view_sample(python->view, 0);
    linux_view_sample(python->view, 0);
    return python;
}

void
python_guest_free(PythonGuest *python)
{
    linux_view_free(python->view);
    linux_guest_free(python->guest);
    g_free(python);
}

static void
put_window(const PythonGuest *python, uint64_t gva, uint64_t gpa, size_t len)
{
    UprofSnapshot *snapshot = python->view->snapshot;
    const size_t offset = UPROF_SNAPSHOT_BYTES_MAX - uprof_snapshot_room(snapshot);

    memcpy(snapshot->bytes + offset, python->guest->memory->ram + gpa, len);
    snapshot->windows[snapshot->n_windows++] =
        (UprofWindow){ .gva = gva, .offset = (uint32_t)offset, .len = (uint32_t)len };
}

void
python_guest_begin(PythonGuest *python, bool has_copy)
{
    const uint64_t thread_at = python->guest->task + TASK_THREAD;
    LinuxView *view = python->view;

    view->time_ns += TIME_APART_NS;
    if (!python->keeps_memory)
        uprof_mem_forget(view->mem);
    linux_view_begin(view, 0);
    linux_view_copy_task(view, 0);
    if (!has_copy)
        return;
    put_window(python, LINUX_DIRECT + thread_at, thread_at, sizeof(uint64_t));
    put_window(python, PYTHON_GVA, python->memory, PYTHON_BYTES);
}
