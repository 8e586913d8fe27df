/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The whole analysis, from a capture to all outputs. The bits of the first byte: bit 0, a capture
 * follows; bits 1 to 3, the outputs that are left out; bit 4, symbol files that the capture names
 * exist. The second byte has the settings of the replay. Then comes the capture or, without bit 0,
 * a list of changes to a capture of a Linux guest, which the target makes. A change has 12 bytes:
 * 24 bits, the offset in the capture; a byte, whose bits 0 and 1 are SET to DOUBLE; and a value of
 * 64 bits.
 */
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check-outputs.h"
#include "linux-guest.h"
#include "memory-file.h"
#include "symbol-elf.h"
#include "uprof/capture-replay.h"
#include "uprof/regular-file.h"
#include "../../src/sampler/windows-priv.h"

enum {
    IS_CAPTURE = 1,
    LEFT_OUT_SHIFT = 1,
    HAS_FILES = 16,
    HEADER = 2,
    CHANGE_BYTES = 12,
    CHANGES_MAX = 64,
    PART_MAX = 8192, /* bytes that one DOUBLE copies */
    N_VCPUS = 2,
    N_SAMPLES = 6,
    STACK_BYTES = 16 * 1024,
    STACK_FRAMES = 12,
    FRAME_BYTES = 0x40,
};

/* Kinds of changes. CUT: the capture ends there. DOUBLE: a copy of a part is appended. */
enum { SET, XOR, CUT, DOUBLE, HOW = 3 };

/* Each replay searches for the guest's kernel, and reads some hundred KiB of the guest's memory. */
FuzzBounds
fuzz_bounds(void)
{
    return (FuzzBounds){
        .base_ms = 600,
        .us_per_kib = 50 * 1000,
        .base_kib = 24 * 1024,
        .bytes_per_byte = 4096,
        .n_mutations = 40,
    };
}

/* ---- The capture that changes ---- */

/* Writes frame records with return addresses into the kernel. Returns: the stack pointer */
static uint64_t
make_stack(LinuxGuest *guest)
{
    const uint64_t stack = linux_guest_alloc(guest, STACK_BYTES, STACK_BYTES);
    const uint64_t top = stack + STACK_BYTES - STACK_FRAMES * FRAME_BYTES;

    for (unsigned i = 0; i < STACK_FRAMES; i++) {
        const uint64_t frame = top + i * FRAME_BYTES;
        linux_guest_put(guest, frame, LINUX_DIRECT + frame + FRAME_BYTES);
        linux_guest_put(guest, frame + 8, LINUX_IMAGE + 0x40 + 0x24 * i);
    }
    return LINUX_DIRECT + top;
}

static void
record_sample(UprofPipeline *pipeline, LinuxGuest *guest, uint64_t stack, unsigned i)
{
    static UprofSnapshot snapshot;
    const UprofWindowSize size = { .wanted = UPROF_WINDOW_BYTES_MIN };
    const unsigned vcpu = i % N_VCPUS;
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->memory->base, UPROF_LANE_SAMPLER);
    g_autoptr(GError) error = NULL;

    linux_guest_run(guest, vcpu, guest->task, i % 3 != 0);
    if (i % 3 != 0)
        guest->memory->regs[vcpu].sp = guest->memory->regs[vcpu].fp = stack;
    uprof_snapshot_clear(&snapshot);
    snapshot.time_ns = (i + 1) * UPROF_MEM_KEEP_NS;
    snapshot.vcpu = vcpu;
    snapshot.weight = snapshot.count = 1;
    snapshot.idle = i == 4;
    snapshot.regs = guest->memory->regs[vcpu];
    uprof_windows_copy(mem, &size, *uprof_linux_links(pipeline->kernel), NULL, &snapshot);
    if (!uprof_pipeline_take(pipeline, &snapshot, &error))
        g_error("%s", error->message);
}

static void
record_guest(int fd)
{
    const LinuxPlan plan = { .n_vcpus = N_VCPUS, .n_modules = 1, .more_bytes = 4 * STACK_BYTES };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    const uint64_t stack = make_stack(guest);
    g_autoptr(GError) error = NULL;

    run->domain = g_strdup("web-1");
    run->arch = g_strdup("x86_64");
    run->unwind = g_strdup("auto");
    run->vcpus = N_VCPUS;
    run->rate_mhz = 99 * 1000;
    run->max_depth = 64;
    uprof_run_add_image(run, "[app]", "/app", NULL, NULL);
    g_autoptr(UprofPipeline) pipeline = uprof_pipeline_new(&guest->memory->base, run, writer);
    bool ok = uprof_pipeline_begin(pipeline, &error);
    for (unsigned i = 0; ok && i < N_SAMPLES; i++)
        record_sample(pipeline, guest, stack, i);
    uprof_pipeline_end(pipeline, UPROF_SYM_RESOLVE_MS);
    ok = ok && uprof_writer_end(writer, run, &error) && uprof_writer_flush(writer, &error);
    if (!ok)
        g_error("%s", error->message);
    g_assert(run->samples > 0 && run->by_orc + run->by_code + run->by_fp > 0);
}

static UprofSlice
get_recorded(void)
{
    static uint8_t *bytes;
    static size_t len;

    if (!bytes) {
        const int fd = memfd_create("fuzz-pipeline", MFD_CLOEXEC);
        record_guest(fd);
        len = (size_t)lseek(fd, 0, SEEK_END);
        bytes = g_malloc(len);
        g_assert(pread(fd, bytes, len, 0) == (ssize_t)len);
        close(fd);
    }
    return (UprofSlice){ bytes, len };
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
change_capture(GByteArray *capture, const uint8_t *change)
{
    const uint64_t value = read_number(change + 4, 8);
    const guint at = (guint)(read_number(change, 3) % capture->len);
    const guint left = capture->len - at;

    switch (change[3] & HOW) {
    case CUT:
        g_byte_array_set_size(capture, at + 1);
        break;
    case DOUBLE: {
        const guint len = (guint)(value % MIN(left, (guint)PART_MAX)) + 1;
        g_autofree uint8_t *part = g_memdup2(capture->data + at, len);
        g_byte_array_append(capture, part, len);
        break;
    }
    default:
        for (guint i = 0; i < MIN(left, 8U); i++) {
            const uint8_t byte = (uint8_t)(value >> 8 * i);
            uint8_t *into = &capture->data[at + i];
            *into = (change[3] & HOW) == SET ? byte : *into ^ byte;
        }
        break;
    }
}

/* Returns: (transfer full): the capture to replay */
static GByteArray *
make_capture(uint8_t kind, UprofSlice rest)
{
    const size_t n = MIN(rest.len / CHANGE_BYTES, (size_t)CHANGES_MAX);
    GByteArray *capture = g_byte_array_new();
    const UprofSlice from = kind & IS_CAPTURE ? rest : get_recorded();

    g_byte_array_append(capture, from.data, (guint)from.len);
    for (size_t i = 0; !(kind & IS_CAPTURE) && i < n; i++)
        change_capture(capture, (const uint8_t *)rest.data + i * CHANGE_BYTES);
    return capture;
}

/* ---- The replay ---- */

static const GByteArray *current; /* the capture */
static bool has_files;

static int
open_stub(const UprofFileRequest *request, void *data)
{
    static const ElfSymbol symbols[] = { { "main", 0x1000, 0x100, true } };
    const ElfPlan plan = {
        .text_gva = 0x1000,
        .text = (const uint8_t[]){ 0xc3 },
        .text_len = 1,
        .symbols = symbols,
        .n_symbols = 1,
    };

    if (strcmp(request->path, "/capture") == 0)
        return memory_file_open((UprofSlice){ current->data, current->len });
    if (!has_files || request->path[0] != '/') {
        errno = ENOENT;
        return -1;
    }
    g_autoptr(GByteArray) file = symbol_elf_new(&plan);
    return memory_file_open((UprofSlice){ file->data, file->len });
}

static void
check_notice(UprofNoticeKind kind, const char *text, void *data)
{
    g_assert(g_utf8_validate(text, -1, NULL) && !strchr(text, '\x1b') && !strchr(text, '\n'));
}

static void
check_run(const UprofRun *run)
{
    g_assert(run->running + run->idles == run->samples || run->samples == 0);
    g_assert(run->calls_agreed <= run->calls_checked && run->named <= run->frames);
    g_assert(run->images->len <= UPROF_SYM_SOURCES_MAX + UPROF_RUN_MODULES_MAX);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const methods[] = { NULL, "auto", "cfi", "fp" };

    if (size < HEADER)
        return;
    g_autoptr(GByteArray) capture =
        make_capture(data[0], (UprofSlice){ data + HEADER, size - HEADER });
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofNotices notices = { check_notice, NULL };
    const UprofReplaySettings settings = {
        .symbols = &symbols,
        .per_vcpu = data[1] & 1,
        .pids = data[1] & 2,
        .idle = data[1] & 4,
        .idle_stacks = data[1] & 8,
        .keeps_times = data[1] & 16,
        .unwind = methods[data[1] >> 5 & 3],
        .max_depth = data[1] & 128 ? 3 : 0,
        .annotate = "function_0005", /* of the guest's kernel, and it runs */
        .notices = &notices,
    };
    UprofErrorCode code;

    current = capture;
    has_files = data[0] & HAS_FILES;
    uprof_regular_file_delegate(open_stub, NULL);
    UprofCaptureReplay *replay = uprof_capture_replay_new("/capture", &settings, &code);
    g_assert(replay || code != UPROF_ERROR_NONE);
    if (!replay)
        return;
    check_run(replay->run);
    check_outputs(replay->pipeline->profile, replay->run, ~data[0] >> LEFT_OUT_SHIFT & CHECK_ALL);
    g_autoptr(UprofAnnotation) annotation =
        uprof_hot_places_annotate(replay->places, replay->pipeline->sym);
    check_annotation(annotation, replay->run);
    g_assert(uprof_annotation_self(annotation) <= uprof_profile_total(replay->pipeline->profile));
    uprof_capture_replay_free(replay);
}
