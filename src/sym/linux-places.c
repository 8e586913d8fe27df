/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "linux-priv.h"

#include <string.h>

#define PLACE(member) G_STRUCT_OFFSET(UprofLinuxPlaces, member)

/* Of several names for one place the first that is there counts. */
static const struct {
    const char *name;
    size_t place;
} wanted[] = {
    { "_text", PLACE(text) },
    { "linux_banner", PLACE(banner) },
    { "init_top_pgt", PLACE(root) },
    { "init_level4_pgt", PLACE(root) }, /* until 4.12 */
    { "__start_BTF", PLACE(btf_start) },
    { "__stop_BTF", PLACE(btf_end) },
    { "__start_orc_unwind_ip", PLACE(orc_ips_start) },
    { "__stop_orc_unwind_ip", PLACE(orc_ips_end) },
    { "__start_orc_unwind", PLACE(orc_start) },
    { "__stop_orc_unwind", PLACE(orc_end) },
    { "__start_orc_header", PLACE(orc_header_start) },
    { "__stop_orc_header", PLACE(orc_header_end) },
    { "__per_cpu_offset", PLACE(areas) },
    { "pcpu_hot", PLACE(hot) },
    { "current_task", PLACE(current) },
    { "hardirq_stack_ptr", PLACE(irq) },
    { "page_offset_base", PLACE(all_memory) },
    { "vmemmap_base", PLACE(all_pages) },
    { "modules", PLACE(modules) },
    { "asm_fred_entrypoint_user", PLACE(fred) },
    { "vmcoreinfo_data", PLACE(info) },
    { "vmcoreinfo_size", PLACE(info_bytes) },
    { "__entry_text_start", PLACE(entry_start) },
    { "__entry_text_end", PLACE(entry_end) },
};

void
uprof_linux_places_find(const UprofKallsyms *kallsyms, UprofLinuxPlaces *places)
{
    g_autoptr(GHashTable) rows = g_hash_table_new(g_str_hash, g_str_equal);

    *places = (UprofLinuxPlaces){ 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        g_hash_table_insert(rows, (gpointer)wanted[i].name, GSIZE_TO_POINTER(i + 1));
    for (guint i = 0; i < kallsyms->symbols->len; i++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
        const size_t row =
            GPOINTER_TO_SIZE(g_hash_table_lookup(rows, uprof_kallsyms_name(kallsyms, symbol)));
        uint64_t *place = row > 0 ? G_STRUCT_MEMBER_P(places, wanted[row - 1].place) : NULL;
        if (place && *place == 0)
            *place = symbol->address;
    }
}
