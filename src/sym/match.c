/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The code that a guest runs changes: firmware runs before the kernel, perhaps at the same
 * addresses, and a kernel can start another one (kexec) without a reset. So a mismatch is
 * compared again, ever more rarely, and a match now and then.
 */
#include "match-priv.h"

#include "uprof/build-id.h"

#include <string.h>

enum {
    COMPARE_APART_MAX = 64, /* samples in an image from one comparison to the next */
    COMPARE_APART_MATCHED = 1024,

    NOTE_HEADER_BYTES = 16, /* u32 name length 4, u32 length, u32 type 3, "GNU" */
    NOTE_BUILD_ID = 3,

    PROOF_PIECES = 8,
    PROOF_PIECE_BYTES = 256,
    PROOF_AGREE = 6,
    PROOF_READ_MIN = 4,

    CODE_BYTES = 4096, /* searched for calls in one piece */
    CODE_PAGES = 16,   /* pieces that are searched, from the sample on, until CALLS_MIN */
    CALL = 0xe8,       /* x86: the distance follows in 32 bits */
    CALL_BYTES = 5,
    CALLS_MIN = 16,
};

static void
set_match(UprofImage *image, UprofSymMatch match, char *why)
{
    image->match = match;
    g_free(image->mismatch);
    image->mismatch = why;
}

/* Returns: false if the guest's build-id cannot be read */
static bool
compare_build_id(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs)
{
    uint8_t note[NOTE_HEADER_BYTES + UPROF_ELF_BUILD_ID_BYTES_MAX];
    UprofBytes bytes = { .all = { note, sizeof(note) } };
    uint32_t name_len, len, type;
    UprofSlice name, id;

    if (image->build_id_at < NOTE_HEADER_BYTES)
        return false;
    const uint64_t at = image->build_id_at + image->bias - NOTE_HEADER_BYTES;
    bytes.big_endian = image->big_endian;
    if (!uprof_mem_read(mem, vcpu, regs, at, note, NOTE_HEADER_BYTES) ||
        !uprof_bytes_u32(&bytes, &name_len) || !uprof_bytes_u32(&bytes, &len) ||
        !uprof_bytes_u32(&bytes, &type) || !uprof_bytes_take(&bytes, 4, &name) || name_len != 4 ||
        type != NOTE_BUILD_ID || memcmp(name.data, "GNU", 4) != 0 || len == 0 ||
        len > UPROF_ELF_BUILD_ID_BYTES_MAX ||
        !uprof_mem_read(mem, vcpu, regs, at + NOTE_HEADER_BYTES, note + NOTE_HEADER_BYTES, len) ||
        !uprof_bytes_take(&bytes, len, &id))
        return false;
    g_autofree char *found = uprof_build_id_hex(id);
    if (strcmp(found, image->build_id) == 0)
        set_match(image, UPROF_SYM_MATCHED, NULL);
    else
        set_match(image, UPROF_SYM_MISMATCHED,
                  g_strdup_printf("its build-id is %s, the guest's is %s", image->build_id, found));
    return true;
}

static void
compare_text(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs)
{
    unsigned n_read = 0, n_equal = 0;
    uint64_t total = 0;

    for (guint i = 0; i < image->ranges->len; i++)
        total += g_array_index(image->ranges, UprofCodeRange, i).bytes.len;
    for (unsigned piece = 0; piece < PROOF_PIECES; piece++) {
        uint8_t guest[PROOF_PIECE_BYTES];
        uint64_t skip = total / PROOF_PIECES * piece;
        for (guint i = 0; i < image->ranges->len; i++) {
            const UprofCodeRange *range = &g_array_index(image->ranges, UprofCodeRange, i);
            if (skip >= range->bytes.len) {
                skip -= range->bytes.len;
                continue;
            }
            const size_t len = MIN((size_t)PROOF_PIECE_BYTES, range->bytes.len - skip);
            if (uprof_mem_read(mem, vcpu, regs, range->start + image->bias + skip, guest, len)) {
                n_read++;
                n_equal += memcmp(guest, (const uint8_t *)range->bytes.data + skip, len) == 0;
            }
            break;
        }
    }
    if (n_read < PROOF_READ_MIN)
        return;
    if (n_equal * PROOF_PIECES >= n_read * PROOF_AGREE)
        set_match(image, UPROF_SYM_MATCHED, NULL);
    else
        set_match(image, UPROF_SYM_MISMATCHED, g_strdup("its code differs from the guest's"));
}

/*
 * A table that is text has no code to compare. If the table belongs to the guest's code, calls
 * around a sample lead to starts of the table's functions. In another build, or in a moved kernel,
 * calls lead anywhere.
 */
static void
count_calls(UprofImage *image, const uint8_t *code, size_t len, uint64_t gva)
{
    for (size_t i = 0; i + CALL_BYTES <= len; i++) {
        if (code[i] != CALL)
            continue;
        const uint64_t target =
            gva + i + CALL_BYTES + (uint64_t)(int32_t)uprof_read_le32(code + i + 1);
        if (!uprof_image_has_code(image, target))
            continue;
        const UprofSymbol *symbol = uprof_image_find(image, target);
        image->n_calls++;
        image->n_calls_agreed += symbol && symbol->start + image->bias == target;
    }
}

static void
compare_calls(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t pc)
{
    uint8_t code[CODE_BYTES];
    uint64_t gva = pc - pc % CODE_BYTES;

    if (!image->has_calls)
        return;
    for (unsigned i = 0; i < CODE_PAGES && image->n_calls < CALLS_MIN; i++, gva += CODE_BYTES) {
        if (!uprof_mem_read(mem, vcpu, regs, gva, code, sizeof(code)))
            break;
        count_calls(image, code, sizeof(code), gva);
    }
    if (image->n_calls < CALLS_MIN)
        return;
    if (image->n_calls_agreed * 2 >= image->n_calls)
        set_match(image, UPROF_SYM_MATCHED, NULL);
    else if (image->n_calls_agreed * 4 < image->n_calls)
        set_match(image, UPROF_SYM_MISMATCHED,
                  g_strdup("the guest's calls do not lead to its functions"));
    image->n_calls = image->n_calls_agreed = 0;
}

/* Is the image the table of a kernel whose start the guest does not map? */
static bool
is_start_missing(const UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs)
{
    uint64_t gpa, left;

    if (image->is_elf || regs->privilege != 0 || image->ranges->len == 0)
        return false;
    const uint64_t start = g_array_index(image->ranges, UprofCodeRange, 0).start + image->bias;
    return start >= UPROF_UPPER_HALF &&
           !uprof_mem_translate(mem, vcpu, regs, start, &gpa, &left, NULL);
}

/* The guest runs kernel code, but maps nothing where the table begins: its kernel was moved. */
static bool
detect_moved_kernel(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                    uint64_t pc)
{
    if (image->match != UPROF_SYM_UNCHECKED || pc < UPROF_UPPER_HALF ||
        !is_start_missing(image, mem, vcpu, regs))
        return false;
    image->is_elsewhere = true;
    set_match(image, UPROF_SYM_MISMATCHED,
              g_strdup("the guest has nothing at its addresses: its kernel was moved (KASLR)? "
                       "then give it as FILE@BASE"));
    return true;
}

bool
uprof_match_compare(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                    uint64_t pc)
{
    const UprofSymMatch before = image->match;

    if (!uprof_image_has_code(image, pc))
        return detect_moved_kernel(image, mem, vcpu, regs, pc);
    /* A kernel that was moved a little runs at some of its table's addresses. */
    if (image->is_elsewhere && is_start_missing(image, mem, vcpu, regs))
        return false;
    if (image->is_elsewhere)
        uprof_image_forget_match(image);
    image->n_seen++;
    if (image->n_seen < image->next_compare)
        return image->match != before;
    if (image->match == UPROF_SYM_MISMATCHED)
        uprof_mem_forget(mem); /* the remembered pages gave the mismatch */
    if (!image->is_elf)
        compare_calls(image, mem, vcpu, regs, pc);
    else if (!image->build_id || !compare_build_id(image, mem, vcpu, regs))
        compare_text(image, mem, vcpu, regs);
    image->next_compare = image->n_seen + (image->match == UPROF_SYM_MATCHED
                                               ? (uint64_t)COMPARE_APART_MATCHED
                                               : MIN(image->n_seen, (uint64_t)COMPARE_APART_MAX));
    return image->match != before;
}
