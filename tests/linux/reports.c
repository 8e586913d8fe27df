/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints facts about the Linux guest as its kernel reports them. virt-uprof must find the same
 * facts from outside.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "init.h"

/* https://www.rfc-editor.org/rfc/rfc9923, FNV-1a of 64 bits */
static const uint64_t fnv_offset = 0xcbf29ce484222325;
static const uint64_t fnv_prime = 0x100000001b3;

enum {
    NOTES_MAX = 4096,
    PATH_BYTES = 64,
    NOTE_HEADER = 12, /* elf(5): n_namesz, n_descsz, n_type */
    NOTE_BUILD_ID = 3,
    COMM_BYTES = 16,     /* Linux, TASK_COMM_LEN */
    RECORD_BYTES = 8192, /* of /dev/kmsg, with the names of devices */
    RECORDS_WRITTEN = 6000,
};

/* Opens a file that must exist. */
static FILE *
open_file(const char *path)
{
    FILE *file = fopen(path, "re");

    if (!file)
        die(path);
    return file;
}

void
report_release(void)
{
    struct utsname names;

    if (uname(&names) != 0)
        die("uname");
    printf("RELEASE %s\n", names.release);
}

/* Returns: bytes of a note in the file, with padding */
static size_t
padded(uint32_t len)
{
    return ((size_t)len + 3) & ~(size_t)3;
}

void
report_build_id(void)
{
    static unsigned char notes[NOTES_MAX];
    FILE *file = open_file("/sys/kernel/notes");
    const size_t len = fread(notes, 1, sizeof(notes), file);
    uint32_t header[3];

    fclose(file);
    for (size_t at = 0; at + NOTE_HEADER <= len;
         at += NOTE_HEADER + padded(header[0]) + padded(header[1])) {
        memcpy(header, notes + at, sizeof(header));
        const unsigned char *name = notes + at + NOTE_HEADER;
        if (header[2] != NOTE_BUILD_ID || header[0] != 4 || memcmp(name, "GNU", 4) != 0)
            continue;
        printf("BUILDID ");
        for (uint32_t i = 0; i < header[1]; i++)
            printf("%02x", name[4 + i]);
        printf("\n");
        return;
    }
    errno = ENOENT;
    die("the kernel's build-id");
}

/* Returns: true if /proc/cpuinfo has the flag @word */
static bool
processor_has(const char *word)
{
    FILE *file = open_file("/proc/cpuinfo");
    char *line = NULL;
    size_t size = 0;
    bool found = false;

    while (!found && getline(&line, &size, file) > 0) {
        if (strncmp(line, "flags", 5) != 0)
            continue;
        for (char *rest = line, *flag; !found && (flag = strsep(&rest, " \n"));)
            found = strcmp(flag, word) == 0;
    }
    free(line);
    fclose(file);
    return found;
}

/* A kernel with four levels of page tables clears the flag la57. */
void
report_paging(void)
{
    printf("LEVELS %d\n", processor_has("la57") ? 5 : 4);
    printf("PTI %s\n", processor_has("pti") ? "on" : "off");
}

/* Symbols of modules and of BPF end in a name in brackets. */
static bool
is_of_kernel(const char *line, ssize_t len)
{
    return len < 2 || line[len - 2] != ']';
}

void
report_kallsyms(void)
{
    FILE *file = open_file("/proc/kallsyms");
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    uint64_t hash = fnv_offset;
    unsigned n_lines = 0;

    while ((len = getline(&line, &size, file)) > 0) {
        if (!is_of_kernel(line, len))
            continue;
        for (ssize_t i = 0; i < len; i++)
            hash = (hash ^ (unsigned char)line[i]) * fnv_prime;
        n_lines++;
    }
    free(line);
    fclose(file);
    printf("KALLSYMS %016" PRIx64 " %u\n", hash, n_lines);
}

/*
 * Reads the name that the kernel stores in the task. For the kernel's own threads /proc shows more
 * than that name: long names in full, and the present work of a worker behind '-' or '+'. The '-'
 * in "kworker/R-..." (v6.9) belongs to the name.
 */
static bool
read_comm(const char *path, char comm[COMM_BYTES])
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;

    if (!file)
        return false;
    const bool found = getline(&line, &size, file) > 0;
    fclose(file);
    if (found) {
        static const char worker[] = "kworker/";
        size_t len = strcspn(line, "\n");
        if (strncmp(line, worker, sizeof(worker) - 1) == 0 && line[sizeof(worker) - 1] != 'R')
            len = strcspn(line, "-+\n");
        if (len > COMM_BYTES - 1)
            len = COMM_BYTES - 1;
        memcpy(comm, line, len);
        comm[len] = '\0';
    }
    free(line);
    return found;
}

static void
report_threads(const char *pid)
{
    char path[2 * PATH_BYTES], comm[COMM_BYTES];

    snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return; /* the process has ended */
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%.16s/task/%.16s/comm", pid, entry->d_name);
        if (!read_comm(path, comm))
            continue;
        if (strcmp(entry->d_name, pid) == 0)
            printf("TASK %s %s\n", pid, comm);
        else
            printf("THREAD %s %s %s\n", entry->d_name, pid, comm);
    }
    closedir(folder);
}

void
report_tasks(void)
{
    DIR *folder = opendir("/proc");

    if (!folder)
        die("/proc");
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (isdigit((unsigned char)entry->d_name[0]))
            report_threads(entry->d_name);
    }
    closedir(folder);
}

void
report_maps(pid_t pid)
{
    char path[PATH_BYTES];
    char *line = NULL;
    size_t size = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = open_file(path);
    while (getline(&line, &size, file) > 0)
        printf("MAP %d %s", (int)pid, line);
    free(line);
    fclose(file);
}

/* Each read gives one record, or an error if the next one was overwritten. */
void
report_log(void)
{
    char record[RECORD_BYTES];
    const int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (log < 0)
        die("/dev/kmsg");
    for (;;) {
        const ssize_t len = read(log, record, sizeof(record) - 1);
        if (len < 0 && errno == EPIPE)
            continue;
        if (len <= 0)
            break;
        record[len] = '\0';
        printf("LOG %.*s\n", (int)strcspn(record, "\n"), record);
    }
    close(log);
}

/* By default, the kernel takes only a few records a second. */
static void
allow_records(void)
{
    const int file = open("/proc/sys/kernel/printk_devkmsg", O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, "on\n", 3) != 3)
        die("printk_devkmsg");
    close(file);
}

void
write_log(void)
{
    static const char padding[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789";
    const int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    char record[RECORD_BYTES];

    allow_records();
    if (log < 0)
        die("/dev/kmsg");
    for (unsigned i = 0; i < RECORDS_WRITTEN; i++) {
        const char *end = i % 100 == 0 ? "\nlast \033[31mline \303\244\001\\" : "";
        const int len = snprintf(record, sizeof(record), "<%u>record %u %.*s%s", i % 8, i,
                                 (int)(i * 7 % sizeof(padding)), padding, end);
        if (write(log, record, (size_t)len) != len)
            die("write to /dev/kmsg");
    }
    close(log);
}

/* ---- States ---- */

/*
 * Prints a file of a thread on the present line, behind a key: with escapes, so that a line stays a
 * line. A file that cannot be read has no text.
 */
static void
print_file(const char *folder, const char *name)
{
    char path[3 * PATH_BYTES];
    int c;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    printf(" %s=", name);
    while (file && (c = fgetc(file)) != EOF)
        printf(c > ' ' && c < 0x7f && c != '%' ? "%c" : "%%%02x", c);
    if (file)
        fclose(file);
}

static void
report_state(const char *pid, const char *tid)
{
    static const char *const files[] = { "stat", "status", "wchan", "syscall", "stack", "cgroup" };
    char folder[2 * PATH_BYTES];

    snprintf(folder, sizeof(folder), "/proc/%.16s/task/%.16s", pid, tid);
    printf("STATE %s %s", pid, tid);
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        print_file(folder, files[i]);
    printf("\n");
}

static void
report_states_of(const char *pid)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return; /* the process has ended */
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (isdigit((unsigned char)entry->d_name[0]))
            report_state(pid, entry->d_name);
    }
    closedir(folder);
}

void
report_states(void)
{
    DIR *folder = opendir("/proc");

    if (!folder)
        die("/proc");
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (isdigit((unsigned char)entry->d_name[0]))
            report_states_of(entry->d_name);
    }
    closedir(folder);
}
