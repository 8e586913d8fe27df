/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/error.h"

/* clang-format off */
G_DEFINE_QUARK(uprof-error-quark, uprof_error)
/* clang-format on */
