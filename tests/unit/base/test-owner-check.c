/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/owner-check.h"

#include <glib.h>

enum { ROOT = 0, USER = 1000, OTHER = 1001 };

/* clang-format off */
static const struct {
    uid_t owner;
    mode_t mode;
    UprofOwnerRule rule;
    uid_t user;
    bool is_safe;
} cases[] = {
    { ROOT,  0644, UPROF_OWNER_USER,         ROOT, true  },
    { USER,  0644, UPROF_OWNER_USER,         ROOT, false },
    { USER,  0700, UPROF_OWNER_USER,         USER, true  },
    { ROOT,  0700, UPROF_OWNER_USER,         USER, false },
    { USER,  0720, UPROF_OWNER_USER,         USER, false },
    { USER,  0702, UPROF_OWNER_USER,         USER, false },
    { ROOT,  0644, UPROF_OWNER_USER_OR_ROOT, USER, true  },
    { USER,  0644, UPROF_OWNER_USER_OR_ROOT, USER, true  },
    { OTHER, 0644, UPROF_OWNER_USER_OR_ROOT, USER, false },
    { ROOT,  0664, UPROF_OWNER_USER_OR_ROOT, USER, false },
    { USER,  0644, UPROF_OWNER_USER_OR_ROOT, ROOT, false },
    { ROOT,  0644, UPROF_OWNER_FOR_ROOT,     ROOT, true  },
    { ROOT,  0666, UPROF_OWNER_FOR_ROOT,     ROOT, false },
    { USER,  0644, UPROF_OWNER_FOR_ROOT,     ROOT, false },
    { OTHER, 0666, UPROF_OWNER_FOR_ROOT,     USER, true  },
};
/* clang-format on */

static void
test_rules(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct stat info = { .st_uid = cases[i].owner, .st_mode = S_IFREG | cases[i].mode };

        g_assert_true(uprof_owner_is_safe(&info, cases[i].rule, cases[i].user) == cases[i].is_safe);
    }
}

static void
test_replaceable(void)
{
    g_assert_false(uprof_owner_lets_others_replace(&(struct stat){ .st_mode = S_IFDIR | 0775 }));
    g_assert_false(uprof_owner_lets_others_replace(&(struct stat){ .st_mode = S_IFDIR | 01777 }));
    g_assert_true(uprof_owner_lets_others_replace(&(struct stat){ .st_mode = S_IFDIR | 0777 }));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/owner-check/rules", test_rules);
    g_test_add_func("/owner-check/replaceable", test_replaceable);
    return g_test_run();
}
