/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All facts about x86_64 that src/linux uses.
 *
 * Sources: Linux, Documentation/arch/x86/x86_64/mm.rst (address ranges),
 * Documentation/arch/x86/pti.rst (page-table isolation), arch/x86/include/asm/ptrace.h
 * (saved registers), arch/x86/include/asm/segment.h, arch/x86/include/asm/current.h,
 * arch/x86/include/asm/irq_stack.h, arch/x86/include/asm/processor.h,
 * arch/x86/include/asm/switch_to.h; Intel SDM, volume 2 (SYSCALL) and volume 3, 6.14.
 */
#include "uprof/linux-arch.h"

#include "kernel-memory-priv.h"
#include "kernel-symbols-priv.h"
#include "syscalls-priv.h"

/* The kernel has one gigabyte near the top of the address space. Its modules lie behind it. */
#define IMAGE_START UINT64_C(0xffffffff80000000)
#define IMAGE_END UINT64_C(0xffffffffc0000000)
#define MODULES_END UINT64_C(0xffffffffff000000)
#define IMAGE_STEP_BYTES (UINT64_C(2) * 1024 * 1024)

/* The physical address in CR3; the other bits are flags and the address-space number. */
#define ROOT_FRAME UINT64_C(0x000ffffffffff000)
/* Page-table isolation: a process's tables for user mode lie one page behind its kernel tables. */
#define USER_ROOT_BIT UINT64_C(0x1000)

#define BIT(reg) (UINT64_C(1) << (reg))
#define SYMBOL(member) G_STRUCT_OFFSET(UprofLinuxSymbols, member)

/* clang-format off */

/* struct pt_regs, up to the word that distinguishes system calls from interrupts (orig_ax) */
static const uint8_t saved_regs[] = {
    UPROF_X86_R15, UPROF_X86_R15 - 1, UPROF_X86_R15 - 2, UPROF_X86_R15 - 3, UPROF_X86_RBP,
    UPROF_X86_RBX, UPROF_X86_R8 + 3, UPROF_X86_R8 + 2, UPROF_X86_R8 + 1, UPROF_X86_R8,
    UPROF_X86_RAX, UPROF_X86_RCX, UPROF_X86_RDX, UPROF_X86_RSI, UPROF_X86_RDI,
};

/*
 * Segments of kernel code and of 32-bit and 64-bit user code. Xen gives its paravirtual guests
 * segments of its own (Xen, xen/include/public/arch-x86/xen-x86_64.h).
 */
static const UprofLinuxSegment segments[] = {
    { 0x10, 8 },   { 0x23, 4 },   { 0x33, 8 },
    { 0xe030, 8 }, { 0xe023, 4 }, { 0xe033, 8 },
};

static const UprofLinuxEntryFrame entry_frame = {
    .saved_regs = saved_regs, .n_saved_regs = G_N_ELEMENTS(saved_regs),
    .regs_words = 21, .frame_word = 16,
    .pc_word = 0, .mode_word = 1, .flags_word = 2, .sp_word = 3,
    .segments = segments, .n_segments = G_N_ELEMENTS(segments),
    .user_privilege = 3,
    .syscall_pc_reg = UPROF_X86_RCX,
    .syscall_lost_regs = BIT(UPROF_X86_RCX) | BIT(UPROF_X86_R8 + 3),
    .return_reg = UPROF_X86_RDI,
};

static const UprofLinuxSwitchFrame switch_frame = {
    .sp_member = "thread.sp", .type = "inactive_task_frame",
    .pc_member = "ret_addr", .fp_member = "bp",
};

static const UprofLinuxSymbolName symbols[] = {
    { "init_top_pgt",             SYMBOL(root) },
    { "init_level4_pgt",          SYMBOL(root) }, /* until 4.12 */
    { "__per_cpu_offset",         SYMBOL(cpu_areas) },
    { "pcpu_hot",                 SYMBOL(hot) },
    { "current_task",             SYMBOL(current) },
    { "hardirq_stack_ptr",        SYMBOL(irq_stack) },
    { "page_offset_base",         SYMBOL(all_memory) },
    { "vmemmap_base",             SYMBOL(all_pages) },
    { "asm_fred_entrypoint_user", SYMBOL(fred_entry) },
    { "__entry_text_start",       SYMBOL(entry_start) },
    { "__entry_text_end",         SYMBOL(entry_end) },
    { "ret_from_fork_asm",        SYMBOL(fork_return) },
    { "ret_from_fork",            SYMBOL(old_fork_return) }, /* up to 6.5 */
};
/* clang-format on */

static bool
is_kernel_mode(const UprofRegs *regs)
{
    return regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_LMA;
}

static bool
is_in_image(uint64_t gva)
{
    return gva >= IMAGE_START && gva < IMAGE_END;
}

/*
 * Reads the handler's address from the first gate of the interrupt descriptor table. The
 * address has three parts (Intel SDM, volume 3, 6.14.1).
 */
static bool
read_interrupt_gate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t *handler)
{
    uint8_t gate[16];

    if (!uprof_mem_read(mem, vcpu, regs, regs->sys[UPROF_X86_IDT], gate, sizeof(gate)))
        return false;
    *handler = uprof_read_le16(gate) | (uint64_t)uprof_read_le16(gate + 6) << 16 |
               (uint64_t)uprof_read_le32(gate + 8) << 32;
    return true;
}

/* The anchor is the program counter in kernel mode, else the handler of an interrupt. */
static bool
find_anchor(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t *anchor)
{
    *anchor = regs->pc;
    if (regs->privilege == 0 && is_in_image(regs->pc))
        return true;
    *anchor = regs->sys[UPROF_X86_XEN_ENTRY];
    return (regs->sys[UPROF_X86_XEN_PV] != 0 || read_interrupt_gate(mem, vcpu, regs, anchor)) &&
           is_in_image(*anchor);
}

static bool
is_mapped(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva)
{
    UprofMapping mapping;

    return is_in_image(gva) && uprof_mem_find(mem, vcpu, regs, gva, &mapping);
}

/*
 * With page-table isolation a process's tables for user mode map only the kernel's entry code:
 * nothing is mapped one step before and behind the anchor.
 */
static void
use_kernel_root(UprofMem *mem, unsigned vcpu, UprofRegs *regs, uint64_t anchor)
{
    const uint64_t root = regs->sys[UPROF_X86_CR3];

    if (regs->sys[UPROF_X86_XEN_PV] != 0 && regs->sys[UPROF_X86_XEN_ROOT] != 0) {
        regs->sys[UPROF_X86_CR3] = regs->sys[UPROF_X86_XEN_ROOT];
        return;
    }
    if (is_mapped(mem, vcpu, regs, anchor - IMAGE_STEP_BYTES) ||
        is_mapped(mem, vcpu, regs, anchor + IMAGE_STEP_BYTES) || !(root & USER_ROOT_BIT))
        return;
    /* The low bits are USER_ROOT_BIT and the address-space number. */
    regs->sys[UPROF_X86_CR3] = root & ~(USER_ROOT_BIT | (USER_ROOT_BIT - 1));
    if (!is_mapped(mem, vcpu, regs, anchor))
        regs->sys[UPROF_X86_CR3] = root;
}

/* Xen's paravirtual guests have tables for user mode that may lie anywhere. */
static bool
has_hidden_user_root(const UprofRegs *regs)
{
    return regs->privilege != 0 && regs->sys[UPROF_X86_XEN_PV] != 0;
}

/* Xen's paravirtual guests have other addresses in their page tables than in the direct map. */
static bool
has_direct_roots(const UprofRegs *regs)
{
    return regs->sys[UPROF_X86_XEN_PV] == 0;
}

/* Both addresses are in variables, because KASLR moves the maps, too. */
static void
find_maps(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, const UprofLinuxSymbols *found,
          UprofLinuxMaps *maps)
{
    const UprofKernelMemory memory = { .mem = mem, .vcpu = vcpu, .regs = regs };

    if (found->all_memory == 0 ||
        !uprof_kernel_read_word_always(&memory, found->all_memory, &maps->all_memory))
        maps->all_memory = 0;
    if (found->all_pages == 0 ||
        !uprof_kernel_read_word_always(&memory, found->all_pages, &maps->all_pages))
        maps->all_pages = 0;
}

static bool
is_same_root(const UprofRegs *regs, uint64_t tables, bool may_be_user)
{
    const uint64_t difference = (regs->sys[UPROF_X86_CR3] ^ tables) & ROOT_FRAME;

    return difference == 0 || (difference == USER_ROOT_BIT && may_be_user);
}

const UprofLinuxArch uprof_linux_arch_x86_64 = {
    .image_start = IMAGE_START,
    .image_end = IMAGE_END,
    .modules_start = IMAGE_END,
    .modules_end = MODULES_END,
    .image_step_bytes = IMAGE_STEP_BYTES,
    /* Code and data for booting are unmapped later; up to 5.3 MiB were seen. */
    .image_hole_bytes_max = UINT64_C(8) * 1024 * 1024,
    /* THREAD_SIZE and IRQ_STACK_SIZE without KASAN */
    .stack_bytes = 16 * 1024,
    .irq_stack_bytes = 16 * 1024,
    .fred_bytes = 16,
    .entry = &entry_frame,
    .switch_frame = &switch_frame,
    .syscall_word = 15,
    .syscall_bytes = 8,
    .syscall_names = uprof_linux_syscalls_x86_64,
    .n_syscall_names = UPROF_LINUX_N_SYSCALLS_X86_64,
    .thread_member = "thread.fsbase",
    .symbols = symbols,
    .n_symbols = G_N_ELEMENTS(symbols),
    .is_kernel_mode = is_kernel_mode,
    .find_anchor = find_anchor,
    .use_kernel_root = use_kernel_root,
    .root_mask = ROOT_FRAME & ~USER_ROOT_BIT,
    .has_direct_roots = has_direct_roots,
    .find_maps = find_maps,
    .has_hidden_user_root = has_hidden_user_root,
    .is_same_root = is_same_root,
};
