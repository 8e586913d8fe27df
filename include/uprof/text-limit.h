/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text-limit.h - how long a text about one guest may become, such as the list of its tasks
 *
 * The guest decides how many tasks it has and what is in its log. A text that does not fit is cut,
 * with a notice. A reply of a worker has room for such a text, and for the item with which it
 * became too long.
 */
#pragma once

enum {
    UPROF_TEXT_LONG_MIB = 48,
    UPROF_TEXT_LONG_MAX = UPROF_TEXT_LONG_MIB * 1024 * 1024, /* bytes */
};
