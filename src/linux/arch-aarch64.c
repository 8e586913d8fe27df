/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All facts about aarch64 that src/linux uses.
 *
 * Sources: Linux, Documentation/arch/arm64/memory.rst (address ranges), arch/arm64/mm/mmu.c
 * (map_kernel: how the image is mapped), arch/arm64/kernel/vmlinux.lds.S (SEGMENT_ALIGN),
 * arch/arm64/include/asm/memory.h (THREAD_SIZE, IRQ_STACK_SIZE, PAGE_OFFSET, VMEMMAP_START),
 * arch/arm64/include/asm/ptrace.h (saved registers), arch/arm64/kernel/process.c (__entry_task),
 * arch/arm64/kernel/irq.c (irq_stack_ptr), arch/arm64/include/asm/processor.h (cpu_context).
 */
#include "uprof/linux-arch.h"

#include "kernel-memory-priv.h"
#include "kernel-symbols-priv.h"
#include "syscalls-priv.h"

/*
 * The upper half of the kernel's addresses, for kernels with 36 to 52 bits of an address: the
 * image, the modules, and other memory that is mapped page by page. KASLR moves the image in most
 * of it.
 */
#define KERNEL_START UINT64_C(0xffff800000000000)
#define KERNEL_END UINT64_C(0xfffffffc00000000)
/* UEFI may put the image at any multiple of this size (EFI_KIMG_ALIGN). */
#define IMAGE_STEP_BYTES (UINT64_C(64) * 1024)
#define ROOT_FRAME UINT64_C(0x0000fffffffff000)

#define SYMBOL(member) G_STRUCT_OFFSET(UprofLinuxSymbols, member)

/* clang-format off */
static const UprofLinuxSymbolName symbols[] = {
    { "swapper_pg_dir",          SYMBOL(root) },
    { "__entry_tramp_text_start", SYMBOL(hidden_start) },
    { "__entry_tramp_text_end",   SYMBOL(hidden_end) },
    { "__per_cpu_offset",        SYMBOL(cpu_areas) },
    { "__entry_task",            SYMBOL(current) },
    { "irq_stack_ptr",           SYMBOL(irq_stack) },
    { "memstart_addr",           SYMBOL(memory_start) },
    { "ret_from_fork",           SYMBOL(fork_return) },
};

/* cpu_switch_to() saves the registers in the task itself. */
static const UprofLinuxSwitchFrame switch_frame = {
    .sp_member = "thread.cpu_context.sp",
    .pc_member = "thread.cpu_context.pc",
    .fp_member = "thread.cpu_context.fp",
};

/* struct pt_regs: x0 to x30, sp, pc, pstate, and more */
static const UprofLinuxEntryFrame entry_frame = {
    .regs_words = 42, .frame_word = 31,
    .sp_word = 0, .pc_word = 1, .mode_word = 2, .flags_word = 2,
    .user_privilege = 3,
};
/* clang-format on */

static bool
is_kernel_mode(const UprofRegs *regs)
{
    return !regs->smm && (regs->sys[UPROF_ARM_SCTLR] & UPROF_ARM_SCTLR_M);
}

/* The anchor is the program counter in kernel mode: no known register points into the image. */
static bool
find_anchor(G_GNUC_UNUSED UprofMem *mem, G_GNUC_UNUSED unsigned vcpu, const UprofRegs *regs,
            uint64_t *anchor)
{
    *anchor = regs->pc;
    return regs->privilege == 0 && regs->pc >= KERNEL_START && regs->pc < KERNEL_END;
}

/* The tables of the upper half always map the whole kernel. */
static void
use_kernel_root(G_GNUC_UNUSED UprofMem *mem, G_GNUC_UNUSED unsigned vcpu,
                G_GNUC_UNUSED UprofRegs *regs, G_GNUC_UNUSED uint64_t anchor)
{
}

/* Returns: does the kernel map the physical address @gpa at @gva? */
static bool
is_at(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, uint64_t gpa)
{
    uint64_t found, left;

    return uprof_mem_translate(mem, vcpu, regs, gva, &found, &left, NULL) && found == gpa;
}

static bool
is_mapped(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva)
{
    uint64_t gpa, left;

    return uprof_mem_translate(mem, vcpu, regs, gva, &gpa, &left, NULL);
}

/*
 * Both maps begin at constant addresses, which depend on how many bits of an address the kernel is
 * built for. No variable tells this number. The kernel's own topmost page table shows which one is
 * right: the direct map must lead to it, and it must have a struct page. The array of these lies
 * elsewhere from Linux 6.9 on. Only kernels with pages of 4 KiB have their files' pages read.
 */
static void
find_maps(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, const UprofLinuxSymbols *found,
          UprofLinuxMaps *maps)
{
    enum { STRUCT_PAGE_SHIFT = 6, PAGE_SHIFT = 12, MIN_BITS_MAX = 48, GRANULE_4K = 2 };
    static const uint8_t sizes[] = { 52, 48, 47, 42, 39, 36 };
    const UprofKernelMemory memory = { .mem = mem, .vcpu = vcpu, .regs = regs };
    const uint64_t root = regs->sys[UPROF_ARM_TTBR1] & ROOT_FRAME;
    uint64_t start;

    *maps = (UprofLinuxMaps){ 0 };
    if (found->memory_start == 0 ||
        !uprof_kernel_read_word_always(&memory, found->memory_start, &start))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) && maps->all_memory == 0; i++) {
        const uint64_t direct = UINT64_MAX << sizes[i];
        if (!is_at(mem, vcpu, regs, direct - start + root, root))
            continue;
        maps->all_memory = direct - start;
        const uint64_t direct_end = UINT64_MAX << (MIN(sizes[i], MIN_BITS_MAX) - 1);
        const uint64_t pages[] = {
            -(UINT64_C(1) << 30) - ((direct_end - direct) >> (PAGE_SHIFT - STRUCT_PAGE_SHIFT)),
            UINT64_MAX << (sizes[i] - (PAGE_SHIFT - STRUCT_PAGE_SHIFT)),
        };
        /* the physical address may be negative */
        const uint64_t first = (uint64_t)((int64_t)start >> PAGE_SHIFT) << STRUCT_PAGE_SHIFT;
        const uint64_t own = root >> PAGE_SHIFT << STRUCT_PAGE_SHIFT;
        for (size_t k = 0; k < G_N_ELEMENTS(pages) && maps->all_pages == 0; k++)
            if ((regs->sys[UPROF_ARM_TCR] >> 30 & 3) == GRANULE_4K &&
                is_mapped(mem, vcpu, regs, pages[k] - first + own))
                maps->all_pages = pages[k] - first;
    }
}

static bool
has_hidden_user_root(G_GNUC_UNUSED const UprofRegs *regs)
{
    return false;
}

static bool
has_direct_roots(G_GNUC_UNUSED const UprofRegs *regs)
{
    return true;
}

static bool
is_same_root(const UprofRegs *regs, uint64_t tables, G_GNUC_UNUSED bool may_be_user)
{
    return ((regs->sys[UPROF_ARM_TTBR0] ^ tables) & ROOT_FRAME) == 0;
}

const UprofLinuxArch uprof_linux_arch_aarch64 = {
    .image_start = KERNEL_START,
    .image_end = KERNEL_END,
    .modules_start = KERNEL_START,
    .modules_end = KERNEL_END,
    .image_step_bytes = IMAGE_STEP_BYTES,
    /* the addresses of fixed maps (arch/arm64/include/asm/fixmap.h) */
    .alias_start = UINT64_C(0xffffffffff000000),
    /* The header for booting is not mapped. */
    .image_head_bytes = 64 * 1024,
    /* Code and data for booting are unmapped later. */
    .image_hole_bytes_max = UINT64_C(16) * 1024 * 1024,
    .stack_bytes = 16 * 1024,
    .irq_stack_bytes = 16 * 1024,
    .has_start_of_irq_stack = true,
    .entry = &entry_frame,
    .switch_frame = &switch_frame,
    .syscall_word = 35,
    .syscall_bytes = 4,
    .syscall_names = uprof_linux_syscalls_aarch64,
    .n_syscall_names = UPROF_LINUX_N_SYSCALLS_AARCH64,
    .thread_member = "thread.uw.tp_value",
    .symbols = symbols,
    .n_symbols = G_N_ELEMENTS(symbols),
    .is_kernel_mode = is_kernel_mode,
    .find_anchor = find_anchor,
    .use_kernel_root = use_kernel_root,
    .root_mask = ROOT_FRAME,
    .has_direct_roots = has_direct_roots,
    .find_maps = find_maps,
    .has_hidden_user_root = has_hidden_user_root,
    .is_same_root = is_same_root,
};
