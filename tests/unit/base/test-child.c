/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uprof/child.h"

/* A build with address sanitizer limits neither memory nor system calls. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_LIMITED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_LIMITED false
#endif
#endif
#ifndef IS_LIMITED
#define IS_LIMITED true
#endif

enum { MANY = 300 * 1000, MIB = 1024 * 1024 };

#define put_text(output, text) uprof_child_put(output, text, strlen(text))

static int counter; /* the child increments its own copy */

static void
put_all(UprofChildOutput *output, void *data)
{
    const char *text = data;

    counter++;
    put_text(output, "before ");
    put_text(output, text);
}

static void
put_many_numbers(UprofChildOutput *output, void *data)
{
    for (uint32_t i = 0; i < MANY; i++)
        uprof_child_put(output, &i, sizeof(i));
}

/* The child writes its answer in blocks of 64 KiB. Only written blocks survive its death. */
static void
put_block(UprofChildOutput *output)
{
    g_autofree char *text = g_strnfill(64 * 1024, 'x');

    put_text(output, text);
}

static void
raise_fault(UprofChildOutput *output, void *data)
{
    put_block(output);
    raise(SIGSEGV);
}

static void
loop_forever(UprofChildOutput *output, void *data)
{
    put_block(output);
    for (;;)
        __asm__ volatile("");
}

static void
sleep_long(UprofChildOutput *output, void *data)
{
    put_block(output);
    pause(); /* fails at once */
    for (volatile unsigned i = 0; i < 10; i++)
        ;
    put_text(output, "awake");
}

static void
take_memory(UprofChildOutput *output, void *data)
{
    put_block(output);
    for (unsigned i = 0; i < 100; i++)
        memset(g_malloc(10 * MIB), 1, 10 * MIB);
    put_text(output, "enough");
}

/* Each call that succeeds adds its digit to the answer. */
static void
make_forbidden_calls(UprofChildOutput *output, void *data)
{
    const int *fd = data;
    uint8_t byte = 0;

    if (open("/etc/passwd", O_RDONLY) >= 0)
        put_text(output, "1");
    if (read(*fd, &byte, 1) >= 0)
        put_text(output, "2");
    if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
        put_text(output, "3");
    if (kill(getppid(), 0) == 0)
        put_text(output, "4");
    const pid_t pid = fork();
    if (pid >= 0)
        put_text(output, "5");
    if (write(*fd, "x", 1) > 0)
        put_text(output, "6");
    put_text(output, "done");
}

static void
write_shared(UprofChildOutput *output, void *data)
{
    put_block(output);
    *(volatile char *)data = 1;
    put_text(output, "written");
}

static GByteArray *
run_work(void (*work)(UprofChildOutput *, void *), void *data, UprofChildEnd *end)
{
    const UprofChildPlan plan = { .work = work,
                                  .data = data,
                                  .memory_max = 200 * MIB,
                                  /* only loop_forever() reaches this limit */
                                  .time_max_ms = work == loop_forever ? 2000 : 60 * 1000,
                                  .answer_max = 2 * MIB };
    g_autoptr(GError) error = NULL;
    GByteArray *answer = uprof_child_run(&plan, end, &error);

    g_assert_no_error(error);
    return answer;
}

static void
test_answer(void)
{
    char text[] = "after";
    UprofChildEnd end;
    g_autoptr(GByteArray) answer = run_work(put_all, text, &end);

    g_assert_cmpint(end, ==, UPROF_CHILD_DONE);
    g_assert_cmpmem(answer->data, answer->len, "before after", 12);
    g_assert_cmpint(counter, ==, 0);
}

static void
test_long_answer(void)
{
    UprofChildEnd end;
    g_autoptr(GByteArray) answer = run_work(put_many_numbers, NULL, &end);
    uint32_t last;

    g_assert_cmpint(end, ==, UPROF_CHILD_DONE);
    g_assert_cmpuint(answer->len, ==, MANY * sizeof(last));
    memcpy(&last, answer->data + answer->len - sizeof(last), sizeof(last));
    g_assert_cmpuint(last, ==, MANY - 1);
}

static void
test_wordy(void)
{
    const UprofChildPlan plan = {
        .work = put_many_numbers, .memory_max = 200 * MIB, .time_max_ms = 10000, .answer_max = MIB
    };
    UprofChildEnd end;
    g_autoptr(GByteArray) answer = uprof_child_run(&plan, &end, NULL);

    g_assert_cmpint(end, ==, UPROF_CHILD_WORDY);
    g_assert_cmpuint(answer->len, <=, MIB);
    g_assert_cmpuint(answer->len, >, MIB - 128 * 1024);
}

/* clang-format off */
static const struct {
    const char *name;
    void (*work)(UprofChildOutput *output, void *data);
    UprofChildEnd end;
} ends[] = {
    { "crash",  raise_fault, UPROF_CHILD_DIED },
    { "loop",   loop_forever, UPROF_CHILD_SLOW },
    { "memory", take_memory, UPROF_CHILD_DIED }, /* last: needs the limit */
};
/* clang-format on */

static void
test_end(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofChildEnd end;
    g_autoptr(GByteArray) answer = run_work(ends[i].work, NULL, &end);

    g_assert_cmpint(end, ==, ends[i].end);
    g_assert_cmpuint(answer->len, ==, 64 * 1024);
}

static void
test_shared_memory(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UprofChildEnd end;

    g_assert_true(page != MAP_FAILED);
    g_autoptr(GByteArray) answer = run_work(write_shared, page, &end);
    g_assert_cmpint(end, ==, UPROF_CHILD_DIED);
    g_assert_cmpuint(answer->len, ==, 64 * 1024);
    g_assert_cmpint(page[0], ==, 0);
    munmap(page, 4096);
}

static void
test_rights(void)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
    UprofChildEnd end;

    g_assert_cmpint(fd, >, 2);
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 20);
    g_autoptr(GByteArray) answer = run_work(make_forbidden_calls, &fd, &end);
    g_assert_cmpint(end, ==, UPROF_CHILD_DONE);
    g_assert_cmpmem(answer->data, answer->len, "done", 4);
    g_autoptr(GByteArray) awake = run_work(sleep_long, NULL, &end);
    g_assert_cmpint(end, ==, UPROF_CHILD_DONE);
    g_assert_cmpuint(awake->len, ==, 64 * 1024 + 5);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/child/answer", test_answer);
    g_test_add_func("/child/long-answer", test_long_answer);
    g_test_add_func("/child/wordy", test_wordy);
    g_test_add_func("/child/shared-memory", test_shared_memory);
    for (size_t i = 0; i < G_N_ELEMENTS(ends) - !IS_LIMITED; i++) {
        g_autofree char *path = g_strdup_printf("/child/end/%s", ends[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_end);
    }
    if (IS_LIMITED)
        g_test_add_func("/child/rights", test_rights);
    return g_test_run();
}
