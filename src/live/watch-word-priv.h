/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-word-priv.h - which domain of a watch a question means
 */
#pragma once

/** UprofWatchKnown: a domain that a watch knows; all pointers are borrowed */
typedef struct {
    const char *name, *uuid;
    int id; /* -1: it is not sampled now */
} UprofWatchKnown;

enum {
    UPROF_WATCH_WORD_UNKNOWN = -1,
    UPROF_WATCH_WORD_AMBIGUOUS = -2, /* the id of one domain and the name of another */
};

/**
 * uprof_watch_word_find:
 * @word: an id, a UUID or a name, as on the command line
 *
 * A name can belong to several domains, one after the other. The name then means the domain that
 * the watch samples now.
 *
 * Returns: the index of the domain, or a number of those above
 */
int uprof_watch_word_find(const char *word, const UprofWatchKnown *known, unsigned n);
