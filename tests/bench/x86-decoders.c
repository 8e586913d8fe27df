/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-x86-decoders FILE...: compares parse/x86-insn.c with Zydis
 *
 * Decodes each function in the symbol tables of the ELF files with both decoders, and prints their
 * differences and their times. If Zydis cannot decode bytes, they may be data, so the tool then
 * skips the rest of the function.
 */
#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <gelf.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "uprof/clock.h"
#include "uprof/x86-insn.h"

enum { ROUNDS = 5, SHOWN_MAX = 8 };

/* The bytes of a function are borrowed from the ELF file. */
typedef struct {
    const uint8_t *code;
    size_t len;
} Function;

/* The differences between the two decoders. */
typedef enum {
    SAME,
    ONLY_ZYDIS, /* uprof_x86_insn() refuses the bytes */
    ONLY_UPROF, /* Zydis refuses the bytes */
    NEITHER,
    LENGTH,      /* different lengths */
    MISSED_LOSS, /* Zydis says that a pointer is written, uprof_x86_insn() does not */
    EXTRA_LOSS,  /* uprof_x86_insn() says that a pointer is written, Zydis does not */
    FLOW,        /* call, jump, branch, return */
    N_RESULTS,
} Result;

static const char *const result_names[N_RESULTS] = {
    "same",        "only Zydis",  "only virt-uprof", "neither",
    "two lengths", "missed loss", "extra loss",      "other flow",
};

static ZydisDecoder decoder;

/* Stack pointer and frame pointer are bits, because one instruction can write both. */
enum { SP_BIT = 1, FP_BIT = 2 };

static unsigned
find_pointer_bit(ZydisRegister reg)
{
    switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
    case ZYDIS_REGISTER_RSP:
        return SP_BIT;
    case ZYDIS_REGISTER_RBP:
        return FP_BIT;
    default:
        return 0;
    }
}

/* Pointers that the instruction writes, hidden operands included. */
static unsigned
find_written(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    unsigned written = 0;

    for (unsigned i = 0; i < insn->operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            written |= find_pointer_bit(operands[i].reg.value);
    return written;
}

static unsigned
find_changed(const UprofX86Insn *insn)
{
    switch (insn->kind) {
    case UPROF_X86_POP:
        return insn->reg == UPROF_X86_INSN_FP ? SP_BIT | FP_BIT : SP_BIT;
    case UPROF_X86_LEAVE:
        return SP_BIT | FP_BIT;
    case UPROF_X86_PUSH:
    case UPROF_X86_CALL:
    case UPROF_X86_MOVE_SP:
    case UPROF_X86_SP_FROM_FP:
    case UPROF_X86_SP_LOST:
        return SP_BIT;
    case UPROF_X86_FP_FROM_SP:
    case UPROF_X86_ZERO_FP:
    case UPROF_X86_FP_LOST:
        return FP_BIT;
    default:
        return 0;
    }
}

static bool
is_same_flow(const UprofX86Insn *insn, const ZydisDecodedInstruction *other)
{
    const ZydisInstructionCategory flow = other->meta.category;

    switch (insn->kind) {
    case UPROF_X86_CALL:
        return flow == ZYDIS_CATEGORY_CALL;
    case UPROF_X86_JUMP:
    case UPROF_X86_JUMP_ANY:
        return flow == ZYDIS_CATEGORY_UNCOND_BR;
    case UPROF_X86_BRANCH:
        return flow == ZYDIS_CATEGORY_COND_BR;
    case UPROF_X86_RETURN:
        return flow == ZYDIS_CATEGORY_RET || flow == ZYDIS_CATEGORY_SYSRET ||
               other->mnemonic == ZYDIS_MNEMONIC_UD2;
    default:
        return flow != ZYDIS_CATEGORY_CALL && flow != ZYDIS_CATEGORY_UNCOND_BR &&
               flow != ZYDIS_CATEGORY_COND_BR && flow != ZYDIS_CATEGORY_RET;
    }
}

static Result
compare_insns(const uint8_t *code, size_t len, size_t *insn_len)
{
    ZydisDecodedInstruction other;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    UprofX86Insn insn;
    const bool is_decoded = uprof_x86_insn((UprofSlice){ code, len }, 8, &insn);
    const bool is_decoded_by_zydis =
        ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &other, operands));

    *insn_len = is_decoded_by_zydis ? other.length : 0;
    if (!is_decoded || !is_decoded_by_zydis)
        return is_decoded ? ONLY_UPROF : is_decoded_by_zydis ? ONLY_ZYDIS : NEITHER;
    if (insn.len != other.length)
        return LENGTH;
    if (!is_same_flow(&insn, &other))
        return FLOW;
    if (insn.kind == UPROF_X86_RETURN || insn.kind == UPROF_X86_CALL)
        return SAME;
    const unsigned changed = find_changed(&insn), written = find_written(&other, operands);
    return written & ~changed ? MISSED_LOSS : changed & ~written ? EXTRA_LOSS : SAME;
}

static void
print_insn(Result result, const uint8_t *code, size_t len)
{
    printf("  %-15s ", result_names[result]);
    for (size_t i = 0; i < MIN(len, UPROF_X86_INSN_BYTES_MAX); i++)
        printf(" %02x", code[i]);
    printf("\n");
}

static void
compare_functions(const GArray *functions)
{
    uint64_t counts[N_RESULTS] = { 0 };

    for (guint i = 0; i < functions->len; i++) {
        const Function *function = &g_array_index(functions, Function, i);
        size_t insn_len;
        for (size_t at = 0; at < function->len; at += insn_len) {
            const size_t left = function->len - at;
            const Result result = compare_insns(function->code + at, left, &insn_len);
            if (result != SAME && counts[result] < SHOWN_MAX)
                print_insn(result, function->code + at, insn_len ? insn_len : left);
            counts[result]++;
            if (insn_len == 0)
                break;
        }
    }
    for (unsigned i = 0; i < N_RESULTS; i++)
        printf("%-16s %12" G_GUINT64_FORMAT "\n", result_names[i], counts[i]);
}

/* Returns: bytes of the instruction; 0 if the bytes are not an instruction */
typedef size_t (*Decode)(const uint8_t *code, size_t len);

static size_t
decode_uprof(const uint8_t *code, size_t len)
{
    UprofX86Insn insn;

    return uprof_x86_insn((UprofSlice){ code, len }, 8, &insn) ? insn.len : 0;
}

static size_t
decode_zydis(const uint8_t *code, size_t len)
{
    ZydisDecodedInstruction insn;

    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, len, &insn))
               ? insn.length
               : 0;
}

/* Decodes with operands, which tell the registers that the instruction writes. */
static size_t
decode_zydis_operands(const uint8_t *code, size_t len)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &insn, operands)) ? insn.length
                                                                                      : 0;
}

/* Returns: nanoseconds for an instruction, in the fastest of several rounds */
static double
measure_decoder(const GArray *functions, Decode decode)
{
    double best = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t begin_ns = uprof_clock_now_ns();
        uint64_t n = 0;
        for (guint i = 0; i < functions->len; i++) {
            const Function *function = &g_array_index(functions, Function, i);
            size_t len = 1;
            for (size_t at = 0; at < function->len && len > 0; at += len, n++)
                len = decode(function->code + at, function->len - at);
        }
        const double cost = (double)(uprof_clock_now_ns() - begin_ns) / (double)MAX(n, 1);
        best = round == 0 || cost < best ? cost : best;
    }
    return best;
}

static const uint8_t *
find_code(Elf *elf, const GElf_Sym *symbol, size_t len)
{
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    GElf_Shdr header;
    size_t file_len;
    const char *file = elf_rawfile(elf, &file_len);

    if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
        !(header.sh_flags & SHF_EXECINSTR) || symbol->st_value < header.sh_addr ||
        symbol->st_value - header.sh_addr > header.sh_size ||
        len > header.sh_size - (symbol->st_value - header.sh_addr))
        return NULL;
    return (const uint8_t *)file + header.sh_offset + (symbol->st_value - header.sh_addr);
}

static int
compare_starts(gconstpointer a, gconstpointer b)
{
    const Function *one = a, *other = b;

    return (one->code > other->code) - (one->code < other->code);
}

static void
add_functions(Elf *elf, Elf_Scn *section, GArray *functions)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 ||
            symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE)
            continue;
        const Function function = { find_code(elf, &symbol, symbol.st_size), symbol.st_size };
        if (function.code)
            g_array_append_val(functions, function);
    }
}

/* The mapping of @elf stays until the program ends. */
static void
load_functions(const char *path, GArray *functions)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    const guint first = functions->len;
    GElf_Shdr header;

    if (!elf) {
        fprintf(stderr, "%s: cannot read\n", path);
        exit(EXIT_FAILURE);
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
            add_functions(elf, section, functions);
    close(fd);

    /* a function with several names counts once */
    g_array_sort(functions, compare_starts);
    guint kept = functions->len > 0 ? 1 : 0;
    for (guint i = 1; i < functions->len; i++)
        if (g_array_index(functions, Function, i).code !=
            g_array_index(functions, Function, kept - 1).code)
            g_array_index(functions, Function, kept++) = g_array_index(functions, Function, i);
    g_array_set_size(functions, kept);
    printf("%s: %u functions\n", path, kept - first);
}

int
main(int argc, char **argv)
{
    g_autoptr(GArray) functions = g_array_new(FALSE, FALSE, sizeof(Function));

    elf_version(EV_CURRENT);
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (int i = 1; i < argc; i++)
        load_functions(argv[i], functions);
    compare_functions(functions);
    printf("virt-uprof          %6.1f ns an instruction\n",
           measure_decoder(functions, decode_uprof));
    printf("Zydis               %6.1f ns an instruction\n",
           measure_decoder(functions, decode_zydis));
    printf("Zydis with operands %6.1f ns an instruction\n",
           measure_decoder(functions, decode_zydis_operands));
    return EXIT_SUCCESS;
}
