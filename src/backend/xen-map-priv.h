/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-map-priv.h - a domain's memory, mapped piece by piece and kept mapped
 *
 * Mapping costs ten to a hundred microseconds, reading what is mapped nothing.
 * So memory is mapped in pieces of some pages when it is first read outside of a
 * hold, and kept; a hold reads what there is. Frames are guest frames, of
 * paravirtual guests the machine's. A frame that is not the guest's cannot be
 * mapped; that is remembered as well, while a piece of which nothing could be mapped
 * for another reason is tried again when it is read again.
 *
 * A mapping keeps its page alive: one that is left keeps a whole dead domain,
 * and after the guest has given memory back it shows what is not the guest's any
 * more. So all are dropped when the domain ends, and from time to time.
 */
#pragma once

#include "uprof/guest.h"

typedef struct _UprofXenMap UprofXenMap;

/** uprof_xen_map_new: Returns: (transfer full) (nullable): %NULL with an error */
UprofXenMap *uprof_xen_map_new(int domid, GError **error);
void uprof_xen_map_free(UprofXenMap *map);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofXenMap, uprof_xen_map_free)

/**
 * uprof_xen_map_read:
 * @may_map: false in a hold: what is not mapped yet is missing
 *
 * Lanes do not wait for each other.
 */
void
uprof_xen_map_read(UprofXenMap *map, UprofLane lane, bool may_map, UprofSpan *spans, unsigned n);

/** uprof_xen_map_drop: from any thread: unmaps what @lane has mapped */
void uprof_xen_map_drop(UprofXenMap *map, UprofLane lane);

/** uprof_xen_map_end: from any thread: unmaps all, and from now on all is missing */
void uprof_xen_map_end(UprofXenMap *map);
