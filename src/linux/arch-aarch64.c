/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All facts about aarch64 that src/linux uses.
 *
 * Sources: Linux, Documentation/arch/arm64/memory.rst (address ranges), arch/arm64/mm/mmu.c
 * (map_kernel: how the image is mapped), arch/arm64/kernel/vmlinux.lds.S (SEGMENT_ALIGN),
 * arch/arm64/include/asm/memory.h (THREAD_SIZE, IRQ_STACK_SIZE, PAGE_OFFSET, VMEMMAP_START),
 * arch/arm64/include/asm/ptrace.h (saved registers), arch/arm64/kernel/process.c (__entry_task),
 * arch/arm64/include/asm/processor.h (cpu_context).
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
/* The address in TTBR0 and TTBR1. A table of few entries is aligned to 64 bytes. */
#define ROOT_FRAME UINT64_C(0x0000ffffffffffc0)

#define SYMBOL(member) G_STRUCT_OFFSET(UprofLinuxSymbols, member)

/* clang-format off */
static const UprofLinuxSymbolName symbols[] = {
    { "swapper_pg_dir",          SYMBOL(root) },
    { "__entry_tramp_text_start", SYMBOL(hidden_start) },
    { "__entry_tramp_text_end",   SYMBOL(hidden_end) },
    { "__per_cpu_offset",        SYMBOL(cpu_areas) },
    { "__entry_task",            SYMBOL(current) },
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

/* Address of the first byte of CPU 0's own variables that the kernel's scheduler has. They lie in
 * the direct map of all memory. */
static bool
find_cpu_memory(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, const UprofLinuxSymbols *found,
                uint64_t *gva)
{
    const UprofKernelMemory memory = { .mem = mem, .vcpu = vcpu, .regs = regs };
    uint64_t area;

    if (found->cpu_areas == 0 || found->run_queues == 0 ||
        !uprof_kernel_read_word_always(&memory, found->cpu_areas, &area) || area == 0)
        return false;
    *gva = found->run_queues + area;
    return true;
}

/*
 * Finds the array of struct page. It begins at a constant address, which depends on how many bits
 * of an address the kernel is built for, and is another one from Linux 6.9 on. The page of the
 * kernel's own topmost table shows which one is right: it must have a struct page.
 * @all_memory: address of the direct map; @direct, @direct_end: the addresses that it may have
 */
static uint64_t
find_pages(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, unsigned bits, uint64_t all_memory)
{
    enum { STRUCT_PAGE_SHIFT = 6, PAGE_SHIFT = 12, SHIFT = PAGE_SHIFT - STRUCT_PAGE_SHIFT };
    const uint64_t direct = UINT64_MAX << bits, direct_end = UINT64_MAX << (MIN(bits, 48U) - 1);
    const uint64_t starts[] = {
        -(UINT64_C(1) << 30) - ((direct_end - direct) >> SHIFT),
        UINT64_MAX << (bits - SHIFT),
    };
    /* the physical address where the direct map begins may be negative */
    const uint64_t first = (uint64_t)((int64_t)(direct - all_memory) >> PAGE_SHIFT)
                           << STRUCT_PAGE_SHIFT;
    const uint64_t own = (regs->sys[UPROF_ARM_TTBR1] & ROOT_FRAME) >> PAGE_SHIFT
                                                                          << STRUCT_PAGE_SHIFT;

    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++)
        if (is_mapped(mem, vcpu, regs, starts[i] - first + own))
            return starts[i] - first;
    return 0;
}

/* The maps, and the stacks of tasks, are known of kernels with pages of 4 KiB. */
static void
find_maps(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, const UprofLinuxSymbols *found,
          UprofLinuxMaps *maps)
{
    enum { MIN_BITS_MAX = 48, GRANULE_SHIFT = 30, GRANULE_4K = 2 };
    static const uint8_t sizes[] = { 48, 52, 47, 42, 39, 36 };
    const uint64_t root = regs->sys[UPROF_ARM_TTBR1] & ROOT_FRAME;
    uint64_t gva, gpa, left;

    *maps = (UprofLinuxMaps){ 0 };
    if ((regs->sys[UPROF_ARM_TCR] >> GRANULE_SHIFT & 3) != GRANULE_4K ||
        !find_cpu_memory(mem, vcpu, regs, found, &gva) ||
        !uprof_mem_translate(mem, vcpu, regs, gva, &gpa, &left, NULL) ||
        !is_at(mem, vcpu, regs, gva - gpa + root, root))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) && maps->all_pages == 0; i++) {
        if (gva < UINT64_MAX << sizes[i] || gva >= UINT64_MAX << (MIN(sizes[i], MIN_BITS_MAX) - 1))
            continue;
        maps->all_memory = gva - gpa;
        maps->all_pages = find_pages(mem, vcpu, regs, sizes[i], gva - gpa);
    }
}

/* Instructions (Arm ARM, C6.2) */
#define INSN_HINT UINT32_C(0xd503201f) /* NOP, PACIASP, AUTIASP, BTI */
#define INSN_HINT_MASK UINT32_C(0xfffff01f)
#define INSN_KEEP_LR                                                                               \
    UINT32_C(0xaa1e03e9) /* MOV x9, x30: the kernel itself puts it there (ftrace) */
#define INSN_ADRP UINT32_C(0x90000000)
#define INSN_ADRP_MASK UINT32_C(0x9f000000)
#define INSN_ADD UINT32_C(0x91000000) /* of a constant */
#define INSN_ADD_MASK UINT32_C(0xffc00000)
#define INSN_ADD_REG UINT32_C(0x8b000000)
#define INSN_ADD_REG_MASK UINT32_C(0xffe0fc00)
#define INSN_LOAD UINT32_C(0xf8601800) /* of a register plus another one times 8 */
#define INSN_LOAD_MASK UINT32_C(0xffe01c00)

/* The registers of idle_task(): addresses, and the area of the CPU */
typedef struct {
    uint64_t value[32]; /* 0: unknown */
    uint64_t areas;     /* from which the area was loaded */
    unsigned area_reg;
} CodeState;

/* Returns: false if the instruction is none of those that idle_task() consists of */
static bool
follow_insn(CodeState *state, uint64_t pc, uint32_t insn, uint64_t *variable)
{
    const unsigned to = insn & 31, from = insn >> 5 & 31, other = insn >> 16 & 31;

    if ((insn & INSN_HINT_MASK) == INSN_HINT || insn == INSN_KEEP_LR)
        return true;
    if ((insn & INSN_ADRP_MASK) == INSN_ADRP) {
        const uint64_t pages = (insn >> 29 & 3) | (insn >> 5 & 0x7ffff) << 2;
        const uint64_t away = (pages ^ 1 << 20) - (1 << 20); /* 21 bits with a sign */
        state->value[to] = (pc & ~UINT64_C(0xfff)) + (away << 12);
        return true;
    }
    if ((insn & INSN_ADD_MASK) == INSN_ADD) {
        state->value[to] = state->value[from] ? state->value[from] + (insn >> 10 & 0xfff) : 0;
        return true;
    }
    if ((insn & INSN_LOAD_MASK) == INSN_LOAD && state->areas == 0) {
        state->areas = state->value[from];
        state->area_reg = to;
        state->value[to] = 0;
        return state->areas != 0;
    }
    if ((insn & INSN_ADD_REG_MASK) == INSN_ADD_REG && state->areas != 0 &&
        (from == state->area_reg || other == state->area_reg))
        *variable = state->value[from == state->area_reg ? other : from];
    return false;
}

static void
read_cpu_areas(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t code, uint64_t *areas,
               uint64_t *run_queues)
{
    enum { INSNS_MAX = 16 };
    const UprofKernelMemory memory = { .mem = mem, .vcpu = vcpu, .regs = regs };
    CodeState state = { .areas = 0 };
    uint64_t variable = 0;
    uint32_t insn;

    for (unsigned i = 0; i < INSNS_MAX; i++)
        if (!uprof_kernel_read_u32_always(&memory, code + i * sizeof(insn), &insn) ||
            !follow_insn(&state, code + i * sizeof(insn), insn, &variable))
            break;
    if (variable == 0)
        return;
    *areas = state.areas;
    *run_queues = variable;
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
    .has_roots_in_tasks = true,
    .find_maps = find_maps,
    .read_cpu_areas = read_cpu_areas,
    .has_hidden_user_root = has_hidden_user_root,
    .is_same_root = is_same_root,
};
