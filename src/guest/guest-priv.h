/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guest-priv.h - resumes a guest from another process
 */
#pragma once

#include "uprof/guest.h"

/** uprof_guest_rescue: for the guardian and `check --heal`; see UprofGuestOps.rescue */
bool uprof_guest_rescue(UprofGuest *guest, bool asked, GError **error);
