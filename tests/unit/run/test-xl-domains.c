/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/run/xl-domains-priv.h"
#include "uprof/access.h"
#include "uprof/error.h"

#define UUID(digit) "0000000" digit "-0000-4000-8000-000000000000"

/* clang-format off */
static const UprofXlDomain of_toolstack[] = {
    { .domid = 3, .uuid = UUID("3"), .name = "of-libvirt", .n_vcpus = 1, .n_vcpus_max = 1 },
    { .domid = 9, .uuid = UUID("9"), .name = "twin", .n_vcpus = 1, .n_vcpus_max = 1 },
    { .domid = 7, .uuid = UUID("7"), .name = "uk-1", .n_vcpus = 2, .n_vcpus_max = 4 },
    { .domid = 8, .uuid = UUID("8"), .name = "twin", .n_vcpus = 0, .n_vcpus_max = 0,
      .state = UPROF_XL_PAUSED },
    { .domid = 5, .uuid = UUID("5"), .name = "crash", .state = UPROF_XL_CRASHED },
    { .domid = 6, .uuid = UUID("6"), .name = "7", .state = UPROF_XL_SHUTDOWN },
};
/* clang-format on */

static const char *kernel_of_config; /* (nullable) */
static bool has_no_config;
static bool is_refused;

static bool
fake_list(GArray *domains, GError **error)
{
    if (is_refused)
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "another version");
    else
        g_array_append_vals(domains, of_toolstack, G_N_ELEMENTS(of_toolstack));
    return !is_refused;
}

static bool
fake_kernel(const UprofXlDomain *domain, char **kernel, GError **error)
{
    g_assert_cmpint(domain->domid, ==, 7);
    g_assert_cmpstr(domain->uuid, ==, UUID("7"));
    *kernel = has_no_config ? NULL : g_strdup(kernel_of_config);
    if (has_no_config)
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND, "domain 7 has ended");
    return !has_no_config;
}

static const UprofXlModule fake = { UPROF_XL_MODULE_ABI, fake_list, fake_kernel };

/* Returns: (transfer full): the domains of xl, where libvirt knows one of the toolstack's */
static GPtrArray *
list_domains(GError **error)
{
    UprofDomain dom0 = { .id = 0, .uuid = UUID("0") };
    UprofDomain shut_off = { .name = (char *)"uk-1", .id = -1, .uuid = UUID("4") };
    UprofDomain known = { .name = (char *)"of-libvirt", .id = 3, .uuid = UUID("3") };
    g_autoptr(GPtrArray) of_libvirt = g_ptr_array_new();

    g_ptr_array_add(of_libvirt, &dom0);
    g_ptr_array_add(of_libvirt, &shut_off);
    g_ptr_array_add(of_libvirt, &known);
    return uprof_xl_domains_list(&fake, "xen:///system", of_libvirt, error);
}

static void
test_list(void)
{
    static const struct {
        const char *name, *state;
        int id;
        unsigned n_vcpus, n_vcpus_max;
    } wanted[] = {
        { "7", "in shutdown", 6, 1, 1 }, { "crash", "crashed", 5, 1, 1 },
        { "twin", "paused", 8, 1, 1 },   { "twin", "running", 9, 1, 1 },
        { "uk-1", "running", 7, 2, 4 },
    };
    g_autoptr(GPtrArray) domains = list_domains(NULL);

    g_assert_cmpuint(domains->len, ==, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        g_assert_cmpstr(domain->name, ==, wanted[i].name);
        g_assert_cmpstr(domain->state_name, ==, wanted[i].state);
        g_assert_cmpint(domain->id, ==, wanted[i].id);
        g_assert_cmpuint(domain->xml->vcpus, ==, wanted[i].n_vcpus);
        g_assert_cmpuint(domain->xml->vcpus_max, ==, wanted[i].n_vcpus_max);
        g_assert_cmpstr(domain->driver, ==, "Xen");
        g_assert_true(domain->is_of_xl && domain->is_local);
        g_assert_false(domain->xml->metadata.present);
        g_assert_false(uprof_access_is_host(domain));
    }
}

static void
test_refused(void)
{
    g_autoptr(GError) error = NULL;

    is_refused = true;
    g_autoptr(GPtrArray) domains = list_domains(&error);
    is_refused = false;
    g_assert_null(domains);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
}

static void
test_choose(void)
{
    static const struct {
        const char *word;
        int id, code; /* of the error; -1: none */
        const char *error;
    } choices[] = {
        { "uk-1", 7, -1, NULL },
        { "8", 8, -1, NULL },
        { UUID("9"), 9, -1, NULL },
        { "twin", 0, UPROF_ERROR_USAGE,
          "'twin' means two domains that xl made, 8 and 9: choose one with --domid" },
        { "7", 0, UPROF_ERROR_USAGE, "'7' means two domains that xl made, 6 and 7: *" },
        { "of-libvirt", 0, UPROF_ERROR_NOT_FOUND, "xl has made no domain 'of-libvirt'" },
        { "3", 0, UPROF_ERROR_NOT_FOUND, "*" },
        { "", 0, UPROF_ERROR_NOT_FOUND, "*" },
        { "a\x1b[31m", 0, UPROF_ERROR_NOT_FOUND, "xl has made no domain 'a?[31m'" },
        { "99999999999999999999", 0, UPROF_ERROR_NOT_FOUND, "*" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        g_autoptr(GPtrArray) domains = list_domains(NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofDomain) domain = uprof_xl_domains_choose(domains, choices[i].word, &error);

        if (choices[i].code < 0) {
            g_assert_no_error(error);
            g_assert_cmpint(domain->id, ==, choices[i].id);
            continue;
        }
        g_assert_null(domain);
        g_assert_error(error, UPROF_ERROR, choices[i].code);
        g_assert_true(g_pattern_match_simple(choices[i].error, error->message));
    }
}

static void
test_kernel(void)
{
    static const struct {
        const char *kernel; /* (nullable) */
        bool has_no_config;
        const char *problem; /* (nullable) */
    } kernels[] = {
        { "/boot/app", false, NULL },
        { NULL, true, "domain 7 has ended: give its symbols with -s" },
        { NULL, false, NULL }, /* it boots from a disk */
        { "app\x1b[31m", false,
          "its configuration names the kernel 'app?[31m' without its folder: give it with -s" },
        { "../app", false, "*'../app'*" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autoptr(GPtrArray) domains = list_domains(NULL);
        g_autoptr(UprofDomain) domain = uprof_xl_domains_choose(domains, "uk-1", NULL);

        kernel_of_config = kernels[i].kernel;
        has_no_config = kernels[i].has_no_config;
        uprof_xl_domains_read_kernel(&fake, domain);
        if (!kernels[i].problem) {
            g_assert_null(domain->kernel_problem);
            g_assert_cmpstr(domain->xml->kernel, ==, kernels[i].kernel);
            continue;
        }
        g_assert_null(domain->xml->kernel);
        g_assert_true(g_pattern_match_simple(kernels[i].problem, domain->kernel_problem));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/xl-domains/list", test_list);
    g_test_add_func("/xl-domains/refused", test_refused);
    g_test_add_func("/xl-domains/choose", test_choose);
    g_test_add_func("/xl-domains/kernel", test_kernel);
    return g_test_run();
}
