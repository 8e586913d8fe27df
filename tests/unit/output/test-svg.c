/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <string.h>

#include "uprof/clock.h"
#include "uprof/output.h"

enum { FILE_BYTES_MAX = 3 * 1000 * 1000 };

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
} Fixture;

static void
init_fixture(Fixture *fixture, const char *root)
{
    fixture->names = uprof_names_new();
    fixture->run = uprof_run_new();
    fixture->run->domain = g_strdup(root);
    fixture->profile = uprof_profile_new(
        fixture->names, uprof_names_intern(fixture->names, (UprofSlice){ root, strlen(root) }),
        false);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_profile_free(fixture->profile);
    uprof_names_free(fixture->names);
    uprof_run_free(fixture->run);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
add(const Fixture *fixture, const char *one, const char *other, uint64_t weight)
{
    const UprofName *frames[] = {
        uprof_names_intern(fixture->names, (UprofSlice){ one, strlen(one) }),
        other ? uprof_names_intern(fixture->names, (UprofSlice){ other, strlen(other) }) : NULL,
    };

    uprof_profile_add(fixture->profile, frames, other ? 2 : 1, weight);
}

/* A document with the context that XPath needs */
typedef struct {
    GString *text;
    xmlDocPtr document;
    xmlXPathContextPtr context;
} Page;

static void
clear_page(Page *page)
{
    xmlXPathFreeContext(page->context);
    xmlFreeDoc(page->document);
    g_string_free(page->text, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Page, clear_page)

static void
open_page(Page *page, GString *text)
{
    page->text = text;
    page->document = xmlReadMemory(text->str, (int)text->len, "page", NULL, XML_PARSE_NONET);
    g_assert_nonnull(page->document);
    page->context = xmlXPathNewContext(page->document);
    xmlXPathRegisterNs(page->context, BAD_CAST "s", BAD_CAST "http://www.w3.org/2000/svg");
    xmlXPathRegisterNs(page->context, BAD_CAST "u",
                       BAD_CAST "https://virt-uprof.org/xmlns/flamegraph/2.0");
}

static char *
ask(const Page *page, const char *path)
{
    g_autofree char *whole = g_strdup_printf("string(%s)", path);
    xmlXPathObjectPtr answer = xmlXPathEvalExpression(BAD_CAST whole, page->context);
    g_assert_nonnull(answer);
    char *text = g_strdup((const char *)answer->stringval);

    xmlXPathFreeObject(answer);
    return text;
}

static unsigned
count(const Page *page, const char *path)
{
    g_autofree char *whole = g_strdup_printf("count(%s)", path);
    xmlXPathObjectPtr answer = xmlXPathEvalExpression(BAD_CAST whole, page->context);
    g_assert_nonnull(answer);
    const unsigned n = (unsigned)answer->floatval;

    xmlXPathFreeObject(answer);
    return n;
}

/* Renders twice: the bytes must be equal, and well-formed XML. */
static void
render(const Fixture *fixture, Page *page)
{
    GString *text = uprof_output_render(&uprof_format_svg, fixture->profile, fixture->run);
    GString *again = uprof_output_render(&uprof_format_svg, fixture->profile, fixture->run);

    g_assert_true(g_string_equal(text, again));
    g_string_free(again, TRUE);
    open_page(page, text);
}

/* clang-format off */
static const char *const hostile[] = {
    "plain", "a;b", "a\nb", "", " ", "\t", "\x1b[31m", "\x7f", "a\xc2\x9b" "31m", "\xff\xfe",
    "\xe2\x80\xae" "evil", "[unknown]", "a_[k]", "$(id)", "<script>alert(1)</script>",
    "</title><script>alert(1)</script>", "]]></style><script>alert(1)</script>", "-->", "<!--",
    "&amp;", "&#60;", "\" onload=\"alert(1)", "' onclick='alert(1)", "javascript:alert(1)", "%s%n",
    "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", "a\xe2\x80\xa8" "b", "]]>",
};

/* The only attributes, none of which may contain a name. */
static const char *const attributes[] = {
    "class", "x", "y", "width", "height", "rx", "id", "viewBox", "text-anchor", "type", "all", "sent",
    "idle", "d",
};
/* clang-format on */

static void
check_harmless(const Page *page)
{
    GString *known = g_string_new("//@*[true()");

    for (size_t i = 0; i < G_N_ELEMENTS(attributes); i++)
        g_string_append_printf(known, " and name() != '%s'", attributes[i]);
    g_string_append(known, "]");
    g_assert_cmpuint(count(page, known->str), ==, 0);
    g_string_free(known, TRUE);
    g_assert_cmpuint(count(page, "//s:script"), ==, 1);
    g_assert_cmpuint(count(page, "/s:svg/s:script"), ==, 1);
    g_assert_cmpuint(count(page, "//s:style"), ==, 1);
    g_assert_cmpuint(count(page, "//comment() | //processing-instruction()"), ==, 0);
    g_assert_cmpuint(count(page, "//@*[contains(., 'alert')]"), ==, 0);
    g_assert_cmpuint(count(page, "//s:script[contains(., 'alert')]"), ==, 0);
    g_assert_cmpuint(count(page, "//s:image | //s:a | //s:use | //s:foreignObject"), ==, 0);
}

static void
test_hostile(void)
{
    g_autofree char *script = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_auto(Fixture) fixture = { 0 };
        g_auto(Page) page = { 0 };
        init_fixture(&fixture, hostile[i]);
        fixture.run->samples = fixture.run->running = 12;
        fixture.run->access = g_strdup(hostile[i]);
        for (size_t j = 0; j < G_N_ELEMENTS(hostile); j++)
            add(&fixture, hostile[i], hostile[j], j + 1);
        render(&fixture, &page);
        check_harmless(&page);
        /* the root, the frame above it, and most of the names above that */
        g_assert_cmpuint(count(&page, "//s:g[@id='f']/s:g"), >, G_N_ELEMENTS(hostile) - 5);
        g_assert_cmpuint(count(&page, "//s:g[@id='f']/s:g"), <=, G_N_ELEMENTS(hostile) + 2);
        g_autofree char *this_script = ask(&page, "//s:script");
        g_assert_true(!script || strcmp(script, this_script) == 0);
        g_free(script);
        script = g_steal_pointer(&this_script);
    }
}

static void
test_frames(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&fixture, "web-1");
    fixture.run->samples = fixture.run->running = 100;
    add(&fixture, "main", "work", 60);
    add(&fixture, "main", NULL, 15);
    add(&fixture, "[idle]", NULL, 25);
    render(&fixture, &page);

    g_autofree char *title = ask(&page, "//s:g[@id='f']/s:g[1]/s:title");
    g_assert_cmpstr(title, ==, "web-1 (100 samples, 100.0 %)");
    g_autofree char *width = ask(&page, "//s:g[@id='f']/s:g[s:text='work']/s:rect/@width");
    g_autofree char *x = ask(&page, "//s:g[@id='f']/s:g[s:text='{idle]']/s:rect/@x");
    g_assert_cmpstr(width, ==, "705.1"); /* 60 % of 1176 pixels, minus the gap */
    g_assert_cmpstr(x, ==, "894");       /* right of main */
    g_autofree char *hidden = ask(&page, "//s:text[@id='hidden']");
    g_assert_cmpstr(hidden, ==, "all frames shown");
    g_autofree char *table = ask(&page, "//u:frames");
    /* names: main, web-1, work, {idle]; 60 is 28, with 32 for a further digit, and 1 */
    g_assert_cmpstr(table, ==, "BAAAAPCA8BDEZ");
    g_autofree char *names = ask(&page, "//u:names");
    g_auto(GStrv) lines = g_strsplit(names, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 5);
    g_assert_true(g_str_has_prefix(lines[1], "d") && g_str_has_suffix(lines[1], "Aweb-1"));
    g_assert_true(g_str_has_prefix(lines[2], "a") && g_str_has_suffix(lines[2], "Bork"));
    g_autofree char *run = ask(&page, "//u:run");
    g_assert_nonnull(strstr(run, "\"name\": \"web-1\""));
}

/* The times of samples are a table and a heat map; halted vCPUs are counted beside the stacks. */
static void
test_times(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&fixture, "vm");
    fixture.run->rate_mhz = 1000 * 1000;
    fixture.run->samples = 3;
    fixture.run->running = 2;
    fixture.run->idles = 1;
    uprof_profile_keep_times(fixture.profile);
    const UprofName *main = uprof_names_marker(fixture.names, "main");
    const UprofName *idle = uprof_names_marker(fixture.names, "[idle]");
    uprof_profile_add_tick(fixture.profile, &main, 1, (UprofTick){ 5, 0, 2, 1 }, true);
    uprof_profile_add_tick(fixture.profile, &idle, 1, (UprofTick){ 5, 1, 1, 1 }, false);
    uprof_profile_add_untimed(fixture.profile, 7);
    render(&fixture, &page);
    check_harmless(&page);
    g_autofree char *time = ask(&page, "//u:time");
    g_assert_cmpstr(time, ==, "yBUBH\nFBAAAAAAAAAAAAAAAAAAA\n");
    g_autofree char *stacks = ask(&page, "//u:stacks");
    g_assert_true(g_str_has_prefix(stacks, "FC\n\n"));
    g_autofree char *idles = ask(&page, "//u:graph/@idle");
    g_assert_cmpstr(idles, ==, "1");
    g_assert_cmpuint(count(&page, "//s:g[@id='time']/s:path[@class='e6']"), ==, 1);
    g_assert_cmpuint(count(&page, "//s:text[contains(., '7 samples have no time')]"), ==, 1);
}

static void
test_empty(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&fixture, "vm");
    render(&fixture, &page);
    check_harmless(&page);
    g_assert_cmpuint(count(&page, "//s:g[@id='f']/s:g"), ==, 0);
    g_autofree char *note = ask(&page, "//s:text[@id='hidden']");
    g_assert_cmpstr(note, ==, "no vCPU ran: the profile has no stacks");
}

/* A picture of waits has times in place of samples. */
static void
test_waits(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 }, empty = { 0 };

    init_fixture(&fixture, "vm");
    fixture.run->is_waits = true;
    fixture.run->idles = 5;
    fixture.run->waits = (UprofRunWaits){ .walks = 7, .tasks = 700, .total_us = 2500000 };
    render(&fixture, &empty);
    g_autofree char *note = ask(&empty, "//s:text[@id='hidden']");
    g_assert_cmpstr(note, ==, "no task was seen to wait: the profile has no stacks");
    add(&fixture, "[sleeping]", "nginx", 2500000);
    render(&fixture, &page);
    g_autofree char *title = ask(&page, "//s:g[s:text='nginx']/s:title");
    g_autofree char *tasks = ask(&page, "//s:g[s:text[1]='tasks in a walk']/s:text[2]");
    g_autofree char *unit = ask(&page, "//u:graph/@unit");
    g_autofree char *idle = ask(&page, "//u:graph/@idle");
    g_assert_cmpstr(title, ==, "nginx (2.500 s, 100.0 %)");
    g_assert_cmpstr(tasks, ==, "100");
    g_assert_cmpstr(unit, ==, "us");
    g_assert_cmpstr(idle, ==, "0");
    g_assert_cmpuint(count(&page, "//s:g[s:text[1]='samples']"), ==, 0);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t frames, named;
    uint64_t duration_ns, held_ns;
    uint64_t n_holds, hold_ns; /* holds, all of this length */
    const char *names_fact, *holds_fact; /* "": the picture lacks the fact */
} qualities[] = {
    { "unknown",      0,    0,    0,                   0,                    0,    0,       "",         "" },
    { "no-holds",     4000, 0,    10 * UPROF_NS_PER_S, 0,                    0,    0,       "0.0 %",    "" },
    { "no-duration",  4000, 3990, 0,                   0,                    1000, 20000,   "99.8 %",   "" },
    { "sum-of-holds", 4000, 4000, 10 * UPROF_NS_PER_S, 0,                    1000, 20000,   "100.0 %",  "0.20 %, median 20 us" },
    { "longest-held", 1,    1,    10 * UPROF_NS_PER_S, 7 * UPROF_NS_PER_MS, 1000, 20000,   "100.0 %",  "0.07 %, median 20 us" },
    { "long-holds",   3,    2,    UPROF_NS_PER_S,      0,                    100,  1200000, "66.7 %",   "12.00 %, median 1.2 ms" },
};
/* clang-format on */

/* The quality of a run is two of its facts. */
static void
test_quality(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(qualities); i++) {
        g_auto(Fixture) fixture = { 0 };
        g_auto(Page) page = { 0 };

        g_test_message("%s", qualities[i].name);
        init_fixture(&fixture, "vm");
        fixture.run->frames = qualities[i].frames;
        fixture.run->named = qualities[i].named;
        fixture.run->duration_ns = qualities[i].duration_ns;
        fixture.run->held_ns = qualities[i].held_ns;
        uprof_histogram_add_many(&fixture.run->hold, qualities[i].hold_ns, qualities[i].n_holds);
        render(&fixture, &page);
        g_autofree char *names = ask(&page, "//s:g[s:text[1]='frames named']/s:text[2]");
        g_autofree char *holds = ask(&page, "//s:g[s:text[1]='vCPU held']/s:text[2]");
        g_assert_cmpstr(names, ==, qualities[i].names_fact);
        g_assert_cmpstr(holds, ==, qualities[i].holds_fact);
    }
}

/* Labels are cut between characters, and fit. */
static void
test_labels(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };
    g_autofree char *wide = g_strnfill(300, 'w');
    GString *cjk = g_string_new(NULL);

    for (unsigned i = 0; i < 100; i++)
        g_string_append(cjk, "\xe6\xbc\xa2");
    init_fixture(&fixture, "vm");
    add(&fixture, wide, NULL, 100);
    add(&fixture, cjk->str, NULL, 100);
    add(&fixture, "tiny_function", NULL, 4);
    g_string_free(cjk, TRUE);
    render(&fixture, &page);
    g_assert_cmpuint(count(&page, "//s:g[@id='f']/s:g/s:text"), ==, 3);
    g_autofree char *one = ask(&page, "//s:g[@id='f']//s:text[starts-with(., 'w')]");
    g_autofree char *other = ask(&page, "//s:g[@id='f']//s:text[starts-with(., '\xe6\xbc\xa2')]");
    g_assert_true(g_str_has_suffix(one, "w..") && g_str_has_suffix(other, "\xe6\xbc\xa2.."));
    g_assert_cmpuint(strlen(one), >=, 70);
    g_assert_cmpuint(strlen(one), <=, 90);
    g_assert_cmpuint(g_utf8_strlen(other, -1), >=, 36);
    g_assert_cmpuint(g_utf8_strlen(other, -1), <=, 46);
}

static void
add_chain(const Fixture *fixture, unsigned number, size_t name_len)
{
    const UprofName *frames[4];

    for (unsigned i = 0; i < G_N_ELEMENTS(frames); i++) {
        g_autofree char *fill = g_strnfill(name_len, 'x');
        g_autofree char *name = g_strdup_printf("f%u_%s", number >> (3 * (3 - i)), fill);
        frames[i] = uprof_names_intern(fixture->names, (UprofSlice){ name, strlen(name) });
    }
    uprof_profile_add(fixture->profile, frames, G_N_ELEMENTS(frames), 1 + number % 7);
}

/* Frames of a few pixels are one shape for each color; each frame is still in the table. */
static void
test_tiny_frames(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&fixture, "vm");
    add(&fixture, "wide", NULL, 990);
    for (unsigned i = 0; i < 10; i++) {
        g_autofree char *name = g_strdup_printf("tiny%u_[k]", i);
        add(&fixture, name, NULL, 1);
    }
    render(&fixture, &page);
    check_harmless(&page);
    g_autofree char *sent = ask(&page, "//u:graph/@sent");
    g_assert_cmpstr(sent, ==, "12");
    g_assert_cmpuint(count(&page, "//s:g[@id='f']/s:g"), ==, 2);
    const unsigned n_colors = count(&page, "//s:g[@id='f']/s:path");
    g_assert_cmpuint(n_colors, >=, 1);
    g_assert_cmpuint(n_colors, <=, 8);
    unsigned n_shapes = 0;
    for (unsigned i = 1; i <= n_colors; i++) {
        g_autofree char *path = g_strdup_printf("//s:g[@id='f']/s:path[%u]/@d", i);
        g_autofree char *shape = ask(&page, path);
        g_auto(GStrv) parts = g_strsplit(shape, "z", -1);
        n_shapes += g_strv_length(parts) - 1;
    }
    g_assert_cmpuint(n_shapes, ==, 10);
}

/* A function of many frames that do not fit into the table is in the table of functions. */
static void
test_hot_function(void)
{
    enum { CALLERS = 5000, NAME_LEN = 1000 };
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };
    g_autofree char *fill = g_strnfill(NAME_LEN, 'x');

    init_fixture(&fixture, "vm");
    for (unsigned i = 0; i < CALLERS; i++) {
        g_autofree char *caller = g_strdup_printf("caller%u_%s", i, fill);
        add(&fixture, caller, "hot", 2);
        add(&fixture, caller, NULL, 1);
    }
    render(&fixture, &page);
    g_autofree char *sent = ask(&page, "//u:graph/@sent");
    g_assert_cmpint(g_ascii_strtoll(sent, NULL, 10), <, CALLERS);
    g_autofree char *names = ask(&page, "//u:names");
    g_auto(GStrv) lines = g_strsplit(names, "\n", -1);
    const guint n = g_strv_length(lines) - 1;
    g_assert_true(g_str_has_suffix(lines[n - 2], "Ahot"));
    g_autofree char *functions = ask(&page, "//u:functions");
    g_assert_true(g_str_has_suffix(functions, "w4Jw4JAA")); /* 10000 of hot, none of the domain */
}

/* Names have the beginning of the name before them, but only of whole ASCII letters. */
static void
test_common_letters(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };
    g_autofree char *fill = g_strnfill(40, 'x');
    g_autofree char *one = g_strconcat(fill, "1", NULL);

    init_fixture(&fixture, "a\xc3\xa4");
    add(&fixture, "a\xc3\xb6", "ab", 1);
    add(&fixture, one, fill, 1);
    render(&fixture, &page);
    g_autofree char *names = ask(&page, "//u:names");
    g_auto(GStrv) lines = g_strsplit(names, "\n", -1);
    static const char *const ends[] = { "Aab", "B\xc3\xa4", "B\xc3\xb6" };
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++)
        g_assert_cmpstr(lines[i] + 3, ==, ends[i]);
    g_assert_cmpstr(lines[4] + 3, ==, "fxxxxxxxxx1"); /* 31 letters are the most */
}

/* The module of a function is in its tooltip, and in the tables for the script. */
static void
test_modules(void)
{
    g_auto(Fixture) fixture = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&fixture, "vm");
    add(&fixture, "main", "read<int>", 1);
    uprof_name_add_module(uprof_names_intern(fixture.names, (UprofSlice){ "read<int>", 9 }),
                          uprof_names_marker(fixture.names, "lib<a>.so"));
    render(&fixture, &page);
    g_autofree char *title = ask(&page, "//s:g[@id='f']/s:g[s:text='read<int>']/s:title");
    g_assert_cmpstr(title, ==, "read<int> (1 samples, 100.0 %, in lib<a>.so)");
    g_autofree char *modules = ask(&page, "//u:modules");
    g_assert_cmpstr(modules, ==, "lib<a>.so\n");
    g_autofree char *within = ask(&page, "//u:within");
    g_assert_cmpstr(within, ==, "ABA"); /* sorted: main, read<int>, vm */
}

/* With many frames and long names, the file stays small and says how many frames it omits. */
static void
test_large(void)
{
    static const struct {
        unsigned n;
        size_t name_len;
    } sizes[] = { { 110000, 12 }, { 20000, 1000 } };

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_auto(Fixture) fixture = { 0 };
        g_auto(Page) page = { 0 };
        init_fixture(&fixture, "vm");
        for (unsigned number = 0; number < sizes[i].n; number++)
            add_chain(&fixture, number, sizes[i].name_len);
        render(&fixture, &page);
        g_assert_cmpuint(page.text->len, <=, FILE_BYTES_MAX);
        g_autofree char *hidden = ask(&page, "//s:text[@id='hidden']");
        g_assert_true(
            g_pattern_match_simple("* of * frames (* % of samples end there) are *", hidden));
        g_autofree char *all = ask(&page, "//u:graph/@all");
        g_autofree char *sent = ask(&page, "//u:graph/@sent");
        g_assert_cmpint(g_ascii_strtoll(all, NULL, 10), >, sizes[i].n);
        g_assert_cmpint(g_ascii_strtoll(sent, NULL, 10), <=, g_ascii_strtoll(all, NULL, 10));
    }
}

static void
test_compare(void)
{
    g_auto(Fixture) old = { 0 }, new = { 0 };
    g_auto(Page) page = { 0 };

    init_fixture(&old, "vm");
    uprof_names_free(old.names);
    init_fixture(&new, "vm");
    uprof_profile_free(old.profile);
    old.names = new.names;
    old.profile = uprof_profile_new(new.names, uprof_names_marker(new.names, "vm"), false);
    add(&old, "grows", NULL, 100);
    add(&old, "shrinks", NULL, 800);
    add(&old, "stays<&>", NULL, 50);
    add(&old, "vanishes", NULL, 50);
    add(&new, "grows", NULL, 400);
    add(&new, "shrinks", NULL, 550);
    add(&new, "stays<&>", NULL, 50);
    g_autoptr(UprofTree) old_tree = uprof_tree_new(old.profile);
    g_autoptr(UprofTree) new_tree = uprof_tree_new(new.profile);
    g_autoptr(UprofTree) both = uprof_tree_compare(old_tree, new_tree);
    open_page(&page, uprof_svg_compare(both, old.run, new.run, "a/mon.svg<", "tue.svg"));
    check_harmless(&page);
    g_autofree char *files = ask(&page, "/s:svg/s:title");
    g_assert_cmpstr(files, ==, "vm: mon.svg< -> tue.svg");
    g_auto(Page) domains = { 0 };
    g_free(old.run->domain);
    old.run->domain = g_strdup("<other>");
    open_page(&domains, uprof_svg_compare(both, old.run, new.run, "a", "b"));
    g_autofree char *title = ask(&domains, "//s:text[@class='t']");
    g_assert_cmpstr(title, ==, "<other> -> vm");

    g_autofree char *grows = ask(&page, "//s:g[s:text='grows']/s:rect/@class");
    g_autofree char *shrinks = ask(&page, "//s:g[s:text='shrinks']/s:rect/@class");
    g_autofree char *stays = ask(&page, "//s:g[starts-with(s:title, 'stays')]/s:rect/@class");
    g_autofree char *gone = ask(&page, "//s:g[@class='gone']/s:text");
    g_assert_cmpstr(grows, ==, "r7");
    g_assert_cmpstr(shrinks, ==, "b7");
    g_assert_cmpstr(stays, ==, "g0");
    g_assert_true(g_str_has_suffix(gone, "5.0 %  vanishes"));
    old.names = NULL;
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/svg/hostile", test_hostile);
    g_test_add_func("/svg/frames", test_frames);
    g_test_add_func("/svg/times", test_times);
    g_test_add_func("/svg/empty", test_empty);
    g_test_add_func("/svg/waits", test_waits);
    g_test_add_func("/svg/quality", test_quality);
    g_test_add_func("/svg/labels", test_labels);
    g_test_add_func("/svg/tiny-frames", test_tiny_frames);
    g_test_add_func("/svg/hot-function", test_hot_function);
    g_test_add_func("/svg/common-letters", test_common_letters);
    g_test_add_func("/svg/modules", test_modules);
    g_test_add_func("/svg/large", test_large);
    g_test_add_func("/svg/compare", test_compare);
    return g_test_run();
}
