/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/processes.h"

enum { STACKS_MAX = 6, FRAMES_MAX = 8 };

/* clang-format off */
static const struct {
    const char *name;
    const char *root;
    struct {
        const char *frames;
        uint64_t weight;
    } stacks[STACKS_MAX];
    bool are_in;
    const char *shown;   /* "name kernel/total " for each process */
    const char *cgroups; /* (nullable): the same for each cgroup; NULL: there are none */
} cases[] = {
    { "plain", "vm", { { "nginx;main;write;entry_[k];tcp_[k]", 5 }, { "nginx;main", 2 }, { "sh;main", 3 } },
      true, "nginx 5/7 sh 0/3 " },
    { "by-name", "vm", { { "b;f_[k]", 1 }, { "a;f_[k]", 1 }, { "c;f", 1 } }, true, "a 1/1 b 1/1 c 0/1 " },
    { "per-vcpu", "vm", { { "vcpu0;nginx;entry_[k]", 5 }, { "vcpu1;nginx;main", 2 }, { "vcpu1;[idle]", 9 } },
      true, "nginx 5/7 " },
    { "no-root", NULL, { { "vm;nginx;entry_[k]", 5 }, { "vm2;vcpu1;nginx;main", 2 } }, true, "nginx 5/7 " },
    { "truncated", "vm", { { "nginx;[truncated];tcp_[k]", 5 }, { "[truncated];nginx;tcp_[k]", 2 } }, true, "nginx 7/7 " },
    { "unknown-in-kernel", "vm", { { "nginx;entry_[k];[unknown]", 4 }, { "nginx;[unknown]", 1 } }, true, "nginx 4/5 " },
    { "interrupt", "vm", { { "nginx;main;asm_sysvec_apic_timer_interrupt_[k]", 4 } }, true, "nginx 4/4 " },
    { "idle", "vm", { { "nginx;main", 1 }, { "[idle]", 7 }, { "swapper/0;start_[k];[idle]", 2 } }, true,
      "swapper/0 2/2 nginx 0/1 " },
    { "with-numbers", "vm", { { "nginx-812;entry_[k]", 1 }, { "nginx-813;entry_[k]", 2 } }, true,
      "nginx-813 2/2 nginx-812 1/1 " },
    { "cgroups", "vm", { { "nginx.service;nginx;entry_[k];tcp_[k]", 5 }, { "nginx.service;sh;main", 2 }, { "/docker/0123456789ab;nginx;main", 4 },
                         { "/;kworker/0;entry_[k]", 1 }, { "[idle]", 9 } },
      true, "nginx 5/9 sh 0/2 kworker/0 1/1 ", "nginx.service 5/7 /docker/0123456789ab 0/4 / 1/1 " },
    { "cgroups-per-vcpu", "vm", { { "vcpu0;a.scope;nginx;entry_[k]", 5 }, { "vcpu1;a.scope;[truncated];nginx;f_[k]", 2 }, { "vcpu1;[unknown]", 1 } },
      true, "nginx 7/7 [unknown] 0/1 ", "a.scope 7/7 [unknown] 0/1 " },
    { "cgroup-unknown", "vm", { { "[cgroup];nginx;entry_[k]", 5 }, { "b.service;nginx;main", 2 } }, true, "nginx 5/7 ",
      "[cgroup] 5/5 b.service 0/2 " },
    { "cgroup-alone", "vm", { { "nginx;entry_[k]", 5 }, { "b.service", 2 } }, true, "nginx 5/5 b.service 0/2 " },
    /* stacks from before the kernel was detected */
    { "no-name-yet", "vm", { { "nginx;entry_[k]", 1 }, { "0xffffffff81000000;0xffffffff81000010", 2 }, { "early_init_[k]", 4 },
                             { "[app+0x12];f", 8 }, { "[unknown];f_[k]", 16 }, { "vm_func;g", 32 } },
      true, "vm_func 0/32 [unknown] 20/30 nginx 1/1 " },
    { "no-name-yet-cut", "vm", { { "nginx;entry_[k]", 1 }, { "[truncated]", 2 }, { "[truncated];[truncated]", 4 },
                                 { "[truncated];asm_sysvec_call_function_[k]", 8 }, { "vcpu0;[truncated];0x12", 16 }, { "vcpu0;[idle]", 32 } },
      true, "[unknown] 8/30 nginx 1/1 " },
    { "named-like-a-number", "vm", { { "0x;f_[k]", 1 }, { "0xyz;f_[k]", 2 }, { "[sh];f_[k]", 4 }, { "vcpu0;vcpu1;f_[k]", 8 } },
      true, "vcpu1 8/8 [sh] 4/4 0xyz 2/2 0x 1/1 " },
    /* guests without processes */
    { "unikernel", "vm", { { "main;f;work", 5 } }, false, NULL },
    { "kernel-alone", "vm", { { "entry_[k];f_[k]", 5 }, { "[unknown];f_[k]", 5 }, { "[libc+0x1];f_[k]", 1 } }, false, NULL },
    { "kernel-alone-address", "vm", { { "0x401000;entry_[k];f_[k]", 5 } }, false, NULL },
    { "kernel-alone-cut", "vm", { { "[truncated];f_[k];g_[k]", 5 }, { "vcpu0;f_[k];g_[k]", 5 } }, false, NULL },
    { "empty", "vm", { { NULL, 0 } }, false, NULL },
    { "nothing-behind", "vm", { { "[truncated]", 1 }, { "vcpu0", 1 } }, false, NULL },
};
/* clang-format on */

static void
check_rows(const UprofProfile *profile, UprofRowsBy by, const char *wanted)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GArray) rows = uprof_processes_find(profile, by);

    for (guint r = 0; r < rows->len; r++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, r);
        g_string_append_printf(text, "%s %u/%u ", uprof_name_text(row->name), (unsigned)row->self,
                               (unsigned)row->total);
    }
    g_assert_cmpstr(text->str, ==, wanted);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile = uprof_profile_new(
        names, cases[i].root ? uprof_names_marker(names, cases[i].root) : NULL, false);

    for (unsigned s = 0; s < STACKS_MAX && cases[i].stacks[s].frames; s++) {
        g_auto(GStrv) words = g_strsplit(cases[i].stacks[s].frames, ";", -1);
        const UprofName *frames[FRAMES_MAX];
        unsigned n = 0;
        for (; words[n]; n++)
            frames[n] = uprof_names_marker(names, words[n]);
        uprof_profile_add(profile, frames, n, cases[i].stacks[s].weight);
    }
    g_assert_true(!uprof_processes_missing(profile, UPROF_BY_PROCESS) == cases[i].are_in);
    g_assert_true(!uprof_processes_missing(profile, UPROF_BY_CGROUP) == (cases[i].cgroups != NULL));
    if (cases[i].shown)
        check_rows(profile, UPROF_BY_PROCESS, cases[i].shown);
    if (cases[i].cgroups)
        check_rows(profile, UPROF_BY_CGROUP, cases[i].cgroups);
}

static void
test_vcpus(void)
{
    static const char *const stacks[] = { "vcpu1;main", "vcpu0;nginx;entry_[k]", "vcpu1;nginx",
                                          "vcpu1;[idle]", "main" };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofProfile) profile =
        uprof_profile_new(names, uprof_names_marker(names, "vm"), false);

    g_assert_nonnull(uprof_processes_missing(profile, UPROF_BY_VCPU));
    for (unsigned i = 0; i < G_N_ELEMENTS(stacks); i++) {
        const UprofName *frames[FRAMES_MAX];
        g_auto(GStrv) words = g_strsplit(stacks[i], ";", -1);
        unsigned n = 0;
        for (; words[n]; n++)
            frames[n] = uprof_names_marker(names, words[n]);
        uprof_profile_add(profile, frames, n, 1 + i);
    }
    g_assert_null(uprof_processes_missing(profile, UPROF_BY_VCPU));
    check_rows(profile, UPROF_BY_VCPU, "[unknown] 0/5 vcpu1 0/4 vcpu0 2/2 ");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/processes/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/processes/vcpus", test_vcpus);
    return g_test_run();
}
