/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-seeds.c - the seeds of corpus/elf and corpus/capture that are no text
 *
 * Usage: make-seeds CORPUS. Run by hand when a format or the builder changes;
 * the files are kept, since findings are kept beside them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "build-elf.h"
#include "uprof/capture.h"

/* clang-format off */
static const struct {
    const char *name;
    BuiltElfKind kind;
} elves[] = {
    { "64-little",        { .is_32 = false } },
    { "64-big",           { .big_endian = true } },
    { "32-little",        { .is_32 = true } },
    { "32-big",           { .is_32 = true, .big_endian = true } },
    { "64-stripped",      { .is_stripped = true } },
    { "32-stripped",      { .is_32 = true, .is_stripped = true } },
    { "wrapped",          { .is_wrapped = true } },
    { "wrapped-stripped", { .is_wrapped = true, .is_stripped = true } },
};
/* clang-format on */

static void
save(const char *corpus, const char *name, const GByteArray *bytes, size_t len)
{
    g_autofree char *path = g_build_filename(corpus, "elf", name, NULL);
    g_autoptr(GError) error = NULL;

    if (!g_file_set_contents(path, (const char *)bytes->data, len, &error))
        g_error("%s", error->message);
}

static void
make_elves(const char *corpus)
{
    for (size_t i = 0; i < G_N_ELEMENTS(elves); i++) {
        g_autoptr(GByteArray) file = build_elf(&elves[i].kind);
        g_autofree char *cut = g_strdup_printf("%s-cut", elves[i].name);

        save(corpus, elves[i].name, file, file->len);
        save(corpus, cut, file, file->len / 3);
    }
}

static void
make_capture(const char *corpus, const char *name, unsigned n_windows, unsigned len)
{
    g_autofree char *path = g_build_filename(corpus, "capture", name, NULL);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const uint8_t page[UPROF_CAPTURE_PAGE_BYTES] = { 0 };
    g_autoptr(GError) error = NULL;

    run->domain = g_strdup("web-1");
    run->ended_by = g_strdup("duration");
    const UprofRunImage *image = uprof_run_add_image(run, "[app]", "app", "00ff", "00");
    snapshot->weight = 1;
    snapshot->regs.word_bytes = 8;
    snapshot->n_windows = n_windows;
    for (unsigned i = 0; i < n_windows; i++)
        snapshot->windows[i] = (UprofWindow){ 0x1000 * (i + 1), i * len, len };

    if (!uprof_writer_run(writer, run, &error) || !uprof_writer_image(writer, image, &error) ||
        !uprof_writer_snapshot(writer, snapshot, &error) ||
        !uprof_writer_page(writer, 0x7000, n_windows > 1 ? page : NULL, &error) ||
        !uprof_writer_end(writer, run, &error) || !uprof_writer_flush(writer, &error))
        g_error("%s: %s", path, error->message);
    close(fd);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return EXIT_FAILURE;
    }
    make_elves(argv[1]);
    make_capture(argv[1], "no-window", 0, 0);
    make_capture(argv[1], "one-window", 1, 64);
    make_capture(argv[1], "four-windows", 4, 16);
    return EXIT_SUCCESS;
}
