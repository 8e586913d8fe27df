/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vcpu-tables.h - a table for each vCPU of a profile
 */
#pragma once

#include "uprof/output.h"

/**
 * uprof_vcpu_tables_render:
 * @profile: its stacks have vCPUs below the domain
 *
 * Returns: (transfer full): the tables; an empty text if no vCPU is known
 */
GString *uprof_vcpu_tables_render(const UprofProfile *profile, const UprofTableStyle *style);
