/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-symbols-priv.h"

#include <string.h>

#define SYMBOL(member) G_STRUCT_OFFSET(UprofLinuxSymbols, member)

/* Symbols of every architecture. */
static const UprofLinuxSymbolName common_symbols[] = {
    { "_text", SYMBOL(text) },
    { "_stext", SYMBOL(first_code) },
    { "linux_banner", SYMBOL(banner) },
    { "__start_BTF", SYMBOL(btf_start) },
    { "__stop_BTF", SYMBOL(btf_end) },
    { "__start_orc_unwind_ip", SYMBOL(orc_ips_start) },
    { "__stop_orc_unwind_ip", SYMBOL(orc_ips_end) },
    { "__start_orc_unwind", SYMBOL(orc_start) },
    { "__stop_orc_unwind", SYMBOL(orc_end) },
    { "__start_orc_header", SYMBOL(orc_header_start) },
    { "__stop_orc_header", SYMBOL(orc_header_end) },
    { "modules", SYMBOL(modules) },
    { "prb", SYMBOL(log) },
    { "bpf_kallsyms", SYMBOL(bpf_list) },
    { "ftrace_ops_trampoline_list", SYMBOL(ftrace_list) },
    { "kprobe_insn_slots", SYMBOL(kprobes) },
    { "kprobe_optinsn_slots", SYMBOL(optimized_kprobes) },
    { "init_task", SYMBOL(init_task) },
    { "init_pid_ns", SYMBOL(first_ids) },
    { "runqueues", SYMBOL(run_queues) },
    { "idle_task", SYMBOL(idle_task_code) },
    { "__sched_text_start", SYMBOL(wait_start) },
    { "__sched_text_end", SYMBOL(wait_end) },
    { "__lock_text_start", SYMBOL(lock_start) },
    { "__lock_text_end", SYMBOL(lock_end) },
    { "vmcoreinfo_data", SYMBOL(info) },
    { "vmcoreinfo_size", SYMBOL(info_bytes) },
};

static void
index_names(GHashTable *index, const UprofLinuxSymbolName *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g_hash_table_insert(index, (gpointer)names[i].name, (gpointer)&names[i]);
}

void
uprof_linux_symbols_find(const UprofKallsyms *kallsyms, const UprofLinuxArch *arch,
                         UprofLinuxSymbols *symbols)
{
    g_autoptr(GHashTable) index = g_hash_table_new(g_str_hash, g_str_equal);

    *symbols = (UprofLinuxSymbols){ 0 };
    index_names(index, common_symbols, G_N_ELEMENTS(common_symbols));
    index_names(index, arch->symbols, arch->n_symbols);
    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        const UprofLinuxSymbolName *name =
            g_hash_table_lookup(index, uprof_kallsyms_name(kallsyms, symbol));
        uint64_t *address = name ? G_STRUCT_MEMBER_P(symbols, name->member) : NULL;
        /* The first symbol of a name counts. */
        if (address && *address == 0)
            *address = symbol->address;
    }
}
