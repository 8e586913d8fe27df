/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/run-facts.h"

static size_t
size_of(UprofRunKind kind)
{
    switch (kind) {
    case UPROF_RUN_TEXT:
        return sizeof(char *);
    case UPROF_RUN_UINT:
        return sizeof(uint64_t);
    default:
        return sizeof(bool);
    }
}

/* The table has each member before "Quality" once, in order, and leaves out nothing but padding. */
static void
test_fields_cover_the_struct(void)
{
    size_t end = 0;
    UprofRunWhen when = UPROF_RUN_AT_START;

    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        const UprofRunField *field = &uprof_run_fields[i];
        const size_t size = size_of(field->kind);

        g_assert_cmpuint(field->offset, ==, (end + size - 1) / size * size);
        g_assert_true(field->when == UPROF_RUN_AT_END || when != UPROF_RUN_AT_END);
        when = field->when;
        end = field->offset + size;
    }
    g_assert_cmpint(when, ==, UPROF_RUN_AT_END);
    g_assert_cmpuint(end, ==, G_STRUCT_OFFSET(UprofRun, samples));
}

static void
test_field_keys(void)
{
    for (size_t i = 0; i < uprof_run_n_fields; i++) {
        g_assert_null(strpbrk(uprof_run_fields[i].key, "=\n"));
        for (size_t j = 0; j < i; j++)
            g_assert_cmpstr(uprof_run_fields[i].key, !=, uprof_run_fields[j].key);
    }
}

static void
test_images(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();

    UprofRunImage *image = uprof_run_add_image(run, "[app]", NULL, "00ff", NULL);
    g_assert_cmpstr(image->label, ==, "[app]");
    g_assert_null(image->path);
    g_assert_cmpstr(image->build_id, ==, "00ff");
    g_assert_true(g_ptr_array_index(run->images, 0) == image);

    run->domain = g_strdup("web-1");
    run->ended_by = g_strdup("signal");
    g_ptr_array_add(run->files, g_strdup("web-1.svg"));
    uprof_run_free(NULL);
}

/* If two runs are merged, equal images become one. */
static void
test_merge_images(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofRun) other = uprof_run_new();

    uprof_run_add_image(run, "[app]", "app", "00ff", NULL)->n_seen = 5;
    uprof_run_add_image(other, "[app]", "app", "00ff", NULL)->n_seen = 7;
    uprof_run_add_image(other, "[app]", "app", "00fe", NULL);
    uprof_run_add_image(other, "[app]", NULL, "00ff", NULL);
    uprof_run_merge(run, other, false);
    g_assert_cmpuint(run->images->len, ==, 3);
    g_assert_cmpuint(((UprofRunImage *)g_ptr_array_index(run->images, 0))->n_seen, ==, 12);
    g_assert_cmpuint(other->images->len, ==, 3);
}

/* Merged days may bring any number of modules. */
static void
test_merge_many_modules(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();

    for (unsigned i = 0; i < 2 * UPROF_RUN_MODULES_MAX; i++) {
        g_autoptr(UprofRun) other = uprof_run_new();
        g_autofree char *id = g_strdup_printf("%08x", i);
        uprof_run_add_image(other, "[lib.so]", NULL, id, NULL)->is_module = true;
        uprof_run_merge(run, other, i == 0);
        uprof_run_merge(run, other, false);
    }
    g_assert_cmpuint(run->images->len, ==, UPROF_RUN_MODULES_MAX);
    g_assert_true(((UprofRunImage *)g_ptr_array_index(run->images, 5))->is_module);
    /* The label also stands for a module that was left out, so it has no build-id. */
    g_assert_null(((UprofRunImage *)g_ptr_array_index(run->images, 5))->build_id);
}

static void
test_module_id(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    const UprofSlice name = { "lib.so", 6 };

    uprof_run_add_image(run, "[lib.so]", NULL, "01", NULL);
    uprof_run_add_image(run, "[lib.so.1]", NULL, "02", NULL)->is_module = true;
    g_assert_null(uprof_run_module_id(run, name));
    uprof_run_add_image(run, "[lib.so]", NULL, "03", NULL)->is_module = true;
    uprof_run_add_image(run, "[lib.so]", NULL, "03", NULL)->is_module = true;
    g_assert_cmpstr(uprof_run_module_id(run, name), ==, "03");
    uprof_run_add_image(run, "[lib.so]", NULL, "04", NULL)->is_module = true;
    g_assert_null(uprof_run_module_id(run, name));
}

/* Counts are added; other facts of a kernel are lost if the kernels differ. */
static void
test_merge_linux(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofRun) same = uprof_run_new();
    g_autoptr(UprofRun) other = uprof_run_new();

    same->kernel = (UprofRunLinux){ .release = g_strdup("6.1.0"),
                                    .symbols = 5,
                                    .rules = 7,
                                    .rules_version = 2,
                                    .has_types = true,
                                    .has_tasks = true,
                                    .kernel_stacks = 10,
                                    .kernel_complete = 9,
                                    .user_stacks = 4,
                                    .user_complete = 3 };
    other->kernel = (UprofRunLinux){ .release = g_strdup("6.12.0"), .has_types = true };
    uprof_run_merge(run, same, true);
    uprof_run_merge(run, same, false);
    g_assert_cmpstr(run->kernel.release, ==, "6.1.0");
    g_assert_cmpuint(run->kernel.symbols, ==, 5);
    g_assert_cmpuint(run->kernel.rules_version, ==, 2);
    g_assert_cmpuint(run->kernel.kernel_stacks, ==, 20);
    g_assert_cmpuint(run->kernel.kernel_complete, ==, 18);
    g_assert_cmpuint(run->kernel.user_stacks, ==, 8);
    g_assert_cmpuint(run->kernel.user_complete, ==, 6);
    g_assert_true(run->kernel.has_types && run->kernel.has_tasks);
    uprof_run_merge(run, other, false);
    g_assert_null(run->kernel.release);
    g_assert_cmpuint(run->kernel.symbols + run->kernel.rules + run->kernel.rules_version, ==, 0);
    g_assert_true(run->kernel.has_types && !run->kernel.has_tasks);
    g_assert_cmpuint(run->kernel.kernel_stacks, ==, 20);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t samples, vcpus, duration_ns;
    uint64_t mhz;
    uint64_t vcpus_sampled;
} rates[] = {
    { "one-vcpu",    990,        1, 10 * UPROF_NS_PER_S, 99000 },
    { "two-vcpus",   990,        2, 10 * UPROF_NS_PER_S, 49500 },
    { "one-of-two",  990,        2, 10 * UPROF_NS_PER_S, 99000, 1 },
    { "no-vcpu",     990,        0, 10 * UPROF_NS_PER_S, 0 },
    { "no-time",     990,        1, 0,                   0 },
    { "long",        UINT64_C(1) << 50, 1, UINT64_C(1) << 60, 976562500 },
    { "too-many",    UINT64_MAX, 1, 1,                   UINT64_MAX },
};
/* clang-format on */

static void
test_rate(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofRun) run = uprof_run_new();

    run->samples = rates[i].samples;
    run->vcpus = rates[i].vcpus;
    run->vcpus_sampled = rates[i].vcpus_sampled;
    run->duration_ns = rates[i].duration_ns;
    g_assert_cmpuint(uprof_run_got_mhz(run), ==, rates[i].mhz);
}

/* A filter does not change the rate, and filtered runs can be merged. */
static void
test_rate_of_a_part(void)
{
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(UprofRun) both = uprof_run_new();

    run->samples = 90;
    run->unfiltered = 990;
    run->vcpus = 1;
    run->duration_ns = 10 * UPROF_NS_PER_S;
    g_assert_cmpuint(uprof_run_got_mhz(run), ==, 99000);
    uprof_run_merge(both, run, true);
    uprof_run_merge(both, run, false);
    g_assert_cmpuint(both->unfiltered, ==, 1980);
    g_assert_cmpuint(uprof_run_got_mhz(both), ==, 99000);
    run->unfiltered = 0;
    uprof_run_merge(both, run, false);
    g_assert_cmpuint(both->unfiltered, ==, 2070);
}

static void
test_error_domain(void)
{
    g_assert_cmpstr(g_quark_to_string(UPROF_ERROR), ==, "uprof-error-quark");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/run-facts/fields-cover-the-struct", test_fields_cover_the_struct);
    g_test_add_func("/run-facts/field-keys", test_field_keys);
    g_test_add_func("/run-facts/merge-linux", test_merge_linux);
    g_test_add_func("/run-facts/merge-many-modules", test_merge_many_modules);
    g_test_add_func("/run-facts/module-id", test_module_id);
    g_test_add_func("/run-facts/images", test_images);
    g_test_add_func("/run-facts/merge-images", test_merge_images);
    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++) {
        g_autofree char *path = g_strdup_printf("/run-facts/rate/%s", rates[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_rate);
    }
    g_test_add_func("/run-facts/rate-of-a-part", test_rate_of_a_part);
    g_test_add_func("/run-facts/error-domain", test_error_domain);
    return g_test_run();
}
