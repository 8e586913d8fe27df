/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker-priv.h - functions of the marker that only guest and guardian use
 */
#pragma once

#include "uprof/marker.h"

/**
 * uprof_marker_adopt:
 * @fd: owned: of an open marker; closed on failure, too
 *
 * Returns: (transfer full) (nullable): the marker, mapped
 */
UprofMarker *uprof_marker_adopt(int fd, GError **error);

/** uprof_marker_fd: Returns: borrowed descriptor, to pass to the guardian */
int uprof_marker_fd(const UprofMarker *marker);

/**
 * uprof_marker_get_info:
 * @info: (out): a copy; its strings are terminated even if the file is damaged
 *
 * Returns: false if the file contains no info, or one from before the host was booted
 */
bool uprof_marker_get_info(const UprofMarker *marker, UprofMarkerInfo *info);

/**
 * uprof_marker_ask: sets %UPROF_HELD_ASKED
 * @marker: (nullable)
 * @now_ns: monotonic; passed in because on some hosts reading the clock is expensive
 */
void uprof_marker_ask(UprofMarker *marker, uint64_t now_ns);

/** uprof_marker_set_held: @marker: (nullable) */
void uprof_marker_set_held(UprofMarker *marker, UprofHeld held);

/** uprof_marker_is_flagged: the domain may be held. Takes no lock, so this is only a hint. */
bool uprof_marker_is_flagged(const char *uuid);
