/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-map-priv.h - a domain's memory, mapped piece by piece and kept mapped
 *
 * Mapping takes ten to a hundred microseconds; reading mapped memory takes almost nothing. So
 * memory is mapped in pieces of 32 pages when it is first read outside of a hold, and stays
 * mapped. A hold only reads what is mapped. Frames have the guest's numbers; frames of
 * paravirtual guests have the machine's. Xen maps no frame that does not belong to the guest.
 * The map remembers such frames, and does not try them again. If a piece cannot be mapped for
 * another reason, the next read tries again.
 *
 * A mapping keeps its page allocated. Xen cannot free a dead domain while one of its pages is
 * mapped. A page that the guest has returned to Xen may belong to another domain. So all
 * mappings are dropped when the domain ends, and from time to time.
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
 * @may_map: false in a hold: memory that is not mapped yet is missing then
 *
 * Lanes do not wait for each other.
 */
void
uprof_xen_map_read(UprofXenMap *map, UprofLane lane, bool may_map, UprofSpan *spans, unsigned n);

/** uprof_xen_map_drop: from any thread: unmaps what @lane has mapped */
void uprof_xen_map_drop(UprofXenMap *map, UprofLane lane);

/** uprof_xen_map_end: from any thread: unmaps everything; all later reads are missing */
void uprof_xen_map_end(UprofXenMap *map);
