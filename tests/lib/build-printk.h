/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-printk.h - writes the log of a Linux kernel, as the kernel does, for tests
 */
#pragma once

#include "uprof/printk-ring.h"

/* The layout of the structures; other than that of a real kernel. */
enum {
    PRINTK_DESC_BYTES = 32,
    PRINTK_STATE = 8,
    PRINTK_BEGIN = 16,
    PRINTK_NEXT = 24,
    PRINTK_INFO_BYTES = 48,
    PRINTK_TIME = 0,
    PRINTK_SEQUENCE = 8,
    PRINTK_TEXT_LEN = 16,
    PRINTK_FACILITY = 18,
    PRINTK_LEVEL_BITS = 8 * 19 + 5,
    PRINTK_CALLER = 20,
};

extern const UprofPrintkLayout printk_layout;

/** PrintkBuilder: a log that is being written */
typedef struct {
    unsigned count_bits, size_bits;
    uint8_t *descs, *infos, *text; /* owned */
    uint64_t tail, head;           /* ids */
    uint64_t end;                  /* position behind the newest block */
    uint64_t sequence;             /* of the next record */
    uint8_t facility;              /* of the next records */
} PrintkBuilder;

void printk_init(PrintkBuilder *builder, unsigned count_bits, unsigned size_bits);
void printk_clear(PrintkBuilder *builder);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PrintkBuilder, printk_clear)

/** printk_add: adds a record of @text, which may overwrite older ones; its time is its number in ms
 */
void printk_add(PrintkBuilder *builder, unsigned level, const char *text);

/** printk_ring: Returns: the rings, borrowed, as if nothing had changed while they were copied */
UprofPrintkRing printk_ring(const PrintkBuilder *builder);

/** printk_desc: Returns: the descriptor of @id, borrowed */
uint8_t *printk_desc(const PrintkBuilder *builder, uint64_t id);

/** printk_put: writes @number in @len bytes, lowest byte first */
void printk_put(uint8_t *bytes, uint64_t number, unsigned len);
