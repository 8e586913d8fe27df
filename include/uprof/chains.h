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
    UPROF_CHAIN_STEPS_MAX = 10,
    UPROF_CHAIN_STARTS = 2,
    UPROF_CHAIN_NODE_BYTES_MAX = 256,
    UPROF_CHAIN_OFFSET_MAX = 64 * 1024,
    UPROF_CHAIN_SLOTS = 1024, /* chains of a guest at a time */
};

/**
 * UprofChainOp: what a step does
 *
 * Each step has a value, which is 0 unless it loads a word. The value of step -1 is the thread pointer,
 * or the first of @starts, and the value of step -2 is the second one. A step with 0 as the value of
 * @from does nothing.
 */
typedef enum {
    UPROF_CHAIN_END,    /* the chain ends here */
    UPROF_CHAIN_LOAD,   /* the value is the word at the value of @from plus @offset */
    UPROF_CHAIN_DIFFER, /* leaves out the next @len steps if the values of @from and @other are
                         * equal */
    UPROF_CHAIN_STACK,  /* copies a stack from the value of @from on */
    /* copies a list of nodes: @len bytes each, the first one at the value of @from; the address of
     * the next one is the word at @offset of a node */
    UPROF_CHAIN_LIST,
    UPROF_CHAIN_N_OPS,
} UprofChainOp;

/** UprofChainStep: @from and @other are numbers of steps before this one, from -2 */
typedef struct {
    uint8_t op; /* UprofChainOp */
    int8_t from, other;
    uint16_t len;
    int32_t offset;
} UprofChainStep;

/** UprofChain: constant once published */
typedef struct {
    uint64_t memory; /* of the process: address of its struct mm_struct */
    uint64_t thread; /* the thread pointer; 0: all threads of the process */
    /* guest-virtual; 0: the thread pointer is the first one, and there is no second one */
    uint64_t starts[UPROF_CHAIN_STARTS];
    UprofChainStep steps[UPROF_CHAIN_STEPS_MAX];
} UprofChain;

/** UprofChains: the chains of a guest; a slot changes atomically, and its chain stays valid */
typedef struct {
    gint has_any;                               /* atomic, bool */
    const UprofChain *slots[UPROF_CHAIN_SLOTS]; /* atomic; (nullable) */
} UprofChains;

/**
 * uprof_chains_find:
 * @thread: the thread pointer of the thread that ran
 *
 * Returns: (nullable): the chain of that thread, or of all threads of its process
 */
const UprofChain *uprof_chains_find(const UprofChains *chains, uint64_t memory, uint64_t thread);

/**
 * uprof_chains_choose_slot: Returns: the slot of a chain with these keys: the one that it has
 * already, an empty one, or one whose chain must give way
 */
unsigned uprof_chains_choose_slot(const UprofChains *chains, uint64_t memory, uint64_t thread);

/** uprof_chains_set: @chain: (nullable): borrowed; it must stay valid as long as @chains */
void uprof_chains_set(UprofChains *chains, unsigned slot, const UprofChain *chain);

/** uprof_chain_is_sound: are all members of @chain within their limits? */
bool uprof_chain_is_sound(const UprofChain *chain);
