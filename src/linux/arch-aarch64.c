/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All facts about aarch64 that src/linux uses.
 *
 * Sources: Linux, Documentation/arch/arm64/memory.rst (address ranges), arch/arm64/mm/mmu.c
 * (map_kernel: how the image is mapped), arch/arm64/kernel/vmlinux.lds.S (SEGMENT_ALIGN),
 * arch/arm64/include/asm/memory.h (THREAD_SIZE, IRQ_STACK_SIZE).
 */
#include "uprof/linux-arch.h"

#include "kernel-symbols-priv.h"

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
    { "swapper_pg_dir",   SYMBOL(root) },
    { "__per_cpu_offset", SYMBOL(cpu_areas) },
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

static uint64_t
get_root(const UprofRegs *regs)
{
    return regs->sys[UPROF_ARM_TTBR1];
}

static void
set_root(UprofRegs *regs, uint64_t root)
{
    regs->sys[UPROF_ARM_TTBR1] = root;
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
    /* The header for booting is not mapped. */
    .image_head_bytes = 64 * 1024,
    /* Code and data for booting are unmapped later. */
    .image_hole_bytes_max = UINT64_C(16) * 1024 * 1024,
    .stack_bytes = 16 * 1024,
    .irq_stack_bytes = 16 * 1024,
    .symbols = symbols,
    .n_symbols = G_N_ELEMENTS(symbols),
    .is_kernel_mode = is_kernel_mode,
    .find_anchor = find_anchor,
    .use_kernel_root = use_kernel_root,
    .root = get_root,
    .set_root = set_root,
    .root_mask = ROOT_FRAME,
    .has_direct_roots = has_direct_roots,
    .has_hidden_user_root = has_hidden_user_root,
    .is_same_root = is_same_root,
};
