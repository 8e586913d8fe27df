/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-sites-priv.h - addresses whose inlined functions and lines are looked up at the end
 *
 * A lookup of inlined functions and lines takes too long while a guest is sampled. Until the end
 * a stack holds a site, which is a name for one address. Each site is looked up once.
 */
#pragma once

#include "demangle-priv.h"
#include "image-priv.h"
#include "uprof/intern.h"

typedef struct _UprofSites UprofSites;

/** uprof_sites_new: @names, @demangler: borrowed */
UprofSites *uprof_sites_new(UprofNames *names, UprofDemangler *demangler);
void uprof_sites_free(UprofSites *sites);

/** uprof_sites_configure: @with_lines: frames include their line; @raw_names: do not demangle */
void uprof_sites_configure(UprofSites *sites, bool with_lines, bool raw_names);

/** uprof_sites_have_lines: do frames include their line? */
bool uprof_sites_have_lines(const UprofSites *sites);

/**
 * uprof_sites_add:
 * @image: has lines; borrowed. It outlives @sites, or uprof_sites_move() replaces it.
 * @address: link address in @image
 * @function: name of the function at @address, or the text shown in its place
 *
 * Returns: (nullable): the name of the site; %NULL if there are too many
 */
const UprofName *
uprof_sites_add(UprofSites *sites, UprofImage *image, uint64_t address, const UprofName *function);

/** uprof_sites_move: moves the sites of @image to @other, which was linked for the same addresses
 */
void uprof_sites_move(UprofSites *sites, const UprofImage *image, UprofImage *other);

/**
 * uprof_sites_resolve: looks up the new sites of @image; sets its @lines_hint
 * @until_ns: monotonic: time limit
 */
void uprof_sites_resolve(UprofSites *sites, UprofImage *image, uint64_t until_ns);

/**
 * uprof_sites_find_lines: looks up lines at once, and keeps nothing
 * @image: has lines
 * @addresses: guest-virtual, in rising order; at most %UPROF_LINES_ADDRESSES_MAX
 * @n: how many
 * @cpu_ns: limit of processor time
 * @lines: (out): by address: (nullable): see uprof_sym_lines(); untouched if no line is known
 */
void uprof_sites_find_lines(const UprofSites *sites, UprofImage *image, const uint64_t *addresses,
                            unsigned n, uint64_t cpu_ns, const UprofName **lines);

/**
 * uprof_sites_expand:
 * @name: any name
 * @frames: (out): outermost first; borrowed
 *
 * Returns: how many frames the site has; 0 if @name is not the name of a site
 */
unsigned
uprof_sites_expand(const UprofSites *sites, const UprofName *name, const UprofName *const **frames);
