/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/history/catalog-priv.h"
#include "uprof/catalog.h"

#include "store-folder.h"

static UprofCatalog *
list_store(StoreFolder *folder)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    UprofCatalog *catalog = uprof_catalog_new(folder->store, &folder->notices, &code);

    g_assert_cmpint(code, ==, UPROF_ERROR_NONE);
    return catalog;
}

static void
assert_domain(const UprofCatalog *catalog, const char *word, const char *uuid)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *found = uprof_catalog_find_domain(catalog, word, &error);

    g_assert_cmpstr(found, ==, uuid);
    if (uuid)
        g_assert_no_error(error);
    else
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
}

/* If two domains had the name web-1, the later one is found. */
static void
test_find_domain(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", DB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;a 1\n");
    g_autoptr(UprofCatalog) catalog = list_store(&folder);
    assert_domain(catalog, "web-1", WEB_UUID);
    assert_domain(catalog, "4DEA22B3-1D52-D8F3-2516-782E98AB3FA0", WEB_UUID);
    assert_domain(catalog, "web-2", NULL);
    g_clear_pointer(&catalog, uprof_catalog_free);
    store_folder_clear(&folder);
}

static void
assert_selection(const UprofCatalog *catalog, int64_t since_s, int64_t until_s, const char *uuid,
                 guint n)
{
    UprofOmissions omissions = { 0 };
    g_autoptr(GPtrArray) selection =
        uprof_catalog_select(catalog, since_s, until_s, uuid, &omissions);

    g_assert_cmpuint(selection->len, ==, n);
    g_assert_cmpuint(omissions.n_damaged, ==, 0);
    g_assert_cmpuint(omissions.n_deleted, ==, 0);
}

static void
test_select(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;a 2\n");
    store_folder_put_slice(&folder, "db", DB_UUID, FRIDAY_S + 30, "db;b 4\n");
    g_autoptr(UprofCatalog) catalog = list_store(&folder);
    assert_selection(catalog, 0, INT64_MAX, NULL, 3);
    assert_selection(catalog, 0, INT64_MAX, WEB_UUID, 2);
    assert_selection(catalog, FRIDAY_S, FRIDAY_S + 60, WEB_UUID, 1);
    assert_selection(catalog, FRIDAY_S + 1, FRIDAY_S + 61, WEB_UUID, 1);
    assert_selection(catalog, FRIDAY_S + 61, INT64_MAX, WEB_UUID, 0);
    g_clear_pointer(&catalog, uprof_catalog_free);
    store_folder_clear(&folder);
}

static void
test_load(void)
{
    StoreFolder folder;
    UprofOmissions omissions = { 0 };
    unsigned n_slices;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-2", WEB_UUID, FRIDAY_S + 60, "web-2;a 2\n");
    store_folder_put_slice(&folder, "db", DB_UUID, FRIDAY_S, "db;b 4\n");
    const UprofLoadSettings settings = { .notices = &folder.notices };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, &settings);
    g_autoptr(UprofCatalog) catalog = list_store(&folder);
    g_autoptr(GPtrArray) selection = uprof_catalog_select(catalog, 0, INT64_MAX, NULL, &omissions);
    g_assert_cmpstr(uprof_selection_name(selection, WEB_UUID), ==, "web-2");
    g_assert_cmpint(uprof_selection_load(selection, WEB_UUID, load, &n_slices), ==,
                    UPROF_ERROR_NONE);
    g_assert_cmpuint(n_slices, ==, 2);
    g_assert_cmpuint(load->run->samples, ==, 3);
    g_assert_true(uprof_load_finish(load));
    g_assert_cmpuint(uprof_profile_total(load->profile), ==, 3);
    /* the stacks of the old name are merged with those of the new one */
    g_assert_cmpuint(uprof_profile_n_stacks(load->profile), ==, 1);
    g_assert_cmpstr(uprof_name_text(uprof_profile_root(load->profile)), ==, "web-2");
    g_clear_pointer(&catalog, uprof_catalog_free);
    store_folder_clear(&folder);
}

static void
test_damaged(void)
{
    StoreFolder folder;
    UprofOmissions omissions = { 0 };

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put(&folder, "data/web-1/web-1-20261120T000000Z.meta.json", "{");
    g_autoptr(UprofCatalog) catalog = list_store(&folder);
    g_autoptr(GPtrArray) selection = uprof_catalog_select(catalog, 0, INT64_MAX, NULL, &omissions);
    g_assert_cmpuint(selection->len, ==, 0);
    g_assert_cmpuint(omissions.n_damaged, ==, 1);
    g_assert_true(g_pattern_match_simple("*web-1-20261120T000000Z.meta.json*; left out\n",
                                         folder.warnings->str));
    g_clear_pointer(&catalog, uprof_catalog_free);
    store_folder_clear(&folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/catalog/find-domain", test_find_domain);
    g_test_add_func("/catalog/select", test_select);
    g_test_add_func("/catalog/load", test_load);
    g_test_add_func("/catalog/damaged", test_damaged);
    return g_test_run();
}
