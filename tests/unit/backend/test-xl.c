/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The module for domains of xl, with a toolstack that is not libxenlight's. */
#include "uprof/xl-module.h"

#include <string.h>

#include "fake-xl.h"
#include "uprof/error.h"

extern const UprofXlModule uprof_xl_module;

#define UUID_OF_7 "07000102-0304-0506-0708-090a0b0c0d0e"

static void
set_up(void)
{
    fake_xl = (FakeXl){ .n_domains = 1 };
    fake_xl.domains[0] = (FakeXlDomain){ .domid = 0, .name = "Domain-0", .n_online = 1 };
}

static FakeXlDomain *
add_domain(uint32_t domid, const char *name)
{
    FakeXlDomain *domain = &fake_xl.domains[fake_xl.n_domains++];

    *domain = (FakeXlDomain){
        .domid = domid, .name = name, .n_online = 2, .max_vcpu_id = 3, .kernel = "/boot/app"
    };
    domain->uuid[0] = (uint8_t)domid;
    for (unsigned i = 1; i < sizeof(domain->uuid); i++)
        domain->uuid[i] = (uint8_t)(i - 1);
    return domain;
}

static GArray *
list_domains(GError **error)
{
    g_autoptr(GArray) domains = g_array_new(FALSE, FALSE, sizeof(UprofXlDomain));
    const bool ok = uprof_xl_module.list(domains, error);

    g_assert_cmpint(fake_xl.n_owned, ==, 0);
    return ok ? g_steal_pointer(&domains) : NULL;
}

static void
test_list(void)
{
    set_up();
    add_domain(7, "uk-1");
    add_domain(8, "uk-1")->paused = true;
    add_domain(9, "gone")->shutdown = true;
    add_domain(10, "bad\n\x1b[31m")->crashed = true;
    add_domain(11, "dies")->dying = true;
    add_domain(12, NULL);
    add_domain(13, "");
    g_autoptr(GArray) domains = list_domains(NULL);
    static const struct {
        int domid;
        const char *name;
        UprofXlState state;
    } wanted[] = {
        { 7, "uk-1", UPROF_XL_RUNNING },
        { 8, "uk-1", UPROF_XL_PAUSED },
        { 9, "gone", UPROF_XL_SHUTDOWN },
        { 10, "bad\n\x1b[31m", UPROF_XL_CRASHED },
    };

    g_assert_cmpuint(uprof_xl_module.abi, ==, UPROF_XL_MODULE_ABI);
    g_assert_cmpuint(domains->len, ==, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < domains->len; i++) {
        const UprofXlDomain *domain = &g_array_index(domains, UprofXlDomain, i);
        g_assert_cmpint(domain->domid, ==, wanted[i].domid);
        g_assert_cmpstr(domain->name, ==, wanted[i].name);
        g_assert_cmpint(domain->state, ==, wanted[i].state);
        g_assert_cmpuint(domain->n_vcpus, ==, 2);
        g_assert_cmpuint(domain->n_vcpus_max, ==, 4);
    }
    g_assert_cmpstr(g_array_index(domains, UprofXlDomain, 0).uuid, ==, UUID_OF_7);
}

/* A name is cut at a limit that no toolstack reaches. */
static void
test_long_name(void)
{
    g_autofree char *name = g_strnfill(10000, 'x');

    set_up();
    add_domain(7, name);
    g_autoptr(GArray) domains = list_domains(NULL);
    g_assert_cmpuint(strlen(g_array_index(domains, UprofXlDomain, 0).name), ==,
                     UPROF_XL_NAME_BYTES_MAX - 1);
}

static void
assert_refused(const char *pattern)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) domains = list_domains(&error);

    g_assert_null(domains);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
}

/* The running Xen is of another version, or there is none. */
static void
test_other_version(void)
{
    set_up();
    fake_xl.refuses_list = true;
    fake_xl.message = "geting\tinfo list: Permission denied";
    assert_refused(
        "libxenlight of Xen * gets no answer from the running Xen 4.99: geting?info list: "
        "Permission denied");
    fake_xl.has_no_version = true;
    fake_xl.message = NULL;
    assert_refused("libxenlight of Xen * Xen of an unknown version: a later error");
    fake_xl.alloc_error = -3;
    fake_xl.message = "cannot open libxc handle";
    assert_refused("libxenlight of Xen * Xen of an unknown version: cannot open libxc handle");
}

static const UprofXlDomain asked = { .domid = 7, .uuid = UUID_OF_7 };

static void
test_kernel(void)
{
    g_autofree char *kernel = NULL;

    set_up();
    add_domain(7, "uk-1");
    g_assert_true(uprof_xl_module.kernel(&asked, &kernel, NULL));
    g_assert_cmpstr(kernel, ==, "/boot/app");
    g_assert_cmpint(fake_xl.n_owned, ==, 0);
}

static void
test_no_kernel(void)
{
    static const char *const kernels[] = { NULL, "" };

    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        char *kernel = NULL;
        set_up();
        add_domain(7, "uk-1")->kernel = kernels[i];
        g_assert_true(uprof_xl_module.kernel(&asked, &kernel, NULL));
        g_assert_null(kernel);
        g_assert_cmpint(fake_xl.n_owned, ==, 0);
    }
}

static void
assert_no_config(UprofErrorCode code, const char *pattern)
{
    g_autoptr(GError) error = NULL;
    char *kernel = NULL;

    g_assert_false(uprof_xl_module.kernel(&asked, &kernel, &error));
    g_assert_null(kernel);
    g_assert_error(error, UPROF_ERROR, (gint)code);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(pattern, error->message));
    g_assert_cmpint(fake_xl.n_owned, ==, 0);
}

/* The domain is destroyed meanwhile, or its number is another domain's. */
static void
test_ended(void)
{
    static const char pattern[] = "domain 7 has ended while its configuration was read";

    set_up();
    assert_no_config(UPROF_ERROR_NOT_FOUND, pattern);
    add_domain(7, "uk-1")->ends = true;
    assert_no_config(UPROF_ERROR_NOT_FOUND, pattern);
    set_up();
    add_domain(7, "uk-1")->is_replaced = true;
    assert_no_config(UPROF_ERROR_NOT_FOUND, pattern);
    set_up();
    add_domain(7, "uk-1")->ends = true;
    fake_xl.domains[1].config_error = -3;
    assert_no_config(UPROF_ERROR_NOT_FOUND, pattern);
}

static void
test_bad_config(void)
{
    set_up();
    add_domain(7, "uk-1")->config_error = -3;
    fake_xl.message = "parse error: \x1b[31mx";
    assert_no_config(UPROF_ERROR_FAILED,
                     "libxenlight cannot read the configuration of domain 7: parse error: ?[31mx");
    set_up();
    add_domain(7, "uk-1")->has_no_config = true;
    assert_no_config(UPROF_ERROR_NOT_FOUND, "the toolstack keeps no configuration of domain 7");
    fake_xl.alloc_error = -3;
    assert_no_config(UPROF_ERROR_UNSUPPORTED, "libxenlight of Xen *");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/xl/list", test_list);
    g_test_add_func("/xl/long-name", test_long_name);
    g_test_add_func("/xl/other-version", test_other_version);
    g_test_add_func("/xl/kernel", test_kernel);
    g_test_add_func("/xl/no-kernel", test_no_kernel);
    g_test_add_func("/xl/ended", test_ended);
    g_test_add_func("/xl/bad-config", test_bad_config);
    return g_test_run();
}
