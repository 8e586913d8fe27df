/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/remote-priv.h"

#include <string.h>
#include <unistd.h>

#include "../../../src/worker/protocol-priv.h"
#include "uprof/arch.h"

enum {
    RAM_BYTES = 1024 * 1024,
    READS_MAX = 8, /* requests of one read */
};

/* A program that serves requests in a thread, with a memory that says where it is read. */
typedef struct {
    int ends[2];
    GThread *thread;
    UprofGuest *guest;
    guint n_requests;     /* atomic */
    bool is_late;         /* answers when no more requests come */
    unsigned n_early_max; /* requests that came before the answer to the first of them */
} Fixture;

static uint8_t
byte_at(uint64_t gpa)
{
    return (uint8_t)(gpa ^ gpa >> 8 ^ gpa >> 16);
}

static void
answer_request(const Fixture *fixture, const UprofReadSpan *wanted, unsigned n)
{
    static uint8_t bytes[UPROF_READ_BYTES_MAX];
    UprofReadAnswer answer = { 0 };
    size_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        answer.missing[i] = wanted[i].gpa + wanted[i].len > RAM_BYTES;
        for (uint32_t k = 0; k < wanted[i].len; k++)
            bytes[len++] = byte_at(wanted[i].gpa + k);
    }
    const UprofSlice parts[] = { { &answer, sizeof(answer) }, { bytes, len } };
    g_assert_true(uprof_channel_send(fixture->ends[1], 0, parts, G_N_ELEMENTS(parts), NULL, 0));
}

/* Waits for the second request, and a short time for one that must not come. */
static bool
has_request(const Fixture *fixture, unsigned n_before)
{
    GPollFD poll = { .fd = fixture->ends[1], .events = G_IO_IN };

    return g_poll(&poll, 1, n_before == 1 ? 10 * 1000 : 50) > 0 && !(poll.revents & G_IO_HUP);
}

static gpointer
serve_requests(gpointer data)
{
    static UprofReadSpan wanted[READS_MAX][UPROF_READ_SPANS_MAX];
    unsigned n_spans[READS_MAX], n = 0;
    Fixture *fixture = data;
    UprofMessage message;

    while (uprof_channel_receive(fixture->ends[1], &message, wanted[n], sizeof(wanted[n]))) {
        g_assert_cmpuint(message.type, ==, UPROF_ASK_READ);
        n_spans[n++] = (unsigned)(message.len / sizeof(wanted[0][0]));
        g_atomic_int_inc(&fixture->n_requests);
        if (fixture->is_late && n < READS_MAX && has_request(fixture, n))
            continue;
        fixture->n_early_max = MAX(fixture->n_early_max, n);
        for (unsigned i = 0; i < n; i++)
            answer_request(fixture, wanted[i], n_spans[i]);
        n = 0;
    }
    return NULL;
}

static void
fixture_init(Fixture *fixture, bool is_late)
{
    const UprofRemoteFacts facts = { .arch = uprof_arch_find("x86_64"), .n_vcpus = 1 };

    *fixture = (Fixture){ .is_late = is_late };
    g_assert_true(uprof_channel_new(fixture->ends, NULL));
    fixture->thread = g_thread_new("program", serve_requests, fixture);
    fixture->guest = uprof_remote_new(fixture->ends[0], &facts);
}

static void
fixture_clear(Fixture *fixture)
{
    uprof_guest_close(fixture->guest);
    close(fixture->ends[0]);
    g_thread_join(fixture->thread);
    close(fixture->ends[1]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, fixture_clear)

/* Reads @n spans of @lens bytes from rising addresses. */
static void
read_and_check(Fixture *fixture, const uint32_t *lens, unsigned n)
{
    g_autofree UprofSpan *spans = g_new0(UprofSpan, n);
    g_autofree uint8_t *bytes = g_malloc0(RAM_BYTES);
    uint64_t gpa = 0;

    for (unsigned i = 0; i < n; gpa += lens[i++])
        spans[i] = (UprofSpan){ .gpa = gpa, .into = bytes + gpa, .len = lens[i] };
    g_assert_cmpuint(gpa, <=, RAM_BYTES);
    uprof_guest_read(fixture->guest, UPROF_LANE_WORKER, spans, n);
    for (unsigned i = 0; i < n; i++)
        g_assert_false(spans[i].missing);
    for (uint64_t at = 0; at < gpa; at++)
        g_assert_cmphex(bytes[at], ==, byte_at(at));
}

/* Spans of all sizes: many in a request, a request of their own, and several requests. */
static void
test_sizes(void)
{
    enum { N = 20 };
    const uint32_t sizes[] = { 1, 4096, UPROF_READ_BYTES_MAX, UPROF_READ_BYTES_MAX + 1, 7 };
    uint32_t lens[N];
    g_auto(Fixture) fixture;

    fixture_init(&fixture, false);
    for (unsigned first = 0; first < G_N_ELEMENTS(sizes); first++) {
        for (unsigned i = 0; i < N; i++)
            lens[i] = sizes[(i + first) % G_N_ELEMENTS(sizes)];
        read_and_check(&fixture, lens, N);
        for (unsigned i = 0; i < N; i++)
            lens[i] = sizes[(i + first) % 2];
        read_and_check(&fixture, lens, N);
    }
}

/* While the program reads, the next request is on its way; but not one more. */
static void
test_ahead(void)
{
    enum { N = 4 };
    const uint32_t lens[N] = { UPROF_READ_BYTES_MAX, UPROF_READ_BYTES_MAX, UPROF_READ_BYTES_MAX,
                               UPROF_READ_BYTES_MAX };
    g_auto(Fixture) fixture;

    fixture_init(&fixture, true);
    read_and_check(&fixture, lens, N);
    g_assert_cmpuint(fixture.n_requests, ==, N);
    g_assert_cmpuint(fixture.n_early_max, ==, 2);
}

/* Many small spans need more than one request. */
static void
test_many(void)
{
    enum { N = 3 * UPROF_READ_SPANS_MAX + 1 };
    g_autofree uint32_t *lens = g_new(uint32_t, N);
    g_auto(Fixture) fixture;

    fixture_init(&fixture, false);
    for (unsigned i = 0; i < N; i++)
        lens[i] = 3;
    read_and_check(&fixture, lens, N);
    g_assert_cmpuint(fixture.n_requests, ==, 4);
}

/* Another read is made while one is on its way. Both get their bytes. */
static void
test_between(void)
{
    static uint8_t large[3 * UPROF_READ_BYTES_MAX], small[16];
    UprofSpan begun[] = {
        { .gpa = 0, .into = large, .len = UPROF_READ_BYTES_MAX },
        { .gpa = UPROF_READ_BYTES_MAX,
          .into = large + UPROF_READ_BYTES_MAX,
          .len = 2 * UPROF_READ_BYTES_MAX },
    };
    UprofSpan other = { .gpa = 77, .into = small, .len = sizeof(small) };
    g_auto(Fixture) fixture;

    fixture_init(&fixture, false);
    uprof_guest_begin_read(fixture.guest, begun, G_N_ELEMENTS(begun));
    while (g_atomic_int_get(&fixture.n_requests) == 0) /* it comes before the end of the read */
        g_usleep(1000);
    uprof_guest_read(fixture.guest, UPROF_LANE_WORKER, &other, 1);
    g_assert_cmphex(small[5], ==, byte_at(82));
    uprof_guest_end_read(fixture.guest);
    uprof_guest_read(fixture.guest, UPROF_LANE_WORKER, &other, 1);
    for (uint64_t at = 0; at < sizeof(large); at++)
        g_assert_cmphex(large[at], ==, byte_at(at));
    g_assert_false(begun[0].missing || begun[1].missing || other.missing);
}

static void
test_missing(void)
{
    uint8_t bytes[3][16];
    UprofSpan spans[] = {
        { .gpa = 16, .into = bytes[0], .len = 16 },
        { .gpa = RAM_BYTES - 8, .into = bytes[1], .len = 16 },
        { .gpa = 32, .into = bytes[2], .len = 16 },
    };
    g_auto(Fixture) fixture;

    fixture_init(&fixture, false);
    uprof_guest_read(fixture.guest, UPROF_LANE_WORKER, spans, G_N_ELEMENTS(spans));
    g_assert_false(spans[0].missing);
    g_assert_true(spans[1].missing);
    g_assert_false(spans[2].missing);
    g_assert_cmphex(bytes[2][1], ==, byte_at(33));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/remote/sizes", test_sizes);
    g_test_add_func("/remote/ahead", test_ahead);
    g_test_add_func("/remote/many", test_many);
    g_test_add_func("/remote/between", test_between);
    g_test_add_func("/remote/missing", test_missing);
    return g_test_run();
}
