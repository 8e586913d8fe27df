/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-word-priv.h"

#include <glib.h>

static const UprofWatchKnown known[] = {
    { "web-1", "00000000-1d52-4d8f-b251-782e98ab3fa0", -1 },
    { "web-1", "00000001-1d52-4d8f-b251-782e98ab3fa0", 12 },
    { "web-1", "0000000a-1d52-4d8f-b251-782e98ab3fa0", -1 },
    { "7", "00000003-1d52-4d8f-b251-782e98ab3fa0", 0 },
    { "db", "00000004-1d52-4d8f-b251-782e98ab3fa0", 7 },
    { "9", "00000005-1d52-4d8f-b251-782e98ab3fa0", 9 },
    { "old", "00000006-1d52-4d8f-b251-782e98ab3fa0", -1 },
    { "-1", "00000007-1d52-4d8f-b251-782e98ab3fa0", -1 },
};

static void
test_words(void)
{
    static const struct {
        const char *word;
        int found;
    } rows[] = {
        { "db", 4 },
        { "old", 6 },
        { "web-1", 1 }, /* the watch samples this domain of three */
        { "00000000-1d52-4d8f-b251-782e98ab3fa0", 0 },
        { "0000000A-1D52-4D8F-B251-782E98AB3FA0", 2 },
        { "12", 1 },
        { "0", 3 },
        { "9", 5 }, /* its id is also its name */
        { "-1", 7 },
        { "7", UPROF_WATCH_WORD_AMBIGUOUS },
        { "", UPROF_WATCH_WORD_UNKNOWN },
        { "1", UPROF_WATCH_WORD_UNKNOWN },
        { "web", UPROF_WATCH_WORD_UNKNOWN },
        { "DB", UPROF_WATCH_WORD_UNKNOWN },
        { "4294967308", UPROF_WATCH_WORD_UNKNOWN }, /* 12, in 32 bits */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%s", rows[i].word);
        g_assert_cmpint(uprof_watch_word_find(rows[i].word, known, G_N_ELEMENTS(known)), ==,
                        rows[i].found);
    }
    g_assert_cmpint(uprof_watch_word_find("db", NULL, 0), ==, UPROF_WATCH_WORD_UNKNOWN);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch-word/words", test_words);
    return g_test_run();
}
