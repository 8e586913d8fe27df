/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-text-priv.h"

#include <string.h>

enum {
    PAGES = 256,  /* 1 MiB */
    WAYS = 4,     /* slots in which a page may be */
    VIEWS = 256,  /* pages that were looked for in this sample */
    INSNS = 8192, /* 256 KiB */
    PAGE = UPROF_PAGE_BYTES,
};

/* With page-table isolation the tables of user space are in the next page (Linux, pti.h). */
#define USER_TABLES UINT64_C(0x1000)

typedef struct {
    uint64_t key;        /* of its first byte; 0: the slot is empty */
    unsigned sample;     /* the last one that has used it */
    uint64_t checked_ns; /* when the guest had the same bytes */
    uint8_t bytes[PAGE];
} Page;

/* A page of code, as this sample maps it. */
typedef struct {
    uint64_t gva;
    uint64_t key;
    unsigned sample;  /* the view is of an earlier sample if the number differs */
    const Page *page; /* (nullable): borrowed; %NULL if it is missing */
} View;

typedef struct {
    uint64_t key; /* 0: the slot is empty */
    UprofX86Insn insn;
    uint8_t word_bytes; /* of the mode in which it was decoded */
    bool is_valid;      /* there is an instruction */
} CachedInsn;

struct _UprofCodeText {
    const UprofUnwindContext *context; /* borrowed */
    const UprofRegs *regs;             /* borrowed: of the frame */
    unsigned sample;
    uint64_t time_ns;        /* of the last sample, in complete milliseconds */
    uint64_t work, saved_up; /* units that are left: for this sample; for all */
    unsigned reserve;        /* of @saved_up, for other work */
    bool is_spent;
    Page *pages[PAGES]; /* owned; allocated when they are used */
    View views[VIEWS];
    CachedInsn insns[INSNS];
};

UprofCodeText *
uprof_code_text_new(void)
{
    UprofCodeText *text = g_new0(UprofCodeText, 1);

    text->saved_up = UPROF_TEXT_WORK_MAX;
    return text;
}

void
uprof_code_text_free(UprofCodeText *text)
{
    if (!text)
        return;
    for (unsigned i = 0; i < PAGES; i++)
        g_free(text->pages[i]);
    g_free(text);
}

void
uprof_code_text_forget(UprofCodeText *text)
{
    for (unsigned i = 0; i < PAGES; i++)
        if (text->pages[i])
            text->pages[i]->key = 0;
    memset(text->insns, 0, sizeof(text->insns));
    text->sample++;
}

void
uprof_code_text_begin(UprofCodeText *text, const UprofUnwindContext *context)
{
    const uint64_t now_ns = context->snapshot->time_ns;
    const uint64_t ms = now_ns > text->time_ns ? (now_ns - text->time_ns) / 1000000 : 0;

    text->context = context;
    text->regs = &context->snapshot->regs;
    text->sample++;
    text->time_ns += ms * 1000000;
    if (now_ns < text->time_ns)
        text->time_ns = now_ns;
    text->saved_up =
        MIN(text->saved_up + MIN(ms, UINT64_C(1000000)) * (UPROF_TEXT_WORK_OF_SECOND / 1000),
            (uint64_t)UPROF_TEXT_WORK_MAX);
    text->work = MIN(text->saved_up, (uint64_t)UPROF_TEXT_WORK_OF_SAMPLE);
    text->reserve = 0;
    text->is_spent = false;
}

void
uprof_code_text_set_frame(UprofCodeText *text, const UprofRegs *regs)
{
    text->regs = regs;
    text->reserve = 0;
}

unsigned
uprof_code_text_word_bytes(const UprofCodeText *text)
{
    return text->regs->word_bytes;
}

void
uprof_code_text_set_reserve(UprofCodeText *text, unsigned reserve)
{
    text->reserve = reserve;
}

bool
uprof_code_text_spend(UprofCodeText *text, unsigned work)
{
    const unsigned kept = MIN(text->reserve, (unsigned)UPROF_TEXT_RESERVE_OF_SAMPLE);

    if (text->work < work + kept || text->saved_up < work + text->reserve) {
        text->is_spent = true;
        return false;
    }
    text->work -= work;
    text->saved_up -= work;
    return true;
}

/* For work that is bounded elsewhere, and is not refused. */
static void
charge_work(UprofCodeText *text, uint64_t work)
{
    text->work -= MIN(text->work, work);
    text->saved_up -= MIN(text->saved_up, work);
}

bool
uprof_code_text_is_spent(const UprofCodeText *text)
{
    return text->is_spent;
}

static size_t
hash_key(uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

/*
 * With page-table isolation the kernel's tables map user space, but forbid to run its code. The
 * process's own tables, which must lead to the same memory, say where code may run.
 */
static bool
may_run_in_process(const UprofCodeText *text, uint64_t gva, uint64_t gpa)
{
    const UprofSnapshot *snapshot = text->context->snapshot;
    UprofRegs regs = *uprof_unwind_tables(text->context);
    UprofMapping mapping;

    if (uprof_sym_arch(text->context->sym)->family != UPROF_FAMILY_X86 || regs.privilege != 0 ||
        gva >= UPROF_UPPER_HALF || (regs.sys[UPROF_X86_CR3] & USER_TABLES))
        return false;
    regs.sys[UPROF_X86_CR3] |= USER_TABLES;
    return uprof_mem_find(text->context->mem, snapshot->vcpu, &regs, gva, &mapping) &&
           mapping.gpa == gpa && mapping.executable;
}

/* @gva, @key: of the page's first byte */
static bool
may_run(const UprofCodeText *text, uint64_t gva, uint64_t key)
{
    const UprofUnwindContext *context = text->context;
    UprofMapping mapping;

    if (!uprof_mem_find(context->mem, context->snapshot->vcpu, uprof_unwind_tables(context), gva,
                        &mapping))
        return false;
    return mapping.executable || uprof_sym_is_code(context->sym, key) ||
           may_run_in_process(text, gva, mapping.gpa);
}

/*
 * Pages of one stack that took turns in one slot would be read in each sample, until the work of
 * all samples is used up. So a page has several slots.
 *
 * Returns: the slot of the page; else an empty slot, or that of the page that was not used for
 * longest
 */
static Page **
find_slot(UprofCodeText *text, uint64_t key)
{
    Page **set = &text->pages[hash_key(key) % (PAGES / WAYS) * WAYS], **oldest = set;

    for (unsigned i = 0; i < WAYS; i++) {
        if (!set[i] || set[i]->key == key)
            return &set[i];
        if (text->sample - set[i]->sample > text->sample - (*oldest)->sample)
            oldest = &set[i];
    }
    return oldest;
}

/* Returns: (nullable): the page, from the cache or from the guest */
static const Page *
fetch_page(UprofCodeText *text, uint64_t gva, uint64_t key)
{
    Page **slot = find_slot(text, key);
    const bool was_spent = uprof_mem_is_spent(text->context->mem);

    if (!may_run(text, gva, key)) {
        text->is_spent |= was_spent;
        return NULL;
    }
    if (!*slot)
        *slot = g_new0(Page, 1);
    (*slot)->sample = text->sample;
    if ((*slot)->key == key)
        return *slot;
    charge_work(text, UPROF_TEXT_WORK_OF_PAGE);
    (*slot)->key = 0;
    if (!uprof_unwind_read_code(text->context, gva, (*slot)->bytes, PAGE)) {
        text->is_spent |= uprof_mem_is_spent(text->context->mem);
        return NULL;
    }
    (*slot)->key = key;
    (*slot)->checked_ns = text->time_ns;
    return *slot;
}

static bool
is_valid_view(const UprofCodeText *text, const View *view, uint64_t gva)
{
    return view->sample == text->sample && view->gva == gva &&
           (!view->page || view->page->key == view->key);
}

/* @gva: of any byte of the page */
static const View *
view_page(UprofCodeText *text, uint64_t gva)
{
    const uint64_t first = gva - gva % PAGE;
    View *view = &text->views[hash_key(first) % VIEWS];

    if (is_valid_view(text, view, first))
        return view;
    view->sample = text->sample;
    view->gva = first;
    view->key = uprof_unwind_symbol_address(text->context, first);
    view->page = view->key != 0 ? fetch_page(text, first, view->key) : NULL;
    return view;
}

/* An instruction of the page before may end in this page. */
static void
forget_page(UprofCodeText *text, Page *page)
{
    for (unsigned i = 0; i < INSNS; i++)
        if (text->insns[i].key - (page->key - UPROF_X86_INSN_BYTES_MAX) <
            PAGE + UPROF_X86_INSN_BYTES_MAX)
            text->insns[i].key = 0;
    page->key = 0;
}

void
uprof_code_text_refresh(UprofCodeText *text, uint64_t pc)
{
    const UprofUnwindContext *context = text->context;
    const UprofRegs *regs = uprof_unwind_tables(context);
    const unsigned vcpu = context->snapshot->vcpu;
    const View *view = view_page(text, pc);
    uint8_t now[PAGE];
    UprofMemPage read = { .gva = view->gva, .into = now };

    if (!view->page || view->page->checked_ns == text->time_ns)
        return;
    Page *page = *find_slot(text, view->key);
    page->checked_ns = text->time_ns;
    charge_work(text, UPROF_TEXT_WORK_OF_CHECK);
    uprof_mem_read_pages(context->mem, vcpu, regs, &read, 1);
    if (!read.is_missing && memcmp(now, page->bytes, PAGE) == 0)
        return;
    uprof_mem_drop_page(context->mem, vcpu, regs, view->gva);
    forget_page(text, page);
}

uint64_t
uprof_code_text_key(UprofCodeText *text, uint64_t pc)
{
    return view_page(text, pc)->key + pc % PAGE;
}

bool
uprof_code_text_is_code(UprofCodeText *text, uint64_t pc)
{
    return view_page(text, pc)->page != NULL;
}

/* Returns: bytes that were read, from @pc on, up to the first missing page */
static size_t
read_bytes(UprofCodeText *text, uint64_t pc, uint8_t *into, size_t len)
{
    size_t done = 0;

    while (done < len) {
        const uint64_t at = pc + done;
        const View *view = view_page(text, at);
        const size_t n = MIN(len - done, PAGE - at % PAGE);
        if (!view->page)
            break;
        memcpy(into + done, view->page->bytes + at % PAGE, n);
        done += n;
    }
    return done;
}

bool
uprof_code_text_read(UprofCodeText *text, uint64_t pc, void *into, size_t len)
{
    return read_bytes(text, pc, into, len) == len;
}

static void
decode_insn(UprofCodeText *text, uint64_t pc, CachedInsn *cached)
{
    uint8_t bytes[UPROF_X86_INSN_BYTES_MAX];
    const size_t len = read_bytes(text, pc, bytes, sizeof(bytes));

    cached->word_bytes = text->regs->word_bytes;
    cached->is_valid =
        uprof_x86_insn((UprofSlice){ bytes, len }, text->regs->word_bytes, &cached->insn);
}

bool
uprof_code_text_insn(UprofCodeText *text, uint64_t pc, UprofX86Insn *insn)
{
    const uint64_t key = uprof_code_text_key(text, pc);
    CachedInsn *cached = &text->insns[hash_key(key) % INSNS];

    if (!uprof_code_text_is_code(text, pc))
        return false;
    if (cached->key != key || cached->word_bytes != text->regs->word_bytes) {
        decode_insn(text, pc, cached);
        /* an instruction that ends in a missing page may be complete later */
        cached->key = cached->is_valid ? key : 0;
    }
    *insn = cached->insn;
    return cached->is_valid;
}

UprofCall
uprof_code_text_call(UprofCodeText *text, uint64_t pc, uint64_t *target)
{
    const UprofCallInsns *insns = uprof_call_insns(text->context);
    uint8_t code[UPROF_CALL_BYTES_MAX];
    unsigned len = insns->call_bytes_max;
    UprofCallMatch match;

    if (pc < len)
        return UPROF_CALL_UNREADABLE;
    if (pc % PAGE < len && !uprof_code_text_is_code(text, pc - len))
        len = (unsigned)(pc % PAGE);
    if (len == 0 || !uprof_code_text_read(text, pc - len, code + sizeof(code) - len, len))
        return UPROF_CALL_UNREADABLE;
    insns->match_call(code + sizeof(code) - len, len, pc, text->regs->word_bytes, &match);
    *target = match.target;
    if (match.is_direct && (!match.is_indirect || uprof_code_text_is_code(text, match.target)))
        return UPROF_CALL_DIRECT;
    return match.is_indirect ? UPROF_CALL_INDIRECT : UPROF_CALL_NONE;
}
