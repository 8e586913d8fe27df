/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chains.h - pointers that a hold follows in the memory of a process
 *
 * Some runtimes keep frames in other places than the stack of the stack pointer: goroutines have
 * stacks of their own, and Python's functions have frames in heap memory. A few pointers lead
 * there from the thread. They change all the time, so they must be followed during the hold. The
 * analysis of a process publishes a chain beforehand: a short list of steps, all of them bounded.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_CHAIN_STEPS_MAX = 16,
    UPROF_CHAIN_STARTS = 2,
    UPROF_CHAIN_NODE_BYTES_MAX = 256,
    UPROF_CHAIN_OFFSET_MAX = 64 * 1024,
    UPROF_CHAIN_SLOTS = 1024, /* chains of a guest at a time */
};

/**
 * UprofChainOp: what a step does
 *
 * Each step has a value, which is 0 unless it loads a word. The value of step -1 is the thread
 * pointer, or the first of @starts, and the value of step -2 is the second one. If the value of
 * @from is 0, the step does nothing.
 */
typedef enum {
    UPROF_CHAIN_END,           /* the chain ends here */
    UPROF_CHAIN_LOAD,          /* the value is the word at the value of @from plus @offset */
    UPROF_CHAIN_SKIP_IF_EQUAL, /* leaves out the next @len steps if the values of @from and @other
                                * are equal */
    UPROF_CHAIN_SKIP_UNLESS_COPIED, /* leaves out the next @len steps unless the word at the value
                                     * of @from plus @offset is copied already */
    UPROF_CHAIN_STACK,              /* copies a stack from the value of @from on */
    /* copies a list of nodes: @len bytes each, the first one at the value of @from; the address of
     * the next one is the word at @offset of a node */
    UPROF_CHAIN_LIST,
    UPROF_CHAIN_N_OPS,
} UprofChainOp;

/** UprofChainStep: @from and @other are numbers of earlier steps, or -1 or -2 for a start */
typedef struct {
    uint8_t op; /* UprofChainOp */
    int8_t from, other;
    uint16_t len;
    int32_t offset;
} UprofChainStep;

/** UprofChain: the steps for a thread */
typedef struct {
    uint64_t memory; /* of the process: address of its struct mm_struct */
    uint64_t thread; /* the thread pointer; 0: all threads of the process */
    /* guest-virtual; the first one is the thread pointer if it is 0 here; the second one may be 0
     */
    uint64_t starts[UPROF_CHAIN_STARTS];
    UprofChainStep steps[UPROF_CHAIN_STEPS_MAX];
} UprofChain;

/** UprofChainSlot: one thread writes it, others copy it; see chains.c */
typedef struct {
    gint version; /* atomic; odd while the slot is being written */
    bool is_used;
    UprofChain chain;
} UprofChainSlot;

/** UprofChains: the chains of a guest */
typedef struct {
    gint has_any; /* atomic, bool */
    UprofChainSlot slots[UPROF_CHAIN_SLOTS];
} UprofChains;

/**
 * uprof_chains_find:
 * @thread: the thread pointer of the thread that ran
 * @chain: (out): the chain of that thread, or of all threads of its process
 *
 * Returns: false if there is no such chain, or it is being replaced just now
 */
bool
uprof_chains_find(const UprofChains *chains, uint64_t memory, uint64_t thread, UprofChain *chain);

/**
 * uprof_chains_choose_slot: Returns: the slot of a chain with these keys: the one that it has
 * already, an empty one, or one whose chain must give way
 */
unsigned uprof_chains_choose_slot(const UprofChains *chains, uint64_t memory, uint64_t thread);

/** uprof_chains_set: @chain: copied */
void uprof_chains_set(UprofChains *chains, unsigned slot, const UprofChain *chain);

/** uprof_chains_clear: removes all chains */
void uprof_chains_clear(UprofChains *chains);

/** uprof_chain_is_equal: are both chains the same, with the same keys? */
bool uprof_chain_is_equal(const UprofChain *one, const UprofChain *other);

/** uprof_chain_is_sound: are all members of @chain within their limits? */
bool uprof_chain_is_sound(const UprofChain *chain);
